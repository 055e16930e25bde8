"""Backups: a restored directory has the content of the original, and no damaged backup is restored."""

import errno
import gzip
import json
import os
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import tarfile
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tournaments.bots.storage import ContentStore
from tournaments.bots.upload.limits import SubmittedFile
from tournaments.course.backup import backup
from tournaments.course.backup.backup import back_up
from tournaments.course.backup.manifest import FORM, NAME, OLD_FORM, SHA256, BackupError, Manifest, check_path
from tournaments.course.backup.restore import restore, verify
from tournaments.course.backup.snapshots import copy_database, rows_of

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
SLUGS = ("cup", "practice")
CLUSTER_KEY = "cluster/credentials/key.pem"


def make_data(data: Path) -> str:
    """Make a small data directory; return the digest of its one submission."""
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
    names = (".hidden/x", "lock", ".lock", "weights.part", "data/cache.db-wal", "competitions/x/results.db")
    files = [SubmittedFile("bot.py", b"print()\n", executable=True)]
    files += [SubmittedFile(name, name.encode()) for name in names]  # Kalarena has files of such names, too
    digest = store.put(files)
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
    """Return a folder with ``data`` and its backup ``course.tar``, which no test changes."""
    folder = tmp_path_factory.mktemp("backup")
    make_data(folder / "data")
    backed_up(folder / "data", folder / "course.tar")
    return folder


def test_a_restored_directory_has_the_content_of_the_original(tmp_path: Path) -> None:
    digest = make_data(tmp_path / "data")
    manifest = backed_up(tmp_path / "data", tmp_path / "course.tar")
    assert sorted(manifest.rows) == [*(f"competitions/{slug}/results.db" for slug in SLUGS), "course.db"]
    assert all(rows == {"thing": 20} for rows in manifest.rows.values())
    assert manifest.made_at == "2026-03-01T12:00:00+00:00"

    assert restore(tmp_path / "course.tar", tmp_path / "new") == manifest
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o700
    for path in manifest.rows:
        assert tables(tmp_path / "new" / path) == tables(tmp_path / "data" / path)
    assert (tmp_path / "new" / "secret").read_bytes() == (tmp_path / "data" / "secret").read_bytes()
    assert stat.S_IMODE((tmp_path / "new" / "secret").stat().st_mode) == 0o600
    ContentStore(tmp_path / "new" / "submissions").verify(digest)
    assert (tmp_path / "new" / "bots" / "empty").is_dir()
    there = {path.relative_to(tmp_path / "new").as_posix() for path in (tmp_path / "new").rglob("*")}
    assert not {"lock", "submissions/incoming/half", CLUSTER_KEY} & there
    assert not [path for path in there if path.endswith((".db-wal", ".db-shm")) and "/files/" not in path]


def test_what_is_being_made_is_not_in_a_backup(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Builds, uploads and files of games end or vanish while the archive is written."""
    data = tmp_path / "data"
    make_data(data)
    half = ("bots/incoming/one/bot", "competitions/cup/games/.r001-1v2.part", "submissions/incoming/two")
    for folder in half:
        (data / folder).mkdir(parents=True)
        (data / folder / "bot.py").write_text("half")
    (data / "competitions/cup/report.html.part").write_text("half")
    (data / "competitions/cup/.lock").write_text("boot id")
    iterdir = Path.iterdir

    def vanishing(folder: Path) -> Iterator[Path]:
        """List a folder, and end the builds and games before the list is used."""
        found = list(iterdir(folder))
        if folder.name in ("incoming", "games"):
            for path in found:
                shutil.rmtree(path, ignore_errors=True)
        yield from found

    (data / "competitions/cup/games/r001-1v3").mkdir()
    monkeypatch.setattr(Path, "iterdir", vanishing)
    manifest = backed_up(data, tmp_path / "course.tar")
    monkeypatch.undo()
    kept = [path for path in (*manifest.files, *manifest.directories) if "/files" not in path]
    assert not [path for path in kept if "incoming" in path or path.endswith((".part", ".lock"))]
    assert restore(tmp_path / "course.tar", tmp_path / "new") == manifest


def test_a_backup_leaves_out_lost_and_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data, iterdir = tmp_path / "data", Path.iterdir
    make_data(data)
    forbidden = data / "lost+found"
    forbidden.mkdir()

    def iterate(path: Path) -> Iterator[Path]:
        if path == forbidden:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return iterdir(path)

    monkeypatch.setattr(Path, "iterdir", iterate)
    manifest = backed_up(data, tmp_path / "b.tar")
    assert "lost+found" not in manifest.directories
    assert "course.db" in manifest.files


def test_a_competition_that_is_made_during_the_backup_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server makes an empty store for it; a copy of a file that is written to may be damaged."""
    data = tmp_path / "data"
    make_data(data)
    new = data / "competitions" / "new" / "results.db"

    def copy(source: Path, to: Path) -> None:
        if source.name == backup.COURSE_FILE:
            new.parent.mkdir()
            shutil.copy(data / "competitions" / "cup" / "results.db", new)
        copy_database(source, to)

    with monkeypatch.context() as patch:
        patch.setattr(backup, "copy_database", copy)
        manifest = backed_up(data, tmp_path / "course.tar")
    assert new.is_file()
    assert restore(tmp_path / "course.tar", tmp_path / "restored") == manifest
    databases = (tmp_path / "restored" / "competitions").glob("*/results.db")
    assert sorted(path.parent.name for path in databases) == list(SLUGS)


def test_only_its_owner_can_read_a_backup(place: Path) -> None:
    assert stat.S_IMODE((place / "course.tar").stat().st_mode) == 0o600
    assert sorted(path.name for path in place.iterdir()) == ["course.tar", "data"]


def test_each_database_is_copied_as_of_one_moment_while_it_is_written(tmp_path: Path) -> None:
    data = tmp_path / "data"
    make_data(data)
    stop, began = threading.Event(), threading.Event()

    def write() -> None:
        """Write two rows in each transaction: a copy with an odd number has half of a transaction."""
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
        assert began.wait(60)
        manifests = [backed_up(data, tmp_path / f"{number}.tar") for number in range(3)]
    finally:
        stop.set()
        writer.join()
    counts = [manifest.rows["course.db"]["thing"] for manifest in manifests]
    assert all(count % 2 == 0 for count in counts)
    assert 20 < counts[0] <= counts[1] <= counts[2]


def test_a_backup_without_databases(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "server.toml").write_text("")
    target = tmp_path / "course.tar"
    manifest = back_up(tmp_path / "data", target, databases_inside=False, version="1.0", now=NOW)
    assert (manifest.rows, list(manifest.files)) == ({}, ["server.toml"])
    assert not restore(target, tmp_path / "new").databases_inside


def test_a_compressed_backup_is_restored(place: Path, tmp_path: Path) -> None:
    (tmp_path / "course.tar.gz").write_bytes(gzip.compress((place / "course.tar").read_bytes()))
    assert restore(tmp_path / "course.tar.gz", tmp_path / "new") == verify(place / "course.tar")


def refused(action: Callable[[], object]) -> str:
    with pytest.raises(BackupError) as raised:
        action()
    return str(raised.value)


def test_a_backup_that_cannot_be_made_leaves_nothing(place: Path, tmp_path: Path) -> None:
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


def test_rows_of_a_damaged_database_are_not_counted(tmp_path: Path) -> None:
    """Damage that SQLite finds when it opens the file, and damage that only its check finds."""
    path = tmp_path / "course.db"
    path.write_bytes(b"no database" * 100)
    assert "course.db cannot be read: file is not a database" in refused(lambda: rows_of(path))
    path.unlink()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE thing (id INTEGER PRIMARY KEY, text TEXT)")
        connection.execute("INSERT INTO thing VALUES (1, NULL)")
        connection.commit()
        assert rows_of(path) == {"thing": 1}
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute("UPDATE sqlite_master SET sql = replace(sql, 'text TEXT', 'text TEXT NOT NULL')")
        connection.commit()
    assert "course.db is damaged: NULL value in thing.text" in refused(lambda: rows_of(path))


def test_links_below_the_data_directory_are_not_followed(tmp_path: Path) -> None:
    make_data(tmp_path / "data")
    (tmp_path / "server.toml").write_text("port = 1")
    for folder in ("data", "data/bots"):
        (tmp_path / folder / "server.toml").symlink_to(tmp_path / "server.toml")
    manifest = backed_up(tmp_path / "data", tmp_path / "course.tar")
    assert "server.toml" in manifest.files
    assert "bots/server.toml" not in manifest.files


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (None, "is not what was written: is the disk sound?"),
        (OSError(28, "it is full"), "no backup was made"),
    ],
)
def test_a_backup_that_is_not_read_back_is_not_kept(
    error: OSError | None, words: str, place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(_archive: Path) -> None:
        if error is not None:
            raise error

    monkeypatch.setattr(backup, "verify", failing)
    assert words in refused(lambda: backed_up(place / "data", tmp_path / "course.tar"))
    assert list(tmp_path.iterdir()) == []


KILLED = """
import os, signal, sys
from datetime import UTC, datetime
from pathlib import Path
from tournaments.course.backup import backup, restore

def kill(_path):
    os.kill(os.getpid(), signal.SIGKILL)

backup.verify = restore.sync_tree = kill
place, target = map(Path, sys.argv[2:])
if sys.argv[1] == "backup":
    now = datetime.now(UTC)
    backup.back_up(place / "data", target, databases_inside=True, version="1.0", now=now)
else:
    restore.restore(place / "course.tar", target)
"""
"""Makes a backup or restores one, and is killed when everything is written."""


@pytest.mark.parametrize("action", ["backup", "restore"])
def test_the_next_run_removes_what_a_killed_one_left(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, action: str
) -> None:
    words = (sys.executable, "-c", KILLED, action, str(place), str(tmp_path / "new"))
    assert subprocess.run(words, check=False).returncode == -signal.SIGKILL
    assert list(tmp_path.iterdir()) != []
    own = [".kalarena-backup-mine/file", ".kalarena-backup-file", ".new.123.part", "other/lock"]
    for name in own:  # of somebody else
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / ".kalarena-backup-link").symlink_to(tmp_path / "other")

    def another(archive: Path) -> Manifest:
        """Make and restore another backup while this one is being made."""
        monkeypatch.setattr(backup, "verify", verify)
        backed_up(place / "data", tmp_path / "other.tar")
        restore(tmp_path / "other.tar", tmp_path / "restored")
        return verify(archive)

    monkeypatch.setattr(backup, "verify", another)
    backed_up(place / "data", tmp_path / "new.tar")
    names = {name.partition("/")[0] for name in own}
    left = names | {".kalarena-backup-link", "new.tar", "other.tar", "restored"}
    assert {path.name for path in tmp_path.iterdir()} == left
    assert all((tmp_path / name).exists() for name in own)


def test_a_backup_needs_no_locks(place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some network file systems have none."""

    def fail(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr("fcntl.flock", fail)
    manifest = backed_up(place / "data", tmp_path / "course.tar")
    assert restore(tmp_path / "course.tar", tmp_path / "new") == manifest
    assert sorted(path.name for path in tmp_path.iterdir()) == ["course.tar", "new"]


def test_a_backup_is_restored_into_an_empty_directory(place: Path, tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    assert "not empty" in refused(lambda: restore(place / "course.tar", tmp_path / "full"))
    assert "not empty" in refused(lambda: restore(place / "course.tar", tmp_path / "full" / "file"))
    (tmp_path / "empty").mkdir()
    restore(place / "course.tar", tmp_path / "empty")
    assert (tmp_path / "empty" / "course.db").is_file()
    assert "No such file" in refused(lambda: restore(tmp_path / "no.tar", tmp_path / "new"))


def test_a_part_of_a_backup_is_refused(place: Path, tmp_path: Path) -> None:
    whole = (place / "course.tar").read_bytes()
    for size in (0, 100, 512, len(whole) // 2, len(whole) - 15_000):
        (tmp_path / "part.tar").write_bytes(whole[:size])
        assert "is no backup" in refused(lambda: restore(tmp_path / "part.tar", tmp_path / "new"))
        assert not (tmp_path / "new").exists()


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_a_changed_byte_is_found_or_irrelevant(place: Path, data: st.DataObject) -> None:
    """A tar has unused bytes between its files."""
    whole = bytearray((place / "course.tar").read_bytes())
    whole[data.draw(st.integers(0, len(whole) - 1))] ^= data.draw(st.integers(1, 255))
    changed = place.parent / f"{place.name}-changed.tar"
    changed.write_bytes(whole)
    try:
        found = verify(changed)
    except BackupError:
        return
    assert found == verify(place / "course.tar")


def test_added_files_and_paths_that_lead_out_are_refused(place: Path, tmp_path: Path) -> None:
    for name, why in (("more", "not what was backed up"), ("../out", "not made by kalarena")):
        with tarfile.open(place / "course.tar") as old, tarfile.open(tmp_path / "new.tar", "w") as new:
            for member in old:
                if member.name == NAME:
                    new.addfile(tarfile.TarInfo(name))
                new.addfile(member, old.extractfile(member))
        assert why in refused(lambda: restore(tmp_path / "new.tar", tmp_path / "new"))
        assert sorted(path.name for path in tmp_path.iterdir()) == ["new.tar"]
    with tarfile.open(tmp_path / "link.tar", "w") as archive:
        link = tarfile.TarInfo("link")
        link.type, link.linkname = tarfile.SYMTYPE, "course.db"
        archive.addfile(link)
    assert "is no file" in refused(lambda: restore(tmp_path / "link.tar", tmp_path / "new"))


@pytest.mark.parametrize("path", ["", "/x", "../x", "a/../../x", "a//b", "./a", "a\0"])
def test_invalid_paths(path: str) -> None:
    assert "not made by kalarena" in refused(lambda: check_path(path))


# Manifests

MANIFEST = Manifest("2026-03-01T12:00:00+00:00", "1.0", databases_inside=True, directories={"bots": 0o700})


@pytest.mark.parametrize(("old", "new"), [("2026", "3026"), (str(0o700), str(0o777)), ('"1.0"', '"1.1"')])
def test_a_changed_manifest_is_refused(old: str, new: str) -> None:
    text = MANIFEST.to_json()
    assert Manifest.from_json(text.encode()) == MANIFEST
    changed = text.replace(old, new)
    assert changed != text
    assert "was changed" in refused(lambda: Manifest.from_json(changed.encode()))


def test_earlier_and_later_forms_of_manifests() -> None:
    """The first form had no digest of the manifest."""
    fields = {**json.loads(MANIFEST.to_json()), "form": OLD_FORM}
    del fields[SHA256]
    assert Manifest.from_json(json.dumps(fields).encode()) == MANIFEST
    fields["form"] = FORM
    assert "is damaged" in refused(lambda: Manifest.from_json(json.dumps(fields).encode()))
    assert "upgrade" in refused(lambda: Manifest.from_json(b'{"form": "kalarena backup 3"}'))
