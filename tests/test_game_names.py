"""No module outside referee/games and sample_bots names a game: a new one needs a change nowhere else."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from referee.games.catalog import GAMES

ROOT = Path(__file__).parent.parent
MODULES = sorted(
    path
    for package in ("protocol", "referee", "tournaments")
    for path in (ROOT / package).rglob("*.py")
    if not {ROOT / "referee" / "games", ROOT / "tournaments" / "reporting" / "board"} & {*path.parents}
)
ABOUT_ONE_GAME = {
    "tournaments/cli/solve.py": "solves one game alone",
    "tournaments/cli/main.py": "has the line that says so",
    "tournaments/config/host_speed.py": "times a walk through one game's positions, whatever is played",
    "tournaments/checking/advice.py": "says what to do about each fault, in the words of the game",
    "tournaments/checking/scenarios.py": "makes positions with long chains of extra turns",
    "tournaments/reporting/pgn.py": "writes the tags White and Black of Portable Game Notation",
    "tournaments/web/pages/faults.py": "says what each fault means, in the words of the game",
    "tournaments/checking/output_rules.py": "knows the first move that gives no extra turn",
}
"""Modules that may name games, and why.  A new game can be checked without any of it, only less well."""
# Names of games, of their seats, and of what only one of them has.
NAMES = re.compile(rf"\b({'|'.join(GAMES)}|north|south|white(?!-space)|black|pits?)\b", re.IGNORECASE)


def spoken(tree: ast.AST) -> Iterator[str]:
    """All names and texts of a module's code; docstrings are for people, and may give examples."""
    documentation = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            documentation.add(node.value)
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name):
                yield name.replace("_", " ")
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.alias(name=name):
                yield name.replace("_", " ").replace(".", " ")
            case ast.ImportFrom(module=str(name)):
                yield name.replace("_", " ").replace(".", " ")
            case ast.Constant(value=str(text)) if node not in documentation:
                yield text


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_game_is_named(path: Path) -> None:
    found = {text for text in spoken(ast.parse(path.read_text(encoding="utf-8"))) if NAMES.search(text)}
    assert bool(found) == (str(path.relative_to(ROOT)) in ABOUT_ONE_GAME), found


def test_the_check_can_fail() -> None:
    tree = ast.parse("from referee.games.kalah import Kalah\nx = 'MOVE in manchester'\n'''kalah'''\n")
    assert {text for text in spoken(tree) if NAMES.search(text)} == {
        "referee games kalah",
        "Kalah",
        "MOVE in manchester",
    }
