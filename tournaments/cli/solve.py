"""`kalarena solve`."""

import math
import sys
import time

import click

from referee.games.base import PositionError, Side
from referee.games.catalog import parse_game
from referee.games.kalah import Kalah, KalahState
from referee.games.spec import SpecError
from sample_bots.solver.layout import UnsuitableBoardError
from sample_bots.solver.prover import TooDeepError
from sample_bots.solver.solution import MoveValue, Solution, solve
from sample_bots.solver.solver import Bounds, Solver, StopSolving
from tournaments.cli.main import Fault, Usage
from tournaments.reporting.tables import json_text

UNFINISHED = 1
"""Exit status if a limit was reached."""

REDRAW_S = 0.5
"""Seconds between two lines of progress."""

DEFAULT_MEMORY_MB = 1000
"""Default memory in MiB: the solver uses it for a large board, and less for a small one."""


@click.command("solve")
@click.argument("spec")
@click.option("--position", metavar="STATE", help="Solve this position instead of the start position.")
@click.option(
    "--all-moves", is_flag=True, help="Find the value of every move, not only which are best: takes longer."
)
@click.option("--seconds", type=click.FloatRange(min=0, min_open=True), help="Stop after so much time.")
@click.option("--positions", type=click.IntRange(min=1), help="Stop after about so many positions searched.")
@click.option(
    "--memory-mb",
    type=click.IntRange(min=1, max=1_000_000),
    default=DEFAULT_MEMORY_MB,
    show_default=True,
    help="Memory for database and search.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the solution as one JSON object, nothing else.")
def command(
    spec: str,
    position: str | None,
    all_moves: bool,
    seconds: float | None,
    positions: int | None,
    memory_mb: int,
    as_json: bool,
) -> None:
    """Solve Kalah game SPEC: its exact value, the best first moves, the expected line.

    The value is the first player's final margin with best play of both; with +majority-end, who wins.
    A STATE is a board as the protocol sends it, taken to be South's move in the middle of a game; put
    ;North behind it for North's.  Boards up to about 50 seeds take seconds to minutes, larger ones may take
    for ever.

    Exit status: 0 solved, 1 a limit was reached before, 2 bad usage.
    """
    if seconds is not None and math.isnan(seconds):
        raise Usage("--seconds: nan is no time")
    game, state = _parse(spec, position)
    progress = _Progress(seconds, positions)
    try:
        solver = Solver(game, state, memory_mb << 20, progress.on_slice)
    except UnsuitableBoardError as error:
        raise Usage(f"{game.name}: {error}") from error
    except MemoryError as error:
        raise Usage(f"--memory-mb {memory_mb}: this host does not give so much; name less") from error
    progress.solver, progress.state = solver, state
    try:
        solution = solve(solver, state, time.monotonic, all_moves=all_moves)
    except TooDeepError as error:
        raise Fault(f"{game.name}: {error}") from error
    except (KeyboardInterrupt, SystemExit):
        progress.erase()
        known = _value_text(game, state, solver.bounds(state))
        click.echo(f"Stopped after {solver.prover.positions:,} positions: {known}.", err=True)
        raise
    progress.erase()
    if as_json:
        click.echo(json_text({**solution.to_json(), **_solver_facts(solver)}))
    else:
        _print(solution, solver)
    if not solution.complete:
        raise SystemExit(UNFINISHED)


def _parse(spec: str, position: str | None) -> tuple[Kalah, KalahState]:
    """Return the game, and the position to solve.  Raises Usage."""
    try:
        game = parse_game(spec)
        if not isinstance(game, Kalah):
            raise Usage(f"{game.name}: only Kalah can be solved, for example kalah(6,4)")
        state = game.initial_state() if position is None else game.parse_state(position)
    except (SpecError, PositionError) as error:
        raise Usage(str(error)) from error
    outcome = game.outcome(state)
    if outcome is not None:
        raise Usage(f"the game is over in this position: {outcome.score[0]} to {outcome.score[1]}")
    return game, state


class _Progress:
    """Stops the solver at its limits; shows progress on a terminal."""

    def __init__(self, seconds: float | None, positions: int | None) -> None:
        self._deadline = None if seconds is None else time.monotonic() + seconds
        self._positions = positions
        self._shows = sys.stderr is not None and sys.stderr.isatty()
        self._next = time.monotonic() + REDRAW_S
        self.solver: Solver | None = None
        self.state: KalahState | None = None

    def on_slice(self) -> None:
        """Check the limits and show progress; called by the solver.  Raises StopSolving at a limit."""
        assert self.solver is not None
        assert self.state is not None
        now = time.monotonic()
        searched = self.solver.prover.positions
        if (self._deadline is not None and now >= self._deadline) or (
            self._positions is not None and searched >= self._positions
        ):
            raise StopSolving
        if self._shows and now >= self._next:
            self._next = now + REDRAW_S
            known = _value_text(self.solver.game, self.state, self.solver.bounds(self.state))
            sys.stderr.write(f"\r\x1b[K{searched:,} positions searched; {known}")
            sys.stderr.flush()

    def erase(self) -> None:
        """Remove the line of progress."""
        if self._shows:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


def _value_text(game: Kalah, state: KalahState, bounds: Bounds) -> str:
    """Return the bounds of a value in words, as half a sentence."""
    ends = "" if bounds.exact or game.majority_end else "ends "
    return f"{game.seats(state)[Side.FIRST]}, the first player, {ends}{_bounds_text(game, bounds)}"


def _bounds_text(game: Kalah, bounds: Bounds) -> str:
    if bounds.exact:
        return _result(game, bounds.low)
    if game.majority_end:
        return f"at least {_result(game, bounds.low)}, at most {_result(game, bounds.high)}"
    return f"between {_signed(bounds.low)} and {_signed(bounds.high)}"


def _result(game: Kalah, value: int) -> str:
    if value == 0:
        return "draws"
    word = "wins" if value > 0 else "loses"
    return word if game.majority_end else f"{word} by {abs(value)}"


def _signed(margin: int) -> str:
    return f"{margin:+}" if margin else "0"


def _solver_facts(solver: Solver) -> dict[str, object]:
    return {
        "database_seeds": solver.database.seeds,
        "database_positions": solver.database.size,
        "kernels": solver.kernels,
    }


def _print(solution: Solution, solver: Solver) -> None:
    game, state = solution.game, solution.state
    click.echo(f"{game.name}: {_value_text(game, state, solution.bounds)}")
    if not solution.complete:
        click.echo("A limit was reached before everything asked for was known.")
    mover = game.seats(state)[game.to_move(state)]
    if solution.best_moves:
        best = " ".join(game.format_move(state, move) for move in solution.best_moves)
        click.echo(f"Best for {mover}: {best}")
    click.echo(f"Moves, with the result for {game.seats(state)[Side.FIRST]}:")
    for each in solution.moves:
        click.echo(f"  {game.format_move(state, each.move):>4}  {_move_text(game, each)}")
    if solution.line:
        turns = ", ".join(f"{seat} {' '.join(moves)}" for seat, moves in solution.turns())
        click.echo(f"Expected: {turns}{'' if solution.complete else ' ...'}")
    database = solver.database
    click.echo(
        f"{solution.positions:,} positions searched in {solution.seconds:.1f} s, {solver.kernels};\n"
        f"of that {solution.database_seconds:.1f} s for a database of {database.size:,} positions "
        f"(all with at most {database.seeds} seeds in the pits)"
    )


def _move_text(game: Kalah, each: MoveValue) -> str:
    text = _bounds_text(game, each.bounds)
    if each.best is None:
        return text
    return f"{text} (best)" if each.best else f"{text} (worse)"
