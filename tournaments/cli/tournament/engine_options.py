"""Where a tournament's games are played: the options that say so, and the engine that follows from them."""

import hashlib
import json
import logging
import shlex
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
import trio

from referee.sandbox import Sandbox, Tier
from tournaments.cli.main import Usage
from tournaments.cluster.errors import ClusterError
from tournaments.cluster.extra import require_extra
from tournaments.config import Tournament
from tournaments.engines.base import Engine
from tournaments.engines.local import open_local_engine

if TYPE_CHECKING:  # it needs the extra
    from tournaments.cluster.credentials import Credentials
    from tournaments.cluster.waiting import Demands
    from tournaments.engines.dask import DaskEngine

LOCAL, DASK, SLURM = "local", "dask", "slurm"
ENGINES = (LOCAL, DASK, SLURM)
CLUSTER_FOLDER = "cluster"
"""In the directory of the results: credentials, and what the scheduler had to complain about."""
DASKS_LOGGERS = ("distributed", "distributed.client")
"""What is wrong we say ourselves; Dask shows tracebacks whenever a scheduler is lost."""
LOOK_S = 0.5
"""How often it is looked whether there are workers."""
Function = TypeVar("Function", bound=Callable[..., Any])
Tell = Callable[[str], None]
"""Told a sentence for people."""


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """What was asked for.  Raises Usage if that makes no sense, or needs what is not installed."""

    engine: str = LOCAL
    scheduler: str | None = None
    """Address of a scheduler that runs already; None if there is to be one here."""
    credentials: Path | None = None
    """The directory of its credentials; None: in the directory of the results."""

    def __post_init__(self) -> None:
        if self.engine == LOCAL:
            for name in ("scheduler", "credentials"):
                if getattr(self, name) is not None:
                    raise Usage(f"--{name} is for games that are played elsewhere: add --engine {DASK}")
            return
        if self.scheduler is not None and self.credentials is None:
            raise Usage("--scheduler needs --credentials: a scheduler lets in nobody without them")
        if self.scheduler is not None and not self.scheduler.startswith("tls://"):
            raise Usage(f"--scheduler must be an address like tls://HOST:PORT, not {self.scheduler!r}")
        try:
            require_extra()
        except ClusterError as error:
            raise Usage(str(error)) from error

    def sandbox(self, here: Sandbox) -> Sandbox:
        """How bots are confined where they play, by how that is done on this host.

        All hosts must do it equally well; whether control groups are delegated differs too much between them
        to be demanded because this one has them.
        """
        if self.engine == LOCAL or here.tier is not Tier.CGROUP:
            return here
        return replace(here, tier=Tier.BUBBLEWRAP, cgroup="")


def engine_options(function: Function) -> Function:
    """Add the options to a command, which is given ``engine``, ``scheduler`` and ``credentials``."""
    for option in (
        click.option(
            "--credentials",
            type=click.Path(file_okay=False, path_type=Path),
            metavar="DIR",
            help="With another engine: who may join.  [default: made in DIR of --out]",
        ),
        click.option(
            "--scheduler",
            metavar="ADDRESS",
            help="With another engine: a scheduler that runs already.  [default: one is started here]",
        ),
        click.option(
            "--engine",
            type=click.Choice(ENGINES),
            default=LOCAL,
            help="Where games are played: here, by `kalarena worker` on other machines, or by jobs of Slurm.",
            show_default=True,
        ),
    ):
        function = option(function)
    return function


@asynccontextmanager
async def open_engine(
    asked: EngineOptions,
    tournament: Tournament,
    directory: Path,
    sandbox: Sandbox,
    concurrency: int | None,
    tell: Tell,
) -> AsyncIterator[Engine]:
    """The engine, once it can play.

    ``directory`` is that of the results, ``sandbox`` how bots are confined; ``tell`` is told what to do for
    workers to come, how many have come, and which were turned away.  Raises ClusterError.
    """
    if asked.engine == LOCAL:
        async with open_local_engine(directory, concurrency, own_core=tournament.own_core) as local:
            yield local
        return
    demands = await trio.to_thread.run_sync(_demands, tournament, sandbox)
    async with (
        _scheduler(asked, tournament, directory) as (address, credentials),
        _workers(asked, address, credentials, tournament, demands, directory, tell),
        _engine_at(address, credentials, tournament, demands, concurrency, tell) as engine,
    ):
        yield engine


def _demands(tournament: Tournament, sandbox: Sandbox) -> "Demands":
    """What a worker must be.  Reads the bots' files."""
    from tournaments.cluster.contents import needed_programs
    from tournaments.cluster.waiting import Demands

    programs = needed_programs(tournament.players)
    return Demands(tier=sandbox.tier, same_speed=tournament.cluster.same_speed, programs=programs)


@asynccontextmanager
async def _scheduler(
    asked: EngineOptions, tournament: Tournament, directory: Path
) -> AsyncIterator[tuple[str, "Credentials"]]:
    """The scheduler's address, and what it lets in."""
    from tournaments.cluster.credentials import Credentials
    from tournaments.cluster.scheduler import open_scheduler

    for name in DASKS_LOGGERS:
        logging.getLogger(name).setLevel(logging.CRITICAL)
    if asked.scheduler is not None:
        assert asked.credentials is not None
        yield asked.scheduler, Credentials(asked.credentials)
        return
    folder = directory / CLUSTER_FOLDER
    credentials = Credentials.made(asked.credentials or folder / "credentials")
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise ClusterError(f"{folder}: cannot be made: {error.strerror}") from error
    settings = tournament.cluster
    async with open_scheduler(credentials, folder / "scheduler.log", settings.host, settings.port) as address:
        yield address, credentials


@asynccontextmanager
async def _workers(
    asked: EngineOptions,
    address: str,
    credentials: "Credentials",
    tournament: Tournament,
    demands: "Demands",
    directory: Path,
    tell: Tell,
) -> AsyncIterator[None]:
    """Meanwhile workers come: Slurm's, or those that people start as they are told."""
    from tournaments.cluster.demanded import tell_demands

    await trio.to_thread.run_sync(tell_demands, address, credentials, demands)
    if asked.engine != SLURM:
        tell(f"on each machine that is to play, run:\n  {worker_command(address, credentials.directory)}")
        yield
        return
    from tournaments.engines.slurm import open_slurm_workers

    logs = directory / CLUSTER_FOLDER / "slurm"
    try:
        logs.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ClusterError(f"{logs}: cannot be made: {error.strerror}") from error
    async with open_slurm_workers(address, credentials, tournament.cluster, logs, tell):
        yield


@asynccontextmanager
async def _engine_at(
    address: str,
    credentials: "Credentials",
    tournament: Tournament,
    demands: "Demands",
    concurrency: int | None,
    tell: Tell,
) -> AsyncIterator[Engine]:
    """An engine with enough workers."""
    from tournaments.cluster.waiting import wait_for_slots
    from tournaments.engines.dask import open_dask_engine

    settings = tournament.cluster
    async with open_dask_engine(
        address,
        unique_name(tournament),
        security=credentials.security(),
        concurrency=concurrency,
        own_core=tournament.own_core,
        demands=demands,
        refused=tell,
        reference_speed=settings.scaled_from,
    ) as engine:
        await wait_for_slots(engine, settings.minimum, tell=tell)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_tell_of_workers, engine, tell)
            yield engine
            nursery.cancel_scope.cancel()


async def _tell_of_workers(engine: "DaskEngine", tell: Tell) -> None:
    """Tell what is played on, and when there is no worker any more."""
    was_alone: bool | None = None
    while True:
        is_alone = not engine.slots
        if is_alone and not was_alone:
            tell("no worker is left: games go on as soon as one joins")
        elif was_alone is not is_alone:
            hosts = ", ".join(sorted({facts.name for facts in engine.workers()}))
            tell(f"{'1 game' if engine.slots == 1 else f'{engine.slots} games'} at a time, on {hosts}")
        was_alone = is_alone
        await trio.sleep(LOOK_S)


def worker_command(address: str, credentials: Path) -> str:
    """What makes another machine play."""
    return shlex.join(
        ["kalarena", "worker", "--scheduler", address, "--credentials", str(credentials.resolve())]
    )


def unique_name(tournament: Tournament) -> str:
    """What tells its games from those of any other tournament at the same scheduler."""
    identity = json.dumps(tournament.identity(), sort_keys=True)
    return f"{tournament.name}-{hashlib.sha256(identity.encode()).hexdigest()[:16]}"
