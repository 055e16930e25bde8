"""Pages of casual games: who may play, whose seat is whose, and what is refused."""

import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from referee.games.kalah import Kalah
from tests.web.played_course import Played, open_played
from tests.web.site import BROWSER, Browser
from tournaments.web.http.rate_limits import Rate, RateLimit
from tournaments.web.pages import play

JSON = {"accept": "application/json"}
AGAINST_A_PERSON = {"game": "kalah(4,3)", "opponent": "person", "side": "first"}


@pytest.fixture
def played(tmp_path: Path) -> Iterator[Played]:
    with open_played(tmp_path) as found:
        found.world.course.settings.change(game="kalah(4,3)", play_for="everybody", play_games=["kalamala"])
        yield found


async def begin(browser: Browser, **choices: str) -> str:
    """Begin a game and return the path of its page."""
    answer = await browser.submit("/play", AGAINST_A_PERSON | choices)
    assert answer.status_code == 303, answer.text
    path: str = answer.headers["location"]
    return path


async def act(browser: Browser, path: str, what: str, **fields: Any) -> httpx2.Response:
    return await browser.submit(path, fields, to=f"{path}/{what}", headers=JSON)


@asynccontextmanager
async def two_people(played: Played) -> AsyncIterator[tuple[Browser, Browser, str]]:
    """Yield the browsers of a student and of a visitor, and the path of the game that the student begins."""
    async with played.world.browser("student") as one, played.world.browser() as other:
        path = await begin(one, name="Ada")
        joined = await other.submit(path, {"name": "Bob"}, to=f"{path}/join")
        assert (joined.status_code, joined.headers["location"]) == (303, path)
        yield one, other, path


@pytest.mark.parametrize(
    ("play_for", "visitor", "student"),
    [("nobody", 403, 403), ("accounts", 303, 200), ("everybody", 200, 200)],
)
async def test_the_lecturer_decides_who_plays(
    played: Played, play_for: str, visitor: int, student: int
) -> None:
    played.world.course.settings.change(play_for=play_for)
    for role, status in (("visitor", visitor), ("student", student)):
        page = await played.world.page(role, "/play", status)
        assert ("Start the game" in page) == (status == 200)
        games = re.findall(r'<option value="([^"]*)"[^>]*>(Kala[^<]*)', page)
        assert dict(games) == (
            {"kalah(4,3)": "Kalah, 4 pits, 3 seeds (kalah(4,3))", "kalamala": "Kalamala"}
            if status == 200
            else {}
        )
    for shown in ("nobody", "named"):
        played.show(shown)
        path = "/sign-in" if shown == "nobody" else "/"
        assert ("Play against a bot" in await played.world.page("visitor", path)) == (visitor == 200)


async def test_two_people_play_each_other(played: Played) -> None:
    async with two_people(played) as (one, other, path):
        state = (await act(one, path, "move", ply=0, move="1")).json()
        assert (state["to_move"], state["legal"]) == (1, [])
        refused = await act(one, path, "move", ply=1, move="1")
        assert (refused.status_code, refused.json()["error"]) == (
            409,
            "It is not your turn in this position.",
        )
        state = (await act(other, path, "move", ply=1, move="4")).json()
        assert [ply["move"] for ply in state["plies"]] == ["1", "4"]
        assert state["players"] == ["Ada", "Bob"]
        late = await act(other, path, "move", ply=0, move="1")  # sent twice
        assert late.status_code == 409
        illegal = await act(one, path, "move", ply=2, move="9")
        assert "there is no pit 9" in illegal.json()["error"]
        assert "cannot be taken back" in (await act(one, path, "take-back")).json()["error"]
        state = (await act(other, path, "resign")).json()
        assert (state["over"], state["winner"], state["status"]) == (True, 0, "Bob resigned.")
        assert "this game is over" in (await act(one, path, "move", ply=2, move="1")).text.lower()


async def test_others_watch_and_do_nothing(played: Played) -> None:
    async with two_people(played) as (one, _other, path), played.world.browser("other") as third:
        page = await third.text(path)
        assert "you are watching" in page
        for what in ("move", "take-back", "resign", "retry", "join"):
            assert (await act(third, path, what, ply=0, move="1")).status_code == 409, what
        assert (await act(one, path, "move", ply=0, move="1")).status_code == 200


async def test_nobody_moves_before_the_other_seat_is_taken(played: Played) -> None:
    async with played.world.browser("student") as one:
        path = await begin(one)
        assert "Invite your opponent" in await one.text(path)
        assert "pass the link" in (await act(one, path, "move", ply=0, move="1")).json()["error"]


async def test_a_swap_and_an_extra_turn_are_stated(played: Played) -> None:
    played.world.course.settings.change(game="manchester(4,3)")
    async with played.world.browser("student") as one, played.world.browser() as other:
        path = await begin(one, game="manchester(4,3)")
        await other.submit(path, {}, to=f"{path}/join")
        await act(one, path, "move", ply=0, move="1")
        page = await other.text(path)
        assert '"swap": true' in page
        state = (await act(other, path, "move", ply=1, move="SWAP")).json()
        assert (state["to_move"], [seat[0] for seat in state["plies"][1]["seats"]]) == (0, ["North", "South"])


async def test_games_cannot_be_guessed_and_their_addresses_are_long(played: Played) -> None:
    async with played.world.browser("student") as one:
        path = await begin(one)
        assert re.fullmatch(r"/play/[\w-]{22}", path)
        await one.text("/play/1", 404)


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"game": "oware"}, "is not played here"),
        ({"opponent": "ladder:99"}, "Choose an opponent of the list"),
        ({"opponent": "version:1", "game": "kalamala"}, ""),
        ({"side": "third"}, "Choose a side"),
        ({"name": "x" * 500}, "name"),
        ({"from": "1 1 1 1"}, "pit 1"),
        ({"from": "nonsense"}, "nonsense"),
    ],
)
async def test_a_game_that_cannot_begin_is_explained(
    played: Played, fields: dict[str, str], sentence: str
) -> None:
    async with played.world.browser("student") as one:
        answer = await one.submit("/play", AGAINST_A_PERSON | fields)
        if sentence:
            assert answer.status_code == 400
            assert sentence in answer.text
        else:
            assert answer.status_code == 303


async def test_a_person_has_a_limit_of_games_and_of_starts(played: Played) -> None:
    async with played.world.browser("student") as one:
        for _ in range(5):
            await begin(one, opponent="ladder:1")
        refused = await one.submit("/play", AGAINST_A_PERSON | {"opponent": "ladder:1"})
        assert (refused.status_code, "finish or resign one first" in refused.text) == (400, True)
        assert "Your unfinished games" in refused.text
        played.world.site.limits.casual_starts = RateLimit(Rate(burst=1, per_s=0.1))
        await begin(one)
        refused = await one.submit("/play", AGAINST_A_PERSON)
        assert (refused.status_code, "too quickly" in refused.text) == (429, True)


async def test_a_class_behind_one_address_begins_at_the_same_time(played: Played) -> None:
    for _ in range(30):
        async with played.world.browser("visitor") as one:
            await begin(one)
    played.world.site.limits.casual_address = RateLimit(Rate(burst=1, per_s=0.1))
    async with played.world.browser("visitor") as one, played.world.browser("visitor") as other:
        await begin(one)
        refused = await other.submit("/play", AGAINST_A_PERSON)
        assert (refused.status_code, "at your address" in refused.text) == (429, True)


async def test_a_form_of_another_site_plays_no_move(played: Played) -> None:
    async with two_people(played) as (one, _other, path):
        answer = await one.post(f"{path}/move", data={"ply": "0", "move": "1"}, headers=BROWSER)
        assert answer.status_code == 403


async def test_own_versions_are_offered_to_their_team_alone(played: Played) -> None:
    assert "Version 1 of your bot" in await played.world.page("student", "/play")
    assert "of your bot" not in await played.world.page("visitor", "/play")
    assert "of your bot" not in await played.world.page("lecturer", "/play")


async def test_a_position_of_a_replay_can_be_played(played: Played) -> None:
    played.show("named")
    page = await played.world.page("student", "/competitions/practice/games/p0000003-1")
    found = re.search(r'id="play-position" href="([^"]+)"', page)
    assert found
    async with played.world.browser("student") as one:
        position = await one.text("/play?game=kalah(4,3)&from=1+2")
        assert "From this position of a game of kalah(4,3)" in position
        path = await begin(one, **{"from": "1 2"})
        assert '"contents": [3, 0, ' in await one.text(path)
    played.world.course.settings.change(play_for="accounts")
    assert "play-position" not in await played.world.page(
        "visitor", "/competitions/practice/games/p0000003-1"
    )


async def test_a_position_stays_when_its_game_cannot_begin_yet(played: Played) -> None:
    fields = AGAINST_A_PERSON | {"game": "kalah(4,3)", "from": "1 2"}
    async with played.world.browser("student") as one:
        refused = await one.submit("/play", fields | {"name": "x" * 500})
        assert refused.status_code == 400
        assert "The name" in refused.text
        assert "From this position of a game of kalah(4,3)" in refused.text
        assert '<input type="hidden" name="from" value="1 2">' in refused.text


async def again(browser: Browser, path: str) -> dict[str, str] | None:
    """Return the fields of "Play again", apart from ``csrf``; None without this button."""
    form = re.search(r'id="play-again".*?</form>', await browser.text(path), re.DOTALL)
    fields = None if form is None else dict(re.findall(r'name="(\w+)" value="([^"]*)"', form[0]))
    if fields is not None:
        del fields["csrf"]
    return fields


async def test_a_game_from_a_position_is_played_again_from_there(played: Played) -> None:
    """The game of the position need not be one that is offered."""
    async with played.world.browser("student") as one:
        path = await begin(one, game="kalah(3,2)", **{"from": "2"})
        fields = await again(one, path)
        assert fields is not None
        assert fields == {"game": "kalah(3,2)", "opponent": "person", "side": "first", "from": "2"}
        next_path = await begin(one, **fields)
        boards = [
            re.findall(r'"contents": (\[[^]]*\])', await one.text(each))[0] for each in (path, next_path)
        ]
        assert next_path != path
        assert boards[0] == boards[1]


async def test_a_game_that_is_not_offered_any_more_is_not_played_again(played: Played) -> None:
    async with played.world.browser("student") as one:
        path = await begin(one, game="kalamala")
        assert await again(one, path) == {"game": "kalamala", "opponent": "person", "side": "first"}
        played.world.course.settings.change(play_games=[])
        assert await again(one, path) is None


async def test_the_kalamala_page_has_the_cells_of_each_move(played: Played) -> None:
    async with played.world.browser("student") as one, played.world.browser() as other:
        path = await begin(one, game="kalamala")
        await other.submit(path, {}, to=f"{path}/join")
        page = await one.text(path)
        assert '{"from": [], "move": "a1", "swap": false, "to": [' in page
        assert re.search(r'\{"from": \[\d+\], "move": "d3-e4", "swap": false, "to": \[\d+\]\}', page)


async def test_the_stream_begins_with_what_the_reader_does_not_have(played: Played) -> None:
    async with two_people(played) as (one, _other, path):
        await act(one, path, "move", ply=0, move="1")
        await act(one, path, "resign")
        stream = await one.text(f"{path}/events?after=0&revision=0")
        assert '"move":"1"' in stream
        assert '"over":true' in stream


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("nonsense", "The position cannot be played: "),
        ("1 " * 3001, "The position cannot be played: it has too many moves"),
    ],
)
async def test_a_link_to_a_position_that_cannot_be_played_is_explained(
    played: Played, words: str, sentence: str
) -> None:
    async with played.world.browser("student") as one:
        answer = await one.get("/play", params={"game": "kalah(4,3)", "from": words})
    assert answer.status_code == 400
    assert sentence in answer.text
    assert "Start the game" in answer.text


async def test_a_game_that_the_ladder_does_not_play_has_opponents_that_play_every_game(
    played: Played, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(play, "REFERENCE_GAMES", (Kalah,))
    page = await played.world.page("student", "/play?game=kalamala")
    assert '<option value="minimax:4"' in page
    assert '<option value="ladder:1"' not in page


async def test_the_next_game_is_against_the_same_version(played: Played) -> None:
    async with played.world.browser("student") as one:
        path = await begin(one, game="kalah(4,3)", opponent="version:1")
        assert 'name="opponent" value="version:1"' in await one.text(path)


async def test_a_bot_that_could_not_be_started_is_tried_again(played: Played) -> None:
    async with played.world.browser("student") as one:
        path = await begin(one, opponent="ladder:1")
        table = await played.service.casual.table(path.removeprefix("/play/"))
        assert table is not None
        table.trouble = "The server cannot run this bot now."
        assert table.trouble in await one.text(path)
        answer = await one.submit(path, {}, to=f"{path}/retry")  # from a page without scripts
        assert (answer.status_code, answer.headers["location"]) == (303, path)
        assert (await act(one, path, "retry")).json()["trouble"] == ""
