"""In which order a Kalamala search tries turns: the sooner the best one comes, the less there is to search.

Removals come first, then killers (quiet turns that were good enough elsewhere at the same ply), then the
others by how often turns between the same squares were, and by whether stones come nearer to the centre (the
opponent's: to the edge).
"""

from sample_bots.strong.compiled import Array, kernel
from sample_bots.strong.kalamala_geometry import DISTANCES, FOURTH, OWN, REMOVED, SECOND, SQUARE_MASK, THIRD
from sample_bots.strong.kalamala_memory import (
    HISTORY,
    HISTORY_SIZE,
    HISTORY_WIDTH,
    KILLERS,
    SCORES,
    TURNS,
    WIDTH,
)

CAPTURE_SCORE, KILLER_SCORE = 1 << 36, 1 << 32
"""What turns are sorted by: removals, killers; then the history with PLACE_SCORE for a step inwards."""
PLACE_SCORE = 16
MOST_HISTORY = 1 << 24


@kernel
def history_of(side: int, turn: int) -> int:
    """Where the history of turns like this one lies."""
    other = 1 - (turn >> OWN & 1)
    left, entered = turn & SQUARE_MASK, turn >> THIRD & SQUARE_MASK
    return HISTORY + ((2 * side + other) * HISTORY_WIDTH + left) * HISTORY_WIDTH + entered


@kernel
def score_turns(memory: Array, ply: int, side: int, count: int) -> None:
    """Give the turns of a position the scores that they are tried by."""
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
    """Exchange the turn with the highest score from ``at`` on with the one there, and return it."""
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
    """A quiet turn was good enough: try it, and such as it, early elsewhere."""
    if memory[KILLERS + 2 * ply] != turn:
        memory[KILLERS + 2 * ply + 1] = memory[KILLERS + 2 * ply]
        memory[KILLERS + 2 * ply] = turn
    index = history_of(side, turn)
    memory[index] += 16 * depth * depth
    if memory[index] > MOST_HISTORY:
        for other in range(HISTORY, HISTORY + HISTORY_SIZE):
            memory[other] //= 2
