"""The interface of a location of tables, which each kind of database implements, and its exceptions."""

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from enum import StrEnum
from typing import Any, ClassVar, NamedTuple

from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError


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


KIND = "kalarena_kind"
"""Execution option of a connection: the Kind of its transactions."""

BUSY_TIMEOUT_MS = 10_000
"""Milliseconds for which a writer waits for another one before it gives up."""


class Kind(StrEnum):
    """The purpose of a transaction."""

    READ = "read"
    """Sees one moment and does not wait."""
    WRITE = "write"
    """The only one that writes here: the data that it has read stay the same until its end."""
    MIGRATE = "migrate"
    """As WRITE, and changes tables."""


class Location(ABC):
    """A location of one schema's tables.  ``str`` returns its name for messages, without any password."""

    noun: ClassVar[str]
    """Noun for the location in messages: "file" or "schema"."""

    @abstractmethod
    def engine(self, *, read_only: bool) -> AbstractContextManager[Engine]:
        """Provide an engine whose connections exist until the end of the block.

        Their transactions begin as the option KIND requires.  Raises StoreError if there is no driver.
        """

    @abstractmethod
    def options(self, kind: Kind) -> dict[str, Any]:
        """Return the execution options of connections for one kind of transaction."""

    @abstractmethod
    def explain(self, error: DBAPIError, *, writes: bool) -> Explanation:
        """Return the meaning of an error of the driver; ``writes`` unless opened read-only."""
