"""Connections to browsers, none of which can hold the server up.

Hypercorn sends to a client in a scope that is shielded from cancellation, so that one client that stops
reading would keep the whole server from ending.  Here, therefore, each connection's stream has deadlines of
its own inside that shield: a send ends after a while, and all sends end when the server shuts down.
"""

import logging
from collections import Counter
from collections.abc import Callable, Sequence
from math import inf
from types import TracebackType

import trio
from hypercorn.app_wrappers import ASGIWrapper
from hypercorn.config import Config
from hypercorn.trio.tcp_server import TCPServer
from hypercorn.trio.worker_context import WorkerContext
from hypercorn.typing import ASGIFramework

from tournaments.server.remote.remote_bots import MOST_MESSAGE_BYTES
from tournaments.web.http.rate_limits import address_key
from tournaments.web.http.security import Network, is_within

LOG = logging.getLogger("kalarena.web")

MOST_CONNECTIONS = 2_000
"""Most connections at a time: 200 students with the six that a browser opens, and more; each takes 60 KiB."""
SHARE_OF_ADDRESS = 0.5
"""Largest share of all connections for one address.  A lecture hall that opens the page at once may come from
one address, with 1,000 connections."""
SPARE_DESCRIPTORS = 256
"""Open files of the process that are reserved for games, databases and uploads."""
SEND_S = 20.0
"""Seconds for which a client may stop reading: a phone that changes its network comes back sooner."""
SLOWEST = 20_000
"""Slowest accepted rate of reading beyond that, in bytes per second."""
IDLE_S = 15.0
"""Seconds between requests, and for a request's headers to arrive."""
LARGEST_HEADERS = 16 * 1024
"""Most bytes of a request's headers; browsers' are below 4 KiB."""
LINGER_S = 1.0
"""Seconds for a handler to end after its connection was closed."""
GRACE_S = 1.0
"""Seconds for requests under way to end at shutdown."""


class ClientStream:
    """One connection as Hypercorn uses it, with deadlines that apply in a shielded scope, too."""

    def __init__(self, stream: trio.SocketStream, closed: Callable[[], None]) -> None:
        self._stream = stream
        self._closed = closed
        self._sending: trio.CancelScope | None = None
        self._latest = inf
        self.socket = stream.socket

    async def send_all(self, data: bytes) -> None:
        """Send, or close the connection if the client does not read.  Raises BrokenResourceError."""
        if not data:  # the end of a response of declared length: a third of all calls
            return
        deadline = min(trio.current_time() + SEND_S + len(data) / SLOWEST, self._latest)
        with trio.CancelScope(deadline=deadline) as self._sending:
            try:
                await self._stream.send_all(data)
            except trio.BusyResourceError as error:  # in ``send_eof``: Hypercorn has one sender at a time
                raise trio.BrokenResourceError("the connection is being closed") from error
        stopped, self._sending = self._sending.cancelled_caught, None
        if stopped:
            self.close()
            raise trio.BrokenResourceError("the client does not read")

    async def receive_some(self, most: int) -> bytes | bytearray:
        """Receive some bytes; empty at the end of the stream."""
        return await self._stream.receive_some(most)

    async def send_eof(self) -> None:
        """Signal the end of the data to the client."""
        await self._stream.send_eof()

    async def aclose(self) -> None:
        """Close the connection."""
        self.close()
        await trio.lowlevel.checkpoint()

    def close(self) -> None:
        """Close the connection at once; a send or receive under way fails."""
        self.socket.close()
        self._closed()

    def end_by(self, deadline: float) -> None:
        """Set the time after which nothing is sent."""
        self._latest = deadline
        if self._sending is not None:
            self._sending.deadline = min(self._sending.deadline, deadline)


class _Server(TCPServer):
    """Hypercorn's server of one connection; it ends when the client closes the connection."""

    async def _read_data(self) -> None:
        await super()._read_data()
        await self.idle_task.stop()  # it would keep the connection open for IDLE_S


class Connections:
    """All connections of a server."""

    def __init__(
        self, app: ASGIFramework, most: int = MOST_CONNECTIONS, trusted: Sequence[Network] = ()
    ) -> None:
        """``trusted`` are our own proxies, which have no limit per address: each serves many clients."""
        self._app = ASGIWrapper(app)
        self._config = _config()
        self._context = WorkerContext(None)
        self._most = most
        self._most_of_address = max(1, round(SHARE_OF_ADDRESS * most))
        self._trusted = trusted
        self._open: set[ClientStream] = set()
        self._of_address: Counter[str] = Counter()

    async def handle(self, stream: trio.SocketStream) -> None:
        """Serve one connection until it ends.  An exception is logged, and ends this connection alone."""
        address = _peer(stream)
        if address is None or not self._has_room(address):
            stream.socket.close()
            return
        key = address_key(address)
        with trio.CancelScope() as scope:

            def closed() -> None:
                scope.deadline = min(scope.deadline, trio.current_time() + LINGER_S)

            client = ClientStream(stream, closed)
            self._open.add(client)
            self._of_address[key] += 1
            try:
                with _LogErrors():
                    await _Server(self._app, self._config, self._context, {}, client)  # type: ignore[arg-type]
            finally:
                client.close()
                self._open.discard(client)
                self._of_address[key] -= 1
                if not self._of_address[key]:
                    del self._of_address[key]

    def _has_room(self, address: str) -> bool:
        if len(self._open) >= self._most:
            return False
        count = self._of_address[address_key(address)]
        return count < self._most_of_address or is_within(address, self._trusted)

    async def end(self, deadline: float) -> None:
        """End idle connections at once, and the others at the deadline."""
        await self._context.terminated.set()
        for client in self._open:
            client.end_by(deadline)


def _peer(stream: trio.SocketStream) -> str | None:
    """Return the client's address; None if it has disconnected already."""
    try:
        return str(stream.socket.getpeername()[0])
    except OSError:
        return None


class _LogErrors:
    """Logs exceptions and lets only cancellation through: one connection never ends the server."""

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if error is None or isinstance(error, trio.Cancelled):
            return False
        cancelled: BaseException | None = None
        rest: BaseException | None = error
        if isinstance(error, BaseExceptionGroup):
            cancelled, rest = error.split(trio.Cancelled)
        if rest is not None:
            LOG.error("a connection broke", exc_info=rest)
        if cancelled is not None:
            raise cancelled
        return True


def _config() -> Config:
    config = Config()
    config.errorlog = logging.getLogger("kalarena.hypercorn")
    config.accesslog = None
    config.keep_alive_timeout = IDLE_S
    config.h11_max_incomplete_size = LARGEST_HEADERS
    config.h2_max_header_list_size = LARGEST_HEADERS
    config.h2_max_concurrent_streams = 20
    config.include_server_header = False
    config.websocket_max_message_size = MOST_MESSAGE_BYTES
    return config
