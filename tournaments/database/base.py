"""The interface of a location of tables, its transactions, and the exceptions of the database layer."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from enum import StrEnum
from typing import Any, ClassVar, NamedTuple

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as NoConnectionError


class StoreError(Exception):
    """A database that cannot be used, or could not store something; the message has the remedy."""

    def __init__(self, message: str, *, is_ours: bool = False, is_damaged: bool = False) -> None:
        super().__init__(message)
        self.is_ours = is_ours
        """True if this host failed (a full disk, a damaged file), not the user's request."""
        self.is_damaged = is_damaged
        """True if the stored data are damaged: to repeat the request does not help."""


class Explanation(NamedTuple):
    """The meaning of an error of the driver."""

    sentence: str
    is_ours: bool
    """As in StoreError."""
    is_damaged: bool = False
    """As in StoreError."""


def storable(text: str) -> str:
    """Return a text that every database can store.

    PostgreSQL stores no NUL, and no database stores lone surrogates.
    """
    return text.encode("utf-8", "replace").decode().replace("\0", "\N{SYMBOL FOR NULL}")


KIND = "kalarena_kind"
"""Execution option of a connection: the Kind of its transactions."""

BUSY_TIMEOUT_MS = 10_000
"""Milliseconds for which a writer waits for another one."""


class Kind(StrEnum):
    """The purpose of a transaction."""

    READ = "read"
    """Sees one moment and does not wait."""
    WRITE = "write"
    """The only writer of the location: the data that it has read stay the same until its end."""
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


class Connections:
    """Transactions at one location, for any thread.  Use as a context manager; raises StoreError."""

    def __init__(self, location: Location, *, read_only: bool = False) -> None:
        """``read_only`` connections change nothing.  The first transaction opens the database."""
        self.location = location
        self.read_only = read_only
        self._open = ExitStack()
        self._engine = self._open.enter_context(location.engine(read_only=read_only))
        self._engines = {kind: self._engine.execution_options(**location.options(kind)) for kind in Kind}

    def __enter__(self) -> "Connections":
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def close(self) -> None:
        """End all connections."""
        self._open.close()

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Provide a transaction that sees one moment and does not wait for a writer."""
        with self.explained(), self._engines[Kind.READ].connect() as connection:
            yield connection

    @contextmanager
    def writing(self, action: str = "", kind: Kind = Kind.WRITE) -> Iterator[Connection]:
        """Provide a transaction that keeps all or nothing; ``action`` begins the error message if it fails.

        A location has one such transaction at a time, so that the data that it has read do not change before
        its end.
        """
        with self.explained(action), self._engines[kind].begin() as connection:
            yield connection

    @contextmanager
    def session(self) -> Iterator[Connection]:
        """Provide a connection on which each statement is a transaction, for locks of PostgreSQL sessions."""
        with self.explained(), self._engines[Kind.READ].connect() as connection:
            yield connection.execution_options(isolation_level="AUTOCOMMIT")

    @contextmanager
    def explained(self, action: str = "") -> Iterator[None]:
        """Turn errors of the database, and errors in the data that it returned, into a StoreError."""
        try:
            yield
        except DBAPIError as error:
            sentence, is_ours, is_damaged = self.location.explain(error, writes=not self.read_only)
            message = f"{self.location}: {action}{sentence}"
            raise StoreError(message, is_ours=is_ours, is_damaged=is_damaged) from error
        except NoConnectionError as error:
            text = "too much is asked of the database at once: try again"
            raise StoreError(f"{self.location}: {action}{text}", is_ours=True) from error
        except OSError as error:  # of copying the file
            raise StoreError(f"{self.location} cannot be read: {error.strerror}", is_ours=True) from error
        except UnicodeEncodeError as error:
            text = "it holds half a character, which cannot be kept"
            raise StoreError(f"{self.location}: {action}{text}") from error
        except (ValueError, TypeError) as error:  # stored JSON or text that is damaged
            message = f"{self.location}: this {self.location.noun} is damaged ({error})"
            raise StoreError(message, is_ours=True, is_damaged=True) from error
