"""The options of the sample bots: text -> value, the same for a spec text and a command line."""

import re

from sample_bots.search import MAX_DEPTH


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
