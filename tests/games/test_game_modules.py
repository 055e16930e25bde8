"""Games in files of their own: found by name, checked, and played without a change elsewhere."""

import re
import textwrap
from pathlib import Path
from typing import Any

import pytest

from referee.games.catalog import all_games, parse_game, register_game
from referee.games.contract import check_game
from referee.games.plugins import GAMES_VARIABLE
from referee.games.spec import SpecError
from tests.support.builders import invoke
from tests.support.paths import REPOSITORY_ROOT

pytestmark = pytest.mark.usefixtures("game_catalog")

EXAMPLES = REPOSITORY_ROOT / "tournaments" / "examples" / "games"


@pytest.mark.parametrize("file", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.stem)
def test_the_examples_pass_every_check_in_under_150_lines(file: Path) -> None:
    result = invoke("game", "check", file)
    assert result.exit_code == 0, result.output
    assert "FAILED" not in result.output
    assert "it can be drawn" in result.output
    assert len(file.read_text(encoding="utf-8").splitlines()) < 150


def test_a_file_is_found_by_the_name_of_its_game(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(GAMES_VARIABLE, f"{EXAMPLES / 'oware.py'}:{EXAMPLES / 'connect_four.py'}")
    assert parse_game("oware").name == "oware"
    assert {"oware", "connect-four", "kalamala"} <= set(all_games())
    assert "Oware by the Abapa rules" in invoke("games").output


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("oware(6,4)", "the board of oware is always the same"),
        ("oware+pie", "no option 'pie' for oware, which has none"),
        ("owari", "no game 'owari'; did you mean 'oware'"),
    ],
)
def test_a_wrong_spec_is_explained(spec: str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(GAMES_VARIABLE, str(EXAMPLES / "oware.py"))
    with pytest.raises(SpecError, match=message):
        parse_game(spec)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("raise OSError('no boards')", r"cannot be loaded: OSError: no boards \(line 1\)$"),
        ("\n1 / 0", r"cannot be loaded: ZeroDivisionError: division by zero \(line 2\)$"),
        ("x = 1 +", r"cannot be loaded: SyntaxError: invalid syntax \(wrong.py, line 1\)$"),
        ("x = 1", "registers no game: call register_game"),
        (
            "from referee.games.catalog import register_game\nregister_game('kalah', print, about='x')",
            "there is a game kalah already",
        ),
        (
            "from referee.games.catalog import register_game\nregister_game('a b', print, about='x')",
            "is no name of a game|'a b'",
        ),
    ],
)
def test_a_wrong_module_is_explained(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "wrong.py"
    file.write_text(text)
    result = invoke("game", "check", file)
    assert result.exit_code == 2
    assert re.search(message, result.output)


@pytest.mark.parametrize(
    ("method", "problem"),
    [
        ("def legal_moves(self, state): return [2, 1] if state < 3 else []", "legal_moves is not sorted"),
        ("def legal_moves(self, state): return [1]", "has not ended after 5000 plies"),
        ("def outcome(self, state): return None", "outcome is None"),
        (
            "def outcome(self, state): return Outcome(None, (1, 0)) if state >= 3 else None",
            "a draw has the score",
        ),
        ("def apply(self, state, move): return state + move", "illegal move 2 is applied"),
        (
            "def apply(self, state, move):\n"
            "    if move in self.legal_moves(state): return state + move\n"
            "    raise IllegalMoveError('x' * 33, 'not legal')",
            "has more than 32 characters",
        ),
        ("def parse_move(self, state, text): return 2 if text == '2' else 1", "is read as a move"),
        ("def parse_state(self, text): return 0", "is read back as another state"),
        ("def seats(self, state): return ('A', 'A')", "both seats are called A"),
        ("def to_move(self, state): return Side.SECOND", "FIRST is not to move at the start"),
        ("def board_text(self, state): return 'a\\nb'", "it raises"),
        ("def is_half_over(self, state): return state == 1", "is_half_over becomes False again"),
        (
            "def layout(self, state): return GridBoard((('X',) * 3,), ('X', 'O'))",
            "does not show the last move",
        ),
        (
            "def layout(self, state): return GridBoard((('X',) * state,), ('X', 'O'))",
            "the layout has the size",
        ),
        ("def format_move(self, state, move): 1 / 0", "it raises ZeroDivisionError"),
    ],
)
def test_a_broken_rule_book_is_caught(method: str, problem: str) -> None:
    """A game of adding 1 or 2 until 3 or more, with one wrong method."""
    namespace: dict[str, Any] = {}
    exec(RULES + textwrap.indent(method, "    "), namespace)
    problems = [text for _, text in check_game(namespace["Count"]()) if text]
    assert any(problem in text for text in problems), problems


def test_the_rule_book_without_a_wrong_method_passes() -> None:
    namespace: dict[str, Any] = {}
    exec(RULES, namespace)
    assert [text for _, text in check_game(namespace["Count"]()) if text] == []


def test_a_name_is_registered_once() -> None:
    namespace: dict[str, Any] = {}
    exec(RULES, namespace)
    register_game("count", lambda spec: namespace["Count"](), about="counts to three")
    register_game(
        "count", lambda spec: namespace["Count"](), about="counts to three"
    )  # the same module again
    assert parse_game("count").name == "count"


RULES = """\
from referee.games.base import *
from referee.games.layout import GridBoard

class Count:
    name = "count"
    swap = None

    def initial_state(self): return 0
    def to_move(self, state): return Side(state % 2)
    def seats(self, state): return ("Ada", "Bob")
    def legal_moves(self, state): return [[1], [1, 2], [1]][state] if state < 3 else []
    def apply(self, state, move):
        if move not in self.legal_moves(state):
            raise IllegalMoveError("not-legal", f"{move} is not legal")
        return state + move
    def outcome(self, state): return Outcome(Side.FIRST, (1, 0)) if state >= 3 else None
    def is_half_over(self, state): return state >= 2
    def parse_move(self, state, text):
        if text not in ("1", "2"):
            raise InvalidMoveError("bad-number", "not a number")
        return int(text)
    def format_move(self, state, move): return str(move)
    def board_text(self, state): return str(state)
    def format_state(self, state): return str(state)
    def parse_state(self, text):
        if text not in ("0", "1", "2", "3"):
            raise PositionError("no state")
        return int(text)
    def layout(self, state): return GridBoard((("X",) * state + ("",) * (3 - state),), ("X", "O"))
"""
