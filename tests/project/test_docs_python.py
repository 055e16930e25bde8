"""The examples of docs/api run as printed, and print what the pages show."""

import contextlib
import io
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import referee
import tournaments
from tests.support.paths import REPOSITORY_ROOT
from tournaments import Results

PAGES = sorted((REPOSITORY_ROOT / "docs" / "api").glob("*.md"))
EXAMPLE = re.compile(r"^```python\n(.*?)^```\n\n```text\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINES = {"games.md": 10, "tournaments.md": 20}
"""Page -> most lines of its first example."""


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_examples_print_what_the_page_shows(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = page.read_text(encoding="utf-8")
    examples = EXAMPLE.findall(text)
    assert len(examples) == text.count("```python\n")
    assert len(examples[0][0].splitlines()) <= LINES[page.name]
    names: dict[str, Any] = {"__name__": "__main__"}
    for code, expected in examples:
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile(code, page.name, "exec"), names)
        assert out.getvalue() == expected
    if page.name == "tournaments.md":
        check_columns(text, Results.load("cup-results"))


@pytest.mark.parametrize("package", [referee, tournaments], ids=lambda package: package.__name__)
def test_each_public_name_is_on_its_page(package: ModuleType) -> None:
    page = {"referee": "games.md", "tournaments": "tournaments.md"}[package.__name__]
    text = (REPOSITORY_ROOT / "docs" / "api" / page).read_text(encoding="utf-8")
    assert sorted(re.findall(r"^        - (\w+)$", text, re.MULTILINE)) == sorted(package.__all__)


def check_columns(text: str, results: Results) -> None:
    """Check that the page's table has the columns of the standings."""
    rows = re.findall(r"^\| ((?:`\w+`(?:, )?)+) \|", text, re.MULTILINE)
    documented = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    assert documented - set(results.table[0]) == {"match_points", "mean_move_ms"}
    assert set(results.table[0]) <= documented
