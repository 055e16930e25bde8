"""docs/operations.md, "What is public": every cell of the table is true of the pages."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.courses import NOW
from tests.support.paths import REPOSITORY_ROOT
from tests.web.played_course import CHECK_GAME, LOST_BY_FAULT, SECRET, Played, open_played
from tournaments.course.mail.outbox import MailHome
from tournaments.course.model import CompetitionState, LinkPurpose

pytestmark = pytest.mark.any_database

TEXT = (REPOSITORY_ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
WHO = {
    "visitor, nobody": ("visitor", "nobody"),
    "visitor, anonymous": ("visitor", "anonymous"),
    "visitor, named": ("visitor", "named"),
    "another team's student": ("other", "named"),
    "own team's student": ("student", "named"),
    "lecturer": ("lecturer", "named"),
}
"""Column -> the role, and the setting for visitors."""
NAME = re.compile(r"Team[ _]1")


def table() -> dict[str, dict[str, str]]:
    """Return the cells by row and column."""
    section = TEXT.partition("## What is public")[2]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    head, _, *rows = cells
    return {row[0]: dict(zip(head[1:], row[1:], strict=True)) for row in rows}


ROWS = table()


async def found_at(played: Played, role: str, path: str) -> str | None:
    """Return the text of an address for a role; None without the permission."""
    async with played.world.browser(role) as browser:
        answer = await browser.get(path)
    assert answer.status_code in (200, 303, 403, 404), f"{path}: {answer.status_code}"
    return answer.text if answer.status_code == 200 else None


Paths = Callable[[Played], list[str]]


def game(rest: str = "") -> Paths:
    """Return a file of a game of Team 1."""
    return lambda _played: [f"{LOST_BY_FAULT}{rest}"]


def version(played: Played) -> str:
    return f"/my/versions/{played.versions['Team 1 v1'].id}"


def feed(played: Played) -> list[str]:
    """Return the feed, with the tournament of the course in it."""
    played.world.course.competitions.set_state(played.cup.id, CompetitionState.FINISHED, "", NOW)
    return ["/feed.atom"]


def addresses(played: Played) -> list[str]:
    """Return the pages with the address of a student, to which a mail could not be delivered."""
    course, student = played.world.course, played.world.accounts["student"]
    course.addresses.enrol(student.id, "student-1@example.org")
    course.links.make(student.id, LinkPurpose.RESET, NOW)
    for mail in course.outbox.due(NOW, 9):
        course.outbox.failed(mail.id, "550 nobody", NOW)
    return ["/teach", f"/teach/roster/{student.id}"]


NAMED: dict[str, Paths] = {
    "standings and cross tables": lambda _: ["/standings", "/competitions/cup"],
    "feed of finished tournaments": feed,
    "games: moves, result, sentence of the verdict": game(),
    "live boards in frames of other sites": lambda _: ["/embed/practice", "/embed/practice/p0000003-1"],
    "wire log of a game": game("/wire.txt"),
    "record of a game (JSON)": game("/game.json"),
    "a team's page: its versions' numbers, states, ratings and results": lambda played: [
        f"/bots/{played.world.teams[0].id}"
    ],
}
"""Rows whose pages have names."""
SHUT: dict[str, tuple[Paths, str]] = {
    "standard error of a bot": (game("/stderr/1"), SECRET),
    "source of a version": (lambda played: [f"{version(played)}/source.zip"], "PK"),
    "check report and log of a version": (lambda played: [version(played)], "Starts"),
    "games of the check of a version": (
        lambda _: [f"{CHECK_GAME}{rest}" for rest in ("", "/wire.txt", "/game.json", "/stderr/1")],
        "Team 1 v1",
    ),
    "roster, submissions, journal, settings, failures of the server": (
        lambda _: ["/teach", "/teach/roster", "/teach/submissions", "/teach/journal", "/teach/settings"],
        "<h1>",
    ),
    "marks, exports and reports of tournaments": (
        lambda _: ["/teach/tournaments/cup", "/teach/tournaments/cup/marks"],
        "<h1>",
    ),
    "e-mail addresses of students, and mails that could not be delivered": (
        addresses,
        "student-1@example.org",
    ),
    "accounts of lecturers and admins": (lambda _: ["/teach/accounts"], "<h1>"),
}
"""Rows whose pages a role finds or not, with a text of the pages."""
STUDENTS = "names and logins of students"


def test_every_row_has_a_test_and_every_test_a_row() -> None:
    assert set(ROWS) == {*NAMED, *SHUT, STUDENTS}
    assert all(list(row) == list(WHO) for row in ROWS.values())


@pytest.mark.parametrize("what", NAMED)
async def test_names_and_pseudonyms(played: Played, what: str) -> None:
    for column, (role, setting) in [*WHO.items(), *reversed(WHO.items())]:  # with warm caches, too
        played.show(setting)
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
                    pytest.fail(f"{other!r} is not in the legend of the table")


@pytest.mark.parametrize("what", SHUT)
async def test_open_and_shut(tmp_path: Path, what: str) -> None:
    find, held = SHUT[what]
    with open_played(tmp_path, mail=MailHome("home", b"key")) as played:
        for column, (role, setting) in WHO.items():
            played.show(setting)
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
    """The pages for a role have the logins of all students, of this student, or of none."""
    role, setting = WHO[column]
    played.show(setting)
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
