"""A Kalah bot to start from.  Make choose_pit and wants_to_swap cleverer; the rest can stay as it is.

Both get the two halves of the board: `own` and `other` hold the seeds in the pits and, as the last number,
in the store.  own[0] is our pit 1, the furthest from our store; opposite of own[i] lies other[pits - 1 - i].
"""

import os
import sys


def choose_pit(own: list[int], other: list[int]) -> int:
    """Choose the pit to empty; pit 1 is own[0].  This is the place for your ideas."""
    pits = len(own) - 1
    # 1. A last seed in our store gives another turn: take one, the pit nearest to the store first.
    for i in reversed(range(pits)):
        if own[i] > 0 and last_seed(own, i) == pits:
            return i + 1
    # 2. Else capture as many seeds as we can; 3. else empty the fullest pit, the nearest of equal ones.
    best = -1
    for i in range(pits):
        if own[i] > 0 and (best < 0 or worth(own, other, i) >= worth(own, other, best)):
            best = i
    return best + 1


def wants_to_swap(own: list[int], other: list[int]) -> bool:
    """Decide whether to take the opponent's side, as our answer to its first move (the pie rule).

    The opponent would move next, from our side.  So we swap if it is ahead and our side has no extra turn.
    """
    pits = len(own) - 1
    extra_turn = any(own[i] > 0 and last_seed(own, i) == pits for i in range(pits))
    return other[pits] > own[pits] and not extra_turn


def worth(own: list[int], other: list[int], i: int) -> int:
    """Return the value of emptying own[i]: a capture counts far more than the seeds of a full pit."""
    return 1000 * captured(own, other, i) + own[i]


def last_seed(own: list[int], i: int) -> int:
    """Return the index of the last seed of own[i]: from 0 our pits, then our store, then the other's pits."""
    return (i + own[i]) % (2 * len(own) - 1)  # the other's store is left out


def captured(own: list[int], other: list[int], i: int) -> int:
    """Return the seeds that own[i] captures: our last one and all opposite, if it falls in an empty pit."""
    pits = len(own) - 1
    last = last_seed(own, i)
    if last >= pits or own[i] > 2 * pits + 1 or (own[last] > 0 and last != i):
        return 0
    lapped = i + own[i] > 2 * pits  # then every pit of the other got a seed on the way
    opposite = other[pits - 1 - last] + (1 if lapped else 0)
    return opposite + 1 if opposite > 0 else 0


def start_board(game: str) -> list[int]:
    """Make the board of the start: all pits full, from a game's name such as "manchester" or "kalah(6,4)"."""
    pits, seeds = (6, 4) if game.startswith("bga") else (7, 7)
    if "(" in game:
        pits, seeds = map(int, game[game.index("(") + 1 : game.index(")")].split(","))
    return ([seeds] * pits + [0]) * 2


def main() -> None:
    """Talk with the referee: read a line, and answer when it is our turn."""
    game = os.environ.get("KALARENA_GAME", "manchester")
    pie_rule = ("+pie" in game or game.startswith("manchester")) and "+pie=no" not in game
    opening = "KALARENA_OPENING" in os.environ  # some moves are made before the first turn
    seat, board, may_swap = "", start_board(game), False
    for line in sys.stdin:
        word, *fields = line.strip().split(";")
        if word == "START":  # START;South moves first, START;North second
            seat = fields[0]
            my_turn = seat == "South" and not opening
            may_swap = seat == "North" and not opening and pie_rule
        elif word == "CHANGE":  # CHANGE;<move>;<board>;<YOU, OPP or END>
            if fields[0] == "SWAP":  # the opponent took our seat, so we have the other one
                seat = "North" if seat == "South" else "South"
            board = [int(number) for number in fields[1].split(",")]
            my_turn = fields[2] == "YOU"
        elif word == "END":
            break
        else:  # TIME, which only bots that ask for it in bot.toml are told
            continue
        if not my_turn:
            continue
        north, south = board[: len(board) // 2], board[len(board) // 2 :]
        own, other = (north, south) if seat == "North" else (south, north)
        if may_swap and wants_to_swap(own, other):
            seat, reply = "South", "SWAP"
        else:
            reply = f"MOVE;{choose_pit(own, other)}"
        may_swap = False  # only our very first answer may be SWAP
        print(f"{seat}: own {own}, other {other}: {reply}", file=sys.stderr)  # only you get to see this
        print(reply, flush=True)  # without the flush the referee never sees it


if __name__ == "__main__":
    main()
