"""The end of a player: what was seen of it, and the event that the judge makes of that."""

from typing import Any

import pytest

from referee.errors import RefereeError
from referee.judge.events import BotExited, Event, LimitPassed, NotStarted, ProcessEnded
from referee.judge.faults import classified, neither_started
from referee.judge.limits import Limits
from tests.support.judging import Judged

LIMITS = Limits(memory_mb=100, directory_files=10)
KILL = -9


def ended(status: int = 1, **seen: Any) -> ProcessEnded:
    return ProcessEnded(1, 1.0, status, "MOV", "last words", **seen)


@pytest.mark.parametrize(
    ("end", "event"),
    [
        (ended(), BotExited(1, 1.0, 1, "MOV", "last words")),
        (ended(held_mb=89), BotExited(1, 1.0, 1, "MOV", "last words")),
        (ended(held_mb=90, full="/tmp"), BotExited(1, 1.0, 1, "MOV", "last words", 90, "/tmp")),
        (ended(KILL, group_kills=(3, 1), held_mb=120), LimitPassed(1, 1.0, "memory", 120, 100)),
        (ended(KILL, group_kills=(3, 1), held_mb=7), LimitPassed(1, 1.0, "memory", 100, 100)),
        (ended(KILL, group_kills=(3, 0), held_mb=95), BotExited(1, 1.0, KILL, "MOV", "last words", 95)),
        (ended(KILL, group_kills=(0, 0), host_kills=1), BotExited(1, 1.0, KILL, "MOV", "last words")),
        (ended(1, host_kills=1), BotExited(1, 1.0, 1, "MOV", "last words")),
        (ended(126, not_executed="no such file"), NotStarted(1, 1.0, "no such file")),
        (ended(new_files=10), BotExited(1, 1.0, 1, "MOV", "last words")),
        (ended(new_files=11), LimitPassed(1, 1.0, "files", 11, 10)),
        (ended(KILL, new_files=11, is_reported=True), BotExited(1, 1.0, KILL, "MOV", "last words")),
    ],
)
def test_the_event_of_an_end(end: ProcessEnded, event: Event) -> None:
    assert classified(end, "Bob", LIMITS) == event


@pytest.mark.parametrize(
    ("end", "message"),
    [
        (ended(KILL, group_kills=(0, 1)), "Bob was killed within its limit: the host has no memory left"),
        (
            ended(KILL, host_kills=1),
            "Bob was killed while this host, or what we may use of it, had no memory",
        ),
        (ended(137, host_kills=2), "Bob was killed while this host"),
        (ended(sandbox_fault="no user namespace"), "the sandbox of Bob failed: no user namespace"),
    ],
)
def test_an_end_that_is_no_fault_of_the_bot(end: ProcessEnded, message: str) -> None:
    with pytest.raises(RefereeError, match=message):
        classified(end, "Bob", LIMITS)


FIRST_END = ProcessEnded(0, 1.0, 3, "", "")
BEFORE_START = "before it had taken its START line"


@pytest.mark.parametrize(
    ("other", "event"),
    [
        (
            ProcessEnded(1, 1.0, -9, "", "", not_executed="no such file"),
            NotStarted(0, 1.0, f"its process ended with exit status 3 {BEFORE_START}", "no such file"),
        ),
        (ended(KILL, group_kills=(3, 1), held_mb=120), None),
    ],
)
def test_the_event_of_two_ends_before_start(other: ProcessEnded, event: Event | None) -> None:
    assert neither_started(FIRST_END, other, ("Alice", "Bob"), LIMITS) == event


def test_a_fault_of_the_host_is_no_draw() -> None:
    with pytest.raises(RefereeError, match="the sandbox of Bob failed"):
        neither_started(FIRST_END, ended(sandbox_fault="no user namespace"), ("Alice", "Bob"), LIMITS)


def test_without_limits_every_end_is_the_bots() -> None:
    assert classified(ended(KILL, host_kills=1, new_files=99), "Bob", None) == BotExited(
        1, 1.0, KILL, "MOV", "last words"
    )


@pytest.mark.parametrize("player", [0, 1])
def test_a_bot_that_sent_a_line_was_executed(player: int) -> None:
    """It prints the message of a failed start, which is not believed."""
    judged = Judged(asleep=(0, 1))
    judged.line(player, "MOVE;1")
    if player == 0:
        judged.tell_taken(1, 0.0)
    judged.tell(ProcessEnded(player, 1.0, 126, "", "", not_executed="no such file"))
    if player == 1:
        judged.tell_taken(0, 1.0)
    assert judged.result.fault == "exited"


def test_a_match_records_the_event_that_an_end_is() -> None:
    judged = Judged(limits=LIMITS)
    judged.tell(ended(new_files=11))
    assert judged.verdict == (0, "files")
    assert judged.match.facts[-1].name == "LimitPassed"
