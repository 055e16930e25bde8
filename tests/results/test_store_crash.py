"""The store under SIGKILL, on full disks, and with several processes on a new database."""

import shutil
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import pytest

from tests.support.builders import KALARENA, RUN_LIMIT_S, make_record, run_command, write_tournament
from tests.support.paths import REPOSITORY_ROOT
from tests.support.store_locations import to_argument
from tournaments.database.base import BUSY_TIMEOUT_MS, Location
from tournaments.results.chain_check import ChainCheck
from tournaments.results.store import Store

ADD_GAMES = """
import sys
from tests.support.builders import make_record
from tests.support.store_locations import from_argument
from tournaments.results.store import Store
place, name, count = from_argument(sys.argv[1]), sys.argv[2], int(sys.argv[3])
with Store(place) as store:
    for number in range(count):
        store.add(make_record(f"{name}{number:05d}"), 1)
        print(f"{name}{number:05d}", flush=True)
"""
"""Adds games to a store, and prints the key of each."""


def add_games(place: Location, name: str, count: int) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", ADD_GAMES, to_argument(place), name, str(count)],
        cwd=REPOSITORY_ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def assert_whole(place: Location) -> set[str]:
    """Verify that every game in the store is complete, and the chain; return the games' keys."""
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


@pytest.mark.slow
@pytest.mark.parametrize("same", [False, True])
def test_processes_on_a_new_store_lose_nothing(place: Location, same: bool) -> None:
    """They make the tables at the same time, then add games at the same time, or the same games."""
    processes = [add_games(place, "a" if same else name, 10) for name in "abc"]
    for process in processes:
        _, errors = process.communicate(timeout=RUN_LIMIT_S)
        assert errors == ""
        assert process.returncode == 0
    assert len(assert_whole(place)) == (10 if same else 30)


@pytest.mark.parametrize(
    ("place", "reports"),
    [
        ("sqlite", 1),
        *(pytest.param(*row, marks=pytest.mark.kill) for row in (("sqlite", 20), ("postgresql", 20))),
    ],
    indirect=["place"],
)
def test_sigkill_loses_no_reported_game(place: Location, reports: int) -> None:
    process = add_games(place, "k", 100_000)
    assert process.stdout is not None
    reported = [process.stdout.readline().strip() for _ in range(reports)]
    process.kill()
    assert process.stderr is not None
    with process:  # not by ``communicate``, which passes over text that was read ahead for a line
        rest, errors = process.stdout.read(), process.stderr.read()
    assert reported[0], errors
    reported += rest.split()
    with Store(place) as store:  # this waits until the server has ended the killed process's transaction
        assert store.add(make_record("after"), 1)
    keys = assert_whole(place) - {"after"}
    assert set(reported) <= keys
    assert len(keys) <= len(reported) + 1


FULL_DISK = """
set -e
mount -t tmpfs -o size="$1" none "$2"
cd "$2"
set +e
"$3" tournament run "$4" --out out --concurrency 2 >/dev/null 2>../first.err
echo "first $?"
cat ../first.err
"$5" -c "$6"
mount -o remount,size=64m none "$2"
"$3" tournament run "$4" --out out --concurrency 2 >/dev/null 2>../second.err
echo "second $?"
cat ../second.err
cat out/standings.csv
"""


CHECK = """
import sqlite3
print("check", *sqlite3.connect("out/results.db").execute("PRAGMA integrity_check").fetchone())
"""

TWO_ALIKE = """
game = "kalah(6,4)"
rounds = 3
bots = ["first_legal", { bot = "first_legal", name = "second" }]
"""


def private_mounts() -> list[str]:
    """Return the command that gives a process mounts of its own; skip the test if that is not allowed."""
    for command in (["unshare", "-m"], ["unshare", "-r", "-m"]) if shutil.which("unshare") else ():
        probe = [*command, "sh", "-c", "mount -t tmpfs none /mnt"]
        if subprocess.run(probe, capture_output=True, timeout=RUN_LIMIT_S, check=False).returncode == 0:
            return command
    pytest.skip("mounts are not allowed here")


@pytest.mark.slow
@pytest.mark.parametrize("size", ["160k", "256k"])
def test_a_tournament_on_a_full_disk_is_resumed(tmp_path: Path, size: str) -> None:
    """It goes on when there is room, and no game is counted twice."""
    prefix = private_mounts()
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
    assert "first_legal,3,6,2,3,0,3,0" in second  # equal bots: a win each per round
    assert "second,3,6,2,3,0,3,0" in second


def test_a_new_store_waits_for_the_process_that_makes_it(tmp_path: Path) -> None:
    """SQLite reports `locked` at once if another connection writes while write-ahead logging is turned on."""
    path = tmp_path / "results.db"
    with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as other:
        other.execute("BEGIN IMMEDIATE")
        second = sqlite3.connect(path, timeout=BUSY_TIMEOUT_MS / 1000)
        with closing(second), pytest.raises(sqlite3.OperationalError, match="locked"):
            second.execute("PRAGMA journal_mode = WAL")  # the store waits for this
        let_go = threading.Timer(0.2, other.execute, ["COMMIT"])
        let_go.start()
        with Store(path) as store:
            assert store.add(make_record("first"), 1)
        let_go.join()
