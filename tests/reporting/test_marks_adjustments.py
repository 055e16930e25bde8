"""Penalties and overrides: their effect on a mark, their cells in the sheet, and every error message."""

import csv
import io
import json
from fractions import Fraction
from pathlib import Path

import pytest

from tests.reporting.test_marks_command import make_results, marks
from tests.reporting.test_marks_file import BOTS, PEOPLE, RULE, complaints, load, unfit
from tournaments.reporting.marks.adjustments import Penalty

OVERRIDE = '[[override]]\nstudent = "Cid"\nmark = 7.5\nreason = "appeal upheld"\n'


def penalty(keys: str, who: str = 'student = "Ann"', reason: str = "said so") -> str:
    return f'[[penalty]]\n{who}\n{keys}\nreason = "{reason}"\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A tournament in which alpha (Ann and Bob) has 10 marks and beta (Cid) has 5."""
    make_results(tmp_path / "out")
    return tmp_path


def sheet_of(folder: Path, text: str) -> dict[str, dict[str, str]]:
    """Student -> row of the CSV form."""
    done = marks(folder, text)
    assert done.exit_code == 0, done.stderr
    return {row["student"]: row for row in csv.DictReader(io.StringIO(done.stdout))}


@pytest.mark.parametrize(
    ("text", "mark", "change", "why"),
    [
        # A mark is not below the least one, and is rounded.
        (
            penalty("late = {days = 30, percent_per_day = 10}"),
            "0",
            "-10",
            "penalty: 30 days late, 10 % a day: said so",
        ),
        ("round = 0.5\n" + penalty("percent = 33"), "6.5", "-3.5", "penalty: 33 % of 10: said so"),
        (penalty("marks = 2"), "8", "-2", "penalty: said so"),
        (penalty("percent = 25"), "7.5", "-2.5", "penalty: 25 % of 10: said so"),
        (penalty("late = {days = 1, per_day = 3}"), "7", "-3", "penalty: 1 day late, 3 marks a day: said so"),
        (
            penalty("late = {days = 2, percent_per_day = 5}"),
            "9",
            "-1",
            "penalty: 2 days late, 5 % a day: said so",
        ),
        (
            penalty("marks = 1") + penalty("percent = 10", reason="that too"),
            "8",
            "-2",
            "penalty: said so; penalty: 10 % of 10: that too",
        ),
    ],
)
def test_penalties(folder: Path, text: str, mark: str, change: str, why: str) -> None:
    before, found, after = text.partition("[[penalty]]")
    rows = sheet_of(folder, before + PEOPLE + RULE + found + after)
    ann = rows["Ann"]
    assert (ann["mark"], ann["mark by rules"], ann["sum"]) == (mark, "10", "10")
    assert (ann["adjustment (marks)"], ann["adjustment (why)"]) == (change, why)
    assert ann["mark (why)"].startswith("10 by the rules, penalties ")
    assert [rows["Bob"][name] for name in ("mark", "mark by rules", "adjustment (why)")] == ["10", "", ""]


def test_a_percentage_of_a_negative_mark_is_nothing() -> None:
    for part in ({"percent": 50}, {"late": {"days": 1, "percent_per_day": 50}}):
        found = Penalty.model_validate({"student": "Ann", "reason": "late", **part})
        assert found.applied_to(Fraction(-4)).marks == 0
        assert found.applied_to(Fraction(4)).marks == -2


def test_a_penalty_of_a_bot_is_for_all_of_its_students(folder: Path) -> None:
    late = penalty("marks = 4", 'bot = "alpha"')
    rows = sheet_of(folder, PEOPLE + RULE + late)
    assert {name: row["mark"] for name, row in rows.items()} == {"Ann": "6", "Bob": "6", "Cid": "5"}
    done = marks(folder, 'rows = "group"\n' + PEOPLE + RULE + late)
    assert [row["mark"] for row in csv.DictReader(io.StringIO(done.stdout))] == ["6", "5"]
    done = marks(folder, 'references = ["minimax:2"]\n' + RULE + late)
    assert [row["mark"] for row in csv.DictReader(io.StringIO(done.stdout))] == ["6", "5"]


def test_an_override_is_the_mark_and_orders_the_sheet(folder: Path) -> None:
    text = PEOPLE + RULE + OVERRIDE.replace("7.5", "10.5")
    rows = sheet_of(folder, text)
    assert list(rows) == ["Cid", "Ann", "Bob"]
    cid = rows["Cid"]
    assert (cid["mark"], cid["adjustment (marks)"], cid["mark by rules"]) == ("10.5", "5.5", "5")
    assert cid["adjustment (why)"] == "override: appeal upheld"
    view = json.loads(marks(folder, text, "--format", "json").stdout)["rows"][0]
    assert view["explanation"][-3:] == [
        "by the rules: 5 (sum 5)",
        "override: 10.5 (appeal upheld)",
        "mark: 10.5 (override: 10.5 instead of 5)",
    ]
    assert view["mark_by_rules"] == 5
    assert view["adjustments"] == [{"kind": "override", "marks": 5.5, "why": "appeal upheld"}]


def test_students_of_one_name_are_told_apart_by_their_ids(folder: Path) -> None:
    (folder / "s.csv").write_text("bot,student,id\nalpha,Ann,007\nbeta,Ann,8\n")
    text = 'references = ["minimax:2"]\nstudents_file = "s.csv"\n' + RULE
    failed = marks(folder, text + penalty("marks = 1"))
    assert failed.exit_code == 2
    assert "penalty[1].student: 'Ann' is the name of 2 students: use the id (one of 007, 8)" in failed.stderr
    done = marks(folder, text + penalty("marks = 1", 'student = "007"'))
    assert [(row["id"], row["mark"]) for row in csv.DictReader(io.StringIO(done.stdout))] == [
        ("007", "9"),
        ("8", "5"),
    ]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('[[penalty]]\nstudent = "Ann"\nmarks = 1', "penalty[1].reason: is missing"),
        (penalty("marks = 1", reason=" "), "penalty[1].reason: must not be blank"),
        (
            penalty("marks = -2"),
            "penalty[1].marks: write the amount that is taken off, without a sign: 2, not -2",
        ),
        (penalty(""), "penalty[1]: needs one of marks, percent and late"),
        (penalty("marks = 1\npercent = 2"), "penalty[1]: needs one of marks, percent and late"),
        (penalty("percent = 101"), "penalty[1].percent: must be less than or equal to 100, not 101"),
        (
            penalty("late = {days = 2}"),
            "penalty[1].late: needs either per_day (marks) or percent_per_day",
        ),
        (
            penalty("late = {day = 2, per_day = 1}"),
            "penalty[1].late.day: unknown key; did you mean 'days'?",
        ),
        (penalty("mark = 1"), "penalty[1].mark: unknown key; did you mean 'marks'?"),
        (penalty("marks = 1", ""), "penalty[1]: needs either student (a name or an id) or bot"),
        ('penalty = {student = "Ann"}\n', "penalty: write [[penalty]] for each penalty, with its keys below"),
        ('[[override]]\nstudent = "Ann"\nreason = "x"', "override[1].mark: is missing"),
    ],
)
def test_tables_that_cannot_be_used(tmp_path: Path, text: str, complaint: str) -> None:
    before, after = (text, RULE) if text.startswith("penalty") else (RULE, text)
    assert complaint in complaints(tmp_path, before + after)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (
            penalty("marks = 1", 'student = "Anne"'),
            "penalty[1].student: there is no student 'Anne'; did you mean 'Ann'?",
        ),
        (
            penalty("marks = 1", 'bot = "alfa"'),
            "penalty[1].bot: no bot 'alfa' is marked; did you mean 'alpha'?",
        ),
        (OVERRIDE + OVERRIDE, "override[2]: the mark of student 'Cid' is overridden already by override[1]"),
        (
            OVERRIDE + penalty("marks = 1", 'bot = "beta"'),
            "penalty[1]: override[1] is the whole mark of student 'Cid': lower that mark instead, and remove "
            "this penalty",
        ),
        (OVERRIDE.replace("7.5", "-1"), "override[1].mark: -1 is less than min, 0"),
        (OVERRIDE.replace("7.5", "10.01"), "override[1].mark: 10.01 is more than max, 10"),
        (OVERRIDE.replace("7.5", "0.125"), "override[1].mark: marks have two decimals at most, not 0.125"),
    ],
)
def test_decisions_that_do_not_fit(tmp_path: Path, text: str, complaint: str) -> None:
    assert unfit(tmp_path, "max = 10\n" + PEOPLE + RULE + text) == [complaint]


def test_students_need_rows_of_their_own(tmp_path: Path) -> None:
    found = unfit(tmp_path, 'rows = "group"\n' + PEOPLE + RULE + penalty("marks = 1"))
    assert found == [
        'penalty[1].student: with rows = "group" students of a bot share a row: use bot, or rows = "student"'
    ]
    file, people = load(tmp_path, RULE + penalty("marks = 1"))
    (problem,) = file.adjustments.problems(people, BOTS, file.scheme, by_group=False)
    assert problem == "penalty[1].student: these rules name no students: add [students], or use bot"
