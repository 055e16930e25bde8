"""Control groups: with directories in their place where the kernel's controllers are missing."""

import errno
import os
import select
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from referee.judge.limits import Limits
from referee.sandbox import cgroup
from referee.sandbox.cgroup import (
    OWN_LEAF,
    BotGroup,
    CgroupError,
    delegated_group,
    group_name,
    missing_controllers,
)

LIMITS = Limits(memory_mb=100, processes=10)


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A group as it is delegated, with this process in it."""
    group = tmp_path / "scope"
    group.mkdir()
    (group / "cgroup.controllers").write_text("cpu memory pids\n")
    (group / "cgroup.type").write_text("domain\n")
    (group / "cgroup.procs").write_text("17\n")
    (group / "cgroup.subtree_control").write_text("")
    monkeypatch.setattr(cgroup, "SYSTEMD", tmp_path / "none")
    monkeypatch.setattr(cgroup, "_own_group", lambda: group)
    return group


def test_a_delegated_group_is_split(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    control = tree / "cgroup.subtree_control"
    monkeypatch.setattr(Path, "write_text", _appending_to(control))
    assert delegated_group() == str(tree)
    assert (tree / OWN_LEAF / "cgroup.procs").read_text() == "17"
    assert set(control.read_text().split()) == {"+memory", "+pids", "+cpu", "+cpuset"}
    assert delegated_group() == str(tree)  # again, as after a run that was killed
    # A worker is in the leaf already.
    monkeypatch.setattr(cgroup, "_own_group", lambda: tree / OWN_LEAF)
    assert delegated_group() == str(tree)


@pytest.mark.parametrize(
    ("offered", "missing"),
    [("cpu", "memory and pids"), ("memory", "pids"), ("pids io", "memory"), ("", "memory and pids")],
)
def test_without_its_controllers_a_group_is_of_no_use(tree: Path, offered: str, missing: str) -> None:
    (tree / "cgroup.controllers").write_text(offered)
    with pytest.raises(CgroupError, match=f"no control group with {missing} was delegated to us"):
        delegated_group()
    assert not (tree / OWN_LEAF).exists()


@pytest.mark.parametrize(
    ("refused", "missing"), [("", []), ("cpuset", ["cpuset"]), ("cpu", ["cpu", "cpuset"])]
)
def test_controllers_of_the_processors_are_optional(
    tree: Path, monkeypatch: pytest.MonkeyPatch, refused: str, missing: list[str]
) -> None:
    """A user's session has no cpuset, as systemd delegates it; kernels with real-time groups refuse cpu."""
    control = tree / "cgroup.subtree_control"
    append = _appending_to(control)

    def write(path: Path, text: str) -> int:
        if path == control and refused and refused in text:
            raise FileNotFoundError(errno.ENOENT, "No such file or directory")
        return append(path, text.replace("+", ""))

    monkeypatch.setattr(Path, "write_text", write)
    assert delegated_group() == str(tree)
    assert missing_controllers(str(tree)) == missing


def test_a_group_that_cannot_be_split(tree: Path) -> None:
    (tree / "cgroup.subtree_control").unlink()
    (tree / "cgroup.subtree_control").mkdir()  # cannot be written to
    with pytest.raises(CgroupError, match="no control group was delegated to us"):
        delegated_group()
    # The first process of the whole tree, whose group has no type, is the system's init.
    (tree / "cgroup.type").unlink()
    with pytest.raises(CgroupError, match="we are in that of the whole system"):
        delegated_group()


@pytest.mark.parametrize(
    ("user", "marks", "is_ours"),
    [
        (0, {}, False),
        (0, {"trusted.delegate": b"1"}, True),
        (0, {"user.delegate": b"1"}, True),
        (0, {"user.delegate": b"0"}, False),
        (1000, {}, True),
    ],
)
def test_where_systemd_runs_root_splits_only_marked_groups(
    tree: Path, monkeypatch: pytest.MonkeyPatch, user: int, marks: dict[str, bytes], is_ours: bool
) -> None:
    def getxattr(path: Path, name: str) -> bytes:
        if name not in marks:
            raise OSError(errno.ENODATA, "No data available")
        return marks[name]

    monkeypatch.setattr(cgroup, "SYSTEMD", tree)
    monkeypatch.setattr(os, "geteuid", lambda: user)
    monkeypatch.setattr(os, "getxattr", getxattr, raising=False)
    if is_ours:
        assert delegated_group() == str(tree)
        return
    with pytest.raises(CgroupError, match="is systemd's own"):
        delegated_group()
    assert (tree / "cgroup.procs").read_text() == "17\n"
    assert not (tree / OWN_LEAF).exists()


def test_nothing_is_moved_out_of_a_group_of_somebody_else(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: path != tree / "cgroup.procs")
    with pytest.raises(CgroupError, match="is not ours"):
        delegated_group()
    assert not (tree / OWN_LEAF).exists()


def test_a_group_that_is_busy_is_tried_again(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A shell beside us has started a process after we had moved all of them."""
    write, refusals = Path.write_text, [errno.EBUSY, errno.EBUSY]

    def busy(path: Path, text: str) -> int:
        if path.name == "cgroup.subtree_control" and refusals and "memory" in text:
            raise OSError(refusals.pop(), "Device or resource busy")
        return write(path, text)

    monkeypatch.setattr(Path, "write_text", busy)
    assert delegated_group() == str(tree)
    refusals.extend([errno.EBUSY] * cgroup.SPLIT_TRIES)
    with pytest.raises(CgroupError, match="Device or resource busy"):
        delegated_group()


def test_groups_of_referees_that_are_gone_are_removed(tree: Path) -> None:
    gone = subprocess.Popen(["true"])
    gone.wait()
    ours, abandoned = tree / group_name(0), tree / f"kalarena-bot-{gone.pid}-1"
    full = tree / f"kalarena-bot-{gone.pid}-0"
    for path in (ours, abandoned, full, full / "member"):
        path.mkdir()
    delegated_group()
    assert (ours.exists(), abandoned.exists(), full.exists()) == (True, False, True)


def test_limits_of_a_bots_group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limits = {
        "memory.max": str(100 << 20),
        "memory.swap.max": "0",
        "memory.oom.group": "1",
        "pids.max": str(10 + cgroup.SPARE_PROCESSES),
    }
    (tmp_path / "bot").mkdir()  # left by a run that was killed
    group = BotGroup(str(tmp_path), "bot", LIMITS)
    assert {path.name: path.read_text() for path in group.path.iterdir()} == limits
    write = Path.write_text

    def refuse(path: Path, text: str) -> int:
        if path.name == "memory.swap.max":  # as a kernel without swap does
            raise PermissionError(errno.EACCES, "Permission denied")
        return write(path, text)

    monkeypatch.setattr(Path, "write_text", refuse)
    other = BotGroup(str(tmp_path), "other", LIMITS)
    assert {path.name for path in other.path.iterdir()} == limits.keys() - {"memory.swap.max"}
    with pytest.raises(CgroupError, match="no control group could be made: No such file"):
        BotGroup(str(tmp_path / "gone"), "bot", LIMITS)


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ("low 0\noom 1\noom_kill 1\n", (1, 1)),
        ("oom 0\noom_kill 1\n", (0, 1)),  # a group above it, or the host, had no memory left
        ("oom_kill 0\n", (0, 0)),
        (None, (0, 0)),
    ],
)
def test_the_memory_of_a_group(tmp_path: Path, events: str | None, expected: tuple[int, int]) -> None:
    group = BotGroup(str(tmp_path), "bot", LIMITS)
    assert group.peak_memory_bytes() is None
    (group.path / "memory.peak").write_text(f"{99 << 20}\n")
    assert group.peak_memory_bytes() == 99 << 20
    if events is not None:
        (group.path / "memory.events").write_text(events)
    assert group.memory_kills() == expected


def test_a_removed_group_can_be_killed_and_removed_again(tmp_path: Path) -> None:
    group = BotGroup(str(tmp_path), "bot", LIMITS)
    for path in group.path.iterdir():
        path.unlink()
    group.remove()
    assert not group.path.exists()
    group.remove()
    group.kill()
    assert group.memory_kills() == (0, 0)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (None, "this system has no control groups of version 2"),
        (FileNotFoundError(2, "No such file"), "control groups cannot be read"),
    ],
)
def test_a_system_without_control_groups_is_named(
    error: OSError | None, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(_path: Path, **_: str) -> str:
        if error is not None:
            raise error
        return ""

    monkeypatch.setattr(Path, "read_text", read)
    with pytest.raises(CgroupError, match=words):
        delegated_group()


def test_our_own_group_is_found_or_there_is_a_reason() -> None:
    try:
        found = cgroup._own_group()
    except CgroupError:
        return
    assert found.is_dir()


UNIFIED = [Path("/sys/fs/cgroup/unified"), Path("/sys/fs/cgroup")]


@pytest.fixture
def real_parent() -> Iterator[Path]:
    """A real group of version 2 in which others can be made."""
    for folder in UNIFIED:
        path = folder / f"kalarena-test-{os.getpid()}"
        if (folder / "cgroup.procs").exists() and os.access(folder, os.W_OK):
            path.mkdir()
            if (path / "cgroup.procs").exists():
                yield path
                path.rmdir()
                return
            path.rmdir()
    pytest.skip("no control group of version 2 can be made here")


def test_a_real_group_is_killed_whole(real_parent: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BotGroup, "_write", _writing_what_is_there)
    for _ in range(2):  # the second one finds what the first has left
        group = BotGroup(str(real_parent), "bot", LIMITS)
        joined = ["/bin/sh", "-c", 'echo 0 > "$0" && exec "$@"', str(group.path / "cgroup.procs")]
        command = [*joined, "/bin/sh", "-c", "setsid sleep 60 & echo ready; sleep 60"]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            assert str(process.pid) in (group.path / "cgroup.procs").read_text().split()
            group.kill()
            assert process.wait(10) == -signal.SIGKILL
            assert process.stdout.read() == b""  # nobody holds it any more
    _wait_until_empty(group.path)
    group.remove()
    assert not group.path.exists()


def _wait_until_empty(path: Path) -> None:
    with (path / "cgroup.events").open() as events:
        poller = select.poll()
        poller.register(events, select.POLLPRI)
        while "populated 1" in events.read():
            assert poller.poll(10_000)
            events.seek(0)


def _appending_to(control: Path) -> Callable[[Path, str], int]:
    """A write to cgroup.subtree_control adds controllers; other files are replaced."""
    write = Path.write_text
    return lambda path, text: write(path, f"{path.read_text()} {text}" if path == control else text)


def _writing_what_is_there(group: BotGroup, name: str, value: str) -> None:
    """Without controllers there are no files for limits, which are not to be tested here."""
    if (group.path / name).exists():
        (group.path / name).write_text(value)


def test_cpu_time_and_stalled_time_are_the_kernels(tmp_path: Path) -> None:
    group = BotGroup(str(tmp_path), "bot", LIMITS)
    assert group.cpu_times_ns() is None  # a kernel without pressure files
    group.close()
    (group.path / "cpu.stat").write_text("usage_usec 1500\nuser_usec 1000\nsystem_usec 500\n")
    (group.path / "cpu.pressure").write_text(
        "some avg10=0.00 avg60=0.00 avg300=0.00 total=9000\n"
        "full avg10=1.00 avg60=0.00 avg300=0.00 total=2500\n"
    )
    assert group.cpu_times_ns() == (1_500_000, 2_500_000)
    (group.path / "cpu.pressure").write_text("some avg10=0.00 avg60=0.00 avg300=0.00 total=9000\n")
    assert group.cpu_times_ns() is None


@pytest.fixture
def group_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., BotGroup]]:
    """A function that makes a bot's group with these files in it, as the kernel would."""
    groups: list[BotGroup] = []
    mkdir = Path.mkdir

    def make(**files: str) -> BotGroup:
        def filled(path: Path) -> None:
            mkdir(path)
            for name, text in files.items():
                (path / name.replace("_", ".")).write_text(text)

        monkeypatch.setattr(Path, "mkdir", filled)
        groups.append(BotGroup(str(tmp_path), f"bot-{len(groups)}", LIMITS))
        return groups[-1]

    yield make
    for group in groups:
        group.close()


@pytest.mark.parametrize(("nice", "weight"), [(0, "100"), (5, "33"), (19, "10")])
def test_a_bot_off_turn_has_the_least_share_of_the_processors(
    group_with: Callable[..., BotGroup], monkeypatch: pytest.MonkeyPatch, nice: int, weight: str
) -> None:
    monkeypatch.setattr(os, "getpriority", lambda which, who: nice)
    group = group_with(cpu_weight="")

    def shown() -> str:
        text = (group.path / "cpu.weight").read_text()
        (group.path / "cpu.weight").write_text("")
        return text

    assert shown() == weight
    group.set_on_turn(on_turn=True)
    assert shown() == ""  # nothing is written that is so already
    group.set_on_turn(on_turn=False)
    assert shown() == "1"
    group.set_on_turn(on_turn=True)
    assert shown() == weight


def test_without_the_controller_of_the_processors_all_bots_have_their_share(
    group_with: Callable[..., BotGroup],
) -> None:
    group = group_with()
    group.set_on_turn(on_turn=False)
    assert not (group.path / "cpu.weight").exists()


@pytest.mark.parametrize(
    ("offered", "cores", "bound"),
    [("0-3", [1], "1"), ("0-1,4-5", [0, 4], "0,4"), ("0-1", [0, 1], ""), ("3", [3], "")],
)
def test_a_bot_is_bound_to_the_cores_of_its_referee(
    group_with: Callable[..., BotGroup],
    monkeypatch: pytest.MonkeyPatch,
    offered: str,
    cores: list[int],
    bound: str,
) -> None:
    monkeypatch.setattr(cgroup, "usable_cores", lambda: cores)
    group = group_with(cpuset_cpus="", cpuset_cpus_effective=offered)
    assert (group.path / "cpuset.cpus").read_text() == bound


def test_a_group_is_frozen_and_continued(group_with: Callable[..., BotGroup]) -> None:
    group = group_with(cgroup_freeze="0", cgroup_events="populated 1\nfrozen 1\n")
    assert group.freeze(1.0)
    assert (group.path / "cgroup.freeze").read_text() == "1"
    group.thaw()
    assert (group.path / "cgroup.freeze").read_text() == "0"
    (group.path / "cgroup.events").write_text("populated 1\nfrozen 0\n")
    assert not group.freeze(0.0)
    shutil.rmtree(group.path)  # the group was removed meanwhile
    assert not group.freeze(1.0)


def test_a_real_group_is_frozen_and_continued(real_parent: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BotGroup, "_write", _writing_what_is_there)
    group = BotGroup(str(real_parent), "bot", LIMITS)
    joined = ["/bin/sh", "-c", 'echo 0 > "$0" && exec "$@"', str(group.path / "cgroup.procs")]
    try:
        with subprocess.Popen([*joined, "cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(b"one\n")
            process.stdin.flush()
            assert process.stdout.readline() == b"one\n"
            assert group.freeze(10.0)
            process.stdin.write(b"two\n")
            process.stdin.flush()
            assert not select.select([process.stdout], [], [], 0.0)[0]
            group.thaw()
            assert process.stdout.readline() == b"two\n"
            assert group.freeze(10.0)
            group.kill()  # a frozen group, too
            assert process.wait(10) == -signal.SIGKILL
    finally:
        group.kill()
        group.remove()
    assert not group.path.exists()
