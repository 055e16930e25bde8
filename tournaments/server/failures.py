"""Log of the server's own failures, for the lecturer's dashboard."""

import math
import traceback
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime

import trio

MAX_KEPT = 100
LONGEST_TRACE = 8000
"""Maximum length of a traceback in characters; its end, with the error, is kept."""
FIRST_WAIT_S, LONGEST_WAIT_S = 1.0, 300.0
"""Seconds until a failed task is restarted: at first, and at most."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A failure of the server, or several identical ones in a row."""

    at: datetime
    """Moment of the last occurrence."""
    where: str
    """Part of the service that failed."""
    why: str
    """Description in one sentence."""
    trace: str
    """Traceback for the developers; empty for an expected failure."""
    times: int


class Failures:
    """Latest failures of the server."""

    def __init__(self, now: Callable[[], datetime], on_failure: Callable[[], None] = lambda: None) -> None:
        """``on_failure`` is called for each failure, identical ones too."""
        self._now = now
        self._on_failure = on_failure
        self._kept: deque[Failure] = deque(maxlen=MAX_KEPT)

    def note(self, where: str, why: str | BaseException) -> None:
        """Add a failure.  An exception is stored with its traceback."""
        self._on_failure()
        trace = ""
        if isinstance(why, BaseException):
            trace = "".join(traceback.format_exception(why))[-LONGEST_TRACE:]
            why = _sentence(why)
        times = 1
        if self._kept and (self._kept[-1].where, self._kept[-1].why) == (where, why):
            times += self._kept.pop().times
        self._kept.append(Failure(self._now(), where, why, trace, times))

    def newest(self) -> tuple[Failure, ...]:
        """Return all stored failures, newest first."""
        return tuple(reversed(self._kept))


def _sentence(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def wait_s(failures_in_a_row: int, first_s: float = FIRST_WAIT_S) -> float:
    """Return the seconds until the next try; they double with each failure in a row."""
    return min(LONGEST_WAIT_S, math.ldexp(first_s, min(failures_in_a_row, 30) - 1))


async def kept_running(name: str, task: Callable[[], Awaitable[None]], failures: Failures) -> None:
    """Run a task until cancelled; restart it whenever it fails.

    A failure of the task is logged, and ends no other task.
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
