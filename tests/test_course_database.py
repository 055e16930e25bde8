"""The course's database: its tables, its transactions, its journal; the same on SQLite and PostgreSQL."""

import sqlite3
from collections.abc import Iterator
from dataclasses import fields
from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import delete, inspect

from tests.courses import CHEAP, NOW, a_student, after
from tournaments.course import model, schema
from tournaments.course.course import MIGRATIONS, Course
from tournaments.course.model import CourseError, Role
from tournaments.course.schema import REVISION, account, metadata
from tournaments.database.base import Connections, Location, StoreError
from tournaments.database.sqlite import SQLiteFile


@pytest.fixture
def course(place: Location) -> Iterator[Course]:
    with Course(place, CHEAP) as course:
        yield course


def test_migrations_make_the_tables_of_the_schema(place: Location, course: Course) -> None:
    with Connections(place) as connections, connections.reading() as connection:
        options = {"compare_type": True, "compare_server_default": True}
        differences = compare_metadata(MigrationContext.configure(connection, opts=options), metadata)
        assert differences == []
        # What compare_metadata does not look at.
        for table in metadata.tables.values():
            found = inspect(connection).get_pk_constraint(table.name)
            assert found["constrained_columns"] == [column.name for column in table.primary_key], table.name
            nullable = {
                column["name"]: column["nullable"] for column in inspect(connection).get_columns(table.name)
            }
            assert nullable == {column.name: column.nullable for column in table.columns}, table.name


def test_the_revision_that_is_looked_for_is_the_newest() -> None:
    assert ScriptDirectory(str(MIGRATIONS.scripts)).get_current_head() == REVISION


def test_what_is_there_stays_there(place: Location) -> None:
    with Course(place, CHEAP) as course:
        student = a_student(course, course.teams.add("Team 1", NOW))
    with Course(place, CHEAP) as course:
        assert course.accounts.all() == [student]


def test_a_newer_course_is_not_touched(place: Location, course: Course) -> None:
    with Connections(place) as connections, connections.writing() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(StoreError, match="upgrade kalarena"):
        Course(place)


@pytest.mark.parametrize("place", ["sqlite"], indirect=True)
def test_another_programs_file_is_not_touched(place: SQLiteFile) -> None:
    with sqlite3.connect(place.path) as connection:
        connection.execute("CREATE TABLE notes (note TEXT)")
    connection.close()
    with pytest.raises(StoreError, match="is no course"):
        Course(place)


def test_the_number_of_a_row_that_is_gone_is_not_given_again(place: Location, course: Course) -> None:
    gone = a_student(course)
    with Connections(place) as connections, connections.writing() as connection:
        connection.execute(delete(account).where(account.c.id == gone.id))
    assert a_student(course).id > gone.id


@pytest.mark.parametrize("number", [0, -1, 7, 2**31 - 1, 2**31, 2**63, 10**30])
def test_any_number_can_be_asked_for(course: Course, number: int) -> None:
    assert course.accounts.get(number) is None
    assert course.accounts.of_team(number) == []
    assert course.teams.get(number) is None
    assert course.versions.get(number) is None
    assert course.versions.checked(number) is None
    assert course.versions.of_team(number) == []
    assert course.competitions.get(number) is None
    assert course.competitions.competitors(number) == []
    assert course.tokens.of(number) == []
    with pytest.raises(CourseError, match=f"there is no token {number}"):
        course.tokens.revoke(number, 1)
    with pytest.raises(CourseError, match="there is no account"):
        course.accounts.rename(number, "Somebody")
    assert course.versions.all(10, before=number) == []
    assert course.journal.entries(10, before=number) == []


@pytest.mark.parametrize("text", ["", "\0", "a\0b", "\ud800", "'; DROP TABLE account; --", "x" * 100_000])
def test_any_text_can_be_asked_for(course: Course, text: str) -> None:
    assert course.accounts.by_login(text) is None
    assert course.accounts.check_password(text, text) is None
    assert course.teams.by_name(text) is None
    assert course.sessions.find(text, NOW) is None
    assert course.links.find(text, NOW) is None
    assert course.tokens.find(text, NOW) is None
    assert course.competitions.by_slug(text) is None
    course.sessions.end(text)


# Transactions that contain others


def test_a_transaction_keeps_everything(course: Course) -> None:
    with course.transaction():
        team = course.teams.add("Team 1", NOW)
        student = course.accounts.add("student-1", "Student 1", Role.STUDENT, team.id, NOW)
        course.journal.note(NOW, None, "roster.import", "student-1")
        assert course.accounts.get(student.id) == student  # it sees what it has written itself
    assert course.accounts.of_team(team.id) == [student]
    assert len(course.journal.entries(10)) == 1


@pytest.mark.parametrize("error", [CourseError("no"), RuntimeError("a fault of ours"), KeyboardInterrupt()])
def test_a_transaction_that_fails_keeps_nothing(course: Course, error: BaseException) -> None:
    def fails() -> None:
        with course.transaction():
            course.teams.add("Team 1", NOW)
            course.journal.note(NOW, None, "team.add", "Team 1")
            raise error

    with pytest.raises(type(error)):
        fails()
    assert course.teams.all() == []
    assert course.journal.entries(10) == []
    course.teams.add("Team 1", NOW)  # nothing is left of the transaction
    assert len(course.teams.all()) == 1


def test_what_is_refused_within_a_transaction_leaves_the_rest(course: Course) -> None:
    with course.transaction():
        course.teams.add("Team 1", NOW)
        with pytest.raises(CourseError, match="is taken"):
            course.teams.add("TEAM 1", NOW)
        course.teams.add("Team 2", NOW)
    assert [team.name for team in course.teams.all()] == ["Team 1", "Team 2"]


# The journal


def test_entries_come_back_whole_and_newest_first(course: Course) -> None:
    student = a_student(course)
    first = course.journal.note(NOW, None, "server.start", "")
    second = course.journal.note(
        after(hours=1), student.id, "upload", "Größe\0\ud800", {"n": [1, None, "\0"]}
    )
    assert (first.at, first.account_id, first.action, first.subject, first.detail) == (
        *(NOW, None, "server.start", "", {}),
    )
    assert (second.subject, second.detail) == ("Größe␀?", {"n": [1, None, "\0"]})
    third = course.journal.note(after(hours=2), None, "server.end", "")
    assert course.journal.entries(10) == [third, second, first]
    assert course.journal.entries(2) == [third, second]
    assert course.journal.entries(2, before=second.number) == [first]


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE journal SET subject = 'never mind' WHERE number = 1",
        "UPDATE journal SET number = number + 10",
        "DELETE FROM journal WHERE number = 2",
        "DELETE FROM journal",
        "INSERT INTO journal (number, at, action, subject, detail) VALUES (1, '', 'a', 'b', '{}') "
        "ON CONFLICT (number) DO UPDATE SET subject = 'z'",
    ],
)
def test_nothing_that_was_noted_can_be_changed(place: Location, course: Course, statement: str) -> None:
    for number in range(3):
        course.journal.note(NOW, None, "action", str(number))
    before = course.journal.entries(10)
    with (
        Connections(place) as connections,
        pytest.raises(StoreError, match="the journal is only ever added to"),
        connections.writing() as connection,
    ):
        connection.exec_driver_sql(statement)
    assert course.journal.entries(10) == before


@pytest.mark.parametrize(
    ("place", "statement"),
    [
        (
            "sqlite",
            "INSERT OR REPLACE INTO journal (number, at, action, subject, detail) VALUES (1, '', '', '', '')",
        ),
        ("postgresql", "TRUNCATE journal"),
    ],
    indirect=["place"],
)
def test_nor_in_a_databases_own_way(place: Location, course: Course, statement: str) -> None:
    entry = course.journal.note(NOW, None, "action", "subject")
    with (
        Connections(place) as connections,
        pytest.raises(StoreError, match="the journal is only ever added to"),
        connections.writing() as connection,
    ):
        connection.exec_driver_sql(statement)
    assert course.journal.entries(10) == [entry]


# Moments

ZONES = [ZoneInfo(name) for name in ("UTC", "Europe/Berlin", "Asia/Kolkata", "Pacific/Kiritimati")]
MOMENTS = st.datetimes(
    datetime(1, 1, 3), datetime(9999, 12, 29), timezones=st.sampled_from(ZONES), allow_imaginary=False
)


@given(MOMENTS)
def test_a_moment_comes_back(moment: datetime) -> None:
    text = schema.to_text(moment)
    assert len(text) == schema.LENGTH
    assert schema.from_text(text) == moment.astimezone(UTC)  # an hour that there is twice equals nothing else
    assert schema.from_text(text).tzinfo is UTC


@given(MOMENTS, MOMENTS)
def test_texts_have_the_order_of_time(one: datetime, other: datetime) -> None:
    one, other = one.astimezone(UTC), other.astimezone(UTC)
    assert (schema.to_text(one) < schema.to_text(other)) is (one < other)


def test_a_moment_needs_a_zone() -> None:
    assert schema.to_text(NOW.astimezone(timezone(timedelta(hours=5)))) == "2026-03-02T12:00:00.000000Z"
    with pytest.raises(ValueError, match="time zone"):
        schema.to_text(datetime(2026, 3, 2))


def test_every_field_of_the_model_has_a_column() -> None:
    """The rows of these become objects by their columns' names."""
    for kind, table in (
        (model.Version, "version"),
        (model.Competition, "competition"),
        (model.Event, "journal"),
    ):
        assert [field.name for field in fields(kind)] == list(metadata.tables[table].columns.keys())


def test_what_is_read_together_is_of_one_moment(course: Course, place: Location) -> None:
    team = course.teams.add("Team 1", NOW)
    with course.reading():
        before = course.teams.get(team.id)
        with Course(place, CHEAP) as other:
            other.teams.rename(team.id, "Team 9")
        assert course.teams.get(team.id) == before == team
    renamed = course.teams.get(team.id)
    assert renamed is not None
    assert renamed.name == "Team 9"


def test_writes_are_counted_by_what_they_are_about(course: Course) -> None:
    everything, people = course.writes, course.writes_of_people
    course.journal.note(NOW, None, "x", "y")
    assert (course.writes, course.writes_of_people) == (everything + 1, people)
    with course.transaction():
        team = course.teams.add("Team 1", NOW)
        a_student(course, team)
        assert course.writes_of_people == people  # nobody else sees it yet
    assert course.writes_of_people == people + 1
    assert course.writes > everything + 1
