"""Lecturers' pages, with a course in which games were played."""

import csv
import io
import json
import os
import re
import tempfile
import zipfile
from dataclasses import replace
from datetime import timedelta
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import httpx2 as httpx
import pytest
import trio
import trio_parallel
from openpyxl import load_workbook
from sqlalchemy import Engine, event

from tests.support.courses import NOW, add_qualified, add_student, add_version, note
from tests.web.played_course import REFERENCE, Played, open_played
from tests.web.site import Browser
from tournaments.course.model import (
    Account,
    BotChoice,
    Checked,
    CompetitionKind,
    CompetitionState,
    CourseError,
    Role,
    VersionState,
)
from tournaments.database.base import StoreError
from tournaments.reporting.marks.earlier_sheet import RESULTS_DIGEST
from tournaments.reporting.workbook import WorkbookError
from tournaments.results.journal import Action, Entry
from tournaments.server.competitions.tournament_spec import TournamentSpec
from tournaments.server.status import Disk
from tournaments.web.lecturer import marks
from tournaments.web.lecturer.people import people_of
from tournaments.web.lecturer.settings import SHOWN
from tournaments.web.views.competition_view import entrants_of

ROSTER = "login,name,team\nstudent-1,Student One,Team 1\nstudent-9,Student 9,Team 9\n"
LINK = re.compile(r"http://testserver/links/([\w-]+)")
CUP = "/teach/tournaments/cup"
RULES = '[[rule]]\nname = "All"\nkind = "points"\nmarks = 10\n'


def newest_actions(played: Played, count: int = 1) -> list[str]:
    return [event.action for event in played.world.course.journal.entries(count)]


def main_of(answer: httpx.Response) -> str:
    """Return the main part of a page as text."""
    bare = re.sub(r"</?bdi>", "", answer.text.partition("<main")[2])
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", bare)).split())


async def sent(browser: Browser, path: str, expected: int = 303, /, **fields: Any) -> httpx.Response:
    """Send a form with the CSRF text of another page; its answer must have this status."""
    answer = await browser.submit("/account", fields, to=path)
    assert answer.status_code == expected, main_of(answer)
    return answer


# The roster


async def test_a_roster_is_shown_before_it_is_imported(played: Played) -> None:
    course = played.world.course
    before = course.accounts.all(), course.teams.all(), course.journal.entries(9)
    async with played.world.browser("lecturer") as browser:
        answer = await sent(browser, "/teach/roster/import", 200, roster=ROSTER)
        text = main_of(answer)
        assert "1 new student" in text
        assert "student-1: student-1 becomes Student One" in text
        assert (course.accounts.all(), course.teams.all(), course.journal.entries(9)) == before

        answer = await sent(browser, "/teach/roster/import", 200, roster=ROSTER, do="import")
        assert answer.headers["cache-control"] == "no-store"
        assert "1 student was added, 0 moved to another team, 1 renamed; 0 are unchanged." in main_of(answer)
        links = LINK.findall(answer.text)
        found = course.links.find(links[0], NOW)
        assert found is not None
        assert (found[0].login, found[0].name) == ("student-9", "Student 9")
        download = re.search(r'href="data:text/csv;charset=utf-8,([^"]*)"', answer.text)
        assert download is not None
        (row,) = csv.DictReader(io.StringIO(unquote(download[1])))
        assert row == {
            "login": "student-9",
            "name": "Student 9",
            "team": "Team 9",
            "link": f"http://testserver/links/{links[0]}",
        }
        assert newest_actions(played) == ["roster.import"]
        assert links[0] not in json.dumps(dict(course.journal.entries(1)[0].detail))

        again = await sent(browser, "/teach/roster/import", 200, roster=ROSTER)
        assert "It would change nothing" in main_of(again)


async def test_a_wrong_roster_changes_nothing_and_has_its_lines_named(played: Played) -> None:
    course = played.world.course
    before = course.accounts.all()
    async with played.world.browser("lecturer") as browser:
        for do in ("preview", "import"):
            text = ROSTER + "student-9,Student 9,Team 9\nlecturer,L,Team 9\n,nobody,x\n"
            answer = await sent(browser, "/teach/roster/import", 400, roster=text, do=do)
            assert "line 4" in main_of(answer)
            assert "line 6: the login is missing" in main_of(answer)
            assert "student-9,Student 9" in answer.text  # the input is kept
    assert course.accounts.all() == before
    assert course.teams.by_name("Team 9") is None


async def test_a_refused_form_of_the_roster_keeps_its_values(played: Played) -> None:
    at = f"/teach/roster/{played.world.accounts['student'].id}"
    async with played.world.browser("lecturer") as browser:
        answer = await sent(browser, f"{at}/change", 400, name="New\x07Name", team="Team <7>")
        assert 'name="name" type="text" value="New\x07Name"' in answer.text
        assert 'value="Team &lt;7&gt;"' in answer.text
        answer = await sent(browser, "/teach/teams/1/rename", 400, name="Team 2")
        names = re.findall(r'id="team-(\d+)" name="name" value="([^"]*)"', answer.text)
        assert names == [("1", "Team 2"), ("2", "Team 2")]


async def test_a_roster_may_be_a_file(played: Played) -> None:
    async with played.world.browser("lecturer") as browser:
        for content, status, words in (
            (("\ufeff" + ROSTER).encode(), 200, "1 new student"),
            (b"login\xff", 400, "not UTF-8"),
            (b"login\0", 400, "The file has NUL characters"),
        ):
            files = {"roster_file": ("roster.csv", content)}
            answer = await browser.submit("/teach/roster/import", {"roster": ""}, files=files)
            assert (answer.status_code, words in main_of(answer)) == (status, True)


async def test_students_are_added_and_changed_and_every_change_is_in_the_journal(played: Played) -> None:
    course, student = played.world.course, played.world.accounts["student"]
    at = f"/teach/roster/{student.id}"
    async with played.world.browser("lecturer") as browser:
        answer = await sent(browser, "/teach/roster/add", 200, login="s-7", name="Student 7", team="Team 7")
        assert course.links.find(LINK.findall(answer.text)[0], NOW) is not None
        answer = await sent(browser, "/teach/roster/add", 400, login="S-7", name="x", team="Team 8")
        assert "is taken" in main_of(answer)
        assert course.teams.by_name("Team 8") is None
        await sent(browser, f"{at}/change", name="Other Name", team="Team 2")
        await sent(browser, f"{at}/disable", disabled="yes")
        changed = course.accounts.get(student.id)
        assert changed is not None
        assert (changed.name, changed.team_id, changed.disabled) == ("Other Name", 2, True)
        await sent(browser, f"{at}/link", 400)
        await sent(browser, f"{at}/disable", disabled="no")
        answer = await sent(browser, f"{at}/link", 200)
        assert course.links.find(LINK.findall(answer.text)[0], NOW) is not None
        await sent(browser, "/teach/teams/1/rename", name="Otters")
        await sent(browser, "/teach/teams/1/rename", 400, name="Team 2")
        await sent(browser, "/teach/teams/99/rename", 404, name="Team 2")
        answer = await browser.get("/teach/roster")
        assert 'value="Otters"' in answer.text
        assert "without members" in main_of(answer)
        admin = played.world.accounts["admin"]
        for action in ("link", "disable", "change"):
            await sent(browser, f"/teach/roster/{admin.id}/{action}", 404, name="x", disabled="yes")
    assert course.accounts.get(admin.id) == admin
    assert newest_actions(played, 6) == [
        "team.rename",
        "account.link",
        "account.enable",
        "account.disable",
        "account.change",
        "account.add",
    ]


async def test_saving_a_student_leaves_what_others_have_changed_in_the_meantime(played: Played) -> None:
    course, account = played.world.course, played.world.accounts["student"]
    at = f"/teach/roster/{account.id}"
    async with played.world.browser("lecturer") as browser, played.world.browser("admin") as other:
        fields = form_of((await browser.get(at)).text.partition(f"{at}/link")[0])
        await sent(other, f"{at}/change", name="Student 1", team="Team 2")
        course.teams.rename(1, "Otters")
        answer = await sent(browser, f"{at}/change", 400, **fields | {"name": "a\x07"})
        fields = form_of(answer.text.partition(f"{at}/link")[0])
        await sent(browser, f"{at}/change", **fields | {"name": "Ann"})
        changed = course.accounts.get(account.id)
        assert changed is not None
        assert (changed.name, changed.team_id) == ("Ann", 2)
        assert course.journal.entries(1)[0].detail == {"name": "Ann", "team": "Team 2"}
        await sent(browser, f"{at}/change", **fields | {"name": "Student 1", "team": ""})
        changed = course.accounts.get(account.id)
        assert changed is not None
        assert changed.team_id is None


# Settings


def form_of(page: str) -> dict[str, str]:
    """Return the fields of a form as a browser sends them unchanged."""
    fields: dict[str, str] = {}
    for tag in re.findall(r"<input[^>]*>", page):
        attributes = dict(re.findall(r'(\w+)="([^"]*)"', tag))
        if attributes.get("type") == "checkbox" and " checked" not in tag:
            continue
        if "name" in attributes:
            fields[attributes["name"]] = unescape(attributes.get("value", ""))
    for name, choices in re.findall(r'<select[^>]* name="(\w+)".*?>(.*?)</select>', page, re.DOTALL):
        chosen = re.search(r'value="([^"]+)" selected', choices)
        assert chosen is not None
        fields[name] = chosen[1]
    return fields


async def test_saving_the_form_as_it_is_changes_nothing(played: Played) -> None:
    course = played.world.course
    course.settings.change(
        deadline="2026-05-01T18:00:00+02:00", time_zone="Europe/Berlin", quiet_from="22:00", quiet_to="06:30"
    )
    course.settings.change(references=["minimax:3", "random", "ladder:2"])  # not in the order of the form
    before = course.settings.load()
    async with played.world.browser("lecturer") as browser:
        fields = form_of((await browser.get("/teach/settings")).text)
        assert fields["deadline"] == "2026-05-01T18:00"
        await sent(browser, "/teach/settings", **fields)
        assert course.settings.load() == before
        assert course.journal.entries(1) == []
        await sent(browser, "/teach/settings", **fields | {"title": "New", "uploads_per_day": "3"})
    after = course.settings.load()
    assert (after.title, after.uploads_per_day) == ("New", 3)
    (entry,) = course.journal.entries(9)
    assert entry.detail["changes"] == {"title": ["Kalarena", "New"], "uploads_per_day": [None, 3]}
    assert played.service.changes == 2


@pytest.mark.parametrize("unticked", ["", "practice_on", "uploads_open"])
async def test_saving_leaves_what_others_have_changed_in_the_meantime(played: Played, unticked: str) -> None:
    settings, clock = played.world.course.settings, played.world.clock
    settings.change(**dict.fromkeys(unticked.split(), False))
    async with played.world.browser("lecturer") as browser, played.world.browser("admin") as other:
        fields = form_of((await browser.get("/teach/settings")).text)
        clock.advance(seconds=0.7)
        await sent(other, "/teach/settings/freeze", freeze="now")
        settings.change(uploads_per_day=5)
        await sent(browser, "/teach/settings", 400, **fields | {"title": ""})
        await sent(browser, "/teach/settings", **fields | {"title": "New"})
        after = settings.load()
        assert (after.title, after.uploads_per_day, after.frozen_at) == ("New", 5, clock())
        fields = form_of((await browser.get("/teach/settings")).text)
        await sent(browser, "/teach/settings", **fields | {"title": "Newer"})
        assert settings.load().frozen_at == clock()  # which the form shows without its microseconds
        fields.pop(SHOWN)  # as a script sends it: all settings
        await sent(browser, "/teach/settings", **fields | {"frozen_at": ""})
    assert settings.load().frozen_at is None


async def test_each_problem_is_shown_at_its_field(played: Played) -> None:
    before = played.world.course.settings.load()
    async with played.world.browser("lecturer") as browser:
        fields = form_of((await browser.get("/teach/settings")).text)
        wrong = {"move_s": "-1", "game": "kalha", "quiet_from": "22:00", "title": "New <b>"}
        answer = await sent(browser, "/teach/settings", 400, **fields | wrong)
    for name in ("move_s", "game"):
        hint = re.search(rf'id="{name}-hint"><strong class="fault">', answer.text)
        assert hint, name
    assert "did you mean" in answer.text
    assert "Seconds per move: must be" in answer.text
    assert "move_s: " not in answer.text
    assert 'value="New &lt;b&gt;"' in answer.text  # the input is kept
    assert played.world.course.settings.load() == before


async def test_a_game_that_is_typed_takes_the_place_of_the_chosen_one(played: Played) -> None:
    async with played.world.browser("lecturer") as browser:
        fields = form_of((await browser.get("/teach/settings")).text)
        await sent(browser, "/teach/settings", **fields | {"game": "kalamala", "game_text": " kalah(4,3) "})
    assert played.world.course.settings.load().game == "kalah(4,3)"


async def test_versions_are_frozen_and_unfrozen(played: Played) -> None:
    async with played.world.browser("lecturer") as browser:
        await sent(browser, "/teach/settings/freeze", freeze="now")
        assert played.world.course.settings.load().frozen_at == NOW
        assert "Unfreeze" in main_of(await browser.get("/teach/settings"))
        played.world.clock.advance(minutes=5)  # as on a page that was opened before
        answer = await sent(browser, "/teach/settings/freeze", 409, freeze="now")
        assert "Versions were frozen at 2026-03-02 12:00 (UTC), and stay as they were" in main_of(answer)
        assert played.world.course.settings.load().frozen_at == NOW
        await sent(browser, "/teach/settings/freeze", freeze="no")
    assert played.world.course.settings.load().frozen_at is None
    assert newest_actions(played, 2) == ["settings.unfreeze", "settings.freeze"]


@pytest.mark.parametrize("text", [None, "", "true"])
async def test_forms_without_one_of_their_values_change_nothing(played: Played, text: str | None) -> None:
    course, version = played.world.course, played.versions["Team 1 v1"]
    student, lecturer = played.world.accounts["student"], played.world.accounts["lecturer"]
    course.settings.change(frozen_at=NOW)
    course.versions.withdraw(version.id, True)
    for account in (student, lecturer):
        course.accounts.set_disabled(account.id, True)
    async with played.world.browser("admin") as browser:
        for path, name in (
            ("/teach/settings/freeze", "freeze"),
            (f"/teach/roster/{student.id}/disable", "disabled"),
            (f"/teach/accounts/{lecturer.id}/disable", "disabled"),
            (f"/my/versions/{version.id}/withdraw", "withdrawn"),
        ):
            answer = await sent(browser, path, 400, **{} if text is None else {name: text})
            assert f"The form must have {name}=" in main_of(answer)
    assert course.settings.load().frozen_at == NOW
    assert course.versions.of_team(version.team_id)[0].withdrawn
    assert all(one.disabled for one in course.accounts.all() if one.id in (student.id, lecturer.id))
    assert newest_actions(played) == []


# Dashboard and journal


async def test_the_dashboard_shows_what_needs_attention(
    played: Played, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = played.world
    played.service.failures.note("checks", "the disk is full")
    played.fail(played.add_version())
    world.course.accounts.add("s-3", "Student 3", Role.STUDENT, world.course.teams.add("Team 3", NOW).id, NOW)
    status = replace(played.service.status(), disk=Disk(10**8, 10**11))
    monkeypatch.setattr(played.service, "status", lambda: status)
    async with world.browser("lecturer") as browser:
        page = main_of(await browser.get("/teach"))
        for text in (
            "the disk is full",
            "The disk is nearly full: make room soon.",
            "it is night",
            "Plays as South",
            "Team 1 v2",
            "Team 3",
            "The server reports 1 failure.",
            "1 team has no bot that plays.",
            "1 student has not chosen a password.",
            "lost 3 of 3 games: it sent '<b>debug</b>'",
        ):
            assert text in page, text
        failed = main_of(await browser.get("/teach/submissions?state=failed"))
        assert "Team 1 v2" in failed
        assert "Team 1 v1" not in failed


@pytest.mark.parametrize(
    ("state", "report", "texts"),
    [
        (
            VersionState.STUCK,
            None,
            ("1 version could not be checked.", "could not be checked: our fault", "Uploads are closed."),
        ),
        (VersionState.FAILED, None, ("Uploads are closed.",)),
        (VersionState.FAILED, {"schema": 99}, ("Uploads are closed.",)),
    ],
)
async def test_the_dashboard_shows_a_newest_version_without_a_readable_report(
    played: Played, state: VersionState, report: dict[str, Any] | None, texts: tuple[str, ...]
) -> None:
    versions, version = played.world.course.versions, played.add_version()
    versions.begin_check(version.id)
    versions.decide(version.id, state, Checked(report, "log"), None, 0, NOW)
    played.world.course.settings.change(uploads_open=False)
    async with played.world.browser("lecturer") as browser:
        page = main_of(await browser.get("/teach"))
    for text in texts:
        assert text in page, text
    assert ("could not be checked" in page) is (state is VersionState.STUCK)


async def test_a_server_without_mail_sends_none(played: Played) -> None:
    async with played.world.browser("lecturer") as browser:
        answer = await sent(browser, "/teach/mail", 400, do="retry")
        assert "This server sends no mail" in main_of(answer)


async def test_long_lists_are_read_page_by_page(played: Played) -> None:
    course = played.world.course
    for number in range(120):
        note(course, NOW, None, "test.note", f"entry {number:03d}", text="x" * number * 5)
    seen: list[str] = []
    async with played.world.browser("lecturer") as browser:
        path = "/teach/journal"
        while path:
            page = (await browser.get(path)).text
            seen += re.findall(r"entry (\d{3})", page)
            older = re.search(r'href="(/teach/journal\?before=\d+)"', page)
            path = older[1] if older else ""
        assert seen == [f"{number:03d}" for number in reversed(range(120))]
        for odd in ("x", "-1", "9" * 30, "99999999999"):
            assert (await browser.get(f"/teach/journal?before={odd}")).status_code == 200


# Tournaments


async def test_a_tournament_is_previewed_and_created(played: Played, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[tuple[TournamentSpec, Account]] = []

    async def create(spec: TournamentSpec, created_by: Account, *, draft: bool) -> Any:
        made.append((spec, created_by))
        return played.cup

    monkeypatch.setattr(played.service.tournaments, "create_tournament", create, raising=False)
    fields = {
        "format": "round-robin",
        "title": "Final",
        "game": "manchester",
        "rounds": "2",
        "bots": "current",
        "references": "first_legal",
        "time.move_s": "1",
        "seed": "7",
    }
    async with played.world.browser("lecturer") as browser:
        page = main_of(await sent(browser, "/teach/tournaments/new", 200, **fields))
        assert "Round robin Gauntlet Swiss Knockout Groups Ladder SPRT Placement" in page
        assert "Bots 3 Games 12 Lasts about" in page
        assert "the last 6 of the practice ladder" in page
        assert made == []
        await sent(browser, "/teach/tournaments/new", **fields, do="create")
    ((spec, by),) = made
    assert by == played.world.accounts["lecturer"]
    assert (spec.title, spec.rounds, spec.seed, spec.references) == ("Final", 2, 7, ["first_legal"])
    assert spec.time.move_s == 1


async def test_the_preview_names_current_versions_that_are_not_checked_yet(played: Played) -> None:
    fields = {"format": "round-robin", "title": "Final", "bots": "current", "references": "first_legal"}
    remark = "Not checked yet, and left out unless they qualify before the tournament is created: Team 1 v2."
    async with played.world.browser("lecturer") as browser:
        before = await sent(browser, "/teach/tournaments/new", 200, **fields)
        played.add_version()
        after = await sent(browser, "/teach/tournaments/new", 200, **fields)
    assert "left out" not in main_of(before)
    assert remark in main_of(after).replace(" .", ".")


async def test_versions_are_chosen_and_problems_of_a_tournament_are_shown(played: Played) -> None:
    ids = [version.id for version in played.versions.values()]
    async with played.world.browser("lecturer") as browser:
        fields = {"format": "swiss", "title": "Cup", "bots": "chosen", "format.pairs": "1", "version": ids}
        page = await sent(browser, "/teach/tournaments/new", 200, **fields)
        assert "Team 1 v1, Team 2 v1" in main_of(page)
        assert page.text.count('name="version" value="') == 2
        assert len(re.findall(r'name="version" value="\d+" checked', page.text)) == 2
        fields |= {
            "title": "",
            "format.pairs": "x",
            "version": ids[:1],
            "references": "nobody",
            "seed": "1.5",
        }
        page = await sent(browser, "/teach/tournaments/new", 400, **fields)
        for label in ("Title", "Reference players", "Seed"):
            assert f"<li>{label}: " in page.text, label
        assert not re.search(r"<li>[a-z_.]+: ", page.text)
        assert 'id="format.pairs-hint"' in page.text
        answer = await sent(browser, "/teach/tournaments/new", 400, format="swiss", title="x", bots="frozen")
        assert "frozen" in main_of(answer)


async def test_a_tournament_is_controlled_and_ruled_on(played: Played) -> None:
    tournaments = played.service.tournaments
    async with played.world.browser("lecturer") as browser:
        for action in ("start", "pause", "resume", "rejudge"):
            await sent(browser, f"{CUP}/{action}")
        assert tournaments.requests == [
            (action, played.cup.id) for action in ("start", "pause", "resume", "rejudge")
        ]
        page = await browser.get(f"{CUP}?game=r001-1v2")
        assert 'value="r001-1v2"' in page.text
        await sent(browser, f"{CUP}/rule", game="r001-1v2", action="void", why="the host was restarted")
        assert "void r001-1v2: the host was restarted" in main_of(await browser.get(CUP))
        answer = await sent(browser, f"{CUP}/rule", 400, game="r009-9v9", action="void", why="x")
        assert "there is no game 'r009-9v9' here" in main_of(answer)
        await sent(browser, f"{CUP}/rule", 400, game="r001-1v3", action="void", why=" ")
        await sent(browser, f"{CUP}/rule", 400, game="r001-1v3", action="add", why="x")
        await sent(browser, f"{CUP}/rule", bot="Team 1 v1", action="withdraw", why="a copy", annul="yes")
        assert "Team 1 v1 (withdrawn)" in main_of(await browser.get(CUP))
    summary = await tournaments.summary(played.cup.id)
    assert {entry.by for entry in summary.journal} == {"lecturer"}


async def test_a_tournament_that_waits_says_why(played: Played) -> None:
    async with played.world.browser("lecturer") as browser:
        assert "interrupted" not in main_of(await browser.get(CUP))
        played.service.tournaments.retry_reasons[played.cup.id] = "results.db: the disk is full"
        sentence = "was interrupted, and the server tries again by itself: results.db: the disk is full"
        assert sentence in main_of(await browser.get(CUP))
        # The answer to a pause was lost: the server does not know yet that it is stored.
        played.world.course.competitions.set_state(played.cup.id, CompetitionState.PAUSED, "", NOW)
        assert "interrupted" not in main_of(await browser.get(CUP))


async def test_a_bot_joins_a_tournament(played: Played) -> None:
    """The choice has the current versions of teams and reference players that are not entered."""
    course = played.world.course
    course.settings.change(references=["ladder:1", "minimax:3"])
    newest = played.qualify(played.add_version())
    course.teams.rename(played.versions["Team 2 v1"].team_id, "Renamed")
    async with played.world.browser("lecturer") as browser:
        page = await browser.text(CUP)
        for value in (f"version:{newest.id}", "reference:minimax:3", "reference:ladder:2"):
            assert f'<option value="{value}"' in page
        for value in ("reference:ladder:1", f"version:{played.versions['Team 2 v1'].id}"):
            assert f'<option value="{value}"' not in page
        await sent(browser, f"{CUP}/add", late="reference:minimax:3", replaces="Team 1 v1", why="a new one")
        page = await browser.text(CUP)
        assert "add minimax:3 (in the place of Team 1 v1): a new one" in page
        assert '<option value="reference:minimax:3"' not in page
        answer = await sent(browser, f"{CUP}/add", 400, late="reference:ladder:1", why="x<y")
        assert "'ladder:1' is entered already" in main_of(answer)
        assert 'value="x&lt;y"' in answer.text
        for late in ("", "ladder:2", "version:", "version:-1", "version:" + "9" * 5000, "reference"):
            await sent(browser, f"{CUP}/add", 400, late=late, why="x")
        answer = await sent(browser, f"{CUP}/add", 400, late="reference:ladder:2", why="x" * 1001)
        assert "longer than 1000 characters" in main_of(answer)


async def test_a_knockout_takes_no_late_bot(tmp_path: Path) -> None:
    with open_played(tmp_path, cup_format="knockout") as played:
        async with played.world.browser("lecturer") as browser:
            page = await browser.text(CUP)
            assert "No bot can join a tournament of this format." in page
            assert f"{CUP}/add" not in page
            answer = await sent(browser, f"{CUP}/add", 400, late="reference:ladder:2", why="x")
        assert "takes no bot after it was created" in main_of(answer)


async def test_a_pause_may_come_too_late(played: Played) -> None:
    async with played.world.browser("lecturer") as browser:
        answer = await sent(browser, f"{CUP}/pause")
        assert "is paused" in main_of(await browser.get(answer.headers["location"]))
        played.world.course.competitions.set_state(played.cup.id, CompetitionState.FINISHED, "", NOW)
        await sent(browser, f"{CUP}/pause")
        assert "has finished: its last games ended before the pause" in main_of(await browser.get(CUP))


@pytest.mark.parametrize(
    ("states", "actions", "absent"),
    [
        ((), ("pause", "hide", "cancel"), "delete"),
        ((CompetitionState.CANCELLED,), ("resume", "hide", "delete"), "pause"),
    ],
)
async def test_the_buttons_of_a_tournament_are_those_of_its_state(
    played: Played, states: tuple[CompetitionState, ...], actions: tuple[str, ...], absent: str
) -> None:
    for state in states:
        played.world.course.competitions.set_state(played.cup.id, state, "", NOW)
    page = await played.world.page("lecturer", CUP)
    for action in actions:
        assert f'action="{CUP}/{action}"' in page
    assert f'action="{CUP}/{absent}"' not in page


async def test_a_draft_can_be_published_or_deleted(played: Played) -> None:
    competitions, kind = played.world.course.competitions, CompetitionKind.TOURNAMENT
    draft = competitions.add("draft", "Draft", kind, {}, None, NOW, CompetitionState.DRAFT)
    played.service.tournaments.stores[draft.id] = played.service.tournaments.stores[played.cup.id]
    page = await played.world.page("lecturer", "/teach/tournaments/draft")
    for action in ("publish", "delete"):
        assert f'action="/teach/tournaments/draft/{action}"' in page
    assert "/draft/start" not in page


@pytest.mark.parametrize("action", ["start", "delete"])
async def test_an_action_that_the_state_forbids_is_a_conflict(
    played: Played, monkeypatch: pytest.MonkeyPatch, action: str
) -> None:
    async def refuse(_competition_id: int, _by: Account) -> None:
        raise CourseError("'Cup' is being played")

    monkeypatch.setattr(played.service.tournaments, action, refuse)
    async with played.world.browser("lecturer") as browser:
        answer = await sent(browser, f"{CUP}/{action}", 409)
    assert "'Cup' is being played" in main_of(answer)


async def test_the_reason_of_a_ruling_has_a_greatest_length(played: Played) -> None:
    async with played.world.browser("lecturer") as browser:
        answer = await sent(
            browser, f"{CUP}/rule", 400, game="r001-1v2", action="void", why="x" * 1001, annul=""
        )
    assert "The reason is longer than 1000 characters." in main_of(answer)
    assert (await played.service.tournaments.summary(played.cup.id)).journal == []


async def test_a_version_of_a_team_joins_a_tournament(
    played: Played, monkeypatch: pytest.MonkeyPatch
) -> None:
    added: list[BotChoice] = []

    async def add_bot(_competition_id: int, choice: BotChoice, *_: object) -> list[str]:
        added.append(choice)
        return []

    monkeypatch.setattr(played.service.tournaments, "add_bot", add_bot)
    async with played.world.browser("lecturer") as browser:
        await sent(browser, f"{CUP}/add", late="version:2", why="was ill")
    assert added == [BotChoice(version_id=2)]


async def test_a_form_for_an_unknown_format_is_that_of_the_default_format(played: Played) -> None:
    async with played.world.browser("lecturer") as browser:
        fields = [
            re.findall(
                r' name="((?:format\.)?[a-z_]+)"', await browser.text(f"/teach/tournaments/new{query}")
            )
            for query in ("?format=tombola", "", "?format=swiss")
        ]
    assert fields[0] == fields[1] != fields[2]


async def test_marks_are_of_the_roster(played: Played) -> None:
    async with played.world.browser("lecturer") as browser:
        assert 'href="/help/marks"' in await browser.text(f"{CUP}/marks")
        page = main_of(await sent(browser, f"{CUP}/marks", 200, rules=RULES))
        assert "student-1" in page
        assert REFERENCE not in page.partition("The sheet")[2]
        answer = await sent(browser, f"{CUP}/marks", 200, rules=RULES, do="csv")
        assert answer.headers["content-disposition"] == 'attachment; filename="marks-cup.csv"'
        rows = list(csv.DictReader(io.StringIO(answer.text)))
        assert {row["bot"]: row["id"] for row in rows} == {"Team 1 v1": "student-1", "Team 2 v1": "student-2"}
        assert newest_actions(played) == ["marks.export"]
        sheet_json = (await sent(browser, f"{CUP}/marks", 200, rules=RULES, do="json")).json()
        assert {row["bot"]: str(row["mark"]) for row in sheet_json["rows"]} == {
            row["bot"]: str(float(row["mark"])) for row in rows
        }
        answer = await sent(browser, f"{CUP}/marks", 200, rules=RULES, do="xlsx")
        sheet = load_workbook(io.BytesIO(answer.content)).active
        assert {row[1] for row in sheet.values} == {"id", "student-1", "student-2"}
        decided = '[[override]]\nstudent = "student-2"\nmark = 1.25\nreason = "an appeal"\n'
        page = main_of(await sent(browser, f"{CUP}/marks", 200, rules=RULES + decided))
        assert "override: 1.25 (an appeal)" in page
        own = f'references = ["{REFERENCE}"]\n[students]\n"Team 1 v1" = "A"\n"Team 2 v1" = "B"\n'
        assert " A Team 1 v1 " in main_of(await sent(browser, f"{CUP}/marks", 200, rules=own + RULES))
        for rules, why in (
            ("x = ", "this is not TOML"),
            ('students_file = "/etc/passwd"\n' + RULES, "students_file: there is no such file here"),
            (RULES.replace("points", "pionts"), "pionts"),
        ):
            assert why in main_of(await sent(browser, f"{CUP}/marks", 400, rules=rules))


async def test_marks_by_games_against_a_reference_player_that_withdrew(played: Played) -> None:
    store = played.service.tournaments.stores[played.cup.id]
    store.note(Entry(Action.WITHDRAW, REFERENCE, "x", 1, NOW.isoformat(), {"annul": True}))
    rules = f'[[rule]]\nname = "Strong"\nkind = "score"\nopponents = ["{REFERENCE}"]\nmarks = 5\n'
    async with played.world.browser("lecturer") as browser:
        page = main_of(await sent(browser, f"{CUP}/marks", 200, rules=rules))
    assert f"rule 'Strong': these have no game against {REFERENCE} that counts" in page


async def test_no_team_lacks_a_mark_whose_late_bot_was_lost_with_a_backup(played: Played) -> None:
    """After a restore, the course can have a late bot that the tournament's results lack."""
    course, lost = played.world.course, ("Team 1 v2", "Team 3 v1")
    add_student(course, course.teams.add("Team 3", NOW), "late")
    for name in lost:
        version = add_qualified(course, name[:-3], f"content of {name}", "d" * 64)
        course.competitions.enter(played.cup.id, name, version.id, None)
    async with played.world.browser("lecturer") as browser:
        answer = main_of(await sent(browser, f"{CUP}/marks", 400, rules=RULES))
        assert "there is no bot 'Team 3 v1' in this tournament" in answer
        rules = 'missing = "zero"\n' + RULES
        page = main_of(await sent(browser, f"{CUP}/marks", 200, rules=rules))
        for name in lost:
            assert f"{name!r} was entered in this tournament, but its results do not contain it" in page
        sheet = await sent(browser, f"{CUP}/marks", 200, rules=rules, do="csv")
        bots = {row["bot"]: row["All (why)"] for row in csv.DictReader(io.StringIO(sheet.text))}
        assert list(bots) == ["Team 1 v1", "Team 2 v1", "Team 3 v1"]
        assert bots["Team 3 v1"] == "not in the tournament"


async def test_students_of_a_bot_that_joined_after_the_end_are_marked(played: Played) -> None:
    course = played.world.course
    roster = {"student-1": 1, "student-2": 2}
    note(course, NOW - timedelta(days=1), None, "tournament.finish", "cup", roster=roster)
    add_student(course, course.teams.add("Team 3", NOW), "late")
    add_student(course, None, "idle")
    version = add_qualified(course, "Team 3", "content of Team 3", "d" * 64)
    course.competitions.enter(played.cup.id, "Team 3 v1", version.id, None)
    joined = {"bot": "greedy", "base": "", "digest": "d", "replaces": None}
    store = played.service.tournaments.stores[played.cup.id]
    store.note(Entry(Action.ADD, "Team 3 v1", "was ill", 1, NOW.isoformat(), joined))
    async with played.world.browser("lecturer") as browser:
        page = main_of(await sent(browser, f"{CUP}/marks", 200, rules=RULES, unfinished="true"))
        assert re.search(r" late (late )?Team 3 v1 ", page.partition("The sheet")[2])
        assert "after the tournament ended get no row: idle" in page


async def test_marks_wait_for_the_end_unless_they_are_requested(tmp_path: Path) -> None:
    with open_played(tmp_path, cup_rounds=1) as played:
        store = played.service.tournaments.stores[played.cup.id]
        config = store.config() | {"rounds": 2}
        name = config.pop("name")
        store.claim(name, config, {"bots": dict.fromkeys(config["bots"], "d")})
        async with played.world.browser("lecturer") as browser:
            answer = await sent(browser, f"{CUP}/marks", 400, rules=RULES)
            assert "6 of 12 games have a result" in main_of(answer)
            await sent(browser, f"{CUP}/marks", 200, rules=RULES, unfinished="true")


async def test_published_marks_are_shown_to_their_students_alone(played: Played) -> None:
    decided = '[[override]]\nstudent = "student-2"\nmark = 1.25\nreason = "an appeal"\n'
    world = played.world
    async with world.browser("lecturer") as browser:
        assert "Your marks" not in await world.page("student", "/my")
        await sent(browser, f"{CUP}/marks", rules=RULES + decided, do="publish")
        assert newest_actions(played) == ["marks.publish"]
        assert "2 students see their own mark" in main_of(await browser.get(f"{CUP}/marks"))
        assert "lecturer published the marks of cup." in main_of(await browser.get("/teach/journal"))
        for role, explained in (("student", False), ("other", True)):
            page = await world.page(role, "/my")
            assert "Your marks" in page
            assert ("override: 1.25 (an appeal)" in page) is explained
        world.course.settings.change(students_see_names=False)
        assert "Cup of Team 1" not in await world.page("other", "/my")
        await sent(browser, f"{CUP}/marks/withdraw")
        assert newest_actions(played) == ["marks.withdraw"]
        assert "Your marks" not in await world.page("other", "/my")


async def test_published_marks_of_a_tournament_that_is_not_shown_any_more(played: Played) -> None:
    competitions, link = played.world.course.competitions, 'href="/competitions/cup"'
    async with played.world.browser("lecturer") as browser:
        await sent(browser, f"{CUP}/marks", rules=RULES, do="publish")
    assert link in await played.world.page("student", "/my")
    competitions.set_hidden(played.cup.id, True)
    page = await played.world.page("student", "/my")
    assert "Your marks" in page
    assert link not in page
    competitions.set_state(played.cup.id, CompetitionState.CANCELLED, "", NOW)
    competitions.set_state(played.cup.id, CompetitionState.DELETED, "", NOW)
    assert "Your marks" not in await played.world.page("student", "/my")


async def test_published_marks_are_out_of_date_after_a_ruling(played: Played) -> None:
    outdated = "The results have changed since then"
    async with played.world.browser("lecturer") as browser:
        await sent(browser, f"{CUP}/marks", rules=RULES, do="publish")
        assert outdated not in main_of(await browser.get(f"{CUP}/marks"))
        await sent(browser, f"{CUP}/rule", game="r001-1v2", action="void", why="the power failed")
        assert outdated in main_of(await browser.get(f"{CUP}/marks"))
        await sent(browser, f"{CUP}/marks", rules=RULES, do="publish")
        assert outdated not in main_of(await browser.get(f"{CUP}/marks"))


async def test_marks_are_published_again_by_the_same_rules(played: Played) -> None:
    button = 'value="publish"'
    async with played.world.browser("lecturer") as browser:
        page = await browser.text(f"{CUP}/marks")
        assert marks.EXAMPLE in unescape(page)
        assert button in page
        await sent(browser, f"{CUP}/marks", rules=RULES, do="publish")
        for _ in ("published", "withdrawn"):
            page = await browser.text(f"{CUP}/marks")
            assert RULES in unescape(page)
            assert button in page
            await sent(browser, f"{CUP}/marks/withdraw")
        assert "kind =" not in main_of(await browser.get("/teach/journal"))


async def test_marks_whose_rules_are_unknown_are_shown_before_they_are_published_again(
    played: Played,
) -> None:
    """Earlier versions published marks without their rules."""
    button, course = 'value="publish"', played.world.course
    with course.act(NOW, None, "marks.publish", "cup", scheme="", marks={}):
        pass
    async with played.world.browser("lecturer") as browser:
        for page in (
            await browser.text(f"{CUP}/marks"),
            (await sent(browser, f"{CUP}/marks", 400, rules="x =")).text,
        ):
            assert button not in page
            assert "enter the rules and show the sheet first" in page
        assert button in (await sent(browser, f"{CUP}/marks", 200, rules=RULES)).text


@pytest.mark.parametrize("how", ["of an older release", "without its results"])
async def test_published_marks_that_cannot_be_compared_are_not_out_of_date(
    played: Played, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    async with played.world.browser("lecturer") as browser:
        await sent(browser, f"{CUP}/marks", rules=RULES, do="publish")
        if how == "of an older release":
            (newest,) = played.world.course.journal.entries(1)
            with played.world.course.act(NOW, None, newest.action, newest.subject) as act:
                act.detail.update(
                    {key: value for key, value in newest.detail.items() if key != RESULTS_DIGEST}
                )
        else:

            async def fail(*_: object, **__: object) -> None:
                raise StoreError("results.db: damaged")

            monkeypatch.setattr(played.service.tournaments, "summary", fail)
        page = main_of(await browser.get(f"{CUP}/marks"))
    assert "2 students see their own mark" in page
    assert "The results have changed since then" not in page


async def test_a_sheet_that_is_no_workbook_is_explained(
    played: Played, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> bytes:
        raise WorkbookError("a cell is too long")

    monkeypatch.setattr(marks, "sheet_file", refuse)
    async with played.world.browser("lecturer") as browser:
        answer = await sent(browser, f"{CUP}/marks", 400, rules=RULES, do="xlsx")
    assert "a cell is too long" in main_of(answer)
    assert newest_actions(played) == []


async def test_a_tournament_without_games_has_no_report(played: Played) -> None:
    summary = await played.service.tournaments.summary(played.cup.id)
    played.service.tournaments.keep(played.cup.id, replace(summary, kept=[]))
    async with played.world.browser("lecturer") as browser:
        assert "No game was played yet" in await browser.text(f"{CUP}/report.zip", 409)


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (OSError(28, "No space left on device"), "cannot be made: [Errno 28] No space left on device"),
        (trio.TooSlowError(), "was not ready after"),
    ],
)
async def test_a_download_that_fails_leaves_no_files(
    played: Played, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, error: Exception, sentence: str
) -> None:
    async def fail(*_: object, **__: object) -> None:
        assert list(folder.iterdir())
        raise error

    folder = tmp_path / "downloads"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setattr(trio_parallel, "run_sync", fail)
    async with played.world.browser("lecturer") as browser:
        assert sentence in unescape(await browser.text(f"{CUP}/games.csv", 503))
    assert list(folder.iterdir()) == []


def open_files() -> list[str]:
    """Return the paths of the open files of this process, also of those that were removed."""
    return [os.path.realpath(one) for one in Path("/proc/self/fd").iterdir()]


@pytest.mark.parametrize(
    ("method", "wanted", "status"),
    [
        ("GET", "bytes=0-3", 206),
        ("GET", "bytes=1000000-", 416),
        ("GET", "bytes=x", 400),
        ("HEAD", "bytes=0-3", 200),
    ],
)
async def test_a_download_of_a_range_leaves_no_files(
    played: Played, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, method: str, wanted: str, status: int
) -> None:
    folder = tmp_path / "downloads"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    async with played.world.browser("lecturer") as browser:
        answer = await browser.request(method, f"{CUP}/games.csv", headers={"Range": wanted})
    assert answer.status_code == status
    if status == 206:
        assert answer.text == "key,"
    assert list(folder.iterdir()) == []
    assert not any(path.startswith(str(folder)) for path in open_files())


async def test_marks_of_students_who_are_not_in_the_roster_are_not_published(played: Played) -> None:
    own = f'references = ["{REFERENCE}"]\n[students]\n"Team 1 v1" = "A"\n"Team 2 v1" = "B"\n'
    async with played.world.browser("lecturer") as browser:
        answer = await sent(browser, f"{CUP}/marks", 400, rules=own + RULES, do="publish")
        assert "leave out the table [students] to publish marks" in main_of(answer)
        assert newest_actions(played) != ["marks.publish"]
        assert "Marks were published" not in main_of(await browser.get(f"{CUP}/marks"))


async def test_games_and_moves_are_downloaded(played: Played) -> None:
    async with played.world.browser("lecturer") as browser:
        answer = await browser.get(f"{CUP}/games.csv")
        assert answer.headers["content-type"].startswith("text/csv")
        assert len(list(csv.DictReader(io.StringIO(answer.text)))) == 6
        assert len((await browser.get(f"{CUP}/games.json")).json()) == 6
        assert (await browser.text(f"{CUP}/games.pgn")).count("[Result ") == 6
        for name in ("games.exe", "moves.pgn"):
            await browser.text(f"{CUP}/{name}", 404)


@pytest.mark.parametrize("name", ["report", "report-anonymous"])
async def test_a_report_is_downloaded(played: Played, name: str) -> None:
    async with played.world.browser("lecturer") as browser:
        answer = await browser.get(f"{CUP}/{name}.zip")
    assert answer.status_code == 200
    with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
        names = archive.namelist()
        folder = names[0].partition("/")[0]
        assert f"{folder}/index.html" in names
        assert len([path for path in names if "/games/" in path]) == 6
        texts = b"".join(archive.read(path) for path in names if path.endswith(".html"))
    assert (b"Team 1" in texts) is (name == "report")


async def test_the_pages_of_a_reports_games_can_be_chosen(played: Played) -> None:
    shares = {}
    async with played.world.browser("lecturer") as browser:
        for pages in ("whole", "shared"):
            answer = await browser.get(f"{CUP}/report.zip?pages={pages}")
            with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
                shares[pages] = any("/data/" in name for name in archive.namelist())
        await browser.text(f"{CUP}/report.zip?pages=x", 400)
    assert shares == {"whole": False, "shared": True}


# Lecturers and admins


async def test_admins_make_lecturers(played: Played) -> None:
    course = played.world.course
    async with played.world.browser("admin") as browser:
        answer = await sent(browser, "/teach/accounts/add", 200, login="l-2", name="", role="lecturer")
        found = course.links.find(LINK.findall(answer.text)[0], NOW)
        assert found is not None
        account = found[0]
        assert (account.login, account.role) == ("l-2", Role.LECTURER)
        at = f"/teach/accounts/{account.id}"
        await sent(browser, f"{at}/role", role="admin")
        await sent(browser, f"{at}/disable", disabled="yes")
        await sent(browser, f"{at}/role", 400, role="student")
        answer = await sent(browser, "/teach/accounts/add", 400, login="L-2", name="Kept", role="admin")
        assert "is taken" in main_of(answer)
        assert 'value="Kept"' in answer.text
        await sent(browser, f"{at}/link", 400)  # the account is disabled
        changed = course.accounts.get(account.id)
        assert changed is not None
        assert (changed.role, changed.disabled) == (Role.ADMIN, True)
    assert newest_actions(played, 3) == ["account.disable", "account.role", "account.add"]


async def test_there_is_always_an_admin(played: Played) -> None:
    admin = played.world.accounts["admin"]
    at = f"/teach/accounts/{admin.id}"
    async with played.world.browser("admin") as browser:
        await sent(browser, f"{at}/role", 400, role="lecturer")
        await sent(browser, f"{at}/disable", 400, disabled="yes")
    assert played.world.course.accounts.get(admin.id) == admin
    assert played.world.course.journal.entries(1) == []


def test_people_and_entrants_are_read_in_one_query_for_all(played: Played) -> None:
    course, cup = played.world.course, played.cup
    statements = 0

    def count(*_: object) -> None:
        nonlocal statements
        statements += 1

    def queries() -> list[int]:
        nonlocal statements
        found = []
        competitors = course.competitions.competitors(cup.id)
        for read in (lambda: people_of(played.world.site), lambda: entrants_of(course, competitors)):
            statements = 0
            with course.reading():
                assert len(read()) >= 2
            found.append(statements)
        return found

    event.listen(Engine, "before_cursor_execute", count)
    try:
        before = queries()
        for number in range(3, 13):
            team = course.teams.add(f"Team {number}", NOW)
            student = add_student(course, team, f"student-of-{number}")
            version = add_version(course, team, student, f"content {number}")
            course.competitions.enter(cup.id, f"Team {number} v1", version.id, None)
        assert queries() == before
    finally:
        event.remove(Engine, "before_cursor_execute", count)
