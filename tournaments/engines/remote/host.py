"""Facts on a host that matter to the games played on it."""

import os
import platform
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from referee.sandbox.bubblewrap import Sandbox
from referee.sandbox.host_resources import usable_cores
from referee.version import VERSION
from tournaments.bots.toolchains import find_program
from tournaments.config.host_speed import measure
from tournaments.engines.remote.extra import ClusterError


def feature_release(python: str) -> str:
    """Return the feature release, such as 3.11 for Python 3.11.2, which decides about compatibility."""
    return ".".join(python.split(".")[:2])


@dataclass(frozen=True, slots=True)
class Versions:
    """Versions that must be the same on all hosts, so that games are comparable."""

    kalarena: str = VERSION
    python: str = field(default_factory=lambda: feature_release(platform.python_version()))
    """Feature release of Kalarena's own interpreter.

    It also runs Python bots and the measurement of speeds.
    """

    def __str__(self) -> str:
        return f"kalarena {self.kalarena} on Python {self.python}"


@dataclass(frozen=True, slots=True)
class HostFacts:
    """Facts found on a host."""

    name: str
    cores: int
    """Number of usable cores."""
    tier: str
    """Confinement of bots: one of referee/sandbox/bubblewrap.py's tiers."""
    speed: float
    """Speed of one core, in positions per second, see tournaments/config/host_speed.py."""
    kalarena: str
    """Version of Kalarena."""
    python: str
    """Version of the interpreter that runs Kalarena."""
    missing: tuple[str, ...] = ()
    """Programs that bots need and that were not found."""

    @property
    def plays(self) -> "Versions":
        """Versions of the software that plays games on this host."""
        return Versions(self.kalarena, feature_release(self.python))

    def to_json(self) -> dict[str, Any]:
        """Return the facts as they are sent to the head."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Any) -> "HostFacts":
        """Create the facts from the result of ``to_json``.  Raises ClusterError for invalid data.

        Unknown keys are ignored: a worker may be newer.
        """
        try:
            return _FACTS.validate_python(data)
        except ValidationError as error:
            where = ".".join(map(str, error.errors()[0]["loc"]))
            raise ClusterError(f"a worker's facts of its host cannot be read: {where or data!r}") from error

    def __str__(self) -> str:
        return (
            f"{self.name}: {self.cores} core{'' if self.cores == 1 else 's'}, sandbox {self.tier}, "
            f"{self.speed / 1000:,.0f} thousand positions/s a core, kalarena {self.kalarena}, "
            f"Python {self.python}"
        )


_FACTS = TypeAdapter(HostFacts)


def facts_of_this_host(
    sandbox: Sandbox, calibrate: Callable[[], float] = measure, programs: Iterable[str] = ()
) -> HostFacts:
    """Return the facts on this host, where ``sandbox`` confines bots.  Takes half a second.

    ``programs`` are those that bots need, by their paths on another host or by their names.
    """
    return HostFacts(
        name=platform.node(),
        cores=len(usable_cores()),
        tier=sandbox.tier.value,
        speed=calibrate(),
        kalarena=VERSION,
        python=platform.python_version(),
        missing=tuple(missing_programs(programs)),
    )


def missing_programs(programs: Iterable[str]) -> list[str]:
    """Return the missing ones of the programs, given by their paths on another host or by their names."""
    return [program for program in programs if program_here(program) is None]


def program_here(program: str) -> str | None:
    """Return the path of a program, given by its path on another host or by its name; None if it is missing.

    A program of the same name on PATH is as good.
    """
    is_there = os.sep in program and os.path.exists(program)  # noqa: PTH110 - False for unreadable paths
    return program if is_there else find_program(Path(program).name)
