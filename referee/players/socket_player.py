"""Players at the other end of a Unix socket: a person or a program that plays through a server.

The worker process that plays the game connects to a socket of the server.  Lines of the protocol go both
ways, each with its line feed.  Time is charged by the wall clock, when a line arrives in the worker.

The server ends the player by closing the connection.  The last line before that may begin with ``END_MARK``:
the rest of it is a sentence, which is kept as the player's standard error, so that the verdict contains it.
"""

import contextlib
import queue
import socket
import threading
from pathlib import Path

from protocol.codec import decode_bytes, encode
from protocol.messages import End
from referee.errors import RefereeError
from referee.judge.limits import Limits
from referee.judge.results import Player
from referee.live_feed import short_address
from referee.process.player import USUAL_LIMITS, SessionPlayer

END_LINE = encode(End())
"""Last line of the referee."""
END_MARK = "\0"
"""First character of the line with the reason for the end of a connection; no other line contains it."""
LOST = "the connection to this player was lost"
"""Reason for the end of a connection without a sentence."""
MOST_BYTES_OF_SENTENCE = 500
"""Most bytes of that sentence: with the mark, it is within the limit of a line."""
CLOSE_S = 1.0
"""Most seconds to wait after the game for a player that does not take its last lines."""
FAILED = 1
"""Exit status of a player whose connection ended during the game."""


class SocketPlayer(SessionPlayer):
    """A player whose lines go through a Unix socket."""

    def __init__(self, index: int, player: Player, path: str, limits: Limits = USUAL_LIMITS) -> None:
        """Connect to the socket at ``path``.

        Raises RefereeError if the connection cannot be made: a player without a process is not at fault.
        """
        super().__init__(index, player, limits)
        self._lines_to_send: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        """Lines of the referee that are not sent yet; None is behind the last one."""
        self._writer = threading.Thread(target=self._write, daemon=True)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            with short_address(Path(path)) as address:
                self._socket.connect(address)
        except OSError as error:
            self._socket.close()
            why = f"the connection to {player.name} could not be made: {error}"
            raise RefereeError(why) from error

    def wait_ready(self) -> None:
        """Begin to read the player's lines."""
        super().wait_ready()
        threading.Thread(target=self._read, daemon=True).start()
        self._writer.start()

    def receive(self, line: str) -> None:
        """Send a line to the player."""
        self._lines_to_send.put(line)
        if line == END_LINE:
            self.end()  # before the reader notices the end of the connection

    def close(self) -> str:
        """Close the connection, once the player has been sent all lines, or CLOSE_S have passed."""
        self._lines_to_send.put(None)
        if self._writer.ident is not None:
            self._writer.join(CLOSE_S)
        self._end_connection()
        self._socket.close()
        return super().close()

    def _write(self) -> None:
        """Send the lines of the referee; runs in a thread of its own.

        The opening of a long game has more lines than the buffer of a socket holds, and a server may be busy.
        """
        try:
            for line in iter(self._lines_to_send.get, None):
                self._socket.sendall(line.encode() + b"\n")
                if line == END_LINE:
                    self._end_connection()
        except OSError:
            if not self.has_ended():
                self.end(FAILED, LOST)

    def _read(self) -> None:
        """Pass on the player's lines until the connection ends; runs in a thread of its own."""
        sentence = ""
        with contextlib.suppress(OSError, ValueError), self._socket.makefile("rb") as lines:
            while data := lines.readline(self.limits.line_bytes + 1):
                text = decode_bytes(data.removesuffix(b"\n"))
                if text.startswith(END_MARK):
                    sentence = text.removeprefix(END_MARK)
                    break
                self.send(text)
        if not self.has_ended():
            self.end(FAILED, sentence or LOST)

    def _end_connection(self) -> None:
        with contextlib.suppress(OSError):  # the other side has ended it
            self._socket.shutdown(socket.SHUT_RDWR)
