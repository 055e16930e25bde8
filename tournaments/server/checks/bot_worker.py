"""Worker processes for bots, from the server's side: their start, their messages and their end.

A worker belongs to the server's session, so that ``kill_orphans`` spares it, and to a process group of its
own, so that a signal to the server's group does not end it before its bots.  The worker ends when its
standard input is closed.
"""

import contextlib
import json
import subprocess
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import trio

from referee.judge.verdict_text import visible
from referee.process.subreaper import become_subreaper, kill_orphans
from tournaments.server.checks.bot_job import STOPPED, Answer, BotJob, game_of

if TYPE_CHECKING:
    from tournaments.course.model import CheckedGame

COMMAND = (sys.executable, "-P", "-m", "tournaments.server.checks.check_worker")
"""-P: nothing is imported from the current directory."""
DONE = 0
READ_BYTES = 1 << 16
LONGEST_MESSAGE = 8 << 20
"""Maximum bytes of one line: a report of a check has some 100 kB, most of it lines of conversations; a game
has ``check_worker.MAX_GAMES_BYTES`` at most."""
KILL_LIMIT_S = 5.0
"""Seconds to wait for a killed worker, which ends within milliseconds unless the system hangs."""
KEPT_OF_STDERR = 4000
"""Bytes of standard error that are kept: the end of a traceback, with the error."""


class WorkerError(Exception):
    """A worker died, took too long, or sent an invalid message; the bot is not at fault."""


async def run_job(
    job: BotJob,
    on_line: Callable[[str], None],
    *,
    within_s: float,
    shutdown_s: float,
    command: tuple[str, ...] = COMMAND,
) -> Answer:
    """Run a job in a worker; ``on_line`` is called with each line for the log.  Raises WorkerError.

    When cancelled, or after ``within_s``, the worker's standard input is closed; ``shutdown_s`` later the
    worker is killed with all processes that it has started.
    """
    process = await _start(command)
    answer = None
    try:
        with trio.move_on_after(within_s):
            answer = await _exchange(process, job, on_line)
    finally:
        with trio.move_on_after(shutdown_s + KILL_LIMIT_S, shield=True):
            await _end(process, shutdown_s)
    if answer is None:
        raise WorkerError(f"it was not done within {within_s:g} s")
    return answer


async def _start(command: tuple[str, ...]) -> trio.Process:
    become_subreaper()
    pipe = subprocess.PIPE
    try:
        with trio.CancelScope(shield=True):  # a started process is always recorded
            process = await trio.lowlevel.open_process(
                command, stdin=pipe, stdout=pipe, stderr=pipe, process_group=0
            )
    except OSError as error:
        raise WorkerError(f"the worker process could not be started: {error.strerror}") from error
    return process


async def _exchange(process: trio.Process, job: BotJob, on_line: Callable[[str], None]) -> Answer:
    assert process.stdin is not None
    assert process.stdout is not None
    answers: list[Answer] = []
    games: list[CheckedGame] = []
    error_output = bytearray()

    def on_message(line: bytes) -> None:
        match _message(line):
            case {"say": str(text)}:
                on_line(text)
            case {"game": dict(fields)}:
                games.append(game_of(fields))
            case {"end": dict(fields)}:
                answers.append(Answer(**fields, games=tuple(games)))
            case _:
                raise WorkerError(f"the worker process said {line[:200]!r}")

    async def drain() -> None:
        assert process.stderr is not None
        while data := await process.stderr.receive_some(READ_BYTES):
            error_output.extend(data)
            del error_output[:-KEPT_OF_STDERR]

    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(drain)
            with contextlib.suppress(trio.BrokenResourceError):  # it is dead already; see its status
                await process.stdin.send_all(job.to_line())
            await _read_lines(process.stdout, on_message)
            # Processes that the worker leaves behind may hold its standard error open for ever.
            with trio.move_on_after(1.0):
                await process.wait()
            nursery.cancel_scope.cancel()
    except* WorkerError as group:
        raise WorkerError(str(group.exceptions[0])) from group
    if not answers:
        text = visible(error_output.decode("utf-8", "replace").strip())
        raise WorkerError(
            f"the worker process ended with status {process.returncode}" + (text and f": {text}")
        )
    return answers[-1]


async def _read_lines(stream: trio.abc.ReceiveStream, on_message: Callable[[bytes], None]) -> None:
    buffer = bytearray()
    while data := await stream.receive_some(READ_BYTES):
        *lines, rest = data.split(b"\n")
        for line in lines:
            buffer += line
            on_message(bytes(buffer))
            buffer.clear()
        buffer += rest
        if len(buffer) > LONGEST_MESSAGE:
            raise WorkerError(f"the worker process said more than {LONGEST_MESSAGE} bytes in one line")


def _message(line: bytes) -> Any:
    try:
        return json.loads(line)
    except ValueError:
        return None


async def _end(process: trio.Process, shutdown_s: float) -> None:
    """End a worker by closing its standard input, and kill all processes that are left of it."""
    for stream in (process.stdin, process.stdout, process.stderr):
        assert stream is not None
        await stream.aclose()
    with trio.move_on_after(shutdown_s):
        await process.wait()
    if process.returncode is None:
        process.kill()
        await process.wait()
    if process.returncode not in (DONE, STOPPED):
        await trio.to_thread.run_sync(kill_orphans)  # the worker's processes, which this process has adopted
