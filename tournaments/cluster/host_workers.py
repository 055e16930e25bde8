"""Which workers are on which host.  There may be several on one, as when it got two jobs from Slurm."""

from collections import defaultdict
from collections.abc import Iterable


class HostWorkers:
    """Workers by the name that their host has for itself.

    Not by its address: behind one there may be several hosts, and one host has several.
    """

    def __init__(self) -> None:
        self._hosts: dict[str, tuple[str, int]] = {}
        self._addresses: defaultdict[str, set[str]] = defaultdict(set)

    def __contains__(self, address: str) -> bool:
        return address in self._hosts

    def replace(self, everyone: Iterable[tuple[str, str, int]]) -> None:
        """Addresses, hosts and slots of all that there are."""
        self._hosts.clear()
        self._addresses.clear()
        for address, host, slots in everyone:
            self.add(address, host, slots)

    def add(self, address: str, host: str, slots: int) -> None:
        """One has come, or was known before."""
        self._hosts[address] = (host, slots)
        self._addresses[host].add(address)

    def remove(self, address: str) -> None:
        """One is gone, or was unknown."""
        host, _ = self._hosts.pop(address, ("", 0))
        self._addresses[host].discard(address)
        if not self._addresses[host]:
            del self._addresses[host]

    def all(self) -> frozenset[str]:
        """The addresses of all of them."""
        return frozenset(self._hosts)

    def of(self, host: str) -> frozenset[str]:
        """The addresses of the workers of a host."""
        return frozenset(self._addresses.get(host, ()))

    def slots(self, host: str) -> int:
        """Of all workers of a host together."""
        return sum(self._hosts[address][1] for address in self.of(host))
