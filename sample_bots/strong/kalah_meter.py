"""What of a search's budget is used up."""

from collections.abc import Callable

from sample_bots.strong.compiled import COMPILED
from sample_bots.strong.engine import Budget

SLICE_S = 0.001
"""The clock is looked at about this often."""
SLICE_BOUNDS = (1_000, 20_000) if COMPILED else (100, 2_000)
"""Nodes between two looks at the clock, at least and at most."""
UNBOUNDED = 1 << 60
"""Nodes, where they are not limited."""


class Meter:
    """What of a budget is left: nodes and time."""

    def __init__(self, budget: Budget, now: Callable[[], float]) -> None:
        self.nodes = 0
        self.node_limit = UNBOUNDED if budget.nodes is None else budget.nodes
        self._now = now
        self._began = now()
        self._seconds = budget.seconds
        self._slice = SLICE_BOUNDS[0]

    def may_go_on(self) -> bool:
        """Whether neither nodes nor time are used up."""
        return self.nodes < self.node_limit and (self._seconds is None or self._used() < self._seconds)

    def next_pause(self) -> int:
        """At how many nodes to look again."""
        if self._seconds is None:
            return self.node_limit
        if used := self._used():
            wanted = int(SLICE_S * self.nodes / used)
            self._slice = min(max(wanted, SLICE_BOUNDS[0]), SLICE_BOUNDS[1])
        return min(self.node_limit, self.nodes + self._slice)

    def _used(self) -> float:
        return self._now() - self._began
