"""The KGP adapter: a server on the loopback interface for one bot, by TCP or WebSocket.

The bot is started with the server's address in KGP_HOST and KGP_PORT; ``{tcp}`` and ``{ws}`` in its command
are replaced by ``tcp://host:port`` and ``ws://host:port/socket``.  The referee's lines are read when the bot
has connected and chosen its mode, so the start of its interpreter takes none of its time.

The adapter never swaps.  If the bot has no move when its time is nearly over, none is sent, and the bot loses
on time.
"""

import contextlib
import os
import site
import socket
import sys
from collections.abc import Callable
from functools import partial
from typing import Protocol

from protocol.announced import AnnouncedTime
from referee.adapters.beside import (
    READ_BYTES,
    BotProcess,
    Loop,
    RefereeInput,
    announced_time,
    send_to_referee,
)
from referee.adapters.game_follower import GameFollower
from referee.adapters.kgp import Change, KgpSession, board_text
from referee.games.layout import PitBoard

HOST = "127.0.0.1"
DEFAULT_MOVE_S = 5.0
"""Seconds for a move where no limit is announced, as at the course's own server."""
MOVES_LEFT = 20
"""Moves among which the rest of a limit per game is divided: bots of this protocol think until they are
stopped, and a bot makes about 20 to 30 moves in a game."""
RESERVE = 0.05
"""Part of the time for a move that is kept for the way from ``stop`` to the referee."""
LEAST_RESERVE_S = 0.02
"""Seconds that are kept at least.  The way takes 1 ms; on a busy host the fair clock does not charge more."""


def time_for_move(announced: AnnouncedTime, own_ms: int | None) -> float:
    """Return the seconds after which the bot is stopped.

    ``own_ms`` is the last announced rest: of the time for the game, or else of the time for one move.
    """
    limits_ms = [] if announced.move_ms is None else [float(announced.move_ms)]
    if announced.game_ms is not None:
        rest_ms = announced.game_ms if own_ms is None else own_ms
        limits_ms.append(rest_ms / MOVES_LEFT + announced.increment_ms * (1 - 1 / MOVES_LEFT))
        limits_ms.append(float(rest_ms))
    limit_s = min(limits_ms) / 1000 if limits_ms else DEFAULT_MOVE_S
    return max(limit_s / 2, limit_s - max(LEAST_RESERVE_S, limit_s * RESERVE))


class Connection(Protocol):
    """A connected client."""

    def send(self, line: str) -> None:
        """Send a line."""
        ...

    def close(self) -> None:
        """Close the connection."""
        ...


Received = Callable[[str | None], None]
"""Callback for each line of a client; None for the end of the connection."""


def _received_data(client: socket.socket) -> bytes:
    """Return what a client has sent; nothing at the end of the connection.

    Where the system can, data is acknowledged at once: a client that sends a move and ``yield`` in two small
    packets would otherwise wait 40 ms for the acknowledgement of the first (RFC 1122, 4.2.3.2 and 4.2.3.4).
    """
    try:
        data = client.recv(READ_BYTES)
        if sys.platform == "linux":
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
    except OSError:
        return b""
    return data


class TcpConnection:
    """A client that sends lines over TCP."""

    def __init__(self, client: socket.socket, loop: Loop, received: Received) -> None:
        self._client, self._loop, self._received = client, loop, received
        self._rest = b""
        loop.add(client.fileno(), self._read)

    def _read(self) -> None:
        data = _received_data(self._client)
        if not data:
            self.close()
            self._received(None)
            return
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._received(line.decode("utf-8", "replace"))

    def send(self, line: str) -> None:
        """Send a line; a client that has gone is noticed by the next read."""
        with contextlib.suppress(OSError):
            self._client.sendall(line.encode() + b"\r\n")

    def close(self) -> None:
        """Close the connection; a second call does nothing."""
        if self._client.fileno() >= 0:
            self._loop.remove(self._client.fileno())
            self._client.close()


class WebSocketConnection:
    """A client that sends each line as a text message of a WebSocket (RFC 6455)."""

    def __init__(self, client: socket.socket, loop: Loop, received: Received) -> None:
        site.main()  # finds wsproto: the adapter was started without installed packages
        from wsproto import ConnectionType, WSConnection  # not needed by most bots, and slow to import

        self._client, self._loop, self._received = client, loop, received
        self._websocket = WSConnection(ConnectionType.SERVER)
        self._waiting: list[str] | None = []
        """Lines to send once the connection is accepted; None from then on."""
        self._text = ""
        loop.add(client.fileno(), self._read)

    def _read(self) -> None:
        from wsproto.events import AcceptConnection, CloseConnection, Ping, Request, TextMessage
        from wsproto.utilities import RemoteProtocolError

        data = _received_data(self._client)
        try:
            self._websocket.receive_data(data or None)
            events = list(self._websocket.events())
        except RemoteProtocolError:
            events = [CloseConnection(code=1002)]
        for event in events:
            match event:
                case Request():
                    self._write(self._websocket.send(AcceptConnection()))
                    waiting, self._waiting = self._waiting or [], None
                    for line in waiting:
                        self.send(line)
                case TextMessage():
                    self._text += event.data
                    if event.message_finished:
                        text, self._text = self._text, ""
                        for line in text.splitlines():
                            self._received(line)
                case Ping():
                    self._write(self._websocket.send(event.response()))
                case CloseConnection():
                    self.close()
                    self._received(None)
                    return

    def send(self, line: str) -> None:
        """Send a line, once the connection is accepted."""
        from wsproto.events import TextMessage

        if self._waiting is not None:
            self._waiting.append(line)
        else:
            self._write(self._websocket.send(TextMessage(data=line + "\r\n")))

    def _write(self, data: bytes) -> None:
        with contextlib.suppress(OSError):  # gone, which the next read notices
            self._client.sendall(data)

    def close(self) -> None:
        """Close the connection; a second call does nothing."""
        if self._client.fileno() >= 0:
            self._loop.remove(self._client.fileno())
            self._client.close()


class KgpAdapter:
    """Serves one bot of the Kalah Game Protocol."""

    def __init__(self, command: list[str], follower: GameFollower) -> None:
        self._follower = follower
        self._announced = announced_time()
        self._session = KgpSession()
        self._client: Connection | None = None
        self._has_bot_ended = False
        self._loop = Loop()
        self._input = RefereeInput(self._loop, self._receive, lambda: self._bot.kill())
        self._listeners = [socket.create_server((HOST, 0)) for _ in range(2)]
        tcp, websocket = (listener.getsockname()[1] for listener in self._listeners)
        kinds: tuple[Callable[..., Connection], ...] = (TcpConnection, WebSocketConnection)
        for listener, kind in zip(self._listeners, kinds, strict=True):
            self._loop.add(listener.fileno(), partial(self._accept, listener, kind))
        addresses = {"{tcp}": f"tcp://{HOST}:{tcp}", "{ws}": f"ws://{HOST}:{websocket}/socket"}
        for placeholder, address in addresses.items():
            command = [word.replace(placeholder, address) for word in command]
        environment = {**os.environ, "KGP_HOST": HOST, "KGP_PORT": str(tcp)}
        self._bot = BotProcess(command, self._loop, on_exit=self._bot_ended, environment=environment)

    def run(self) -> None:
        """Play one game; does not return."""
        self._loop.run()
        self._bot.end_alike()

    def _accept(self, listener: socket.socket, kind: Callable[..., Connection]) -> None:
        client, _ = listener.accept()
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if sys.platform == "linux":
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
        if self._client is not None:  # one connection at a time
            client.close()
            return
        self._session = KgpSession()
        self._client = kind(client, self._loop, self._receive_from_bot)
        self._send()

    def _receive_from_bot(self, line: str | None) -> None:
        if line is None:
            self._client = None
            self._left()
            return
        change = self._session.receive(line)
        for comment in self._session.comments:
            print(comment, file=sys.stderr, flush=True)
        self._session.comments.clear()
        self._send()
        if change is Change.READY:
            for listener in self._listeners:
                self._loop.remove(listener.fileno())
                listener.close()
            self._listeners.clear()
            self._input.open()
        elif change is Change.FINAL:
            self._finish_turn()
        elif change is Change.GONE:
            if self._client is not None:
                self._client.close()
                self._client = None
            self._left()

    def _left(self) -> None:
        """Handle the end of the connection: before the mode is chosen the bot may connect again."""
        if self._has_bot_ended:
            self._loop.stop()
        elif not self._listeners and not self._follower.over:
            self._bot.close_output()

    def _bot_ended(self) -> None:
        """Handle the end of the bot's first process: another process of the bot may have the connection."""
        self._has_bot_ended = True
        if self._client is None or self._follower.over:
            self._loop.stop()

    def _receive(self, line: str) -> None:
        """Process a line of the referee."""
        follower = self._follower
        is_turn = follower.receive(line)
        if follower.over:
            self._loop.set_deadline(None)
            if self._client is not None:
                self._session.leave()
                self._send()
            if self._has_bot_ended:
                self._loop.stop()
        elif is_turn:
            self._begin_turn()

    def _begin_turn(self) -> None:
        follower, game = self._follower, self._follower.game
        side, state = follower.side, follower.state
        board = game.layout(state)
        assert side is not None
        assert isinstance(board, PitBoard)  # else the bot is refused before it is started
        moves = [move for move in game.legal_moves(state) if game.swap is None or move != game.swap]
        if len(moves) == 1:  # the protocol allows to play an only move without asking
            self._play(game.format_move(state, moves[0]))
            return
        self._session.ask(board_text(board, side), len(board.bottom.pits))
        own_ms = None if follower.clocks_ms is None else follower.clocks_ms[0]
        self._loop.set_deadline(time_for_move(self._announced, own_ms), self._finish_turn)
        self._send()

    def _finish_turn(self) -> None:
        self._loop.set_deadline(None)
        move = self._session.stop()
        self._send()
        if move is not None:
            self._play(str(move))

    def _play(self, move: str) -> None:
        send_to_referee(f"MOVE;{move}\n".encode())

    def _send(self) -> None:
        lines, self._session.out = self._session.out, []
        if self._client is not None:
            for line in lines:
                self._client.send(line)
