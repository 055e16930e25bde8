"""The lower levels of Kalah: people who see some things and overlook others.

None of them plays a move that it sees to be bad.  What makes each weak is what it does not look at: captures,
its own next sowing, the reply, the far side of the board.  Equal moves are drawn by lot, as people vary.
"""

import random
from collections.abc import Callable, Iterator
from typing import Any

from referee.games.base import Side
from referee.games.kalah import Kalah, KalahState
from sample_bots.evaluation import store_difference

Person = Callable[[Any, Any], Any]
"""How somebody chooses: (game, state) -> move."""

LONGEST_CHAIN = 4
"""Sowings of one turn that the planner follows; a person who counts that far ahead has to concentrate."""


def _best(generator: random.Random, moves: list[int], worths: list[int]) -> int:
    """A move of the highest worth, by lot among equals."""
    highest = max(worths)
    return generator.choice([move for move, worth in zip(moves, worths, strict=True) if worth == highest])


def _plays_on(game: Kalah, state: KalahState, mover: Side) -> bool:
    return game.outcome(state) is None and game.to_move(state) is mover


def eager(generator: random.Random) -> Person:
    """Has understood that a last seed in the store gives another turn, and sees it in the pits next to the
    store."""

    def choose(game: Kalah, state: KalahState) -> int:
        mover = game.to_move(state)
        moves = game.legal_moves(state)
        near = [move for move in moves if move > game.pits // 2]
        again = [move for move in near if _plays_on(game, game.apply(state, move), mover)]
        return generator.choice(again or moves)

    return choose


def collector(generator: random.Random) -> Person:
    """Takes what brings most seeds at once, and thinks of no second sowing, its own or the reply."""

    def choose(game: Kalah, state: KalahState) -> int:
        mover = game.to_move(state)
        moves = list(game.legal_moves(state))
        worths = []
        for move in moves:
            child = game.apply(state, move)
            worths.append(store_difference(game, child, mover))
        return _best(generator, moves, worths)

    return choose


def _turn_ends(game: Kalah, state: KalahState, mover: Side, sowings: int) -> Iterator[KalahState]:
    """Where the mover's turn can lead that has come to this state, with so many more sowings looked at."""
    if not _plays_on(game, state, mover) or sowings == 0:
        yield state
        return
    for move in game.legal_moves(state):
        yield from _turn_ends(game, game.apply(state, move), mover, sowings - 1)


def planner(generator: random.Random) -> Person:
    """Plans its own turn through all its sowings; what the opponent does then comes as a surprise."""

    def choose(game: Kalah, state: KalahState) -> int:
        mover = game.to_move(state)
        moves = list(game.legal_moves(state))
        worths = []
        for move in moves:
            ends = _turn_ends(game, game.apply(state, move), mover, LONGEST_CHAIN - 1)
            worths.append(max(store_difference(game, end, mover) for end in ends))
        return _best(generator, moves, worths)

    return choose
