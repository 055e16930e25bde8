"""Readings of real processes from /proc: each test starts a program and talks to it through its pipes."""

import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest

from referee.process import process_tree, procfs
from referee.process.cpu_accounting import Reading, between
from referee.process.process_tree import OwnWait, ProcessTree, has_counters

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")

MIB = 1024 * 1024
LIMIT_S = 120.0
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


class Program:
    """A running program with its tree."""

    def __init__(self, text: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-S", "-E", "-c", HEAD + text],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            process_group=0,
        )
        self.pid = self.process.pid
        self.tree = ProcessTree(self.pid)

    def receive(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def send(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def stay_on_one_core(self) -> None:
        os.sched_setaffinity(self.pid, {min(os.sched_getaffinity(0))})


@contextmanager
def started(text: str, lines: int = 1) -> Iterator[Program]:
    """A program that has printed so many lines, in a process group that is killed afterwards."""
    program = Program(text)
    try:
        for _ in range(lines):
            program.receive()
        yield program
    finally:
        with suppress(ProcessLookupError):
            os.killpg(program.pid, signal.SIGKILL)
        program.process.communicate()
        program.tree.close()


def until(fact: Callable[[], object]) -> None:
    """Wait until a fact is true."""
    give_up = time.monotonic() + LIMIT_S
    while not fact():
        assert time.monotonic() < give_up
        os.sched_yield()


def until_doing(tree: ProcessTree, activity: str) -> None:
    until(lambda: tree.activity() == activity)


def until_all_sleep(tree: ProcessTree) -> None:
    def states() -> set[bytes]:
        stats = [procfs.read_whole(f"/proc/{pid}/stat", None, 999) for pid in tree.pids()]
        return {stat.rpartition(b") ")[2][:1] for stat in stats}

    until(lambda: states() == {b"S"})


def until_used(tree: ProcessTree, before: Reading) -> None:
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


@pytest.mark.slow
@pytest.mark.parametrize("work", WORK)
def test_cpu_time(work: str) -> None:
    """The program prints its own count, which does not include children that are not reaped."""
    text = (
        "say(); sys.stdin.readline(); first = sum(os.times()[:4]); own = time.process_time()\n"
        f"{WORK[work]}\n"
        "say(time.process_time() - own, sum(os.times()[2:4])); sys.stdin.readline()"
    )
    with started(text) as bot:
        before = bot.tree.read()
        bot.send()
        own, reaped = map(float, bot.receive().split())
        spent = between(before, bot.tree.read())
    expected = own + reaped + (0.24 if work == "children not reaped" else 0)
    assert expected > 0.19
    # Ticks: 10 ms each of user and system time for each of up to 4 children, and what it takes to begin.
    assert spent.cpu_us == pytest.approx(expected * 1e6, abs=60_000)


# Waits

needs_counters = pytest.mark.skipif(not has_counters(), reason="this kernel counts no waits")


@needs_counters
def test_four_spinners_on_one_core_wait_three_quarters_of_the_time() -> None:
    with started("say(); sys.stdin.readline(); children(3, spin); say(); burn(0.3); say(); spin()") as bot:
        bot.stay_on_one_core()
        bot.send()
        bot.receive()
        began = time.monotonic()
        before = bot.tree.read()
        assert len(before.threads) == 4
        bot.receive()
        after = bot.tree.read()
        wall = (time.monotonic() - began) * 1e6
    spent = between(before, after)
    for thread, times in before.threads.items():
        assert 0.5 * wall < (after.threads[thread].wait_ns - times.wait_ns) / 1000 < wall * 1.05
    # While one of them ran, only that one kept the others waiting.
    assert spent.wait_us <= wall - spent.cpu_us + 1000
    assert spent.cpu_us < wall * 1.05


def test_cpu_time_of_children_that_nobody_waits_for_is_noticed() -> None:
    text = (
        "signal.signal(signal.SIGCHLD, signal.SIG_IGN); say()\nwhile True: children(1, lambda: burn(0.02)); "
    )
    with started(text + "time.sleep(0.03)") as bot:
        before = bot.tree.read()
        until(lambda: bot.tree.read().hides_cpu)
        assert bot.tree.read().cpu_ns > before.cpu_ns
    with started("say()\nwhile True: [os.waitpid(pid, 0) for pid in children(3, lambda: burn(0.01))]") as bot:
        before = bot.tree.read()
        until(lambda: bot.tree.read().hides_cpu or between(before, bot.tree.read()).cpu_us > 200_000)
        assert not bot.tree.read().hides_cpu


def test_a_bot_with_more_ready_threads_than_cpus_is_queued() -> None:
    with started("say(); sys.stdin.readline(); children(1, spin); say(); spin()") as bot:
        bot.stay_on_one_core()
        until_doing(bot.tree, "reading")
        assert not bot.tree.is_queued()
        bot.send()
        bot.receive()
        until(bot.tree.is_queued)


def test_a_process_beyond_the_descriptors_that_has_a_cpu_is_not_queued() -> None:
    """Sleeping processes take all descriptors before the one that computes."""
    helpers = process_tree.DESCRIPTORS_KEPT // 3
    text = f"children({helpers}, lambda: time.sleep(600)); children(1, spin); say(); sys.stdin.readline()"
    with started(text) as bot:
        assert len(bot.tree.pids()) == helpers + 2
        until(lambda: not bot.tree.is_queued())


@needs_counters
def test_own_wait_grows_with_a_rival() -> None:
    cores = os.sched_getaffinity(0)
    with started("say(); spin()") as rival, closing(OwnWait()) as wait:
        rival.stay_on_one_core()
        before = wait.wait_ns()
        os.sched_setaffinity(0, {min(cores)})
        try:
            until(lambda: wait.wait_ns() - before > 10_000_000)
        finally:
            os.sched_setaffinity(0, cores)
    assert wait.wait_ns() == 0


# Memory


def test_private_memory() -> None:
    with started("say(); sys.stdin.readline(); kept = b'x' * (50 << 20); say(); spin()") as bot:
        quick, exact = bot.tree.memory_bytes(1 << 40), bot.tree.memory_bytes(0)
        assert 0 < quick < 30 * MIB
        bot.send()
        bot.receive()
        assert bot.tree.memory_bytes(1 << 40) - quick == pytest.approx(50 * MIB, abs=2 * MIB)
        assert bot.tree.memory_bytes(0) - exact == pytest.approx(50 * MIB, abs=2 * MIB)


SHARED = "area = mmap.mmap(-1, 50 << 20); area.write(b'x' * (50 << 20))"
COPIED = "area = b'x' * (50 << 20)"


@pytest.mark.parametrize(("area", "most_mib"), [(SHARED, 130), (COPIED, 80)])
def test_memory_shared_with_forks_counts_once_above_the_limit(area: str, most_mib: int) -> None:
    """Each fork has copied a shared area once to read it, and freed the copy again."""
    look = "def look(): area[:]; os.write(1, b'\\n'); time.sleep(600)"
    with started(f"{area}\n{look}\nchildren(4, look); sys.stdin.readline()", 4) as bot:
        until_all_sleep(bot.tree)  # no memory changes any more
        quick = bot.tree.memory_bytes(1 << 40)
        assert quick > 240 * MIB
        assert bot.tree.memory_bytes(quick) == quick
        assert 50 * MIB < bot.tree.memory_bytes(quick - 1) < most_mib * MIB


SPARSE = """
def touch():
    area = mmap.mmap(-1, 8 << 30, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ)
    area.madvise(mmap.MADV_NOHUGEPAGE)
    for place in range(0, 8 << 30, 2 << 20): area[place]
    os.write(1, b'\\n'); time.sleep(600)
children(4, touch); sys.stdin.readline()
"""
"""Four processes with page tables of 16 MiB each, and nothing in them."""


def test_processes_with_large_page_tables_are_not_read_exactly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading them would take as long as a bot needs to fill much more of them."""
    read: list[int] = []
    exactly = procfs.Process.own_share_kib

    def counted(member: procfs.Process) -> int:
        read.append(member.number)
        return exactly(member)

    monkeypatch.setattr(procfs.Process, "own_share_kib", counted)
    with started(SPARSE, 4) as bot:
        until_all_sleep(bot.tree)
        quick = bot.tree.memory_bytes(1 << 40)
        assert quick > 4 * 16 * MIB
        assert 4 * 16 * MIB < bot.tree.memory_bytes(quick - 1) <= quick
    assert read == [bot.pid]  # which has small ones


CLONE = """
libc = ctypes.CDLL(None)
stack = ctypes.create_string_buffer(1 << 16)
top = ctypes.c_void_p(ctypes.addressof(stack) + (1 << 16) - 64)
libc.clone(ctypes.cast(libc.pause, ctypes.c_void_p), top, {flags} | signal.SIGCHLD, None)
"""
CLONE_VM, CLONE_VFORK = 0x100, 0x4000
"""linux/sched.h"""


@pytest.mark.skipif(procfs.KCMP.get(os.uname().machine) is None, reason="kcmp() has another number here")
def test_memory_of_a_vfork_counts_once() -> None:
    text = "kept = b'x' * (50 << 20)" + CLONE.format(flags=CLONE_VM) + "say(); sys.stdin.readline()"
    with started(text) as bot:
        assert len(bot.tree.pids()) == 2
        assert bot.tree.memory_bytes(1 << 40) > 100 * MIB
        if procfs.share_memory(*bot.tree.pids()):  # else this user may not ask
            assert 50 * MIB < bot.tree.memory_bytes(0) < 80 * MIB


def test_without_permissions_memory_is_the_sum_and_reading_is_not_seen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: object) -> int:
        raise PermissionError

    monkeypatch.setattr(procfs.Process, "own_share_kib", refuse)
    monkeypatch.setattr(procfs.Process, "reads_stdin", refuse)
    with started("children(1, lambda: time.sleep(600)); say(); sys.stdin.readline(); say(); spin()") as bot:
        until_doing(bot.tree, "")  # the new process copies pages until it sleeps
        assert bot.tree.memory_bytes(0) == bot.tree.memory_bytes(1 << 40) > 0
        bot.send()
        bot.receive()
        until_doing(bot.tree, "running")


# Activity


@pytest.mark.parametrize(
    ("program", "activity"),
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
def test_activity(program: str, activity: str) -> None:
    with started(program) as bot:
        until_doing(bot.tree, activity)
        until(lambda: bot.tree.has_running_thread() == ("spin" in program))
        assert bot.tree.memory_bytes(0) < 60 * MIB
        assert bot.tree.count() >= 1
        assert (bot.tree.pids() == []) == (activity == "ended")


def test_first_thread_ended_before_the_others() -> None:
    with started("thread(lambda: (say(), spin())); ctypes.CDLL(None).pthread_exit(None)") as bot:
        until(lambda: procfs.read_whole(f"/proc/{bot.pid}/stat", None, 999).split()[2] == b"Z")
        assert bot.tree.activity() == "running"
        assert not bot.tree.is_exiting()
        assert bot.tree.stop(LIMIT_S)
        assert bot.tree.activity() == "stopped"
        assert (bot.tree.pids(), bot.tree.count()) == ([bot.pid], 2)


# Ends, numbers used again, descriptors


def test_a_process_that_has_exited_is_exiting_until_it_is_reaped() -> None:
    with started("say(); sys.stdin.readline()") as bot:
        process = procfs.Process(bot.pid, procfs.FdBudget(9))
        process.poll()
        before = process.is_exiting(), bot.tree.is_exiting()
        bot.process.kill()
        os.waitid(os.P_PID, bot.pid, os.WEXITED | os.WNOWAIT)
        process.poll()
        assert (before, process.is_exiting(), bot.tree.is_exiting()) == ((False, False), True, True)
        process.close()


def test_a_reaped_root_is_no_tree() -> None:
    with (
        started("say(); sys.stdin.readline()") as bot,
        closing(ProcessTree(bot.pid, skip_root=True)) as skips,
    ):
        assert bot.tree.read().cpu_ns > 0
        bot.process.kill()
        bot.process.wait()
        for empty in (bot.tree, skips, ProcessTree(bot.pid)):
            assert empty.pids() == []
            assert empty.read().threads == {}
            assert empty.memory_bytes(0) == empty.count() == 0
            assert empty.activity() == "ended"
            assert empty.stop(1)
            empty.resume()


@pytest.mark.slow
@pytest.mark.parametrize(
    "program",
    [
        "say()\nwhile True:\n    for pid in children(5, spin): os.kill(pid, 9); os.waitpid(pid, 0)",
        "say()\nwhile True:\n    for made in [thread(burn, 0) for _ in range(4)]: made.join()",
    ],
)
def test_processes_and_threads_that_come_and_go(program: str) -> None:
    with started(program) as bot:
        cpu = []
        for _ in range(150):
            cpu.append(bot.tree.read().cpu_ns)
            bot.tree.memory_bytes(0)
            assert bot.tree.activity() in ("running", "waiting")
            assert bot.pid in bot.tree.pids()
            assert bot.tree.count() >= 1
        assert cpu == sorted(cpu)
        assert bot.tree.stop(LIMIT_S)


def test_a_thread_in_place_of_another_is_found() -> None:
    """The number of threads is the same as before."""
    text = (
        "say()\nfor _ in range(3):\n"
        "    gate = threading.Event(); made = thread(lambda: (say(threading.get_native_id()), gate.wait()))\n"
        "    sys.stdin.readline(); gate.set(); made.join()\n"
        "    while len(os.listdir('/proc/self/task')) > 1: pass\n"
    )
    with started(text) as bot:
        for _ in range(3):
            number = int(bot.receive())
            assert set(bot.tree.read().threads) == {bot.pid, number}
            bot.send()


def test_descriptors_are_bounded_and_given_back() -> None:
    text = (
        "[thread(time.sleep, 600) for _ in range(50)]; children(20, lambda: time.sleep(600)); say(); spin()"
    )
    with started(text) as bot:
        bot.tree.close()
        before = open_descriptors()
        tree = ProcessTree(bot.pid)
        assert len(tree.read().threads) == tree.count() == 71
        assert open_descriptors() - before <= process_tree.DESCRIPTORS_KEPT
        assert tree.stop(LIMIT_S)
        assert tree.memory_bytes(0) > 0
        tree.resume()
        until_doing(tree, "running")
        tree.close()
        tree.close()
        assert open_descriptors() == before
        assert tree.pids() == []


def test_no_descriptors_left() -> None:
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    with started("say(); spin()") as bot:
        resource.setrlimit(resource.RLIMIT_NOFILE, (3, limits[1]))
        try:
            bot.tree.read()
            bot.tree.memory_bytes(0)
            assert bot.tree.activity() in ("", "ended", "running")
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


def test_a_surviving_program_can_have_any_name() -> None:
    """A program chooses its name, of at most 15 bytes; the kernel cuts it, also within a character."""
    name = 'b"\\xff" + "Größe und mehr €".encode()'
    text = f"ctypes.CDLL(None).prctl(15, {name})\nsay('named')\nsys.stdin.readline()"
    with started(text) as program:
        (found,) = procfs.surviving_programs(-1, [program.pid])
    assert found.startswith("\N{REPLACEMENT CHARACTER}Größe und me")
