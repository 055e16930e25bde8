"""Players whose moves a function chooses: in real games against each other and against bots."""

import asyncio
import os
import random
import signal
import threading
from pathlib import Path
from typing import Any

import pytest
import trio

from referee.games.catalog import AnyGame
from referee.games.opening import OpeningError
from referee.judge.replay_check import check_replay
from referee.judge.results import GameRecord
from referee.players.function_player import Choose, FunctionPlayer
from referee.playing import play
from tests.support.confinement import UNHURRIED, outcome
from tournaments.bots.resolve import resolve_bot

GREEDY = resolve_bot("greedy", Path("/tmp"))


def chosen_at_random(game: AnyGame, state: Any) -> Any:
    return random.choice(list(game.legal_moves(state)))


async def first_move_as_text(game: AnyGame, state: Any) -> str:
    await trio.lowlevel.checkpoint()
    return game.format_move(state, game.legal_moves(state)[0])


def failing(game: AnyGame, state: Any) -> Any:
    raise KeyError("no idea")


def checked(record: GameRecord) -> GameRecord:
    """The record, which can be judged again with the same verdict."""
    assert check_replay(record) == []
    assert GameRecord.from_msgpack(record.to_msgpack()) == record
    return record


@pytest.mark.parametrize("game", ["manchester(4,3)", "kalamala+cap=20", "bga(2,2)"])
def test_functions_play_each_other_and_bots(game: str) -> None:
    functions = (FunctionPlayer(chosen_at_random), FunctionPlayer(first_move_as_text, "Ada"))
    for first, second in (functions, (functions[1], GREEDY), (GREEDY, functions[0])):
        record = checked(play(first, second, game, limits=UNHURRIED))
        assert record.result.reason.value in ("score", "turn-cap")
        assert record.exit_status == (0, 0)
    assert record.players[1].name == "chosen_at_random"


def test_a_function_may_swap() -> None:
    def swapping(game: AnyGame, state: Any) -> Any:
        moves = game.legal_moves(state)
        return game.swap if game.swap in moves else moves[0]

    for choose in (swapping, lambda game, state: game.format_move(state, swapping(game, state))):
        record = checked(play(GREEDY, FunctionPlayer(choose), "manchester(3,2)"))
        assert record.moves[1].move == "SWAP"
        assert record.result.reason.value == "score"


def test_an_opening_is_followed() -> None:
    record = checked(play(FunctionPlayer(chosen_at_random), GREEDY, "kalah(4,3)", opening="1 2"))
    assert record.result.reason.value == "score"


@pytest.mark.parametrize(
    ("choose", "move_s", "expected"),
    [
        (failing, 60, (1, "exit", "exited")),
        (lambda game, state: "99", 60, (1, "illegal-move", "no-such-pit")),
        (lambda game, state: "x", 60, (1, "protocol", "bad-number")),
        (lambda game, state: threading.Event().wait(5), 0.1, (1, "timeout", "late")),
    ],
)
def test_a_fault_of_a_function_loses(choose: Choose, move_s: float, expected: tuple[int, str, str]) -> None:
    record = checked(play(FunctionPlayer(choose), GREEDY, "kalah(3,2)", move_s=move_s))
    assert outcome(record) == expected


def test_the_traceback_is_the_standard_error_of_the_player() -> None:
    record = play(FunctionPlayer(failing), GREEDY)
    assert "KeyError: 'no idea'" in record.stderr[0]
    assert "KeyError: 'no idea'" in record.result.note


# Beside an event loop.


def test_a_game_is_played_where_an_event_loop_runs() -> None:
    """As in a notebook: the loop waits until the game is over."""

    async def cell() -> GameRecord:
        return play(FunctionPlayer(first_move_as_text), GREEDY, "kalah(3,2)")

    for record in (asyncio.run(cell()), trio.run(cell)):
        assert checked(record).result.reason.value == "score"


def test_an_error_of_the_referee_passes_a_running_loop() -> None:
    async def cell() -> None:
        play(GREEDY, GREEDY, "kalah(3,2)", opening="1 1 1 1 1 1 1 1 1")

    with pytest.raises(OpeningError):
        asyncio.run(cell())


def test_an_interrupt_stops_a_game_beside_a_running_loop() -> None:
    over = threading.Event()

    def waiting(game: AnyGame, state: Any) -> Any:
        os.kill(os.getpid(), signal.SIGINT)
        over.wait()

    async def cell() -> None:
        play(FunctionPlayer(waiting), GREEDY, "kalah(3,2)", move_s=600)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    loop = asyncio.new_event_loop()
    try:
        with pytest.raises(KeyboardInterrupt):
            loop.run_until_complete(cell())
    finally:
        over.set()
        loop.close()
        signal.signal(signal.SIGINT, before)


def test_what_is_no_player_is_refused_with_the_remedy() -> None:
    with pytest.raises(TypeError, match=r"'greedy' is no player: take .*tournaments\.bot"):
        play("greedy", GREEDY)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"'greedy' is no function: .*tournaments\.bot"):
        FunctionPlayer("greedy")  # type: ignore[arg-type]


def test_a_bot_that_declares_no_openings_plays_from_none(tmp_path: Path) -> None:
    (tmp_path / "bot.py").write_text("raise SystemExit\n")
    with pytest.raises(OpeningError, match=r"^bot cannot take an opening: it does not declare"):
        play(resolve_bot("bot.py", tmp_path), GREEDY, opening="1 2")
