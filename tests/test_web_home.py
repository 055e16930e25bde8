"""The first page, and the parts of it that need no browser."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.web_played import Played, fail, open_played, visitors_see
from tests.web_site import NOW


@pytest.fixture
def played(tmp_path: Path) -> Iterator[Played]:
    with open_played(tmp_path) as found:
        yield found


async def test_it_shows_the_ladder_and_the_latest_games(played: Played) -> None:
    async with played.world.browser("student") as browser:
        page = (await browser.get("/")).text
    assert page.count("/competitions/practice/bots/") >= 3
    assert "yours" in page
    assert "reference" in page
    assert "/competitions/practice/games/p0000006-1" in page
    assert "Cup of Team 1" in page
    assert "On the ladder" in page


async def test_visitors_are_led_to_sign_in_as_long_as_nothing_is_public(played: Played) -> None:
    async with played.world.browser() as browser:
        answer = await browser.get("/")
    assert answer.status_code == 303
    assert answer.headers["location"].startswith("/sign-in")


async def test_a_visitor_sees_nothing_of_any_team_of_their_own(played: Played) -> None:
    visitors_see(played, "named")
    async with played.world.browser() as browser:
        page = (await browser.get("/")).text
    assert "Your bot" not in page
    assert "yours" not in page


async def test_a_student_sees_that_the_newest_version_failed_and_what_plays(played: Played) -> None:
    team, student = played.world.teams[0], played.world.accounts["student"]
    version, _ = played.world.course.versions.add(team.id, "c" * 64, 1, 9, student.id, "page", NOW)
    fail(played.world, version)
    async with played.world.browser("student") as browser:
        page = (await browser.get("/")).text
    assert "Version 2 did not qualify" in page
    assert f'href="/my/versions/{version.id}"' in page
    assert ">Version 1</a> plays" in page


async def test_a_student_without_a_bot_is_told_where_to_begin(played: Played) -> None:
    course = played.world.course
    team = course.teams.add("Team 3", NOW)
    course.accounts.move(played.world.accounts["student"].id, team.id)
    async with played.world.browser("student") as browser:
        page = (await browser.get("/")).text
    assert "Your team has no bot yet" in page


async def test_before_anything_happened(tmp_path: Path) -> None:
    with open_played(tmp_path, pairs=0) as played:
        async with played.world.browser("student") as browser:
            page = await browser.get("/")
    assert page.status_code == 200
    assert "No game is being played just now." in page.text
