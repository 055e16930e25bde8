"""A game's page: the replay, why it was lost, its files; and the list of games."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from referee.judge.clock import TimeControl
from referee.judge.results import MatchResult, Reason
from tests.builders import make_record
from tests.web_played import SECRET, Played, open_played, played_game, visitors_see
from tournaments.web.pages.competitions import ANY_FAULT, PAGE, Filter, game_list
from tournaments.web.pages.faults import MEANINGS
from tournaments.web.views.competition_view import make_view
from tournaments.web.views.loss_explanation import LAST_WORDS, LINES, loss_explanation_of
from tournaments.web.views.names import Viewer, Visibility

LOST_BY_FAULT = "/competitions/practice/games/p0000003-1"
"""Team 1 lost it to Team 2."""
BY_SCORE = "/competitions/practice/games/p0000001-1"


@pytest.fixture
def played(tmp_path: Path) -> Iterator[Played]:
    with open_played(tmp_path) as found:
        yield found


async def get(played: Played, role: str, path: str) -> str:
    async with played.world.browser(role) as browser:
        answer = await browser.get(path)
    assert answer.status_code == 200, answer.text
    return answer.text


# Why a game was lost.


def test_a_fault_is_told_with_its_rule_its_advice_and_the_end_of_the_conversation() -> None:
    record = played_game("k", "one", "two", 1, illegal_after=6)
    lost = loss_explanation_of(record, ())
    assert lost is not None
    assert record.result.winner is not None
    assert lost.loser == record.players[1 - record.result.winner].name
    assert lost.fault == "no-such-pit"
    assert lost.what.startswith("It sent 'MOVE;99'")
    assert "numbered" in lost.what
    assert lost.meaning
    assert lost.advice
    assert len(lost.lines) == LINES
    assert any(line.text == "MOVE;99" and not line.is_sent for line in lost.lines)
    assert lost.ply == len(record.moves) + 1


def test_what_is_private_is_for_its_author_alone() -> None:
    record = played_game("k", "one", "two", 1, illegal_after=6)
    assert record.result.winner is not None
    loser = 1 - record.result.winner
    for own in ((), (1 - loser,)):
        lost = loss_explanation_of(record, own)
        assert lost is not None
        assert (lost.note, lost.last_words) == ("", ())
    lost = loss_explanation_of(record, (loser,))
    assert lost is not None
    assert SECRET in lost.note
    assert lost.last_words == (f"{SECRET} {lost.loser}",)


def test_of_a_long_standard_error_there_is_the_end() -> None:
    record = played_game("k", "one", "two", 1, illegal_after=6)
    text = "".join(f"line {number}\n" for number in range(100))
    lost = loss_explanation_of(replace(record, stderr=(text, text)), (0, 1))
    assert lost is not None
    assert lost.last_words[-1] == "line 99"
    assert len(lost.last_words) == LAST_WORDS


def test_a_loss_on_time_is_told_with_the_limit_and_what_moves_took() -> None:
    result = MatchResult(1, Reason.TIMEOUT, "one (South) lost: out of time", None, "late")
    lost = loss_explanation_of(make_record(result=result, control=TimeControl(move_s=3.0)), ())
    assert lost is not None
    rules = dict(lost.rules)
    assert "3 s per move" in rules["Time control"]
    assert rules["Its longest move before"] == "1.50 ms"


def test_a_loss_by_memory_is_told_with_the_limit() -> None:
    result = MatchResult(1, Reason.EXIT, "one (South) lost: it was killed", None, "memory-limit")
    lost = loss_explanation_of(make_record(result=result), ())
    assert lost is not None
    assert "512 MiB" in dict(lost.rules)["Memory that it may hold"]


def test_a_loss_by_score_has_no_fault_and_a_draw_has_no_loser() -> None:
    lost = loss_explanation_of(make_record(), (0, 1))
    assert lost is not None
    assert (lost.fault, lost.lines, lost.ply) == (None, (), 2)
    draw = MatchResult(None, Reason.SCORE, "draw: 2 to 2", (2, 2))
    assert loss_explanation_of(make_record(result=draw), ()) is None


def test_all_faults_are_explained_in_the_words_of_the_protocol() -> None:
    text = (Path(__file__).parent.parent / "docs/protocol.md").read_text(encoding="utf-8")
    table = text[text.index("| reason | fault |") : text.index("`MOVE;+3` and")]
    documented = {}
    for row in table.splitlines()[2:]:
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        if len(cells) == 3:
            documented[cells[1].strip("`")] = cells[2].replace("`", "").replace("*", "")
    assert documented == MEANINGS


# The page.


async def test_the_loser_is_told_first_what_to_do(played: Played) -> None:
    page = await get(played, "student", LOST_BY_FAULT)
    assert page.index("Why you lost") < page.index('class="replay-columns"')
    assert "What to do:" in page
    assert 'href="/faults#no-such-pit"' in page
    assert f"{SECRET} Team 1 v1" in page
    assert f"{SECRET} Team 2 v1" not in page
    assert f"{LOST_BY_FAULT}/stderr/1" in page
    assert f"{LOST_BY_FAULT}/stderr/2" not in page


async def test_the_winner_sees_its_own_words_and_not_the_loser_s(played: Played) -> None:
    page = await get(played, "other", LOST_BY_FAULT)
    assert "Why you lost" not in page
    assert f"{SECRET} Team 2 v1" in page
    assert f"{SECRET} Team 1 v1" not in page


async def test_a_lecturer_sees_both_and_our_host(played: Played) -> None:
    page = await get(played, "lecturer", LOST_BY_FAULT)
    assert f"{SECRET} Team 1 v1" in page
    assert f"{SECRET} Team 2 v1" in page
    assert "the-lecturers-machine" in page


@pytest.mark.parametrize(
    "path", [LOST_BY_FAULT, BY_SCORE, *(f"{LOST_BY_FAULT}{end}" for end in ("/wire.txt", "/game.json"))]
)
async def test_visitors_see_nothing_that_is_private(played: Played, path: str) -> None:
    visitors_see(played, "named")
    page = await get(played, "visitor", path)
    assert SECRET not in page
    assert "the-lecturers-machine" not in page
    assert "/opt/python" not in page
    assert "Team 2 v1" in page


async def test_a_student_s_page_has_nothing_of_our_host(played: Played) -> None:
    page = await get(played, "student", LOST_BY_FAULT)
    assert "the-lecturers-machine" not in page
    assert "/opt/python" not in page


async def test_its_files(played: Played) -> None:
    game = json.loads(await get(played, "student", f"{LOST_BY_FAULT}/game.json"))
    assert game["fault"] == "no-such-pit"
    assert "stderr" not in game
    assert "MOVE;99" in await get(played, "student", f"{LOST_BY_FAULT}/wire.txt")
    assert await get(played, "student", f"{LOST_BY_FAULT}/stderr/1") == f"{SECRET} Team 1 v1\n"
    async with played.world.browser("student") as browser:
        assert (await browser.get(f"{LOST_BY_FAULT}/stderr/2")).status_code == 403
        assert (await browser.get(f"{LOST_BY_FAULT}/stderr/3")).status_code == 404


async def test_it_leads_to_its_neighbours(played: Played) -> None:
    page = await get(played, "student", LOST_BY_FAULT)
    assert 'rel="prev" href="/competitions/practice/games/p0000002-1"' in page
    assert 'rel="next" href="/competitions/practice/games/p0000004-1"' in page
    assert 'rel="prev"' not in await get(played, "student", BY_SCORE)


async def test_a_game_of_a_version_that_was_replaced_is_still_there(played: Played) -> None:
    played.service.contests.practice[played.practice.id].remove("Team 1 v1")
    page = await get(played, "student", LOST_BY_FAULT)
    assert "Why you lost" in page
    assert f'href="/bots/{played.world.teams[0].id}"' in page


async def test_hostile_lines_stay_text(played: Played) -> None:
    hostile = "<img src=x onerror=alert(1)>"
    record = played_game("p0000099-1", "Team 1 v1", "Team 2 v1", 1, illegal_after=6)
    result = replace(record.result, detail=f"Team 1 v1 (South) lost: {hostile}", note=hostile)
    record = replace(record, result=result, stderr=(hostile, hostile))
    played.service.contests.stores[played.practice.id].add(record, 1)
    page = await get(played, "lecturer", "/competitions/practice/games/p0000099-1")
    assert "<img" not in page
    assert "&lt;img src=x" in page


# The list.


async def test_the_list_is_filtered_by_bot_and_end(played: Played) -> None:
    path = "/competitions/practice/games"
    everything = await get(played, "student", path)
    assert everything.count('class="key"') == 6
    faults = await get(
        played, "student", f"{path}?bot=Team+1+v1&outcome=lost&end={ANY_FAULT.replace(' ', '+')}"
    )
    keys = re.findall(r'class="key" href="[^"]*/(p\d+-1)"', faults)
    assert keys
    for key in keys:
        record = await played.service.contests.record(played.practice.id, key)
        assert record.result.fault is not None
        assert record.result.winner is not None
        assert record.players[1 - record.result.winner].name == "Team 1 v1"
    nobody = await get(played, "student", f"{path}?bot=made-up")
    assert "No game matches." in nobody


@pytest.mark.parametrize("page", ["0", "-1", "x", "\N{SUPERSCRIPT TWO}", "9" * 30, "1000"])
async def test_a_page_that_there_is_not(played: Played, page: str) -> None:
    text = await get(played, "student", f"/competitions/practice/games?page={page}")
    assert 'class="key"' in text


async def test_pages_have_all_games_once_the_newest_first(tmp_path: Path) -> None:
    with open_played(tmp_path, pairs=0) as played:
        store = played.service.contests.stores[played.practice.id]
        record = played_game("k", "Team 1 v1", "Team 2 v1", 1)
        for number in range(PAGE + 1):
            store.add(replace(record, key=f"p{number:07d}-1"), 1)
        summary = await played.service.contests.summary(played.practice.id)
        viewer = Viewer(Visibility.NAMED)
        shown = make_view(played.world.course, tmp_path, played.practice, viewer, summary)
        first, second = (game_list(shown, Filter(), page, None) for page in (1, 2))
    keys = [row.key for row in (*first.rows, *second.rows)]
    assert keys == [f"p{number:07d}-1" for number in reversed(range(PAGE + 1))]
    assert (first.pages, len(second.rows)) == (2, 1)
