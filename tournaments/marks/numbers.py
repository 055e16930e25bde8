"""Exact numbers for marks: no mark depends on how a computer rounds.  Pure."""

from decimal import Decimal
from fractions import Fraction

HUNDREDTH = Fraction(1, 100)
"""What each rule gives is a multiple of this, so that a sheet with two decimals shows all of it, and the sum
of what it shows is the sum."""


def exact(value: float) -> Fraction:
    """The decimal number that a file says, or a table shows."""
    return Fraction(str(value))


def to_step(value: Fraction, step: Fraction) -> Fraction:
    """The nearest multiple of ``step``; of two that are equally near, the greater one (half up)."""
    return (value / step + Fraction(1, 2)).__floor__() * step


def decimal(value: Fraction, places: int = 3) -> str:
    """A number for people, without needless zeros; what it is rounded to has this many decimals."""
    shown = to_step(value, Fraction(1, 10**places))
    text = f"{Decimal(shown.numerator) / Decimal(shown.denominator):.{places}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def shown_rating(value: float) -> Fraction:
    """A rating in whole Elo, as the tables show it."""
    return Fraction(f"{value:.0f}")


def shown_ms(value: float) -> Fraction:
    """A time in milliseconds with one decimal, as the tables show it."""
    return Fraction(f"{value:.1f}")


def share_of(points: float, possible: float) -> tuple[Fraction, str]:
    """A share of points, and the same in words."""
    share = exact(points) / exact(possible)
    return share, f"{points:g} of {possible:g} points ({decimal(share)})"
