"""Cache of replays: many users open the same game, and a replay takes some milliseconds to make."""

from collections import OrderedDict
from collections.abc import Callable, Hashable

import trio

MOST = 64
"""Most replays in the cache, of about 100 KiB each."""


class Replays:
    """Replays by keys of all that they depend on."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._kept: OrderedDict[Hashable, str] = OrderedDict()

    async def of(self, key: Hashable, make: Callable[[], str]) -> str:
        """Return the replay for a key; it is made in a thread if it is not in the cache."""
        made = self._kept.get(key)
        if made is None:
            made = self._kept[key] = await trio.to_thread.run_sync(make)
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)
        else:
            self._kept.move_to_end(key)
        return made
