"""Charts of the times of moves: one row for each bot, or a histogram of one bot's moves.  Pure."""

from collections.abc import Iterator, Mapping, Sequence
from math import floor, log10
from typing import NamedTuple

from tournaments.reporting.site.svg import (
    Scale,
    drawing,
    duration,
    element,
    label,
    line,
    log_scale_for,
    named,
    room_for,
    short,
)
from tournaments.reporting.site.times import BotTimes

WIDTH = 680
ROW = 24
RIGHT, TOP, BOTTOM = 28, 8, 44
DOT = 4.0
BINS_PER_DECADE = 5
"""Bars of the histogram for each power of ten: each is 1.6 times as long as the one before."""
HISTOGRAM_HEIGHT = 210


class Timed(NamedTuple):
    """One row."""

    name: str
    times: BotTimes
    href: str | None = None


def time_chart(rows: Sequence[Timed], limit_us: int | None = None) -> str:
    """Draw the median (full dot), 95 % (stroke) and longest (ring) time of each bot's moves.

    Bots without a move are left out.  ``limit_us`` is the limit of a move, drawn if it is not far beyond all
    of them.
    """
    rows = [row for row in rows if row.times.charged_us]
    if not rows:
        return ""
    left = room_for(row.name for row in rows)
    bottom = TOP + ROW * len(rows)
    across, shown = _across([us for row in rows for us in _marks(row.times)], limit_us, left, WIDTH - RIGHT)
    parts = [*_axis(across, TOP, bottom), *_limit(across, shown, TOP, bottom)]
    parts.append(
        label(
            "time charged for a move, logarithmic", (left + WIDTH - RIGHT) / 2, bottom + 32, "axis", "middle"
        )
    )
    for number, row in enumerate(rows):
        parts.append(named(said(row), "".join(_row(row, TOP + ROW * (number + 0.5), left, across)), row.href))
    return drawing(WIDTH, bottom + BOTTOM, "Time charged for a move, by bot", parts)


def said(row: Timed) -> str:
    """Return a row in words."""
    median, high, longest = (duration(us) for us in _marks(row.times))
    return f"{row.name}: median {median}, 95 % within {high}, longest {longest}"


def _marks(times: BotTimes) -> tuple[int, int, int]:
    return times.median_us or 0, times.high_us or 0, times.longest_us or 0


def _row(row: Timed, y: float, left: float, across: Scale) -> Iterator[str]:
    median, high, longest = (across(us) for us in _marks(row.times))
    yield label(short(row.name), left - 12, y, "name", "end")
    yield line(median, y, longest, y, "range")
    yield line(high, y - 6, high, y + 6, "bar")
    yield element("circle", cx=longest, cy=y, r=DOT, class_="ring")
    yield element("circle", cx=median, cy=y, r=DOT, class_="dot")


LIMIT_IN_VIEW = 100
"""A limit so many times the longest move is far from it: it would only squeeze the rest."""


def _across(
    values_us: Sequence[int], limit_us: int | None, start: float, end: float
) -> tuple[Scale, int | None]:
    """Return the axis, and the limit if it is worth showing."""
    longest = max(values_us)
    shown = limit_us if limit_us is not None and limit_us <= LIMIT_IN_VIEW * max(longest, 1) else None
    return log_scale_for([*(max(us, 1) for us in values_us), shown or 0], start, end), shown


def _axis(across: Scale, top: float, bottom: float) -> Iterator[str]:
    for tick in across.ticks():
        yield line(across(tick), top, across(tick), bottom, "grid")
        yield label(duration(tick), across(tick), bottom + 12, "tick", "middle")


def _limit(across: Scale, limit_us: int | None, top: float, bottom: float) -> Iterator[str]:
    if limit_us is not None:
        x = across(limit_us)
        yield named(f"limit of a move: {duration(limit_us)}", line(x, top, x, bottom, "limit"))


def bins(charged_us: Sequence[int]) -> Mapping[int, int]:
    """Number of a bin (of log10 of microseconds, times BINS_PER_DECADE) -> moves in it."""
    found: dict[int, int] = {}
    for us in charged_us:
        number = floor(log10(max(us, 1)) * BINS_PER_DECADE + 1e-9)
        found[number] = found.get(number, 0) + 1
    return found


def time_histogram(charged_us: Sequence[int], limit_us: int | None = None) -> str:
    """Draw a histogram of moves by their time.  Empty without moves."""
    if not charged_us:
        return ""
    left, right, top, bottom = 56, 28, 26, HISTOGRAM_HEIGHT - BOTTOM
    # The longest move's own bar ends beyond it.
    across, shown = _across([*charged_us, max(charged_us) + 1], limit_us, left, WIDTH - right)
    counts = bins(charged_us)
    most = max(counts.values())
    up = Scale(0, most, bottom, top)
    parts = [*_axis(across, top, bottom), line(left, bottom, WIDTH - right, bottom, "zero")]
    parts += [label(f"{count:.0f}", left - 8, up(count), "tick", "end") for count in (0, most)]
    for number, count in sorted(counts.items()):
        low, high = (10 ** (edge / BINS_PER_DECADE) for edge in (number, number + 1))
        x = across(low) + 0.5
        bar = element(
            "rect", x=x, y=up(count), width=across(high) - x - 0.5, height=bottom - up(count), class_="column"
        )
        parts.append(named(f"{duration(low)} to {duration(high)}: {count} moves", bar))
    parts += _limit(across, shown, top, bottom)
    parts.append(
        label(
            "time charged for a move, logarithmic", (left + WIDTH - right) / 2, bottom + 32, "axis", "middle"
        )
    )
    parts.append(label("moves", left - 8, 8, "axis", "end"))
    return drawing(WIDTH, HISTOGRAM_HEIGHT, "Moves by the time charged", parts)
