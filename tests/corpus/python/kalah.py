"""A small player of the Manchester protocol, which the Python bots of the corpus import."""

import sys

OPENING_HOLE = 2


def best_hole(own, other):
    """Return a hole with an extra turn if there is one, else the fullest hole; ``own[-1]`` is the store."""
    pits = len(own) - 1
    for i in range(pits):
        if own[i] and i + own[i] == pits:
            return i + 1
    return max(range(pits), key=lambda i: own[i]) + 1


def play(choose=best_hole, wants_swap=lambda hole: hole % 2 == 1):
    """Play one game; ``choose`` gets our half of the board and the other one."""
    seat, may_swap = "", False
    for line in sys.stdin:
        word, *fields = line.strip().split(";")
        if word == "END":
            break
        if word == "START":
            seat = fields[0]
            may_swap = seat == "North"
            if not may_swap:
                print(f"MOVE;{OPENING_HOLE}", flush=True)
            continue
        move, state, turn = fields
        if move == "SWAP":
            seat = "North"
        if turn != "YOU":
            continue
        board = [int(number) for number in state.split(",")]
        north, south = board[: len(board) // 2], board[len(board) // 2 :]
        if may_swap and wants_swap(int(move)):
            seat = "South"
            print("SWAP", flush=True)
        else:
            own, other = (north, south) if seat == "North" else (south, north)
            print(f"MOVE;{choose(own, other)}", flush=True)
        may_swap = False
