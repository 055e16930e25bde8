"""A cache of computed values, each computed once for all tasks that wait for it at the same time."""

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

import trio

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class SingleFlightCache(Generic[K, V]):
    """The most recently used values by key, for the tasks of one event loop."""

    def __init__(self, most: int) -> None:
        """``most`` is the maximum number of values; the least recently used value is dropped first."""
        self._most = most
        self._values: OrderedDict[K, V] = OrderedDict()
        self._locks: dict[K, trio.Lock] = {}
        """Locks of the computations in progress."""

    def peek(self, key: K) -> V | None:
        """Return the value of a key, fresh or not; None without one."""
        return self._values.get(key)

    async def get(
        self, key: K, compute: Callable[[], Awaitable[V]], is_fresh: Callable[[V], bool] = lambda _value: True
    ) -> V:
        """Return the value of a key, which is computed if there is none, or none that is fresh.

        Other tasks that need the same value wait for the computation.  An exception of ``compute`` is raised
        for one of them, and leaves the old value in the cache; the next one computes again.  A value that is
        not fresh even after its computation is returned, but not kept.
        """
        if not self._has_fresh(key, is_fresh):
            lock = self._locks.setdefault(key, trio.Lock())
            try:
                async with lock:
                    if not self._has_fresh(key, is_fresh):
                        value = await compute()
                        if not is_fresh(value):
                            self._values.pop(key, None)
                            return value
                        self._values[key] = value
            finally:
                if not lock.locked():
                    self._locks.pop(key, None)
        value = self._values[key]
        self._values.move_to_end(key)
        while len(self._values) > self._most:
            self._values.popitem(last=False)
        return value

    def _has_fresh(self, key: K, is_fresh: Callable[[V], bool]) -> bool:
        return key in self._values and is_fresh(self._values[key])
