"""Event loop of an adapter, and the bot's process beside it.

An adapter ends as its bot ends: with the same exit status, or by the same signal.  So the verdict of the
referee names the bot's fault.
"""

import contextlib
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence

from protocol.announced import TIME_VARIABLE, AnnouncedTime, parse_announced_time

READ_BYTES = 65536
SIGNAL_WAIT_S = 1.0
"""Seconds to wait for the delivery of a signal to this process itself."""

REFEREE = 0
"""Descriptor of the lines from the referee."""
TO_REFEREE = 1

Callback = Callable[[], None]


class Loop:
    """Calls a function for each descriptor that is readable, and one when a deadline has passed."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._deadline: float | None = None
        self._expire: Callback | None = None
        self._is_over = False

    def add(self, descriptor: int, callback: Callback) -> None:
        """Call ``callback`` whenever the descriptor is readable."""
        self._selector.register(descriptor, selectors.EVENT_READ, callback)

    def remove(self, descriptor: int) -> None:
        """Watch a descriptor no longer; a descriptor that is not watched is ignored."""
        if descriptor in self._selector.get_map():
            self._selector.unregister(descriptor)

    def set_deadline(self, in_s: float | None, expire: Callback | None = None) -> None:
        """Call ``expire`` once after this many seconds, in place of an earlier deadline; None for none."""
        self._deadline = None if in_s is None else time.monotonic() + in_s
        self._expire = expire

    def stop(self) -> None:
        """End ``run`` after the current callback."""
        self._is_over = True

    def run(self) -> None:
        """Wait and call functions until ``stop``."""
        while not self._is_over:
            left_s = None if self._deadline is None else max(0.0, self._deadline - time.monotonic())
            ready = self._selector.select(left_s)
            for key, _ in ready:
                if not self._is_over:
                    key.data()
            # Checked after each round: a bot that never stops sending must not put off its deadline.
            if self._deadline is not None and time.monotonic() >= self._deadline:
                expire = self._expire
                self.set_deadline(None)
                if expire is not None and not self._is_over:
                    expire()


class RefereeInput:
    """Lines from the referee on standard input."""

    def __init__(self, loop: Loop, receive: Callable[[str], None], on_end: Callback) -> None:
        """Prepare; nothing is read before ``open``.

        Args:
            loop: The event loop.
            receive: Called with each line.
            on_end: Called at the end of the input: the referee has gone.
        """
        self._loop = loop
        self._receive, self._on_end = receive, on_end
        self._rest = b""

    def open(self) -> None:
        """Begin to read: the referee's start limit ends, and the bot's time begins, with the first line."""
        self._loop.add(REFEREE, self._read)

    def _read(self) -> None:
        data = os.read(REFEREE, READ_BYTES)
        if not data:
            self._loop.remove(REFEREE)
            self._on_end()
            return
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._receive(line.decode("ascii", "replace"))


def announced_time() -> AnnouncedTime:
    """Return the time control that the referee announced; empty if there is none.  Raises ValueError."""
    text = os.environ.get(TIME_VARIABLE)
    return parse_announced_time(text) if text else AnnouncedTime()


def send_to_referee(data: bytes) -> None:
    """Write bytes to the referee.  A referee that has ended the game is ignored."""
    with contextlib.suppress(OSError):  # the referee has gone, or the output is closed
        os.write(TO_REFEREE, data)


def note(text: str) -> None:
    """Write a line for the bot's author, to standard error, which is kept with the game."""
    print(text, file=sys.stderr, flush=True)


class BotProcess:
    """The bot: a child process of the adapter.

    Raises OSError if the command cannot be run.
    """

    def __init__(
        self,
        command: Sequence[str],
        loop: Loop,
        *,
        on_exit: Callback,
        on_output: Callable[[bytes], None] | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """Start the bot.

        Args:
            command: The bot's command.
            loop: The event loop.
            on_exit: Called once when the bot has ended and all its output was passed on.
            on_output: Called with each piece of standard output.  None for a bot that converses by other
                means: its standard input is empty, and its standard output goes to standard error.
            environment: Variables in place of the adapter's own.
        """
        pipe = subprocess.DEVNULL if on_output is None else subprocess.PIPE
        output = sys.stderr.fileno() if on_output is None else subprocess.PIPE
        self._loop = loop
        self._on_output, self._on_exit = on_output, on_exit
        # A pipe that SIGCHLD fills works on every system; pidfds exist on Linux alone.
        self._ended, write_end = os.pipe()
        os.set_blocking(write_end, False)
        signal.set_wakeup_fd(write_end)
        signal.signal(signal.SIGCHLD, lambda *_: None)  # without a handler no byte is written
        self._process = subprocess.Popen(
            command, stdin=pipe, stdout=output, env=None if environment is None else dict(environment)
        )
        loop.add(self._ended, self._child_changed)
        self._is_ended = False
        """True once the adapter has ended the bot, which is no crash."""
        self._output = -1 if self._process.stdout is None else self._process.stdout.fileno()
        if on_output is not None:
            loop.add(self._output, self._read)

    def send(self, data: bytes) -> None:
        """Write to the bot's standard input; a bot that has closed it, or has ended, is ignored."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            os.write(self._process.stdin.fileno(), data)

    def kill(self) -> None:
        """Kill the bot's first process."""
        self._process.kill()

    def end(self) -> None:
        """Kill the bot's first process, and let this program end with status 0."""
        self._is_ended = True
        self.kill()

    def close_input(self) -> None:
        """End the bot's standard input."""
        if self._process.stdin is not None and not self._process.stdin.closed:
            self._process.stdin.close()

    def _read(self) -> None:
        assert self._on_output is not None
        data = os.read(self._output, READ_BYTES)
        if data:
            self._on_output(data)
            return
        self._loop.remove(self._output)
        self.close_output()

    def close_output(self) -> None:
        """Close the adapter's output because the bot sends nothing more.

        The referee then waits for the exit status before it decides.
        """
        with contextlib.suppress(OSError):  # closed before
            os.close(TO_REFEREE)

    def _child_changed(self) -> None:
        os.read(self._ended, READ_BYTES)
        if self._process.poll() is None:  # a child was stopped or continued
            return
        self._loop.remove(self._ended)
        if self._on_output is not None:
            os.set_blocking(self._output, False)
            try:
                while data := os.read(self._output, READ_BYTES):
                    self._on_output(data)
            except BlockingIOError:
                pass  # a process that the bot left behind holds the pipe open
        self._on_exit()

    def end_alike(self) -> None:
        """End this process as the bot has ended: with its status, or by its signal.  Does not return."""
        status = 0 if self._is_ended else self._process.wait()
        sys.stderr.flush()
        if status < 0:
            if -status not in (signal.SIGKILL, signal.SIGSTOP):  # which cannot be handled
                signal.signal(-status, signal.SIG_DFL)
            os.kill(os.getpid(), -status)
            time.sleep(SIGNAL_WAIT_S)  # a signal that does not end a process, or whose delivery takes time
        os._exit(status if status >= 0 else 128 - status)
