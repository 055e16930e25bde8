"""Assignment of pairs to hosts: all games of a pair are played on the host of the first of them.

A host that could not play a game of the pair is replaced.  The host is known only when a worker reports that
the game has begun, or has ended.  So the other games of the pair wait here until then, and may only go to
workers of that host afterwards.  They are not merely sent to the expected host: work stealing may move a game
until it begins.
"""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field


@dataclass(eq=False)
class _Chooser:
    """A game that chooses the host of its pair by beginning there."""

    settled: asyncio.Event = field(default_factory=asyncio.Event)
    """Event that is set when the game has begun, or ended before."""
    ended: asyncio.Event = field(default_factory=asyncio.Event)


class PairHosts:
    """Hosts of pairs, for as long as an engine is open: the games of a pair may be rounds apart.

    For the thread of one asyncio loop.
    """

    def __init__(self, is_there: Callable[[str], bool]) -> None:
        """``is_there`` returns whether a host has workers: a pair is released from a host without any."""
        self._is_there = is_there
        self._hosts: dict[str, str] = {}
        self._choosers: dict[str, _Chooser] = {}

    @asynccontextmanager
    async def host(self, pair: str) -> AsyncIterator[str | None]:
        """Yield the host for a game of a pair; None if the game may be played anywhere, and so chooses it.

        A game with the pair "" may always be played anywhere.  Waits while another game chooses.
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
        """Record the host where a game of a pair has begun."""
        chooser = self._choosers.get(pair)
        if chooser is not None and not chooser.settled.is_set():
            self._hosts[pair] = host
            chooser.settled.set()

    def fails(self, pair: str, host: str) -> None:
        """Release a pair from a host that could not play one of its games: the next game chooses anew."""
        if self._hosts.get(pair) == host:
            del self._hosts[pair]

    async def chooser_ends(self, pair: str) -> None:
        """Wait until the game that chose the host is no longer played."""
        chooser = self._choosers.get(pair)
        if chooser is not None:
            await chooser.ended.wait()


class HostWorkers:
    """Workers by the hostname that their host reports.

    An address does not identify a host: several hosts may share one, and one host has several.
    """

    def __init__(self) -> None:
        self._hosts: dict[str, tuple[str, int]] = {}
        self._addresses: defaultdict[str, set[str]] = defaultdict(set)

    def __contains__(self, address: str) -> bool:
        return address in self._hosts

    def replace(self, everyone: Iterable[tuple[str, str, int]]) -> None:
        """Replace all workers by these addresses, hosts and slots."""
        self._hosts.clear()
        self._addresses.clear()
        for address, host, slots in everyone:
            self.add(address, host, slots)

    def add(self, address: str, host: str, slots: int) -> None:
        """Add a worker, which may be known already."""
        self._hosts[address] = (host, slots)
        self._addresses[host].add(address)

    def remove(self, address: str) -> None:
        """Remove a worker, which may be unknown."""
        host, _ = self._hosts.pop(address, ("", 0))
        self._addresses[host].discard(address)
        if not self._addresses[host]:
            del self._addresses[host]

    def all(self) -> frozenset[str]:
        """Return the addresses of all workers."""
        return frozenset(self._hosts)

    def of(self, host: str) -> frozenset[str]:
        """Return the addresses of the workers of a host."""
        return frozenset(self._addresses.get(host, ()))

    def slots(self, host: str) -> int:
        """Return the number of slots of all workers of a host."""
        return sum(self._hosts[address][1] for address in self.of(host))
