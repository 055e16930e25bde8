"""docs/operations.md, "What is public": every cell of the table is true of the pages."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.web_played import SECRET, Played, open_played, visitors_see

pytestmark = pytest.mark.any_database

TEXT = (Path(__file__).parent.parent / "docs" / "operations.md").read_text(encoding="utf-8")
WHO = {
    "visitor, nobody": ("visitor", "nobody"),
    "visitor, anonymous": ("visitor", "anonymous"),
    "visitor, named": ("visitor", "named"),
    "another team's student": ("other", "named"),
    "own team's student": ("student", "named"),
    "lecturer": ("lecturer", "named"),
}
"""Column -> who asks, and what the settings say of visitors."""
NAME = re.compile(r"Team[ _]1")


def table() -> dict[str, dict[str, str]]:
    """What -> column -> cell."""
    section = TEXT.partition("## What is public")[2]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    head, _, *rows = cells
    return {row[0]: dict(zip(head[1:], row[1:], strict=True)) for row in rows}


ROWS = table()


@pytest.fixture
def played(tmp_path: Path) -> Iterator[Played]:
    with open_played(tmp_path) as found:
        yield found


async def found_at(played: Played, role: str, path: str) -> str | None:
    """The text of an address for somebody; None if it is not for them."""
    async with played.world.browser(role) as browser:
        answer = await browser.get(path)
    assert answer.status_code in (200, 303, 403, 404), f"{path}: {answer.status_code}"
    return answer.text if answer.status_code == 200 else None


Paths = Callable[[Played], list[str]]


def game(rest: str = "") -> Paths:
    """A game of Team 1's on the practice ladder, by its own key."""
    return lambda _played: [f"/competitions/practice/games/p0000003-1{rest}"]


def version(played: Played) -> str:
    return f"/my/versions/{played.versions['Team 1 v1'].id}"


NAMED: dict[str, Paths] = {
    "standings and cross tables": lambda _: ["/standings", "/competitions/cup"],
    "games: moves, result, sentence of the verdict": game(),
    "wire log of a game": game("/wire.txt"),
    "record of a game (JSON)": game("/game.json"),
    "a team's page: its versions' numbers and states": lambda played: [f"/bots/{played.world.teams[0].id}"],
}
"""What has names in it."""
SHUT: dict[str, tuple[Paths, str]] = {
    "standard error of a bot": (game("/stderr/1"), SECRET),
    "source of a version": (lambda played: [f"{version(played)}/source.zip"], "PK"),
    "check report and log of a version": (lambda played: [version(played)], "Starts"),
    "roster, submissions, journal, settings, failures of the server": (
        lambda _: ["/teach", "/teach/roster", "/teach/submissions", "/teach/journal", "/teach/settings"],
        "<h1>",
    ),
    "marks, exports and reports of tournaments": (
        lambda _: ["/teach/tournaments/cup", "/teach/tournaments/cup/marks"],
        "<h1>",
    ),
    "accounts of lecturers and admins": (lambda _: ["/teach/accounts"], "<h1>"),
}
"""What somebody finds, or not; and what is in it."""
STUDENTS = "names and logins of students"


def test_every_row_has_a_test_and_every_test_a_row() -> None:
    assert set(ROWS) == {*NAMED, *SHUT, STUDENTS}
    assert all(list(row) == list(WHO) for row in ROWS.values())


@pytest.mark.parametrize("what", NAMED)
async def test_names_and_pseudonyms(played: Played, what: str) -> None:
    for column, (role, setting) in WHO.items():
        visitors_see(played, setting)
        for path in NAMED[what](played):
            text = await found_at(played, role, path)
            match ROWS[what][column]:
                case "no":
                    assert text is None, (column, path)
                case "names":
                    assert text is not None, (column, path)
                    assert NAME.search(text), (column, path)
                case "pseudonyms":
                    assert text is not None, (column, path)
                    assert not NAME.search(text), (column, path)
                case other:
                    pytest.fail(f"{other!r} is no word of the table")


@pytest.mark.parametrize("what", SHUT)
async def test_open_and_shut(played: Played, what: str) -> None:
    find, held = SHUT[what]
    for column, (role, setting) in WHO.items():
        visitors_see(played, setting)
        expected = ROWS[what][column]
        for path in find(played):
            text = await found_at(played, role, path)
            if expected == "yes":
                assert text is not None, (column, path)
                assert held in text, (column, path)
            else:
                assert text is None, (column, path)
                assert expected in ("no", "admin")
            if expected == "admin":
                assert held in (await found_at(played, "admin", path) or ""), path


@pytest.mark.parametrize("column", WHO)
async def test_students(played: Played, column: str) -> None:
    """Logins of all students on pages that somebody may open: the own one, all, or none."""
    role, setting = WHO[column]
    visitors_see(played, setting)
    paths = ["/", "/standings", "/competitions/cup", "/account", "/teach/roster", version(played)]
    paths += [path for each in NAMED.values() for path in each(played)]
    seen = {
        login
        for path in paths
        for login in ("student-1", "student-2")
        if login in (await found_at(played, role, path) or "")
    }
    own = {"student": {"student-1"}, "other": {"student-2"}}.get(role, set())
    match ROWS[STUDENTS][column]:
        case "yes":
            assert seen == {"student-1", "student-2"}
        case _:
            assert seen == own
