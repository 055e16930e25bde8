"""The options of the sample bots: text -> value, the same for a spec text and a command line."""

import re

from sample_bots.search import MAX_DEPTH

PURE_VARIABLE = "KALARENA_PURE"
"""Environment variable: with anything but empty in it, searches run in plain Python although numba is
installed."""

LOWEST_LEVEL, HIGHEST_LEVEL = 1, 10
"""The levels of the ladder, for every game."""


class BadOptionError(ValueError):
    """An option that a sample bot does not take; the message is for people."""


def parse_seed(text: str) -> int:
    """The seed of the random bot: any whole number that is not negative."""
    if not re.fullmatch("[0-9]{1,18}", text):
        raise BadOptionError(f"random takes a seed, a whole number of at most 18 digits, not {text!r}")
    return int(text)


def parse_depth(text: str) -> int:
    """How many plies the minimax bot looks ahead."""
    if not re.fullmatch("[0-9]{1,2}", text) or not 1 <= int(text) <= MAX_DEPTH:
        raise BadOptionError(f"minimax takes a depth, a whole number from 1 to {MAX_DEPTH}, not {text!r}")
    return int(text)


def parse_level(text: str) -> tuple[int, int | None]:
    """A level of the ladder, and the seed of what it draws by lot, if one is given: ``5`` or ``5:17``."""
    match = re.fullmatch("([0-9]{1,2})(?::([0-9]{1,18}))?", text)
    if match is None or not LOWEST_LEVEL <= int(match[1]) <= HIGHEST_LEVEL:
        raise BadOptionError(
            f"ladder takes a level, a whole number from {LOWEST_LEVEL} to {HIGHEST_LEVEL}, and perhaps a "
            f"seed behind another colon, not {text!r}"
        )
    return int(match[1]), None if match[2] is None else int(match[2])


def parse_seconds(text: str) -> float:
    """The longest time for a move, in seconds."""
    if not re.fullmatch(r"[0-9]{1,5}(?:\.[0-9]{1,6})?", text) or not float(text) > 0:
        raise BadOptionError(
            f"strong takes the longest time for a move, in seconds, for example 0.5, not {text!r}"
        )
    return float(text)
