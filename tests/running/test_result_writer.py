"""The result writer stores simultaneous games together, and reports each when it is on the disk."""

import threading
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest
import trio
import trio.testing
import trio_parallel

from tests.engines.games import becomes
from tests.support.builders import make_record
from tournaments.results.game_files import GAMES
from tournaments.results.game_summary import PackedGame
from tournaments.results.store import Store, StoreError
from tournaments.running import result_writer
from tournaments.running.result_writer import ResultWriter
from tournaments.schedule.pairing import Pairing

LIMIT_S = 180
"""Time limit of operations that take milliseconds, and the start of a process."""


class SlowStore(Store):
    """A store whose transactions wait for ``let_go``."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.let_go = threading.Event()
        self.begun: list[list[str]] = []
        """The keys of each transaction."""
        self.trouble: str | None = None

    def add_all(self, games: Sequence[PackedGame]) -> set[str]:
        self.begun.append([game.summary.key for game in games])
        assert self.let_go.wait(LIMIT_S)
        if self.trouble is not None:
            raise StoreError(self.trouble, is_ours=True)
        return super().add_all(games)


class Kept:
    """A result writer, and the keys that it reports."""

    def __init__(self, store: SlowStore, directory: Path, processes: trio_parallel.WorkerContext) -> None:
        self.store = store
        self.stored: list[str] = []
        self.processes = processes
        self.writer = ResultWriter(store, directory, self.on_stored, processes)

    def on_stored(self, pairing: Pairing, game: PackedGame) -> None:
        assert pairing.key == game.summary.key
        assert pairing.key in self.store.played()  # by another connection than the one that wrote it
        self.stored.append(pairing.key)

    async def write(self, key: str) -> None:
        await self.writer.write(Pairing(key, 1, 0, 1), PackedGame.of(make_record(key), 1))

    async def begin(self, nursery: trio.Nursery, *keys: str) -> None:
        """Write games in this order; each has reached the writer when this method returns."""
        for key in keys:
            nursery.start_soon(self.write, key)
            await trio.testing.wait_all_tasks_blocked()


@pytest.fixture
async def kept(tmp_path: Path) -> AsyncIterator[Kept]:
    store = SlowStore(tmp_path / "results.db")
    with store:
        async with trio_parallel.open_worker_context() as processes:
            yield Kept(store, tmp_path, processes)


async def test_games_that_end_during_a_transaction_share_the_next_one(kept: Kept, tmp_path: Path) -> None:
    keys = ["a", "d", "c", "b"]
    with trio.fail_after(LIMIT_S):
        async with trio.open_nursery() as nursery:
            await kept.begin(nursery, *keys)
            await becomes(lambda: len(kept.store.begun) == 1, LIMIT_S)
            assert kept.stored == []
            kept.store.let_go.set()
    assert kept.store.begun == [["a"], ["d", "c", "b"]]
    assert kept.stored == keys
    assert {path.name for path in (tmp_path / GAMES).iterdir()} == set(keys)


@pytest.fixture
def moment(monkeypatch: pytest.MonkeyPatch) -> trio.Event:
    """The time of the next transaction, as an event; the first transaction does not wait."""
    comes = trio.Event()

    async def sleep_until(at: float) -> None:
        if at > 0:
            await comes.wait()

    monkeypatch.setattr(trio, "sleep_until", sleep_until)
    return comes


async def test_games_that_end_soon_after_others_share_a_transaction(kept: Kept, moment: trio.Event) -> None:
    """They are stored even when they are cancelled before it begins.  A stored game is not reported again."""
    kept.store.let_go.set()
    with trio.fail_after(LIMIT_S):
        await kept.write("a")
        assert kept.stored == ["a"]  # it waited for no other game
        async with trio.open_nursery() as nursery:
            await kept.begin(nursery, "b", "c", "a", "d")
            assert kept.store.begun == [["a"]]
            nursery.cancel_scope.cancel()
            moment.set()
    assert kept.store.begun == [["a"], ["b", "c", "a", "d"]]
    assert kept.stored == ["a", "b", "c", "d"]
    assert kept.store.played() == set("abcd")


async def test_each_writer_gets_the_error_of_its_transaction(kept: Kept, tmp_path: Path) -> None:
    kept.store.trouble = "the disk is full"
    failed: list[str] = []

    async def keep(key: str) -> None:
        with pytest.raises(StoreError, match="the disk is full") as caught:
            await kept.write(key)
        assert caught.value.is_ours
        failed.append(key)

    with trio.fail_after(LIMIT_S):
        async with trio.open_nursery() as nursery:
            for key in "abcd":
                nursery.start_soon(keep, key)
            await becomes(lambda: len(kept.store.begun) == 1, LIMIT_S)
            kept.store.let_go.set()
    assert sorted(failed) == ["a", "b", "c", "d"]
    assert (kept.stored, kept.store.played()) == ([], set())
    assert not (tmp_path / GAMES).exists()
    kept.store.trouble = None
    await kept.write("a")
    assert kept.stored == ["a"]


async def test_a_game_in_a_transaction_is_stored_and_reported_even_when_cancelled(
    kept: Kept, tmp_path: Path
) -> None:
    with trio.fail_after(LIMIT_S):
        async with trio.open_nursery() as nursery:
            await kept.begin(nursery, "a", "b", "c")
            await becomes(lambda: len(kept.store.begun) == 1, LIMIT_S)
            nursery.cancel_scope.cancel()
            assert kept.stored == []
            kept.store.let_go.set()
    assert kept.stored == ["a"]
    assert kept.store.played() == {"a"}
    assert [path.name for path in (tmp_path / GAMES).iterdir()] == ["a"]


class SlowFiles:
    """Files of games; writing them waits for ``let_go``."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.let_go = threading.Event()
        self._write = result_writer.write_files_of
        monkeypatch.setattr(result_writer, "write_files_of", self)

    def __call__(self, directory: Path, packed: Sequence[bytes]) -> None:
        assert self.let_go.wait(LIMIT_S)
        self._write(directory, packed)


async def test_games_are_stored_while_files_are_written(
    kept: Kept, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = SlowFiles(monkeypatch)
    kept.store.let_go.set()
    with trio.fail_after(LIMIT_S):
        async with trio.open_nursery() as nursery:
            for key in "abc":
                nursery.start_soon(kept.write, key)
                await becomes(lambda: kept.stored[-1:] == [key], LIMIT_S)  # noqa: B023 - called before the next
            assert not (tmp_path / GAMES).exists()
            files.let_go.set()
    assert {path.name for path in (tmp_path / GAMES).iterdir()} == set("abc")


async def test_the_store_waits_for_files_that_are_too_late(
    kept: Kept, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    files = SlowFiles(monkeypatch)
    monkeypatch.setattr(result_writer, "BATCHES_BEHIND", 2)
    monkeypatch.setattr(result_writer, "APART_S", 0.0)
    kept.writer = ResultWriter(kept.store, tmp_path, kept.on_stored, kept.processes)
    kept.store.let_go.set()
    with trio.fail_after(LIMIT_S):
        async with trio.open_nursery() as nursery:
            for key in "ab":
                nursery.start_soon(kept.write, key)
                await becomes(lambda: kept.stored[-1:] == [key], LIMIT_S)  # noqa: B023 - called before the next
            await kept.begin(nursery, "c", "d")
            assert kept.store.begun == [["a"], ["b"]]
            files.let_go.set()
    assert kept.store.begun == [["a"], ["b"], ["c", "d"]]
    assert {path.name for path in (tmp_path / GAMES).iterdir()} == set("abcd")


async def test_a_stopped_run_leaves_late_files_to_the_next_run(
    kept: Kept, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = SlowFiles(monkeypatch)
    monkeypatch.setattr(result_writer, "STILL_WRITTEN", 2)
    kept.store.let_go.set()
    with trio.fail_after(LIMIT_S):
        async with trio.open_nursery() as nursery:
            for key in "abcd":
                nursery.start_soon(kept.write, key)
                await becomes(lambda: kept.stored[-1:] == [key], LIMIT_S)  # noqa: B023 - called before the next
            nursery.cancel_scope.cancel()
            files.let_go.set()
    assert kept.store.played() == set("abcd")
    assert {path.name for path in (tmp_path / GAMES).iterdir()} == set("ab")


async def test_a_game_that_the_store_had_already_gets_no_new_files(kept: Kept, tmp_path: Path) -> None:
    """Another process may have played it: the files of its game stay."""
    kept.store.let_go.set()
    with trio.fail_after(LIMIT_S):
        kept.store.add(make_record("a"), 1)
        await kept.write("a")
        await kept.write("b")
    assert kept.stored == ["b"]
    assert [path.name for path in (tmp_path / GAMES).iterdir()] == ["b"]
