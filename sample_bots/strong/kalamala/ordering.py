"""Turn ordering of the Kalamala search: the earlier the best turn is tried, the less there is to search.

Captures come first, then killers (quiet turns that caused a cutoff elsewhere at the same ply), then the
others by their history score and by the steps of stones towards the centre (of the opponent's stones: towards
the edge).
"""

from sample_bots.strong.compiled import Array, kernel
from sample_bots.strong.kalamala.geometry import DISTANCES, FOURTH, OWN, REMOVED, SECOND, SQUARE_MASK, THIRD
from sample_bots.strong.kalamala.memory import (
    HISTORY,
    HISTORY_SIZE,
    HISTORY_WIDTH,
    KILLERS,
    SCORES,
    TURNS,
    WIDTH,
)

CAPTURE_SCORE, KILLER_SCORE = 1 << 36, 1 << 32
"""Scores of captures and killers."""
PLACE_SCORE = 16
"""Score of one step inwards, which is added to the history score of a turn."""
MOST_HISTORY = 1 << 24
"""Value of a history score at which all scores are halved."""


@kernel
def history_of(side: int, turn: int) -> int:
    """Return the index of a turn's history score."""
    other = 1 - (turn >> OWN & 1)
    left, entered = turn & SQUARE_MASK, turn >> THIRD & SQUARE_MASK
    return HISTORY + ((2 * side + other) * HISTORY_WIDTH + left) * HISTORY_WIDTH + entered


@kernel
def score_turns(memory: Array, ply: int, side: int, count: int) -> None:
    """Compute the scores of the turns of a position."""
    first_killer = memory[KILLERS + 2 * ply]
    second_killer = memory[KILLERS + 2 * ply + 1]
    for index in range(ply * WIDTH, ply * WIDTH + count):
        turn = memory[TURNS + index]
        if turn >> REMOVED & 3 != 0 and turn >> OWN & 1 == 0:
            score = CAPTURE_SCORE + (turn >> REMOVED & 3)
        elif turn == first_killer:
            score = KILLER_SCORE + 1
        elif turn == second_killer:
            score = KILLER_SCORE
        else:
            inwards = (
                DISTANCES[turn >> THIRD & SQUARE_MASK]
                + DISTANCES[turn >> FOURTH & SQUARE_MASK]
                - DISTANCES[turn & SQUARE_MASK]
                - DISTANCES[turn >> SECOND & SQUARE_MASK]
            )
            if turn >> OWN & 1 == 0:
                inwards = -inwards
            score = memory[history_of(side, turn)] + PLACE_SCORE * inwards
            if turn >> REMOVED & 3 != 0:
                score -= CAPTURE_SCORE  # an own stone given up
        memory[SCORES + index] = score


@kernel
def next_turn(memory: Array, at: int, end: int) -> int:
    """Swap the turn with the highest score from ``at`` on with the one at ``at``, and return it."""
    best = at
    best_score = memory[SCORES + at]
    for index in range(at + 1, end):
        if memory[SCORES + index] > best_score:
            best = index
            best_score = memory[SCORES + index]
    turn: int = memory[TURNS + best]
    if best != at:
        memory[TURNS + best] = memory[TURNS + at]
        memory[SCORES + best] = memory[SCORES + at]
        memory[TURNS + at] = turn
        memory[SCORES + at] = best_score
    return turn


@kernel
def note_cut(memory: Array, ply: int, side: int, depth: int, turn: int) -> None:
    """Record that a quiet turn caused a cutoff, as a killer and in the history."""
    if memory[KILLERS + 2 * ply] != turn:
        memory[KILLERS + 2 * ply + 1] = memory[KILLERS + 2 * ply]
        memory[KILLERS + 2 * ply] = turn
    index = history_of(side, turn)
    memory[index] += 16 * depth * depth
    if memory[index] > MOST_HISTORY:
        for other in range(HISTORY, HISTORY + HISTORY_SIZE):
            memory[other] //= 2
