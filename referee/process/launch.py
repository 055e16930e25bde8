"""Start of a bot's command in its sandbox, and explanations if it cannot be run."""

import errno
import json
import os
import select
import shlex
import shutil
import signal
import subprocess
from pathlib import Path

from protocol.codec import decode_bytes
from referee.errors import RefereeError
from referee.judge.results import Player
from referee.sandbox.bubblewrap import READY, Confinement
from referee.sandbox.runtime_paths import first_line, first_words, interpreter_of

SETUP_LIMIT_S = 10.0
"""Seconds to wait for a sandbox.  bubblewrap reports its first process within 10 ms; a host that needs longer
than this is stuck."""
CANNOT_EXECUTE = (126, 127)
"""Exit statuses of prlimit when it cannot execute the command (as a shell, POSIX 2.8.2)."""
PRLIMIT_ERROR = "prlimit: failed to execute "
ELF = b"\x7fELF"
BINFMT_MISC = Path("/proc/sys/fs/binfmt_misc")
"""Directory with a file for each program format registered in the kernel, and two of its own."""
SIGNAL_STATUS = 128
"""Base of bubblewrap's exit status when a signal killed the bot: this plus the signal's number, as in a
shell."""

# Failing to start a program is the bot's fault only where the program itself is to blame.
_BOT_ERRNOS = {
    *(errno.ENOENT, errno.EACCES, errno.ENOEXEC, errno.ENOTDIR, errno.EISDIR, errno.ELOOP, errno.EPERM),
}


class NotRunnableError(Exception):
    """The bot's command cannot be run; the message gives the reason, for the student."""


def launch(player: Player, confined: Confinement) -> subprocess.Popen[bytes]:
    """Start the command.  Raises NotRunnableError, or RefereeError if the host is to blame."""
    wrapped = confined.command != player.command
    try:
        if wrapped:
            _check_runnable(player)
        return subprocess.Popen(
            confined.command,
            cwd=confined.cwd,
            env=confined.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            pass_fds=confined.descriptors,
            start_new_session=True,  # a group of its own, so that it can be killed whole
        )
    except OSError as error:
        if error.errno not in _BOT_ERRNOS or (wrapped and error.filename == confined.command[0]):
            raise RefereeError(f"could not start a process for {player.name}: {error}") from error
        raise NotRunnableError(why_not_runnable(player, error.errno)) from error
    except ValueError as error:  # a NUL byte in an argument
        raise NotRunnableError(f"its command cannot be run: {error}") from error


def _check_runnable(player: Player) -> None:
    """Raise OSError if the system would not execute the bot's program.

    Another program, such as prlimit, executes it, so that starting the process reports no such error.
    """
    program = Path(player.command[0])
    if not Path(player.cwd).is_dir():
        raise FileNotFoundError(errno.ENOENT, "no directory", player.cwd)
    with program.open("rb"):
        pass
    if program.is_dir() or not os.access(program, os.X_OK):
        raise PermissionError(errno.EACCES, "not executable", str(program))
    if not _is_executable_format(program):
        raise OSError(errno.ENOEXEC, "no program", str(program))
    if (
        first_line(program).startswith(b"#!")
        and interpreter_of(program) is None
        and not _finds_interpreter(program)
    ):
        raise FileNotFoundError(errno.ENOENT, "no interpreter", str(program))


def _is_executable_format(program: Path) -> bool:
    """Return True if the kernel would execute a file: a script, or a program compiled for this machine.

    The programs that start a bot's program (execvp of the C library) run everything else with a shell.
    """
    head, own = _head(program), _head(Path("/proc/self/exe"))
    if not own.startswith(ELF) or len(list(BINFMT_MISC.glob("*"))) > len(("register", "status")):
        return True  # no Linux, or one with other program formats registered
    # The kernel may also execute a file of another class (32 bits).
    compiled = head.startswith(ELF) and (head[:6] != own[:6] or head[18:20] == own[18:20])
    return compiled or head.startswith(b"#!")


def _head(program: Path) -> bytes:
    try:
        with program.open("rb") as file:
            return file.read(20)
    except OSError:
        return b""


def _finds_interpreter(program: Path) -> bool:
    """Return True if ``env NAME`` in a first line could find a program; only env itself decides."""
    words = first_words(program)
    return bool(words) and Path(words[0]).name == "env" and any(map(shutil.which, words[1:]))


def failed_to_execute(player: Player, status: int, errors: str) -> str | None:
    """Return why the command could not be executed inside its sandbox; None if it was executed.

    A bot can print the message of prlimit, too.  Everybody may read the reason, so no text of a bot is in it.
    """
    if status not in CANNOT_EXECUTE or not errors.startswith(PRLIMIT_ERROR):
        return None
    error = errors.splitlines()[0].rpartition(": ")[2]
    number = next((code for code in errno.errorcode if os.strerror(code) == error), None)
    return None if number is None else why_not_runnable(player, number)


def why_not_runnable(player: Player, number: int | None) -> str:
    """Return why the command cannot be run, judged by its file and the system's error number."""
    program = Path(player.command[0])
    name = program.name  # its directory is private to its owner
    if not Path(player.cwd).is_dir():
        return "its directory is not there"
    if not program.exists():
        return f"there is no file {name} (command not found)"
    if program.is_dir():
        return f"{name} is a directory"
    if number == errno.ENOEXEC:
        return (
            f"{name} is not a program this system can run: a script needs a first line such as "
            "#!/usr/bin/env python3, a compiled program must be compiled for this system"
        )
    if number == errno.ENOENT:
        line = first_line(program)
        if line.startswith(b"#!"):
            return (
                f"the first line of {name}, {decode_bytes(line)!r}, names an interpreter that is not there"
                + (" (the line ends in CR LF: save it with LF)" if line.endswith(b"\r") else "")
            )
        return f"{name} needs a loader or an interpreter that is not on this system"
    if number == errno.EACCES and not os.access(program, os.X_OK):
        return f"{name} is not executable: chmod +x {shlex.quote(name)}"
    return f"{name}: {os.strerror(number or 0)}"


def wait_readable(descriptor: int, within_s: float) -> bool:
    """Wait until a descriptor is readable, and return True; False if it is not within that time."""
    poller = select.poll()
    poller.register(descriptor, select.POLLIN)
    return bool(poller.poll(within_s * 1000))


def first_process(status: int, process: subprocess.Popen[bytes]) -> int:
    """Wait for bubblewrap's report, and return the number of the sandbox's first process.

    Killing bubblewrap before that report would leave a sandbox behind.  Raises RefereeError.
    """
    report = b""
    while b"\n" not in report:
        data = os.read(status, 4096) if wait_readable(status, SETUP_LIMIT_S) else b""
        if not data:
            raise sandbox_error(process)
        report += data
    try:
        pid: int = json.loads(report.split(b"\n")[0])["child-pid"]
    except (ValueError, LookupError, TypeError) as error:
        raise RefereeError(f"bubblewrap reported something unknown: {report!r}") from error
    return pid


def await_sandbox(process: subprocess.Popen[bytes], player: Player) -> bool:
    """Wait until the sandbox is complete; return False if it has ended instead.

    Raises RefereeError if it takes too long.
    """
    assert process.stdout is not None
    descriptor = process.stdout.fileno()
    received = b""
    while len(received) < len(READY):
        if not wait_readable(descriptor, SETUP_LIMIT_S):
            raise RefereeError(f"the sandbox of {player.name} was not ready within {SETUP_LIMIT_S:g} s")
        data = os.read(descriptor, len(READY) - len(received))  # not more: the rest is the bot's output
        if not data:
            return False
        received += data
    return True


def has_reported_exit(status: int) -> bool:
    """Return True if bubblewrap, which has ended, has reported the bot's end.

    Otherwise it never started the bot.
    """
    os.set_blocking(status, False)
    try:
        report = os.read(status, 4096)
    except BlockingIOError:
        return False
    return b"exit-code" in report


def bot_status(status: int) -> int:
    """Return the bot's own exit status, given that of bubblewrap; negative is a signal's number."""
    if status > SIGNAL_STATUS and status - SIGNAL_STATUS in set(signal.Signals):
        return SIGNAL_STATUS - status
    return status


def sandbox_error(process: subprocess.Popen[bytes]) -> RefereeError:
    """Return the error of a bubblewrap that made no sandbox, with the message that it printed."""
    assert process.stderr is not None
    os.set_blocking(process.stderr.fileno(), False)
    text = process.stderr.read(4096) or b""
    return RefereeError("the sandbox could not be made" + (f": {decode_bytes(text.strip())}" if text else ""))
