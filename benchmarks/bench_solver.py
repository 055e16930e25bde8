"""Benchmark of the solver: boards with published values (tests/data/kalah_values.toml) in limited time.

The program prints the published and the computed value of each board, whether they agree, and the time.  If
only the winner was published, only the winner is proved; with --margins the margin, too.  The exit status is
1 if a board disagrees; a board that is not finished in its time is no disagreement.  The limit is CPU time of
one core, so that other work on the machine has no influence.

    .venv/bin/python -m benchmarks.bench_solver
    .venv/bin/python -m benchmarks.bench_solver --seconds 600 --board '(6,5)'
"""

import argparse
import sys
import time
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from referee.games.catalog import parse_game
from referee.games.kalah import Kalah
from sample_bots.solver.solver import Bounds, Solver, StopSolving
from sample_bots.strong.compiled import execution_mode

TABLE = Path(__file__).resolve().parent.parent / "tests" / "data" / "kalah_values.toml"


@dataclass
class BoardResult:
    """Result of one board."""

    bounds: Bounds
    first_turn: list[int]
    """First turn that keeps the margin; empty if the margin is not known."""
    positions: int
    seconds: float
    processor_seconds: float


def result_of(bounds: Bounds) -> str | None:
    """Return W, D or L; None if the result is not known."""
    if bounds.low > 0:
        return "W"
    if bounds.high < 0:
        return "L"
    return "D" if bounds.exact else None


def solve_board(spec: str, seconds: float, memory: int, *, margin: bool, first_turn: int) -> BoardResult:
    """Determine the winner, with ``margin`` the margin, and ``first_turn`` moves of a best first turn."""
    game = parse_game(spec)
    assert isinstance(game, Kalah)
    state = game.initial_state()
    started, processor_started = time.monotonic(), time.process_time()

    def on_slice() -> None:
        if time.process_time() - processor_started > seconds:
            raise StopSolving

    solver = Solver(game, state, memory, on_slice)
    moves: list[int] = []
    try:
        solver.prepare()
        if margin:
            value = solver.value(state)
            at = state
            for _ in range(first_turn):
                moves.append(solver.next_best(at, value))
                at = game.apply(at, moves[-1])
        elif not solver.at_least(state, 1):
            solver.at_least(state, 0)
    except StopSolving:
        pass
    return BoardResult(
        solver.bounds(state),
        moves,
        solver.prover.positions,
        time.monotonic() - started,
        time.process_time() - processor_started,
    )


def agreement(board: dict[str, Any], result: BoardResult) -> str:
    """Return ``yes``, ``NO`` or ``not done``."""
    bounds = result.bounds
    margin = board.get("margin")
    if margin is not None and not bounds.low <= margin <= bounds.high:
        return "NO"
    found = result_of(bounds)
    if found not in (None, board["result"]):
        return "NO"
    if found is None or (margin is not None and not bounds.exact):
        return "not done"
    if "first_turn" in board and result.first_turn and board["first_turn"] != result.first_turn:
        return "NO"
    return "yes"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=60.0, help="CPU time of each board (default 60)")
    parser.add_argument(
        "--memory-mb", type=int, default=1000, help="default 1000, as `kalarena solve` has it"
    )
    parser.add_argument("--margins", action="store_true", help="find margins that were not published, too")
    parser.add_argument(
        "--board", default="", metavar="TEXT", help="only the boards whose spec contains this"
    )
    options = parser.parse_args()
    boards = [board for board in tomllib.loads(TABLE.read_text())["board"] if options.board in board["spec"]]
    boards.sort(key=_seeds)
    solve_board("kalah(4,2)", 60, 1 << 20, margin=True, first_turn=1)  # compiles, which is not to be timed
    print(f"kernels {execution_mode()}; at most {options.seconds:g} s of CPU time a board\n")
    print("| board | published | found | agrees | seconds | CPU seconds | positions |")
    print("|---|---|---|---|---|---|---|")
    verdicts = []
    for board in boards:
        first_turn = board.get("first_turn", [])
        result = solve_board(
            board["spec"],
            options.seconds,
            options.memory_mb << 20,
            margin=options.margins or "margin" in board,
            first_turn=len(first_turn),
        )
        verdict = agreement(board, result)
        verdicts.append(verdict)
        print(
            f"| {board['spec']} | {_text(board['result'], board.get('margin'), first_turn)} "
            f"| {_computed(result)} | {verdict} | {result.seconds:.2f} | {result.processor_seconds:.2f} "
            f"| {result.positions:,} |",
            flush=True,
        )
    counts = {verdict: verdicts.count(verdict) for verdict in ("yes", "not done", "NO")}
    print(f"\n{len(boards)} boards: {counts['yes']} agree, {counts['not done']} not done, ", end="")
    print(f"{counts['NO']} disagree")
    sys.exit(1 if counts["NO"] else 0)


def _seeds(board: dict[str, Any]) -> int:
    game = parse_game(board["spec"])
    assert isinstance(game, Kalah)
    return game.total_seeds


def _text(result: str, margin: int | None, first_turn: list[int]) -> str:
    text = result if margin is None else f"{result} {margin:+}"
    return text + (f", {' '.join(map(str, first_turn))}" if first_turn else "")


def _computed(result: BoardResult) -> str:
    bounds = result.bounds
    winner = result_of(bounds)
    if bounds.exact and winner is not None:
        return _text(winner, bounds.low, result.first_turn)
    return f"{winner or '?'}, {bounds.low:+} to {bounds.high:+}"


if __name__ == "__main__":
    main()
