"""Transactions in one database of either kind, and its errors as sentences."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import TracebackType

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as NoConnectionError

from tournaments.database.base import Kind, Location, StoreError


class Connections:
    """Makes transactions, from any thread.  Use as a context manager; raises StoreError."""

    def __init__(self, place: Location, *, read_only: bool = False) -> None:
        """``read_only`` connections change nothing.  The first transaction opens the database."""
        self.place = place
        self.read_only = read_only
        self._open = ExitStack()
        self._engine = self._open.enter_context(place.engine(read_only=read_only))
        self._engines = {kind: self._engine.execution_options(**place.options(kind)) for kind in Kind}

    def __enter__(self) -> "Connections":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
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
    def writing(self, what: str = "", kind: Kind = Kind.WRITE) -> Iterator[Connection]:
        """Provide a transaction that keeps all or nothing; ``what`` begins the error message if it fails.

        A database has one at a time, so that nothing that the transaction has read changes before its end.
        """
        with self.explained(what), self._engines[kind].begin() as connection:
            yield connection

    @contextmanager
    def explained(self, what: str = "") -> Iterator[None]:
        """Turn errors of the database, and errors in the data that it returned, into a StoreError."""
        try:
            yield
        except DBAPIError as error:
            sentence, is_ours = self.place.explain(error, writes=not self.read_only)
            raise StoreError(f"{self.place}: {what}{sentence}", is_ours=is_ours) from error
        except NoConnectionError as error:
            text = "too much is asked of the database at once: try again"
            raise StoreError(f"{self.place}: {what}{text}", is_ours=True) from error
        except OSError as error:  # of copying it
            raise StoreError(f"{self.place} cannot be read: {error.strerror}", is_ours=True) from error
        except UnicodeEncodeError as error:
            text = "it holds half a character, which cannot be kept"
            raise StoreError(f"{self.place}: {what}{text}") from error
        except (ValueError, TypeError) as error:  # JSON or text of ours that is none any more
            raise StoreError(
                f"{self.place}: this {self.place.noun} is damaged ({error})", is_ours=True
            ) from error
