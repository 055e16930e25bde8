"""Fixtures of the tests of reports in a browser."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.reporting.replay_pages import Write, write_page
from tests.support.browser import chromium


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A browser for all tests of a module."""
    with chromium() as found:
        yield found


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """A function that writes the page of a record and returns its address."""
    return partial(write_page, tmp_path)
