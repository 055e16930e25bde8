"""Observations of the machine from outside, while attacker.py attacks."""

import contextlib
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

ATTACKER = Path(__file__).with_name("attacker.py")


@dataclass
class Outside:
    """Observations from outside during one game and after it."""

    peak_mb: float = 0.0
    """Most anonymous and shared memory that the bot's processes had mapped at once."""

    shared_growth_mb: float = 0.0
    """By how much all shared memory of the machine grew at most: mapped or not, in files of a tmpfs, too."""

    kernel_growth_mb: float = 0.0
    """The same for the kernel's own (slab and page tables): what buffers, inodes and tables cost."""

    peak_threads: int = 0
    users: set[int] = field(default_factory=set)
    """As whom the bot's processes ran; the machine's numbers, whatever a user namespace shows inside."""

    survivors: list[int] = field(default_factory=list)
    reached: set[str] = field(default_factory=set)
    """Names of the listeners at which a connection or a datagram arrived."""
    signals: list[str] = field(default_factory=list)
    new_files: list[str] = field(default_factory=list)
    heartbeats: int = 0
    """Number of those that came after the game."""


class Listeners:
    """Sockets that somebody outside might be reached by; a connection counts even if nobody accepts it."""

    def __init__(self, directory: Path) -> None:
        self.abstract_name = f"attack-{os.getpid()}-{directory.name}"
        self.path = directory / "listener.socket"
        self.tcp = socket.create_server(("127.0.0.1", 0))
        self.udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.udp.bind(("127.0.0.1", 0))
        self.abstract = socket.socket(socket.AF_UNIX)
        self.abstract.bind("\0" + self.abstract_name)
        self.named = socket.socket(socket.AF_UNIX)
        self.named.bind(str(self.path))
        self.path.chmod(0o777)
        for listener in (self.abstract, self.named):
            listener.listen()
        for each in (self.tcp, self.udp, self.abstract, self.named):
            each.setblocking(False)

    @property
    def tcp_port(self) -> int:
        return int(self.tcp.getsockname()[1])

    @property
    def udp_port(self) -> int:
        return int(self.udp.getsockname()[1])

    def take(self) -> set[str]:
        """Return the names of the listeners that were reached since the last call."""
        found = set()
        for name in ("tcp", "abstract", "named"):
            with contextlib.suppress(BlockingIOError):
                while True:
                    getattr(self, name).accept()[0].close()
                    found.add(name)
        with contextlib.suppress(BlockingIOError):
            while True:
                self.udp.recv(4096)
                found.add("udp")
        return found

    def close(self) -> None:
        for each in (self.tcp, self.udp, self.abstract, self.named):
            each.close()
        self.path.unlink(missing_ok=True)


VICTIM = """
import os, signal, sys
for number in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGCONT):
    signal.signal(number, lambda number, frame: os.write(1, signal.Signals(number).name.encode() + b"\\n"))
os.write(1, b"ready\\n")
while True:
    signal.pause()
"""


class Victim:
    """A process outside that does nothing and writes down the signals it gets."""

    def __init__(self, marker: str, environment: dict[str, str], user: int | None = None) -> None:
        self.process = subprocess.Popen(
            ["/usr/bin/python3", "-I", "-c", VICTIM, marker],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            env=environment,
            user=user,
            start_new_session=True,
        )
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == b"ready\n"

    @property
    def pid(self) -> int:
        return self.process.pid

    def signals(self) -> list[str]:
        """Those that came since the last call."""
        assert self.process.stdout is not None
        names: list[str] = []
        while select.select([self.process.stdout], [], [], 0)[0]:
            piece = os.read(self.process.stdout.fileno(), 65536)
            if not piece:
                return [*names, "ended"]
            names += piece.decode().split()
        return names

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()


def processes() -> Iterator[int]:
    for name in os.listdir("/proc"):  # noqa: PTH208 (hundreds of times a second)
        if name.isdigit():
            yield int(name)


def text_of(process: int, name: str) -> str:
    try:
        with open(f"/proc/{process}/{name}", "rb") as file:  # noqa: PTH123
            return file.read().decode(errors="replace")
    except OSError:
        return ""


def kilobytes(text: str, *names: str) -> int:
    total = 0
    for line in text.splitlines():
        name, _, value = line.partition(":")
        if name in names:
            total += int(value.split()[0])
    return total


def parent_of(process: int) -> int:
    fields = text_of(process, "stat").rpartition(")")[2].split()
    return int(fields[1]) if len(fields) > 1 else 0


def bot_processes(token: str, older: Iterable[int] = ()) -> set[int]:
    """The living processes that have the token on their command line, and their descendants.

    A fork keeps the command line, whatever its parent, session or namespace is.  Processes that are ``older``
    than the bot do not count.
    """
    left_out = {os.getpid(), *older}
    parents = {process: parent_of(process) for process in processes() if process not in left_out}
    found = {process for process in parents if token in text_of(process, "cmdline").split("\0")}
    growing = True
    while growing:
        more = {process for process, parent in parents.items() if parent in found} - found
        found |= more
        growing = bool(more)
    return {
        process for process in found if kilobytes(text_of(process, "status"), "Threads") and alive(process)
    }


def alive(process: int) -> bool:
    fields = text_of(process, "stat").rpartition(")")[2].split()
    return bool(fields) and fields[0] not in ("Z", "X")


HELPERS = {"bwrap", "setpriv", "prlimit"}
"""Programs whose command line holds the bot's."""


def memory_kilobytes(process: int) -> int:
    """Anonymous and shared memory; shared pages are divided among those who map them, where we may look."""
    proportional = kilobytes(text_of(process, "smaps_rollup"), "Pss_Anon", "Pss_Shmem")
    return proportional or kilobytes(text_of(process, "status"), "RssAnon", "RssShmem")


def machine_memory() -> tuple[int, int]:
    """Shared memory, and the kernel's own memory, in KB."""
    text = Path("/proc/meminfo").read_text()
    return kilobytes(text, "Shmem"), kilobytes(text, "Slab", "PageTables")


class Sampler:
    """A thread that samples the bot's processes until it is stopped, and keeps the largest figures."""

    INTERVAL_S = 0.01

    def __init__(self, token: str) -> None:
        self.token = token
        self.older = set(processes())
        self.outside = Outside()
        self.longest_gap_s = 0.0
        """Longest time between two samples; on a busy machine the referee's checks are late, too."""
        self._sampling_s = self._sampling_cpu_s = 0.0
        self._stop = threading.Event()
        self._before = machine_memory()
        self._thread = threading.Thread(target=self._run, name="sampler", daemon=True)

    def __enter__(self) -> "Sampler":
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()

    @property
    def slowdown(self) -> float:
        """The time that the samples took, as a multiple of their CPU time: what a busy machine costs."""
        return max(1.0, self._sampling_s / self._sampling_cpu_s) if self._sampling_cpu_s else 1.0

    def _run(self) -> None:
        sampled_at = time.monotonic()
        while not self._stop.is_set():
            began_s, began_cpu_s = time.monotonic(), time.thread_time()
            self._sample()
            self._sampling_s += time.monotonic() - began_s
            self._sampling_cpu_s += time.thread_time() - began_cpu_s
            self.longest_gap_s = max(self.longest_gap_s, time.monotonic() - sampled_at)
            sampled_at = time.monotonic()
            self._stop.wait(self.INTERVAL_S)

    def _sample(self) -> None:
        memory, threads = 0, 0
        for process in bot_processes(self.token, self.older):
            status = text_of(process, "status")
            name = status.partition("\n")[0].partition("\t")[2]
            if name not in HELPERS:
                memory += memory_kilobytes(process)
                threads += kilobytes(status, "Threads")
            if name.startswith("python"):
                self.outside.users.add(kilobytes(status, "Uid"))
        shared, kernel = machine_memory()
        outside = self.outside
        outside.peak_mb = max(outside.peak_mb, memory / 1024)
        outside.peak_threads = max(outside.peak_threads, threads)
        outside.shared_growth_mb = max(outside.shared_growth_mb, (shared - self._before[0]) / 1024)
        outside.kernel_growth_mb = max(outside.kernel_growth_mb, (kernel - self._before[1]) / 1024)


def survivors(token: str, older: Iterable[int]) -> set[int]:
    """The processes that a bot left.  One scan can miss a process whose number changes; several do not.

    All scans but the first leave out processes that are ``older`` than the bot.
    """
    if left := bot_processes(token):
        return left
    return next(filter(None, (bot_processes(token, older) for _ in range(14))), set())


def end_survivors(token: str, older: Iterable[int]) -> None:
    """End the processes that a bot left, by their groups, which stay where the numbers in them change."""
    deadline = time.monotonic() + 5
    while (left := survivors(token, older)) and time.monotonic() < deadline:
        for process in left:
            with contextlib.suppress(OSError):
                group = os.getpgid(process)
                if group not in (1, os.getpgrp()):
                    os.killpg(group, signal.SIGKILL)


def files_in(directories: Iterable[Path]) -> set[str]:
    """The names of all files in these directories, one level deep."""
    found: set[str] = set()
    for directory in directories:
        with contextlib.suppress(OSError):
            found.update(str(path) for path in directory.iterdir())
    return found


@dataclass
class Conversation:
    """Output of a bot that was given one turn."""

    reply: str
    errors: str
    returncode: int


def converse(command: Sequence[str], environment: dict[str, str], timeout: float = 30) -> Conversation:
    """Give a bot the first turn of a game and its END; no sandbox, and no referee.

    The bot's output may be held by its children: it is read for one line only, and its standard error goes to
    a file.  Whoever calls this ends what is left.
    """
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            env=environment,
            start_new_session=True,
        )
        assert process.stdin is not None
        assert process.stdout is not None
        reply = b""
        deadline = time.monotonic() + timeout
        try:
            with contextlib.suppress(BrokenPipeError):
                os.write(process.stdin.fileno(), b"START;South\n")
            while b"\n" not in reply and process.poll() is None and time.monotonic() < deadline:
                if select.select([process.stdout], [], [], 0.05)[0]:
                    piece = os.read(process.stdout.fileno(), 4096)
                    reply += piece
                    if not piece or len(reply) > 65536:
                        break
            with contextlib.suppress(BrokenPipeError):
                os.write(process.stdin.fileno(), b"END\n")
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(1)
        finally:
            process.kill()
            process.stdin.close()
            process.stdout.close()
            process.wait()
        errors.seek(0)
        return Conversation(
            reply.partition(b"\n")[0].decode(errors="replace"),
            errors.read(1 << 20).decode(errors="replace"),
            process.returncode,
        )


def make_bot(directory: Path, token: str, program: str, arguments: Sequence[str]) -> Path:
    """A bot's directory with this attack, whose command line names no path but its own program."""
    return make_bot_with(directory, token, [[program, program, *arguments]])


def make_bot_with(directory: Path, token: str, attacks: Sequence[Sequence[str]]) -> Path:
    """A bot's directory with several attacks, each a label, a program of attacker.py and its arguments."""
    directory.mkdir(exist_ok=True)
    shutil.copyfile(ATTACKER, directory / "attacker.py")
    (directory / "attack.json").write_text(json.dumps(attacks))
    command = json.dumps(["/usr/bin/python3", "attacker.py", "--token", token])
    (directory / "bot.toml").write_text(f'name = "attacker"\ncommand = {command}\n')
    return directory
