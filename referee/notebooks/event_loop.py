"""Blocking calls of async functions, also in a thread whose event loop is running, as a notebook's is."""

import contextlib
import sys
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import trio

T = TypeVar("T")


def run_blocking(main: Callable[[], Awaitable[T]]) -> T:
    """Run an async function with Trio, and return its result.

    If an event loop is running in this thread, the function runs in a thread of its own.  That loop is
    blocked in the meantime, as by any call that takes long.  An interrupt (Ctrl-C) cancels the function, and
    is raised when the function has ended.
    """
    if not _is_loop_running():
        return trio.run(main)
    scope = trio.CancelScope()
    tokens: list[trio.lowlevel.TrioToken] = []
    begun = threading.Event()

    async def cancellable() -> T:
        tokens.append(trio.lowlevel.current_trio_token())
        begun.set()
        with scope:
            return await main()
        raise KeyboardInterrupt  # the caller raises its own

    with ThreadPoolExecutor(1, "kalarena") as pool:
        future = pool.submit(trio.run, cancellable)
        future.add_done_callback(lambda _: begun.set())
        try:
            return future.result()
        except BaseException:
            begun.wait()
            for token in tokens:
                with contextlib.suppress(trio.RunFinishedError):
                    token.run_sync_soon(scope.cancel)
            raise


def _is_loop_running() -> bool:
    """Return True if an event loop of asyncio or of Trio is running in this thread."""
    asyncio = sys.modules.get("asyncio")  # importing it takes longer than a game
    if asyncio is not None and asyncio._get_running_loop() is not None:
        return True
    return trio.lowlevel.in_trio_run()
