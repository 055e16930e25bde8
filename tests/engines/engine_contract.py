"""The contract of all engines, as tests with real processes."""

import os
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

import pytest
import trio

from referee.judge.clock import TimeControl
from referee.judge.results import GameRecord, Player, Reason
from referee.live_feed import Snapshot
from referee.playing import Job, play_game
from tests.engines.games import assassin, becomes, job, noted, unhurried
from tests.process.test_faults import honest
from tests.support.confinement import UNHURRIED
from tests.support.processes import GONE_WITHIN_S, command_lines_with, kill_all_with, living_with
from tournaments.bots.resolve import resolve_bot
from tournaments.engines.base import Engine, EngineError

LIMIT_S = 300
"""Bound for what takes a second or two."""
PLACES = 2
SLEEPLESS = TimeControl(move_s=3600, start_s=3600)


class Place(Protocol):
    """Location at which an engine plays in these tests."""

    def engine(self) -> AbstractAsyncContextManager[Engine]:
        """An engine with PLACES places."""
        ...

    def kill_worker(self, seconds: str) -> None:
        """Kill what plays the game whose bot sleeps so long."""
        ...


class Sleeper:
    """A bot that only sleeps, and is found by how long."""

    def __init__(self, folder: Path, seconds: str | None = None) -> None:
        self.seconds = seconds or f"{3600 + os.getpid() / 1e7 + folder.stat().st_ino % 1000:.7f}"
        self.player = Player("sleeper", ("/bin/sleep", self.seconds), str(folder))

    def job(self, key: str = "asleep") -> Job:
        return Job(key, "manchester", (self.player, honest()), SLEEPLESS)

    def count(self) -> int:
        return len(command_lines_with(f"/bin/sleep {self.seconds}"))


@pytest.fixture
def sleeper(tmp_path: Path) -> Iterator[Sleeper]:
    bot = Sleeper(tmp_path)
    yield bot
    kill_all_with(bot.seconds)


class EngineContract:
    """Inherit from it, with a fixture ``place``."""

    async def test_plays_as_many_games_at_a_time_as_it_says(self, place: Place) -> None:
        records: list[GameRecord] = []
        with trio.fail_after(LIMIT_S):
            async with place.engine() as engine:
                assert engine.concurrency == PLACES
                async with trio.open_nursery() as nursery:

                    async def play(key: str) -> None:
                        records.append((await engine.play(job(unhurried(), key=key))).record)

                    for number in range(3 * PLACES):
                        nursery.start_soon(play, f"game-{number}")
        assert sorted(record.key for record in records) == sorted(f"game-{n}" for n in range(3 * PLACES))
        assert most_at_a_time(records) == PLACES

    @pytest.mark.parametrize("bots", [("greedy", "random:7"), ("minimax:2", "first_legal")])
    async def test_a_record_is_the_same_everywhere(self, place: Place, bots: tuple[str, str]) -> None:
        first, second = (resolve_bot(text, Path.cwd()) for text in bots)
        # The exit status is a part of what must be the same: nothing is killed because it ends slowly.
        control = TimeControl(move_s=60)
        wanted = Job("r001-1v2", "kalah(4,3)", (first, second), control, UNHURRIED, opening="1 2")
        with trio.fail_after(LIMIT_S):
            alone = await play_game(wanted)
            async with place.engine() as engine:
                record = (await engine.play(wanted)).record
        assert essence(record) == essence(alone)
        assert record.players == wanted.players
        assert record.host
        assert record.duration_us > 0
        assert GameRecord.from_msgpack(record.to_msgpack()) == record

    async def test_a_game_begins_once_when_its_place_is_free(self, place: Place, sleeper: Sleeper) -> None:
        begun: list[str] = []
        with trio.fail_after(LIMIT_S):
            async with place.engine() as engine:
                async with trio.open_nursery() as nursery:
                    for number in range(PLACES + 1):
                        key = str(number)
                        nursery.start_soon(engine.play, sleeper.job(key), noted(begun, key))
                    await becomes(lambda: len(begun) == PLACES == sleeper.count(), LIMIT_S)
                    nursery.cancel_scope.cancel()
                await becomes(lambda: not living_with(sleeper.seconds), GONE_WITHIN_S)
                assert len(begun) == PLACES
                await engine.play(job(key="last"), noted(begun, "last"))
        assert begun[PLACES:] == ["last"]

    async def test_a_cancelled_game_leaves_no_process(self, place: Place, sleeper: Sleeper) -> None:
        with trio.fail_after(LIMIT_S):
            async with place.engine() as engine:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(engine.play, sleeper.job())
                    await becomes(lambda: sleeper.count() == 1, LIMIT_S)
                    nursery.cancel_scope.cancel()
                await becomes(lambda: not living_with(sleeper.seconds), GONE_WITHIN_S)
                record = (await engine.play(job())).record
        assert record.result.reason is Reason.SCORE

    async def test_a_killed_worker_is_an_error_and_the_engine_goes_on(
        self, place: Place, sleeper: Sleeper
    ) -> None:
        errors: list[Exception] = []
        begun = trio.Event()
        with trio.fail_after(LIMIT_S):
            async with place.engine() as engine:

                async def play() -> None:
                    with pytest.raises(EngineError, match=r"lost|died") as caught:
                        await engine.play(sleeper.job(), lambda _: begun.set())
                    errors.append(caught.value)

                async with trio.open_nursery() as nursery:
                    nursery.start_soon(play)
                    await begun.wait()
                    await becomes(lambda: sleeper.count() == 1, LIMIT_S)
                    place.kill_worker(sleeper.seconds)
                await becomes(lambda: not living_with(sleeper.seconds), GONE_WITHIN_S)
                record = (await engine.play(job())).record
        assert len(errors) == 1
        assert record.result.reason is Reason.SCORE

    async def test_a_bot_that_kills_its_referee_wins_nothing(self, place: Place, tmp_path: Path) -> None:
        with trio.fail_after(LIMIT_S):
            async with place.engine() as engine:
                with pytest.raises(EngineError, match="died"):
                    await engine.play(job(assassin(tmp_path)))
                record = (await engine.play(job())).record
        assert record.result.reason is Reason.SCORE

    @pytest.mark.parametrize("name", ["SEGV", "TERM"])
    async def test_a_bot_that_a_signal_ends_loses(self, place: Place, tmp_path: Path, name: str) -> None:
        bot = Player("culprit", ("/bin/sh", "-c", f"read line; kill -{name} $$"), str(tmp_path))
        with trio.fail_after(LIMIT_S):
            async with place.engine() as engine:
                record = (await engine.play(job(second=bot))).record
        assert (record.result.winner, record.result.reason) == (0, Reason.EXIT)

    async def test_a_follower_is_told_of_moves_in_order_or_of_nothing(self, place: Place) -> None:
        told: list[Snapshot] = []
        begun: list[str] = []
        slow = replace(honest(), name="slow")
        with trio.fail_after(LIMIT_S):
            async with place.engine() as engine:
                watched = job(slow, key="watched")
                record = (await engine.play(watched, noted(begun, "watched"), told.append)).record
        assert begun == ["watched"]
        moves: list[str] = []
        for snapshot in told:
            assert isinstance(snapshot, Snapshot)
            assert snapshot.offset == len(moves)
            moves += [move.text for move in snapshot.moves]
        assert moves == [move.move for move in record.moves][: len(moves)]


def essence(record: GameRecord) -> dict[str, Any]:
    """Return the parts of a record that do not depend on the machine and the time."""
    return {
        "key": record.key,
        "game": record.game,
        "players": record.players,
        "control": record.control,
        "moves": [(move.player, move.move) for move in record.moves],
        "wire": {side: [(w.direction, w.line) for w in record.wire if w.player == side] for side in (0, 1)},
        "final": record.final_state,
        "result": record.result,
        "stderr": record.stderr,
        "exit": record.exit_status,
        "opening": record.opening,
        "limits": record.limits,
        "sandbox": record.sandbox,
    }


def most_at_a_time(records: list[GameRecord]) -> int:
    """Return the maximum number of simultaneous games; their beginnings are known to a millisecond."""
    spans = [
        (begin + 0.001, begin + record.duration_us / 1e6)
        for record in records
        for begin in [datetime.fromisoformat(record.started_at).timestamp()]
    ]
    return max(sum(begin <= moment < end for begin, end in spans) for moment, _ in spans)
