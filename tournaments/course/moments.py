"""Conversion of moments to the database's format: texts in UTC, whose order is that of time (pure)."""

from datetime import UTC, datetime

FORMAT = "%Y-%m-%dT%H:%M:%S.%fZ"
LENGTH = len("2026-01-31T12:00:00.000000Z")


def to_text(moment: datetime) -> str:
    """Return an aware moment of any zone as a text.  Raises ValueError for a naive one."""
    if moment.tzinfo is None:
        raise ValueError(f"{moment} does not say its time zone")
    text = moment.astimezone(UTC).strftime(FORMAT)
    return text.rjust(LENGTH, "0")  # years before 1000 have no leading zeros


def from_text(text: str) -> datetime:
    """Return the moment of such a text, in UTC.  Raises ValueError."""
    if len(text) != LENGTH or text[10] + text[-1] != "TZ":
        raise ValueError(f"{text!r} is no moment as it is kept here")
    return datetime.fromisoformat(text)  # a twentieth of strptime's time; a page reads hundreds
