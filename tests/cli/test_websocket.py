"""The WebSocket client of `kalarena connect`, against a server in the same process."""

import errno
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio
from trio.testing import MockClock, memory_stream_pair
from wsproto import ConnectionType, WSConnection
from wsproto.events import (
    AcceptConnection,
    BytesMessage,
    CloseConnection,
    Event,
    Ping,
    Pong,
    RejectConnection,
    RejectData,
    Request,
    TextMessage,
)

from tournaments.cli.remote import websocket
from tournaments.cli.remote.websocket import (
    CONNECT_S,
    MOST_BYTES,
    ConnectionLostError,
    RefusedError,
    WebSocketClient,
    open_websocket,
)

BASE = "http://kalah.invalid"
NOT_OURS = "the server answered with status 409, and not like a kalarena server"


class Server:
    """The other end of a connection."""

    def __init__(self) -> None:
        self.near, self.stream = memory_stream_pair()
        self._protocol = WSConnection(ConnectionType.SERVER)
        self._events: list[Event] = []

    async def receive(self) -> Event:
        """Return the client's next event."""
        while not self._events:
            self._protocol.receive_data(bytes(await self.stream.receive_some()) or None)
            self._events += self._protocol.events()
        return self._events.pop(0)

    async def send(self, *events: Event) -> None:
        for event in events:
            await self.stream.send_all(self._protocol.send(event))

    @asynccontextmanager
    async def answering(self, *events: Event) -> AsyncIterator[None]:
        """Answer the request with these events during the block."""

        async def answer() -> None:
            await self.receive()
            await self.send(*events)

        with trio.fail_after(10):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(answer)
                yield


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Server:
    """The server to which the test's connection is made."""
    server = Server()

    async def connect(_host: str, _port: int) -> trio.abc.Stream:
        return server.near

    monkeypatch.setattr(trio, "open_tcp_stream", connect)
    return server


@asynccontextmanager
async def connected(server: Server) -> AsyncIterator[WebSocketClient]:
    """An open connection to the server."""
    async with server.answering(AcceptConnection()), open_websocket(BASE, "/target", "kal_x") as client:
        yield client


async def failure(base: str = BASE) -> ConnectionLostError:
    """Return how an attempt to connect fails."""
    with trio.fail_after(1000), pytest.raises(ConnectionLostError) as lost:
        async with open_websocket(base, "/target", "kal_x"):
            pass
    return lost.value


async def test_the_request_has_the_path_and_the_token_and_the_end_a_close_frame(server: Server) -> None:
    with trio.fail_after(10):
        async with trio.open_nursery() as nursery:

            async def accept() -> None:
                request = await server.receive()
                assert isinstance(request, Request)
                assert (request.host, request.target) == ("kalah.invalid:8000", "/course/target?name=a")
                assert (b"authorization", b"Bearer kal_x") in request.extra_headers
                await server.send(AcceptConnection())

            nursery.start_soon(accept)
            async with open_websocket(f"{BASE}:8000/course", "/target?name=a", "kal_x"):
                pass
        end = await server.receive()
    assert isinstance(end, CloseConnection)
    assert end.code == 1000


async def test_messages_in_fragments_and_between_pings(server: Server) -> None:
    async with connected(server) as client:
        await server.send(
            TextMessage(data="one ", message_finished=False),
            Ping(payload=b"there?"),
            TextMessage(data="message"),
            TextMessage(data="another"),
        )
        assert [await client.receive(), await client.receive()] == ["one message", "another"]
        await client.send("answer")
        pong, answer = await server.receive(), await server.receive()
    assert isinstance(pong, Pong)
    assert bytes(pong.payload) == b"there?"
    assert isinstance(answer, TextMessage)
    assert answer.data == "answer"


@pytest.mark.parametrize(
    ("event", "words", "code"),
    [
        (BytesMessage(data=b"x"), "the server sent something other than text", None),
        (TextMessage(data="x" * (MOST_BYTES + 1)), "the server sent a message that is too long", None),
        (CloseConnection(code=1001), "the server has closed it", 1001),
        (CloseConnection(code=4001, reason="another one has the name"), "another one has the name", 4001),
    ],
    ids=["bytes", "too long", "closed", "closed with a reason"],
)
async def test_events_that_end_a_connection(
    server: Server, event: Event, words: str, code: int | None
) -> None:
    async with connected(server) as client:
        await server.send(event)
        with pytest.raises(ConnectionLostError) as lost:
            await client.receive()
    assert (str(lost.value), lost.value.code) == (words, code)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (trio.BrokenResourceError(), "it broke off"),
        (OSError(errno.ETIMEDOUT, "Connection timed out"), "Connection timed out"),
    ],
    ids=["broken", "timed out"],
)
async def test_a_stream_that_fails(server: Server, error: Exception, words: str) -> None:
    async def fail() -> None:
        raise error

    async with connected(server) as client:
        server.near.receive_stream.receive_some_hook = fail
        server.near.send_stream.send_all_hook = fail
        with pytest.raises(ConnectionLostError, match=words):
            await client.receive()
        with pytest.raises(ConnectionLostError, match=words):
            await client.send("a line")


class HaltingStream(trio.abc.SendStream):
    """A stream that takes the first half of the data, and the second one when ``released`` is set."""

    def __init__(self, stream: trio.abc.SendStream) -> None:
        self.begun, self.released = trio.Event(), trio.Event()
        self._stream = stream

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        half = len(data) // 2
        await self._stream.send_all(data[:half])
        self.begun.set()
        await self.released.wait()
        await self._stream.send_all(data[half:])

    async def wait_send_all_might_not_block(self) -> None:
        raise NotImplementedError

    async def aclose(self) -> None:
        await self._stream.aclose()


async def test_a_message_that_has_begun_is_sent_as_a_whole(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A game may end, and cancel the task that sends the bot's lines, while one is being sent."""
    async with connected(server) as client:
        stream = HaltingStream(server.near.send_stream)
        monkeypatch.setattr(server.near, "send_stream", stream)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(client.send, "the last line")
            await stream.begun.wait()
            nursery.cancel_scope.cancel()
            stream.released.set()
        await client.send("alive")
        received = [await server.receive(), await server.receive()]
    assert [event.data for event in received if isinstance(event, TextMessage)] == ["the last line", "alive"]


async def test_a_server_that_does_not_read_ends_the_connection(
    server: Server, monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock
) -> None:
    monkeypatch.setattr(websocket, "SEND_S", 5.0)
    async with connected(server) as client, trio.open_nursery() as nursery:
        monkeypatch.setattr(server.near, "send_stream", HaltingStream(server.near.send_stream))

        async def receive() -> None:
            with pytest.raises(ConnectionLostError, match="the server took no data for too long"):
                await client.receive()

        nursery.start_soon(receive)
        for _ in range(2):
            with pytest.raises(ConnectionLostError, match="the server took no data for too long"):
                await client.send("a line")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b'{"error": "The name is taken."}', "The name is taken."),
        (b"<html>", NOT_OURS),
        (b"[]", NOT_OURS),
        (b"{}", NOT_OURS),
        (b"", NOT_OURS),
    ],
)
async def test_a_refusal(server: Server, body: bytes, message: str) -> None:
    size = (b"content-length", b"%d" % len(body))
    answer = (
        RejectConnection(status_code=409, headers=[size], has_body=True),
        RejectData(data=body[:9], body_finished=False),
        RejectData(data=body[9:]),
    )
    async with server.answering(*answer):
        with pytest.raises(RefusedError) as refused:
            async with open_websocket(BASE, "/target", "kal_x"):
                pass
    assert (str(refused.value), refused.value.status) == (message, 409)


async def test_an_intermediate_answer_is_a_refusal(server: Server) -> None:
    """A kalarena server sends none, so there is another one at this address."""
    await server.stream.send_all(b"HTTP/1.1 103 Early Hints\r\n\r\n")
    with pytest.raises(RefusedError, match="status 103, and not like a kalarena server"):
        async with open_websocket(BASE, "/target", "kal_x"):
            pass


@pytest.mark.parametrize("answer", [b"SSH-2.0-OpenSSH_9.2\r\n\r\n", b""], ids=["SSH", "nothing"])
async def test_an_answer_that_is_not_http(server: Server, answer: bytes) -> None:
    await server.stream.send_all(answer)
    await server.stream.send_eof()
    assert str(await failure()) == "the server does not answer like a kalarena server"


@pytest.mark.usefixtures("server")
@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_a_server_that_does_not_answer(scheme: str, autojump_clock: MockClock) -> None:
    started_at = autojump_clock.current_time()
    assert str(await failure(f"{scheme}://kalah.invalid")) == f"no answer within {CONNECT_S:g} s"
    assert autojump_clock.current_time() - started_at >= CONNECT_S


async def test_an_answer_that_is_not_tls(server: Server) -> None:
    await server.stream.send_all(b"HTTP/1.1 400 Bad Request\r\n\r\n")
    lost = await failure("https://kalah.invalid")
    assert str(lost) == "no TLS connection could be made (WRONG_VERSION_NUMBER)"


async def test_a_connection_that_breaks_off_before_tls(server: Server) -> None:
    await server.stream.aclose()
    assert str(await failure("https://kalah.invalid")) == "it broke off"


async def test_a_host_that_is_not_found(monkeypatch: pytest.MonkeyPatch) -> None:
    async def connect(_host: str, _port: int) -> trio.abc.Stream:
        raise OSError(errno.ECONNREFUSED, "Connection refused")

    monkeypatch.setattr(trio, "open_tcp_stream", connect)
    assert str(await failure()) == "Connection refused"
