"""The hub: the newest state of each game for whoever watches, and nobody waits for anybody."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st

from referee.errors import RefereeError
from referee.judge.clock import TimeControl
from referee.live_feed import Move, Snapshot
from referee.play import Job
from tests.builders import make_player, make_record
from tests.random_games import random_game
from tests.test_faults import honest
from tournaments.engines.base import OnSnapshot, OnStart
from tournaments.engines.local import open_local_engine
from tournaments.results.game_summary import PackedGame
from tournaments.server import live_hub
from tournaments.server.live_hub import Channel, Hub, LiveGame, TooManyWatchersError, WatchedEngine

LIMIT_S = 60
START = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)


@dataclass
class Clock:
    at: datetime = START

    def __call__(self) -> datetime:
        return self.at


@dataclass
class Place:
    clock: Clock = field(default_factory=Clock)
    hub: Hub = field(init=False)

    def __post_init__(self) -> None:
        self.hub = Hub(self.clock)

    def start(self, key: str = "g1", competition: str = "practice") -> Channel:
        return self.hub.started(competition, job(key))

    def wait(self, seconds: float) -> None:
        self.clock.at += timedelta(seconds=seconds)


@pytest.fixture
def place() -> Place:
    return Place()


def job(key: str = "g1") -> Job:
    players = (make_player("Ada"), make_player("Bob"))
    return Job(key, "kalah(4,3)", players, TimeControl(move_s=1))


def snapshot(told: int, *moves: str, over: str | None = None) -> Snapshot:
    return Snapshot(told, tuple(Move(move, 7) for move in moves), (1000, 900), 1, over)


async def within_limit(games: AsyncIterator[LiveGame]) -> LiveGame:
    with trio.fail_after(LIMIT_S):
        return await anext(games)


# What is known of a game.


def test_a_game_is_known_from_its_start_to_a_while_after_its_end(place: Place) -> None:
    channel = place.start()
    (game,) = place.hub.playing()
    assert (game.competition, game.key, game.first, game.second) == ("practice", "g1", "Ada", "Bob")
    assert (game.started_at, game.moves, game.clocks_ms) == (START, (), None)
    place.wait(2)
    channel.snapshot(snapshot(0, "1", "2"))
    channel.snapshot(snapshot(2, "3"))
    known = place.hub.game("practice", "g1")
    assert known is not None
    assert (known.moves, known.charged_us, known.clocks_ms) == (("1", "2", "3"), (7, 7, 7), (1000, 900))
    assert known.turn_at == START + timedelta(seconds=2)
    record = random_game("kalah(4,3)")
    channel.ended(record)
    assert place.hub.playing() == []
    place.wait(live_hub.ENDED_STAYS_S - 1)
    known = place.hub.game("practice", "g1")
    assert known is not None
    assert known.moves == tuple(move.move for move in record.moves)
    assert (known.over, known.kept) == (record.result.detail, True)
    place.wait(2)
    assert place.hub.game("practice", "g1") is None
    assert place.hub.games() == []


def test_the_verdict_is_known_before_the_record(place: Place) -> None:
    channel = place.start()
    channel.snapshot(snapshot(0, "1", over="Ada won"))
    (game,) = place.hub.playing()
    assert (game.over, game.kept) == ("Ada won", None)
    channel.failed("given up")
    assert place.hub.playing() == []
    known = place.hub.game("practice", "g1")
    assert known is not None
    assert (known.over, known.kept) == ("given up", False)


@pytest.mark.parametrize("told", [1, 3])
def test_a_snapshot_that_does_not_follow_is_passed_over(place: Place, told: int) -> None:
    channel = place.start()
    channel.snapshot(snapshot(0, "1", "2"))
    channel.snapshot(snapshot(told, "5"))
    assert channel.game.moves == ("1", "2")


def test_after_the_end_nothing_changes(place: Place) -> None:
    channel = place.start()
    channel.ended(make_record())
    ended = channel.game
    channel.snapshot(snapshot(len(ended.moves), "5"))
    channel.failed("late")
    assert channel.game is ended


def test_games_of_different_competitions_have_nothing_to_do_with_each_other(place: Place) -> None:
    one, other = place.start("g1", "one"), place.start("g1", "other")
    one.snapshot(snapshot(0, "1"))
    other.failed("gone")
    assert [(game.competition, game.moves) for game in place.hub.playing()] == [("one", ("1",))]


def test_a_game_that_is_started_again_replaces_the_first_try(place: Place) -> None:
    first = place.start()
    first.snapshot(snapshot(0, "1"))
    second = place.start()
    first.snapshot(snapshot(1, "2"))
    assert [game.moves for game in place.hub.playing()] == [()]
    second.snapshot(snapshot(0, "4"))
    assert first.game.kept is False
    assert [game.moves for game in place.hub.playing()] == [("4",)]


def test_not_all_games_that_ended_are_kept(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_hub, "MOST_ENDED", 3)
    going_on = place.start("first")
    for number in range(10):
        place.wait(0.01)
        place.start(str(number)).failed("over")
    place.wait(0.01)
    assert [game.key for game in place.hub.games()] == ["first", "7", "8", "9"]
    assert place.hub.playing() == [going_on.game]


@given(st.lists(st.sampled_from(["start", "move", "end", "fail", "wait"]), max_size=40))
def test_whatever_happens_what_plays_is_what_was_started_and_has_not_ended(steps: list[str]) -> None:
    place = Place()
    channels: list[Channel] = []
    expected: list[str] = []
    for number, step in enumerate(steps):
        if step == "start":
            channels.append(place.start(str(number)))
            expected.append(str(number))
        elif step == "wait":
            place.wait(live_hub.ENDED_STAYS_S / 3)
        elif channels:
            channel = channels[number % len(channels)]
            if step == "move":
                channel.snapshot(snapshot(len(channel.game.moves), "1"))
            else:
                channel.ended(make_record()) if step == "end" else channel.failed("over")
                expected = [key for key in expected if key != channel.game.key]
        assert [game.key for game in place.hub.playing()] == expected
        assert {game.key for game in place.hub.games()} >= set(expected)


# Watching.


async def test_a_watcher_sees_each_state_until_the_end(place: Place, autojump_clock: trio.abc.Clock) -> None:
    channel = place.start()
    with place.hub.watch_game("practice", "g1") as games:
        assert (await within_limit(games)).moves == ()
        channel.snapshot(snapshot(0, "1"))
        assert (await within_limit(games)).moves == ("1",)
        async with trio.open_nursery() as nursery:

            async def later() -> None:
                await trio.sleep(5)
                channel.ended(make_record())

            nursery.start_soon(later)
            assert (await within_limit(games)).kept
        with pytest.raises(StopAsyncIteration):
            await anext(games)


async def test_a_slow_watcher_misses_states_but_never_the_newest(
    place: Place, autojump_clock: trio.abc.Clock
) -> None:
    channel = place.start()
    seen = []
    with place.hub.watch_game("practice", "g1") as games:
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
    assert seen == sorted(set(seen)) or seen[:-1] == sorted(set(seen[:-1]))
    assert len(seen) < 10
    assert trio.current_time() - began < 3


async def test_moves_are_told_together_where_they_come_fast(
    place: Place, autojump_clock: trio.abc.Clock
) -> None:
    channel = place.start()
    with place.hub.watch_game("practice", "g1") as games:
        await within_limit(games)
        began = trio.current_time()
        channel.snapshot(snapshot(0, "1"))
        await within_limit(games)
        assert trio.current_time() - began == pytest.approx(live_hub.GAME_INTERVAL_S)


async def test_a_watcher_sees_the_verdict_of_a_game_that_is_forgotten(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_hub, "MOST_ENDED", 0)
    channel = place.start()
    with place.hub.watch_game("practice", "g1") as games:
        channel.failed("given up")
        assert place.hub.game("practice", "g1") is None
        assert (await within_limit(games)).over == "given up"


async def test_the_list_is_told_when_games_start_and_end(
    place: Place, autojump_clock: trio.abc.Clock
) -> None:
    with place.hub.watch_list() as lists, trio.fail_after(LIMIT_S):
        assert (await anext(lists)).games == ()
        channel = place.start("g1")
        assert [game.key for game in (await anext(lists)).games] == ["g1"]
        channel.snapshot(snapshot(0, "1"))  # which is no news for the list
        place.start("g2")
        began = trio.current_time()
        assert [game.key for game in (await anext(lists)).games] == ["g1", "g2"]
        assert trio.current_time() - began == pytest.approx(live_hub.LIST_INTERVAL_S)
        channel.ended(make_record())
        assert [game.key for game in (await anext(lists)).games] == ["g2"]
        before = place.hub.now_playing().standings
        place.hub.standings_changed()
        assert (await anext(lists)).standings != before


async def test_moves_alone_are_no_news_for_the_list(place: Place, autojump_clock: trio.abc.Clock) -> None:
    channel = place.start()
    with place.hub.watch_list() as lists:
        await anext(lists)
        channel.snapshot(snapshot(0, "1"))
        with trio.move_on_after(LIMIT_S) as waiting:
            await anext(lists)
        assert waiting.cancelled_caught


# Bounds.


def test_there_are_so_many_watchers_and_no_more(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_hub, "MOST_WATCHERS", 3)
    monkeypatch.setattr(live_hub, "MOST_OF_GAME", 2)
    one, other = place.start("g1").game, place.start("g2").game
    with place.hub.watch_game("practice", "g1"), place.hub.watch_game("practice", "g1"):
        assert not place.hub.has_room(one)
        assert place.hub.has_room(other)
        with pytest.raises(TooManyWatchersError), place.hub.watch_game("practice", "g1"):
            pass
        with place.hub.watch_list():
            with pytest.raises(TooManyWatchersError), place.hub.watch_game("practice", "g2"):
                pass
            with pytest.raises(TooManyWatchersError), place.hub.watch_list():
                pass
    assert place.hub.watchers == 0
    with pytest.raises(KeyError), place.hub.watch_game("other", "g1"):
        pass


async def test_watchers_that_are_cancelled_leave_nothing(place: Place) -> None:
    place.start()

    async def watch() -> None:
        with place.hub.watch_game("practice", "g1") as games:
            async for _ in games:
                pass

    async with trio.open_nursery() as nursery:
        for _ in range(20):
            nursery.start_soon(watch)
        await trio.testing.wait_all_tasks_blocked()
        assert place.hub.watchers == 20
        nursery.cancel_scope.cancel()
    assert place.hub.watchers == 0


# With an engine.


async def test_a_real_game_is_seen_while_it_is_played(place: Place, tmp_path: Path) -> None:
    begun = []
    states: list[LiveGame] = []
    real = Job("r001-1v2", "kalah(6,6)", (honest(), honest()), TimeControl(move_s=5))

    async with open_local_engine(tmp_path, 1) as engine, trio.open_nursery() as nursery:
        watched = WatchedEngine(engine, place.hub, "cup")
        assert watched.concurrency == 1
        started = trio.Event()

        async def watch() -> None:
            await started.wait()
            with place.hub.watch_game("cup", real.key) as games:
                states.extend([game async for game in games])

        def begins(host: str) -> None:
            begun.append(place.hub.game("cup", real.key))
            started.set()

        nursery.start_soon(watch)
        with trio.fail_after(LIMIT_S):
            record = (await watched.play(real, begins)).record
    assert [game.key for game in begun if game is not None] == [real.key]
    assert states[0].moves == ()
    assert states[-1].moves == tuple(move.move for move in record.moves)
    assert (states[-1].over, states[-1].kept) == (record.result.detail, True)


class Failing:
    concurrency = 1

    async def play(
        self, job: Job, on_start: OnStart | None = None, on_snapshot: OnSnapshot | None = None
    ) -> PackedGame:
        assert on_start is not None
        on_start("")
        await trio.lowlevel.checkpoint()
        raise RefereeError("our host is overloaded")


async def test_a_game_that_fails_is_over_without_a_record(place: Place) -> None:
    with pytest.raises(RefereeError, match="overloaded"):
        await WatchedEngine(Failing(), place.hub, "cup").play(job())
    game = place.hub.game("cup", "g1")
    assert game is not None
    assert game.kept is False
    assert "given up" in (game.over or "")


class Following:
    """An engine that notes of which games it is to tell how they go on."""

    concurrency = 3

    def __init__(self) -> None:
        self.followed: list[bool] = []
        self.let_go = trio.Event()

    async def play(
        self, job: Job, on_start: OnStart | None = None, on_snapshot: OnSnapshot | None = None
    ) -> PackedGame:
        self.followed.append(on_snapshot is not None)
        await self.let_go.wait()
        raise RefereeError("our host is overloaded")


async def test_no_more_games_are_followed_than_may_be(place: Place) -> None:
    engine = Following()
    watched = WatchedEngine(engine, place.hub, "cup", most_followed=2)

    async def play() -> None:
        with pytest.raises(RefereeError):
            await watched.play(job())

    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(play)
        await trio.testing.wait_all_tasks_blocked()
        assert engine.followed == [True, True, False]
        engine.let_go.set()
    await play()
    assert engine.followed[3:] == [True]
