"""The public names of the packages ``referee`` and ``tournaments``: complete, and imported when used."""

import ast
import importlib
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import referee
import tournaments

PACKAGES = (referee, tournaments)


@pytest.mark.parametrize("package", PACKAGES)
def test_type_checkers_and_programs_see_the_same_names(package: ModuleType) -> None:
    """The imports that only type checkers read are the names that a program gets."""
    assert package.__file__ is not None
    tree = ast.parse(Path(package.__file__).read_text(encoding="utf-8"))
    (branch,) = [node for node in tree.body if isinstance(node, ast.If)]
    imported = {
        alias.name: node.module
        for node in branch.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert sorted(imported) == sorted(package.__all__)
    for name, module in imported.items():
        assert module is not None
        assert getattr(package, name) is getattr(importlib.import_module(module), name)
    assert set(package.__all__) <= set(dir(package))


@pytest.mark.parametrize("package", PACKAGES)
def test_an_unknown_name_is_an_attribute_error(package: ModuleType) -> None:
    with pytest.raises(AttributeError, match=f"module '{package.__name__}' has no attribute 'nothing'"):
        _ = package.nothing


@pytest.mark.parametrize(
    "statement",
    [
        "import referee, tournaments",
        "from referee.games.catalog import parse_game; parse_game('kalah(3,2)'); parse_game('kalamala')",
        "from referee import parse_game, Game",
    ],
)
def test_a_bot_that_uses_the_rules_imports_nothing_large(statement: str) -> None:
    code = f"import sys; {statement}; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert "referee" in loaded
    assert not {"trio", "pydantic", "numpy", "sqlalchemy", "msgpack", "asyncio"} & set(loaded)
