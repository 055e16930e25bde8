"""Challenges on the site: forms, lists, games that only both teams see, and the HTTP API."""

import json
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio

from tests.server.harness import until
from tests.web.played_course import LOST_BY_FAULT, SECRET, Played, played_game
from tests.web.site import DOMAIN, World
from tournaments.course.model import Challenge, ChallengeState, Role
from tournaments.course.settings import Settings
from tournaments.database.base import StoreError
from tournaments.results.store import Store
from tournaments.web.api.remote import NOT_ADMITTED
from tournaments.web.http import sse

HERE = "/my/challenges"
LIMIT_S = 120


async def challenge(
    played: Played, role: str = "student", opponent: str = "Team 2", pairs: int = 1
) -> Challenge:
    """Challenge a bot by the form on the page My bot."""
    async with played.world.browser(role) as browser:
        answer = await browser.submit("/my", {"opponent": opponent, "pairs": str(pairs)}, to=HERE)
    assert (answer.status_code, answer.headers.get("location")) == (303, HERE), answer.text
    (newest, *_) = played.world.course.challenges.unfinished()[::-1]
    return newest


def play(played: Played, found: Challenge) -> None:
    """Let both games of a challenge be played: the team that challenged loses the first one by a fault."""
    world = played.world
    competition = world.course.competitions.get(found.competition_id)
    assert competition is not None
    names = found.bot_name, found.opponent_name
    location = played.service.database.competition(competition.slug)
    with Store(location) as store:
        for leg, (first, second) in enumerate((names, names[::-1]), 1):
            record = played_game(f"c{found.id:07d}-01-{leg}", first, second, 3, 6 if leg == 1 else None)
            store.add(record, 1, f"c{found.id:07d}-01")
    played.service.tournaments.challenges[competition.id] = location
    world.course.challenges.begin(found.id)
    world.course.challenges.count(found.id, 1, 0, 1)
    world.course.challenges.end(found.id, ChallengeState.FINISHED, world.clock())


async def test_a_team_challenges_another_and_follows_the_games(played: Played) -> None:
    found = await challenge(played)
    assert (found.bot_name, found.opponent_name, found.pairs) == ("Team 1 v1", "Team 2 v1", 1)
    assert (found.state, found.origin) == (ChallengeState.WAITING, "page")
    waiting = await played.world.page("student", HERE)
    assert "0 of 2 games" in waiting
    assert "19 pairs left today" in waiting
    play(played, found)
    listed = await played.world.page("student", HERE)
    assert "finished" in listed
    games = "/competitions/challenges/games"
    assert f'href="{games}/c0000001-01-1"' in listed
    assert f'href="{games}/c0000001-01-1#why"' in listed
    page = await played.world.page("student", f"{games}/c0000001-01-1")
    assert "Why you lost" in page
    assert f'<a rel="next" href="{games}/c0000001-01-2">' in page
    assert f'href="{HERE}"' in page
    assert SECRET in await played.world.page("student", f"{games}/c0000001-01-1/stderr/1")


async def test_only_both_teams_and_lecturers_see_the_games(played: Played) -> None:
    played.show("named")
    world = played.world
    third = world.course.teams.add("Team 3", world.clock())
    world.accounts["third"] = world.course.accounts.add(
        "third", "Third", Role.STUDENT, third.id, world.clock()
    )
    play(played, await challenge(played))
    game = "/competitions/challenges/games/c0000001-01-1"
    for role, status in {"visitor": 404, "third": 404, "student": 200, "other": 200, "lecturer": 200}.items():
        for path in (game, f"{game}/wire.txt", f"{game}/game.json"):
            await world.page(role, path, status)
    await world.page("other", f"{game}/stderr/1", 403)
    assert SECRET in await world.page("other", f"{game}/stderr/2")
    for path in ("", "/games", "/bots/Team_1_v1", "/games/c0000001-01-1/live"):
        await world.page("lecturer", f"/competitions/challenges{path}", 404)
    for path in ("/competitions", "/api/v1/competitions", "/"):
        assert "challenges" not in (await world.page("visitor", path)).lower().replace("/my/challenges", "")
    received = await world.page("other", HERE)
    assert "Challenges to your bot" in received
    assert "Team 1 v1" in received
    await world.page("lecturer", LOST_BY_FAULT)


@pytest.mark.parametrize(
    ("path", "opponent"),
    [
        ("/bots/{other}", "Team 2"),
        ("/competitions/practice/bots/Team_2_v1", "Team 2"),
        ("/competitions/cup/bots/Team_2_v1", "Team 2"),
        ("/references/ladder:1", "ladder:1"),
        ("/bots/{own}", None),
        ("/references/ladder:2", None),  # no reference player of this course
    ],
)
async def test_each_page_of_a_bot_has_the_form(played: Played, path: str, opponent: str | None) -> None:
    own, other = (team.id for team in played.world.teams)
    page = await played.world.page("student", path.format(own=own, other=other))
    hidden = f'<input type="hidden" name="opponent" value="{opponent}">'
    assert (hidden in page, "Challenge this bot" in page) == (opponent is not None,) * 2
    for role in ("visitor", "lecturer"):
        played.show("named")
        assert "Challenge this bot" not in await played.world.page(role, path.format(own=own, other=other))


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"opponent": "Team 1", "pairs": "1"}, "There is no bot &#39;Team 1&#39; that you can challenge"),
        ({"opponent": "", "pairs": "1"}, "choose one of the list"),
        ({"opponent": "Team 2", "pairs": "11"}, "A challenge has from 1 to 10 pairs of games, not 11"),
        ({"opponent": "Team 2", "pairs": "many"}, "from 1 to 10 pairs of games, not 0"),
        ({"opponent": "Team 2"}, "from 1 to 10 pairs of games, not 0"),
        (
            {"opponent": "Team 2", "pairs": "1", "bot": "mybot"},
            "no remote bot &#39;mybot&#39; that is connected",
        ),
    ],
)
async def test_a_refused_challenge_has_a_reason(
    played: Played, fields: dict[str, str], complaint: str
) -> None:
    async with played.world.browser("student") as browser:
        answer = await browser.submit(HERE, fields)
    assert answer.status_code == 422
    assert complaint in answer.text
    assert played.world.course.challenges.unfinished() == []


async def test_a_refused_challenge_keeps_what_was_chosen(
    played: Played, monkeypatch: pytest.MonkeyPatch
) -> None:
    remotes = played.service.challenges.remotes
    monkeypatch.setattr(remotes, "names", lambda _team_id: ("here", "there"))
    fields = {"opponent": "ladder:1", "bot": "there", "pairs": "11"}
    async with played.world.browser("student") as browser:
        answer = await browser.submit(HERE, fields)
    assert answer.status_code == 422
    assert re.findall(r'<option value="([^"]*)" selected>', answer.text) == ["there", "ladder:1"]
    assert re.search(r'name="pairs"[^>]* value="11"', answer.text)


async def test_a_team_refuses_challenges_and_the_lecturer_all_of_them(played: Played) -> None:
    world, team = played.world, played.world.teams[1]
    async with world.browser("other") as browser:
        assert (await browser.submit(HERE, {"accepts": "no"}, to=f"{HERE}/consent")).status_code == 303
        assert "Other teams cannot challenge your bot" in await browser.text(HERE)
    assert not world.course.challenges.accepts(team.id)
    assert "Challenge this bot" not in await world.page("student", f"/bots/{team.id}")
    (event, *_) = world.course.journal.entries(1)
    assert (event.action, event.subject, event.detail) == (
        "challenge.consent",
        f"team {team.id}",
        {"accepts": False},
    )
    world.course.settings.change(challenges_with="nobody")
    assert "There are no challenges in this course" in await world.page("student", HERE)
    assert "Challenge" not in await world.page("student", "/references/ladder:1")


async def test_cancelling(played: Played) -> None:
    found = await challenge(played)
    async with played.world.browser("student") as browser:
        to = f"{HERE}/{found.id}/cancel"
        assert (await browser.submit(HERE, to=to)).status_code == 303
        assert "cancelled" in await browser.text(HERE)
        assert (await browser.submit(HERE, to=to)).status_code == 400


async def test_pseudonyms_are_those_of_the_practice_ladder(played: Played) -> None:
    played.show("anonymous", students_see_names=False)
    page = await played.world.page("student", HERE)
    assert "Team 2" not in page
    form = page[page.index('name="opponent"') :]
    names = [part.split('"')[0] for part in form.split('<option value="')[1:]]
    (other,) = [name for name in names if not name.startswith("ladder:")]
    play(played, await challenge(played, opponent=other))
    for path in (HERE, "/competitions/challenges/games/c0000001-01-1"):
        shown = await played.world.page("student", path)
        assert other in shown
        assert "Team 2" not in shown
    assert "Team 1" not in await played.world.page("other", "/competitions/challenges/games/c0000001-01-2")
    assert "Team 1" not in await played.world.page("other", HERE)


async def test_a_bot_of_a_tournament_does_not_have_its_pseudonym_of_the_ladder(played: Played) -> None:
    """Each competition has pseudonyms of its own, so that a tournament cannot be matched to the ladder."""
    played.show("anonymous", students_see_names=False)
    offered = {}
    async with played.world.browser("student") as browser:
        for slug, path in (("practice", "/standings"), ("cup", "/competitions/cup")):
            standings = await browser.text(path)
            bots = set(re.findall(rf'href="(/competitions/{slug}/bots/[^"#]+)"', standings))
            pages = [await browser.text(path) for path in bots]
            assert len(pages) == 3
            offered[slug] = sum("Challenge this bot" in page for page in pages)
    assert offered == {"practice": 2, "cup": 0}


async def test_without_a_practice_ladder_there_are_no_pseudonyms(
    played: Played, monkeypatch: pytest.MonkeyPatch
) -> None:
    played.show("anonymous", students_see_names=False)
    monkeypatch.setattr(played.world.course.competitions, "all", lambda: [played.cup])
    page = await played.world.page("student", HERE)
    assert re.findall(r'<option value="(?!ladder:)([^"]*)"', page[page.index('name="opponent"') :]) == []


async def test_scripts_challenge_with_the_api(played: Played) -> None:
    async with played.world.browser() as client:
        headers = played.world.bearer("student")

        async def ask(body: Any, status: int) -> Any:
            answer = await client.post("/api/v1/challenges", json=body, headers=headers)
            assert answer.status_code == status, answer.text
            return answer.json()

        async def get(path: str) -> Any:
            answer = await client.get(f"/api/v1/{path}", headers=headers)
            assert answer.status_code == 200, answer.text
            return answer.json()

        opponents = (await get("opponents"))["opponents"]
        assert [one["name"] for one in opponents] == [
            "ladder:1",
            "ladder:3",
            "ladder:5",
            "ladder:7",
            "Team 2",
        ]
        assert [one["kind"] for one in opponents] == ["reference"] * 4 + ["team"]
        made = (await ask({"opponent": "Team 2"}, 201))["challenge"]
        assert (made["state"], made["is_over"], made["results"]) == ("waiting", False, [])
        assert "no bot" in (await ask({"opponent": "Team 9"}, 400))["error"]
        assert "pairs" in (await ask({"opponent": "Team 2", "pairs": 99}, 400))["error"]
        play(played, played.world.course.challenges.unfinished()[0])
        over = (await get(f"challenges/{made['id']}"))["challenge"]
        assert (over["state"], over["is_over"], over["wins"], over["losses"]) == ("finished", True, 1, 1)
        first = over["results"][0]
        assert (first["outcome"], first["winner"], first["fault"]) == ("lost", "Team 2 v1", "no-such-pit")
        record = await get(f"competitions/{over['competition']}/games/{first['key']}")
        assert record["game"]["key"] == first["key"]
        assert [one["id"] for one in (await get("challenges"))["challenges"]] == [made["id"]]
        assert (await get(f"challenges?before={made['id']}"))["challenges"] == []
        waiting = (await ask({"opponent": "ladder:1", "pairs": 2}, 201))["challenge"]
        cancelled = await client.post(f"/api/v1/challenges/{waiting['id']}/cancel", headers=headers)
        assert cancelled.json()["challenge"]["state"] == "cancelled"
        again = await client.post(f"/api/v1/challenges/{waiting['id']}/cancel", headers=headers)
        assert (again.status_code, "over already" in again.json()["error"]) == (400, True)


async def test_scripts_list_challenges_in_parts(played: Played) -> None:
    async with played.world.browser() as client:
        answer = await client.get("/api/v1/challenges?limit=101", headers=played.world.bearer("student"))
    assert (answer.status_code, "limit= may be 100 at most" in answer.json()["error"]) == (400, True)


async def test_a_team_without_a_version_challenges_nobody(played: Played) -> None:
    world = played.world
    third = world.course.teams.add("Team 3", world.clock())
    world.accounts["third"] = world.course.accounts.add(
        "third", "Third", Role.STUDENT, third.id, world.clock()
    )
    complaint = "Your team has no version that plays: submit one first."
    async with world.browser("third") as browser:
        assert complaint in await browser.text(HERE)
        answer = await browser.submit("/account", {"opponent": "Team 2", "pairs": "1"}, to=HERE)
    assert (answer.status_code, complaint in answer.text) == (422, True)
    assert world.course.challenges.unfinished() == []


async def test_a_course_without_other_bots_has_nobody_to_challenge(played: Played) -> None:
    played.world.course.settings.change(references=[])
    played.world.course.challenges.set_consent(played.world.teams[1].id, False)
    assert "There is no bot that you could challenge yet." in await played.world.page("student", HERE)


# Connections of remote bots.


class HomeSocket:
    """The WebSocket of a remote bot, as an ASGI server sees it."""

    def __init__(self) -> None:
        self.received: list[dict[str, Any]] = []
        """Messages of the server."""
        self.closed: dict[str, Any] = {}
        """The event with which the server has ended the connection."""
        self.ended = trio.Event()
        self._events, self._waiting = trio.open_memory_channel[dict[str, Any]](9)
        self._events.send_nowait({"type": "websocket.connect"})
        self._events.send_nowait({"type": "websocket.receive", "text": '{"type": "hello"}'})

    async def receive(self) -> dict[str, Any]:
        return await self._waiting.receive()

    async def send(self, event: Any) -> None:
        await trio.lowlevel.checkpoint()
        if event["type"] == "websocket.send":
            self.received.append(json.loads(event["text"]))
        elif event["type"] == "websocket.close":
            self.closed = event
            self.ended.set()


@asynccontextmanager
async def connected(played: Played, name: str) -> AsyncIterator[HomeSocket]:
    """Connect a remote bot of Team 1 during the block."""
    home, token = HomeSocket(), played.world.token("student")
    headers = [(b"host", DOMAIN.encode()), (b"authorization", f"Bearer {token}".encode())]
    scope = {
        "type": "websocket",
        "path": "/api/v1/remote",
        "query_string": f"name={name}".encode(),
        "headers": headers,
        "client": ("192.0.2.1", 1),
        "subprotocols": [],
    }
    async with trio.open_nursery() as nursery:
        nursery.start_soon(played.world.app, scope, home.receive, home.send)
        yield home
        nursery.cancel_scope.cancel()


def revoke(world: World) -> None:
    world.course.tokens.revoke_all(world.accounts["student"].id)


def disable(world: World) -> None:
    world.course.accounts.set_disabled(world.accounts["student"].id, True)


def move(world: World) -> None:
    world.course.accounts.move(world.accounts["student"].id, world.teams[1].id)


@pytest.mark.parametrize("change", [revoke, disable, move])
async def test_a_remote_bot_is_connected_as_long_as_its_account_may(
    played: Played, monkeypatch: pytest.MonkeyPatch, change: Callable[[World], None]
) -> None:
    monkeypatch.setattr(sse, "RECHECK_S", 0.05)
    remotes = played.service.challenges.remotes
    async with connected(played, "home") as home:
        await until(lambda: home.received or home.closed)
        with trio.move_on_after(0.15):  # some checks that find the account unchanged
            await home.ended.wait()
        assert remotes.names(played.world.teams[0].id) == ["home"]
        assert home.received[0]["type"] == "welcome"
        change(played.world)
        with trio.fail_after(LIMIT_S):
            await home.ended.wait()
    assert (home.closed["code"], home.closed["reason"]) == (1008, NOT_ADMITTED)
    assert remotes.names(played.world.teams[0].id) == []


async def test_a_remote_bot_stays_connected_while_the_database_is_away(
    played: Played, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sse, "RECHECK_S", 0.05)

    def away(*_: Any) -> None:
        failures.append(None)
        raise StoreError("the database is away")

    failures: list[None] = []
    async with connected(played, "home") as home:
        await until(lambda: home.received or home.closed)
        monkeypatch.setattr(played.world.course.tokens, "find", away)
        await until(lambda: len(failures) > 1 or home.closed)
        assert not home.closed


async def test_a_remote_bot_is_connected_although_the_database_goes_away_just_then(
    played: Played, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = played.world.site
    settings = await site.settings()
    results = [settings]

    async def once() -> Settings:
        await trio.lowlevel.checkpoint()
        if not results:
            raise StoreError("the database is away", is_ours=True)
        return results.pop()

    monkeypatch.setattr(site, "settings", once)
    async with connected(played, "home") as home:
        await until(lambda: home.received or home.closed)
    assert home.received[0] == {"type": "welcome", "name": "home", "game": settings.game}


async def test_a_remote_bot_is_told_that_the_server_shuts_down(played: Played) -> None:
    async with connected(played, "home") as home:
        await until(lambda: home.received or home.closed)
        played.world.site.closing.set()
        with trio.fail_after(LIMIT_S):
            await home.ended.wait()
    assert (home.closed["code"], home.closed["reason"]) == (1001, "the server is shutting down")
