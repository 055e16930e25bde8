"""Parsers of the sample bots' options, for spec texts and command lines."""

import re

from sample_bots.search import MAX_DEPTH

PURE_VARIABLE = "KALARENA_PURE"
"""Environment variable: if it is not empty, searches run in plain Python although numba is installed."""

LOWEST_LEVEL, HIGHEST_LEVEL = 1, 10
"""Levels of every game's ladder."""


class BadOptionError(ValueError):
    """An option is not valid for a sample bot; the message is for people."""


def parse_seed(text: str) -> int:
    """Return the seed of the random bot, which is not negative."""
    if not re.fullmatch("[0-9]{1,18}", text):
        raise BadOptionError(f"random takes a seed, a whole number of at most 18 digits, not {text!r}")
    return int(text)


def parse_depth(text: str) -> int:
    """Return the depth of the minimax bot in plies."""
    if not re.fullmatch("[0-9]{1,2}", text) or not 1 <= int(text) <= MAX_DEPTH:
        raise BadOptionError(f"minimax takes a depth, a whole number from 1 to {MAX_DEPTH}, not {text!r}")
    return int(text)


def parse_level(text: str) -> tuple[int, int | None]:
    """Return a level of the ladder, and the seed of its random choices if there is one: ``5`` or ``5:17``."""
    match = re.fullmatch("([0-9]{1,2})(?::([0-9]{1,18}))?", text)
    if match is None or not LOWEST_LEVEL <= int(match[1]) <= HIGHEST_LEVEL:
        raise BadOptionError(
            f"ladder takes a level, a whole number from {LOWEST_LEVEL} to {HIGHEST_LEVEL}, and perhaps a "
            f"seed behind another colon, not {text!r}"
        )
    return int(match[1]), None if match[2] is None else int(match[2])


def parse_seconds(text: str) -> float:
    """Return the maximum time for a move in seconds."""
    if not re.fullmatch(r"[0-9]{1,5}(?:\.[0-9]{1,6})?", text) or not float(text) > 0:
        raise BadOptionError(
            f"strong takes the longest time for a move, in seconds, for example 0.5, not {text!r}"
        )
    return float(text)
