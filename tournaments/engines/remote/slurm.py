"""Workers as jobs of Slurm, by dask-jobqueue, and information about these jobs.

When imported, dask-jobqueue installs a handler for SIGINT that ends the process without a message; it is
imported without that handler here.
"""

import asyncio
import math
import secrets
import shlex
import shutil
import signal
import sys
from collections.abc import AsyncIterator, Callable, Generator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import trio
from distributed.core import Status
from distributed.deploy.adaptive import Adaptive

from tournaments.config.cluster_table import ClusterTable
from tournaments.engines.remote.credentials import Credentials
from tournaments.engines.remote.extra import ClusterError

JOB_NAME = "kalarena"
JOBS = "slurm"
"""Name of the folder for the output of jobs."""
LIST_JOBS = ("squeue", "--me", "--noheader", "--format=%A")
TAIL_BYTES = 4000
NOTHING = "it wrote nothing"


async def listed_jobs() -> set[str] | None:
    """Return the numbers of this user's jobs that wait or run; None if Slurm does not answer just now."""
    process = await asyncio.create_subprocess_exec(
        *LIST_JOBS, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL
    )
    output, _ = await process.communicate()
    return set(output.decode().split()) if process.returncode == 0 else None


def last_words(logs: Path, job: str) -> str:
    """Return the last line that a job wrote, of its errors if it had some."""
    for suffix in ("err", "out"):
        try:
            written = (logs / f"{JOB_NAME}-{job}.{suffix}").read_bytes()[-TAIL_BYTES:]
        except OSError:  # it never ran, or the file system of its node is slow
            continue
        if line := _last_line(written.decode(errors="replace").splitlines()):
            return line
    return NOTHING


def complaint(error: str) -> str:
    """Return the message of a command of Slurm, from dask-jobqueue's text for it."""
    return _last_line(error.partition("stderr:")[2].splitlines()) or _last_line(error.splitlines())


def _last_line(lines: Iterable[str]) -> str:
    return next((line.strip() for line in reversed(list(lines)) if line.strip()), "")


_before = signal.getsignal(signal.SIGINT)
from dask_jobqueue.slurm import SLURMCluster, SLURMJob  # noqa: E402 - in between

signal.signal(signal.SIGINT, _before)


END_LIMIT_S = 30.0
"""Jobs are cancelled within a second; those that are not end without their scheduler."""
POLL_S = 2
"""Interval in seconds at which the number of jobs is adapted, and dead ones are replaced."""
PATIENCE = 30
"""Intervals in a row in which fewer jobs suffice before one is ended: a place in Slurm's queue is dear."""
LONGEST_PAUSE_S = 64.0
"""Longest interval between requests for new jobs, which doubles each time that jobs end as they begin."""
MOST_VAIN = 3
"""Times that jobs may end before any job of ours could play; then the engine gives up."""
KALARENA = (sys.executable, "-P", "-c", "from tournaments.cli.main import entry; entry()")
"""The command of this installation: nodes see the same files."""


class _RunningScheduler:
    """A scheduler that runs already, in place of the one that dask-jobqueue would start."""

    status = Status.running

    def __init__(self, address: str, **_options: Any) -> None:
        self.address = address

    def __await__(self) -> Generator[Any, None, "_RunningScheduler"]:
        yield from ()
        return self


class _GamesJob(SLURMJob):
    """A job that runs `kalarena worker`."""

    def __init__(
        self,
        scheduler: str | None = None,
        name: str | None = None,
        *,
        credentials: Path,
        lifetime_s: int,
        **options: Any,
    ) -> None:
        super().__init__(scheduler, name, **options)  # type: ignore[no-untyped-call]  # it has no types
        command = [*KALARENA, "worker", "--scheduler", str(scheduler), "--credentials", str(credentials)]
        command += ["--slots", str(options["cores"]), "--lifetime", str(lifetime_s), "--name", str(name)]
        # In place of the shell: the signal of Slurm at the end of the walltime is for the worker.
        self._command_template = f"exec {shlex.join(command)}"
        self.failure = ""

    async def start(self) -> None:
        """Submit the job.  A job that Slurm refuses counts as ended at once, and is submitted again."""
        try:
            await super().start()  # type: ignore[no-untyped-call]
        except (OSError, RuntimeError, ValueError) as error:
            self.failure = complaint(str(error))
            self.status = Status.running


class _AsManyAsGames(Adaptive):  # type: ignore[misc]  # Dask has no types
    """The rule that there are as many jobs as there are games for.

    Dask's own rule depends on the seconds of work that it has, and of a tournament it only has the next few
    games: as many again as are played now.  Thus the number of jobs doubles whenever all submitted jobs have
    joined, until there are no more games.  A job in which a game is played is never ended.
    """

    async def target(self) -> int:
        """Return the number of jobs that there should be, without regard to the bounds."""
        games = [len(keys) for keys in (await self.scheduler.processing()).values()]
        cores: int = self.cluster.new_spec["options"]["cores"]
        return max(math.ceil(sum(games) / cores), sum(map(bool, games)))

    async def workers_to_close(self, target: int) -> list[str]:
        """Return the names of jobs that may be ended, so that no fewer than ``target`` are left."""
        games = await self.scheduler.processing()
        idle = [
            worker["name"]
            for address, worker in self.cluster.scheduler_info["workers"].items()
            if worker["name"] in self.plan and not games.get(address)
        ]
        return idle[: max(0, len(self.plan) - target)]


class Jobs:
    """Jobs of Slurm, as many as there are games for between the bounds of the settings."""

    def __init__(self, scheduler: str, credentials: Credentials, settings: ClusterTable, logs: Path) -> None:
        """Begin to submit jobs, in a thread of its own.  Raises ClusterError."""
        try:
            logs.mkdir(parents=True, exist_ok=True)
            self._cluster = SLURMCluster(
                job_cls=_GamesJob,  # type: ignore[arg-type]  # it says Job, and means a kind of Job
                scheduler_cls=_RunningScheduler,
                scheduler_options={"address": scheduler},
                security=credentials.security(),
                shared_temp_directory=str(credentials.directory.resolve()),
                name=f"{JOB_NAME}-{secrets.token_hex(4)}",  # other heads may have jobs at this scheduler
                credentials=credentials.directory.resolve(),
                lifetime_s=settings.walltime_s,
                queue=settings.queue,
                cores=settings.cores,
                processes=1,
                memory=settings.memory,
                walltime=settings.walltime,
                job_name=JOB_NAME,
                log_directory=str(logs.resolve()),
            )
        except (OSError, ValueError, RuntimeError) as error:
            raise ClusterError(f"no jobs could be submitted to Slurm: {error}") from error
        self._cluster.shutdown_scheduler = False  # its tournament ends it
        self._logs = logs
        self.joined: set[str] = set()
        """Numbers of the jobs that ever joined."""
        jobs = math.ceil(settings.minimum / settings.cores)
        # Not scale(), which never replaces a job that has died.
        self._cluster.adapt(
            Adaptive=_AsManyAsGames,
            minimum_jobs=jobs,
            maximum_jobs=max(jobs, settings.maximum // settings.cores),
            interval=f"{POLL_S}s",
            wait_count=PATIENCE,
        )

    def replace_ended(self) -> str | None:
        """Have ended jobs submitted again; return the reason of the end if one of them never played."""
        why: str | None = self._cluster.sync(self._forget_ended)
        return why

    async def _forget_ended(self) -> str | None:
        """Forget ended jobs.  Dask notices that a worker is gone, but not that its job ended before that."""
        jobs = dict(self._cluster.workers)
        there = await listed_jobs()
        if there is None:
            return None
        self.joined |= {jobs[name].job_id for name in self._cluster.observed & set(jobs)}
        why = None
        for name, job in jobs.items():
            if job.job_id in there:
                continue
            self._cluster.workers.pop(name, None)  # still planned, and so it is submitted again
            if job.job_id is None:
                why = job.failure
            elif job.job_id not in self.joined:
                words = last_words(self._logs, job.job_id)
                why = f"job {job.job_id} of Slurm ended before it could play: {words}"
        return why

    def close(self) -> None:
        """End all jobs, also when the scheduler is gone."""
        self._cluster.scheduler.status = Status.closed  # it is not needed: no games are played any more
        self._cluster.close()


@asynccontextmanager
async def open_slurm_workers(
    scheduler: str,
    credentials: Credentials,
    settings: ClusterTable,
    folder: Path,
    notify: Callable[[str], None],
) -> AsyncIterator[None]:
    """Submit jobs during the block, as many as there is work for between the bounds of the settings.

    The jobs' output goes to files below ``folder``; ``notify`` is called with the reason when jobs ended
    before they could play.  ``credentials`` and ``folder`` must be in folders that the nodes see, too.
    Raises ClusterError if Slurm gives no jobs, or none that can play.
    """
    if shutil.which("sbatch") is None:
        raise ClusterError(
            "sbatch was not found: the engine slurm is for a login node of a cluster that runs Slurm; on "
            "other machines take the engine dask, and start `kalarena worker` on each"
        )
    logs = folder / JOBS
    jobs = await trio.to_thread.run_sync(Jobs, scheduler, credentials, settings, logs)
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_watch, jobs, logs, notify)
            yield
            nursery.cancel_scope.cancel()
    finally:
        with trio.move_on_after(END_LIMIT_S, shield=True):  # a controller that does not answer
            await trio.to_thread.run_sync(jobs.close, abandon_on_cancel=True)


async def _watch(jobs: Jobs, logs: Path, notify: Callable[[str], None]) -> None:
    """Replace jobs that end.  Raises ClusterError if all of them fail."""
    vain = joined = 0
    while True:
        await trio.sleep(min(POLL_S * 2**vain, LONGEST_PAUSE_S))
        why = await trio.to_thread.run_sync(jobs.replace_ended)
        if len(jobs.joined) > joined:
            vain, joined = 0, len(jobs.joined)
        if why is None:
            continue
        vain += 1
        if vain == MOST_VAIN and not joined:
            raise ClusterError(f"no job of Slurm can play: {why}; their output is in {logs}")
        notify(why)
