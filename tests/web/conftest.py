"""Fixtures of the tests of pages."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.web.played_course import Played, open_played


@pytest.fixture
def played(tmp_path: Path) -> Iterator[Played]:
    """A course in which games were played; a test may change it."""
    with open_played(tmp_path) as played:
        yield played
