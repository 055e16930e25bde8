"""Exceptions raised by the database layer."""

from typing import NamedTuple


class StoreError(Exception):
    """A database that cannot be used, or could not store something; the message has the remedy."""

    def __init__(self, message: str, *, is_ours: bool = False) -> None:
        super().__init__(message)
        self.is_ours = is_ours
        """True if this host failed (a full disk, a damaged file), not the user's request."""


class Explanation(NamedTuple):
    """The meaning of an error of the driver."""

    sentence: str
    is_ours: bool
    """As in StoreError."""
