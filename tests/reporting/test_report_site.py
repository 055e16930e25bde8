"""The report's folder: it appears as a whole and replaces nothing but an older report."""

import errno
import fcntl
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.reporting.reports import Page, files_of, made, mixed, records_of, report, some, summary_of
from tests.support.tampering import tampering
from tests.support.tiers import slow
from tournaments.reporting.site import site
from tournaments.reporting.site.pages import Pages
from tournaments.reporting.site.times import game_times
from tournaments.reporting.site.view import View
from tournaments.results.game_summary import GameSummary

BOTS = 40
LARGEST_PAGE = 2_000_000
"""Bytes that a phone shows at once without complaint."""


def left(directory: Path) -> list[str]:
    """Return the names in a folder, without SQLite's temporary files."""
    names = (path.name for path in directory.iterdir())
    return sorted(name for name in names if not name.startswith("results.db-"))


@pytest.fixture(scope="module")
def reported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tournament with a report; no test changes it."""
    directory = mixed(tmp_path_factory.mktemp("reported"))
    made(directory)
    return directory


@pytest.fixture
def directory(reported: Path, tmp_path: Path) -> Path:
    """A copy of a tournament with a report."""
    return Path(shutil.copytree(reported, tmp_path / "cup"))


def test_the_command_prints_where_the_page_is(directory: Path, tmp_path: Path) -> None:
    result = report(directory, "--out", tmp_path / "deep" / "folder")
    assert result.exit_code == 0
    page, about = result.stdout.splitlines()
    assert Path(page) == tmp_path / "deep" / "folder" / "index.html"
    assert about.startswith(f"{len(files_of(Path(page).parent))} files, ")
    assert left(tmp_path / "deep") == ["folder"]


def test_an_old_report_is_replaced(directory: Path) -> None:
    """So are the remains of a build that was killed, and an empty folder."""
    before = files_of(directory / "report")
    (directory / "report" / "games" / "old.html").touch()
    for name in (".report.part", ".report.old"):
        (directory / name / "games").mkdir(parents=True)
        (directory / name / "games" / "half.html").touch()
    assert files_of(made(directory)) == before
    assert left(directory) == ["report", "results.db"]
    shutil.rmtree(directory / "report")
    (directory / "report").mkdir()
    assert files_of(made(directory)) == before


def test_a_report_behind_a_link(directory: Path, tmp_path: Path) -> None:
    (directory / "report").rename(tmp_path / "real")
    (tmp_path / "real" / "index.html").write_text("old")
    (directory / "report").symlink_to(tmp_path / "real")
    assert report(directory).exit_code == 0
    assert (directory / "report").is_symlink()
    assert (tmp_path / "real" / "index.html").read_text() != "old"


def test_other_folders_are_not_replaced(directory: Path, tmp_path: Path) -> None:
    shutil.rmtree(directory / "report")
    mine = directory / "report" / "mine.txt"
    mine.parent.mkdir()
    mine.write_text("work of months", encoding="utf-8")
    result = report(directory)
    assert result.exit_code == 2
    assert "is no report" in result.stderr
    for out in (directory, tmp_path, directory / "results.db", mine):
        assert report(directory, "--out", out).exit_code == 2
    assert files_of(directory / "report") == {"mine.txt": b"work of months"}
    assert left(directory) == ["report", "results.db"]


def refused(out: Path, why: str) -> str:
    """Return the message for a report that the file system does not take."""
    return (
        f"Error: the report cannot be written to {out}: {why}; nothing was changed; "
        "choose another place with --out\n"
    )


def failing(name: str, real: Callable[..., Any], error: BaseException) -> Callable[..., Any]:
    """Return a method of Path that fails for paths that end with a name."""

    def call(path: Path, *arguments: object, **options: object) -> Any:
        if str(path).endswith(name):
            raise error
        return real(path, *arguments, **options)

    return call


NO_SPACE = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize(
    ("method", "name", "error", "why"),
    [
        *(
            ("write_text", name, NO_SPACE, "no space left on device")
            for name in ("index.html", "r001-2v1.html", "games.html", "ada.html")
        ),
        ("write_text", "games.html", KeyboardInterrupt(), ""),
        ("rename", ".report.part", OSError(errno.EACCES, os.strerror(errno.EACCES)), "permission denied"),
    ],
)
def test_a_build_that_fails_leaves_the_old_report(
    directory: Path, monkeypatch: pytest.MonkeyPatch, method: str, name: str, error: BaseException, why: str
) -> None:
    before = files_of(directory / "report")
    monkeypatch.setattr(Path, method, failing(name, getattr(Path, method), error))
    result = report(directory)
    assert result.exit_code == 1
    if why:
        assert result.stderr == refused(directory / "report", why)
    assert files_of(directory / "report") == before
    assert left(directory) == ["report", "results.db"]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EDQUOT])
def test_a_disk_that_takes_no_assets(directory: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """Assets are copied, not written like pages."""
    before = files_of(directory / "report")

    def refuse(_source: Path, target: Path) -> None:
        raise OSError(number, os.strerror(number), str(target))

    monkeypatch.setattr(shutil, "copyfile", refuse)
    result = report(directory)
    assert result.exit_code == 1
    assert result.stderr == refused(directory.resolve() / "report", os.strerror(number).lower())
    assert files_of(directory / "report") == before
    assert left(directory) == ["report", "results.db"]


@pytest.mark.parametrize("processes", [1, *slow(2)])
def test_errors_of_the_processes_that_write_pages(
    directory: Path, monkeypatch: pytest.MonkeyPatch, processes: int
) -> None:
    """A folder is in the way of a page, or a record is damaged."""
    shutil.rmtree(directory / "report")
    monkeypatch.setattr(site, "GAMES_PER_PROCESS", 1)
    monkeypatch.setattr(site, "core_count", lambda: processes)
    real = Path.mkdir

    def mkdir(path: Path, *arguments: Any, **options: Any) -> None:
        real(path, *arguments, **options)
        if path.name == "games" and ".report.part" in path.parts:
            real(path / "r001-2v1.html")

    with monkeypatch.context() as patched:
        patched.setattr(Path, "mkdir", mkdir)
        result = report(directory)
    assert result.exit_code == 1
    assert result.stderr == refused(directory / "report", "is a directory")
    with tampering(directory / "results.db") as connection:
        connection.exec_driver_sql("UPDATE game SET record = x'00' WHERE key = 'r001-2v1'")
    result = report(directory)
    assert result.exit_code == 1
    assert "game r001-2v1" in result.stderr
    assert left(directory) == ["results.db"]


def test_impossible_folders(directory: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for out, why in (
        (tmp_path / "file" / "report", f"{tmp_path / 'file'} is no folder"),
        (tmp_path / "file" / "deep" / "report", f"{tmp_path / 'file'} is no folder"),
        (tmp_path / ("x" * 300), "file name too long"),
    ):
        result = report(directory, "--out", out)
        assert (result.exit_code, result.stderr) == (2, refused(out, why))
    result = report(tmp_path / "nothing")
    assert result.exit_code == 2
    assert "holds no results.db" in result.stderr


def test_two_builds_at_a_time(directory: Path) -> None:
    (directory / ".report.part").mkdir()
    descriptor = os.open(directory / ".report.part", os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        result = report(directory)
    finally:
        os.close(descriptor)
    assert result.exit_code == 1
    assert "another report is being made" in result.stderr


@pytest.mark.slow
def test_the_largest_page_stays_small() -> None:
    """Forty bots with names as long as they may be, 3,120 games, many of them faults.

    tests/reporting/test_replay_page.py has the size of a long game's page.
    """
    summary = summary_of([f"{number:02d} " + "<&>" * 65 for number in range(BOTS)], rounds=2)
    records = records_of(summary, some)
    summary.kept = [GameSummary.of(record, number) for number, record in records]
    pages = Pages(View(summary, times={record.key: game_times(record) for _, record in records}))
    assert len(pages.game_pages()) == 3120
    index = pages.index()
    for page in (index, pages.games(), *map(pages.bot, summary.table)):
        assert len(page.encode()) < LARGEST_PAGE
    assert [len(row.cells) for row in Page(index).rows("cross")] == [BOTS + 2] * BOTS
