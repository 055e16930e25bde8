"""The course's database: its tables, transactions and journal; the same on SQLite and PostgreSQL."""

import sqlite3
from dataclasses import fields
from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import delete, inspect

from tests.support.courses import FAST_PASSWORDS, NOW, account_with, add_student, after, note
from tournaments.course import model, schema
from tournaments.course.casual_games import CasualPlayer
from tournaments.course.course import MIGRATIONS, Course
from tournaments.course.model import CourseError, Role
from tournaments.course.schema import REVISION, account, metadata
from tournaments.database.base import Connections, Kind, Location, StoreError
from tournaments.database.sqlite import SQLiteFile

BOTH_KINDS = pytest.mark.parametrize("place", ["sqlite", "postgresql"], indirect=True)
"""Also PostgreSQL in the quick tier."""


def test_each_migration_can_be_undone(place: Location) -> None:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS.scripts))
    with Connections(place) as connections, connections.writing("", Kind.MIGRATE) as connection:
        config.attributes["connection"] = connection
        for _ in range(2):
            command.upgrade(config, "head")
            assert set(inspect(connection).get_table_names()) >= set(metadata.tables)
            command.downgrade(config, "base")
            assert inspect(connection).get_table_names() == ["alembic_version"]


@BOTH_KINDS
def test_migrations_make_the_tables_of_the_schema(place: Location, course: Course) -> None:
    with Connections(place) as connections, connections.reading() as connection:
        options = {"compare_type": True, "compare_server_default": True}
        differences = compare_metadata(MigrationContext.configure(connection, opts=options), metadata)
        assert differences == []
        # compare_metadata ignores keys and nullability.
        for table in metadata.tables.values():
            found = inspect(connection).get_pk_constraint(table.name)
            assert found["constrained_columns"] == [column.name for column in table.primary_key], table.name
            columns = inspect(connection).get_columns(table.name)
            nullable = {column["name"]: column["nullable"] for column in columns}
            assert nullable == {column.name: column.nullable for column in table.columns}, table.name


def test_the_schema_has_the_newest_revision_and_all_fields_of_the_model() -> None:
    assert ScriptDirectory(str(MIGRATIONS.scripts)).get_current_head() == REVISION
    # Rows become objects by the names of their columns.
    kinds = {model.Version: "version", model.Competition: "competition", model.Event: "journal"}
    for kind, table in kinds.items():
        assert [field.name for field in fields(kind)] == list(metadata.tables[table].columns.keys())


def test_a_course_is_opened_again_but_not_by_an_older_version(place: Location) -> None:
    with Course(place, FAST_PASSWORDS) as course:
        student = add_student(course, course.teams.add("Team 1", NOW))
    with Course(place, FAST_PASSWORDS) as course:
        assert course.accounts.all() == [student]
    with Connections(place) as connections, connections.writing() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(StoreError, match="upgrade kalarena"):
        Course(place)


@pytest.mark.parametrize("place", ["sqlite"], indirect=True)
def test_a_file_of_another_program_is_not_changed(place: SQLiteFile) -> None:
    with sqlite3.connect(place.path) as connection:
        connection.execute("CREATE TABLE notes (note TEXT)")
    connection.close()
    with pytest.raises(StoreError, match="is no course"):
        Course(place)


def test_the_number_of_a_deleted_row_is_not_used_again(place: Location, course: Course) -> None:
    gone = add_student(course)
    with Connections(place) as connections, connections.writing() as connection:
        connection.execute(delete(account).where(account.c.id == gone.id))
    assert add_student(course).id > gone.id


def test_queries_for_any_number(course: Course) -> None:
    for number in (0, -1, 7, 2**31 - 1, 2**31, 2**63, 10**30):
        for get in (course.accounts, course.teams, course.versions, course.competitions):
            assert get.get(number) is None
        assert course.versions.checked(number) is None
        assert not [*course.accounts.of_team(number), *course.versions.of_team(number)]
        assert not [*course.competitions.competitors(number), *course.tokens.of(number)]
        assert not course.journal.entries(10, number)
        with pytest.raises(CourseError, match=f"there is no token {number}"):
            course.tokens.revoke(number, 1)
        with pytest.raises(CourseError, match="there is no account"):
            course.accounts.rename(number, "Somebody")


def test_queries_for_any_text(course: Course) -> None:
    for text in ("", "\0", "a\0b", "\ud800", "'; DROP TABLE account; --", "x" * 100_000):
        for get in (course.accounts.by_login, course.teams.by_name, course.competitions.by_slug):
            assert get(text) is None
        for find in (course.sessions.find, course.links.find, course.tokens.find):
            assert find(text, NOW) is None
        assert account_with(course, text, text) is None
        course.sessions.end(text)


# Transactions that contain others


def test_a_transaction_keeps_everything(course: Course) -> None:
    with course.transaction():
        team = course.teams.add("Team 1", NOW)
        student = course.accounts.add("student-1", "Student 1", Role.STUDENT, team.id, NOW)
        note(course, NOW, None, "roster.import", "student-1")
        assert course.accounts.get(student.id) == student  # its own changes are visible in it
        with pytest.raises(CourseError, match="is taken"):
            course.teams.add("TEAM 1", NOW)
        course.teams.add("Team 2", NOW)
    assert course.accounts.of_team(team.id) == [student]
    assert [team.name for team in course.teams.all()] == ["Team 1", "Team 2"]
    assert len(course.journal.entries(10)) == 1


@pytest.mark.parametrize("error", [CourseError("no"), RuntimeError("a fault of ours"), KeyboardInterrupt()])
def test_a_transaction_that_fails_keeps_nothing(course: Course, error: BaseException) -> None:
    def fails() -> None:
        with course.transaction():
            course.teams.add("Team 1", NOW)
            note(course, NOW, None, "team.add", "Team 1")
            raise error

    with pytest.raises(type(error)):
        fails()
    assert not [*course.teams.all(), *course.journal.entries(10)]
    course.teams.add("Team 1", NOW)  # nothing is left of the transaction
    assert len(course.teams.all()) == 1


def test_reads_in_one_block_are_of_one_moment(course: Course, place: Location) -> None:
    team = course.teams.add("Team 1", NOW)
    with course.reading():
        before = course.teams.get(team.id)
        with Course(place, FAST_PASSWORDS) as other:
            renamed = other.teams.rename(team.id, "Team 9")
        assert course.teams.get(team.id) == before == team
    assert course.teams.get(team.id) == renamed


def test_writes_are_counted_by_groups_of_tables(course: Course) -> None:
    everything, people = course.writes, course.writes_of_people
    note(course, NOW, None, "x", "y")
    assert (course.writes, course.writes_of_people) == (everything + 1, people)
    with course.transaction():
        add_student(course, course.teams.add("Team 1", NOW))
        assert course.writes_of_people == people  # nobody else can see the changes yet
    assert course.writes_of_people == people + 1
    everything = course.writes
    assert everything > people + 1
    student = course.accounts.all()[0]
    secret, _ = course.tokens.make(student.id, "laptop", NOW, None)
    people = course.writes_of_people
    assert course.tokens.find(secret, NOW) == student
    game = course.casual_games.add("manchester", "", (CasualPlayer("a"), CasualPlayer("b")), NOW)
    course.casual_games.remove(NOW, 1)
    assert game.address
    assert course.writes_of_people == people, "a use of a token changes nobody's access"
    assert course.writes == everything + 1, "only the new token"


# The journal


def test_entries_are_stored_as_a_whole_and_listed_newest_first(course: Course) -> None:
    student = add_student(course)
    first = note(course, NOW, None, "server.start", "")
    detail = {"n": [1, None, "\0"]}
    second = note(course, after(hours=1), student.id, "upload", "Größe\0\ud800", **detail)
    assert first == model.Event(first.number, NOW, None, "server.start", "", {})
    assert second == model.Event(second.number, after(hours=1), student.id, "upload", "Größe␀?", detail)
    third = note(course, after(hours=2), None, "server.end", "")
    assert course.journal.entries(10) == [third, second, first]
    assert course.journal.entries(2) == [third, second]
    assert course.journal.entries(2, second.number) == [first]


CHANGES = (
    "UPDATE journal SET subject = 'never mind' WHERE number = 1",
    "UPDATE journal SET number = number + 10",
    "DELETE FROM journal WHERE number = 2",
    "DELETE FROM journal",
    "INSERT INTO journal (number, at, action, subject, detail) VALUES (1, '', 'a', 'b', '{}') "
    "ON CONFLICT (number) DO UPDATE SET subject = 'z'",
)
OWN_CHANGE = {
    "sqlite": "INSERT OR REPLACE INTO journal (number, at, action, subject, detail) "
    "VALUES (1, '', '', '', '')",
    "postgresql": "TRUNCATE journal",
}
"""Changes that only one kind of database knows."""


@BOTH_KINDS
def test_no_entry_can_be_changed(place: Location, course: Course) -> None:
    for number in range(3):
        note(course, NOW, None, "action", str(number))
    before = course.journal.entries(10)
    kind = "sqlite" if isinstance(place, SQLiteFile) else "postgresql"
    with Connections(place) as connections:
        for statement in (*CHANGES, OWN_CHANGE[kind]):
            with (
                pytest.raises(StoreError, match="the journal is only ever added to"),
                connections.writing() as connection,
            ):
                connection.exec_driver_sql(statement)
            assert course.journal.entries(10) == before, statement


# Moments

ZONES = [ZoneInfo(name) for name in ("UTC", "Europe/Berlin", "Asia/Kolkata", "Pacific/Kiritimati")]
MOMENTS = st.datetimes(
    datetime(1, 1, 3), datetime(9999, 12, 29), timezones=st.sampled_from(ZONES), allow_imaginary=False
)


@given(MOMENTS, MOMENTS)
def test_moments_are_texts_in_the_order_of_time(one: datetime, other: datetime) -> None:
    text = schema.to_text(one)
    assert len(text) == schema.LENGTH
    one, other = one.astimezone(UTC), other.astimezone(UTC)  # an hour that is repeated equals no other
    assert schema.from_text(text) == one
    assert schema.from_text(text).tzinfo is UTC
    assert (text < schema.to_text(other)) is (one < other)


def test_a_moment_needs_a_zone() -> None:
    assert schema.to_text(NOW.astimezone(timezone(timedelta(hours=5)))) == "2026-03-02T12:00:00.000000Z"
    with pytest.raises(ValueError, match="time zone"):
        schema.to_text(datetime(2026, 3, 2))
