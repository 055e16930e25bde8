"""What a host is, as far as it matters to the games that are played on it."""

import os
import platform
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from referee.sandbox import Sandbox
from tournaments.cluster.calibration import measure
from tournaments.cluster.errors import ClusterError
from tournaments.toolchains import COMPILERS, find_program

INTERPRETERS = ("python3", "pypy3", "perl", "ruby", "lua", "php", "Rscript", "julia", "mono", "bash", "guile")
"""Programs that may run a bot, beside those that build one."""


def feature_release(python: str) -> str:
    """The 3.11 of Python 3.11.2: what a program runs on that was written for it."""
    return ".".join(python.split(".")[:2])


@dataclass(frozen=True, slots=True)
class Versions:
    """What must be the same on all hosts, so that each game could as well have been played on another one."""

    kalarena: str = field(default_factory=partial(metadata.version, "kalarena"))
    python: str = field(default_factory=lambda: feature_release(platform.python_version()))
    """Of Kalarena's own interpreter, which Python bots run on as well, and speeds are measured by."""

    def __str__(self) -> str:
        return f"kalarena {self.kalarena} on Python {self.python}"


@dataclass(frozen=True, slots=True)
class HostFacts:
    """What was found on a host."""

    name: str
    cores: int
    """Usable by us."""
    tier: str
    """How bots are confined: one of referee/sandbox.py's tiers."""
    speed: float
    """Of one core, in positions per second, see tournaments/cluster/calibration.py."""
    kalarena: str
    """Version of this program."""
    python: str
    """Version of the interpreter that runs it."""
    programs: dict[str, str] = field(default_factory=dict)
    """Interpreters and compilers by name, and where they are."""
    missing: tuple[str, ...] = ()
    """What was looked for because bots need it, and was not found."""

    @property
    def plays(self) -> "Versions":
        """What a game is played with here."""
        return Versions(self.kalarena, feature_release(self.python))

    def to_json(self) -> dict[str, Any]:
        """As it is sent to the head."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Any) -> "HostFacts":
        """The facts that ``to_json`` made this of.  Raises ClusterError if it made no such thing.

        Keys that this version does not know are passed over: a worker may be newer.
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
    """What this host is; ``sandbox`` is what bots are confined by here.  Takes half a second.

    ``programs`` are what bots need, by their paths on another host or by their names.
    """
    found = ((name, find_program(name)) for name in (*INTERPRETERS, *COMPILERS))
    return HostFacts(
        name=platform.node(),
        cores=usable_cores(),
        tier=sandbox.tier.value,
        speed=calibrate(),
        kalarena=metadata.version("kalarena"),
        python=platform.python_version(),
        programs={name: path for name, path in found if path},
        missing=tuple(missing_programs(programs)),
    )


def missing_programs(programs: Iterable[str]) -> list[str]:
    """Those that are not on this host, of programs by their paths on another one or by their names."""
    return [program for program in programs if program_here(program) is None]


def program_here(program: str) -> str | None:
    """Where a program is that is known by its path on another host or by its name; None if it is not here.

    One of the same name on PATH is as good.
    """
    is_there = os.sep in program and os.path.exists(program)  # noqa: PTH110 - False where we may not look
    return program if is_there else find_program(Path(program).name)


def usable_cores() -> int:
    """How many cores this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
