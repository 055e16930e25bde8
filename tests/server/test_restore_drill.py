"""A drill: a server is backed up while it works, restored beside it, verified, and served again."""

import os
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest
from sqlalchemy import URL

from tests.server.test_server_kill import (
    TEAMS_AT_FIRST,
    KilledServer,
    check_games,
    make_tournament,
    wait_until,
)
from tests.support.builders import KALARENA
from tests.support.databases import address
from tests.support.postgresql import PostgreSQLServer, programs
from tournaments.bots.storage import ContentStore
from tournaments.course.model import CompetitionKind, CompetitionState
from tournaments.database.location import Database

pytestmark = pytest.mark.kill

LIMIT_S = 900
UPLOADS = 3
"""Uploads while the backup is made; their checks take longer than it."""


def run(*words: str, url: URL | None = None) -> str:
    environment = {**os.environ, "PGPASSWORD": str(url.password)} if url is not None else None
    done = subprocess.run(words, capture_output=True, text=True, timeout=LIMIT_S, env=environment)
    assert done.returncode == 0, done
    return done.stdout


@contextmanager
def restored(database: Database, dump: Path, data: Path, server: PostgreSQLServer) -> Iterator[Database]:
    """Yield the database of a restored data directory."""
    if not isinstance(database.address, URL):
        yield Database(data)
        return
    with server.database() as new:
        assert isinstance(new.address, URL)
        options = ("--no-password", "--exit-on-error", f"--dbname={without_password(new.address)}")
        run(str(programs() / "pg_restore"), *options, str(dump), url=new.address)
        yield new


def without_password(url: URL) -> str:
    return address(url.set(password=None)).replace("***", "")


def assert_verified(database: Database, slug: str, directory: Path) -> None:
    """Verify a competition with its files, wherever its games are."""
    assert directory.name == slug
    options = ("--database", address(database.address)) if isinstance(database.address, URL) else ()
    assert "nothing wrong" in run(str(KALARENA), "verify", str(directory), *options)


@pytest.mark.long
def test_a_backup_of_a_busy_server_is_served(
    database: Database, tmp_path: Path, postgresql: PostgreSQLServer
) -> None:
    data, archive, dump = tmp_path / "data", tmp_path / "course.tar", tmp_path / "course.dump"
    busy = KilledServer.open(data, database)
    with busy.server() as server, busy.course() as course:
        for _ in range(TEAMS_AT_FIRST):
            assert busy.submit(server)
        wait_until(lambda: len(course.versions.current()) == TEAMS_AT_FIRST)
        course.settings.change(practice_on=False)  # some games of it are there
        make_tournament(server)
        (data / "bots" / "incoming" / "killed-build").mkdir()

        uploads = threading.Thread(target=lambda: [busy.submit(server) for _ in range(UPLOADS)])
        uploads.start()
        wait_until(lambda: busy.next_number > TEAMS_AT_FIRST)
        before, known = busy.kept(), course.versions.all(1000)
        if isinstance(database.address, URL):
            options = ("--format=custom", "--no-password", f"--file={dump}")
            run(
                str(programs() / "pg_dump"),
                *options,
                without_password(database.address),
                url=database.address,
            )
        run(str(KALARENA), "admin", "backup", str(archive), "--data", str(data))
        uploads.join()
        server.assert_ends()
    after = busy.kept()

    new_data = tmp_path / "restored"
    run(str(KALARENA), "admin", "restore", str(archive), "--data", str(new_data))
    assert not (new_data / "bots" / "incoming" / "killed-build").exists()
    with restored(database, dump, new_data, postgresql) as new_database:
        (new_data / "server.toml").unlink(missing_ok=True)
        again = KilledServer.open_existing(new_data, new_database)
        games = again.kept()
        for slug, kept in before.items():
            assert kept.items() <= games[slug].items() <= after[slug].items()
        contents = ContentStore(new_data / "submissions")
        with again.server() as server, again.course() as course:
            versions = {version.id: version for version in course.versions.all(1000)}
            for version in known:
                assert versions[version.id].content == version.content
            for version in versions.values():
                contents.verify(version.content)
            assert httpx2.get(f"{server.url}/health", timeout=LIMIT_S).status_code == 200
            wait_until(lambda: not course.versions.unfinished())
            wait_until(lambda: course.competitions.all()[0].state is not CompetitionState.RUNNING)
            competitions = course.competitions.all()
            server.assert_ends()
        check_games(again, games)
        for one in competitions:
            if one.kind is CompetitionKind.TOURNAMENT:
                assert_verified(new_database, one.slug, new_data / "competitions" / one.slug)
