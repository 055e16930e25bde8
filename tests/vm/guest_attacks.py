"""Attacks of tests/attacks in the virtual machine: ``python -m tests.vm.guest_attacks NAME,NAME...``.

They are made as root and as an ordinary user, each in a delegated group, so that each bot has a control group
of its own.
"""

import os
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest

from referee.sandbox.bubblewrap import Tier
from tests.attacks import plays, test_attacks
from tests.support.confinement import TIER_VARIABLE
from tests.support.ordinary_user import USER, as_ordinary_user
from tests.vm.guest import PATIENCE_S, PATIENTLY, be_patient, delegate, enter, guarded, in_group, result

GAME_LIMIT_S = 900


class Outcomes:
    """Plugin of pytest that prints the outcome of each test."""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Print the outcome of a test's call, or that the test was not called."""
        if report.when == "call" or report.outcome != "passed":
            name = report.nodeid.partition("[")[2].rstrip("]")
            result("attack", name=name, outcome=report.outcome, text=report.longreprtext[-2000:])


def as_user_in(
    group: Path, command: Sequence[str], writable: Sequence[Path], readable: Sequence[Path] = ()
) -> list[str]:
    """Return what ``as_ordinary_user`` returns, for a command in a group."""
    return in_group(group, as_ordinary_user(command, writable, readable))


def attack(names: str) -> None:
    """Run the test of attacks for some of them, with longer time limits."""
    of_the_user = delegate("user", USER)
    enter(delegate("attacks"))
    os.environ[TIER_VARIABLE] = Tier.CGROUP.value
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # all of them take half a minute to load here
    plays.COMMAND = (sys.executable, "-c", f"{PATIENTLY}from tests.attacks.plays import main; main()")
    setattr(test_attacks, as_ordinary_user.__name__, partial(as_user_in, of_the_user))
    test_attacks.START_S, test_attacks.MOVE_S = round(PATIENCE_S), round(PATIENCE_S / 3)
    plays.END_LIMIT_S = test_attacks.GAME_LIMIT_S = GAME_LIMIT_S
    test = f"{test_attacks.__file__}::{test_attacks.test_the_sandbox_holds.__name__}"
    tests = [f"{test}[{who}-{name}]" for who in ("root", "ordinary user") for name in names.split(",")]
    options = ["-q", "--noconftest", "-p", "pytest_trio.plugin", "-p", "no:cacheprovider", "-m", ""]
    pytest.main([*options, *tests], plugins=[Outcomes()])


if __name__ == "__main__":
    be_patient()
    guarded(attack, sys.argv[1])
