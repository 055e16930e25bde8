"""A WebSocket client (RFC 6455) on Trio, with wsproto, for text messages."""

import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from urllib.parse import urlsplit

import trio
from wsproto import ConnectionType, WSConnection
from wsproto.events import (
    AcceptConnection,
    BytesMessage,
    CloseConnection,
    Event,
    Ping,
    RejectConnection,
    RejectData,
    Request,
    TextMessage,
)
from wsproto.frame_protocol import CloseReason
from wsproto.utilities import ProtocolError

from tournaments.cli.remote.api_client import tls_failure

CONNECT_S = 20.0
"""Seconds for a connection to be made and accepted."""
SEND_S = 20.0
"""Seconds in which the server must take a message.  The server has the same limit for this side."""
CLOSE_S = 1.0
"""Seconds in which the server must take the close frame; then the connection ends without it."""
READ_BYTES = 65_536
MOST_BYTES = 1 << 20
"""Most bytes of a message or of a refusal: the server sends lines and sentences."""


class ConnectionLostError(Exception):
    """The connection was not made, or has ended; the message gives the reason."""

    def __init__(self, message: str, code: int | None = None) -> None:
        super().__init__(message)
        self.code = code
        """Code of the server's close frame; None without one."""


class RefusedError(Exception):
    """The server has refused the connection; the message is the server's sentence."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class WebSocketClient:
    """A connection to a server; see ``open_websocket``."""

    def __init__(self, stream: trio.abc.Stream) -> None:
        self._stream = stream
        self._protocol = WSConnection(ConnectionType.CLIENT)
        self._events: list[Event] = []
        self._sending = trio.Lock()
        self._why_lost = ""
        """Reason for which this side has closed the connection; empty if it has not."""

    async def send(self, text: str) -> None:
        """Send a message.  Raises ConnectionLostError.

        A message that has begun is sent as a whole, also if this task is cancelled meanwhile.
        """
        await self._send(TextMessage(data=text))

    async def receive(self) -> str:
        """Return the next message.  Raises ConnectionLostError at the end of the connection."""
        parts: list[str] = []
        while True:
            event = await self._next()
            match event:
                case TextMessage():
                    parts.append(event.data)
                    if sum(map(len, parts)) > MOST_BYTES:
                        raise ConnectionLostError("the server sent a message that is too long")
                    if event.message_finished:
                        return "".join(parts)
                case BytesMessage():
                    raise ConnectionLostError("the server sent something other than text")
                case Ping():
                    await self._send(event.response())
                case CloseConnection():
                    raise ConnectionLostError(event.reason or "the server has closed it", event.code)

    async def handshake(self, host: str, target: str, headers: list[tuple[bytes, bytes]]) -> None:
        """Open the connection.  Raises RefusedError, ConnectionLostError."""
        await self._send(Request(host=host, target=target, extra_headers=headers))
        body = b""
        status = 0
        while True:
            match await self._next():
                case AcceptConnection():
                    return
                case RejectConnection() as event:
                    status = event.status_code
                    if not event.has_body:
                        raise _refusal(status, b"")
                case RejectData() as event:
                    body += bytes(event.data)
                    if event.body_finished or len(body) > MOST_BYTES:
                        raise _refusal(status, body)
                case CloseConnection():
                    raise ConnectionLostError("the server has closed it")

    async def close(self) -> None:
        """Send a close frame, if the connection still takes one."""
        with suppress(ConnectionLostError):
            await self._send(CloseConnection(code=CloseReason.NORMAL_CLOSURE), CLOSE_S)

    async def _next(self) -> Event:
        while not self._events:
            try:
                data = await self._stream.receive_some(READ_BYTES)
            except (trio.BrokenResourceError, trio.ClosedResourceError, OSError) as error:
                raise ConnectionLostError(self._why_lost or str(error) or "it broke off") from error
            try:
                self._protocol.receive_data(bytes(data) or None)
                self._events += self._protocol.events()
            except ProtocolError as error:
                raise ConnectionLostError("the server does not answer like a kalarena server") from error
            if not data and not self._events:
                raise ConnectionLostError("it broke off")
        return self._events.pop(0)

    async def _send(self, event: Event, limit_s: float | None = None) -> None:
        """Send an event within ``limit_s`` seconds, by default SEND_S.  Raises ConnectionLostError."""
        async with self._sending:
            try:
                data = self._protocol.send(event)
                # A send_all() that is cancelled leaves half a frame, and no SSLStream can be used after it.
                with trio.CancelScope(shield=True), trio.fail_after(SEND_S if limit_s is None else limit_s):
                    await self._stream.send_all(data)
            except trio.TooSlowError as error:
                self._why_lost = "the server took no data for too long"
                await trio.aclose_forcefully(self._stream)  # which the task that receives notices
                raise ConnectionLostError(self._why_lost) from error
            except (trio.BrokenResourceError, trio.ClosedResourceError, ProtocolError, OSError) as error:
                raise ConnectionLostError(self._why_lost or str(error) or "it broke off") from error


def _refusal(status: int, body: bytes) -> RefusedError:
    try:
        found = json.loads(body)["error"]
    except (ValueError, LookupError, TypeError):
        found = f"the server answered with status {status}, and not like a kalarena server"
    return RefusedError(status, str(found))


@asynccontextmanager
async def open_websocket(base: str, target: str, token: str) -> AsyncIterator[WebSocketClient]:
    """Connect to a server, with a token.

    Args:
        base: Address of the server, with ``http`` or ``https``.
        target: Path and query behind the address.
        token: API token.

    Raises:
        RefusedError: The server has refused the connection.
        ConnectionLostError: The server cannot be reached.

    """
    parts = urlsplit(base)
    host, is_secure = parts.hostname or "", parts.scheme == "https"
    port = parts.port or (443 if is_secure else 80)
    stream: trio.abc.Stream | None = None
    try:
        try:
            with trio.fail_after(CONNECT_S):
                tcp = await trio.open_tcp_stream(host, port)
                stream = tcp
                if is_secure:
                    context = ssl.create_default_context()
                    secure = trio.SSLStream(tcp, context, server_hostname=host, https_compatible=True)
                    stream = secure
                    await secure.do_handshake()
                client = WebSocketClient(stream)
                headers = [(b"Authorization", f"Bearer {token}".encode())]
                await client.handshake(parts.netloc, parts.path + target, headers)
        except trio.TooSlowError as error:
            raise ConnectionLostError(f"no answer within {CONNECT_S:g} s") from error
        except trio.BrokenResourceError as error:
            reason = error.__cause__
            why = tls_failure(reason) if isinstance(reason, ssl.SSLError) else "it broke off"
            raise ConnectionLostError(why) from error
        except OSError as error:
            raise ConnectionLostError(error.strerror or str(error)) from error
        yield client
        await client.close()
    finally:
        if stream is not None:
            await trio.aclose_forcefully(stream)
