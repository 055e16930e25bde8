"""Replays that were made lately: many look at the same game, and each takes some milliseconds."""

from collections import OrderedDict
from collections.abc import Callable, Hashable

import trio

MOST = 64
"""Of about 100 KiB each."""


class Replays:
    """Pages' insides by what they depend on."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._kept: OrderedDict[Hashable, str] = OrderedDict()

    async def of(self, key: Hashable, make: Callable[[], str]) -> str:
        """What was made for a key; made in a thread if it was not, or too long ago."""
        made = self._kept.get(key)
        if made is None:
            made = self._kept[key] = await trio.to_thread.run_sync(make)
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)
        else:
            self._kept.move_to_end(key)
        return made
