"""Index of workers by host.  A host may have several workers, for instance with two jobs from Slurm."""

from collections import defaultdict
from collections.abc import Iterable


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
