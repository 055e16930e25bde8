"""Kalah's texts: the moves and positions that are read, those that are refused, and the reasons."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from referee.games.base import Game, InvalidMoveError, PositionError, Side
from referee.games.catalog import parse_game

AnyGame = Game[Any, Any]

MANCHESTER = parse_game("manchester")
START = MANCHESTER.initial_state()
SMALL, PIE = parse_game("kalah(2,2)"), parse_game("kalah(2,2)+pie")


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("1", "1"),
        ("+1", "1"),  # docs/protocol.md: the course's engine accepts MOVE;+1 and MOVE;01
        ("01", "1"),
        ("+007", "7"),
        ("8", "8"),  # beyond the board: a move of the game, though never legal here
        ("2147483647", "2147483647"),  # the largest number that the course's engine reads
        pytest.param("0" * 5000 + "3", "3", id="5000 zeros and 3"),
        ("SWAP", "SWAP"),
    ],
)
def test_moves_that_are_read(text: str, canonical: str) -> None:
    move = MANCHESTER.parse_move(START, text)
    assert MANCHESTER.format_move(START, move) == canonical
    assert MANCHESTER.parse_move(START, canonical) == move


REFUSED_MOVES = {
    # Python's int() would take 1_0, and the course's engine the full-width digit.
    "bad-number": [
        *("", "+", "-", "++1", "+-1", " 1", "1 ", "1\n", "1\0", "1_0", "1.0", "1e0", "0x1", "one"),
        *("swap", "Swap", "SWAP ", "\N{FULLWIDTH DIGIT ONE}", "\N{ARABIC-INDIC DIGIT THREE}"),
        *("\N{SUPERSCRIPT TWO}", "\N{MINUS SIGN}1"),
    ],
    "not-positive": ["0", "+0", "-0", "00", "-1", "-01", "0" * 5000],
    # The last one has more digits than Python's int() converts.
    "number-too-large": ["2147483648", "99999999999", "9" * 5000, "-" + "9" * 5000],
}


@pytest.mark.parametrize(
    ("text", "fault"),
    [pytest.param(text, fault, id=text[:12]) for fault, texts in REFUSED_MOVES.items() for text in texts],
)
def test_moves_that_are_refused(text: str, fault: str) -> None:
    with pytest.raises(InvalidMoveError) as error:
        MANCHESTER.parse_move(START, text)
    assert error.value.fault == fault
    assert str(error.value) == error.value.message
    assert len(error.value.message) < 200  # a long number is not repeated in full


@given(st.text(st.sampled_from("0123456789+-SWAP .\u0663\n"), max_size=14) | st.text(max_size=5))
def test_any_text_is_a_move_or_a_syntax_error(text: str) -> None:
    try:
        move = MANCHESTER.parse_move(START, text)
    except InvalidMoveError:
        return
    assert MANCHESTER.parse_move(START, MANCHESTER.format_move(START, move)) == move


@pytest.mark.parametrize(
    ("game", "moves", "text"),
    [
        (SMALL, [], "2,2,0,2,2,0;South;opening"),
        (SMALL, ["2"], "3,2,0,2,0,1;North"),
        (SMALL, ["1"], "2,2,0,0,3,1;South"),
        (PIE, ["1"], "2,2,0,0,3,1;South;repeating"),
        (PIE, ["1", "2"], "0,0,6,0,0,2;North"),  # over, and collected
        (PIE, ["2"], "3,2,0,2,0,1;North;reply"),
        (PIE, ["2", "SWAP"], "3,2,0,2,0,1;North;swapped"),
        (PIE, ["2", "2"], "3,0,1,3,0,1;South"),
    ],
)
def test_states_have_exact_texts(game: AnyGame, moves: list[str], text: str) -> None:
    state = game.initial_state()
    for move in moves:
        state = game.apply(state, game.parse_move(state, move))
    assert game.format_state(state) == text
    assert game.parse_state(text) == state


def test_a_bare_board_is_the_start_or_the_middle_of_a_game_with_south_to_move() -> None:
    assert MANCHESTER.parse_state(MANCHESTER.board_text(START)) == START
    state = MANCHESTER.parse_state("6,7,7,7,7,7,7,1,7,7,7,7,7,7,7,0")
    assert MANCHESTER.to_move(state) is Side.FIRST
    assert MANCHESTER.swap not in MANCHESTER.legal_moves(state)
    assert MANCHESTER.format_state(state) == "6,7,7,7,7,7,7,1,7,7,7,7,7,7,7,0;South"


def test_swapped_positions_belong_to_the_other_player() -> None:
    assert PIE.to_move(PIE.parse_state("3,2,0,2,0,1;North;swapped")) is Side.FIRST
    assert PIE.to_move(PIE.parse_state("3,2,0,2,0,1;South;swapped")) is Side.SECOND


def test_a_finished_position_is_read_as_finished_and_collected() -> None:
    state = SMALL.parse_state("3,2,0,0,0,3;North")
    assert SMALL.format_state(state) == "0,0,5,0,0,3;North"
    assert SMALL.outcome(state) is not None
    # Under on-turn the same position is not over, while North is to move.
    game = parse_game("kalah(2,2)+end=on-turn")
    assert game.outcome(game.parse_state("3,2,0,0,0,3;North")) is None
    assert game.outcome(game.parse_state("3,2,0,0,0,3;South")) is not None


@pytest.mark.parametrize("game", [SMALL, PIE], ids=["plain", "pie"])
@pytest.mark.parametrize(
    ("text", "reason"),
    [
        *(("2,2,0,2,2", "kalah.* has 6 numbers, not 5"), ("2,2,0,2,2,0,0", "6 numbers, not 7")),
        *(("2,2,0,2,2,1", "9 seeds.*has 8"), ("2,2,0,2,1,0", "7 seeds"), ("0,0,0,0,0,0", "0 seeds")),
        *((text, ".") for text in ("", "2,2,0,2,2,0;", "2,2,0,2,2,0;Sud", "2,2,0,2,2,0;south", "a position")),
        *((f"2,2,0,2,2,0;South;{stage}", ".") for stage in ("middle", "over", "play")),
        ("2,2,0,2,2,0;swapped", "."),  # whose turn?
        *((text, ".") for text in ("2,2,0,2,2,0; South", "2, 2,0,2,2,0", "2,2,0,2,2,0\n", "2,2,0,2,2,+0")),
        *((text, ".") for text in ("-1,2,0,2,2,3", "2,2,0,2,2,", "2;2;0;2;2;0")),
        ("\N{FULLWIDTH DIGIT TWO},2,0,2,2,0", "."),
        pytest.param("9" * 5000 + ",2,0,2,2,0", ".", id="5000 nines"),
    ],
)
def test_texts_that_are_no_position(text: str, reason: str, game: AnyGame) -> None:
    with pytest.raises(PositionError, match=reason):
        game.parse_state(text)


@pytest.mark.parametrize(
    ("spec", "text", "reason"),
    [
        ("kalah(2,2)", "2,2,0,2,2,0;North;opening", "opening"),
        ("kalah(2,2)", "3,2,0,2,0,1;South;opening", "opening"),
        ("kalah(2,2)", "3,2,0,2,0,1;North;reply", "reply"),  # no pie rule
        ("kalah(2,2)+pie", "3,2,0,2,0,1;South;reply", "reply"),
        ("kalah(2,2)", "2,2,0,0,3,1;South;repeating", "repeating"),
        ("kalah(2,2)+pie", "2,2,0,0,3,1;North;repeating", "repeating"),
        ("kalah(2,2)+pie+first-move-repeats=no", "2,2,0,0,3,1;South;repeating", "repeating"),
        ("kalah(2,2)", "3,2,0,2,0,1;North;swapped", "swap"),
        ("kalah(2,2)+pie", "3,2,0,2,0,1;North;reply;swapped", "swap"),
        ("kalah(2,2)+pie", "2,2,0,2,2,0;South;opening;swapped", "swap"),
        ("kalah(2,2)+pie", "3,2,0,0,0,3;North;reply", "over"),
    ],
)
def test_positions_that_cannot_be(spec: str, text: str, reason: str) -> None:
    with pytest.raises(PositionError, match=reason):
        parse_game(spec).parse_state(text)


@given(st.text(st.sampled_from("0123;,SouthNrepygw"), max_size=24))
def test_any_text_is_a_state_or_a_position_error(text: str) -> None:
    game = parse_game("kalah(2,1)+pie")
    try:
        state = game.parse_state(text)
    except PositionError:
        return
    assert game.parse_state(game.format_state(state)) == state
