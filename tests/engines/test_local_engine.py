"""The engine of this machine: contract, cores, priority, cancel pipes, lost workers.  Real processes."""

import errno
import gc
import multiprocessing.util
import os
import re
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, nullcontext
from dataclasses import replace
from pathlib import Path

import pytest
import trio

from referee.errors import RefereeError
from referee.judge.clock import TimeControl
from referee.judge.results import Player, Reason
from referee.playing import Job, play_in_worker
from referee.process.subreaper import spare
from referee.sandbox.host_resources import usable_cores
from tests.engines.engine_contract import PLACES, EngineContract, Place, Sleeper, sleeper
from tests.engines.games import LIMIT_S, assassin, becomes, command_line, job
from tests.process.test_faults import honest
from tests.support.builders import write_tournament
from tests.support.confinement import sandbox_of
from tests.support.paths import SUPPORT
from tests.support.processes import command_lines_with, descendants, living_with
from tournaments.config.load import load_tournament
from tournaments.engines.base import Engine, EngineError, EngineWrapper, OnSnapshot, OnStart
from tournaments.engines.local import LocalEngine, open_local_engine
from tournaments.files import durable
from tournaments.processes.process_settings import GC_THRESHOLDS, SWITCH_S, prepare_for_many_games
from tournaments.results.game_summary import GameSummary, PackedGame
from tournaments.results.store import Store
from tournaments.running import runner
from tournaments.running.runner import MAX_ATTEMPTS, Observer, Run, play_all
from tournaments.schedule.pairing import Pairing

__all__ = ["sleeper"]

pytestmark = pytest.mark.usefixtures("started_workers")


class LocalPlace:
    """Worker processes of this process."""

    def __init__(self, scratch: Path) -> None:
        self._scratch = scratch

    @asynccontextmanager
    async def engine(self) -> AsyncIterator[Engine]:
        async with open_local_engine(self._scratch, PLACES) as engine:
            yield engine
        assert list(self._scratch.iterdir()) == []

    def kill_worker(self, seconds: str) -> None:
        (worker,) = [pid for pid in descendants(os.getpid()) if is_worker(pid, seconds)]
        os.kill(worker, signal.SIGKILL)


class TestLocal(EngineContract):
    @pytest.fixture
    def place(self, tmp_path: Path) -> Place:
        scratch = tmp_path / "scratch"
        scratch.mkdir()
        return LocalPlace(scratch)


@asynccontextmanager
async def engine(
    scratch: Path, concurrency: int | None = None, *, own_core: bool = False
) -> AsyncIterator[Engine]:
    with trio.fail_after(LIMIT_S):
        async with open_local_engine(scratch, concurrency, own_core=own_core) as opened:
            yield opened


@pytest.mark.slow
async def test_games_have_a_core_each_on_request(tmp_path: Path) -> None:
    cores = usable_cores()
    records = []
    async with engine(tmp_path, len(cores), own_core=True) as local, trio.open_nursery() as nursery:

        async def play(number: int) -> None:
            records.append((await local.play(job(key=str(number)))).record)

        for number in range(2 * len(cores)):
            nursery.start_soon(play, number)
    assert len(records) == 2 * len(cores)
    assert all(len(record.cores) == 1 for record in records)
    assert {record.cores[0] for record in records} == set(cores)


@pytest.mark.parametrize("own_core", [False, True])
async def test_games_share_cores_otherwise_or_if_there_are_too_many(tmp_path: Path, own_core: bool) -> None:
    async with engine(tmp_path, len(usable_cores()) + own_core, own_core=own_core) as local:
        record = (await local.play(job())).record
    assert record.cores == usable_cores()


async def test_games_have_a_lower_priority_on_request(tmp_path: Path) -> None:
    program = tmp_path / "bot.py"
    first_legal = honest().command[-1]
    program.write_text(
        "import os, runpy, sys\n"
        "print('nice', os.nice(0), file=sys.stderr, flush=True)\n"
        f"runpy.run_path({first_legal!r}, run_name='__main__')\n"
    )
    bot = Player("bot", (sys.executable, "-S", "-E", str(program)), str(tmp_path))
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    own = os.nice(0)
    with trio.fail_after(LIMIT_S):
        async with open_local_engine(scratch, 1, nice=7) as local:
            records = [(await local.play(job(bot, honest(), key=str(number)))).record for number in range(2)]
    assert [record.stderr[0] for record in records] == [f"nice {min(19, own + 7)}\n"] * 2
    assert all(record.result.reason is Reason.SCORE for record in records)


@pytest.mark.parametrize(
    "error",
    [OSError(errno.EAGAIN, "Resource temporarily unavailable"), RuntimeError("can't start new thread")],
    ids=["no process", "no thread"],
)
async def test_a_worker_that_cannot_be_started_is_a_failure_of_the_engine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fail(*_: object) -> int:
        raise error

    async with engine(tmp_path, 1) as local:
        assert isinstance(local, LocalEngine)
        with monkeypatch.context() as busy:
            busy.setattr(multiprocessing.util, "spawnv_passfds", fail)
            with pytest.raises(EngineError, match=f"could be started: {re.escape(str(error))}"):
                await local.check()
        await local.check()


def test_a_job_whose_cancel_pipe_is_gone_is_not_played(tmp_path: Path) -> None:
    with pytest.raises(RefereeError, match="is gone"):
        play_in_worker(job(), str(tmp_path / "no-pipe"))


def test_a_job_whose_cancel_pipe_was_closed_before_is_not_played(tmp_path: Path) -> None:
    """A named pipe without a writer is never reported as hung up."""
    os.mkfifo(tmp_path / "pipe")
    os.close(os.open(tmp_path / "pipe", os.O_RDWR))
    with pytest.raises(RefereeError, match="is gone"):
        play_in_worker(job(), str(tmp_path / "pipe"))


@pytest.mark.slow
async def test_a_game_that_our_side_cannot_play_is_nobodys_loss(tmp_path: Path) -> None:
    assassin(tmp_path)
    text = (
        'game = "kalah(3,2)"\nbots = ["assassin.py", "greedy", "first_legal"]\n'
        'format = {kind = "gauntlet", challengers = ["first_legal"]}\nsandbox = {mode = "off"}\n'
    )
    tournament = load_tournament(write_tournament(tmp_path, text))
    out = tmp_path / "out"
    out.mkdir()
    attempts: list[str] = []
    seen: list[tuple[str, str]] = []

    class Watching(Observer):
        def started(self, _pairing: Pairing, key: str, host: str = "") -> None:
            seen.append(("started", key))

        def ended(self, pairing: Pairing, game: GameSummary, host: str = "") -> None:
            assert {kept.key for kept in store.games()} >= {pairing.key}
            seen.append(("ended", game.key))

        def unplayed(self, pairing: Pairing, why: str) -> None:
            assert "died" in why
            seen.append(("unplayed", pairing.key))

    class Counting(EngineWrapper):
        async def play(
            self, job: Job, on_start: OnStart | None = None, on_snapshot: OnSnapshot | None = None
        ) -> PackedGame:
            attempts.append(job.key)
            return await super().play(job, on_start, on_snapshot)

    with Store(out / "results.db") as store:
        run = Run(tournament, store)
        async with engine(out, 1) as local:
            await play_all(run, Counting(local), out, Watching())
        assert {game.key for game in store.games()} == {"r001-2v3", "r001-3v2"}
    assert set(run.report.unplayed) == {"r001-1v3", "r001-3v1"}
    assert all(attempts.count(key) == MAX_ATTEMPTS for key in run.report.unplayed)
    assert run.report.missing == 2
    for key in attempts:
        ending = ("unplayed", key) if key in run.report.unplayed else ("ended", key)
        told = [("started", key)] * attempts.count(key) + [ending]
        assert [entry for entry in seen if entry[1] == key] == told


async def test_the_pipes_of_a_killed_engine_are_removed(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "leash-1-1")
    async with engine(tmp_path):
        assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize("tier", ["bare", "weak", "confined"])
async def test_the_bots_of_a_worker_that_was_killed_are_found(tmp_path: Path, tier: str) -> None:
    sandbox = sandbox_of(tier)
    (tmp_path / "bot").mkdir()
    seconds = f"{3500 + os.getpid() / 1e7:.7f}"
    # It stays when its input ends, and so does the child that leaves its group.
    script = f"setsid sleep {seconds} & exec sleep {seconds}"
    sleeper = Player(
        "sleeper", ("/bin/sh", "-c", script), str(tmp_path / "bot"), reads=(str(tmp_path / "bot"),)
    )
    control = TimeControl(move_s=3600, start_s=3600)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    async with engine(scratch) as local:
        async with trio.open_nursery() as nursery:

            async def play() -> None:
                other = replace(honest(), reads=(honest().command[-1],))  # seen in the sandbox, too
                with pytest.raises(EngineError, match="died"):
                    await local.play(Job("k", "manchester", (sleeper, other), control, sandbox=sandbox))

            nursery.start_soon(play)
            await becomes(lambda: len(sleepers(seconds)) == 2, LIMIT_S)
            (worker,) = [pid for pid in descendants(os.getpid()) if is_worker(pid, seconds)]
            os.kill(worker, signal.SIGKILL)
        await becomes(lambda: not command_lines_with(f"sleep {seconds}"), LIMIT_S)


async def test_a_lost_worker_does_not_end_the_programs_of_its_caller(
    tmp_path: Path, sleeper: Sleeper
) -> None:
    """A notebook has such children, and a server with a cluster has its scheduler."""
    (tmp_path / "scratch").mkdir()
    programs = [own_program()]
    try:
        async with engine(tmp_path / "scratch") as local:
            programs.append(own_program())
            with spare(programs[1].pid):
                async with trio.open_nursery() as nursery:

                    async def play() -> None:
                        with pytest.raises(EngineError, match="died"):
                            await local.play(sleeper.job())

                    nursery.start_soon(play)
                    await becomes(lambda: sleeper.count() == 1, LIMIT_S)
                    (worker,) = [pid for pid in descendants(os.getpid()) if is_worker(pid, sleeper.seconds)]
                    os.kill(worker, signal.SIGKILL)
        assert [program.poll() for program in programs] == [None, None]
    finally:
        for program in programs:
            program.kill()
            program.wait()


def own_program() -> subprocess.Popen[bytes]:
    """A program in a session of its own, as a shell in a notebook or a cluster's scheduler is."""
    return subprocess.Popen(["sleep", "1000"], start_new_session=True)


def sleepers(seconds: str) -> list[str]:
    """The bot and its child; not the sandbox, whose command lines have the bot's in them."""
    return [line for line in command_lines_with(f"sleep {seconds}") if line.startswith("sleep ")]


def is_worker(pid: int, seconds: str) -> bool:
    """Return True for a child in our session that plays this game, with the bot below it."""
    below = descendants(pid) if os.getsid(pid) == os.getsid(0) else []
    return any(f"sleep {seconds}" in command_line(child) for child in below)


@pytest.fixture
def usual_garbage_collection() -> Iterator[None]:
    """Python's own thresholds, which tests/conftest.py changes."""
    thresholds = gc.get_threshold()
    gc.set_threshold(700, 10, 10)
    yield
    gc.set_threshold(*thresholds)


@pytest.mark.usefixtures("usual_garbage_collection")
@pytest.mark.parametrize("error", [None, KeyboardInterrupt()])
def test_the_interpreter_has_other_settings_for_many_games_only(error: BaseException | None) -> None:
    def settings() -> tuple[object, float]:
        return gc.get_threshold(), sys.getswitchinterval()

    before = settings()
    with pytest.raises(KeyboardInterrupt) if error else nullcontext(), prepare_for_many_games():
        assert settings()[0] == GC_THRESHOLDS != before[0]
        assert settings()[1] == pytest.approx(SWITCH_S)
        assert settings()[1] < before[1]
        if error is not None:
            raise error
    assert settings() == before


async def test_an_unexpected_error_is_one_of_the_game_alone(tmp_path: Path) -> None:
    """No parser of spec texts knows this game: an error that no engine expects."""
    async with engine(tmp_path, 1) as local:
        with pytest.raises(RefereeError, match="unexpected SpecError: "):
            await local.play(replace(job(), game="no-such-game"))
        assert (await local.play(job())).summary.reason is Reason.SCORE


async def test_what_a_game_leaves_behind_is_reported_beside_its_result(tmp_path: Path) -> None:
    """A bot that its own descendant traces: the worker can reap neither before it has ended the other."""
    mark = f"mark-{os.getpid()}-{tmp_path.name}"
    command = (sys.executable, "-S", "-E", str(SUPPORT / "traced_bot.py"), mark, "nonsense")
    traced = Player("traced", command, str(tmp_path))
    with trio.fail_after(LIMIT_S):
        async with engine(tmp_path, 1) as local:
            game = await local.play(job(traced, honest()))
            assert living_with(mark) == []
    assert (game.summary.winner, game.summary.reason) == (1, Reason.PROTOCOL)
    assert game.warnings == game.record.warnings
    assert [warning.split(" of ")[1].split()[0] for warning in game.warnings] == ["traced"]


async def played_tournament(folder: Path, wrap: Callable[[Engine], Engine] = lambda engine: engine) -> Run:
    """Play a tournament of two games into the folder ``out``."""
    text = 'game = "kalah(1,1)"\nbots = ["greedy", "first_legal"]\nsandbox = {mode = "off"}\n'
    tournament = load_tournament(write_tournament(folder, text))
    out = folder / "out"
    out.mkdir()
    with Store(out / "results.db") as store:
        run = Run(tournament, store)
        async with engine(out, 1) as local:
            await play_all(run, wrap(local), out)
    return run


async def test_a_run_reports_what_failed_after_a_verdict(tmp_path: Path) -> None:
    class WarningEngine(EngineWrapper):
        async def play(
            self, job: Job, on_start: OnStart | None = None, on_snapshot: OnSnapshot | None = None
        ) -> PackedGame:
            return replace(await super().play(job, on_start, on_snapshot), warnings=("a process is left",))

    run = await played_tournament(tmp_path, WarningEngine)
    assert run.report.played == len(run.report.warnings) == 2
    assert set(run.report.warnings.values()) == {("a process is left",)}


async def test_all_files_of_games_are_on_the_disk_when_a_run_has_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tournament that is over has no next run that would repair them after a power cut."""
    synchronized: list[set[str]] = []

    def sync_filesystem(folder: Path) -> None:
        synchronized.append({str(path.relative_to(folder)) for path in folder.glob("games/*/*")})
        durable.sync_filesystem(folder)

    monkeypatch.setattr(runner, "sync_filesystem", sync_filesystem)
    run, out = await played_tournament(tmp_path), tmp_path / "out"
    written = {str(path.relative_to(out)) for path in out.glob("games/*/*")}
    assert len({name.split("/")[1] for name in written}) == run.report.played == 2
    assert synchronized[-1] == written
