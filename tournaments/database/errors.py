"""What a database's trouble is to those who use it."""

from typing import NamedTuple


class StoreError(Exception):
    """A database cannot be used, or could not take something; the message says what to do."""

    def __init__(self, message: str, *, is_ours: bool = False) -> None:
        super().__init__(message)
        self.is_ours = is_ours
        """Whether this host failed (a full disk, a damaged file), not what the user asked for."""


class Explanation(NamedTuple):
    """What an error of the driver means."""

    sentence: str
    is_ours: bool
    """As in StoreError."""
