"""Marks from a table and rules.  Pure."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from fractions import Fraction

from tournaments.marks.checks import NO_GAMES
from tournaments.marks.numbers import HUNDREDTH, decimal, to_step
from tournaments.marks.rules import AnyRule, Facts, Given
from tournaments.standing import Standing

HALF_UP, HALF_EVEN, UP, DOWN = "half-up", "half-even", "up", "down"
ROUNDINGS = (HALF_UP, HALF_EVEN, UP, DOWN)
"""How a sum becomes a multiple of the step: to the nearest one, where of two that are equally near it is the
greater or the even one; to the next one above; to the next one below."""
DEFAULT_STEP = HUNDREDTH
"""Finer than any scale of marks that we know of, and what the sheet shows."""


@dataclass(frozen=True)
class Scheme:
    """How marks are made."""

    rules: Sequence[AnyRule]
    minimum: Fraction = Fraction()
    maximum: Fraction | None = None
    """None: as much as the rules give."""
    step: Fraction = DEFAULT_STEP
    rounding: str = HALF_UP
    """One of ROUNDINGS."""

    def __str__(self) -> str:
        most = "" if self.maximum is None else f", at most {decimal(self.maximum)}"
        return (
            f"the sum of all rules, rounded {self.rounding} to a multiple of {decimal(self.step)}, "
            f"at least {decimal(self.minimum)}{most}"
        )


@dataclass(frozen=True)
class BotMark:
    """One bot's mark, and how it came about."""

    bot: str
    line: Standing | None
    """Its line of the table; None for a bot that is not in the tournament."""
    rank: int | None
    """Among the marked bots, from 1; ties share the better rank.  None for a bot that is not among them."""
    marked: int
    """How many bots are marked."""
    given: tuple[Given, ...]
    """What each rule gave, in the order of the rules."""
    total: Fraction
    """The sum of that."""
    mark: Fraction
    """The sum rounded, then held between the least and the greatest mark."""
    why: str
    """How the mark follows from the sum."""

    def explanation(self, scheme: Scheme) -> list[str]:
        """The mark in lines for people."""
        lines = [
            f"{rule.name}: {decimal(given.marks)} ({given.why})"
            for rule, given in zip(scheme.rules, self.given, strict=True)
        ]
        return [*lines, f"mark: {decimal(self.mark)} ({self.why})"]


def marks_of(
    table: Sequence[Standing],
    bots: Collection[str],
    scheme: Scheme,
    missing: Sequence[str] = (),
    left: Collection[str] = (),
) -> dict[str, BotMark]:
    """Bot -> its mark, for the bots of the table that are to be marked, best rank first.

    Ranks are counted among these alone: a bot's rank is one more than the number of marked bots that the
    table has above it.  ``left`` are bots of the table that withdrew, ``missing`` those that were to be there
    and are not: every rule gives them 0, and they have no rank.
    """
    marked = [line for line in table if line.name in bots]
    found = {}
    for line in marked:
        rank = 1 + sum(other.rank < line.rank for other in marked)
        facts = Facts(line, rank, len(marked))
        given = tuple(
            rule.give(facts) if line.games else Given(Fraction(), NO_GAMES) for rule in scheme.rules
        )
        found[line.name] = _marked(line.name, line, rank, len(marked), given, scheme)
    absent: list[tuple[str, Standing | None, str]] = [
        (line.name, line, "withdrawn") for line in table if line.name in left
    ]
    absent += [(name, None, "not in the tournament") for name in missing]
    for name, row, why in absent:
        nothing = (Given(Fraction(), why),) * len(scheme.rules)
        found[name] = _marked(name, row, None, len(marked), nothing, scheme)
    return found


def _marked(
    bot: str, line: Standing | None, rank: int | None, marked: int, given: tuple[Given, ...], scheme: Scheme
) -> BotMark:
    total = sum((part.marks for part in given), Fraction())
    mark, why = final_mark(total, scheme)
    return BotMark(bot, line, rank, marked, given, total, mark, why)


def final_mark(total: Fraction, scheme: Scheme) -> tuple[Fraction, str]:
    """The mark that a sum leads to, and how: rounded first, then held between the least and the greatest."""
    mark = rounded(total, scheme.step, scheme.rounding)
    why = f"sum {decimal(total)}"
    if mark != total:
        why += f", rounded {scheme.rounding} to a multiple of {decimal(scheme.step)}: {decimal(mark)}"
    if scheme.maximum is not None and mark > scheme.maximum:
        mark = scheme.maximum
        why += f", at most {decimal(mark)}"
    elif mark < scheme.minimum:
        mark = scheme.minimum
        why += f", at least {decimal(mark)}"
    return mark, why


def rounded(value: Fraction, step: Fraction, rounding: str) -> Fraction:
    """A multiple of ``step``; ``rounding`` is one of ROUNDINGS, else ValueError."""
    steps = value / step
    match rounding:
        case "half-up":
            return to_step(value, step)
        case "half-even":
            return round(steps) * step  # as Python rounds fractions
        case "up":
            return steps.__ceil__() * step
        case "down":
            return steps.__floor__() * step
    raise ValueError(f"no rounding {rounding!r}; there are {', '.join(ROUNDINGS)}")
