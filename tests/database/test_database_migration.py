"""Migration of a course from one database to another: all rows are moved, or there is an error."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.builders import make_record
from tests.support.courses import FAST_PASSWORDS as PASSWORDS
from tests.support.courses import NOW, add_account, add_student, add_version, decide, note
from tests.support.postgresql import PostgreSQLServer
from tests.support.random_games import random_game
from tests.support.tiers import slow
from tournaments.course.backup.database_migration import Moved, MoveError, contents, move
from tournaments.course.casual_games import CasualPlayer
from tournaments.course.challenges import Side
from tournaments.course.course import Course
from tournaments.course.mail.outbox import MailHome
from tournaments.course.model import BotChoice, CheckedGame, CompetitionKind, LinkPurpose, Role, VersionState
from tournaments.course.schema import metadata
from tournaments.database.base import Connections
from tournaments.database.location import Database
from tournaments.results.packing import PARTS
from tournaments.results.store import Store

SLUG = "cup"
CHECKED = CheckedGame("swapped-south", 0, b"\0\xff")


@pytest.fixture
def source(tmp_path: Path) -> Database:
    """A course in files, with rows in every table."""
    database = Database.at(tmp_path / "data")
    with Course(database.course(), PASSWORDS, MailHome("home", b"key")) as course:
        team = course.teams.add("Team 1", NOW)
        student = add_student(course, team)
        lecturer = add_account(course, Role.LECTURER, "lecturer")
        course.addresses.enrol(student.id, "student@example.org")
        decide(course, add_version(course, team, student, "c1"), VersionState.QUALIFIED, games=(CHECKED,))
        add_version(course, team, student, "c2")
        course.sessions.start(student.id, NOW)
        course.links.make(student.id, LinkPurpose.RESET, NOW)
        course.tokens.make(student.id, "laptop", NOW, None)
        made = course.competitions.add(SLUG, "Cup", CompetitionKind.TOURNAMENT, {"x": 1}, lecturer.id, NOW)
        course.competitions.enter(made.id, "Team 1 v1", 1, None)
        course.settings.change(title="Course \N{SNOWMAN}")
        course.challenges.set_consent(team.id, accepts=False)
        own = Side(BotChoice(version_id=1), "Team 1 v1", team.id)
        other = Side(BotChoice(reference="ladder:1"), "ladder:1", None)
        rules = course.settings.change(references=["ladder:1"])
        course.challenges.add(made.id, team.id, student.id, own, other, 1, "page", NOW, rules)
        people = (CasualPlayer("Ada", "account:1"), CasualPlayer("Bob"))
        course.casual_games.add("kalah(3,2)", "", people, NOW)
        note(course, NOW, None, "course.begin", "it", why=["a", None])
    with Store(database.competition(SLUG)) as store:
        store.claim("Cup", {"game": "manchester"}, {"a": "b"})
        for number in range(1, 3):
            store.add(make_record(key=f"r001-{number}v9"), 1, "pair")
        store.add(replace(random_game("kalah(3,2)"), key="r001-3v9"), 1, "pair")
    return database


@contextmanager
def empty(kind: str, request: pytest.FixtureRequest, folder: Path) -> Iterator[Database]:
    if kind == "sqlite":
        yield Database.at(folder / "new")
        return
    server = request.getfixturevalue("postgresql")
    assert isinstance(server, PostgreSQLServer)
    with server.database() as database:
        yield database


@pytest.mark.parametrize("kind", ["sqlite", *slow("postgresql")])
def test_all_rows_are_moved(
    kind: str, source: Database, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    moved: list[Moved] = []
    with empty(kind, request, tmp_path) as target:
        move(source, target, moved.append)
        assert [one.source for one in moved] == [str(source.competition(SLUG)), str(source.course())]
        rows = {name: held.rows for name, held in moved[1].tables.items()}
        assert set(rows) == set(metadata.tables)
        assert 0 not in rows.values(), rows
        counts = {name: held.rows for name, held in moved[0].tables.items()}
        assert counts == {"tournament": 1, "game": 3, "journal": 0, "chain": 4, "shared_part": PARTS}
        with Course(source.course(), PASSWORDS) as old, Course(target.course(), PASSWORDS) as new:
            assert new.accounts.all() == old.accounts.all()
            assert new.versions.all(10) == old.versions.all(10)
            assert new.versions.checked(1) == old.versions.checked(1)
            assert new.versions.checked_game(1, CHECKED.key) == CHECKED
            assert new.settings.load() == old.settings.load()
            assert new.journal.entries(10) == old.journal.entries(10)
            assert new.competitions.competitors(1) == old.competitions.competitors(1)
            # Numbers go on after the last one.
            student = add_student(new, new.teams.add("Team 2", NOW), "student-new")
            assert student.id == max(account.id for account in old.accounts.all()) + 1
            assert note(new, NOW, None, "a", "b").number == old.journal.entries(1)[0].number + 1
        with Store(source.competition(SLUG)) as old_store, Store(target.competition(SLUG)) as new_store:
            assert new_store.games() == old_store.games()
            for key in ("r001-2v9", "r001-3v9"):
                assert new_store.record(key) == old_store.record(key)
            assert new_store.config() == old_store.config()


def test_a_target_with_rows_is_refused(source: Database, tmp_path: Path) -> None:
    target = Database.at(tmp_path / "other")
    with Course(target.course(), PASSWORDS) as course:
        course.teams.add("Team 9", NOW)
    with pytest.raises(MoveError, match="holds something already"):
        move(source, target, lambda _: None)
    with Course(target.course(), PASSWORDS) as course:
        assert [team.name for team in course.teams.all()] == ["Team 9"]
        assert course.accounts.all() == []


def test_the_digest_of_a_table_depends_on_its_rows(source: Database) -> None:
    place = source.course()
    with Connections(place) as connections, connections.reading() as connection:
        table = metadata.tables["journal"]
        before = contents(connection, table)
        assert before == contents(connection, table)
        assert before != contents(connection, metadata.tables["version"])
    with Course(place, PASSWORDS) as course:
        note(course, NOW, None, "course.begin", "it", why=["a", None])
    with Connections(place) as connections, connections.reading() as connection:
        after = contents(connection, table)
    assert after.rows == before.rows + 1
    assert after.digest != before.digest
