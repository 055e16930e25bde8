"""Kalah's texts: moves and positions, those that are read, those that are refused, and why."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from referee.games.base import Game, InvalidMoveError, PositionError, Side
from referee.games.catalog import parse_game

AnyGame = Game[Any, Any]

MANCHESTER = parse_game("manchester")
START = MANCHESTER.initial_state()

# --- moves ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("1", "1"),
        ("7", "7"),
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


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "bad-number"),
        ("+", "bad-number"),
        ("-", "bad-number"),
        ("++1", "bad-number"),
        ("+-1", "bad-number"),
        (" 1", "bad-number"),
        ("1 ", "bad-number"),
        ("1\n", "bad-number"),
        ("1\0", "bad-number"),
        ("1_0", "bad-number"),  # Python's int() would take it
        ("1.0", "bad-number"),
        ("1e0", "bad-number"),
        ("0x1", "bad-number"),
        ("one", "bad-number"),
        ("swap", "bad-number"),
        ("Swap", "bad-number"),
        ("SWAP ", "bad-number"),
        ("\N{FULLWIDTH DIGIT ONE}", "bad-number"),  # the course's engine takes it; the rule book does not
        ("\N{ARABIC-INDIC DIGIT THREE}", "bad-number"),
        ("\N{SUPERSCRIPT TWO}", "bad-number"),
        ("\N{MINUS SIGN}1", "bad-number"),
        ("0", "not-positive"),
        ("+0", "not-positive"),
        ("-0", "not-positive"),
        ("00", "not-positive"),
        ("-1", "not-positive"),
        ("-01", "not-positive"),
        ("2147483648", "number-too-large"),
        ("99999999999", "number-too-large"),
        pytest.param(
            "9" * 5000, "number-too-large", id="5000 nines"
        ),  # more digits than Python's int() converts
    ],
)
def test_moves_that_are_refused(text: str, fault: str) -> None:
    with pytest.raises(InvalidMoveError) as error:
        MANCHESTER.parse_move(START, text)
    assert error.value.fault == fault
    assert str(error.value) == error.value.message


def test_a_long_number_is_not_repeated_in_full() -> None:
    for text in ("9" * 5000, "-" + "9" * 5000, "0" * 5000):
        with pytest.raises(InvalidMoveError) as error:
            MANCHESTER.parse_move(START, text)
        assert len(error.value.message) < 200


@given(st.text(st.sampled_from("0123456789+-SWAP .\u0663\n"), max_size=14) | st.text(max_size=5))
def test_any_text_is_a_move_or_a_syntax_error(text: str) -> None:
    try:
        move = MANCHESTER.parse_move(START, text)
    except InvalidMoveError:
        return
    assert MANCHESTER.parse_move(START, MANCHESTER.format_move(START, move)) == move


# --- positions --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "moves", "text"),
    [
        ("kalah(2,2)", [], "2,2,0,2,2,0;South;opening"),
        ("kalah(2,2)", ["2"], "3,2,0,2,0,1;North"),
        ("kalah(2,2)", ["1"], "2,2,0,0,3,1;South"),
        ("kalah(2,2)+pie", ["1"], "2,2,0,0,3,1;South;repeating"),
        ("kalah(2,2)+pie", ["1", "2"], "0,0,6,0,0,2;North"),  # over, and collected
        ("kalah(2,2)+pie", ["2"], "3,2,0,2,0,1;North;reply"),
        ("kalah(2,2)+pie", ["2", "SWAP"], "3,2,0,2,0,1;North;swapped"),
        ("kalah(2,2)+pie", ["2", "2"], "3,0,1,3,0,1;South"),
        ("kalah(1,1)", ["1"], "0,1,0,1;South"),
    ],
)
def test_states_have_exact_texts(spec: str, moves: list[str], text: str) -> None:
    game = parse_game(spec)
    state = game.initial_state()
    for move in moves:
        state = game.apply(state, game.parse_move(state, move))
    assert game.format_state(state) == text
    assert game.parse_state(text) == state


def test_the_bare_board_of_the_start_is_the_start() -> None:
    assert MANCHESTER.parse_state(MANCHESTER.board_text(START)) == START


def test_a_bare_board_is_the_middle_of_a_game_with_south_to_move() -> None:
    state = MANCHESTER.parse_state("6,7,7,7,7,7,7,1,7,7,7,7,7,7,7,0")
    assert MANCHESTER.to_move(state) is Side.FIRST
    assert MANCHESTER.swap not in MANCHESTER.legal_moves(state)
    assert MANCHESTER.format_state(state) == "6,7,7,7,7,7,7,1,7,7,7,7,7,7,7,0;South"


def test_swapped_positions_belong_to_the_other_player() -> None:
    game = parse_game("kalah(2,2)+pie")
    assert game.to_move(game.parse_state("3,2,0,2,0,1;North;swapped")) is Side.FIRST
    assert game.to_move(game.parse_state("3,2,0,2,0,1;South;swapped")) is Side.SECOND


def test_a_finished_position_is_read_as_finished_and_collected() -> None:
    game = parse_game("kalah(2,2)")
    state = game.parse_state("3,2,0,0,0,3;North")
    assert game.format_state(state) == "0,0,5,0,0,3;North"
    assert game.outcome(state) is not None
    # Under on-turn the same position is not over, while North is to move.
    game = parse_game("kalah(2,2)+end=on-turn")
    assert game.outcome(game.parse_state("3,2,0,0,0,3;North")) is None
    assert game.outcome(game.parse_state("3,2,0,0,0,3;South")) is not None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2,2,0,2,2",  # a number is missing
        "2,2,0,2,2,0,0",
        "2,2,0,2,2,1",  # nine seeds
        "2,2,0,2,2,0;",
        "2,2,0,2,2,0;Sud",
        "2,2,0,2,2,0;south",
        "2,2,0,2,2,0;South;middle",
        "2,2,0,2,2,0;South;over",
        "2,2,0,2,2,0;South;play",
        "2,2,0,2,2,0;swapped",  # whose turn?
        "2,2,0,2,2,0; South",
        "2, 2,0,2,2,0",
        "2,2,0,2,2,0\n",
        "2,2,0,2,2,+0",
        "-1,2,0,2,2,3",
        "2,2,0,2,2,",
        "2;2;0;2;2;0",
        "\N{FULLWIDTH DIGIT TWO},2,0,2,2,0",
        "a position",
    ],
)
@pytest.mark.parametrize("options", ["", "+pie"])
def test_texts_that_are_no_position(text: str, options: str) -> None:
    with pytest.raises(PositionError):
        parse_game("kalah(2,2)" + options).parse_state(text)


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


def test_a_wrong_number_of_seeds_is_told() -> None:
    for text, seeds in [("2,2,0,2,2,1", 9), ("2,2,0,2,1,0", 7), ("0,0,0,0,0,0", 0)]:
        with pytest.raises(PositionError, match=rf"{seeds} seeds.*kalah\(2,2\) has 8"):
            parse_game("kalah(2,2)").parse_state(text)


def test_a_wrong_number_of_holes_is_told() -> None:
    with pytest.raises(PositionError, match=r"kalah\(2,2\) has 6 numbers, not 5"):
        parse_game("kalah(2,2)").parse_state("2,2,0,2,2")


def test_a_number_too_long_for_int_is_a_position_error() -> None:
    with pytest.raises(PositionError):
        parse_game("kalah(2,2)").parse_state("9" * 5000 + ",2,0,2,2,0")


@given(st.text(st.sampled_from("0123;,SouthNrepygw"), max_size=24))
def test_any_text_is_a_state_or_a_position_error(text: str) -> None:
    game = parse_game("kalah(2,1)+pie")
    try:
        state = game.parse_state(text)
    except PositionError:
        return
    assert game.parse_state(game.format_state(state)) == state
