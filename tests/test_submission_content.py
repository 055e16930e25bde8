"""The store of submissions: what is in it is whole, whoever is killed, writes beside or changes a file."""

import os
import random
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders import RUN_LIMIT_S
from tests.ordinary_user import as_ordinary_user
from tournaments.bots.storage import (
    ContentError,
    ContentStore,
    DamagedContentError,
    MissingContentError,
    content_digest,
)
from tournaments.bots.upload.limits import SubmittedFile

ROOT = Path(__file__).resolve().parent.parent

BOT = (
    SubmittedFile("bot.py", b"print('YOU')\n"),
    SubmittedFile("lib/deep/table.bin", bytes(3000)),
    SubmittedFile("run.sh", b"#!/bin/sh\n", executable=True),
)
KNOWN_DIGEST = "fa6b851093a0ae0b26e2545958130301d431d15ec521494d94c2f12f440846b1"
"""Of BOT, also found with sha256sum alone: of its manifest, written by hand."""


def assert_whole(store: ContentStore) -> set[str]:
    """Everything that is there is what it should be; the digests."""
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


def test_what_is_put_in_comes_out(store: ContentStore) -> None:
    digest = store.put(BOT)
    assert store.read(digest) == BOT
    store.verify(digest)
    assert list(store.digests()) == [digest]
    assert store.put(tuple(reversed(BOT))) == digest  # again, in another order
    assert list(store.digests()) == [digest]
    assert incoming(store) == []
    assert ContentStore(store.root).read(digest) == BOT


def test_digests_stay_what_they_are() -> None:
    """Databases hold them: a change of the digest would lose every submission."""
    assert content_digest(BOT) == KNOWN_DIGEST


def test_digests_tell_everything_apart() -> None:
    a = SubmittedFile("a", b"x")
    different = [
        [a],
        [SubmittedFile("b", b"x")],
        [SubmittedFile("a", b"y")],
        [SubmittedFile("a", b"x", executable=True)],
        [SubmittedFile("a/a", b"x")],
        [a, SubmittedFile("b", b"")],
        [a, SubmittedFile("node_modules/b", b"")],  # what the digest of a bot that plays leaves out
        [],
    ]
    assert len({content_digest(files) for files in different}) == len(different)


@given(st.dictionaries(st.text("abc", min_size=1), st.binary(max_size=20)), st.randoms())
def test_order_does_not_matter(tree: dict[str, bytes], chance: random.Random) -> None:
    files = [SubmittedFile(path, content) for path, content in tree.items()]
    digest = content_digest(files)
    chance.shuffle(files)
    assert content_digest(files) == digest


@pytest.mark.parametrize("path", ["", "/a", "../a", "a/../b", "a//b", "./a", "a\\b", "a\nb", "a\0b"])
def test_paths_are_looked_at_here_too(store: ContentStore, path: str) -> None:
    with pytest.raises(ValueError):
        store.put([SubmittedFile(path, b"")])
    with pytest.raises(ValueError):
        store.put([SubmittedFile("a", b""), SubmittedFile("a", b"")])
    assert list(store.digests()) == []
    assert incoming(store) == []


def test_a_file_where_a_folder_is(store: ContentStore) -> None:
    with pytest.raises(ContentError, match="cannot be kept: File exists"):
        store.put([SubmittedFile("a", b""), SubmittedFile("a/b", b"")])
    assert list(store.digests()) == []
    assert incoming(store) == []


def test_what_is_not_there(store: ContentStore) -> None:
    for ask in (store.path, store.read, store.verify):
        with pytest.raises(MissingContentError, match="there is no submission aaaa"):
            ask("a" * 64)
        for text in ("", "../x", "A" * 64, "a" * 63, "a" * 64 + "\n"):
            with pytest.raises(MissingContentError, match="is no digest"):
                ask(text)


def test_a_place_that_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ContentError, match="submissions cannot be kept here: Not a directory"):
        ContentStore(tmp_path / "file" / "store")


def test_modes(store: ContentStore) -> None:
    """Whatever the umask: others may read and run, nobody may write."""
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
def test_another_user_may_run_it_and_not_change_it(store: ContentStore, tmp_path: Path) -> None:
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


def link(top: Path) -> None:
    """To the same content."""
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
    "linked": (link, "'bot.py' has the mode 120777, not 100444"),
    "executable": (lambda top: (top / "bot.py").chmod(0o555), "'bot.py' has the mode 100555, not 100444"),
    "writable": (lambda top: (top / "lib").chmod(0o777), "'lib' has the mode 40777, not 40755"),
    "manifest": (
        lambda top: change(top.parent / "manifest", b"kalarena submission 1\n"),
        "manifest was changed",
    ),
    "no manifest": (
        lambda top: (top.parent / "manifest").unlink(),
        "manifest cannot be read: No such file or directory",
    ),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_is_found_and_mended(store: ContentStore, damage: str) -> None:
    act, sentence = DAMAGES[damage]
    digest = store.put(BOT)
    act(store.path(digest))
    for ask in (store.verify, store.read):
        with pytest.raises(
            DamagedContentError, match=f"submission {digest} is damaged: .*{sentence}; put it in"
        ):
            ask(digest)
    assert store.put(BOT) == digest
    assert store.read(digest) == BOT
    assert [path.name[:64] for path in (store.root / "damaged").iterdir()] == [digest]
    assert list(store.digests()) == [digest]


def test_what_is_half_gone_is_mended(store: ContentStore) -> None:
    digest = store.put(BOT)
    shutil.rmtree(store.path(digest))
    with pytest.raises(MissingContentError):
        store.verify(digest)
    assert store.put(BOT) == digest
    store.verify(digest)


def test_sweeping(store: ContentStore) -> None:
    """What nobody holds goes, whatever it is; what is kept stays."""
    digest = store.put(BOT)
    (store.root / "incoming/left/files").mkdir(parents=True)
    (store.root / "incoming/left/files/a").touch()
    (store.root / "incoming/file").touch()
    assert store.sweep() == 2
    assert store.sweep() == 0
    assert assert_whole(store) == {digest}
