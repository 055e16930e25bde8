"""Exact numbers for marks: no mark depends on how a computer rounds.  Pure."""

from decimal import Decimal
from fractions import Fraction

HUNDREDTH = Fraction(1, 100)
"""Unit of the marks that a rule gives, so that a sheet with two decimals shows them exactly, and the sum of
the shown marks is the sum."""


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


def share_of(points: float, possible: float) -> tuple[Fraction, str]:
    """Return a share of points, and the share in words."""
    share = exact(points) / exact(possible)
    return share, f"{points:g} of {possible:g} points ({decimal(share)})"
