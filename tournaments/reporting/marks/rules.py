"""Rules of a mark sheet: the keys of each kind, and the marks that it gives a bot.  Pure.

Everything is computed with exact fractions of the decimal numbers in the file.  A rule uses numbers as the
tables show them (ratings in whole Elo, times in tenths of a millisecond): a reader of the table can check
every mark.
"""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, get_args

from pydantic import BeforeValidator, Field, model_validator

from tournaments.analysis.standing import Standing
from tournaments.files.validation_errors import suggestion
from tournaments.reporting.marks.numbers import (
    HUNDREDTH,
    Marks,
    MarksModel,
    Number,
    decimal,
    exact,
    limit_text,
    share_of,
    shown_ms,
    shown_rating,
    to_step,
)

NO_GAMES = "no games"


# Bands and checks, the parts of rules.


class RankBand(MarksModel):
    """One of a rank rule's ``bands``; without a limit, for everybody else."""

    top: int | None = Field(None, ge=1)
    top_percent: float | None = Field(None, gt=0, le=100, allow_inf_nan=False)
    marks: Marks

    def holds(self, rank: int, marked: int) -> bool:
        """Return whether a rank among ``marked`` bots is in this band.

        Top P percent: fewer than P percent of the marked bots are ahead, so that a place that is cut in two
        belongs to the band.
        """
        if self.top_percent is not None:
            return (rank - 1) * 100 < exact(self.top_percent) * marked
        return self.top is None or rank <= self.top

    def __str__(self) -> str:
        if self.top_percent is not None:
            return f"top {self.top_percent:g} percent"
        return "everybody else" if self.top is None else f"top {self.top}"


class LevelBand(MarksModel):
    """One of the ``bands`` of a value; without ``at_least``, for everybody else."""

    at_least: Number | None = None
    marks: Marks

    def __str__(self) -> str:
        return "everybody else" if self.at_least is None else f"at least {limit_text(self.at_least)}"


def order_problems(bands: Sequence[RankBand] | Sequence[LevelBand]) -> list[str]:
    """Return the errors in the order of bands, a sentence each."""
    problems = []
    for number in range(1, len(bands)):
        band, before = bands[number], bands[number - 1]
        if str(before) == "everybody else":
            problems.append(f"bands[{number + 1}] is never reached: bands[{number}] is for everybody else")
        if band.marks > before.marks:
            problems.append(
                f"bands[{number + 1}] ({band}) gives {band.marks:g}, more than the {before.marks:g} of the "
                "better band before it: write the best band first"
            )
    return problems


class Check(MarksModel):
    """One of a checks rule's ``checks``: all conditions that it names must hold."""

    name: str = Field(min_length=1, max_length=200)
    marks: Marks
    faults_at_most: int | None = Field(None, ge=0)
    games_at_least: int | None = Field(None, ge=1)
    unique_games_at_least: int | None = Field(None, ge=1)
    points_at_least: float | None = Field(None, ge=0, allow_inf_nan=False)
    mean_move_ms_at_most: float | None = Field(None, gt=0, allow_inf_nan=False)
    beats: str | None = None
    at_least: float | None = Field(None, gt=0, le=1, allow_inf_nan=False)

    @model_validator(mode="after")
    def _has_condition(self) -> "Check":
        conditions = set(self.keys()) - {"name", "marks", "at_least"}
        if all(getattr(self, name) is None for name in conditions):
            names = [name for name in self.keys() if name in conditions]
            raise ValueError(f"checks nothing: give it one or more of {', '.join(names)}")
        if self.at_least is not None and self.beats is None:
            raise ValueError(
                "at_least is a share of points against the bot that beats names, which is missing"
            )
        return self

    def results(self, line: Standing) -> list[tuple[bool, str]]:
        """Return for each condition whether it holds, and the bot's value in words."""
        found = []
        if self.faults_at_most is not None:
            found.append((line.forfeits <= self.faults_at_most, f"{line.forfeits} lost by a fault"))
        if self.games_at_least is not None:
            found.append((line.games >= self.games_at_least, f"{line.games} games"))
        if self.unique_games_at_least is not None:
            found.append((line.unique >= self.unique_games_at_least, f"{line.unique} unique games"))
        if self.points_at_least is not None:
            found.append((line.points >= self.points_at_least, f"{line.points:g} points"))
        if self.mean_move_ms_at_most is not None:
            mean = None if line.mean_move_ms is None else shown_ms(line.mean_move_ms)
            fast = mean is not None and mean <= exact(self.mean_move_ms_at_most)
            found.append((fast, "no move" if mean is None else f"{decimal(mean)} ms a move"))
        if self.beats is not None:
            found.append(self._beats(line, self.beats))
        return found

    def _beats(self, line: Standing, name: str) -> tuple[bool, str]:
        versus = line.versus.get(name)
        if versus is None or not versus.games:
            return False, f"{NO_GAMES} against {name}"
        limit = Fraction(1, 2) if self.at_least is None else exact(self.at_least)
        share, what = share_of(versus.points, versus.games, [limit])
        enough = share > limit if self.at_least is None else share >= limit
        return enough, f"{what} against {name}"


# Rules.


class RuleMark(NamedTuple):
    """The marks that a rule gave, and the reason."""

    marks: Fraction
    why: str


@dataclass(frozen=True, slots=True)
class BotFacts:
    """Data of a bot that rules use."""

    line: Standing
    rank: int
    """Among the marked bots, from 1; ties share the better rank."""
    marked: int
    """Number of bots that are marked."""


class _Rule(MarksModel):
    name: str = Field(min_length=1, max_length=200)
    """Prefix of the titles of its columns."""

    @property
    def titles(self) -> tuple[str, str]:
        """Titles of its columns: the marks that it gave, and the reason."""
        return f"{self.name} (marks)", f"{self.name} (why)"

    @property
    def title_before(self) -> str:
        """Title of the column with the marks that it gave in an earlier sheet."""
        return f"{self.name} (before)"

    @abstractmethod
    def mark_for(self, facts: BotFacts) -> RuleMark:
        """Return the marks for a bot that has played."""

    @property
    def opponents_named(self) -> Sequence[tuple[str, str]]:
        """Bots that it compares with: (where in the rule, name)."""
        return ()

    def unmet(self, line: Standing) -> Sequence[str]:
        """Return its opponents, in words, for which a bot gets 0 because no game against them counts."""
        return ()


def _has_met(line: Standing, name: str) -> bool:
    versus = line.versus.get(name)
    return versus is not None and versus.games > 0


class RankRule(_Rule):
    """By rank among the marked bots."""

    kind: Literal["rank"] = "rank"
    bands: list[RankBand] = Field(min_length=1)

    @model_validator(mode="after")
    def _ordered(self) -> "RankRule":
        problems = [
            f"bands[{number}] says both top and top_percent: make two bands of it"
            for number, band in enumerate(self.bands, 1)
            if band.top is not None and band.top_percent is not None
        ]
        problems += order_problems(self.bands)
        for name in ("top", "top_percent"):
            least = None
            for number, band in enumerate(self.bands, 1):
                value = getattr(band, name)
                if value is None:
                    continue
                if least is not None and value <= least:
                    problems.append(
                        f"bands[{number}] is never reached: {name} = {value:g} lies within {name} = {least:g}"
                    )
                least = value
        everyone = [number for number, band in enumerate(self.bands, 1) if band.top_percent == 100]
        if everyone and everyone[0] < len(self.bands):
            problems.append(f"bands[{everyone[0] + 1}] is never reached: top_percent = 100 is everybody")
        if problems:
            raise ValueError("; ".join(problems))
        return self

    def mark_for(self, facts: BotFacts) -> RuleMark:
        """Return the marks of the first band that holds the rank."""
        where = f"rank {facts.rank} of {facts.marked} marked"
        for band in self.bands:
            if band.holds(facts.rank, facts.marked):
                return RuleMark(exact(band.marks), f"{where}: {band}")
        return RuleMark(Fraction(), f"{where}: in no band")

    def unused(self, marked: int) -> list[str]:
        """Return the bands that no rank of ``marked`` is in first; the class may be smaller than expected."""
        firsts = {
            next((band for band in self.bands if band.holds(rank, marked)), None)
            for rank in range(1, marked + 1)
        }
        return [str(band) for band in self.bands if band not in firsts]


class _Scaled(_Rule):
    """By a value: ``bands``, or a straight line from 0 marks at ``from`` to ``marks`` at ``to``."""

    bands: list[LevelBand] | None = Field(None, min_length=1)
    low: Number | None = Field(None, alias="from")
    high: Number | None = Field(None, alias="to")
    marks: Marks | None = None
    NEEDS_ENDS: ClassVar[bool] = False
    """True if a line has no natural ends; shares have the ends 0 and 1."""

    @model_validator(mode="after")
    def _consistent(self) -> "_Scaled":
        line = [key for key in ("from", "to", "marks") if _field(key) in self.model_fields_set]
        if self.bands is not None and line:
            raise ValueError(f"takes either bands or a straight line ({', '.join(line)}), not both")
        if self.bands is None and self.marks is None:
            raise ValueError("needs bands, or marks for a straight line")
        if self.bands is None:
            if self.NEEDS_ENDS and None in (self.low, self.high):
                raise ValueError("a straight line of ratings needs both from and to")
            low, high = self._ends()
            if low >= high:
                raise ValueError(f"from must be less than to, not {low:g} and {high:g}")
        else:
            problems = order_problems(self.bands)
            for number in range(1, len(self.bands)):
                above, here = self.bands[number - 1].at_least, self.bands[number].at_least
                if above is not None and here is not None and here >= above:
                    problems.append(
                        f"bands[{number + 1}] is never reached: at_least = {here:g} lies within "
                        f"at_least = {above:g}; write the best band first"
                    )
            if problems:
                raise ValueError("; ".join(problems))
        return self

    @property
    def limits(self) -> list[Fraction]:
        """Values at which the marks change, or a straight line ends."""
        if self.bands is None:
            return [exact(end) for end in self._ends()]
        return [exact(band.at_least) for band in self.bands if band.at_least is not None]

    def _ends(self) -> tuple[float, float]:
        return (0.0 if self.low is None else self.low, 1.0 if self.high is None else self.high)

    def _level(self, value: Fraction, what: str) -> RuleMark:
        """Return the marks of a value; ``what`` is the value in words."""
        if self.bands is not None:
            for band in self.bands:
                if band.at_least is None or value >= exact(band.at_least):
                    return RuleMark(exact(band.marks), f"{what}: {band}")
            return RuleMark(Fraction(), f"{what}: in no band")
        low, high = map(exact, self._ends())
        assert self.marks is not None  # without bands
        share = min(Fraction(1), max(Fraction(), (value - low) / (high - low)))
        given = to_step(share * exact(self.marks), HUNDREDTH)
        span = " to ".join(map(limit_text, self._ends()))
        return RuleMark(given, f"{what}: {decimal(given)} of {self.marks:g} on the line from {span}")


def _field(key: str) -> str:
    return {"from": "low", "to": "high"}.get(key, key)


class _ShareRule(_Scaled):
    @model_validator(mode="after")
    def _shares(self) -> "_ShareRule":
        ends = [("from", self.low), ("to", self.high)]
        ends += [
            (f"bands[{number}].at_least", band.at_least) for number, band in enumerate(self.bands or (), 1)
        ]
        wrong = [f"{key} = {end:g}" for key, end in ends if end is not None and not 0 <= end <= 1]
        if wrong:
            raise ValueError(f"a share of points is from 0 to 1, not {', '.join(wrong)}")
        return self


class ScoreRule(_ShareRule):
    """By the share of points against reference players."""

    kind: Literal["score"] = "score"
    opponents: list[str] = Field(min_length=1)

    @property
    def opponents_named(self) -> Sequence[tuple[str, str]]:
        """Its opponents."""
        return [("opponents", name) for name in self.opponents]

    def unmet(self, line: Standing) -> Sequence[str]:
        """Return all opponents in one text, or nothing if the bot has met one of them."""
        names = dict.fromkeys(self.opponents)
        return () if any(_has_met(line, name) for name in names) else [" or ".join(names)]

    def mark_for(self, facts: BotFacts) -> RuleMark:
        """Return the marks by all games against the opponents together."""
        met = [facts.line.versus[name] for name in dict.fromkeys(self.opponents) if name in facts.line.versus]
        games = sum(versus.games for versus in met)
        against = f"against {', '.join(self.opponents)}"
        if not games:
            return RuleMark(Fraction(), f"{NO_GAMES} {against}")
        share, what = share_of(sum(versus.points for versus in met), games, self.limits)
        return self._level(share, f"{what} {against}")


class PointsRule(_ShareRule):
    """By the share of all points that the bot could have made."""

    kind: Literal["points"] = "points"

    def mark_for(self, facts: BotFacts) -> RuleMark:
        """Return the marks by points; points without a game (byes) count as made and as possible."""
        line = facts.line
        share, what = share_of(line.points, line.games + line.bye_points, self.limits)
        return self._level(share, what)


class RatingRule(_Scaled):
    """By rating, or by the lower end of its interval."""

    kind: Literal["rating"] = "rating"
    use: Literal["rating", "low"] = "rating"
    NEEDS_ENDS: ClassVar[bool] = True

    def mark_for(self, facts: BotFacts) -> RuleMark:
        """Return the marks by the rating in whole Elo, as the tables show it."""
        rating = facts.line.rating
        if rating is None:
            return RuleMark(Fraction(), "no rating")
        value = shown_rating(rating.value if self.use == "rating" else rating.low)
        name = "rating" if self.use == "rating" else "lower end of the rating's interval"
        return self._level(value, f"{name} {decimal(value)}")


class ChecksRule(_Rule):
    """By passing checks, each for itself."""

    kind: Literal["checks"] = "checks"
    checks: list[Check] = Field(min_length=1)

    @property
    def opponents_named(self) -> Sequence[tuple[str, str]]:
        """The bots that are to be beaten."""
        return [
            (f"checks[{number}].beats", check.beats)
            for number, check in enumerate(self.checks, 1)
            if check.beats is not None
        ]

    def unmet(self, line: Standing) -> Sequence[str]:
        """Return the bots that are to be beaten, and that the bot has not met."""
        names = dict.fromkeys(check.beats for check in self.checks if check.beats is not None)
        return [name for name in names if not _has_met(line, name)]

    def mark_for(self, facts: BotFacts) -> RuleMark:
        """Return the marks of all checks that were passed."""
        total = Fraction()
        words = []
        for check in self.checks:
            found = check.results(facts.line)
            passed = all(holds for holds, _ in found)
            given = exact(check.marks) if passed else Fraction()
            total += given
            values = ", ".join(what for _, what in found)
            words.append(f"{check.name}: {'passed' if passed else 'failed'}, {values} ({decimal(given)})")
        return RuleMark(total, "; ".join(words))


AnyRule = RankRule | ScoreRule | RatingRule | ChecksRule | PointsRule
RULE_KINDS: dict[str, type[MarksModel]] = {
    kind.model_fields["kind"].default: kind for kind in get_args(AnyRule)
}
"""Name of a kind -> its table."""


def _with_kind(value: Any) -> Any:
    if not isinstance(value, dict):
        raise ValueError(f"must be a table of keys, not {value!r}")
    kind = value.get("kind")
    if kind is None:
        raise ValueError(f"needs a kind; there are {', '.join(RULE_KINDS)}")
    if kind not in list(RULE_KINDS):  # it may be a list, which a dict could not look up
        raise ValueError(f"there is no kind {kind!r} of rule{suggestion(str(kind), RULE_KINDS)}")
    return value


MarkRule = Annotated[AnyRule, Field(discriminator="kind"), BeforeValidator(_with_kind)]
"""One ``[[rule]]``."""
