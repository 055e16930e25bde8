"""Chart of the ratings of a team's versions, one after the other, as SVG.  Pure."""

from collections.abc import Sequence
from math import isfinite
from typing import NamedTuple

from tournaments.analysis.standing import Estimate
from tournaments.reporting.site.charts import BOTTOM, CAP, DOT, LABEL, WIDTH, interval, spread
from tournaments.reporting.site.svg import (
    Scale,
    drawing,
    element,
    label,
    line,
    named,
    numeral,
    scale_for,
    short,
)

HEIGHT = 300
"""Height of the chart in pixels."""
LEFT, RIGHT, TOP = 56, 165, 26
"""Margins in pixels; the right one is for the names of levels."""
MOST_LABELS = 16
"""Versions with a label on the axis: no more have room."""


class VersionRating(NamedTuple):
    """One version of the chart."""

    number: int
    estimate: Estimate
    href: str | None = None


class Level(NamedTuple):
    """A bot whose rating is drawn as a horizontal line, for comparison."""

    name: str
    elo: float


def progress_chart(versions: Sequence[VersionRating], levels: Sequence[Level] = ()) -> str:
    """Draw the rating of each version with a bar for its 95 % interval, in the order of their numbers.

    The chart is empty without versions.
    """
    if not versions:
        return ""
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
    values = [value for one in versions for value in one.estimate if isfinite(value)]
    # The greatest values come first: y grows downwards.
    down = scale_for([-value for value in [*values, *(level.elo for level in levels)]], TOP, bottom)
    parts = []
    for tick in down.ticks(6):
        parts.append(line(LEFT, down(tick), right, down(tick), "zero" if tick == 0 else "grid"))
        parts.append(label(numeral(round(-tick)), LEFT - 8, down(tick), "tick", "end"))
    parts.append(label("Elo", LEFT - 8, 8, "axis", "end"))
    ends = spread([down(-level.elo) for level in levels], TOP, bottom)
    for level, y in zip(levels, ends, strict=True):
        at = down(-level.elo)
        markup = line(LEFT, at, right, at, "limit") + line(right + 3, at, right + 12, y, "leader rest")
        markup += label(f"{short(level.name, LABEL)} {numeral(round(level.elo))}", right + 16, y, "soft")
        parts.append(named(f"{level.name}: {numeral(round(level.elo))} Elo", markup))
    step = (right - LEFT) / len(versions)
    xs = [LEFT + step * (index + 0.5) for index in range(len(versions))]
    way = " ".join(f"{x:.1f},{down(-one.estimate.value):.1f}" for x, one in zip(xs, versions, strict=True))
    parts.append(element("polyline", points=way, class_="line c0"))
    every = -(-len(versions) // MOST_LABELS)
    for index, (x, one) in enumerate(zip(xs, versions, strict=True)):
        if (len(versions) - 1 - index) % every == 0:  # the newest has a label
            parts.append(label(f"v{one.number}", x, bottom + 14, "tick", "middle"))
        parts.append(named(_words(one), _marks(one.estimate, x, down), one.href))
    parts.append(label("version", (LEFT + right) / 2, HEIGHT - 10, "axis", "middle"))
    return drawing(WIDTH, HEIGHT, "Rating of each version, with 95 % intervals", parts)


def _words(one: VersionRating) -> str:
    ends = interval(one.estimate)
    elo = f"version {one.number}: {numeral(round(one.estimate.value))} Elo"
    return f"{elo}, 95 % interval {ends}" if ends else elo


def _marks(estimate: Estimate, x: float, down: Scale) -> str:
    markup = ""
    if estimate.has_interval:
        low, high = down(-estimate.low), down(-estimate.high)
        markup = line(x, low, x, high, "bar")
        markup += "".join(line(x - CAP, end, x + CAP, end, "bar") for end in (low, high))
    return markup + element("circle", cx=x, cy=down(-estimate.value), r=DOT, class_="dot")
