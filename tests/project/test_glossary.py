"""The terms of docs/glossary.md are words of the code, and its classes and modules exist."""

import ast
import re
from collections.abc import Iterator
from functools import cache

import pytest

from tests.support.paths import REPOSITORY_ROOT

pytestmark = pytest.mark.any_database

ROOT = REPOSITORY_ROOT
TEXT = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
ENTRIES = re.findall(r"^- \*\*([^*]+)\*\*: ", TEXT, re.MULTILINE)
NAMED = re.findall(r"`((?:protocol|referee|sample_bots|tournaments)(?:\.\w+)+)`", TEXT)
REQUIRED = """
game match round pairing bye seat ply turn time_control increment forfeit verdict tournament format entrant
standings tie-break rating interval submission version qualification ladder worker slot queue job record
journal ruling sandbox tier cgroup limit adapter challenge casual_game remote_bot
outbox current_version course's_journal
"""


def words_of(tree: ast.AST) -> Iterator[str]:
    """Yield the identifiers of a module as words, and its docstrings."""
    for node in ast.walk(tree):
        for field in ("name", "id", "attr", "arg"):
            identifier = getattr(node, field, None)
            if isinstance(identifier, str):
                yield re.sub(r"(?<=[a-z])(?=[A-Z])|_", " ", identifier)
        if (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        ):
            yield node.value.value


@cache
def vocabulary() -> str:
    """Return all words of the three packages, in lower case, with single spaces."""
    files = (
        path for package in ("protocol", "referee", "tournaments") for path in (ROOT / package).rglob("*.py")
    )
    found = {words for path in files for words in words_of(ast.parse(path.read_text(encoding="utf-8")))}
    return re.sub(r"[\s-]+", " ", "\n".join(found).lower())


def is_used(term: str) -> bool:
    """Return whether a term, in the singular or the plural, is a word of the code."""
    word = re.escape(term.lower()).replace(r"\-", " ").replace(r"\ ", " ")
    return re.search(rf"\b(?:{word}|{word}e?s|{word.removesuffix('y')}ies)\b", vocabulary()) is not None


def exists(name: str) -> bool:
    """Return whether a dotted name is a package or module of this tree, or a class in one."""
    path = ROOT.joinpath(*name.split("."))
    if path.with_suffix(".py").is_file() or (path / "__init__.py").is_file():
        return True
    module = path.parent.with_suffix(".py")
    if not module.is_file():
        return False
    tree = ast.parse(module.read_text(encoding="utf-8"))
    return any(isinstance(node, ast.ClassDef) and node.name == path.name for node in tree.body)


def test_all_terms_are_there_once() -> None:
    required = [word.replace("_", " ") for word in REQUIRED.split()]
    assert sorted(ENTRIES) == sorted(required)


@pytest.mark.slow
def test_the_code_uses_the_terms_and_has_the_named_classes_and_modules() -> None:
    assert [term for term in ENTRIES if not is_used(term)] == []
    assert [name for name in NAMED if not exists(name)] == []


def test_the_checks_can_fail() -> None:
    assert not is_used("stalemate")
    assert not exists("referee.judge.match.Umpire")
    assert not exists("referee.umpire")
