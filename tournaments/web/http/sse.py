"""Server-sent events: responses that last while there are events.

A stream ends when its client disconnects or stops reading, when its viewer's account or permissions change,
when the server shuts down, and after half an hour; browsers then reconnect by themselves.
"""

import json
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Protocol

import trio
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from tournaments.database.base import StoreError
from tournaments.web.http import auth
from tournaments.web.http.errors import Unavailable, WebError
from tournaments.web.http.rate_limits import address_key
from tournaments.web.http.request_context import RequestContext, context_of
from tournaments.web.http.streams import MOST_OF_ACCOUNT, MOST_OF_ADDRESS, Streams, Viewer
from tournaments.web.views import names

HEARTBEAT_S = 15.0
"""Seconds without events after which a comment is sent: proxies close a connection that is silent for a
minute (nginx's default)."""
RECHECK_S = 15.0
"""Seconds between two checks of the permission that a connection was opened with."""
LIFE_S = 1800.0
SEND_TIMEOUT_S = 30.0
"""Seconds without reading after which a client counts as gone."""
ENDING_S = 1.0
"""Seconds for the client to read the end, for which the server waits."""
RETRY_MS = 2_000
"""Milliseconds after which browsers reconnect."""
FULL_RETRY_S = 30
FULL = "Too many pages are being kept up to date. Close some, or load this one again later."


def viewer_of(request: Request) -> Viewer:
    """Return the viewer of a request: the account, or a visitor's address."""
    context = context_of(request)
    may_still_see = partial(_may_still_see, request, context)
    if context.user is not None:
        return Viewer(f"account {context.user.id}", MOST_OF_ACCOUNT, may_still_see=may_still_see)
    return Viewer(f"address {address_key(context.address)}", MOST_OF_ADDRESS, True, may_still_see)


async def _may_still_see(request: Request, context: RequestContext) -> bool:
    """Return True if a new request of the browser would be admitted, with the same account and visibility."""
    try:
        again = await auth.admitted_again(request, context)
    except StoreError:  # a viewer who cannot be identified does not go on reading
        return False
    if again is None:
        return False
    before, now = (names.viewer_of(one.settings, one.user) for one in (context, again))
    return again.user == context.user and now == before


class Emit(Protocol):
    """Sends one event; returns when the connection has taken it."""

    async def __call__(self, data: Any, event: str | None = None, event_id: str | None = None) -> None:
        """Send ``data`` as JSON; ``event`` is its kind, ``event_id`` is sent by a browser that reconnects."""


Produce = Callable[[Emit], Awaitable[None]]
"""Sends events as they come.  Returns at the end of the stream; is cancelled when the stream ends
otherwise."""


def event_bytes(data: Any, event: str | None = None, event_id: str | None = None) -> bytes:
    """Return one encoded event; ``event`` and ``event_id`` are words of ours, without line ends."""
    lines = [f"event: {event}"] if event is not None else []
    lines += [f"id: {event_id}"] if event_id is not None else []
    return "\n".join([*lines, f"data: {json.dumps(data, separators=(',', ':'))}", "", ""]).encode()


class EventStream(Response):
    """A response with the events that ``produce`` sends."""

    media_type = "text/event-stream"

    def __init__(self, streams: Streams, viewer: Viewer, produce: Produce) -> None:
        """Raises Unavailable if there are too many streams; ``__call__`` checks this again for later ones."""
        if not streams.has_room(viewer):
            raise Unavailable(FULL, {"Retry-After": str(FULL_RETRY_S)})
        self.status_code = 200
        self.background = None
        self.init_headers({"Cache-Control": "no-store", "X-Accel-Buffering": "no"})  # nginx: pass on at once
        self._streams = streams
        self._viewer = viewer
        self._produce = produce

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the response by ASGI."""
        if not self._streams.has_room(self._viewer):  # others were opened since the first check
            await self._refuse(send)
            return
        writer = _EventWriter(send)
        events = trio.CancelScope(deadline=trio.current_time() + LIFE_S)
        with self._streams.opened(self._viewer):
            async with trio.open_nursery() as nursery:
                all_tasks = nursery.cancel_scope
                writer.on_lost = all_tasks.cancel
                nursery.start_soon(_end_when_gone, receive, all_tasks)
                nursery.start_soon(_end_when_closing, self._streams.closing, events)
                nursery.start_soon(_end_when_not_allowed, self._viewer, events)
                nursery.start_soon(writer.keep_alive)
                with events:
                    await writer.begin(self.status_code, self.raw_headers)
                    await self._produce(writer.emit)
                await writer.end()
                all_tasks.cancel()

    async def _refuse(self, send: Send) -> None:
        self.headers["Content-Type"] = "text/plain; charset=utf-8"
        self.headers["Retry-After"] = str(FULL_RETRY_S)
        await send({"type": "http.response.start", "status": Unavailable.status, "headers": self.raw_headers})
        await send(_part(FULL.encode(), more=False))


class _EventWriter:
    """The connection, to which two tasks write."""

    def __init__(self, send: Send) -> None:
        self.on_lost: Callable[[], None]
        """Called when the client has stopped reading."""
        self._send = send
        self._lock = trio.Lock()
        self._quiet_since = trio.current_time()
        self._open = False

    async def begin(self, status: int, headers: list[tuple[bytes, bytes]]) -> None:
        async with self._lock:
            await self._send_in_time({"type": "http.response.start", "status": status, "headers": headers})
            self._open = True
            await self._send_in_time(_part(f"retry: {RETRY_MS}\n\n".encode()))

    async def emit(self, data: Any, event: str | None = None, event_id: str | None = None) -> None:
        async with self._lock:
            await self._send_in_time(_part(event_bytes(data, event, event_id)))

    async def end(self) -> None:
        async with self._lock:
            if self._open:
                self._open = False
                with trio.move_on_after(ENDING_S):
                    await self._send(_part(b"", more=False))

    async def keep_alive(self) -> None:
        while True:
            due = self._quiet_since + HEARTBEAT_S
            await trio.sleep_until(due)
            if self._quiet_since + HEARTBEAT_S <= trio.current_time():
                async with self._lock:
                    if self._open:
                        await self._send_in_time(_part(b":\n\n"))

    async def _send_in_time(self, message: dict[str, Any]) -> None:
        with trio.move_on_after(SEND_TIMEOUT_S) as sending:
            await self._send(message)
        if sending.cancelled_caught:
            self.on_lost()
        self._quiet_since = trio.current_time()
        await trio.lowlevel.checkpoint()


def _part(body: bytes, *, more: bool = True) -> dict[str, Any]:
    return {"type": "http.response.body", "body": body, "more_body": more}


async def _end_when_gone(receive: Receive, scope: trio.CancelScope) -> None:
    try:
        while (await receive())["type"] != "http.disconnect":
            pass
    except WebError:  # the client sends too much where no body is expected
        pass
    scope.cancel()


async def _end_when_closing(closing: trio.Event, scope: trio.CancelScope) -> None:
    await closing.wait()
    scope.cancel()


async def _end_when_not_allowed(viewer: Viewer, scope: trio.CancelScope) -> None:
    await until_not_admitted(viewer.may_still_see)
    scope.cancel()


async def until_not_admitted(is_admitted: Callable[[], Awaitable[bool]]) -> None:
    """Check the permission of a connection every ``RECHECK_S``; return when it has ended."""
    while True:
        await trio.sleep(RECHECK_S)
        if not await is_admitted():
            return
