"""Games on the workers of Dask: the contract, lost processes, pairs, bots that are sent.  Real processes."""

import contextlib
import gc
import os
import re
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import trio
import trio.testing

from referee.games.plugins import GAMES_VARIABLE
from referee.judge.replay_check import check_replay
from referee.judge.results import GameRecord, Player, Reason
from tests.engines.cluster_node import SPEED
from tests.engines.clusters import Cluster, open_cluster
from tests.engines.engine_contract import (
    LIMIT_S,
    PLACES,
    EngineContract,
    Place,
    Sleeper,
    most_at_a_time,
    sleeper,
)
from tests.engines.games import becomes, job, noted, unhurried
from tests.process.test_faults import honest
from tests.support.paths import REPOSITORY_ROOT
from tests.support.processes import GONE_WITHIN_S, descendants, living_with
from tournaments.bots.resolve import resolve_bot
from tournaments.engines.base import Engine, EngineError, WorkerLostError
from tournaments.engines.remote.extra import ClusterError
from tournaments.engines.remote.head import dask_engine, head
from tournaments.engines.remote.worker.game_process import FAILURE

__all__ = ["sleeper"]

SPEEDS = {SPEED, SPEED + 1}
"""Of the two hosts, which is how a record tells them apart."""
HEAD = """
import sys, trio
from pathlib import Path
from tests.engines.clusters import Cluster
from tests.engines.engine_contract import Sleeper

async def play():
    async with Cluster(Path(sys.argv[1]), 1).engine("killed") as engine:
        bot = Sleeper(Path(sys.argv[2]), sys.argv[3])
        await engine.play(bot.job())

trio.run(play)
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with open_cluster(tmp_path_factory.mktemp("cluster"), workers=PLACES) as opened:
        yield opened


def loop_threads() -> list[str]:
    """Return the names of the threads with event loops of asyncio; a server would gather them."""
    return [thread.name for thread in threading.enumerate() if re.search("asyncio|loop", thread.name, re.I)]


async def test_a_game_is_played_on_a_worker(tmp_path: Path) -> None:
    """The one test of the quick tier with a scheduler and a worker."""
    with open_cluster(tmp_path, workers=1) as cluster, trio.fail_after(LIMIT_S):
        async with cluster.engine() as engine:
            record = (await engine.play(job())).record
        assert loop_threads() == []
    assert record.result.reason is Reason.SCORE
    assert record.host_speed == SPEED


@pytest.mark.cluster
async def test_a_worker_plays_a_game_of_a_file_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, game_catalog: None
) -> None:
    oware = REPOSITORY_ROOT / "tournaments" / "examples" / "games" / "oware.py"
    monkeypatch.setenv(GAMES_VARIABLE, str(oware))
    bot = resolve_bot("first_legal", tmp_path, game="oware")
    with open_cluster(tmp_path, workers=1) as cluster, trio.fail_after(LIMIT_S):
        async with cluster.engine() as engine:
            record = (await engine.play(replace(job(bot, bot), game="oware"))).record
    assert record.game == "oware"
    assert record.result.reason is Reason.SCORE, record.result.detail
    assert not check_replay(record)


class ClusterPlace:
    """Workers of Dask."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def engine(self) -> AbstractAsyncContextManager[Engine]:
        return self._cluster.engine()

    def kill_worker(self, seconds: str) -> None:
        os.kill(self._cluster.process_that_plays(f"sleep {seconds}", "worker"), signal.SIGKILL)


@pytest.mark.cluster
class TestDask(EngineContract):
    @pytest.fixture
    def place(self, cluster: Cluster) -> Place:
        return ClusterPlace(cluster)


@pytest.mark.cluster
async def test_a_bot_that_was_ended_with_its_worker_does_not_lose(cluster: Cluster, sleeper: Sleeper) -> None:
    """A batch system ends a job's processes one by one; here the bot long before the referee."""
    begun = trio.Event()
    with trio.fail_after(LIMIT_S):
        async with cluster.engine() as engine, trio.open_nursery() as nursery:

            async def play() -> None:
                with pytest.raises(EngineError, match="died"):
                    await engine.play(sleeper.job(), lambda _: begun.set())

            nursery.start_soon(play)
            await begun.wait()
            await becomes(lambda: sleeper.count() == 1, LIMIT_S)
            referee = cluster.process_that_plays(sleeper.seconds, "game")
            for pid in living_with(sleeper.seconds):
                with contextlib.suppress(ProcessLookupError):  # it has ended with another one
                    os.kill(pid, signal.SIGTERM)
            await becomes(lambda: not descendants(referee), LIMIT_S)
            os.kill(referee, signal.SIGTERM)


@pytest.mark.kill
@pytest.mark.cluster
async def test_the_games_of_a_killed_head_end(cluster: Cluster, sleeper: Sleeper, tmp_path: Path) -> None:
    command = [sys.executable, "-c", HEAD, str(cluster.folder), str(tmp_path), sleeper.seconds]
    run = partial(trio.run_process, command, cwd=REPOSITORY_ROOT, check=False)
    with trio.fail_after(LIMIT_S):
        async with trio.open_nursery() as nursery:
            head = await nursery.start(run)
            await becomes(lambda: sleeper.count() == 1, LIMIT_S)
            head.kill()
    await becomes(lambda: not living_with(sleeper.seconds), GONE_WITHIN_S)


@pytest.mark.cluster
@pytest.mark.parametrize("limit", [None, 2])
async def test_the_games_of_a_pair_are_played_on_one_host_and_no_host_waits_for_it(
    cluster: Cluster, limit: int | None
) -> None:
    records: list[GameRecord] = []
    with trio.fail_after(LIMIT_S):
        async with cluster.engine(concurrency=limit) as engine, trio.open_nursery() as nursery:

            async def play(pair: str, game: int) -> None:
                asked = replace(job(unhurried(), key=f"{pair}.{game}"), pair=pair)
                records.append((await engine.play(asked)).record)

            for number in range(4):
                for game in (1, 2):
                    nursery.start_soon(play, f"pair-{number}", game)
    hosts: dict[str, set[float | None]] = {}
    for record in records:
        hosts.setdefault(record.key.partition(".")[0], set()).add(record.host_speed)
    assert [len(where) for where in hosts.values()] == [1] * 4
    assert set.union(*hosts.values()) == SPEEDS
    assert most_at_a_time(records) == 2


@pytest.mark.cluster
async def test_a_worker_that_leaves_reports_the_end_of_its_game(cluster: Cluster, sleeper: Sleeper) -> None:
    begun: list[str] = []
    with trio.fail_after(LIMIT_S):
        async with cluster.engine() as engine, trio.open_nursery() as nursery:

            async def play() -> None:
                # Not that it was lost, which Dask tells of after it has had the game played elsewhere.
                with pytest.raises(WorkerLostError, match="this worker was ended"):
                    await engine.play(sleeper.job(), noted(begun, "once"))

            nursery.start_soon(play)
            await becomes(lambda: begun == ["once"] and sleeper.count() == 1, LIMIT_S)
            left = cluster.host_that_plays(sleeper.seconds)
            await trio.to_thread.run_sync(cluster.leave, left)
    cluster.add_worker(left)
    assert (begun, sleeper.count()) == (["once"], 0)


def built_by(compiler: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Player:
    """Return a bot whose build needs ``compiler``, which is not on the PATH of other hosts."""
    for made in (compiler.parent, folder):
        made.mkdir()
    compiler.write_text("#!/bin/sh\ncp source.c program.py\n")
    compiler.chmod(0o755)
    (folder / "source.c").write_text(Path(honest().command[-1]).read_text())
    (folder / "bot.toml").write_text(
        f'command = "python3 -S -E program.py"\nbuild = "{compiler.name}"\nmade = ["program.py"]\n'
    )
    with monkeypatch.context() as patched:
        patched.setenv("PATH", str(compiler.parent), prepend=os.pathsep)
        return resolve_bot(str(folder), folder, "anna", "kalah(4,3)")


@pytest.mark.cluster
@pytest.mark.parametrize("shares", [False, True])
async def test_a_host_without_a_program_plays_the_other_bots(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shares: bool
) -> None:
    """A missing program does not count as a failed attempt, and is reported once.

    Of two games that begin at once, each host gets one.  In between, a host may be too slow to get any.
    """
    bot = built_by(tmp_path / "bin" / "rexx", tmp_path / "bot", monkeypatch)
    await trio.to_thread.run_sync(cluster.leave, 1)
    cluster.add_worker(1, path=tmp_path / "bin")
    refused: list[str] = []
    speeds: dict[Player, set[float | None]] = {bot: set(), unhurried(): set()}
    with trio.fail_after(LIMIT_S):
        async with cluster.engine(f"rexx-{shares}", shares=shares, refused=refused.append) as engine:

            async def play(player: Player, key: str) -> None:
                speeds[player].add((await engine.play(job(player, key=key))).record.host_speed)

            for part, players in enumerate(([bot] * PLACES, [*speeds] * 2, [unhurried()] * PLACES)):
                async with trio.open_nursery() as nursery:
                    for number, player in enumerate(players):
                        nursery.start_soon(play, player, f"{part}-{number}")
            await becomes(lambda: bool(refused), LIMIT_S)
    assert [*speeds.values()] == [{SPEED + 1}, SPEEDS]
    assert refused == ["host-0 lacks rexx, and anna needs that: install it there"]


@pytest.mark.cluster
async def test_a_game_that_no_host_can_play_is_an_error(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(head, "JOINING_S", 1.0)
    bot = built_by(tmp_path / "bin" / "nobody-has-this", tmp_path / "bot", monkeypatch)
    with trio.fail_after(LIMIT_S):
        async with cluster.engine() as engine:
            with pytest.raises(EngineError, match=r"game r001-1v2: host-\d lacks nobody-has-this, and anna"):
                await engine.play(job(bot))


@pytest.mark.cluster
async def test_a_bot_is_sent_and_built_once_on_each_host(cluster: Cluster, tmp_path: Path) -> None:
    built = tmp_path / "built"
    folder = tmp_path / "bot"
    folder.mkdir()
    (folder / "source.c").write_text(Path(honest().command[-1]).read_text())
    (folder / "make").write_text(f"#!/bin/sh\ncp source.c program.py\necho built >> {built}\n")
    (folder / "make").chmod(0o755)
    (folder / "bot.toml").write_text(
        'command = "python3 -S -E program.py"\nbuild = "./make"\nmade = ["program.py"]\n'
    )
    bot = resolve_bot(str(folder), tmp_path, "traveller", "kalah(4,3)")
    assert built.read_text() == "built\n"
    records: list[GameRecord] = []
    with trio.fail_after(LIMIT_S):
        async with cluster.engine() as engine:

            async def play(key: str) -> None:
                records.append((await engine.play(job(bot, honest(), key=key))).record)

            await play("here")
            folder.rename(tmp_path / "moved")  # from now on it can only be had from the scheduler
            async with trio.open_nursery() as nursery:
                for number in range(6):
                    nursery.start_soon(play, f"away-{number}")
    assert [record.result.reason for record in records] == [Reason.SCORE] * 7
    assert {record.players[0] for record in records} == {bot}
    assert built.read_text() == "built\n" * (1 + len(cluster.workers))


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        (FAILURE + "no café here".encode(), "game g1: no café here"),
        (FAILURE + b"\xff", "game g1: \N{REPLACEMENT CHARACTER}"),
        (b"", "game g1: "),
    ],
)
def test_a_reply_that_is_no_game_is_an_error_of_ours(reply: bytes, why: str) -> None:
    with pytest.raises(EngineError, match=re.escape(why)):
        dask_engine.read_reply("g1", reply)


@pytest.mark.cluster
async def test_a_scheduler_cannot_be_reached_without_its_credentials(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dask_engine, "CONNECT_LIMIT_S", 1)
    with trio.fail_after(LIMIT_S), pytest.raises(ClusterError, match="cannot be reached"):
        async with dask_engine.open_dask_engine(cluster.address.replace("tls://", "tcp://"), "plain"):
            pass
    assert loop_threads() == []


@pytest.mark.filterwarnings("error")
async def test_an_engine_that_is_cancelled_while_it_connects_leaves_nothing_to_be_collected() -> None:
    """Dask's client would close itself when it is collected, by a coroutine that no loop runs any more."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        with trio.move_on_after(0.5) as waiting:
            async with dask_engine.open_dask_engine(f"tcp://127.0.0.1:{silent.getsockname()[1]}", "silent"):
                pass
        assert waiting.cancelled_caught
    assert loop_threads() == []
    unraisable: list[object] = []
    hook, sys.unraisablehook = sys.unraisablehook, unraisable.append
    try:
        gc.collect()
    finally:
        sys.unraisablehook = hook
    assert unraisable == []
