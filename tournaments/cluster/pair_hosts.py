"""On which host the games of a pair are played: the one where the first of them to get a place got it, unless
that could not play it.

It is known where that is only when a worker says that it has begun the game, or has ended it already.  So the
other games of the pair wait here until then, and may only go to workers of that host afterwards.  They are
not merely sent to where it is expected to be: work stealing may move a game until it begins.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field


@dataclass(eq=False)
class _Chooser:
    """A game that chooses the host of its pair by going there."""

    settled: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when it has begun, or ended before."""
    ended: asyncio.Event = field(default_factory=asyncio.Event)


class PairHosts:
    """The hosts of pairs, for as long as an engine is open: the games of a pair may be rounds apart.

    In the thread of one asyncio loop.
    """

    def __init__(self, is_there: Callable[[str], bool]) -> None:
        """``is_there`` is whether a host has workers: one that has none any more is no longer anybody's."""
        self._is_there = is_there
        self._hosts: dict[str, str] = {}
        self._choosers: dict[str, _Chooser] = {}

    @asynccontextmanager
    async def host(self, pair: str) -> AsyncIterator[str | None]:
        """The host for a game of a pair, meanwhile; None if it may be played anywhere, and so chooses it.

        A pair "" is none: such a game may always be played anywhere.  Waits while another game chooses.
        """
        while (chooser := self._choosers.get(pair)) is not None and not chooser.settled.is_set():
            await chooser.settled.wait()
        found = self._hosts.get(pair)
        if not pair or (found is not None and self._is_there(found)):
            yield found
            return
        mine = self._choosers[pair] = _Chooser()
        try:
            yield None
        finally:
            mine.settled.set()
            mine.ended.set()
            if self._choosers.get(pair) is mine:
                del self._choosers[pair]

    def begins(self, pair: str, host: str) -> None:
        """A game of a pair has a place."""
        chooser = self._choosers.get(pair)
        if chooser is not None and not chooser.settled.is_set():
            self._hosts[pair] = host
            chooser.settled.set()

    def fails(self, pair: str, host: str) -> None:
        """A host could not play a game of a pair: whoever comes next chooses anew."""
        if self._hosts.get(pair) == host:
            del self._hosts[pair]

    async def chooser_ends(self, pair: str) -> None:
        """Wait until the game that chose the host is no longer played."""
        chooser = self._choosers.get(pair)
        if chooser is not None:
            await chooser.ended.wait()
