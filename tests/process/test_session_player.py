"""Players without a process: a conversation whose moves come from elsewhere, with its own time control."""

import random
import socket
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio

from referee.adapters.game_follower import GameFollower
from referee.errors import RefereeError
from referee.games.catalog import AnyGame, parse_game
from referee.judge.clock import TimeControl
from referee.judge.events import LineTooLong
from referee.judge.match import Match
from referee.judge.replay_check import check_replay
from referee.judge.results import GameRecord, Player
from referee.players.function_player import FunctionPlayer
from referee.players.socket_player import SocketPlayer
from referee.playing import Job, play, play_game
from referee.process.launch import wait_readable
from referee.process.player import SessionPlayer
from tests.support.confinement import UNHURRIED, outcome, reading_bot

GAME = "manchester(3,2)"
REMOTE = Player("remote", ("a service",), "/")
QUICK = TimeControl(move_s=0.25, setup_s=0)
BRISK = TimeControl(move_s=1.0, setup_s=0)
"""Limits that the bot keeps on a busy machine, too."""
SLOW = TimeControl(game_s=60, increment_s=1)
PATIENT = TimeControl(move_s=60)


class RemotePlayer(SessionPlayer):
    """A player whose lines go through channels, as through a connection."""

    def __init__(self, lines: "trio.MemorySendChannel[str]", index: int, match: Match[Any, Any]) -> None:
        super().__init__(index, REMOTE)
        self.lines = lines

    def receive(self, line: str) -> None:
        self.lines.send_nowait(line)
        if line == "END":
            self.end()


async def play_remotely(control: TimeControl, own: TimeControl | None, think_s: float) -> GameRecord:
    """Play a game of a bot against a player who thinks for a while in another task, in the first turn."""
    job = Job("remote", GAME, (reading_bot(), REMOTE), control, UNHURRIED, own_controls=(None, own))
    to_player, lines = trio.open_memory_channel[str](10)
    players: list[RemotePlayer] = []

    def start(index: int, match: Match[Any, Any]) -> SessionPlayer:
        players.append(RemotePlayer(to_player, index, match))
        return players[0]

    async def converse() -> None:
        follower, left_s = GameFollower(parse_game(GAME)), think_s
        while not follower.over:
            if follower.receive(await lines.receive()):
                await trio.sleep(left_s)
                left_s = 0
                move = random.choice(list(follower.game.legal_moves(follower.state)))
                players[0].send(follower.reply(move))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(converse)
        record = await play_game(job, players={1: start})
    assert len(players) == 1
    return record


@pytest.mark.parametrize(
    ("control", "own", "think_s", "expected"),
    [
        (SLOW, None, 0, "score"),
        (BRISK, SLOW, 1.1, "score"),
        (SLOW, QUICK, 0.3, "timeout"),
    ],
)
async def test_a_conversation_with_its_own_time_control(
    control: TimeControl, own: TimeControl | None, think_s: float, expected: str
) -> None:
    record = await play_remotely(control, own, think_s)
    assert record.result.reason.value == expected
    assert record.exit_status == (0, 0)
    assert check_replay(record) == []
    assert GameRecord.from_msgpack(record.to_msgpack()) == record
    assert GameRecord.from_json(record.to_json()) == record
    if own is not None:
        assert check_replay(replace(record, own_controls=(None, None)))


def test_a_player_without_a_method_for_lines_cannot_be_made() -> None:
    class Unfinished(SessionPlayer):
        """A player without ``receive``."""

    with pytest.raises(TypeError, match="receive"):
        Unfinished(0, Player("Ada", (), "/"))  # type: ignore[abstract]


class SilentPlayer(SessionPlayer):
    """A player that never replies."""

    def receive(self, line: str) -> None:
        pass


def test_the_end_of_a_player_is_reported_also_if_it_was_noticed_before() -> None:
    player = SilentPlayer(0, REMOTE)
    player.wait_ready()
    player.end(3, "the reason")
    assert player.has_ended()  # as a check of limits asks
    assert wait_readable(player.exit_descriptor or -1, 0)
    assert (player.status, player.stderr.text()) == (3, "the reason")
    player.close()
    player.send("MOVE;1")  # too late: it is ignored


def test_a_line_that_is_too_long_and_a_flood_do_not_block_the_player() -> None:
    player = SilentPlayer(0, REMOTE)
    player.wait_ready()
    player.send("x" * 100_000)
    assert [type(event) for event in player.read_output()] == [LineTooLong]
    for _ in range(100):
        player.send("y" * 1000)  # more than a pipe holds
    player.close()


def test_a_player_at_a_socket_may_read_a_thousand_lines_late(tmp_path: Path) -> None:
    lines = [f"CHANGE;{number};0,0;OPP" for number in range(1000)]
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(str(tmp_path / "player"))
        listener.listen()
        player = SocketPlayer(0, REMOTE, str(tmp_path / "player"))
        player.wait_ready()
        for line in lines:
            player.receive(line)
        assert not player.has_ended()
        connection, _ = listener.accept()
        with connection, connection.makefile("r") as received:
            assert [received.readline().rstrip("\n") for _ in lines] == lines
            player.receive("END")
            assert received.read() == "END\n"
        assert player.has_ended()
        assert player.close() == ""


@pytest.mark.parametrize("seat", [0, 1])
async def test_a_player_at_a_socket_that_cannot_be_reached_does_not_lose(tmp_path: Path, seat: int) -> None:
    players = (REMOTE, reading_bot()) if seat == 0 else (reading_bot(), REMOTE)
    missing = str(tmp_path / "missing")
    job = Job("remote", GAME, players, QUICK, sockets=(missing, "") if seat == 0 else ("", missing))
    with pytest.raises(RefereeError, match=r"the connection to remote could not be made: \[Errno 2\]"):
        await play_game(job)


def test_a_person_has_more_time_than_the_bot() -> None:
    def choose(game: AnyGame, state: Any) -> Any:
        return game.legal_moves(state)[0]

    def slowly(game: AnyGame, state: Any) -> Any:
        trio.run(partial(trio.sleep, 0.35))
        return choose(game, state)

    # A function's time is the wall's: the one that is not to lose has all the time that a busy machine takes.
    other, person = FunctionPlayer(choose, control=PATIENT), FunctionPlayer(slowly, control=SLOW)
    record = play(other, person, GAME, control=QUICK)
    assert record.result.reason.value == "score"
    assert record.own_controls == (PATIENT, SLOW)
    assert outcome(play(other, FunctionPlayer(slowly), GAME, control=QUICK)) == (0, "timeout", "late")
