"""Conformance games: one bot observed closely, against an opponent without a process."""

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from referee.conformance import game as conformance_game
from referee.conformance.game import play_conformance_game
from referee.conformance.script import FORFEIT_LINE, ConformanceGame, TestOpponent
from referee.errors import RefereeError
from referee.games.catalog import AnyGame
from referee.judge.clock import TimeControl
from referee.judge.limits import Limits
from referee.judge.replay_check import check_replay
from referee.judge.results import GameRecord, Player, Reason
from referee.playing import Job, environment_of
from referee.process.cpu_accounting import Spent
from referee.sandbox.bubblewrap import Sandbox
from tests.support.confinement import TIERS, UNHURRIED, reading_bot, sandbox_of

CONTROL = TimeControl(move_s=60, start_s=60)
BRIEF = Limits(end_grace_s=0.3)
"""For bots that do not end by themselves."""
OTHER = Player("examiner", ("examiner",), "/")


def last_legal(game: AnyGame, state: Any) -> Any:
    return game.legal_moves(state)[-1]


def swapping(game: AnyGame, state: Any) -> Any:
    return game.legal_moves(state)[0]  # which is the swap where there is one


def play(
    *arguments: str,
    index: int = 0,
    opponent: TestOpponent | None = None,
    sandbox: Sandbox | None = None,
    opening: str = "",
    player: Player | None = None,
    limits: Limits = UNHURRIED,
) -> ConformanceGame:
    bot = player or reading_bot(*arguments)
    players = (bot, OTHER) if index == 0 else (OTHER, bot)
    job = Job("conformance", "manchester", players, CONTROL, limits, opening, sandbox or Sandbox())
    found = play_conformance_game(job, index, opponent or TestOpponent(last_legal, waits=True))
    assert [str(complaint) for complaint in check_replay(found.record)] == []
    again = GameRecord.from_msgpack(found.record.to_msgpack())
    assert again.result == found.record.result
    return found


@pytest.mark.parametrize(("index", "tier"), [*enumerate(TIERS[:2]), (0, "bare"), (1, "bare")])
def test_a_whole_game(index: int, tier: str) -> None:
    found = play(index=index, sandbox=sandbox_of(tier))
    assert found.record.result.reason is Reason.SCORE
    assert found.record.exit_status == (0, 0)
    seen = found.observed
    assert seen.start_us is not None
    assert seen.ended_us is not None
    assert (seen.unexpected_lines, seen.fragmented_lines) == ([], [])
    assert (seen.after_end_bytes, seen.left_behind) == (0, [])
    assert seen.memory_bytes > 0
    received = [line.line for line in found.record.wire if (line.player, line.direction) == (index, "to")]
    assert (received[0], received[-1]) == (("START;South", "START;North")[index], "END")


def test_output_after_end_is_observed() -> None:
    seen = play("--do", "talk-after-end").observed
    assert seen.after_end.startswith("MOVE;1\nMOVE;1\n")
    assert (seen.after_end_lines, seen.was_on_turn) == (100, False)


def test_a_bot_that_stays_is_killed_after_the_grace() -> None:
    found = play("--do", "stay-after-end", limits=BRIEF)
    assert (found.observed.ended_us, found.observed.activity) == (None, "waiting")
    assert found.record.exit_status[0] == -9


PIECES = """
import fcntl, os, sys, termios
for line in sys.stdin:
    if line == "START;South\\n":
        for byte in b"MOVE;1\\n":
            os.write(1, bytes([byte]))
            while any(fcntl.ioctl(1, termios.FIONREAD, bytes(4))):
                os.sched_yield()
    elif line == "END\\n":
        break
"""
"""Bot that sends each byte of its first move when the one before it was read."""


def test_fragmented_and_unexpected_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    bot = Player("bot", (sys.executable, "-S", "-E", "-c", PIECES), "/")
    pieces = play(player=bot, opponent=TestOpponent(last_legal, stops_at=1)).observed.fragmented_lines
    assert [(piece.line, piece.count) for piece in pieces] == [("MOVE;1", 7)]
    # All of this time, the bot waited for a CPU.
    monkeypatch.setattr(conformance_game, "between", lambda *_: Spent(0, 10**9))
    pieces = play(player=bot, opponent=TestOpponent(last_legal, stops_at=1)).observed.fragmented_lines
    assert [piece.span_us for piece in pieces] == [0]
    # A bot that waits for a CPU before its line must not be taken for one that sends none.
    monkeypatch.setattr(conformance_game, "QUIET_S", 60.0)
    seen = play("--do", "move-at-start", index=1).observed
    assert (seen.unexpected_lines[0].line, seen.unexpected_lines[0].after) == ("MOVE;1", "START;North")


@pytest.mark.parametrize("size", [1025, 4095, 5000])
def test_a_line_that_is_too_long_is_measured_to_its_end(size: int) -> None:
    code = f"import os, sys; sys.stdin.readline(); os.write(1, b'x' * {size} + b'\\n'); sys.stdin.read()"
    found = play(player=Player("bot", (sys.executable, "-S", "-E", "-c", code), "/"), limits=BRIEF)
    assert found.record.result.fault == "long-line"
    assert (found.observed.long_line_bytes, found.observed.has_long_line_ended) == (size, True)


def test_standard_error_before_and_after_start() -> None:
    before = play("--do", "stderr-first").observed
    assert (before.stderr_before_start, before.stderr_bytes) == (180_000, 180_000)
    after = play("--do", "stderr-flood").observed
    assert (after.stderr_before_start, after.stderr_bytes) == (0, 1_024_000)


def test_a_child_that_lives_on_is_named() -> None:
    seen = play("--do", "child-keeps-output").observed
    assert (seen.left_behind, seen.holds_output) == (["sleep"], True)


def test_the_opponent_can_end_the_game_while_the_bot_waits() -> None:
    found = play(index=1, opponent=TestOpponent(last_legal, stops_at=3))
    assert found.record.result.winner == 1
    assert found.record.result.fault == "unknown-message"
    assert sum(line.line == FORFEIT_LINE for line in found.record.wire) == 1
    assert found.record.exit_status == (0, 0)
    assert found.observed.ended_us is not None


@pytest.mark.parametrize("turn", [1, 3])
def test_the_opponent_can_exit_while_the_bot_thinks(turn: int) -> None:
    found = play(opponent=TestOpponent(last_legal, leaves_in=turn))
    assert (found.record.result.winner, found.record.result.fault) == (0, "exited")
    assert sum(move.player == 0 for move in found.record.moves) in (turn - 1, turn)
    assert found.observed.was_on_turn
    assert found.record.exit_status == (0, 1)


def test_the_opponent_may_swap() -> None:
    found = play(opponent=TestOpponent(swapping))
    assert [move.move for move in found.record.moves][1] == "SWAP"
    assert found.record.result.reason is Reason.SCORE


def test_an_opening_is_announced() -> None:
    code = (
        "import os, sys\nsys.stderr.write(os.environ['KALARENA_OPENING'])\n"
        "for line in sys.stdin:\n    if line == 'END\\n': break\n"
        "    if 'YOU' in line: print('MOVE;3', flush=True)\n"
    )
    bot = Player("bot", (sys.executable, "-c", code), "/", capabilities=("openings",))
    found = play(player=bot, opening="1 2", opponent=TestOpponent(last_legal, stops_at=2))
    assert found.record.stderr[0] == "2"
    assert found.record.moves[0].move == "3"
    assert found.observed.unexpected_lines == []


def test_a_command_that_cannot_be_run() -> None:
    found = play(index=1, player=Player("bot", ("/nowhere/bot",), "/"))
    assert found.record.result.fault == "not-runnable"
    assert found.observed.start_us is None


def test_cancellation_ends_the_game_and_the_bot(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.write(writer, b"!")
    job = Job("conformance", "manchester", (reading_bot("--do", "hang"), OTHER), CONTROL, BRIEF)
    with pytest.raises(RefereeError, match="the game was cancelled"):
        play_conformance_game(job, 0, TestOpponent(last_legal), cancel_fd=reader)
    os.close(reader)
    os.close(writer)


def test_the_environment_of_a_bot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONUNBUFFERED", "1")
    monkeypatch.setenv("KALARENA_OPENING", "7")
    environment = environment_of(Job("conformance", "manchester", (OTHER, OTHER), CONTROL))
    assert environment[b"KALARENA_GAME"] == b"manchester"
    assert not {b"PYTHONUNBUFFERED", b"KALARENA_OPENING"} & set(environment)
