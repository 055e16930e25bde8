"""A browser without a screen: one connection that is kept, cookies, forms, streams of events."""

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from html import unescape
from http.cookies import SimpleCookie
from urllib.parse import urlencode

import h11
import trio

READ_BYTES = 1 << 16
ANSWER_S = 60.0
"""Maximum wait for a page in seconds; a longer one is an error."""
CSRF = re.compile(r'name="csrf" value="([^"]+)"')
HREF = re.compile(r'href="(/[^"#]*)')
LOST = (trio.BrokenResourceError, trio.ClosedResourceError, h11.RemoteProtocolError, OSError)


@dataclass(frozen=True)
class Answer:
    """Response of the server."""

    status: int
    """HTTP status; 0 without a response."""
    location: str
    body: bytes

    @property
    def text(self) -> str:
        """The body as text."""
        return self.body.decode()

    @property
    def links(self) -> list[str]:
        """Paths of the page's links within the site."""
        return [unescape(found) for found in HREF.findall(self.text)]


@dataclass(frozen=True)
class Event:
    """Event of a stream."""

    kind: str
    id: str
    data: str


class Browser:
    """Client of one server, with an address of its own behind a proxy."""

    def __init__(self, port: int, address: str, token: str | None = None) -> None:
        self._port = port
        self._headers = {"Host": f"127.0.0.1:{port}", "X-Forwarded-For": address}
        if token is not None:
            self._headers["Authorization"] = f"Bearer {token}"
        self._cookies: dict[str, str] = {}
        self._stream: trio.SocketStream | None = None
        self._connection = h11.Connection(h11.CLIENT)

    async def get(self, path: str) -> Answer:
        """Load a page.  A connection that the server has closed meanwhile is opened again, as in browsers."""
        return await self._answered("GET", path, b"", {})

    async def post(self, path: str, body: bytes, content_type: str, accept: str = "*/*") -> Answer:
        """Send a POST request."""
        origin = f"http://{self._headers['Host']}"
        headers = {"Content-Type": content_type, "Origin": origin, "Accept": accept}
        return await self._answered("POST", path, body, headers)

    async def submit(self, page: str, action: str, fields: Mapping[str, str]) -> Answer:
        """Load a page and submit its form; return the page's response if it has no form."""
        answer = await self.get(page)
        if (csrf := CSRF.search(answer.text)) is None:
            return answer
        body = urlencode({"csrf": csrf[1], **fields}).encode()
        return await self.post(action, body, "application/x-www-form-urlencoded")

    def another(self) -> "Browser":
        """Return another connection of the same browser, with its cookies."""
        made = Browser(self._port, self._headers["X-Forwarded-For"])
        made._cookies = self._cookies
        return made

    def close(self) -> None:
        """End the connection."""
        if self._stream is not None:
            stream, self._stream = self._stream, None
            stream.socket.close()

    async def follow(self, path: str, on_event: Callable[[Event], bool]) -> None:
        """Call ``on_event`` with the events of a stream, until the stream ends or the call returns True.

        The stream has a connection of its own.  Comments are events without a kind.  Raises one of LOST if
        the stream is refused or broken off.
        """
        one = self.another()
        try:
            await one._follow(path, on_event)
        finally:
            one.close()

    async def _follow(self, path: str, on_event: Callable[[Event], bool]) -> None:
        await self._send("GET", path, b"", {})
        head = await self._head()
        if head.status_code != 200:
            raise ConnectionRefusedError(f"{path}: {head.status_code}")
        kept = b""
        while type(event := await self._next()) is not h11.EndOfMessage:
            if isinstance(event, h11.Data):
                *whole, kept = (kept + bytes(event.data)).split(b"\n\n")
                for text in whole:
                    if on_event(_event(text.decode())):
                        return

    async def _answered(self, method: str, path: str, body: bytes, headers: Mapping[str, str]) -> Answer:
        with trio.move_on_after(ANSWER_S), suppress(*LOST):
            return await self._asked_twice(method, path, body, headers)
        self.close()
        return Answer(0, "", b"")

    async def _asked_twice(self, method: str, path: str, body: bytes, headers: Mapping[str, str]) -> Answer:
        may_be_closed = self._stream is not None and method == "GET"
        try:
            return await self._ask(method, path, body, headers)
        except LOST:
            self.close()
            if not may_be_closed:
                raise
        return await self._ask(method, path, body, headers)

    async def _ask(self, method: str, path: str, body: bytes, headers: Mapping[str, str]) -> Answer:
        await self._send(method, path, body, headers)
        head = await self._head()
        parts = []
        while type(event := await self._next()) is not h11.EndOfMessage:
            if isinstance(event, h11.Data):
                parts.append(bytes(event.data))
        if h11.MUST_CLOSE in (self._connection.our_state, self._connection.their_state):
            self.close()
        else:
            self._connection.start_next_cycle()
        location = next((value.decode() for name, value in head.headers if name == b"location"), "")
        return Answer(head.status_code, location, b"".join(parts))

    async def _send(self, method: str, path: str, body: bytes, headers: Mapping[str, str]) -> None:
        if self._stream is not None and self._stream.socket.is_readable():
            self.close()  # the server has closed an idle connection; browsers notice that, too
        if self._stream is None:
            self._stream = await trio.open_tcp_stream("127.0.0.1", self._port)
            self._connection = h11.Connection(h11.CLIENT)
        sent = {**self._headers, **headers}
        if self._cookies:
            sent["Cookie"] = "; ".join(f"{name}={value}" for name, value in self._cookies.items())
        if method == "POST":
            sent["Content-Length"] = str(len(body))
        request = h11.Request(method=method, target=path, headers=list(sent.items()))
        parts = (request, h11.Data(data=body), h11.EndOfMessage()) if body else (request, h11.EndOfMessage())
        await self._stream.send_all(b"".join(self._connection.send(part) or b"" for part in parts))

    async def _head(self) -> h11.Response:
        while not isinstance(event := await self._next(), h11.Response):
            if isinstance(event, h11.ConnectionClosed):
                raise ConnectionError("it was closed without an answer")
        for name, value in event.headers:
            if name == b"set-cookie":
                for cookie in SimpleCookie(value.decode()).values():
                    self._cookies[cookie.key] = cookie.coded_value
                    if cookie["max-age"] == "0":
                        del self._cookies[cookie.key]
        return event

    async def _next(self) -> h11.Event:
        assert self._stream is not None
        while (event := self._connection.next_event()) is h11.NEED_DATA:
            self._connection.receive_data(await self._stream.receive_some(READ_BYTES))
        assert not isinstance(event, type)
        return event


def _event(text: str) -> Event:
    fields = dict(line.partition(": ")[::2] for line in text.split("\n"))
    return Event(fields.get("event", ""), fields.get("id", ""), fields.get("data", ""))
