"""One hand-made position, at least, for each clause K1 to K9 of the rule book (docs/rules.md).

Boards are written as the protocol writes them: North's pits 1..p, North's store, South's pits 1..p,
South's store; all seeds of the board are there, so that stores are mostly padding.
"""

from typing import Any

import pytest

from referee.games.base import Game, IllegalMoveError, Outcome, Side
from referee.games.catalog import parse_game

AnyGame = Game[Any, Any]
FIRST, SECOND = Side.FIRST, Side.SECOND


def play(game: AnyGame, state: Any, *moves: str) -> Any:
    for move in moves:
        state = game.apply(state, game.parse_move(state, move))
    return state


def after(spec: str, text: str, *moves: str) -> str:
    """The text of the state after some moves."""
    game = parse_game(spec)
    return game.format_state(play(game, game.parse_state(text), *moves))


def start(spec: str, *moves: str) -> tuple[AnyGame, Any]:
    """A game from its start, after some moves."""
    game = parse_game(spec)
    return game, play(game, game.initial_state(), *moves)


def moves_of(game: AnyGame, state: Any) -> list[str]:
    return [game.format_move(state, move) for move in game.legal_moves(state)]


def fault(game: AnyGame, state: Any, move: str) -> str:
    """The fault of an illegal move."""
    with pytest.raises(IllegalMoveError) as error:
        play(game, state, move)
    assert move in error.value.message or error.value.fault == "game-over"
    return error.value.fault


K, K_ON_TURN, K_MAJORITY = "kalah(3,3)", "kalah(3,3)+end=on-turn", "kalah(3,3)+majority-end"
K_EMPTY = "kalah(3,3)+empty-capture"
SOUTH_RUNS_DRY = "2,2,2,4,0,0,2,6;South"
"""South's last seeds leave South's side by its pit 3, and North is to move."""
WORKED_EXAMPLE = "5,1,4,0,3,2,25,1,2,3,0,2,4,20;North"
"""The rule book's reading of the figure of the Manchester rules."""

SOWINGS = {
    "K1 pit p lies next to the owner's store": [
        (K, "3,3,3,0,3,3,3,0;South", "3", "4,4,3,0,3,3,0,1;North"),
        (K, "3,3,3,0,3,3,3,0;North", "3", "3,3,0,1,4,4,3,0;South"),
    ],
    # Six seeds from pit 3: own store, three opposite pits, not the store behind them, own pits 1 and 2.
    "K2 the opponent's store is skipped": [
        (K, "1,1,1,5,1,1,6,2;South", "3", "2,2,2,5,2,2,0,3;North"),
        (K, "1,1,6,2,1,1,1,5;North", "3", "2,2,0,3,2,2,2,5;South"),
    ],
    # 2p+2 seeds from pit 3: once round, one into the origin, and the last into the own store again.
    "K2 more than a lap sows into the origin": [
        (K, "1,1,1,4,1,0,8,2;South", "3", "2,2,2,4,2,1,1,4;South"),
        (K, "1,0,8,2,1,1,1,4;North", "3", "2,1,1,4,2,2,2,4;North"),
    ],
    # 2(2p+1) seeds from pit 1 of (1,10): store, North's pit, pit 1, and the same again; then 2 in pit 1.
    "K2 two laps": [("kalah(1,10)", "4,5,6,5;South", "1", "6,5,2,7;North")],
    "K3 again and again": [(K, "4,4,3,0,3,2,1,1;South", "3 2 3", "4,4,3,0,3,0,0,4;South")],
    # North 6, South 5 (again), South 2 captures North's pit 3.
    "K4 worked example": [
        ("kalah(6,6)", WORKED_EXAMPLE, "6", "5,1,4,0,3,0,26,2,2,3,0,2,4,20;South"),
        ("kalah(6,6)", WORKED_EXAMPLE, "6 5", "5,1,4,0,3,0,26,2,2,3,0,0,5,21;South"),
        ("kalah(6,6)", WORKED_EXAMPLE, "6 5 2", "5,1,0,0,3,0,26,2,0,4,0,0,5,26;North"),
    ],
    "K4 nothing opposite captures nothing": [(K, "5,0,2,2,1,0,1,7;South", "1", "5,0,2,2,0,1,1,7;North")],
    "K4 empty-capture takes the last seed alone": [
        (K_EMPTY, "5,0,2,2,1,0,1,7;South", "1", "5,0,2,2,0,0,1,8;North"),
        (K_EMPTY, "5,1,2,2,1,0,1,6;South", "1", "5,0,2,2,0,0,1,8;North"),  # and what is opposite
    ],
    "K4 a capture ends the turn": [(K, "5,1,2,2,1,0,1,6;South", "1", "5,0,2,2,0,0,1,8;North")],
    "K4 a pit that held something captures nothing": [
        (K, "5,1,2,2,1,1,1,5;South", "1", "5,1,2,2,0,2,1,5;North"),
    ],
    # Two seeds from South's pit 3: the store, and North's empty pit 1, whose opposite is South's pit 3.
    "K4 an empty pit of the opponent captures nothing": [
        (K, "0,3,2,5,1,1,2,4;South", "3", "1,3,2,5,1,1,0,5;North"),
        (K_EMPTY, "0,3,2,5,1,1,2,4;South", "3", "1,3,2,5,1,1,0,5;North"),
    ],
    # 2p+1 seeds come back to the origin, whose opposite has just received one.
    "K4 a full lap captures from the origin": [
        (K, "0,1,1,5,1,1,7,2;South", "3", "0,2,2,5,2,2,0,5;North"),
        (K, "1,1,7,2,0,1,1,5;North", "3", "2,2,0,5,0,2,2,5;South"),
    ],
    "K5 either ends when the mover runs dry": [(K, SOUTH_RUNS_DRY, "3", "0,0,0,11,0,0,0,7;North")],
    # North may even feed South again.
    "K5 on-turn goes on when the mover runs dry": [
        (K_ON_TURN, SOUTH_RUNS_DRY, "3", "3,2,2,4,0,0,0,7;North"),
        (K_ON_TURN, SOUTH_RUNS_DRY, "3 3", "3,2,0,5,1,0,0,7;South"),
    ],
    # North's pit 1 feeds nobody: South cannot move, and the opponent, North, gets what remains.
    "K5 on-turn ends when the player to move has nothing": [
        (K_ON_TURN, "1,2,2,5,0,0,0,8;North", "1", "0,0,0,10,0,0,0,8;South"),
    ],
    "K5 an extra turn without seeds ends the game": [
        (K_ON_TURN, "2,2,2,4,0,0,1,7;South", "3", "0,0,0,10,0,0,0,8;South"),
        (K, "2,2,2,4,0,0,1,7;South", "3", "0,0,0,10,0,0,0,8;South"),
    ],
    # North has nothing left and is to move: South keeps the rest under both rules.
    "K5 a capture of the opponent's last seeds": [
        (K, "0,3,0,5,1,0,2,7;South", "1", "0,0,0,5,0,0,0,13;North"),
        (K_ON_TURN, "0,3,0,5,1,0,2,7;South", "1", "0,0,0,5,0,0,0,13;North"),
    ],
    # Under either the position is over before the move.
    "K5 only on-turn goes on with an extra turn while the opponent has nothing": [
        (K_ON_TURN, "0,0,0,8,1,0,1,8;South", "3", "0,0,0,8,1,0,0,9;South"),
        (K, "0,0,0,8,1,0,1,8;South", "", "0,0,0,8,0,0,0,10;South"),
    ],
    "K6 more than half ends the game and the rest stays": [
        (K_MAJORITY, "2,2,1,2,1,0,1,9;South", "3", "2,2,1,2,1,0,0,10;South"),
    ],
    # South's last seed makes the majority and empties the side: nothing is swept to North.
    "K6 comes before K5": [
        (f"{K_ON_TURN}+majority-end", "2,3,3,0,0,0,1,9;South", "3", "2,3,3,0,0,0,0,10;South"),
        (K_MAJORITY, "2,3,3,0,0,0,1,9;South", "3", "2,3,3,0,0,0,0,10;South"),
    ],
}


@pytest.mark.parametrize(
    ("spec", "text", "moves", "expected"),
    [pytest.param(*case, id=clause) for clause, cases in SOWINGS.items() for case in cases],
)
def test_positions_after_moves(spec: str, text: str, moves: str, expected: str) -> None:
    assert after(spec, text, *moves.split()) == expected


@pytest.mark.parametrize(
    ("spec", "text", "move", "outcome"),
    [
        (K, SOUTH_RUNS_DRY, "3", Outcome(SECOND, (7, 11))),
        (K_ON_TURN, SOUTH_RUNS_DRY, "3", None),
        (K_ON_TURN, "1,2,2,5,0,0,0,8;North", "1", Outcome(SECOND, (8, 10))),
        (K_MAJORITY, "2,2,1,2,1,0,1,9;South", "3", Outcome(FIRST, (10, 2))),
        (K, "2,2,1,2,1,0,1,9;South", "3", None),
        (K_MAJORITY, "1,0,1,9,2,2,1,2;North", "3", Outcome(SECOND, (2, 10))),
        (K_MAJORITY, "2,2,2,2,1,0,1,8;South", "3", None),  # exactly half is not enough
        (K_MAJORITY, "2,3,3,0,0,0,1,9;South", "3", Outcome(FIRST, (10, 0))),
        (f"{K_ON_TURN}+majority-end", "2,3,3,0,0,0,1,9;South", "3", Outcome(FIRST, (10, 0))),
        (K, "2,3,3,0,0,0,1,9;South", "3", Outcome(FIRST, (10, 8))),
        (K_MAJORITY, "5,1,2,1,1,0,0,8;South", "1", Outcome(FIRST, (10, 1))),  # by a capture
        # K7: equal stores are a draw, and the score is by player and not by seat.
        ("kalah(1,1)+first-move-repeats=no", "1,0,1,0", "1", Outcome(None, (1, 1))),
        ("manchester(3,3)", f"{SOUTH_RUNS_DRY};swapped", "3", Outcome(FIRST, (11, 7))),
    ],
)
def test_outcomes_of_k5_k6_and_k7(spec: str, text: str, move: str, outcome: Outcome | None) -> None:
    game = parse_game(spec)
    assert game.outcome(play(game, game.parse_state(text), move)) == outcome


def test_k1_start() -> None:
    game, state = start("kalah(6,4)")
    assert game.board_text(state) == "4,4,4,4,4,4,0,4,4,4,4,4,4,0"
    assert game.to_move(state) is FIRST
    assert game.seats(state) == ("South", "North")
    assert moves_of(game, state) == ["1", "2", "3", "4", "5", "6"]
    assert game.outcome(state) is None
    game, state = start("manchester")
    assert game.board_text(state) == "7,7,7,7,7,7,7,0,7,7,7,7,7,7,7,0"


def test_k2_only_own_pits_that_are_not_empty() -> None:
    game = parse_game("kalah(3,3)")
    state = game.parse_state("5,5,5,0,0,1,0,2;South")
    assert moves_of(game, state) == ["2"]
    assert [fault(game, state, move) for move in ("1", "3", "4", "2147483647")] == [
        *("empty-pit", "empty-pit", "no-such-pit", "no-such-pit"),
    ]


def test_k3_last_seed_in_the_own_store_moves_again() -> None:
    game, state = start("kalah(6,4)", "3")
    assert game.format_state(state) == "4,4,4,4,4,4,0,4,4,0,5,5,5,1;South"
    # Compulsory: there are sowings only, no pass.
    assert moves_of(game, state) == ["1", "2", "4", "5", "6"]


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


def test_k6_a_majority_in_the_first_turn_ends_the_game_before_the_swap() -> None:
    # K5 and K6 know no exception for K8.  South 2 ends in the store, South 1 captures: 3 of 4 seeds.
    game, state = start("kalah(2,1)+pie+majority-end", "2", "1")
    assert game.format_state(state) == "0,1,0,0,0,3;North"
    assert game.outcome(state) == Outcome(FIRST, (3, 0))


def test_k8_swap_exchanges_the_seats_and_not_the_board() -> None:
    game, before = start("manchester", "2")
    assert game.to_move(before) is SECOND
    assert moves_of(game, before) == ["SWAP", "1", "2", "3", "4", "5", "6", "7"]
    swapped = play(game, before, "SWAP")
    assert game.seats(before) == ("South", "North")
    assert game.seats(swapped) == ("North", "South")
    # The former first player's turn, who sits where the second player sat.
    assert game.to_move(swapped) is FIRST
    assert moves_of(game, swapped) == ["1", "2", "3", "4", "5", "6", "7"]
    assert game.format_state(swapped) == f"{game.board_text(before)};North;swapped"
    # FIRST sows from North's row.
    assert game.board_text(play(game, swapped, "1")).startswith("0,")


@pytest.mark.parametrize(
    ("spec", "moves", "word"),
    [
        pytest.param("manchester", "", "swap-not-offered", id="opening"),
        pytest.param("manchester", "2 SWAP", "swap-not-offered", id="after the swap"),
        pytest.param("manchester", "2 SWAP 2", "swap-not-offered", id="the swapper's next turn"),
        pytest.param("manchester", "2 3", "swap-not-offered", id="the opener's second turn"),
        pytest.param("manchester", "2 3 4", "swap-not-offered", id="North's second turn"),
        pytest.param("manchester(6,4)", "1 3", "swap-not-offered", id="an extra turn of North"),
        pytest.param("kalah(6,4)", "1", "swap-not-offered", id="without pie"),
        pytest.param("manchester(1,1)", "1", "game-over", id="the opening ended the game"),
        pytest.param("kalah(6,4)+pie", "3", "swap-not-offered", id="K9 in the first turn, which repeats"),
    ],
)
def test_k8_swap_exists_at_no_other_time(spec: str, moves: str, word: str) -> None:
    game, state = start(spec, *moves.split())
    assert "SWAP" not in moves_of(game, state)
    assert fault(game, state, "SWAP") == word


@pytest.mark.parametrize(
    ("spec", "words"),
    [("kalah(6,4)", "this game has no SWAP"), ("kalah(6,4)+pie", "the second player's very first reply")],
)
def test_the_message_about_a_swap_follows_the_rules_of_the_game(spec: str, words: str) -> None:
    with pytest.raises(IllegalMoveError, match=words):
        play(*start(spec, "1", "1"), "SWAP")


@pytest.mark.parametrize(
    ("spec", "moves", "text"),
    [
        # Pit 1 of (7,7) ends in the store: the first sowing gives no extra turn, with or without pie.
        ("manchester", "1", "7,7,7,7,7,7,7,0,0,8,8,8,8,8,8,1;North;reply"),
        ("manchester+first-move-repeats", "1", "7,7,7,7,7,7,7,0,0,8,8,8,8,8,8,1;South;repeating"),
        ("kalah(6,4)+first-move-repeats=no", "3", "4,4,4,4,4,4,0,4,4,0,5,5,5,1;North"),
        # Every later sowing does: North's first one from pit 1, and (docs/protocol.md) that after a swap.
        ("manchester", "1 1", "0,8,8,8,8,8,8,1,0,8,8,8,8,8,8,1;North"),
        ("manchester", "1 SWAP 1", "0,8,8,8,8,8,8,1,0,8,8,8,8,8,8,1;North;swapped"),
        # With repeats the swap comes after the whole first turn.
        ("kalah(6,4)+pie", "3 6", "5,5,5,5,4,4,0,4,4,0,5,5,0,2;North;reply"),
    ],
)
def test_k9_first_move(spec: str, moves: str, text: str) -> None:
    game, state = start(spec, *moves.split())
    assert game.format_state(state) == text


def test_nothing_is_legal_in_a_finished_game() -> None:
    game, state = start("kalah(1,1)", "1")
    assert game.outcome(state) is not None
    assert moves_of(game, state) == []
    assert fault(game, state, "1") == "game-over"
