"""Streams of events: their format, their end, and their limits."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
import trio
import trio.testing
from starlette.requests import Request
from starlette.responses import Response

from tournaments.course.settings import Settings
from tournaments.web.http.errors import TooLarge, Unavailable
from tournaments.web.http.request_context import RequestContext
from tournaments.web.http.routing import Access, Route
from tournaments.web.http.sse import (
    ENDING_S,
    FULL_RETRY_S,
    HEARTBEAT_S,
    LIFE_S,
    RECHECK_S,
    SEND_TIMEOUT_S,
    Emit,
    EventStream,
    event_bytes,
    viewer_of,
)
from tournaments.web.http.streams import Streams, Viewer

SOMEBODY = Viewer("account 1", 2)


async def nothing(_request: Request) -> Response:
    return Response()


HERE = Route("GET", "/events", nothing, Access.PUBLIC, "events")
LIMIT_S = 10_000
"""Virtual seconds."""


@dataclass
class Client:
    """One end of a connection."""

    stuck: bool = False
    """True if it reads nothing."""
    gone: trio.Event = field(default_factory=trio.Event)
    parts: list[dict[str, Any]] = field(default_factory=list)

    async def receive(self) -> dict[str, Any]:
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Any) -> None:
        if self.stuck:
            await trio.sleep_forever()
        self.parts.append(message)

    async def take(self, stream: EventStream) -> None:
        with trio.fail_after(LIMIT_S):
            await stream({"type": "http"}, self.receive, self.send)

    @property
    def text(self) -> str:
        return b"".join(part.get("body", b"") for part in self.parts).decode()

    @property
    def has_end(self) -> bool:
        return self.parts[-1].get("more_body") is False


@pytest.fixture
def streams() -> Streams:
    return Streams(trio.Event(), 3)


async def one_event(emit: Emit) -> None:
    await emit({"a": "\n"}, event="state", event_id="3")


async def for_ever(emit: Emit) -> None:
    await emit(1)
    await trio.sleep_forever()


def test_an_event_is_written_as_the_standard_says() -> None:
    assert event_bytes({"a": "x\ny"}, "state", "7") == b'event: state\nid: 7\ndata: {"a":"x\\ny"}\n\n'
    assert event_bytes(None) == b"data: null\n\n"
    assert b"\r" not in event_bytes("\r\u2028")


async def test_a_stream_ends_when_all_events_are_sent(streams: Streams) -> None:
    client = Client()
    await client.take(EventStream(streams, SOMEBODY, one_event))
    assert client.parts[0]["status"] == 200
    headers = dict(client.parts[0]["headers"])
    assert headers[b"content-type"].startswith(b"text/event-stream")
    assert b"content-length" not in headers
    assert client.text == 'retry: 2000\n\nevent: state\nid: 3\ndata: {"a":"\\n"}\n\n'
    assert client.has_end
    assert streams.number == 0


async def test_silence_is_broken_by_comments(streams: Streams, autojump_clock: trio.abc.Clock) -> None:
    client = Client()

    async def produce(emit: Emit) -> None:
        await trio.sleep(HEARTBEAT_S - 1)
        await emit(1)
        await trio.sleep(2.5 * HEARTBEAT_S)

    await client.take(EventStream(streams, SOMEBODY, produce))
    assert client.text == "retry: 2000\n\ndata: 1\n\n:\n\n:\n\n"


def stick_and_close(streams: Streams, client: Client) -> None:
    client.stuck = True
    streams.closing.set()


ENDINGS: dict[str, tuple[Callable[[Streams, Client], object], bool, float]] = {
    "the site closes": (lambda streams, _client: streams.closing.set(), True, 0),
    "the client goes": (lambda _streams, client: client.gone.set(), False, 0),
    "the client reads nothing": (
        lambda _streams, client: setattr(client, "stuck", True),
        False,
        HEARTBEAT_S + SEND_TIMEOUT_S,
    ),
    "the site closes and the client reads nothing": (stick_and_close, False, ENDING_S),
    "nothing": (lambda _streams, _client: None, True, LIFE_S),
}
"""Each with whether the client receives the end, and after how many seconds."""


@pytest.mark.parametrize("name", ENDINGS)
async def test_every_stream_ends(streams: Streams, autojump_clock: trio.abc.Clock, name: str) -> None:
    act, has_end, within_s = ENDINGS[name]
    client, began = Client(), trio.current_time()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(client.take, EventStream(streams, SOMEBODY, for_ever))
        await trio.testing.wait_all_tasks_blocked()
        assert streams.number == 1
        act(streams, client)
    assert trio.current_time() - began == pytest.approx(within_s)
    assert client.has_end is has_end
    assert streams.number == 0


async def test_a_stream_ends_when_its_viewer_may_no_longer_see_it(
    streams: Streams, autojump_clock: trio.abc.Clock
) -> None:
    answers = iter([True, True, False])

    async def check() -> bool:
        await trio.lowlevel.checkpoint()
        return next(answers)

    async def produce(emit: Emit) -> None:
        while True:  # events do not postpone the check
            await emit(1)
            await trio.sleep(1)

    client = Client()
    began = trio.current_time()
    await client.take(EventStream(streams, Viewer("account 1", 1, may_still_see=check), produce))
    assert trio.current_time() - began == pytest.approx(3 * RECHECK_S)
    assert client.has_end


async def test_a_stream_ends_when_its_client_sends_too_much(streams: Streams) -> None:
    async def receive() -> dict[str, Any]:
        await trio.lowlevel.checkpoint()
        raise TooLarge("too much")

    with trio.fail_after(LIMIT_S):
        await EventStream(streams, SOMEBODY, for_ever)({"type": "http"}, receive, Client().send)
    assert streams.number == 0


async def test_a_failed_or_cancelled_stream_is_not_counted(streams: Streams) -> None:
    async def produce(emit: Emit) -> None:
        await emit(1)
        raise ZeroDivisionError

    with pytest.RaisesGroup(ZeroDivisionError):
        await Client().take(EventStream(streams, SOMEBODY, produce))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(Client().take, EventStream(streams, SOMEBODY, for_ever))
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    assert streams.number == 0


# Limits.


@pytest.mark.parametrize(
    ("one", "other", "are_same"),
    [
        ("192.0.2.1", "192.0.2.2", False),
        ("2001:db8::1", "2001:db8::2", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
    ],
)
def test_a_household_is_one_visitor(one: str, other: str, are_same: bool) -> None:
    """A household has 2^64 addresses of IPv6, which are one visitor."""
    assert (viewer_of(request_from(one)) == viewer_of(request_from(other))) is are_same


def request_from(address: str) -> Request:
    context = RequestContext(None, Settings(), HERE, address)  # type: ignore[arg-type]
    return Request({"type": "http", "state": {"context": context}})


async def test_the_number_of_streams_is_limited(streams: Streams) -> None:
    clients = [Client(), Client(), Client()]
    another = Viewer("address 192.0.2.1", math.inf)  # type: ignore[arg-type]
    async with trio.open_nursery() as nursery:
        for client in clients[:2]:
            nursery.start_soon(client.take, EventStream(streams, SOMEBODY, for_ever))
        await trio.testing.wait_all_tasks_blocked()
        with pytest.raises(Unavailable, match="Too many") as refused:
            EventStream(streams, SOMEBODY, for_ever)
        assert refused.value.headers == {"Retry-After": str(FULL_RETRY_S)}
        nursery.start_soon(clients[2].take, EventStream(streams, another, for_ever))
        await trio.testing.wait_all_tasks_blocked()
        with pytest.raises(Unavailable):
            EventStream(streams, another, for_ever)
        clients[0].gone.set()
        await trio.testing.wait_all_tasks_blocked()
        EventStream(streams, another, for_ever)  # one stream has ended
        streams.closing.set()
    assert streams.number == 0


async def test_streams_that_begin_at_once_are_limited_too(streams: Streams) -> None:
    """The responses are made before the first of them is sent."""
    clients = [Client(), Client(), Client()]
    made = [EventStream(streams, SOMEBODY, for_ever) for _ in clients]
    async with trio.open_nursery() as nursery:
        for client, stream in zip(clients, made, strict=True):
            nursery.start_soon(client.take, stream)
        await trio.testing.wait_all_tasks_blocked()
        assert streams.number == SOMEBODY.most
        streams.closing.set()
    statuses = sorted(client.parts[0]["status"] for client in clients)
    assert statuses == [200, 200, 503]
    (refused,) = (client for client in clients if client.parts[0]["status"] == 503)
    assert dict(refused.parts[0]["headers"])[b"retry-after"] == b"%d" % FULL_RETRY_S
    assert refused.text.startswith("Too many pages")
    assert refused.has_end


async def test_visitors_have_half_of_all_streams() -> None:
    streams = Streams(trio.Event(), 4)
    visitors = [viewer_of(request_from(f"192.0.2.{number}")) for number in range(3)]
    async with trio.open_nursery() as nursery:
        for viewer in visitors[:2]:
            nursery.start_soon(Client().take, EventStream(streams, viewer, for_ever))
        await trio.testing.wait_all_tasks_blocked()
        assert not streams.has_room(visitors[2])
        for _ in range(2):
            nursery.start_soon(Client().take, EventStream(streams, SOMEBODY, for_ever))
        await trio.testing.wait_all_tasks_blocked()
        assert streams.number == 4
        streams.closing.set()
    assert streams.has_room(visitors[2])
