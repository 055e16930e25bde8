"""Attacks on processes, memory and processors in the tier bubblewrap+cgroup, on a real kernel.

``tests/attacks`` has all attacks, in the tier that the host of the tests has.
"""

import pytest

from tests.vm.results import Results, booted

BOOT_LIMIT_S = 3600.0
ATTACKS = (
    *("forks", "threads", "daemon", "daemon-holds-output", "hopping"),
    *("memory", "memory-processes", "memory-shared-processes", "memory-hidden-processes"),
    *("spin-off-turn", "spin-threads"),
)
"""Names in tests/attacks/table.py."""

pytestmark = pytest.mark.vm


@pytest.fixture(scope="module")
def boot() -> Results:
    return booted("tests.vm.guest_attacks", ",".join(ATTACKS), limit_s=BOOT_LIMIT_S)


@pytest.mark.parametrize("who", ["root", "ordinary user"])
@pytest.mark.parametrize("name", ATTACKS)
def test_control_groups_hold(boot: Results, name: str, who: str) -> None:
    [found] = [each for each in boot.all("attack") if each["name"] == f"{who}-{name}"]
    assert found["outcome"] == "passed", found["text"]
