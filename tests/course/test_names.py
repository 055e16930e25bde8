"""Names in a course: which are valid, which are the same, and which are reserved."""

import unicodedata
from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.support.courses import NOW
from tournaments.bots.manifest import NAME
from tournaments.course.course import Course
from tournaments.course.model import CourseError, Role
from tournaments.course.texts import (
    LONGEST_TEAM_NAME,
    login_of,
    name_key,
    person_name,
    same_name,
    team_name,
)
from tournaments.database.base import storable


def test_a_team_is_stored_as_a_whole(course: Course) -> None:
    team = course.teams.add("  Team   1 ", NOW)
    assert team.name == "Team 1"
    assert course.teams.get(team.id) == team
    assert course.teams.by_name("TEAM  1") == team
    assert course.teams.all() == [team]


def test_no_two_teams_have_similar_names(course: Course) -> None:
    course.teams.add("Größe 1", NOW)
    other = course.teams.add("Team 2", NOW)
    for name, sentence in (
        ("Größe 1", "is taken"),
        ("GRÖSSE 1", "is taken"),
        ("Gro\u0308ße 1", "is taken"),
        ("Größe-1", "is too like 'Größe 1'"),
        ("größe,1", "is too like 'Größe 1'"),
    ):
        with pytest.raises(CourseError, match=sentence):
            course.teams.add(name, NOW)
        with pytest.raises(CourseError, match=sentence):
            course.teams.rename(other.id, name)
    assert [team.name for team in course.teams.all()] == ["Größe 1", "Team 2"]


def test_a_former_name_of_a_team_stays_reserved(course: Course) -> None:
    team, other = course.teams.add("Team 1", NOW), course.teams.add("Team 2", NOW)
    renamed = course.teams.rename(team.id, "Sharks")
    assert (renamed.id, renamed.name, course.teams.get(team.id)) == (team.id, "Sharks", renamed)
    assert course.teams.by_name("team 1") == course.teams.by_name("sharks") == renamed
    for name in ("Team 1", "TEAM-1"):
        with pytest.raises(CourseError, match="belonged to 'Sharks' before"):
            course.teams.rename(other.id, name)
    assert course.teams.rename(team.id, "team-1").name == "team-1"
    assert course.teams.rename(team.id, "Team 1") == team
    with pytest.raises(CourseError, match="there is no team 99"):
        course.teams.rename(99, "Team 9")


# Texts

INVALID = ("", " ", "a\0", "a\nb", "a\u202eb", "\u3164", "\ud800", "x" * 101)
"""Texts that are no name of anything."""


@pytest.mark.parametrize(
    ("normal", "more", "sentence"),
    [
        (login_of, ("two words", "a\tb", "-a", "@a", "a<b>", "a/b"), "cannot be a login"),
        (team_name, ("-x", "a/b", "a<b>", "a\u200bb", "x" * 51, "a\u00a0b"), "cannot be a team's name"),
        (person_name, ("\u200d", "a\u2066b"), "the name"),
    ],
)
def test_invalid_names(normal: Callable[[str], str], more: tuple[str, ...], sentence: str) -> None:
    for text in INVALID + more:
        with pytest.raises(CourseError, match=sentence) as error:
            normal(text)
        assert str(error.value).isprintable()


@pytest.mark.parametrize("place", ["sqlite"], indirect=True)
def test_nothing_is_stored_under_an_invalid_name(course: Course) -> None:
    with pytest.raises(CourseError, match="cannot be a login"):
        course.accounts.add("a/b", "Student 1", Role.STUDENT, None, NOW)
    with pytest.raises(CourseError, match="cannot be a team's name"):
        course.teams.add("a/b", NOW)
    assert not [*course.accounts.all(), *course.teams.all()]


def test_names_of_people_all_over_the_world() -> None:
    for name in ("Zoë O'Neill", "Nguyễn Văn A", "\u0645\u06cc\u200c\u062e\u0648", "李小龍", "Jr., Student"):
        assert person_name(name) == name


ANY = st.text(st.characters(codec="utf-8"), max_size=70)


@given(ANY)
def test_valid_names_are_their_own_normal_form_and_can_be_shown(text: str) -> None:
    for normal in (login_of, team_name, person_name):
        try:
            name = normal(text)
        except CourseError:
            continue
        assert normal(name) == name
        if normal is login_of:
            assert login_of(name.upper()) == login_of(name.upper().lower())
        if normal is team_name:  # a bot's name is the team's, with a number
            assert len(name) <= LONGEST_TEAM_NAME
            assert NAME.fullmatch(f"{name} v999999")
        if normal is not person_name:
            assert name.isprintable()
        assert not any(unicodedata.category(char) in ("Cc", "Cs", "Zl", "Zp") for char in name)
        assert not any("\u202a" <= char <= "\u202e" or "\u2066" <= char <= "\u2069" for char in name)


@given(ANY, ANY)
@example("0 \N{MACRON}", "")
def test_names_that_are_the_same_have_the_same_key(one: str, other: str) -> None:
    for changed in (one.upper(), unicodedata.normalize("NFD", one), f" {one} "):
        if same_name(changed) == same_name(one):
            assert name_key(changed) == name_key(one)
    assert name_key(one) == name_key(same_name(one))
    if name_key(one) != name_key(other):
        assert same_name(one) != same_name(other)


@pytest.mark.parametrize("read", [login_of, person_name, team_name])
def test_a_text_that_is_far_too_long_is_refused_as_it_is(read: Callable[[str], str]) -> None:
    """To normalize this one takes an hour, and no other thread runs meanwhile."""
    with pytest.raises(CourseError, match=r"1 to|is the most"):
        read("a" + "\u0301" * 500_000 + "\u0323" * 500_000)
    assert read(" " * 1000 + "a\u0308" * 20 + " " * 1000) == "ä" * 20


@given(st.text())
def test_any_text_can_be_stored(text: str) -> None:
    stored = storable(text)
    assert "\0" not in stored
    assert stored.encode().decode() == stored
    assert len(stored) == len(text)
