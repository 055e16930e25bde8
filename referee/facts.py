"""Facts: what the judge was told beside lines, in a form that can be kept and told again.  Pure."""

from referee.errors import RefereeError
from referee.events import (
    BotExited,
    Event,
    InputClosed,
    LimitPassed,
    LineTooLong,
    NotStarted,
    OutputBlocked,
    OutputClosed,
    Taken,
    TimePassed,
    Usage,
)
from referee.results import Fact

KINDS = {
    kind.__name__: kind
    for kind in (
        Taken,
        LineTooLong,
        OutputBlocked,
        InputClosed,
        OutputClosed,
        BotExited,
        LimitPassed,
        NotStarted,
        TimePassed,
    )
}
"""The events that are kept as facts; the others, lines sent and received, are the wire log."""


def fact_of(event: Event, at_us: int, after: int) -> Fact:
    """The fact that an event was, so many microseconds after the start and after so many wire lines."""
    if isinstance(event, TimePassed):
        return Fact(None, TimePassed.__name__, at_us, after, tuple(event[1:]))
    return Fact(event.player, type(event).__name__, at_us, after, tuple(event[2:]))


def event_of(fact: Fact) -> Event:
    """The event again, with the start of the game as the start of time.

    Raises RefereeError if it cannot have been one.
    """
    at = fact.at_us / 1e6
    try:
        if fact.name == TimePassed.__name__:
            unfinished, usage, doing = fact.data
            first, second = unfinished
            return TimePassed(at, (str(first), str(second)), None if usage is None else Usage(*usage), doing)
        event: Event = KINDS[fact.name](fact.player, at, *fact.data)  # type: ignore[arg-type]
    except (LookupError, TypeError, ValueError) as error:
        raise RefereeError(f"{fact.name!r} with {fact.data!r} is no fact that a game could have") from error
    return event
