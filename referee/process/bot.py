"""One bot's subprocess: start, write lines, read lines and stamp them at the read, drain, kill.

Methods return events with their times; the verdict is a matter of referee/judge/match.py.  All file
descriptors are raw and non-blocking: the session waits for a bot's output (referee/session.py).
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
from typing import IO

from referee.errors import RefereeError
from referee.judge.events import (
    Event,
    InputClosed,
    LimitPassed,
    OutputBlocked,
    ProcessEnded,
    Sent,
)
from referee.judge.limits import MIB, Limits
from referee.judge.record_rows import KeptFile
from referee.judge.results import Player
from referee.process.grouped_processes import GroupedProcesses
from referee.process.launch import (
    await_sandbox,
    bot_status,
    failed_to_execute,
    first_process,
    has_reported_exit,
    launch,
    sandbox_error,
    wait_readable,
)
from referee.process.player import DRAIN_READS, USUAL_LIMITS, SessionPlayer, now
from referee.process.process_tree import ProcessTree
from referee.process.procfs import tracer_of, unreaped_status
from referee.sandbox.bubblewrap import GO, Sandbox, Tier
from referee.sandbox.held_directories import HeldDirectories, written_files
from referee.sandbox.hidden_memory import hidden_bytes
from referee.sandbox.host_resources import killed_for_memory

OPEN = Sandbox()
"""The absence of a sandbox."""
NEAR = 5
"""Divisor of the memory limit: a bot that uses more than a fifth of it is checked more often."""
GONE_LIMIT_S = 5.0
"""Seconds that ``close`` waits for the end of a killed bot or sandbox, which takes up to 20 ms, on a busy
host more.  A process that is still there then is stuck in the kernel."""
REAP_LIMIT_S = 0.5
"""Seconds that ``close`` waits to reap a process that has ended.  That takes no time, unless another process
traces it: then the tracer reaps it first (man 2 ptrace)."""
GROUP_GONE_S = 0.2
"""Seconds that ``close`` waits for the rest of a killed group; a kill takes effect within milliseconds."""


_unreaped: list[subprocess.Popen[bytes]] = []
"""Processes that ``close`` could not reap; the start of the next bot tries again."""


class Bot(SessionPlayer):
    """A running bot.  The constructor starts it; ``wait_ready`` and, in any case, ``close`` must be called.

    Raises NotRunnableError if the command cannot be run, RefereeError if the host is to blame.
    """

    errors: int

    def __init__(
        self,
        index: int,
        player: Player,
        environment: Mapping[bytes, bytes],
        *,
        sandbox: Sandbox = OPEN,
        limits: Limits = USUAL_LIMITS,
    ) -> None:
        super().__init__(index, player, limits)
        self._root: int | None = None
        """Number of the bot's first process, once ``wait_ready`` was called."""
        self._tree: ProcessTree | None = None
        self._held_mb = 0
        """Memory at the last check, in MiB."""
        self._is_confined = sandbox.tier.confines
        self._has_limits = sandbox.tier is not Tier.OFF
        self._first_process: int | None = None
        """Pidfd of the first process of the sandbox; all others end with that process."""
        self._directories: HeldDirectories | None = None
        """The directories that the bot can write, once ``wait_ready`` was called."""
        self._is_being_killed = False
        self._limit_is_reported = False
        """True once ``limit_passed`` has returned an event and killed the bot."""
        _unreaped[:] = [process for process in _unreaped if process.poll() is None]
        self._killed_before = killed_for_memory()
        self._confined = sandbox.confine(player, limits, environment)
        try:
            self._process = launch(player, self._confined)
        except BaseException:
            self._confined.close_status_pipe()
            self._confined.release()
            raise
        finally:
            self._confined.close()
        self._stdin, self.stdout, self.errors = (stream.fileno() for stream in _streams(self._process))
        try:
            for descriptor in (self._stdin, self.stdout, self.errors):
                os.set_blocking(descriptor, False)
                if (user := self._confined.user) is not None:
                    # Only the owner of a pipe can open it by name, as /dev/stdin.
                    with contextlib.suppress(PermissionError):  # root in a container may lack CAP_CHOWN
                        os.fchown(descriptor, user, user)
            self.exit_descriptor = _open_pidfd(self._process.pid)
        except BaseException:
            self.kill()
            self.close()
            raise

    def wait_ready(self) -> None:
        """Wait until the bot's sandbox is complete, if it has one.  Raises RefereeError on failure.

        This is separate from the constructor so that two bots can be started at the same time.
        """
        self._find_first_process()
        if self._confined.status is None or self._root is None:
            return
        if not await_sandbox(self._process, self.player):
            return  # the sandbox has ended already, which ``exited_event`` reports
        self._directories = HeldDirectories.open(self._root, self._confined.working_directory)
        with contextlib.suppress(BrokenPipeError):  # as above
            os.write(self._stdin, GO)

    def _find_first_process(self) -> None:
        if self._confined.status is None:
            self._root = self._process.pid
        elif self._root is None:
            self._root = first_process(self._confined.status, self._process)
            try:
                self._first_process = _open_pidfd(self._root)
            except ProcessLookupError:  # it ended before this process had a CPU again
                raise sandbox_error(self._process) from None

    @property
    def tree(self) -> ProcessTree | None:
        """The bot's processes; None before ``wait_ready``."""
        if self._tree is None and self._root is not None:
            group, has_adapter = self._confined.group, bool(self.player.protocol)
            if group is None:
                self._tree = ProcessTree(self._root, skip_root=self._is_confined, has_adapter=has_adapter)
            else:
                self._tree = GroupedProcesses(self._root, group, skip_root=True, has_adapter=has_adapter)
        return self._tree

    @property
    def pid(self) -> int:
        """The number of the process, and of its process group."""
        return self._process.pid

    @property
    def runtime_settings(self) -> dict[str, str]:
        """The environment variables that pass the bot's limits to its runtime."""
        return dict(self._confined.settings)

    @property
    def peak_memory_bytes(self) -> int | None:
        """Peak memory of all processes together; None where no control group counts it."""
        group = self._confined.group
        return None if group is None else group.peak_memory_bytes()

    def receive(self, line: str) -> None:
        """Send a line; ``write`` returns the outcome, too."""
        self.write(line)

    def write(self, line: str) -> Event:
        """Send a line, whole or not at all, and return the event of the outcome.

        A line is shorter than PIPE_BUF, so the system writes it in one piece (POSIX, write).
        """
        try:
            os.write(self._stdin, line.encode() + b"\n")
        except BlockingIOError:
            return OutputBlocked(self.index, now())
        except BrokenPipeError:
            return InputClosed(self.index, now())
        return Sent(self.index, now(), line)

    def has_read_all(self) -> bool:
        """Return True if the bot has read all lines that were written to it.

        Linux supports FIONREAD on either end of a pipe; on other systems this is always True.
        """
        if sys.platform != "linux":
            return True
        return _bytes_waiting(self._stdin) == 0

    def has_closed_input(self) -> bool:
        """Return True if no process holds the bot's standard input open any more."""
        poller = select.poll()
        poller.register(self._stdin, 0)  # errors are reported for any event mask
        return bool(poller.poll(0))

    def read_errors(self) -> bool:
        """Read once from standard error; return False at its end, or if nothing was there."""
        try:
            data = os.read(self.errors, 65536)
        except BlockingIOError:
            return False
        self.stderr.feed(data)
        return bool(data)

    def discard_output(self) -> bool:
        """Read once from standard output after the game; return False at its end, or if nothing was there."""
        try:
            return bool(os.read(self.stdout, 65536))
        except BlockingIOError:
            return False

    def has_ended(self) -> bool:
        """Return True if the process has ended; its number is not reused before ``close``."""
        if self.status is None:
            status = _exit_status(self._process)
            if status is None and self._is_exit_reported():
                status = unreaped_status(self._process.pid)
            if status is not None:
                self.status = bot_status(status) if self._is_confined else status
                self.ended_at = now()
        return self.status is not None

    def _is_exit_reported(self) -> bool:
        """Return True if the pidfd shows the end, which it does even if a tracer has to reap the process."""
        return self.exit_descriptor is not None and wait_readable(self.exit_descriptor, 0.0)

    def closed_input_event(self, event: InputClosed, within_s: float) -> Event:
        """Return the event of the process's end if it ends within this time; otherwise ``event``.

        This blocks: the bot has lost the game in either case.
        """
        if self.exit_descriptor is not None:
            wait_readable(self.exit_descriptor, within_s)
        if not self.has_ended():
            return event
        self.drain_errors()
        return self.exited_event()

    def drain(self) -> Iterator[Event]:
        """Yield the events of the last lines of an ended process, and read its standard error."""
        for _ in range(DRAIN_READS):
            if self.output_ended_at is not None or not _bytes_waiting(self.stdout):
                break
            yield from self.read_output()
        self.drain_errors()

    def exited_event(self) -> ProcessEnded:
        """Return the event of the process's end; to be called only after ``has_ended``."""
        assert self.status is not None
        assert self.ended_at is not None
        group, report = self._confined.group, self._confined.status
        has_run = report is None or has_reported_exit(report)
        may_not_run = self._has_limits and not self._has_sent
        errors = self.stderr.text() if may_not_run or not has_run else ""
        return ProcessEnded(
            self.index,
            self.ended_at,
            self.status,
            self.unfinished,
            self.stderr.last_words(),
            self._held_mb if group is None else (group.peak_memory_bytes() or 0) // MIB,
            "" if self._directories is None else " and ".join(self._directories.full()),
            0 if self._directories is None else self._directories.new_files(),
            self._limit_is_reported,
            None if group is None else group.memory_kills(),
            killed_for_memory() - self._killed_before,
            None if has_run else errors.strip(),
            failed_to_execute(self.player, self.status, errors) if may_not_run else None,
        )

    def limit_passed(self) -> LimitPassed | None:
        """Check whether the bot's processes together exceed a limit; if so, kill them and return the event.

        A limit is reported once: a killed process can be seen until it has ended.  Where the kernel itself
        bounds memory (a control group), only files are counted.
        """
        if self._limit_is_reported:
            return None
        passed = self._find_passed_limit()
        if passed is not None:
            self._limit_is_reported = True
            self.kill()
        return passed

    def _find_passed_limit(self) -> LimitPassed | None:
        if (passed := self._files_passed()) is not None:
            return passed
        if not self._has_limits or self._confined.group is not None or self.tree is None:
            return None
        allowed = self.limits.memory_mb * MIB
        used = self.tree.memory_bytes(allowed)
        if self._is_confined and self._root is not None:
            used += hidden_bytes(self._root)
        self.is_near_a_limit = used > allowed // NEAR
        self._held_mb = used // MIB
        if used > allowed:
            return LimitPassed(self.index, now(), "memory", used // MIB, self.limits.memory_mb)
        if not self._is_confined and (count := self.tree.count()) > self.limits.processes:
            return LimitPassed(self.index, now(), "process", count, self.limits.processes)
        return None

    def _files_passed(self) -> LimitPassed | None:
        allowed = self.limits.directory_files
        count = 0 if self._directories is None else self._directories.new_files()
        return LimitPassed(self.index, now(), "files", count, allowed) if count > allowed else None

    def written_files(self) -> tuple[KeptFile, ...]:
        """Return the files that the bot wrote; to be called after its end and before ``close``."""
        return () if self._directories is None else written_files(self._directories)

    def kill(self) -> None:
        """End the bot's sandbox, or where it has none its process group, at once.  Never fails."""
        if self._root is None:
            with contextlib.suppress(RefereeError):
                self._find_first_process()
        if self._first_process is not None and not self._is_being_killed:
            # The outer bubblewrap then reaps the process and ends; if both were killed, none of ours would.
            self._is_being_killed = True
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._first_process, signal.SIGKILL)
            return
        if self._confined.group is not None:
            self._confined.group.kill()
        try:
            os.killpg(self._process.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            # No group any more, or (macOS) only processes that have ended but are not yet reaped.
            return

    def _wait_for_group(self) -> None:
        """Wait until the rest of the group is gone: GROUP_GONE_S at most, and usually not at all.

        Processes that have ended but are never reaped (no proper init) would stay for ever.
        """
        until = now() + GROUP_GONE_S
        while now() < until:
            with contextlib.suppress(ChildProcessError):  # orphans that this process has adopted
                os.waitpid(-self._process.pid, os.WNOHANG)
            try:
                os.killpg(self._process.pid, 0)
            except (ProcessLookupError, PermissionError):
                return
            time.sleep(0.001)

    def _wait_for_sandbox(self, until: float) -> None:
        """Wait until the first process of the sandbox is gone, which always ends last."""
        if self._first_process is None:
            return
        wait_readable(self._first_process, max(0.0, until - now()))
        os.close(self._first_process)
        self._first_process = None
        if self._root is not None:
            with contextlib.suppress(ChildProcessError):  # not a child of this process, as is normal
                os.waitpid(self._root, os.WNOHANG)

    def _reap(self, until: float) -> str:
        """Reap the process; return a sentence if that is not possible, else an empty text."""
        limit_s = max(0.0, until - now())
        has_ended = self.exit_descriptor is not None and wait_readable(self.exit_descriptor, limit_s)
        try:
            self._process.wait(REAP_LIMIT_S if self.exit_descriptor is not None else limit_s)
        except subprocess.TimeoutExpired:
            _unreaped.append(self._process)
            state = "has ended and cannot be reaped" if has_ended else "was killed and does not end"
            tracer = tracer_of(self.pid)
            traced = f": process {tracer} traces it" if tracer else ""
            return f"process {self.pid} of {self.player.name} {state}{traced}"
        return ""

    def close(self) -> str:
        """Reap the process and close all descriptors; to be called after ``kill``.

        This waits for GONE_LIMIT_S and some tenths of a second at most, and usually not at all.

        Returns:
            A sentence on a process that could not be ended, or an empty text.
        """
        until = now() + GONE_LIMIT_S
        if self._is_being_killed and self.exit_descriptor is not None:
            wait_readable(self.exit_descriptor, GONE_LIMIT_S)
            self.kill()  # the remaining processes; usually there are none
        left = self._reap(until)
        if self.status is None:
            status = self._process.returncode if not left else unreaped_status(self.pid)
            self.status = bot_status(status) if self._is_confined and status is not None else status
        self._wait_for_sandbox(until)
        self._wait_for_group()
        if not left:  # else a process may still have the bot's user
            self._confined.release()
        self._confined.close_status_pipe()
        if self._directories is not None:
            self._directories.close()
            self._directories = None
        if self._tree is not None:
            self._tree.close()
        for stream in _streams(self._process):
            stream.close()
        if self.exit_descriptor is not None:
            os.close(self.exit_descriptor)
            self.exit_descriptor = None
        return left


def _bytes_waiting(descriptor: int) -> int:
    """Return the number of bytes in a pipe, without reading them."""
    return int.from_bytes(fcntl.ioctl(descriptor, termios.FIONREAD, b"\0\0\0\0"), sys.byteorder)


def _streams(process: subprocess.Popen[bytes]) -> tuple[IO[bytes], IO[bytes], IO[bytes]]:
    """Return the referee's ends of the three pipes, which always exist."""
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    return process.stdin, process.stdout, process.stderr


def _open_pidfd(pid: int) -> int | None:
    """Return a pidfd; None if the system has none.  Raises ProcessLookupError and RefereeError."""
    if sys.platform != "linux":
        return None
    try:
        return os.pidfd_open(pid)
    except ProcessLookupError:
        raise
    except OSError as error:
        if error.errno == errno.ENOSYS:  # Linux before 5.3
            return None
        raise RefereeError(f"could not watch process {pid}: {error}") from error


def _exit_status(process: subprocess.Popen[bytes]) -> int | None:
    """Return the exit status, or None while the process lives.

    Where the system can (waitid is not on macOS), the process is left unreaped, so that the number of its
    group cannot be reused before the group is killed.
    """
    if not hasattr(os, "waitid"):
        return process.poll()
    info = os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    if info is None:
        return None
    return info.si_status if info.si_code == os.CLD_EXITED else -info.si_status
