"""The KGP adapter: a server on the loopback interface for one bot, by TCP or WebSocket.

The bot is started with the server's address in KGP_HOST and KGP_PORT.  Placeholders in its command are
replaced: ``{host}`` and ``{port}``, ``{tcp}`` by ``tcp://host:port``, ``{ws}`` by ``ws://host:port/socket``.
The referee's lines are read when the bot has connected and chosen its mode, so the start of its interpreter
takes none of its time.  A bot may connect several times: the first connection that chooses a mode plays.

The adapter never swaps.  If the bot has no move when its time is nearly over, none is sent, and the bot loses
on time.
"""

import contextlib
import os
import site
import socket
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial

from protocol.announced import AnnouncedTime
from referee.adapters.beside import (
    READ_BYTES,
    BotProcess,
    Loop,
    RefereeInput,
    announced_time,
    note,
    send_to_referee,
)
from referee.adapters.game_follower import GameFollower
from referee.adapters.kgp import LONGEST_LINE, Change, KgpSession, board_text
from referee.games.layout import PitBoard

HOST = "127.0.0.1"
LEAVE_S = 0.2
"""Seconds after ``goodbye`` at which a bot that still runs is ended."""
HOST_IPV6 = "::1"
DEFAULT_PORT = 2671
"""The protocol's usual port, for clients whose address is fixed."""
DEFAULT_MOVE_S = 5.0
"""Seconds for a move where no limit is announced, as at the course's own server."""
MOVES_LEFT = 20
"""Moves among which the rest of a limit per game is divided: bots of this protocol think until they are
stopped, and a bot makes about 20 to 30 moves in a game."""
RESERVE = 0.05
"""Part of the time for a move that is kept for the way from ``stop`` to the referee."""
LEAST_RESERVE_S = 0.1
"""Seconds that are kept at least.  The way takes 1 ms, but on a virtual machine with eight times the load
that its cores can bear, 4 of 2,500 deadlines were handled 60 to 130 ms late, and no counter showed a wait."""


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


class Connection(ABC):
    """A connected client, whose socket is read whenever it is readable."""

    def __init__(self, client: socket.socket, loop: Loop, received: Received) -> None:
        self._client, self._loop, self._received = client, loop, received
        loop.add(client.fileno(), self._read)

    @abstractmethod
    def _read(self) -> None:
        """Process what the client has sent."""

    @abstractmethod
    def send(self, line: str) -> None:
        """Send a line."""

    @abstractmethod
    def end(self) -> None:
        """Send nothing more; the client may still send."""

    def close(self) -> None:
        """Close the connection; a second call does nothing."""
        if self._client.fileno() >= 0:
            self._loop.remove(self._client.fileno())
            self._client.close()

    def _end_of_input(self) -> None:
        """Close the connection and report its end."""
        self.close()
        self._received(None)


class TcpConnection(Connection):
    """A client that sends lines over TCP."""

    def __init__(self, client: socket.socket, loop: Loop, received: Received) -> None:
        super().__init__(client, loop, received)
        self._rest = b""

    def _read(self) -> None:
        data = _received_data(self._client)
        if not data:
            self._end_of_input()
            return
        *lines, self._rest = (self._rest + data).split(b"\n")
        # A longer line is refused, so that the rest of an endless one need not be kept.
        self._rest = self._rest[: LONGEST_LINE + 1]
        for line in lines:
            self._received(line.decode("utf-8", "replace"))

    def send(self, line: str) -> None:
        """Send a line; a client that has gone is noticed by the next read."""
        with contextlib.suppress(OSError):
            self._client.sendall(line.encode() + b"\r\n")

    def end(self) -> None:
        """Send nothing more: the client receives the end of the connection after the last line."""
        with contextlib.suppress(OSError):
            self._client.shutdown(socket.SHUT_WR)


class WebSocketConnection(Connection):
    """A client that sends each line as a message of a WebSocket (RFC 6455)."""

    def __init__(self, client: socket.socket, loop: Loop, received: Received) -> None:
        site.main()  # finds wsproto: the adapter was started without installed packages
        from wsproto import ConnectionType, WSConnection  # not needed by most bots, and slow to import

        super().__init__(client, loop, received)
        self._websocket = WSConnection(ConnectionType.SERVER)
        self._waiting: list[str] | None = []
        """Lines to send once the connection is accepted; None from then on."""
        self._message = b""

    def _read(self) -> None:
        from wsproto.connection import ConnectionState
        from wsproto.events import AcceptConnection, CloseConnection, Message, Ping, Request
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
                    # Some clients fail if the server chooses none of the subprotocols that they offer.
                    chosen = event.subprotocols[0] if event.subprotocols else None
                    self._write(self._websocket.send(AcceptConnection(subprotocol=chosen)))
                    waiting, self._waiting = self._waiting or [], None
                    for line in waiting:
                        self.send(line)
                case Message():  # text, or bytes from clients that do not distinguish
                    piece = event.data.encode() if isinstance(event.data, str) else bytes(event.data)
                    self._message = (self._message + piece)[: LONGEST_LINE + 1]
                    if event.message_finished:
                        message, self._message = self._message, b""
                        for text in message.decode("utf-8", "replace").split("\n"):
                            self._received(text)
                # After the client's close frame, which may come with a ping, only a close frame is sent.
                case Ping() if self._websocket.state is ConnectionState.OPEN:
                    self._write(self._websocket.send(event.response()))
                case CloseConnection():
                    if self._websocket.state is ConnectionState.REMOTE_CLOSING:
                        self._write(self._websocket.send(event.response()))
                    self._end_of_input()
                    return
        if not data:  # the end before or within the request, for which there is no event
            self._end_of_input()

    def send(self, line: str) -> None:
        """Send a line, once the connection is accepted."""
        from wsproto.events import TextMessage

        if self._waiting is not None:
            self._waiting.append(line)
        elif self._is_open:
            self._write(self._websocket.send(TextMessage(data=line + "\r\n")))

    def end(self) -> None:
        """Send nothing more: the client receives a close frame after the last line."""
        from wsproto.events import CloseConnection

        if self._is_open:
            self._write(self._websocket.send(CloseConnection(code=1000)))

    @property
    def _is_open(self) -> bool:
        from wsproto.connection import ConnectionState

        return self._websocket.state is ConnectionState.OPEN

    def _write(self, data: bytes) -> None:
        with contextlib.suppress(OSError):  # gone, which the next read notices
            self._client.sendall(data)


class Client:
    """A connection of the bot, and the conversation on it."""

    def __init__(self) -> None:
        self.session = KgpSession()
        self.connection: Connection | None = None
        """Set once it is accepted."""

    def send(self) -> None:
        """Send the lines of the session."""
        lines, self.session.out = self.session.out, []
        if self.connection is not None:
            for line in lines:
                self.connection.send(line)


def listen(port: int) -> list[socket.socket]:
    """Return sockets that listen on both loopback addresses, the first one on IPv4.

    A client that connects to ``localhost`` may use either address.

    Args:
        port: The port; 0 for any free one.

    Raises:
        OSError: The port is in use.
    """
    listeners = [socket.create_server((HOST, port))]
    with contextlib.suppress(OSError):  # there is no IPv6, or another program uses the port there
        address = (HOST_IPV6, listeners[0].getsockname()[1])
        listeners.append(socket.create_server(address, family=socket.AF_INET6))
    return listeners


class KgpAdapter:
    """Serves one bot of the Kalah Game Protocol."""

    def __init__(self, command: list[str], follower: GameFollower, *, own_network: bool = False) -> None:
        """Start the bot.

        Args:
            command: The bot's command.
            follower: The game.
            own_network: True if no other program has this loopback interface, so that clients with a fixed
                address find the server at the usual port.
        """
        self._follower = follower
        self._announced = announced_time()
        self._clients: list[Client] = []
        self._player: Client | None = None
        """The client that plays: the first one that chose a mode."""
        self._has_begun = False
        self._has_bot_ended = False
        self._loop = Loop()
        self._input = RefereeInput(self._loop, self._receive, lambda: self._bot.kill())
        tcp, websocket = listen(DEFAULT_PORT if own_network else 0), listen(0)
        for listeners, kind in ((tcp, TcpConnection), (websocket, WebSocketConnection)):
            for listener in listeners:
                self._loop.add(listener.fileno(), partial(self._accept, listener, kind))
        port, websocket_port = (listeners[0].getsockname()[1] for listeners in (tcp, websocket))
        addresses = {
            "{host}": HOST,
            "{port}": str(port),
            "{tcp}": f"tcp://{HOST}:{port}",
            "{ws}": f"ws://{HOST}:{websocket_port}/socket",
        }
        environment = {**os.environ, "KGP_HOST": HOST, "KGP_PORT": str(port)}
        if any("{ws}" in word for word in command):
            # Clients prefer these variables to their command line, and then connect over TCP.
            del environment["KGP_HOST"], environment["KGP_PORT"]
        for placeholder, address in addresses.items():
            command = [word.replace(placeholder, address) for word in command]
        self._bot = BotProcess(command, self._loop, on_exit=self._bot_ended, environment=environment)

    def run(self) -> None:
        """Play one game; does not return."""
        self._loop.run()
        self._bot.end_alike()

    def _accept(self, listener: socket.socket, kind: Callable[..., Connection]) -> None:
        accepted, _ = listener.accept()
        accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if sys.platform == "linux":
            accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
        client = Client()
        client.connection = kind(accepted, self._loop, partial(self._receive_from_bot, client))
        self._clients.append(client)
        client.send()

    def _receive_from_bot(self, client: Client, line: str | None) -> None:
        if client not in self._clients:  # it has left; the rest of what it sent is of no interest
            return
        if line is None:
            self._left(client)
            return
        session = client.session
        change = session.receive(line)
        for comment in session.comments:
            note(comment)
        session.comments.clear()
        client.send()
        if change is Change.READY and not self._has_begun:
            self._has_begun = True
            self._player = client
            self._input.open()
        elif change is Change.FINAL:
            self._finish_turn()
        elif change is Change.GONE:
            if client.connection is not None:
                client.connection.end()
            self._left(client)

    def _left(self, client: Client) -> None:
        """Handle the end of a connection: before the game begins the bot may connect again."""
        self._clients.remove(client)
        is_player = client is self._player
        if is_player:
            self._player = None
        is_too_soon = is_player and not self._follower.over
        if is_too_soon:
            note("KGP adapter: the bot closed its connection before the end of the game")
        if self._has_bot_ended and (is_player or not self._clients):
            self._loop.stop()
        elif is_too_soon:
            self._bot.close_output()

    def _bot_ended(self) -> None:
        """Handle the end of the bot's first process: another process of the bot may have a connection."""
        self._has_bot_ended = True
        if not self._clients or self._follower.over:
            self._loop.stop()

    def _receive(self, line: str) -> None:
        """Process a line of the referee."""
        follower = self._follower
        is_turn = follower.receive(line)
        if follower.over:
            for client in self._clients:
                client.session.leave()
                client.send()
                if client.connection is not None:
                    client.connection.end()
            if self._has_bot_ended:
                self._loop.stop()
            # The protocol does not say that a client's process ends: its server ends it.
            self._loop.set_deadline(LEAVE_S, self._bot.end)
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
        if self._player is None:  # it has left, which the referee learns from the closed output
            return
        self._player.session.ask(board_text(board, side))
        own_ms = None if follower.clocks_ms is None else follower.clocks_ms[0]
        self._loop.set_deadline(time_for_move(self._announced, own_ms), self._finish_turn)
        self._player.send()

    def _finish_turn(self) -> None:
        self._loop.set_deadline(None)
        if self._player is None:
            return
        move = self._player.session.stop()
        self._player.send()
        if move is not None:
            self._play(str(move))

    def _play(self, move: str) -> None:
        send_to_referee(f"MOVE;{move}\n".encode())
