"""The store of submissions: its entries are complete, and a change of one is detected and repaired."""

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.builders import RUN_LIMIT_S
from tests.support.ordinary_user import as_ordinary_user
from tournaments.bots.storage import (
    ContentError,
    ContentStore,
    DamagedContentError,
    MissingContentError,
    content_digest,
)
from tournaments.bots.upload.limits import SubmittedFile

BOT = (
    SubmittedFile("bot.py", b"print('YOU')\n"),
    SubmittedFile("lib/deep/table.bin", bytes(3000)),
    SubmittedFile("run.sh", b"#!/bin/sh\n", executable=True),
)
KNOWN_DIGEST = "fa6b851093a0ae0b26e2545958130301d431d15ec521494d94c2f12f440846b1"
"""Digest of BOT, also found with sha256sum alone from a manifest that was written by hand."""


def assert_whole(store: ContentStore) -> set[str]:
    """Verify all entries; return their digests."""
    digests = set(store.digests())
    for digest in digests:
        store.verify(digest)
        assert content_digest(store.read(digest)) == digest
    return digests


def incoming(store: ContentStore) -> list[Path]:
    return list((store.root / "incoming").iterdir())


@pytest.fixture
def store(tmp_path: Path) -> ContentStore:
    return ContentStore(tmp_path / "submissions")


def test_files_are_returned_as_they_were_put_in(store: ContentStore) -> None:
    """Databases hold the digest: if it changed, every submission would be lost."""
    digest = store.put(BOT)
    assert digest == KNOWN_DIGEST
    assert store.read(digest) == BOT
    assert store.put(tuple(reversed(BOT))) == digest  # again, in another order
    assert list(store.digests()) == [digest]
    assert incoming(store) == []
    assert ContentStore(store.root).read(digest) == BOT


def test_different_files_have_different_digests() -> None:
    a = SubmittedFile("a", b"x")
    different = [
        [a],
        [SubmittedFile("b", b"x")],
        [SubmittedFile("a", b"y")],
        [SubmittedFile("a", b"x", executable=True)],
        [SubmittedFile("a/a", b"x")],
        [a, SubmittedFile("b", b"")],
        [a, SubmittedFile("node_modules/b", b"")],  # the digest of a bot that plays leaves this folder out
        [],
    ]
    assert len({content_digest(files) for files in different}) == len(different)


@pytest.mark.parametrize("path", ["", "/a", "../a", "a/../b", "a//b", "./a", "a\\b", "a\nb", "a\0b", "twice"])
def test_invalid_paths_are_refused(store: ContentStore, path: str) -> None:
    with pytest.raises(ValueError):
        store.put([SubmittedFile(path, b"")] * (2 if path == "twice" else 1))
    assert list(store.digests()) == []
    assert incoming(store) == []


def test_a_file_cannot_have_the_path_of_a_folder(store: ContentStore) -> None:
    with pytest.raises(ContentError, match="cannot be kept: File exists"):
        store.put([SubmittedFile("a", b""), SubmittedFile("a/b", b"")])
    assert list(store.digests()) == []
    assert incoming(store) == []


def test_a_missing_submission_or_folder_is_an_error(store: ContentStore, tmp_path: Path) -> None:
    for method in (store.path, store.read, store.verify):
        with pytest.raises(MissingContentError, match="there is no submission aaaa"):
            method("a" * 64)
        for text in ("", "../x", "A" * 64, "a" * 63, "a" * 64 + "\n"):
            with pytest.raises(MissingContentError, match="is no digest"):
                method(text)
    (tmp_path / "file").touch()
    with pytest.raises(ContentError, match="submissions cannot be kept here: Not a directory"):
        ContentStore(tmp_path / "file" / "store")


def test_modes_do_not_depend_on_the_umask(store: ContentStore) -> None:
    """Other users may read and run the files, and nobody may write them."""
    before = os.umask(0o077)
    try:
        top = store.path(store.put(BOT))
    finally:
        os.umask(before)
    assert {path.relative_to(top).as_posix(): path.stat().st_mode & 0o7777 for path in top.rglob("*")} == {
        "bot.py": 0o444,
        "lib": 0o755,
        "lib/deep": 0o755,
        "lib/deep/table.bin": 0o444,
        "run.sh": 0o555,
    }
    for folder in (top, top.parent, top.parent.parent):
        assert folder.stat().st_mode & 0o7777 == 0o755


@pytest.mark.skipif(os.geteuid() != 0, reason="takes another user's number")
def test_another_user_may_run_a_bot_and_not_change_it(store: ContentStore, tmp_path: Path) -> None:
    top = store.path(store.put([SubmittedFile("run.sh", b"#!/bin/sh\necho moved\n", executable=True)]))
    home = tmp_path / "home"
    home.mkdir()
    script = 'cd "$0" && ./run.sh; echo x >>run.sh || echo refused; echo x >new || echo refused'
    done = subprocess.run(
        as_ordinary_user(["sh", "-c", script, str(top)], [home], [store.root]),
        capture_output=True,
        text=True,
        timeout=RUN_LIMIT_S,
        check=True,
    )
    assert done.stdout == "moved\nrefused\nrefused\n"


def change(path: Path, content: bytes) -> None:
    path.chmod(0o644)
    path.write_bytes(content)
    path.chmod(0o444)


def link_to_equal_file(top: Path) -> None:
    (top.parent / "elsewhere").write_bytes(BOT[0].content)
    (top / "bot.py").unlink()
    (top / "bot.py").symlink_to(top.parent / "elsewhere")


DAMAGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "changed": (lambda top: change(top / "bot.py", b"print('ME!')\n"), "'bot.py' was changed"),
    "cut": (lambda top: change(top / "lib/deep/table.bin", bytes(2999)), "'lib/deep/table.bin' was changed"),
    "longer": (lambda top: change(top / "bot.py", BOT[0].content + b"x"), "'bot.py' was changed"),
    "removed": (lambda top: (top / "run.sh").unlink(), "'run.sh' is missing"),
    "folder removed": (lambda top: shutil.rmtree(top / "lib"), "'lib' is missing"),
    "added": (lambda top: (top / "lib/x").touch(), "'lib/x' was added"),
    "folder added": (lambda top: (top / "x").mkdir(), "'x' was added"),
    "linked": (link_to_equal_file, "'bot.py' has the mode 120777, not 100444"),
    "executable": (lambda top: (top / "bot.py").chmod(0o555), "'bot.py' has the mode 100555, not 100444"),
    "writable": (lambda top: (top / "lib").chmod(0o777), "'lib' has the mode 40777, not 40755"),
    "manifest": (lambda top: change(top.parent / "manifest", b"x\n"), "manifest was changed"),
    "no manifest": (
        lambda top: (top.parent / "manifest").unlink(),
        "manifest cannot be read: No such file or directory",
    ),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_is_detected_and_repaired(store: ContentStore, damage: str) -> None:
    act, sentence = DAMAGES[damage]
    digest = store.put(BOT)
    act(store.path(digest))
    for method in (store.verify, store.read):
        with pytest.raises(DamagedContentError, match=f"{digest} is damaged: .*{sentence}; put it in"):
            method(digest)
    assert store.put(BOT) == digest
    assert store.read(digest) == BOT
    assert [path.name[:64] for path in (store.root / "damaged").iterdir()] == [digest]
    assert list(store.digests()) == [digest]


def test_an_entry_without_files_is_repaired(store: ContentStore) -> None:
    digest = store.put(BOT)
    shutil.rmtree(store.path(digest))
    with pytest.raises(MissingContentError):
        store.verify(digest)
    assert store.put(BOT) == digest
    store.verify(digest)


def test_sweeping_removes_abandoned_directories_only(store: ContentStore) -> None:
    digest = store.put(BOT)
    (store.root / "incoming/left/files").mkdir(parents=True)
    (store.root / "incoming/left/files/a").touch()
    (store.root / "incoming/file").touch()
    assert store.sweep() == 2
    assert store.sweep() == 0
    assert assert_whole(store) == {digest}
