"""Accounts of a course, and their passwords."""

import time
import unicodedata
from collections.abc import Callable
from functools import partial
from statistics import median

import argon2
import pytest

from tests.support.courses import (
    FAST_PASSWORDS,
    NOW,
    PASSWORD,
    account_with,
    add_account,
    add_student,
    set_password,
)
from tournaments.course.course import Course
from tournaments.course.model import Account, CourseError, LinkPurpose, Role
from tournaments.course.people.passwords import PARAMETERS, Passwords
from tournaments.database.base import Connections, Location

ANOTHER = "another password"


def assert_refused(sentence: str, *changes: Callable[[], object]) -> None:
    for change in changes:
        with pytest.raises(CourseError, match=sentence):
            change()


def test_an_account_is_stored_as_a_whole(course: Course) -> None:
    team = course.teams.add("Team 1", NOW)
    account = course.accounts.add("student-1", "Student 1", Role.STUDENT, team.id, NOW)
    assert account == Account(account.id, "student-1", "Student 1", Role.STUDENT, team.id, False, False, NOW)
    assert course.accounts.get(account.id) == account
    assert course.accounts.by_login("student-1") == account
    assert course.accounts.of_team(team.id) == [account]


def test_accounts_are_listed_by_login(course: Course) -> None:
    for login in ("b", "Z", "a", "ä"):
        add_student(course, login=login)
    assert [account.login for account in course.accounts.all()] == ["a", "b", "z", "ä"]


def test_a_login_belongs_to_one_account_in_any_spelling(course: Course) -> None:
    student = add_student(course, login="Student-É")
    for again in ("student-é", "STUDENT-É", "student-e\u0301", "\uff53tudent-é", " Student-É "):
        assert course.accounts.by_login(again) == student
        assert account_with(course, again, PASSWORD) == student
        with pytest.raises(CourseError, match="is taken"):
            course.accounts.add(again, "Student 2", Role.STUDENT, None, NOW)
    assert course.accounts.all() == [student]


def test_only_students_have_a_team(course: Course) -> None:
    team = course.teams.add("Team 1", NOW)
    for role in (Role.LECTURER, Role.ADMIN):
        with pytest.raises(CourseError, match="only students have a team"):
            course.accounts.add("lecturer", "Lecturer", role, team.id, NOW)
    lecturer = add_account(course, Role.LECTURER, "lecturer")
    with pytest.raises(CourseError, match="only students have a team"):
        course.accounts.move(lecturer.id, team.id)
    student = add_student(course, team)
    assert course.accounts.set_role(student.id, Role.LECTURER).team_id is None
    assert course.accounts.of_team(team.id) == []
    with pytest.raises(CourseError, match="there is no team 99"):
        course.accounts.add("student-9", "Student 9", Role.STUDENT, 99, NOW)


def test_changes_of_an_account(course: Course) -> None:
    teams = [course.teams.add(f"Team {number}", NOW) for number in (1, 2)]
    student = add_student(course, teams[0])
    assert course.accounts.move(student.id, teams[1].id).team_id == teams[1].id
    assert course.accounts.move(student.id, None).team_id is None
    assert course.accounts.rename(student.id, " Student  One ").name == "Student One"
    assert course.accounts.set_role(student.id, Role.STUDENT) == course.accounts.get(student.id)
    assert_refused(
        "there is no account 99",
        lambda: course.accounts.move(99, None),
        lambda: course.accounts.rename(99, "Nobody"),
        lambda: course.accounts.set_role(99, Role.STUDENT),
        lambda: course.accounts.set_disabled(99, True),
        lambda: set_password(course, 99, PASSWORD),
    )


def test_the_last_admin_who_can_sign_in_stays(course: Course) -> None:
    admin = add_account(course, Role.ADMIN, "admin")
    add_account(course, Role.LECTURER, "lecturer")
    invited = course.accounts.add("admin-2", "Admin 2", Role.ADMIN, None, NOW)
    disabled = add_account(course, Role.ADMIN, "admin-3")
    course.accounts.set_disabled(disabled.id, True)
    assert_refused(
        "the last admin",
        lambda: course.accounts.set_disabled(admin.id, True),
        lambda: course.accounts.set_role(admin.id, Role.LECTURER),
        lambda: course.accounts.set_role(admin.id, Role.STUDENT),
    )
    assert course.accounts.get(admin.id) == admin
    course.accounts.set_role(admin.id, Role.ADMIN)
    set_password(course, invited.id, PASSWORD)
    assert course.accounts.set_disabled(admin.id, True).disabled
    with pytest.raises(CourseError, match="the last admin"):
        course.accounts.set_disabled(invited.id, True)
    course.accounts.set_disabled(admin.id, False)
    assert course.accounts.set_role(invited.id, Role.LECTURER).role is Role.LECTURER


def test_an_invited_admin_may_go_if_another_one_is_left(course: Course) -> None:
    invited = course.accounts.add("admin-1", "Admin 1", Role.ADMIN, None, NOW)
    with pytest.raises(CourseError, match="the last admin"):
        course.accounts.set_disabled(invited.id, True)
    course.accounts.add("admin-2", "Admin 2", Role.ADMIN, None, NOW)
    assert course.accounts.set_disabled(invited.id, True).disabled


# Passwords


def test_signing_in(course: Course) -> None:
    student = add_student(course)
    invited = course.accounts.add("student-x", "Student X", Role.STUDENT, None, NOW)
    check = partial(account_with, course)
    assert check(student.login, PASSWORD) == student
    for login, password in ((student.login, PASSWORD + " "), ("nobody", PASSWORD), (invited.login, "")):
        assert check(login, password) is None
    course.accounts.set_disabled(student.id, True)
    assert check(student.login, PASSWORD) is None
    course.accounts.set_disabled(student.id, False)
    assert check(student.login, PASSWORD) == student


def test_a_password_has_10_to_200_characters(course: Course) -> None:
    student = add_student(course)
    for length, sentence in (
        (0, "at least 10"),
        (9, "at least 10"),
        (201, "at most 200"),
        (10**6, "at most 200"),
    ):
        password = "x" * (length // 2) + "\u0301" * ((length + 1) // 2)
        with pytest.raises(CourseError, match=sentence):
            set_password(course, student.id, password)
        assert account_with(course, student.login, password) is None
    assert account_with(course, student.login, PASSWORD) == student


def test_a_password_has_any_characters(course: Course) -> None:
    student = add_student(course)
    for password in ("x" * 10, "x" * 200, "ö" * 200, "\0" * 10, "\ud800" * 10, "🐎" * 10):
        set_password(course, student.id, password)
        assert account_with(course, student.login, password) == student
        assert account_with(course, student.login, password[:-1] + "y") is None


def test_a_password_is_the_same_in_all_encodings_of_its_letters() -> None:
    text = "größer-ähnlich"
    stored = FAST_PASSWORDS.hash(unicodedata.normalize("NFD", text))
    assert FAST_PASSWORDS.check(stored, unicodedata.normalize("NFC", text))
    assert not FAST_PASSWORDS.check(stored, text.upper())


def stored_password(place: Location, account_id: int) -> str:
    with Connections(place) as connections, connections.reading() as connection:
        statement = f"SELECT password FROM account WHERE id = {account_id}"
        stored: str = connection.exec_driver_sql(statement).scalar_one()
        return stored


def test_a_password_is_hashed_again_when_it_is_used_after_the_parameters_changed(place: Location) -> None:
    with Course(place, FAST_PASSWORDS) as course:
        student = add_student(course)
        old = stored_password(place, student.id)
        assert account_with(course, student.login, PASSWORD) == student
        assert stored_password(place, student.id) == old
    slower = argon2.Parameters(
        argon2.low_level.Type.ID, 19, 16, 32, time_cost=2, memory_cost=16, parallelism=1
    )
    with Course(place, Passwords(slower)) as course:
        secret, _ = course.sessions.start(student.id, NOW)
        assert account_with(course, student.login, ANOTHER) is None
        assert stored_password(place, student.id) == old
        for _ in range(2):
            assert account_with(course, student.login, PASSWORD) == student
            assert "m=16,t=2,p=1" in stored_password(place, student.id)
        assert course.sessions.find(secret, NOW) is not None  # the password was not changed


def test_two_sign_ins_at_a_time_hash_a_password_again_once(
    course: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    student = add_student(course)
    slower = Passwords(argon2.Parameters(argon2.low_level.Type.ID, 19, 16, 32, 2, 16, 1))
    monkeypatch.setattr(course.accounts, "_passwords", slower)
    hash_, first = slower.hash, []

    def overtaken(password: str) -> str:
        monkeypatch.setattr(slower, "hash", hash_)
        first.append(course.accounts.check_password(student.login, PASSWORD))
        return hash_(password)

    monkeypatch.setattr(slower, "hash", overtaken)
    second = course.accounts.check_password(student.login, PASSWORD)
    for found in (*first, second):
        assert found is not None
        course.accounts.check_same_password(student.id, found[1])


def test_the_parameters_are_those_of_rfc_9106() -> None:
    """Section 4: "If much less memory is available, a uniformly safe option is Argon2id with t=3 iterations,
    p=4 lanes, m=2^(16) (64 MiB of RAM), 128-bit salt, and 256-bit tag size".
    """
    stored = Passwords().hash(PASSWORD)
    assert stored.startswith("$argon2id$v=19$m=65536,t=3,p=4$")
    assert (PARAMETERS.salt_len, PARAMETERS.hash_len) == (16, 32)
    assert Passwords().check(stored, PASSWORD)


def test_an_unknown_login_takes_as_long() -> None:
    """The time of a refusal does not reveal which logins exist."""
    passwords = Passwords(argon2.Parameters(argon2.low_level.Type.ID, 19, 16, 32, 2, 8192, 1))
    stored = passwords.hash(PASSWORD)

    def seconds(known: str | None) -> float:
        begun = time.process_time()
        assert not passwords.check(known, ANOTHER)
        return time.process_time() - begun

    pairs = [(seconds(stored), seconds(None)) for _ in range(9)]
    with_login, without = (median(times) for times in zip(*pairs, strict=True))
    assert 0.5 < with_login / without < 2


def test_access_ends_with_a_change_of_the_password_and_with_being_disabled(course: Course) -> None:
    student, other = add_student(course), add_student(course)
    changes: list[Callable[[], object]] = [
        lambda: set_password(course, student.id, ANOTHER),
        lambda: course.accounts.set_disabled(student.id, True),
    ]
    for change in changes:
        sessions = [course.sessions.start(one.id, NOW)[0] for one in (student, student, other)]
        links = [course.links.make(one.id, LinkPurpose.RESET, NOW) for one in (student, other)]
        change()
        assert [course.sessions.find(secret, NOW) is not None for secret in sessions] == [False, False, True]
        assert [course.links.find(secret, NOW) is not None for secret in links] == [False, True]


@pytest.mark.parametrize(
    "password",
    ["Password123", "1234567890", "a123456789", "Sommer2026!", "testTEST12", "P@ssw0rd2026"],
)
def test_common_passwords_are_refused(course: Course, password: str) -> None:
    student = add_student(course)
    with pytest.raises(CourseError, match="is a common one"):
        set_password(course, student.id, password)
    assert account_with(course, student.login, PASSWORD) is not None
