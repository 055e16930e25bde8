"""Who gets a mark in a tournament of the server's, from the roster."""

from datetime import UTC, datetime

from tournaments.course.marked_students import marked_people
from tournaments.course.model import Account, Competitor, Role
from tournaments.reporting.marks.people import Student

NOW = datetime(2026, 3, 1, tzinfo=UTC)
TEAMS = {11: 1, 12: 1, 21: 2}
"""Of versions: two of team 1, one of team 2."""


def account(number: int, team: int | None, *, role: Role = Role.STUDENT, disabled: bool = False) -> Account:
    return Account(number, f"s{number}", f"student-{number}", role, team, True, disabled, NOW)


def bot(name: str, version: int | None) -> Competitor:
    return Competitor(1, name, version, None if version else name)


def student(number: int) -> Student:
    return Student(f"student-{number}", f"s{number}")


ROSTER = [
    account(2, 1),
    account(1, 1),
    account(3, 2),
    account(4, 3),
    account(5, None),
    account(6, None, role=Role.ADMIN),
]


def test_members_references_and_those_without_a_bot() -> None:
    found = marked_people([bot("One v1", 11), bot("ladder:3", None), bot("Two v1", 21)], TEAMS, ROSTER)
    assert found.people.groups == {"One v1": [student(1), student(2)], "Two v1": [student(3)]}
    assert found.people.no_bot == [student(4), student(5)]
    assert found.people.with_ids
    assert (found.references, found.remarks) == (("ladder:3",), ())


def test_a_team_is_marked_by_its_newest_bot() -> None:
    both = [bot("One v2", 12), bot("One v1", 11)]
    found = marked_people(both, TEAMS, ROSTER)
    assert list(found.people.groups) == ["One v2"]
    assert found.references == ("One v1",)
    assert found.remarks == ("'One v1' gets no mark: 'One v2' of the same team does",)


def test_a_bot_that_withdrew_is_marked_only_if_there_is_no_other() -> None:
    both = [bot("One v1", 11), bot("One v2", 12)]
    found = marked_people(both, TEAMS, ROSTER, {"One v2"})
    assert (list(found.people.groups), found.references) == (["One v1"], ())
    found = marked_people(both, TEAMS, ROSTER, {"One v1", "One v2"})
    assert (list(found.people.groups), found.references) == (["One v2"], ())


def test_disabled_accounts_get_no_row_and_a_team_of_them_no_student() -> None:
    found = marked_people([bot("Two v1", 21)], TEAMS, [account(3, 2, disabled=True)])
    assert (found.people.groups, found.people.no_bot) == ({}, [])
    assert found.remarks == ("disabled accounts get no row: s3",)
