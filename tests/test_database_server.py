"""The server of the tests: there while they run, gone afterwards, missed where it must be."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from referee.process.subreaper import become_subreaper, kill_orphans
from tests import postgresql as module
from tests.builders import RUN_LIMIT_S
from tests.confinement import living_with
from tests.postgresql import PostgreSQLServer, running_server

ROOT = Path(__file__).resolve().parent.parent

RUN_UNTIL_KILLED = """
import sys
from tests.postgresql import running_server
with running_server() as server:
    print(server.folder, flush=True)
    sys.stdin.read()
"""


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGINT])
def test_it_is_gone_when_the_tests_are(postgresql: PostgreSQLServer, end: signal.Signals) -> None:
    """However they end."""
    command = [sys.executable, "-c", RUN_UNTIL_KILLED]
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    folder = Path(process.stdout.readline().strip())
    assert folder != postgresql.folder
    assert living_with(str(folder))
    os.killpg(process.pid, end)
    process.communicate(timeout=RUN_LIMIT_S)
    give_up = time.monotonic() + RUN_LIMIT_S
    while folder.exists() or living_with(str(folder)):
        assert time.monotonic() < give_up, living_with(str(folder))
        time.sleep(0.01)


def test_it_is_not_taken_for_what_a_bot_has_left() -> None:
    """Tests play games in their own process, which ends all that it adopts."""
    become_subreaper()
    with running_server() as server:
        kill_orphans()
        server.stop()
        server.start()
        kill_orphans()
        server.run("SELECT 1")
    assert not server.folder.exists()


def test_without_a_server_tests_are_skipped_unless_there_must_be_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "_programs", lambda: None)
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.delenv("KALARENA_REQUIRE_POSTGRESQL", raising=False)
    with pytest.raises(pytest.skip.Exception, match="PostgreSQL is not installed"), running_server():
        pass
    monkeypatch.setenv("KALARENA_REQUIRE_POSTGRESQL", "1")
    with pytest.raises(pytest.fail.Exception, match="PostgreSQL is not installed"), running_server():
        pass
