"""`kalarena serve` as a process, for tests."""

import os
import re
import select
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from referee.process.subreaper import spare
from tests.support.builders import KALARENA
from tests.support.databases import server_file_of
from tournaments.web.server_config import SERVER_FILE

READY = re.compile(r"Kalarena is at (http://127\.0\.0\.1:(\d+)), its data in (.*)\. Ctrl-C ends it\.\n")
END_LIMIT_S = 120
"""Bound for the end of a server on a busy machine; docs promise two seconds."""

running: "list[Served]" = []
"""The servers that run now, for reports of failed tests."""


@dataclass
class Served:
    """A running server."""

    process: subprocess.Popen[str]
    url: str
    port: int
    printed: list[str]
    """Lines of its standard output after the first."""
    log: Path
    """File with its standard error."""

    def connect(self) -> socket.socket:
        """Connect to the server."""
        return socket.create_connection(("127.0.0.1", self.port), timeout=END_LIMIT_S)

    def end(self, number: signal.Signals = signal.SIGTERM) -> tuple[int, float, str]:
        """Return exit status, seconds (as if no other program ran), and standard error."""
        before, seconds = slowness(), 0.0
        if self.process.poll() is None:
            seconds = self._end_s(number)
        self.process.wait()
        return self.process.returncode, seconds / max(1, before, slowness()), self.log.read_text()

    def _end_s(self, number: signal.Signals) -> float:
        """Send a signal; return the seconds until the end without those in which the server had to wait.

        A single wait for a CPU can be longer than the slowness before and after it explains.
        """
        pid = self.process.pid
        began, waited = time.monotonic(), waited_for_cpu_s(pid)
        self.process.send_signal(number)
        end = os.pidfd_open(pid)
        has_ended = select.select([end], [], [], END_LIMIT_S)[0]
        os.close(end)
        assert has_ended, "the server does not end"
        # Its counters can be read until it is reaped.
        return time.monotonic() - began - (waited_for_cpu_s(pid) - waited)

    def kill(self) -> str:
        """Kill the server, as a crash does; return its standard error.

        That is without the traceback of a worker whose server was killed before it had sent the job: no code
        of ours can catch that exception.
        """
        self.process.kill()
        self.process.wait(END_LIMIT_S)
        return ORPHANED_WORKER.sub("", self.log.read_text())

    def assert_ends(self) -> None:
        """End the server, which has to end without an error."""
        status, _, errors = self.end()
        assert (status, "Traceback" in errors) == (0, False), errors


ORPHANED_WORKER = re.compile(
    r"Traceback \(most recent call last\):\n"
    r'  File "<string>", line 1, in <module>\n'
    r'(?:  File "[^"\n]*/multiprocessing/\w+\.py", line .*\n(?: {4}.*\n)*)+'
    r"EOFError: Ran out of input\n"
)
"""A traceback in multiprocessing alone, of a worker whose start was interrupted."""


@contextmanager
def served(
    data: Path, *options: str, lines: int = 0, environment: Mapping[str, str] | None = None
) -> Iterator[Served]:
    """Run `kalarena serve` at a free port; it is killed at the end of the block if it has not ended.

    ``lines`` is the number of lines that it prints after its address.  Its log is printed if the block
    fails.
    """
    command = [str(KALARENA), "serve", "--data", str(data), "--port", "0", *options]
    if not (data / SERVER_FILE).exists() and (line := server_file_of(data)):
        config = data.with_name(f"{data.name}.{SERVER_FILE}")  # the data directory is the server's own
        config.parent.mkdir(parents=True, exist_ok=True)
        config.write_text(line)
        command += ["--config", str(config)]
    with tempfile.NamedTemporaryFile("w", prefix="kalarena-server-", suffix=".log") as log:
        # A server raises the priority of its session, which would be that of all tests if it is killed.
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            env=environment,
            start_new_session=True,
        )
        try:
            assert process.stdout is not None
            first = process.stdout.readline()
            found = READY.fullmatch(first)
            assert found, first
            printed = [process.stdout.readline().rstrip("\n") for _ in range(lines)]
            server = Served(process, found[1], int(found[2]), printed, Path(log.name))
            running.append(server)
            try:
                with spare(process.pid):
                    yield server
            finally:
                running.remove(server)
        except BaseException:
            print(f"Standard error of {' '.join(command)}:\n{Path(log.name).read_text()}")
            raise
        finally:
            if process.poll() is None:
                process.kill()
            process.communicate()


def slowness() -> float:
    """Return the factor by which other programs slow this machine down now."""
    wall, cpu = time.perf_counter(), time.thread_time()
    while time.thread_time() - cpu < 0.1:
        pass
    return (time.perf_counter() - wall) / 0.1


def waited_for_cpu_s(pid: int) -> float:
    """Return how long a process's main thread and this thread, together, were ready to run and waited."""
    threads = (Path(f"/proc/{pid}/task/{pid}"), Path(f"/proc/self/task/{threading.get_native_id()}"))
    return sum(int((thread / "schedstat").read_text().split()[1]) for thread in threads) / 1e9


def admin_link(printed: list[str]) -> str:
    """Return the first admin's link from the lines that a server printed at its start."""
    (link,) = [line.strip() for line in printed if "/links/" in line]
    return link
