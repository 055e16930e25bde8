"""Rosters: their parser, their import as accounts and teams, and the students of a mark sheet."""

import csv
import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.courses import FAST_PASSWORDS, NOW, PASSWORD, add_account, add_student, after, use_link
from tournaments.course.course import Course
from tournaments.course.marked_students import entry_moments, marked_people, roster_at_end
from tournaments.course.model import FINISH, Account, Competitor, CourseError, Event, LinkPurpose, Role
from tournaments.course.people.roster import (
    MOST_ROWS,
    Roster,
    RosterError,
    Row,
    decode_roster,
    enrol,
    parse_roster,
)
from tournaments.course.texts import login_of, person_name, same_name, team_name
from tournaments.database.sqlite import SQLiteFile
from tournaments.reporting.marks.people import Student

# Parsing

THREE = Roster(
    (
        Row(2, "student-1", "Student, 1", "Team 1"),
        Row(3, "student-2", 'Student "2"', "Team 1"),
        Row(4, "student-3", "Student 3", None),
    )
)


@pytest.mark.parametrize(
    "text",
    [
        'login,name,team\nstudent-1,"Student, 1",Team 1\n'
        'student-2,"Student ""2""",Team 1\nstudent-3,Student 3,\n',
        "login;name;team\r\nstudent-1;Student, 1;Team 1\r\n"
        'STUDENT-2;"Student ""2""";team 1\r\nstudent-3;Student 3',
        "TEAM\tlogin\tName\nTeam 1\tstudent-1\tStudent, 1\n"
        ' Team  1 \tstudent-2\t"Student ""2"""\n\tstudent-3\tStudent 3',
        '\ufefflogin,id,name,team\nstudent-1,7,"Student, 1",Team 1\n'
        'student-2,8,"Student ""2""",Team 1\nstudent-3,9,Student 3,""\n,,,\n\n',
    ],
    ids=["commas", "semicolons", "tabs", "other columns"],
)
def test_texts_as_spreadsheets_save_them(text: str) -> None:
    assert parse_roster(text) == THREE
    # A first line for Excel; line numbers are those of the file.
    assert [row.line for row in parse_roster("sep=;\r\nlogin;name;team\r\ns;S;\r\n").rows] == [3]


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        ("", ["the roster is empty: it needs a first line login,name,team"]),
        (" \n,,\n", ["the roster is empty: it needs a first line login,name,team"]),
        ("login,name,team\n", ["the roster has nobody in it: there is nothing after line 1"]),
        (
            "student-1,Student 1,Team 1\n",
            [
                "line 1: there is no column 'login'; there are 'student-1', 'student 1', 'team 1'",
                "line 1: there is no column 'name'; there are 'student-1', 'student 1', 'team 1'",
                "line 1: there is no column 'team'; is it 'team 1'?",
            ],
        ),
        (
            "login,names,tema\na,b,c\n",
            [
                "line 1: there is no column 'name'; is it 'names'?",
                "line 1: there is no column 'team'; is it 'tema'?",
            ],
        ),
        ("login,name,team,LOGIN\na,b,c,d\n", ["line 1: two columns are called 'login'"]),
        (
            'login,name,team\na,"Student 1,c\n',
            ["line 2: the cell that begins with a quote here does not end"],
        ),
        (
            "login,name,team\n"
            "student-1,Student 1,Team 1\n"
            "STUDENT-1,Student 1,Team 1\n"
            ",Student 2,Team 1\n"
            "student-3,,Team 1\n"
            "a b,Student 4,Team/4\n"
            "student-5,Student 5,Team-1\n"
            "student-6,Student 6,Team 1,more\n"
            f"student-7,{'x' * 101},{'y' * 51}\n",
            [
                "line 3: the login 'student-1' is in line 2 already",
                "line 4: the login is missing",
                "line 5: the name is missing",
                "line 6: 'a b' cannot be a login",
                "line 6: 'Team/4' cannot be a team's name",
                "line 7: the team name 'Team-1' is too like 'Team 1' in line 2",
                "line 8: has 4 cells, and the first line has 3 columns",
                "line 9: the name 'xxx",
                "line 9: 'yyy",
            ],
        ),
        (
            'login,name,team\n\nstudent-1,"Student\n1",Team 1\n\nstudent-2,,\n',
            [
                "line 3: the name 'Student\\n1' has characters that do not show; write it without them",
                "line 6: the name is missing",
            ],
        ),
    ],
)
def test_all_problems_of_a_roster_are_reported_at_once(text: str, problems: list[str]) -> None:
    with pytest.raises(RosterError) as error:
        parse_roster(text)
    for line, problem in zip(str(error.value).splitlines(), problems, strict=True):
        assert line.startswith(problem)


def test_rosters_that_are_too_long() -> None:
    head = "login,name,team\n"
    with pytest.raises(RosterError, match=f"has {MOST_ROWS + 1} rows, and may have {MOST_ROWS}"):
        parse_roster(head + "".join(f"s{n},S,\n" for n in range(MOST_ROWS + 1)))
    with pytest.raises(RosterError) as error:
        parse_roster(head + "a,,\n" * 60)
    assert len(str(error.value).splitlines()) == 51
    assert str(error.value).endswith("and 69 more")  # each has no name, and all but one the same login


def test_files_in_other_encodings() -> None:
    assert decode_roster("login,name\nü".encode()) == "login,name\nü"
    with pytest.raises(RosterError, match="line 2: this is not UTF-8 text: save the table as CSV UTF-8"):
        decode_roster("login,name\nü".encode("latin-1"))
    with pytest.raises(RosterError, match="line 1: this is not UTF-8"):
        decode_roster("login,name\n".encode("utf-16"))


@given(st.text(st.characters(codec="utf-8") | st.sampled_from('login,name;team\t"\n\r'), max_size=200))
def test_any_text_is_a_roster_or_refused(text: str) -> None:
    for roster in (text, "login,name,team\n" + text):
        try:
            rows = parse_roster(roster).rows
        except CourseError:
            continue
        assert rows
        assert len({row.login for row in rows}) == len(rows)
        for row in rows:
            assert login_of(row.login) == row.login
            assert person_name(row.name) == row.name
            assert row.team is None or team_name(row.team) == row.team


NAMES = st.text(st.characters(codec="utf-8", categories=("L", "N", "P", "S", "Zs")), min_size=1, max_size=20)


@settings(max_examples=50)
@given(
    rows=st.lists(
        st.tuples(
            st.from_regex(r"[a-z][a-z0-9.-]{0,8}", fullmatch=True), NAMES, st.sampled_from(["", "One", "Two"])
        ),
        min_size=1,
        unique_by=lambda row: row[0],
    ),
    columns=st.permutations(["login", "name", "team", "remark"]),
    delimiter=st.sampled_from(",;\t"),
    end=st.sampled_from(["\n", "\r\n"]),
    mark=st.sampled_from(["", "\ufeff"]),
)
def test_a_roster_that_csv_writes_is_parsed(
    rows: list[tuple[str, str, str]], columns: list[str], delimiter: str, end: str, mark: str
) -> None:
    expected = []
    for login, name, team in rows:
        try:
            expected.append((login, person_name(name.strip()), team or None))
        except CourseError:
            return
    text = io.StringIO()
    writer = csv.writer(text, delimiter=delimiter, lineterminator=end)
    writer.writerow(columns)
    for login, name, team in rows:
        cells = {"login": login, "name": name, "team": team, "remark": "; , \t"}
        writer.writerow([cells[column] for column in columns])
    read = parse_roster(mark + text.getvalue())
    assert [(row.login, row.name, row.team) for row in read.rows] == expected


# Import


def roster_of(*rows: str) -> Roster:
    return parse_roster("login,name,team\n" + "\n".join(rows))


def test_students_are_invited(course: Course) -> None:
    result = enrol(course, THREE, NOW)
    assert [account.login for account in result.added] == list(result.links)
    assert list(result.links) == ["student-1", "student-2", "student-3"]
    assert (result.moved, result.renamed, result.disabled, result.unchanged) == ((), (), (), 0)
    for account in result.added:
        assert account.role is Role.STUDENT
        found = course.links.find(result.links[account.login], after(days=29))
        assert found == (account, LinkPurpose.INVITATION)
    teams = {team.id: team.name for team in course.teams.all()}
    assert [teams[account.team_id or 0] for account in result.added] == ["Team 1", "Team 1", "Team 2"]


def test_the_same_roster_again_changes_nothing(course: Course) -> None:
    links = enrol(course, THREE, NOW).links
    use_link(course, links["student-1"], PASSWORD, NOW)
    session, _ = course.sessions.start(1, NOW)
    before = (course.accounts.all(), course.teams.all())
    for _ in range(2):
        result = enrol(course, THREE, after(days=1))
        assert (result.added, result.moved, result.renamed, result.links) == ((), (), (), {})
        assert result.unchanged == 3
    assert (course.accounts.all(), course.teams.all()) == before
    assert course.sessions.find(session, NOW) is not None
    assert course.links.find(links["student-2"], after(days=1)) is not None


def test_a_later_roster_adds_moves_and_renames(course: Course) -> None:
    first = enrol(course, THREE, NOW)
    result = enrol(course, roster_of("student-2,Student Two,Team 9", "student-4,Student 4,team 1"), NOW)
    assert [account.login for account in result.added] == list(result.links) == ["student-4"]
    (moved,) = result.moved
    assert result.renamed == (moved,)
    assert (moved.login, moved.name) == ("student-2", "Student Two")
    assert moved.team_id not in {account.team_id for account in first.added}
    assert result.added[0].team_id == first.added[0].team_id
    assert len(course.accounts.all()) == 4  # who is not in it stays


def test_a_team_that_was_renamed_is_the_same(course: Course) -> None:
    enrol(course, THREE, NOW)
    team = course.teams.by_name("Team 1")
    assert team is not None
    course.teams.rename(team.id, "Sharks")
    result = enrol(course, THREE, NOW)
    assert (result.moved, result.unchanged) == ((), 3)
    assert [team.name for team in course.teams.all()] == ["Sharks", "Team 2"]


def test_teams_of_one_have_new_names(course: Course) -> None:
    gone = course.teams.add("Team 1", NOW)
    course.teams.rename(gone.id, "Sharks")
    lonely = add_student(course)
    result = enrol(
        course, roster_of("student-a,A,", "student-b,B,Team 2", f"{lonely.login},L,", "student-c,C,"), NOW
    )
    names = {account.login: course.teams.get(account.team_id or 0) for account in course.accounts.all()}
    assert {login: team.name for login, team in names.items() if team is not None} == {
        "student-a": "Team 3",
        "student-b": "Team 2",
        lonely.login: "Team 4",
        "student-c": "Team 5",
    }
    assert len(result.moved) == 1


def test_a_roster_with_problems_changes_nothing(course: Course) -> None:
    add_account(course, Role.LECTURER, "lecturer")
    add_account(course, Role.ADMIN, "admin")
    course.teams.add("Team 1", NOW)
    before = (course.accounts.all(), course.teams.all())
    bad = roster_of(
        "student-1,S,Team 7", "lecturer,L,", "student-2,S,Team-1", "admin,A,", "student-3,S,team-1"
    )
    with pytest.raises(RosterError) as error:
        enrol(course, bad, NOW)
    assert str(error.value).splitlines() == [
        "line 3: 'lecturer' is no student, but a lecturer of the course",
        "line 4: the team name 'Team-1' is too like 'Team 1': choose another one",
        "line 5: 'admin' is no student, but an admin of the course",
        "line 6: the team name 'Team-1' is too like 'Team 1': choose another one",
    ]
    assert (course.accounts.all(), course.teams.all()) == before


def test_a_disabled_account_stays_disabled(course: Course) -> None:
    enrol(course, THREE, NOW)
    disabled = course.accounts.set_disabled(1, True)
    result = enrol(course, THREE, NOW)
    assert (result.disabled, result.unchanged) == ((disabled,), 2)
    assert course.accounts.get(1) == disabled


@settings(max_examples=10)
@given(
    st.lists(
        st.lists(
            st.tuples(st.sampled_from("abcd"), st.sampled_from(["One", "ONE", "Two", "Team 1", ""])),
            min_size=1,
            unique_by=lambda row: row[0],
        ),
        min_size=1,
        max_size=3,
    )
)
def test_several_rosters(
    tmp_path_factory: pytest.TempPathFactory, rosters: list[list[tuple[str, str]]]
) -> None:
    with Course(SQLiteFile(tmp_path_factory.mktemp("course") / "course.db"), FAST_PASSWORDS) as course:
        teams: dict[str, str] = {}
        for roster in rosters:
            known = set(teams)
            result = enrol(course, roster_of(*(f"{login},Name,{team}" for login, team in roster)), NOW)
            assert set(result.links) == {login for login, _ in roster} - known
            teams |= {login: team for login, team in roster if team or login not in teams}
            for login, team in teams.items():
                account = course.accounts.by_login(login)
                assert account is not None
                own = course.teams.get(account.team_id or 0)
                assert own is not None
                if team:
                    assert same_name(own.name) == same_name(team)
                else:
                    assert own.name.startswith("Team ")


# Mark sheets

TEAM_OF_VERSION = {11: 1, 12: 1, 21: 2}


def account(number: int, team: int | None, *, role: Role = Role.STUDENT, disabled: bool = False) -> Account:
    return Account(number, f"s{number}", f"student-{number}", role, team, True, disabled, NOW)


def bot(name: str, version: int | None) -> Competitor:
    return Competitor(1, name, version, None if version else name)


ONE_V1, ONE_V2, TWO_V1 = bot("One v1", 11), bot("One v2", 12), bot("Two v1", 21)
BOTS = ["One v1", "One v2", "Two v1", "ladder:3"]
ACCOUNTS = [
    account(2, 1),
    account(1, 1),
    account(3, 2),
    account(4, 3),
    account(5, None),
    account(6, None, role=Role.ADMIN),
    account(7, 2, disabled=True),
]


def test_the_students_of_a_mark_sheet() -> None:
    found = marked_people([ONE_V1, bot("ladder:3", None), TWO_V1], TEAM_OF_VERSION, ACCOUNTS, BOTS)
    students = [Student(f"student-{number}", f"s{number}") for number in range(1, 6)]
    assert found.people.groups == {"One v1": students[:2], "Two v1": students[2:3]}
    assert found.people.no_bot == students[3:]
    assert found.people.with_ids
    assert found.references == ("ladder:3",)
    assert found.remarks == ("disabled accounts get no row: s7",)
    later = marked_people([TWO_V1], TEAM_OF_VERSION, ACCOUNTS[:1], BOTS, left_out={"s9", "s8"})
    assert later.remarks == (
        "accounts that were added or enabled after the tournament ended get no row: s8, s9",
    )
    only_disabled = marked_people([TWO_V1], TEAM_OF_VERSION, ACCOUNTS[-1:], BOTS)
    assert (only_disabled.people.groups, only_disabled.people.no_bot) == ({}, [])


def test_the_students_of_a_late_bot_are_those_of_the_next_end() -> None:
    """Others keep the team of the first end."""
    first = {"s1": 1, "s2": 1, "s3": 3, "s4": 2, "s5": 2}
    second = {"s1": 1, "s2": 2, "s3": 1, "s4": 2, "s5": 1, "s6": 2, "s7": 1}
    ends = [Event(1, NOW, None, FINISH, "cup", {"roster": first})]
    entered = entry_moments(
        [ONE_V1, ONE_V2, TWO_V1, bot("ladder:3", None)],
        TEAM_OF_VERSION,
        {"One v2": after(days=1), "Two v1": after(days=1)},
    )
    assert entered == {1: None, 2: after(days=1)}
    now = [account(number, second[f"s{number}"]) for number in range(1, 8)]
    for number, events in enumerate(
        [ends, [*ends, Event(2, after(days=2), None, FINISH, "cup", {"roster": second})]]
    ):
        if number == 1:  # changes after the second end
            now[5] = account(6, 1)
        found = roster_at_end(now, events, entered)
        assert {one.login: one.team_id for one in found} == first | {"s5": None, "s6": 2}
    early = roster_at_end(now, ends, entered | {2: after(days=-1)})
    assert {one.login: one.team_id for one in early} == first


@pytest.mark.parametrize(
    ("withdrawn", "marked", "references"),
    [((), "One v2", ("One v1",)), (("One v2",), "One v1", ()), (("One v1", "One v2"), "One v2", ())],
)
def test_a_team_is_marked_by_its_newest_bot_that_has_not_withdrawn(
    withdrawn: tuple[str, ...], marked: str, references: tuple[str, ...]
) -> None:
    for bots in ([ONE_V1, ONE_V2], [ONE_V2, ONE_V1]):
        found = marked_people(bots, TEAM_OF_VERSION, ACCOUNTS[:-1], BOTS, withdrawn)
        assert (list(found.people.groups), found.references) == ([marked], references)
        assert found.remarks == tuple(
            f"{name!r} gets no mark: {marked!r} of the same team does" for name in references
        )


@pytest.mark.parametrize(
    ("withdrawn", "bots", "marked"),
    [((), ["One v1"], "One v1"), (("One v1",), ["One v1"], "One v1"), ((), [], "One v2")],
)
def test_a_team_is_marked_by_a_bot_in_the_results_if_it_has_one(
    withdrawn: tuple[str, ...], bots: list[str], marked: str
) -> None:
    found = marked_people([ONE_V1, ONE_V2], TEAM_OF_VERSION, ACCOUNTS[:-1], bots, withdrawn)
    assert (list(found.people.groups), found.references) == ([marked], ())
    assert found.remarks == tuple(
        f"{name!r} was entered in this tournament, but its results do not contain it: check the mark of its "
        "team"
        for name in ("One v1", "One v2")
        if name not in bots
    )
