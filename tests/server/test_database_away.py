"""PostgreSQL stops under a server, and comes back: pages answer 503 with a sentence, then work again."""

import json
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx2
import pytest
import trio
from sqlalchemy import URL

from tests.server.served_course import sign_in
from tests.server.server_process import served
from tests.support.builders import invoke, one_object
from tests.support.courses import FAST_PASSWORDS, add_account
from tests.support.databases import address
from tests.support.postgresql import PostgreSQLServer
from tournaments.course.course import Course
from tournaments.course.model import Role
from tournaments.database.base import StoreError
from tournaments.database.location import Database
from tournaments.web.server_config import SERVER_FILE
from tournaments.web.server_main import delete_expired

LIMIT_S = 60.0
SENTENCE = "The database of this server cannot be used just now"


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.1)


@pytest.mark.slow
def test_pages_say_so_and_work_again_without_a_restart(tmp_path: Path, postgresql: PostgreSQLServer) -> None:
    data = tmp_path / "data"
    data.mkdir()
    with postgresql.database() as database:
        assert isinstance(database.address, URL)
        (data / SERVER_FILE).write_text(f"database = {json.dumps(address(database.address))}\n")
        with Course(database.course(), FAST_PASSWORDS) as course:
            course.settings.change(title="Games", standings_for="named", references=["greedy", "random:1"])
            lecturer = add_account(course, Role.LECTURER, "lecturer")
            _, cookies = sign_in(course, data, lecturer)
        with (
            served(data) as server,
            httpx2.Client(base_url=server.url, cookies=cookies, timeout=LIMIT_S) as browser,
        ):
            found = browser.get("/health")
            assert (found.status_code, found.json()["status"], found.json()["database"]) == (200, "ok", "ok")
            assert found.json()["disk_free_bytes"] > 0
            dashboard = browser.get("/teach").text
            assert "GB free" in dashboard
            assert "Database: PostgreSQL" in dashboard
            postgresql.stop()
            try:
                until(lambda: browser.get("/health").status_code == 503)
                health = browser.get("/health")
                assert health.json()["status"] == "unavailable"
                assert str(database.address.password) not in health.text
                for path in ("/", "/teach", "/sign-in", "/competitions"):
                    page = browser.get(path)
                    assert page.status_code == 503, path
                    assert SENTENCE in page.text
                    assert "<h1>" in page.text
                    assert page.headers["retry-after"] == "10"
                answer = browser.get("/api/v1/competitions")
                assert (answer.status_code, answer.headers["content-type"]) == (503, "application/json")
                assert SENTENCE in answer.json()["error"]
                done = invoke("doctor", "--json", "--data", str(data))
                assert done.exit_code == 1
                assert "does NOT work" in one_object(done.output)["database"]
            finally:
                postgresql.start()
            until(lambda: browser.get("/health").status_code == 200)
            for path in ("/", "/teach", "/competitions"):
                assert browser.get(path).status_code == 200, path
            # The lock of the database, too.
            until(lambda: "the lock was taken again" in server.log.read_text())
            status, _, errors = server.end()
            assert status == 0
            assert "Traceback" not in errors, errors


def test_doctor_looks_at_a_data_directory(tmp_path: Path) -> None:
    with Course(Database(tmp_path).course(), FAST_PASSWORDS):
        pass
    found = one_object(invoke("doctor", "--json", "--data", str(tmp_path)).output)
    assert found["database_works"] is True
    assert found["database"].startswith("SQLite ")
    assert "GB free" in found["disk"]
    missing = tmp_path / "nowhere"
    assert (
        "is no directory" in one_object(invoke("doctor", "--json", "--data", str(missing)).output)["database"]
    )
    assert not missing.exists()


@pytest.mark.parametrize(
    ("error", "cause", "is_ours"),
    [
        (StoreError("kalarena: the database system is shutting down"), OSError(), False),
        (StoreError("kalarena: a value that cannot be stored"), ValueError(), True),
        (KeyError("a fault of this program"), None, True),
    ],
)
async def test_old_data_that_cannot_be_removed_just_now_is_a_sentence_in_the_log(
    caplog: pytest.LogCaptureFixture, error: Exception, cause: Exception | None, is_ours: bool
) -> None:
    calls = []

    def fail(now: datetime) -> None:
        calls.append(now)
        if len(calls) == 3:
            trio.from_thread.run_sync(scope.cancel)
        raise error from cause

    table = SimpleNamespace(purge=fail)
    course: Any = SimpleNamespace(sessions=table, links=table, outbox=table)
    with trio.CancelScope() as scope:
        await delete_expired(course)
    assert len(calls) == 3
    for record in caplog.records:
        assert record.getMessage().endswith(f"deleted: {error}")
        assert bool(record.exc_info) == is_ours  # a traceback for a fault of this program
    assert len(caplog.records) == 3
