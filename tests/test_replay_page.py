"""The page of a game: everything of its record is there, nothing that is private, and nobody's code."""

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from referee.games.catalog import parse_game
from referee.games.opening import parse_opening
from referee.judge.results import GameRecord, MatchResult, Reason, WireLine
from tests.builders import make_player, make_record
from tests.judging import Judged
from tests.random_games import game_of_length, random_game, record_of
from tests.test_game_names import NAMES
from tournaments.reporting.board.board_renderer import contents
from tournaments.reporting.site import replay
from tournaments.reporting.site.replay import replay_data, time_text
from tournaments.reporting.site.replay_page import replay_html, standalone_page

ASSETS = [
    Path(replay.__file__).with_name("assets") / name
    for name in ("pictures.css", "replay.css", "replay.js", "replay_board.js")
]
HOSTILE = "</script><img src=x onerror=alert(1)>\u202e&\"'"
LARGEST_PAGE = 120_000
"""Bytes of the page of a game of 86 moves, the length that docs/decisions.md measures with."""
LARGEST_LONG_PAGE = 600_000
"""Of one of 400 turns: longer than any that random bots were seen to play."""


class Elements(HTMLParser):
    """All that a browser would make of a page."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.texts: list[str] = []
        self.open: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        if tag not in ("meta", "link", "input", "path", "rect", "circle", "polygon"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if self.open and self.open[-1] == tag:
            self.open.pop()

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def embedded(page: str) -> dict[str, Any]:
    """What the script reads."""
    found = re.search(r'<script type="application/json" id="replay-data">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    data: dict[str, Any] = json.loads(found[1])
    return data


# What is in the data.


@pytest.mark.parametrize("game", ["manchester", "manchester(3,3)", "kalamala", "kalah(4,3)+majority-end"])
def test_changes_lead_through_all_positions(game: str) -> None:
    record = random_game(game)
    data = replay_data(record)
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


def test_swap_is_in_the_game_of_the_test_above() -> None:
    data = replay_data(random_game("manchester"))
    (swap,) = (ply for ply in data["plies"] if ply["move"] == "SWAP")
    assert swap["changes"] == swap["phases"] == []
    assert data["start"]["seats"][0][0] == swap["seats"][1][0] != swap["seats"][0][0]


@pytest.mark.parametrize("game", ["manchester", "kalamala"])
def test_data_is_json(game: str) -> None:
    data = replay_data(random_game(game))
    assert json.loads(json.dumps(data)) == data


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


def test_fault_without_a_line_shows_none() -> None:
    judged = Judged()
    judged.play("MOVE;1", "MOVE;2")
    judged.wait_until(judged.at + 60)
    data = replay_data(record_of(judged.match))
    assert data["reason"] == Reason.TIMEOUT.value
    assert data["plies"][-1]["move"] == ""


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


def test_game_without_moves() -> None:
    record = make_record(moves=[], wire=[], result=MatchResult(0, Reason.START, "two lost", None, "x"))
    data = replay_data(record)
    assert [ply["fault"] for ply in data["plies"]] == ["x"]
    assert replay_html(data)


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
    whole, public = standalone_page(replay_data(record)), standalone_page(replay_data(record, public=True))
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
        stderr=("Ada here\n", "import Adalbert2\n"),
    )
    rename = {"Ada": "Adalbert", "Adalbert": "Bot 2"}  # one's new name may be another's old one
    data = replay_data(record, rename=rename)
    assert data["players"] == ["Adalbert", "Bot 2"]
    assert data["sentence"] == "Adalbert (South) won: 2 to 0, so Bot 2 lost"
    assert [text for *_, text in data["wire"]] == ["MOVE;1 # by Adalbert", "I am Bot 2, not Adalbert"]
    assert data["stderr"] == [["Adalbert here"], ["import Bot 22"]]
    public = standalone_page(replay_data(record, public=True, rename={"Ada": "Bot 1", "Adalbert": "Bot 2"}))
    assert "Ada" not in public


def test_short_names_are_replaced_as_words() -> None:
    record = make_record(
        first="a", second="it", result=MatchResult(0, Reason.SCORE, "a (South) was it: 1 to 0", (1, 0))
    )
    data = replay_data(record, rename={"a": "Bot 1", "it": "Bot 2"})
    assert data["sentence"] == "Bot 1 (South) was Bot 2: 1 to 0"
    assert [ply["move"] for ply in data["plies"]] == ["1", "1"]


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
    page = standalone_page(replay_data(hostile_record()))
    found = Elements(page)
    assert found.open == []  # every element ends where it should
    assert found.tags.count("script") == 3
    assert "img" not in found.tags
    assert not [name for name, _ in found.attributes if name.startswith("on")]
    assert "\u202e" not in page
    assert "\x1b" not in page
    assert "\x00" not in page
    shown = "".join(found.texts)
    assert "<img src=x onerror=alert(1)>\\u202e&\"'" in shown
    assert embedded(page)["players"][0].startswith("</script>")


def test_lone_surrogates_can_be_written() -> None:
    page = standalone_page(replay_data(make_record(first="a\ud800b")))
    page.encode("utf-8")
    assert "a\\ud800b" in page


def test_damaged_move_texts_are_escaped() -> None:
    record = moved(random_game("manchester"), 3, move=HOSTILE)
    assert "img" not in Elements(standalone_page(replay_data(record))).tags


# The page.


def test_page_needs_nothing_but_its_folder() -> None:
    page = standalone_page(replay_data(random_game("kalamala")), assets="../assets")
    addresses = [value for name, value in Elements(page).attributes if name in ("href", "src")]
    assert {value for value in addresses if not value.startswith("#")} == {
        "../assets/pictures.css",
        "../assets/replay.css",
        "../assets/replay.js",
        "../assets/replay_board.js",
    }
    for asset in ASSETS:
        text = asset.read_text(encoding="utf-8")
        foreign = [line for line in text.splitlines() if "http" in line]
        assert all("http://www.w3.org/2000/svg" in line for line in foreign)
        assert "@import" not in text
        assert "url(" not in text


def test_page_says_everything_without_its_script() -> None:
    record = random_game("manchester")
    page = replay_html(replay_data(record))
    shown = " ".join(Elements(page).texts)
    assert record.result.detail in shown
    for text in ("off", "512", record.players[0].digest, "the game's own start", "exit status -9"):
        assert text in shown
    for number, move in enumerate(record.moves, 1):
        assert f'<a href="#ply={number}">{number}</a>' in page
        assert f"<td>{move.move}</td><td>{time_text(move.charged_us)}</td>" in page
    for line in record.wire:
        assert f"<code>{line.line}</code></li>" in page
    assert 'id="replay-still"><svg' in page


def test_page_is_small() -> None:
    record = game_of_length("manchester", 86)
    cut = replace(record, moves=record.moves[:86])
    assert len(standalone_page(replay_data(cut)).encode()) < LARGEST_PAGE


def test_long_page_is_not_too_large() -> None:
    record = random_game("kalamala+cap=400", avoid="x")  # nothing is removed
    data = replay_data(record)
    assert len(data["plies"]) == 400
    assert len(standalone_page(data).encode()) < LARGEST_LONG_PAGE


# The script.


def test_no_asset_names_a_game() -> None:
    """But for the one with the looks of all pieces."""
    viewer = [path for path in ASSETS if path.name != "pictures.css"]
    names = {path.name: NAMES.findall(path.read_text(encoding="utf-8")) for path in viewer}
    assert names == {"replay.css": [], "replay.js": [], "replay_board.js": []}


@pytest.mark.parametrize(
    "word", ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "fetch(", "import "]
)
def test_script_makes_no_code_of_texts(word: str) -> None:
    for script in (path for path in ASSETS if path.suffix == ".js"):
        assert word not in script.read_text(encoding="utf-8")


def test_assets_are_short() -> None:
    for path in ASSETS:
        assert len(path.read_text(encoding="utf-8").splitlines()) <= 400


# A server's content security policy.


@pytest.mark.parametrize("game", ["manchester", "kalamala"])
def test_a_page_has_no_style_of_its_own(game: str) -> None:
    """A policy that allows styles from files alone would leave it out, and say so in the console."""
    page = Elements(replay_html(replay_data(random_game(game))))
    assert "style" not in page.tags
    assert not [value for name, value in page.attributes if name == "style"]


@pytest.mark.parametrize("game", ["manchester", "kalamala"])
def test_the_style_sheet_has_all_that_pictures_bring_along(game: str) -> None:
    data = replay_data(random_game(game))
    brought = re.findall(r"<style>(.*?)</style>", data["final_picture"] + data["board"]["svg"])
    sheet = re.sub(r"\s", "", ASSETS[0].with_name("pictures.css").read_text(encoding="utf-8"))
    assert brought
    for style in brought:
        assert re.sub(r"\s", "", style) in sheet
