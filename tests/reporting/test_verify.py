"""`kalarena verify`: a tournament as it was played is clean, an altered one is not."""

import json
import re
import shutil
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import URL

from referee.judge.record_rows import KeptFile
from referee.judge.results import GameRecord, Reason
from tests.reporting.reports import write_store
from tests.support.builders import invoke, lost_by, make_record, one_object, write_tournament
from tests.support.postgresql import PostgreSQLServer
from tests.support.random_games import random_game
from tests.support.store_locations import store_of_revision
from tests.support.tampering import rechain, tampering
from tests.support.tiers import slow_but
from tournaments.config.load import load_tournament
from tournaments.course.backup.database_migration import copy_tables
from tournaments.database.sqlite import SQLiteFile
from tournaments.reporting.file_differences import json_differences
from tournaments.reporting.game_verification import verify_game
from tournaments.reporting.tournament_directory import TournamentDirectory
from tournaments.reporting.tournament_results import TournamentResults
from tournaments.reporting.verification import Verification, read_record
from tournaments.results.game_files import write_game_files
from tournaments.results.schema import game, metadata
from tournaments.results.store import Store, StoreError
from tournaments.running.runner import open_run

CUP = """
name = "Cup"
game = "kalah(3,2)"
bots = ["first_legal", "greedy", "random:1"]
"""
GAMES = 6
KEY = "r001-1v2"
TABLES = ("results.json", "standings.csv", "games.csv", "report.html")
CONCLUSION = re.compile("<p>[^<]* wins the knockout[^<]*</p>")
"""The conclusion on report.html."""


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a tournament; no test changes it."""
    folder = tmp_path_factory.mktemp("played")
    done = invoke("tournament", "run", write_tournament(folder, CUP), "--out", folder / "out")
    assert done.exit_code == 0, done.stderr
    return folder / "out"


@pytest.fixture(scope="module")
def went_on(played: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tournament with another round, and the tables of the first one: a kill after the last game."""
    folder = tmp_path_factory.mktemp("went_on")
    out = Path(shutil.copytree(played, folder / "out"))
    done = invoke("tournament", "run", write_tournament(folder, "rounds = 2\n" + CUP), "--out", out)
    assert done.exit_code == 0, done.stderr
    for name in TABLES:
        shutil.copy(played / name, out / name)
    return out


@pytest.fixture
def copy(played: Path, tmp_path: Path) -> Path:
    """A copy of the tournament, which may be altered."""
    return Path(shutil.copytree(played, tmp_path / "out"))


@pytest.fixture
def killed(went_on: Path, tmp_path: Path) -> Path:
    """A copy of the tournament with old tables, which may be altered."""
    return Path(shutil.copytree(went_on, tmp_path / "out"))


def found(directory: Path) -> list[str]:
    return [str(one) for one in Verification().of_directory(directory)]


def keys_of(lines: list[str]) -> set[str]:
    return {line.partition(":")[0] for line in lines}


def rewrite(path: Path, pattern: str, by: str) -> None:
    """Replace the first match of a pattern in a file."""
    text = path.read_text(encoding="utf-8")
    altered = re.sub(pattern, by, text, count=1)
    assert altered != text
    path.write_text(altered, encoding="utf-8")


def execute(directory: Path, statement: str, *values: object) -> None:
    with tampering(directory / "results.db") as connection:
        connection.exec_driver_sql(statement, values)


def test_a_tournament_as_it_was_played(played: Path) -> None:
    result = invoke("verify", played)
    assert (result.exit_code, result.output) == (0, f"{GAMES} games verified, nothing wrong\n")
    value = one_object(invoke("verify", "--json", played).output)
    with Store(played / "results.db", read_only=True) as store:
        head = store.head()
    assert head is not None
    assert value == {
        "heads": [{"path": str(played), "head": head.digest, "head_number": GAMES + 1}],
        "games": GAMES,
        "wrong": 0,
        "elsewhere": 0,
        "complaints": [],
    }


def test_missing_tables_and_folders_are_not_wrong(copy: Path) -> None:
    """The store alone is the truth."""
    for path in copy.iterdir():
        if path.name == "games":
            shutil.rmtree(path)
        elif path.name != "results.db":
            path.unlink()
    assert found(copy) == []


def test_a_verdict_that_no_database_stores_as_it_is(tmp_path: Path) -> None:
    """The table has other characters instead of NUL; older versions stored it as it is in SQLite."""
    detail = "two lost: \0 and \N{SYMBOL FOR NULL}"
    path = tmp_path / "results.db"
    with Store(path) as store:
        store.add(make_record(result=lost_by(Reason.EXIT, 1, detail)), 1)
    for stored in (None, detail, "one lost"):
        if stored is not None:
            execute(tmp_path, "UPDATE game SET detail = ?", stored)
        with Store(path, read_only=True) as store:
            (row,) = store.games()
            differ = {one.what for one in verify_game(store, None, row, None)}
        assert ("detail" in differ) == (stored == "one lost")


def test_a_word_for_a_fault_that_postgresql_does_not_store_as_it_is(tmp_path: Path) -> None:
    """The table has its beginning; older versions stored it as it is in SQLite."""
    fault = "a-capture-is-possible-in-another-corner"
    with Store(tmp_path / "results.db") as store:
        store.add(make_record(result=lost_by(Reason.ILLEGAL, 1, fault=fault)), 1)
    for stored, is_wrong in ((None, False), (fault, False), ("a-capture", True)):
        if stored is not None:
            execute(tmp_path, "UPDATE game SET fault = ?", stored)
        with Store(tmp_path / "results.db", read_only=True) as store:
            (row,) = store.games()
            assert ("fault" in {one.what for one in verify_game(store, None, row, None)}) is is_wrong


# The store.

COLUMNS = {
    "key": "'r009-1v2'",
    "round": "2",
    "first": "'greedy'",
    "second": "'first_legal'",
    "winner": "CASE winner WHEN 0 THEN 1 ELSE 0 END",
    "reason": "'timeout'",
    "fault": "'late'",
    "detail": "detail || '!'",
    "first_score": "first_score + 1",
    "second_score": "second_score - 1",
    "first_moves": "first_moves + 1",
    "second_moves": "0",
    "first_wall_us": "first_wall_us + 1",
    "second_wall_us": "second_wall_us - 1",
    "first_charged_us": "first_charged_us + 1",
    "second_charged_us": "second_charged_us - 1",
    "sandbox": "'none at all'",
    "record": "x'00'",
    "pair": "'r002-1+2'",
    "opening": "'1 2 3'",
    "fingerprint": "'0123456789abcdef'",
    "swapped": "1",
    "line": "'0123456789abcdef'",
    "deficit_permille": "987",
}
QUICK_COLUMNS = ("key", "winner", "reason", "second_charged_us", "record", "opening")


@pytest.mark.parametrize("column", slow_but(QUICK_COLUMNS, [column.name for column in game.columns]))
def test_an_altered_column_of_the_store_is_found(copy: Path, column: str) -> None:
    execute(copy, f"UPDATE game SET {column} = {COLUMNS[column]} WHERE key = ?", KEY)
    result = invoke("verify", copy)
    assert result.exit_code == 1
    assert f"1 of {GAMES} games does not follow" in result.output
    assert column.removeprefix("first_").removeprefix("second_") in result.output


def test_an_unknown_reason(copy: Path) -> None:
    execute(copy, "UPDATE game SET reason = 'bored' WHERE key = ?", KEY)
    result = invoke("verify", copy)
    assert result.exit_code == 1
    assert "results.db: tournament: recorded as one that was played, but" in result.output


def alter_record(directory: Path, change: Callable[[GameRecord], GameRecord]) -> None:
    """Write another record, and compute the chain anew."""
    with Store(directory / "results.db", read_only=True) as store:
        record = change(store.record(KEY))
    with tampering(directory / "results.db") as connection:
        packed = zlib.compress(record.to_msgpack())
        connection.exec_driver_sql("UPDATE game SET record = ? WHERE key = ?", (packed, KEY))
        rechain(connection)


@pytest.mark.parametrize(
    "change",
    [
        lambda record: replace(record, result=replace(record.result, winner=None)),
        lambda record: replace(record, key="r001-2v1"),
        lambda record: replace(record, players=record.players[::-1]),
        lambda record: replace(record, control=replace(record.control, margin_s=0.06)),
        lambda record: replace(record, moves=[record.moves[0]._replace(wall_us=1), *record.moves[1:]]),
        lambda record: replace(record, started_at="2026-01-01"),
    ],
    ids=["winner", "key", "players", "control", "time of a move", "stamp"],
)
def test_an_altered_record_of_the_store_is_found(
    copy: Path, change: Callable[[GameRecord], GameRecord]
) -> None:
    alter_record(copy, change)
    assert KEY in keys_of(found(copy))


def test_a_game_that_was_deleted_from_the_store(copy: Path) -> None:
    execute(copy, "DELETE FROM game WHERE key = ?", KEY)
    missing, folder, *tables = found(copy)
    assert re.fullmatch(
        rf"{KEY}: this game was stored as entry \d of the chain and is not there any more", missing
    )
    assert folder.startswith(f"{KEY}: games: folder: recorded one of this game, but no such game is kept")
    assert keys_of(tables) == set(TABLES)


def test_a_ruling_that_was_deleted_from_the_journal(copy: Path) -> None:
    """The triggers can be dropped by hand; chain and tables still show the ruling."""
    assert invoke("tournament", "void", copy, KEY, "--why", "x").exit_code == 0
    assert found(copy) == []
    execute(copy, "DELETE FROM journal")
    assert keys_of(found(copy)) == {f"ruling 1 (void {KEY})", *TABLES}


# A run that is at work, or was killed.

OLD = f"made from {GAMES} games, there are {2 * GAMES} now: run the tournament again"


@pytest.mark.parametrize("gone", [(), ("results.json",), ("games.csv", "report.html")])
def test_the_tables_after_a_kill_are_old(killed: Path, gone: tuple[str, ...]) -> None:
    for name in gone:
        (killed / name).unlink()
    result = invoke("verify", killed)
    *remarks, conclusion = result.output.splitlines()
    assert (result.exit_code, conclusion) == (0, f"{2 * GAMES} games verified, nothing wrong")
    assert [line.partition(": ")[0] for line in remarks] == [name for name in TABLES if name not in gone]
    assert all(OLD in line and line.endswith(" (a remark)") for line in remarks)
    complaints = one_object(invoke("verify", "--json", killed).output)["complaints"]
    assert [one["remark"] for one in complaints] == [True] * len(remarks)


def test_the_tables_after_a_kill_are_old_if_the_clock_was_ahead_before(killed: Path) -> None:
    """The first round was played by a host whose clock was ahead, or a clock was put back since."""
    alter_record(killed, lambda record: replace(record, started_at="2999-01-01T00:00:00.000+00:00"))
    shutil.rmtree(killed / "games")
    result = invoke("verify", killed)
    assert result.exit_code == 0, result.output
    assert result.output.count(OLD) == len(TABLES)


@pytest.mark.slow
@pytest.mark.parametrize("is_migrated", [False, True])
def test_old_tables_of_a_store_that_had_no_chain(copy: Path, tmp_path: Path, *, is_migrated: bool) -> None:
    """The order of storing is not known then: the migration sorts by keys, and only the clock is left."""
    alter_record(copy, lambda record: replace(record, started_at="2999-01-01T00:00:00.000+00:00"))
    shutil.rmtree(copy / "games")
    before = Path(shutil.copytree(copy, tmp_path / "before its last game"))
    execute(before, "DELETE FROM game WHERE key = ?", KEY)
    with Store(before / "results.db", read_only=True) as store:
        TournamentDirectory(copy).write_reports(TournamentResults.load(store))
    with store_of_revision(SQLiteFile(copy / "results.db"), "0004"):
        pass
    if is_migrated:
        with Store(copy / "results.db"):
            pass
    result = invoke("verify", copy)
    assert result.exit_code == 0, result.output
    assert result.output.count(f"made from {GAMES - 1} games, there are {GAMES} now") == len(TABLES)


@pytest.mark.slow
@pytest.mark.parametrize("gone", [(), ("results.json",)])
def test_the_tables_of_a_run_with_more_rounds_that_was_killed_before_its_first_game(
    copy: Path, tmp_path: Path, gone: tuple[str, ...]
) -> None:
    with Store(copy / "results.db") as store:
        open_run(load_tournament(write_tournament(tmp_path, "rounds = 2\n" + CUP)), store)
    for name in gone:
        (copy / name).unlink()
    result = invoke("verify", copy)
    *remarks, conclusion = result.output.splitlines()
    assert (result.exit_code, conclusion) == (0, f"{GAMES} games verified, nothing wrong")
    assert [line.partition(": made")[0] for line in remarks] == [
        name for name in ("results.json", "report.html") if name not in gone
    ]
    assert all("made with rounds = 1, the tournament has rounds = 2 now: run" in line for line in remarks)
    report = copy / "report.html"
    report.write_text(report.read_text().replace("greedy", "dreegy"))
    assert invoke("verify", copy).exit_code == 1


def test_the_tables_of_a_run_with_another_configuration_that_was_killed_before_its_first_game(
    copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def die(*_arguments: object) -> None:
        raise StoreError("killed")

    monkeypatch.setattr("tournaments.cli.tournament.run.play_all", die)
    path = write_tournament(tmp_path, f'rounds = 2\n{CUP}[rating]\nanchor = "greedy"\n')
    assert invoke("tournament", "run", path, "--out", copy).exit_code == 1
    assert '"anchor": "greedy"' in (copy / "results.json").read_text()
    assert found(copy) == []


@pytest.mark.slow
def test_a_page_of_an_earlier_version_has_no_conclusion(tmp_path: Path) -> None:
    path = write_tournament(tmp_path, 'format = "knockout"\n' + CUP)
    out = tmp_path / "out"
    assert invoke("tournament", "run", path, "--out", out).exit_code == 0
    assert found(out) == []
    page = out / "report.html"
    text = page.read_text(encoding="utf-8")
    earlier = CONCLUSION.sub("", text)
    assert earlier != text
    page.write_text(earlier, encoding="utf-8")
    result = invoke("verify", out)
    assert result.exit_code == 0, result.output
    assert "report.html: an earlier version wrote it" in result.output
    page.write_text(text.replace("wins the knockout", "loses the knockout"), encoding="utf-8")
    assert invoke("verify", out).exit_code == 1


@pytest.mark.slow
def test_tables_of_an_earlier_version_refer_to_an_anchor_without_games(copy: Path, tmp_path: Path) -> None:
    path = write_tournament(tmp_path, CUP + '[rating]\nanchor = "greedy"\n')
    assert invoke("tournament", "run", path, "--out", copy).exit_code == 0
    assert invoke("tournament", "withdraw", copy, "greedy", "--annul", "--why", "x").exit_code == 0
    assert found(copy) == []
    with Store(copy / "results.db", read_only=True) as store:
        earlier = TournamentResults.load(store)
    earlier.anchored = earlier.anchor
    TournamentDirectory(copy).write_reports(earlier)
    lines = found(copy)
    assert keys_of(lines) == {"results.json", "standings.csv", "report.html"}
    assert all("an earlier version wrote it" in line for line in lines)


def test_games_of_an_earlier_version_have_formulas_inside_texts(tmp_path: Path) -> None:
    def changed(record: GameRecord) -> GameRecord:
        return replace(record, result=replace(record.result, detail="it sent 'MOVE;-1'"))

    out = write_store(tmp_path / "out", ["alpha", "beta"], changed=changed)
    with Store(out / "results.db", read_only=True) as store:
        TournamentDirectory(out).write_reports(TournamentResults.load(store))
    rewrite(out / "games.csv", ";'-1", ";-1")
    (line,) = [line for line in found(out) if line.startswith("games.csv: ")]
    assert "an earlier version wrote it" in line


@pytest.mark.slow
@pytest.mark.parametrize("has_conclusion", [True, False])
def test_a_page_of_an_earlier_version_after_a_ruling_and_a_kill(tmp_path: Path, has_conclusion: bool) -> None:
    """The ruling was killed between its entry and the tables."""
    path = write_tournament(tmp_path, 'format = "knockout"\n' + CUP)
    out = tmp_path / "out"
    assert invoke("tournament", "run", path, "--out", out).exit_code == 0
    before = {name: (out / name).read_text(encoding="utf-8") for name in TABLES}
    if not has_conclusion:
        before["report.html"] = CONCLUSION.sub("", before["report.html"])
    assert invoke("tournament", "withdraw", out, "greedy", "--why", "x").exit_code == 0
    for name, text in before.items():
        (out / name).write_text(text, encoding="utf-8")
    result = invoke("verify", out)
    assert result.exit_code == 0, result.output
    assert "report.html: made before the last entry of the journal" in result.output
    (out / "report.html").write_text(before["report.html"].replace("greedy", "dreegy"), encoding="utf-8")
    assert invoke("verify", out).exit_code == 1


@pytest.mark.slow
def test_tables_that_were_half_written(killed: Path, went_on: Path) -> None:
    """The disk was full after three of them: results.json is the last one."""
    with Store(killed / "results.db", read_only=True) as store:
        TournamentDirectory(killed).write_reports(TournamentResults.load(store))
    assert found(killed) == []
    shutil.copy(went_on / "results.json", killed)
    (line,) = found(killed)
    assert line.startswith(f"results.json: {OLD}")


def test_old_tables_from_before_a_later_ruling(killed: Path, went_on: Path) -> None:
    assert invoke("tournament", "void", killed, "r002-1v2", "--why", "x").exit_code == 0
    for name in TABLES:
        shutil.copy(went_on / name, killed)
    result = invoke("verify", killed)
    assert result.exit_code == 0, result.output
    assert result.output.count(f"made from {GAMES} games, there are {2 * GAMES - 1} now") == len(TABLES)


FEWER = ("results.json", f'"games": {GAMES}', f'"games": {GAMES - 1}')
RENAMED = ("standings.csv", "greedy", "dreegy")


@pytest.mark.parametrize(
    ("gone", "altered"),
    [
        ((), [FEWER]),
        ((), [("games.csv", r"LAST,[^\n]*\n", ""), RENAMED]),
        (("games.csv",), [FEWER, RENAMED]),
    ],
    ids=["a smaller number of games", "a shorter list of games", "no list of games"],
)
def test_altered_tables_are_no_old_tables(
    copy: Path, gone: tuple[str, ...], altered: list[tuple[str, str, str]]
) -> None:
    with Store(copy / "results.db", read_only=True) as store:
        last = store.in_order()[-1]
    for name in gone:
        (copy / name).unlink()
    for name, pattern, by in altered:
        rewrite(copy / name, pattern.replace("LAST", last), by)
    assert any(line.startswith(f"{altered[-1][0]}: line ") for line in found(copy))


@pytest.mark.slow
@pytest.mark.parametrize("name", TABLES)
def test_old_tables_that_were_altered(killed: Path, name: str) -> None:
    rewrite(killed / name, "greedy", "dreegy")
    lines = found(killed)
    assert any(line.startswith(f"{name}: line ") for line in lines)
    assert sum(OLD in line for line in lines) == len(TABLES) - 1


def test_tables_of_today_are_no_tables_of_a_version_without_a_chain(copy: Path) -> None:
    with store_of_revision(SQLiteFile(copy / "results.db"), "0004"):
        pass
    with Store(copy / "results.db"):  # its games are adopted
        pass
    (copy / "results.json").unlink()
    rewrite(copy / "standings.csv", "greedy", "dreegy")
    assert any(line.startswith("standings.csv: line ") for line in found(copy))


RULINGS = (("void", KEY), ("restore", KEY), ("withdraw", "greedy"), ("restore", "greedy"))


@pytest.mark.slow
def test_the_tables_after_rulings_and_a_kill_are_old(copy: Path, tmp_path: Path) -> None:
    """A ruling was killed between its entry and the tables, at each point of a sequence of rulings."""
    for number, (action, subject) in enumerate(RULINGS, 1):
        before = Path(shutil.copytree(copy, tmp_path / f"before {number}"))
        assert invoke("tournament", action, copy, subject, "--why", "x").exit_code == 0
        assert found(copy) == []
        tables = {name: (copy / name).read_bytes() for name in TABLES}
        for interrupted in (1, 4):
            for name in TABLES[:interrupted]:
                shutil.copy(before / name, copy / name)
            result = invoke("verify", copy)
            assert result.exit_code == 0, result.output
            for name in TABLES[:interrupted]:
                if (before / name).read_bytes() != tables[name]:
                    assert f"{name}: made " in result.output
        (copy / "standings.csv").write_text("bot\n")
        assert invoke("verify", copy).exit_code == 1  # a table that never was
        for name, table in tables.items():
            (copy / name).write_bytes(table)


def test_old_tables_are_compared_if_a_game_is_gone(killed: Path) -> None:
    execute(killed, "DELETE FROM game WHERE key = ?", KEY)
    assert {KEY, "games.csv", "standings.csv", "report.html"} <= keys_of(
        [line for line in found(killed) if "made from" not in line]
    )


def test_the_tables_of_a_run_at_work_are_not_compared(copy: Path) -> None:
    (copy / "results.json").write_text("{")
    assert invoke("verify", copy).exit_code == 1
    with TournamentDirectory(copy).locked():
        result = invoke("verify", copy)
        assert result.exit_code == 0
        assert result.output.splitlines() == [
            "tables: a run is active: its tables are not compared (a remark)",
            f"{GAMES} games verified, nothing wrong",
        ]
    with TournamentDirectory(copy).locked():  # verify has not kept the lock
        pass


def test_a_folder_that_appears_meanwhile(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run kept a game, and wrote its folder, after verify had read the list of games."""
    load = TournamentResults.load

    def load_and_go_on(store: Store) -> TournamentResults:
        summary = load(store)
        (copy / "games" / "r002-1v2").mkdir(exist_ok=True)
        return summary

    monkeypatch.setattr(TournamentResults, "load", load_and_go_on)
    assert found(copy) == []
    (line,) = found(copy)  # the next time it was there before
    assert line.startswith("r002-1v2: games: folder")


def test_nothing_to_verify_yet(copy: Path, tmp_path: Path) -> None:
    """A run was killed before it stored the tournament's name, or before the first game."""
    (tmp_path / "fresh").mkdir()
    with Store(tmp_path / "fresh" / "results.db"):
        pass
    result = invoke("verify", tmp_path / "fresh")
    assert result.exit_code == 2
    assert "holds no tournament yet: run the tournament first" in result.output
    execute(copy, "DELETE FROM game")
    for name in TABLES:
        (copy / name).unlink()
    shutil.rmtree(copy / "games")
    assert invoke("verify", copy).exit_code == 1  # the chain has the games
    with tampering(copy / "results.db") as connection:
        rechain(connection)
    result = invoke("verify", copy)
    assert result.exit_code == 2
    assert "holds no game yet, there is nothing to verify: run the tournament first" in result.output


# The files.


def test_altered_fields_of_a_game_are_found(copy: Path) -> None:
    path = copy / "games" / KEY / "game.json"
    whole = json.loads(path.read_text())
    fields = ("winner", "reason", "score", "moves", "wire", "final_state", "key", "duration_ms", "players")
    altered = {name: whole[name][:-1] if isinstance(whole[name], list | str) else 7 for name in fields}
    path.write_text(json.dumps(whole | altered) + "\n")
    lines = [line for line in found(copy) if line.startswith(f"{KEY}: game.json: ")]
    assert {line.split(": ")[2] for line in lines} == set(fields)
    path.write_text("{")
    (line,) = found(copy)
    assert "game.json: recorded as JSON, but" in line


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ("[]", "game.json: recorded as JSON, but it is no object"),
        ('{"versions": {}, "new": 1}', "game.json: new: recorded there, but no such field follows"),
    ],
)
def test_other_json_than_that_of_the_game_is_found(written: str, words: str) -> None:
    (complaint,) = json_differences(written, '{"versions": {}}')
    assert words in str(complaint)


def test_a_file_of_an_older_version_lacks_new_fields(copy: Path) -> None:
    path = copy / "games" / KEY / "game.json"
    view = json.loads(path.read_text())
    del view["cores"]
    path.write_text(json.dumps(view) + "\n")
    assert [line.partition(": recorded")[0] for line in found(copy)] == [f"{KEY}: game.json: cores"]
    alter_record(copy, lambda record: replace(record, versions={"kalarena": "0.0.1"}))
    view["versions"] = {"kalarena": "0.0.1"}
    path.write_text(json.dumps(view) + "\n")
    assert found(copy) == []


@pytest.mark.parametrize("name", [*TABLES, f"games/{KEY}/wire.txt"])
def test_an_altered_text_is_found(copy: Path, name: str) -> None:
    path = copy / name
    text = path.read_text()
    at = text.index("greedy")
    path.write_text(text[:at] + "x" + text[at:])
    (line,) = found(copy)
    assert line.startswith(f"{KEY if 'wire' in name else name}: line ")
    assert "greedy" in line


@pytest.mark.parametrize("name", ["game.json", "wire.txt", "stderr-1-first_legal.txt"])
def test_an_altered_file_of_a_game_is_found_and_a_missing_one_is_no_fault(copy: Path, name: str) -> None:
    path = copy / "games" / KEY / name
    path.write_bytes(path.read_bytes() + b"{\xff")
    (line,) = found(copy)
    assert line.startswith(f"{KEY}: ")
    assert name in line
    path.unlink()
    assert found(copy) == []


def test_files_that_were_kept_are_compared(copy: Path) -> None:
    files = (KeptFile(b"a/log", b"text", 4), KeptFile(b"core", b"x", 1))
    alter_record(copy, lambda record: replace(record, kept_files=((), files)))
    with Store(copy / "results.db", read_only=True) as store:
        write_game_files(copy, store.record(KEY))
    assert found(copy) == []
    folder = copy / "games" / KEY / "files-2-greedy"
    (folder / "a" / "log").write_bytes(b"next")
    (folder / "core").unlink()
    assert found(copy) == [f"{KEY}: files-2-greedy/a/log is not the file that was kept"]


@pytest.mark.parametrize("name", ["game.json", "wire.txt"])
def test_a_file_that_cannot_be_read_is_reported_with_its_game(copy: Path, name: str) -> None:
    path = copy / "games" / KEY / name
    path.unlink()
    path.mkdir()
    (line,) = found(copy)
    assert line.startswith(f"{KEY}: a file of this game cannot be read")
    assert str(path) in line


# Single records.

RECORD = random_game("kalah(3,2)", opening="1 2")
WRONG = replace(RECORD, final_state="0")


def written(folder: Path, record: GameRecord, name: str) -> Path:
    path = folder / name
    if name.endswith(".json"):
        path.write_text(json.dumps(record.to_json()))
    else:
        path.write_bytes(record.to_msgpack())
    return path


@pytest.mark.parametrize("name", ["game.json", "game.msgpack", "game"])
def test_records(tmp_path: Path, name: str) -> None:
    path = written(tmp_path, RECORD, name)
    assert read_record(path) == RECORD
    result = invoke("verify", path)
    assert (result.exit_code, result.output) == (0, "1 game verified, nothing wrong\n")
    result = invoke("verify", path, written(tmp_path, WRONG, f"wrong-{name}"))
    assert (result.exit_code, result.output) == (
        1,
        f"r001-1v2: final_state: recorded 0, but '{RECORD.final_state}' follows\n"
        "1 of 2 games does not follow from its record\n",
    )
    value = one_object(invoke("verify", "--json", tmp_path / f"wrong-{name}").output)
    assert (value["games"], value["wrong"]) == (1, 1)
    (complaint,) = value["complaints"]
    assert (complaint["key"], complaint["what"], complaint["recorded"]) == ("r001-1v2", "final_state", "0")


def test_a_record_of_a_game_that_no_rules_can_have_is_wrong(tmp_path: Path) -> None:
    result = invoke("verify", written(tmp_path, replace(RECORD, game="("), "game"))
    assert result.exit_code == 1
    assert "r001-1v2: game: recorded as one that was judged, but the judge's SpecError ('(' is no game" in (
        result.output
    )


@pytest.mark.parametrize(
    ("name", "words"),
    [(".lock", "cannot be written to: Is a directory"), ("games.csv", "the results are safe in")],
)
def test_a_tournament_whose_files_cannot_be_written_is_named(copy: Path, name: str, words: str) -> None:
    (copy / name).unlink(missing_ok=True)
    (copy / name).mkdir()
    result = invoke("tournament", "void", copy, KEY, "--why", "x")
    assert result.exit_code != 0
    assert words in result.output


def test_other_words_of_another_version_are_no_fault(tmp_path: Path) -> None:
    older = replace(RECORD, result=replace(RECORD.result, detail="Bob won"), versions={"kalarena": "0.0.1"})
    result = invoke("verify", written(tmp_path, older, "game"))
    assert result.exit_code == 0
    assert "(a remark: another version wrote it)" in result.output


def test_records_of_play(tmp_path: Path) -> None:
    paths = [tmp_path / "game.json", tmp_path / "game.msgpack"]
    for path in paths:
        assert (
            invoke("play", "greedy", "first_legal", "--game", "kalah(2,2)", "--record", path).exit_code == 0
        )
    result = invoke("verify", *paths)
    assert (result.exit_code, result.output) == (0, "2 games verified, nothing wrong\n")


def test_a_record_without_the_lines_that_the_verdict_follows_from(tmp_path: Path) -> None:
    result = invoke("verify", written(tmp_path, replace(make_record(), sandbox="off"), "made-up"))
    assert result.exit_code == 1


def test_files_that_cannot_be_read(tmp_path: Path, played: Path) -> None:
    (tmp_path / "text").write_text("hello")
    (tmp_path / "text.json").write_text("{")
    (tmp_path / "results.db").write_text("no database")
    for path, words in (
        (tmp_path / "text", "this is no game record"),
        (tmp_path / "text.json", "this is no game record"),
        (tmp_path / "nothing", "cannot be read: No such file or directory"),
        (played / "games", "holds no results.db"),
        (played / "games" / KEY / "game.json", "this game record is not whole"),
        (tmp_path, "is no SQLite database"),
    ):
        result = invoke("verify", path)
        assert result.exit_code == 2, path
        assert words in result.output
    assert invoke("verify").exit_code == 2


def test_other_paths_are_verified_after_a_bad_one(tmp_path: Path, played: Path) -> None:
    (tmp_path / "text").write_text("hello")
    record = written(tmp_path, replace(make_record(), sandbox="off"), "made-up")
    result = invoke("verify", tmp_path / "text", played, record)
    assert result.exit_code == 1  # a difference is worse
    assert "this is no game record" in result.stderr
    assert result.stderr.endswith("1 of 3 paths could not be verified; see above\n")
    assert "1 of 7 games does not follow" in result.stdout
    result = invoke("verify", "--json", tmp_path / "text", played)
    assert result.exit_code == 2
    found = json.loads(result.stdout)
    assert (found["games"], found["wrong"]) == (6, 0)
    assert [one["path"] for one in found["refused"]] == [str(tmp_path / "text")]
    nothing = invoke("verify", tmp_path / "text", tmp_path / "nothing")
    assert (nothing.exit_code, nothing.stdout) == (2, "")


def test_a_part_of_a_tournament_is_referred_to_its_directory(played: Path) -> None:
    for part in ("results.db", "games", f"games/{KEY}", f"games/{KEY}/game.json"):
        result = invoke("verify", played / part)
        assert result.exit_code == 2
        assert result.output.endswith(f"so verify its directory: {played}\n"), result.output


@pytest.mark.slow
def test_a_tournament_of_a_server_with_postgresql(
    played: Path, tmp_path: Path, postgresql: PostgreSQLServer
) -> None:
    """With the files of the data directory, and without them."""
    directory = tmp_path / "competitions" / "cup"
    shutil.copytree(played, directory, ignore=shutil.ignore_patterns("results.db*"))
    with postgresql.database() as database:
        assert isinstance(database.address, URL)
        url = database.address.set(drivername="postgresql").render_as_string(hide_password=False)
        options = ("--database", url)
        location = database.competition("cup")
        with Store(location):
            pass  # creates its tables
        copy_tables(SQLiteFile(played / "results.db"), location, metadata)
        for path in (directory, tmp_path / "elsewhere" / "cup"):
            found = one_object(invoke("verify", path, *options, "--json").output)
            assert (found["wrong"], found["elsewhere"], found["complaints"]) == (0, 0, [])
            assert found["games"] == len(list((played / "games").iterdir()))
        [head] = found["heads"]
        result = invoke("verify", path, *options, "--head", head["head"])
        assert result.exit_code == 0, result.output
        (directory / "games" / KEY / "wire.txt").write_text("altered")
        assert invoke("verify", directory, *options).exit_code == 1
        for name, words in (("none", "none"), ("No Slug", "name a directory DATA/competitions/NAME")):
            result = invoke("verify", tmp_path / name, *options)
            assert (result.exit_code, words in result.output) == (2, True), result.output
    result = invoke("verify", directory, "--database", "cup.db")
    assert (result.exit_code, "is no address of a database" in result.output) == (2, True)
