"""Games in jobs of a real Slurm, whose one node is this machine."""

import contextlib
import os
import random
import re
import signal
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import trio

from tests.engines.clusters import START_LIMIT_S, Cluster, open_cluster
from tests.engines.games import LOOK_S, becomes
from tests.engines.lab_machines import machine
from tests.engines.slurm import QUEUE, Slurm, running_slurm
from tests.server.harness import QUICK, ServiceHarness, open_service, spec
from tests.support.builders import kalarena, write_tournament
from tests.support.paths import SUPPORT
from tests.support.processes import living_with
from tournaments.cli.main import INTERRUPTED
from tournaments.config.cluster_table import ClusterTable, ServerClusterTable
from tournaments.course.model import Competition, CompetitionState
from tournaments.engines.remote.credentials import Credentials
from tournaments.engines.remote.extra import ClusterError
from tournaments.engines.remote.slurm import KALARENA, MOST_VAIN, Jobs, open_slurm_workers
from tournaments.results.store import Store
from tournaments.server.config import ServiceConfig

pytestmark = [pytest.mark.cluster, pytest.mark.any_database]

TWO_JOBS_LIMIT_S = 900.0
"""Bound for a tournament whose bots sleep for a minute and a half; if busy, it needs many jobs."""
END_LIMIT_S = 300.0
"""Within which what was cancelled has left nothing; Slurm itself takes a minute on a busy machine."""
ASK_S = 0.5
"""Seconds between two questions for Slurm's jobs: an answer takes a tenth of a second of CPU time."""
JOBS = 2
ROUNDS = 20
"""So many that the first job does not play all games of two bots before the second job is submitted."""
SETTINGS = ClusterTable(queue=QUEUE, cores=1, memory="1 GiB", minimum=JOBS, maximum=JOBS)


@pytest.fixture(scope="module")
def slurm() -> Iterator[Slurm]:
    with running_slurm() as running, pytest.MonkeyPatch.context() as patched:
        for name, value in running.environment.items():
            patched.setenv(name, value)
        yield running


def job_of(pid: int) -> str:
    """The job that a process belongs to.  A confined bot has not its environment, but its parents have."""
    while True:
        words = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        for word in words:
            if word.startswith(b"SLURM_JOB_ID="):
                return word.partition(b"=")[2].decode()
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()[1])


def jobs_that_play(mark: str) -> list[str]:
    """Jobs in which there is a process that is known by a mark."""
    found = []
    for pid in living_with(mark):
        with contextlib.suppress(OSError):  # it has just ended
            found.append(job_of(pid))
    return found


def jobs_of(slurm: Slurm) -> int:
    return len(slurm.command("squeue", "--noheader").splitlines())


async def until_jobs(
    slurm: Slurm, count: int, within_s: float, seen: Callable[[], object] = lambda: ""
) -> None:
    """Wait until so many jobs wait or run."""
    await becomes(lambda: jobs_of(slurm) == count, within_s, seen, every_s=ASK_S)


@pytest.fixture(scope="module")
def cluster(slurm: Slurm, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with open_cluster(tmp_path_factory.mktemp("slurm"), workers=0) as opened:
        yield opened


# Tournaments, from the command line.

CUP = 'name = "Cup"\ngame = "kalah(3,2)"\nrounds = 2\nseed = 8\nbots = ["{slow}", "greedy", "random:3"]\n'
TABLE = """
[cluster]
host = "127.0.0.1"
queue = "{queue}"
cores = 1
memory = "1 GiB"
walltime = "00:10:00"
minimum = 2
maximum = 2
"""


def slow_bot(folder: Path, tenths: int = 1) -> tuple[Path, str]:
    """A bot that takes some tenths of a second a move, and what it is known by among processes."""
    mark = f"0.{tenths}5{random.randrange(10**6, 10**7)}"
    bot = folder / "slow"
    bot.mkdir()
    (bot / "bot.py").write_bytes((SUPPORT / "thinking_bot.py").read_bytes())
    (bot / "bot.toml").write_text(f'command = "python3 bot.py --sleep {mark}"\n')
    return bot, mark


def run_options(out: str, *more: str) -> tuple[str, ...]:
    return ("tournament", "run", "cup.toml", "--out", out, *more)


def kept(games: Path) -> int:
    return len(list(games.iterdir())) if games.is_dir() else 0


@pytest.mark.long
async def test_an_interrupt_and_a_cancelled_job_change_nothing_in_the_table(
    slurm: Slurm, tmp_path: Path
) -> None:
    bot, mark = slow_bot(tmp_path)
    write_tournament(tmp_path, CUP.format(slow=bot) + TABLE.format(queue=QUEUE))
    games = tmp_path / "out" / "games"
    options = run_options("out", "--engine", "slurm")
    async with machine(tmp_path, "head-1", options) as head:  # an interrupt ends the jobs
        await head.says("2 games at a time, on ")
        head.process.send_signal(signal.SIGINT)
        assert await head.ends() == INTERRUPTED
    assert "games to play; the same command goes on:\n" in head.said
    await becomes(lambda: not living_with(mark), END_LIMIT_S)  # the head does not wait for its jobs
    await until_jobs(slurm, 0, END_LIMIT_S)
    async with (
        machine(tmp_path, "local", run_options("here")) as local,
        machine(tmp_path, "head-2", options) as head,
    ):
        await head.says("2 games at a time, on ")
        before = kept(games)
        await becomes(lambda: kept(games) >= before + 2, START_LIMIT_S)
        playing: list[str] = []
        while not playing:  # bots come and go
            playing = jobs_that_play(mark)
            assert kept(games) < 12
            await trio.sleep(LOOK_S)
        slurm.command("scancel", playing[0])
        assert kept(games) < 12
        assert await head.ends() == 0, head.said
        assert await local.ends() == 0
    assert "Cup: 12 of 12 games\n" in head.said
    for form in ("text", "csv"):
        here, there = (
            kalarena(tmp_path, "tournament", "table", out, "--format", form).stdout for out in ("here", "out")
        )
        assert here == there
    assert not living_with(mark)
    await until_jobs(slurm, 0, END_LIMIT_S)
    logs = {
        path.suffix: path.read_text() for path in (tmp_path / "out/cluster/slurm").glob(f"*-{playing[0]}.*")
    }
    assert "joined tls://127.0.0.1:" in logs[".out"]


@pytest.mark.long
async def test_jobs_leave_before_their_walltime_and_others_take_over(slurm: Slurm, tmp_path: Path) -> None:
    """Slurm counts a walltime in minutes, so this takes more than one."""
    bot, mark = slow_bot(tmp_path, tenths=6)  # its games take longer than one job
    short = TABLE.format(queue=QUEUE).replace("imum = 2", "imum = 1").replace("00:10:00", "00:01:00")
    cup = CUP.replace("rounds = 2", "rounds = 5")
    write_tournament(tmp_path, cup.format(slow=bot) + short)
    async with machine(tmp_path, "head", run_options("out", "--engine", "slurm")) as head:
        assert await head.ends(TWO_JOBS_LIMIT_S) == 0, head.said
    assert "Cup: 30 of 30 games\n" in head.said
    assert "lost" not in head.said  # no game was being played when a job ended
    assert not living_with(mark)
    await until_jobs(slurm, 0, END_LIMIT_S)
    logs = [path.read_text() for path in (tmp_path / "out/cluster/slurm").iterdir()]
    assert sum("joined tls://127.0.0.1:" in log for log in logs) >= 2
    assert not any("DUE TO TIME LIMIT" in log for log in logs)  # which slurmstepd writes of what it kills


def of_the_server() -> ServiceConfig:
    table = ServerClusterTable(engine="slurm", host="127.0.0.1", **SETTINGS.model_dump(exclude_unset=True))
    return replace(QUICK, cluster=table)


def state_of(harness: ServiceHarness, competition: Competition) -> CompetitionState:
    found = harness.course.competitions.get(competition.id)
    assert found is not None
    return found.state


async def test_the_server_has_jobs_while_it_plays_a_tournament(
    slurm: Slurm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tournaments.server.cluster.LINGER_S", 0.5)

    def seen() -> object:
        return slurm.command("squeue"), state_of(harness, made), harness.service.status()

    async with open_service(tmp_path / "data", of_the_server(), limit_s=4 * START_LIMIT_S) as harness:
        asked = spec(references=["first_legal", "greedy"], rounds=ROUNDS)
        made = await harness.service.tournaments.create_tournament(asked, None)
        for wanted in (CompetitionState.PAUSED, CompetitionState.FINISHED):
            assert jobs_of(slurm) == 0
            await harness.service.tournaments.start(made.id)
            if wanted is CompetitionState.PAUSED:
                await until_jobs(slurm, JOBS, START_LIMIT_S, seen)
                await harness.service.tournaments.pause(made.id)
            await becomes(
                partial(lambda wanted: state_of(harness, made) is wanted, wanted), START_LIMIT_S, seen
            )
            await until_jobs(slurm, 0, END_LIMIT_S, seen)
        with Store(harness.database.competition(made.slug), read_only=True) as store:
            assert len(store.played()) == 2 * ROUNDS
            assert all(store.record(key).host_speed for key in store.played())
        assert harness.service.status().failures == ()


NO_PROGRAM = (sys.executable, "-c", "raise SystemExit('no such luck')")


async def test_jobs_that_cannot_play_do_not_end_the_servers_scheduler(
    slurm: Slurm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tournaments.engines.remote.slurm.POLL_S", 0.3)
    async with open_service(tmp_path / "data", of_the_server(), limit_s=4 * START_LIMIT_S) as harness:
        asked = spec(references=["first_legal", "greedy"], rounds=1)
        made = await harness.service.tournaments.create_tournament(asked, None)
        with monkeypatch.context() as patched:
            patched.setattr("tournaments.engines.remote.slurm.KALARENA", NO_PROGRAM)
            await harness.service.tournaments.start(made.id)
            await becomes(lambda: bool(harness.service.status().failures), START_LIMIT_S)
        (failure,) = harness.service.status().failures
        assert failure.where == "jobs of Slurm"
        assert "ended before it could play: no such luck" in failure.why
        await becomes(lambda: state_of(harness, made) is CompetitionState.FINISHED, START_LIMIT_S)
        assert {failure.where for failure in harness.service.status().failures} == {"jobs of Slurm"}
    await until_jobs(slurm, 0, END_LIMIT_S)


@pytest.mark.parametrize(
    ("queue", "program", "why"),
    [
        ("nobodys", KALARENA, "sbatch: error: .*partition"),
        (QUEUE, NO_PROGRAM, r"job \d+ of Slurm ended before it could play: no such luck"),
    ],
)
async def test_jobs_that_cannot_play_are_told_of_and_end_the_tournament(
    cluster: Cluster,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    queue: str,
    program: tuple[str, ...],
    why: str,
) -> None:
    monkeypatch.setattr("tournaments.engines.remote.slurm.KALARENA", program)
    monkeypatch.setattr("tournaments.engines.remote.slurm.POLL_S", 0.3)
    credentials = Credentials(cluster.folder / "credentials")
    settings = SETTINGS.model_copy(update={"queue": queue})
    told: list[str] = []
    failure = pytest.RaisesExc(ClusterError, match=f"no job of Slurm can play: {why}")
    with trio.fail_after(START_LIMIT_S), pytest.RaisesGroup(failure):
        async with open_slurm_workers(cluster.address, credentials, settings, tmp_path, told.append):
            await trio.sleep_forever()
    assert len(told) == MOST_VAIN - 1
    assert all(re.search(why, sentence) for sentence in told)


async def test_no_job_is_left_when_the_scheduler_was_lost(slurm: Slurm, tmp_path: Path) -> None:
    logs = tmp_path / "jobs"
    with open_cluster(tmp_path, workers=0) as lost:
        jobs = Jobs(lost.address, Credentials(tmp_path / "credentials"), SETTINGS, logs)
        await until_jobs(slurm, JOBS, START_LIMIT_S)
    await trio.to_thread.run_sync(jobs.close)
    await until_jobs(slurm, 0, END_LIMIT_S)


async def test_a_machine_without_slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", os.fspath(tmp_path))
    credentials = Credentials.made(tmp_path / "credentials")
    with pytest.raises(ClusterError, match="sbatch was not found"):
        async with open_slurm_workers("tls://127.0.0.1:1", credentials, ClusterTable(), tmp_path, print):
            pass
