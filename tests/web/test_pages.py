"""Pages of visitors and students: standings, tournaments, bots, games; and the caches behind them."""

import re
from collections.abc import Callable
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import pytest
import trio

from tests.support.courses import NOW
from tests.web.played_course import LOST_BY_FAULT, REFERENCE, SECRET, Played, open_played, played_game
from tournaments.course.model import CompetitionState
from tournaments.database.base import StoreError
from tournaments.results.game_summary import GameSummary
from tournaments.results.journal import Action, Entry
from tournaments.web.pages import competitions
from tournaments.web.views.competition_view import ViewedCompetitions, make_view
from tournaments.web.views.game_caches import MOST_READ, MoveTimes
from tournaments.web.views.names import Viewer, Visibility
from tournaments.web.views.table_rows import rungs

CUP = "/competitions/cup"
GAMES = "/competitions/practice/games"
ENTRY = Entry(Action.VOID, "r001-1v2", "the lights went out", 1, "2026-03-02T12:00:00+00:00")


@pytest.mark.parametrize(
    ("role", "path", "has", "lacks"),
    [
        (
            "student",
            "/",
            [
                "yours",
                "reference",
                f"{GAMES}/p0000006-1",
                "Cup of Team 1",
                "On the ladder: <strong>rank ",
                "/bots/Team_1_v1",
            ],
            [],
        ),
        ("visitor", "/", ["Team 1 v1"], ["Your bot", "yours"]),
        (
            "student",
            "/standings",
            ['class="cross"', 'class="chart"', 'id="faults"', "/practice/bots/Team_1_v1#vs-Team_2_v1"],
            [],
        ),
        (
            "student",
            CUP,
            [
                "Cup of Team 1",
                "6 of 6 games",
                f'href="{CUP}/games/r001-',
                *(
                    f'<section id="{part}">'
                    for part in ("standings", "cross", "ratings", "sides", "times", "faults")
                ),
            ],
            ["Rulings"],
        ),
        (
            "other",
            "/bots/1",
            [
                "version 1 plays",
                LOST_BY_FAULT,
                CUP,
                *(
                    f'id="{part}"'
                    for part in ("opponents", "faults", "times", "games", "versions", "tournaments")
                ),
            ],
            [],
        ),
        (
            "student",
            f"{CUP}/bots/Team_2_v1",
            ['id="vs-Team_1_v1"', 'href="/bots/2"', f"{CUP}/games?bot=Team%202%20v1"],
            [],
        ),
        (
            "student",
            "/references/ladder:1",
            ["reference player", "kalarena play . ladder:1", f"{GAMES}/p0000002-1"],
            [],
        ),
        # A game: the loser reads first what to do; nobody but its team reads a bot's standard error.
        (
            "student",
            LOST_BY_FAULT,
            [
                "What to do:",
                'href="/faults#no-such-pit"',
                f"{SECRET} Team 1 v1",
                f"{LOST_BY_FAULT}/stderr/1",
                f'rel="prev" href="{GAMES}/p0000002-1"',
                f'rel="next" href="{GAMES}/p0000004-1"',
            ],
            [f"{SECRET} Team 2 v1", f"{LOST_BY_FAULT}/stderr/2", "the-lecturers-machine", "/opt/python"],
        ),
        ("student", f"{GAMES}/p0000001-1", [], ['rel="prev"']),
        ("other", LOST_BY_FAULT, [f"{SECRET} Team 2 v1"], ["Why you lost", f"{SECRET} Team 1 v1"]),
        (
            "lecturer",
            LOST_BY_FAULT,
            [f"{SECRET} Team 1 v1", f"{SECRET} Team 2 v1", "the-lecturers-machine"],
            [],
        ),
        *(
            ("visitor", path, ["Team 2 v1"], [SECRET, "the-lecturers-machine", "/opt/python"])
            for path in (
                LOST_BY_FAULT,
                f"{GAMES}/p0000001-1",
                f"{LOST_BY_FAULT}/wire.txt",
                f"{LOST_BY_FAULT}/game.json",
            )
        ),
        ("student", f"{GAMES}?bot=made-up", ["No game matches."], []),
        *(
            ("student", f"{GAMES}?page={page}", ['class="key"'], [])
            for page in ("0", "-1", "x", "%C2%B2", "9" * 30, "1000")
        ),
    ],
)
async def test_a_page_has_its_parts(
    played: Played, role: str, path: str, has: list[str], lacks: list[str]
) -> None:
    played.show("named")
    page = await played.world.page(role, path)
    assert [text for text in has if text not in page] == []
    assert [text for text in lacks if text in page] == []


async def test_the_advice_comes_before_the_replay(played: Played) -> None:
    page = await played.world.page("student", LOST_BY_FAULT)
    assert page.index("Why you lost") < page.index('class="replay-columns"')


async def test_addresses_without_an_object_and_redirections(played: Played) -> None:
    async with played.world.browser("student") as browser:
        for path in (
            "/references/rm%20-rf",
            "/bots/999",
            "/competitions/none",
            "/competitions/none/games",
            f"{CUP}/bots/x",
            f"{CUP}/games/x",
            f"{LOST_BY_FAULT}/stderr/3",
        ):
            await browser.text(path, 404)
        answer = await browser.get("/competitions/practice")
        assert (answer.status_code, answer.headers["location"]) == (303, "/standings")
    async with played.world.browser() as browser:
        answer = await browser.get("/")
        assert (answer.status_code, answer.headers["location"]) == (303, "/sign-in")


async def test_before_the_first_game(tmp_path: Path) -> None:
    with open_played(tmp_path, pairs=0) as played:
        assert "No game is being played just now." in await played.world.page("student", "/")
        page = await played.world.page("student", "/standings")
    assert "Team 1 v1" in page
    assert 'class="cross"' not in page


async def test_a_ladder_of_many_bots_has_no_cross_table(
    played: Played, monkeypatch: pytest.MonkeyPatch
) -> None:
    for most, has_cross_table in ((3, True), (2, False)):
        monkeypatch.setattr(competitions, "MOST_IN_CROSS_TABLE", most)
        page = await played.world.page("student", "/standings")
        assert ('class="cross' in page) == has_cross_table
        assert ("no cross table of more than 2 bots" in page) == (not has_cross_table)
    bot = await played.world.page("student", "/competitions/practice/bots/Team_1_v1")
    assert "Team 2 v1" in bot.partition('id="opponents"')[2].partition("</section>")[0]


async def test_a_course_without_a_practice_ladder(played: Played, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(played.world.course.competitions, "all", lambda: [played.cup])
    for path in ("/", "/standings"):
        page = await played.world.page("lecturer", path)
        assert "Team 2 v1" not in page
        assert "</html>" in page


@pytest.mark.parametrize(("is_ours", "status"), [(True, 503), (False, 404)])
async def test_a_game_that_cannot_be_read_is_not_said_to_be_missing(
    played: Played, monkeypatch: pytest.MonkeyPatch, is_ours: bool, status: int
) -> None:
    async def fail(*_: object) -> None:
        raise StoreError("results.db: disk I/O error", is_ours=is_ours)

    monkeypatch.setattr(played.service.tournaments, "record", fail)
    played.show("named")
    for path in (LOST_BY_FAULT, "/embed/practice/p0000003-1"):
        await played.world.page("lecturer", path, status)


async def test_pages_follow_the_versions_of_a_team(played: Played) -> None:
    world = played.world
    failed = played.fail(played.add_version("a" * 64))
    page = await world.page("student", "/")
    assert "Version 2 did not qualify" in page
    assert f'href="/my/versions/{failed.id}"' in page
    assert ">Version 1</a> plays" in page
    waiting = played.add_version("b" * 64)
    own, others = await world.page("student", "/bots/1"), await world.page("other", "/bots/1")
    assert ("version 3" in own, "/my/versions/" in own) == (True, True)
    assert ("version 2" in others, "version 3" in others, "/my/versions/" in others) == (True, False, False)
    played.qualify(waiting)
    page = await world.page("student", "/bots/1")
    assert "version 3 plays" in page
    assert "about to begin" in page


async def test_a_game_of_a_replaced_version_stays(played: Played) -> None:
    played.service.tournaments.practice[played.practice.id].remove("Team 1 v1")
    page = await played.world.page("student", LOST_BY_FAULT)
    assert "Why you lost" in page
    assert 'href="/bots/1"' in page


async def test_a_student_without_a_bot_sees_where_to_begin(played: Played) -> None:
    course = played.world.course
    course.accounts.move(played.world.accounts["student"].id, course.teams.add("Team 3", NOW).id)
    assert "Your team has no bot yet" in await played.world.page("student", "/")


def add_games(played: Played, count: int) -> None:
    """Add practice games of both teams, with keys from p0000000-1 on."""
    record = played_game("k", "Team 1 v1", "Team 2 v1", 1)
    store = played.service.tournaments.stores[played.practice.id]
    for number in range(count):
        store.add(replace(record, key=f"p{number:07d}-1"), 1)


async def test_a_team_page_lists_the_newest_games_against_each_bot(tmp_path: Path) -> None:
    with open_played(tmp_path, pairs=0) as played:
        add_games(played, 52)
        page = await played.world.page("student", "/bots/1")
    (row,) = re.findall(r"<tr id=.*?>Team 2 v1<.*?</tr>", page)
    assert row.count('class="chip ') == 50
    assert "and 2 before" in row


async def test_hostile_lines_stay_text(played: Played) -> None:
    hostile = "<img src=x onerror=alert(1)>"
    record = played_game("p0000099-1", "Team 1 v1", "Team 2 v1", 1, illegal_after=6)
    result = replace(record.result, detail=f"Team 1 v1 (South) lost: {hostile}", note=hostile)
    record = replace(record, result=result, stderr=(hostile, hostile))
    played.service.tournaments.stores[played.practice.id].add(record, 1)
    page = await played.world.page("lecturer", f"{GAMES}/p0000099-1")
    assert "<img" not in page
    assert "&lt;img src=x" in page


async def test_the_files_of_a_game(played: Played) -> None:
    async with played.world.browser("student") as browser:
        game = (await browser.get(f"{LOST_BY_FAULT}/game.json")).json()
        assert (game["fault"], "stderr" in game) == ("no-such-pit", False)
        assert "MOVE;99" in await browser.text(f"{LOST_BY_FAULT}/wire.txt")
        assert await browser.text(f"{LOST_BY_FAULT}/stderr/1") == f"{SECRET} Team 1 v1\n"
        await browser.text(f"{LOST_BY_FAULT}/stderr/2", 403)


async def test_games_are_filtered_by_bot_and_end(played: Played) -> None:
    assert (await played.world.page("student", GAMES)).count('class="key"') == 6
    page = await played.world.page("student", f"{GAMES}?bot=Team+1+v1&outcome=lost&end=any+fault")
    keys = re.findall(r'class="key" href="[^"]*/(p\d+-1)"', page)
    assert keys
    for key in keys:
        record = await played.service.tournaments.record(played.practice.id, key)
        assert record.result.fault is not None
        assert record.result.winner is not None
        assert record.players[1 - record.result.winner].name == "Team 1 v1"


async def test_pages_of_games_have_each_game_once_the_newest_first(tmp_path: Path) -> None:
    with open_played(tmp_path, pairs=0) as played:
        add_games(played, 101)
        pages = [
            re.findall(
                r'class="key" href="[^"]*/(p\d+-1)"', await played.world.page("student", f"{GAMES}?page={n}")
            )
            for n in (1, 2)
        ]
    assert [*pages[0], *pages[1]] == [f"p{number:07d}-1" for number in reversed(range(101))]
    assert len(pages[1]) == 1


async def test_a_ruling_and_the_head_of_the_chain_show_at_once(played: Played) -> None:
    store = played.service.tournaments.stores[played.cup.id]
    before = store.head()
    assert before is not None
    assert f"<code>{before.digest}</code> (entry 7)" in await played.world.page("student", CUP)
    store.note(ENTRY)
    head = store.head()
    assert head is not None
    page = await played.world.page("student", CUP)
    for text in ("the lights went out", "set aside", f"<code>{head.digest}</code> (entry 8)"):
        assert text in page
    played.show("anonymous")
    async with played.world.browser() as browser:
        answer = (await browser.get("/api/v1/competitions/cup")).json()
    assert (answer["head"], answer["head_number"]) == (head.digest, 8)


async def test_why_a_tournament_failed_is_for_lecturers(played: Played) -> None:
    """The reason may be the output of a team's build, or have paths of the server."""
    played.show("named")
    competitions = played.world.course.competitions
    competitions.set_state(played.cup.id, CompetitionState.FAILED, "Team 2 v1: cc: bot.c:3: secret", NOW)
    assert "bot.c:3" in await played.world.page("lecturer", CUP)
    for role in ("student", "visitor"):
        page = await played.world.page(role, CUP)
        assert "bot.c:3" not in page
        assert "the lecturer can see the reason" in page


@pytest.mark.slow
async def test_every_link_leads_to_a_page(played: Played) -> None:
    seen: dict[str, int] = {}
    async with played.world.browser("student") as browser:
        waiting = {"/", "/faults"}
        while waiting:
            path = waiting.pop()
            answer = await browser.get(path)
            seen[path] = answer.status_code
            if "text/html" in answer.headers.get("content-type", ""):
                links = re.findall(r'(?:href|src)="(/[^"#]*)', answer.text)
                waiting |= {unescape(link) for link in links} - set(seen)
    assert {path: status for path, status in seen.items() if status not in (200, 303)} == {}
    assert len(seen) > 30


# Rows and caches.


async def test_the_ladder_is_ordered_by_rating(played: Played) -> None:
    summary = await played.service.tournaments.summary(played.practice.id)
    viewer = Viewer(Visibility.NAMED)
    shown = make_view(played.world.course, played.world.site.data, played.practice, viewer, summary)
    found = rungs(shown, played.world.teams[0].id)
    assert {rung.name for rung in found} == {"Team 1 v1", "Team 2 v1", REFERENCE}
    assert [rung.name for rung in found if rung.is_own] == ["Team 1 v1"]
    assert [rung.name for rung in found if rung.is_reference] == [REFERENCE]
    assert all(rung.games == rung.wins + rung.draws + rung.losses == 4 for rung in found)
    ratings = [line.rating.value for line in shown.view.table if line.rating is not None]
    assert ratings == sorted(ratings, reverse=True)
    hidden = make_view(
        played.world.course, played.world.site.data, played.practice, Viewer(Visibility.ANONYMOUS), summary
    )
    assert hidden.view.summary.ratings is summary.ratings  # which take longest, and are computed once


async def test_a_view_is_cached_for_each_viewer_until_a_game_ends(played: Played) -> None:
    views, named = ViewedCompetitions(), Viewer(Visibility.NAMED)
    tournaments, course, data = played.service.tournaments, played.world.course, played.world.site.data
    summary = await tournaments.summary(played.practice.id)
    first = await views.get(course, data, played.practice, named, summary)
    assert await views.get(course, data, played.practice, named, summary) is first
    hidden = await views.get(course, data, played.practice, Viewer(Visibility.ANONYMOUS), summary)
    assert hidden is not first
    tournaments.stores[played.practice.id].add(played_game("p0000050-1", "Team 1 v1", "Team 2 v1", 50), 1)
    summary = await tournaments.summary(played.practice.id)
    second = await views.get(course, data, played.practice, named, summary)
    assert len(second.view.kept) == len(first.view.kept) + 1


async def test_games_are_renamed_once_for_each_viewer_until_the_names_change(played: Played) -> None:
    views, viewer = ViewedCompetitions(), Viewer(Visibility.ANONYMOUS)
    tournaments, course, data = played.service.tournaments, played.world.course, played.world.site.data

    async def shown() -> tuple[list[GameSummary], list[GameSummary]]:
        summary = await tournaments.summary(played.practice.id)
        cached = await views.get(course, data, played.practice, viewer, summary)
        made = make_view(course, data, played.practice, viewer, summary)
        return list(cached.view.kept), list(made.view.kept)

    first, _ = await shown()
    tournaments.stores[played.practice.id].add(played_game("p0000060-1", "Team 1 v1", "Team 2 v1", 60), 1)
    second, made = await shown()
    assert second == made
    assert len(second) == len(first) + 1
    assert {id(game) for game in first} < {id(game) for game in second}
    word = max(re.findall(r"\w+", first[0].detail), key=len)
    course.competitions.enter(played.practice.id, word, None, "greedy")
    tournaments.stores[played.practice.id].add(played_game("p0000061-1", "Team 1 v1", "Team 2 v1", 61), 1)
    third, made = await shown()
    assert third == made


async def test_move_times_are_read_once_and_of_the_newest_games() -> None:
    class Records:
        def __init__(self) -> None:
            self.keys: list[str] = []

        def record(self, key: str) -> object:
            self.keys.append(key)
            if key == "g0":
                raise StoreError("damaged")
            return replace(played_game("k", "one", "two", 1), key=key)

        async def read(self, competition_id: int, work: Callable[[Any], Any]) -> Any:
            await trio.lowlevel.checkpoint()
            return work(self)

    records, times = Records(), MoveTimes()
    assert set(await times.get(records, 1, ["g0", "g1"])) == {"g1"}
    async with trio.open_nursery() as pages:
        for _ in range(2):
            pages.start_soon(times.get, records, 1, ["g1", "g2"])
    assert records.keys == ["g0", "g1", "g2"]
    many = [f"h{number}" for number in range(MOST_READ + 5)]
    assert set(await times.get(records, 2, many)) == set(many[-MOST_READ:])
