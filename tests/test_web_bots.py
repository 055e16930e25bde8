"""Pages of bots: a team's, one in a competition, a reference player."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.web_played import Played, fail, open_played, qualify
from tests.web_site import NOW
from tournaments.course.model import Version


@pytest.fixture
def played(tmp_path: Path) -> Iterator[Played]:
    with open_played(tmp_path) as found:
        yield found


async def get(played: Played, role: str, path: str) -> str:
    async with played.world.browser(role) as browser:
        answer = await browser.get(path)
    assert answer.status_code == 200, answer.text
    return answer.text


def another(played: Played, content: str) -> Version:
    team, student = played.world.teams[0], played.world.accounts["student"]
    return played.world.course.versions.add(team.id, content * 64, 1, 9, student.id, "page", NOW)[0]


async def test_a_team_s_page_has_versions_opponents_faults_times_and_tournaments(played: Played) -> None:
    page = await get(played, "other", f"/bots/{played.world.teams[0].id}")
    assert "version 1 plays" in page
    for part in ("opponents", "faults", "times", "games", "versions", "tournaments"):
        assert f'id="{part}"' in page, part
    assert "/competitions/practice/games/p0000003-1" in page
    assert "/competitions/cup" in page


async def test_others_see_only_versions_that_were_decided(played: Played) -> None:
    fail(played.world, another(played, "a"))
    another(played, "b")
    path = f"/bots/{played.world.teams[0].id}"
    own, others = await get(played, "student", path), await get(played, "other", path)
    assert "version 3" in own
    assert "version 3" not in others
    assert "version 2" in others
    assert "/my/versions/" in own
    assert "/my/versions/" not in others


async def test_a_new_version_s_games_are_about_to_begin(played: Played) -> None:
    qualify(played.world, another(played, "a"))
    page = await get(played, "student", f"/bots/{played.world.teams[0].id}")
    assert "version 2 plays" in page
    assert "about to begin" in page


async def test_a_bot_of_a_tournament(played: Played) -> None:
    page = await get(played, "student", "/competitions/cup/bots/Team_2_v1")
    assert 'id="vs-Team_1_v1"' in page
    assert f'href="/bots/{played.world.teams[1].id}"' in page
    assert "/competitions/cup/games?bot=Team%202%20v1" in page


async def test_a_reference_player(played: Played) -> None:
    page = await get(played, "student", "/references/ladder:1")
    assert "reference player" in page
    assert "kalarena play . ladder:1" in page
    assert "/competitions/practice/games/p0000002-1" in page
    async with played.world.browser("student") as browser:
        assert (await browser.get("/references/rm%20-rf")).status_code == 404
        assert (await browser.get("/bots/999")).status_code == 404


async def test_of_many_games_against_a_bot_the_newest_are_there(tmp_path: Path) -> None:
    with open_played(tmp_path, pairs=78) as played:
        (row,) = re.findall(r"<tr id=.*?>Team 2 v1<.*?</tr>", await get(played, "student", "/bots/1"))
    assert row.count('class="chip ') == 50
    assert "and 2 before" in row
