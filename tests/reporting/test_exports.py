"""Exports: rows of games and moves, whole files, protected files, and the command on real games."""

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

import pytest
from click.testing import Result

from referee.games.catalog import parse_game
from referee.judge.record_rows import MoveRecord, WireLine
from referee.judge.results import GameRecord, MatchResult, Reason
from tests.reporting.reports import files_of, write_store
from tests.reporting.sgf_reader import parse, states
from tests.support.builders import invoke, lost_by, make_record, write_tournament
from tests.support.paths import REPOSITORY_ROOT
from tests.support.tampering import tampering
from tournaments.reporting import tables
from tournaments.reporting.exports import (
    COLUMNS,
    OWN_FILES,
    OWN_FOLDERS,
    WHAT,
    WRITERS,
    ExportError,
    games_rows,
    move_rows,
    protected,
    whole_file,
    write_json,
    write_json_lines,
)
from tournaments.reporting.sgf import GameText
from tournaments.reporting.tables import Row, write_csv
from tournaments.reporting.tournament_results import TournamentResults
from tournaments.results.game_files import public_view
from tournaments.results.game_summary import GameSummary
from tournaments.results.journal import Action, Entry
from tournaments.results.rulings import Rulings
from tournaments.results.store import Store

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
    # The columns of games.csv come first, with the same cells.
    here, there = io.StringIO(), tables.games_csv(rulings().games)
    write_csv(rows, here)
    assert [row[: len(tables.GAME_COLUMNS)] for row in csv.reader(io.StringIO(here.getvalue()))] == list(
        csv.reader(io.StringIO(there))
    )


def test_an_attempt_without_a_ruling_does_not_count() -> None:
    found = Rulings(["one", "two"], [GameSummary.of(record, 1) for record in RECORDS.values()], [])
    found.entries = [Entry(Action.VOID, "r001-2v1", "why", 1, AT)]
    rows = {row["key"]: row for row in games_rows(found, RECORDS.__getitem__)}
    assert rows["r001-1v2~2"]["counts"] is False
    assert rows["r001-1v2~2"]["why_not"] == "the game is played as r001-1v2"


# Moves


@pytest.mark.parametrize("changes", [{"game": "no_game"}, {"opening": "no move"}])
def test_moves_of_a_game_whose_rules_are_not_here_have_no_position(changes: dict[str, str]) -> None:
    rows = list(move_rows(replace(played(), **changes)))  # type: ignore[arg-type]
    assert [row["move"] for row in rows] == ["1", "SWAP", "3"]
    assert {row["legal_moves"] for row in rows} == {None}


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


# Forms

ROWS: list[Row] = [
    {"text": "=1\n+1", "number": -3, "time": 0.5, "yes": True, "nothing": None},
    {"text": "Größe", "number": 0, "time": 1234.5678, "yes": False, "nothing": None},
]


def test_forms() -> None:
    for rows, text in (
        (ROWS, "text,number,time,yes,nothing\n'=1\\n+1,-3,0.500,yes,\nGröße,0,1234.568,no,\n"),
        ([], "a,b\n"),
    ):
        table, array, lines = io.StringIO(), io.StringIO(), io.StringIO()
        write_csv(rows, table, ["a", "b"])
        write_json(rows, array)
        write_json_lines(rows, lines)
        assert table.getvalue() == text
        assert json.loads(array.getvalue()) == rows
        assert [json.loads(line) for line in lines.getvalue().splitlines()] == rows


@pytest.mark.parametrize("what", WHAT)
def test_columns(what: str, tmp_path: Path) -> None:
    """They are documented, and are there without a game."""
    rows = list(WHAT[what](rulings(), RECORDS.__getitem__))
    assert COLUMNS[what] == tuple(rows[0])
    assert {row["key"] for row in rows} >= {"r001-1v2", "r001-2v1"}
    text = (REPOSITORY_ROOT / "docs" / "exports.md").read_text(encoding="utf-8")
    assert [column for column in COLUMNS[what] if f"`{column}`" not in text] == []
    with Store(tmp_path / "results.db") as store:
        config = TournamentResults("Cup", "kalah(1,1)", "2 s", ["one", "two"], "points").config()
        store.claim("Cup", config, {})
    assert export(tmp_path, "--what", what).stdout == ",".join(COLUMNS[what]) + "\n"
    assert json.loads(export(tmp_path, "--what", what, "--format", "json").stdout) == []
    assert export(tmp_path, "--what", what, "--format", "jsonl").stdout == ""


@pytest.mark.parametrize("form", WRITERS)
def test_memory_does_not_grow_with_the_number_of_rows(form: str) -> None:
    def rows(count: int) -> Iterator[Row]:
        for number in range(count):
            yield {"key": f"r{number:06}", "position": "0,1" * 200}

    with Path(os.devnull).open("w") as sink:
        WRITERS[form](rows(10), sink, ())
        tracemalloc.start()
        try:
            WRITERS[form](rows(2000), sink, ())
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert peak < 300_000  # the rows have more than a million characters


# Files


def test_a_file_is_whole_or_not_there(tmp_path: Path) -> None:
    path, link = tmp_path / "x.csv", tmp_path / "link"

    def rows() -> Iterator[Row]:
        yield {"text": "x" * 100_000}  # more than a buffer holds
        raise OSError(28, os.strerror(28))

    with pytest.raises(ExportError, match="No space left on device"), whole_file(path) as file:
        write_csv(rows(), file)
    assert list(tmp_path.iterdir()) == []
    path.write_text("old")
    link.symlink_to("x.csv")
    with whole_file(link) as file:
        assert path.read_text() == "old"
        file.write("new \ud800\r\n")
    assert link.is_symlink()
    assert path.read_bytes() == b"new \\ud800\r\n"
    assert sorted(tmp_path.iterdir()) == [link, path]
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ExportError, match="is no file"), whole_file(tmp_path / "pipe"):
        pass
    with pytest.raises(ExportError, match="No such file or directory"), whole_file(tmp_path / "no" / "x"):
        pass


# Protected files


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a tournament that was really played, with a fault; no test changes it."""
    folder = tmp_path_factory.mktemp("real")
    (folder / "bad.py").write_text("input()\nprint('MOVE;=1]', flush=True)\ninput()\n")
    text = 'name = "Cup ]"\ngame = "kalah(3,2)"\nbots = ["first_legal", "greedy", "bad.py"]\n'
    file = write_tournament(folder, text)
    done = invoke("tournament", "run", file, "--out", folder / "out")
    assert done.exit_code == 0, done.stderr
    return folder / "out"


@pytest.mark.slow
def test_all_files_of_a_tournament_are_protected(real: Path, tmp_path: Path) -> None:
    """All that runs and reports write: a file that they begin to write must be protected, too."""
    folder = Path(shutil.copytree(real, tmp_path / "out"))
    for options in ((), ("--anonymous",), ("--out", str(folder / "report-2026"))):
        assert invoke("tournament", "report", folder, *options).exit_code == 0
    for extra in ("results.db-wal", "results.db-shm", "results.db-journal", ".lock"):
        (folder / extra).touch()
    found = sorted(folder.rglob("*"))
    files = [path for path in found if path.is_file()] + [path / "new" for path in found if path.is_dir()]
    names = {str(path.relative_to(folder).parts[0]) for path in files}
    assert names >= {"results.db", "pseudonyms.csv", "report.html", "games", "report", "report-2026"}
    assert [path for path in files if not protected(path, folder)] == []
    for name in ("standings.csv", "results.db"):
        assert protected(folder / name, tmp_path / "another"), "of another tournament"


def test_files_that_do_not_exist_yet_are_protected(tmp_path: Path) -> None:
    for name in (*OWN_FILES, *OWN_FOLDERS, "games/r001-1v2/game.json", "report/index.html"):
        assert "one of the tournament's own files" in protected(tmp_path / name, tmp_path), name
    for name in ("moves.csv", "report-marks.csv", "sub/games.csv", "results.db.txt", "../games.csv"):
        assert protected(tmp_path / name, tmp_path) == "", name


def test_links_are_followed(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / "pseudonyms.csv").write_text("key")
    (tmp_path / "hard").hardlink_to(folder / "pseudonyms.csv")
    (tmp_path / "store").mkdir()
    for link, target in (
        *(("soft", "out/pseudonyms.csv"), ("again", "out"), ("dangling", "out/games.csv")),
        *(("out/games", "../store"), ("out/results.db", "../store/results")),
    ):
        (tmp_path / link).symlink_to(target)
    names = ("soft", "hard", "again/x/../games.csv", "dangling", "out/games/x", "store/x", "out/results.db")
    assert [name for name in names if not protected(tmp_path / name, folder)] == []
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
    assert [protected(tmp_path / name, folder) for name in ("pipe", "text", "rules")] == [""] * 3


# The command


def export(directory: Path, *options: str | Path) -> Result:
    return invoke("tournament", "export", directory, *options)


def test_no_export_destroys_the_tournament(real: Path) -> None:
    before = files_of(real)
    for options in (("--what", "games"), ("--game", "r001-1v2")):
        for name in ("results.db", "report.html", "games.csv", "games/x.csv", "pseudonyms.csv"):
            failed = export(real, *options, "--out", real / name)
            assert (failed.exit_code, failed.stdout) == (2, "")
            assert failed.stderr.endswith("is one of the tournament's own files: choose another --out\n")
    assert files_of(real) == before


def test_real_games(real: Path, tmp_path: Path) -> None:
    games = list(csv.DictReader(io.StringIO(export(real, "--what", "games").stdout)))
    moves = json.loads(export(real, "--what", "moves", "--format", "json").stdout)
    with Store(real / "results.db") as store:
        records = {key: store.record(key) for key in store.played()}
    assert {game["key"] for game in games} == set(records)
    for key, record in records.items():
        mine = [move for move in moves if move["key"] == key]
        assert [move["move"] for move in mine] == [move.move for move in record.moves]
        times = [move["at_ms"] for move in mine]
        assert times == sorted(times)
        text = parse(export(real, "--game", key).stdout)
        assert text == GameText.from_record(record, "Cup ]", 1)
        *_, last = states(text)
        assert parse_game(text.game).board_text(last) == text.final == record.final_state
        assert not mine or mine[-1]["position"] == text.final
        shown = export(real, "--game", key, "--format", "json").stdout
        assert json.loads(shown) == json.loads(json.dumps(public_view(record)))
    fault = records["r001-1v3"].result
    assert (fault.reason, fault.winner, fault.score) == (Reason.PROTOCOL, 0, None)
    assert "'MOVE;=1]'" in parse(export(real, "--game", "r001-1v3").stdout).sentence
    path = tmp_path / "x"  # has the text that is printed without --out
    for options in (("--what", "moves", "--format", "jsonl"), ("--game", "r001-1v2")):
        assert export(real, *options, "--out", path).stdout.startswith(f"{path}: ")
        assert path.read_text() == export(real, *options).stdout


@pytest.mark.parametrize(
    ("options", "status", "message"),
    [
        ("", 2, "give either --what games|moves or --game KEY"),
        ("--what games --game x", 2, "give either --what games|moves or --game KEY"),
        (
            "--what games --format sgf",
            2,
            "--what games is exported as csv or json or jsonl or pgn, not as sgf",
        ),
        ("--what moves --format pgn", 2, "--what moves is exported as csv or json or jsonl, not as pgn"),
        ("--game r001-1v2 --format csv", 2, "--game is exported as sgf or json or pgn, not as csv"),
        ("--game r001-1v9", 2, "there is no game 'r001-1v9' here; did you mean 'r001-1v3'?"),
        ("--what games --out /no/such/x", 1, "/no/such/x cannot be written: No such file or directory"),
    ],
)
def test_impossible_exports(real: Path, options: str, status: int, message: str) -> None:
    failed = export(real, *options.split())
    assert (failed.exit_code, failed.stdout, failed.stderr) == (status, "", f"Error: {message}\n")


def test_a_damaged_record_leaves_no_half_file(tmp_path: Path) -> None:
    failed = export(tmp_path, "--what", "games")
    assert failed.exit_code == 2
    assert "is it the directory of a tournament?" in failed.stderr
    out = write_store(tmp_path / "out", ["one", "two"])
    with tampering(out / "results.db") as connection:
        connection.exec_driver_sql("UPDATE game SET record = x'00' WHERE key = 'r001-2v1'")
    failed = export(out, "--what", "moves", "--out", tmp_path / "moves.csv")
    assert failed.exit_code == 1
    assert "game r001-2v1" in failed.stderr
    assert not list(tmp_path.glob("*moves.csv*"))
