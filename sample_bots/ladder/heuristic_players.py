"""Heuristic players, the lower levels of the ladder: each looks at some features of a position only.

A player never chooses a move that is bad by the features that it looks at.  It is weak by the features that
it ignores: captures, its own next sowing, the reply, the far side of the board.  Among equal moves it chooses
at random.
"""

import random
from collections.abc import Callable, Iterator
from typing import Any

from referee.games.base import Side
from referee.games.kalah import Kalah, KalahState
from referee.games.kalamala import WHITE, Kalamala, KalamalaState
from sample_bots.evaluation import stones_left, store_difference

HeuristicPlayer = Callable[[Any, Any], Any]
"""Function (game, state) -> move."""

LONGEST_CHAIN = 4
"""Maximum number of sowings of a turn that ``planner`` looks at, as a careful person would."""


def _by_position(generator: random.Random, value: Callable[[Any, Any, Side], int]) -> HeuristicPlayer:
    """Return a player that chooses at random one of the moves to positions of the highest value.

    ``value`` is a function (game, position after the move, side that moved).
    """

    def choose(game: Any, state: Any) -> Any:
        mover = game.to_move(state)
        moves = list(game.legal_moves(state))
        values = [value(game, game.apply(state, move), mover) for move in moves]
        highest = max(values)
        return generator.choice([move for move, one in zip(moves, values, strict=True) if one == highest])

    return choose


# Kalah.


def eager(generator: random.Random) -> HeuristicPlayer:
    """Return a player that takes extra turns from the pits next to its store, and ignores all else."""

    def choose(game: Kalah, state: KalahState) -> int:
        mover = game.to_move(state)
        moves = game.legal_moves(state)
        near = [move for move in moves if move > game.pits // 2]
        again = [move for move in near if _moves_again(game, game.apply(state, move), mover)]
        return generator.choice(again or moves)

    return choose


def collector(generator: random.Random) -> HeuristicPlayer:
    """Return a player that takes most seeds at once, and ignores the next sowing and the reply."""
    return _by_position(generator, store_difference)


def planner(generator: random.Random) -> HeuristicPlayer:
    """Return a player that plans its own turn through all sowings, and ignores the reply."""

    def value(game: Kalah, child: KalahState, mover: Side) -> int:
        ends = _turn_ends(game, child, mover, LONGEST_CHAIN - 1)
        return max(store_difference(game, end, mover) for end in ends)

    return _by_position(generator, value)


def _moves_again(game: Kalah, state: KalahState, mover: Side) -> bool:
    return game.outcome(state) is None and game.to_move(state) is mover


def _turn_ends(game: Kalah, state: KalahState, mover: Side, sowings: int) -> Iterator[KalahState]:
    """Yield the possible ends of the mover's turn from this state, with at most ``sowings`` more sowings."""
    if not _moves_again(game, state, mover) or sowings == 0:
        yield state
        return
    for move in game.legal_moves(state):
        yield from _turn_ends(game, game.apply(state, move), mover, sowings - 1)


# Kalamala.


def pusher(generator: random.Random) -> HeuristicPlayer:
    """Return a player that pushes the opponent's stones off the board if it can, and ignores all else."""

    def value(_game: Kalamala, child: KalamalaState, mover: Side) -> int:
        return -_stones(child, mover.other)

    return _by_position(generator, value)


def guard(generator: random.Random) -> HeuristicPlayer:
    """Return a player that pushes stones off, protects its own from the next reply, and ignores the rest."""

    def value(game: Kalamala, child: KalamalaState, mover: Side) -> int:
        left = [_stones(game.apply(child, reply), mover) for reply in game.legal_moves(child)]
        return min(left, default=_stones(child, mover)) - _stones(child, mover.other)

    return _by_position(generator, value)


def centre(generator: random.Random) -> HeuristicPlayer:
    """Return a player that takes stones and the centre of the board, and ignores the reply."""

    def value(game: Kalamala, child: KalamalaState, mover: Side) -> int:
        outcome = game.outcome(child)
        decided = outcome is not None and outcome.winner is not mover.other
        return stones_left(game, child, mover) + 10_000 * decided

    return _by_position(generator, value)


def _stones(state: KalamalaState, side: Side) -> int:
    """Return the number of a side's stones, placed or not."""
    board = state.white if side is Side.FIRST else state.black
    return board.bit_count() + state.reserves[WHITE if side is Side.FIRST else 1 - WHITE]
