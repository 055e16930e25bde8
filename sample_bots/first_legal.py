"""The simplest complete bot: it empties its lowest-numbered pit that is not empty.

It needs nothing but Python. Copy it, and make choose_pit cleverer.
"""

import sys


def choose_pit(board: list[int], seat: str) -> int:
    """Return the number of the pit to empty; this is the place for your ideas."""
    pits = len(board) // 2 - 1  # the board: North's pits and store, then South's pits and store
    first = 0 if seat == "North" else pits + 1
    own_pits = board[first : first + pits]
    return next(number for number, seeds in enumerate(own_pits, start=1) if seeds > 0)


def main() -> None:
    """Read the lines of the referee, and reply whenever it is our turn."""
    seat = ""
    for line in sys.stdin:
        message, *fields = line.strip().split(";")
        if message == "START":
            seat = fields[0]
            if seat == "South":  # South moves first; no board was sent yet, but pit 1 is never empty
                print("MOVE;1", flush=True)
        elif message == "CHANGE":
            move, board_text, next_player = fields
            if move == "SWAP":  # the opponent took our seat, so we have the other one from now on
                seat = "North" if seat == "South" else "South"
            if next_player == "YOU":
                board = [int(number) for number in board_text.split(",")]
                print(f"MOVE;{choose_pit(board, seat)}", flush=True)  # without flush it may never arrive
        elif message == "END":
            break


if __name__ == "__main__":
    main()
