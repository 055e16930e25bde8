"""Files of games in archives: the same files as in folders, complete after a kill, verified and shown."""

import json
import shutil
import stat
import zipfile
from pathlib import Path

import pytest

from referee.judge.record_rows import KeptFile
from tests.reporting.reports import Page
from tests.support.builders import invoke, make_record, write_tournament
from tests.support.tiers import slow
from tournaments.results import game_archives
from tournaments.results.game_archives import ArchivePlan, GameFilesReader, write_games
from tournaments.results.game_files import GAMES, GameFilesError, write_game_files
from tournaments.results.store import Store

CUP = 'name = "Cup"\ngame = "kalah(2,1)"\nbots = ["first_legal", "greedy", "random:1"]\n'
PACKED = 'game_files = "archives"\n' + CUP
FIRST, SECOND = "games-0001.zip", "games-0002.zip"
KEY = "r001-1v2"


@pytest.fixture(autouse=True)
def small_archives(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four games to an archive, of six in a round."""
    monkeypatch.setattr(game_archives, "GAMES_IN_ARCHIVE", 4)


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the directory of a tournament with archives; no test changes it."""
    folder = tmp_path_factory.mktemp("played")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(game_archives, "GAMES_IN_ARCHIVE", 4)
        run(folder, PACKED)
    return folder / "out"


@pytest.fixture
def out(played: Path, tmp_path: Path) -> Path:
    """Return a copy that a test may change."""
    return Path(shutil.copytree(played, tmp_path / "out"))


def run(folder: Path, text: str, *options: str) -> str:
    result = invoke("tournament", "run", write_tournament(folder, text), "--out", folder / "out", *options)
    assert result.exit_code == 0, result.output
    return result.output


def archived(out: Path) -> dict[str, dict[str, bytes]]:
    """Return the content of each file of each archive."""
    found = {}
    for path in sorted((out / GAMES).iterdir()):
        with zipfile.ZipFile(path) as archive:
            assert archive.testzip() is None
            found[path.name] = {name: archive.read(name) for name in archive.namelist()}
    return found


def keys_of(files: dict[str, bytes]) -> list[str]:
    return list(dict.fromkeys(name.partition("/")[0] for name in files))


def verified(out: Path) -> tuple[int, str]:
    result = invoke("verify", out)
    return result.exit_code, result.output


def test_archives_have_the_files_of_folders_in_the_order_of_storing(out: Path, tmp_path: Path) -> None:
    found = archived(out)
    assert list(found) == [FIRST, SECOND]
    with Store(out / "results.db", read_only=True) as store:
        order = store.in_order()
        for key in order:
            write_game_files(tmp_path / "folders", store.record(key))
    assert keys_of(found[FIRST]) + keys_of(found[SECOND]) == order
    for name, content in (found[FIRST] | found[SECOND]).items():
        assert content == (tmp_path / "folders" / GAMES / name).read_bytes()
    assert verified(out) == (0, "6 games verified, nothing wrong\n")


@pytest.mark.slow
def test_further_games_fill_the_last_archive(out: Path, tmp_path: Path) -> None:
    first = (out / GAMES / FIRST).stat()
    run(tmp_path, "rounds = 2\n" + PACKED)
    assert [len(keys_of(files)) for files in archived(out).values()] == [4, 4, 4]
    after = (out / GAMES / FIRST).stat()
    assert (after.st_ino, after.st_mtime_ns) == (first.st_ino, first.st_mtime_ns)
    assert verified(out)[0] == 0


@pytest.mark.parametrize("damage", ["missing", *slow("cut", "other boot")])
def test_the_next_run_writes_archives_that_differ(out: Path, tmp_path: Path, damage: str) -> None:
    path = out / GAMES / FIRST
    whole = path.read_bytes()
    part = path.with_name(f".{FIRST}.part")
    part.write_bytes(whole[:9])  # of a run that was killed
    if damage == "missing":
        path.unlink()
    elif damage == "cut":
        path.write_bytes(whole[:-30])
    else:
        path.write_bytes(bytes(100) + whole[100:])  # as a power cut may leave it
        (out / ".lock").write_text("another start of the machine")
    run(tmp_path, PACKED)
    assert path.read_bytes() == whole
    assert not part.exists()
    assert verified(out)[0] == 0


def test_archives_of_an_earlier_tournament_are_replaced_after_a_kill(out: Path, tmp_path: Path) -> None:
    """A tournament is begun anew, and its run ends between a transaction and an archive."""
    with Store(out / "results.db", read_only=True) as store:
        earlier = store.records(store.in_order())
    (out / "results.db").unlink()
    path = write_tournament(tmp_path, PACKED.replace("random:1", "random:2"))
    in_the_way = out / GAMES / f".{FIRST}.part"
    in_the_way.mkdir()
    done = invoke("tournament", "run", path, "--out", out)
    assert "the files of games could not be written" in done.stderr
    in_the_way.rmdir()
    with Store(out / "results.db", read_only=True) as store:
        order = store.in_order()[:4]
    write_games(out, 1, [earlier[key] for key in order])  # as if they had been stored in the same order
    assert invoke("tournament", "run", path, "--out", out).exit_code == 0
    assert verified(out) == (0, "6 games verified, nothing wrong\n")


def test_a_changed_or_damaged_archive_is_found(out: Path) -> None:
    path = out / GAMES / FIRST
    whole = path.read_bytes()
    with zipfile.ZipFile(path) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    key = keys_of(files)[0]  # any game can be the first that ends
    path.with_name(f".{FIRST}.part").write_bytes(whole[:9])  # of a run that was killed, which is not wrong
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            if name == f"{key}/game.json":
                content = json.dumps({**json.loads(content), "winner": 7}).encode()
            archive.writestr(name, content)
        archive.writestr("r009-1v2/game.json", "{}")
    status, output = verified(out)
    assert status == 1
    assert f"{key}: game.json: winner: recorded 7, but " in output
    assert "r009-1v2: games: folder: recorded one of this game, but no such game is kept" in output
    assert len(output.splitlines()) == 3
    path.write_bytes(whole[:-30])
    status, output = verified(out)
    assert status == 1
    assert f"{FIRST}: games: archive: recorded as a whole one, but " in output


def test_a_game_in_an_archive_is_shown(out: Path) -> None:
    output = invoke("tournament", "show", out, KEY).output
    reader = GameFilesReader(out)
    assert f"files: {reader.archived[KEY]}, folder {KEY}\n" in output


@pytest.mark.slow
def test_the_setting_may_change_and_the_command_line_overrides_it(tmp_path: Path) -> None:
    run(tmp_path, CUP)
    folders = {path.name for path in (tmp_path / "out" / GAMES).iterdir()}
    run(tmp_path, CUP, "--game-files", "archives")
    names = {path.name for path in (tmp_path / "out" / GAMES).iterdir()}
    assert names == folders | {FIRST, SECOND}
    assert verified(tmp_path / "out") == (0, "6 games verified, nothing wrong\n")
    run(tmp_path, PACKED, "--game-files", "folders")
    assert verified(tmp_path / "out")[0] == 0
    archive = GameFilesReader(tmp_path / "out").archived[KEY]
    with zipfile.ZipFile(archive, "a") as file, pytest.warns(UserWarning, match="Duplicate name"):
        file.writestr(f"{KEY}/wire.txt", "other lines")  # beside the right ones in the game's folder
    status, output = verified(tmp_path / "out")
    assert (status, "wire.txt" in output) == (1, True), output


LOST = PACKED.replace('"greedy"', '{ bot = "true", name = "leaver" }')
"""With a bot that exits at its start, and loses by that fault."""


@pytest.mark.slow
def test_the_standings_link_to_no_file_in_an_archive(tmp_path: Path) -> None:
    """Verification accepts links to files that were moved, as in the pages of earlier versions."""
    out = tmp_path / "out"
    run(tmp_path, LOST)
    page = out / "report.html"
    text = page.read_text(encoding="utf-8")
    assert KEY in Page(text).cells
    assert Page(text).values("href") == []
    assert "kalarena tournament show DIR KEY --wire" in text
    assert invoke("tournament", "table", out, "--format", "html").output == text
    assert verified(out)[0] == 0
    run(tmp_path, LOST, "--game-files", "folders")
    linked = page.read_text(encoding="utf-8")
    assert f"games/{KEY}/wire.txt" in Page(linked).values("href")
    assert all((out / link).is_file() for link in Page(linked).values("href"))
    assert "kalarena tournament show" not in linked
    shutil.rmtree(out / GAMES / KEY)
    assert verified(out)[0] == 0
    page.write_text(linked.replace(KEY, "r001-9v9"), encoding="utf-8")
    assert verified(out)[0] == 1


def test_a_report_of_a_tournament_with_archives(out: Path) -> None:
    assert invoke("tournament", "report", out).exit_code == 0
    assert (out / "report" / "index.html").exists()


def test_kept_files_are_in_an_archive_of_its_owner(tmp_path: Path) -> None:
    record = make_record(kept_files=((KeptFile(b"../a\xff", b"\x00", 1),), ()))
    write_games(tmp_path, 1, [record])
    path = tmp_path / GAMES / FIRST
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with zipfile.ZipFile(path) as archive:
        assert archive.read(f"{KEY}/files-1-one/%2E./a%FF") == b"\x00"
    reader = GameFilesReader(tmp_path)
    assert list(reader.copies(KEY, "files-1-one/%2E./a%FF")) == [b"\x00"]
    assert list(reader.copies(KEY, "none.txt")) == []
    assert list(reader.copies("none", "wire.txt")) == []


def test_archives_that_cannot_be_written_are_an_error_of_ours(tmp_path: Path) -> None:
    (tmp_path / GAMES).write_text("no folder")
    with pytest.raises(GameFilesError, match=f"{FIRST}: the files of games could not be written: "):
        write_games(tmp_path, 1, [make_record()])


def test_each_complete_archive_is_due_once() -> None:
    plan = ArchivePlan(["a", "b", "c"])
    assert list(plan.due()) == []
    plan.add(["d", "e"])
    assert list(plan.due()) == [(1, ["a", "b", "c", "d"])]
    assert list(plan.due()) == []
    assert list(plan.due(at_end=True)) == [(2, ["e"])]
    plan.add([*"fgh", "i"])
    assert list(plan.due(at_end=True)) == [(2, [*"efgh"]), (3, ["i"])]
