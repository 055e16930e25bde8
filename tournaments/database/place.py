"""Where tables live, and what is particular to the database that they live in."""

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from enum import StrEnum
from typing import Any, ClassVar

from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError

from tournaments.database.errors import Explanation

KIND = "kalarena_kind"
"""Execution option of a connection: the Kind of its transactions."""

BUSY_TIMEOUT_MS = 10_000
"""How long a writer waits for another one before it gives up."""


class Kind(StrEnum):
    """What a transaction is for."""

    READ = "read"
    """Sees one moment, waits for nobody."""
    WRITE = "write"
    """The only one that writes here: what it has read stays so until its end."""
    MIGRATE = "migrate"
    """As WRITE, and changes tables."""


class Place(ABC):
    """Where one schema's tables live.  ``str`` names it for people, without any password."""

    noun: ClassVar[str]
    """What it is to people: a file, a schema."""

    @abstractmethod
    def engine(self, *, read_only: bool) -> AbstractContextManager[Engine]:
        """Make connections here until the end.

        Their transactions begin as the option KIND asks.  Raises StoreError if there is no driver.
        """

    @abstractmethod
    def options(self, kind: Kind) -> dict[str, Any]:
        """Execution options of connections for one kind of transaction."""

    @abstractmethod
    def explain(self, error: DBAPIError, *, writes: bool) -> Explanation:
        """What an error of the driver means for people; ``writes`` unless opened read-only."""
