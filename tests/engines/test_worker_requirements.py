"""Facts on a worker's host, and the requirements on them."""

import json
import os
import platform
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from referee.judge.results import Player
from referee.sandbox.bubblewrap import Sandbox, Tier
from tournaments.bots.resolve import resolve_bot
from tournaments.config.tournament import Tournament
from tournaments.engines.remote.extra import ClusterError
from tournaments.engines.remote.host import HostFacts, Versions, facts_of_this_host, program_here
from tournaments.engines.remote.packed_bot import needed_programs
from tournaments.engines.remote.remote_engine import demands_of
from tournaments.engines.remote.waiting import Demands

OURS = Versions()
HOST = HostFacts("lab-1", 2, "bubblewrap", 1_000_000.0, OURS.kalarena, f"{OURS.python}.2")


LAB = HostFacts("lab-7", 4, "bubblewrap", 512_345.6, "0.1.0", "3.11.2", ("java",))


def test_facts_of_this_host() -> None:
    facts = facts_of_this_host(Sandbox(Tier.WEAK), calibrate=lambda: 7.0)
    assert (facts.name, facts.tier, facts.speed) == (platform.node(), "weak", 7.0)
    assert facts.cores == len(os.sched_getaffinity(0))
    assert facts.python == platform.python_version()


def test_json_and_back() -> None:
    assert HostFacts.from_json(json.loads(json.dumps(LAB.to_json()))) == LAB
    assert HostFacts.from_json({**LAB.to_json(), "of a newer version": 1}) == LAB


@pytest.mark.parametrize(
    ("data", "where"),
    [
        ({**LAB.to_json(), "speed": "fast"}, "speed"),
        ({**LAB.to_json(), "cores": 1.5}, "cores"),
        ({**LAB.to_json(), "missing": 1}, "missing"),
        ({key: value for key, value in LAB.to_json().items() if key != "tier"}, "tier"),
        (None, "None"),
        ("lab-7", "lab-7"),
    ],
)
def test_invalid_facts(data: object, where: str) -> None:
    with pytest.raises(ClusterError, match=f"a worker's facts of its host cannot be read: .*{where}"):
        HostFacts.from_json(data)


def test_facts_for_people() -> None:
    assert str(LAB) == (
        "lab-7: 4 cores, sandbox bubblewrap, 512 thousand positions/s a core, kalarena 0.1.0, Python 3.11.2"
    )


# Requirements


def refusals(demands: Demands, hosts: Sequence[HostFacts]) -> dict[str, str]:
    reasons = zip(hosts, demands.refusals(hosts), strict=True)
    return {host.name: why for host, why in reasons if why is not None}


def test_a_host_that_confines_worse_or_has_another_version_is_refused() -> None:
    hosts = [
        HOST,
        replace(HOST, name="better", tier="bubblewrap+cgroup"),
        replace(HOST, name="worse", tier="weak"),
        replace(HOST, name="older", kalarena="0.0.1"),
        replace(HOST, name="3.9", python="3.9.18"),
        replace(HOST, name="mended", python=f"{OURS.python}.99"),
    ]
    assert refusals(Demands(tier=Tier.BUBBLEWRAP), hosts) == {
        "worse": "worse confines bots by weak only, and this tournament needs bubblewrap: "
        "kalarena doctor on that host names what is missing",
        "older": f"older has kalarena 0.0.1 on Python {OURS.python}, and this tournament needs {OURS}",
        "3.9": f"3.9 has kalarena {OURS.kalarena} on Python 3.9, and this tournament needs {OURS}",
    }


def at(*speeds: float) -> list[HostFacts]:
    """Hosts named by their speeds, in thousands of positions per second."""
    return [replace(HOST, name=f"{speed:g}", speed=speed * 1000.0) for speed in speeds]


@pytest.mark.parametrize(
    ("speeds", "refused"),
    [
        ((1000, 950, 1050), set()),
        ((1000, 900, 1100), set()),  # the bounds are inclusive
        ((1000, 1000, 880), {"880"}),
        ((1000, 1000, 1120), {"1120"}),
        ((500,), set()),  # the median of one is its own
        ((1000, 1000, 1000, 500, 2000), {"500", "2000"}),
        ((1000, 1250), {"1250"}),  # the first one stays
        ((1000, 800), {"800"}),
        ((700, 1900, 1000, 1250), {"700", "1900", "1250"}),
    ],
)
def test_hosts_of_the_same_speed(speeds: tuple[float, ...], refused: set[str]) -> None:
    found = refusals(Demands(same_speed=0.1), at(*speeds))
    assert set(found) == refused
    for name, why in found.items():
        assert why == (
            f"{name} has {float(name) / 1000:.0%} of the median speed of all workers, and this tournament "
            "needs same_speed = 10%"
        )
    assert refusals(Demands(), at(*speeds)) == {}
    # Hosts that are refused for another reason do not change the median.
    lacking = [replace(host, name=f"old-{host.name}", kalarena="0.0.1") for host in at(1, 2, 3, 4000, 5000)]
    others = {host.name for host in lacking}
    assert set(refusals(Demands(same_speed=0.1), [*lacking, *at(*speeds)])) == refused | others


def test_a_host_without_the_bots_programs_is_refused() -> None:
    demands = Demands(programs=("/usr/lib/jvm/java-17/bin/java", "sh", "make"))
    lacking = replace(HOST, missing=("/usr/lib/jvm/java-17/bin/java", "make"))
    assert refusals(demands, [HOST, replace(lacking, name="lab-2")]) == {
        "lab-2": "lab-2 lacks java, make, and all bots of this tournament need that: install it there, or "
        "leave this host out"
    }
    assert refusals(Demands(programs=("sh",)), [lacking]) == {}


def program(folder: Path, name: str, text: str = "#!/bin/sh\n") -> Path:
    path = folder / name
    path.write_text(text)
    path.chmod(0o755)
    return path


@pytest.fixture
def java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program that is the only one in the first folder of PATH."""
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    return program(tmp_path / "bin", "java")


def test_programs_are_found_by_their_path_or_by_their_name(java: Path, tmp_path: Path) -> None:
    ghost = program(tmp_path, "ghost")
    assert program_here("java") == str(java)
    assert program_here("/opt/jdk/bin/java") == str(java)
    assert program_here(str(ghost)) == str(ghost)
    assert program_here("ghost") is None
    demanded = ("/opt/jdk/bin/java", "ghost", "/opt/ghost", str(ghost))
    facts = facts_of_this_host(Sandbox(), lambda: 1.0, demanded)
    assert facts.missing == ("ghost", "/opt/ghost")


@pytest.mark.usefixtures("java")
def test_demanded_programs_are_those_that_start_and_build_bots(tmp_path: Path) -> None:
    built, script = tmp_path / "bot", tmp_path / "script"
    for folder in (built, script):
        folder.mkdir()
    (built / "Bot.class").write_text("")
    (built / "bot.toml").write_text('command = "java Bot"\nbuild = "sh make"\nmade = ["Bot.class"]\n')
    program(script, "bot.sh", "#!/usr/bin/env bash\n")
    (script / "bot.toml").write_text('command = "./bot.sh"\n')
    for folder, names in ((built, {"java", "sh"}), (script, {"bash"})):
        assert {Path(needed).name for needed in needed_programs(resolve_bot(str(folder), tmp_path))} == names
    assert needed_programs(resolve_bot("greedy", tmp_path)) == ()
    assert needed_programs(Player("none", ("/bin/cat",), "/")) == ("/bin/cat",)


def test_a_late_bot_that_has_withdrawn_demands_no_program(tmp_path: Path) -> None:
    gone = Player("gone", (), "")
    for name in ("one", "two"):
        program(tmp_path, name, "#!/bin/cat\n")
    tournament = Tournament.from_settings(["./one", "./two"], folder=tmp_path)
    tournament = tournament.model_copy(update={"added": (gone,)})
    assert demands_of(tournament, Sandbox(), None).programs == ("/bin/cat",)


def test_a_host_without_a_program_that_only_some_bots_need_may_join(tmp_path: Path) -> None:
    tournament = Tournament.from_settings(["/bin/cat", "greedy"], folder=tmp_path)
    assert demands_of(tournament, Sandbox(), None).programs == ()
