"""Streams of events: what is written, when they end, and that nothing of them is left."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
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
    """Takes nothing."""
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


async def test_a_stream_that_has_nothing_more_to_say_ends(streams: Streams) -> None:
    client = Client()
    await client.take(EventStream(streams, SOMEBODY, one_event))
    start = client.parts[0]
    assert start["status"] == 200
    headers = dict(start["headers"])
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


def end_of_site(streams: Streams, _client: Client) -> None:
    streams.closing.set()


def end_of_client(_streams: Streams, client: Client) -> None:
    client.gone.set()


def client_stuck(_streams: Streams, client: Client) -> None:
    client.stuck = True


@pytest.mark.parametrize(
    ("ending", "has_end", "within_s"),
    [(end_of_site, True, 0), (end_of_client, False, 0), (client_stuck, False, HEARTBEAT_S + SEND_TIMEOUT_S)],
)
async def test_every_stream_ends(
    streams: Streams,
    autojump_clock: trio.abc.Clock,
    ending: Callable[..., Any],
    has_end: bool,
    within_s: float,
) -> None:
    client = Client()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(client.take, EventStream(streams, SOMEBODY, for_ever))
        await trio.testing.wait_all_tasks_blocked()
        assert streams.number == 1
        ending(streams, client)
        began = trio.current_time()
    assert trio.current_time() - began == pytest.approx(within_s)
    assert client.has_end is has_end
    assert streams.number == 0


async def test_a_client_that_takes_nothing_does_not_hold_up_the_end(
    streams: Streams, autojump_clock: trio.abc.Clock
) -> None:
    client = Client()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(client.take, EventStream(streams, SOMEBODY, for_ever))
        await trio.testing.wait_all_tasks_blocked()
        client.stuck = True
        streams.closing.set()
        began = trio.current_time()
    assert trio.current_time() - began < 2
    assert streams.number == 0


async def test_no_stream_goes_on_for_ever(streams: Streams, autojump_clock: trio.abc.Clock) -> None:
    client = Client()
    began = trio.current_time()
    await client.take(EventStream(streams, SOMEBODY, for_ever))
    assert trio.current_time() - began == pytest.approx(LIFE_S)
    assert client.has_end


async def test_a_stream_ends_when_its_viewer_may_no_longer_see_it(
    streams: Streams, autojump_clock: trio.abc.Clock
) -> None:
    answers = iter([True, True, False])

    async def look() -> bool:
        await trio.lowlevel.checkpoint()
        return next(answers)

    async def produce(emit: Emit) -> None:
        while True:  # news do not put it off
            await emit(1)
            await trio.sleep(1)

    client = Client()
    began = trio.current_time()
    await client.take(EventStream(streams, Viewer("account 1", 1, may_still_see=look), produce))
    assert trio.current_time() - began == pytest.approx(3 * RECHECK_S)
    assert client.has_end


async def test_a_client_that_sends_too_much_is_let_go(streams: Streams) -> None:
    client = Client()

    async def receive() -> dict[str, Any]:
        await trio.lowlevel.checkpoint()
        raise TooLarge("too much")

    with trio.fail_after(LIMIT_S):
        await EventStream(streams, SOMEBODY, for_ever)({"type": "http"}, receive, client.send)
    assert streams.number == 0


async def test_a_fault_of_ours_gives_the_place_back(streams: Streams) -> None:
    async def produce(emit: Emit) -> None:
        await emit(1)
        raise ZeroDivisionError

    with pytest.RaisesGroup(ZeroDivisionError):
        await Client().take(EventStream(streams, SOMEBODY, produce))
    assert streams.number == 0


@pytest.mark.parametrize(
    ("one", "other", "are_same"),
    [
        ("192.0.2.1", "192.0.2.2", False),
        ("2001:db8::1", "2001:db8::2", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
    ],
)
def test_a_household_is_one_visitor(one: str, other: str, are_same: bool) -> None:
    """Or a single one of them would have all places: it has 2^64 addresses."""
    assert (viewer_of(visit_from(one)) == viewer_of(visit_from(other))) is are_same


def visit_from(address: str) -> Request:
    context = RequestContext(None, Settings(), HERE, address)  # type: ignore[arg-type]
    return Request({"type": "http", "state": {"context": context}})


async def test_there_are_so_many_streams_and_no_more(streams: Streams) -> None:
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
        EventStream(streams, another, for_ever)  # there is a place again
        streams.closing.set()
    assert streams.number == 0


async def test_who_comes_at_once_with_others_gets_no_place_too_many(streams: Streams) -> None:
    """All of them were made while there was one."""
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


async def test_visitors_leave_half_of_all_streams_to_those_who_are_signed_in() -> None:
    streams = Streams(trio.Event(), 4)
    visitors = [viewer_of(visit_from(f"192.0.2.{number}")) for number in range(3)]
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


async def test_a_cancelled_stream_leaves_nothing(streams: Streams) -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(partial(Client().take, EventStream(streams, SOMEBODY, for_ever)))
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    assert streams.number == 0
