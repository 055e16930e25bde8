"""A game that goes on has the same plies as the page of the finished game."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from referee.judge.results import GameRecord
from tests.random_games import random_game
from tournaments.reporting.site.replay import LiveReplay, replay_data
from tournaments.reporting.site.replay_page import live_html

UNKNOWN = {"wire": 0, "wall_us": None, "cpu_us": None}
"""What is not told of a move while the game goes on."""
GAMES = ["manchester(3,3)", "kalamala+cap=40"]


def expected(record: GameRecord) -> list[dict[str, Any]]:
    return [ply | UNKNOWN for ply in replay_data(record)["plies"] if "fault" not in ply]


def go_on(replay: LiveReplay, record: GameRecord, until: int) -> None:
    moves = record.moves[:until]
    replay.update([move.move for move in moves], [move.charged_us for move in moves])


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
