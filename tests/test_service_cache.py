"""The single-flight cache: one computation for all tasks that wait for it."""

import pytest
import trio

from tournaments.server.cache import SingleFlightCache


class Source:
    """Computes values, and counts how often."""

    def __init__(self) -> None:
        self.cache: SingleFlightCache[str, int] = SingleFlightCache(2)
        self.computed: list[str] = []
        self.fails = False

    async def compute(self, key: str) -> int:
        self.computed.append(key)
        number = len(self.computed)
        await trio.lowlevel.checkpoint()
        if self.fails:
            raise ValueError(key)
        return number

    async def get(self, key: str, least: int = 0) -> int:
        return await self.cache.get(key, lambda: self.compute(key), lambda value: value >= least)


async def test_one_computation_for_all_who_wait() -> None:
    source = Source()
    found: set[tuple[str, int]] = set()

    async def get(key: str) -> None:
        found.add((key, await source.get(key)))

    async with trio.open_nursery() as nursery:
        for key in "aaabab":
            nursery.start_soon(get, key)
    assert sorted(source.computed) == ["a", "b"]
    assert found == set(zip(source.computed, (1, 2), strict=True))


async def test_the_least_recently_used_value_is_dropped() -> None:
    source = Source()
    for key in "aabacab":
        await source.get(key)
    assert source.computed == ["a", "b", "c", "b"]


async def test_a_value_that_is_not_fresh_is_computed_again() -> None:
    source = Source()
    assert await source.get("a") == 1
    assert await source.get("a", least=2) == 2
    assert await source.get("a", least=2) == 2
    assert source.cache.peek("a") == 2


async def test_a_value_that_is_stale_at_once_is_not_kept() -> None:
    source = Source()
    assert await source.get("a", least=9) == 1
    assert source.cache.peek("a") is None


async def test_a_failure_is_raised_and_leaves_the_old_value() -> None:
    source = Source()
    assert await source.get("a") == 1
    source.fails = True
    with pytest.raises(ValueError, match="a"):
        await source.get("a", least=2)
    assert await source.get("a") == 1
    source.fails = False
    assert await source.get("a", least=3) == 3


async def test_who_waits_for_a_failure_tries_again() -> None:
    source = Source()
    source.fails = True
    failures = 0

    async def get() -> None:
        nonlocal failures
        try:
            await source.get("a")
        except ValueError:
            failures += 1

    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(get)
    assert (failures, len(source.computed)) == (3, 3)


async def test_a_task_that_is_cancelled_does_not_hold_up_the_others() -> None:
    source = Source()
    with trio.CancelScope() as scope:
        scope.cancel()
        await source.get("a")
    with trio.fail_after(10):
        assert await source.get("a") == 1
    assert not source.cache._locks
