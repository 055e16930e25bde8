"""Games are kept together, and told of when they are safe."""

import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio
import trio.testing
import trio_parallel

from tests.builders import make_record
from tests.test_engines import becomes
from tournaments.results.game_files import GAMES
from tournaments.results.game_summary import PackedGame
from tournaments.results.store import Store, StoreError
from tournaments.running import result_writer
from tournaments.running.result_writer import ResultWriter
from tournaments.schedule.pairing import Pairing

LIMIT_S = 20
"""Bound for what takes milliseconds."""
ROOT = Path(__file__).resolve().parent.parent


class SlowStore(Store):
    """A store whose transactions wait until they are let go."""

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
    """A keeper, and what it tells."""

    def __init__(self, store: SlowStore, directory: Path, processes: trio_parallel.WorkerContext) -> None:
        self.store = store
        self.told: list[str] = []
        self.tell: Callable[[str], None] = self.told.append
        self.processes = processes
        self.keeper = ResultWriter(store, directory, self.told_of, processes)

    def told_of(self, pairing: Pairing, game: PackedGame) -> None:
        assert pairing.key == game.summary.key
        assert pairing.key in self.store.played()  # by another connection than the one that wrote it
        self.tell(pairing.key)

    async def keep(self, key: str) -> None:
        await self.keeper.write(Pairing(key, 1, 0, 1), PackedGame.of(make_record(key), 1))

    async def begin(self, nursery: trio.Nursery, *keys: str) -> None:
        """Keep games, each of which has reached the keeper when this returns, in this order."""
        for key in keys:
            nursery.start_soon(self.keep, key)
            await trio.testing.wait_all_tasks_blocked()


@pytest.fixture
async def kept(tmp_path: Path) -> AsyncIterator[Kept]:
    async with open_kept(tmp_path) as opened:
        yield opened


@asynccontextmanager
async def open_kept(folder: Path) -> AsyncIterator[Kept]:
    store = SlowStore(folder / "results.db")
    with store:
        async with trio_parallel.open_worker_context() as processes:
            yield Kept(store, folder, processes)


async def test_games_that_end_meanwhile_are_written_together_in_their_order(
    kept: Kept, tmp_path: Path
) -> None:
    keys = ["a", "d", "c", "b"]
    with trio.fail_after(LIMIT_S):
        async with trio.open_nursery() as nursery:
            await kept.begin(nursery, *keys)
            await becomes(lambda: len(kept.store.begun) == 1, LIMIT_S)
            assert kept.told == []
            kept.store.let_go.set()
    assert kept.store.begun == [["a"], ["d", "c", "b"]]
    assert kept.told == keys
    assert {path.name for path in (tmp_path / GAMES).iterdir()} == set(keys)


@pytest.fixture
def moment(monkeypatch: pytest.MonkeyPatch) -> trio.Event:
    """When it is set, it is time for the next transaction; the first one's time is at once."""
    comes = trio.Event()

    async def sleep_until(at: float) -> None:
        if at > 0:
            await comes.wait()

    monkeypatch.setattr(trio, "sleep_until", sleep_until)
    return comes


async def test_games_that_end_soon_after_others_share_a_transaction(kept: Kept, moment: trio.Event) -> None:
    kept.store.let_go.set()
    with trio.fail_after(LIMIT_S):
        await kept.keep("a")
        assert kept.told == ["a"]  # it waited for nobody
        async with trio.open_nursery() as nursery:
            await kept.begin(nursery, "b", "c", "d")
            assert kept.store.begun == [["a"]]
            moment.set()
    assert kept.store.begun == [["a"], ["b", "c", "d"]]


async def test_a_game_whose_moment_has_not_come_is_kept_even_when_cancelled(
    kept: Kept, moment: trio.Event
) -> None:
    kept.store.let_go.set()
    with trio.fail_after(LIMIT_S):
        await kept.keep("a")
        async with trio.open_nursery() as nursery:
            await kept.begin(nursery, "b")
            nursery.cancel_scope.cancel()
            moment.set()
    assert kept.told == ["a", "b"]
    assert kept.store.played() == {"a", "b"}


async def test_a_game_that_is_there_already_is_not_told_of(kept: Kept) -> None:
    kept.store.let_go.set()
    await kept.keep("a")
    await kept.keep("a")
    assert kept.told == ["a"]


async def test_everybody_hears_that_their_game_could_not_be_kept(kept: Kept, tmp_path: Path) -> None:
    kept.store.trouble = "the disk is full"
    failed: list[str] = []

    async def keep(key: str) -> None:
        with pytest.raises(StoreError, match="the disk is full") as caught:
            await kept.keep(key)
        assert caught.value.is_ours
        failed.append(key)

    with trio.fail_after(LIMIT_S):
        async with trio.open_nursery() as nursery:
            for key in "abcd":
                nursery.start_soon(keep, key)
            await becomes(lambda: len(kept.store.begun) == 1, LIMIT_S)
            kept.store.let_go.set()
    assert sorted(failed) == ["a", "b", "c", "d"]
    assert (kept.told, kept.store.played()) == ([], set())
    assert not (tmp_path / GAMES).exists()
    kept.store.trouble = None
    await kept.keep("a")
    assert kept.told == ["a"]


async def test_what_is_being_written_is_kept_and_told_of_even_when_cancelled(
    kept: Kept, tmp_path: Path
) -> None:
    with trio.fail_after(LIMIT_S):
        async with trio.open_nursery() as nursery:
            await kept.begin(nursery, "a", "b", "c")
            await becomes(lambda: len(kept.store.begun) == 1, LIMIT_S)
            nursery.cancel_scope.cancel()
            assert kept.told == []
            kept.store.let_go.set()
    assert kept.told == ["a"]
    assert kept.store.played() == {"a"}
    assert [path.name for path in (tmp_path / GAMES).iterdir()] == ["a"]


class SlowFiles:
    """Files of games, which wait until they are let go."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.let_go = threading.Event()
        self._write = result_writer.write_files_of
        monkeypatch.setattr(result_writer, "write_files_of", self)

    def __call__(self, directory: Path, packed: Sequence[bytes]) -> None:
        assert self.let_go.wait(LIMIT_S)
        self._write(directory, packed)


async def test_games_are_kept_while_files_are_written(
    kept: Kept, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = SlowFiles(monkeypatch)
    kept.store.let_go.set()
    with trio.fail_after(LIMIT_S):
        async with trio.open_nursery() as nursery:
            for key in "abc":
                nursery.start_soon(kept.keep, key)
                await becomes(lambda: kept.told[-1:] == [key], LIMIT_S)  # noqa: B023 - called before the next
            assert not (tmp_path / GAMES).exists()
            files.let_go.set()
    assert {path.name for path in (tmp_path / GAMES).iterdir()} == set("abc")


async def test_files_that_are_too_far_behind_hold_up_the_store(
    kept: Kept, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    files = SlowFiles(monkeypatch)
    monkeypatch.setattr(result_writer, "BATCHES_BEHIND", 2)
    monkeypatch.setattr(result_writer, "APART_S", 0.0)
    kept.keeper = ResultWriter(kept.store, tmp_path, kept.told_of, kept.processes)
    kept.store.let_go.set()
    with trio.fail_after(LIMIT_S):
        async with trio.open_nursery() as nursery:
            for key in "ab":
                nursery.start_soon(kept.keep, key)
                await becomes(lambda: kept.told[-1:] == [key], LIMIT_S)  # noqa: B023 - called before the next
            await kept.begin(nursery, "c", "d")
            assert kept.store.begun == [["a"], ["b"]]
            files.let_go.set()
    assert kept.store.begun == [["a"], ["b"], ["c", "d"]]
    assert {path.name for path in (tmp_path / GAMES).iterdir()} == set("abcd")


async def test_a_run_that_is_stopped_leaves_files_that_are_far_behind_to_the_next(
    kept: Kept, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = SlowFiles(monkeypatch)
    monkeypatch.setattr(result_writer, "STILL_WRITTEN", 2)
    kept.store.let_go.set()
    with trio.fail_after(LIMIT_S):
        async with trio.open_nursery() as nursery:
            for key in "abcd":
                nursery.start_soon(kept.keep, key)
                await becomes(lambda: kept.told[-1:] == [key], LIMIT_S)  # noqa: B023 - called before the next
            nursery.cancel_scope.cancel()
            files.let_go.set()
    assert kept.store.played() == set("abcd")
    assert {path.name for path in (tmp_path / GAMES).iterdir()} == set("ab")


KEEP_GAMES = """
import sys, trio
from itertools import count
from pathlib import Path
from tests.builders import make_record
from tests.test_keeper import open_kept

AT_ONCE = 7

async def main(folder):
    async with open_kept(folder) as kept:
        kept.store.let_go.set()
        kept.tell = lambda key: print(key, flush=True)
        async def keep_on(name):
            for number in count():
                await kept.keep(f"{name}{number:05d}")
        async with trio.open_nursery() as nursery:
            for number in range(AT_ONCE):
                nursery.start_soon(keep_on, "abcdefg"[number])

trio.run(main, Path(sys.argv[1]))
"""


@pytest.mark.parametrize("reports", [1, 40])
def test_sigkill_loses_no_game_that_was_told_of(reports: int, tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", KEEP_GAMES, tmp_path], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    told = [process.stdout.readline().strip() for _ in range(reports)]
    process.kill()
    with process:  # not by ``communicate``, which passes over what was read ahead for a line
        rest = process.stdout.read()
    told += rest.split()
    assert all(told)
    assert len(told) == len(set(told))
    with Store(tmp_path / "results.db") as store:
        played = store.played()
        assert set(told) <= played
        assert len(played) <= len(told) + 7  # one transaction
        assert all(store.record(key) == make_record(key) for key in played)
