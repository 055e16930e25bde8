"""The store of submissions when processes are killed or write at the same time, and when the disk is full."""

import fcntl
import os
import random
import select
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.bots.test_bot_storage import BOT, assert_whole, incoming
from tests.support.builders import RUN_LIMIT_S, run_command
from tests.support.paths import REPOSITORY_ROOT
from tournaments.bots.storage import ContentStore
from tournaments.files import durable

SUBMISSION = """
import os, shutil, signal, sys
from pathlib import Path
from tournaments.bots.storage import ContentStore, content_digest
from tournaments.bots.upload.limits import SubmittedFile

def submission(number):
    return [SubmittedFile(f"a/{n}.py", f"{number} ".encode() * 1000 * n, n % 2 == 0) for n in range(1, 4)]

store = ContentStore(Path(sys.argv[1]))
how = sys.argv[2]
"""
"""Beginning of the scripts below."""

ACTIVITIES = f"""{SUBMISSION}
first = int(sys.argv[3])
orders = dict(many=range(first, first + 10_000), once=[*range(first, 8), *range(first)], sweep=range(1000))
print("ready", flush=True)
sys.stdin.readline()
for number in orders[how]:
    print(store.sweep() if how == "sweep" else store.put(submission(number)), flush=True)
"""
"""Puts submissions or sweeps, and prints each result.  ``many`` puts more than there is time for."""

KILLED_EVERYWHERE = f"""{SUBMISSION}
ACTS = "open os.mkdir os.chmod os.rename os.rmdir os.remove fcntl.flock shutil.rmtree".split()

def die_at(moment):
    left = moment
    def hook(event, arguments):
        nonlocal left
        if event in ACTS:
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
    sys.addaudithook(hook)

def prepare():
    shutil.rmtree(store.root / digest[:2], ignore_errors=True)
    if how == "replace":
        store.put(submission(1))
        file = store.path(digest) / "a/1.py"
        file.chmod(0o644)
        file.write_bytes(b"damaged")

digest = content_digest(submission(1))
moment, left_behind, status = 0, 0, None
while status != 0:
    prepare()
    moment += 1
    child = os.fork()
    if child == 0:
        die_at(moment)
        store.put(submission(1))
        os._exit(0)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status in (0, -signal.SIGKILL), status
    present = list(store.digests())
    assert present in ([], [digest]), present
    if status == 0 or (present and how == "new"):
        store.verify(digest)
    left_behind += store.sweep()
    assert not list((store.root / "incoming").iterdir())
    assert store.put(submission(1)) == digest
    store.verify(digest)
print(moment, left_behind)
"""
"""Puts a submission in a child that is killed at its first act on the file system, then at its second, ..."""


def start(store: ContentStore, how: str, first: int = 0) -> "subprocess.Popen[str]":
    """Start ACTIVITIES; the process waits until a line is sent to it."""
    process = subprocess.Popen(
        [sys.executable, "-c", ACTIVITIES, str(store.root), how, str(first)],
        cwd=REPOSITORY_ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def go(*processes: "subprocess.Popen[str]") -> None:
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()


@pytest.fixture
def store(tmp_path: Path) -> ContentStore:
    return ContentStore(tmp_path / "submissions")


@pytest.mark.slow
@pytest.mark.parametrize("how", ["new", pytest.param("replace", marks=pytest.mark.kill)])
def test_a_kill_at_any_act_leaves_no_partial_entry(tmp_path: Path, how: str) -> None:
    """At each call that touches the file system: no partial entry is ever visible, and the store works on."""
    done = run_command([sys.executable, "-c", KILLED_EVERYWHERE, tmp_path / "store", how], REPOSITORY_ROOT)
    assert done.stderr == ""
    moments, left_behind = map(int, done.stdout.split())
    assert moments > 20
    assert left_behind > 10


@pytest.mark.kill
def test_kills_at_random_moments_lose_nothing_that_was_reported(store: ContentStore) -> None:
    """Two processes put the same submissions at a time."""
    chance = random.Random(11)
    reported: set[str] = set()
    for number in range(4):
        writers = [start(store, "many", 10_000 * number) for _ in range(2)]
        go(*writers)
        if number == 3:  # by then one has reported something, however slow the machine is
            pipe = writers[0].stdout
            assert pipe is not None
            assert select.select([pipe], [], [], RUN_LIMIT_S)[0]
        for writer in writers:
            with pytest.raises(subprocess.TimeoutExpired):
                writer.wait(chance.uniform(0.005, 0.15))
            writer.kill()
        for writer in writers:
            output, errors = writer.communicate(timeout=RUN_LIMIT_S)
            assert errors == ""
            reported |= {line for line in output.split("\n")[:-1] if line}
        kept = assert_whole(store)
        assert reported <= kept
        store.sweep()
        assert incoming(store) == []
        assert assert_whole(store) == kept
    assert reported


@pytest.mark.slow
def test_simultaneous_writers_and_a_sweeper_do_not_disturb_each_other(store: ContentStore) -> None:
    writers = [start(store, "once", first) for first in (0, 0, 4)]
    sweeper = start(store, "sweep")
    go(sweeper, *writers)
    outputs = [process.communicate(timeout=RUN_LIMIT_S) for process in (*writers, sweeper)]
    assert [errors for _, errors in outputs] == [""] * 4
    digests = [output.split() for output, _ in outputs[:3]]
    assert digests[0] == digests[1] == digests[2][4:] + digests[2][:4]
    assert len(outputs[3][0].split()) == 1000
    assert assert_whole(store) == set(digests[0])
    assert len(set(digests[0])) == 8
    assert incoming(store) == []
    assert not (store.root / "damaged").exists()


def test_an_entry_is_on_the_disk_before_it_appears(
    store: ContentStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folders with its name are on the disk before its digest is returned."""
    synced: set[int] = set()
    checked: list[Path] = []
    real_sync, real_rename = os.fsync, Path.rename

    def sync(descriptor: int) -> None:
        synced.add(os.fstat(descriptor).st_ino)
        real_sync(descriptor)

    def rename(self: Path, target: Path) -> Path:
        assert {path.stat().st_ino for path in [self, *self.rglob("*")]} <= synced
        checked.append(target)
        synced.clear()
        return real_rename(self, target)

    monkeypatch.setattr(os, "fsync", sync)
    monkeypatch.setattr(Path, "rename", rename)
    digest = store.put(BOT)
    assert checked == [store.root / digest[:2] / digest]
    folders = {checked[0].parent.stat().st_ino, store.root.stat().st_ino}
    assert folders <= synced
    synced.clear()
    assert store.put(BOT) == digest  # as after a writer that was killed between the two
    assert folders <= synced


@pytest.mark.parametrize("call", ["FileLock", "fcntl.flock"])
def test_a_directory_that_is_swept_before_its_lock_is_made_again(
    store: ContentStore, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    real = durable.FileLock if call == "FileLock" else fcntl.flock
    swept: list[int] = []

    def sweep_first(*arguments: Any, **options: Any) -> Any:
        if not swept:
            swept.append(0)
            swept[0] = store.sweep()
        return real(*arguments, **options)

    target = "bots.digest_store.FileLock" if call == "FileLock" else "files.durable.fcntl.flock"
    monkeypatch.setattr(f"tournaments.{target}", sweep_first)
    digest = store.put(BOT)
    assert swept == [1]
    assert assert_whole(store) == {digest}
    assert incoming(store) == []


SMALL_DISK = """
set -e
mount -t tmpfs -o size=1m none "$1"
exec "$2" -c "$3" "$1"
"""

FILL = """
import os, sys
from pathlib import Path
from tournaments.bots.storage import ContentError, ContentStore
from tournaments.bots.upload.limits import SubmittedFile

store = ContentStore(Path(sys.argv[1]) / "store")
first = store.put([SubmittedFile("a", os.urandom(400_000))])
try:
    store.put([SubmittedFile(f"d/{n}", os.urandom(100_000)) for n in range(9)])
except ContentError as error:
    print(error)
assert not list((store.root / "incoming").iterdir())
store.verify(first)
second = store.put([SubmittedFile("b", os.urandom(400_000))])
store.verify(second)
assert set(store.digests()) == {first, second}
"""


def test_a_full_disk_is_one_sentence_and_leaves_nothing_behind(tmp_path: Path) -> None:
    """A submission that fits is stored after that."""
    prefix = ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-r", "-m"]
    probe = [*prefix, "mount", "-t", "tmpfs", "none", str(tmp_path)]
    if shutil.which("unshare") is None or subprocess.run(probe, capture_output=True, check=False).returncode:
        pytest.skip("may not mount a small disk here")
    command = [*prefix, "sh", "-c", SMALL_DISK, "sh", str(tmp_path), sys.executable, FILL]
    done = run_command(command, REPOSITORY_ROOT)
    assert done.stderr == ""
    assert done.stdout == f"{tmp_path}/store: the submission cannot be kept: No space left on device\n"
