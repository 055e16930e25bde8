"""What a worker says of its host."""

import json
import os
import platform
import sys
from pathlib import Path

import pytest

from referee.sandbox.bubblewrap import Sandbox, Tier
from tournaments.engines.remote.extra import ClusterError
from tournaments.engines.remote.host import HostFacts, facts_of_this_host

FACTS = HostFacts("lab-7", 4, "bubblewrap", 512_345.6, "0.1.0", "3.11.2", {"java": "/usr/bin/java"})


def test_this_host() -> None:
    facts = facts_of_this_host(Sandbox(Tier.WEAK), calibrate=lambda: 7.0)
    assert (facts.name, facts.tier, facts.speed) == (platform.node(), "weak", 7.0)
    assert facts.cores == len(os.sched_getaffinity(0))
    assert facts.python == platform.python_version()
    assert facts.programs["python3"] == sys.executable
    assert all(Path(path).is_absolute() for path in facts.programs.values())


def test_programs_are_those_of_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java = tmp_path / "java"
    java.write_text("#!/bin/sh\n")
    java.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert facts_of_this_host(Sandbox(), lambda: 1.0).programs == {
        "python3": sys.executable,
        "java": str(java),
    }


def test_json_and_back() -> None:
    assert HostFacts.from_json(json.loads(json.dumps(FACTS.to_json()))) == FACTS
    assert HostFacts.from_json({**FACTS.to_json(), "of a newer version": 1}) == FACTS


@pytest.mark.parametrize(
    ("data", "where"),
    [
        ({**FACTS.to_json(), "speed": "fast"}, "speed"),
        ({**FACTS.to_json(), "cores": 1.5}, "cores"),
        ({**FACTS.to_json(), "programs": ["java"]}, "programs"),
        ({key: value for key, value in FACTS.to_json().items() if key != "tier"}, "tier"),
        (None, "None"),
        ("lab-7", "lab-7"),
    ],
)
def test_what_are_no_facts(data: object, where: str) -> None:
    with pytest.raises(ClusterError, match=f"a worker's facts of its host cannot be read: .*{where}"):
        HostFacts.from_json(data)


def test_a_line_for_people() -> None:
    assert str(FACTS) == (
        "lab-7: 4 cores, sandbox bubblewrap, 512 thousand positions/s a core, kalarena 0.1.0, Python 3.11.2"
    )
