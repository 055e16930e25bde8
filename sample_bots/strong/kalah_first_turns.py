"""The opener's first turn in Kalah: every way to play it to its end."""

from typing import NamedTuple

from referee.games.kalah import Kalah, KalahState, Phase

MOST_TURNS = 300
"""Bound of the turns that are looked at.  The usual boards have fewer than 50, but on one of 30 pits with a
seed each there are more than anybody could count."""


class FirstTurn(NamedTuple):
    """One way to play the first turn, or what is left of it."""

    moves: tuple[int, ...]
    """The pits; never empty."""
    state: KalahState
    """What it leads to: the opponent is to decide, or the game is over."""


def first_turns(game: Kalah, state: KalahState) -> list[FirstTurn]:
    """The turns of a state in phase OPENING or REPEATING, one for each state that they lead to.

    With more than MOST_TURNS the longest are left out, but each first pit that has a turn at all in reach is
    there.
    """
    unfinished = [FirstTurn((), state)]
    finished: dict[KalahState, FirstTurn] = {}
    seen = {state}
    for turn in unfinished:  # grows meanwhile, so that shorter turns come first
        for pit in game.legal_moves(turn.state):
            after = game.apply(turn.state, pit)
            longer = FirstTurn((*turn.moves, pit), after)
            if after.phase is Phase.REPEATING or (after.phase is Phase.PLAY and after.seat == state.seat):
                if after not in seen and len(seen) < MOST_TURNS:
                    seen.add(after)
                    unfinished.append(longer)
            elif after not in finished and len(finished) < MOST_TURNS:
                finished[after] = longer
    return sorted(finished.values())
