"""Exports: rows of games and moves, whole files, and the command on real games."""

import contextlib
import csv
import io
import json
import os
import shutil
import sqlite3
import tracemalloc
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from referee.games.catalog import parse_game
from referee.judge.results import GameRecord, MatchResult, MoveRecord, Reason, WireLine
from tests.builders import kalarena, lost_by, make_record, write_tournament
from tests.sgf_reader import parse, states
from tests.tampering import tampering
from tournaments.cli.tournament.export import command
from tournaments.cli.tournament.marks import command as marks_command
from tournaments.reporting import tables
from tournaments.reporting.exports import (
    COLUMNS,
    OWN_FILES,
    OWN_FOLDERS,
    WHAT,
    WRITERS,
    ExportError,
    Row,
    games_rows,
    move_rows,
    moves_rows,
    protected,
    whole_file,
    write_csv,
    write_json,
    write_json_lines,
)
from tournaments.reporting.sgf import GameText
from tournaments.reporting.tournament_results import TournamentResults
from tournaments.results.game_files import public_view
from tournaments.results.game_summary import GameSummary
from tournaments.results.journal import Action, Entry
from tournaments.results.rulings import Rulings
from tournaments.results.store import Store

ROOT = Path(__file__).parent.parent
AT = "2026-01-02T03:04:05+00:00"
RECORDS = {
    record.key: record
    for record in (
        make_record("r001-1v2", cpu_us=(1500, None), off_turn_cpu_us=(0, 2000), clock="fair"),
        make_record("r001-1v2~2", moves=[], result=MatchResult(None, Reason.SCORE, "draw", (1, 1))),
        make_record("r001-2v1", "two", "one", result=lost_by(Reason.EXIT, 0, "=two ended", "killed")),
    )
}


def rulings() -> Rulings:
    """The first game is played again."""
    entry = Entry(Action.REPLAY, "r001-1v2", "power cut", 1, AT)
    games = [GameSummary.of(record, 1, "r001-1+2") for record in RECORDS.values()]
    return Rulings(["one", "two"], games, [entry])


def csv_of(rows: Any) -> str:
    out = io.StringIO()
    write_csv(rows, out)
    return out.getvalue()


# Games


def test_every_game_has_a_row_and_says_whether_it_counts() -> None:
    rows = list(games_rows(rulings(), RECORDS.__getitem__))
    assert [(row["key"], row["counts"], row["why_not"]) for row in rows] == [
        ("r001-1v2", False, "replay r001-1v2: power cut"),
        ("r001-1v2~2", True, ""),
        ("r001-2v1", True, ""),
    ]
    first, draw, lost = rows
    assert (first["winner"], draw["winner"], lost["winner"]) == ("one", None, "one")
    assert (first["started_at"], first["duration_ms"]) == ("2026-01-02T03:04:05.678+00:00", 250.0)
    assert (first["exit_status_first"], first["exit_status_second"]) == (0, -9)
    assert (first["cpu_ms_first"], first["cpu_ms_second"]) == (1.5, None)
    assert (first["off_turn_cpu_ms_first"], first["off_turn_cpu_ms_second"]) == (0, 2)
    assert (first["clock"], lost["score_first"], lost["fault"]) == ("fair", None, "killed")


def test_the_columns_of_games_csv_come_first_with_the_same_cells() -> None:
    games = rulings().games
    here = list(csv.reader(io.StringIO(csv_of(games_rows(rulings(), RECORDS.__getitem__)))))
    there = list(csv.reader(io.StringIO(tables.games_csv(games))))
    assert [row[: len(tables.GAME_COLUMNS)] for row in here] == there


def test_an_attempt_that_nobody_ruled_on_does_not_count() -> None:
    found = Rulings(["one", "two"], [GameSummary.of(record, 1) for record in RECORDS.values()], [])
    found.entries = [Entry(Action.VOID, "r001-2v1", "why", 1, AT)]
    rows = {row["key"]: row for row in games_rows(found, RECORDS.__getitem__)}
    assert rows["r001-1v2~2"]["counts"] is False
    assert rows["r001-1v2~2"]["why_not"] == "the game is played as r001-1v2"


# Moves


def played() -> GameRecord:
    """Three moves of a game, each reply with its time; the second one was sent too early."""
    game = parse_game("kalah(3,2)+pie")
    moves = [
        MoveRecord(0, "1", 1000, 1000),
        MoveRecord(1, "SWAP", 2000, 1500, 900, 400, 100),
        MoveRecord(0, "3", 3000, 3000),
    ]
    wire = [
        WireLine(0, "to", "START;South", 0),
        WireLine(1, "from", "SWAP", 500),
        WireLine(0, "from", "MOVE;1", 1000),
        WireLine(0, "from", "MOVE;3", 9000),
    ]
    return make_record(game=game.name, moves=moves, wire=wire)


def test_every_move_has_a_row() -> None:
    game = parse_game("kalah(3,2)+pie")
    state = game.initial_state()
    rows = list(move_rows(played()))
    assert [(row["ply"], row["player"], row["bot"], row["move"], row["at_ms"]) for row in rows] == [
        (1, 1, "one", "1", 1.0),
        (2, 2, "two", "SWAP", 0.5),
        (3, 1, "one", "3", 9.0),
    ]
    assert [rows[1][name] for name in ("wall_ms", "charged_ms", "cpu_ms", "wait_ms", "referee_wait_ms")] == [
        *(2.0, 1.5, 0.9, 0.4, 0.1),
    ]
    assert rows[0]["cpu_ms"] is None
    for row in rows:
        assert row["legal_moves"] == len(game.legal_moves(state))
        state = game.apply(state, game.parse_move(state, str(row["move"])))
        assert row["position"] == game.board_text(state)


def test_positions_begin_with_the_opening() -> None:
    game = parse_game("kalah(3,2)")
    state = game.apply(game.apply(game.initial_state(), 1), 1)
    record = make_record(game=game.name, opening="1 1", moves=[MoveRecord(0, "2", 1, 1)])
    (row,) = move_rows(record)
    assert row["position"] == game.board_text(game.apply(state, 2))


@pytest.mark.parametrize(
    "changes",
    [
        {"moves": [MoveRecord(0, "9", 1, 1), MoveRecord(1, "1", 1, 1)]},
        {"game": "chess(8)"},
        {"opening": "nonsense here"},
    ],
)
def test_a_record_that_breaks_the_rules_has_no_positions(changes: dict[str, Any]) -> None:
    rows = list(move_rows(replace(played(), **changes)))
    assert len(rows) >= 2
    assert {(row["position"], row["legal_moves"]) for row in rows} == {("", None)}


def test_moves_of_all_games() -> None:
    rows = list(moves_rows(rulings(), RECORDS.__getitem__))
    assert [(row["key"], row["counts"], row["ply"]) for row in rows] == [
        ("r001-1v2", False, 1),
        ("r001-1v2", False, 2),
        ("r001-2v1", True, 1),
        ("r001-2v1", True, 2),
    ]


# Forms

ROWS: list[Row] = [
    {"text": "=1\n+1", "number": -3, "time": 0.5, "yes": True, "nothing": None},
    {"text": "Größe", "number": 0, "time": 1234.5678, "yes": False, "nothing": None},
]


def test_csv() -> None:
    assert csv_of(ROWS) == ("text,number,time,yes,nothing\n'=1\\n+1,-3,0.500,yes,\nGröße,0,1234.568,no,\n")
    assert csv_of([]) == ""
    lines = io.StringIO()
    write_csv([], lines, ["a", "b"])
    assert lines.getvalue() == "a,b\n"


@pytest.mark.parametrize("what", WHAT)
def test_without_a_game_there_is_a_head(what: str, tmp_path: Path) -> None:
    assert COLUMNS[what] == tuple(next(WHAT[what](rulings(), RECORDS.__getitem__)))
    with Store(tmp_path / "results.db") as store:
        config = TournamentResults("Cup", "kalah(1,1)", "2 s", ["one", "two"], "points").config()
        store.claim("Cup", config, {})
    assert export(tmp_path, "--what", what).stdout == ",".join(COLUMNS[what]) + "\n"
    assert json.loads(export(tmp_path, "--what", what, "--format", "json").stdout) == []
    assert export(tmp_path, "--what", what, "--format", "jsonl").stdout == ""


def test_json_and_json_lines() -> None:
    for rows in (ROWS, []):
        array, lines = io.StringIO(), io.StringIO()
        write_json(rows, array)
        write_json_lines(rows, lines)
        assert json.loads(array.getvalue()) == rows
        assert [json.loads(line) for line in lines.getvalue().splitlines()] == rows


class Sink(io.TextIOBase):
    """Takes any text and forgets it."""

    def __init__(self) -> None:
        self.length = 0

    def write(self, text: str) -> int:
        self.length += len(text)
        return len(text)


@pytest.mark.parametrize("form", WRITERS)
def test_nothing_grows_with_the_number_of_rows(form: str) -> None:
    def rows(count: int) -> Iterator[Row]:
        for number in range(count):
            yield {"key": f"r{number:06}", "position": "0,1" * 200}

    sink = Sink()
    WRITERS[form](rows(10), sink, ())  # type: ignore[arg-type]
    tracemalloc.start()
    try:
        WRITERS[form](rows(5000), sink, ())  # type: ignore[arg-type]
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert sink.length > 3_000_000
    assert peak < 300_000


@pytest.mark.parametrize("what", WHAT)
def test_records_are_read_one_at_a_time(what: str) -> None:
    """No game is asked for before the rows of the one before were taken."""
    asked = []

    def record_of(key: str) -> GameRecord:
        asked.append(key)
        return RECORDS[key]

    rows = WHAT[what](rulings(), record_of)
    assert asked == []
    next(rows)
    assert asked == ["r001-1v2"]


# Files


def breaking_off() -> Iterator[Row]:
    """More rows than a buffer holds, then a failure."""
    for number in range(10_000):
        yield {"number": number}
    raise OSError(5, os.strerror(5))


def test_a_file_is_whole_or_not_there(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    with pytest.raises(ExportError, match="Input/output error"), whole_file(path) as file:
        write_csv(breaking_off(), file)
    assert list(tmp_path.iterdir()) == []
    path.write_text("old")
    with pytest.raises(ExportError, match="No space left on device"), whole_file(path) as file:
        raise OSError(28, os.strerror(28))
    assert path.read_text() == "old"
    with whole_file(path) as file:
        assert path.read_text() == "old"
        file.write("new \ud800\r\n")
    assert path.read_bytes() == b"new \\ud800\r\n"
    assert list(tmp_path.iterdir()) == [path]


def test_what_a_link_leads_to_is_written(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to("real")
    with whole_file(tmp_path / "link") as file:
        file.write("new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "new"


def test_no_device_is_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ExportError, match="is no file"), whole_file(tmp_path / "pipe"):
        pass
    with pytest.raises(ExportError, match="No such file or directory"), whole_file(tmp_path / "no" / "x"):
        pass


# What may not be written over


def own_files(folder: Path) -> list[Path]:
    """Every file of a directory, and one more that could be in each of its folders."""
    found = sorted(folder.rglob("*"))
    return [path for path in found if path.is_file()] + [path / "new" for path in found if path.is_dir()]


def test_all_that_a_tournament_keeps_is_protected(real: Path, tmp_path: Path) -> None:
    """Whatever runs and reports write today: what they write tomorrow must be protected, too."""
    folder = tmp_path / "out"
    shutil.copytree(real / "out", folder)
    for options in ((), ("--anonymous",), ("--out", "out/report-2026")):
        done = kalarena(tmp_path, "tournament", "report", "out", *options)
        assert done.returncode == 0, done.stderr
    for extra in ("results.db-wal", "results.db-shm", "results.db-journal", ".lock"):
        (folder / extra).touch()
    files = own_files(folder)
    names = {str(path.relative_to(folder).parts[0]) for path in files}
    assert names >= {"results.db", "pseudonyms.csv", "report.html", "games", "report", "report-2026"}
    assert [path for path in files if not protected(path, folder)] == []
    elsewhere = tmp_path / "another"
    elsewhere.mkdir()
    assert protected(folder / "standings.csv", elsewhere) != ""  # of another tournament
    assert protected(folder / "results.db", elsewhere) != ""


def test_what_is_not_there_yet_is_protected(tmp_path: Path) -> None:
    for name in (*OWN_FILES, *OWN_FOLDERS, "games/r001-1v2/game.json", "report/index.html"):
        assert "one of the tournament's own files" in protected(tmp_path / name, tmp_path), name
    for name in ("moves.csv", "report-marks.csv", "sub/games.csv", "results.db.txt", "../games.csv"):
        assert protected(tmp_path / name, tmp_path) == "", name


def test_links_to_a_tournaments_files_are_followed(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / "pseudonyms.csv").write_text("key")
    (tmp_path / "soft").symlink_to("out/pseudonyms.csv")
    (tmp_path / "hard").hardlink_to(folder / "pseudonyms.csv")
    (tmp_path / "again").symlink_to("out")
    (tmp_path / "dangling").symlink_to("out/games.csv")
    (tmp_path / "store").mkdir()
    (folder / "games").symlink_to("../store")
    (folder / "results.db").symlink_to("../store/results")
    for name in (
        "soft",
        "hard",
        "again/x/../games.csv",
        "dangling",
        "out/games/x",
        "store/x",
        "out/results.db",
    ):
        assert protected(tmp_path / name, folder), name
    assert protected(folder / "games.csv", tmp_path / "again")
    assert protected(tmp_path / "free", folder) == ""


def test_databases_and_inputs_are_protected(tmp_path: Path) -> None:
    with contextlib.closing(sqlite3.connect(tmp_path / "x")) as connection:
        connection.execute("CREATE TABLE a (b)")
        connection.commit()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "text").write_text("SQLite format 3.")
    (tmp_path / "rules").write_text("")
    (tmp_path / "link").symlink_to("rules")
    folder = tmp_path / "out"
    assert "is a database" in protected(tmp_path / "x", folder)
    assert "this command reads" in protected(tmp_path / "link", folder, [tmp_path / "rules"])
    assert "this command reads" in protected(tmp_path / "no", folder, [tmp_path / "a" / ".." / "no"])
    for name in ("pipe", "text", "rules"):
        assert protected(tmp_path / name, folder) == "", name


def test_no_export_destroys_the_tournament(real: Path) -> None:
    before = {path: path.read_bytes() for path in (real / "out").rglob("*") if path.is_file()}
    for arguments in (("--what", "games"), ("--game", "r001-1v2")):
        for name in ("results.db", "report.html", "games.csv", "games/x.csv", "pseudonyms.csv"):
            failed = export(real / "out", *arguments, "--out", real / "out" / name)
            assert (failed.exit_code, failed.stdout) == (2, "")
            assert failed.stderr.endswith("is one of the tournament's own files: choose another --out\n")
    assert {path: path.read_bytes() for path in (real / "out").rglob("*") if path.is_file()} == before


# The command


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a tournament that was really played; nobody changes it."""
    folder = tmp_path_factory.mktemp("real")
    (folder / "bad.py").write_text("input()\nprint('MOVE;=1]', flush=True)\ninput()\n")
    text = """
        name = "Cup ]"
        game = "kalah(3,2)"
        openings = { random = { plies = 1, seed = 1 } }
        bots = ["first_legal", "greedy", "minimax:2"]
    """
    write_tournament(folder, text)
    done = kalarena(folder, "tournament", "run", "cup.toml", "--out", "out")
    assert done.returncode == 0, done.stderr
    plain = text.replace("openings = { random = { plies = 1, seed = 1 } }", "").replace("minimax:2", "bad.py")
    write_tournament(folder, plain, "bad.toml")
    done = kalarena(folder, "tournament", "run", "bad.toml", "--out", "bad")
    assert done.returncode == 0, done.stderr
    return folder


def export(*arguments: str | Path) -> Result:
    result = CliRunner().invoke(command, [str(argument) for argument in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def test_games_and_moves_of_real_games(real: Path) -> None:
    games = list(csv.DictReader(io.StringIO(export(real / "out", "--what", "games").stdout)))
    moves = json.loads(export(real / "out", "--what", "moves", "--format", "json").stdout)
    lines = export(real / "out", "--what", "moves", "--format", "jsonl").stdout.splitlines()
    assert [json.loads(line) for line in lines] == moves
    with Store(real / "out" / "results.db") as store:
        records = {key: store.record(key) for key in store.played()}
    assert {game["key"] for game in games} == set(records)
    for key, record in records.items():
        mine = [move for move in moves if move["key"] == key]
        assert [move["move"] for move in mine] == [move.move for move in record.moves]
        assert mine[-1]["position"] == record.final_state
        times = [move["at_ms"] for move in mine]
        assert times == sorted(times)
        assert all(time is not None for time in times)


def test_one_game_as_text_and_json(real: Path) -> None:
    with Store(real / "out" / "results.db") as store:
        record = store.record("r001-1v2")
    text = parse(export(real / "out", "--game", "r001-1v2").stdout)
    assert text == GameText.from_record(record, "Cup ]", 1)
    *_, last = states(text)
    assert parse_game(text.game).board_text(last) == text.final == record.final_state
    shown = export(real / "out", "--game", "r001-1v2", "--format", "json").stdout
    assert json.loads(shown) == json.loads(json.dumps(public_view(record)))


def test_a_fault_ends_with_its_sentence(real: Path) -> None:
    text = export(real / "bad", "--game", "r001-1v3").stdout
    found = parse(text)
    assert (found.reason, found.winner, found.score) == ("protocol", 0, None)
    assert "'MOVE;=1]'" in found.sentence
    assert text.endswith("])\n")


def test_the_file_is_the_same_as_what_is_printed(real: Path, tmp_path: Path) -> None:
    for arguments in (("--what", "games"), ("--what", "moves", "--format", "json"), ("--game", "r001-1v2")):
        path = tmp_path / "x"
        assert export(real / "out", *arguments, "--out", path).stdout.startswith(f"{path}: ")
        assert path.read_text() == export(real / "out", *arguments).stdout


@pytest.mark.parametrize(
    ("arguments", "status", "complaint"),
    [
        ([], 2, "say either --what games|moves or --game KEY"),
        (["--what", "games", "--game", "x"], 2, "say either --what games|moves or --game KEY"),
        (
            ["--what", "games", "--format", "sgf"],
            2,
            "--what games is exported as csv or json or jsonl or pgn, not as sgf",
        ),
        (
            ["--what", "moves", "--format", "pgn"],
            2,
            "--what moves is exported as csv or json or jsonl, not as pgn",
        ),
        (
            ["--game", "r001-1v2", "--format", "csv"],
            2,
            "--game is exported as sgf or json or pgn, not as csv",
        ),
        (["--game", "r001-1v9"], 2, "there is no game 'r001-1v9' here; did you mean 'r001-1v3'?"),
        (
            ["--what", "games", "--out", "/no/such/x"],
            1,
            "/no/such/x cannot be written: No such file or directory",
        ),
    ],
)
def test_what_cannot_be_exported(real: Path, arguments: list[str], status: int, complaint: str) -> None:
    failed = export(real / "out", *arguments)
    assert (failed.exit_code, failed.stdout) == (status, "")
    assert failed.stderr == f"Error: {complaint}\n"


def test_no_tournament(tmp_path: Path) -> None:
    failed = export(tmp_path, "--what", "games")
    assert failed.exit_code == 2
    assert "is it the directory of a tournament?" in failed.stderr


def test_a_damaged_record_leaves_no_half_file(tmp_path: Path) -> None:
    summary = TournamentResults("Cup", "kalah(1,1)", "2 s", ["one", "two"], "points")
    with Store(tmp_path / "results.db") as store:
        store.claim("Cup", summary.config(), {})
        for record in RECORDS.values():
            store.add(replace(record, game="kalah(1,1)"), 1)
    with tampering(tmp_path / "results.db") as connection:
        connection.exec_driver_sql("UPDATE game SET record = x'00' WHERE key = 'r001-2v1'")
    failed = export(tmp_path, "--what", "moves", "--out", tmp_path / "moves.csv")
    assert failed.exit_code == 1
    assert "game r001-2v1" in failed.stderr
    assert not list(tmp_path.glob("*moves.csv*"))


def test_marks_of_real_games(real: Path, tmp_path: Path) -> None:
    rules = tmp_path / "marks.toml"
    rules.write_text(
        'references = ["first_legal"]\n'
        'rule = [{ name = "Place", kind = "rank", bands = [{ top = 1, marks = 3 }] }]\n'
    )
    done = CliRunner().invoke(marks_command, [str(real / "out"), "--rules", str(rules)])
    assert (done.exit_code, done.stderr) == (0, "")
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    assert {row["bot"] for row in rows} == {"greedy", "minimax:2"}
    assert rows[0]["mark"] == "3"
    with Store(real / "out" / "results.db") as store:
        table = {line.name: line for line in TournamentResults.load(store).table}
    assert [row["rank"] for row in rows] == [str(table[row["bot"]].rank) for row in rows]


def test_every_column_is_documented() -> None:
    text = (ROOT / "docs" / "exports.md").read_text(encoding="utf-8")
    for rows in WHAT.values():
        for column in next(rows(rulings(), RECORDS.__getitem__)):
            assert f"`{column}`" in text, column
