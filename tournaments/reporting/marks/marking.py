"""Marks of bots, computed from a table and rules.  Pure."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from tournaments.analysis.standing import Standing
from tournaments.reporting.marks.numbers import HUNDREDTH, decimal, to_step
from tournaments.reporting.marks.rules import NO_GAMES, AnyRule, BotFacts, RuleMark

HALF_UP, HALF_EVEN, UP, DOWN = "half-up", "half-even", "up", "down"
ROUNDINGS = (HALF_UP, HALF_EVEN, UP, DOWN)
"""Ways of rounding a sum to a multiple of the step: to the nearest one, and of two that are equally near to
the greater or the even one; to the next one above; to the next one below."""
DEFAULT_STEP = HUNDREDTH
"""Resolution of the sheet, finer than any known scale of marks."""


@dataclass(frozen=True)
class Scheme:
    """The scheme by which marks are made."""

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


PENALTY, OVERRIDE = "penalty", "override"


class Adjustment(NamedTuple):
    """A change of a mark that a person decided."""

    kind: str
    """PENALTY or OVERRIDE."""
    marks: Fraction
    """The difference to the mark that the rules give."""
    why: str


@dataclass(frozen=True)
class BotMark:
    """One bot's mark and its derivation."""

    bot: str
    line: Standing | None
    """Its line of the table; None for a bot that is not in the tournament."""
    rank: int | None
    """Among the marked bots, from 1; ties share the better rank.  None for a bot that is not among them."""
    marked: int
    """Number of bots that are marked."""
    given: tuple[RuleMark, ...]
    """Marks by each rule, in the order of the rules."""
    total: Fraction
    """The sum of the marks by all rules."""
    mark: Fraction
    """The sum rounded, then held between the least and the greatest mark, and adjusted."""
    why: str
    """Derivation of the mark from the sum, or from the mark by the rules if it was adjusted."""
    by_rules: tuple[Fraction, str] | None = None
    """The mark and its reason before adjustments; None if there are none."""
    adjustments: tuple[Adjustment, ...] = ()

    def explanation(self, scheme: Scheme) -> list[str]:
        """Return the derivation of the mark in lines of text."""
        lines = [
            f"{rule.name}: {decimal(given.marks)} ({given.why})"
            for rule, given in zip(scheme.rules, self.given, strict=True)
        ]
        if self.by_rules is not None:
            mark, why = self.by_rules
            lines.append(f"by the rules: {decimal(mark)} ({why})")
            lines += [
                f"{one.kind}: {decimal(self.mark if one.kind == OVERRIDE else one.marks)} ({one.why})"
                for one in self.adjustments
            ]
        return [*lines, f"mark: {decimal(self.mark)} ({self.why})"]


def marks_of(
    table: Sequence[Standing],
    bots: Collection[str],
    scheme: Scheme,
    missing: Sequence[str] = (),
    left: Collection[str] = (),
) -> dict[str, BotMark]:
    """Return the mark of each bot of the table that is to be marked, best rank first.

    Ranks are counted among these alone: a bot's rank is one more than the number of marked bots that the
    table has above it.  ``left`` are bots of the table that withdrew, ``missing`` those that were to be there
    and are not: every rule gives them 0, and they have no rank.
    """
    marked = [line for line in table if line.name in bots]
    found = {}
    for line in marked:
        rank = 1 + sum(other.rank < line.rank for other in marked)
        facts = BotFacts(line, rank, len(marked))
        given = tuple(
            rule.mark_for(facts) if line.games else RuleMark(Fraction(), NO_GAMES) for rule in scheme.rules
        )
        found[line.name] = _marked(line.name, line, rank, len(marked), given, scheme)
    absent: list[tuple[str, Standing | None, str]] = [
        (line.name, line, "withdrawn") for line in table if line.name in left
    ]
    absent += [(name, None, "not in the tournament") for name in missing]
    for name, row, why in absent:
        nothing = (RuleMark(Fraction(), why),) * len(scheme.rules)
        found[name] = _marked(name, row, None, len(marked), nothing, scheme)
    return found


def _marked(
    bot: str,
    line: Standing | None,
    rank: int | None,
    marked: int,
    given: tuple[RuleMark, ...],
    scheme: Scheme,
) -> BotMark:
    total = sum((part.marks for part in given), Fraction())
    mark, why = final_mark(total, scheme)
    return BotMark(bot, line, rank, marked, given, total, mark, why)


def final_mark(total: Fraction, scheme: Scheme, what: str = "") -> tuple[Fraction, str]:
    """Return the mark of a sum and its explanation: rounded, then held between the least and the greatest.

    Args:
        total: The sum.
        scheme: The scheme by which marks are made.
        what: The sum in words; by default the sum of the rules.

    """
    mark = rounded(total, scheme.step, scheme.rounding)
    why = what or f"sum {decimal(total)}"
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
    """Round to a multiple of ``step``.  Raises ValueError if ``rounding`` is not one of ROUNDINGS."""
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
