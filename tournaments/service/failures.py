"""What went wrong on our side while the server went on: kept for the lecturer's dashboard."""

import math
import traceback
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime

import trio

MAX_KEPT = 100
LONGEST_TRACE = 8000
"""Characters of a traceback; its end says what happened."""
FIRST_WAIT_S, LONGEST_WAIT_S = 1.0, 300.0
"""How long after a failure a task is started again: at first, and at most."""


@dataclass(frozen=True, slots=True)
class Failure:
    """One failure of ours, or the same one several times in a row."""

    at: datetime
    """When it last happened."""
    where: str
    """The part of the service."""
    why: str
    """A sentence."""
    trace: str
    """Where in the program, for its authors; empty if somebody expected it."""
    times: int


class Failures:
    """The newest failures."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now
        self._kept: deque[Failure] = deque(maxlen=MAX_KEPT)

    def note(self, where: str, why: str | BaseException) -> None:
        """Keep a failure.  An exception is kept with its traceback."""
        trace = ""
        if isinstance(why, BaseException):
            trace = "".join(traceback.format_exception(why))[-LONGEST_TRACE:]
            why = _sentence(why)
        times = 1
        if self._kept and (self._kept[-1].where, self._kept[-1].why) == (where, why):
            times += self._kept.pop().times
        self._kept.append(Failure(self._now(), where, why, trace, times))

    def newest(self) -> tuple[Failure, ...]:
        """All that are kept, newest first."""
        return tuple(reversed(self._kept))


def _sentence(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def wait_s(failures_in_a_row: int, first_s: float = FIRST_WAIT_S) -> float:
    """How long to wait before the next try, after this many failures; twice as long each time."""
    return min(LONGEST_WAIT_S, math.ldexp(first_s, min(failures_in_a_row, 30) - 1))


async def kept_running(name: str, task: Callable[[], Awaitable[None]], failures: Failures) -> None:
    """Run a task that is not to end until we are cancelled; start it again whenever it fails.

    One task's failure is noted, and ends nothing else.
    """
    in_a_row = 0
    while True:
        began = trio.current_time()
        try:
            await task()
            return
        except Exception as error:
            failures.note(name, error)
        if trio.current_time() - began > LONGEST_WAIT_S:
            in_a_row = 0
        in_a_row += 1
        await trio.sleep(wait_s(in_a_row))
