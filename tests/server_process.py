"""`kalarena serve` as a process of its own, for tests of all of it together."""

import re
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.builders import KALARENA
from tests.databases import server_file_of
from tournaments.web.server_config import SERVER_FILE

READY = re.compile(r"Kalarena is at (http://127\.0\.0\.1:(\d+)), its data in (.*)\. Ctrl-C ends it\.\n")
END_LIMIT_S = 30
"""For a server that hangs; two seconds are promised."""


@dataclass
class Served:
    """A server that answers."""

    process: subprocess.Popen[str]
    url: str
    port: int
    told: list[str]
    """Lines of its standard output after the first."""

    def connect(self) -> socket.socket:
        """A connection to it."""
        return socket.create_connection(("127.0.0.1", self.port), timeout=10)

    def end(self, number: signal.Signals = signal.SIGTERM) -> tuple[int, float, str]:
        """Exit status, seconds (as if the machine were ours alone), standard error."""
        before = slowness()
        began = time.monotonic()
        self.process.send_signal(number)
        _, errors = self.process.communicate(timeout=END_LIMIT_S)
        seconds = time.monotonic() - began
        return self.process.returncode, seconds / max(1, before, slowness()), errors

    def kill(self) -> str:
        """Kill it, as a crash does; its standard error.

        Without what Python itself writes in a worker whose server was gone before it had told the worker what
        to do: nobody is there any more to catch that.
        """
        self.process.kill()
        _, errors = self.process.communicate(timeout=END_LIMIT_S)
        return ORPHANED_WORKER.sub("", errors)


ORPHANED_WORKER = re.compile(
    r"Traceback \(most recent call last\):\n"
    r'  File "<string>", line 1, in <module>\n'
    r'(?:  File "[^"\n]*/multiprocessing/\w+\.py", line .*\n(?: {4}.*\n)*)+'
    r"EOFError: Ran out of input\n"
)
"""A traceback in multiprocessing alone, of a start without end."""


@contextmanager
def served(
    data: Path, *options: str, lines: int = 0, environment: Mapping[str, str] | None = None
) -> Iterator[Served]:
    """`kalarena serve` at a free port; ``lines`` that it tells beside its address are read.

    It is killed at the end of the block if it has not ended.
    """
    command = [str(KALARENA), "serve", "--data", str(data), "--port", "0", *options]
    if not (data / SERVER_FILE).exists() and (line := server_file_of(data)):
        config = data.with_name(f"{data.name}.{SERVER_FILE}")  # what is in the folder is the server's own
        config.parent.mkdir(parents=True, exist_ok=True)
        config.write_text(line)
        command += ["--config", str(config)]
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )
    try:
        assert process.stdout is not None
        first = process.stdout.readline()
        found = READY.fullmatch(first)
        assert found, first + process.communicate()[1]
        told = [process.stdout.readline().rstrip("\n") for _ in range(lines)]
        yield Served(process, found[1], int(found[2]), told)
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def slowness() -> float:
    """How many times longer things take on this machine just now than they would without others' work."""
    wall, cpu = time.perf_counter(), time.thread_time()
    while time.thread_time() - cpu < 0.1:
        pass
    return (time.perf_counter() - wall) / 0.1


def admin_link(told: list[str]) -> str:
    """The first admin's link, among what a server told at its start."""
    (link,) = [line.strip() for line in told if "/links/" in line]
    return link
