"""The simple sample bots as processes: whole games by the referee, conversations line by line, commands."""

import ast
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from referee.games.catalog import GAME_VARIABLE, GAMES, OPENING_VARIABLE, parse_game
from referee.games.kalah import Kalah
from referee.games.spec import SpecError
from referee.judge.clock import TimeControl
from referee.judge.results import GameRecord, Player, Reason
from referee.playing import Job, play_game
from sample_bots import first_legal, launch
from sample_bots.catalog import sample_bot_command
from tests.support.confinement import UNHURRIED
from tests.support.tiers import slow

WAIT_S = 60
"""Bound of every wait: far more than a bot needs, so that a hanging bot fails the test."""
ROOT = Path(first_legal.__file__).parent.parent
BOTS = ["first_legal", "random:3", "greedy", "minimax:2"]


def command(spec: str) -> list[str]:
    found = sample_bot_command(spec)
    assert found is not None
    return found


def environment(game: str | None, opening: str = "") -> dict[str, str]:
    rest = {name: value for name, value in os.environ.items() if name != GAME_VARIABLE}
    return {**rest, OPENING_VARIABLE: opening} | ({} if game is None else {GAME_VARIABLE: game})


def run_bot(
    argv: Sequence[str], *lines: str, game: str | None = None, cwd: Path | None = None, opening: str = ""
) -> subprocess.CompletedProcess[str]:
    """Send all lines at once, then the end of input."""
    return subprocess.run(
        argv,
        input="".join(line + "\n" for line in lines),
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        env=environment(game, opening),
        cwd=cwd,
        check=False,
    )


def converse(argv: Sequence[str], *lines: str, game: str | None = None, cwd: Path | None = None) -> list[str]:
    """Return the lines that a bot wrote; fail unless it ended well."""
    done = run_bot(argv, *lines, game=game, cwd=cwd)
    assert (done.stderr, done.returncode) == ("", 0)
    return done.stdout.splitlines()


# Whole games.


async def play(first: str, second: str, game: str) -> GameRecord:
    players = Player(first, tuple(command(first)), "/"), Player(second, tuple(command(second)), "/")
    return await play_game(Job("test", game, players, TimeControl(move_s=20.0), UNHURRIED))


@pytest.mark.parametrize(
    ("first", "second", "game"),
    [
        ("first_legal", "random:3", "manchester"),
        ("random:3", "minimax:2", "bga(4,3)+pie"),
        ("minimax:2", "greedy", "manchester(2,5)"),
        ("greedy", "first_legal", "manchester(9,2)"),
        ("first_legal", "minimax:2", "kalah(6,4)"),
        # The second player swaps, then plays on.
        ("first_legal", "swap_happy", "manchester"),
        ("swap_happy", "random:2", "manchester(3,3)"),
        ("random:3", "first_legal", "kalamala+cap=40"),
        ("greedy", "random:3", "kalamala"),
        ("first_legal", "greedy", "kalamala+ko=none+cap=40"),
        *slow(("minimax:2", "random:1", "kalamala+cap=12")),
    ],
)
async def test_whole_games(first: str, second: str, game: str) -> None:
    record = await play(first, second, game)
    assert record.result.reason in (Reason.SCORE, Reason.TURN_CAP)
    assert record.stderr == ("", "")
    assert record.exit_status == (0, 0)
    again = await play(first, second, game)
    assert [move.move for move in again.moves] == [move.move for move in record.moves]
    if second == "swap_happy":
        assert [move.move for move in record.moves].count("SWAP") == 1


# Lines.


@pytest.mark.parametrize("spec", ["first_legal", "random"])
@pytest.mark.parametrize(
    "lines", [(), ("START;North",), ("END",), ("START;North", "END", "START;South")], ids="|".join
)
def test_bot_leaves_quietly(spec: str, lines: tuple[str, ...]) -> None:
    assert converse(command(spec), *lines) == []


def test_first_legal_word_by_word() -> None:
    argv = command("first_legal")
    north = "START;North", "CHANGE;1;0,0,3,3,3,9,0,3,3,3;YOU"
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


def test_manchester_is_the_default_game() -> None:
    board = "8,8,8,8,8,8,7,0,7,7,7,7,7,7,0,1"
    assert len(converse(command("greedy"), "START;North", f"CHANGE;7;{board};YOU")) == 1


@pytest.mark.parametrize(
    ("spec", "game", "lines", "message"),
    [
        ("greedy", "manchester(3,3)", ["START;North", "CHANGE;1;3,3,3,0,0,4,4,2;YOU"], "but it should be"),
        ("minimax:2", "manchester(3,3)", ["HELLO"], "no message of a referee"),
        ("random:3", "chess", [], "no game 'chess'"),
        ("first_legal", "kalamala", ["START;North"], "no seat 'North'"),
    ],
)
def test_bot_gives_up_if_the_referee_plays_another_game(
    spec: str, game: str, lines: list[str], message: str
) -> None:
    done = run_bot(command(spec), *lines, game=game)
    assert (done.stdout, done.returncode) == ("", 1)
    assert done.stderr.startswith("giving up: ")
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


def test_bot_leaves_quietly_when_its_output_is_closed() -> None:
    with subprocess.Popen(
        command("greedy"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment("manchester"),
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        process.stdin.write(b"START;South\n")
        process.stdin.flush()
        assert process.stderr.read() == b""
        assert process.wait(WAIT_S) == 0


# Commands.


@pytest.mark.parametrize(
    ("arguments", "game"),
    [
        (["first_legal", "1"], "kalamala"),
        (["random_bot", "x"], None),
        (["greedy", "3"], None),
        (["minimax", "0"], None),
        (["minimax", "4", "4"], None),
    ],
)
def test_bad_arguments_on_the_command_line(arguments: list[str], game: str | None) -> None:
    script = next(word for word in command("greedy") if word.endswith(".py"))
    done = run_bot([sys.executable, script, *arguments], game=game)
    assert (done.stdout, done.returncode) == ("", 2)
    assert "take" in done.stderr
    assert done.stderr.count("\n") == 1


def test_commands_work_in_any_directory_and_import_nothing_from_it(tmp_path: Path) -> None:
    for trap in ("protocol", "referee", "sample_bots", "random", "sys", "os", "search"):
        (tmp_path / f"{trap}.py").write_text("raise SystemExit('the trap')")
    for spec in BOTS:
        assert len(converse(command(spec), "START;South", cwd=tmp_path)) == 1


@pytest.mark.parametrize("module", ["first_legal", "random_bot", "greedy", "minimax"])
def test_bots_run_as_modules_too(module: str) -> None:
    replies = converse([sys.executable, "-m", f"sample_bots.{module}"], "START;South", cwd=ROOT)
    assert len(replies) == 1


def test_launch_knows_the_games_of_first_legal() -> None:
    assert (launch.GAME_VARIABLE, launch.OPENING_VARIABLE) == (GAME_VARIABLE, OPENING_VARIABLE)
    for name in GAMES:
        try:
            game = parse_game(name)
        except SpecError:  # needs a board
            game = parse_game(f"{name}(4,3)")
        assert launch.is_kalah(name) == isinstance(game, Kalah)
        assert launch.is_kalah(game.name) == isinstance(game, Kalah)
    assert launch.is_kalah("manchester+pie=no")
    assert not launch.is_kalah("kalamala+cap=40")


@pytest.mark.parametrize(
    ("game", "opening", "loads"),
    [(None, "", False), ("kalah(6,4)+pie", "", False), ("kalah(6,4)", "1", True), ("kalamala", "", True)],
)
def test_first_legal_loads_a_rule_book_only_if_it_needs_one(
    game: str | None, opening: str, loads: bool
) -> None:
    python, *rest = command("first_legal")
    done = run_bot([python, "-X", "importtime", *rest], game=game, opening=opening)
    assert done.returncode == 0
    imported = {line.split("|")[-1].strip() for line in done.stderr.splitlines()}
    assert ("referee.games.catalog" in imported) == loads
    if not loads:
        assert not imported & {"re", "dataclasses", "importlib", "typing", "pathlib"}
