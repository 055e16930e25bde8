"""Visibility of names for visitors and students: on every page, in files, addresses and sentences."""

import errno
import re
from dataclasses import replace
from html import unescape
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from referee.playing import Job
from tests.support.builders import CONTROL
from tests.support.courses import NOW
from tests.web.played_course import BOTS, LOST_BY_FAULT, REFERENCE, SECRET, Played, played_game
from tournaments.course.model import Account, Role
from tournaments.course.settings import Settings
from tournaments.reporting.pseudonyms import KEY_FILE
from tournaments.reporting.site.anonymizer import HIDDEN
from tournaments.server.competitions.tournament_spec import free_slug
from tournaments.web.views.competition_view import ViewedCompetitions
from tournaments.web.views.names import (
    Entrant,
    Names,
    Viewer,
    Visibility,
    known_names,
    names_to_hide,
    viewer_of,
)

ENTRANTS = (
    Entrant("Team 1 v1", 1, 1, None, 10),
    Entrant("Team 1 v2", 1, 2, None, 12),
    Entrant("Team 2 v1", 2, 1, None, 11),
    Entrant(REFERENCE, None, None, REFERENCE, None),
)
TEAMS = {1: "Team 1", 2: "Team 2"}
LINK = re.compile(r'href="(/[^"#?]*)')
REAL = re.compile(r"Team[ _+]?(%20)?[12]|student-[12]")


def account(role: Role, team_id: int | None = None) -> Account:
    return Account(1, "student-1", "student-1", role, team_id, True, False, NOW)


@pytest.mark.parametrize(
    ("visitors", "students", "who", "expected"),
    [
        ("nobody", True, None, Viewer(Visibility.NOBODY)),
        ("anonymous", True, None, Viewer(Visibility.ANONYMOUS)),
        ("named", False, None, Viewer(Visibility.NAMED)),
        ("nobody", True, account(Role.STUDENT, 1), Viewer(Visibility.NAMED)),
        ("named", False, account(Role.STUDENT, 1), Viewer(Visibility.ANONYMOUS, 1)),
        ("anonymous", False, account(Role.LECTURER), Viewer(Visibility.NAMED)),
        ("nobody", False, account(Role.ADMIN), Viewer(Visibility.NAMED)),
    ],
)
def test_who_sees_names(visitors: str, students: bool, who: Account | None, expected: Viewer) -> None:
    settings = Settings.model_validate({"standings_for": visitors, "students_see_names": students})
    assert viewer_of(settings, who) == expected


def test_names_that_are_hidden_and_names_that_are_known() -> None:
    drawn = names_to_hide(ENTRANTS, TEAMS)
    assert sorted(drawn) == sorted({entrant.name for entrant in ENTRANTS} | set(TEAMS.values()))
    assert known_names(Viewer(Visibility.ANONYMOUS), ENTRANTS, TEAMS) == {REFERENCE}
    own = known_names(Viewer(Visibility.ANONYMOUS, 1), ENTRANTS, TEAMS)
    assert own == {REFERENCE, "Team 1 v1", "Team 1 v2", "Team 1"}


@given(st.permutations(range(6)), st.sampled_from([None, 1, 2]))
def test_no_hidden_name_is_left_in_a_text(order: list[int], team_id: int | None) -> None:
    names = names_to_hide(ENTRANTS, TEAMS)
    pseudonyms = {names[index]: f"Bird {index}" for index in order}
    known = known_names(Viewer(Visibility.ANONYMOUS, team_id), ENTRANTS, TEAMS)
    bots = [entrant.name for entrant in ENTRANTS]
    shown = Names.hidden(pseudonyms, known, bots)
    text = shown.sentence(" and ".join((*bots, *map(str.upper, bots), *TEAMS.values())))
    for name in set(names) - known:
        assert name.casefold() not in text.casefold()
        assert shown.shown(name) == pseudonyms[name]
    keys = {shown.key(f"r001-{one}v{other}") for one in range(1, 5) for other in range(1, 5) if one != other}
    assert len(keys) == 12  # no two games have one address
    assert shown.shown("Team 3 v1") == HIDDEN


# The pages.


async def all_pages(played: Played, role: str) -> dict[str, str]:
    """Return every page of the site that links lead to, by its address."""
    found: dict[str, str] = {}
    async with played.world.browser(role) as browser:
        waiting = {"/"}
        while waiting:
            path = waiting.pop()
            answer = await browser.get(unescape(path))
            found[path] = answer.text
            if "text/html" in answer.headers.get("content-type", ""):
                links = set(LINK.findall(answer.text))
                waiting |= {
                    link
                    for link in links - set(found)
                    if not link.startswith(("/assets", "/starters", "/account"))
                }
    return found


@pytest.mark.parametrize("is_damaged", [False, True])
async def test_pseudonyms_that_cannot_be_used_are_a_failure_of_the_disk(
    played: Played, monkeypatch: pytest.MonkeyPatch, is_damaged: bool
) -> None:
    """No page shows names for want of pseudonyms."""

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", "/srv/x")

    played.show("anonymous")
    if is_damaged:
        folder = played.world.site.data / "competitions" / "cup"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / KEY_FILE).write_text('pseudonym,name\n"Teal', encoding="utf-8")
    else:
        monkeypatch.setattr(Path, "mkdir", full)
    page = await played.world.page("visitor", "/competitions/cup", 503)
    assert "its disk may be full" in page
    assert not REAL.search(page)
    assert (KEY_FILE in page, "/srv/x" in page) == (False, False)
    page = await played.world.page("lecturer", "/teach/tournaments/cup/report-anonymous.zip", 503)
    assert (KEY_FILE if is_damaged else "/srv/x") in page
    assert REAL.search(await played.world.page("lecturer", "/competitions/cup"))


@pytest.mark.parametrize(
    "is_warm",
    [pytest.param(False, id="cold caches", marks=pytest.mark.slow), pytest.param(True, id="warm caches")],
)
async def test_no_page_has_a_name_for_an_anonymous_visitor(played: Played, is_warm: bool) -> None:
    played.show("anonymous")
    if is_warm:  # somebody who sees the names has just been on all pages
        await all_pages(played, "other")
    pages = await all_pages(played, "visitor")
    assert len([path for path in pages if "/games/" in path]) >= 3 * 12
    assert len([path for path in pages if "/bots/" in path]) >= 6
    for path, page in pages.items():
        if not path.startswith("/help/"):  # the documentation has the accounts of the demo
            assert not REAL.search(page), f"{path}: {REAL.search(page)}"
        assert not REAL.search(path)
        assert SECRET not in page


async def test_no_response_of_the_api_has_a_name_for_an_anonymous_visitor(played: Played) -> None:
    played.show("anonymous")
    async with played.world.browser() as browser:
        for path in ("", "/cup", "/cup/games", "/practice", "/practice/games"):
            answer = await browser.get(f"/api/v1/competitions{path}")
            assert answer.status_code == 200
            assert not REAL.search(answer.text), path
        for game in (await browser.get("/api/v1/competitions/cup/games")).json()["games"]:
            answer = await browser.get(f"/api/v1/competitions/cup/games/{game['key']}")
            assert answer.status_code == 200
            assert not REAL.search(answer.text)
            assert SECRET not in answer.text


async def test_a_drawn_game_shows_each_viewer_their_own_names(played: Played) -> None:
    """Nothing else on its page depends on the viewer: nobody lost it, and no explanation has a name."""
    record = next(
        record
        for seed in range(1000)
        if (record := played_game("p0000079-1", "Team 1 v1", REFERENCE, seed)).result.winner is None
    )
    played.service.tournaments.stores[played.practice.id].add(record, 1)
    path = "/competitions/practice/games/p0000079-1"
    played.show("anonymous")
    for role, has_names in (("other", True), ("visitor", False), ("other", True)):
        assert ("Team 1 v1" in await played.world.page(role, path)) == has_names
    played.show("anonymous", students_see_names=False)
    for role, has_names in (("visitor", False), ("other", False), ("student", True)):
        assert ("Team 1 v1" in await played.world.page(role, path)) == has_names


async def test_a_team_does_not_see_its_opponents_name_any_more_in_a_game_that_it_lost(
    played: Played,
) -> None:
    for students_see_names in (True, False):
        played.show("anonymous", students_see_names=students_see_names)
        page = await played.world.page("student", LOST_BY_FAULT)
        assert ("Team 2 v1" in page) == students_see_names
        assert "Team 1 v1" in page


@pytest.mark.slow
async def test_a_student_without_the_permission_sees_only_the_names_of_the_own_team(played: Played) -> None:
    played.show("nobody", students_see_names=False)
    pages = await all_pages(played, "student")
    assert "Team 1 v1" in pages["/standings"]
    for path, page in pages.items():
        assert not re.search(r"Team[ _+]?2|student-2", page), path
    game = pages["/competitions/practice/games/p0000003-1"]
    assert f"{SECRET} Team 1 v1" in game


async def test_a_team_that_the_title_of_a_tournament_names_is_hidden(played: Played) -> None:
    """The title is on the page of each team that takes part; its words are in the address, too."""
    played.show("anonymous", students_see_names=False)
    slug = free_slug("Cup of Team 2", set(), TEAMS.values())
    paths = ("/", "/bots/1", "/competitions", f"/competitions/{slug}", "/api/v1/competitions")
    with played.tournament(slug, "round-robin", BOTS, "Cup of Team 2"):
        for path in paths:
            async with played.world.browser("student") as browser:
                answer = await browser.get(path, headers=played.world.bearer("student"))
            assert slug in answer.text, path
            assert "Cup of" in answer.text, path
            assert not re.search(r"Team([ _+-]|%20)2", answer.text, re.IGNORECASE), path


async def test_pseudonyms_are_the_same_each_time_and_other_ones_in_each_competition(played: Played) -> None:
    played.show("anonymous")
    bots = re.compile(r'/competitions/\w+/bots/([^"#]+)"')
    async with played.world.browser() as browser:
        ladder = (await browser.get("/standings")).text
        played.world.site.views = ViewedCompetitions()  # as after a restart
        again = (await browser.get("/standings")).text
        cup = (await browser.get("/competitions/cup")).text
    hidden = set(bots.findall(ladder)) - {REFERENCE.replace(":", "_")}
    assert hidden == set(bots.findall(again)) - {REFERENCE.replace(":", "_")}
    assert len(hidden) == 2
    # Of 780 names one may be drawn twice; both of them are once in 300,000 runs.
    assert not hidden <= set(bots.findall(cup))


async def test_the_page_of_a_team_with_a_pseudonym_is_not_found(played: Played) -> None:
    played.show("anonymous", students_see_names=False)
    one, other = (f"/bots/{team.id}" for team in played.world.teams)
    async with played.world.browser() as browser:
        assert (await browser.get(one)).status_code == 404
    async with played.world.browser("student") as browser:
        assert (await browser.get(one)).status_code == 200
        assert (await browser.get(other)).status_code == 404


async def test_the_real_key_of_a_game_with_pseudonyms_is_not_found(played: Played) -> None:
    """The numbers of the key are indices of bots, whose order may be the roster's."""
    played.show("anonymous")
    summary = await played.service.tournaments.summary(played.cup.id)
    async with played.world.browser() as browser:
        page = (await browser.get("/competitions/cup/games")).text
        shown = set(re.findall(r'class="key" href="[^"]*/games/([^"]+)"', page))
        assert len(shown) == len(summary.kept)
        for game in summary.kept:
            if game.key not in shown:
                assert (await browser.get(f"/competitions/cup/games/{game.key}")).status_code == 404


async def test_the_page_of_a_game_with_pseudonyms_is_found_at_its_end(played: Played) -> None:
    """The live page links to it at once, and the summary with the keys is some seconds old."""
    played.show("anonymous")
    tournaments, cup = played.service.tournaments, played.cup.id
    known = await tournaments.summary(cup)
    record = replace(await tournaments.record(cup, known.kept[0].key), key="r002-1v2")
    channel = played.service.live.started("cup", Job(record.key, record.game, record.players, CONTROL))
    async with played.world.browser() as browser:
        assert (await browser.get("/competitions/cup")).status_code == 200
        (live,) = played.service.live.playing()
        view = await played.world.site.views.get(
            played.world.course, played.world.site.data, played.cup, Viewer(Visibility.ANONYMOUS), known
        )
        shown = view.names.key(live.key)
        await browser.text(f"/competitions/cup/games/{shown}", 404)
        tournaments.stores[cup].add(record, 2)
        tournaments.keep(cup, known)  # as if the summary were older than the game
        channel.ended(record)
        page = await browser.text(f"/competitions/cup/live/{shown}")
        (path,) = re.findall(r'href="(/competitions/cup/games/[^"]+)"', page)
        for part in ("", "/wire.txt", "/game.json"):
            assert not REAL.search(await browser.text(f"{path}{part}"))


async def test_the_verdict_of_a_live_game_does_not_name_a_bot_without_a_pseudonym(played: Played) -> None:
    """The game ends before there is a summary with the new bot."""
    played.show("anonymous")
    record = await played.service.tournaments.record(played.practice.id, "p0000003-1")
    players = (replace(record.players[0], name="Team 3 v1"), record.players[1])
    result = replace(record.result, detail=f"Team 3 v1 ran out of time against {players[1].name}")
    channel = played.service.live.started("practice", Job("p0000078-1", record.game, players, CONTROL))
    async with played.world.browser() as browser:
        assert (await browser.get("/standings")).status_code == 200  # the pseudonyms are cached from now on
        played.world.course.competitions.enter(played.practice.id, "Team 3 v1", None, "ladder:9")
        channel.ended(replace(record, key="p0000078-1", players=players, result=result))
        page = (await browser.get("/competitions/practice/live/p0000078-1")).text
        async with browser.stream("GET", "/competitions/practice/live/p0000078-1/events") as answer:
            events = "".join([text async for text in answer.aiter_text()])
    for text in (page, events):
        assert "The game is over." in text
        assert "Team 3" not in text
        assert not REAL.search(text)


async def test_a_bot_without_a_pseudonym_is_not_shown_by_its_name(played: Played) -> None:
    played.show("anonymous")
    tournaments, practice = played.service.tournaments, played.practice.id
    record = await tournaments.record(practice, "p0000003-1")
    newcomer = replace(record.players[0], name="Team 3 v1")
    known = await tournaments.summary(practice)
    tournaments.stores[practice].add(
        replace(record, key="p0000077-1", players=(newcomer, record.players[1])), 1
    )
    tournaments.keep(practice, known)  # as if the summary were older than the game
    async with played.world.browser() as browser:
        answer = await browser.get("/competitions/practice/games/p0000077-1")
    assert answer.status_code == 404
    assert "Team 3" not in answer.text
