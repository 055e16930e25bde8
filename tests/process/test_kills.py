"""A referee that is killed at any moment leaves no bot, no sandbox and no file behind; the sandbox reaper."""

import os
import random
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from referee.process.subreaper import kill_orphans
from referee.sandbox import reaper
from tests.support.builders import KALARENA
from tests.support.confinement import kill_all_with, living_with, needs_sandbox
from tests.support.paths import REPOSITORY_ROOT

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="bubblewrap is Linux's")

KILLS_OF_REFEREES = 24
KILLS_OF_STARTERS = 60
LATEST_S = 0.008
"""After the start of bubblewrap, which has done all that matters by then."""
GONE_WITHIN_S = 10.0
"""So long after its referee was killed a bot may live: milliseconds where cores are free."""
POLL_MS = 1
"""Time between two checks whether a referee has started a bot."""


@pytest.fixture
def mark(tmp_path: Path) -> Iterator[str]:
    """A word on the command lines of a test's processes, which are ended with it."""
    word = f"mark-{os.getpid()}-{tmp_path.name}"
    yield word
    kill_all_with(word)


def wait_for_end(pid: int) -> bool:
    """Wait for a process that may be no child of this one; return False if it does not end in time."""
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


def command_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""


def mounts() -> list[str]:
    return [line.split(" ", 1)[1] for line in Path("/proc/self/mountinfo").read_text().splitlines()]


LITTERS = """
import os, sys
for place in (".", "/tmp", os.environ["HOME"], "/dev/shm") if sys.argv[1:] else ():
    open(f"{place}/{os.path.basename(sys.argv[0])}.left", "w").close()
for line in sys.stdin: pass
"""


@pytest.mark.kill
@pytest.mark.parametrize("tier", ["confined", "weak"])
def test_a_killed_referee_leaves_nothing(tmp_path: Path, mark: str, tier: str) -> None:
    """SIGKILL of `kalarena play` at random moments, most of them while it starts the bots."""
    needs_sandbox()
    folder, home, programs = (tmp_path / name for name in ("bot", "home", "programs"))
    for each in (folder, home, programs):
        each.mkdir()
    (folder / f"{mark}.py").write_text(LITTERS)
    for number in range(20):  # to be copied
        (folder / f"{number}.txt").write_bytes(bytes(100_000))
    environment = {**os.environ, "TMPDIR": str(home)}
    if tier == "weak":  # a PATH without bubblewrap
        for name in ("setpriv", "prlimit", "sh"):
            (programs / name).symlink_to(shutil.which(name) or "/nowhere")
        environment["PATH"] = str(programs)
    bot = f"{sys.executable} {mark}.py" + (" litter" if tier == "confined" else "")
    sandbox = "required" if tier == "confined" else "auto"
    command = [str(KALARENA), "play", bot, bot, "--move-time", "60", "--sandbox", sandbox]
    before = mounts()
    chance = random.Random(1)
    for number in range(KILLS_OF_REFEREES):
        process = subprocess.Popen(
            command, env=environment, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        pidfd = os.pidfd_open(process.pid)
        poller = select.poll()
        poller.register(pidfd, select.POLLIN)
        try:
            # The program itself needs 0.2 s and more until it starts a bot.
            while not children_of(process.pid):
                assert not poller.poll(POLL_MS)
            if number >= 3 * KILLS_OF_REFEREES // 4:  # the last kills are later than a bot's start
                while len(living_with(mark)) < 3:  # the referee's command line has the mark, too
                    assert not poller.poll(POLL_MS)
            assert not poller.poll(chance.uniform(0, 60))
        finally:
            process.kill()
            process.wait()
            os.close(pidfd)
        for pid in living_with(mark):
            assert wait_for_end(pid), command_of(pid)
        assert living_with(mark) == []
        assert mounts() == before
        assert list(home.iterdir()) == []
    assert not [path for place in ("/tmp", "/dev/shm") for path in Path(place).glob(f"{mark}*")]


STARTS_A_SANDBOX = """
import subprocess, sys, time
from referee.sandbox.reaper import mark
bwrap, word = sys.argv[1:]
words = ["--unshare-pid", "--unshare-net", "--unshare-ipc", "--die-with-parent", "--ro-bind", "/", "/"]
subprocess.Popen(
    [mark(), *words, "sh", "-c", "while :; do sleep 1; done # " + word],
    executable=bwrap, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True,
)
time.sleep(600)
"""
"""Starts a sandbox as a referee does; its bot takes no notice of the end of its input."""


@pytest.mark.kill
def test_a_killed_process_leaves_no_sandbox(mark: str) -> None:
    needs_sandbox()
    chance = random.Random(1)
    for _ in range(KILLS_OF_STARTERS):
        command = [sys.executable, "-S", "-c", STARTS_A_SANDBOX, "/usr/bin/bwrap", mark]
        process = subprocess.Popen(command, cwd=REPOSITORY_ROOT, stdout=subprocess.DEVNULL)
        try:
            while len(children := children_of(process.pid)) < 2:  # its reaper and bubblewrap
                assert process.poll() is None
            killed_at = time.perf_counter() + chance.uniform(0, LATEST_S)
            while time.perf_counter() < killed_at:
                pass
        finally:
            process.kill()
            process.wait()
        for pid in (*children, *living_with(mark)):
            assert wait_for_end(pid), (pid, children, command_of(pid))
        assert living_with(mark) == []


@contextmanager
def named(*words: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process whose command line begins with these words."""
    program = "import sys, time; print(flush=True); time.sleep(600)"
    with subprocess.Popen(
        [*words, "-c", program], executable=sys.executable, stdout=subprocess.PIPE
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"\n"
            yield process
        finally:
            process.kill()


def test_a_process_that_has_its_mark_late_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine, a forked child can wait for a processor before it executes its program."""
    now_s, killed = [0.0], []
    clock = SimpleNamespace(
        monotonic=lambda: now_s[0], sleep=lambda seconds: now_s.append(now_s.pop() + seconds)
    )
    monkeypatch.setattr(reaper, "time", clock)
    late_at_s = [0.0, 0.1, 0.35]  # each within 0.3 s of the one before
    monkeypatch.setattr(
        reaper, "_marked_processes", lambda _mark: [1] if late_at_s and now_s[0] >= late_at_s[0] else []
    )
    monkeypatch.setattr(reaper, "_kill", lambda *_: killed.append(late_at_s.pop(0)))
    reaper.kill_marked("a-mark")
    assert killed == [0.0, 0.1, 0.35]
    assert now_s[0] < 1.0


def test_only_processes_with_the_mark_are_ended() -> None:
    with named("a-mark") as one, named("a-mark-2") as other, named("python", "-Xa-mark") as third:
        reaper.kill_marked("a-mark")
        assert one.wait(GONE_WITHIN_S) == -signal.SIGKILL
        assert other.poll() is None
        assert third.poll() is None


def test_a_process_has_one_reaper_and_another_when_it_is_lost() -> None:
    first = reaper.mark()
    pid = reaper.reaper_pid()
    assert pid is not None
    assert os.getsid(pid) != os.getsid(0)
    kill_orphans()  # which spares the reaper
    assert (reaper.mark(), reaper.reaper_pid()) == (first, pid)
    os.kill(pid, signal.SIGKILL)
    assert wait_for_end(pid)
    assert reaper.mark() != first
    assert reaper.reaper_pid() not in (None, pid)


def test_a_reaper_ends_with_its_process_and_not_before() -> None:
    """Signals that end a process and all that it started do not end the reaper."""
    program = (
        "from referee.sandbox import reaper; reaper.mark(); print(reaper.reaper_pid(), flush=True); input()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], cwd=REPOSITORY_ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        pid = int(process.stdout.readline())
        for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
            os.kill(pid, number)
        assert children_of(process.pid) == [pid]
        process.kill()
        assert wait_for_end(pid)
