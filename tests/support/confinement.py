"""Sandboxes and limits for tests, and bots that are played in them."""

import os
import sys
from dataclasses import replace

import pytest

from referee.judge.limits import Limits
from referee.judge.results import GameRecord, Player
from referee.sandbox.bubblewrap import Sandbox, Tier
from referee.sandbox.detection import probe
from tests.support.paths import SUPPORT

TIERS = ("confined", "weak", "bare")
UNHURRIED = Limits(end_grace_s=30.0)
"""Limits of bots that must end by themselves after END, which can take a second on a busy machine."""
TIER_VARIABLE = "KALARENA_TEST_TIER"
"""Environment variable with the tier that tests must find; without it, control groups are not used."""


def needs_sandbox() -> Sandbox:
    """Return a sandbox that confines, without control groups unless TIER_VARIABLE is set.

    Without one the test fails in CI or with KALARENA_REQUIRE_SANDBOX=1; elsewhere it is skipped.
    """
    found = probe()
    if tier := os.environ.get(TIER_VARIABLE):
        assert found.sandbox.tier.value == tier, found.why_not_better
        return found.sandbox
    if found.sandbox.tier.confines:
        return replace(found.sandbox, tier=Tier.BUBBLEWRAP, cgroup="")
    reason = f"no sandbox: {found.why_not_better}"
    if os.environ.get("CI") or os.environ.get("KALARENA_REQUIRE_SANDBOX") == "1":
        pytest.fail(reason)
    pytest.skip(reason)


def sandbox_of(tier: str) -> Sandbox:
    """Return the sandbox of one of TIERS."""
    if tier == "confined":
        return needs_sandbox()
    return Sandbox(Tier.WEAK, probe().sandbox.tools) if tier == "weak" else Sandbox()


def reading_bot(*arguments: str, name: str = "culprit") -> Player:
    """Return the player of tests/support/scripted_bot.py, with the files that it needs in a sandbox."""
    script = SUPPORT / "scripted_bot.py"
    command = (sys.executable, "-S", "-E", str(script), *arguments)
    return Player(name, command, str(script.parent), reads=(str(script),))


def outcome(record: GameRecord) -> tuple[int | None, str, str | None]:
    """Return the winner, the reason and the fault of a game."""
    return record.result.winner, record.result.reason.value, record.result.fault
