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
"""Nobody waits longer for a page; it counts as an error then."""
CSRF = re.compile(r'name="csrf" value="([^"]+)"')
HREF = re.compile(r'href="(/[^"#]*)')
LOST = (trio.BrokenResourceError, trio.ClosedResourceError, h11.RemoteProtocolError, OSError)


@dataclass(frozen=True)
class Answer:
    """What came back."""

    status: int
    """0 if nothing did."""
    location: str
    body: bytes

    @property
    def text(self) -> str:
        """The page."""
        return self.body.decode()

    @property
    def links(self) -> list[str]:
        """Where it leads on this site."""
        return [unescape(found) for found in HREF.findall(self.text)]


@dataclass(frozen=True)
class Event:
    """One of a stream."""

    kind: str
    id: str
    data: str


class Browser:
    """Asks one server, as somebody at an address of his own behind our proxy."""

    def __init__(self, port: int, address: str, token: str | None = None) -> None:
        self._port = port
        self._headers = {"Host": f"127.0.0.1:{port}", "X-Forwarded-For": address}
        if token is not None:
            self._headers["Authorization"] = f"Bearer {token}"
        self._cookies: dict[str, str] = {}
        self._stream: trio.SocketStream | None = None
        self._connection = h11.Connection(h11.CLIENT)

    async def get(self, path: str) -> Answer:
        """A page.  A connection that the server has closed meanwhile is made again, as browsers do."""
        return await self._answered("GET", path, b"", {})

    async def post(self, path: str, body: bytes, content_type: str, accept: str = "*/*") -> Answer:
        """Send something."""
        origin = f"http://{self._headers['Host']}"
        headers = {"Content-Type": content_type, "Origin": origin, "Accept": accept}
        return await self._answered("POST", path, body, headers)

    async def submit(self, page: str, action: str, fields: Mapping[str, str]) -> Answer:
        """Load a page with a form, and send that; return the page's answer if it has no form."""
        answer = await self.get(page)
        if (csrf := CSRF.search(answer.text)) is None:
            return answer
        body = urlencode({"csrf": csrf[1], **fields}).encode()
        return await self.post(action, body, "application/x-www-form-urlencoded")

    def another(self) -> "Browser":
        """A further connection of the same browser."""
        made = Browser(self._port, self._headers["X-Forwarded-For"])
        made._cookies = self._cookies
        return made

    def close(self) -> None:
        """End the connection."""
        if self._stream is not None:
            stream, self._stream = self._stream, None
            stream.socket.close()

    async def follow(self, path: str, told: Callable[[Event], bool]) -> None:
        """Tell the events of a stream, on a connection of its own, until it ends or ``told`` says enough.

        Comments are events without a kind.  Raises one of LOST if it is refused or broken off.
        """
        one = self.another()
        try:
            await one._follow(path, told)
        finally:
            one.close()

    async def _follow(self, path: str, told: Callable[[Event], bool]) -> None:
        await self._send("GET", path, b"", {})
        head = await self._head()
        if head.status_code != 200:
            raise ConnectionRefusedError(f"{path}: {head.status_code}")
        kept = b""
        while type(event := await self._next()) is not h11.EndOfMessage:
            if isinstance(event, h11.Data):
                *whole, kept = (kept + bytes(event.data)).split(b"\n\n")
                for text in whole:
                    if told(_event(text.decode())):
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
