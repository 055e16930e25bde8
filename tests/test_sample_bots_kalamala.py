"""The sample bots at Kalamala: as processes in whole games, and their thinking."""

import random
import subprocess
from typing import Any

import pytest
import trio

from referee.games.base import Side
from referee.games.catalog import GAME_VARIABLE, GAMES, OPENING_VARIABLE, AnyGame, parse_game
from referee.games.kalah import Kalah
from referee.games.kalamala import Kalamala
from referee.games.spec import SpecError
from referee.judge.clock import TimeControl
from referee.judge.results import GameRecord, Player, Reason
from referee.play import Job, play_game
from sample_bots import launch
from sample_bots.catalog import sample_bot_command
from sample_bots.compare import PLAYERS, main, points, random_opening
from sample_bots.evaluation import STONE, evaluation_of, stones_left
from sample_bots.search import AlphaBeta
from tests.test_sample_bots import bot_process, converse, environment
from tests.test_sample_bots_search import brute_force

GAME = parse_game("kalamala")
SPECS = ["first_legal", "random:3", "greedy", "minimax:2"]
GAME_LIMIT_S = 120
CONTROL = TimeControl(move_s=20.0)  # far more than a bot needs


def player(spec: str) -> Player:
    command = sample_bot_command(spec)
    assert command is not None
    return Player(spec, tuple(command), "/")


async def play(first: str, second: str, game: str = "kalamala") -> GameRecord:
    with trio.fail_after(GAME_LIMIT_S):
        return await play_game(Job("test", game, (player(first), player(second)), CONTROL))


# --- whole games ----------------------------------------------------------------------------------


@pytest.mark.parametrize("first", SPECS)
@pytest.mark.parametrize("second", SPECS)
async def test_all_bots_play_whole_games(first: str, second: str) -> None:
    record = await play(first, second, "kalamala+cap=60")
    assert record.result.reason in (Reason.SCORE, Reason.TURN_CAP), record.result
    assert record.stderr == ("", "")
    assert record.exit_status == (0, 0)
    assert len(record.moves) > 20


async def test_a_game_without_a_cap_in_sight() -> None:
    record = await play("greedy", "random:1")
    assert (record.result.reason, record.result.winner) == (Reason.SCORE, 0)
    assert record.stderr == ("", "")


@pytest.mark.parametrize(("first", "second"), [("random:3", "first_legal"), ("minimax:2", "greedy")])
async def test_games_are_the_same_in_every_run(first: str, second: str) -> None:
    games = [await play(first, second, "kalamala+cap=40") for _ in range(2)]
    moves = [[move.move for move in game.moves] for game in games]
    assert moves[0] == moves[1]


def test_word_by_word() -> None:
    command = sample_bot_command("first_legal")
    assert command is not None
    state = GAME.apply(GAME.initial_state(), "d4")
    lines = ["TIME;1000;1000", "START;Black", "TIME;1000;900", f"CHANGE;d4;{GAME.board_text(state)};YOU"]
    assert converse(command, "START;White", game="kalamala") == ["MOVE;a1"]
    assert converse(command, *lines, game="kalamala") == ["MOVE;a1"]


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("game", ["kalamala", "manchester"])
def test_openings_are_waited_for(spec: str, game: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rules = parse_game(game)
    state = rules.initial_state()
    lines = []
    for number in range(4):
        move = rules.legal_moves(state)[-1]
        text, state = rules.format_move(state, move), rules.apply(state, move)
        lines.append(f"CHANGE;{text};{rules.board_text(state)};{'YOU' if number == 3 else 'OPP'}")
    seat = rules.seats(state)[rules.to_move(state)]
    monkeypatch.setenv(OPENING_VARIABLE, str(len(lines)))
    command = sample_bot_command(spec)
    assert command is not None
    (reply,) = converse(command, f"START;{seat}", *lines, game=game)
    assert rules.parse_move(state, reply.removeprefix("MOVE;")) in rules.legal_moves(state)


def test_black_cannot_sit_at_kalah() -> None:
    with bot_process("first_legal", "kalamala") as bot:
        bot.tell("START;North")
        out, err, status = bot.end()
    assert (out, status) == (b"", 1)
    assert b"no seat 'North'" in err


# --- first_legal: which of the two files ----------------------------------------------------------


def test_launch_knows_the_games_of_first_legal() -> None:
    assert launch.GAME_VARIABLE == GAME_VARIABLE
    assert launch.OPENING_VARIABLE == OPENING_VARIABLE
    for name in GAMES:
        try:
            game = parse_game(name)
        except SpecError:  # needs a board
            game = parse_game(f"{name}(4,3)")
        assert launch.is_kalah(name) == isinstance(game, Kalah)
        assert launch.is_kalah(game.name) == isinstance(game, Kalah)
    assert launch.is_kalah("manchester+pie=no")
    assert not launch.is_kalah("kalamala+cap=40")


@pytest.mark.parametrize(("game", "loads"), [(None, False), ("kalah(6,4)+pie", False), ("kalamala", True)])
def test_first_legal_loads_a_rule_book_only_where_it_must(game: str | None, loads: bool) -> None:
    command = sample_bot_command("first_legal")
    assert command is not None
    done = subprocess.run(
        [command[0], "-X", "importtime", *command[1:]],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env=environment(game),
        timeout=GAME_LIMIT_S,
        check=True,
    )
    imported = {line.split("|")[-1].strip() for line in done.stderr.decode().splitlines()}
    assert ("referee.games.catalog" in imported) == loads
    if not loads:
        assert not imported & {"re", "dataclasses", "importlib", "typing", "pathlib"}


def test_first_move_takes_no_option() -> None:
    command = sample_bot_command("first_legal")
    assert command is not None
    done = subprocess.run(
        [*command, "1"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env=environment("kalamala"),
        timeout=GAME_LIMIT_S,
        check=False,
    )
    assert (done.returncode, done.stderr) == (2, b"first_legal takes no option\n")


# --- search and evaluation ------------------------------------------------------------------------


def positions(number: int, plies: int, seed: int) -> list[Any]:
    """States of random games."""
    generator = random.Random(seed)
    found: list[Any] = []
    while len(found) < number:
        state = GAME.initial_state()
        for _ in range(plies):
            if moves := GAME.legal_moves(state):
                state = GAME.apply(state, generator.choice(moves))
        if GAME.outcome(state) is None:
            found.append(state)
    return found


@pytest.mark.parametrize("state", [GAME.initial_state(), *positions(3, 9, 1), *positions(8, 60, 2)])
def test_search_equals_brute_force(state: Any) -> None:
    evaluate = evaluation_of(GAME)
    for depth in (1, 2):
        move, value = AlphaBeta(GAME, evaluate).best(state, depth)
        for_first = value if GAME.to_move(state) is Side.FIRST else -value
        assert for_first == brute_force(GAME, state, depth, evaluate)
        assert for_first == brute_force(GAME, GAME.apply(state, move), depth - 1, evaluate)


def evaluated(rows: str, reserves: str) -> list[int]:
    assert isinstance(GAME, Kalamala)
    state = GAME.parse_state(f"{rows}:{reserves}:w")
    return [stones_left(GAME, state, side) for side in Side]


def test_stones_count_wherever_they_are_and_the_centre_decides_among_equals() -> None:
    empty = "/".join(["." * 8] * 7)
    assert evaluated(f"{empty}/........", "11") == [0, 0]
    assert evaluated(f"{empty}/b.......", "11") == [-STONE, STONE]
    assert evaluated(f"{empty}/b......w", "01") == [-STONE, STONE]
    ring = "/".join(
        ["........", "...w....", "........", "........", "........", ".......b", "........", "........"]
    )
    assert evaluated(ring, "00") == [1, -1]
    full = "/".join(["........"] * 3 + ["..wwww..", "..wwww.."] + ["........"] * 3)
    value = evaluated(full, "00")[0] - 8 * STONE
    assert 0 < value < STONE
    assert evaluated(f"{empty}/.......b", "20") == [STONE, -STONE]


# Measured with 25 openings (sample_bots/README.md).
@pytest.mark.parametrize(
    ("stronger", "weaker"), [("greedy", "first_legal"), ("greedy", "random"), ("minimax:2", "random")]
)
def test_strength(stronger: str, weaker: str) -> None:
    openings = 4
    assert points(GAME, PLAYERS[stronger], PLAYERS[weaker], openings) > openings * 2 * 0.6


def test_compare_takes_names(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["1", "kalamala+cap=30", "first_legal", "greedy"]) == 0
    assert capsys.readouterr().out.startswith("kalamala+cap=30: greedy scores ")
    assert main(["1", "kalamala", "first_legal", "chess"]) == 2
    assert "no player chess; there are first_legal, random" in capsys.readouterr().err


def test_random_openings_differ() -> None:
    game: AnyGame = GAME
    assert len({random_opening(game, random.Random(seed)) for seed in range(5)}) == 5
