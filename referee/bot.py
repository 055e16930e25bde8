"""One bot's subprocess: start, write lines, read lines and stamp them at the read, drain, kill.

It reports what happened and when; who lost and why is for referee/match.py to say.  All file
descriptors are raw and non-blocking, and nothing here waits: the driver does.
"""

import contextlib
import errno
import fcntl
import os
import select
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO

from protocol.codec import decode_bytes
from protocol.lines import MAX_LINE_BYTES, LineBuffer
from referee.errors import RefereeError
from referee.events import (
    BotExited,
    Event,
    InputClosed,
    LineReceived,
    LineTooLong,
    OutputBlocked,
    OutputClosed,
    Sent,
)
from referee.results import Player
from referee.stderr import DEFAULT_KEPT_BYTES, StderrKeeper

READ_BYTES = 4096
"""Bytes a read asks for on standard output: a move is below 20, and a small buffer is a quick one."""
DRAIN_READS = 256
"""Reads at most in one go when a bot has ended: a grandchild may go on writing for ever."""

GROUP_GONE_S = 0.2
"""How long ``close`` waits for the rest of a killed group; a kill takes effect within milliseconds."""

# Failing to start a program is the bot's fault only where the program itself is to blame.
_BOT_ERRNOS = {
    errno.ENOENT,
    errno.EACCES,
    errno.ENOEXEC,
    errno.ENOTDIR,
    errno.EISDIR,
    errno.ELOOP,
    errno.EPERM,
}

now = time.monotonic
"""The one clock of stamps and deadlines, in seconds."""


class NotRunnableError(Exception):
    """The bot's command cannot be run; the text says why, for the student."""


class Bot:
    """A running bot.  Made by starting it; ``close`` must follow.

    Raises NotRunnableError if the command cannot be run, RefereeError if that is our host's fault.
    """

    def __init__(
        self,
        index: int,
        player: Player,
        environment: Mapping[bytes, bytes],
        *,
        max_line_bytes: int = MAX_LINE_BYTES,
        stderr_bytes: int = DEFAULT_KEPT_BYTES,
    ) -> None:
        self.index = index
        self.stderr = StderrKeeper(stderr_bytes)
        self.status: int | None = None
        """The exit status once known; negative is a signal's number."""
        self.output_ended_at: float | None = None
        """When standard output ended; None while it is open."""
        self.ended_at: float | None = None
        """When the end of the process was noticed; None while it lives."""
        self._lines = LineBuffer(max_line_bytes)
        self._overflow_reported = False
        self._process = _spawn(player, environment)
        try:
            self._open_descriptors()
        except BaseException:
            self.kill()
            self._process.wait()
            raise

    def _open_descriptors(self) -> None:
        self._stdin, self.stdout, self.errors = (stream.fileno() for stream in _streams(self._process))
        for descriptor in (self._stdin, self.stdout, self.errors):
            os.set_blocking(descriptor, False)
        self.exit_descriptor = _open_pidfd(self._process.pid)
        """Readable when the process has ended; None where the system has no such thing."""

    @property
    def pid(self) -> int:
        """The process's number, and its group's."""
        return self._process.pid

    @property
    def unfinished(self) -> str:
        """What came on standard output after the last line feed."""
        return decode_bytes(self._lines.unfinished)

    def write(self, line: str) -> Event:
        """Send a line, whole or not at all; the event says which.

        A line is shorter than PIPE_BUF, so the system writes it in one piece (POSIX, write).
        """
        try:
            os.write(self._stdin, line.encode() + b"\n")
        except BlockingIOError:
            return OutputBlocked(self.index, now())
        except BrokenPipeError:
            return InputClosed(self.index, now())
        return Sent(self.index, now(), line)

    def has_taken_all(self) -> bool:
        """Whether the bot has read everything that was written to it.

        Linux answers FIONREAD on either end of a pipe; elsewhere this is always true.
        """
        if sys.platform != "linux":
            return True
        return _bytes_waiting(self._stdin) == 0

    def has_closed_input(self) -> bool:
        """Whether nobody holds the bot's standard input open any more."""
        asked = select.poll()
        asked.register(self._stdin, 0)  # an error is reported whatever is asked for
        return bool(asked.poll(0))

    def read_output(self) -> list[Event]:
        """Read once from standard output; return the lines that this completed."""
        try:
            data = os.read(self.stdout, READ_BYTES)
        except BlockingIOError:
            return []
        at = now()
        if not data:
            self.output_ended_at = at
            return []
        events: list[Event] = [
            LineReceived(self.index, at, decode_bytes(line)) for line in self._lines.feed(data)
        ]
        if self._lines.overflow is not None and not self._overflow_reported:
            self._overflow_reported = True
            events.append(LineTooLong(self.index, at, decode_bytes(self._lines.overflow)))
        return events

    def read_errors(self) -> bool:
        """Read once from standard error; False at its end, or if nothing was there."""
        try:
            data = os.read(self.errors, 65536)
        except BlockingIOError:
            return False
        self.stderr.feed(data)
        return bool(data)

    def discard_output(self) -> bool:
        """Read once from standard output after the game; False at its end, or if nothing was there."""
        try:
            return bool(os.read(self.stdout, 65536))
        except BlockingIOError:
            return False

    def has_ended(self) -> bool:
        """Whether the process has ended; its number stays taken until ``close``."""
        if self.status is None:
            self.status = _exit_status(self._process)
            if self.status is not None:
                self.ended_at = now()
        return self.status is not None

    def why_closed(self, event: InputClosed, within_s: float) -> InputClosed | BotExited:
        """The process's end instead of a closed input, if it comes within this time; waits for it.

        Nothing else matters in the game any more, so that holding it up harms nobody.
        """
        if self.exit_descriptor is not None:
            waiting = select.poll()
            waiting.register(self.exit_descriptor, select.POLLIN)
            waiting.poll(within_s * 1000)
        if not self.has_ended():
            return event
        self.drain_errors()
        return self.exited_event()

    def drain(self) -> Iterator[Event]:
        """After the process has ended: yield the lines it left behind; keep its last words."""
        for _ in range(DRAIN_READS):
            if self.output_ended_at is not None:
                break
            if not _bytes_waiting(self.stdout):
                break
            yield from self.read_output()
        self.drain_errors()

    def drain_errors(self) -> None:
        """Take what waits on standard error."""
        for _ in range(DRAIN_READS):
            if not self.read_errors():
                return

    def exited_event(self) -> BotExited:
        """The event of the process's end; only after ``has_ended``."""
        assert self.status is not None
        assert self.ended_at is not None
        return BotExited(self.index, self.ended_at, self.status, self.unfinished, self.stderr.last_line())

    def output_closed_event(self) -> OutputClosed:
        """The event of an end of output that no end of the process followed."""
        assert self.output_ended_at is not None
        return OutputClosed(self.index, self.output_ended_at, self.unfinished)

    def kill(self) -> None:
        """End the bot's whole process group, at once.  Never fails."""
        try:
            os.killpg(self._process.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            # No group any more, or (macOS) only processes that have ended but are not yet reaped.
            return

    def _wait_for_group(self) -> None:
        """Wait until the kill has reached the rest of the group: a moment at most, and hardly ever any.

        Processes that have ended but that nobody reaps (no proper init) would be waited for in vain.
        """
        until = now() + GROUP_GONE_S
        while now() < until:
            with contextlib.suppress(ChildProcessError):  # orphans that we have adopted are ours to reap
                os.waitpid(-self._process.pid, os.WNOHANG)
            try:
                os.killpg(self._process.pid, 0)
            except (ProcessLookupError, PermissionError):
                return
            time.sleep(0.001)

    def close(self) -> None:
        """After ``kill``: reap the process and close all descriptors."""
        status = self._process.wait()
        if self.status is None:
            self.status = status
        self._wait_for_group()
        for stream in _streams(self._process):
            stream.close()
        if self.exit_descriptor is not None:
            os.close(self.exit_descriptor)
            self.exit_descriptor = None


def _bytes_waiting(descriptor: int) -> int:
    """How many bytes are in a pipe, asked without reading."""
    return int.from_bytes(fcntl.ioctl(descriptor, termios.FIONREAD, b"\0\0\0\0"), sys.byteorder)


def _streams(process: subprocess.Popen[bytes]) -> tuple[IO[bytes], IO[bytes], IO[bytes]]:
    """Our ends of the three pipes, which are there because we asked for them."""
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    return process.stdin, process.stdout, process.stderr


def _spawn(player: Player, environment: Mapping[bytes, bytes]) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            player.command,
            cwd=player.cwd,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,  # a group of its own, so that it can be killed whole
        )
    except OSError as error:
        if error.errno not in _BOT_ERRNOS:
            raise RefereeError(f"could not start a process for {player.name}: {error}") from error
        raise NotRunnableError(_why_not_runnable(player, error)) from error
    except ValueError as error:  # a NUL byte in an argument
        raise NotRunnableError(f"its command cannot be run: {error}") from error


def _why_not_runnable(player: Player, error: OSError) -> str:
    """What is wrong with the command, as far as the file tells."""
    program = Path(player.command[0])
    name = program.name  # where it lies is nobody's business but its owner's
    if not Path(player.cwd).is_dir():
        return "its directory is not there"
    if not program.exists():
        return f"there is no file {name}"
    if program.is_dir():
        return f"{name} is a directory"
    if error.errno == errno.ENOEXEC:
        return (
            f"{name} is not a program this system can run: a script needs a first line such as "
            "#!/usr/bin/env python3, a compiled program must be compiled for this system"
        )
    if error.errno == errno.ENOENT:
        first_line = _first_line(program)
        if first_line.startswith(b"#!"):
            return (
                f"the first line of {name}, {decode_bytes(first_line)!r}, names an interpreter that is "
                "not there"
                + (" (the line ends in CR LF: save it with LF)" if first_line.endswith(b"\r") else "")
            )
        return f"{name} needs a loader or an interpreter that is not on this system"
    if error.errno == errno.EACCES and not os.access(program, os.X_OK):
        return f"{name} is not executable: chmod +x {name}"
    return f"{name}: {os.strerror(error.errno or 0)}"


def _first_line(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.readline(256).rstrip(b"\n")
    except OSError:
        return b""


def _open_pidfd(pid: int) -> int | None:
    if sys.platform != "linux":
        return None
    try:
        return os.pidfd_open(pid)
    except OSError as error:
        if error.errno == errno.ENOSYS:  # Linux before 5.3
            return None
        raise RefereeError(f"could not watch process {pid}: {error}") from error


def _exit_status(process: subprocess.Popen[bytes]) -> int | None:
    """The exit status, or None while the process lives.

    Where the system can (waitid is not on macOS), the process is left unreaped, so that its group's number
    cannot be given to anybody else before the group is killed.
    """
    if not hasattr(os, "waitid"):
        return process.poll()
    info = os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    if info is None:
        return None
    return info.si_status if info.si_code == os.CLD_EXITED else -info.si_status
