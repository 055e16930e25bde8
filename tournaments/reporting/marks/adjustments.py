"""Penalties and overrides of marks: decisions about single students or bots, each with its reason.  Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Annotated, NamedTuple

from pydantic import AfterValidator, Field, field_validator, model_validator

from referee.games.spec import did_you_mean
from tournaments.files.validation_errors import suggestion
from tournaments.reporting.marks.marking import OVERRIDE, PENALTY, Adjustment, BotMark, Scheme, final_mark
from tournaments.reporting.marks.numbers import (
    HUNDREDTH,
    MOST_MARKS,
    Marks,
    MarksModel,
    decimal,
    exact,
    to_step,
)
from tournaments.reporting.marks.people import People, Student


def _not_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("must not be blank")
    return text


Text = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_not_blank)]
Percent = Annotated[float, Field(gt=0, le=100, allow_inf_nan=False)]
WITHOUT_SIGN = "write the amount that is taken off, without a sign"


class _Decision(MarksModel):
    """The keys of both tables."""

    student: Text | None = None
    """A student's name or id."""
    bot: Text | None = None
    """A bot, for all of its students."""
    reason: Text

    @model_validator(mode="after")
    def _has_one_subject(self) -> "_Decision":
        if (self.student is None) == (self.bot is None):
            raise ValueError("needs either student (a name or an id) or bot")
        return self


class Late(MarksModel):
    """``late``: a penalty for each day."""

    days: int = Field(ge=1, le=1000)
    per_day: Marks | None = None
    percent_per_day: Percent | None = None

    @model_validator(mode="after")
    def _has_one_rate(self) -> "Late":
        if (self.per_day is None) == (self.percent_per_day is None):
            raise ValueError("needs either per_day (marks) or percent_per_day")
        return self

    def __str__(self) -> str:
        rate = f"{self.percent_per_day:g} %" if self.per_day is None else f"{self.per_day:g} marks"
        return f"{self.days} day{'' if self.days == 1 else 's'} late, {rate} a day"


class Penalty(_Decision):
    """One ``[[penalty]]``: marks that are taken off."""

    marks: Marks | None = None
    percent: Percent | None = None
    """Of the mark that the rules give."""
    late: Late | None = None

    @field_validator("marks", "percent", mode="before")
    @classmethod
    def _has_no_sign(cls, value: object) -> object:
        if isinstance(value, int | float) and value < 0:
            raise ValueError(f"{WITHOUT_SIGN}: {-value:g}, not {value:g}")
        return value

    @model_validator(mode="after")
    def _has_one_amount(self) -> "Penalty":
        if sum(amount is not None for amount in (self.marks, self.percent, self.late)) != 1:
            raise ValueError("needs one of marks, percent and late")
        return self

    def applied_to(self, mark: Fraction) -> Adjustment:
        """Return the change of a mark that the rules give; a percentage of a negative mark is 0."""
        percent, marks, why = self.percent, self.marks, ""
        if self.late is not None:
            percent = _times(self.late.percent_per_day, self.late.days)
            marks = _times(self.late.per_day, self.late.days)
            why = f"{self.late}: "
        elif percent is not None:
            why = f"{percent:g} % of {decimal(mark)}: "
        if marks is not None:
            taken = exact(marks)
        else:
            taken = to_step(exact(percent or 0) * max(mark, Fraction()) / 100, HUNDREDTH)
        return Adjustment(PENALTY, -taken, f"{why}{self.reason}")


class Override(_Decision):
    """One ``[[override]]``: a mark in place of the one that the rules give."""

    mark: Annotated[float, Field(ge=-MOST_MARKS, le=MOST_MARKS, allow_inf_nan=False)]


def _times(rate: float | None, days: int) -> float | None:
    return None if rate is None else float(exact(rate) * days)


class Subject(NamedTuple):
    """The bot and the students of a row of the sheet."""

    bot: str
    students: tuple[Student, ...]


@dataclass(frozen=True)
class Adjustments:
    """The penalties and overrides of a rules file."""

    penalties: Sequence[Penalty] = ()
    overrides: Sequence[Override] = ()

    def __bool__(self) -> bool:
        return bool(self.penalties or self.overrides)

    def adjusted(self, mark: BotMark, students: Sequence[Student], scheme: Scheme) -> BotMark:
        """Return the mark of a row after the decisions about its students or its bot."""
        subject = Subject(mark.bot, tuple(students))
        override = next((one for one in self.overrides if _concerns(one, subject)), None)
        if override is not None:
            value = exact(override.mark)
            change = Adjustment(OVERRIDE, value - mark.mark, override.reason)
            why = f"override: {decimal(value)} instead of {decimal(mark.mark)}"
            return replace(mark, mark=value, why=why, by_rules=(mark.mark, mark.why), adjustments=(change,))
        changes = tuple(one.applied_to(mark.mark) for one in self.penalties if _concerns(one, subject))
        if not changes:
            return mark
        taken = sum((change.marks for change in changes), Fraction())
        value, why = final_mark(
            mark.mark + taken, scheme, f"{decimal(mark.mark)} by the rules, penalties {decimal(-taken)}"
        )
        return replace(mark, mark=value, why=why, by_rules=(mark.mark, mark.why), adjustments=changes)

    def problems(
        self, people: People | None, bots: Sequence[str], scheme: Scheme, *, by_group: bool
    ) -> Iterator[str]:
        """Yield decisions that do not fit a sheet of these people, or of these bots without ``people``."""
        rows = _rows(people, bots)
        overridden: dict[int, str] = {}  # index of a row -> its override
        for where, one in self._located():
            unfit = list(_unfit_subject(one, rows, people, by_group=by_group))
            yield from (f"{where}.{problem}" for problem in unfit)
            if isinstance(one, Override):
                yield from _out_of_range(where, exact(one.mark), scheme)
            if unfit:
                continue
            for number, row in enumerate(rows):
                if not _concerns(one, row):
                    continue
                whose = f"student {row.students[0]}" if row.students else f"bot {row.bot!r}"
                if number in overridden and isinstance(one, Override):
                    yield f"{where}: the mark of {whose} is overridden already by {overridden[number]}"
                elif number in overridden:
                    yield (
                        f"{where}: {overridden[number]} is the whole mark of {whose}: lower that mark "
                        "instead, and remove this penalty"
                    )
                elif isinstance(one, Override):
                    overridden[number] = where

    def _located(self) -> Iterator[tuple[str, Penalty | Override]]:
        """Yield the overrides first: penalties are compared with them."""
        for number, override in enumerate(self.overrides, 1):
            yield f"override[{number}]", override
        for number, penalty in enumerate(self.penalties, 1):
            yield f"penalty[{number}]", penalty


def _concerns(one: _Decision, subject: Subject) -> bool:
    if one.student is None:
        return one.bot == subject.bot
    return any(one.student in (student.name, student.id) for student in subject.students)


def _rows(people: People | None, bots: Sequence[str]) -> list[Subject]:
    """Return a row for each student, or for each bot."""
    if people is None:
        return [Subject(bot, ()) for bot in bots]
    groups: Mapping[str, Sequence[Student]] = people.groups
    rows = [Subject(bot, (student,)) for bot, students in groups.items() for student in students]
    return [*rows, *(Subject("", (student,)) for student in people.no_bot)]


def _unfit_subject(
    one: _Decision, rows: Sequence[Subject], people: People | None, *, by_group: bool
) -> Iterator[str]:
    if one.bot is not None:
        names = list(dict.fromkeys(row.bot for row in rows if row.bot))
        if one.bot not in names:
            yield f"bot: no bot {one.bot!r} is marked{suggestion(one.bot, names)}"
        return
    assert one.student is not None
    if people is None:
        yield "student: these rules name no students: add [students], or use bot"
    elif by_group:
        yield 'student: with rows = "group" students of a bot share a row: use bot, or rows = "student"'
    else:
        found = [row for row in rows if _concerns(one, row)]
        if not found:
            names = [student.name for row in rows for student in row.students]
            yield f"student: there is no student {one.student!r}{did_you_mean(one.student, names)}"
        elif len(found) > 1:
            ids = ", ".join(row.students[0].id or "none" for row in found)
            yield f"student: {one.student!r} is the name of {len(found)} students: use the id (one of {ids})"


def _out_of_range(where: str, mark: Fraction, scheme: Scheme) -> Iterator[str]:
    if mark < scheme.minimum:
        yield f"{where}.mark: {decimal(mark)} is less than min, {decimal(scheme.minimum)}"
    elif scheme.maximum is not None and mark > scheme.maximum:
        yield f"{where}.mark: {decimal(mark)} is more than max, {decimal(scheme.maximum)}"
    if (mark / HUNDREDTH).denominator != 1:
        yield f"{where}.mark: marks have two decimals at most, not {float(mark):g}"
