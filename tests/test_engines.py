"""Engines: contract, cancellation, lost workers.  Real processes throughout."""

import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import trio
import trio.testing

from referee.errors import RefereeError
from referee.judge.clock import TimeControl
from referee.judge.results import Player, Reason
from referee.play import Job, play_in_worker
from referee.sandbox.host_resources import usable_cores
from tests.builders import write_tournament
from tests.confinement import sandbox_of
from tests.test_faults import honest, living_processes_with
from tests.test_resume import descendants
from tournaments.config.load import load_tournament
from tournaments.engines.base import Engine, EngineError, OnSnapshot, OnStart
from tournaments.engines.local import open_local_engine
from tournaments.results.game_summary import GameSummary, PackedGame
from tournaments.results.store import Store
from tournaments.running.runner import MAX_ATTEMPTS, Observer, Run, play_all
from tournaments.schedule.pairing import Pairing

LIMIT_S = 60
"""Bound for what takes a second or two."""
LOOK_S = 0.01
"""How often it is looked for a process."""


@asynccontextmanager
async def engine(
    scratch: Path, concurrency: int | None = None, *, own_core: bool = False
) -> AsyncIterator[Engine]:
    with trio.fail_after(LIMIT_S):
        async with open_local_engine(scratch, concurrency, own_core=own_core) as opened:
            yield opened


def job(*players: Player, key: str = "r001-1v2") -> Job:
    return Job(key, "kalah(4,3)", (players[0], players[1]), TimeControl(move_s=5))


def noted(begun: list[str], key: str) -> OnStart:
    """What notes that a game has begun."""
    return lambda _host: begun.append(key)


async def test_a_game_is_played_in_another_process(tmp_path: Path) -> None:
    async with engine(tmp_path) as local:
        record = (await local.play(job(honest(), honest()))).record
    assert record.result.reason is Reason.SCORE
    assert record.key == "r001-1v2"
    assert list(tmp_path.iterdir()) == []


async def test_games_have_a_core_each_if_that_is_wanted(tmp_path: Path) -> None:
    cores = usable_cores()
    records = []
    async with engine(tmp_path, len(cores), own_core=True) as local, trio.open_nursery() as nursery:

        async def play(number: int) -> None:
            records.append((await local.play(job(honest(), honest(), key=str(number)))).record)

        for number in range(3 * len(cores)):
            nursery.start_soon(play, number)
    assert len(records) == 3 * len(cores)
    assert all(len(record.cores) == 1 for record in records)
    assert {record.cores[0] for record in records} == set(cores)


@pytest.mark.parametrize("own_core", [False, True])
async def test_otherwise_or_with_too_many_games_they_share_cores(tmp_path: Path, own_core: bool) -> None:
    async with engine(tmp_path, len(usable_cores()) + own_core, own_core=own_core) as local:
        record = (await local.play(job(honest(), honest()))).record
    assert record.cores == usable_cores()


async def test_games_give_way_if_that_is_wanted(tmp_path: Path) -> None:
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


async def test_a_game_begins_when_its_place_is_free(tmp_path: Path) -> None:
    """It is told then, not while it waits."""
    sleeper = Player("sleeper", ("/bin/sleep", f"{3600 + os.getpid() / 1e7:.7f}"), str(tmp_path))
    control = TimeControl(move_s=3600, start_s=3600)
    begun: list[str] = []
    async with engine(tmp_path, 2) as local:
        async with trio.open_nursery() as nursery:
            for key in ("a", "b", "c"):
                waiting = Job(key, "manchester", (sleeper, honest()), control)
                nursery.start_soon(local.play, waiting, noted(begun, key))
            await trio.testing.wait_all_tasks_blocked()
            assert len(begun) == 2
            nursery.cancel_scope.cancel()
        assert len(begun) == 2
        await local.play(job(honest(), honest()), noted(begun, "d"))
    assert begun[2:] == ["d"]


async def test_a_cancelled_game_is_given_up_and_its_bots_are_killed(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "alive")
    seconds = f"{3600 + os.getpid() / 1e7:.7f}"  # tells it from any other sleeper
    command = ("/bin/sh", "-c", f"echo yes > alive; exec sleep {seconds}")
    sleeper = Player("sleeper", command, str(tmp_path))
    control = TimeControl(move_s=3600, start_s=3600)
    async with engine(tmp_path) as local:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(local.play, Job("k", "manchester", (sleeper, honest()), control))
            assert await trio.to_thread.run_sync((tmp_path / "alive").read_text) == "yes\n"
            nursery.cancel_scope.cancel()
        assert living_processes_with(f"sleep {seconds}") == []
        # The worker lives on and plays the next game.
        assert (await local.play(job(honest(), honest()))).record.result.reason is Reason.SCORE


def test_a_job_whose_leash_is_gone_is_not_played(tmp_path: Path) -> None:
    with pytest.raises(RefereeError, match="is gone"):
        play_in_worker(job(honest(), honest()), str(tmp_path / "no-leash"))


def test_a_job_whose_leash_was_let_go_before_it_came_is_not_played(tmp_path: Path) -> None:
    """A named pipe that nobody holds open any more is never reported as hung up."""
    os.mkfifo(tmp_path / "leash")
    os.close(os.open(tmp_path / "leash", os.O_RDWR))
    with pytest.raises(RefereeError, match="is gone"):
        play_in_worker(job(honest(), honest()), str(tmp_path / "leash"))


def assassin(folder: Path) -> Path:
    """A bot that kills the process that started it."""
    program = folder / "assassin.py"
    program.write_text("import os, signal\nos.kill(os.getppid(), signal.SIGKILL)\n")
    return program


async def test_a_worker_that_dies_is_an_error_of_ours(tmp_path: Path) -> None:
    program = assassin(tmp_path)
    culprit = Player("assassin", (sys.executable, "-S", "-E", str(program)), str(tmp_path))
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    async with engine(scratch) as local:
        with pytest.raises(EngineError, match="died"):
            await local.play(job(culprit, honest()))
        assert (await local.play(job(honest(), honest()))).record.result.reason is Reason.SCORE


async def test_a_game_that_our_side_cannot_play_is_nobodys_loss(tmp_path: Path) -> None:
    assassin(tmp_path)
    path = write_tournament(tmp_path, 'game = "kalah(3,2)"\nbots = ["assassin.py", "greedy", "first_legal"]')
    tournament = load_tournament(path)
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

    class Counting:
        concurrency = 1

        def __init__(self, inner: Engine) -> None:
            self.inner = inner

        async def play(
            self, job: Job, on_start: OnStart | None = None, on_snapshot: OnSnapshot | None = None
        ) -> PackedGame:
            attempts.append(job.key)
            return await self.inner.play(job, on_start, on_snapshot)

    with Store(out / "results.db") as store:
        run = Run(tournament, store)
        async with engine(out, 1) as local:
            await play_all(run, Counting(local), out, Watching())
        assert {game.key for game in store.games()} == {"r001-2v3", "r001-3v2"}
    assert set(run.report.unplayed) == {"r001-1v2", "r001-2v1", "r001-1v3", "r001-3v1"}
    assert all(attempts.count(key) == MAX_ATTEMPTS for key in run.report.unplayed)
    assert run.report.missing == 4
    for key in attempts:
        ending = ("unplayed", key) if key in run.report.unplayed else ("ended", key)
        told = [("started", key)] * attempts.count(key) + [ending]
        assert [entry for entry in seen if entry[1] == key] == told


async def test_stale_leashes_of_a_killed_engine_are_removed(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "leash-1-1")
    async with engine(tmp_path):
        assert list(tmp_path.iterdir()) == []


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
        await becomes(lambda: not living_processes_with(f"sleep {seconds}"), 1.0)


def sleepers(seconds: str) -> list[str]:
    """The bot and its child; not the sandbox, whose command lines have the bot's in them."""
    return [line for line in living_processes_with(f"sleep {seconds}") if line.startswith("sleep ")]


async def becomes(condition: Callable[[], bool], within_s: float) -> None:
    """Wait for what no event tells of."""
    until = trio.current_time() + within_s
    while not condition():
        assert trio.current_time() < until
        await trio.sleep(LOOK_S)


def is_worker(pid: int, seconds: str) -> bool:
    """Whether it is a child of ours that plays this game: in our session, with the bot below it."""
    below = descendants(pid) if os.getsid(pid) == os.getsid(0) else []
    return any(f"sleep {seconds}" in command_line(child) for child in below)


def command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:  # it has ended
        return ""
