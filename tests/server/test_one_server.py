"""One server for each PostgreSQL database: a second one, and a restored data directory, are refused."""

import json
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import URL

from tests.server.server_process import served
from tests.support.builders import invoke
from tests.support.courses import FAST_PASSWORDS
from tests.support.databases import address
from tests.support.postgresql import PostgreSQLServer
from tournaments.course.course import Course
from tournaments.database.location import Database
from tournaments.web.server_config import SERVER_FILE, load_server_file
from tournaments.web.server_main import open_host

pytestmark = [pytest.mark.slow, pytest.mark.any_database]  # each test is of PostgreSQL alone

LIMIT_S = 120
HOLDERS = "SELECT pid FROM pg_stat_activity WHERE application_name LIKE 'kalarena server %'"


@pytest.fixture
def url(postgresql: PostgreSQLServer) -> Iterator[URL]:
    """Address of a course's database; practice is off, as its games would take the processors."""
    with postgresql.database() as database:
        assert isinstance(database.address, URL)
        with Course(database.course(), FAST_PASSWORDS) as course:
            course.settings.change(practice_on=False)
        yield database.address


def data_directory(path: Path, url: URL) -> Path:
    path.mkdir(mode=0o700)
    (path / SERVER_FILE).write_text(f"database = {json.dumps(address(url))}\n")
    return path


def refusal(data: Path) -> str:
    """Return the message of a server that does not start."""
    done = invoke("serve", "--data", data, "--port", "0")
    assert (done.exit_code, done.stdout, done.stderr.count("\n")) == (2, "", 1), done
    return done.stderr


def start_and_end(data: Path) -> None:
    """Take the lock and the database as a server does at its start, and end before it serves."""
    with open_host(data, load_server_file(data / SERVER_FILE).model_copy(update={"port": 0})):
        pass


def connected(url: URL) -> "psycopg.Connection[tuple[object, ...]]":
    return psycopg.connect(address(url), autocommit=True)


def test_two_servers_on_one_database_refuse_each_other(tmp_path: Path, url: URL) -> None:
    first, second = data_directory(tmp_path / "first", url), data_directory(tmp_path / "second", url)
    with served(first, lines=3) as server:
        said = refusal(second)
        assert "another server is at work in postgresql://" in said
        assert f"process {server.process.pid}, since " in said
        assert str(url.password) not in said
        assert server.process.poll() is None
        server.kill()
    start_and_end(first)  # the lock of a killed server is free at once
    assert "belongs to another data directory" in refusal(second)


def test_a_lost_lock_is_taken_again_if_it_is_free(tmp_path: Path, url: URL) -> None:
    data = data_directory(tmp_path / "data", url)
    with served(data, lines=3) as server, connected(url) as administrator:
        ((before,),) = administrator.execute(HOLDERS).fetchall()
        administrator.execute("SELECT pg_terminate_backend(%s)", (before,))
        while "the lock was taken again" not in server.log.read_text():
            assert server.process.poll() is None
        ((after,),) = administrator.execute(HOLDERS).fetchall()
        assert after != before
        with urllib.request.urlopen(f"{server.url}/health") as response:
            assert response.status == 200
        server.assert_ends()


def test_a_server_ends_if_another_one_has_taken_its_lock(tmp_path: Path, url: URL) -> None:
    data = data_directory(tmp_path / "data", url)
    with served(data, lines=3) as server, connected(url) as other:
        # It waits for the lock, and so has it as soon as the server's connection has ended.
        other.execute(
            "SELECT pg_terminate_backend(pid), pg_advisory_lock(%s) FROM pg_stat_activity "
            "WHERE application_name LIKE 'kalarena server %%'",
            (0x6B616C6172656E61,),
        )
        server.process.wait(LIMIT_S)
        assert server.process.returncode != 0
        assert "another server is at work in" in server.log.read_text()


def test_a_restored_directory_does_not_start_with_the_original_database(tmp_path: Path, url: URL) -> None:
    data = data_directory(tmp_path / "data", url)
    start_and_end(data)
    archive, restored = tmp_path / "course.tar", tmp_path / "restored"
    assert invoke("admin", "backup", archive, "--data", data).exit_code == 0
    assert invoke("admin", "restore", archive, "--data", restored).exit_code == 0
    said = refusal(restored)
    assert "belongs to another data directory, and this one was restored or copied" in said
    assert "kalarena admin adopt" in said
    start_and_end(data)  # the original is not disturbed

    done = invoke("admin", "adopt", "--data", restored)
    assert (done.exit_code, done.stderr) == (0, "")
    with served(restored, lines=3) as server:
        server.assert_ends()
    assert "belongs to another data directory" in refusal(data)


def test_a_copy_of_a_database_belongs_to_the_directory_that_names_it_first(
    tmp_path: Path, url: URL, postgresql: PostgreSQLServer
) -> None:
    """A restored dump holds the identity of the original, whose server goes on."""
    data = data_directory(tmp_path / "data", url)
    start_and_end(data)
    copy = postgresql.make_database(template=Database(url))
    try:
        assert isinstance(copy.address, URL)
        rehearsal = data_directory(tmp_path / "rehearsal", copy.address)
        start_and_end(rehearsal)
        assert "belongs to another data directory" in refusal(
            data_directory(tmp_path / "third", copy.address)
        )
    finally:
        postgresql.drop_database(copy)


def test_adopting_needs_a_database_on_a_server(tmp_path: Path) -> None:
    done = invoke("admin", "adopt", "--data", tmp_path)
    assert done.exit_code == 2
    assert "there is nothing to adopt" in done.stderr
