"""Ratings with their intervals.  Pure."""

from collections.abc import Iterator, Sequence
from math import isfinite
from typing import NamedTuple

from tournaments.analysis.ratings.ratings import Interval
from tournaments.analysis.standing import Estimate
from tournaments.reporting.site.svg import (
    Scale,
    drawing,
    element,
    label,
    line,
    named,
    numeral,
    room_for,
    scale_for,
    short,
)

WIDTH = 680
ROW = 24
RIGHT = 150
"""For the numbers."""
TOP, BOTTOM = 8, 44
DOT, CAP = 4.5, 4


class Rated(NamedTuple):
    """One row."""

    name: str
    estimate: Estimate
    href: str | None = None


def rating_chart(rows: Sequence[Rated], zero: str = "") -> str:
    """Draw a row for each bot, in this order: its rating, and a bar for its 95 % interval, if it has one.

    ``zero`` names the zero of the ratings, for the axis.  The chart is empty without rows.
    """
    if not rows:
        return ""
    left = room_for(row.name for row in rows)
    bottom = TOP + ROW * len(rows)
    values = [value for row in rows for value in row.estimate if isfinite(value)]
    across = scale_for(values, left, WIDTH - RIGHT)
    parts = []
    for tick in across.ticks():
        parts.append(line(across(tick), TOP, across(tick), bottom, "zero" if tick == 0 else "grid"))
        parts.append(label(numeral(round(tick)), across(tick), bottom + 12, "tick", "middle"))
    parts.append(label(f"Elo{zero}", (left + WIDTH - RIGHT) / 2, bottom + 32, "axis", "middle"))
    for number, row in enumerate(rows):
        parts.append(named(said(row), "".join(_row(row, TOP + ROW * (number + 0.5), left, across)), row.href))
    has_intervals = any(row.estimate.has_interval for row in rows)
    title = "Ratings with 95 % intervals" if has_intervals else "Ratings"
    return drawing(WIDTH, bottom + BOTTOM, title, parts)


def interval(estimate: Estimate | Interval) -> str:
    """Return both ends of an interval; empty if there is none."""
    if not isfinite(estimate.low):
        return ""
    return f"{numeral(round(estimate.low))} to {numeral(round(estimate.high))}"


def said(row: Rated) -> str:
    """Return a row in words."""
    ends = interval(row.estimate)
    return f"{row.name}: {numeral(round(row.estimate.value))} Elo" + (
        f", 95 % interval {ends}" if ends else ""
    )


def _row(row: Rated, y: float, left: float, across: Scale) -> Iterator[str]:
    value, low, high = row.estimate
    yield label(short(row.name), left - 12, y, "name", "end")
    if row.estimate.has_interval:
        yield line(across(low), y, across(high), y, "bar")
        for end in (low, high):
            yield line(across(end), y - CAP, across(end), y + CAP, "bar")
    yield element("circle", cx=across(value), cy=y, r=DOT, class_="dot")
    yield label(numeral(round(value)), WIDTH - RIGHT + 48, y, "number", "end")
    yield label(interval(row.estimate), WIDTH, y, "number soft", "end")
