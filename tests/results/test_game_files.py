"""Packed games, and the files of a game: those for everybody, and those for one student."""

import json
import pickle
import zipfile
from pathlib import Path

import pytest
import trio

from referee.errors import RefereeError
from referee.judge import verdict_text
from referee.judge.record_rows import KeptFile, WireLine
from referee.judge.results import GameRecord, MatchResult, Player, Reason
from referee.playing import Job, play_game
from tests.support.builders import CONTROL, make_player, make_record
from tournaments.results.game_archives import MOST_HELD, GameFilesReader
from tournaments.results.game_files import (
    GAMES,
    LOCK_FILE,
    GameFilesError,
    are_files_trusted,
    has_game_files,
    public_view,
    set_files_trusted,
    wire_text,
    write_game_files,
)
from tournaments.results.game_summary import GameSummary, PackedGame


def written(directory: Path, record: GameRecord) -> dict[str, str]:
    """The game's files: name -> text."""
    write_game_files(directory, record)
    folder = directory / GAMES / record.key
    return {path.name: path.read_text(encoding="utf-8") for path in folder.iterdir()}


def test_a_packed_game_has_the_whole_record_in_another_process() -> None:
    record = make_record("r003-2v1", host_speed=5e5)
    packed: PackedGame = pickle.loads(pickle.dumps(PackedGame.of(record)))
    assert (packed.record, packed.host, packed.summary) == (record, record.host, GameSummary.of(record, 0))
    assert packed.in_round(3, "r003-1+2") == PackedGame.of(record, 3, "r003-1+2")
    assert packed.in_round(3, "r003-1+2").summary == GameSummary.of(record, 3, "r003-1+2")
    damaged = PackedGame(packed.summary, packed.packed[:-9])
    with pytest.raises(RefereeError):
        _ = damaged.record


def test_no_private_data_are_in_the_public_files(tmp_path: Path) -> None:
    """Private are a bot's standard error, its place, and the name of our machine."""
    record = make_record()
    files = written(tmp_path, record)
    assert sorted(files) == ["game.json", "stderr-1-one.txt", "stderr-2-two.txt", "wire.txt"]
    assert files["stderr-1-one.txt"] == "private words of one\n"
    assert files["stderr-2-two.txt"] == "private words of two\n"
    for name in ("game.json", "wire.txt"):
        for secret in ("private words", "/home/", "/opt/python", "the-lecturers-machine"):
            assert secret not in files[name], (name, secret)
    view, whole = json.loads(files["game.json"]), record.to_json()
    assert set(whole) - set(view) == {"stderr", "note", "host", "host_speed", "facts"}
    assert {key: view[key] for key in view if key != "players"} == {
        key: whole[key] for key in view if key != "players"
    }
    assert view["players"] == [{"name": "one", "digest": "d1"}, {"name": "two", "digest": "d1"}]
    assert record == make_record()


def test_a_bots_last_words_are_not_in_its_opponents_files(tmp_path: Path) -> None:
    note = verdict_text.last_words("KeyError: 'private words of one'")
    result = MatchResult(1, Reason.EXIT, "one (South) lost: its process ended", None, "exited", note)
    record = make_record(result=result)
    assert "private words of one" in json.dumps(record.to_json())
    files = written(tmp_path, record)
    for name in ("game.json", "wire.txt", "stderr-2-two.txt"):
        assert "private words of one" not in files[name]


def test_verdict_on_a_bot_that_cannot_be_run_does_not_say_where_it_lies(tmp_path: Path) -> None:
    folder = tmp_path / "where-it-lies"
    folder.mkdir()
    (folder / "engine").write_bytes(b"no program")
    (folder / "script").write_text("#!/no/interpreter\n")
    for program, mode in [("none", 0), ("engine", 0o755), ("engine", 0o644), ("script", 0o755)]:
        path = folder / program
        if mode:
            path.chmod(mode)
        lost = Player("one", (str(path),), str(folder))
        record = trio.run(play_game, Job("k", "kalah(1,1)", (lost, make_player("two")), CONTROL))
        assert record.result.reason is Reason.START
        assert "where-it-lies" not in wire_text(record) + json.dumps(public_view(record))


def test_wire_text_by_hand() -> None:
    assert wire_text(make_record(first="a", second="long")) == (
        "kalah(1,1): a and long (r001-1v2, 2026-01-02T03:04:05.678+00:00); <- to the bot, -> from it\n"
        "\n"
        "       0.010 ms  long  <-  START;North\n"
        "       0.020 ms  a     <-  START;South\n"
        "       1.520 ms  a     ->  MOVE;1\n"
        "\n"
        "score: a (South) won: 2 to 0\n"
    )


def test_lines_of_bots_cannot_forge_the_wire_log() -> None:
    """A line may hold a carriage return or a terminal's escape: the log shows them, it does not obey."""
    lines = ["MOVE;1\r", "\x1b[2Jx", "a\u2028b", "a\x0bb\x0cc\x85d", "\x00", "\u202egnol"]
    record = make_record(wire=[WireLine(0, "from", line, 1) for line in lines])
    text = wire_text(record)
    # head, blank, the lines, blank, verdict
    assert len(text.splitlines()) == 2 + len(lines) + 2
    assert "\x1b" not in text
    assert "\x00" not in text


def test_names_become_file_names(tmp_path: Path) -> None:
    """A name may be as long as a folder's, and a path may hold bytes that are no Unicode."""
    record = make_record(first="R2-D2 (old)", second="Größe/../x")
    assert {"stderr-1-R2_D2__old_.txt", "stderr-2-Größe_.._x.txt"} <= set(written(tmp_path, record))
    assert [path.name for path in tmp_path.iterdir()] == [GAMES]
    assert len(written(tmp_path, make_record("long", first="n" * 250))) == 4
    half = (make_player("\udcff"), make_player("two"))
    record = make_record("half", final_state="\udcff", players=half, stderr=("\udcff", ""))
    assert "\\udcff" in written(tmp_path, record)["wire.txt"]


def test_the_end_of_a_kept_file_takes_no_other_files_name(tmp_path: Path) -> None:
    """Not that of a file or folder of the bot, which may have `.end` in its own name."""
    files = [
        KeptFile(b"log", b"end", 9),
        KeptFile(b"log.end", b"", 0),
        KeptFile(b"in/out", b"end of out", 90),
        KeptFile(b"in/out.end/file", b"content", 7),
        KeptFile(b"alone", b"end alone", 90),
    ]
    record = make_record(kept_files=(tuple(files), ()))
    write_game_files(tmp_path, record)
    folder = tmp_path / GAMES / record.key / "files-1-one"
    found = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert found == {
        "log%.end": b"end",
        "log.end": b"",
        "in/out%.end": b"end of out",
        "in/out.end/file": b"content",
        "alone.end": b"end alone",
    }
    assert has_game_files(tmp_path, record)


@pytest.mark.parametrize("name", [b"d" * 150, "ä".encode() * 60], ids=["long", "encoded"])
def test_files_in_many_nested_folders_are_kept(tmp_path: Path, name: bytes) -> None:
    """A path that is too long for the system has other folders, the same for all files of a folder."""
    deep = [b"/".join([name] * 28 + [last]) for last in (b"one", b"two", b"inner/one")]
    record = make_record(kept_files=(tuple(KeptFile(path, path[-3:], 3) for path in deep), ()))
    write_game_files(tmp_path, record)
    assert has_game_files(tmp_path, record)
    paths = [path for path in tmp_path.rglob("files-1-one/*/*") if path.is_file()]
    assert sorted((path.name, path.read_bytes()) for path in paths) == [
        ("one", b"one"),
        ("one", b"one"),
        ("two", b"two"),
    ]
    assert len({path.parent for path in paths}) == 2


def test_files_are_made_again_and_no_partial_ones_remain(tmp_path: Path) -> None:
    folder = tmp_path / GAMES / "r001-1v2"
    folder.mkdir(parents=True)
    (folder / "game.json.part").write_text("half a fi")
    (folder / "game.json").write_text("old")
    first = written(tmp_path, make_record())
    assert written(tmp_path, make_record()) == first
    assert not [name for name in first if name.endswith(".part")]
    assert json.loads(first["game.json"])["key"] == "r001-1v2"


def test_a_file_appears_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = written(tmp_path, make_record())

    def full(path: Path, text: str, **_: str) -> int:
        with path.open("w") as file:
            file.write(text[:3])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(GameFilesError, match="No space left") as raised:
        write_game_files(tmp_path, make_record(final_state="another"))
    monkeypatch.undo()
    in_another_process = pickle.loads(pickle.dumps(raised.value))
    assert str(in_another_process) == str(raised.value)
    assert in_another_process.__cause__.errno == 28  # which tells whether the failure passes
    folder = tmp_path / GAMES / "r001-1v2"
    assert {name: (folder / name).read_text(encoding="utf-8") for name in before} == before


def test_files_are_trusted_only_if_they_are_marked_since_the_machine_was_started(tmp_path: Path) -> None:
    directory = tmp_path / "new"
    assert not are_files_trusted(directory)
    for trusted in (True, False):
        set_files_trusted(directory, trusted=trusted)
        assert are_files_trusted(directory) == trusted
    (directory / LOCK_FILE).write_text("another start of the machine")
    assert not are_files_trusted(directory)


def test_files_of_more_archives_than_are_held_in_memory_are_read(tmp_path: Path) -> None:
    (tmp_path / GAMES).mkdir()
    numbers = range(1, MOST_HELD + 2)
    for number in numbers:
        with zipfile.ZipFile(tmp_path / GAMES / f"games-{number:04}.zip", "w") as archive:
            archive.writestr(f"k{number}/wire.txt", f"lines of {number}")
    reader = GameFilesReader(tmp_path)
    for _ in range(2):
        assert [list(reader.copies(f"k{number}", "wire.txt")) for number in numbers] == [
            [f"lines of {number}".encode()] for number in numbers
        ]
    assert (list(reader.copies("k1", "other.txt")), list(reader.copies("other", "wire.txt"))) == ([], [])


def test_a_damaged_archive_is_named(tmp_path: Path) -> None:
    (tmp_path / GAMES).mkdir()
    path = tmp_path / GAMES / "games-0001.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("k/wire.txt", "some lines")
    path.write_bytes(path.read_bytes().replace(b"some lines", b"other text"))
    with pytest.raises(ValueError, match=r"games-0001.zip is damaged: Bad CRC-32"):
        list(GameFilesReader(tmp_path).copies("k", "wire.txt"))


def test_an_archive_with_a_damaged_directory_is_named_or_read(tmp_path: Path) -> None:
    """Whatever bit of its directory is damaged, in a name that is not ASCII, too."""
    (tmp_path / GAMES).mkdir()
    path = tmp_path / GAMES / "games-0001.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("k/stderr-1-Ümläut.txt", "some lines")
    whole = path.read_bytes()
    for at in range(whole.index(b"PK\x01\x02"), whole.index(b"PK\x05\x06")):
        for bit in range(8):
            damaged = bytearray(whole)
            damaged[at] ^= 1 << bit
            path.write_bytes(damaged)
            reader = GameFilesReader(tmp_path)
            assert reader.keys() or reader.damaged
