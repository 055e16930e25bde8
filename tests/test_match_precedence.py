"""Where one event shows several faults, PRECEDENCE decides: every pair that can meet."""

import pytest

from referee.judge.events import (
    BotExited,
    Event,
    InputClosed,
    LimitPassed,
    LineReceived,
    LineTooLong,
    OutputBlocked,
    OutputClosed,
)
from referee.judge.match import PRECEDENCE
from referee.judge.results import Reason
from tests.judging import Judged

DEADLINE = 0.5 + 1.0 + 0.25  # of the first turn, see tests/judging.py
IN_TIME, LATE = DEADLINE, DEADLINE + 0.125


def faulty_events(at: float) -> dict[Reason, list[Event]]:
    """Events of player 0, by the fault that each shows when it is in time."""
    return {
        Reason.MEMORY: [LimitPassed(0, at, "memory", 600, 512), BotExited(0, at, 1, "", "MemoryError")],
        Reason.FILES: [BotExited(0, at, 1, "", "OSError: [Errno 30] Read-only file system: 'a'")],
        Reason.EXIT: [BotExited(0, at, 1, "", ""), OutputClosed(0, at, ""), InputClosed(0, at)],
        Reason.FLOOD: [LineTooLong(0, at, "xxxx")],
        Reason.BLOCKED: [OutputBlocked(0, at)],
        Reason.PROTOCOL: [LineReceived(0, at, "HELLO"), LineReceived(0, at, "MOVE;0")],
        Reason.ILLEGAL: [LineReceived(0, at, "MOVE;8")],
    }


IN_ORDER = [(reason, event) for reason, events in faulty_events(IN_TIME).items() for event in events]
TOO_LATE = [(reason, event) for reason, events in faulty_events(LATE).items() for event in events]


def outranks(first: Reason, second: Reason) -> bool:
    return PRECEDENCE.index(first) < PRECEDENCE.index(second)


def test_every_fault_has_its_place() -> None:
    assert set(PRECEDENCE) == set(Reason) - {Reason.SCORE, Reason.TURN_CAP}
    assert len(set(PRECEDENCE)) == len(PRECEDENCE)


@pytest.mark.parametrize(("reason", "event"), IN_ORDER)
def test_each_fault_by_itself(reason: Reason, event: Event) -> None:
    judged = Judged()
    judged.tell(event)
    assert (judged.result.winner, judged.result.reason) == (1, reason)


@pytest.mark.parametrize(("reason", "event"), TOO_LATE)
def test_late_outranks_what_else_the_event_shows(reason: Reason, event: Event) -> None:
    assert outranks(Reason.TIMEOUT, reason)
    judged = Judged()
    judged.tell(event)
    assert (judged.result.winner, judged.result.reason) == (1, Reason.TIMEOUT)


@pytest.mark.parametrize(("reason", "event"), TOO_LATE)
def test_not_started_in_time_outranks_everything(reason: Reason, event: Event) -> None:
    assert outranks(Reason.START, reason)
    assert outranks(Reason.START, Reason.TIMEOUT)
    judged = Judged(asleep=(1,))
    judged.tell(event._replace(player=1, at=10.125))  # type: ignore[call-arg]
    assert (judged.result.winner, judged.result.reason) == (0, Reason.START)


@pytest.mark.parametrize("line", ["MOVE;0", "MOVE;99999999999", "MOVE;08x", "MOVE;8 ", "SWAP"])
def test_a_line_must_be_a_message_before_it_can_be_a_move(line: str) -> None:
    assert outranks(Reason.PROTOCOL, Reason.ILLEGAL)
    judged = Judged()
    judged.play(line)
    assert judged.result.reason is Reason.PROTOCOL


@pytest.mark.parametrize(("_reason", "event"), IN_ORDER)
def test_what_the_other_bot_does_after_the_deadline_comes_too_late(_reason: Reason, event: Event) -> None:
    # Player 0 is on turn and over time; whatever player 1 does then, player 0 had lost before.
    judged = Judged()
    judged.tell(event._replace(player=1, at=LATE))  # type: ignore[call-arg]
    assert (judged.result.winner, judged.result.reason) == (1, Reason.TIMEOUT)


def test_the_first_fault_stands() -> None:
    judged = Judged()
    judged.tell(BotExited(1, 0.5, 1, "", ""))
    judged.tell(LineReceived(0, 0.5, "HELLO"))
    assert (judged.result.winner, judged.result.reason) == (0, Reason.EXIT)
