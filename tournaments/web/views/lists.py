"""Lists that are searched, sorted, filtered and paged by the query of their address.  Pure."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar
from urllib.parse import urlencode

from tournaments.web.http.request_body import number_in

T = TypeVar("T")

ROWS = 50
"""Rows of a page."""
LONGEST_SEARCH = 100
"""Most characters of a search that are used."""
DIGITS = re.compile("([0-9]+)")


def natural_key(text: str) -> tuple[tuple[int, int, str], ...]:
    """Return the sort key of a text in natural order: ``s2`` comes before ``s10``, case is ignored."""
    parts = [part for part in DIGITS.split(text.casefold()) if part]
    return tuple((0, int(part), "") if DIGITS.fullmatch(part) else (1, 0, part) for part in parts)


@dataclass(frozen=True)
class Column(Generic[T]):
    """A column by which a list is sorted."""

    label: str
    key: Callable[[T], Any]
    is_descending: bool = False
    """True if its first order is descending, as for moments: the newest first."""


@dataclass(frozen=True)
class ListQuery:
    """The query of a list's address."""

    search: str = ""
    sort: str = ""
    """Name of a column."""
    is_descending: bool = False
    page: int = 1
    filters: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def read(
        cls,
        query: Mapping[str, str],
        columns: Mapping[str, Column[Any]],
        filters: Mapping[str, Iterable[str]],
    ) -> "ListQuery":
        """Return the query of an address; values that are not offered are ignored.

        Args:
            query: The parameters of the address.
            columns: Columns by name; the list is sorted by the first one unless the query names another.
            filters: Names of filters, with the values that each offers.

        """
        sort = query.get("sort", "")
        sort = sort if sort in columns else next(iter(columns))
        order = query.get("order", "")
        chosen = {name: query.get(name, "") for name in filters}
        return cls(
            search=query.get("q", "").strip()[:LONGEST_SEARCH],
            sort=sort,
            is_descending=order == "desc" if order in ("asc", "desc") else columns[sort].is_descending,
            page=max(1, number_in(query.get("page"), 1)),
            filters={name: value for name, value in chosen.items() if value in list(filters[name])},
        )

    def address(self, **changes: object) -> str:
        """Return the query string of this list with some values changed."""
        values = {
            "q": self.search,
            **self.filters,
            "sort": self.sort,
            "order": "desc" if self.is_descending else "asc",
            "page": self.page,
            **changes,
        }
        return "?" + urlencode({name: value for name, value in values.items() if value not in ("", None)})


@dataclass(frozen=True)
class Listed(Generic[T]):
    """One page of a list."""

    rows: Sequence[T]
    found: int
    """Number of rows that match."""
    total: int
    page: int
    pages: int
    query: ListQuery
    columns: Mapping[str, Column[T]]

    def order_link(self, name: str) -> str:
        """Return the address of the list sorted by a column; the other way round if it already is."""
        column = self.columns[name]
        descending = not self.query.is_descending if name == self.query.sort else column.is_descending
        return self.query.address(sort=name, order="desc" if descending else "asc", page="")

    def aria_sort(self, name: str) -> str:
        """Return the value of a heading's ``aria-sort``."""
        if name != self.query.sort:
            return "none"
        return "descending" if self.query.is_descending else "ascending"


def listed(
    rows: Iterable[T],
    query: ListQuery,
    columns: Mapping[str, Column[T]],
    texts: Callable[[T], Iterable[str]],
    passes: Callable[[T], bool] = lambda _row: True,
) -> Listed[T]:
    """Return the page of a list that a query asks for; a page beyond the last one selects the last one.

    Args:
        rows: All rows, in the order of rows that are equal in the column of the query.
        query: The query of the address.
        columns: Columns by name.
        texts: Returns the texts of a row in which each word of the search is looked for, ignoring case.
        passes: Returns True if a row matches the query's filters.

    """
    everything = list(rows)
    wanted = query.search.casefold().split()

    def has_words(row: T) -> bool:
        inside = "\n".join(texts(row)).casefold()
        return all(word in inside for word in wanted)

    found = [row for row in everything if passes(row) and (not wanted or has_words(row))]
    found.sort(key=columns[query.sort].key, reverse=query.is_descending)
    pages = max(1, -(-len(found) // ROWS))
    page = min(query.page, pages)
    start = (page - 1) * ROWS
    return Listed(found[start : start + ROWS], len(found), len(everything), page, pages, query, columns)
