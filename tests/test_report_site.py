"""The report's folder: it appears as a whole, takes the old one's place, and nothing else's."""

import errno
import fcntl
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.reports import write_store
from tests.tampering import tampering
from tests.test_report import files_of, made, mixed, report
from tournaments.reporting.site import site


def left(directory: Path) -> list[str]:
    names = (path.name for path in directory.iterdir())
    return sorted(name for name in names if not name.startswith("results.db-"))  # what SQLite leaves


def test_it_says_where_the_page_is(tmp_path: Path) -> None:
    directory = mixed(tmp_path)
    result = report(directory, "--out", str(tmp_path / "deep" / "folder"))
    assert result.exit_code == 0
    page, about = result.stdout.splitlines()
    assert Path(page) == tmp_path / "deep" / "folder" / "index.html"
    assert Path(page).is_file()
    assert about.startswith(f"{len(files_of(Path(page).parent))} files, ")
    assert left(tmp_path / "deep") == ["folder"]


def test_an_old_report_is_replaced(tmp_path: Path) -> None:
    directory = mixed(tmp_path)
    first = made(directory)
    (first / "games" / "old.html").touch()
    made(directory)
    assert not (first / "games" / "old.html").exists()
    assert left(directory) == ["report", "results.db"]


def test_a_report_behind_a_link(tmp_path: Path) -> None:
    directory = mixed(tmp_path)
    (tmp_path / "real").mkdir()
    (directory / "report").symlink_to(tmp_path / "real")
    assert report(directory).exit_code == 0
    assert (directory / "report").is_symlink()
    assert (tmp_path / "real" / "index.html").is_file()


def test_what_is_no_report_stays(tmp_path: Path) -> None:
    directory = mixed(tmp_path)
    mine = directory / "report" / "mine.txt"
    mine.parent.mkdir()
    mine.write_text("work of months", encoding="utf-8")
    result = report(directory)
    assert result.exit_code == 2
    assert "is no report" in result.stderr
    assert files_of(directory / "report") == {"mine.txt": b"work of months"}
    for out in (directory, tmp_path, directory / "results.db", mine):
        assert report(directory, "--out", str(out)).exit_code == 2
    assert (directory / "results.db").is_file()
    assert left(directory) == ["report", "results.db"]


def test_an_empty_folder_is_used(tmp_path: Path) -> None:
    directory = mixed(tmp_path)
    (directory / "report").mkdir()
    made(directory)


def broken_write(monkeypatch: pytest.MonkeyPatch, error: BaseException, after: int) -> None:
    """Let a page not be written after so many."""
    real = site.write_page
    count = 0

    def write(path: Path, text: str) -> None:
        nonlocal count
        count += 1
        if count > after:
            raise error
        real(path, text)

    monkeypatch.setattr(site, "write_page", write)


@pytest.mark.parametrize("after", [0, 3, 12, 14])
def test_a_build_that_fails_leaves_the_old_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    directory = mixed(tmp_path)
    before = files_of(made(directory))
    broken_write(monkeypatch, KeyboardInterrupt(), after)
    report(directory)
    assert files_of(directory / "report") == before
    assert left(directory) == ["report", "results.db"]


def failing(name: str, real: Callable[..., Any], number: int) -> Callable[..., Any]:
    """A method of Path that fails for names that end so, since the disk is full."""

    def write(path: Path, *arguments: object, **options: object) -> Any:
        if str(path).endswith(name):
            raise OSError(number, os.strerror(number), str(path))
        return real(path, *arguments, **options)

    return write


def cannot(out: Path, why: str) -> str:
    """What is said when the file system refuses."""
    return (
        f"Error: the report cannot be written to {out}: {why}; nothing was changed; "
        "choose another place with --out\n"
    )


@pytest.mark.parametrize("name", ["index.html", "r002-2v1.html", "games.html", "ada.html"])
def test_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    directory = mixed(tmp_path)
    before = files_of(made(directory))
    monkeypatch.setattr(Path, "write_text", failing(name, Path.write_text, errno.ENOSPC))
    result = report(directory)
    assert result.exit_code == 1
    assert result.stderr == cannot(directory / "report", "no space left on device")
    assert files_of(directory / "report") == before
    assert left(directory) == ["report", "results.db"]


def test_a_folder_that_cannot_be_moved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = mixed(tmp_path)
    before = files_of(made(directory))
    monkeypatch.setattr(Path, "rename", failing(".report.part", Path.rename, errno.EACCES))
    result = report(directory)
    assert result.exit_code == 1
    assert result.stderr == cannot(directory / "report", "permission denied")
    assert files_of(directory / "report") == before


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EDQUOT])
def test_a_disk_that_takes_no_assets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """They are copied, not written like pages."""
    directory = mixed(tmp_path)
    before = files_of(made(directory))
    real = Path(os.path.realpath(directory))

    def refuse(_source: Path, target: Path) -> None:
        raise OSError(number, os.strerror(number), str(target))

    monkeypatch.setattr(shutil, "copyfile", refuse)
    result = report(directory)
    assert result.exit_code == 1
    assert result.stderr == cannot(real / "report", os.strerror(number).lower())
    assert files_of(directory / "report") == before
    assert left(directory) == ["report", "results.db"]


@pytest.mark.parametrize("processes", [1, 2])
def test_a_page_that_a_process_cannot_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, processes: int
) -> None:
    """What a process of ours meets is told like what we meet: here a folder is in the way of a page."""
    directory = mixed(tmp_path)
    monkeypatch.setattr(site, "GAMES_PER_PROCESS", 1)
    monkeypatch.setattr(site, "core_count", lambda: processes)
    real = Path.mkdir

    def mkdir(path: Path, *arguments: Any, **options: Any) -> None:
        real(path, *arguments, **options)
        if path.name == "games" and ".report.part" in path.parts:
            real(path / "r001-2v1.html")

    monkeypatch.setattr(Path, "mkdir", mkdir)
    result = report(directory)
    assert result.exit_code == 1
    assert result.stderr == cannot(directory / "report", "is a directory")
    assert left(directory) == ["results.db"]


def test_a_place_that_can_never_be_one(tmp_path: Path) -> None:
    directory = mixed(tmp_path)
    (tmp_path / "file").touch()
    for out, why in (
        (tmp_path / "file" / "report", f"{tmp_path / 'file'} is no folder"),
        (tmp_path / "file" / "deep" / "report", f"{tmp_path / 'file'} is no folder"),
        (tmp_path / ("x" * 300), "file name too long"),
    ):
        result = report(directory, "--out", str(out))
        assert result.exit_code == 2
        assert result.stderr == cannot(out, why)
    assert left(directory) == ["results.db"]


def test_what_a_killed_build_left_goes(tmp_path: Path) -> None:
    directory = mixed(tmp_path)
    for name in (".report.part", ".report.old"):
        (directory / name / "games").mkdir(parents=True)
        (directory / name / "games" / "half.html").touch()
    assert "games/half.html" not in files_of(made(directory))
    assert left(directory) == ["report", "results.db"]


def test_two_at_a_time(tmp_path: Path) -> None:
    directory = mixed(tmp_path)
    (directory / ".report.part").mkdir()
    descriptor = os.open(directory / ".report.part", os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        result = report(directory)
    finally:
        os.close(descriptor)
    assert result.exit_code == 1
    assert "another report is being made" in result.stderr


def test_no_tournament(tmp_path: Path) -> None:
    result = report(tmp_path / "nothing")
    assert result.exit_code == 2
    assert "holds no results.db" in result.stderr


@pytest.mark.parametrize("processes", [1, 2])
def test_a_damaged_game(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, processes: int) -> None:
    directory = write_store(tmp_path / "cup", ["ada", "bob"])
    with tampering(directory / "results.db") as connection:
        connection.exec_driver_sql("UPDATE game SET record = x'00' WHERE key = 'r001-2v1'")
    monkeypatch.setattr(site, "GAMES_PER_PROCESS", 1)
    monkeypatch.setattr(site, "core_count", lambda: processes)
    result = report(directory)
    assert result.exit_code == 1
    assert "game r001-2v1" in result.stderr
    assert left(directory) == ["results.db"]
