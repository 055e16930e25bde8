"""marks.toml and the file of students: every complaint, all at once; the command."""

import csv
import io
import json
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from referee.results import MatchResult, Reason
from tests.builders import make_record
from tests.test_docs import blocks
from tournaments.cli.tournament.marks import command
from tournaments.journal import Action, Entry
from tournaments.marks.bands import LevelBand, MarksModel, RankBand
from tournaments.marks.checks import Check
from tournaments.marks.file import MarkPlan, MarksError, MarksFile, load_marks, plan_marks
from tournaments.marks.people import People, PeopleError, Student, read_people
from tournaments.marks.rules import RULE_KINDS
from tournaments.store import Store
from tournaments.summary import Summary

ROOT = Path(__file__).parent.parent
BOTS = ["alpha", "beta", "minimax:2"]
RULE = '[[rule]]\nname = "All"\nkind = "points"\nmarks = 10\n'
PEOPLE = 'references = ["minimax:2"]\n[students]\nalpha = ["Ann", "Bob"]\nbeta = "Cid"\n'


def load(folder: Path, text: str) -> tuple[MarksFile, People | None]:
    path = folder / "marks.toml"
    path.write_text(text, encoding="utf-8")
    return load_marks(path)


def complaints(folder: Path, text: str) -> list[str]:
    """What is wrong with a file, without the file's name before each line."""
    with pytest.raises(MarksError) as raised:
        load(folder, text)
    return [line.removeprefix(f"{folder / 'marks.toml'}: ") for line in str(raised.value).split("\n")]


def plan(folder: Path, text: str, bots: list[str] = BOTS, withdrawn: tuple[str, ...] = ()) -> MarkPlan:
    return plan_marks(*load(folder, text), bots, withdrawn)


def unfit(folder: Path, text: str) -> list[str]:
    with pytest.raises(MarksError) as raised:
        plan(folder, text)
    return str(raised.value).split("\n")


# What is in the file


def test_the_shortest_file(tmp_path: Path) -> None:
    found = plan(tmp_path, RULE)
    assert (found.marked, found.missing, found.people) == (BOTS, [], None)
    scheme = found.file.scheme
    assert str(scheme) == "the sum of all rules, rounded half-up to a multiple of 0.01, at least 0"


def test_groups_and_references(tmp_path: Path) -> None:
    found = plan(tmp_path, PEOPLE + RULE)
    assert found.marked == ["alpha", "beta"]
    assert found.people is not None
    assert found.people.groups == {"alpha": [Student("Ann"), Student("Bob")], "beta": [Student("Cid")]}
    assert found.remarks == []


def test_a_byte_order_mark(tmp_path: Path) -> None:
    assert load(tmp_path, "\ufeff" + RULE)[0].rule[0].name == "All"


def test_everything_that_is_wrong_is_said_at_once(tmp_path: Path) -> None:
    text = """
        rond = 1
        min = "0"
        rounding = "near"
        rule = [
          {kind = "rnk", name = "a"},
          {name = "b"},
          {name = "c", kind = "rank", bands = [{tpo = 1, marks = 1}, {marks = -1}]},
          {name = "d", kind = "score", opponents = [], marks = 0.125},
          {name = "e", kind = "checks", checks = [
            {name = "x", marks = 1}, {name = "y", faults = 0, marks = 1},
          ]},
          {name = "", kind = "points", marks = inf},
          {name = "g", kind = "rating", use = "high", marks = 1},
        ]
    """
    assert complaints(tmp_path, text) == [
        "min: must be number, not '0'",
        "rounding: must be 'half-up', 'half-even', 'up' or 'down', not 'near'",
        "rule[1]: there is no kind 'rnk' of rule; did you mean 'rank'?",
        "rule[2]: needs a kind; there are rank, score, rating, checks, points",
        "rule[3].bands[1].tpo: unknown key; did you mean 'top'?",
        "rule[3].bands[2].marks: must be greater than or equal to 0, not -1",
        "rule[4].marks: marks have two decimals at most, not 0.125",
        "rule[4].opponents: needs at least one entry",
        "rule[5].checks[1]: checks nothing: give it one or more of faults_at_most, games_at_least, "
        "unique_games_at_least, points_at_least, mean_move_ms_at_most, beats",
        "rule[5].checks[2].faults: unknown key; did you mean 'faults_at_most'?",
        "rule[6].name: must be a text of 1 to 200 characters",
        "rule[6].marks: must be a finite number, not inf",
        "rule[7].use: must be 'rating' or 'low', not 'high'",
        "rond: unknown key; did you mean 'round'?",
    ]


@pytest.mark.parametrize(
    ("rule", "complaint"),
    [
        (
            'kind = "rank", bands = [{top = 3, marks = 5}, {top = 2, marks = 4}]',
            "bands[2] is never reached: top = 2 lies within top = 3",
        ),
        (
            'kind = "rank", bands = [{top = 3, marks = 5}, {top = 3, marks = 4}]',
            "bands[2] is never reached: top = 3 lies within top = 3",
        ),
        (
            'kind = "rank", bands = [{top_percent = 50, marks = 5}, {top = 9, marks = 4}, '
            "{top_percent = 40.5, marks = 1}]",
            "bands[3] is never reached: top_percent = 40.5 lies within top_percent = 50",
        ),
        (
            'kind = "rank", bands = [{marks = 5}, {top = 2, marks = 4}]',
            "bands[2] is never reached: bands[1] is for everybody else",
        ),
        (
            'kind = "rank", bands = [{top_percent = 100, marks = 5}, {marks = 4}]',
            "bands[2] is never reached: top_percent = 100 is everybody",
        ),
        (
            'kind = "rank", bands = [{top = 1, marks = 5}, {top = 2, marks = 6}]',
            "bands[2] (top 2) gives 6, more than the 5 of the better band before it: write the best band "
            "first",
        ),
        (
            'kind = "rank", bands = [{top = 1, top_percent = 5, marks = 5}]',
            "bands[1] says both top and top_percent: make two bands of it",
        ),
        (
            'kind = "points", bands = [{at_least = 0.5, marks = 5}, {at_least = 0.7, marks = 4}]',
            "bands[2] is never reached: at_least = 0.7 lies within at_least = 0.5; write the best band first",
        ),
        (
            'kind = "points", bands = [{at_least = 75, marks = 5}]',
            "a share of points is from 0 to 1, not bands[1].at_least = 75",
        ),
        ('kind = "points", marks = 5, to = 1.5', "a share of points is from 0 to 1, not to = 1.5"),
        (
            'kind = "points", marks = 5, from = 0.2, bands = [{marks = 1}]',
            "takes either bands or a straight line (from, marks), not both",
        ),
        ('kind = "points"', "needs bands, or marks for a straight line"),
        ('kind = "points", from = 0.5, to = 0.5, marks = 1', "from must be less than to, not 0.5 and 0.5"),
        ('kind = "rating", from = 5, marks = 1', "a straight line of ratings needs both from and to"),
        (
            'kind = "checks", checks = [{name = "a", faults_at_most = 0, at_least = 0.5, marks = 1}]',
            ".checks[1]: at_least is a share of points against the bot that beats names, which is missing",
        ),
    ],
)
def test_rules_that_make_no_sense(tmp_path: Path, rule: str, complaint: str) -> None:
    joint = "" if complaint.startswith(".") else ": "
    assert complaints(tmp_path, f'rule = [{{name = "a", {rule}}}]') == [f"rule[1]{joint}{complaint}"]


def test_the_file_as_a_whole(tmp_path: Path) -> None:
    text = f'max = -1\nstudents_file = "x.csv"\n{PEOPLE}{RULE}{RULE}'
    assert complaints(tmp_path, text) == [
        "max must be more than min, not -1 and 0",
        "students and students_file: give one of them",
        "rule[2].name: rule[1] is called 'All' already",
    ]
    assert complaints(tmp_path, "rule = [3, {kind = []}]") == [
        "rule[1]: must be a table of keys, not 3",
        "rule[2]: there is no kind [] of rule; there are rank, score, rating, checks, points",
    ]
    assert complaints(tmp_path, "rule = []") == ["rule: needs at least one entry"]
    assert complaints(tmp_path, "") == ["rule: is missing"]
    assert complaints(tmp_path, "[[rule]") == [
        "this is not TOML: Expected ']]' at the end of an array declaration (at line 1, column 7)"
    ]
    with pytest.raises(MarksError, match="cannot be read: No such file or directory"):
        load_marks(tmp_path / "nothing.toml")


def test_a_student_who_is_there_twice(tmp_path: Path) -> None:
    assert complaints(tmp_path, '[students]\na = ["Ann", "Bob"]\nb = "Ann"\n' + RULE) == [
        "student 'Ann' is there twice, with bot 'a' and with bot 'b': a student has one mark, and two of one "
        "name need different ids"
    ]


# What does not fit the tournament


def test_everything_that_does_not_fit_is_said_at_once(tmp_path: Path) -> None:
    text = """
        references = ["minimax", "beta"]
        [students]
        alpa = ["Ann", "Bob"]
        beta = "Cid"
        [[rule]]
        name = "a"
        kind = "score"
        opponents = ["minimax:3", "beta", "minimax:2"]
        marks = 1
        [[rule]]
        name = "b"
        kind = "checks"
        checks = [{ name = "x", beats = "zzz", marks = 1 }]
    """
    assert unfit(tmp_path, text) == [
        "references: there is no bot 'minimax' in this tournament; did you mean 'minimax:2'?",
        "references: 'beta' is a reference player, and a bot of 'Cid'",
        "rule[1].opponents: there is no bot 'minimax:3' in this tournament; did you mean 'minimax:2'?",
        "rule[1].opponents: 'beta' is marked itself, and cannot be what marks are measured by: put it into "
        "references",
        "rule[2].checks[1].beats: there is no bot 'zzz' in this tournament; there are alpha, beta, minimax:2",
        "students: 'Ann': there is no bot 'alpa' in this tournament; did you mean 'alpha'? "
        '(or set missing = "zero")',
        "students: 'Bob': there is no bot 'alpa' in this tournament; did you mean 'alpha'? "
        '(or set missing = "zero")',
        "students: nobody has the bot 'alpha': name its students, or put it into references",
        "students: nobody has the bot 'minimax:2': name its students, or put it into references",
    ]


def test_missing_bots_can_be_zero(tmp_path: Path) -> None:
    found = plan(tmp_path, 'missing = "zero"\n' + PEOPLE + 'zed = "Dan"\n' + RULE)
    assert (found.marked, found.missing) == (["alpha", "beta"], ["zed"])


def test_a_bot_that_withdrew_needs_nobody(tmp_path: Path) -> None:
    assert plan(tmp_path, PEOPLE + RULE, [*BOTS, "old"], ("old",)).marked == ["alpha", "beta"]
    assert unfit(tmp_path, PEOPLE.replace("beta", "alpha2") + RULE)[-1].startswith("students: nobody has")


def test_nobody_is_left(tmp_path: Path) -> None:
    text = f"references = {json.dumps(BOTS)}\n{RULE}"
    assert unfit(tmp_path, text) == ["references: every bot is one, so that nobody gets a mark"]


def test_a_band_that_so_few_cannot_reach(tmp_path: Path) -> None:
    bands = "bands = [{top = 3, marks = 9}, {top_percent = 50, marks = 5}, {marks = 1}]"
    found = plan(tmp_path, f'{PEOPLE}[[rule]]\nname = "Place"\nkind = "rank"\n{bands}\n')
    assert found.remarks == [
        "rule 'Place': with 2 marked bots nobody can be in the band 'top 50 percent'",
        "rule 'Place': with 2 marked bots nobody can be in the band 'everybody else'",
    ]


# The file of students


@pytest.mark.parametrize("between", [",", ";", "\t"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_a_file_of_students(tmp_path: Path, between: str, mark: str) -> None:
    rows = [
        ["Bot", "Student", "ID", "class"],
        ["alpha", '"Smith, Ann"', "1", "A"],
        ["", ""],
        ["alpha", "Bob", "2"],
        ["", "Jim", "3", "B"],
    ]
    path = tmp_path / "students.csv"
    path.write_text(mark + "\r\n".join(between.join(row) for row in rows), encoding="utf-8", newline="")
    assert read_people(path) == People(
        {"alpha": [Student("Smith, Ann", "1", {"class": "A"}, 2), Student("Bob", "2", {"class": ""}, 4)]},
        ["class"],
        with_ids=True,
        no_bot=[Student("Jim", "3", {"class": "B"}, 5)],
    )


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "is empty: it needs a first line bot,student"),
        ("bot,name\n", "line 1: there is no column 'student'"),
        ("bot,student,x,x\n", "line 1: two columns are called 'x'"),
        (
            "bot,student\na,b,c\na,\n",
            "line 2: has 3 cells, and the first line has 2\nline 3: the student's name is missing",
        ),
        (
            "bot,student\na,Ann\nb,Ann\n",
            "line 3: student 'Ann' is there twice, with bot 'a' and with bot 'b'",
        ),
        ("bot,student,id\na,Ann,1\nb,Ann,1\n", "line 3: student 'Ann' (id 1) is there twice"),
        ('bot,student\n"a,b\n', "line 2: this is not CSV: unexpected end of data"),
    ],
)
def test_what_a_file_of_students_may_not_say(tmp_path: Path, text: str, complaint: str) -> None:
    path = tmp_path / "students.csv"
    path.write_text(text)
    with pytest.raises(PeopleError) as raised:
        read_people(path)
    assert str(raised.value).startswith(complaint)


def test_two_students_of_one_name(tmp_path: Path) -> None:
    path = tmp_path / "students.csv"
    path.write_text("bot,student,id\na,Ann,1\nb,Ann,2\n")
    assert list(read_people(path).groups) == ["a", "b"]


def test_a_file_of_students_that_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "students.csv").write_bytes(b"bot,student\na,Gr\xf6\xdfe\n")
    assert complaints_of_students(tmp_path) == ["cannot be read: it is not UTF-8 text (save it as CSV UTF-8)"]
    (tmp_path / "students.csv").unlink()
    assert complaints_of_students(tmp_path) == ["cannot be read: No such file or directory"]
    (tmp_path / "students.csv").write_text("bot,student,rank,All (why)\na,b\n")
    assert complaints_of_students(tmp_path) == [
        "line 1: 'rank' is a column of the mark sheet already: give yours another title",
        "line 1: 'All (why)' is a column of the mark sheet already: give yours another title",
    ]


def complaints_of_students(folder: Path) -> list[str]:
    with pytest.raises(MarksError) as raised:
        load(folder, 'students_file = "students.csv"\n' + RULE)
    return [line.removeprefix(f"{folder / 'students.csv'}: ") for line in str(raised.value).split("\n")]


def test_students_without_a_bot(tmp_path: Path) -> None:
    (tmp_path / "students.csv").write_text("bot,student,id\nalpha,Ann,1\nbeta,Bob,2\nzed,Cid,3\n,Dan,4\n")
    text = 'references = ["minimax:2"]\nstudents_file = "students.csv"\n' + RULE
    assert unfit(tmp_path, text) == [
        "students: line 4: 'Cid' (id 3): there is no bot 'zed' in this tournament; there are alpha, beta, "
        'minimax:2 (or set missing = "zero")',
        "students: line 5: 'Dan' (id 4) has no bot (or set missing = \"zero\")",
    ]
    assert plan(tmp_path, 'missing = "zero"\n' + text).missing == ["zed"]


# The command


def make_results(folder: Path, bots: list[str] = BOTS, journal: list[Entry] | None = None) -> Path:
    """A tournament's directory: everybody met everybody, and the first of two always won."""
    folder.mkdir()
    summary = Summary("Cup", "kalah(1,1)", "2 s", bots, "points")
    with Store(folder / "results.db") as store:
        store.claim("Cup", summary.config(), {"game": "kalah(1,1)"})
        for pairing in summary.schedule.pairings(summary.history):
            first, second = bots[pairing.first], bots[pairing.second]
            verdict = MatchResult(int(pairing.first > pairing.second), Reason.SCORE, "won", (2, 0))
            record = make_record(pairing.key, first, second, result=verdict)
            store.add(record, pairing.round, pairing.pair)
        for entry in journal or []:
            store.note(entry)
    return folder


def marks(folder: Path, text: str, *options: str) -> Result:
    (folder / "marks.toml").write_text(text)
    arguments = [str(folder / "out"), "--rules", str(folder / "marks.toml"), *options]
    result = CliRunner().invoke(command, arguments)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def test_the_command_prints_a_sheet(tmp_path: Path) -> None:
    make_results(tmp_path / "out")
    done = marks(tmp_path, PEOPLE + RULE)
    assert (done.exit_code, done.stderr) == (0, "")
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    assert [(row["student"], row["bot"], row["mark"]) for row in rows] == [
        ("Ann", "alpha", "10"),
        ("Bob", "alpha", "10"),
        ("Cid", "beta", "5"),
    ]
    with Store(tmp_path / "out" / "results.db") as store:
        table = {line.name: line for line in Summary.load(store).table}
    for row in rows:
        line = table[row["bot"]]
        assert line.rating is not None
        assert row["rating"] == f"{line.rating.value:.0f}"
        assert (row["points"], row["rank"]) == (f"{line.points:g}", str(line.rank))


def test_void_games_do_not_count(tmp_path: Path) -> None:
    void = Entry(Action.VOID, "r001-1v2", "power cut", 1, "2026-01-02T03:04:05+00:00")
    make_results(tmp_path / "out", journal=[void])
    rows = list(csv.DictReader(io.StringIO(marks(tmp_path, PEOPLE + RULE).stdout)))
    assert {row["bot"]: (row["played"], row["points"]) for row in rows} == {
        "alpha": ("3", "3"),
        "beta": ("3", "2"),
    }


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


def test_students_without_a_bot_get_a_row(tmp_path: Path) -> None:
    make_results(tmp_path / "out")
    (tmp_path / "s.csv").write_text("bot,student\nalpha,Ann\nbeta,Bob\nzed,Cid\n,Dan\n")
    text = 'missing = "zero"\nreferences = ["minimax:2"]\nstudents_file = "s.csv"\n' + RULE
    rows = list(csv.DictReader(io.StringIO(marks(tmp_path, text).stdout)))
    assert [(row["student"], row["mark"], row["All (why)"]) for row in rows[2:]] == [
        ("Cid", "0", "not in the tournament"),
        ("Dan", "0", "not in the tournament"),
    ]


def test_the_command_names_the_file_in_every_complaint(tmp_path: Path) -> None:
    make_results(tmp_path / "out")
    rules = tmp_path / "marks.toml"
    failed = marks(tmp_path, 'references = ["x", "y"]\n' + RULE)
    assert failed.exit_code == 2
    assert failed.stderr.count(f"{rules}: references: there is no bot") == 2
    failed = marks(tmp_path, "rule = 1")
    assert (failed.exit_code, failed.stdout) == (2, "")
    assert failed.stderr.startswith(f"Error: {rules}: rule: must be list")


def test_an_unfinished_tournament_is_remarked(tmp_path: Path) -> None:
    make_results(tmp_path / "out")
    with Store(tmp_path / "out" / "results.db") as store:
        store.note(Entry(Action.REPLAY, "r001-1v2", "late", 1, "2026-01-02T03:04:05+00:00"))
    done = marks(tmp_path, PEOPLE + RULE)
    assert (done.exit_code, done.stderr) == (0, "remark: 5 of 6 games have a result so far\n")


# The documentation


def test_the_example_of_the_docs_loads(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "marks.md").read_text(encoding="utf-8")
    example, *_ = blocks(text, "toml")
    bots = ["alpha", "beta", "minimax:2", "gamma", "first_legal"]
    found = plan(tmp_path, example, bots)
    assert found.marked == ["alpha", "beta", "gamma"]
    make_results(tmp_path / "out", bots)
    done = marks(tmp_path, example, "--format", "json")
    assert done.exit_code == 0, done.stderr
    (shown,) = blocks(text, "json")
    rows = json.loads(done.stdout)["rows"]
    told = [
        {"student": row["students"][0]["name"], "mark": row["mark"], "explanation": row["explanation"]}
        for row in rows
    ]
    assert told == json.loads(shown)


def test_every_key_is_documented() -> None:
    text = (ROOT / "docs" / "marks.md").read_text(encoding="utf-8")
    tables: list[type[MarksModel]] = [MarksFile, *RULE_KINDS.values(), RankBand, LevelBand, Check]
    keys = {key for table in tables for key in table.keys()}  # noqa: SIM118 - no mapping
    assert {key for key in keys if not any(f"`{mark}" in text for mark in (f"{key}`", f"{key} = "))} == set()


def test_the_example_fits_the_demo() -> None:
    file, people = load_marks(ROOT / "tournaments" / "examples" / "marks.toml")
    demo = tomllib.loads((ROOT / "tournaments" / "examples" / "demo.toml").read_text())
    bots = [bot if isinstance(bot, str) else bot["name"] for bot in demo["bots"]]
    assert plan_marks(file, people, bots).marked == ["random", "greedy", "minimax:5"]
