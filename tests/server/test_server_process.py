"""A real server: one upload from the zip to the verdict, and the logs of servers that are killed."""

import os
import subprocess
import sys
import time
from pathlib import Path

import httpx2
import pytest

from tests.bots.zips import Member, make_zip
from tests.server.harness import GAME, built_bot, starter
from tests.server.served_course import POLL_S, served_course
from tests.server.server_process import ORPHANED_WORKER
from tests.support.confinement import needs_sandbox
from tournaments.course.model import VersionState

REAPED_WITHIN_S = 60.0
"""Bound for the end of a sandbox reaper, which takes a third of a second."""


def test_an_upload_from_the_zip_to_the_verdict(tmp_path: Path) -> None:
    archive = make_zip(*(Member(file.path, file.content) for file in starter()))
    with served_course(tmp_path / "data", game=GAME, sandbox_mode="off") as course:
        student = course.student()
        response = course.send(archive, student=student)
        assert response.status_code == 201, response.text
        version = course.decided(response.json()["version"]["id"])
        assert (version.state, version.number) == (VersionState.QUALIFIED, 1)
        with course.client(student) as browser:
            page = browser.get(f"/my/versions/{version.id}")
        assert "Qualified: this is the team" in page.text
        assert course.incoming() == []
        course.server.assert_ends()
        with pytest.raises(httpx2.ConnectError):
            course.send(archive, student=student)


CHECKS = int(os.environ.get("KALARENA_CHECKS", "4"))
"""``KALARENA_CHECKS``.  Each check of a sandboxed bot left a zombie before the server reaped them.

A zombie stays until it is reaped, so that a few checks show a server that reaps none."""


def zombies_of(pid: int) -> list[str]:
    """Return the programs of a process's children that have ended and were not reaped."""
    listed = subprocess.run(
        ["ps", "-o", "stat=,comm=", "--ppid", str(pid)], stdout=subprocess.PIPE, text=True
    )
    return [line.split()[1] for line in listed.stdout.splitlines() if line.startswith("Z")]


@pytest.mark.slow
@pytest.mark.any_database
@pytest.mark.long
def test_checks_leave_no_zombie(tmp_path: Path) -> None:
    """Each check has a sandbox reaper, which ends after the check and is adopted by the server."""
    needs_sandbox()
    with served_course(tmp_path / "data", game=GAME, sandbox_mode="required") as course:
        for number in range(CHECKS):
            files = built_bot(f"exit {number + 1}")
            archive = make_zip(*(Member(file.path, file.content) for file in files))
            response = course.send(archive)
            assert response.status_code == 201, response.text
            version = course.decided(response.json()["version"]["id"])
            assert version.state is VersionState.FAILED
        give_up = time.monotonic() + REAPED_WITHIN_S
        while zombies := zombies_of(course.server.process.pid):
            assert time.monotonic() < give_up, zombies
            time.sleep(POLL_S)
        course.server.assert_ends()


SPAWN = "from multiprocessing.spawn import spawn_main; spawn_main(tracker_fd=0, pipe_handle={})"


def errors_of(program: str, written: bytes) -> str:
    """Return the standard error of a program that reads these bytes from a pipe, and then its end."""
    read, write = os.pipe()
    os.write(write, written)
    os.close(write)
    command = [sys.executable, "-c", program.format(read), "--multiprocessing-fork"]
    try:
        return subprocess.run(command, pass_fds=[read], stderr=subprocess.PIPE, text=True).stderr
    finally:
        os.close(read)


def test_the_traceback_of_an_orphaned_worker_is_ignored_and_no_other() -> None:
    errors = errors_of(SPAWN, b"")
    assert errors.endswith("EOFError: Ran out of input\n")
    assert ORPHANED_WORKER.sub("", f"before\n{errors}after\n") == "before\nafter\n"
    errors = errors_of("import pickle; pickle.load(open({}, 'rb'))", b"")
    assert errors.endswith("EOFError: Ran out of input\n")
    assert ORPHANED_WORKER.sub("", errors) == errors
    assert "Traceback" in ORPHANED_WORKER.sub("", errors_of(SPAWN, b"no pickle"))
