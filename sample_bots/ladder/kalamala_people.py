"""The lower levels of Kalamala: people who see some things and overlook others.

As in kalah_people.py none of them plays what it sees to be bad.  Equal turns are drawn by lot.
"""

import random
from collections.abc import Callable
from typing import Any

from referee.games.base import Side
from referee.games.kalamala import WHITE, Kalamala, KalamalaState
from sample_bots.evaluation import stones_left

Person = Callable[[Any, Any], Any]
"""How somebody chooses: (game, state) -> move."""


def _stones(state: KalamalaState, side: Side) -> int:
    """The stones of a side that are left, placed or not."""
    board = state.white if side is Side.FIRST else state.black
    return board.bit_count() + state.reserves[WHITE if side is Side.FIRST else 1 - WHITE]


def _lost(game: Kalamala, state: KalamalaState, side: Side) -> bool:
    outcome = game.outcome(state)
    return outcome is not None and outcome.winner is side.other


def pusher(generator: random.Random) -> Person:
    """Pushes a stone of the opponent's off the board when it sees one that it can; else any turn."""

    def choose(game: Kalamala, state: KalamalaState) -> str:
        opponent = game.to_move(state).other
        moves = list(game.legal_moves(state))
        stones = [_stones(game.apply(state, move), opponent) for move in moves]
        fewest = min(stones)
        return generator.choice([move for move, left in zip(moves, stones, strict=True) if left == fewest])

    return choose


def guard(generator: random.Random) -> Person:
    """Pushes stones off, and looks whether the opponent could then push one of its own off; sees no danger to
    come."""

    def choose(game: Kalamala, state: KalamalaState) -> str:
        mover = game.to_move(state)
        moves = list(game.legal_moves(state))
        worths = []
        for move in moves:
            child = game.apply(state, move)
            ours = _stones(child, mover)
            threats = [_stones(game.apply(child, reply), mover) for reply in game.legal_moves(child)]
            worths.append(min(threats, default=ours) - _stones(child, mover.other))
        best = max(worths)
        return generator.choice([move for move, worth in zip(moves, worths, strict=True) if worth == best])

    return choose


def centre(generator: random.Random) -> Person:
    """Takes stones and the centre of the board, where nobody is pushed off; no thought for the reply."""

    def choose(game: Kalamala, state: KalamalaState) -> str:
        mover = game.to_move(state)
        moves = list(game.legal_moves(state))
        worths = []
        for move in moves:
            child = game.apply(state, move)
            decided = game.outcome(child) is not None and not _lost(game, child, mover)
            worths.append(stones_left(game, child, mover) + 10_000 * decided)
        best = max(worths)
        return generator.choice([move for move, worth in zip(moves, worths, strict=True) if worth == best])

    return choose
