"""Facts: the judge's events other than lines, in a form that can be stored and replayed (pure)."""

from collections.abc import Sequence

from referee.errors import RefereeError
from referee.judge.events import (
    BotExited,
    Event,
    InputClosed,
    LimitPassed,
    LineReceived,
    LineTooLong,
    NotStarted,
    OffTurnUsage,
    OutputBlocked,
    OutputClosed,
    StartRead,
    TimePassed,
    Usage,
)
from referee.judge.record_rows import Fact

KINDS: dict[str, type[Event]] = {
    "Taken": StartRead,
    "LineTooLong": LineTooLong,
    "OutputBlocked": OutputBlocked,
    "InputClosed": InputClosed,
    "OutputClosed": OutputClosed,
    "BotExited": BotExited,
    "LimitPassed": LimitPassed,
    "NotStarted": NotStarted,
    "TimePassed": TimePassed,
    "LineReceived": LineReceived,
}
"""Name in records -> class of an event that is stored as a fact.

All lines are in the wire log.  A line that came after the deadline is a fact, too.  Stored records have these
names: a class may be renamed, but its name here never changes.
"""
NAMES: dict[type[Event], str] = {kind: name for name, kind in KINDS.items()}
"""Inverse of KINDS."""


def fact_of(event: Event, at_us: int, after: int) -> Fact:
    """Return an event as a fact.

    Args:
        event: The event.
        at_us: Microseconds since the start of the game.
        after: Number of wire lines before the event.
    """
    if isinstance(event, TimePassed):
        return Fact(None, NAMES[TimePassed], at_us, after, (*event[1:4], *_present(event.off_turn)))
    if isinstance(event, BotExited) and not event.held_mb and not event.full:
        return Fact(event.player, NAMES[BotExited], at_us, after, tuple(event[2:-2]))  # as in older records
    if isinstance(event, NotStarted) and not event.why_other:
        return Fact(event.player, NAMES[NotStarted], at_us, after, (event.why,))  # the same
    if isinstance(event, LineReceived):
        data = (event.line, event.usage, *_present(event.off_turn))
        return Fact(event.player, NAMES[LineReceived], at_us, after, data)
    return Fact(event.player, NAMES[type(event)], at_us, after, tuple(event[2:]))


def _present(off_turn: OffTurnUsage | None) -> tuple[OffTurnUsage, ...]:
    """Return counters of the bot off turn as the last fields of a fact; most facts have no such fields."""
    return () if off_turn is None else (off_turn,)


def off_turn_of(counters: Sequence[Sequence[int]]) -> OffTurnUsage | None:
    """Return recorded counters of the bot off turn, from the last fields of a fact; None if there are none.

    Raises RefereeError if one is below 0.
    """
    if not counters:
        return None
    (recorded,) = counters
    if any(counter < 0 for counter in recorded):
        raise RefereeError(f"counters below 0: {tuple(recorded)}")
    return OffTurnUsage(*recorded)


def usage_of(counters: Sequence[int]) -> Usage:
    """Return recorded counters.  Raises RefereeError if one is below 0."""
    if any(counter < 0 for counter in counters):
        raise RefereeError(f"counters below 0: {tuple(counters)}")
    return Usage(*counters)


def event_of(fact: Fact) -> Event:
    """Return the event of a fact; its time is in seconds since the start of the game.

    Raises RefereeError if no event has such values.
    """
    at = fact.at_us / 1e6
    try:
        kind = KINDS[fact.name]
        if kind is TimePassed:
            unfinished, usage, activity, *off_turn = fact.data
            first, second = map(str, unfinished)
            counters = None if usage is None else usage_of(usage)
            return TimePassed(at, (first, second), counters, activity, off_turn=off_turn_of(off_turn))
        if fact.player not in (0, 1):
            raise RefereeError(f"there is no player {fact.player!r}")
        if kind is LineReceived:
            line, usage, *off_turn = fact.data
            return LineReceived(fact.player, at, line, usage_of(usage), off_turn=off_turn_of(off_turn))
        types = list(kind.__annotations__.values())[2:]
        if not all(map(isinstance, fact.data, types)):
            raise TypeError
        return kind(fact.player, at, *fact.data)  # type: ignore[arg-type]
    except (LookupError, TypeError, ValueError) as error:
        raise RefereeError(f"{fact.name!r} with {fact.data!r} is no fact that a game could have") from error
