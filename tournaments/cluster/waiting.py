"""Which workers will do, and waiting for enough of them."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

import trio

from referee.sandbox import Sandbox, Tier
from tournaments.cluster.errors import ClusterError
from tournaments.cluster.host import HostFacts, Versions

LOOK_S = 0.2
"""How often it is looked whether enough have come."""


@dataclass(frozen=True, slots=True)
class Demands:
    """What a worker must be."""

    tier: Tier = Tier.OFF
    """At least."""
    same_speed: float | None = None
    """How far from the median of all a host's speed may be, as a share of it; None if it may be any."""
    versions: Versions = field(default_factory=Versions)
    programs: tuple[str, ...] = ()
    """That bots need: paths on the head, or names."""

    def refusals(self, everyone: Sequence[HostFacts]) -> list[str | None]:
        """Why each worker is turned away, None if it will do, of all that there are: in the order in which
        they came.
        """
        reasons = [self.refusal(facts) for facts in everyone]
        fit = [facts.speed for facts, why in zip(everyone, reasons, strict=True) if why is None]
        middle = _middle(fit) if fit else 0.0
        return [
            why or self._too_different(facts, middle) for facts, why in zip(everyone, reasons, strict=True)
        ]

    def refusal(self, facts: HostFacts) -> str | None:
        """Why a worker is turned away, whatever others there are; None if that is up to them."""
        tiers = list(Tier)  # the best is the first
        if facts.plays != self.versions:
            return f"{facts.name} has {facts.plays}, and {self.versions} is played with here"
        if tiers.index(Tier(facts.tier)) > tiers.index(self.tier):
            return (
                f"{facts.name} confines bots by {facts.tier} only, and {self.tier} is played with: "
                "kalarena doctor says there what is missing"
            )
        lacking = sorted({Path(program).name for program in self.programs if program in facts.missing})
        if lacking:
            return (
                f"{facts.name} lacks {', '.join(lacking)}, and bots of this tournament need that: install it "
                "there, or leave this host out"
            )
        return None

    def _too_different(self, facts: HostFacts, middle: float) -> str | None:
        if self.same_speed is None or abs(facts.speed - middle) <= self.same_speed * middle:
            return None
        return (
            f"{facts.name} has {facts.speed / middle:.0%} of the median speed of all workers, and "
            f"same_speed = {self.same_speed:.0%} is asked for"
        )


def _middle(speeds: Sequence[float]) -> float:
    """The median; of an even number the one in the middle that came first.

    Of two hosts, neither would be like their mean, and the one that plays already must not go.
    """
    ordered = sorted(speeds)
    low, high = ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2]
    return next(speed for speed in speeds if speed in (low, high))


def sandbox_elsewhere(here: Sandbox) -> Sandbox:
    """How bots are confined on all hosts, by how that is done on this one.

    All hosts must do it equally well; whether control groups are delegated differs too much between them to
    be demanded because this one has them.
    """
    return replace(here, tier=Tier.BUBBLEWRAP, cgroup="") if here.tier is Tier.CGROUP else here


class Workers(Protocol):
    """Who knows what workers there are: the engine."""

    @property
    def slots(self) -> int:
        """Of workers that will do."""
        ...

    @property
    def refusals(self) -> Sequence[str]:
        """A sentence for each worker that was turned away."""
        ...


async def wait_for_slots(
    workers: Workers, slots: int = 1, within_s: float = math.inf, tell: Callable[[str], None] | None = None
) -> None:
    """Wait until so many games can be played at a time; ``tell`` is told how many can, as that changes.

    Raises ClusterError if they do not come in time.
    """
    seen = -1
    with trio.move_on_after(within_s):
        await trio.lowlevel.checkpoint()
        while workers.slots < slots:
            if tell is not None and workers.slots != seen:
                seen = workers.slots
                tell(f"waiting for workers: {seen} of {slots} slots")
            await trio.sleep(LOOK_S)
        return
    turned_away = "".join(f"; {sentence}" for sentence in workers.refusals)
    raise ClusterError(
        f"workers for {slots} games at a time were to come within {within_s:g} s, and there are only "
        f"{workers.slots}{turned_away}"
    )
