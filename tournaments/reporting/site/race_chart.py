"""A chart of each bot's distance to the leader, round by round.  Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tournaments.reporting.site.svg import drawing, element, label, line, named, numeral, scale_for, short

WIDTH, HEIGHT = 680, 300
LEFT, RIGHT, TOP, BOTTOM = 56, 215, 14, 44
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
    down = scale_for([0.0, *(value for values in behind.values() for value in values)], TOP, HEIGHT - BOTTOM)
    count = len(race.rounds)
    xs = [LEFT + (WIDTH - LEFT - RIGHT) * step / count for step in range(count + 1)]
    parts = []
    for tick in down.ticks(6):
        parts.append(line(LEFT, down(tick), WIDTH - RIGHT, down(tick), "zero" if tick == 0 else "grid"))
        parts.append(label(numeral(-tick), LEFT - 8, down(tick), "tick", "end"))
    every = -(-count // 12)  # no more labels than there is room for
    parts += [
        label(str(race.rounds[step - 1]), xs[step], HEIGHT - BOTTOM + 14, "tick", "middle")
        for step in range(every, count + 1, every)
    ]
    parts.append(label("after round", (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 10, "axis", "middle"))
    top = list(behind)[:HIGHLIGHTED]
    places = spread([down(behind[name][-1]) for name in top], TOP, HEIGHT - BOTTOM)
    for name in reversed(list(behind)):  # the best ones above the others
        values = behind[name]
        shape = " ".join(f"{x:.1f},{down(value):.1f}" for x, value in zip(xs, values, strict=True))
        look = f"c{top.index(name)}" if name in top else "rest"
        markup = element("polyline", points=shape, class_=f"line {look}")
        if name in top:
            y = places[top.index(name)]
            markup += element("circle", cx=xs[-1], cy=down(values[-1]), r=3.5, class_=f"end {look}")
            markup += line(xs[-1] + 5, down(values[-1]), xs[-1] + 14, y, f"leader {look}")
            markup += label(f"{short(name, LABEL)} {said(values[-1])}", xs[-1] + 18, y, f"name {look}")
        parts.append(named(f"{name}: {said(values[-1])} to the leader", markup, (hrefs or {}).get(name)))
    return drawing(WIDTH, HEIGHT, "Points behind the leader after each round", parts)


def said(behind: float) -> str:
    """Return the words for points behind the leader."""
    return numeral(-behind)


def spread(wanted: Sequence[float], low: float, high: float, gap: float = LABEL_GAP) -> list[float]:
    """Return positions as near to those wanted as possible, in their order, at least ``gap`` apart.

    They stay between ``low`` and ``high`` as long as there is room.
    """
    order = sorted(range(len(wanted)), key=lambda index: wanted[index])
    places = [0.0] * len(wanted)
    least = low
    for index in order:
        places[index] = least = max(wanted[index], least)
        least += gap
    most = high
    for index in reversed(order):
        places[index] = min(places[index], most)
        most = places[index] - gap
    return places
