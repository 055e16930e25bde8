"""Pages of the games of a version's check: for its team and lecturers, as the report of the check."""

from dataclasses import replace

import pytest

from tests.web.played_course import CHECK_GAME, SECRET, Played, checked_game
from tournaments.course.model import CheckedGame
from tournaments.results.game_summary import PackedGame
from tournaments.results.packing import unpacked

KEY = "swapped-south"


async def test_each_item_leads_to_its_games(played: Played) -> None:
    version = played.fail(played.add_version())
    path = f"/my/versions/{version.id}"
    link = f'<a href="{path}/games/{KEY}">as South against a test opponent that swaps at once</a>'
    for role in ("student", "lecturer"):
        page = await played.world.page(role, path)
        failed = page.partition('id="failed"')[2].partition("</section>")[0]
        assert f'{link} <span class="soft">(illegal-move)</span>' in failed
        listed = page.partition('id="games"')[2]
        assert link in listed
        assert "as North against first_legal (not kept)" in listed
        assert link not in page.partition('id="passed"')[2].partition("</section>")[0]


async def test_a_game_has_its_replay_its_explanation_and_its_files(played: Played) -> None:
    async with played.world.browser("student") as browser:
        page = await browser.text(CHECK_GAME)
        for text in (
            'id="replay-data"',
            "Why you lost",
            f"{SECRET} Team 1 v1",
            f'href="{CHECK_GAME}/stderr/1"',
            f'href="{CHECK_GAME}/wire.txt"',
            f'href="{CHECK_GAME.partition("/games")[0]}">Check of version 1</a>',
            "Play this position",
        ):
            assert text in page
        for hidden in (f"{SECRET} test opponent", f"{CHECK_GAME}/stderr/2", "the-lecturers-machine"):
            assert hidden not in page
        assert await browser.text(f"{CHECK_GAME}/stderr/1") == f"{SECRET} Team 1 v1\n"
        assert SECRET not in await browser.text(f"{CHECK_GAME}/stderr/2", 403)
        await browser.text(f"{CHECK_GAME}/stderr/3", 404)
        assert "Team 1 v1      <-  START;South" in await browser.text(f"{CHECK_GAME}/wire.txt")
        answer = await browser.get(f"{CHECK_GAME}/game.json")
        assert answer.json()["key"] == KEY
        assert SECRET not in answer.text
    lecturers = await played.world.page("lecturer", CHECK_GAME)
    assert "the-lecturers-machine" in lecturers
    assert f"{SECRET} test opponent" in lecturers


async def test_games_of_others_are_as_if_they_were_not_there(played: Played) -> None:
    for rest in ("", "/wire.txt", "/game.json", "/stderr/1"):
        async with played.world.browser("other") as browser:
            hidden = await browser.text(CHECK_GAME + rest, 404)
            assert SECRET not in hidden
            assert hidden == await browser.text(f"/my/versions/999/games/{KEY}{rest}", 404)
        async with played.world.browser("visitor") as browser:
            answer = await browser.get(CHECK_GAME + rest)
        assert (answer.status_code, SECRET in answer.text) == (303, False)
        assert answer.headers["location"].startswith("/sign-in")


async def test_a_game_that_its_opponent_ended_is_no_loss_to_explain(played: Played) -> None:
    game = checked_game("Team 1 v2", lost=False)
    version = played.fail(played.add_version(), games=(game,))
    page = await played.world.page("student", f"/my/versions/{version.id}/games/{KEY}")
    assert "test opponent" in page
    assert 'id="why"' not in page


async def test_the_games_of_a_check_follow_one_another(played: Played) -> None:
    games = tuple(replace(checked_game("Team 1 v2"), key=key) for key in ("first", "second", "third"))
    path = f"/my/versions/{played.fail(played.add_version(), games=games).id}/games"
    page = await played.world.page("student", f"{path}/second")
    assert f'rel="prev" href="{path}/first"' in page
    assert f'rel="next" href="{path}/third"' in page


async def test_hostile_output_is_text(played: Played) -> None:
    script, escape = "<script>alert(1)</script>", "\x1b[2J\udc80\x00"
    record = unpacked(checked_game("Team 1 v2").packed)
    wire = [line._replace(line=script + escape) if line.direction == "from" else line for line in record.wire]
    result = replace(record.result, detail=f"it sent '{script}'", note=script)
    record = replace(record, wire=wire, stderr=(f"{script}\n{escape}", ""), result=result)
    game = CheckedGame(KEY, 0, PackedGame.of(record).packed)
    version = played.fail(played.add_version(), games=(game,))
    path = f"/my/versions/{version.id}/games/{KEY}"
    for role in ("student", "lecturer"):
        async with played.world.browser(role) as browser:
            page = await browser.text(path)
            assert script not in page
            assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
            assert "\x1b" not in page
            answer = await browser.get(f"{path}/stderr/1")
            assert answer.headers["content-type"].startswith("text/plain")
            assert answer.text == f"{script}\n\x1b[2J\\udc80\x00"
            assert (await browser.get(f"{path}/wire.txt")).headers["content-type"].startswith("text/plain")
            for key in ("..%2f..%2f1", "%00", "%ff", "a" * 500, script):
                assert (await browser.get(f"/my/versions/{version.id}/games/{key}")).status_code == 404


async def test_a_check_of_an_earlier_version_of_the_server_has_no_games(played: Played) -> None:
    version = played.fail(played.add_version(), games=())
    page = await played.world.page("student", f"/my/versions/{version.id}")
    assert "The games of this check are not kept." in page
    assert f"/my/versions/{version.id}/games" not in page
    missing = await played.world.page("student", f"/my/versions/{version.id}/games/{KEY}", 404)
    assert "This game is not kept" in missing


async def test_a_check_that_is_requested_again_has_no_games_meanwhile(played: Played) -> None:
    path = CHECK_GAME.partition("/games")[0]
    async with played.world.browser("lecturer") as browser:
        assert (await browser.submit(path, to=f"{path}/recheck")).status_code == 303
        await browser.text(CHECK_GAME, 404)


@pytest.mark.parametrize("packed", [b"", b"not deflated", checked_game("x").packed[:-9]])
async def test_a_damaged_record_is_a_fault_of_the_server(played: Played, packed: bytes) -> None:
    version = played.fail(played.add_version(), games=(CheckedGame(KEY, 0, packed),))
    page = await played.world.page("student", f"/my/versions/{version.id}/games/{KEY}", 503)
    assert "Traceback" not in page
    assert KEY in await played.world.page("student", f"/my/versions/{version.id}")
