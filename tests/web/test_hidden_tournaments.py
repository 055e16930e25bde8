"""Drafts, hidden, cancelled and deleted tournaments: their pages, and who may know of them."""

import re

import pytest

from tests.support.courses import NOW
from tests.web.played_course import Played
from tests.web.test_lecturer import CUP, main_of, sent
from tournaments.course.model import CompetitionState

READERS = ("student", "other", "visitor")
PATHS = (
    "/competitions/cup",
    "/competitions/cup/games",
    "/api/v1/competitions/cup",
)
LISTS = ("/", "/competitions", "/api/v1/competitions", "/bots/1")


async def seen_by(played: Played, role: str) -> set[str]:
    """Return the pages that show the cup to somebody."""
    world = played.world
    world.course.settings.change(standings_for="named")
    found = set()
    async with world.browser(role) as browser:
        token = {} if role == "visitor" else {"authorization": f"Bearer {world.token(role)}"}
        for path in (*PATHS, *LISTS):
            is_api = path.startswith("/api/")
            answer = await browser.get(path, headers=token if is_api else {})
            assert answer.status_code in (200, 404), (path, answer.status_code)
            names_it = '"cup"' if is_api else "/competitions/cup"
            if answer.status_code == 200 and (path in PATHS or names_it in answer.text):
                found.add(path)
    return found


@pytest.mark.parametrize("how", ["hidden", "deleted"])
async def test_who_sees_a_tournament(played: Played, how: str) -> None:
    competitions = played.world.course.competitions
    cup = competitions.by_slug("cup")
    assert cup is not None
    for role in (*READERS, "lecturer"):
        assert {"/competitions/cup", "/competitions", "/api/v1/competitions"} <= await seen_by(played, role)
    if how == "hidden":
        competitions.set_hidden(cup.id, True)
    else:
        for state in (CompetitionState.PAUSED, CompetitionState.DELETED):
            competitions.set_state(cup.id, state, "", NOW)
    for role in READERS:
        assert await seen_by(played, role) == set(), role
    assert bool(await seen_by(played, "lecturer")) is (how == "hidden")
    assert played.service.tournaments.stores[cup.id].played()  # its games stay
    async with played.world.browser("lecturer") as browser:
        assert (await browser.get(CUP)).status_code == (200 if how == "hidden" else 404)
        listed = await browser.text("/teach/tournaments")
        assert ("/teach/tournaments/cup" in listed) is (how == "hidden")


async def test_the_buttons_of_a_tournament(played: Played) -> None:
    competitions = played.world.course.competitions
    cup = competitions.by_slug("cup")
    assert cup is not None
    asked = played.service.tournaments.requests
    async with played.world.browser("lecturer") as browser:
        for action in ("publish", "cancel", "hide", "show", "delete"):
            await sent(browser, f"{CUP}/{action}")
            assert asked[-1] == (action, cup.id)
        competitions.set_hidden(cup.id, True)
        page = await browser.text(CUP)
        assert "It is hidden from students and visitors." in page
        assert "Show to students" in page
        assert "Hide from students" not in page


async def test_the_form_of_a_copy(played: Played) -> None:
    """It has the choices of the earlier tournament, and the bots of today."""
    made = []

    async def create_tournament(spec: object, by: object, *, draft: bool) -> object:
        made.append((spec, draft))
        return played.world.course.competitions.by_slug("cup")

    fixed = {
        "chosen": {
            "title": "Midterm",
            "game": "kalah(3,2)",
            "format": {"kind": "swiss", "pairs": 2},
            "rounds": 4,
            "seed": 7,
            "time": {"move_s": 2.5},
            "bots": [1, 2],
            "references": ["greedy", "random:1"],
            "openings": {"plies": 3, "seed": 7},
        },
        "field": [],
        "limits": {},
        "sandbox": "off",
    }
    world = played.world
    kind = world.course.competitions.by_slug("cup").kind  # type: ignore[union-attr]
    world.course.competitions.add("midterm", "Midterm", kind, fixed, None, NOW)
    played.service.tournaments.create_tournament = create_tournament  # type: ignore[attr-defined]
    async with world.browser("lecturer") as browser:
        answer = await browser.get("/teach/tournaments/new?copy=midterm")
        assert answer.status_code == 200
        for value in ('value="Midterm (copy)"', 'value="4"', 'value="7"', 'value="random:1"', 'value="2.5"'):
            assert value in answer.text, value
        assert re.search(r'name="player\.greedy" value="true" checked', answer.text)
        assert (await browser.get("/teach/tournaments/new?copy=nothing")).status_code == 404
        fields = {"title": "Next", "format": "round-robin", "rounds": "1", "game": "kalah(3,2)", "seed": "1"}
        fields |= {"time.move_s": "1", "bots": "current", "references": "greedy random:1", "do": "draft"}
        answer = await sent(browser, "/teach/tournaments/new", **fields)
        assert "saved" not in main_of(answer)
    ((spec, draft),) = made
    assert (draft, getattr(spec, "title", "")) == (True, "Next")
