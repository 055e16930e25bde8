"""Matches between the simple bots: ``python -m sample_bots.compare [OPENINGS [GAME [PLAYER ...]]]``.

The games are played in one process without a referee: each player is a function.  Most of the bots are
deterministic, so each game begins with a few random moves, and each such opening is played twice, with the
sides exchanged.
"""

import random
import sys
from collections.abc import Callable
from itertools import combinations
from typing import Any

from referee.games.base import Outcome, Side
from referee.games.catalog import DEFAULT_GAME, AnyGame, parse_game
from sample_bots import first_move, greedy
from sample_bots.conversation import Choose
from sample_bots.minimax import minimax_mover
from sample_bots.random_bot import random_mover

OPENING_PLIES = 4
"""Number of random moves at the beginning: more than two, so that both sides have moved after a swap."""


def play(game: AnyGame, players: tuple[Choose, Choose], state: Any) -> Outcome:
    """Play a game from a state to its end; the players are FIRST and SECOND."""
    while (outcome := game.outcome(state)) is None:
        state = game.apply(state, players[game.to_move(state)](game, state))
    return outcome


def random_opening(game: AnyGame, generator: random.Random) -> Any:
    """Return a state after a few random moves."""
    state = game.initial_state()
    for _ in range(OPENING_PLIES):
        if moves := game.legal_moves(state):
            state = game.apply(state, generator.choice(moves))
    return state


def points(
    game: AnyGame, make_a: Callable[[int], Choose], make_b: Callable[[int], Choose], openings: int
) -> float:
    """Return the points of A against B in two games per opening; a win is 1, a draw 0.5.

    ``make_a`` and ``make_b`` return the player of a game for a seed.
    """
    total = 0.0
    for seed in range(openings):
        state = random_opening(game, random.Random(seed))
        for side_of_a in Side:
            a, b = make_a(2 * seed + side_of_a), make_b(2 * seed + side_of_a)
            winner = play(game, (a, b) if side_of_a is Side.FIRST else (b, a), state).winner
            total += 0.5 if winner is None else float(winner is side_of_a)
    return total


PLAYERS: dict[str, Callable[[int], Choose]] = {
    "first_legal": lambda seed: first_move.choose,
    "random": random_mover,
    "greedy": lambda seed: greedy.choose,
    "minimax:2": lambda seed: minimax_mover(2),
    "minimax:3": lambda seed: minimax_mover(3),
    "minimax:4": lambda seed: minimax_mover(4),
    "minimax:6": lambda seed: minimax_mover(6),
}
"""Name -> function that returns the player for a seed."""

COMPARED = ("first_legal", "random", "greedy", "minimax:2", "minimax:4", "minimax:6")
"""Players that are compared by default; too slow for Kalamala."""


def main(arguments: list[str]) -> int:
    """Print the points of every pair."""
    openings = int(arguments[0]) if arguments else 50
    game = parse_game(arguments[1] if len(arguments) > 1 else DEFAULT_GAME)
    names = arguments[2:] or COMPARED
    if unknown := set(names) - set(PLAYERS):
        print(f"no player {', '.join(sorted(unknown))}; there are {', '.join(PLAYERS)}", file=sys.stderr)
        return 2
    for weaker, stronger in combinations(names, 2):
        won = points(game, PLAYERS[stronger], PLAYERS[weaker], openings)
        print(f"{game.name}: {stronger} scores {won:g} of {2 * openings} against {weaker}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
