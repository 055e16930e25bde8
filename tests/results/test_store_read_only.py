"""Results are read from a folder that cannot be written, during a run or after it was killed.

The last commits are in a file beside the database then.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.results.test_store_crash import ADD_GAMES, private_mounts
from tests.support.builders import RUN_LIMIT_S, make_record, run_command
from tests.support.paths import REPOSITORY_ROOT
from tests.support.store_locations import to_argument
from tournaments.database.sqlite import SQLiteFile
from tournaments.results.store import Store, StoreError

GAMES = 3
KEYS = [f"k{number:05d}" for number in range(GAMES)]

STAY = f"{ADD_GAMES}    sys.stdin.read()\n"

READ = """
import json, os, sys, tempfile
from pathlib import Path
from tournaments.results.store import Store
path = Path(sys.argv[1])
with Store(path, read_only=True) as store:
    keys = sorted(store.played())
    whole = all(store.record(key).key == key for key in keys)
    copied = len(os.listdir(tempfile.gettempdir()))
print(json.dumps({
    "keys": keys,
    "whole": whole,
    "writable": os.access(path.parent, os.W_OK),
    "copied": copied,
    "left": os.listdir(tempfile.gettempdir()),
}))
"""

READ_ONLY = """
set -e
mount --bind "$1" "$1"
mount -o remount,bind,ro "$1"
shift
exec "$@"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "results"
    folder.mkdir()
    return folder


def at_work(folder: Path) -> "subprocess.Popen[str]":
    """Start a process that adds games, and stays at work until its input ends."""
    process = subprocess.Popen(
        [sys.executable, "-c", STAY, to_argument(SQLiteFile(folder / "results.db")), "k", str(GAMES)],
        cwd=REPOSITORY_ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    while process.stdout.readline() != f"{KEYS[-1]}\n":
        pass
    assert (folder / "results.db-wal").stat().st_size > 0
    return process


def end(process: "subprocess.Popen[str]") -> None:
    process.kill()
    process.communicate(timeout=RUN_LIMIT_S)


def read(folder: Path) -> dict[str, Any]:
    """Return the results that a process reads for which the folder cannot be written."""
    prefix = private_mounts()
    temporary = folder.parent / "temporary"
    temporary.mkdir(exist_ok=True)
    reader = [sys.executable, "-c", READ, str(folder / "results.db")]
    done = run_command(
        [*prefix, "sh", "-c", READ_ONLY, "sh", str(folder), *reader], REPOSITORY_ROOT, TMPDIR=str(temporary)
    )
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    assert found["writable"] is False
    assert found["whole"] is True
    assert found["left"] == []
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize("copied", [False, True])
@pytest.mark.slow
def test_during_a_run_and_after_its_kill(folder: Path, copied: bool) -> None:
    """It works in a copy of the folder without results.db-shm, too."""
    process = at_work(folder)
    try:
        assert read(folder)["keys"] == KEYS
    finally:
        end(process)
    if copied:
        (folder / "results.db-shm").unlink()
    found = read(folder)
    assert (found["keys"], found["copied"]) == (KEYS, int(copied))


@pytest.mark.parametrize("name", [b"\xff", b"\xc3\xbc", b"50% ?#&x=1"])
def test_results_can_be_read_in_a_folder_of_any_name(tmp_path: Path, name: bytes) -> None:
    path = tmp_path / os.fsdecode(name) / "results.db"
    path.parent.mkdir()
    with Store(path) as store:
        store.add(make_record("one"), 1)
    with Store(path, read_only=True) as store:
        assert store.played() == {"one"}
    assert [folder.name for folder in tmp_path.iterdir()] == [os.fsdecode(name)]


@pytest.mark.slow
def test_after_a_run_that_ended(folder: Path) -> None:
    with Store(folder / "results.db") as store:
        store.add(make_record("one"), 1)
    assert [path.name for path in folder.iterdir()] == ["results.db"]
    found = read(folder)
    assert (found["keys"], found["copied"]) == (["one"], 0)


@pytest.mark.parametrize("is_at_work", [False, True])
def test_a_reader_leaves_nothing_in_a_folder_of_several_users(
    folder: Path, monkeypatch: pytest.MonkeyPatch, is_at_work: bool
) -> None:
    """Files of a reader who may write to the folder, but not to the database, would lock out its owner."""
    process = at_work(folder)
    if not is_at_work:
        end(process)
        with Store(folder / "results.db") as store:
            store.add(make_record("one"), 1)
    monkeypatch.setattr(os, "access", lambda path, _mode: Path(path) == folder)
    with Store(folder / "results.db", read_only=True) as store:
        assert sorted(store.played()) == (KEYS if is_at_work else [*KEYS, "one"])
    assert sorted(path.name for path in folder.iterdir()) == (
        ["results.db", "results.db-shm", "results.db-wal"] if is_at_work else ["results.db"]
    )
    end(process)


def require_a_copy(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Let nothing be readable in the folder without a copy."""
    (folder / "results.db-shm").unlink()
    (folder / "results.db-shm").symlink_to("nowhere")  # SQLite follows no link
    monkeypatch.setattr(os, "access", lambda *_: False)


def after_each_copy(monkeypatch: pytest.MonkeyPatch, action: Callable[[int], object]) -> None:
    """Call ``action`` with the number of copied files, after each of them."""
    real, copied = shutil.copyfile, 0

    def copyfile(source: Path, target: Path) -> None:
        nonlocal copied
        real(source, target)
        copied += 1
        action(copied)

    monkeypatch.setattr(shutil, "copyfile", copyfile)


@pytest.mark.slow
@pytest.mark.parametrize("always", [False, True])
def test_a_file_that_changes_while_it_is_copied(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, always: bool
) -> None:
    """It is copied again, a few times; the copies are removed."""
    end(at_work(folder))
    require_a_copy(monkeypatch, folder)
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    wal = folder / "results.db-wal"
    whole = wal.read_bytes()
    wal.write_bytes(whole[: len(whole) // 2])
    copies: list[int] = []

    def write(copied: int) -> None:
        copies.append(copied)
        if always:
            wal.write_bytes(wal.read_bytes() + b"x")
        elif copied == 2:
            wal.write_bytes(whole)

    after_each_copy(monkeypatch, write)
    if always:
        with pytest.raises(StoreError, match="being written to all the time"):
            Store(folder / "results.db", read_only=True)
    else:
        with Store(folder / "results.db", read_only=True) as store:
            assert sorted(store.played()) == KEYS
        assert copies == [1, 2, 3, 4]
    assert list(temporary.iterdir()) == []
