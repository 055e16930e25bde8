"""Memory and cores of a host, in containers of either kind, and the limits that follow."""

import os
from pathlib import Path

import pytest

from referee.judge.limits import default_memory_mb, memory_shortage
from referee.sandbox import host_resources

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
