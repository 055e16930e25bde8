"""A worker with a limited lifetime leaves after its last game; jobs of Slurm are as many as games need."""

import asyncio
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest
from distributed import Status, Worker

from tests.support.builders import RUN_LIMIT_S
from tournaments.engines.remote.credentials import Credentials
from tournaments.engines.remote.extra import ClusterError
from tournaments.engines.remote.slurm import NOTHING, _AsManyAsGames, complaint, last_words
from tournaments.engines.remote.worker import lab_worker, worker_plugin
from tournaments.engines.remote.worker.worker_plugin import LONGER, NAME, SPARE_S, Lifetime, is_too_late

LIMIT_S = 120.0
GAME = (f"{NAME}-cup", "r001-1v2", "1")


@pytest.mark.parametrize(
    ("left_s", "longest_s", "late"),
    [
        (SPARE_S + 0.1, 0.0, False),
        (SPARE_S - 0.1, 0.0, True),
        (SPARE_S + 100.0 * LONGER, 100.0, False),
        (SPARE_S + 100.0, 100.0, True),
        (-1.0, 0.0, True),
    ],
)
def test_a_game_must_fit_into_what_is_left(left_s: float, longest_s: float, late: bool) -> None:
    assert is_too_late(left_s, longest_s) is late


@dataclass
class FakeWorker:
    """The attributes of a worker that the plugin uses."""

    status: Status = Status.running
    closed: list[bool] = field(default_factory=list)

    async def close_gracefully(self, restart: bool, reason: str) -> None:
        self.closed.append(restart)


async def becomes(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < until
        await asyncio.sleep(0.001)


def test_it_begins_no_more_games_ends_the_last_one_and_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_plugin, "LIFETIME_POLL_S", 0.001)
    worker = FakeWorker()

    async def live() -> None:
        plugin = Lifetime(time.time() + SPARE_S + 0.1)
        plugin.setup(cast("Worker", worker))
        plugin.transition(GAME, "ready", "executing")
        plugin.transition("something of Dask's", "ready", "executing")
        assert worker.status is Status.running
        await becomes(lambda: worker.status is Status.paused)
        for _ in range(100):
            await asyncio.sleep(0.001)
        assert worker.closed == []
        plugin.transition(GAME, "executing", "memory")
        await becomes(lambda: bool(worker.closed))

    asyncio.run(live())
    assert worker.closed == [False]  # and is not started again


def test_it_goes_by_the_longest_game_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_plugin, "LIFETIME_POLL_S", 0.001)
    now = 0.0
    worker = FakeWorker()

    async def live() -> None:
        nonlocal now
        plugin = Lifetime(10_000.0, lambda: now)
        plugin.setup(cast("Worker", worker))
        for length_s in (1000.0, 3000.0, 10.0):
            plugin.transition(GAME, "ready", "executing")
            now += length_s
            plugin.transition(GAME, "executing", "memory")
        for _ in range(100):
            await asyncio.sleep(0.001)
        assert worker.status is Status.running
        now = 10_000.0 - 3000.0 * LONGER - SPARE_S + 1.0
        await becomes(lambda: worker.status is Status.paused)
        plugin.teardown(cast("Worker", worker))

    asyncio.run(live())


def test_a_worker_that_does_not_start_in_time_is_one_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class SlowNanny:
        def __init__(self, *_arguments: object, **_options: object) -> None: ...

        async def start(self) -> None:
            raise AssertionError(Status.starting)  # as Dask does after ``death_timeout``

        async def close(self, **_options: object) -> None: ...

    monkeypatch.setattr(lab_worker, "Nanny", SlowNanny)
    credentials = Credentials.made(tmp_path / "credentials")
    with pytest.raises(ClusterError, match="tls://a:1 could not be joined: the worker did not start within"):
        asyncio.run(lab_worker._work("tls://a:1", credentials, {}, lambda: None, lambda: None))


# Jobs, without a Slurm


Games = Mapping[str, Sequence[str]]
"""Name of a worker -> games that it plays, or that wait there."""


class FakeCluster:
    """Fake of dask-jobqueue's cluster and of the scheduler; addresses are ``at NAME``."""

    def __init__(self, cores: int, games: Games, asked_for: Sequence[str] = ()) -> None:
        self.new_spec = {"options": {"cores": cores}}
        self.plan = {*games, *asked_for}
        self.scheduler_comm = self
        self.scheduler_info = {"workers": {f"at {name}": {"name": name} for name in games}}
        self._games = games

    async def processing(self) -> dict[str, Sequence[str]]:
        return {f"at {name}": games for name, games in self._games.items()}


IMPORT = """
import signal
before = signal.getsignal(signal.SIGINT)
import tournaments.engines.remote.slurm
assert signal.getsignal(signal.SIGINT) is before
"""


@pytest.mark.slow
def test_the_import_of_dask_jobqueue_changes_no_signal_handler() -> None:
    subprocess.run([sys.executable, "-c", IMPORT], check=True, timeout=RUN_LIMIT_S)


def rule(cluster: FakeCluster) -> Any:
    return _AsManyAsGames(cluster, interval=0)


@pytest.mark.parametrize(
    ("cores", "games", "jobs"),
    [
        (1, {}, 0),
        (1, {"a": ["1", "2"]}, 2),  # as many games again wait: twice as many jobs
        (1, {"a": ["1", "2"], "b": ["3", "4"]}, 4),
        (4, {"a": ["1", "2", "3"], "b": ["4", "5", "6"]}, 2),
        (4, {"a": ["1"], "b": ["2"], "c": []}, 2),  # two would do in one job, but are not taken from theirs
        (4, {"a": list("123456789")}, 3),
    ],
)
def test_as_many_jobs_as_games_need(cores: int, games: Games, jobs: int) -> None:
    assert asyncio.run(rule(FakeCluster(cores, games)).target()) == jobs


def test_only_jobs_without_a_game_are_ended() -> None:
    cluster = FakeCluster(4, {"a": ["1"], "b": [], "c": ["2"], "d": []}, asked_for=["e"])
    assert set(asyncio.run(rule(cluster).workers_to_close(2))) == {"b", "d"}
    assert len(asyncio.run(rule(cluster).workers_to_close(4))) == 1
    assert asyncio.run(rule(cluster).workers_to_close(5)) == []


def test_workers_that_are_no_jobs_of_ours_are_left_alone() -> None:
    cluster = FakeCluster(1, {"a": [], "somebody's": []})
    cluster.plan = {"a"}
    assert asyncio.run(rule(cluster).workers_to_close(0)) == ["a"]


def test_the_last_words_of_a_job(tmp_path: Path) -> None:
    assert last_words(tmp_path, "7") == NOTHING
    (tmp_path / "kalarena-7.out").write_text("lab-7: 4 cores\n")
    (tmp_path / "kalarena-7.err").write_text("\n")
    assert last_words(tmp_path, "7") == "lab-7: 4 cores"
    (tmp_path / "kalarena-7.err").write_text("Traceback\n" * 1000 + "Error: no place\n\n")
    assert last_words(tmp_path, "7") == "Error: no place"


def test_the_message_of_a_failed_command_of_slurm() -> None:
    text = "Command exited with non-zero exit code.\nExit code: 1\nCommand:\nsbatch x\nstdout:\n\nstderr:\n"
    assert complaint(f"{text}sbatch: error: invalid partition\nsbatch: error: no\n\n") == "sbatch: error: no"
    assert complaint("no room\n") == "no room"
