"""Processes of a bot that has a control group: the kernel counts, stops and weighs all of them together.

``GroupedProcesses`` has the methods of ``ProcessTree``, which reads /proc.  What only /proc shows, such as
the system call in which a thread waits, is still read there, but not in each turn.
"""

import time

from referee.process.cpu_accounting import Reading
from referee.process.process_tree import ProcessTree
from referee.sandbox.cgroup import BotGroup


class GroupedProcesses(ProcessTree):
    """A process tree in a control group of its own."""

    def __init__(
        self, root: int, group: BotGroup, *, skip_root: bool = False, has_adapter: bool = False
    ) -> None:
        super().__init__(root, skip_root=skip_root, has_adapter=has_adapter)
        self._group = group

    def read(self) -> Reading:
        """Return the group's counters, or the tree's where the kernel counts no stalled time of groups."""
        at_ns = time.monotonic_ns()
        times_ns = self._group.cpu_times_ns()
        if times_ns is None:
            return super().read()
        cpu_ns, stalled_ns = times_ns
        return Reading(cpu_ns, {}, at_ns, stalled_ns)

    def stop(self, within_s: float) -> bool:
        """Freeze the group; return False if that takes longer."""
        return self._group.freeze(within_s)

    def resume(self) -> None:
        """Continue a frozen group."""
        self._group.thaw()

    def set_on_turn(self, *, on_turn: bool) -> None:
        """Give the group its share of the processors on turn, or what others leave off turn."""
        self._group.set_on_turn(on_turn=on_turn)
