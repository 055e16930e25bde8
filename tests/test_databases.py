"""The databases of tests: which a data directory has, how long, and what runs again with the other kind."""

from pathlib import Path

import psycopg
import pytest

from tests.courses import NOW
from tests.databases import (
    COMPETITIONS,
    SWITCH,
    database_of,
    depends_on_kind,
    dropped_at_the_end,
    server_file_of,
)
from tests.postgresql import PostgreSQLServer
from tournaments.course.course import Course
from tournaments.database.location import Database
from tournaments.results.store import Store
from tournaments.web.server_config import load_server_file


def test_without_being_asked_they_are_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(SWITCH, raising=False)
    assert database_of(tmp_path) == Database(tmp_path)
    assert server_file_of(tmp_path) == ""


def test_each_directory_has_its_own_until_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, postgresql: PostgreSQLServer
) -> None:
    monkeypatch.setenv(SWITCH, "postgresql")
    with dropped_at_the_end():
        one, other = database_of(tmp_path / "one"), database_of(tmp_path / "other")
        assert one != other
        assert database_of(tmp_path / "other" / ".." / "one") == one
        with Course(one.course()) as course:
            course.teams.add("Team 1", NOW)
        with Course(other.course()) as course:
            assert course.teams.all() == []
        for slug in COMPETITIONS:
            with Store(other.competition(slug), read_only=True) as store:  # there are tables already
                assert store.games() == []
        (tmp_path / "server.toml").write_text(server_file_of(tmp_path / "one"))
        told = load_server_file(tmp_path / "server.toml").database
        assert told is not None
        assert Database.at(told) == one
    with pytest.raises(psycopg.OperationalError, match="does not exist"):
        psycopg.connect(told)


def test_what_is_neither_kind_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SWITCH, "postgres")
    with pytest.raises(pytest.UsageError, match=r"KALARENA_TEST_DATABASE is sqlite, .* not 'postgres'"):
        database_of(tmp_path)


@pytest.mark.parametrize(
    ("module", "expected"),
    [
        ("test_databases", True),
        ("test_web_home", True),  # by web_played
        ("test_server_hostile", True),  # by served_course, and that by server_process
        ("test_kalah_rules", False),
        ("test_store", False),  # runs on each in any case
    ],
)
def test_what_runs_again(module: str, expected: bool) -> None:
    assert depends_on_kind(Path(__file__).with_name(f"{module}.py")) is expected
