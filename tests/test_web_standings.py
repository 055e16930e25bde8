"""Standings, tournaments, and what is kept of them between requests."""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import trio

from tests.web_played import REFERENCE, Played, open_played, played_game, visitors_see
from tournaments.course.model import CompetitionState
from tournaments.database.base import StoreError
from tournaments.results.journal import Action, Entry
from tournaments.web.views.competition_view import ViewedCompetitions, make_view
from tournaments.web.views.game_caches import MOST_READ, MoveTimes
from tournaments.web.views.names import Viewer, Visibility
from tournaments.web.views.table_rows import rungs


@pytest.fixture
def played(tmp_path: Path) -> Iterator[Played]:
    with open_played(tmp_path) as found:
        yield found


async def get(played: Played, role: str, path: str) -> str:
    async with played.world.browser(role) as browser:
        answer = await browser.get(path)
    assert answer.status_code == 200, answer.text
    return answer.text


async def test_the_ladder_has_everybody_by_rating_with_its_interval(played: Played) -> None:
    summary = await played.service.contests.summary(played.practice.id)
    data = played.world.site.data
    shown = make_view(played.world.course, data, played.practice, Viewer(Visibility.NAMED), summary)
    found = rungs(shown, played.world.teams[0].id)
    assert [rung.place for rung in found] == sorted(rung.place for rung in found)
    assert {rung.name for rung in found} == {"Team 1 v1", "Team 2 v1", REFERENCE}
    assert [rung.name for rung in found if rung.is_own] == ["Team 1 v1"]
    assert [rung.name for rung in found if rung.is_reference] == [REFERENCE]
    for rung in found:
        assert rung.games == rung.wins + rung.draws + rung.losses == 4
    ratings = [line.rating.value for line in shown.view.table if line.rating is not None]
    assert ratings == sorted(ratings, reverse=True)


async def test_the_page_has_cross_table_chart_and_faults(played: Played) -> None:
    page = await get(played, "student", "/standings")
    assert 'class="cross"' in page
    assert 'class="chart"' in page
    assert 'id="faults"' in page
    assert "/competitions/practice/bots/Team_1_v1#vs-Team_2_v1" in page


async def test_before_the_first_game(tmp_path: Path) -> None:
    with open_played(tmp_path, pairs=0) as played:
        page = await get(played, "student", "/standings")
    assert "Team 1 v1" in page
    assert 'class="cross"' not in page


async def test_a_tournament_s_page(played: Played) -> None:
    page = await get(played, "student", "/competitions/cup")
    assert "Cup of Team 1" in page
    assert "6 of 6 games" in page
    for part in ("standings", "cross", "ratings", "sides", "times", "faults"):
        assert f'<section id="{part}">' in page, part
    assert 'href="/competitions/cup/games/r001-' in page


async def test_a_tournament_s_page_and_the_api_have_the_head_of_its_chain(played: Played) -> None:
    store = played.service.contests.stores[played.cup.id]
    before = store.head()
    assert before is not None
    assert f"<code>{before.digest}</code> (entry 7)" in await get(played, "student", "/competitions/cup")
    store.note(Entry(Action.VOID, store.games()[0].key, "why", 1, "2026-03-02T12:00:00+00:00"))
    page = await get(played, "student", "/competitions/cup")
    head = store.head()
    assert head is not None
    assert f"<code>{head.digest}</code> (entry 8)" in page
    visitors_see(played, "anonymous")
    async with played.world.browser() as browser:
        answer = (await browser.get("/api/v1/competitions/cup")).json()
    assert (answer["head"], answer["head_number"]) == (head.digest, 8)


async def test_the_practice_ladder_s_page_is_the_standings(played: Played) -> None:
    async with played.world.browser("student") as browser:
        answer = await browser.get("/competitions/practice")
    assert (answer.status_code, answer.headers["location"]) == (303, "/standings")


async def test_a_tournament_that_cannot_go_on_says_why(played: Played) -> None:
    course, now = played.world.course, played.world.clock()
    course.competitions.set_state(played.cup.id, CompetitionState.FAILED, "no sandbox for Team 1 v1", now)
    assert "no sandbox for Team 1 v1" in await get(played, "lecturer", "/competitions/cup")
    assert "the lecturer can see the reason" in await get(played, "student", "/competitions/cup")


async def test_a_ruling_shows_at_once(played: Played) -> None:
    before = await get(played, "student", "/competitions/cup")
    assert "Rulings" not in before
    store = played.service.contests.stores[played.cup.id]
    entry = Entry(Action.VOID, store.games()[0].key, "the lights went out", 1, "2026-03-02T12:00:00+00:00")
    store.note(entry)
    page = await get(played, "student", "/competitions/cup")
    assert "the lights went out" in page
    assert "set aside" in page


@pytest.mark.parametrize(
    "path",
    [
        "/competitions/none",
        "/competitions/none/games",
        "/competitions/cup/bots/x",
        "/competitions/cup/games/x",
    ],
)
async def test_what_is_not_there(played: Played, path: str) -> None:
    async with played.world.browser("student") as browser:
        assert (await browser.get(path)).status_code == 404


# What is kept.


async def test_what_was_made_is_kept_as_long_as_nothing_changed(played: Played) -> None:
    views, viewer = ViewedCompetitions(), Viewer(Visibility.NAMED)
    contests, course = played.service.contests, played.world.course
    data = played.world.site.data
    summary = await contests.summary(played.practice.id)
    first = await views.get(course, data, played.practice, viewer, summary)
    assert await views.get(course, data, played.practice, viewer, summary) is first
    hidden = await views.get(course, data, played.practice, Viewer(Visibility.ANONYMOUS), summary)
    assert hidden is not first
    record = played_game("p0000050-1", "Team 1 v1", "Team 2 v1", 50)
    contests.stores[played.practice.id].add(record, 1)
    summary = await contests.summary(played.practice.id)
    second = await views.get(course, data, played.practice, viewer, summary)
    assert len(second.view.kept) == len(first.view.kept) + 1


async def test_ratings_are_not_computed_again_for_each_kind_of_viewer(played: Played) -> None:
    summary = await played.service.contests.summary(played.practice.id)
    data = played.world.site.data
    shown = make_view(played.world.course, data, played.practice, Viewer(Visibility.ANONYMOUS), summary)
    assert shown.view.summary is not summary
    assert shown.view.summary.ratings is summary.ratings


async def test_times_are_read_once_and_of_the_newest_games() -> None:
    class Records:
        def __init__(self) -> None:
            self.asked: list[str] = []

        async def record(self, competition_id: int, key: str) -> object:
            await trio.lowlevel.checkpoint()
            self.asked.append(key)
            if key == "g0":
                raise StoreError("damaged")
            return replace(played_game("k", "one", "two", 1), key=key)

    records, times = Records(), MoveTimes()
    found = await times.get(records, 1, ["g0", "g1"])  # type: ignore[arg-type]
    assert set(found) == {"g1"}
    await times.get(records, 1, ["g1"])  # type: ignore[arg-type]
    assert records.asked == ["g0", "g1"]
    many = [f"h{number}" for number in range(MOST_READ + 5)]
    assert set(await times.get(records, 2, many)) == set(many[-MOST_READ:])  # type: ignore[arg-type]


def test_links_between_pages_hold(played: Played) -> None:
    """Every link of the pages of visitors and students leads somewhere."""
    seen: dict[str, int] = {}

    async def walk() -> None:
        async with played.world.browser("student") as browser:
            waiting = {"/", "/faults"}
            while waiting:
                path = waiting.pop()
                answer = await browser.get(path)
                seen[path] = answer.status_code
                if "text/html" in answer.headers.get("content-type", ""):
                    found = re.findall(r'(?:href|src)="(/[^"#]*)', answer.text)
                    waiting |= {link.replace("&amp;", "&") for link in found} - set(seen)

    trio.run(walk)
    assert {path: status for path, status in seen.items() if status not in (200, 303)} == {}
    assert len(seen) > 30
