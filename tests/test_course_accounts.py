"""Who takes part in a course: accounts and their passwords."""

import time
import unicodedata
from collections.abc import Callable, Iterator
from statistics import median

import argon2
import pytest

from tests.courses import CHEAP, NOW, PASSWORD, a_person, a_student
from tournaments.course.course import Course
from tournaments.course.model import Account, CourseError, LinkPurpose, Role
from tournaments.course.passwords import PARAMETERS, Passwords
from tournaments.database.base import Connections, Location


@pytest.fixture
def course(place: Location) -> Iterator[Course]:
    with Course(place, CHEAP) as course:
        yield course


# Accounts


def test_an_account_comes_back_whole(course: Course) -> None:
    team = course.teams.add("Team 1", NOW)
    account = course.accounts.add("student-1", "Student 1", Role.STUDENT, team.id, NOW)
    assert account == Account(account.id, "student-1", "Student 1", Role.STUDENT, team.id, False, False, NOW)
    assert course.accounts.get(account.id) == account
    assert course.accounts.by_login("student-1") == account
    assert course.accounts.of_team(team.id) == [account]


def test_accounts_are_listed_by_login(course: Course) -> None:
    for login in ("b", "Z", "a", "ä"):
        a_student(course, login=login)
    assert [account.login for account in course.accounts.all()] == ["a", "b", "z", "ä"]


@pytest.mark.parametrize(
    "again", ["student-é", "STUDENT-É", "student-e\u0301", "\uff53tudent-é", " Student-É "]
)
def test_a_login_is_one_persons_however_it_is_written(course: Course, again: str) -> None:
    student = a_student(course, login="Student-É")
    assert course.accounts.by_login(again) == student
    assert course.accounts.check_password(again, PASSWORD) == student
    with pytest.raises(CourseError, match="is taken"):
        course.accounts.add(again, "Student 2", Role.STUDENT, None, NOW)
    assert course.accounts.all() == [student]


@pytest.mark.parametrize(
    "login",
    [
        "",
        " ",
        "two words",
        "a\tb",
        "a\0",
        "-a",
        "@a",
        "a<b>",
        "a/b",
        "a\u202eb",
        "\u3164",
        "x" * 101,
        "\ud800",
    ],
)
def test_what_cannot_be_a_login(course: Course, login: str) -> None:
    with pytest.raises(CourseError, match="cannot be a login") as error:
        course.accounts.add(login, "Student 1", Role.STUDENT, None, NOW)
    assert str(error.value).isprintable()


def test_only_students_have_a_team(course: Course) -> None:
    team = course.teams.add("Team 1", NOW)
    for role in (Role.LECTURER, Role.ADMIN):
        with pytest.raises(CourseError, match="only students have a team"):
            course.accounts.add("lecturer", "Lecturer", role, team.id, NOW)
    lecturer = a_person(course, Role.LECTURER, "lecturer")
    with pytest.raises(CourseError, match="only students have a team"):
        course.accounts.move(lecturer.id, team.id)
    student = a_student(course, team)
    assert course.accounts.set_role(student.id, Role.LECTURER).team_id is None
    assert course.accounts.of_team(team.id) == []
    with pytest.raises(CourseError, match="there is no team 99"):
        course.accounts.add("student-9", "Student 9", Role.STUDENT, 99, NOW)


def test_changes_of_an_account(course: Course) -> None:
    teams = [course.teams.add(f"Team {number}", NOW) for number in (1, 2)]
    student = a_student(course, teams[0])
    assert course.accounts.move(student.id, teams[1].id).team_id == teams[1].id
    assert course.accounts.move(student.id, None).team_id is None
    assert course.accounts.rename(student.id, " Student  One ").name == "Student One"
    assert course.accounts.set_role(student.id, Role.STUDENT) == course.accounts.get(student.id)
    changes: list[Callable[[], object]] = [
        lambda: course.accounts.move(99, None),
        lambda: course.accounts.rename(99, "Nobody"),
        lambda: course.accounts.set_role(99, Role.STUDENT),
        lambda: course.accounts.set_disabled(99, True),
        lambda: course.accounts.set_password(99, PASSWORD),
    ]
    for change in changes:
        with pytest.raises(CourseError, match="there is no account 99"):
            change()


# The last admin


def test_the_last_admin_stays(course: Course) -> None:
    admin = a_person(course, Role.ADMIN, "admin")
    a_person(course, Role.LECTURER, "lecturer")
    invited = course.accounts.add("admin-2", "Admin 2", Role.ADMIN, None, NOW)
    disabled = a_person(course, Role.ADMIN, "admin-3")
    course.accounts.set_disabled(disabled.id, True)
    changes: list[Callable[[], object]] = [
        lambda: course.accounts.set_disabled(admin.id, True),
        lambda: course.accounts.set_role(admin.id, Role.LECTURER),
        lambda: course.accounts.set_role(admin.id, Role.STUDENT),
    ]
    for change in changes:
        with pytest.raises(CourseError, match="the last admin"):
            change()
        assert course.accounts.get(admin.id) == admin
    course.accounts.set_role(admin.id, Role.ADMIN)
    course.accounts.set_password(invited.id, PASSWORD)
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
    student = a_student(course)
    assert course.accounts.check_password(student.login, PASSWORD) == student
    assert course.accounts.check_password(student.login, PASSWORD + " ") is None
    assert course.accounts.check_password(student.login, "") is None
    assert course.accounts.check_password("nobody", PASSWORD) is None
    invited = course.accounts.add("student-x", "Student X", Role.STUDENT, None, NOW)
    assert course.accounts.check_password(invited.login, "") is None
    course.accounts.set_disabled(student.id, True)
    assert course.accounts.check_password(student.login, PASSWORD) is None
    course.accounts.set_disabled(student.id, False)
    assert course.accounts.check_password(student.login, PASSWORD) == student


@pytest.mark.parametrize(
    ("password", "complaint"),
    [("", "at least 10"), ("x" * 9, "at least 10"), ("x" * 201, "at most 200"), ("x" * 10**6, "at most 200")],
)
def test_passwords_of_the_wrong_length(course: Course, password: str, complaint: str) -> None:
    student = a_student(course)
    with pytest.raises(CourseError, match=complaint):
        course.accounts.set_password(student.id, password)
    assert course.accounts.check_password(student.login, password) is None
    assert course.accounts.check_password(student.login, PASSWORD) == student


@pytest.mark.parametrize("password", ["x" * 10, "x" * 200, "ö" * 200, "\0" * 10, "\ud800" * 10, "🐎" * 10])
def test_passwords_of_any_characters(course: Course, password: str) -> None:
    student = a_student(course)
    course.accounts.set_password(student.id, password)
    assert course.accounts.check_password(student.login, password) == student
    assert course.accounts.check_password(student.login, password[:-1] + "y") is None


def test_a_password_is_the_same_in_all_forms_of_its_letters(course: Course) -> None:
    student = a_student(course)
    course.accounts.set_password(student.id, unicodedata.normalize("NFD", "größer-ähnlich"))
    assert (
        course.accounts.check_password(student.login, unicodedata.normalize("NFC", "größer-ähnlich"))
        == student
    )
    assert course.accounts.check_password(student.login, "GRÖSSER-ähnlich") is None


def kept_password(place: Location, account_id: int) -> str:
    with Connections(place) as connections, connections.reading() as connection:
        statement = f"SELECT password FROM account WHERE id = {account_id}"
        kept: str = connection.exec_driver_sql(statement).scalar_one()
        return kept


def test_a_password_is_hashed_again_when_it_is_used_after_the_parameters_changed(place: Location) -> None:
    with Course(place, CHEAP) as course:
        student = a_student(course)
        old = kept_password(place, student.id)
        assert PASSWORD not in old
        assert course.accounts.check_password(student.login, PASSWORD) == student
        assert kept_password(place, student.id) == old
    dearer = argon2.Parameters(
        argon2.low_level.Type.ID, 19, 16, 32, time_cost=2, memory_cost=16, parallelism=1
    )
    with Course(place, Passwords(dearer)) as course:
        secret, _ = course.sessions.start(student.id, NOW)
        assert course.accounts.check_password(student.login, "another password") is None
        assert kept_password(place, student.id) == old
        assert course.accounts.check_password(student.login, PASSWORD) == student
        assert "m=16,t=2,p=1" in kept_password(place, student.id)
        assert course.accounts.check_password(student.login, PASSWORD) == student
        assert course.sessions.find(secret, NOW) is not None  # it is no change of the password


def test_the_parameters_are_those_of_rfc_9106() -> None:
    """Section 4: "If much less memory is available, a uniformly safe option is Argon2id with t=3 iterations,
    p=4 lanes, m=2^(16) (64 MiB of RAM), 128-bit salt, and 256-bit tag size".
    """
    kept = Passwords().hash(PASSWORD)
    assert kept.startswith("$argon2id$v=19$m=65536,t=3,p=4$")
    assert (PARAMETERS.salt_len, PARAMETERS.hash_len) == (16, 32)
    assert Passwords().check(kept, PASSWORD)


def test_an_unknown_login_takes_as_long() -> None:
    """Which logins there are cannot be told from the time of a refusal."""
    passwords = Passwords(argon2.Parameters(argon2.low_level.Type.ID, 19, 16, 32, 2, 8192, 1))
    kept = passwords.hash(PASSWORD)

    def seconds(known: str | None) -> float:
        begun = time.process_time()
        assert not passwords.check(known, "another password")
        return time.process_time() - begun

    pairs = [(seconds(kept), seconds(None)) for _ in range(9)]
    with_login, without = (median(times) for times in zip(*pairs, strict=True))
    assert 0.5 < with_login / without < 2


def test_access_ends_with_a_change_of_the_password_and_with_being_disabled(course: Course) -> None:
    student, other = a_student(course), a_student(course)
    changes: list[Callable[[], object]] = [
        lambda: course.accounts.set_password(student.id, "another password"),
        lambda: course.accounts.set_disabled(student.id, True),
    ]
    for change in changes:
        secrets = [course.sessions.start(one.id, NOW)[0] for one in (student, student, other)]
        links = [course.links.make(one.id, LinkPurpose.RESET, NOW) for one in (student, other)]
        change()
        assert [course.sessions.find(secret, NOW) is not None for secret in secrets] == [False, False, True]
        assert [course.links.find(secret, NOW) is not None for secret in links] == [False, True]
