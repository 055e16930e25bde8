"""Kalamala's rule book against the naive implementation: games, fillings of whole lines, full crossings.

Random games hardly ever use long groups (rules, section 3), hence the lines.
"""

import itertools
import random
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

from referee.games.base import Side
from referee.games.catalog import AnyGame, parse_game
from tests.games.naive_kalamala import COLOURS, LINES, OTHER, Colour, Ko, Line, NaiveKalamala, Square

SIDES: dict[Colour, Side] = {"w": Side.FIRST, "b": Side.SECOND}
KOS: tuple[Ko, ...] = ("superko", "basic", "none")

FULL_LINES: dict[str, Line] = {
    "row 4": [(x, 4) for x in range(1, 9)],
    "row 1": [(x, 1) for x in range(1, 9)],
    "column c": [(3, y) for y in range(1, 9)],
    "diagonal a1-h8": [(n, n) for n in range(1, 9)],
    "diagonal a8-h1": [(n, 9 - n) for n in range(1, 9)],
}


def pair(
    ko: Ko = "superko", cap: int = 600, position: str | None = None
) -> tuple[AnyGame, Any, NaiveKalamala]:
    """The same game twice."""
    game = parse_game(f"kalamala+ko={ko}+cap={cap}")
    state = game.initial_state() if position is None else game.parse_state(position)
    return game, state, NaiveKalamala(ko, cap, position)


def assert_same(game: AnyGame, state: Any, naive: NaiveKalamala) -> None:
    """Every question that both can answer has the same answer."""
    assert game.board_text(state) == naive.position()
    assert game.to_move(state) is SIDES[naive.on_turn]
    texts = [game.format_move(state, move) for move in game.legal_moves(state)]
    assert texts == naive.legal_turns()
    outcome = game.outcome(state)
    over, winner = naive.result()
    assert (outcome is not None) == over
    if outcome is not None:
        assert outcome.winner is (None if winner is None else SIDES[winner])
        assert outcome.score == (naive.stones_left("w"), naive.stones_left("b"))


def assert_same_turns(position: str) -> int:
    """Both have the same turns in a position, with the same effects; how many."""
    game, state, naive = pair(position=position)
    assert_same(game, state, naive)
    turns = naive.turns()
    other = OTHER[naive.on_turn]
    for text, (board, unplaced) in turns.items():
        naive.board, naive.unplaced, naive.on_turn = board, unplaced, other
        assert game.board_text(game.apply(state, text)) == naive.position(), text
    return len(turns)


def play_side_by_side(
    game: AnyGame, state: Any, naive: NaiveKalamala, dice: random.Random, turns: int
) -> int:
    """Play at random, movements more often than their number would make them; the turns played."""
    played: list[str] = []
    haste = dice.choice([0.1, 0.5, 0.9])
    assert_same(game, state, naive)
    while (legal := naive.legal_turns()) and len(played) < turns:
        movements = [text for text in legal if "-" in text]
        played.append(dice.choice(movements if movements and dice.random() > haste else legal))
        naive.play(played[-1])
        state = game.apply(state, game.parse_move(state, played[-1]))
        try:
            assert_same(game, state, naive)
        except AssertionError:
            note(f"{game.name} after {' '.join(played)}")
            raise
    return len(played)


@settings(max_examples=12)
@given(st.sampled_from(KOS), st.sampled_from([20, 150]), st.integers(0, 2**32))
def test_random_games(ko: Ko, cap: int, seed: int) -> None:
    play_side_by_side(*pair(ko, cap), random.Random(seed), cap)


@pytest.mark.slow
@settings(max_examples=15)
@given(st.sampled_from(KOS), st.integers(0, 2**32))
def test_whole_random_games(ko: Ko, seed: int) -> None:
    play_side_by_side(*pair(ko, 600), random.Random(seed), 600)


def text_of(board: dict[Square, str], reserves: str, side: str) -> str:
    rows = ("".join(board.get((x, y), ".") for x in range(1, 9)) for y in range(8, 0, -1))
    return f"{'/'.join(rows)}:{reserves}:{side}"


@st.composite
def endgames(draw: st.DrawFn) -> str:
    """A few stones on one or two lines: nearly every turn can be undone, and many games end by rule 8."""
    lines = draw(st.lists(st.sampled_from(list(FULL_LINES)), min_size=1, max_size=2, unique=True))
    squares = sorted({square for name in lines for square in FULL_LINES[name]})
    stones = draw(st.lists(st.sampled_from(squares), min_size=2, max_size=5, unique=True))
    board: dict[Square, str] = {square: draw(st.sampled_from("wb")) for square in stones}
    reserves = draw(st.sampled_from(["00", "00", "01", "10"]))
    return text_of(board, reserves, draw(st.sampled_from("wb")))


@settings(max_examples=75)
@given(endgames(), st.sampled_from(KOS), st.integers(0, 2**32))
def test_endgames(position: str, ko: Ko, seed: int) -> None:
    note(position)
    play_side_by_side(*pair(ko, 30, position), random.Random(seed), 30)


# All fillings of a line: 6561 of them.


def fillings(line: Line, sides: Iterable[str], every: int, first: int) -> list[str]:
    cells = itertools.islice(itertools.product(".wb", repeat=len(line)), first, None, every)
    boards = [
        {square: cell for square, cell in zip(line, filling, strict=True) if cell != "."} for filling in cells
    ]
    return [text_of(board, "00", side) for board in boards for side in sides]


@pytest.mark.slow
@pytest.mark.parametrize("name", FULL_LINES)
def test_some_fillings_of_a_line(name: str) -> None:
    # Other ones for each line, so that together they are every seventh filling.
    first = list(FULL_LINES).index(name)
    positions = fillings(FULL_LINES[name], COLOURS, every=35, first=7 * first)
    assert sum(map(assert_same_turns, positions)) > 1000


@pytest.mark.slow
@pytest.mark.parametrize("name", ["row 4", "column c", "diagonal a1-h8"])
def test_all_fillings_of_a_line(name: str) -> None:
    # All of the row with White to move: with Black to move they are the same ones in the other colours.
    # Half of the others, which differ from the row in their direction alone, with Black to move.
    side, every = ("w", 1) if name == "row 4" else ("b", 2)
    positions = fillings(FULL_LINES[name], side, every=every, first=0)
    assert len(positions) == 3**8 // every + every - 1
    assert sum(map(assert_same_turns, positions)) > 10_000


@st.composite
def crossings(draw: st.DrawFn) -> str:
    """Two lines that cross, filled with up to eight stones of each side, in runs."""
    crossing = [
        (one, other)
        for one, other in itertools.combinations([line for line in LINES if len(line) > 3], 2)
        if set(one) & set(other)
    ]
    board: dict[Square, str] = {}
    for line in draw(st.sampled_from(crossing)):
        runs = draw(
            st.lists(st.tuples(st.sampled_from("wwwbbb."), st.integers(1, 4)), min_size=2, max_size=8)
        )
        cells = "".join(cell * times for cell, times in runs)
        for square, cell in zip(line, cells, strict=False):
            if cell != "." and list(board.values()).count(cell) < 8:
                board.setdefault(square, cell)
    unplaced = [min(draw(st.sampled_from([0, 0, 0, 1])), 8 - list(board.values()).count(c)) for c in COLOURS]
    return text_of(board, f"{unplaced[0]}{unplaced[1]}", draw(st.sampled_from("wb")))


@pytest.mark.slow
@settings(max_examples=150)
@given(crossings())
def test_full_crossings(position: str) -> None:
    note(position)
    assert_same_turns(position)


@settings(max_examples=20)
@given(crossings(), st.sampled_from(KOS), st.integers(0, 2**32))
def test_games_from_full_crossings(position: str, ko: Ko, seed: int) -> None:
    note(position)
    play_side_by_side(*pair(ko, 12, position), random.Random(seed), 12)
