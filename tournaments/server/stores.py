"""The stores of all competitions, each opened once."""

from contextlib import ExitStack
from threading import Lock

from tournaments.database.location import Database
from tournaments.results.store import Store


class Stores:
    """Cache of open stores, for any thread."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._opened: dict[str, Store] = {}
        self._lock = Lock()
        self._closing = ExitStack()

    def get(self, slug: str) -> Store:
        """Return the store of a competition, creating it if needed.  Blocks.  Raises StoreError."""
        with self._lock:
            if slug not in self._opened:
                store = Store(self._database.competition(slug))
                self._opened[slug] = self._closing.enter_context(store)
            return self._opened[slug]

    def close(self) -> None:
        """Close all connections.  Blocks."""
        with self._lock:
            self._opened.clear()
            self._closing.close()
