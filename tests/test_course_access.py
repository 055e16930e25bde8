"""What lets somebody into a course: sessions, one-time links, tokens."""

import re
from collections.abc import Iterator
from datetime import timedelta

import pytest

from tests.courses import CHEAP, NOW, PASSWORD, a_student, after
from tournaments.course import credentials
from tournaments.course.course import Course
from tournaments.course.credentials import csrf_of
from tournaments.course.model import CourseError, LinkPurpose, Role
from tournaments.course.schema import metadata
from tournaments.database.base import Connections, Location


@pytest.fixture
def course(place: Location) -> Iterator[Course]:
    with Course(place, CHEAP) as course:
        yield course


def test_no_secret_is_in_the_database(place: Location, course: Course) -> None:
    student = a_student(course)
    session_secret, session = course.sessions.start(student.id, NOW)
    link_secret = course.links.make(student.id, LinkPurpose.RESET, NOW)
    token_secret, _ = course.tokens.make(student.id, "laptop", NOW, None)
    with Connections(place) as connections, connections.reading() as connection:
        kept = repr([connection.execute(table.select()).all() for table in metadata.tables.values()])
    assert student.login in kept
    for secret in (PASSWORD, session_secret, session.csrf, link_secret, token_secret, token_secret[4:]):
        assert len(secret) > 9
        assert secret not in kept


# Sessions


def test_a_session_is_found_by_its_secret_alone(course: Course) -> None:
    students = [a_student(course), a_student(course)]
    started = [course.sessions.start(student.id, NOW) for student in (*students, students[0])]
    assert len({secret for secret, _ in started} | {session.csrf for _, session in started}) == 6
    for secret, session in started:
        assert course.sessions.find(secret, NOW) == session
        assert session.csrf == csrf_of(secret)
        assert course.sessions.find(session.csrf, NOW) is None
    assert [session.account_id for _, session in started] == [students[0].id, students[1].id, students[0].id]
    assert course.sessions.find("", NOW) is None


def test_a_session_ends_a_while_after_its_last_use(course: Course) -> None:
    student = a_student(course)
    secret, session = course.sessions.start(student.id, NOW)
    assert session.expires_at == NOW + timedelta(days=14)
    just = credentials.RENEWED_AFTER
    assert course.sessions.find(secret, NOW + just) == session  # a use so soon is not worth a write
    used = NOW + timedelta(days=13)
    found = course.sessions.find(secret, used)
    assert found is not None
    assert (found.created_at, found.expires_at) == (NOW, used + timedelta(days=14))
    assert course.sessions.find(secret, found.expires_at - timedelta(microseconds=1)) is not None
    last = found.expires_at - timedelta(microseconds=1) + timedelta(days=14)
    assert course.sessions.find(secret, last) is None
    course.sessions.purge(last)
    assert course.sessions.find(secret, NOW) is None


def test_signing_out(course: Course) -> None:
    student, other = a_student(course), a_student(course)
    secrets = [course.sessions.start(one.id, NOW)[0] for one in (student, student, student, other)]

    def valid() -> list[bool]:
        return [course.sessions.find(secret, NOW) is not None for secret in secrets]

    course.sessions.end(secrets[0])
    assert valid() == [False, True, True, True]
    course.sessions.end_all(student.id)
    assert valid() == [False, False, False, True]
    course.sessions.purge(NOW)
    assert valid() == [False, False, False, True]


def test_nobody_signs_in_with_a_disabled_account(course: Course) -> None:
    student = a_student(course)
    course.accounts.set_disabled(student.id, True)
    for number in (student.id, 99):
        with pytest.raises(CourseError, match="cannot sign in"):
            course.sessions.start(number, NOW)


# Links


def test_an_invitation_is_accepted_once(course: Course) -> None:
    invited = course.accounts.add("student-1", "Student 1", Role.STUDENT, None, NOW)
    secret = course.links.make(invited.id, LinkPurpose.INVITATION, NOW)
    assert course.links.find(secret, after(days=29)) == (invited, LinkPurpose.INVITATION)
    accepted = course.links.use(secret, PASSWORD, after(days=29))
    assert (accepted.id, accepted.has_password) == (invited.id, True)
    assert course.accounts.check_password("student-1", PASSWORD) == accepted
    assert course.links.find(secret, NOW) is None
    with pytest.raises(CourseError, match="used already"):
        course.links.use(secret, "another password", NOW)
    assert course.accounts.check_password("student-1", PASSWORD) == accepted


@pytest.mark.parametrize("purpose", LinkPurpose)
def test_a_reset_revokes_tokens(course: Course, purpose: LinkPurpose) -> None:
    student = a_student(course)
    token_secret, _ = course.tokens.make(student.id, "laptop", NOW, None)
    course.links.use(course.links.make(student.id, purpose, NOW), "another password", NOW)
    assert (course.tokens.find(token_secret, NOW) is None) is (purpose is LinkPurpose.RESET)


def test_a_password_that_is_refused_leaves_the_link(course: Course) -> None:
    student = a_student(course)
    secret = course.links.make(student.id, LinkPurpose.RESET, NOW)
    with pytest.raises(CourseError, match="at least 10"):
        course.links.use(secret, "short", NOW)
    course.links.use(secret, "another password", NOW)
    assert course.accounts.check_password(student.login, "another password") == student


def test_a_link_is_void(course: Course) -> None:
    student = a_student(course)
    older = course.links.make(student.id, LinkPurpose.RESET, NOW)
    newer = course.links.make(student.id, LinkPurpose.RESET, NOW, days=2)
    course.links.purge(NOW)
    assert course.links.find(newer, after(days=1)) is not None
    for secret, moment in ((older, NOW), (newer, after(days=2)), ("", NOW), ("x" * 43, NOW)):
        assert course.links.find(secret, moment) is None
        with pytest.raises(CourseError, match="too old: ask your lecturer for a new one"):
            course.links.use(secret, "another password", moment)
    course.links.purge(after(days=2))
    assert course.links.find(newer, NOW) is None
    assert course.accounts.check_password(student.login, PASSWORD) == student


def test_no_link_lets_a_disabled_account_in(course: Course) -> None:
    student = a_student(course)
    secret = course.links.make(student.id, LinkPurpose.RESET, NOW)
    course.accounts.set_disabled(student.id, True)
    with pytest.raises(CourseError, match="used already"):
        course.links.use(secret, "another password", NOW)
    for number in (student.id, 99):
        with pytest.raises(CourseError, match="no link can be made"):
            course.links.make(number, LinkPurpose.RESET, NOW)


# Tokens


def test_a_token_is_somebodys(course: Course) -> None:
    student = a_student(course)
    secret, token = course.tokens.make(student.id, " my  laptop ", NOW, 30)
    assert re.fullmatch(r"kal_[0-9A-Za-z]{40}", secret)
    assert (token.name, token.created_at, token.expires_at, token.used_at) == (
        *("my laptop", NOW, after(days=30), None),
    )
    assert course.tokens.of(student.id) == [token]
    assert course.tokens.find(secret, after(days=29)) == student
    assert course.tokens.find(secret, after(days=30)) is None
    assert course.tokens.find(secret[4:], NOW) is None
    forever, endless = course.tokens.make(student.id, "server", NOW, None)
    assert endless.expires_at is None
    assert course.tokens.find(forever, after(days=9999)) == student
    assert [token.name for token in course.tokens.of(student.id)] == ["server", "my laptop"]


def test_the_use_of_a_token_is_noted_now_and_then(course: Course) -> None:
    student = a_student(course)
    secret, _ = course.tokens.make(student.id, "laptop", NOW, None)
    noted = []
    for seconds in (10, 69, 70, 71):
        course.tokens.find(secret, after(seconds=seconds))
        noted.append(course.tokens.of(student.id)[0].used_at)
    assert noted == [after(seconds=10), after(seconds=10), after(seconds=70), after(seconds=70)]


def test_a_token_is_revoked_by_its_owner(course: Course) -> None:
    student, other = a_student(course), a_student(course)
    secret, token = course.tokens.make(student.id, "laptop", NOW, None)
    with pytest.raises(CourseError, match="there is no token"):
        course.tokens.revoke(token.id, other.id)
    assert course.tokens.find(secret, NOW) == student
    course.tokens.revoke(token.id, student.id)
    assert course.tokens.find(secret, NOW) is None
    assert course.tokens.of(student.id) == []
    course.tokens.revoke(token.id, student.id)  # a page that is sent twice does no harm


def test_tokens_rest_while_an_account_is_disabled(course: Course) -> None:
    student = a_student(course)
    secret, _ = course.tokens.make(student.id, "laptop", NOW, None)
    course.accounts.set_disabled(student.id, True)
    assert course.tokens.find(secret, NOW) is None
    course.accounts.set_disabled(student.id, False)
    assert course.tokens.find(secret, NOW) == student


def test_what_cannot_be_a_token(course: Course) -> None:
    student = a_student(course)
    for days in (0, -1, credentials.LONGEST_DAYS + 1, 10**12):
        with pytest.raises(CourseError, match="1 to 3660 days"):
            course.tokens.make(student.id, "laptop", NOW, days)
    for name in ("", "a\0b", "x" * 101):
        with pytest.raises(CourseError, match="token's name"):
            course.tokens.make(student.id, name, NOW, None)
    with pytest.raises(CourseError, match="there is no account 99"):
        course.tokens.make(99, "laptop", NOW, None)
    made = [course.tokens.make(student.id, "laptop", NOW, None)[1] for _ in range(credentials.MOST)]
    with pytest.raises(CourseError, match="at most 20 tokens"):
        course.tokens.make(student.id, "laptop", NOW, None)
    course.tokens.revoke(made[3].id, student.id)
    course.tokens.make(student.id, "laptop", NOW, None)
