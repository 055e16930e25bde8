"""`kalarena tournament marks`: mark sheets of tournaments, their origin and their changes."""

import csv
import hashlib
import io
import json
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import Result

from referee.judge.results import GameRecord, MatchResult, Reason
from tests.project.test_docs import blocks
from tests.reporting.reports import write_store
from tests.reporting.test_marks_file import BOTS, PEOPLE, ROOT, RULE, plan
from tests.support.builders import invoke, make_record
from tournaments.reporting.marks.adjustments import Late, Override, Penalty
from tournaments.reporting.marks.marks_file import MarksFile, load_marks
from tournaments.reporting.marks.plan import plan_marks
from tournaments.reporting.marks.rules import RULE_KINDS, Check, LevelBand, RankBand
from tournaments.reporting.tournament_results import TournamentResults
from tournaments.results.journal import Action, Entry
from tournaments.results.store import Store

if TYPE_CHECKING:
    from tournaments.reporting.marks.numbers import MarksModel

AT = "2026-01-02T03:04:05+00:00"
CSV_STUDENTS = 'references = ["minimax:2"]\nstudents_file = "s.csv"\n'


def lower_number_won(record: GameRecord) -> GameRecord:
    first, _, second = record.key.partition("-")[2].partition("v")
    result = MatchResult(int(first > second), Reason.SCORE, "won", (2, 0))
    return replace(record, result=result, moves=make_record().moves)


def make_results(folder: Path, bots: list[str] = BOTS) -> Path:
    """A tournament's directory: every bot met every other one, and the first bot in the list always won."""
    return write_store(folder, bots, changed=lower_number_won)


def marks(folder: Path, text: str, *options: str | Path) -> Result:
    """Run the command with these rules."""
    (folder / "marks.toml").write_text(text)
    return invoke("tournament", "marks", folder / "out", "--rules", folder / "marks.toml", *options)


def rows_of(done: Result) -> list[dict[str, str]]:
    """The rows of a sheet in CSV that was printed."""
    assert done.exit_code == 0, done.stderr
    return list(csv.DictReader(io.StringIO(done.stdout)))


def test_the_command_prints_a_sheet(tmp_path: Path) -> None:
    make_results(tmp_path / "out")
    done = marks(tmp_path, PEOPLE + RULE)
    assert done.stderr == ""
    rows = rows_of(done)
    assert [(row["student"], row["bot"], row["mark"]) for row in rows] == [
        ("Ann", "alpha", "10"),
        ("Bob", "alpha", "10"),
        ("Cid", "beta", "5"),
    ]
    with Store(tmp_path / "out" / "results.db") as store:
        table = {line.name: line for line in TournamentResults.load(store).table}
    for row in rows:
        line = table[row["bot"]]
        assert line.rating is not None
        assert row["rating"] == f"{line.rating.value:.0f}"
        assert (row["points"], row["rank"]) == (f"{line.points:g}", str(line.rank))
    note(tmp_path, Action.VOID, "r001-1v2")
    rows = rows_of(marks(tmp_path, PEOPLE + RULE))
    assert [(row["bot"], row["played"], row["points"]) for row in rows[1:]] == [
        ("alpha", "3", "3"),
        ("beta", "3", "2"),
    ]
    (tmp_path / "s.csv").write_text("bot,student\nalpha,Ann\nbeta,Bob\nzed,Cid\n,Dan\n")
    rows = rows_of(marks(tmp_path, 'missing = "zero"\n' + CSV_STUDENTS + RULE))
    assert [(row["student"], row["mark"], row["All (why)"]) for row in rows[2:]] == [
        ("Cid", "0", "not in the tournament"),
        ("Dan", "0", "not in the tournament"),
    ]


def test_the_command_writes_a_file(tmp_path: Path) -> None:
    make_results(tmp_path / "out")
    sheet = tmp_path / "sheet.json"
    done = marks(
        tmp_path,
        'rows = "group"\norder = "name"\n' + PEOPLE + RULE,
        *("--format", "json"),
        "--out",
        str(sheet),
    )
    assert (done.exit_code, done.stdout, done.stderr) == (0, f"{sheet}: the mark sheet\n", "")
    view = json.loads(sheet.read_text())
    assert [[student["name"] for student in row["students"]] for row in view["rows"]] == [
        ["Ann", "Bob"],
        ["Cid"],
    ]
    failed = marks(tmp_path, PEOPLE + RULE, "--out", str(tmp_path / "no" / "sheet.csv"))
    assert failed.exit_code == 1
    assert "cannot be written: No such file or directory" in failed.stderr


def test_errors_name_the_file(tmp_path: Path) -> None:
    make_results(tmp_path / "out")
    rules = tmp_path / "marks.toml"
    failed = marks(tmp_path, 'references = ["x", "y"]\n' + RULE)
    assert failed.exit_code == 2
    assert failed.stderr.count(f"{rules}: references: there is no bot") == 2
    failed = marks(tmp_path, "rule = 1")
    assert (failed.exit_code, failed.stdout) == (2, "")
    assert failed.stderr.startswith(f"Error: {rules}: rule: write [[rule]]")


def note(folder: Path, action: Action, subject: str) -> None:
    """A ruling on a tournament that is there."""
    with Store(folder / "out" / "results.db") as store:
        store.note(Entry(action, subject, "why", 1, AT))


AGAINST = """
[[rule]]
name = "Strong"
kind = "score"
opponents = ["minimax:2"]
marks = 5
[[rule]]
name = "Craft"
kind = "checks"
checks = [
  { name = "best", beats = "minimax:2", marks = 3 },
  { name = "clear", beats = "minimax:2", at_least = 0.9, marks = 1 },
]
"""


@pytest.mark.parametrize(
    ("people", "whose"), [(PEOPLE, "Cid (beta)"), ('references = ["minimax:2"]\n', "beta")]
)
def test_bots_that_met_no_reference_player_are_named(tmp_path: Path, people: str, whose: str) -> None:
    make_results(tmp_path / "out")
    assert marks(tmp_path, people + AGAINST).stderr == ""
    for key in ("r001-2v3", "r001-3v2"):
        note(tmp_path, Action.VOID, key)
    done = marks(tmp_path, people + AGAINST)
    assert [row["mark"] for row in rows_of(done)][-1] == "0"
    assert done.stderr.splitlines() == [
        f"{tmp_path / 'marks.toml'}: remark: rule '{name}': these have no game against minimax:2 that "
        f"counts, and get 0 for it: {whose}"
        for name in ("Strong", "Craft")
    ]


def test_an_unfinished_tournament_is_refused(tmp_path: Path) -> None:
    make_results(tmp_path / "out")
    note(tmp_path, Action.REPLAY, "r001-1v2")
    failed = marks(tmp_path, PEOPLE + RULE)
    assert (failed.exit_code, failed.stdout) == (2, "")
    assert failed.stderr == (
        "Error: 5 of 6 games have a result: run the tournament to its end, or add --unfinished\n"
    )
    done = marks(tmp_path, PEOPLE + RULE, "--unfinished")
    assert (done.exit_code, done.stderr) == (0, "remark: 5 of 6 games have a result so far\n")
    note(tmp_path, Action.WITHDRAW, "alpha")  # nothing is due any more
    done = marks(tmp_path, 'withdrawn = "zero"\n' + PEOPLE + RULE)
    assert (done.exit_code, done.stderr) == (0, "")


def test_a_withdrawn_bot_takes_no_place(tmp_path: Path) -> None:
    make_results(tmp_path / "out")
    note(tmp_path, Action.WITHDRAW, "alpha")
    place = '[[rule]]\nname = "Place"\nkind = "rank"\nbands = [{ top = 1, marks = 5 }]\n'
    done = marks(tmp_path, 'references = ["minimax:2"]\n' + place)
    (row,) = rows_of(done)
    assert (row["bot"], row["Place (why)"]) == ("beta", "rank 1 of 1 marked: top 1")
    done = marks(tmp_path, 'withdrawn = "zero"\n' + PEOPLE + place)
    rows = rows_of(done)
    told = [(row["student"], row["mark"], row["rank"], row["marked_rank"]) for row in rows]
    assert told == [("Cid", "5", "2", "1"), ("Ann", "0", "1", ""), ("Bob", "0", "1", "")]
    assert rows[1]["Place (why)"] == "withdrawn"


# Where a sheet comes from, and what changed


def sheet(folder: Path, text: str, name: str, *options: str) -> Result:
    return marks(folder, text, "--format", "json", "--out", str(folder / name), *options)


def test_a_sheet_can_be_traced(tmp_path: Path) -> None:
    make_results(tmp_path / "out")
    (tmp_path / "s.csv").write_text("bot,student\nalpha,Ann\nbeta,Bob\n")
    text = CSV_STUDENTS + RULE
    sheet(tmp_path, text, "one.json")
    view = json.loads((tmp_path / "one.json").read_text())
    assert (view["games"], view["games_total"]) == (6, 6)
    for key, file in (("rules_sha256", "marks.toml"), ("students_sha256", "s.csv")):
        assert view[key] == hashlib.sha256((tmp_path / file).read_bytes()).hexdigest()
    with Store(tmp_path / "out" / "results.db") as store:
        lines = sorted(f"{game.key} {game.fingerprint}\n" for game in store.games())
    told = "".join(lines) + "journal 0\n"
    assert view["results_sha256"] == hashlib.sha256(told.encode()).hexdigest()
    note(tmp_path, Action.WITHDRAW, "minimax:2")  # every game counts as before
    ruled = hashlib.sha256(told.replace("journal 0", "journal 1").encode()).hexdigest()
    sheet(tmp_path, text, "two.json")
    assert json.loads((tmp_path / "two.json").read_text())["results_sha256"] == ruled
    note(tmp_path, Action.VOID, "r001-1v2")
    after = json.loads(marks(tmp_path, PEOPLE + RULE, "--format", "json").stdout)
    assert after["results_sha256"] not in (view["results_sha256"], ruled)
    assert after["students_sha256"] is None


TWO_RULES = (
    RULE
    + '[[rule]]\nname = "Own"\nkind = "checks"\nchecks = [{name = "c", points_at_least = 4, marks = 2}]\n'
)


def test_what_changed_since_an_earlier_sheet(tmp_path: Path) -> None:
    make_results(tmp_path / "out")
    sheet(tmp_path, PEOPLE + TWO_RULES, "old.json")
    since = ("--since", str(tmp_path / "old.json"))
    done = marks(tmp_path, PEOPLE + TWO_RULES, *since)
    assert (len(done.stdout.splitlines()), done.stderr) == (1, "remark: 0 of 3 rows changed\n")
    note(tmp_path, Action.VOID, "r001-1v2")  # alpha had won all four, beta two of four
    done = marks(tmp_path, PEOPLE + TWO_RULES, *since)
    assert done.stderr == "remark: 3 of 3 rows changed\n"
    rows = rows_of(done)
    names = ("student", "mark", "mark_before", "All (marks)", "All (before)", "Own (marks)", "Own (before)")
    assert [tuple(row[name] for name in names) for row in rows] == [
        ("Ann", "10", "12", "10", "10", "0", "2"),
        ("Bob", "10", "12", "10", "10", "0", "2"),
        ("Cid", "6.67", "5", "6.67", "5", "0", "0"),
    ]
    sheet(tmp_path, PEOPLE + TWO_RULES, "changes.json", *since)
    view = json.loads((tmp_path / "changes.json").read_text())
    assert view["rows"][2]["before"] == {
        "mark": 5.0,
        "rules": [{"name": "All", "marks": 5.0}, {"name": "Own", "marks": 0.0}],
    }
    old = json.loads((tmp_path / "old.json").read_text())
    assert view["since"] == {key: old[key] for key in view["since"]}
    assert view["since"]["results_sha256"] != view["results_sha256"]
    # A row whose mark is unchanged is shown if the marks of a rule changed.
    done = marks(tmp_path, "max = 5\n" + PEOPLE + TWO_RULES, *since)
    assert [row["student"] for row in rows_of(done)] == ["Ann", "Bob", "Cid"]
    failed = marks(tmp_path, PEOPLE + TWO_RULES, "--since", str(tmp_path / "changes.json"))
    assert (failed.exit_code, failed.stdout) == (2, "")
    assert "compare with one made without --since" in failed.stderr


def test_rows_that_come_and_go(tmp_path: Path) -> None:
    make_results(tmp_path / "out")
    sheet(tmp_path, PEOPLE + RULE, "old.json")
    other = PEOPLE.replace('"Bob"', '"Dan"') + RULE
    done = marks(tmp_path, other, "--since", str(tmp_path / "old.json"))
    (row,) = rows_of(done)
    assert (row["student"], row["mark_before"], row["All (before)"]) == ("Dan", "", "")
    assert done.stderr == "remark: 1 of 3 rows changed\nremark: rows that are not here any more: Bob\n"
    sheet(tmp_path, other, "changes.json", "--since", str(tmp_path / "old.json"))
    assert json.loads((tmp_path / "changes.json").read_text())["rows"][0]["before"] is None


def test_a_new_override_is_a_change(tmp_path: Path) -> None:
    make_results(tmp_path / "out")
    sheet(tmp_path, PEOPLE + RULE, "old.json")
    override = '[[override]]\nstudent = "Cid"\nmark = 7.5\nreason = "=1+1"\n'
    (row,) = rows_of(marks(tmp_path, PEOPLE + RULE + override, "--since", tmp_path / "old.json"))
    assert (row["student"], row["mark"], row["mark_before"]) == ("Cid", "7.5", "5")
    assert row["adjustment (why)"] == "override: =1+1"


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"student,mark\n", "this is no mark sheet in its JSON form"),
        (b"[]", "this is no mark sheet in its JSON form"),
        (b'{"tournament": "Cup", "rows": [{}]}', "this is no mark sheet in its JSON form"),
        (b'{"tournament": "Else", "rows": []}', "a sheet of another tournament, 'Else', not of 'Cup'"),
        (b"\xff\xfe", "cannot be read: it is not UTF-8 text"),
        (None, "cannot be read: No such file or directory"),
    ],
)
def test_files_that_are_no_earlier_sheet(tmp_path: Path, content: bytes | None, complaint: str) -> None:
    make_results(tmp_path / "out")
    path = tmp_path / "old.json"
    if content is not None:
        path.write_bytes(content)
    failed = marks(tmp_path, PEOPLE + RULE, "--since", str(path))
    assert (failed.exit_code, failed.stdout) == (2, "")
    assert failed.stderr.startswith(f"Error: {path}: {complaint}") or complaint in failed.stderr


def test_no_input_is_written_over(tmp_path: Path) -> None:
    make_results(tmp_path / "out")
    (tmp_path / "s.csv").write_text("bot,student\nalpha,Ann\nbeta,Bob\n")
    (tmp_path / "link").symlink_to("marks.toml")
    (tmp_path / "hard").hardlink_to(tmp_path / "s.csv")
    text = CSV_STUDENTS + RULE
    sheet(tmp_path, text, "old.json")
    before = {path: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
    for name in ("marks.toml", "s.csv", "old.json", "link", "hard", "out/../marks.toml"):
        failed = sheet(tmp_path, text, name, "--since", str(tmp_path / "old.json"))
        assert (failed.exit_code, failed.stdout) == (2, ""), name
        assert "is a file that this command reads: choose another --out" in failed.stderr
    failed = sheet(tmp_path, text, "out/results.db")
    assert (failed.exit_code, failed.stdout) == (2, "")
    assert {path: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()} == before


# The documentation


def test_the_example_of_the_docs_loads(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "marks.md").read_text(encoding="utf-8")
    example, decisions, *_ = blocks(text, "toml")
    bots = ["alpha", "beta", "minimax:2", "gamma", "first_legal"]
    found = plan(tmp_path, example, bots)
    assert found.marked == ["alpha", "beta", "gamma"]
    make_results(tmp_path / "out", bots)
    done = marks(tmp_path, example, "--format", "json")
    assert done.exit_code == 0, done.stderr
    ann, bob, *others = json.loads(done.stdout)["rows"]
    (shown,) = (json.loads(block) for block in blocks(text, "json"))
    assert list(shown) == list(ann)
    ratings = {name: shown.pop(name) for name in ("rating", "rating_low", "rating_high")}
    assert all(isinstance(elo, float) for elo in ratings.values())  # which depend on the rating's model
    assert shown == {name: ann[name] for name in shown}
    assert bob["explanation"] == ann["explanation"]
    told = ["\n".join([row["students"][0]["name"], *row["explanation"]]) for row in others]
    explained, decided = blocks(text, "text")
    assert explained == "\n\n".join(told) + "\n"

    done = marks(tmp_path, example + decisions, "--format", "json")
    assert done.exit_code == 0, done.stderr
    by_name = {row["students"][0]["name"]: row for row in json.loads(done.stdout)["rows"]}
    assert decided.splitlines() == by_name["Ann Smith"]["explanation"][-3:]
    assert {name: row["mark"] for name, row in by_name.items()} == {
        "Ann Smith": 35,
        "Bob Jones": 35,
        "Cid Hall": 33,
        "Dan Ford": 20,
    }


def test_every_key_is_documented() -> None:
    text = (ROOT / "docs" / "marks.md").read_text(encoding="utf-8")
    tables: list[type[MarksModel]] = [MarksFile, *RULE_KINDS.values(), RankBand, LevelBand, Check]
    tables += [Penalty, Late, Override]
    keys = {key for table in tables for key in table.keys()}  # noqa: SIM118 - no mapping
    assert {key for key in keys if not any(f"`{mark}" in text for mark in (f"{key}`", f"{key} = "))} == set()
    # The example of the demonstration tournament fits it.
    file, people = load_marks(ROOT / "tournaments" / "examples" / "marks.toml")
    demo = tomllib.loads((ROOT / "tournaments" / "examples" / "demo.toml").read_text())
    bots = [bot if isinstance(bot, str) else bot["name"] for bot in demo["bots"]]
    assert plan_marks(file, people, bots).marked == ["random", "greedy", "minimax:5"]
