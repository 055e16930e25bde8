"""Fixtures of the tests of reports in a browser."""

import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from referee.games.plugins import GAMES_VARIABLE
from tests.reporting.replay_pages import Write, write_page
from tests.support.browser import chromium
from tests.support.paths import REPOSITORY_ROOT


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A browser for all tests of a module."""
    with chromium() as found:
        yield found


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """A function that writes the page of a record and returns its address."""
    return partial(write_page, tmp_path)


@pytest.fixture
def further_games(game_catalog: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """The games of tournaments/examples/games, which are found by name."""
    files = sorted((REPOSITORY_ROOT / "tournaments" / "examples" / "games").glob("*.py"))
    monkeypatch.setenv(GAMES_VARIABLE, os.pathsep.join(map(str, files)))
