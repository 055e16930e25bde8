"""Charts of ratings, of the race for the lead, and of the times of moves, as SVG.  Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import floor, isfinite, log10
from typing import NamedTuple

from tournaments.analysis.standing import Estimate
from tournaments.reporting.site.svg import (
    Scale,
    drawing,
    duration,
    element,
    label,
    line,
    log_scale_for,
    named,
    numeral,
    room_for,
    scale_for,
    short,
)
from tournaments.reporting.site.times import BotTimes

WIDTH = 680
"""Width of a chart in pixels."""
ROW = 24
"""Height of a bot's row in pixels, in a chart with a row for each bot."""
TOP, BOTTOM = 8, 44
"""Margins above and below the rows in pixels."""


# Ratings.

RATING_RIGHT = 150
"""Room for the numbers in pixels."""
DOT, CAP = 4.5, 4
"""Radius of a rating's dot, and half of an interval's end stroke, in pixels."""


class RatingRow(NamedTuple):
    """One bot's row of the chart of ratings."""

    name: str
    estimate: Estimate
    href: str | None = None


def rating_chart(rows: Sequence[RatingRow], zero: str = "") -> str:
    """Draw a row for each bot, in this order: its rating, and a bar for its 95 % interval, if it has one.

    ``zero`` names the zero of the ratings, for the axis.  The chart is empty without rows.
    """
    if not rows:
        return ""
    left = room_for(row.name for row in rows)
    bottom = TOP + ROW * len(rows)
    values = [value for row in rows for value in row.estimate if isfinite(value)]
    across = scale_for(values, left, WIDTH - RATING_RIGHT)
    parts = []
    for tick in across.ticks():
        parts.append(line(across(tick), TOP, across(tick), bottom, "zero" if tick == 0 else "grid"))
        parts.append(label(numeral(round(tick)), across(tick), bottom + 12, "tick", "middle"))
    parts.append(label(f"Elo{zero}", (left + WIDTH - RATING_RIGHT) / 2, bottom + 32, "axis", "middle"))
    for number, row in enumerate(rows):
        parts.append(
            named(
                _rating_words(row),
                "".join(_rating_marks(row, TOP + ROW * (number + 0.5), left, across)),
                row.href,
            )
        )
    has_intervals = any(row.estimate.has_interval for row in rows)
    title = "Ratings with 95 % intervals" if has_intervals else "Ratings"
    return drawing(WIDTH, bottom + BOTTOM, title, parts)


def interval(estimate: Estimate) -> str:
    """Return both ends of an interval; empty if there is none."""
    if not isfinite(estimate.low):
        return ""
    return f"{numeral(round(estimate.low))} to {numeral(round(estimate.high))}"


def _rating_words(row: RatingRow) -> str:
    """Return a row's rating in words."""
    ends = interval(row.estimate)
    return f"{row.name}: {numeral(round(row.estimate.value))} Elo" + (
        f", 95 % interval {ends}" if ends else ""
    )


def _rating_marks(row: RatingRow, y: float, left: float, across: Scale) -> Iterator[str]:
    value, low, high = row.estimate
    yield label(short(row.name), left - 12, y, "name", "end")
    if row.estimate.has_interval:
        yield line(across(low), y, across(high), y, "bar")
        for end in (low, high):
            yield line(across(end), y - CAP, across(end), y + CAP, "bar")
    yield element("circle", cx=across(value), cy=y, r=DOT, class_="dot")
    yield label(numeral(round(value)), WIDTH - RATING_RIGHT + 48, y, "number", "end")
    yield label(interval(row.estimate), WIDTH, y, "number soft", "end")


# The race.

RACE_HEIGHT = 300
RACE_LEFT, RACE_RIGHT, RACE_TOP = 56, 215, 14
"""Margins in pixels; the right one is for names."""
LABEL = 18
"""Characters of a name in a label."""
HIGHLIGHTED = 5
"""Number of lines with a colour and a label: not everybody can distinguish more colours."""
LABEL_GAP = 16.0
"""Pixels from label to label at least."""


@dataclass(frozen=True)
class Race:
    """Points after each round."""

    rounds: Sequence[int]
    """The rounds that were played; increasing."""
    points: Mapping[str, Sequence[float]]
    """Bot -> its points after each of these rounds; in the order of the table."""

    def behind(self) -> dict[str, list[float]]:
        """Return for each bot the points that it was behind the leader, from before the first round on."""
        best = [max(values) for values in zip(*self.points.values(), strict=True)]
        return {
            name: [0.0, *(lead - value for value, lead in zip(values, best, strict=True))]
            for name, values in self.points.items()
        }


def race_chart(race: Race, hrefs: Mapping[str, str] | None = None) -> str:
    """Draw a line for each bot, the leader's on top; the first of the table are highlighted.

    The chart is empty for fewer than two rounds, which the table shows as well.
    """
    if len(race.rounds) < 2 or not race.points:
        return ""
    behind = race.behind()
    down = scale_for(
        [0.0, *(value for values in behind.values() for value in values)], RACE_TOP, RACE_HEIGHT - BOTTOM
    )
    count = len(race.rounds)
    xs = [RACE_LEFT + (WIDTH - RACE_LEFT - RACE_RIGHT) * step / count for step in range(count + 1)]
    parts = []
    for tick in down.ticks(6):
        parts.append(
            line(RACE_LEFT, down(tick), WIDTH - RACE_RIGHT, down(tick), "zero" if tick == 0 else "grid")
        )
        parts.append(label(numeral(-tick), RACE_LEFT - 8, down(tick), "tick", "end"))
    every = -(-count // 12)  # no more labels than there is room for
    parts += [
        label(str(race.rounds[step - 1]), xs[step], RACE_HEIGHT - BOTTOM + 14, "tick", "middle")
        for step in range(every, count + 1, every)
    ]
    parts.append(
        label("after round", (RACE_LEFT + WIDTH - RACE_RIGHT) / 2, RACE_HEIGHT - 10, "axis", "middle")
    )
    top = list(behind)[:HIGHLIGHTED]
    labels = spread([down(behind[name][-1]) for name in top], RACE_TOP, RACE_HEIGHT - BOTTOM)
    for name in reversed(list(behind)):  # the best ones above the others
        values = behind[name]
        shape = " ".join(f"{x:.1f},{down(value):.1f}" for x, value in zip(xs, values, strict=True))
        color = f"c{top.index(name)}" if name in top else "rest"
        markup = element("polyline", points=shape, class_=f"line {color}")
        if name in top:
            y = labels[top.index(name)]
            markup += element("circle", cx=xs[-1], cy=down(values[-1]), r=3.5, class_=f"end {color}")
            markup += line(xs[-1] + 5, down(values[-1]), xs[-1] + 14, y, f"leader {color}")
            markup += label(f"{short(name, LABEL)} {numeral(-values[-1])}", xs[-1] + 18, y, f"name {color}")
        parts.append(named(f"{name}: {numeral(-values[-1])} to the leader", markup, (hrefs or {}).get(name)))
    return drawing(WIDTH, RACE_HEIGHT, "Points behind the leader after each round", parts)


def spread(wanted: Sequence[float], low: float, high: float, gap: float = LABEL_GAP) -> list[float]:
    """Return positions as near to those wanted as possible, in their order, at least ``gap`` apart.

    They stay between ``low`` and ``high`` as long as there is room.
    """
    order = sorted(range(len(wanted)), key=lambda index: wanted[index])
    positions = [0.0] * len(wanted)
    least = low
    for index in order:
        positions[index] = least = max(wanted[index], least)
        least += gap
    most = high
    for index in reversed(order):
        positions[index] = min(positions[index], most)
        most = positions[index] - gap
    return positions


# Times.

TIME_RIGHT = 28
"""Right margin in pixels."""
TIME_DOT = 4.0
"""Radius of a time's dot in pixels."""
BINS_PER_DECADE = 5
"""Bars of the histogram for each power of ten: each is 1.6 times as long as the one before."""
HISTOGRAM_HEIGHT = 210


class TimeRow(NamedTuple):
    """One bot's row of the chart of times."""

    name: str
    times: BotTimes
    href: str | None = None


def time_chart(rows: Sequence[TimeRow], limit_us: int | None = None) -> str:
    """Draw the median (full dot), 95 % (stroke) and longest (ring) time of each bot's moves.

    Bots without a move are left out.  ``limit_us`` is the limit of a move, drawn if it is not far beyond all
    of them.
    """
    rows = [row for row in rows if row.times.charged_us]
    if not rows:
        return ""
    left = room_for(row.name for row in rows)
    bottom = TOP + ROW * len(rows)
    across, shown = _across(
        [us for row in rows for us in _quantiles(row.times)], limit_us, left, WIDTH - TIME_RIGHT
    )
    parts = [*_axis(across, TOP, bottom), *_limit(across, shown, TOP, bottom)]
    parts.append(_time_title(left, WIDTH - TIME_RIGHT, bottom))
    for number, row in enumerate(rows):
        parts.append(
            named(
                _time_words(row),
                "".join(_time_marks(row, TOP + ROW * (number + 0.5), left, across)),
                row.href,
            )
        )
    return drawing(WIDTH, bottom + BOTTOM, "Time charged for a move, by bot", parts)


def _time_words(row: TimeRow) -> str:
    """Return a row's times in words."""
    median, high, longest = (duration(us) for us in _quantiles(row.times))
    return f"{row.name}: median {median}, 95 % within {high}, longest {longest}"


def _quantiles(times: BotTimes) -> tuple[int, int, int]:
    return times.median_us or 0, times.high_us or 0, times.longest_us or 0


def _time_marks(row: TimeRow, y: float, left: float, across: Scale) -> Iterator[str]:
    median, high, longest = (across(us) for us in _quantiles(row.times))
    yield label(short(row.name), left - 12, y, "name", "end")
    yield line(median, y, longest, y, "range")
    yield line(high, y - 6, high, y + 6, "bar")
    yield element("circle", cx=longest, cy=y, r=TIME_DOT, class_="ring")
    yield element("circle", cx=median, cy=y, r=TIME_DOT, class_="dot")


LIMIT_IN_VIEW = 100
"""A greater multiple of the longest move would only squeeze the rest."""


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


def _time_title(left: float, right: float, bottom: float) -> str:
    return label("time charged for a move, logarithmic", (left + right) / 2, bottom + 32, "axis", "middle")


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
    parts.append(_time_title(left, WIDTH - right, bottom))
    parts.append(label("moves", left - 8, 8, "axis", "end"))
    return drawing(WIDTH, HISTOGRAM_HEIGHT, "Moves by the time charged", parts)
