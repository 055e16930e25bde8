"""What /proc tells of real processes: each test starts one program and talks to it through its pipes."""

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from itertools import pairwise
from pathlib import Path

import pytest

from referee.process import process_tree, procfs
from referee.process.cpu_accounting import Reading, between
from referee.process.process_tree import OwnWait, ProcessTree, has_counters

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")

MIB = 1024 * 1024
LIMIT_S = 20.0
"""Nothing waits that long unless it has failed."""

HEAD = """
import ctypes, mmap, os, signal, sys, threading, time
def say(*words): print(*words, flush=True)
def burn(seconds, clock=time.thread_time):
    until = clock() + seconds
    while clock() < until: pass
def spin():
    while True: pass
def children(number, work):
    found = []
    for _ in range(number):
        pid = os.fork()
        if not pid:
            work()
            os._exit(0)
        found.append(pid)
    return found
def thread(work, *words):
    made = threading.Thread(target=work, args=words, daemon=True)
    made.start()
    return made
"""
"""Before each program."""

Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts Python programs, each in a process group of its own, which is killed afterwards."""
    started: list[subprocess.Popen[str]] = []

    def run(
        program: str, *, before: tuple[str, ...] = (), pass_fds: tuple[int, ...] = ()
    ) -> subprocess.Popen[str]:
        command = [*before, sys.executable, "-S", "-E", "-c", HEAD + program]
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            process_group=0,
            pass_fds=pass_fds,
        )
        started.append(process)
        return process

    yield run
    for process in started:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.close()
        process.stdout.close()


def hear(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def tell(process: subprocess.Popen[str], line: str = "") -> None:
    assert process.stdin is not None
    process.stdin.write(line + "\n")
    process.stdin.flush()


def until(fact: Callable[[], object]) -> None:
    """Look again until something is so."""
    give_up = time.monotonic() + LIMIT_S
    while not fact():
        assert time.monotonic() < give_up
        os.sched_yield()


def until_doing(tree: ProcessTree, what: str) -> None:
    until(lambda: tree.activity() == what)


def until_used(tree: ProcessTree, before: Reading) -> None:
    """It has used CPU time since."""
    until(lambda: between(before, tree.read()).cpu_us > 1000)


def burn(seconds: float) -> None:
    """Let time pass without sleeping."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass


def open_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


# CPU time

WORK = {
    "one thread": "burn(0.2)",
    "dead threads": "[thread(burn, 0.05).join() for _ in range(4)]",
    "living threads": (
        "[thread(lambda: (burn(0.05), time.sleep(600))) for _ in range(4)]; burn(0.2, time.process_time)"
    ),
    "reaped children": "[os.waitpid(pid, 0) for pid in children(4, lambda: burn(0.06))]",
    "children of reaped children": (
        "[os.waitpid(pid, 0) for pid in"
        " children(2, lambda: [os.waitpid(below, 0) for below in children(2, lambda: burn(0.06))])]"
    ),
    "children not reaped": (
        "pids = children(4, lambda: burn(0.06));"
        "[os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT) for pid in pids]"
    ),
}


@pytest.mark.parametrize("work", WORK)
def test_cpu_time(start: Start, work: str) -> None:
    """The program tells what it has used itself; of children not reaped it cannot know."""
    bot = start(
        "say(); sys.stdin.readline(); first = sum(os.times()[:4]); own = time.process_time()\n"
        f"{WORK[work]}\n"
        "say(time.process_time() - own, sum(os.times()[2:4])); sys.stdin.readline()"
    )
    hear(bot)
    with closing(ProcessTree(bot.pid)) as tree:
        before = tree.read()
        tell(bot)
        own, reaped = map(float, hear(bot).split())
        spent = between(before, tree.read())
    expected = own + reaped + (0.24 if work == "children not reaped" else 0)
    assert expected > 0.19
    # Ticks: 10 ms each of user and system time for each of up to 4 children, and what it takes to begin.
    assert spent.cpu_us == pytest.approx(expected * 1e6, abs=60_000)


def test_cpu_time_only_grows_while_children_come_and_go(start: Start) -> None:
    bot = start("say()\nwhile True: [os.waitpid(pid, 0) for pid in children(3, lambda: burn(0.002))]")
    hear(bot)
    with closing(ProcessTree(bot.pid)) as tree:
        readings = [tree.read().cpu_ns]
        give_up = time.monotonic() + LIMIT_S
        while readings[-1] - readings[0] < 300_000_000:
            readings.append(tree.read().cpu_ns)
            assert time.monotonic() < give_up
    # Three children of a few ms each may vanish into ticks that are not full.
    assert all(after >= before - 60_000_000 for before, after in pairwise(readings))


# Waits

needs_counters = pytest.mark.skipif(not has_counters(), reason="this kernel counts no waits")


def on_one_core(process: subprocess.Popen[str]) -> None:
    os.sched_setaffinity(process.pid, {min(os.sched_getaffinity(0))})


@needs_counters
def test_four_spinners_on_one_core_wait_three_quarters_of_the_time(start: Start) -> None:
    bot = start("sys.stdin.readline(); pids = children(3, spin); say(); burn(0.3); say(); spin()")
    on_one_core(bot)
    with closing(ProcessTree(bot.pid)) as tree:
        tell(bot)
        hear(bot)
        began = time.monotonic()
        before = tree.read()
        assert len(before.threads) == 4
        hear(bot)
        after = tree.read()
        wall = (time.monotonic() - began) * 1e6
    spent = between(before, after)
    for thread, times in before.threads.items():
        assert 0.5 * wall < (after.threads[thread].wait_ns - times.wait_ns) / 1000 < wall * 1.05
    # While one of them ran the others were not kept waiting by anybody else.
    assert spent.wait_us <= wall - spent.cpu_us + 1000
    assert spent.cpu_us < wall * 1.05


@needs_counters
def test_who_queues_behind_his_own_threads_has_used_the_time(start: Start) -> None:
    # Loops of Python take turns by the interpreter's lock; hashing is done without it.
    bot = start(
        "import hashlib; sys.stdin.readline(); block = bytes(2**20)\n"
        "def work():\n"
        "    while True: hashlib.sha256(block)\n"
        "[thread(work) for _ in range(8)]; say(); sys.stdin.readline()"
    )
    on_one_core(bot)
    with closing(ProcessTree(bot.pid)) as tree:
        tell(bot)
        hear(bot)
        assert tree.count() == 9
        began = time.monotonic()
        before = tree.read()
        until(lambda: time.monotonic() - began > 0.5)
        spent = between(before, tree.read())
        wall = (time.monotonic() - began) * 1e6
    assert spent.wait_us <= wall - spent.cpu_us + 1000
    # Whatever else runs on this core, and this test, takes its part.
    assert 0.3 * wall < spent.cpu_us < 1.05 * wall


def test_cpu_time_of_children_that_nobody_waits_for_is_noticed(start: Start) -> None:
    bot = start(
        "import signal; signal.signal(signal.SIGCHLD, signal.SIG_IGN); say()\n"
        "while True: children(1, lambda: burn(0.02)); time.sleep(0.03)"
    )
    hear(bot)
    with closing(ProcessTree(bot.pid)) as tree:
        before = tree.read()
        until(lambda: tree.read().hides_cpu)
        assert tree.read().cpu_ns > before.cpu_ns


def test_children_that_are_waited_for_hide_nothing(start: Start) -> None:
    program = "say()\nwhile True: [os.waitpid(pid, 0) for pid in children(3, lambda: burn(0.01))]"
    bot = start(program)
    hear(bot)
    with closing(ProcessTree(bot.pid)) as tree:
        before = tree.read()
        until(lambda: tree.read().hides_cpu or between(before, tree.read()).cpu_us > 400_000)
        assert not tree.read().hides_cpu


def test_a_bot_with_more_ready_threads_than_cpus_is_queued(start: Start) -> None:
    bot = start("say(); sys.stdin.readline(); children(1, spin); say(); spin()")
    on_one_core(bot)
    hear(bot)
    with closing(ProcessTree(bot.pid)) as tree:
        until_doing(tree, "reading")
        assert not tree.is_queued()
        tell(bot)
        hear(bot)
        until(tree.is_queued)


@needs_counters
def test_own_wait_grows_with_a_rival(start: Start) -> None:
    rival = start("say(); spin()")
    on_one_core(rival)
    hear(rival)
    cores = os.sched_getaffinity(0)
    with closing(OwnWait()) as wait:
        before = wait.wait_ns()
        os.sched_setaffinity(0, {min(cores)})
        try:
            until(lambda: wait.wait_ns() - before > 10_000_000)
        finally:
            os.sched_setaffinity(0, cores)
    assert wait.wait_ns() == 0


# Memory


def test_private_memory(start: Start) -> None:
    bot = start("say(); sys.stdin.readline(); kept = b'x' * (50 << 20); say(); sys.stdin.readline()")
    hear(bot)
    with closing(ProcessTree(bot.pid)) as tree:
        quick, exact = tree.memory_bytes(1 << 40), tree.memory_bytes(0)
        assert 0 < quick < 30 * MIB
        tell(bot)
        hear(bot)
        assert tree.memory_bytes(1 << 40) - quick == pytest.approx(50 * MIB, abs=2 * MIB)
        assert tree.memory_bytes(0) - exact == pytest.approx(50 * MIB, abs=2 * MIB)


SHARED = "area = mmap.mmap(-1, 50 << 20); area.write(b'x' * (50 << 20))"
COPIED = "area = b'x' * (50 << 20)"


@pytest.mark.parametrize("area", [SHARED, COPIED])
def test_memory_shared_with_forks_counts_once_above_the_limit(start: Start, area: str) -> None:
    bot = start(
        f"{area}\n"
        "def look(): area[:]; os.write(1, b'\\n'); time.sleep(600)\n"
        "children(4, look); sys.stdin.readline()"
    )
    for _ in range(4):
        hear(bot)
    with closing(ProcessTree(bot.pid)) as tree:
        quick = tree.memory_bytes(1 << 40)
        assert quick > 240 * MIB
        assert tree.memory_bytes(quick) == quick
        exact = tree.memory_bytes(quick - 1)
        if area is SHARED:  # each fork has copied the area once to look at it, and freed that again
            assert 50 * MIB < exact < 130 * MIB
        else:
            assert 50 * MIB < exact < 80 * MIB


SPARSE = """
def touch():
    area = mmap.mmap(-1, 8 << 30, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ)
    area.madvise(mmap.MADV_NOHUGEPAGE)
    for place in range(0, 8 << 30, 2 << 20): area[place]
    os.write(1, b'\\n'); time.sleep(600)
children(4, touch); sys.stdin.readline()
"""
"""Four processes with page tables of 16 MiB each, and nothing in them."""


def test_what_has_large_page_tables_is_not_looked_through(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would take as long as a bot needs to fill much more of them."""
    asked: list[int] = []
    exactly = procfs.Process.own_share_kib

    def counted(member: procfs.Process) -> int:
        asked.append(member.number)
        return exactly(member)

    monkeypatch.setattr(procfs.Process, "own_share_kib", counted)
    bot = start(SPARSE)
    for _ in range(4):
        hear(bot)
    with closing(ProcessTree(bot.pid)) as tree:
        quick = tree.memory_bytes(1 << 40)
        assert quick > 4 * 16 * MIB
        assert not asked
        assert 4 * 16 * MIB < tree.memory_bytes(quick - 1) <= quick
    assert asked == [bot.pid]  # which has few


CLONE = """
libc = ctypes.CDLL(None)
stack = ctypes.create_string_buffer(1 << 16)
top = ctypes.c_void_p(ctypes.addressof(stack) + (1 << 16) - 64)
libc.clone(ctypes.cast(libc.pause, ctypes.c_void_p), top, {flags} | signal.SIGCHLD, None)
"""
CLONE_VM, CLONE_VFORK = 0x100, 0x4000
"""linux/sched.h"""


@pytest.mark.skipif(procfs.KCMP.get(os.uname().machine) is None, reason="kcmp() has another number here")
def test_memory_of_a_vfork_counts_once(start: Start) -> None:
    bot = start(
        "kept = b'x' * (50 << 20)" + CLONE.format(flags=CLONE_VM) + "say(); sys.stdin.readline()",
    )
    hear(bot)
    with closing(ProcessTree(bot.pid)) as tree:
        assert len(tree.pids()) == 2
        assert tree.memory_bytes(1 << 40) > 100 * MIB
        if procfs.share_memory(*tree.pids()):  # else it is not for us to ask
            assert 50 * MIB < tree.memory_bytes(0) < 80 * MIB


def test_memory_without_the_exact_file_is_the_sum(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: procfs.Process) -> int:
        raise PermissionError

    monkeypatch.setattr(procfs.Process, "own_share_kib", refuse)
    bot = start("children(2, lambda: (os.write(1, b'\\n'), time.sleep(600))); sys.stdin.readline()")
    hear(bot)
    hear(bot)
    with closing(ProcessTree(bot.pid)) as tree:
        assert tree.memory_bytes(0) == tree.memory_bytes(1 << 40) > 0


# Stopping

STORM = """
sys.stdin.readline()
def storm(depth):
    if depth:
        children(2, lambda: storm(depth - 1))
    os.write(1, b'.\\n')
    spin()
storm(5)
"""
"""63 processes, each spinning."""


def test_stop_a_fork_storm(start: Start) -> None:
    bot = start(STORM)
    with closing(ProcessTree(bot.pid)) as tree:
        tell(bot)
        hear(bot)
        assert tree.stop(LIMIT_S)
        assert tree.activity() == "stopped"
        stopped = tree.pids()
        before = tree.read()
        burn(0.05)
        assert between(before, tree.read()).cpu_us == 0
        assert tree.pids() == stopped
        tree.resume()
        until_used(tree, before)
        until(lambda: tree.count() == 63)
        assert tree.stop(LIMIT_S)
        assert len(tree.pids()) == 63
        before = tree.read()
        burn(0.05)
        assert between(before, tree.read()).cpu_us == 0


def test_stop_threads(start: Start) -> None:
    bot = start("[thread(spin) for _ in range(6)]; say(); spin()")
    hear(bot)
    with closing(ProcessTree(bot.pid)) as tree:
        for _ in range(20):
            assert tree.stop(LIMIT_S)
            before = tree.read()
            assert before.cpu_ns == tree.read().cpu_ns
            assert tree.stop(0)  # nothing to be done
            tree.resume()
            until_used(tree, before)


def test_stop_while_a_parent_waits_for_its_vfork(start: Start) -> None:
    bot = start("say()" + CLONE.format(flags=CLONE_VM | CLONE_VFORK))
    hear(bot)
    with closing(ProcessTree(bot.pid)) as tree:
        until(lambda: len(tree.pids()) == 2)
        assert tree.stop(LIMIT_S)
        tree.resume()
        assert len(tree.pids()) == 2


def test_stop_that_does_not_come_true(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    bot = start("say(); spin()")
    hear(bot)
    monkeypatch.setattr(procfs.Process, "signal", lambda *_: None)
    with closing(ProcessTree(bot.pid)) as tree:
        assert not tree.stop(0.01)


def test_what_a_member_has_started_stays_in_the_tree(start: Start) -> None:
    """Its parent ends, and the system gives it to another process."""
    bot = start(
        "def below(): children(1, lambda: (os.write(1, b'%d\\n' % os.getpid()), spin())); time.sleep(600)\n"
        "pid, = children(1, below); sys.stdin.readline(); os.kill(pid, 9); os.waitpid(pid, 0); say();"
        "sys.stdin.readline()"
    )
    orphan = int(hear(bot))
    with closing(ProcessTree(bot.pid)) as tree:
        assert len(tree.pids()) == 3
        tell(bot)
        hear(bot)
        assert tree.pids() == [bot.pid, orphan]
        assert tree.stop(LIMIT_S)
        os.kill(orphan, signal.SIGKILL)
        until(lambda: tree.pids() == [bot.pid])


# Doing


@pytest.mark.parametrize(
    ("program", "what"),
    [
        ("say(); sys.stdin.readline()", "reading"),
        ("say(); os.readv(0, [bytearray(9)])", "reading"),
        ("say(); spin()", "running"),
        ("say(); time.sleep(600)", "waiting"),
        ("say(); __import__('select').select([0], [], [])", "waiting"),
        ("say(); os.read(os.pipe()[0], 1)", "waiting"),
        ("say(); thread(time.sleep, 600); thread(sys.stdin.readline); time.sleep(600)", "reading"),
        ("say(); thread(sys.stdin.readline); spin()", "reading"),
        ("say(); thread(spin); time.sleep(600)", "running"),
        ("children(1, sys.stdin.readline); say(); time.sleep(600)", "reading"),
        # A helper that waits for the bot, not for us
        (
            "a, b = os.pipe(); children(1, lambda: (os.dup2(a, 0), os.read(0, 1))); say(); time.sleep(600)",
            "waiting",
        ),
        ("say()", "ended"),
        ("children(2, lambda: None); say()", "ended"),
        ("say(); os.kill(os.getpid(), signal.SIGSTOP)", "stopped"),
        # Names that are meant to be misread
        ("open('/proc/self/comm', 'w').write('x) R 1 (\\n) T'); say(); sys.stdin.readline()", "reading"),
        ("open('/proc/self/comm', 'w').write('\\nRssAnon: 9 kB'); say(); time.sleep(600)", "waiting"),
    ],
)
def test_doing(start: Start, program: str, what: str) -> None:
    bot = start(program)
    hear(bot)
    with closing(ProcessTree(bot.pid)) as tree:
        until_doing(tree, what)
        assert tree.activity() == what
        assert tree.memory_bytes(0) < 60 * MIB
        assert tree.count() >= 1
        assert (tree.pids() == []) == (what == "ended")


def test_first_thread_ended_before_the_others(start: Start) -> None:
    bot = start("thread(lambda: (say(), spin())); ctypes.CDLL(None).pthread_exit(None)")
    hear(bot)
    with closing(ProcessTree(bot.pid)) as tree:
        until(lambda: procfs.read_whole(f"/proc/{bot.pid}/stat", None, 999).split()[2] == b"Z")
        assert tree.activity() == "running"
        assert tree.stop(LIMIT_S)
        assert tree.activity() == "stopped"
        assert tree.pids() == [bot.pid]
        assert tree.count() == 2


def test_doing_where_system_calls_are_not_told(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> bool:
        raise PermissionError

    monkeypatch.setattr(procfs.Process, "reads_stdin", refuse)
    bot = start("say(); sys.stdin.readline(); say(); spin()")
    hear(bot)
    with closing(ProcessTree(bot.pid)) as tree:
        until_doing(tree, "")
        tell(bot)
        hear(bot)
        until_doing(tree, "running")


# Ends, numbers used again, descriptors


def test_a_reaped_root_is_no_tree(start: Start) -> None:
    bot = start("say(); sys.stdin.readline()")
    hear(bot)
    with closing(ProcessTree(bot.pid)) as tree, closing(ProcessTree(bot.pid, skip_root=True)) as skipping:
        assert tree.read().cpu_ns > 0
        bot.kill()
        bot.wait()
        for empty in (tree, skipping, ProcessTree(bot.pid)):
            assert empty.pids() == []
            assert empty.read().threads == {}
            assert empty.memory_bytes(0) == empty.count() == 0
            assert empty.activity() == "ended"
            assert empty.stop(1)
            empty.resume()


def test_members_killed_in_the_middle(start: Start) -> None:
    bot = start("say()\nwhile True:\n    for pid in children(5, spin): os.kill(pid, 9); os.waitpid(pid, 0)")
    hear(bot)
    with closing(ProcessTree(bot.pid)) as tree:
        for _ in range(200):
            tree.read()
            tree.memory_bytes(0)
            assert tree.activity() != "ended"
            assert bot.pid in tree.pids()
            assert tree.count() >= 1
        assert tree.stop(LIMIT_S)


def test_threads_come_and_go(start: Start) -> None:
    bot = start("say()\nwhile True:\n    for made in [thread(burn, 0) for _ in range(4)]: made.join()")
    hear(bot)
    with closing(ProcessTree(bot.pid)) as tree:
        readings = []
        for _ in range(300):
            readings.append(tree.read())
            assert tree.activity() in ("running", "waiting")
        assert all(reading.threads for reading in readings)
        cpu = [reading.cpu_ns for reading in readings]
        assert cpu == sorted(cpu)


def test_a_thread_in_place_of_another_is_found(start: Start) -> None:
    """The number of threads is the same as before."""
    program = (
        "say()\nfor _ in range(3):\n"
        "    gate = threading.Event(); made = thread(lambda: (say(threading.get_native_id()), gate.wait()))\n"
        "    sys.stdin.readline(); gate.set(); made.join()\n"
        "    while len(os.listdir('/proc/self/task')) > 1: pass\n"
    )
    bot = start(program)
    hear(bot)
    with closing(ProcessTree(bot.pid)) as tree:
        for _ in range(3):
            number = int(hear(bot))
            assert set(tree.read().threads) == {bot.pid, number}
            tell(bot)


def test_descriptors_are_bounded_and_given_back(start: Start) -> None:
    before = open_descriptors()
    bot = start(
        "[thread(time.sleep, 600) for _ in range(50)]; children(20, lambda: time.sleep(600)); say(); spin()"
    )
    hear(bot)
    pipes = open_descriptors() - before
    tree = ProcessTree(bot.pid)
    assert len(tree.read().threads) == 71
    assert tree.count() == 71
    assert open_descriptors() - before - pipes <= process_tree.DESCRIPTORS_KEPT
    assert tree.stop(LIMIT_S)
    assert tree.activity() == "stopped"
    assert tree.memory_bytes(0) > 0
    tree.resume()
    until_doing(tree, "running")
    tree.close()
    tree.close()
    assert open_descriptors() == before + pipes
    assert tree.pids() == []


def test_no_descriptors_left(start: Start) -> None:
    bot = start("say(); spin()")
    hear(bot)
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    with closing(ProcessTree(bot.pid)) as tree:
        resource.setrlimit(resource.RLIMIT_NOFILE, (3, limits[1]))
        try:
            tree.read()
            tree.memory_bytes(0)
            assert tree.activity() in ("", "ended", "running")
            assert OwnWait().wait_ns() == 0
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def test_without_proc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "is_dir", lambda _: False)
    with closing(ProcessTree(os.getpid())) as tree:
        assert tree.pids() == []
        reading = tree.read()
        assert (reading.cpu_ns, reading.threads) == (0, {})
        assert tree.memory_bytes(0) == tree.count() == 0
        assert not tree.stop(1)
        assert tree.activity() == ""
        tree.resume()


# In a sandbox

Inside = Callable[[str], tuple[subprocess.Popen[str], ProcessTree]]


@pytest.fixture
def inside(start: Start) -> Iterator[Inside]:
    """Starts programs through bubblewrap and gives the tree below the sandbox's first process."""
    program = shutil.which("bwrap")
    if program is None:
        pytest.skip("bubblewrap is not installed")
    options = ("--unshare-pid", "--ro-bind", "/", "/", "--proc", "/proc", "--die-with-parent", "--")
    tried = subprocess.run([program, *options, "true"], capture_output=True, text=True, check=False)
    if tried.returncode:
        pytest.skip(f"bubblewrap cannot work here: {tried.stderr.strip()}")
    opened: list[tuple[subprocess.Popen[str], int, ProcessTree]] = []

    def run(code: str) -> tuple[subprocess.Popen[str], ProcessTree]:
        reading, writing = os.pipe()
        before = (program, "--json-status-fd", str(writing), *options)
        bot = start(code, before=before, pass_fds=(writing,))
        os.close(writing)
        with open(reading) as status:  # noqa: PTH123 -- a descriptor
            first: int = json.loads(status.readline())["child-pid"]
        # The sandbox ends with its first process, which is held until then.
        tree = ProcessTree(first, skip_root=True)
        opened.append((bot, os.pidfd_open(first), tree))
        return bot, tree

    yield run
    for bot, handle, tree in opened:
        signal.pidfd_send_signal(handle, signal.SIGKILL)
        os.close(handle)
        tree.close()
        bot.wait()  # which reaps what was killed


def test_inside_a_sandbox(inside: Inside) -> None:
    bot, tree = inside("say(os.getpid()); sys.stdin.readline(); burn(0.2); say(time.process_time()); spin()")
    assert int(hear(bot)) == 2  # the first is the sandbox's own
    until_doing(tree, "reading")
    assert len(tree.pids()) == tree.count() == 1
    assert 0 < tree.memory_bytes(1 << 40) < 30 * MIB
    assert 0 < tree.memory_bytes(0) < 30 * MIB
    before = tree.read()
    assert len(before.threads) == 1
    tell(bot)
    used = float(hear(bot))
    assert tree.read().cpu_ns == pytest.approx(used * 1e9, abs=30_000_000)
    assert tree.activity() == "running"
    assert tree.stop(LIMIT_S)
    assert tree.activity() == "stopped"
    stopped = tree.read()
    burn(0.05)
    assert tree.read().cpu_ns == stopped.cpu_ns
    tree.resume()
    until_used(tree, stopped)


def test_time_of_orphans_that_the_sandbox_has_reaped(inside: Inside) -> None:
    bot, tree = inside(
        "def below(): children(1, lambda: (burn(0.2), os.write(1, b'done\\n')))\n"
        "say(); sys.stdin.readline(); pid, = children(1, below); os.waitpid(pid, 0); sys.stdin.readline()"
    )
    hear(bot)
    before = tree.read()
    tell(bot)
    assert hear(bot) == "done"
    until(lambda: len(tree.pids()) == 1)
    assert between(before, tree.read()).cpu_us == pytest.approx(200_000, abs=50_000)


def test_a_runner_cannot_escape_its_stop(inside: Inside) -> None:
    """It forks and ends, again and again, so that no number is good for long."""
    bot, tree = inside(
        "def run():\n"
        "    say()\n"
        "    while not os.fork(): os.fork() and os._exit(0)\n"
        "children(1, run); time.sleep(600)"
    )
    hear(bot)
    for _ in range(5):
        assert tree.stop(LIMIT_S)
        before = tree.read()
        burn(0.02)
        after = tree.read()
        assert after.cpu_ns == before.cpu_ns
        tree.resume()
        until_used(tree, before)
