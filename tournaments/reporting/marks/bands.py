"""Bands of a mark sheet's rules: from the best one down, each with its marks.  Pure."""

from collections.abc import Sequence
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from tournaments.reporting.marks.numbers import HUNDREDTH, exact

MOST_MARKS = 10_000
"""Documented bound on marks: more is a slip of the keyboard."""


class MarksModel(BaseModel):
    """Base class of all tables of the file."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    @classmethod
    def keys(cls) -> list[str]:
        """Return the keys that the file may use."""
        return [field.alias or name for name, field in cls.model_fields.items()]


def _hundredths(marks: float) -> float:
    if (exact(marks) / HUNDREDTH).denominator != 1:
        raise ValueError(f"marks have two decimals at most, not {marks}")
    return marks


Marks = Annotated[float, Field(ge=0, le=MOST_MARKS, allow_inf_nan=False), AfterValidator(_hundredths)]
Number = Annotated[float, Field(ge=-MOST_MARKS, le=MOST_MARKS, allow_inf_nan=False)]


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
        return "everybody else" if self.at_least is None else f"at least {self.at_least:g}"


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
