"""Names in a course: which can be taken, which mean the same, and whose they stay."""

import unicodedata
from collections.abc import Iterator

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.courses import CHEAP, NOW
from tournaments.bots.manifest import NAME
from tournaments.course.course import Course
from tournaments.course.model import CourseError
from tournaments.course.texts import (
    LONGEST_TEAM_NAME,
    login_of,
    name_key,
    person_name,
    same_name,
    storable,
    team_name,
)
from tournaments.database.base import Location


@pytest.fixture
def course(place: Location) -> Iterator[Course]:
    with Course(place, CHEAP) as course:
        yield course


# Teams


def test_a_team_comes_back_whole(course: Course) -> None:
    team = course.teams.add("  Team   1 ", NOW)
    assert team.name == "Team 1"
    assert course.teams.get(team.id) == team
    assert course.teams.by_name("TEAM  1") == team
    assert course.teams.all() == [team]


@pytest.mark.parametrize(
    "name",
    [
        "",
        " ",
        "-x",
        "a/b",
        "a<b>",
        "a\0b",
        "a\nb",
        "a\u202eb",
        "a\u200bb",
        "\u3164",
        "x" * 51,
        "\ud800",
        "a\u00a0b",
    ],
)
def test_what_cannot_be_a_teams_name(course: Course, name: str) -> None:
    with pytest.raises(CourseError, match="cannot be a team's name") as error:
        course.teams.add(name, NOW)
    assert str(error.value).isprintable()
    assert course.teams.all() == []


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("Größe 1", "is taken"),
        ("GRÖSSE 1", "is taken"),
        ("Gro\u0308ße 1", "is taken"),
        ("Größe-1", "is too like 'Größe 1'"),
        ("größe,1", "is too like 'Größe 1'"),
    ],
)
def test_no_two_teams_are_too_like(course: Course, name: str, complaint: str) -> None:
    course.teams.add("Größe 1", NOW)
    other = course.teams.add("Team 2", NOW)
    with pytest.raises(CourseError, match=complaint):
        course.teams.add(name, NOW)
    with pytest.raises(CourseError, match=complaint):
        course.teams.rename(other.id, name)
    assert [team.name for team in course.teams.all()] == ["Größe 1", "Team 2"]


def test_a_name_that_a_team_had_stays_its_own(course: Course) -> None:
    team, other = course.teams.add("Team 1", NOW), course.teams.add("Team 2", NOW)
    renamed = course.teams.rename(team.id, "Sharks")
    assert (renamed.id, renamed.name, course.teams.get(team.id)) == (team.id, "Sharks", renamed)
    assert course.teams.by_name("team 1") == renamed
    assert course.teams.by_name("sharks") == renamed
    for name in ("Team 1", "TEAM-1"):
        with pytest.raises(CourseError, match="belonged to 'Sharks' before"):
            course.teams.rename(other.id, name)
    assert course.teams.rename(team.id, "team-1").name == "team-1"
    assert course.teams.rename(team.id, "Team 1") == team
    with pytest.raises(CourseError, match="there is no team 99"):
        course.teams.rename(99, "Team 9")


# Names

ANY = st.text(st.characters(codec="utf-8"), max_size=70)


@given(ANY)
def test_a_login_is_its_own_normal_form(text: str) -> None:
    try:
        login = login_of(text)
    except CourseError:
        return
    assert login_of(login) == login
    assert login_of(login.upper()) == login_of(login.upper().lower())
    assert login.isprintable()


@given(ANY)
def test_a_teams_name_can_be_a_bots_with_its_number(text: str) -> None:
    try:
        name = team_name(text)
    except CourseError:
        return
    assert team_name(name) == name
    assert len(name) <= LONGEST_TEAM_NAME
    assert NAME.fullmatch(f"{name} v999999")
    assert name.isprintable()


@given(ANY, ANY)
@example("0 \N{MACRON}", "")
def test_names_that_are_the_same_are_too_like(one: str, other: str) -> None:
    for changed in (one.upper(), unicodedata.normalize("NFD", one), f" {one} "):
        if same_name(changed) == same_name(one):
            assert name_key(changed) == name_key(one)
    assert name_key(one) == name_key(same_name(one))
    if name_key(one) != name_key(other):
        assert same_name(one) != same_name(other)


@given(ANY)
def test_a_persons_name_can_be_shown(text: str) -> None:
    try:
        name = person_name(text)
    except CourseError:
        return
    assert person_name(name) == name
    assert not any(unicodedata.category(char) in ("Cc", "Cs", "Zl", "Zp") for char in name)
    assert not any("\u202a" <= char <= "\u202e" or "\u2066" <= char <= "\u2069" for char in name)


def test_names_of_people_all_over_the_world() -> None:
    for name in ("Zoë O'Neill", "Nguyễn Văn A", "\u0645\u06cc\u200c\u062e\u0648", "李小龍", "Jr., Student"):
        assert person_name(name) == name
    for name in ("", " ", "\u200d", "a\0", "a\u202eb", "a\u2066b", "a\nb", "x" * 101, "\u3164", "\ud800"):
        with pytest.raises(CourseError, match="name"):
            person_name(name)


@given(st.text())
def test_any_text_can_be_stored(text: str) -> None:
    kept = storable(text)
    assert "\0" not in kept
    assert kept.encode().decode() == kept
    assert len(kept) == len(text)
