"""Selection of suitable workers, and waiting for enough of them."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import trio

from referee.sandbox.bubblewrap import Sandbox, Tier
from tournaments.engines.remote.host import HostFacts, Versions

if TYPE_CHECKING:  # it needs the extra
    from tournaments.engines.remote.head.dask_engine import DaskEngine

DEMANDS = "kalarena-demands"
"""Key of the demands in the scheduler's metadata."""
POLL_S = 0.2
"""Seconds between checks whether enough workers have joined."""


@dataclass(frozen=True, slots=True)
class Demands:
    """Requirements for workers."""

    tier: Tier = Tier.OFF
    """Minimum confinement tier."""
    same_speed: float | None = None
    """Maximum distance of a host's speed from the median, as a share of it; None if any will do."""
    versions: Versions = field(default_factory=Versions)
    programs: tuple[str, ...] = ()
    """Programs that all bots need: paths on the head, or names.

    A host that lacks another program plays the games of other bots, see ``ProgramsMissingError``.
    """

    def to_json(self) -> dict[str, Any]:
        """Return the demands in the form that is published to workers."""
        return {"tier": self.tier.value, **asdict(self.versions), "programs": list(self.programs)}

    @classmethod
    def from_json(cls, found: dict[str, Any]) -> "Demands":
        """Return published demands."""
        versions = Versions(found["kalarena"], found.get("python", "of an unknown version"))
        return cls(Tier(found["tier"]), versions=versions, programs=tuple(found["programs"]))

    def refusals(self, everyone: Sequence[HostFacts]) -> list[str | None]:
        """Return for each worker the reason for its refusal, None if it is suitable.

        ``everyone`` are all workers, in the order in which they joined.
        """
        reasons = [self.refusal(facts) for facts in everyone]
        fit = [facts.speed for facts, why in zip(everyone, reasons, strict=True) if why is None]
        middle = _middle(fit) if fit else 0.0
        return [
            why or self._too_different(facts, middle) for facts, why in zip(everyone, reasons, strict=True)
        ]

    def refusal(self, facts: HostFacts) -> str | None:
        """Return the reason for refusing a worker, whatever others there are; None if there is none."""
        tiers = list(Tier)  # the best is the first
        if facts.plays != self.versions:
            return f"{facts.name} has {facts.plays}, and this tournament needs {self.versions}"
        if tiers.index(Tier(facts.tier)) > tiers.index(self.tier):
            return (
                f"{facts.name} confines bots by {facts.tier} only, and this tournament needs {self.tier}: "
                "kalarena doctor on that host names what is missing"
            )
        lacking = sorted({Path(program).name for program in self.programs if program in facts.missing})
        if lacking:
            return (
                f"{facts.name} lacks {', '.join(lacking)}, and all bots of this tournament need that: "
                "install it there, or leave this host out"
            )
        return None

    def _too_different(self, facts: HostFacts, middle: float) -> str | None:
        if self.same_speed is None or abs(facts.speed - middle) <= self.same_speed * middle:
            return None
        return (
            f"{facts.name} has {facts.speed / middle:.0%} of the median speed of all workers, and "
            f"this tournament needs same_speed = {self.same_speed:.0%}"
        )


def _middle(speeds: Sequence[float]) -> float:
    """Return the median; of an even number the one in the middle that came first.

    Of two hosts, neither would be like their mean, and a host that already plays must not be refused.
    """
    ordered = sorted(speeds)
    low, high = ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2]
    return next(speed for speed in speeds if speed in (low, high))


def sandbox_on_workers(here: Sandbox) -> Sandbox:
    """Return the sandbox that all hosts must have, derived from this host's.

    All hosts must confine equally well.  Control groups are not required, even if this host has them, since
    their delegation differs too much between hosts.
    """
    return replace(here, tier=Tier.BUBBLEWRAP, cgroup="") if here.tier is Tier.CGROUP else here


async def wait_for_slots(workers: "DaskEngine", slots: int, notify: Callable[[str], object]) -> None:
    """Wait until ``slots`` games can be played at a time; ``notify`` is called when the number changes."""
    seen = -1
    while workers.slots < slots:
        if workers.slots != seen:
            seen = workers.slots
            notify(f"waiting for workers: {seen} of {slots} slots")
        await trio.sleep(POLL_S)
