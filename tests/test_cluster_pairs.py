"""Which host the games of a pair are played on, whatever becomes of the game that chooses it."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from tournaments.engines.remote.pair_hosts import HostWorkers, PairHosts


class Games:
    """Games that are asked for, and go on until they are told to end."""

    def __init__(self, hosts: PairHosts) -> None:
        self._hosts = hosts
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self.seen: dict[str, str | None] = {}
        """Name of a game -> the host that it was told; missing while it waits."""

    async def ask(self, name: str, pair: str = "pair") -> None:
        async def play() -> None:
            async with self._hosts.host(pair) as host:
                self.seen[name] = host
                await asyncio.Event().wait()

        self._tasks[name] = asyncio.create_task(play())
        await settled()

    async def end(self, name: str) -> None:
        self._tasks[name].cancel()
        await settled()


async def settled() -> None:
    """Let everything happen that can."""
    for _ in range(10):
        await asyncio.sleep(0)


def played(test: Callable[[Games, PairHosts, set[str]], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    def run() -> None:
        async def main() -> None:
            there = {"a", "b"}
            hosts = PairHosts(there.__contains__)
            await test(Games(hosts), hosts, there)

        asyncio.run(main())

    return run


@played
async def test_a_second_game_waits_until_the_first_has_begun(
    games: Games, hosts: PairHosts, there: set[str]
) -> None:
    await games.ask("first")
    await games.ask("second")
    await games.ask("of another pair", "other")
    assert games.seen == {"first": None, "of another pair": None}
    hosts.begins("pair", "a")
    await settled()
    assert games.seen["second"] == "a"
    hosts.begins("pair", "b")  # the second: it was told where to go
    await games.end("first")
    await games.ask("again")
    assert games.seen["again"] == "a"


@played
async def test_a_game_that_ends_before_it_begins_leaves_the_choice_to_one_other(
    games: Games, hosts: PairHosts, there: set[str]
) -> None:
    for name in ("first", "second", "third"):
        await games.ask(name)
    await games.end("first")
    assert games.seen == {"first": None, "second": None}
    hosts.begins("pair", "b")
    await settled()
    assert games.seen["third"] == "b"


@played
async def test_a_host_that_is_gone_is_chosen_anew_once(
    games: Games, hosts: PairHosts, there: set[str]
) -> None:
    await games.ask("first")
    hosts.begins("pair", "a")
    there.remove("a")
    await games.ask("second")
    await games.ask("third")
    await games.end("first")  # which is no longer the one that chooses
    assert games.seen == {"first": None, "second": None}
    hosts.begins("pair", "b")
    await settled()
    assert games.seen["third"] == "b"


@played
async def test_a_host_that_could_not_play_is_chosen_by_nobody(
    games: Games, hosts: PairHosts, there: set[str]
) -> None:
    await games.ask("first")
    hosts.begins("pair", "a")
    hosts.fails("pair", "b")  # of an earlier time
    await games.ask("second")
    assert games.seen["second"] == "a"
    hosts.fails("pair", "a")
    await games.end("first")
    await games.ask("first again")
    assert games.seen["first again"] is None
    hosts.begins("pair", "b")
    await games.ask("third")
    assert games.seen["third"] == "b"


@played
async def test_games_of_no_pair_wait_for_nobody(games: Games, hosts: PairHosts, there: set[str]) -> None:
    await games.ask("one", "")
    await games.ask("other", "")
    hosts.begins("", "a")
    await games.ask("third", "")
    assert games.seen == {"one": None, "other": None, "third": None}


@pytest.mark.parametrize("workers", [["tls://1:1"], ["tls://1:1", "tls://1:2"]])
def test_a_host_is_there_as_long_as_one_of_its_workers(workers: list[str]) -> None:
    known = HostWorkers()
    for address in workers:
        known.add(address, "lab-1", 4)
        known.add(address, "lab-1", 4)  # told by the worker, and by the scheduler
    assert known.of("lab-1") == set(workers)
    assert known.slots("lab-1") == 4 * len(workers)
    for address in workers:
        assert address in known
        assert known.of("lab-1")
        known.remove(address)
        known.remove(address)
    assert known.of("lab-1") == frozenset()
    assert known.slots("lab-1") == 0


def test_what_is_no_longer_there_is_forgotten() -> None:
    known = HostWorkers()
    known.add("tls://1:1", "lab-1", 4)
    known.replace([("tls://2:1", "lab-2", 2)])
    assert known.of("lab-1") == frozenset()
    assert known.of("lab-2") == {"tls://2:1"}
