"""The server that is loaded: `kalarena serve` in a process of its own."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

COMMAND = [sys.executable, "-c", "from tournaments.cli.main import entry; entry()", "serve"]
"""The command of this source tree."""
LOG = "server.log"
END_S = 30.0
"""Limit for the shutdown in seconds; two are promised."""
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Used:
    """CPU time and memory of the server's own process."""

    cpu_s: float
    memory_mb: float

    @classmethod
    def of(cls, pid: int) -> "Used":
        """Read them from /proc; zeros where there is none."""
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        except OSError:
            return cls(0.0, 0.0)
        ticks = int(fields[11]) + int(fields[12])  # utime, stime: proc(5)
        return cls(ticks / TICKS, pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20))


@dataclass
class Server:
    """Server that accepts connections."""

    process: subprocess.Popen[str]
    port: int
    log: Path

    def end(self) -> float:
        """Stop the server, with all clients connected; return the seconds that the shutdown took."""
        began = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(END_S)
        return time.monotonic() - began

    def used(self) -> Used:
        """Return the usage of the server's own process, without bots and workers."""
        return Used.of(self.process.pid)


@contextmanager
def running_server(data: Path) -> Iterator[Server]:
    """Run a server; it is killed at the end of the block.  Raises RuntimeError if it does not start."""
    log = data / LOG
    with log.open("w") as errors:
        process = subprocess.Popen(
            [*COMMAND, "--data", str(data), "--port", "0"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
    try:
        assert process.stdout is not None
        found = re.search(r"http://127\.0\.0\.1:(\d+)", process.stdout.readline())
        if found is None:
            process.wait()
            raise RuntimeError(f"the server did not start: {log.read_text()}")
        yield Server(process, int(found[1]), log)
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()
