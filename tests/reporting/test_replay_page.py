"""The page of a game: it has all public facts of the record, nothing private, and no foreign code."""

import json
import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from referee.games.catalog import parse_game
from referee.games.opening import parse_opening
from referee.judge.record_rows import WireLine
from referee.judge.results import GameRecord, MatchResult, Reason
from tests.project.test_game_names import NAMES
from tests.reporting.replay_pages import ASSETS, GAMES, whole_page
from tests.reporting.reports import Page
from tests.support.builders import make_player, make_record
from tests.support.judging import Judged
from tests.support.random_games import game_of_length, random_game, record_of
from tournaments.reporting.board.board_renderer import contents
from tournaments.reporting.site.anonymizer import Anonymizer
from tournaments.reporting.site.replay import LiveReplay, replay_data, time_text
from tournaments.reporting.site.replay_page import live_html, replay_html

HOSTILE = "</script><img src=x onerror=alert(1)>\u202e&\"'"
LARGEST_PAGE = 120_000
"""Bytes of the page of a game of 86 moves, the length that docs/decisions.md measures with."""
LARGEST_LONG_PAGE = 600_000
"""Of one of 400 turns: longer than any that random bots were seen to play."""


def embedded(page: str) -> dict[str, Any]:
    """Return the data that the script reads."""
    found = re.search(r'<script type="application/json" id="replay-data">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    data: dict[str, Any] = json.loads(found[1])
    return data


# What is in the data.


@pytest.mark.parametrize("game", ["manchester", "manchester(3,3)", "kalamala", "kalah(4,3)+majority-end"])
def test_changes_lead_through_all_positions(game: str) -> None:
    record = random_game(game)
    data = json.loads(json.dumps(replay_data(record)))
    assert data["remark"] == ""
    assert len(data["plies"]) == len(record.moves)
    rules = parse_game(record.game)
    state = rules.initial_state()
    cells = list(data["board"]["contents"])
    for ply, move in zip(data["plies"], record.moves, strict=True):
        changes = ply["changes"]
        for cell, content in zip(changes[::2], changes[1::2], strict=True):
            assert cells[cell] != content
            cells[cell] = content
        state = rules.apply(state, rules.parse_move(state, move.move))
        assert cells == contents(rules, state)
        assert [seat for seat, *_ in ply["seats"]] == list(rules.seats(state))
        assert (ply["player"], ply["move"]) == (move.player, move.move)
        assert (ply["charged_us"], ply["wall_us"], ply["cpu_us"]) == (move.charged_us, move.wall_us, None)
    swaps = [ply for ply in data["plies"] if ply["move"] == "SWAP"]
    assert len(swaps) == game.startswith("manchester")
    for swap in swaps:
        assert swap["changes"] == swap["phases"] == []
        assert data["start"]["seats"][0][0] == swap["seats"][1][0] != swap["seats"][0][0]


@pytest.mark.parametrize(
    ("game", "opening"),
    [("manchester", "3 5"), ("manchester(2,2)", "1,2,1,2,1,1;North"), ("kalamala", "d4 e5")],
)
def test_game_begins_with_its_opening(game: str, opening: str) -> None:
    data = replay_data(random_game(game, opening=opening))
    rules = parse_game(game)
    assert data["remark"] == ""
    assert data["board"]["contents"] == contents(rules, parse_opening(rules, opening)[-1].state)
    assert opening in dict(map(tuple, data["about"])).values()


def test_game_that_ended_by_a_fault_shows_what_the_loser_sent() -> None:
    record = random_game("manchester", illegal_after=7)
    data = replay_data(record)
    assert [("fault" in ply) for ply in data["plies"]] == [False] * 7 + [True]
    last = data["plies"][-1]
    assert last["move"] == "MOVE;99"
    assert last["fault"] == record.result.fault
    assert last["player"] == 1 - (record.result.winner or 0)
    assert last["changes"] == []
    assert [note for _, note, _ in last["seats"]][last["player"]] == "lost"
    page = replay_html(data)
    assert f"<strong>{record.result.fault}</strong> <code>MOVE;99</code>" in page
    judged = Judged()  # a fault without a line
    judged.play("MOVE;1", "MOVE;2")
    judged.wait_until(judged.at + 60)
    data = replay_data(record_of(judged.match))
    assert (data["reason"], data["plies"][-1]["move"]) == (Reason.TIMEOUT.value, "")
    without_moves = make_record(moves=[], wire=[], result=MatchResult(0, Reason.START, "two lost", None, "x"))
    data = replay_data(without_moves)
    assert [ply["fault"] for ply in data["plies"]] == ["x"]
    assert replay_html(data)


def test_every_wire_line_belongs_to_a_ply() -> None:
    for record in (random_game("manchester"), random_game("kalamala", illegal_after=4)):
        data = replay_data(record)
        marks = [data["start"]["wire"], *(ply["wire"] for ply in data["plies"])]
        assert marks[0] == 2  # START to each
        assert marks == sorted(marks)
        assert marks[-1] == len(record.wire) == len(data["wire"])
        for before, after, ply in zip(marks, marks[1:], data["plies"], strict=False):
            lines = record.wire[before:after]
            (said,) = (line for line in lines if line.direction == "from")
            assert said.player == ply["player"]
            assert said.line in (ply["move"], f"MOVE;{ply['move']}")


def test_early_lines_belong_to_the_move_that_they_became() -> None:
    judged = Judged(game="kalah(4,3)")
    judged.line(1, "MOVE;1")  # before it is asked
    judged.play("MOVE;1")
    judged.play("MOVE;99")
    data = replay_data(record_of(judged.match))
    assert [ply["move"] for ply in data["plies"]] == ["1", "1", "MOVE;99"]
    assert [ply["wire"] for ply in data["plies"]] == sorted(ply["wire"] for ply in data["plies"])


@pytest.mark.parametrize(
    ("time_us", "text"),
    [(None, ""), (0, "0 ms"), (7, "0.01 ms"), (1234, "1.23 ms"), (12_345, "12.3 ms"), (1_234_567, "1.23 s")],
)
def test_times(time_us: int | None, text: str) -> None:
    assert time_text(time_us) == text


# Records that do not hold together.


def moved(record: GameRecord, number: int, **changes: Any) -> GameRecord:
    moves = list(record.moves)
    moves[number] = moves[number]._replace(**changes)
    return replace(record, moves=moves)


@pytest.mark.parametrize("changes", [{"move": "99"}, {"move": "?<b>"}, {"player": 7}, {"move": ""}])
def test_what_can_be_replayed_is_shown(changes: dict[str, Any]) -> None:
    whole = random_game("manchester")
    data = replay_data(moved(whole, 5, **changes))
    assert data["remark"].startswith("The board cannot be shown from move 6 on: ")
    assert len(data["plies"]) == len(whole.moves)
    assert all("changes" in ply for ply in data["plies"][:5])
    assert not any("changes" in ply for ply in data["plies"][5:])
    page = replay_html(data)
    assert 'class="replay-remark"' in page
    assert page.count("<tr>") == len(whole.moves) + 1


@pytest.mark.parametrize("changes", [{"game": "chess"}, {"opening": "?"}, {"game": "kalah(0,0)"}])
def test_without_a_board_the_rest_is_shown(changes: dict[str, Any]) -> None:
    data = replay_data(replace(random_game("manchester"), **changes))
    assert data["board"] is None
    assert data["remark"].startswith("The board cannot be shown: ")
    page = replay_html(data)
    assert "replay-data" not in page
    assert "MOVE;" in page


# What is private.


SECRETS = (
    "private words",
    "/home/",
    "/opt/python",
    "the-lecturers-machine",
    "my note",
    "TimePassed",
    "1,234 thousand",
)


def test_public_page_has_nothing_private() -> None:
    result = MatchResult(0, Reason.EXIT, "two (North) lost: it ended", None, "exited", "my note")
    record = make_record(result=result, host_speed=1_234_000.0)
    whole, public = whole_page(replay_data(record)), whole_page(replay_data(record, public=True))
    for secret in SECRETS:
        assert secret in whole
        assert secret not in public
    assert "two (North) lost: it ended" in public


def test_names_are_replaced_wherever_they_are_said() -> None:
    record = make_record(
        first="Ada",
        second="Adalbert",
        wire=[WireLine(0, "from", "MOVE;1 # by Ada", 5), WireLine(1, "from", "I am Adalbert, not Ada", 6)],
        result=MatchResult(0, Reason.SCORE, "Ada (South) won: 2 to 0, so Adalbert lost", (2, 0)),
    )

    def shown(record: GameRecord, **names: str) -> dict[str, Any]:
        return replay_data(Anonymizer(names, tuple(names)).record(record), public=True)

    data = shown(record, Ada="Adalbert", Adalbert="Bot 2")  # one's new name may be another's old one
    assert data["players"] == ["Adalbert", "Bot 2"]
    assert data["sentence"] == "Adalbert (South) won: 2 to 0, so Bot 2 lost"
    assert [text for *_, text in data["wire"]] == ["MOVE;1 # by Adalbert", "I am Bot 2, not Adalbert"]
    assert "Ada" not in whole_page(shown(record, Ada="Bot 1", Adalbert="Bot 2"))
    short = make_record(
        first="a", second="it", result=MatchResult(0, Reason.SCORE, "a (South) was it: 1 to 0", (1, 0))
    )
    assert shown(short, a="Bot 1", it="Bot 2")["sentence"] == "Bot 1 (South) was Bot 2: 1 to 0"


# What others wrote.


def hostile_record() -> GameRecord:
    base = random_game("manchester", illegal_after=5)
    wire = [line._replace(line=HOSTILE) if line.direction == "from" else line for line in base.wire]
    first, second = (replace(make_player(f"{HOSTILE}{n}"), digest=HOSTILE) for n in (1, 2))
    result = replace(base.result, detail=f"{HOSTILE} lost", note=HOSTILE, fault=HOSTILE)
    return replace(
        base,
        players=(first, second),
        wire=wire,
        result=result,
        stderr=(f"{HOSTILE}\x1b[31m\n</pre>", f"\x00{HOSTILE}"),
        host=HOSTILE,
        key=HOSTILE,
        started_at=HOSTILE,
        versions={HOSTILE: HOSTILE},
    )


def test_texts_of_others_stay_texts() -> None:
    page = whole_page(replay_data(hostile_record()))
    found = Page(page)
    assert found.open == []  # every element ends where it should
    assert found.tags.count("script") == 3
    assert "img" not in found.tags
    assert not [name for name, _ in found.attributes if name.startswith("on")]
    assert "\u202e" not in page
    assert "\x1b" not in page
    assert "\x00" not in page
    shown = "".join(found.words)
    assert "<img src=x onerror=alert(1)>\\u202e&\"'" in shown
    assert embedded(page)["players"][0].startswith("</script>")
    damaged = moved(random_game("manchester"), 3, move=HOSTILE)
    assert "img" not in Page(whole_page(replay_data(damaged))).tags
    page = whole_page(replay_data(make_record(first="a\ud800b")))
    page.encode("utf-8")
    assert "a\\ud800b" in page


# The page.


def test_assets_need_nothing_else() -> None:
    for asset in ASSETS:
        text = asset.read_text(encoding="utf-8")
        foreign = [line for line in text.splitlines() if "http" in line]
        assert all("http://www.w3.org/2000/svg" in line for line in foreign)
        assert "@import" not in text
        assert "url(" not in text


def test_page_says_everything_without_its_script() -> None:
    record = random_game("manchester")
    page = replay_html(replay_data(record))
    shown = " ".join(Page(page).words)
    assert record.result.detail in shown
    for text in ("off", "512", record.players[0].digest, "the game's own start", "exit status -9"):
        assert text in shown
    for number, move in enumerate(record.moves, 1):
        assert f'<a href="#ply={number}">{number}</a>' in page
        assert f"<td>{move.move}</td><td>{time_text(move.charged_us)}</td>" in page
    for line in record.wire:
        assert f"<code>{line.line}</code></li>" in page
    assert 'id="replay-still"><svg' in page


def test_pages_are_small() -> None:
    record = game_of_length("manchester", 86)
    cut = replace(record, moves=record.moves[:86])
    assert len(whole_page(replay_data(cut)).encode()) < LARGEST_PAGE
    data = replay_data(random_game("kalamala+cap=400", avoid="x"))  # nothing is removed
    assert len(data["plies"]) == 400
    assert len(whole_page(data).encode()) < LARGEST_LONG_PAGE


def test_scripts_are_for_any_game_and_make_no_code_of_texts() -> None:
    """Only pictures.css has the looks of pieces, which have the names of games."""
    words = ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "fetch(", "import ")
    for path in ASSETS:
        text = path.read_text(encoding="utf-8")
        if path.name != "pictures.css":
            assert NAMES.findall(text) == [], path.name
        if path.suffix == ".js":
            assert [word for word in words if word in text] == [], path.name


# A server's content security policy.


@pytest.mark.parametrize("game", ["manchester", "kalamala"])
def test_styles_are_in_the_style_sheet(game: str) -> None:
    """A policy that allows styles from files alone would leave out the page's own."""
    data = replay_data(random_game(game))
    page = Page(replay_html(data))
    assert "style" not in page.tags
    assert page.values("style") == []
    brought = re.findall(r"<style>(.*?)</style>", data["final_picture"] + data["board"]["svg"])
    sheet = re.sub(r"\s", "", ASSETS[0].with_name("pictures.css").read_text(encoding="utf-8"))
    assert brought
    for style in brought:
        assert re.sub(r"\s", "", style) in sheet


# A running game has the same plies as the page of the finished game.

UNKNOWN = {"wire": 0, "wall_us": None, "cpu_us": None}
"""Fields of a move that are private while the game goes on."""


def expected(record: GameRecord) -> list[dict[str, Any]]:
    return [ply | UNKNOWN for ply in replay_data(record)["plies"] if "fault" not in ply]


def go_on(replay: LiveReplay, record: GameRecord, until: int) -> None:
    moves = record.moves[:until]
    replay.update([move.move for move in moves], [move.charged_us for move in moves])


@settings(max_examples=40)
@given(st.sampled_from(GAMES), st.integers(1, 20), st.lists(st.integers(0, 60)))
def test_in_whatever_pieces_the_moves_come_the_plies_are_the_same(
    game: str, seed: int, pieces: list[int]
) -> None:
    record = random_game(game, seed)
    replay = LiveReplay(record.game, record.opening)
    for until in [*pieces, len(record.moves)]:
        go_on(replay, record, until)
    assert replay.plies == expected(record)
    assert replay.remark == ""


@pytest.mark.parametrize("game", GAMES)
def test_the_page_is_that_of_the_game_so_far(game: str) -> None:
    record = random_game(game)
    replay = LiveReplay(record.game, record.opening)
    go_on(replay, record, 5)
    page, whole = replay.page(("Ada", "Bob")), replay_data(record)
    assert page["board"] == whole["board"]
    assert page["start"] == whole["start"] | {"wire": 0}
    assert page["plies"] == expected(record)[:5]
    assert page["final_picture"] != whole["final_picture"]
    html = live_html(page)
    assert html.count("<tr>") == 1 + 5
    assert "style" not in html.replace("replay-", "")


def test_an_opening_comes_before_the_first_move() -> None:
    record = random_game("kalah(4,3)", opening="1 2")
    replay = LiveReplay(record.game, record.opening)
    go_on(replay, record, len(record.moves))
    assert replay.plies == expected(record)
    assert replay.page(("Ada", "Bob"))["start"]["seats"] == replay_data(record)["start"]["seats"]


@pytest.mark.parametrize("moves", [["99"], ["1", "1", "1", "nonsense", "2"]])
def test_what_cannot_be_played_is_left_out(moves: list[str]) -> None:
    replay = LiveReplay("kalah(4,3)", "")
    replay.update(moves, [1] * len(moves))
    number = len(replay.plies)
    assert number < len(moves)
    assert f"from move {number + 1} on" in replay.remark
    replay.update([*moves, "2"], [1] * (len(moves) + 1))
    assert len(replay.plies) == number


def test_a_game_that_is_none_has_no_board() -> None:
    replay = LiveReplay("chess", "")
    replay.update(["e4"], [1])
    assert replay.plies == []
    assert replay.page(("Ada", "Bob"))["board"] is None
    assert "cannot be shown" in replay.remark
