"""No module outside referee/games and sample_bots names a game: a new one needs a change nowhere else."""

import ast
import re
from collections.abc import Iterator

import pytest

from referee.games.catalog import GAMES
from tests.support.paths import REPOSITORY_ROOT

ROOT = REPOSITORY_ROOT
ABOUT_GAMES = ("referee/games", "tournaments/reporting/board", "tournaments/examples/games")
MODULES = sorted(
    path
    for package in ("protocol", "referee", "tournaments")
    for path in (ROOT / package).rglob("*.py")
    if not {ROOT / folder for folder in ABOUT_GAMES} & {*path.parents}
)
ABOUT_ONE_GAME = {
    "referee/adapters/command.py": "knows which games a protocol can describe",
    "referee/adapters/kgp.py": "is a protocol for games with pits alone",
    "tournaments/cli/solve.py": "solves one game alone",
    "tournaments/cli/main.py": "has the line that says so",
    "tournaments/config/host_speed.py": "times a walk through one game's positions, whatever is played",
    "tournaments/checking/advice.py": "says what to do about each fault, in the words of the game",
    "tournaments/checking/scenarios.py": "makes positions with long chains of extra turns",
    "tournaments/reporting/pgn.py": "writes the tags White and Black of Portable Game Notation",
    "tournaments/web/pages/faults.py": "says what each fault means, in the words of the game",
    "tournaments/course/settings.py": "has examples of games that people may play in the browser",
    "tournaments/web/lecturer/choices.py": "offers the usual variants of the course's game",
    "tournaments/web/views/casual_view.py": "has the class names of a board's parts that are clicked",
    "tournaments/web/views/course_game.py": "introduces the course's game to a first visitor",
    "tournaments/checking/output_rules.py": "knows the first move that gives no extra turn",
}
"""Modules that may name games, with the reason.  None is needed for a new game."""
# Names of games, of their seats, and of what only one of them has.
NAMES = re.compile(rf"\b({'|'.join(GAMES)}|north|south|white(?!-space)|black|pits?)\b", re.IGNORECASE)


def texts_of(tree: ast.AST) -> Iterator[str]:
    """Yield all names and texts of a module; docstrings may give examples, and are left out."""
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


def naming_texts(source: str) -> list[str]:
    """Return the names and texts of a module that name a game; it is parsed only if it can have any."""
    if not NAMES.search(re.sub(r"_|\\.", " ", source)):  # parts of words, and letters of escape sequences
        return []
    return [text for text in texts_of(ast.parse(source)) if NAMES.search(text)]


@pytest.mark.slow
def test_only_the_listed_modules_name_a_game() -> None:
    found = {str(path.relative_to(ROOT)): naming_texts(path.read_text(encoding="utf-8")) for path in MODULES}
    naming = {module: texts for module, texts in found.items() if texts}
    unexpected = {module: texts for module, texts in naming.items() if module not in ABOUT_ONE_GAME}
    assert unexpected == {}
    assert sorted(naming) == sorted(ABOUT_ONE_GAME)


def test_the_check_can_fail() -> None:
    found = naming_texts("from referee.games.kalah import Kalah\nx = 'MOVE in manchester'\n'''kalah'''\n")
    assert found == ["referee games kalah", "Kalah", "MOVE in manchester"]
    assert naming_texts("def legal_pits(): pass") == ["legal pits"]
    assert naming_texts(r"x = 'a\nkalah'") == ["a\nkalah"]
