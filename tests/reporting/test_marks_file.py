"""marks.toml and the file of students: every error, and all errors at once."""

import json
from pathlib import Path

import pytest

from tests.support.paths import REPOSITORY_ROOT
from tournaments.reporting.marks.marks_file import MarksError, MarksFile, load_marks
from tournaments.reporting.marks.people import People, PeopleError, Student, read_people
from tournaments.reporting.marks.plan import MarkPlan, plan_marks

ROOT = REPOSITORY_ROOT
BOTS = ["alpha", "beta", "minimax:2"]
OPEN_QUOTE = "the cell that begins with a quote here does not end with one"
RULE = '[[rule]]\nname = "All"\nkind = "points"\nmarks = 10\n'
PENALTY = '[[penalty]]\nbot = "beta"\nmarks = 1\nreason = "late"\n'
PEOPLE = 'references = ["minimax:2"]\n[students]\nalpha = ["Ann", "Bob"]\nbeta = "Cid"\n'


def load(folder: Path, text: str) -> tuple[MarksFile, People | None]:
    path = folder / "marks.toml"
    path.write_text(text, encoding="utf-8")
    return load_marks(path)


def complaints(folder: Path, text: str) -> list[str]:
    """Return the problems of a file, without the file's name before each line."""
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
    found = plan(tmp_path, "\ufeff" + RULE)  # with a byte order mark
    assert (found.marked, found.missing, found.people) == (BOTS, [], None)
    scheme = found.file.scheme
    assert str(scheme) == "the sum of all rules, rounded half-up to a multiple of 0.01, at least 0"


def test_groups_and_references(tmp_path: Path) -> None:
    found = plan(tmp_path, PEOPLE + RULE)
    assert found.marked == ["alpha", "beta"]
    assert found.people is not None
    assert found.people.groups == {"alpha": [Student("Ann"), Student("Bob")], "beta": [Student("Cid")]}
    assert found.remarks == []


@pytest.mark.parametrize(
    ("name", "more", "titles"),
    [
        ("Mark", "", "'mark (why)'"),
        ("adjustment", PENALTY, "'adjustment (marks)' and 'adjustment (why)'"),
        ("adjustment", "", ""),
        ("name", PENALTY, ""),
        ("sum", PENALTY, ""),
    ],
)
def test_a_rule_that_is_named_like_a_column_of_the_sheet(
    tmp_path: Path, name: str, more: str, titles: str
) -> None:
    found = plan(tmp_path, RULE.replace("All", name) + more)
    told = f"rule {name!r}: the sheet's own columns include {titles}: give the rule another name"
    assert found.remarks == ([told] if titles else [])


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
        "min: must be a number, not '0'",
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
        "rule[6].name: must not be empty",
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
        f"{tmp_path / 'x.csv'}: cannot be read: No such file or directory",
    ]
    assert complaints(tmp_path, "rule = [3, {kind = []}]") == [
        "rule[1]: must be a table of keys, not 3",
        "rule[2]: there is no kind [] of rule; there are rank, score, rating, checks, points",
    ]
    assert complaints(tmp_path, "rule = []") == ["rule: needs at least one entry"]
    for one_table in ("rule = 3", "[rule]\nname = 'a'\nkind = 'points'\nmarks = 1"):
        assert complaints(tmp_path, one_table) == ["rule: write [[rule]] for each rule, with its keys below"]
    assert complaints(tmp_path, "") == ["rule: is missing"]
    assert complaints(tmp_path, "[[rule]") == [
        "this is not TOML: Expected ']]' at the end of an array declaration (at line 1, column 7)"
    ]
    with pytest.raises(MarksError, match="cannot be read: No such file or directory"):
        load_marks(tmp_path / "nothing.toml")
    (complaint,) = complaints(tmp_path, 'students_file = "a\\u0000b"\n' + RULE)
    assert complaint.endswith(": cannot be read: its name holds a NUL character")


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


def test_rules_and_students_are_read_together(tmp_path: Path) -> None:
    (tmp_path / "students.csv").write_text("bot,student,rank\nalpha,Ann\nbeta,Ann\nbeta,\n")
    students = tmp_path / "students.csv"
    assert complaints(tmp_path, 'students_file = "students.csv"\nrond = 1\n' + RULE) == [
        "rond: unknown key; did you mean 'round'?",
        f"{students}: the column 'rank' is one of the mark sheet already: give yours another title",
        f"{students}: line 4: the student's name is missing",
        f"{students}: line 3: student 'Ann' is there twice, with bot 'alpha' and with bot 'beta': a student "
        "has one mark, and two of one name need different ids",
    ]
    students.write_text("name\n")
    assert len(complaints(tmp_path, 'students_file = "students.csv"\nrond = 1\n' + RULE)) == 3
    assert complaints(tmp_path, "students = { a = [3], b = 4 }\n" + RULE) == [
        "students.a[1]: must be a text, not 3",
        "students.b: must be a list, not 4",
    ]


def test_a_withdrawn_bot_without_students_gets_no_row(tmp_path: Path) -> None:
    bots = [*BOTS, "old"]
    assert plan(tmp_path, RULE, bots, ("old",)).marked == BOTS
    assert plan(tmp_path, 'withdrawn = "zero"\n' + RULE, bots, ("old",)).left == []
    assert plan(tmp_path, 'withdrawn = "marked"\n' + RULE, bots, ("old",)).marked == bots
    with pytest.raises(MarksError, match="every bot is one or has withdrawn, so that nobody gets a mark"):
        plan(tmp_path, RULE, bots, tuple(bots))
    assert unfit(tmp_path, f"references = {json.dumps(BOTS)}\n{RULE}") == [
        "references: every bot is one, so that nobody gets a mark"
    ]
    assert plan(tmp_path, PEOPLE + RULE, bots, ("old",)).marked == ["alpha", "beta"]
    assert unfit(tmp_path, PEOPLE.replace("beta", "alpha2") + RULE)[-1].startswith("students: nobody has")


def test_a_student_whose_bot_has_withdrawn(tmp_path: Path) -> None:
    (tmp_path / "s.csv").write_text("bot,student\nalpha,Ann\nbeta,Bob\n")
    text = 'references = ["minimax:2"]\nstudents_file = "s.csv"\n' + RULE
    for missing in ("error", "zero"):  # that is another thing
        with pytest.raises(MarksError) as raised:
            plan(tmp_path, f'missing = "{missing}"\n' + text, withdrawn=("beta",))
        assert str(raised.value) == (
            "students: line 3: 'Bob': the bot 'beta' has withdrawn: name the one that took its place, or set "
            'withdrawn = "zero" (nothing from any rule) or "marked" (by its games that count)'
        )
    zero = plan(tmp_path, 'withdrawn = "zero"\n' + text, withdrawn=("beta",))
    assert (zero.marked, zero.left, zero.missing) == (["alpha"], ["beta"], [])
    marked = plan(tmp_path, 'withdrawn = "marked"\n' + text, withdrawn=("beta",))
    assert (marked.marked, marked.left) == (["alpha", "beta"], [])
    measured = text.replace('kind = "points"', 'kind = "score"\nopponents = ["beta"]')
    with pytest.raises(MarksError, match="'beta' is marked itself"):
        plan(tmp_path, 'withdrawn = "zero"\n' + measured, withdrawn=("beta",))


def test_a_band_that_so_few_cannot_reach(tmp_path: Path) -> None:
    bands = "bands = [{top = 3, marks = 9}, {top_percent = 50, marks = 5}, {marks = 1}]"
    found = plan(tmp_path, f'{PEOPLE}[[rule]]\nname = "Place"\nkind = "rank"\n{bands}\n')
    assert found.remarks == [
        "rule 'Place': with 2 marked bots nobody can be in the band 'top 50 percent'",
        "rule 'Place': with 2 marked bots nobody can be in the band 'everybody else'",
    ]


# The file of students


HEAD_AND_ROWS = ("Bot,Student,ID,class", 'alpha,"Smith, Ann",1,A', ",", "alpha,Bob,2", ",Jim,3,B")


@pytest.mark.parametrize(
    ("before", "between"),
    [("", ","), ("\ufeff", ";"), ("", "\t"), ("\ufeffsep=;\r\n", ";"), ('"SEP=;"\n', ";")],
)
def test_a_file_of_students(tmp_path: Path, before: str, between: str) -> None:
    """With any separator, a byte order mark, and the line that Excel writes first."""
    path = tmp_path / "students.csv"
    rows = "\r\n".join(
        row.replace(",", between).replace(f"Smith{between}", "Smith,") for row in HEAD_AND_ROWS
    )
    path.write_text(before + rows, encoding="utf-8", newline="")
    more = before.count("\n")
    ann = Student("Smith, Ann", "1", {"class": "A"}, 2 + more)
    assert read_people(path) == People(
        {"alpha": [ann, Student("Bob", "2", {"class": ""}, 4 + more)]},
        ["class"],
        with_ids=True,
        no_bot=[Student("Jim", "3", {"class": "B"}, 5 + more)],
    )


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "is empty: it needs a first line bot,student"),
        ("\nbot,name\n", "line 2: there is no column 'student'; there are 'bot', 'name'"),
        (
            "Name;Bots\n",
            "line 1: there is no column 'bot'; there are 'Name', 'Bots'\n"
            "line 1: there is no column 'student'; there are 'Name', 'Bots'",
        ),
        ("SEP=|\nbot|name\n", "line 2: there is no column 'student'; there are 'bot', 'name'"),
        ("bot,student,x,x\n", "line 1: two columns are called 'x'"),
        (
            "bot,student\na,b,c\na,\n",
            "line 2: has 3 cells, and the head has 2\nline 3: the student's name is missing",
        ),
        (
            "bot,student\na,Ann\nb,Ann\n",
            "line 3: student 'Ann' is there twice, with bot 'a' and with bot 'b'",
        ),
        ("bot,student,id\na,Ann,1\nb,Ann,1\n", "line 3: student 'Ann' (id 1) is there twice"),
        ('bot,student\n"a,b\n', "line 2: " + OPEN_QUOTE),
        ('bot,student\na,"b\nc,d\ne,f\n', "line 2: " + OPEN_QUOTE),
        ('bot,student\na,"b\nc,d\ne,"f"\n', "line 2: " + OPEN_QUOTE),
        ('bot,student\r\na,"x\r\n""y"""\r\nc,"Q"x\r\n', "line 4: " + OPEN_QUOTE),
        ('sep=;\nbot;student\n"a";"x\ny";"b\n\n', "line 4: " + OPEN_QUOTE),
        ('bot,student\na,"x\ny"\n\nb,c,d\n', "line 5: has 3 cells, and the head has 2"),
        ('bot,student\na,"x\ny",d\n', "line 2: has 3 cells, and the head has 2"),
        (f"bot,student\na,{'x' * 200_000}\n", "line 2: this is not CSV: field larger than field limit"),
    ],
)
def test_what_a_file_of_students_may_not_say(tmp_path: Path, text: str, complaint: str) -> None:
    path = tmp_path / "students.csv"
    path.write_text(text)
    try:
        told = "\n".join(read_people(path).problems)
    except PeopleError as error:
        told = str(error)
    assert told.startswith(complaint)


def test_students_without_a_bot(tmp_path: Path) -> None:
    (tmp_path / "students.csv").write_text("bot,student,id\nalpha,Ann,1\nbeta,Bob,2\nzed,Cid,3\n,Dan,4\n")
    text = 'references = ["minimax:2"]\nstudents_file = "students.csv"\n' + RULE
    assert unfit(tmp_path, text) == [
        "students: line 4: 'Cid' (id 3): there is no bot 'zed' in this tournament; there are alpha, beta, "
        'minimax:2 (or set missing = "zero")',
        "students: line 5: 'Dan' (id 4) has no bot (or set missing = \"zero\")",
    ]
    assert plan(tmp_path, 'missing = "zero"\n' + text).missing == ["zed"]
    (tmp_path / "students.csv").write_text("bot,student\nalpha,Ann\nbeta,Ann\nzed,Cid\n,Dan\nold,Eve\n")
    with pytest.raises(MarksError) as raised:
        plan(tmp_path, 'students_file = "students.csv"\n' + RULE, [*BOTS, "old"], ("old",))
    words = ["'zed'", "'Dan' has no bot", "'Ann' is there twice", "'old' has withdrawn", "nobody has the bot"]
    for line, word in zip(str(raised.value).split("\n"), words, strict=True):
        assert line.startswith("students: ")
        assert word in line


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"bot,student\na,Gr\xf6\xdfe\n", ["cannot be read: it is not UTF-8 text (save it as CSV UTF-8)"]),
        (None, ["cannot be read: No such file or directory"]),
        (
            b"bot,student,rank,All (why)\na,b\n",
            [
                "the column 'rank' is one of the mark sheet already: give yours another title",
                "the column 'All (why)' is one of the mark sheet already: give yours another title",
            ],
        ),
    ],
)
def test_unusable_files_of_students(tmp_path: Path, content: bytes | None, expected: list[str]) -> None:
    students = tmp_path / "students.csv"
    if content is not None:
        students.write_bytes(content)
    found = complaints(tmp_path, 'students_file = "students.csv"\n' + RULE)
    assert [line.removeprefix(f"{students}: ") for line in found] == expected
