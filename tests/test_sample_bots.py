"""The sample bots as the referee meets them: real processes, spoken to line by line."""

import ast
import os
import random
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from referee.games.base import Side
from referee.games.catalog import AnyGame, parse_game
from sample_bots import first_legal
from sample_bots.catalog import sample_bot_command

WAIT_S = 20
"""Bound of every wait: far more than a bot needs, so that a hanging one fails the test."""

DETERMINISTIC = ["first_legal", "random:3", "greedy", "minimax:2"]
FOLLOWING = ["random:3", "greedy", "minimax:2"]
"""Those that follow the game by its rules."""

Opponent = Callable[[AnyGame, Any], Any]


def command(spec: str) -> list[str]:
    found = sample_bot_command(spec)
    assert found is not None
    return found


def environment(game: str | None = None) -> dict[str, str]:
    rest = {name: value for name, value in os.environ.items() if name != "KALARENA_GAME"}
    return rest if game is None else {**rest, "KALARENA_GAME": game}


def converse(argv: list[str], *lines: str, game: str | None = None, cwd: Path | None = None) -> list[str]:
    """Say all lines at once, then end of input; return what the bot printed, if it did everything well."""
    done = subprocess.run(
        argv,
        input="".join(line + "\n" for line in lines),
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        env=environment(game),
        cwd=cwd,
        check=False,
    )
    assert (done.stderr, done.returncode) == ("", 0)
    return done.stdout.splitlines()


class BotProcess:
    """A bot that is spoken to line by line."""

    def __init__(self, spec: str, game: str) -> None:
        self.process = subprocess.Popen(
            command(spec),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(game),
        )
        self._received = b""

    def tell(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()

    def line(self) -> str:
        """The next line; anything behind it would be too much talk."""
        assert self.process.stdout is not None
        deadline = time.monotonic() + WAIT_S
        while not self._received.endswith(b"\n"):
            ready, _, _ = select.select([self.process.stdout], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, "no complete line in time"
            data = os.read(self.process.stdout.fileno(), 4096)
            assert data, "the bot closed its output"
            self._received += data
        line, self._received = self._received.decode(), b""
        assert line.count("\n") == 1
        return line[:-1]

    def end(self) -> tuple[bytes, bytes, int]:
        """Close its input; return what else it printed, its standard error and exit status."""
        out, err = self.process.communicate(timeout=WAIT_S)
        return out, err, self.process.returncode


@contextmanager
def bot_process(spec: str, game: str) -> Iterator[BotProcess]:
    bot = BotProcess(spec, game)
    try:
        yield bot
    finally:
        if bot.process.poll() is None:
            bot.process.kill()
        bot.process.communicate(timeout=WAIT_S)


def random_opponent(seed: int) -> Opponent:
    generator = random.Random(seed)
    return lambda game, state: generator.choice(game.legal_moves(state))


def swap_lover(game: AnyGame, state: Any) -> Any:
    moves = game.legal_moves(state)
    return game.swap if game.swap in moves else moves[-1]


def play_game(spec: str, side: Side, game: AnyGame, opponent: Opponent) -> list[str]:
    """Referee a whole game, from the bot's START to its exit; return the bot's lines."""
    said = []
    state = game.initial_state()
    with bot_process(spec, game.name) as bot:
        bot.tell(f"START;{game.seats(state)[side]}")
        while game.outcome(state) is None:
            told = True
            if game.to_move(state) is side:
                line = bot.line()
                said.append(line)
                if line == "SWAP":
                    move, told = game.swap, False
                else:
                    assert line.startswith("MOVE;")
                    move = game.parse_move(state, line.removeprefix("MOVE;"))
            else:
                move = opponent(game, state)
            assert move in game.legal_moves(state)
            text = game.format_move(state, move)
            state = game.apply(state, move)
            if told:
                following = "YOU" if game.to_move(state) is side else "OPP"
                if game.outcome(state) is not None:
                    following = "END"
                bot.tell(f"CHANGE;{text};{game.board_text(state)};{following}")
        bot.tell("END")
        assert bot.process.wait(WAIT_S) == 0  # at END, its input still open
        assert bot.end() == (b"", b"", 0)
    return said


# --- whole games ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "game", ["manchester", "kalah(6,4)", "bga(4,3)+pie", "manchester(2,5)", "manchester(9,2)"]
)
@pytest.mark.parametrize("side", Side)
@pytest.mark.parametrize("spec", DETERMINISTIC)
def test_bot_plays_whole_games_on_any_board(spec: str, side: Side, game: str) -> None:
    for seed in (1, 2):
        assert play_game(spec, side, parse_game(game), random_opponent(seed))


@pytest.mark.parametrize("spec", DETERMINISTIC)
def test_bot_plays_on_after_it_was_swapped(spec: str) -> None:
    assert len(play_game(spec, Side.FIRST, parse_game("manchester"), swap_lover)) > 1


@pytest.mark.parametrize(
    ("spec", "game"),
    [
        ("random:2", "manchester"),
        ("greedy", "manchester"),
        ("minimax:1", "manchester(6,4)"),
        ("minimax:4", "manchester"),
    ],
)
def test_bot_plays_on_after_it_has_swapped(spec: str, game: str) -> None:
    said = play_game(spec, Side.SECOND, parse_game(game), lambda game, state: game.legal_moves(state)[-1])
    assert said[0] == "SWAP"
    assert "SWAP" not in said[1:]
    assert len(said) > 1


@pytest.mark.parametrize("spec", DETERMINISTIC)
@pytest.mark.parametrize("side", Side)
def test_moves_are_the_same_in_every_run(spec: str, side: Side) -> None:
    game = parse_game("manchester")
    assert play_game(spec, side, game, random_opponent(7)) == play_game(spec, side, game, random_opponent(7))


def test_random_moves_depend_on_the_seed() -> None:
    game = parse_game("manchester")
    games = {tuple(play_game(f"random:{seed}", Side.FIRST, game, random_opponent(0))) for seed in range(4)}
    assert len(games) == 4


def test_random_without_a_seed_plays() -> None:
    assert play_game("random", Side.FIRST, parse_game("manchester(4,3)"), random_opponent(0))


# --- scripted conversations -----------------------------------------------------------------------


@pytest.mark.parametrize("spec", DETERMINISTIC)
@pytest.mark.parametrize(
    "lines",
    [[], ["START;North"], ["END"], ["START;North", "END"], ["START;North", "END", "START;South"]],
    ids="|".join,
)
def test_bot_leaves_quietly(spec: str, lines: list[str]) -> None:
    assert converse(command(spec), *lines) == []


def test_first_legal_word_by_word() -> None:
    argv = command("first_legal")
    assert converse(argv, "START;South") == ["MOVE;1"]
    north = "START;North", "CHANGE;1;0,0,3,3,3,9,0,3,3,3;YOU"
    assert converse(argv, *north) == ["MOVE;3"]
    # Again its turn, then the opponent's, then the end.
    following = "CHANGE;3;1,0,0,3,3,9,0,3,3,3;YOU", "CHANGE;1;0,1,0,3,3,9,0,3,3,3;OPP"
    assert converse(argv, *north, *following, "CHANGE;2;0,0,0,0,20,0,0,0,0,5;END", "END") == [
        "MOVE;3",
        "MOVE;1",
    ]
    # Swapped: it opened as South, and is North from then on.
    swapped = "CHANGE;1;2,2,0,0,2,2,1,0;OPP", "CHANGE;SWAP;0,2,2,1,0,3,3,1;YOU"
    assert converse(argv, "START;South", *swapped) == ["MOVE;1", "MOVE;2"]


def test_first_legal_is_a_single_file_that_needs_only_python(tmp_path: Path) -> None:
    source = Path(first_legal.__file__)
    imported: set[str] = set()
    for node in ast.walk(ast.parse(source.read_text())):
        if isinstance(node, ast.Import):
            imported.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            imported.add(node.module or ".")
    assert imported == {"sys"}
    copy = tmp_path / "my_bot.py"
    shutil.copy(source, copy)
    assert converse([sys.executable, "-I", "-S", str(copy)], "START;South", cwd=tmp_path) == ["MOVE;1"]


@pytest.mark.parametrize("spec", FOLLOWING)
def test_manchester_is_the_default_game(spec: str) -> None:
    board = "8,8,8,8,8,8,7,0,7,7,7,7,7,7,0,1"
    assert len(converse(command(spec), "START;North", f"CHANGE;7;{board};YOU")) == 1


START_BOARD_AFTER_1 = "3,3,3,0,0,4,4,1"


@pytest.mark.parametrize(
    ("lines", "complaint"),
    [
        (["START;North", "CHANGE;1;3,3,3,0,0,4,4,2;YOU"], "but it should be 3,3,3,0,0,4,4,1;YOU"),
        (["START;North", f"CHANGE;1;{START_BOARD_AFTER_1};END"], "but it should be"),
        (["START;North", f"CHANGE;7;{START_BOARD_AFTER_1};YOU"], "cannot be played here"),
        (["START;North", f"CHANGE;SWAP;{START_BOARD_AFTER_1};YOU"], "cannot be played here"),
        (["START;West"], "no seat 'West'"),
        (["HELLO"], "no message of a referee"),
    ],
)
@pytest.mark.parametrize("spec", FOLLOWING)
def test_bot_gives_up_when_the_referee_plays_another_game(
    spec: str, lines: list[str], complaint: str
) -> None:
    with bot_process(spec, "manchester(3,3)") as bot:
        for line in lines:
            bot.tell(line)
        out, err, status = bot.end()
    assert (out, status) == (b"", 1)
    assert complaint in err.decode()
    assert err.count(b"\n") == 1


def test_bot_gives_up_on_an_unknown_game() -> None:
    with bot_process("greedy", "chess") as bot:
        out, err, status = bot.end()
    assert (out, status) == (b"", 1)
    assert b"no game 'chess'" in err
    assert err.count(b"\n") == 1


def test_bot_leaves_quietly_when_nobody_reads_its_move() -> None:
    with bot_process("greedy", "manchester") as bot:
        assert bot.process.stdout is not None
        bot.process.stdout.close()
        bot.tell("START;South")
        assert bot.process.wait(WAIT_S) == 0
        assert bot.process.stderr is not None
        assert bot.process.stderr.read() == b""
        bot.process.stdout = None


# --- the commands ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments", [["random_bot", "x"], ["greedy", "3"], ["minimax", "0"], ["minimax", "4", "4"]]
)
def test_bad_arguments_on_the_command_line(arguments: list[str]) -> None:
    script = next(word for word in command("greedy") if word.endswith(".py"))
    done = subprocess.run(
        [sys.executable, script, *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=WAIT_S,
        check=False,
    )
    assert (done.stdout, done.returncode) == (b"", 2)
    assert b"take" in done.stderr
    assert done.stderr.count(b"\n") == 1


def test_commands_work_in_any_directory_and_see_nothing_of_it(tmp_path: Path) -> None:
    for trap in ("protocol", "referee", "sample_bots", "random", "sys", "os", "search"):
        (tmp_path / f"{trap}.py").write_text("raise SystemExit('the trap')")
    for spec in DETERMINISTIC:
        assert len(converse(command(spec), "START;South", cwd=tmp_path)) == 1


@pytest.mark.parametrize("module", ["first_legal", "random_bot", "greedy", "minimax"])
def test_bots_run_as_modules_too(module: str) -> None:
    root = Path(first_legal.__file__).parent.parent
    said = converse([sys.executable, "-m", f"sample_bots.{module}"], "START;South", cwd=root)
    assert len(said) == 1
