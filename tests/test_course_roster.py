"""The roster: read from what spreadsheets save, and made into accounts and teams."""

import csv
import io
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.courses import CHEAP, NOW, PASSWORD, a_person, a_student, after
from tournaments.course.course import Course
from tournaments.course.model import CourseError, LinkPurpose, Role
from tournaments.course.roster import MOST_ROWS, Roster, RosterError, Row, decode_roster, enrol, parse_roster
from tournaments.course.texts import login_of, person_name, same_name, team_name
from tournaments.database.base import Location
from tournaments.database.sqlite import SQLiteFile


@pytest.fixture
def course(place: Location) -> Iterator[Course]:
    with Course(place, CHEAP) as course:
        yield course


# Reading

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
def test_what_spreadsheets_save(text: str) -> None:
    assert parse_roster(text) == THREE


def test_a_first_line_for_excel() -> None:
    rows = parse_roster("sep=;\r\nlogin;name;team\r\nstudent-1;Student, 1;Team 1\r\n").rows
    assert rows == (Row(3, "student-1", "Student, 1", "Team 1"),)


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
    ],
)
def test_all_that_is_wrong_with_a_roster_is_said_at_once(text: str, problems: list[str]) -> None:
    with pytest.raises(RosterError) as error:
        parse_roster(text)
    said = str(error.value).splitlines()
    for line, problem in zip(said, problems, strict=True):
        assert line.startswith(problem)


def test_lines_are_those_of_the_file() -> None:
    text = 'login,name,team\n\nstudent-1,"Student\n1",Team 1\n\nstudent-2,,\n'
    with pytest.raises(RosterError) as error:
        parse_roster(text)
    assert str(error.value).splitlines() == [
        "line 3: the name 'Student\\n1' has characters that do not show; write it without them",
        "line 6: the name is missing",
    ]


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
def test_what_was_written_is_read(
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


# Entering


def roster_of(*rows: str) -> Roster:
    return parse_roster("login,name,team\n" + "\n".join(rows))


def test_students_are_invited(course: Course) -> None:
    result = enrol(course, THREE, NOW)
    assert [account.login for account in result.added] == ["student-1", "student-2", "student-3"]
    assert list(result.links) == ["student-1", "student-2", "student-3"]
    assert (result.moved, result.renamed, result.disabled, result.unchanged) == ((), (), (), 0)
    for account in result.added:
        assert account.role is Role.STUDENT
        assert course.links.find(result.links[account.login], after(days=29)) == (
            account,
            LinkPurpose.INVITATION,
        )
    teams = {team.id: team.name for team in course.teams.all()}
    assert [teams[account.team_id or 0] for account in result.added] == ["Team 1", "Team 1", "Team 2"]


def test_the_same_roster_again_changes_nothing(course: Course) -> None:
    links = enrol(course, THREE, NOW).links
    course.links.use(links["student-1"], PASSWORD, NOW)
    session, _ = course.sessions.start(1, NOW)
    before = (course.accounts.all(), course.teams.all())
    for _ in range(2):
        result = enrol(course, THREE, after(days=1))
        assert (result.added, result.moved, result.renamed, result.links) == ((), (), (), {})
        assert result.unchanged == 3
    assert (course.accounts.all(), course.teams.all()) == before
    assert course.accounts.check_password("student-1", PASSWORD) is not None
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


def test_teams_of_ones_own_take_nobodys_name(course: Course) -> None:
    gone = course.teams.add("Team 1", NOW)
    course.teams.rename(gone.id, "Sharks")
    lonely = a_student(course)
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


def test_all_of_a_roster_or_nothing(course: Course) -> None:
    a_person(course, Role.LECTURER, "lecturer")
    a_person(course, Role.ADMIN, "admin")
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


def test_a_roster_lets_nobody_in_who_is_disabled(course: Course) -> None:
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
def test_rosters_one_after_another(
    tmp_path_factory: pytest.TempPathFactory, rosters: list[list[tuple[str, str]]]
) -> None:
    with Course(SQLiteFile(tmp_path_factory.mktemp("course") / "course.db"), CHEAP) as course:
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
