"""Competitions of a course, and who plays in them under which name."""

from collections.abc import Iterator
from itertools import product

import pytest

from tests.courses import CHEAP, NOW, a_student, a_version, after
from tournaments.course.course import Course
from tournaments.course.model import Competition, CompetitionKind, CompetitionState, Competitor, CourseError
from tournaments.database.base import Location

CREATED, RUNNING, PAUSED, FINISHED, FAILED = CompetitionState

FOLLOWS = {
    (CREATED, RUNNING),
    (CREATED, FAILED),
    (RUNNING, PAUSED),
    (RUNNING, FINISHED),
    (RUNNING, FAILED),
    (PAUSED, RUNNING),
    (PAUSED, FINISHED),
    (PAUSED, FAILED),
    (FINISHED, RUNNING),
    (FINISHED, FAILED),
    (FAILED, RUNNING),
    (FAILED, PAUSED),
}
WAY_TO = {
    CREATED: (),
    RUNNING: (RUNNING,),
    PAUSED: (RUNNING, PAUSED),
    FINISHED: (RUNNING, FINISHED),
    FAILED: (FAILED,),
}


@pytest.fixture
def course(place: Location) -> Iterator[Course]:
    with Course(place, CHEAP) as course:
        yield course


def a_tournament(course: Course, slug: str = "cup") -> Competition:
    return course.competitions.add(slug, "The cup", CompetitionKind.TOURNAMENT, {"rounds": 3}, None, NOW)


def test_a_competition_comes_back_whole(course: Course) -> None:
    student = a_student(course)
    spec = {"game": "manchester", "bots": ["Größe", "\0"], "seed": None}
    cup = course.competitions.add("cup-1", " The  cup ", CompetitionKind.TOURNAMENT, spec, student.id, NOW)
    assert cup == Competition(
        id=cup.id,
        slug="cup-1",
        title="The cup",
        kind=CompetitionKind.TOURNAMENT,
        state=CREATED,
        spec=spec,
        message="",
        created_at=NOW,
        created_by=student.id,
        started_at=None,
        finished_at=None,
    )
    practice = course.competitions.add("practice", "Practice", CompetitionKind.PRACTICE, {}, None, NOW)
    assert course.competitions.get(cup.id) == cup
    assert course.competitions.by_slug("cup-1") == cup
    assert course.competitions.all() == [practice, cup]
    assert course.competitions.set_spec(cup.id, {"seed": 7}).spec == {"seed": 7}
    with pytest.raises(CourseError, match="there is no competition 99"):
        course.competitions.set_spec(99, {})


@pytest.mark.parametrize("slug", ["", "Cup", "a b", "a_b", "../x", "a/b", "a\0", "ä", "x" * 41, "a\n"])
def test_what_cannot_be_in_an_address(course: Course, slug: str) -> None:
    with pytest.raises(CourseError, match="cannot be in an address"):
        a_tournament(course, slug)
    assert course.competitions.all() == []


def test_a_slug_is_given_once(course: Course) -> None:
    a_tournament(course)
    with pytest.raises(CourseError, match="'cup' already"):
        a_tournament(course)
    with pytest.raises(CourseError, match="the title is missing"):
        course.competitions.add("cup-2", " ", CompetitionKind.TOURNAMENT, {}, None, NOW)


@pytest.mark.parametrize(("before", "to"), list(product(CompetitionState, CompetitionState)))
@pytest.mark.parametrize("place", ["sqlite"], indirect=True)
def test_which_states_follow(course: Course, before: CompetitionState, to: CompetitionState) -> None:
    cup = a_tournament(course)
    for state in WAY_TO[before]:
        cup = course.competitions.set_state(cup.id, state, "", NOW)
    if before is to or (before, to) in FOLLOWS:
        changed = course.competitions.set_state(cup.id, to, "why\0", NOW)
        assert (changed.state, changed.message) == (to, "why␀")
    else:
        with pytest.raises(CourseError, match=f"'The cup' is {before}: it cannot be {to} next"):
            course.competitions.set_state(cup.id, to, "why", NOW)
        assert course.competitions.get(cup.id) == cup


def test_when_it_began_and_ended(course: Course) -> None:
    cup = a_tournament(course)
    found = [
        course.competitions.set_state(cup.id, state, "", after(hours=hours))
        for hours, state in enumerate((RUNNING, PAUSED, RUNNING, FINISHED, FINISHED, RUNNING, FINISHED))
    ]
    assert {one.started_at for one in found} == {NOW}
    ends = [one.finished_at for one in found]
    assert ends == [None, None, None, after(hours=3), after(hours=3), None, after(hours=6)]
    with pytest.raises(CourseError, match="there is no competition 99"):
        course.competitions.set_state(99, RUNNING, "", NOW)


# Competitors


def test_a_name_is_somebodys_for_ever(course: Course) -> None:
    team = course.teams.add("Team 1", NOW)
    student = a_student(course, team)
    versions = [a_version(course, team, student, content) for content in ("c1", "c2")]
    cup, other = a_tournament(course), a_tournament(course, "other")
    entered = course.competitions.enter(cup.id, "Team 1 v1", versions[0].id, None)
    assert entered == Competitor(cup.id, "Team 1 v1", versions[0].id, None)
    assert course.competitions.enter(cup.id, "Team 1 v1", versions[0].id, None) == entered
    reference = course.competitions.enter(cup.id, "ladder:5", None, "ladder:5")
    assert course.competitions.enter(cup.id, "ladder:5", None, "ladder:5") == reference
    for name, version_id, text in (
        ("Team 1 v1", versions[1].id, None),
        ("TEAM 1 v1", versions[0].id, None),
        ("Team-1 v1", versions[1].id, None),
        ("Team 1 v1", None, "ladder:5"),
        ("ladder:5", versions[0].id, None),
        ("ladder:5", None, "ladder:6"),
    ):
        with pytest.raises(CourseError, match="is somebody else's"):
            course.competitions.enter(cup.id, name, version_id, text)
    assert course.competitions.competitors(cup.id) == [entered, reference]
    assert course.competitions.competitors(other.id) == []
    course.competitions.enter(other.id, "Team 1 v1", versions[1].id, None)  # each competition has its own


def test_a_competitor_is_a_version_or_a_reference_player(course: Course) -> None:
    cup = a_tournament(course)
    for version_id, reference in ((None, None), (1, "ladder:5")):
        with pytest.raises(CourseError, match="either a version or a reference player"):
            course.competitions.enter(cup.id, "x", version_id, reference)
    with pytest.raises(CourseError, match="there is no competition 99"):
        course.competitions.enter(99, "x", None, "ladder:5")
