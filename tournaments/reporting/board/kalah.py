"""Drawings of Kalah: those of all boards with pits, with the marks and the animation of a sowing.

K2 to K8 are the clauses of docs/rules.md.
"""

from functools import cache

from referee.games.kalah import NORTH, SOUTH, SWAP, Kalah, KalahState, Phase
from tournaments.reporting.board import pits
from tournaments.reporting.board.drawing import Phases, Transfer


def _first_pit(game: Kalah, state: KalahState) -> int:
    """Return the index of the first pit of the seat to move."""
    return 0 if state.seat == NORTH else game.pits + 1


@cache
def _one_seed(origin: int, target: int) -> tuple[Transfer, ...]:
    """Return the phase of one seed.  A large report has a million of these phases."""
    return (Transfer(origin, target, 1),)


def tallies(game: Kalah, state: KalahState) -> tuple[int, int]:
    """Return the seeds in both stores, FIRST's first.  It is faster than ``pits.tallies``."""
    north, south = state.board[game.pits], state.board[-1]
    return (north, south) if state.swapped else (south, north)


def svg(game: Kalah, state: KalahState, last: tuple[KalahState, int] | None, title: str) -> str:
    """Return the position as an SVG element; the pit that was sown is marked as left."""
    if last is None or last[1] == SWAP:
        return pits.svg(game, state, last, title, ((), ()))
    before, move = last
    origin = _first_pit(game, before) + move - 1
    changed = {cell for cell, seeds in enumerate(state.board) if seeds != before.board[cell]}
    return pits.svg(game, state, last, title, ({origin}, changed - {origin}))


def transfers(game: Kalah, state: KalahState, move: int) -> Phases:
    """Return the sowing seed by seed, then the capture, then the seeds collected at the end of the game."""
    if move == SWAP or not 1 <= move <= game.pits or state.phase is Phase.OVER:
        game.apply(state, move)  # raises IllegalMoveError unless it is a swap
        return []  # K8: the board stays, the players go round it
    p = game.pits
    first = _first_pit(game, state)
    store, other_store = first + p, p if state.seat == SOUTH else 2 * p + 1
    cells = list(state.board)
    origin = at = first + move - 1
    if not cells[origin]:
        game.apply(state, move)  # raises IllegalMoveError
    phases: Phases = []
    last = len(cells) - 1
    for _ in range(cells[origin]):
        at = at + 1 if at < last else 0
        if at == other_store:  # K2
            at = at + 1 if at < last else 0
        cells[at] += 1
        phases.append(_one_seed(origin, at))
    cells[origin] -= len(phases)

    def carry(*phase: tuple[int, int, int]) -> None:
        for start, target, seeds in phase:
            cells[start] -= seeds
            cells[target] += seeds
        if phase:
            phases.append(tuple(Transfer(*one) for one in phase))

    if first <= at < store and cells[at] == 1:
        opposite = 2 * p - at
        if cells[opposite] or game.empty_capture:  # K4
            taken = [(opposite, store, cells[opposite])] if cells[opposite] else []
            carry((at, store, 1), *taken)
    if any(cells[:p]) and any(cells[p + 1 : -1]):
        return phases  # K5 needs an empty row, and K6 leaves the seeds as they are
    after = game.apply(state, move)
    if after.phase is Phase.OVER:
        rest = [cell for cell, seeds in enumerate(after.board) if cells[cell] > seeds]
        carry(*((cell, p if cell < p else 2 * p + 1, cells[cell]) for cell in rest))
    return phases
