"""Kalamala's rules one by one: golden positions, perft, repetitions, ends and refusals."""

import random
import tomllib
from dataclasses import replace
from typing import Any

import pytest

from referee.games.base import IllegalMoveError, Outcome, Side
from referee.games.catalog import parse_game
from referee.games.perft import perft
from referee.judge.results import Reason
from tests.games.naive_kalamala import NaiveKalamala, effect, naive_perft, square_of
from tests.support.judging import Judged
from tests.support.paths import TEST_DATA
from tests.support.tiers import slow

_GOLDEN = tomllib.loads((TEST_DATA / "kalamala_positions.toml").read_text(encoding="utf-8"))
POSITIONS: list[dict[str, Any]] = _GOLDEN["position"]
WORKED_EXAMPLES: list[dict[str, Any]] = _GOLDEN["worked_example"]
_PERFT = tomllib.loads((TEST_DATA / "kalamala_perft.toml").read_text(encoding="utf-8"))

SUPERKO = parse_game("kalamala")
BASIC = parse_game("kalamala+ko=basic")
NO_KO = parse_game("kalamala+ko=none")
KO_GAMES = {"superko": SUPERKO, "basic": BASIC, "none": NO_KO}

FOUR_TURN_CYCLE = ["e3-f3", "d3-c3", "f3-e3", "c3-d3"]  # Lemma 6


def position(reserves: str = "00", side: str = "w", **rows: str) -> str:
    """A position from its rows that are not empty: ``row4="ww..bw.."``."""
    board = [rows.pop(f"row{number}", "........") for number in range(8, 0, -1)]
    assert not rows
    return f"{'/'.join(board)}:{reserves}:{side}"


def play(game: Any, start: str | None, turns: list[str]) -> Any:
    """The state after these turns."""
    state = game.initial_state() if start is None else game.parse_state(start)
    for text in turns:
        state = game.apply(state, game.parse_move(state, text))
    return state


def fault(game: Any, state: Any, text: str) -> str:
    """Return the reason for which a turn is refused."""
    with pytest.raises(IllegalMoveError) as error:
        game.apply(state, game.parse_move(state, text))
    assert error.value.message
    return error.value.fault


# Rule 2, the golden positions and perft.


def test_start() -> None:
    state = SUPERKO.initial_state()
    assert SUPERKO.board_text(state) == position(
        "44", row6="...bw...", row5="..b..w..", row4="..w..b..", row3="...wb..."
    )
    assert SUPERKO.to_move(state) is Side.FIRST
    assert SUPERKO.seats(state) == ("White", "Black")


@pytest.mark.parametrize("ko", KO_GAMES)
@pytest.mark.parametrize("case", POSITIONS, ids=lambda case: case["name"])
def test_golden_positions(case: dict[str, Any], ko: str) -> None:
    game = KO_GAMES[ko]
    state = game.parse_state(case["position"])
    legal = game.legal_moves(state)
    assert [text for text in legal if "-" in text] == case["movements"]
    assert len(legal) == case["turns"]
    assert (game.outcome(state) is not None) == (case["turns"] == 0)


@pytest.mark.parametrize("case", POSITIONS, ids=lambda case: case["name"])
def test_golden_positions_naively(case: dict[str, Any]) -> None:
    naive = NaiveKalamala(position=case["position"])
    assert [text for text in naive.legal_turns() if "-" in text] == case["movements"]
    assert (len(naive.legal_turns()), len(naive.choices())) == (case["turns"], case["choices"])


@pytest.mark.parametrize("turn", ["columns and rows exchanged", "left for right", "upside down"])
def test_golden_positions_in_all_directions(turn: str) -> None:
    for case in POSITIONS:
        naive = NaiveKalamala(position=case["position"])
        stones, naive.board = naive.board, {}
        for (x, y), colour in stones.items():
            turned = {"columns and rows exchanged": (y, x), "left for right": (9 - x, y)}
            naive.board[turned.get(turn, (x, 9 - y))] = colour
        assert len(SUPERKO.legal_moves(SUPERKO.parse_state(naive.position()))) == case["turns"]


@pytest.mark.parametrize("case", WORKED_EXAMPLES, ids=lambda case: case["name"])
def test_worked_example(case: dict[str, Any]) -> None:
    naive = NaiveKalamala(position=case["position"])
    for text in case["after"]:
        naive.play(text)
    anchor = {square_of(name) for name in case["anchor"]}
    moved = {square_of(name) for name in case.get("moved", [])}
    effects = {
        effect(naive.board, naive.after_choice(choice))
        for choice in naive.choices()
        if set(choice.anchor) == anchor and (not moved or set(choice.moved) == moved)
    }
    assert effects == set(case["effects"])
    state = play(SUPERKO, case["position"], case["after"])
    assert SUPERKO.board_text(state) == naive.position()
    assert effects <= set(SUPERKO.legal_moves(state))


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("variant", _PERFT["variant"], ids=lambda variant: variant["spec"])
def test_perft(variant: dict[str, Any], depth: int) -> None:
    game = parse_game(variant["spec"])
    assert perft(game, game.initial_state(), depth) == variant["counts"][depth - 1]


@pytest.mark.parametrize(
    ("variant", "depth"),
    [
        *((variant, depth) for variant in _PERFT["variant"] for depth in (1, 2)),
        *slow((_PERFT["variant"][0], 3)),  # about 5 s
    ],
)
def test_naive_perft(variant: dict[str, Any], depth: int) -> None:
    naive = NaiveKalamala("none" if "none" in variant["spec"] else "superko")
    assert naive_perft(naive, depth) == variant["counts"][depth - 1]


def test_kinds_of_turns_at_the_start() -> None:
    legal = SUPERKO.legal_moves(SUPERKO.initial_state())
    placements = [text for text in legal if "-" not in text]
    assert len(placements) == _PERFT["start"]["placements"]
    assert len(legal) - len(placements) == _PERFT["start"]["pushes"] + _PERFT["start"]["pulls"]


# Rules 4 and 5.


def test_turns_alternate_and_use_up_the_unplaced_stones() -> None:
    state = SUPERKO.initial_state()
    squares = ["a1", "h8", "a2", "h7", "a4", "h6", "b1", "h5"]
    left = ["34:b", "33:w", "23:b", "22:w", "12:b", "11:w", "01:b", "00:w"]
    for number, (text, after) in enumerate(zip(squares, left, strict=True)):
        assert SUPERKO.to_move(state) is Side(number % 2)
        state = SUPERKO.apply(state, text)
        assert SUPERKO.board_text(state)[72:] == after
    assert all("-" in text for text in SUPERKO.legal_moves(state))
    assert fault(SUPERKO, state, "d4") == "no-stones"


@pytest.mark.parametrize(
    ("before", "turn", "after"),
    [
        ("ww.b....", "d1-c1", "wwb....."),
        ("ww.b....", "d1-f1", "ww...b.."),
        ("ww.b....", "b1-c1", "w.wb...."),  # an own stone, pushed away from the other
        ("ww.b....", "a1-x", ".w.b...."),
        ("wwwwbb..", "e1f1-g1h1", "wwww..bb"),
        ("wwwwbb..", "e1-g1", "wwww.bb."),  # both move one square
        ("wwwwb..b", "e1-f1", "wwww.b.b"),
        (".bbwwww.", "b1c1-a1x", "b..wwww."),  # both move two squares, and one of them leaves the board
        (".bbwwww.", "c1-a1", "bb.wwww."),
        ("wwwwbbbb", "e1-x", "wwww.bbb"),  # four move four
    ],
)
def test_what_a_movement_does(before: str, turn: str, after: str) -> None:
    # Only the effect is told, so that of two stones that move one square the one in between seems to stay.
    start = position(row1=before)
    assert SUPERKO.board_text(play(SUPERKO, start, [turn])) == position(side="b", row1=after)
    # The same for Black, colours exchanged.
    colours = str.maketrans("wb", "bw")
    start = position(side="b", row1=before.translate(colours))
    expected = position(row1=after.translate(colours))
    assert SUPERKO.board_text(play(SUPERKO, start, [turn])) == expected


# Rule 8.


def test_the_state_without_the_side_to_move_may_not_come_again() -> None:
    # Ambiguity 18: w pushes, b pulls, w pulls back to the board of the start, with b to move.
    start, turns = position(row1="ww.b...b"), ["d1-e1", "e1-f1"]
    assert fault(SUPERKO, play(SUPERKO, start, turns), "f1-d1") == "repetition"
    assert "f1-d1" not in SUPERKO.legal_moves(play(SUPERKO, start, turns))
    for game in (BASIC, NO_KO):
        assert game.board_text(play(game, start, [*turns, "f1-d1"])) == position(side="b", row1="ww.b...b")


def test_the_four_turn_cycle() -> None:
    # Lemma 6: no turn of it undoes the turn before it, so that only superko ends it.
    state = play(SUPERKO, None, FOUR_TURN_CYCLE[:3])
    assert fault(SUPERKO, state, FOUR_TURN_CYCLE[3]) == "repetition"
    for game in (BASIC, NO_KO):
        start = game.board_text(game.initial_state())
        state = play(game, None, FOUR_TURN_CYCLE * 3)
        assert game.board_text(state) == start
        assert state.ply == 12


def test_a_turn_may_not_be_undone_at_once() -> None:
    # Rule 8: "the start and the present one included", also for a position given as text.
    start = position(row1="w..b...b")
    assert fault(SUPERKO, play(SUPERKO, start, ["d1-e1"]), "e1-d1") == "repetition"
    assert fault(BASIC, play(BASIC, start, ["d1-e1"]), "e1-d1") == "repetition"
    assert NO_KO.board_text(play(NO_KO, start, ["d1-e1", "e1-d1"])) == start


def test_basic_ko_remembers_one_turn_only() -> None:
    # Back is undone on row 1 what was done there before the opponent's turn on row 5, and so on.
    start = position(row1="w..b...b", row5="w..b...b")
    turns = ["d1-e1", "d5-e5", "e1-d1"]
    assert fault(BASIC, play(BASIC, start, turns), "d1-e1") == "repetition"
    assert BASIC.board_text(play(BASIC, start, [*turns, "e5-d5"])) == start
    assert fault(SUPERKO, play(SUPERKO, start, turns), "e5-d5") == "repetition"


def test_a_board_may_come_again_with_other_unplaced_stones() -> None:
    # Rule 3: unplaced stones are part of the state.  h1 is placed and dies; then row 5 goes back to how it
    # was when Black still had that stone.
    start = position("01", row5="w..b...b", row1="......w.")
    state = play(SUPERKO, start, ["d5-e5", "h1", "h1-x", "e5-d5"])
    assert SUPERKO.board_text(state) == position("00", row5="w..b...b", row1="......w.")


@pytest.mark.parametrize("ko", KO_GAMES)
def test_a_stone_that_was_just_placed_may_be_pushed_off(ko: str) -> None:
    # The board is as it was before the placement, the unplaced stones are not.
    state = play(KO_GAMES[ko], position("02", "b", row1="......w."), ["h1", "h1-x"])
    assert KO_GAMES[ko].board_text(state) == position("01", "b", row1="......w.")


# Rule 9 and the cap.


@pytest.mark.parametrize(
    ("side", "rows", "outcome"),
    [
        ("w", {"row1": "w.......", "row3": ".b......"}, Outcome(Side.SECOND, (1, 1), detail="White")),
        ("b", {"row1": "w.......", "row3": ".b......"}, Outcome(Side.FIRST, (1, 1), detail="Black")),
        # More stones do not help.
        (
            "w",
            {"row1": "w.......", "row2": "..w.....", "row4": ".w......", "row8": "......b."},
            Outcome(Side.SECOND, (3, 1), detail="White"),
        ),
    ],
)
def test_a_player_without_a_turn_has_lost(side: str, rows: dict[str, str], outcome: Outcome) -> None:
    state = SUPERKO.parse_state(position(side=side, **rows))
    assert SUPERKO.outcome(state) == replace(outcome, detail=f"{outcome.detail} has no legal turn")
    assert fault(SUPERKO, state, "d4") == fault(SUPERKO, state, "a1-x") == "game-over"


def test_a_player_whose_turns_all_repeat_has_lost() -> None:
    # After c1-d1 all that Black can do is d1-c1.
    start = position(row1="w.w.b...")
    for game in (SUPERKO, BASIC):
        state = play(game, start, ["c1-d1"])
        assert game.legal_moves(state) == []
        assert game.outcome(state) == Outcome(Side.FIRST, (2, 1), detail="Black has no legal turn")
        assert fault(game, state, "d1-c1") == "game-over"
    state = play(NO_KO, start, ["c1-d1"])
    assert NO_KO.legal_moves(state) == ["d1-c1"]
    assert NO_KO.outcome(state) is None


def test_unplaced_stones_always_give_a_turn() -> None:
    state = SUPERKO.parse_state(position("10", row3=".b......"))
    assert len(SUPERKO.legal_moves(state)) == 63
    assert SUPERKO.outcome(state) is None


@pytest.mark.parametrize("ko", ["superko", "basic", "none"])
def test_the_cap_counts_stones_on_and_off_the_board(ko: str) -> None:
    game = parse_game(f"kalamala+ko={ko}+cap=1")
    start = game.initial_state()
    assert game.outcome(start) is None
    draw = game.apply(start, "a1")
    assert game.legal_moves(draw) == []
    assert game.outcome(draw) == Outcome(None, (8, 8), "turn-cap", "the stones left decide after turn 1")
    assert fault(game, draw, "a2") == "game-over"

    for reserves, side, row, winner, score in [
        ("11", "w", "......wb", Side.FIRST, (2, 1)),
        ("11", "b", "......bw", Side.SECOND, (1, 2)),
        ("12", "w", "......wb", None, (2, 2)),  # one stone fewer on the board, one more beside it
        ("13", "w", "......wb", Side.SECOND, (2, 3)),
    ]:
        state = play(game, position(reserves, side, row1=row), ["h1-x"])
        outcome = game.outcome(state)
        assert outcome is not None
        assert (outcome.winner, outcome.score, outcome.reason) == (winner, score, "turn-cap")


def test_a_player_without_a_turn_at_the_cap_has_lost_by_the_rules() -> None:
    game = parse_game("kalamala+cap=1")
    outcome = game.outcome(play(game, position(row1="w.w.b..."), ["c1-d1"]))
    assert outcome == Outcome(Side.FIRST, (2, 1), "score", "Black has no legal turn")


def test_the_cycle_without_superko_ends_at_the_cap() -> None:
    for ko in ("basic", "none"):
        game = parse_game(f"kalamala+ko={ko}+cap=14")
        state = play(game, None, [*FOUR_TURN_CYCLE * 3, "e3-f3"])
        assert game.outcome(state) is None
        outcome = game.outcome(game.apply(state, "d3-c3"))
        assert outcome is not None
        assert (outcome.winner, outcome.reason) == (None, "turn-cap")


# Refusals.


def test_refused_at_the_start() -> None:
    state = SUPERKO.initial_state()
    assert [fault(SUPERKO, state, text) for text in ("c4", "c5")] == ["occupied"] * 2
    for text in ("e3-h3", "a1-x", "e3-e3", "a1a2-xx", "c5-c3"):  # the last one through c4
        assert fault(SUPERKO, state, text) == "no-such-turn"


def test_refused_without_unplaced_stones() -> None:
    state = SUPERKO.parse_state(position("04", row1="w.w....b"))
    assert fault(SUPERKO, state, "d4") == "no-stones"
    assert fault(SUPERKO, state, "a1") == "occupied"
    assert fault(SUPERKO, state, "h1-f1") == "no-such-turn"  # one stone moves one by one square


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a1", "a1 is not empty"),
        ("d4", "Black has no unplaced stones left"),
        ("e1-d1", "e1-d1 leads to a position that was there before"),
        ("e1-b1", "no movement of Black has the effect e1-b1"),
    ],
)
def test_refusals_say_what_is_wrong(text: str, message: str) -> None:
    state = play(SUPERKO, position(row1="w..b...b"), ["d1-e1"])
    with pytest.raises(IllegalMoveError) as error:
        SUPERKO.apply(state, text)
    assert error.value.message == message


# Lemma 2.


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_forgetting_what_a_placement_or_removal_made_impossible_changes_nothing(seed: int) -> None:
    dice = random.Random(seed)
    naive = NaiveKalamala()  # remembers everything
    state = SUPERKO.initial_state()
    while legal := naive.legal_turns():
        assert SUPERKO.legal_moves(state) == legal
        movements = [text for text in legal if "-" in text and "x" not in text]
        text = dice.choice(movements if movements and dice.random() < 0.8 else legal)
        naive.play(text)
        before = len(state.past)
        state = SUPERKO.apply(state, text)
        assert len(state.past) == (1 if "-" not in text or "x" in text else before + 1)
        stones = len(naive.board)
        # All that is remembered was there, with as many stones.
        assert state.past <= {_bits(board) for board, _, _ in naive.earlier if len(board) == stones}
    assert SUPERKO.legal_moves(state) == []


def _bits(board: Any) -> tuple[int, int]:
    """A board of the naive game as two numbers, bit 0 for a1, bit 7 for h1, bit 63 for h8."""
    white = sum(1 << 8 * (y - 1) + x - 1 for (x, y), colour in board if colour == "w")
    return white, sum(1 << 8 * (y - 1) + x - 1 for (x, y), colour in board if colour == "b")


# Verdicts of the judge.


@pytest.mark.parametrize(
    ("turns", "winner", "fault"),
    [
        ("e3-f3 d3-c3 f3-e3 c3-d3", 0, (Reason.ILLEGAL, "repetition")),
        ("d4-", 1, (Reason.PROTOCOL, "bad-turn")),
        ("E3-F3", 1, (Reason.PROTOCOL, "bad-turn")),
        ("SWAP", 1, (Reason.PROTOCOL, "swap-not-offered")),
    ],
)
def test_faults_of_turns(turns: str, winner: int, fault: tuple[Reason, str]) -> None:
    judged = Judged(game="kalamala")
    judged.play(*(text if text == "SWAP" else f"MOVE;{text}" for text in turns.split()))
    assert (judged.result.reason, judged.result.fault) == fault
    assert judged.result.winner == winner


def test_a_game_that_reaches_its_cap_has_a_verdict_of_its_own() -> None:
    judged = Judged(game="kalamala+cap=2")
    judged.play("MOVE;a1", "MOVE;h8")
    assert (*judged.verdict, judged.result.score) == (None, Reason.TURN_CAP, (8, 8))
    assert "draw: the stones left decide after turn 2; 8 to 8" in judged.result.detail
    assert [said[0] for said in judged.said] == ["START;White", "START;Black"]
    assert [said[-2][-4:] for said in judged.said] == [";END", ";END"]
    assert [said[-1] for said in judged.said] == ["END", "END"]
