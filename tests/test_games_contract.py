"""The contract of referee.games.base.Game, on every registered game.

A new game needs a line in VARIANTS (a test fails otherwise) and, if it has moves that are never legal
or a notation with several spellings, one in MORE_MOVES.
"""

import random
from collections.abc import Sequence
from functools import cache
from typing import Any

import pytest

from protocol.codec import decode_referee_line, encode
from protocol.messages import Change, Next
from referee.games.base import Game, IllegalMoveError, InvalidMoveError, Outcome, PositionError, Side
from referee.games.catalog import DEFAULT_GAME, GAMES, parse_game
from referee.games.spec import parse_spec

AnyGame = Game[Any, Any]

VARIANTS: dict[str, list[str]] = {
    "manchester": [
        "manchester",
        "manchester(1,1)",
        "manchester(6,4)+end=on-turn",
        "manchester(3,5)+first-move-repeats",
        "manchester+pie=no",
    ],
    "bga": ["bga", "bga(6,6)+pie+empty-capture", "bga(3,3)+end=either", "bga(4,2)+first-move-repeats=no+pie"],
    "kalah": [
        "kalah(6,4)",
        "kalah(1,1)+end=on-turn",
        "kalah(1,40)",
        "kalah(2,9)+pie",
        "kalah(3,3)+pie+first-move-repeats=no+majority-end",
        "kalah(30,2)+majority-end+empty-capture",
        "kalah(4,1)+pie+end=on-turn+empty-capture",
    ],
    "kalamala": ["kalamala", "kalamala+ko=basic+cap=120", "kalamala+ko=none+cap=60", "kalamala+cap=1"],
}
"""Spec texts for each name of GAMES."""

KALAHS = ("manchester", "bga", "kalah")

MORE_MOVES: dict[str, list[str]] = {
    **{name: ["SWAP", "1", "2", "3", "4", "5", "6", "7", "8", "30", "31", "2147483647"] for name in KALAHS},
    "kalamala": ["a1", "d4", "h8", "a1-x", "h8-x", "a1b2-c3d4", "a1b1-xx", "a1-h8", "d4-d5", "e3-f3"],
}
"""Moves in form that need not be legal anywhere; the suite adds all that its playouts meet."""

NO_MOVES: list[Any] = [
    "",
    " ",
    "\0",
    "?",
    "MOVE;1",
    "\N{FULLWIDTH DIGIT ONE}",
    "1,2",
    pytest.param("x" * 2000, id="2000 x"),
]
"""Texts that are no move of any game."""

NO_STATES: list[Any] = ["", " ", "?", "\0", "1", ";;;", pytest.param("x" * 2000, id="2000 x")]
"""Texts that are no position of any game."""

# Kalah's longest random playout of the list has about 400 plies, Kalamala's rules (section 2, row 22)
# saw 325 turns at most: beyond this a game does not end.
MAX_PLIES = 5_000
PLAYOUTS = 12
# Bounds the work where a notation has thousands of moves.
MOVES_TRIED = 60

SPECS = [spec for specs in VARIANTS.values() for spec in specs]
KALAH_SPECS = [spec for name in KALAHS for spec in VARIANTS[name]]
every_variant = pytest.mark.parametrize("spec", SPECS)


def playout(game: AnyGame, seed: int) -> list[tuple[Any, Any]]:
    """The states of a random game with the move that was played in each; None with the last."""
    dice = random.Random(seed)
    state = game.initial_state()
    steps: list[tuple[Any, Any]] = []
    while moves := list(game.legal_moves(state)):
        assert len(steps) < MAX_PLIES, "the game does not end"
        # A swap would be rare among many moves.
        move = game.swap if game.swap in moves and dice.random() < 0.4 else dice.choice(moves)
        steps.append((state, move))
        state = game.apply(state, move)
    return [*steps, (state, None)]


@cache
def playouts(spec: str) -> list[tuple[Any, Any]]:
    game = parse_game(spec)
    return [step for seed in range(PLAYOUTS) for step in playout(game, seed)]


def states_of(spec: str) -> list[Any]:
    return [state for state, _ in playouts(spec)]


def name_of(spec: str) -> str:
    return spec.partition("(")[0].partition("+")[0]


def moves_in_form(spec: str) -> Sequence[Any]:
    """Syntactically valid moves: the ones listed above, and all that were played."""
    game = parse_game(spec)
    start = game.initial_state()
    listed = {game.parse_move(start, text) for text in MORE_MOVES.get(name_of(spec), [])}
    played = {move for _, move in playouts(spec) if move is not None}
    return sorted(listed | played)


def test_every_registered_game_is_in_the_suite() -> None:
    assert set(VARIANTS) == set(GAMES), "each name in referee.games.catalog.GAMES needs VARIANTS here"
    assert all(VARIANTS.values())
    assert set(MORE_MOVES) <= set(VARIANTS)
    for name, specs in VARIANTS.items():
        assert [name_of(spec) for spec in specs] == [name] * len(specs)
        assert len({parse_game(spec).name for spec in specs}) == len(specs)


def test_every_registered_option_is_in_the_suite() -> None:
    for name, entry in GAMES.items():
        for option in entry.options:
            assert any(f"+{option}" in spec for specs in VARIANTS.values() for spec in specs), (name, option)


def test_every_registered_game_has_an_example() -> None:
    for name, entry in GAMES.items():
        assert parse_spec(parse_game(entry.example).name).name == name


def test_every_registered_game_says_what_it_is() -> None:
    assert DEFAULT_GAME in GAMES
    for entry in GAMES.values():
        assert entry.about
        assert all(values and about for values, about in entry.options.values())


@every_variant
def test_name_is_a_spec_of_the_same_game(spec: str) -> None:
    game = parse_game(spec)
    again = parse_game(game.name)
    assert again.name == game.name
    assert again == game


@every_variant
def test_start(spec: str) -> None:
    game = parse_game(spec)
    state = game.initial_state()
    assert game.initial_state() == state
    assert game.to_move(state) is Side.FIRST
    assert game.outcome(state) is None
    assert game.swap is None or game.swap not in game.legal_moves(state)


@every_variant
def test_legal_moves_are_sorted_and_empty_only_at_the_end(spec: str) -> None:
    game = parse_game(spec)
    for state in states_of(spec):
        moves = list(game.legal_moves(state))
        assert moves == sorted(set(moves))
        assert (not moves) == (game.outcome(state) is not None)


@every_variant
def test_apply_is_pure(spec: str) -> None:
    game = parse_game(spec)
    for state, move in playouts(spec):
        before, text = hash(state), game.format_state(state)
        if move is not None:
            first, second = game.apply(state, move), game.apply(state, move)
            assert first == second
            assert hash(first) == hash(second)
            assert first != state
        assert hash(state) == before
        assert game.format_state(state) == text


@every_variant
def test_every_legal_move_can_be_applied(spec: str) -> None:
    game = parse_game(spec)
    for state in states_of(spec):
        for move in list(game.legal_moves(state))[:MOVES_TRIED]:
            game.apply(state, move)


@every_variant
def test_moves_that_are_not_legal_are_refused(spec: str) -> None:
    game = parse_game(spec)
    dice = random.Random(spec)
    candidates = moves_in_form(spec)
    refused = 0
    for state in states_of(spec):
        legal = set(game.legal_moves(state))
        wrong = [move for move in candidates if move not in legal]
        for move in dice.sample(wrong, min(MOVES_TRIED, len(wrong))):
            with pytest.raises(IllegalMoveError) as error:
                game.apply(state, move)
            assert error.value.fault
            assert error.value.message
            refused += 1
    assert refused > 0


@every_variant
def test_move_texts(spec: str) -> None:
    game = parse_game(spec)
    for state in states_of(spec):
        moves = list(game.legal_moves(state))
        texts = [game.format_move(state, move) for move in moves]
        assert len(set(texts)) == len(moves)
        assert [game.parse_move(state, text) for text in texts] == moves


@every_variant
@pytest.mark.parametrize("text", NO_MOVES)
def test_no_moves(spec: str, text: str) -> None:
    game = parse_game(spec)
    for state in (game.initial_state(), states_of(spec)[-1]):
        with pytest.raises(InvalidMoveError) as error:
            game.parse_move(state, text)
        assert error.value.fault
        assert error.value.message


@every_variant
def test_state_texts(spec: str) -> None:
    game = parse_game(spec)
    for state in states_of(spec):
        text = game.format_state(state)
        again = game.parse_state(text)
        assert again == state
        assert hash(again) == hash(state)
        assert game.format_state(again) == text
        assert game.outcome(again) == game.outcome(state)
        assert list(game.legal_moves(again)) == list(game.legal_moves(state))


@every_variant
@pytest.mark.parametrize("text", NO_STATES)
def test_no_states(spec: str, text: str) -> None:
    with pytest.raises(PositionError):
        parse_game(spec).parse_state(text)


@every_variant
def test_bots_can_be_told_every_move_and_board(spec: str) -> None:
    game = parse_game(spec)
    for state, move in playouts(spec):
        if move is not None:
            after = game.apply(state, move)
            message = Change(game.format_move(state, move), game.board_text(after), Next.YOU)
            assert decode_referee_line(encode(message)) == message


@every_variant
def test_seats_are_exchanged_by_a_swap_and_by_nothing_else(spec: str) -> None:
    game = parse_game(spec)
    for state, move in playouts(spec):
        first, second = game.seats(state)
        assert first != second
        if move is not None:
            swapped = game.swap is not None and move == game.swap
            after = game.apply(state, move)
            assert game.seats(after) == ((second, first) if swapped else (first, second))
            if swapped:
                assert game.board_text(after) == game.board_text(state)
                assert game.to_move(after) is game.to_move(state).other


@every_variant
def test_outcomes(spec: str) -> None:
    game = parse_game(spec)
    ends = [outcome for state in states_of(spec) if (outcome := game.outcome(state)) is not None]
    assert len(ends) == PLAYOUTS
    for outcome in ends:
        assert isinstance(outcome, Outcome)
        assert outcome.winner in (None, Side.FIRST, Side.SECOND)
        assert all(type(points) is int for points in outcome.score)
        if outcome.winner is None:
            assert outcome.score[0] == outcome.score[1]


@pytest.mark.parametrize("spec", KALAH_SPECS)
def test_kalah_conserves_its_seeds(spec: str) -> None:
    game = parse_game(spec)
    board = game.board_text(game.initial_state())
    total = sum(map(int, board.split(",")))
    for state in states_of(spec):
        numbers = list(map(int, game.board_text(state).split(",")))
        assert min(numbers) >= 0
        assert sum(numbers) == total


@pytest.mark.parametrize("spec", VARIANTS["kalamala"])
def test_kalamala_only_loses_stones(spec: str) -> None:
    game = parse_game(spec)
    for state, move in playouts(spec):
        if move is not None:
            before, after = (game.board_text(s) for s in (state, game.apply(state, move)))
            for stone, reserve in (("w", 72), ("b", 73)):
                left = [board[:71].count(stone) + int(board[reserve]) for board in (before, after)]
                assert 0 <= left[0] - left[1] <= move.count("x")


def test_the_suite_meets_caps_and_regular_ends() -> None:
    def reasons(specs: list[str]) -> set[str]:
        outcomes = [parse_game(spec).outcome(state) for spec in specs for state in states_of(spec)]
        return {outcome.reason for outcome in outcomes if outcome is not None}

    assert reasons(KALAH_SPECS) == {"score"}
    assert reasons(VARIANTS["kalamala"]) == {"score", "turn-cap"}
    assert reasons(["kalamala+cap=1"]) == {"turn-cap"}


def test_the_suite_meets_swaps_and_extra_turns() -> None:
    # Otherwise the tests above would pass without having seen them.
    met: set[str] = set()
    for spec in SPECS:
        game = parse_game(spec)
        for state, move in playouts(spec):
            if move is not None:
                again = game.to_move(game.apply(state, move)) is game.to_move(state)
                met.add(
                    "swap" if game.swap is not None and move == game.swap else "again" if again else "other"
                )
    assert met == {"swap", "again", "other"}


def test_side_other() -> None:
    assert Side.FIRST.other is Side.SECOND
    assert Side.SECOND.other is Side.FIRST
