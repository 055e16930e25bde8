"""The hub of live games: the newest state of each game for its watchers, who never wait for one another."""

import os
import sys
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest
import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st

from referee.errors import RefereeError
from referee.judge.clock import TimeControl
from referee.judge.results import Player
from referee.live_feed import Move, Snapshot
from referee.playing import Job
from tests.process.test_faults import honest
from tests.server.harness import STARTER, FakeEngine
from tests.support.builders import make_player, make_record
from tests.support.courses import NOW
from tests.support.random_games import random_game
from tournaments.engines.local import open_local_engine
from tournaments.server import live_hub
from tournaments.server.live_hub import Channel, Hub, LiveGame, TooManyWatchersError, WatchedEngine

pytestmark = pytest.mark.any_database

LIMIT_S = 240


class ClockedHub(Hub):
    """A hub under a clock that stands, with games of two players."""

    def __init__(self) -> None:
        self.at = NOW
        super().__init__(self._time)

    def _time(self) -> datetime:
        return self.at

    def wait(self, seconds: float) -> None:
        self.at += timedelta(seconds=seconds)

    def start(self, key: str = "g1", competition: str = "practice") -> Channel:
        return self.started(competition, job(key))


@pytest.fixture
def hub() -> ClockedHub:
    return ClockedHub()


def job(key: str = "g1") -> Job:
    return Job(key, "kalah(4,3)", (make_player("Ada"), make_player("Bob")), TimeControl(move_s=1))


def snapshot(offset: int, *moves: str, over: str | None = None) -> Snapshot:
    return Snapshot(offset, tuple(Move(move, 7) for move in moves), (1000, 900), 1, over)


def known(hub: Hub) -> LiveGame:
    game = hub.game("practice", "g1")
    assert game is not None
    return game


async def next_of(games: AsyncIterator[LiveGame]) -> LiveGame:
    with trio.fail_after(LIMIT_S):
        return await anext(games)


# The state of a game


def test_a_game_is_known_from_its_start_to_a_while_after_its_end(hub: ClockedHub) -> None:
    channel = hub.start()
    (game,) = hub.playing()
    assert (game.competition, game.key, game.first, game.second) == ("practice", "g1", "Ada", "Bob")
    assert (game.started_at, game.moves, game.clocks_ms) == (NOW, (), None)
    hub.wait(2)
    channel.snapshot(snapshot(0, "1", "2"))
    channel.snapshot(snapshot(2, "3"))
    game = known(hub)
    assert (game.moves, game.charged_us, game.clocks_ms) == (("1", "2", "3"), (7, 7, 7), (1000, 900))
    assert game.turn_at == NOW + timedelta(seconds=2)
    record = random_game("kalah(4,3)")
    channel.ended(record)
    assert hub.playing() == []
    hub.wait(live_hub.ENDED_STAYS_S - 1)
    game = known(hub)
    assert game.moves == tuple(move.move for move in record.moves)
    assert (game.over, game.kept) == (record.result.detail, True)
    channel.snapshot(snapshot(len(game.moves), "5"))
    channel.failed("late")
    assert known(hub) is game, "nothing changes after the end"
    hub.wait(2)
    assert hub.game("practice", "g1") is None
    assert hub.games() == []


def test_the_verdict_is_known_before_the_record(hub: ClockedHub) -> None:
    channel = hub.start()
    channel.snapshot(snapshot(0, "1", over="Ada won"))
    (game,) = hub.playing()
    assert (game.over, game.kept) == ("Ada won", None)
    channel.failed("given up")
    assert hub.playing() == []
    assert (known(hub).over, known(hub).kept) == ("given up", False)


@pytest.mark.parametrize("offset", [1, 3])
def test_a_snapshot_that_does_not_follow_is_ignored(hub: ClockedHub, offset: int) -> None:
    channel = hub.start()
    channel.snapshot(snapshot(0, "1", "2"))
    channel.snapshot(snapshot(offset, "5"))
    assert channel.game.moves == ("1", "2")


def test_games_of_different_competitions_are_independent(hub: ClockedHub) -> None:
    one, other = hub.start("g1", "one"), hub.start("g1", "other")
    one.snapshot(snapshot(0, "1"))
    other.failed("gone")
    assert [(game.competition, game.moves) for game in hub.playing()] == [("one", ("1",))]


def test_a_game_that_is_started_again_replaces_the_first_attempt(hub: ClockedHub) -> None:
    first, second = hub.start(), hub.start()
    first.snapshot(snapshot(0, "1"))
    assert [game.moves for game in hub.playing()] == [()]
    second.snapshot(snapshot(0, "4"))
    assert first.game.kept is False
    assert [game.moves for game in hub.playing()] == [("4",)]


def test_a_limited_number_of_ended_games_is_kept(hub: ClockedHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_hub, "MOST_ENDED", 3)
    running = hub.start("first")
    for number in range(10):
        hub.wait(0.01)
        hub.start(str(number)).failed("over")
    hub.wait(0.01)
    assert [game.key for game in hub.games()] == ["first", "7", "8", "9"]
    assert hub.playing() == [running.game]


@given(st.lists(st.sampled_from(["start", "move", "end", "fail", "wait"]), max_size=40))
def test_the_running_games_are_those_that_have_not_ended(steps: list[str]) -> None:
    hub = ClockedHub()
    channels: list[Channel] = []
    running: list[str] = []
    for number, step in enumerate(steps):
        if step == "start":
            channels.append(hub.start(str(number)))
            running.append(str(number))
        elif step == "wait":
            hub.wait(live_hub.ENDED_STAYS_S / 3)
        elif channels:
            channel = channels[number % len(channels)]
            if step == "move":
                channel.snapshot(snapshot(len(channel.game.moves), "1"))
            else:
                channel.ended(make_record()) if step == "end" else channel.failed("over")
                running = [key for key in running if key != channel.game.key]
        assert [game.key for game in hub.playing()] == running
        assert {game.key for game in hub.games()} >= set(running)


# Watchers


async def test_a_watcher_gets_each_state_until_the_end(
    hub: ClockedHub, autojump_clock: trio.abc.Clock
) -> None:
    channel = hub.start()
    with hub.watch_game("practice", "g1") as games:
        assert (await next_of(games)).moves == ()
        began = trio.current_time()
        channel.snapshot(snapshot(0, "1"))
        assert (await next_of(games)).moves == ("1",)
        assert trio.current_time() - began == pytest.approx(live_hub.GAME_INTERVAL_S)
        async with trio.open_nursery() as nursery:

            async def end_later() -> None:
                await trio.sleep(5)
                channel.ended(make_record())

            nursery.start_soon(end_later)
            assert (await next_of(games)).kept
        with pytest.raises(StopAsyncIteration):
            await anext(games)


async def test_a_slow_watcher_misses_states_but_never_the_newest(
    hub: ClockedHub, autojump_clock: trio.abc.Clock
) -> None:
    channel = hub.start()
    seen = []
    with hub.watch_game("practice", "g1") as games:
        async with trio.open_nursery() as nursery:

            async def play() -> None:
                for number in range(100):
                    channel.snapshot(snapshot(number, "1"))
                    await trio.sleep(0.01)
                channel.failed("over")

            nursery.start_soon(play)
            began = trio.current_time()
            async for game in games:
                seen.append(len(game.moves))
                await trio.sleep(0.3)
    assert seen[-1] == 100
    assert seen == sorted(seen)
    assert len(seen) < 10
    assert trio.current_time() - began < 3


async def test_a_watcher_gets_the_verdict_of_a_game_that_is_dropped(
    hub: ClockedHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_hub, "MOST_ENDED", 0)
    channel = hub.start()
    with hub.watch_game("practice", "g1") as games:
        channel.failed("given up")
        assert hub.game("practice", "g1") is None
        assert (await next_of(games)).over == "given up"


async def test_the_list_changes_when_games_start_and_end(
    hub: ClockedHub, autojump_clock: trio.abc.Clock
) -> None:
    with hub.watch_list() as lists, trio.fail_after(10 * LIMIT_S):
        assert (await anext(lists)).games == ()
        channel = hub.start("g1")
        assert [game.key for game in (await anext(lists)).games] == ["g1"]
        channel.snapshot(snapshot(0, "1"))
        with trio.move_on_after(LIMIT_S) as waiting:  # a move does not change the list
            await anext(lists)
        assert waiting.cancelled_caught
        hub.start("g2")
        assert [game.key for game in (await anext(lists)).games] == ["g1", "g2"]
        began = trio.current_time()
        channel.ended(make_record())
        assert [game.key for game in (await anext(lists)).games] == ["g2"]
        assert trio.current_time() - began == pytest.approx(live_hub.LIST_INTERVAL_S)
        before = hub.now_playing().standings
        hub.standings_changed()
        assert (await anext(lists)).standings != before


def test_the_number_of_watchers_is_limited(hub: ClockedHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_hub, "MOST_WATCHERS", 3)
    monkeypatch.setattr(live_hub, "MOST_OF_GAME", 2)
    one, other = hub.start("g1").game, hub.start("g2").game
    with hub.watch_game("practice", "g1"), hub.watch_game("practice", "g1"):
        assert (hub.has_room(one), hub.has_room(other)) == (False, True)
        with pytest.raises(TooManyWatchersError), hub.watch_game("practice", "g1"):
            pass
        with hub.watch_list():
            with pytest.raises(TooManyWatchersError), hub.watch_game("practice", "g2"):
                pass
            with pytest.raises(TooManyWatchersError), hub.watch_list():
                pass
    assert hub.watchers == 0
    with pytest.raises(KeyError), hub.watch_game("other", "g1"):
        pass


async def test_cancelled_watchers_leave_nothing(hub: ClockedHub) -> None:
    hub.start()

    async def watch() -> None:
        with hub.watch_game("practice", "g1") as games:
            async for _ in games:
                pass

    async with trio.open_nursery() as nursery:
        for _ in range(20):
            nursery.start_soon(watch)
        await trio.testing.wait_all_tasks_blocked()
        assert hub.watchers == 20
        nursery.cancel_scope.cancel()
    assert hub.watchers == 0


# Engines


WAITS = "import runpy, sys; open(sys.argv[1]).read(); runpy.run_path(sys.argv[2], run_name='__main__')"
"""A bot that begins to play when somebody writes to a named pipe."""


async def test_a_real_game_is_watched_while_it_is_played(hub: ClockedHub, tmp_path: Path) -> None:
    states: list[LiveGame] = []
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    command = (sys.executable, "-c", WAITS, str(gate), str(STARTER / "bot.py"))
    waits = Player("waits", command, str(tmp_path))
    real = Job("g1", "kalah(6,6)", (waits, honest()), TimeControl(move_s=60))
    async with open_local_engine(tmp_path, 1) as engine, trio.open_nursery() as nursery:
        watched = WatchedEngine(engine, hub, "practice")
        assert watched.concurrency == 1

        async def watch() -> None:
            with hub.watch_game("practice", "g1") as games:
                states.append(await anext(games))
                await trio.to_thread.run_sync(gate.write_text, "watched", abandon_on_cancel=True)
                states.extend([game async for game in games])

        def begin(_host: str) -> None:
            assert known(hub).moves == ()
            nursery.start_soon(watch)

        with trio.fail_after(LIMIT_S):
            record = (await watched.play(real, begin)).record
    assert states[0].moves == ()
    assert states[-1].moves == tuple(move.move for move in record.moves)
    assert (states[-1].over, states[-1].kept) == (record.result.detail, True)


async def test_a_game_that_fails_ends_without_a_record(hub: ClockedHub) -> None:
    engine = FakeEngine()
    engine.allow(lambda _job: False)
    engine.error = RefereeError("our host is overloaded")
    with pytest.raises(RefereeError, match="overloaded"):
        await WatchedEngine(engine, hub, "practice").play(job())
    assert known(hub).kept is False
    assert "was stopped" in (known(hub).over or "")


async def test_a_limited_number_of_games_is_followed_move_by_move(hub: ClockedHub) -> None:
    engine = FakeEngine()
    engine.allow(lambda _job: False)
    watched = WatchedEngine(engine, hub, "practice", most_followed=2)
    async with trio.open_nursery() as nursery:
        for number in range(3):
            nursery.start_soon(watched.play, job(f"g{number}"))
        await trio.testing.wait_all_tasks_blocked()
        assert sorted(engine.followed.values()) == [False, True, True]
        engine.allow()
    await watched.play(job("g3"))
    assert engine.followed["g3"]
