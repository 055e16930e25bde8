"""A referee that is killed at any moment leaves no bot, no sandbox and no file behind; the sandbox reaper."""

import os
import random
import select
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from referee.judge.limits import Limits
from referee.judge.results import Player
from referee.process.subreaper import kill_orphans
from referee.sandbox import reaper
from tests.support.builders import KALARENA
from tests.support.confinement import needs_sandbox, sandbox_of
from tests.support.paths import REPOSITORY_ROOT
from tests.support.processes import GONE_WITHIN_S, kill_all_with, living_with

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="bubblewrap is Linux's")

KILLS_OF_REFEREES = 24
KILLS_OF_STARTERS = 20
LATEST_S = 0.008
"""After the start of bubblewrap, which has done all that matters by then."""
LOOKS = 3
"""Times that no process must be found."""
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


def wait_for_end_of_all(mark: str) -> None:
    """Wait for all processes with this word.  One that executes a program at the moment shows no words."""
    for _ in range(LOOKS):
        while left := living_with(mark):
            for pid in left:
                assert wait_for_end(pid), command_of(pid)


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
        wait_for_end_of_all(mark)
        assert mounts() == before
        assert list(home.iterdir()) == []
    assert not [path for place in ("/tmp", "/dev/shm") for path in Path(place).glob(f"{mark}*")]


STARTS_SANDBOXES = """
import os, signal, sys, time
from referee.judge.limits import Limits
from referee.judge.results import Player
from referee.process.launch import launch
from referee.sandbox.detection import find_sandbox
word, delay_s = sys.argv[1], float(sys.argv[2])
bot = Player("bot", ("/bin/true", word), "/")
sandbox = find_sandbox("required")
processes = [launch(bot, sandbox.confine(bot, Limits(), os.environb)) for _ in range(5)]
killed_at = time.perf_counter() + delay_s
while time.perf_counter() < killed_at:
    pass
os.kill(os.getpid(), signal.SIGKILL)
"""
"""Starts sandboxes as a referee does, and is killed before they start the bots."""


@pytest.mark.kill
def test_a_process_that_is_killed_while_it_starts_sandboxes_leaves_none(mark: str) -> None:
    needs_sandbox()
    chance = random.Random(1)
    for _ in range(KILLS_OF_STARTERS):
        delay_s = chance.uniform(0, LATEST_S)
        command = [sys.executable, "-c", STARTS_SANDBOXES, mark, str(delay_s)]
        assert subprocess.run(command, cwd=REPOSITORY_ROOT, check=False).returncode == -signal.SIGKILL
        wait_for_end_of_all(mark)


@contextmanager
def named(*words: str, after: tuple[str, ...] = ()) -> Iterator[subprocess.Popen[bytes]]:
    """A process whose command line has these words."""
    program = "import sys, time; print(flush=True); time.sleep(600)"
    with subprocess.Popen(
        [*words, "-c", program, *after], executable=sys.executable, stdout=subprocess.PIPE
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"\n"
            yield process
        finally:
            process.kill()


class Scans:
    """A host in which processes get their marks late, and in which scans take time."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, late_at_s: list[float], scan_s: float) -> None:
        self.now_s, self.scan_s, self.late_at_s = 0.0, scan_s, late_at_s
        self.killed: list[float] = []
        monkeypatch.setattr(reaper, "time", SimpleNamespace(monotonic=lambda: self.now_s, sleep=self.sleep))
        monkeypatch.setattr(reaper, "_marked_processes", self.scan)
        monkeypatch.setattr(reaper, "_kill", lambda *_: self.killed.append(self.late_at_s.pop(0)))

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds

    def scan(self, _mark: str) -> list[int]:
        found = [1] if self.late_at_s and self.now_s >= self.late_at_s[0] else []
        self.now_s += self.scan_s
        return found


@pytest.mark.parametrize(
    ("late_at_s", "scan_s"),
    [
        ([0.0, 0.1, 0.35], 0.0),  # each within 0.3 s of the one before
        ([0.1, 0.9], 0.4),  # a scan that begins before a process has its mark misses it
    ],
)
def test_a_process_that_has_its_mark_late_is_ended(
    monkeypatch: pytest.MonkeyPatch, late_at_s: list[float], scan_s: float
) -> None:
    """On a busy machine, a forked child can wait for a processor before it executes its program."""
    host = Scans(monkeypatch, list(late_at_s), scan_s)
    reaper.kill_marked("a-mark")
    assert host.killed == late_at_s
    assert host.now_s < 1.0 + 6 * scan_s


def test_only_processes_with_the_mark_are_ended() -> None:
    with (
        named("a-mark") as one,
        named("python", after=("a-mark", "else")) as two,
        named("a-mark-2") as other,
        named("python", "-Xa-mark") as another,
    ):
        reaper.kill_marked("a-mark")
        assert one.wait(GONE_WITHIN_S) == two.wait(GONE_WITHIN_S) == -signal.SIGKILL
        assert other.poll() is None
        assert another.poll() is None


def test_a_sandbox_has_its_mark_in_each_program_that_makes_it() -> None:
    """The reaper finds the sandbox at any moment of its start, and its first process afterwards."""
    sandbox = sandbox_of("confined")
    confined = sandbox.confine(Player("bot", ("/bin/true",), "/"), Limits(), os.environb)
    try:
        words = confined.command
        marked_at = words.index(reaper.mark())
        assert words.index(sandbox.tools.bwrap) < marked_at < words.index("/bin/true")
        assert sum(len(word) + 1 for word in words[: marked_at + 1]) < reaper.COMMAND_BYTES
    finally:
        confined.close()
        confined.close_status_pipe()
        confined.release()


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
