"""The rules in the Kalamala kernels against the rule book: games, lines, published positions, perft."""

import random
import tomllib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from referee.games.catalog import parse_game
from referee.games.kalamala import SQUARES, Kalamala, KalamalaState
from sample_bots.strong.compiled import COMPILED
from sample_bots.strong.kalamala.geometry import LINES, code_of, text_of
from sample_bots.strong.kalamala.memory import FILTER, FILTER_SIZE, SEEN, SUMS
from sample_bots.strong.kalamala.memory import LINES as FILLINGS_NOW
from sample_bots.strong.kalamala.position import key_of, search_tables
from sample_bots.strong.kalamala.turns import count_lines, key_after, play, take_back
from tests.sample_bots.strong_kalamala import board, codes, legal_texts, may_be_played, memory, set_up_state
from tests.support.paths import TEST_DATA
from tests.support.tiers import slow

PERFT: list[dict[str, Any]] = tomllib.loads((TEST_DATA / "kalamala_perft.toml").read_text("utf-8"))["variant"]
GOLDEN: list[dict[str, Any]] = tomllib.loads((TEST_DATA / "kalamala_positions.toml").read_text("utf-8"))[
    "position"
]
SPECS = ("kalamala", "kalamala+ko=basic", "kalamala+ko=none")


def game_of(spec: str = "kalamala") -> Kalamala:
    game = parse_game(spec)
    assert isinstance(game, Kalamala)
    return game


def position_of(stones: dict[int, str], reserves: str, side: str) -> str:
    rows = ["".join(stones.get(8 * row + column, ".") for column in range(8)) for row in range(7, -1, -1)]
    return f"{'/'.join(rows)}:{reserves}:{side}"


def assert_same(game: Kalamala, state: KalamalaState) -> None:
    """Same turns, same positions after them, and taking them back leaves no trace."""
    assert legal_texts(game, state) == game.legal_moves(state)
    own = state.black if state.side else state.white
    before = list(memory()[FILLINGS_NOW:SEEN]), list(memory()[FILTER : FILTER + FILTER_SIZE])
    for code in codes(state):
        text = text_of(code)
        assert code_of(text, own) == code
        if not may_be_played(state, code):
            continue
        key = key_after(memory(), 0, state.side, code)
        play(search_tables(), memory(), 0, state.side, code, key)
        after = game.apply(state, text)
        assert board(1) == (after.white, after.black, after.reserves)
        assert key == key_of(after.white, after.black)
        total = int(memory()[SUMS + 1])
        take_back(search_tables(), memory(), 0, state.side, code)
        assert (list(memory()[FILLINGS_NOW:SEEN]), list(memory()[FILTER : FILTER + FILTER_SIZE])) == before
        set_up_state(game, after)
        assert int(memory()[SUMS]) == total  # kept up to date, and computed anew
        set_up_state(game, state)


@pytest.mark.parametrize("spec", [*slow(SPECS[0]), *SPECS[1:]])
def test_random_games(spec: str) -> None:
    game = game_of(spec)
    dice = random.Random(spec)
    for _ in range(2):
        state = game.initial_state()
        while game.outcome(state) is None:
            assert legal_texts(game, state) == game.legal_moves(state)
            if dice.random() < 0.03:
                assert_same(game, state)
            state = game.apply(state, dice.choice(game.legal_moves(state)))


@pytest.mark.parametrize("case", GOLDEN, ids=[case["name"] for case in GOLDEN])
def test_golden_positions(case: dict[str, Any]) -> None:
    game = game_of()
    state = game.parse_state(case["position"])
    found = legal_texts(game, state)
    assert len(found) == case["turns"]
    assert [text for text in found if "-" in text] == sorted(case["movements"])
    assert_same(game, state)


@pytest.mark.parametrize("line", [0, 3, 8, 11, 22, 24, 35, 37], ids=lambda line: SQUARES[LINES[line][0]])
def test_fillings_of_lines(line: int) -> None:
    """Random games hardly ever use long groups (the rules' text, section 3)."""
    game = game_of()
    squares = LINES[line]
    dice = random.Random(line)
    for _ in range(60):
        weights = dice.choice([(1, 1, 1), (4, 1, 1), (4, 1, 2), (1, 1, 2)])
        stones = dict(zip(squares, dice.choices("wb.", weights, k=len(squares)), strict=True))
        state = game.parse_state(position_of(stones, "00", dice.choice("wb")))
        assert legal_texts(game, state) == game.legal_moves(state)


@pytest.mark.slow
@settings(max_examples=60)
@given(
    squares=st.lists(st.integers(0, 63), unique=True, max_size=16),
    inner=st.booleans(),
    side=st.sampled_from("wb"),
    spec=st.sampled_from(SPECS),
)
def test_any_position(squares: list[int], inner: bool, side: str, spec: str) -> None:
    """Scattered stones, or (inner) crowded into four rows, where groups are longer."""
    game = game_of(spec)
    places = {square // 2 + 16 if inner else square for square in squares}
    stones = {square: "wb"[index % 2] for index, square in enumerate(sorted(places))}
    white = sum(colour == "w" for colour in stones.values())
    reserves = f"{min(4, 8 - white)}{min(4, 8 - len(stones) + white)}"
    assert_same(game, game.parse_state(position_of(stones, reserves, side)))


@pytest.mark.parametrize("case", PERFT, ids=[case["spec"] for case in PERFT])
def test_perft(case: dict[str, Any]) -> None:
    game = game_of(case["spec"])
    for depth, count in enumerate(case["counts"], 1):
        if depth == 3 and not COMPILED:
            break  # a quarter of a minute
        set_up_state(game, game.initial_state())
        assert count_lines(search_tables(), memory(), 0, 0, depth) == count


def test_superko_remembers_what_the_rule_book_does() -> None:
    """Going round in a circle: the turn back to the start is forbidden, the way there is not."""
    game = game_of()
    state = game.initial_state()
    for turn in ("e3-f3", "d3-c3", "f3-e3"):
        state = game.apply(state, turn)
    assert "c3-d3" not in legal_texts(game, state)
    assert_same(game, state)
    assert "c3-d3" in legal_texts(game, state._replace(past=frozenset()))
