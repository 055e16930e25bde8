"""Fixtures of the course's tests."""

from collections.abc import Iterator

import pytest

from tests.support.courses import FAST_PASSWORDS
from tournaments.course.course import Course
from tournaments.database.base import Location


@pytest.fixture
def course(place: Location) -> Iterator[Course]:
    """Yield a course without people."""
    with Course(place, FAST_PASSWORDS) as course:
        yield course
