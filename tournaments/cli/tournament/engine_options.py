"""Engine of a tournament: the options that select the machines for its games, and its start."""

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import click
import trio

from referee.sandbox.bubblewrap import Sandbox
from tournaments.cli.game_options import with_options
from tournaments.cli.main import Usage
from tournaments.config.tournament import Tournament
from tournaments.engines.base import Engine
from tournaments.engines.local import open_local_engine
from tournaments.engines.remote.extra import ClusterError, require_extra
from tournaments.engines.remote.waiting import sandbox_on_workers, wait_for_slots

LOCAL, DASK, SLURM = "local", "dask", "slurm"
ENGINES = (LOCAL, DASK, SLURM)
CLUSTER_FOLDER = "cluster"
"""Folder in the directory of the results, for credentials and the scheduler's log."""
Notify = Callable[[str], None]
"""Called with a sentence for people."""


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """The options' values.  Raises Usage if they do not fit together, or need a package that is missing."""

    engine: str = LOCAL
    scheduler: str | None = None
    """Address of a scheduler that runs already; None: one is started here."""
    credentials: Path | None = None
    """Directory of its credentials; None: in the directory of the results."""

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
        """Return the sandbox for the machines that play, given the one on this host."""
        return here if self.engine == LOCAL else sandbox_on_workers(here)


engine_options = with_options(
    click.option(
        "--engine",
        type=click.Choice(ENGINES),
        default=LOCAL,
        help="Where games are played: here, by `kalarena worker` on other machines, or by jobs of Slurm.",
        show_default=True,
    ),
    click.option(
        "--scheduler",
        metavar="ADDRESS",
        help="With another engine: a scheduler that runs already.  [default: one is started here]",
    ),
    click.option(
        "--credentials",
        type=click.Path(file_okay=False, path_type=Path),
        metavar="DIR",
        help="With another engine: directory of the credentials that workers need to join.  [default: "
        "cluster/credentials in the directory of --out]",
    ),
)
"""Decorator that adds the options to a command, which receives ``engine``, ``scheduler``, ``credentials``."""


@asynccontextmanager
async def open_engine(
    options: EngineOptions,
    tournament: Tournament,
    directory: Path,
    sandbox: Sandbox,
    concurrency: int | None,
    notify: Notify,
    alert: Notify,
) -> AsyncIterator[Engine]:
    """Open the engine, and yield it once it can play.

    ``directory`` is that of the results, ``sandbox`` confines the bots.  ``notify`` is called with the number
    of workers.  ``alert`` is called with messages without which the games may never begin: instructions for
    starting workers, and the reasons why workers were refused or jobs ended.  Raises ClusterError.
    """
    if options.engine == LOCAL:
        async with open_local_engine(directory, concurrency, own_core=tournament.own_core) as local:
            yield local
        return
    from tournaments.engines.remote import remote_engine
    from tournaments.engines.remote.credentials import Credentials
    from tournaments.engines.remote.head.dask_engine import open_dask_engine

    remote_engine.quieten()
    settings, folder = tournament.cluster, directory / CLUSTER_FOLDER
    demands = await trio.to_thread.run_sync(
        remote_engine.demands_of, tournament, sandbox, settings.same_speed
    )
    async with AsyncExitStack() as stack:
        if options.scheduler is not None and options.credentials is not None:
            address, credentials = options.scheduler, Credentials(options.credentials)
        else:
            address, credentials = await stack.enter_async_context(
                remote_engine.open_scheduler_here(folder, settings, options.credentials)
            )
        engine = await stack.enter_async_context(
            open_dask_engine(
                address,
                remote_engine.unique_name(tournament),
                security=credentials.security(),
                concurrency=concurrency,
                own_core=tournament.own_core,
                demands=demands,
                refused=alert,
                reference_speed=settings.scaled_from,
            )
        )
        if options.engine == SLURM:
            from tournaments.engines.remote.slurm import open_slurm_workers

            await stack.enter_async_context(open_slurm_workers(address, credentials, settings, folder, alert))
        else:
            command = remote_engine.worker_command(address, credentials.directory)
            alert(f"on each machine that is to play, run:\n  {command}")
        await wait_for_slots(engine, settings.minimum, notify)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(remote_engine.report_workers, engine, notify)
            yield engine
            nursery.cancel_scope.cancel()
