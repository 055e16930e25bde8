"""Numbers of marks: exact fractions, and the types of the rules file.  Pure.

No mark depends on floating-point rounding.
"""

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

HUNDREDTH = Fraction(1, 100)
"""Unit of the marks of a rule: a sheet with two decimals shows them, and their sum, exactly."""


def exact(value: float) -> Fraction:
    """Return the decimal number that a file contains or a table shows."""
    return Fraction(str(value))


def to_step(value: Fraction, step: Fraction) -> Fraction:
    """Return the nearest multiple of ``step``; of two that are equally near, the greater one (half up)."""
    return (value / step + Fraction(1, 2)).__floor__() * step


def decimal(value: Fraction, places: int = 3) -> str:
    """Return the text of a number, rounded to ``places`` decimals, without needless zeros."""
    shown = to_step(value, Fraction(1, 10**places))
    text = f"{Decimal(shown.numerator) / Decimal(shown.denominator):.{places}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def shown_rating(value: float) -> Fraction:
    """Return a rating in whole Elo, as the tables show it."""
    return Fraction(f"{value:.0f}")


def shown_ms(value: float) -> Fraction:
    """Return a time in milliseconds with one decimal, as the tables show it."""
    return Fraction(f"{value:.1f}")


def share_of(points: float, possible: float, limits: Sequence[Fraction]) -> tuple[Fraction, str]:
    """Return a share of points, and the share in words.

    The words show three decimals, or as many as needed to compare the share with each of ``limits``.
    """
    share = exact(points) / exact(possible)
    sides = [_side(share, limit) for limit in limits]
    places = 3
    while [_side(to_step(share, Fraction(1, 10**places)), limit) for limit in limits] != sides:
        places += 1
    return share, f"{points:g} of {possible:g} points ({decimal(share, places)})"


def _side(value: Fraction, limit: Fraction) -> int:
    """Return -1, 0 or 1 for a value below, at or above the limit."""
    return (value > limit) - (value < limit)


def limit_text(value: float) -> str:
    """Return a limit with all digits that ``exact`` uses."""
    return str(value).removesuffix(".0")


MOST_MARKS = 10_000
"""Documented bound on marks: more is a typing error."""


class MarksModel(BaseModel):
    """Base class of all tables of the rules file."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    @classmethod
    def keys(cls) -> list[str]:
        """Return the keys of the table."""
        return [field.alias or name for name, field in cls.model_fields.items()]


def _hundredths(marks: float) -> float:
    if (exact(marks) / HUNDREDTH).denominator != 1:
        raise ValueError(f"marks have two decimals at most, not {marks}")
    return marks


Marks = Annotated[float, Field(ge=0, le=MOST_MARKS, allow_inf_nan=False), AfterValidator(_hundredths)]
Number = Annotated[float, Field(ge=-MOST_MARKS, le=MOST_MARKS, allow_inf_nan=False)]
