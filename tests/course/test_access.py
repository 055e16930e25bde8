"""Access to a course: sessions, one-time links and tokens."""

import re
from datetime import datetime, timedelta

import pytest

from tests.support.courses import NOW, PASSWORD, account_with, add_student, after, use_link
from tests.support.statement_faults import fault_before
from tournaments.course.course import Course
from tournaments.course.model import CourseError, LinkPurpose, Role
from tournaments.course.people import credentials
from tournaments.course.people.credentials import csrf_of
from tournaments.course.schema import metadata
from tournaments.database.base import Connections, Location, StoreError

ANOTHER = "another password"


def test_no_secret_is_in_the_database(place: Location, course: Course) -> None:
    student = add_student(course)
    session_secret, session = course.sessions.start(student.id, NOW)
    link_secret = course.links.make(student.id, LinkPurpose.RESET, NOW)
    token_secret, _ = course.tokens.make(student.id, "laptop", NOW, None)
    with Connections(place) as connections, connections.reading() as connection:
        stored = repr([connection.execute(table.select()).all() for table in metadata.tables.values()])
    assert student.login in stored
    for secret in (PASSWORD, session_secret, session.csrf, link_secret, token_secret, token_secret[4:]):
        assert len(secret) > 9
        assert secret not in stored


def test_a_disabled_account_has_no_access(course: Course) -> None:
    others = [add_student(course)]
    student = add_student(course)
    others.append(add_student(course))
    link = course.links.make(student.id, LinkPurpose.RESET, NOW)
    token, _ = course.tokens.make(student.id, "laptop", NOW, None)
    course.accounts.set_disabled(student.id, True)
    with pytest.raises(CourseError, match="used already"):
        use_link(course, link, ANOTHER, NOW)
    for other in others:
        course.sessions.start(other.id, NOW)
    for account_id in (student.id, 99):
        with pytest.raises(CourseError, match="cannot sign in"):
            course.sessions.start(account_id, NOW)
        with pytest.raises(CourseError, match="no link can be made"):
            course.links.make(account_id, LinkPurpose.RESET, NOW)
    assert course.tokens.find(token, NOW) is None
    course.accounts.set_disabled(student.id, False)
    assert course.tokens.find(token, NOW) == student


def test_access_needs_no_space_on_the_disk(course: Course) -> None:
    def fail() -> None:
        raise StoreError("the disk is full", is_ours=True)

    student = add_student(course)
    secret, session = course.sessions.start(student.id, NOW)
    token, _ = course.tokens.make(student.id, "laptop", NOW, None)
    with fault_before(1, fail) as fault:
        assert course.sessions.find(secret, after(days=1)) == session
        assert fault.happened
    with fault_before(1, fail) as fault:
        assert course.tokens.find(token, after(days=1)) == student
        assert fault.happened
    assert course.tokens.of(student.id)[0].used_at is None
    renewed = course.sessions.find(secret, after(days=1))
    assert renewed is not None
    assert renewed.expires_at == after(days=15)


# Sessions


def test_a_session_is_found_by_its_secret_alone(course: Course) -> None:
    one, other = add_student(course), add_student(course)
    started = [course.sessions.start(student.id, NOW) for student in (one, other, one)]
    assert len({secret for secret, _ in started} | {session.csrf for _, session in started}) == 6
    for secret, session in started:
        assert course.sessions.find(secret, NOW) == session
        assert session.csrf == csrf_of(secret)
        assert course.sessions.find(session.csrf, NOW) is None
    assert [session.account_id for _, session in started] == [one.id, other.id, one.id]


def test_a_session_ends_two_weeks_after_its_last_use(course: Course) -> None:
    secret, session = course.sessions.start(add_student(course).id, NOW)
    assert session.expires_at == NOW + timedelta(days=14)
    assert course.sessions.find(secret, NOW + credentials.RENEWED_AFTER) == session  # too soon to be stored
    found = course.sessions.find(secret, after(days=13))
    assert found is not None
    assert (found.created_at, found.expires_at) == (NOW, after(days=27))
    moment = timedelta(microseconds=1)
    assert course.sessions.find(secret, after(days=27) - moment) is not None
    end = after(days=41) - moment
    assert course.sessions.find(secret, end) is None
    course.sessions.purge(end)
    assert course.sessions.find(secret, NOW) is None


def test_signing_out_of_one_browser(course: Course) -> None:
    student, other = add_student(course), add_student(course)
    secrets = [course.sessions.start(one.id, NOW)[0] for one in (student, student, other)]

    def valid() -> list[bool]:
        return [course.sessions.find(secret, NOW) is not None for secret in secrets]

    course.sessions.end(secrets[0])
    course.sessions.purge(NOW)
    assert valid() == [False, True, True]


# Links


def test_an_invitation_is_accepted_once(course: Course) -> None:
    invited = course.accounts.add("student-1", "Student 1", Role.STUDENT, None, NOW)
    secret = course.links.make(invited.id, LinkPurpose.INVITATION, NOW)
    assert course.links.find(secret, after(days=29)) == (invited, LinkPurpose.INVITATION)
    accepted = use_link(course, secret, PASSWORD, after(days=29))
    assert (accepted.id, accepted.has_password) == (invited.id, True)
    assert course.links.find(secret, NOW) is None
    with pytest.raises(CourseError, match="used already"):
        use_link(course, secret, ANOTHER, NOW)
    assert account_with(course, "student-1", PASSWORD) == accepted


@pytest.mark.parametrize("purpose", LinkPurpose)
def test_a_reset_revokes_tokens(course: Course, purpose: LinkPurpose) -> None:
    student = add_student(course)
    token_secret, _ = course.tokens.make(student.id, "laptop", NOW, None)
    use_link(course, course.links.make(student.id, purpose, NOW), ANOTHER, NOW)
    assert (course.tokens.find(token_secret, NOW) is None) is (purpose is LinkPurpose.RESET)


def test_links_that_are_void(course: Course) -> None:
    student = add_student(course)
    replaced = course.links.make(student.id, LinkPurpose.RESET, NOW)
    newest = course.links.make(student.id, LinkPurpose.RESET, NOW, days=2)
    course.links.purge(NOW)
    assert course.links.find(newest, after(days=1)) is not None
    for secret, moment in ((replaced, NOW), (newest, after(days=2)), ("", NOW), ("x" * 43, NOW)):
        assert course.links.find(secret, moment) is None
        with pytest.raises(CourseError, match="too old: ask your lecturer for a new one"):
            use_link(course, secret, ANOTHER, moment)
    course.links.purge(after(days=2))
    assert course.links.find(newest, NOW) is None
    assert account_with(course, student.login, PASSWORD) == student


# Tokens


def test_a_token_belongs_to_an_account(course: Course) -> None:
    student = add_student(course)
    secret, token = course.tokens.make(student.id, " my  laptop ", NOW, 30)
    assert re.fullmatch(r"kal_[0-9A-Za-z]{40}", secret)
    fields = (token.name, token.created_at, token.expires_at, token.used_at)
    assert fields == ("my laptop", NOW, after(days=30), None)
    assert course.tokens.of(student.id) == [token]
    assert course.tokens.find(secret, after(days=29)) == student
    assert course.tokens.find(secret, after(days=30)) is None
    assert course.tokens.find(secret[4:], NOW) is None
    forever, endless = course.tokens.make(student.id, "server", NOW, None)
    assert endless.expires_at is None
    assert course.tokens.find(forever, after(days=9999)) == student
    assert [token.name for token in course.tokens.of(student.id)] == ["server", "my laptop"]


def test_the_use_of_a_token_is_stored_once_a_minute(course: Course) -> None:
    student = add_student(course)
    secret, _ = course.tokens.make(student.id, "laptop", NOW, None)

    def used(seconds: int) -> datetime | None:
        course.tokens.find(secret, after(seconds=seconds))
        return course.tokens.of(student.id)[0].used_at

    stored = [after(seconds=seconds) for seconds in (10, 10, 70, 70)]
    assert [used(seconds) for seconds in (10, 69, 70, 71)] == stored


def test_a_token_is_revoked_by_its_owner(course: Course) -> None:
    student, other = add_student(course), add_student(course)
    secret, token = course.tokens.make(student.id, "laptop", NOW, None)
    with pytest.raises(CourseError, match="there is no token"):
        course.tokens.revoke(token.id, other.id)
    assert course.tokens.find(secret, NOW) == student
    for _ in range(2):  # a page that is sent twice does no harm
        course.tokens.revoke(token.id, student.id)
    assert course.tokens.find(secret, NOW) is None
    assert course.tokens.of(student.id) == []


@pytest.mark.parametrize(
    ("name", "days", "sentence"),
    [
        *(("laptop", days, "1 to 3660 days") for days in (0, -1, credentials.LONGEST_DAYS + 1, 10**12)),
        *((name, None, "token's name") for name in ("", "a\0b", "x" * 101)),
    ],
)
@pytest.mark.parametrize("place", ["sqlite"], indirect=True)
def test_invalid_tokens(course: Course, name: str, days: int | None, sentence: str) -> None:
    student = add_student(course)
    with pytest.raises(CourseError, match=sentence):
        course.tokens.make(student.id, name, NOW, days)


def test_an_account_has_at_most_twenty_tokens(course: Course) -> None:
    student = add_student(course)
    with pytest.raises(CourseError, match="there is no account 99"):
        course.tokens.make(99, "laptop", NOW, None)
    made = [course.tokens.make(student.id, "laptop", NOW, None)[1] for _ in range(credentials.MOST)]
    with pytest.raises(CourseError, match="at most 20 tokens"):
        course.tokens.make(student.id, "laptop", NOW, None)
    course.tokens.revoke(made[3].id, student.id)
    course.tokens.make(student.id, "laptop", NOW, None)
