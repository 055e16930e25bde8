"""Whoever is killed at whatever moment leaves no sandbox behind."""

import os
import random
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from referee.process.subreaper import kill_orphans
from referee.sandbox import reaper
from tests.confinement import living_with, needs_sandbox

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="bubblewrap is Linux's")

REPOSITORY = Path(__file__).resolve().parent.parent
KILLS = 60
LATEST_S = 0.008
"""After the start of bubblewrap, which has done all that matters by then."""
GONE_WITHIN_S = 10.0
STARTS_A_SANDBOX = """
import subprocess, sys, time
from referee.sandbox.reaper import mark
bwrap, said = sys.argv[1:]
words = ["--unshare-pid", "--unshare-net", "--unshare-ipc", "--die-with-parent", "--ro-bind", "/", "/"]
subprocess.Popen(
    [mark(), *words, "sh", "-c", "while :; do sleep 1; done # " + said],
    executable=bwrap, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True,
)
print("started", flush=True)
time.sleep(600)
"""
"""As a referee does, which is killed then; the bot takes no notice of the end of its input."""
BEARS = "import sys, time; print(flush=True); time.sleep(600)"


def wait_for_end(pid: int) -> bool:
    """Whether a process, not of ours to wait for, ends in time."""
    try:
        held = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([held], [], [], GONE_WITHIN_S)[0])
    finally:
        os.close(held)


def children_of(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@pytest.mark.slow
def test_a_killed_process_leaves_no_sandbox(tmp_path: Path) -> None:
    needs_sandbox()
    chance, said = random.Random(1), f"mark-{os.getpid()}-{tmp_path.name}"
    for _ in range(KILLS):
        process = subprocess.Popen(
            [sys.executable, "-c", STARTS_A_SANDBOX, "/usr/bin/bwrap", said],
            cwd=REPOSITORY,
            stdout=subprocess.DEVNULL,
        )
        try:
            while len(children := children_of(process.pid)) < 2:  # its guard and bubblewrap
                assert process.poll() is None
            killed_at = time.perf_counter() + chance.uniform(0, LATEST_S)
            while time.perf_counter() < killed_at:
                pass
        finally:
            process.kill()
            process.wait()
        for pid in (*children, *living_with(said)):
            assert wait_for_end(pid), (pid, children, Path(f"/proc/{pid}/cmdline").read_text())
        assert living_with(said) == []


@contextmanager
def bearing(*words: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process with these words as its command line's first ones."""
    with subprocess.Popen(
        [*words, "-c", BEARS], executable=sys.executable, stdout=subprocess.PIPE
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"\n"
            yield process
        finally:
            process.kill()


def test_only_what_bears_the_mark_is_ended() -> None:
    with bearing("a-mark") as one, bearing("a-mark-2") as other, bearing("python", "-Xa-mark") as third:
        reaper.kill_marked("a-mark")
        assert one.wait(GONE_WITHIN_S) == -signal.SIGKILL
        assert other.poll() is None
        assert third.poll() is None


def test_one_guard_for_a_process_and_another_when_it_is_lost() -> None:
    first = reaper.mark()
    pid = reaper.reaper_pid()
    assert pid is not None
    assert (reaper.mark(), reaper.reaper_pid()) == (first, pid)
    os.kill(pid, signal.SIGKILL)
    assert wait_for_end(pid)
    assert reaper.mark() != first
    assert reaper.reaper_pid() not in (None, pid)


def test_a_sweep_spares_it() -> None:
    reaper.mark()
    pid = reaper.reaper_pid()
    assert pid is not None
    assert os.getsid(pid) != os.getsid(0)
    kill_orphans()
    assert reaper.reaper_pid() == pid
    os.kill(pid, 0)


def test_it_ends_with_its_process_and_not_before() -> None:
    """What ends a process and all that it started, politely, does not end the one that looks after them."""
    program = (
        "from referee.sandbox import reaper; reaper.mark(); print(reaper.reaper_pid(), flush=True); input()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program],
        cwd=REPOSITORY,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        assert process.stdout is not None
        pid = int(process.stdout.readline())
        for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
            os.kill(pid, number)
        assert children_of(process.pid) == [pid]
        process.kill()
        assert wait_for_end(pid)
