"""The solver against plain minimax with the rule book, and against published values."""

import tomllib
from collections.abc import Callable
from functools import cache
from itertools import product
from typing import Any

import pytest

from referee.games.base import Side
from referee.games.catalog import parse_game
from referee.games.kalah import Kalah, KalahState
from sample_bots.solver import solver as solver_module
from sample_bots.solver.solution import solve
from sample_bots.solver.solver import Bounds, Solver, StopSolving, database_seeds
from sample_bots.strong.compiled import COMPILED
from tests.support.paths import TEST_DATA

PUBLISHED: list[dict[str, Any]] = tomllib.loads(
    (TEST_DATA / "kalah_values.toml").read_text(encoding="utf-8")
)["board"]

TINY = [(1, 1), (1, 4), (1, 7), (2, 1), (2, 3), (3, 1), (3, 2), (4, 1)]
OPTIONS = [
    "".join(chosen)
    for chosen in product(
        ("", "+pie"),
        ("", "+first-move-repeats=no"),
        ("", "+end=on-turn"),
        ("", "+majority-end"),
        ("", "+empty-capture"),
    )
]

MEMORY = 1 << 20
"""Bytes: enough for tiny boards."""

LONG = {"kalah(5,5)", "kalah(5,6)", "kalah(6,4)", "kalah(6,5)"}
"""Published boards that take more than 2 s."""
QUICK = ("kalah(1", "kalah(2", "kalah(3", "kalah(4,1", "kalah(4,2")
"""Beginnings of the specs of the boards that are solved in no time."""


def kalah(spec: str) -> Kalah:
    game = parse_game(spec)
    assert isinstance(game, Kalah)
    return game


def minimax(game: Kalah) -> Callable[[KalahState], int]:
    """The first player's margin; with majority-end 1, 0 or -1."""

    @cache
    def value(state: KalahState) -> int:
        outcome = game.outcome(state)
        if outcome is not None:
            margin = outcome.score[0] - outcome.score[1]
            return (margin > 0) - (margin < 0) if game.majority_end else margin
        values = [value(game.apply(state, move)) for move in game.legal_moves(state)]
        return max(values) if game.to_move(state) is Side.FIRST else min(values)

    return value


def prepared(game: Kalah, state: KalahState, memory: int = MEMORY) -> Solver:
    solver = Solver(game, state, memory)
    solver.prepare()
    return solver


@pytest.mark.parametrize("whole", [False, True], ids=["search", "database"])
@pytest.mark.parametrize(
    "board",
    [pytest.param(board, id=str(board), marks=pytest.mark.slow if sum(board) == 5 else ()) for board in TINY],
)
def test_all_options_against_minimax(
    board: tuple[int, int], whole: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Values of the start and of all states after one move, best moves, and a line that keeps the value."""
    monkeypatch.setattr(solver_module, "WHOLE_DATABASE_POSITIONS", 10**6 if whole else 0)
    for options in OPTIONS:
        game = kalah(f"kalah({board[0]},{board[1]}){options}")
        state = game.initial_state()
        expected = minimax(game)
        solver = prepared(game, state)
        assert (solver.database.seeds == game.total_seeds) is whole
        solution = solve(solver, state, lambda: 0.0, all_moves=True)
        assert solution.complete
        value = expected(state)
        assert solution.bounds == Bounds(value, value), game.name
        for each in solution.moves:
            after = expected(game.apply(state, each.move))
            assert each.bounds == Bounds(after, after), (game.name, each.move)
            assert each.best is (after == value)
        for move in solution.line:
            state = game.apply(state, move)
            assert expected(state) == value
        assert game.outcome(state) is not None


def test_positions_in_the_middle_of_a_game() -> None:
    for options in ("", "+end=on-turn+empty-capture", "+pie", "+majority-end"):
        game = kalah("kalah(3,2)" + options)
        expected = minimax(game)
        for board, seat in product(("0,3,1,2,0,4,1,1", "2,0,0,4,0,0,2,4"), ("South", "North")):
            text = f"{board};{seat}"
            state = game.parse_state(text)
            assert prepared(game, state).value(state) == expected(state), (game.name, text)
    game = kalah("kalah(3,2)+pie")
    state = game.parse_state("0,3,1,2,0,4,1,1;North;swapped")
    assert prepared(game, state).value(state) == minimax(game)(state)


def test_with_the_pie_rule_the_opener_gets_the_worse_side_of_each_first_turn() -> None:
    plain, pie = kalah("kalah(4,2)+first-move-repeats=no"), kalah("manchester(4,2)")
    solver, start = prepared(plain, plain.initial_state()), plain.initial_state()
    after = [solver.value(plain.apply(start, move)) for move in plain.legal_moves(start)]
    value = prepared(pie, pie.initial_state()).value(pie.initial_state())
    assert value == max(-abs(each) for each in after)


def published(board: dict[str, Any]) -> Any:
    """A row of the table with the marks that its board needs."""
    spec = board["spec"]
    takes_too_long = pytest.mark.skipif(
        not COMPILED and spec[6] in "456", reason="takes too long in plain Python"
    )
    return pytest.param(
        board, id=spec, marks=[takes_too_long, *([] if spec.startswith(QUICK) else [pytest.mark.slow])]
    )


@pytest.mark.parametrize("board", [published(board) for board in PUBLISHED if board["spec"][:10] not in LONG])
def test_published(board: dict[str, Any]) -> None:
    game = kalah(board["spec"])
    state = game.initial_state()
    # A database of a tenth of the usual size: that of a large board takes longer than the rest.
    solver = prepared(game, state, 20 << 20)
    if "margin" in board:
        assert solver.value(state) == board["margin"]
    assert {"W": 1, "D": 0, "L": -1}[board["result"]] == (
        1 if solver.at_least(state, 1) else 0 if solver.at_least(state, 0) else -1
    )


def test_published_table_is_complete() -> None:
    specs = [board["spec"] for board in PUBLISHED]
    assert len(specs) == len(set(specs)) == 35 + 5
    assert all(
        board.get("margin", 0) == 0 or (board["margin"] > 0) == (board["result"] == "W")
        for board in PUBLISHED
    )


def test_stopped_solver_keeps_what_it_has_proved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sample_bots.solver.prover.SLICE", 50)
    game = kalah("kalah(4,3)")
    state = game.initial_state()
    left = 2

    def on_slice() -> None:
        nonlocal left
        if solver.prover.positions:
            left -= 1
            if left < 0:
                raise StopSolving

    solver = Solver(game, state, MEMORY, on_slice)
    stopped = solve(solver, state, lambda: 0.0)
    assert not stopped.complete
    assert stopped.bounds.low <= 6 <= stopped.bounds.high
    assert not stopped.bounds.exact
    assert stopped.to_json()["value"] is None
    left = 10**9
    assert solve(solver, state, lambda: 0.0).bounds == Bounds(6, 6)


def test_database_is_bounded_by_memory_and_seeds() -> None:
    assert database_seeds(2, 4, 1 << 30) == 4  # the whole board
    assert 0 < database_seeds(6, 48, 1 << 20) < database_seeds(6, 48, 1 << 24) <= 19
    assert database_seeds(4, 24, 1 << 30) <= 9


def test_a_database_that_is_not_filled_proves_nothing() -> None:
    """Stopped at once, the solver knew a wrong value of a board that is in the database as a whole."""
    game = kalah("kalah(3,2)")

    def stop() -> None:
        raise StopSolving

    solver = Solver(game, game.initial_state(), 1 << 20, stop)
    with pytest.raises(StopSolving):
        solver.prepare()
    known = solver.bounds(game.initial_state())
    assert (known.low, known.high) == (-12, 12)
