"""One hand-made position, at least, for each clause K1 to K9 of the rule book (docs/rules.md).

Boards are written as the protocol writes them: North's pits 1..p, North's store, South's pits 1..p,
South's store; all seeds of the board are there, so that stores are mostly padding.
"""

from typing import Any

import pytest

from referee.games.base import Game, IllegalMoveError, Outcome, Side
from referee.games.catalog import parse_game

AnyGame = Game[Any, Any]


def after(spec: str, text: str, *moves: str) -> str:
    """The text of the state after some moves."""
    game = parse_game(spec)
    return game.format_state(play(game, game.parse_state(text), *moves))


def play(game: AnyGame, state: Any, *moves: str) -> Any:
    for move in moves:
        state = game.apply(state, game.parse_move(state, move))
    return state


def start(spec: str, *moves: str) -> tuple[AnyGame, Any]:
    """A game from its start, after some moves."""
    game = parse_game(spec)
    return game, play(game, game.initial_state(), *moves)


def moves_of(game: AnyGame, state: Any) -> list[str]:
    return [game.format_move(state, move) for move in game.legal_moves(state)]


def outcome_of(spec: str, text: str, *moves: str) -> Outcome | None:
    game = parse_game(spec)
    return game.outcome(play(game, game.parse_state(text), *moves))


# --- K1 board ---------------------------------------------------------------------------------------


def test_k1_start() -> None:
    game, state = start("kalah(6,4)")
    assert game.board_text(state) == "4,4,4,4,4,4,0,4,4,4,4,4,4,0"
    assert game.to_move(state) is Side.FIRST
    assert game.seats(state) == ("South", "North")
    assert moves_of(game, state) == ["1", "2", "3", "4", "5", "6"]
    assert game.outcome(state) is None


def test_k1_manchester_is_seven_by_seven() -> None:
    game, state = start("manchester")
    assert game.board_text(state) == "7,7,7,7,7,7,7,0,7,7,7,7,7,7,7,0"


def test_k1_pit_p_lies_next_to_the_owners_store() -> None:
    assert after("kalah(3,3)", "3,3,3,0,3,3,3,0;South", "3") == "4,4,3,0,3,3,0,1;North"
    assert after("kalah(3,3)", "3,3,3,0,3,3,3,0;North", "3") == "3,3,0,1,4,4,3,0;South"


# --- K2 sowing --------------------------------------------------------------------------------------


def test_k2_the_opponents_store_is_skipped() -> None:
    # Six seeds from pit 3: own store, three opposite pits, not the store behind them, own pits 1 and 2.
    assert after("kalah(3,3)", "1,1,1,5,1,1,6,2;South", "3") == "2,2,2,5,2,2,0,3;North"
    assert after("kalah(3,3)", "1,1,6,2,1,1,1,5;North", "3") == "2,2,0,3,2,2,2,5;South"


def test_k2_more_than_a_lap_sows_into_the_origin() -> None:
    # 2p+2 seeds from pit 3: once round, one into the origin, and the last into the own store again.
    assert after("kalah(3,3)", "1,1,1,4,1,0,8,2;South", "3") == "2,2,2,4,2,1,1,4;South"
    assert after("kalah(3,3)", "1,0,8,2,1,1,1,4;North", "3") == "2,1,1,4,2,2,2,4;North"


def test_k2_two_laps() -> None:
    # 2(2p+1) seeds from pit 1 of (1,10): store, North's pit, pit 1, and the same again; then 2 in pit 1.
    assert after("kalah(1,10)", "4,5,6,5;South", "1") == "6,5,2,7;North"


def test_k2_only_own_pits_that_are_not_empty() -> None:
    game = parse_game("kalah(3,3)")
    state = game.parse_state("5,5,5,0,0,1,0,2;South")
    assert moves_of(game, state) == ["2"]
    for move, fault in [
        ("1", "empty-pit"),
        ("3", "empty-pit"),
        ("4", "no-such-pit"),
        ("2147483647", "no-such-pit"),
    ]:
        with pytest.raises(IllegalMoveError) as error:
            game.apply(state, game.parse_move(state, move))
        assert error.value.fault == fault
        assert move in error.value.message


# --- K3 extra turn ----------------------------------------------------------------------------------


def test_k3_last_seed_in_the_own_store_moves_again() -> None:
    game, state = start("kalah(6,4)", "3")
    assert game.format_state(state) == "4,4,4,4,4,4,0,4,4,0,5,5,5,1;South"
    assert game.to_move(state) is Side.FIRST
    # Compulsory: there are sowings only, no pass.
    assert moves_of(game, state) == ["1", "2", "4", "5", "6"]


def test_k3_again_and_again() -> None:
    assert after("kalah(3,3)", "4,4,3,0,3,2,1,1;South", "3", "2", "3") == "4,4,3,0,3,0,0,4;South"


# --- K4 capture -------------------------------------------------------------------------------------


def test_k4_worked_example_of_the_manchester_rules() -> None:
    # The rule book's reading of M's figure: North 6, South 5 (again), South 2 captures North's pit 3.
    text = "5,1,4,0,3,2,25,1,2,3,0,2,4,20;North"
    assert after("kalah(6,6)", text, "6") == "5,1,4,0,3,0,26,2,2,3,0,2,4,20;South"
    assert after("kalah(6,6)", text, "6", "5") == "5,1,4,0,3,0,26,2,2,3,0,0,5,21;South"
    assert after("kalah(6,6)", text, "6", "5", "2") == "5,1,0,0,3,0,26,2,0,4,0,0,5,26;North"


@pytest.mark.parametrize("pit", range(1, 6))
def test_k4_opposite_of_pit_i_is_pit_p_plus_1_minus_i(pit: int) -> None:
    # Pit i is reached from pit i-1 with one seed, pit 1 from pit 5 by way of the other side (1+5+1 seeds).
    origin, seeds = (pit - 1, 1) if pit > 1 else (5, 7)
    mine = [seeds if number == origin else 0 for number in range(1, 6)]
    theirs = [1, 2, 3, 4, 5]
    passed = 1 if pit == 1 else 0  # what the long way leaves in every pit and the store
    captured = theirs[5 - pit] + passed + 1
    left = [0 if number == 6 - pit else theirs[number - 1] + passed for number in range(1, 6)]
    rest = 100 - sum(mine) - sum(theirs)

    def text(north: list[int], north_store: int, south: list[int], south_store: int) -> str:
        return ",".join(map(str, [*north, north_store, *south, south_store]))

    # end=on-turn, so that an emptied side does not end the game at once.
    spec, none = "kalah(5,10)+end=on-turn", [0] * 5
    souths = after(spec, text(theirs, rest, mine, 0) + ";South", str(origin))
    assert souths == text(left, rest, none, passed + captured) + ";North"
    norths = after(spec, text(mine, 0, theirs, rest) + ";North", str(origin))
    assert norths == text(none, passed + captured, left, rest) + ";South"


def test_k4_nothing_opposite_captures_nothing() -> None:
    assert after("kalah(3,3)", "5,0,2,2,1,0,1,7;South", "1") == "5,0,2,2,0,1,1,7;North"


def test_k4_empty_capture_takes_the_last_seed_alone() -> None:
    assert after("kalah(3,3)+empty-capture", "5,0,2,2,1,0,1,7;South", "1") == "5,0,2,2,0,0,1,8;North"


def test_k4_empty_capture_takes_both_if_something_is_opposite() -> None:
    assert after("kalah(3,3)+empty-capture", "5,1,2,2,1,0,1,6;South", "1") == "5,0,2,2,0,0,1,8;North"


def test_k4_a_pit_that_held_something_captures_nothing() -> None:
    assert after("kalah(3,3)", "5,1,2,2,1,1,1,5;South", "1") == "5,1,2,2,0,2,1,5;North"


@pytest.mark.parametrize("option", ["", "+empty-capture"])
def test_k4_an_empty_pit_of_the_opponent_captures_nothing(option: str) -> None:
    # Two seeds from South's pit 3: the store, and North's empty pit 1, whose opposite is South's pit 3.
    assert after("kalah(3,3)" + option, "0,3,2,5,1,1,2,4;South", "3") == "1,3,2,5,1,1,0,5;North"


def test_k4_full_lap_captures_from_the_origin() -> None:
    # 2p+1 seeds come back to the origin, whose opposite has just received one.
    assert after("kalah(3,3)", "0,1,1,5,1,1,7,2;South", "3") == "0,2,2,5,2,2,0,5;North"
    assert after("kalah(3,3)", "1,1,7,2,0,1,1,5;North", "3") == "2,2,0,5,0,2,2,5;South"


def test_k4_a_capture_ends_the_turn() -> None:
    game = parse_game("kalah(3,3)")
    state = play(game, game.parse_state("5,1,2,2,1,0,1,6;South"), "1")
    assert game.to_move(state) is Side.SECOND


# --- K5 end -----------------------------------------------------------------------------------------

# South's last seeds leave South's side, and North is to move.
SOUTH_RUNS_DRY = ("2,2,2,4,0,0,2,6;South", "3")


def test_k5_either_ends_when_the_mover_runs_dry() -> None:
    assert after("kalah(3,3)", *SOUTH_RUNS_DRY) == "0,0,0,11,0,0,0,7;North"
    assert outcome_of("kalah(3,3)", *SOUTH_RUNS_DRY) == Outcome(Side.SECOND, (7, 11))


def test_k5_on_turn_goes_on_when_the_mover_runs_dry() -> None:
    assert after("kalah(3,3)+end=on-turn", *SOUTH_RUNS_DRY) == "3,2,2,4,0,0,0,7;North"
    assert outcome_of("kalah(3,3)+end=on-turn", *SOUTH_RUNS_DRY) is None
    # North may even feed South again.
    assert after("kalah(3,3)+end=on-turn", *SOUTH_RUNS_DRY, "3") == "3,2,0,5,1,0,0,7;South"


def test_k5_on_turn_ends_when_the_player_to_move_has_nothing() -> None:
    # North's pit 1 feeds nobody: South cannot move, and the opponent, North, gets what remains.
    text = "1,2,2,5,0,0,0,8;North"
    assert after("kalah(3,3)+end=on-turn", text, "1") == "0,0,0,10,0,0,0,8;South"
    assert outcome_of("kalah(3,3)+end=on-turn", text, "1") == Outcome(Side.SECOND, (8, 10))


def test_k5_on_turn_an_extra_turn_without_seeds_ends_the_game() -> None:
    text = "2,2,2,4,0,0,1,7;South"
    assert after("kalah(3,3)+end=on-turn", text, "3") == "0,0,0,10,0,0,0,8;South"
    assert after("kalah(3,3)", text, "3") == "0,0,0,10,0,0,0,8;South"


def test_k5_a_capture_of_the_opponents_last_seeds() -> None:
    # North has nothing left and is to move: South keeps the rest under both rules.
    text = "0,3,0,5,1,0,2,7;South"
    for end in ("either", "on-turn"):
        assert after(f"kalah(3,3)+end={end}", text, "1") == "0,0,0,5,0,0,0,13;North"


def test_k5_the_rules_differ_when_the_mover_with_an_extra_turn_has_seeds_and_the_other_none() -> None:
    # South may only go on under on-turn; under either this position is over before the move.
    text = "0,0,0,8,1,0,1,8;South"
    assert after("kalah(3,3)+end=on-turn", text, "3") == "0,0,0,8,1,0,0,9;South"
    assert after("kalah(3,3)+end=either", text) == "0,0,0,8,0,0,0,10;South"


# --- K6 majority ------------------------------------------------------------------------------------


def test_k6_more_than_half_ends_the_game_and_the_rest_stays() -> None:
    text = "2,2,1,2,1,0,1,9;South"
    assert after("kalah(3,3)+majority-end", text, "3") == "2,2,1,2,1,0,0,10;South"
    assert outcome_of("kalah(3,3)+majority-end", text, "3") == Outcome(Side.FIRST, (10, 2))
    assert outcome_of("kalah(3,3)", text, "3") is None


def test_k6_norths_store_counts_too() -> None:
    text = "1,0,1,9,2,2,1,2;North"
    assert outcome_of("kalah(3,3)+majority-end", text, "3") == Outcome(Side.SECOND, (2, 10))


def test_k6_exactly_half_is_not_enough() -> None:
    assert outcome_of("kalah(3,3)+majority-end", "2,2,2,2,1,0,1,8;South", "3") is None


@pytest.mark.parametrize("end", ["either", "on-turn"])
def test_k6_comes_before_k5(end: str) -> None:
    # South's last seed makes the majority and empties the side: nothing is swept to North.
    text = "2,3,3,0,0,0,1,9;South"
    assert after(f"kalah(3,3)+majority-end+end={end}", text, "3") == "2,3,3,0,0,0,0,10;South"
    assert outcome_of(f"kalah(3,3)+majority-end+end={end}", text, "3") == Outcome(Side.FIRST, (10, 0))
    assert outcome_of(f"kalah(3,3)+end={end}", text, "3") == Outcome(Side.FIRST, (10, 8))


def test_k6_a_capture_can_make_the_majority() -> None:
    text = "5,1,2,1,1,0,0,8;South"
    assert outcome_of("kalah(3,3)+majority-end", text, "1") == Outcome(Side.FIRST, (10, 1))


def test_k6_a_majority_in_the_first_turn_ends_the_game_before_the_swap() -> None:
    # K5 and K6 know no exception for K8.  South 2 ends in the store, South 1 captures: 3 of 4 seeds.
    game, state = start("kalah(2,1)+pie+majority-end", "2", "1")
    assert game.format_state(state) == "0,1,0,0,0,3;North"
    assert game.outcome(state) == Outcome(Side.FIRST, (3, 0))


# --- K7 result --------------------------------------------------------------------------------------


def test_k7_equal_stores_are_a_draw() -> None:
    assert outcome_of("kalah(1,1)+first-move-repeats=no", "1,0,1,0", "1") == Outcome(None, (1, 1))


def test_k7_the_score_is_by_player_and_not_by_seat() -> None:
    swapped = "2,2,2,4,0,0,2,6;South;swapped"  # South is the second player now
    assert outcome_of("manchester(3,3)", swapped, "3") == Outcome(Side.FIRST, (11, 7))


# --- K8 pie rule ------------------------------------------------------------------------------------


def test_k8_swap_exchanges_the_seats_and_not_the_board() -> None:
    game, before = start("manchester", "2")
    assert game.to_move(before) is Side.SECOND
    assert moves_of(game, before) == ["SWAP", "1", "2", "3", "4", "5", "6", "7"]
    swapped = play(game, before, "SWAP")
    assert game.board_text(swapped) == game.board_text(before)
    assert game.seats(before) == ("South", "North")
    assert game.seats(swapped) == ("North", "South")
    # The former first player's turn, who sits where the second player sat.
    assert game.to_move(swapped) is Side.FIRST
    assert moves_of(game, swapped) == ["1", "2", "3", "4", "5", "6", "7"]
    assert game.format_state(swapped) == f"{game.board_text(before)};North;swapped"
    # FIRST sows from North's row.
    assert game.board_text(play(game, swapped, "1")).startswith("0,")


@pytest.mark.parametrize(
    "moves",
    [
        pytest.param((), id="opening"),
        pytest.param(("2", "SWAP"), id="after the swap"),
        pytest.param(("2", "SWAP", "2"), id="the swapper's next turn"),
        pytest.param(("2", "3"), id="the opener's second turn"),
        pytest.param(("2", "3", "4"), id="North's second turn"),
    ],
)
def test_k8_swap_exists_at_no_other_time(moves: tuple[str, ...]) -> None:
    game, state = start("manchester", *moves)
    assert "SWAP" not in moves_of(game, state)
    with pytest.raises(IllegalMoveError) as error:
        play(game, state, "SWAP")
    assert error.value.fault == "swap-not-offered"


def test_k8_an_extra_turn_of_the_second_player_offers_no_second_chance() -> None:
    game, state = start("manchester(6,4)", "1", "3")
    assert game.to_move(state) is Side.SECOND
    assert "SWAP" not in moves_of(game, state)


def test_k8_no_swap_without_pie() -> None:
    game, state = start("kalah(6,4)", "1")
    assert "SWAP" not in moves_of(game, state)
    with pytest.raises(IllegalMoveError, match="SWAP"):
        play(game, state, "SWAP")


def test_k8_no_swap_after_an_opening_that_ends_the_game() -> None:
    game, state = start("manchester(1,1)", "1")
    assert game.outcome(state) == Outcome(None, (1, 1))
    with pytest.raises(IllegalMoveError) as error:
        play(game, state, "SWAP")
    assert error.value.fault == "game-over"


# --- K9 first move ----------------------------------------------------------------------------------


def test_k9_the_first_sowing_gives_no_extra_turn() -> None:
    # Pit 1 of (7,7) ends in the store.
    game, state = start("manchester", "1")
    assert game.format_state(state) == "7,7,7,7,7,7,7,0,0,8,8,8,8,8,8,1;North;reply"
    game, state = start("manchester+first-move-repeats", "1")
    assert game.format_state(state) == "7,7,7,7,7,7,7,0,0,8,8,8,8,8,8,1;South;repeating"


def test_k9_every_later_sowing_does() -> None:
    # North's first sowing from pit 1 ends in the store as well, and North is on turn again.
    game, state = start("manchester", "1", "1")
    assert game.to_move(state) is Side.SECOND
    assert game.format_state(state) == "0,8,8,8,8,8,8,1,0,8,8,8,8,8,8,1;North"


def test_k9_the_first_move_after_a_swap_does() -> None:
    # docs/protocol.md: "Every later one does, the first move after a swap included."
    game, state = start("manchester", "1", "SWAP", "1")
    assert game.to_move(state) is Side.FIRST
    assert game.seats(state) == ("North", "South")


def test_k9_without_pie_too() -> None:
    game, state = start("kalah(6,4)+first-move-repeats=no", "3")
    assert game.format_state(state) == "4,4,4,4,4,4,0,4,4,0,5,5,5,1;North"


def test_k9_with_repeats_the_swap_comes_after_the_whole_first_turn() -> None:
    game, state = start("kalah(6,4)+pie", "3")
    assert "SWAP" not in moves_of(game, state)
    with pytest.raises(IllegalMoveError):
        play(game, state, "SWAP")
    state = play(game, state, "6")
    assert game.to_move(state) is Side.SECOND
    assert moves_of(game, state)[0] == "SWAP"


# --- the end of the end -----------------------------------------------------------------------------


def test_nothing_is_legal_in_a_finished_game() -> None:
    game, state = start("kalah(1,1)", "1")
    assert game.outcome(state) is not None
    assert moves_of(game, state) == []
    with pytest.raises(IllegalMoveError) as error:
        play(game, state, "1")
    assert error.value.fault == "game-over"
