"""The texts of Kalamala: turns in the effect notation, positions, and positions with their history."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from referee.games.base import InvalidMoveError, PositionError
from referee.games.catalog import parse_game

GAME = parse_game("kalamala")
KO_SPECS = ["kalamala", "kalamala+ko=basic", "kalamala+ko=none"]

START = "......../......../...bw.../..b..w../..w..b../...wb.../......../........:44:w"
EMPTY = "/".join(["........"] * 8)
BOARD = START[:71]


TURNS = "d4 a1 h8 e5-e7 b3-x g4h4-xx c4d4-e4f4 c4d4-e4x b1c1-a1x a1-h8 a8b1-c1h8"


def test_texts_of_turns() -> None:
    state = GAME.initial_state()
    for text in TURNS.split():
        assert GAME.format_move(state, GAME.parse_move(state, text)) == text


@pytest.mark.parametrize(
    "text",
    [
        # no square
        "", "-", "d", "4", "4d", "i1", "a0", "a9", "d44", "dd4", "D4", "d4 ", " d4", "d4\n", "d\u0664", "x",
        # too little, too much
        "d4-", "-d4", "-x", "d4-e4-f4", "d4--e4", "d4-e4x", "d4-xx", "d4-e4f4", "d4e4-f4", "d4e4-x",
        "d4e4-", "d4e4-f4xx", "d4e4-xxx", "d4e4f4-g4h4x", "d4e4f4-xxx", "d4e4-f4g4h4", "d4x", "d4e4",
        # the order of squares
        "d4c4-e4f4", "c4d4-f4e4", "h4g4-xx", "c4c4-e4f4", "c4d4-e4e4", "b1a2-xx", "a2a1-b1b2",
        # the other side of the dash
        "d4-xe4", "d4e4-xf4", "x-d4", "xd4-e4",
        # capitals, other signs, other notations
        "E5-E7", "E5-e7", "b3-X", "e5_e7", "e5:e7", "e5 e7", "e5e7", "e5\u2013e7", "e5-e9", "e5-i5",
        "f5f6:f1f2-1", "SWAP", "pass", "e5-e7;", "e5-e7x" * 300,
    ],
)  # fmt: skip
def test_texts_that_are_no_turns(text: str) -> None:
    with pytest.raises(InvalidMoveError) as error:
        GAME.parse_move(GAME.initial_state(), text)
    assert error.value.fault == "bad-turn"
    assert len(error.value.message) < 120


@given(st.text("abcdefghix12345678-90 ", max_size=10) | st.text(max_size=10))
def test_any_text_is_a_canonical_turn_or_refused(text: str) -> None:
    state = GAME.initial_state()
    try:
        move = GAME.parse_move(state, text)
    except InvalidMoveError:
        return
    assert GAME.format_move(state, move) == text
    before, dash, after = text.partition("-")
    assert len(text) <= 9
    for squares in (before, after.replace("x", "")):
        names = [squares[index : index + 2] for index in range(0, len(squares), 2)]
        assert names == sorted(set(names))
    if dash:
        assert len(before) // 2 == len(after.replace("x", "")) // 2 + after.count("x")


def test_the_text_of_the_start() -> None:
    start = GAME.initial_state()
    assert GAME.board_text(start) == GAME.format_state(start) == START
    assert GAME.parse_state(START) == start


@pytest.mark.parametrize("spec", KO_SPECS)
@pytest.mark.parametrize("text", [START[:-1] + "b", EMPTY + ":88:w", "w......." + EMPTY[8:] + ":70:b"])
def test_bare_positions(spec: str, text: str) -> None:
    game = parse_game(spec)
    state = game.parse_state(text)
    assert game.format_state(state) == game.board_text(state) == text
    assert state.ply == 0


def test_offsets_of_squares_in_a_position() -> None:
    # Square (column x, row y) is at offset 9*(8-y) + x-1.
    state = GAME.parse_state(EMPTY + ":44:w")
    for y in range(1, 9):
        for x, column in enumerate("abcdefgh", start=1):
            text = GAME.board_text(GAME.apply(state, f"{column}{y}"))
            offset = 9 * (8 - y) + x - 1
            assert text == EMPTY[:offset] + "w" + EMPTY[offset + 1 :] + ":34:b"


@pytest.mark.parametrize(("spec", "past"), list(zip(KO_SPECS, [4, 1, 0], strict=True)))
def test_positions_with_their_history(spec: str, past: int) -> None:
    game = parse_game(spec)
    state = game.initial_state()
    for ply, turn in enumerate(["e3-f3", "d3-c3", "f3-e3"], start=1):
        state = game.apply(state, turn)
        text = game.format_state(state)
        assert text.startswith(f"{game.board_text(state)};{ply};")
        assert game.parse_state(text) == state
    boards = text.split(";")[2].split(",") if past else []
    assert len(boards) == past
    assert boards == sorted(boards)
    assert (BOARD in boards) == (past == 4)
    assert all(len(board) == 71 for board in boards)
    assert ("c3-d3" in game.legal_moves(game.parse_state(text))) == (past < 4)
    # After a placement only the ply is left, and the present board.
    state = game.apply(state, "a1")
    assert game.format_state(state).count(",") == 0
    assert game.parse_state(game.format_state(state)) == state


@pytest.mark.parametrize(("ply", "reason"), [(9, None), (10, "turn-cap")])
def test_the_ply_of_a_position_counts_towards_the_cap(ply: int, reason: str | None) -> None:
    game = parse_game("kalamala+cap=10")
    outcome = game.outcome(game.parse_state(f"{START};{ply};{BOARD}"))
    assert (outcome.reason if outcome else None) == reason


@pytest.mark.parametrize(
    "text",
    [
        START[:-2], START[:-1], START + ":", START + ";", START + "\n", " " + START, START.upper(),
        START[:-1] + "W", START[:-4] + "9" + START[-3:],
        *(START.replace(":44:", f":{reserves}:") for reserves in ("4", "444", "4,4", "-4", "4\u0664")),
        START.replace("/", ""), START.replace("/", "|"), START[9:], "......../" + START,
        START.replace("........", "8", 1), START.replace("......../", ".......", 1) + ".",
        # too many stones of one side
        START.replace(":44:", ":54:"), START.replace(":44:", ":45:"),
        EMPTY.replace("........", "wwwwwwww", 1).replace("........", "w.......", 1) + ":00:w",
        # a history that is none
        *(START + history for history in (";1", ";;", ";-1;", ";1234567;")),
        *(START + ";x;" + BOARD, START + ";1;" + BOARD[:-1], START + ";1;" + BOARD + "."),
        *(START + ";1;" + BOARD * 2, START + ";1;" + BOARD + ";" + BOARD),
        *(START + ";1;" + "." * 71, START + ";1;" + "/" * 71),
        "6,6,6,6,6,6,0,6,6,6,6,6,6,0;South",
    ],
)  # fmt: skip
def test_texts_that_are_no_positions(text: str) -> None:
    with pytest.raises(PositionError) as error:
        GAME.parse_state(text)
    assert str(error.value)
    assert len(str(error.value)) < 300


@given(st.text("wb./:48;,", max_size=90))
def test_any_text_is_refused_as_a_position(text: str) -> None:
    with pytest.raises(PositionError):  # nothing so short or so random is one
        GAME.parse_state(text)
