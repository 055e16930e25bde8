"""The store when the world ends: full disks, SIGKILL, several processes on a fresh file."""

import shutil
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import pytest

from tests.builders import KALARENA, RUN_LIMIT_S, make_record, run_command, write_tournament
from tests.places import to_argument
from tournaments.database.base import BUSY_TIMEOUT_MS, Location
from tournaments.database.sqlite import SQLiteFile
from tournaments.results.chain_check import ChainCheck
from tournaments.results.store import Store

ROOT = Path(__file__).resolve().parent.parent

ADD_GAMES = """
import sys
from tests.builders import make_record
from tests.places import from_argument
from tournaments.results.store import Store
place, name, count = from_argument(sys.argv[1]), sys.argv[2], int(sys.argv[3])
with Store(place) as store:
    for number in range(count):
        store.add(make_record(f"{name}{number:05d}"), 1)
        print(f"{name}{number:05d}", flush=True)
"""
"""Adds games to a store; says so after each."""


def add_games(place: Location, name: str, count: int) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", ADD_GAMES, to_argument(place), name, str(count)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def assert_whole(place: Location) -> set[str]:
    """Every game in the store is whole; their keys."""
    with Store(place) as store:
        keys = store.played()
        for key in keys:
            assert store.record(key) == make_record(key)
        assert {game.key for game in store.games()} == keys
        chained = store.chained()
        assert chained is not None
        chain = ChainCheck(chained)
        assert list(chain.findings()) == []
        for key, link in chain.games.items():
            assert store.stored([key])[key].item.content == link.content
    return keys


@pytest.mark.parametrize("same", [False, True])
def test_processes_on_a_fresh_store_lose_nothing(place: Location, same: bool) -> None:
    """They make the same tables at the same time, then add games at the same time, or the same ones."""
    processes = [add_games(place, "a" if same else name, 25) for name in "abc"]
    for process in processes:
        _, errors = process.communicate(timeout=RUN_LIMIT_S)
        assert errors == ""
        assert process.returncode == 0
    assert len(assert_whole(place)) == (25 if same else 75)


@pytest.mark.parametrize("reports", [1, 20])
def test_sigkill_while_adding(place: Location, reports: int) -> None:
    process = add_games(place, "k", 100_000)
    assert process.stdout is not None
    told = [process.stdout.readline().strip() for _ in range(reports)]
    process.kill()
    assert process.stderr is not None
    with process:  # not by ``communicate``, which passes over what was read ahead for a line
        rest, errors = process.stdout.read(), process.stderr.read()
    assert told[0], errors
    told += rest.split()
    with Store(place) as store:  # it goes on; this waits for what the server is still about to do
        assert store.add(make_record("after"), 1)
    keys = assert_whole(place) - {"after"}
    assert set(told) <= keys  # nothing that was reported is lost
    assert len(keys) <= len(told) + 1


WITH_LITTLE_ROOM = """
import resource, sys
from pathlib import Path
from tests.builders import make_record
from tournaments.results.store import Store, StoreError
path = Path(sys.argv[1])
with Store(path) as store:
    store.add(make_record("before"), 1)
    room = max(file.stat().st_size for file in path.parent.iterdir()) + 20_000
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, resource.RLIM_INFINITY))
    kept = 0
    try:
        for number in range(1000):
            store.add(make_record(f"w{number:04d}"), 1)
            kept += 1
    except StoreError as error:
        print(kept, error)
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    assert len(store.played()) == 1 + kept, store.played()
    assert store.add(make_record(f"w{kept:04d}"), 1)
"""
"""Files may grow by 20 kB only, then as they like again."""


def test_a_file_that_may_not_grow(tmp_path: Path) -> None:
    """As with a quota."""
    path = tmp_path / "results.db"
    done = run_command([sys.executable, "-c", WITH_LITTLE_ROOM, path], ROOT)
    assert done.stderr == ""
    assert done.returncode == 0
    kept, _, message = done.stdout.strip().partition(" ")
    assert message.startswith(f"{path}: game w{int(kept):04d} could not be kept: ")
    assert "\n" not in message
    assert len(assert_whole(SQLiteFile(path))) == int(kept) + 2


FULL_DISK = """
set -e
mount -t tmpfs -o size="$1" none "$2"
cd "$2"
set +e
"$3" tournament run "$4" --out out --concurrency 2 >first.out 2>first.err
echo "first $?"
cat first.err
"$5" -c "$6"
mount -o remount,size=64m none "$2"
"$3" tournament run "$4" --out out --concurrency 2 >second.out 2>second.err
echo "second $?"
cat second.err
"$3" tournament table out --format csv
"""


CHECK = """
import sqlite3
print("check", *sqlite3.connect("out/results.db").execute("PRAGMA integrity_check").fetchone())
"""

TWO_ALIKE = """
game = "kalah(6,4)"
rounds = 6
bots = ["first_legal", { bot = "first_legal", name = "second" }]
"""


def private_mounts() -> list[str] | None:
    """The command that gives a process mounts of its own, if we may."""
    if shutil.which("unshare") is None:
        return None
    for command in (["unshare", "-m"], ["unshare", "-r", "-m"]):
        probe = [*command, "sh", "-c", "mount -t tmpfs none /mnt"]
        if subprocess.run(probe, capture_output=True, timeout=RUN_LIMIT_S, check=False).returncode == 0:
            return command
    return None


@pytest.mark.parametrize("size", ["160k", "256k"])
def test_a_full_disk(tmp_path: Path, size: str) -> None:
    """A tournament on a disk that fills up goes on when there is room, and no game is counted twice."""
    prefix = private_mounts()
    if prefix is None:
        pytest.skip("may not mount a small disk here")
    disk = tmp_path / "disk"
    disk.mkdir()
    file = write_tournament(tmp_path, TWO_ALIKE)
    arguments = [size, str(disk), str(KALARENA), str(file), sys.executable, CHECK]
    done = run_command([*prefix, "sh", "-c", FULL_DISK, "sh", *arguments], tmp_path)
    first, _, second = done.stdout.partition("second ")
    assert first.startswith(("first 1\n", "first 2\n")), done.stdout + done.stderr
    assert "Traceback" not in first
    assert "No space left" in first or "disk is full" in first
    assert "check ok" in first
    assert second.startswith("0\n")
    assert "first_legal,6,12,2,6,0,6,0" in second  # the two are one: a win each per round
    assert "second,6,12,2,6,0,6,0" in second


def test_a_fresh_store_waits_for_whoever_makes_it(tmp_path: Path) -> None:
    """SQLite says `locked` at once where a database is to write ahead that another connection writes to."""
    path = tmp_path / "results.db"
    with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as other:
        other.execute("BEGIN IMMEDIATE")
        second = sqlite3.connect(path, timeout=BUSY_TIMEOUT_MS / 1000)
        with closing(second), pytest.raises(sqlite3.OperationalError, match="locked"):
            second.execute("PRAGMA journal_mode = WAL")  # what we have to wait for
        let_go = threading.Timer(0.2, other.execute, ["COMMIT"])
        let_go.start()
        with Store(path) as store:
            assert store.add(make_record("first"), 1)
        let_go.join()
