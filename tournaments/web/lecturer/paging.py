"""Pagination of long lists, newest first; the address of a page has the number below which it begins."""

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
    """One page of a list."""

    rows: Sequence[T]
    older: int | None
    """Number below which the next page begins; None for the last page."""

    @classmethod
    def of(cls, found: Sequence[T], number: Callable[[T], int]) -> "Page[T]":
        """Return the page of the first PAGE rows; a row beyond them means that another page follows."""
        rows = found[:PAGE]
        return cls(rows, number(rows[-1]) if len(found) > PAGE else None)


def number_asked(request: Request) -> int | None:
    """Return the number below which the requested page begins; None for the first page, or if invalid."""
    text = request.query_params.get("before", "")
    return min(int(text), LARGEST) if text.isascii() and text.isdecimal() and len(text) < 20 else None
