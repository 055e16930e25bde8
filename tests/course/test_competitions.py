"""Competitions of a course, and the names of their competitors."""

from dataclasses import replace

import pytest

from tests.support.courses import NOW, add_student, add_version, after
from tournaments.course.course import Course
from tournaments.course.model import (
    HIDDEN,
    Competition,
    CompetitionKind,
    CompetitionState,
    Competitor,
    CourseError,
)

DRAFT, CREATED, RUNNING, PAUSED, FINISHED, FAILED, CANCELLED, DELETED = CompetitionState

NEXT: dict[CompetitionState, set[CompetitionState]] = {
    DRAFT: {CREATED, DELETED},
    CREATED: {RUNNING, FAILED, CANCELLED, DELETED},
    RUNNING: {PAUSED, FINISHED, FAILED, CANCELLED},
    PAUSED: {RUNNING, FINISHED, FAILED, CANCELLED, DELETED},
    FINISHED: {RUNNING, FAILED, DELETED},
    FAILED: {RUNNING, PAUSED, CANCELLED, DELETED},
    CANCELLED: {RUNNING, DELETED},
    DELETED: set(),
}
WAY_TO: dict[CompetitionState, tuple[CompetitionState, ...]] = {
    DRAFT: (),
    CREATED: (CREATED,),
    CANCELLED: (CREATED, CANCELLED),
    DELETED: (DELETED,),
    RUNNING: (CREATED, RUNNING),
    PAUSED: (CREATED, RUNNING, PAUSED),
    FINISHED: (CREATED, RUNNING, FINISHED),
    FAILED: (CREATED, FAILED),
}


def add_tournament(course: Course, slug: str = "cup") -> Competition:
    return course.competitions.add(slug, "The cup", CompetitionKind.TOURNAMENT, {"rounds": 3}, None, NOW)


def test_a_competition_is_stored_as_a_whole(course: Course) -> None:
    student = add_student(course)
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
    assert course.competitions.get(cup.id) == course.competitions.by_slug("cup-1") == cup
    assert course.competitions.all() == [practice, cup]


def test_slugs_are_valid_and_unique(course: Course) -> None:
    for slug in ("", "Cup", "a b", "a_b", "../x", "a/b", "a\0", "ä", "x" * 41, "a\n"):
        with pytest.raises(CourseError, match="cannot be in an address"):
            add_tournament(course, slug)
    cup = add_tournament(course)
    with pytest.raises(CourseError, match="'cup' already"):
        add_tournament(course)
    with pytest.raises(CourseError, match="the title is missing"):
        course.competitions.add("cup-2", " ", CompetitionKind.TOURNAMENT, {}, None, NOW)
    assert course.competitions.all() == [cup]


@pytest.mark.parametrize("before", CompetitionState)
@pytest.mark.parametrize("place", ["sqlite"], indirect=True)
def test_which_states_follow(course: Course, before: CompetitionState) -> None:
    for number, to in enumerate(CompetitionState):
        kind = CompetitionKind.TOURNAMENT
        cup = course.competitions.add(f"cup-{number}", "The cup", kind, {}, None, NOW, DRAFT)
        for state in WAY_TO[before]:
            cup = course.competitions.set_state(cup.id, state, "", NOW)
        if to is before or to in NEXT[before]:
            changed = course.competitions.set_state(cup.id, to, "why\0", NOW)
            assert (changed.state, changed.message) == (to, "why␀")
        else:
            with pytest.raises(CourseError, match=f"'The cup' is {before}: it cannot be {to} next"):
                course.competitions.set_state(cup.id, to, "why", NOW)
            assert course.competitions.get(cup.id) == cup


@pytest.mark.parametrize("state", CompetitionState)
def test_who_may_know_of_a_competition(state: CompetitionState) -> None:
    cup = Competition(
        1,
        "cup",
        "Cup",
        CompetitionKind.TOURNAMENT,
        state,
        {},
        "",
        NOW,
        None,
        started_at=None,
        finished_at=None,
    )
    hidden = replace(cup, spec={HIDDEN: True})
    assert cup.is_visible(teaches=True) is hidden.is_visible(teaches=True) is (state is not DELETED)
    assert cup.is_visible(teaches=False) is (state not in (DRAFT, DELETED))
    assert not hidden.is_visible(teaches=False)


def test_the_moments_of_its_beginning_and_its_end(course: Course) -> None:
    cup = add_tournament(course)
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


def test_a_name_belongs_to_one_competitor_for_ever(course: Course) -> None:
    team = course.teams.add("Team 1", NOW)
    student = add_student(course, team)
    first, second = (add_version(course, team, student, content).id for content in ("c1", "c2"))
    cup, other = add_tournament(course), add_tournament(course, "other")
    enter = course.competitions.enter
    for _ in range(2):
        entered = enter(cup.id, "Team 1 v1", first, None)
        reference = enter(cup.id, "ladder:5", None, "ladder:5")
    assert entered == Competitor(cup.id, "Team 1 v1", first, None)
    for name, version_id, text in (
        ("Team 1 v1", second, None),
        ("TEAM 1 v1", first, None),
        ("Team-1 v1", second, None),
        ("Team 1 v1", None, "ladder:5"),
        ("ladder:5", first, None),
        ("ladder:5", None, "ladder:6"),
    ):
        with pytest.raises(CourseError, match="is somebody else's"):
            enter(cup.id, name, version_id, text)
    assert course.competitions.competitors(cup.id) == [entered, reference]
    assert course.competitions.competitors(other.id) == []
    enter(other.id, "Team 1 v1", second, None)  # each competition has its own names


def test_a_competitor_is_a_version_or_a_reference_player(course: Course) -> None:
    cup = add_tournament(course)
    for version_id, reference in ((None, None), (1, "ladder:5")):
        with pytest.raises(CourseError, match="either a version or a reference player"):
            course.competitions.enter(cup.id, "x", version_id, reference)
    with pytest.raises(CourseError, match="there is no competition 99"):
        course.competitions.enter(99, "x", None, "ladder:5")
