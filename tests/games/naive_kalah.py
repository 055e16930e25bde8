"""Kalah a second time, as slowly and plainly as the rule book reads (docs/rules.md, K1 to K9).

This is what the fast rule book is compared with.  It was written from the rules' text only and shares
nothing with referee.games: places are named, seeds are sown one by one along a list of places, and the
players are called by the names of the Manchester rules' own example: Sally opens, Noddy is second.
"""

import copy
from dataclasses import dataclass
from typing import Literal

Seat = Literal["South", "North"]
Player = Literal["Sally", "Noddy"]
Place = tuple[Seat, int | Literal["store"]]

SWAP = "SWAP"
ACROSS: dict[Seat, Seat] = {"South": "North", "North": "South"}
OTHER_PLAYER: dict[Player, Player] = {"Sally": "Noddy", "Noddy": "Sally"}


@dataclass(frozen=True)
class Rules:
    """One variant."""

    pits: int
    seeds: int
    pie: bool = False
    first_move_repeats: bool = True
    end: Literal["either", "on-turn"] = "either"
    majority_end: bool = False
    empty_capture: bool = False


class NaiveKalah:
    """A game that is being played: a board that changes, and who sits where."""

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        # K1: the same number of seeds in every pit, nothing in the stores, South moves first.
        self.board: dict[Place, int] = {("South", "store"): 0, ("North", "store"): 0}
        for pit in self.pit_numbers():
            self.board["South", pit] = rules.seeds
            self.board["North", pit] = rules.seeds
        self.seat_of: dict[Player, Seat] = {"Sally": "South", "Noddy": "North"}
        self.player_on_turn: Player = "Sally"
        self.sowings = 0
        self.noddy_has_decided = False
        self.over = False

    def pit_numbers(self) -> range:
        return range(1, self.rules.pits + 1)

    def player_in(self, seat: Seat) -> Player:
        return "Sally" if self.seat_of["Sally"] == seat else "Noddy"

    def seat_on_turn(self) -> Seat:
        return self.seat_of[self.player_on_turn]

    def seeds_on_side(self, seat: Seat) -> int:
        return sum(self.board[seat, pit] for pit in self.pit_numbers())

    def legal_moves(self) -> list[int | str]:
        """The own pits that hold something, in order, and SWAP last."""
        if self.over:
            return []
        moves: list[int | str] = [
            pit for pit in self.pit_numbers() if self.board[self.seat_on_turn(), pit] > 0
        ]
        # K8: at the second player's first decision, and at no other time.
        if self.rules.pie and self.player_on_turn == "Noddy" and not self.noddy_has_decided:
            moves.append(SWAP)
        return moves

    def play(self, move: int | str) -> None:
        assert move in self.legal_moves(), move
        if self.player_on_turn == "Noddy":
            self.noddy_has_decided = True
        if isinstance(move, str):
            self._swap()
        else:
            self._sow(move)

    def _swap(self) -> None:
        # K8: the two exchange seats, the board stays, and it is the former first player's turn, who now
        # sits where the second player sat.
        self.seat_of = {"Sally": self.seat_of["Noddy"], "Noddy": self.seat_of["Sally"]}
        self.player_on_turn = "Sally"

    def _round_trip(self, mover: Seat) -> list[Place]:
        """K2: all places that the mover sows into, counter-clockwise: not the opponent's store."""
        own: list[Place] = [(mover, pit) for pit in self.pit_numbers()]
        theirs: list[Place] = [(ACROSS[mover], pit) for pit in self.pit_numbers()]
        return [*own, (mover, "store"), *theirs]

    def _sow(self, pit: int) -> None:
        mover = self.seat_on_turn()
        places = self._round_trip(mover)
        hand = self.board[mover, pit]
        self.board[mover, pit] = 0
        self.sowings += 1
        position = places.index((mover, pit))
        while hand > 0:
            position = position + 1 if position + 1 < len(places) else 0
            self.board[places[position]] += 1
            hand -= 1
        last = places[position]

        again = last == (mover, "store")  # K3
        if again and self.sowings == 1 and not self.rules.first_move_repeats:
            again = False  # K9
        self._capture(mover, last)
        if not again:
            self.player_on_turn = OTHER_PLAYER[self.player_on_turn]
        self.look_for_the_end()

    def _capture(self, mover: Seat, last: Place) -> None:
        # K4: the last seed makes one of the mover's pits hold exactly one.
        seat, pit = last
        if seat != mover or pit == "store" or self.board[last] != 1:
            return
        # The pits of the two rows, laid side by side, run in opposite directions.
        facing = dict(zip(self.pit_numbers(), reversed(self.pit_numbers()), strict=True))
        opposite: Place = (ACROSS[mover], facing[pit])
        if self.board[opposite] > 0 or self.rules.empty_capture:
            self.board[mover, "store"] += self.board[last] + self.board[opposite]
            self.board[last] = 0
            self.board[opposite] = 0

    def look_for_the_end(self) -> None:
        # K6 comes before K5; the seeds that are left stay where they are.
        everything = sum(self.board.values())
        for seat in ACROSS:
            if self.rules.majority_end and self.board[seat, "store"] * 2 > everything:
                self.over = True
                return
        # K5
        if self.rules.end == "either":
            self.over = self.seeds_on_side("South") == 0 or self.seeds_on_side("North") == 0
        else:
            self.over = self.seeds_on_side(self.seat_on_turn()) == 0
        if self.over:
            # Under `either` the owner of the side gets what lies there; under `on-turn` the opponent of
            # the player who cannot move does, which is the owner again: the other side is empty.
            for seat in ACROSS:
                for pit in self.pit_numbers():
                    self.board[seat, "store"] += self.board[seat, pit]
                    self.board[seat, pit] = 0

    def score(self, player: Player) -> int:
        """Return a player's score at the end (K7): the seeds in the store of its present seat."""
        return self.board[self.seat_of[player], "store"]

    def winner(self) -> Player | None:
        """K7: more seeds wins; None is a draw."""
        sally, noddy = self.score("Sally"), self.score("Noddy")
        if sally == noddy:
            return None
        return "Sally" if sally > noddy else "Noddy"


def naive_perft(game: NaiveKalah, depth: int) -> int:
    """Sequences of exactly so many plies; a swap is a ply, finished games have no continuation."""
    if depth == 0:
        return 1
    total = 0
    for move in game.legal_moves():
        child = copy.deepcopy(game)
        child.play(move)
        total += naive_perft(child, depth - 1)
    return total
