"""Errors of the referee itself, as opposed to faults of a bot."""

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class RefereeError(Exception):
    """The referee or its host failed: the game has no result, is not recorded and is played again."""


class GameStoppedError(RefereeError):
    """The game was cancelled by the tournament runner."""

    unfinished: object = None
    """The ``GameRecord`` of the game so far; its result has no meaning."""


@contextmanager
def unexpected_errors_as_referee_errors(*expected: type[Exception]) -> Iterator[None]:
    """Raise a RefereeError in place of any other Exception of this block, except ``expected`` ones.

    Everything that plays a whole game is such a block, so that a bug or a failure of the host costs one game
    and never a run.  The original exception is the cause.
    """
    try:
        yield
    except Exception as error:
        if isinstance(error, (RefereeError, *expected)):
            raise
        raise RefereeError(f"unexpected {described(error)}") from error


def described(error: BaseException) -> str:
    """Return an exception's type, message and place as one line: tracebacks stay in their process."""
    text = " ".join(f"{type(error).__name__}: {error}".split())
    frames = traceback.extract_tb(error.__traceback__)
    if not frames:
        return text
    return f"{text} (in {frames[-1].name}, line {frames[-1].lineno} of {Path(frames[-1].filename).name})"
