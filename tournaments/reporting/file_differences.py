"""First differences between a written file and the text that follows from the stored games (pure)."""

import json
from collections.abc import Iterator
from typing import Any

from referee.judge.replay_check import Complaint
from referee.version import VERSION

LONGEST_SHOWN = 200
"""Characters of a value in a complaint."""
SHOWN_BEFORE = 60
"""Characters of a line that are shown before its first difference."""


def json_differences(written: str, follows: str) -> Iterator[Complaint]:
    """Yield the fields of a game's JSON that differ.

    Fields that an older version did not write yet are no fault.
    """
    try:
        old = json.loads(written)
        if not isinstance(old, dict):
            raise ValueError("it is no object")
    except ValueError as error:
        yield Complaint("game.json", "", "as JSON", str(error))
        return
    new = json.loads(follows)
    for name, value in old.items():
        if name not in new:
            yield Complaint(name, "game.json", "there", "no such field")
        elif not _agrees(value, new[name]):
            yield Complaint(name, "game.json", *_first_difference(value, new[name]))
    if old.get("versions") == {**new["versions"], "kalarena": VERSION}:
        for name in new.keys() - old.keys():
            yield Complaint(name, "game.json", "nothing", _short(new[name]))


def _agrees(old: Any, new: Any) -> bool:
    """Return whether two JSON values are equal, and of the same type: 1 is neither 1.0 nor true."""
    return json.dumps(old) == json.dumps(new)


def _first_difference(old: Any, new: Any) -> tuple[str, str]:
    """Return the two values, or for lists of equal length the first pair that differs."""
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for one, other in zip(old, new, strict=True):
            if not _agrees(one, other):
                return _short(one), _short(other)
    if isinstance(old, list) and isinstance(new, list) and len(old) != len(new):
        return f"{len(old)} rows", f"{len(new)} rows"
    return _short(old), _short(new)


def text_differences(name: str, written: str, follows: str) -> Iterator[Complaint]:
    """Yield the first line of a text that differs."""
    if written == follows:
        return
    old, new = written.split("\n"), follows.split("\n")
    for number, (one, other) in enumerate(zip(old, new, strict=False), 1):
        if one != other:
            same = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), 0)
            begin = max(0, same - SHOWN_BEFORE)
            yield Complaint(name, f"line {number}", _short(one[begin:]), _short(other[begin:]))
            return
    yield Complaint(name, "", f"{len(old)} lines", f"{len(new)} lines")


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= LONGEST_SHOWN else text[:LONGEST_SHOWN] + "..."
