"""The parser of spec texts, ``NAME[(NUMBER,NUMBER)][+OPTION[=VALUE]...]``; games interpret the parts."""

import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass

_SPEC = re.compile(
    r"(?P<name>[A-Za-z][A-Za-z0-9_-]*)"
    r"(?:\((?P<board>[0-9]+(?:,[0-9]+)*)\))?"
    r"(?P<options>(?:\+[^+]*)*)",
    re.ASCII,
)


class SpecError(ValueError):
    """A text that names no game; the message lists what exists."""


@dataclass(frozen=True)
class Spec:
    """The parts of a spec text."""

    text: str
    """The text as it was given, for messages."""
    name: str
    board: tuple[int, ...] | None
    """The numbers in parentheses; None if there are none."""
    options: dict[str, str | None]
    """Option -> value, or None for an option without one."""


def parse_spec(text: str) -> Spec:
    """Split a spec text into its parts.  Spaces are ignored.  Raises SpecError if the form is wrong."""
    match = _SPEC.fullmatch("".join(text.split()))
    if match is None:
        raise SpecError(
            f"{text!r} is no game: expected NAME, NAME(PITS,SEEDS) or either with +OPTION or "
            "+OPTION=VALUE behind it, for example manchester(6,4)+end=on-turn; "
            "`kalarena games` lists all names and options"
        )
    options: dict[str, str | None] = {}
    for part in match["options"].split("+")[1:]:
        key, separator, value = part.partition("=")
        if key in options:
            raise SpecError(f"{text!r}: option {key!r} is given twice")
        options[key] = value if separator else None
    board = tuple(map(_number, match["board"].split(","))) if match["board"] else None
    return Spec(text, match["name"], board, options)


def _number(digits: str) -> int:
    """Return the number; one beyond any board stays beyond it, however many digits it has."""
    return int(digits.lstrip("0")[:9] or "0")


def did_you_mean(wrong: str, known: Iterable[str]) -> str:
    """Return ``; did you mean 'x'?`` if a known word is close; otherwise an empty text."""
    close = difflib.get_close_matches(wrong.lower(), list(known), n=1, cutoff=0.5)
    return f"; did you mean {close[0]!r}?" if close else ""
