"""The solver's kernels: numbers of positions and the database; compiled and in plain Python the same."""

import json
import os
import subprocess
import sys
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from referee.games.catalog import parse_game
from referee.games.kalah import NORTH, SOUTH, Kalah
from sample_bots.options import PURE_VARIABLE
from sample_bots.solver.database import EndgameDatabase
from sample_bots.solver.layout import UnsuitableBoardError, make_layout, positions_up_to
from sample_bots.solver.prover import Prover
from tests.sample_bots.test_solver import minimax
from tests.support.paths import REPOSITORY_ROOT


def sides(pits: int, seeds: int) -> list[tuple[int, ...]]:
    """All ways to lay at most so many seeds into 2p pits."""
    return [way for way in product(range(seeds + 1), repeat=2 * pits) if sum(way) <= seeds]


@pytest.mark.parametrize(("pits", "seeds"), [(1, 5), (2, 4), (3, 3)])
def test_numbers_are_all_different_and_without_gaps(pits: int, seeds: int) -> None:
    layout = make_layout(pits, seeds, on_turn=False, empty_capture=False)
    ways = sides(pits, seeds)
    numbers = {way: layout.number(layout.pack(way[:pits]), layout.pack(way[pits:])) for way in ways}
    assert sorted(numbers.values()) == list(range(positions_up_to(pits, seeds)))
    for way, number in numbers.items():
        assert number < positions_up_to(pits, sum(way))
        assert sum(way) == 0 or number >= positions_up_to(pits, sum(way) - 1)


@given(st.integers(1, 7), st.data())
def test_packing(pits: int, data: st.DataObject) -> None:
    side = tuple(data.draw(st.lists(st.integers(0, 5), min_size=pits, max_size=pits)))
    layout = make_layout(pits, 5 * pits, on_turn=False, empty_capture=False)
    assert layout.seeds_in(layout.pack(side)) == sum(side)


def test_boards_too_large_are_refused() -> None:
    for pits, seeds in ((30, 60), (20, 800), (1, 2**64)):
        with pytest.raises(UnsuitableBoardError, match="too many for the solver"):
            make_layout(pits, seeds, on_turn=False, empty_capture=False)
    layout = make_layout(7, 98, on_turn=False, empty_capture=False)
    with pytest.raises(UnsuitableBoardError, match="more memory"):
        Prover(layout, EndgameDatabase(layout, 1), 2)
    layout = make_layout(1, 200, on_turn=False, empty_capture=False)
    with pytest.raises(ValueError, match="the bound is 100"):
        EndgameDatabase(layout, 101)


@pytest.mark.parametrize("options", ["", "+empty-capture", "+end=on-turn", "+end=on-turn+empty-capture"])
@pytest.mark.parametrize(("pits", "seeds"), [(1, 8), (2, 6), (3, 4)])
def test_database_against_minimax(pits: int, seeds: int, options: str) -> None:
    """Every position with an even number of seeds, which boards of the rule book have."""
    game = parse_game(f"kalah({pits},{seeds}){options}")
    assert isinstance(game, Kalah)
    expected = minimax(game)
    layout = make_layout(pits, seeds, on_turn="on-turn" in options, empty_capture="empty" in options)
    database = EndgameDatabase(layout, seeds)
    seen: list[int] = []
    database.fill(seen.append)
    assert seen[-1] == database.size
    for way in sides(pits, seeds):
        for seat in (SOUTH, NORTH):
            north, south = (way[:pits], way[pits:]) if seat == NORTH else (way[pits:], way[:pits])
            # The stores are even or one apart; a margin of the pits alone takes that off again.
            stored = game.total_seeds - sum(way)
            board = (*north, stored // 2, *south, stored - stored // 2)
            state = game.parse_state(f"{','.join(map(str, board))};{'North' if seat == NORTH else 'South'}")
            ahead = stored % 2
            margin = expected(state) - ahead
            own, other = layout.pack(way[:pits]), layout.pack(way[pits:])
            assert database.value(own, other) == (margin if seat == SOUTH else -margin), (way, seat)


COMPARED = """
import json, sys
from referee.games.catalog import parse_game
from sample_bots.solver import solver as module
from sample_bots.solver.solution import solve
from sample_bots.solver.solver import Solver
module.WHOLE_DATABASE_POSITIONS = 0
module.MOST_DATABASE_POSITIONS = 500
module.BYTES_PER_ENTRY = 8
found = []
for spec in ("kalah(3,2)", "kalah(3,3)+empty-capture", "kalah(4,2)+end=on-turn", "manchester(3,3)",
"bga(3,2)"):
    game = parse_game(spec)
    solver = Solver(game, game.initial_state(), 48 << 10)
    solution = solve(solver, game.initial_state(), lambda: 0.0, all_moves=True)
    found.append((solution.to_json(), [int(value) for value in solver.database.values]))
print(json.dumps(found))
"""


@pytest.mark.slow
def test_compiled_and_plain_python_are_the_same() -> None:
    """Even the number of positions searched."""
    outputs = []
    for pure in ("", "1"):
        done = subprocess.run(
            [sys.executable, "-c", COMPARED],
            env={**os.environ, PURE_VARIABLE: pure},
            cwd=REPOSITORY_ROOT,
            capture_output=True,
            text=True,
            check=True,
        )
        outputs.append(json.loads(done.stdout))
    compiled, plain = outputs
    assert compiled == plain
    assert all(solution["complete"] and solution["positions"] > 50 for solution, _ in compiled)
