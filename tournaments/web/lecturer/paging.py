"""Long lists, newest first, in pages that are addressed by the number that they begin below."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from starlette.requests import Request

T = TypeVar("T")

PAGE = 50
"""Rows of a page."""
LARGEST = 2**31 - 1


@dataclass(frozen=True)
class Page(Generic[T]):
    """One page."""

    rows: Sequence[T]
    older: int | None
    """Where the next one begins; None if this is the last."""

    @classmethod
    def of(cls, found: Sequence[T], number: Callable[[T], int]) -> "Page[T]":
        """From PAGE rows and one more, if there is one."""
        rows = found[:PAGE]
        return cls(rows, number(rows[-1]) if len(found) > PAGE else None)


def number_asked(request: Request) -> int | None:
    """Below which number the page is to begin; None for the first page, or for what is no number."""
    text = request.query_params.get("before", "")
    return min(int(text), LARGEST) if text.isascii() and text.isdecimal() and len(text) < 20 else None
