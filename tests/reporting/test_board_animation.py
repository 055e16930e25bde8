"""Scenes of boards: every game has one, and its transfers lead from each position to the next."""

import re
from itertools import combinations
from typing import Any
from xml.etree import ElementTree

import pytest

from referee.games.base import IllegalMoveError, Side
from referee.games.catalog import parse_game
from referee.games.kalamala import SQUARES
from tests.games.test_games_contract import VARIANTS, steps_of
from tournaments.reporting.board.board_renderer import contents, scene, tallies, transfers
from tournaments.reporting.board.drawing import NOWHERE, Content, Phases, captions

SPECS = [spec for specs in VARIANTS.values() for spec in specs]
every_variant = pytest.mark.parametrize("spec", SPECS)
SVG = "{http://www.w3.org/2000/svg}"


def carried_out(before: list[Content], phases: Phases) -> list[Content]:
    """The contents after these transfers, each of which must be possible when it comes."""
    cells = list(before)
    for phase in phases:
        for origin, _, what in phase:  # all of a phase leave before any arrives
            if origin != NOWHERE:
                there = cells[origin]
                number = what if isinstance(what, int) else 1
                if isinstance(there, int):
                    assert there >= number > 0
                    cells[origin] = there - number
                else:
                    assert there == what
                    cells[origin] = None
        for _, target, what in phase:
            if target != NOWHERE:
                there = cells[target]
                if isinstance(there, int):
                    cells[target] = there + (what if isinstance(what, int) else 1)
                else:
                    assert there is None
                    assert isinstance(what, str)
                    cells[target] = what
    return cells


@every_variant
def test_scenes_follow_the_games(spec: str) -> None:
    """Contents fit the cells, transfers lead to the next position, and tallies end as the score."""
    game = parse_game(spec)
    board = scene(game)
    for state, move in steps_of(spec)[::3]:
        found = contents(game, state)
        for cell, content in zip(board.cells, found, strict=True):
            if board.shapes[cell.shape].css_class:
                assert isinstance(content, int)
            else:
                assert content is None or content in board.pieces
        if move is not None:
            after = contents(game, game.apply(state, move))
            assert carried_out(found, transfers(game, state, move)) == after
    for state, _ in steps_of(spec)[::50]:
        assert {caption.seat for caption in captions(game, state)} == set(board.seats)
        for move in game.legal_moves(state):
            after = contents(game, game.apply(state, move))
            assert carried_out(contents(game, state), transfers(game, state, move)) == after
    ends = [state for state, move in steps_of(spec) if move is None]
    assert ends
    for state in ends:
        outcome = game.outcome(state)
        assert outcome is not None
        assert tallies(game, state) == outcome.score


@every_variant
def test_everything_is_drawn_within_the_scene(spec: str) -> None:
    board = scene(parse_game(spec))
    root = ElementTree.fromstring(board.svg)
    assert root.get("viewBox") == f"0 0 {board.width:g} {board.height:g}"
    assert len({cell.name for cell in board.cells}) == len(board.cells)
    for cell in board.cells:
        shape = board.shapes[cell.shape]
        assert shape.spots
        for x, y in ((0.0, 0.0), *shape.spots):
            assert shape.radius <= cell.x + x <= board.width - shape.radius
            assert shape.radius <= cell.y + y <= board.height - shape.radius
        if cell.number_x is not None:
            assert cell.number_y is not None
            assert 0 < cell.number_x < board.width
            assert board.number_size / 2 < cell.number_y < board.height - board.number_size / 2
    for shape in board.shapes:  # pieces in a cell do not hide each other
        for one, other in combinations(shape.spots, 2):
            assert (one[0] - other[0]) ** 2 + (one[1] - other[1]) ** 2 > shape.radius**2
    for forbidden in ("<script", "href", "url(", "@import", " id=", " on"):
        assert forbidden not in board.svg


@pytest.mark.parametrize(("spec", "move"), [("manchester", 8), ("manchester", 0), ("kalamala", "c4")])
def test_illegal_moves_have_no_transfers(spec: str, move: Any) -> None:
    game = parse_game(spec)
    with pytest.raises(IllegalMoveError):
        transfers(game, game.initial_state(), move)


# --- by hand --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "position", "move", "expected"),
    [
        # Cells of (2,...): 0 and 1 are North's pits, 2 its store, 3 and 4 South's, 5 its store.
        ("kalah(2,2)", "2,2,0,2,2,0;South", 1, [[(3, 4, 1)], [(3, 5, 1)]]),
        (
            "kalah(2,3)",
            "3,3,1,0,5,0;South",
            2,
            [[(4, to, 1)] for to in (5, 0, 1, 3, 4)] + [[(4, 5, 1), (0, 5, 4)]],
        ),
        ("kalah(2,2)", "3,2,0,1,0,2;South", 1, [[(3, 4, 1)], [(4, 5, 1), (0, 5, 3)], [(1, 2, 2)]]),
        ("kalah(2,2)+empty-capture", "0,4,0,1,0,3;South", 1, [[(3, 4, 1)], [(4, 5, 1)], [(1, 2, 4)]]),
        # The opponent's store is skipped.
        ("kalah(2,4)", "0,6,3,3,4,0;North", 2, [[(1, to, 1)] for to in (2, 3, 4, 0, 1, 2)]),
        ("kalah(2,2)+majority-end", "3,0,1,2,0,2;South", 1, [[(3, 4, 1)], [(3, 5, 1)]]),
    ],
)
def test_kalah_by_hand(spec: str, position: str, move: int, expected: Any) -> None:
    game = parse_game(spec)
    state = game.parse_state(position)
    assert list(map(list, transfers(game, state, move))) == expected


def test_a_swap_moves_nothing_but_the_players() -> None:
    game = parse_game("manchester(3,3)")
    state = game.apply(game.initial_state(), 1)
    after = game.apply(state, game.swap)
    assert transfers(game, state, game.swap) == []
    assert contents(game, after) == contents(game, state)
    assert tallies(game, after) == tallies(game, state)[::-1]


@pytest.mark.parametrize(
    ("row", "move", "expected"),
    [
        ("..wwwwbb", "g4h4-xx", "g4>off h4>off"),
        ("..wwwwbb", "g4-x", "g4>h4 h4>off"),
        ("wwwwbb..", "e4f4-g4h4", "e4>g4 f4>h4"),
        ("wwwwbb..", "e4-g4", "e4>f4 f4>g4"),
        ("ww..b...", "e4-c4", "e4>c4"),
    ],
)
def test_kalamala_groups_move_as_a_whole(row: str, move: str, expected: str) -> None:
    game = parse_game("kalamala")
    empty = "/".join(["." * 8] * 4)
    state = game.parse_state(f"{empty}/{row}/{'/'.join(['.' * 8] * 3)}:00:w")
    (phase,) = transfers(game, state, move)
    names = [*SQUARES, "", "", "off", "off"]
    found = " ".join(f"{names[origin or 0]}>{names[target or 0]}" for origin, target, _ in phase)
    assert found == expected


def test_kalamala_placement_comes_from_the_unplaced_stones() -> None:
    game = parse_game("kalamala")
    start = game.initial_state()
    cells = scene(game).cells
    ((one,),) = transfers(game, start, "h8")
    assert one == (64, 63, "w")
    assert [cells[64].name, cells[63].name] == ["White, unplaced", "h8"]
    assert re.fullmatch("White, .*", cells[66].name)
    assert tallies(game, start) == (8, 8)
    assert game.to_move(start) is Side.FIRST
