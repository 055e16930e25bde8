"""Which sandbox the tests have."""

import os
import signal
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from referee.judge.results import GameRecord, Player
from referee.sandbox.bubblewrap import Sandbox, Tier
from referee.sandbox.detection import probe

TIERS = ("confined", "weak", "bare")


def needs_sandbox() -> Sandbox:
    """A sandbox that confines, without control groups.

    Without one the test fails where it is known that there must be one (in CI), else it is skipped.
    """
    found = probe()
    if found.sandbox.tier.confines:
        return replace(found.sandbox, tier=Tier.BUBBLEWRAP, cgroup="")
    reason = f"no sandbox: {found.why_not_better}"
    if os.environ.get("CI") or os.environ.get("KALARENA_REQUIRE_SANDBOX") == "1":
        pytest.fail(reason)
    pytest.skip(reason)


def sandbox_of(tier: str) -> Sandbox:
    """One of TIERS."""
    if tier == "confined":
        return needs_sandbox()
    return Sandbox(Tier.WEAK, probe().sandbox.tools) if tier == "weak" else Sandbox()


def reading_bot(*arguments: str, name: str = "culprit") -> Player:
    """tests/scripted_bot.py with all that a confined one needs to see."""
    script = Path(__file__).with_name("scripted_bot.py")
    command = (sys.executable, "-S", "-E", str(script), *arguments)
    return Player(name, command, str(script.parent), reads=(str(script),))


def outcome(record: GameRecord) -> tuple[int | None, str, str | None]:
    """What a game's verdict comes to."""
    return record.result.winner, record.result.reason.value, record.result.fault


def living_with(mark: str) -> list[int]:
    """Processes that have a text on their command line or in their environment and have not ended."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            known = (folder / "cmdline").read_bytes() + (folder / "environ").read_bytes()
        except OSError:
            continue
        if mark.encode() in known and int(folder.name) != os.getpid():
            found.append(int(folder.name))
    return found


def kill_all_with(mark: str) -> None:
    """End what a failed test has left behind."""
    for pid in living_with(mark):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
