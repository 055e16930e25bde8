"""Games in worker processes with a player whose moves come from the server."""

import json
import os
import resource
import socket
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from referee.adapters.game_follower import GameFollower
from referee.games.catalog import parse_game
from referee.judge.clock import TimeControl
from referee.judge.replay_check import check_replay
from referee.judge.results import Player
from referee.playing import Job
from referee.sandbox.bubblewrap import Sandbox
from tests.server.harness import LIMIT_S, until, until_gone
from tests.support.confinement import UNHURRIED, needs_sandbox, outcome, reading_bot
from tests.support.processes import living_with
from tests.support.tiers import slow
from tournaments.bots.resolve import resolve_bot
from tournaments.engines.base import EngineError
from tournaments.engines.local import LocalEngine, open_local_engine
from tournaments.results.game_summary import PackedGame
from tournaments.server.casual.seat import SeatClosedError, SeatedGame, open_game, open_seat, seated_player
from tournaments.server.remote.remote_bots import RemoteBot

pytestmark = pytest.mark.any_database

GAME = "manchester(3,2)"
PERSON = seated_player("Ada", "a person")
QUICK = TimeControl(move_s=20, setup_s=20)
PATIENT = TimeControl(move_s=600)


def job(seat: int = 0, sandbox: Sandbox | None = None, **values: Any) -> Job:
    bot = resolve_bot("first_legal", Path(), game=GAME)
    players = (PERSON, bot) if seat == 0 else (bot, PERSON)
    controls = (PATIENT, None) if seat == 0 else (None, PATIENT)
    return Job("casual", GAME, players, QUICK, sandbox=sandbox or Sandbox(), own_controls=controls, **values)


@asynccontextmanager
async def engine_in(scratch: Path) -> AsyncIterator[LocalEngine]:
    with trio.fail_after(LIMIT_S):
        async with open_local_engine(scratch, 2) as engine:
            yield engine


async def play_first_legal_moves(game: SeatedGame, opening: str = "") -> GameFollower:
    follower = GameFollower(parse_game(GAME), opening=bool(opening))
    async for line in game.seat:
        if follower.receive(line):
            await game.seat.send(follower.reply(follower.game.legal_moves(follower.state)[-1]))
    return follower


@pytest.mark.parametrize(
    ("seat", "opening"),
    [(0, ""), (1, "3"), *slow((1, ""), (0, "3 1"))],
)
async def test_a_whole_game_against_a_confined_bot(tmp_path: Path, seat: int, opening: str) -> None:
    async with engine_in(tmp_path) as engine:
        given = job(seat=seat, sandbox=needs_sandbox(), opening=opening, limits=UNHURRIED)
        async with open_game(engine, given, seat, tmp_path) as game:
            follower = await play_first_legal_moves(game, opening)
            record = (await game.result()).record
            with pytest.raises(SeatClosedError):
                await game.seat.send("MOVE;1")
    assert follower.over
    assert record.result.reason.value == "score", record.result.detail
    assert record.exit_status == (0, 0)
    assert len(follower.moves) == len(record.moves) + len(opening.split())
    assert check_replay(record) == []
    assert record.players[seat] == PERSON
    assert list(tmp_path.iterdir()) == []


async def test_a_forfeit_has_the_sentence_of_the_server(tmp_path: Path) -> None:
    async with engine_in(tmp_path) as engine, open_game(engine, job(), 0, tmp_path) as game:
        assert await game.seat.receive() == "START;South"
        await game.seat.forfeit("the remote bot was\ndisconnected")
        assert [line async for line in game.seat] in ([], ["END"])
        record = (await game.result()).record
    assert outcome(record) == (1, "exit", "exited")
    assert record.result.note == "its last words on standard error: 'the remote bot was disconnected'"


async def test_a_forfeit_before_the_game_has_begun(tmp_path: Path) -> None:
    given = replace(job(), own_controls=(TimeControl(move_s=3600), None))
    async with engine_in(tmp_path) as engine, open_game(engine, given, 0, tmp_path) as game:
        await game.seat.forfeit("the connection was lost")
        assert [line async for line in game.seat] in ([], ["END"], ["START;South"], ["START;South", "END"])
        record = (await game.result()).record
    assert outcome(record)[:2] == (1, "exit")
    assert record.result.note == "its last words on standard error: 'the connection was lost'"


async def test_a_forfeit_of_characters_that_cannot_be_stored(tmp_path: Path) -> None:
    async with engine_in(tmp_path) as engine, open_game(engine, job(), 0, tmp_path) as game:
        assert await game.seat.receive() == "START;South"
        await game.seat.forfeit("half of a pair: \ud800, and \0")
        assert [line async for line in game.seat] in ([], ["END"])
        record = (await game.result()).record
    assert record.stderr[0].strip() == "half of a pair: ?, and \N{REPLACEMENT CHARACTER}"


async def test_a_line_before_the_game_has_begun_waits_for_it(tmp_path: Path) -> None:
    """A remote bot may be quicker than the start of its opponent."""
    async with engine_in(tmp_path) as engine, open_game(engine, job(), 0, tmp_path) as game:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(game.seat.send, "MOVE;9")
            await trio.testing.wait_all_tasks_blocked()
            lines = [line async for line in game.seat]
        record = (await game.result()).record
        with pytest.raises(SeatClosedError):
            await game.seat.send("MOVE;1")
    assert lines[-1:] in ([], ["END"])
    assert outcome(record)[0] == 1
    assert "MOVE;9" in record.result.detail


async def test_a_line_for_a_game_that_never_begins(tmp_path: Path) -> None:
    async with (
        engine_in(tmp_path) as engine,
        open_game(engine, replace(job(), game="no-such-game"), 0, tmp_path) as game,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(game.seat.receive)
        with pytest.raises(SeatClosedError):
            await game.seat.send("MOVE;1")


async def test_a_move_out_of_turn_or_against_the_rules_is_judged_as_a_bots(tmp_path: Path) -> None:
    async with engine_in(tmp_path) as engine, open_game(engine, job(), 0, tmp_path) as game:
        assert await game.seat.receive() == "START;South"
        await game.seat.send("MOVE;9\0")
        assert await game.seat.receive() == "END"
        assert (await game.result()).record.result.winner == 1


async def test_a_person_has_a_time_limit_of_its_own(tmp_path: Path) -> None:
    hasty = replace(job(), own_controls=(TimeControl(move_s=0.05), None), control=TimeControl(20, setup_s=0))
    async with engine_in(tmp_path) as engine, open_game(engine, hasty, 0, tmp_path) as game:
        assert [line async for line in game.seat] == ["START;South", "END"]
        assert outcome((await game.result()).record)[:2] == (1, "timeout")


async def test_a_game_that_is_left_is_cancelled_with_its_bot(tmp_path: Path) -> None:
    async with engine_in(tmp_path) as engine:
        mark = f"{os.getpid()}0007"
        given = replace(job(), players=(PERSON, reading_bot("--status", mark)))
        async with open_game(engine, given, 0, tmp_path) as game:
            assert await game.seat.receive() == "START;South"
            await until(lambda: living_with(mark))
        await until_gone(mark)
        assert list(tmp_path.iterdir()) == []
        async with open_game(engine, job(), 0, tmp_path) as game:  # the worker goes on
            await play_first_legal_moves(game)
            assert (await game.result()).record.result.reason.value == "score"


async def test_the_end_of_a_worker_ends_the_lines(tmp_path: Path) -> None:
    killer = tmp_path / "killer.py"
    killer.write_text("import os, signal\ninput()\nos.kill(os.getppid(), signal.SIGKILL)\n")
    given = replace(job(), players=(PERSON, Player("killer", (sys.executable, str(killer)), str(tmp_path))))
    async with engine_in(tmp_path) as engine, open_game(engine, given, 0, tmp_path) as game:
        assert [line async for line in game.seat] in ([], ["START;South"])
        with pytest.raises(EngineError, match="died"):
            await game.result()


async def test_a_bot_that_ends_while_the_person_thinks_loses_at_once(tmp_path: Path) -> None:
    given = replace(job(seat=1), players=(reading_bot("--do", "exit-off-turn", "--reply", "1"), PERSON))
    async with engine_in(tmp_path) as engine, open_game(engine, given, 1, tmp_path) as game:
        assert await game.seat.receive() == "START;North"
        with game.until_ended():
            await trio.Event().wait()
        assert outcome((await game.result()).record) == (1, "exit", "exited")
        with game.until_ended():  # too late
            await game.seat.send("MOVE;1")


async def test_a_game_that_never_begins_ends_the_lines(tmp_path: Path) -> None:
    async with engine_in(tmp_path) as engine:
        async with open_game(engine, replace(job(), game="no-such-game"), 0, tmp_path) as game:
            assert await game.seat.receive() is None
            with pytest.raises(Exception, match="no game 'no-such-game'"):
                await game.result()
        async with open_game(engine, replace(job(), players=(PERSON, PERSON)), 0, tmp_path) as game:
            assert [line async for line in game.seat] == []
            assert "could not be started" in (await game.result()).record.result.detail


@contextmanager
def no_free_descriptor() -> Iterator[None]:
    """Let this process open no further file during the block."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    free = os.open(os.devnull, os.O_RDONLY)
    os.close(free)
    resource.setrlimit(resource.RLIMIT_NOFILE, (free, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


class ConnectedEngine:
    """Engine whose game connects to its seat when no descriptor is left, and lasts until it is cancelled."""

    concurrency = 1

    def __init__(self) -> None:
        self.is_cancelled = False

    async def play(self, job: Job, *_: object) -> PackedGame:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection, no_free_descriptor():
            connection.connect(job.sockets[0])
            try:
                await trio.sleep_forever()
            finally:
                self.is_cancelled = True
        raise AssertionError


async def test_a_connection_that_cannot_be_accepted_is_a_failure_of_the_game(tmp_path: Path) -> None:
    engine = ConnectedEngine()
    with trio.fail_after(LIMIT_S), pytest.raises(EngineError, match="not be accepted: Too many open files"):
        async with open_game(engine, job(), 0, tmp_path) as game:
            await game.seat.receive()
    assert engine.is_cancelled


async def test_a_remote_bot_does_not_lose_if_the_connection_cannot_be_accepted(tmp_path: Path) -> None:
    outbox, messages = trio.open_memory_channel[str](10)
    bot = RemoteBot(1, "home", (), outbox)
    with trio.fail_after(LIMIT_S), pytest.raises(EngineError, match="not be accepted: Too many open files"):
        await bot.play(ConnectedEngine(), job(), 0, tmp_path)
    sent = [
        json.loads(messages.receive_nowait())["type"]
        for _ in range(messages.statistics().current_buffer_used)
    ]
    assert sent == ["game", "failed"]


async def test_a_path_that_is_too_long_for_a_socket(tmp_path: Path) -> None:
    deep = tmp_path / ("d" * 120)
    deep.mkdir()
    async with engine_in(deep) as engine, open_game(engine, job(), 0, deep) as game:
        await play_first_legal_moves(game)
        assert (await game.result()).record.result.reason.value == "score"
    with pytest.raises(EngineError, match="socket for a player"):
        async with open_seat(tmp_path / "missing"):
            pass
