"""Memory and cores of a host and its containers; a bot that the kernel killed for memory has not lost."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from referee.errors import RefereeError
from referee.judge.events import BotExited
from referee.judge.faults import classified
from referee.judge.limits import default_memory_mb, memory_shortage
from referee.judge.results import Player
from referee.process.bot import Bot
from referee.sandbox import host_resources
from referee.sandbox.bubblewrap import Sandbox, Tier
from referee.sandbox.host_resources import killed_for_memory
from tests.support.builders import KALARENA
from tests.support.confinement import needs_sandbox

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux reports it like this")

ROOM_MB, HELD_MB, ALLOWED_MB = 160, 400, 768
"""Memory of a referee with its bots, memory that a bot takes, and its limit."""
HOLDS = f"""
import sys
held = bytearray({HELD_MB} << 20)
held[::4096] = b"1" * len(held[::4096])
for line in sys.stdin:
    pass
"""
LIMIT_S = 180


@pytest.fixture
def count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[int], object]:
    """Sets what the kernel counts for the whole host, as if there were no control groups."""
    monkeypatch.setattr(host_resources, "GROUPS", str(tmp_path / "none"))
    monkeypatch.setattr(host_resources, "VMSTAT", str(tmp_path / "vmstat"))
    return lambda number: (tmp_path / "vmstat").write_text(f"nr_free 12\noom_kill {number}\nnuma_hit 5\n")


def test_the_hosts_count(count: Callable[[int], object], tmp_path: Path) -> None:
    assert killed_for_memory() == 0
    count(17)
    assert killed_for_memory() == 17
    (tmp_path / "vmstat").write_text("nr_free_pages 12\n")
    assert killed_for_memory() == 0


@pytest.mark.parametrize(
    ("line", "file", "text"),
    [
        ("0::/job/7\n", "job/7/memory.events.local", "low 0\noom 4\noom_kill 3\noom_group_kill 0\n"),
        ("4:memory:/job/7\n0::/\n", "memory/job/7/memory.oom_control", "under_oom 0\noom_kill 3\n"),
    ],
)
def test_the_count_of_our_own_group_is_better(
    line: str,
    file: str,
    text: str,
    count: Callable[[int], object],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    count(17)
    monkeypatch.setattr(host_resources, "MOUNT", tmp_path)
    (tmp_path / "none").write_text(line)
    assert killed_for_memory() == 17  # the file is not there, as in a group that is the host's
    (tmp_path / file).parent.mkdir(parents=True)
    (tmp_path / file).write_text(text)
    assert killed_for_memory() == 3


@pytest.mark.parametrize(
    ("ends", "more", "is_ours"),
    [
        ("kill -9 $$", 1, True),
        ("sh -c 'kill -9 $$'; exit $?", 1, True),
        ("kill -9 $$", 0, False),
        ("exit 1", 1, False),
    ],
)
def test_whose_fault_an_end_is(ends: str, more: int, is_ours: bool, count: Callable[[int], object]) -> None:
    count(3)
    player = Player("bot", ("/bin/sh", "-c", f"read line; {ends}"), "/")
    bot = Bot(0, player, os.environb, sandbox=Sandbox(tier=Tier.WEAK))
    try:
        bot.wait_ready()
        count(3 + more)
        bot.write("go")
        assert bot.exit_descriptor is not None
        assert os.waitid(os.P_PIDFD, bot.exit_descriptor, os.WEXITED | os.WNOWAIT)
        assert bot.has_ended()
        if is_ours:
            with pytest.raises(RefereeError, match=r"bot was killed while this host, .* had no memory left"):
                classified(bot.exited_event(), player.name, bot.limits)
        else:
            assert isinstance(classified(bot.exited_event(), player.name, bot.limits), BotExited)
    finally:
        bot.kill()
        bot.close()


def bounded_group() -> Path | None:
    """A new control group below our own; None where that may not be made."""
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, kinds, path = line.split(":", 2)
        top, bound = {
            "memory": ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),  # of the first version
            "": ("/sys/fs/cgroup", "memory.max"),
        }.get(kinds, ("/nowhere", ""))
        group = Path(top + path, f"kalarena-test-{os.getpid()}")
        try:
            group.mkdir()
        except OSError:
            continue
        if (group / bound).exists():  # it is a group, and no folder in place of one
            (group / bound).write_text(str(ROOM_MB << 20))
            return group
        group.rmdir()
    return None


@pytest.fixture
def narrow() -> Iterator[Path]:
    """A control group as a batch system makes one for a job."""
    if len(Path("/proc/swaps").read_text().splitlines()) > 1:
        pytest.skip("a bot would be swapped out here, and not killed")
    group = bounded_group()
    if group is None:
        pytest.skip("no control group that bounds memory may be made here")
    yield group
    give_up = time.monotonic() + LIMIT_S
    while (group / "cgroup.procs").read_text():  # the sandbox reaper ends after its referee
        assert time.monotonic() < give_up
        os.sched_yield()
    group.rmdir()


@pytest.mark.load
def test_a_job_without_memory_is_no_bots_loss(narrow: Path, tmp_path: Path) -> None:
    needs_sandbox()
    (tmp_path / "bot.py").write_text(HOLDS)
    play = [
        *(str(KALARENA), "play", str(tmp_path / "bot.py"), "first_legal"),
        *("--sandbox", "required", "--memory-mb", str(ALLOWED_MB), "--start-time", "30"),
    ]
    done = subprocess.run(
        ["/bin/sh", "-c", 'echo $$ > "$0/cgroup.procs" && exec "$@"', str(narrow), *play],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert "bot was killed while this host, or what we may use of it, had no memory left" in done.stderr
    assert done.returncode not in (0, -signal.SIGKILL)
    assert "wins" not in done.stdout


# Memory and cores

GIB = 1 << 30


class Host:
    """A host with files of its own in /proc and /sys."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        for name in ("GROUPS", "MEMORY_INFO", "MOUNT"):
            monkeypatch.setattr(host_resources, name, folder / name.lower())
        monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: range(8), raising=False)
        self.write("memory_info", f"MemFree: 1 kB\nMemTotal: {64 * GIB // 1024} kB\n")

    def write(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    return Host(tmp_path, monkeypatch)


def test_a_host_without_containers(host: Host) -> None:
    assert (host_resources.host_memory_bytes(), host_resources.core_count()) == (64 * GIB, 8)
    host.write("groups", "0::/user.slice/x\n")
    host.write("mount/user.slice/x/memory.max", "max\n")
    host.write("mount/user.slice/x/cpu.max", "max 100000\n")
    assert (host_resources.host_memory_bytes(), host_resources.core_count()) == (64 * GIB, 8)


@pytest.mark.parametrize("error", [None, ValueError("unrecognized configuration name")])
def test_a_host_whose_kernel_has_no_file_about_its_memory(
    host: Host, error: ValueError | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as macOS; 0 stands for an unknown size."""

    def sysconf(name: str) -> int:
        if error is not None:
            raise error
        return {"SC_PHYS_PAGES": 1 << 20, "SC_PAGE_SIZE": 4096}[name]

    monkeypatch.setattr(os, "sysconf", sysconf)
    host.write("memory_info", "")
    assert host_resources.host_memory_bytes() == (4 * GIB if error is None else 0)
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 3)
    assert host_resources.usable_cores() == [0, 1, 2]


def test_a_container_of_version_2(host: Host) -> None:
    host.write("groups", "0::/job/step\n")
    host.write("mount/job/memory.max", str(6 * GIB))
    host.write("mount/job/step/memory.max", "max")
    host.write("mount/job/step/cpu.max", "150000 100000\n")
    assert (host_resources.host_memory_bytes(), host_resources.core_count()) == (6 * GIB, 2)
    host.write("groups", "0::/\n")  # with a namespace of its own, which shows its own group as the root
    host.write("mount/memory.max", str(3 * GIB))
    assert host_resources.host_memory_bytes() == 3 * GIB


def test_a_container_of_version_1(host: Host) -> None:
    host.write("groups", "5:memory:/docker/abc\n4:cpu,cpuacct:/docker/abc\n")
    host.write("mount/memory/memory.limit_in_bytes", str(4 * GIB))  # as the container mounts its own group
    host.write("mount/cpu/cpu.cfs_quota_us", "300000")
    host.write("mount/cpu/cpu.cfs_period_us", "100000")
    assert (host_resources.host_memory_bytes(), host_resources.core_count()) == (4 * GIB, 3)
    host.write("mount/memory/memory.limit_in_bytes", "9223372036854771712")
    host.write("mount/cpu/cpu.cfs_quota_us", "-1")
    assert (host_resources.host_memory_bytes(), host_resources.core_count()) == (64 * GIB, 8)


@pytest.mark.parametrize(
    ("host_gib", "games", "limit"),
    [(0, 1, 512), (1, 1, 512), (4, 2, 512), (8, 2, 1024), (24, 2, 2048), (24, 4, 1536), (64, 64, 512)],
)
def test_the_default_follows_the_host(host_gib: int, games: int, limit: int) -> None:
    assert default_memory_mb(host_gib * GIB, games) == limit


def test_the_default_here(host: Host) -> None:
    assert [host_resources.default_memory_here(games) for games in (None, 1, 10, 1000)] == [
        2048,
        2048,
        1600,
        512,
    ]


def test_a_shortage_is_named() -> None:
    assert memory_shortage(512, 4 * GIB, 4) == memory_shortage(512, 0, 100) == ""
    assert memory_shortage(512, 4 * GIB, 5) == (
        "the bots of 5 games at a time may use 5120 MB of memory (512 MB each), and this host has 4096 MB"
    )
    assert memory_shortage(4096, 4 * GIB, 1).startswith("the bots of a game may use 8192 MB")
