"""Reading results from a folder that cannot be written, while a run is at work or after it was killed.

What was committed last is then in a file beside the database.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from tests.builders import RUN_LIMIT_S, make_record, run_command
from tests.test_store_crash import ROOT, private_mounts
from tournaments.results.store import Store, StoreError

GAMES = 3

ADD_AND_STAY = """
import sys
from pathlib import Path
from tests.builders import make_record
from tournaments.results.store import Store
with Store(Path(sys.argv[1])) as store:
    for number in range(int(sys.argv[2])):
        store.add(make_record(f"k{number}"), 1)
    print("added", flush=True)
    sys.stdin.read()
"""
"""Adds games, and stays at work until its input ends."""

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
    process = subprocess.Popen(
        [sys.executable, "-c", ADD_AND_STAY, folder / "results.db", str(GAMES)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "added\n"
    assert (folder / "results.db-wal").stat().st_size > 0
    return process


def end(process: "subprocess.Popen[str]") -> None:
    process.kill()
    process.communicate(timeout=RUN_LIMIT_S)


def read(folder: Path) -> dict[str, Any]:
    """What is read by a process for which the folder cannot be written."""
    prefix = private_mounts()
    if prefix is None:
        pytest.skip("may not mount a folder read-only here")
    temporary = folder.parent / "temporary"
    temporary.mkdir(exist_ok=True)
    reader = [sys.executable, "-c", READ, str(folder / "results.db")]
    done = run_command(
        [*prefix, "sh", "-c", READ_ONLY, "sh", str(folder), *reader], ROOT, TMPDIR=str(temporary)
    )
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    assert found["writable"] is False
    assert found["whole"] is True
    assert found["left"] == []
    assert isinstance(found, dict)
    return found


KEYS = [f"k{number}" for number in range(GAMES)]


@pytest.mark.parametrize("gone", [False, True])
def test_after_a_kill(folder: Path, gone: bool) -> None:
    """Also if somebody copied the folder without results.db-shm."""
    end(at_work(folder))
    if gone:
        (folder / "results.db-shm").unlink()
    found = read(folder)
    assert found["keys"] == KEYS
    assert found["copied"] == int(gone)


def test_while_a_run_is_at_work(folder: Path) -> None:
    process = at_work(folder)
    try:
        assert read(folder)["keys"] == KEYS
    finally:
        end(process)


def test_after_a_run_that_ended(folder: Path) -> None:
    with Store(folder / "results.db") as store:
        store.add(make_record("one"), 1)
    assert [path.name for path in folder.iterdir()] == ["results.db"]
    found = read(folder)
    assert (found["keys"], found["copied"]) == (["one"], 0)


def unwritable(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """As if nothing could be read there without a copy."""
    (folder / "results.db-shm").unlink()
    (folder / "results.db-shm").symlink_to("nowhere")  # SQLite follows no link
    monkeypatch.setattr(os, "access", lambda *_: False)


def test_a_file_that_is_written_while_it_is_copied(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy whose halves do not belong together is not used."""
    end(at_work(folder))
    wal = folder / "results.db-wal"
    whole = wal.read_bytes()
    wal.write_bytes(whole[: len(whole) // 2])
    unwritable(monkeypatch, folder)
    real = shutil.copyfile
    copied = []

    def copyfile(source: Path, target: Path) -> None:
        real(source, target)
        copied.append(source)
        if len(copied) == 2:
            wal.write_bytes(whole)

    monkeypatch.setattr(shutil, "copyfile", copyfile)
    with Store(folder / "results.db", read_only=True) as store:
        assert sorted(store.played()) == KEYS
    assert len(copied) == 4


def test_a_file_that_is_written_all_the_time(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    end(at_work(folder))
    unwritable(monkeypatch, folder)
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    real = shutil.copyfile

    def copyfile(source: Path, target: Path) -> None:
        real(source, target)
        with (folder / "results.db-wal").open("ab") as file:
            file.write(b"x")

    monkeypatch.setattr(shutil, "copyfile", copyfile)
    with (
        pytest.raises(StoreError, match="being written to all the time"),
        Store(folder / "results.db", read_only=True),
    ):
        pass
    assert list(temporary.iterdir()) == []
