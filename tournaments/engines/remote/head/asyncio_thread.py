"""Asyncio event loop in a thread of its own, for Trio programs that use an asyncio library."""

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import trio
import uvloop

Value = TypeVar("Value")

CANCEL_LIMIT_S = 5.0
"""Seconds for which a cancelled coroutine is awaited while it cleans up."""


class AsyncioThread:
    """Handle to the asyncio loop; see ``open_asyncio_thread``."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._trio = trio.lowlevel.current_trio_token()

    async def run(self, coroutine: Coroutine[Any, Any, Value]) -> Value:
        """Run a coroutine in the asyncio loop and return its result; it is cancelled with this call."""
        ended = trio.Event()
        tasks: list[asyncio.Task[Value]] = []

        def end(task: asyncio.Task[Value]) -> None:
            if not task.cancelled():
                task.exception()  # retrieved: else asyncio logs an error if this call is cancelled now
            self.call_trio(ended.set)

        def start() -> None:
            task = self._loop.create_task(coroutine)
            tasks.append(task)
            task.add_done_callback(end)

        self._loop.call_soon_threadsafe(start)
        try:
            await ended.wait()
        finally:
            if not ended.is_set():
                self._loop.call_soon_threadsafe(lambda: tasks[0].cancel())
                with trio.move_on_after(CANCEL_LIMIT_S, shield=True):
                    await ended.wait()
        return tasks[0].result()

    def call_trio(self, function: Callable[[], object]) -> None:
        """Schedule a function in Trio's loop, in the order of these calls; called from the asyncio thread."""
        with contextlib.suppress(trio.RunFinishedError):
            self._trio.run_sync_soon(function)


@asynccontextmanager
async def open_asyncio_thread() -> AsyncIterator[AsyncioThread]:
    """Run an asyncio loop in a thread for the duration of the block."""
    loop = uvloop.new_event_loop()
    thread = threading.Thread(target=_run, args=[loop], name="asyncio", daemon=True)
    thread.start()
    try:
        yield AsyncioThread(loop)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        with trio.CancelScope(shield=True):  # the loop ends at once
            await trio.to_thread.run_sync(thread.join)


def _run(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.run_until_complete(loop.shutdown_default_executor())
    finally:
        loop.close()
