"""Backups: what is restored is what was there, and nothing that is damaged is taken for a backup."""

import json
import os
import shutil
import sqlite3
import stat
import tarfile
import threading
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tournaments.bots.storage import ContentStore
from tournaments.bots.upload.limits import SubmittedFile
from tournaments.course.backup.backup import back_up
from tournaments.course.backup.manifest import FORM, NAME, OLD_FORM, SHA256, BackupError, Manifest, check_path
from tournaments.course.backup.restore import restore, verify

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
SLUGS = ("cup", "practice")
CLUSTER_KEY = "cluster/credentials/key.pem"


def make_data(data: Path) -> str:
    """A small data directory; the digest of its one submission."""
    data.mkdir()
    for path in (data / "course.db", *(data / "competitions" / slug / "results.db" for slug in SLUGS)):
        path.parent.mkdir(parents=True, exist_ok=True)
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("CREATE TABLE thing (id INTEGER PRIMARY KEY, text TEXT, bytes BLOB)")
            rows = [(number, f"{path.name} {number}", bytes(range(number))) for number in range(20)]
            connection.executemany("INSERT INTO thing VALUES (?, ?, ?)", rows)
            connection.commit()
    (data / "secret").write_bytes(os.urandom(32))
    (data / "secret").chmod(0o600)
    (data / "lock").touch()
    (data / "bots" / "empty").mkdir(parents=True)
    store = ContentStore(data / "submissions")
    digest = store.put(
        [
            SubmittedFile("bot.py", b"print()\n", executable=True),
            SubmittedFile(".hidden/x", b"", executable=False),
        ]
    )
    (data / "submissions" / "incoming" / "half").write_text("not yet")
    (data / "cluster" / "credentials").mkdir(parents=True)
    (data / CLUSTER_KEY).write_text("who has it runs programs on every worker")
    return digest


def backed_up(data: Path, target: Path) -> Manifest:
    return back_up(data, target, databases_inside=True, version="1.0", now=NOW)


def tables(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as connection:
        return list(connection.iterdump())


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with ``data`` and its backup ``course.tar``; nobody changes them."""
    folder = tmp_path_factory.mktemp("backup")
    make_data(folder / "data")
    backed_up(folder / "data", folder / "course.tar")
    return folder


def test_what_is_restored_is_what_was_there(tmp_path: Path) -> None:
    digest = make_data(tmp_path / "data")
    manifest = backed_up(tmp_path / "data", tmp_path / "course.tar")
    assert sorted(manifest.rows) == [*(f"competitions/{slug}/results.db" for slug in SLUGS), "course.db"]
    assert all(rows == {"thing": 20} for rows in manifest.rows.values())
    assert manifest.made_at == "2026-03-01T12:00:00+00:00"

    assert restore(tmp_path / "course.tar", tmp_path / "new") == manifest
    for path in manifest.rows:
        assert tables(tmp_path / "new" / path) == tables(tmp_path / "data" / path)
    assert (tmp_path / "new" / "secret").read_bytes() == (tmp_path / "data" / "secret").read_bytes()
    assert stat.S_IMODE((tmp_path / "new" / "secret").stat().st_mode) == 0o600
    ContentStore(tmp_path / "new" / "submissions").verify(digest)
    assert (tmp_path / "new" / "bots" / "empty").is_dir()
    there = {path.relative_to(tmp_path / "new").as_posix() for path in (tmp_path / "new").rglob("*")}
    assert not {"lock", "submissions/incoming/half", CLUSTER_KEY} & there
    assert not [path for path in there if path.endswith(("-wal", "-shm"))]


def test_only_its_owner_reads_a_backup_and_nothing_else_is_left(place: Path) -> None:
    assert stat.S_IMODE((place / "course.tar").stat().st_mode) == 0o600
    assert sorted(path.name for path in place.iterdir()) == ["course.tar", "data"]


def test_each_database_is_copied_as_of_one_moment_while_it_is_written(tmp_path: Path) -> None:
    data = tmp_path / "data"
    make_data(data)
    stop, began = threading.Event(), threading.Event()

    def write() -> None:
        """Always two rows in one transaction: a copy with an odd number has half of one."""
        with closing(sqlite3.connect(data / "course.db", isolation_level=None)) as connection:
            while not stop.is_set():
                connection.execute("BEGIN IMMEDIATE")
                connection.execute("INSERT INTO thing (text) VALUES ('one')")
                connection.execute("INSERT INTO thing (text) VALUES ('other')")
                connection.execute("COMMIT")
                began.set()

    writer = threading.Thread(target=write)
    writer.start()
    try:
        assert began.wait(10)
        counts = [
            backed_up(data, tmp_path / f"{number}.tar").rows["course.db"]["thing"] for number in range(3)
        ]
    finally:
        stop.set()
        writer.join()
    assert all(count % 2 == 0 for count in counts)
    assert 20 < counts[0] <= counts[1] <= counts[2]


def test_without_databases_of_our_own(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "server.toml").write_text("")
    manifest = back_up(
        tmp_path / "data", tmp_path / "course.tar", databases_inside=False, version="1.0", now=NOW
    )
    assert (manifest.rows, list(manifest.files)) == ({}, ["server.toml"])
    assert not restore(tmp_path / "course.tar", tmp_path / "new").databases_inside


def test_a_compressed_backup_is_restored_as_well(place: Path, tmp_path: Path) -> None:
    import gzip

    with (place / "course.tar").open("rb") as file, gzip.open(tmp_path / "course.tar.gz", "wb") as out:
        shutil.copyfileobj(file, out)
    assert restore(tmp_path / "course.tar.gz", tmp_path / "new") == verify(place / "course.tar")


def refused(what: Callable[[], object]) -> str:
    with pytest.raises(BackupError) as raised:
        what()
    return str(raised.value)


def test_where_no_backup_goes(place: Path, tmp_path: Path) -> None:
    data = place / "data"
    assert "choose another place" in refused(lambda: backed_up(data, data / "course.tar"))
    assert "is there already" in refused(lambda: backed_up(data, place / "course.tar"))
    assert "make it first" in refused(lambda: backed_up(data, tmp_path / "no" / "course.tar"))
    assert "holds no course.db" in refused(lambda: backed_up(tmp_path, place / "other.tar"))
    assert "is no directory" in refused(lambda: backed_up(tmp_path / "no", place / "other.tar"))
    assert sorted(path.name for path in place.iterdir()) == ["course.tar", "data"]


def test_a_damaged_database_is_not_backed_up(tmp_path: Path) -> None:
    make_data(tmp_path / "data")
    path = tmp_path / "data" / "course.db"
    path.write_bytes(path.read_bytes()[:100] + bytes(4000))
    assert "course.db cannot be copied" in refused(lambda: backed_up(tmp_path / "data", tmp_path / "x.tar"))
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


def test_where_nothing_is_restored(place: Path, tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    assert "not empty" in refused(lambda: restore(place / "course.tar", tmp_path / "full"))
    assert "not empty" in refused(lambda: restore(place / "course.tar", tmp_path / "full" / "file"))
    (tmp_path / "empty").mkdir()
    restore(place / "course.tar", tmp_path / "empty")
    assert (tmp_path / "empty" / "course.db").is_file()
    assert "No such file" in refused(lambda: restore(tmp_path / "no.tar", tmp_path / "new"))


def test_a_part_of_a_backup_is_none(place: Path, tmp_path: Path) -> None:
    whole = (place / "course.tar").read_bytes()
    for size in (0, 100, 512, len(whole) // 2, len(whole) - 15_000):
        (tmp_path / "part.tar").write_bytes(whole[:size])
        assert "is no backup" in refused(lambda: restore(tmp_path / "part.tar", tmp_path / "new"))
        assert not (tmp_path / "new").exists()


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_a_changed_byte_is_found_or_of_no_consequence(place: Path, data: st.DataObject) -> None:
    """Between files, a tar has bytes that say nothing."""
    whole = bytearray((place / "course.tar").read_bytes())
    whole[data.draw(st.integers(0, len(whole) - 1))] ^= data.draw(st.integers(1, 255))
    changed = place.parent / f"{place.name}-changed.tar"
    changed.write_bytes(whole)
    try:
        found = verify(changed)
    except BackupError:
        return
    assert found == verify(place / "course.tar")


def test_files_that_were_added_or_lead_out_are_refused(place: Path, tmp_path: Path) -> None:
    for name, why in (("more", "not what was backed up"), ("../out", "not made by kalarena")):
        with tarfile.open(place / "course.tar") as old, tarfile.open(tmp_path / "new.tar", "w") as new:
            for member in old:
                if member.name == NAME:
                    new.addfile(tarfile.TarInfo(name))
                new.addfile(member, old.extractfile(member))
        assert why in refused(lambda: restore(tmp_path / "new.tar", tmp_path / "new"))
        assert sorted(path.name for path in tmp_path.iterdir()) == ["new.tar"]


def test_a_link_is_refused(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "link.tar", "w") as archive:
        member = tarfile.TarInfo("link")
        member.type, member.linkname = tarfile.SYMTYPE, "course.db"
        archive.addfile(member)
    assert "is no file" in refused(lambda: restore(tmp_path / "link.tar", tmp_path / "new"))


@pytest.mark.parametrize("path", ["", "/x", "../x", "a/../../x", "a//b", "./a", "a\0"])
def test_paths_that_no_backup_has(path: str) -> None:
    assert "not made by kalarena" in refused(lambda: check_path(path))


def test_what_it_says_of_itself_cannot_be_changed_unseen() -> None:
    manifest = Manifest("2026-03-01T12:00:00+00:00", "1.0", True, directories={"bots": 0o700})
    text = manifest.to_json()
    assert Manifest.from_json(text.encode()) == manifest
    for old, new in (("2026", "3026"), (str(0o700), str(0o777)), ('"1.0"', '"1.1"')):
        changed = text.replace(old, new)
        assert changed != text
        assert "was changed" in refused(lambda: Manifest.from_json(changed.encode()))  # noqa: B023 - at once


def test_the_first_form_said_less_of_itself() -> None:
    manifest = Manifest("2026-03-01T12:00:00+00:00", "1.0", databases_inside=True)
    told = {**json.loads(manifest.to_json()), "form": OLD_FORM}
    del told[SHA256]
    assert Manifest.from_json(json.dumps(told).encode()) == manifest
    told["form"] = FORM
    assert "is damaged" in refused(lambda: Manifest.from_json(json.dumps(told).encode()))


def test_a_newer_form_says_so() -> None:
    assert "upgrade" in refused(lambda: Manifest.from_json(b'{"form": "kalarena backup 3"}'))
