"""Picture of a knockout's bracket, as SVG.  Pure."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from tournaments.reporting.site.svg import drawing, element, label, line, named, room_for, short
from tournaments.reporting.site.words import points
from tournaments.schedule.formats.bracket import Bracket, BracketRound, Match, MatchView, Outcome
from tournaments.schedule.formats.groups import Groups
from tournaments.schedule.formats.knockout import Knockout
from tournaments.schedule.pairing import History, Schedule

SLOT = 56
"""Height of a match of the first round in pixels, with the space around it."""
NAME = 11
"""Pixels from the middle of a match to the middle of each name."""
SCORE = 34
"""Room for the points behind a name in pixels."""
BETWEEN = 28
"""Pixels between two rounds."""
HEAD = 26
"""Height of the rounds' titles in pixels."""
TITLES = ("Final", "Semi-finals", "Quarter-finals")
"""Titles of the last rounds, the last one first."""
OPEN = "\N{EN DASH}"
"""Text for a bot that is not known yet."""


class BracketMatch(NamedTuple):
    """One match of the picture."""

    names: tuple[str | None, str | None]
    """None for a bot that is not known yet, or does not exist."""
    scores: tuple[str, str]
    """Points so far; empty without a game."""
    winner: int | None
    """0 or 1; None as long as the match is open, or if neither goes on."""
    is_bye: bool = False
    """True if a bot had no opponent."""


def bracket_of(schedule: Schedule, history: History) -> Bracket | None:
    """Return the bracket of a schedule; None if it has none, or none yet."""
    match schedule:
        case Knockout():
            return schedule.bracket
        case Groups():
            return schedule.bracket(history)
    return None


def bracket_chart(bracket: Bracket, history: History, bots: Sequence[str], href: Callable[[str], str]) -> str:
    """Draw all matches of a bracket, also those to come; empty for fewer than two bots.

    ``bots`` are the names by number; ``href`` returns the address of a bot's page.
    """
    rounds = bracket.rounds(history)
    if not rounds:
        return ""
    columns = list(_columns(rounds, bots))
    width = room_for([name for match in columns[0] for name in match.names if name is not None] or [OPEN])
    step = width + SCORE + BETWEEN
    parts: list[str] = []
    height = HEAD + SLOT * len(columns[0])
    for number, column in enumerate(columns):
        left = number * step
        parts.append(label(_title(len(columns) - number, number + 1), left, HEAD / 2, "axis"))
        space = SLOT * len(columns[0]) / len(column)
        for row, match in enumerate(column):
            y = HEAD + space * (row + 0.5)
            if match.is_bye and number == 0:
                continue  # the bot is in the next round
            parts += _match(match, left, y, width + SCORE, href)
            if number + 1 < len(columns):
                parts += _way_on(left + width + SCORE, y, y + (space / 2 if row % 2 == 0 else -space / 2))
    third = rounds[-1].third
    if third is not None:
        left, y = (len(columns) - 1) * step, height + SLOT / 2
        parts.append(label("Third place", left, height + 2, "axis"))
        match = _bracket_match(third, rounds[-1].third_outcome, rounds[-1].view, bots)
        parts += _match(match, left, y + NAME, width + SCORE, href)
        height += SLOT + NAME
    return drawing(len(columns) * step - BETWEEN, height, "Bracket of the knockout", parts)


def _columns(rounds: Sequence[BracketRound], bots: Sequence[str]) -> Iterator[list[BracketMatch]]:
    """Yield the matches of each round, from the first to the final; those to come have the known winners."""
    column: list[BracketMatch] = []
    for one in rounds:
        column = [
            _bracket_match(match, outcome, one.view, bots)
            for match, outcome in zip(one.matches, one.outcomes, strict=True)
        ]
        yield column
    while len(column) > 1:
        winners = [None if one.winner is None else one.names[one.winner] for one in column]
        column = [
            BracketMatch(names, ("", ""), None) for names in zip(winners[::2], winners[1::2], strict=True)
        ]
        yield column


def _bracket_match(
    match: Match, outcome: Outcome | None, view: MatchView, bots: Sequence[str]
) -> BracketMatch:
    pair = (match.better, match.worse)
    scored = match.points(view)
    one, other = (None if bot is None else bots[bot] for bot in pair)
    left, right = (points(scored[bot]) if bot in scored else "" for bot in pair)
    winner = None if outcome is None or outcome.winner is None else pair.index(outcome.winner)
    is_bye = outcome is not None and outcome.by == "walkover" and None in pair
    return BracketMatch((one, other), (left, right), winner, is_bye)


def _title(left: int, number: int) -> str:
    """Return the title of a round with ``left`` rounds from it to the final."""
    return TITLES[left - 1] if left <= len(TITLES) else f"Round {number}"


def _match(
    match: BracketMatch, left: float, y: float, width: float, href: Callable[[str], str]
) -> Iterator[str]:
    for index, (name, score) in enumerate(zip(match.names, match.scores, strict=True)):
        at = y + (NAME if index else -NAME)
        if name is None:
            yield label(OPEN, left, at, "soft")
            continue
        won = index == match.winner
        text = label(short(name), left, at, "name") + label(score, left + width - 6, at, "number", "end")
        outcome = "" if match.winner is None else ", goes on" if won else ", is out"
        score_words = f", {score} points" if score else ""
        yield named(
            f"{name}{score_words}{outcome}",
            element("g", text, font_weight="bold" if won else None),
            href(name),
        )
    yield line(left, y, left + width, y, "grid")


def _way_on(left: float, y: float, to: float) -> Iterator[str]:
    """Yield the line from a match to the next round's."""
    middle = left + BETWEEN / 2
    yield line(left, y, middle, y, "grid")
    yield line(middle, y, middle, to, "grid")
    yield line(middle, to, left + BETWEEN, to, "grid")
