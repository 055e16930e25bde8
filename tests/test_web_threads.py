"""Pages take few threads, and others have the rest."""

from threading import Event

import trio
from trio.testing import wait_all_tasks_blocked

from tournaments.web.http.routing import MOST_THREADS, in_thread


async def test_so_many_at_a_time() -> None:
    begun, go_on = 0, Event()

    def wait() -> None:
        nonlocal begun
        begun += 1
        go_on.wait(30)

    async def beside() -> bool:
        return await trio.to_thread.run_sync(lambda: True)

    with trio.fail_after(30):
        async with trio.open_nursery() as nursery:
            for _ in range(MOST_THREADS + 3):
                nursery.start_soon(in_thread, wait)
            while begun < MOST_THREADS:
                await beside()
            await wait_all_tasks_blocked()
            assert await beside()
            assert begun == MOST_THREADS
            go_on.set()
    assert begun == MOST_THREADS + 3


async def test_what_it_says() -> None:
    assert await in_thread(divmod, 7, 2) == (3, 1)
    assert await in_thread(int, "ff", base=16) == 255
