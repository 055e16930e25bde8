"""Oware by the Abapa rules, as an example of a game in one file; ``docs/games.md`` explains its parts.

The rules are those of the World Oware Federation: six houses a side with four seeds each, moves run
counter-clockwise, and the house that was emptied is skipped.  A last seed that makes a house of the opponent
hold two or three captures it, and the houses before it as long as they hold two or three, too.  A move that
would capture all seeds of the opponent captures none.  An opponent without seeds must be given some.

House rule: after MAX_PLIES each player captures the own seeds, since a game could go round in circles.
"""

from typing import NamedTuple

from referee.games.base import IllegalMoveError, InvalidMoveError, Outcome, PositionError, Side
from referee.games.catalog import register_game
from referee.games.layout import PitBoard, PitRow

HOUSES = 6
SEEDS = 4
MAX_PLIES = 300
ALL_SEEDS = 2 * HOUSES * SEEDS


class State(NamedTuple):
    """A position; immutable and hashable."""

    houses: tuple[int, ...]
    """Seeds of South's six houses, then of North's, both in the direction of sowing."""
    captured: tuple[int, int]
    """Captured seeds of South and of North."""
    side: int
    """0 if South is to move, 1 if North is."""
    ply: int
    """Moves played."""


class Oware:
    """The rule book."""

    name = "oware"
    swap = None

    def initial_state(self) -> State:
        return State((SEEDS,) * (2 * HOUSES), (0, 0), 0, 0)

    def to_move(self, state: State) -> Side:
        return Side(state.side)

    def seats(self, state: State) -> tuple[str, str]:
        return ("South", "North")

    def legal_moves(self, state: State) -> list[int]:
        if max(state.captured) > ALL_SEEDS // 2 or state.ply >= MAX_PLIES or not any(state.houses):
            return []
        own = HOUSES * state.side
        other = HOUSES - own
        moves = [house for house in range(1, HOUSES + 1) if state.houses[own + house - 1]]
        if any(state.houses[other : other + HOUSES]):
            return moves
        return [move for move in moves if state.houses[own + move - 1] > HOUSES - move]  # it gives seeds

    def apply(self, state: State, move: int) -> State:
        if move not in self.legal_moves(state):
            raise IllegalMoveError("not-legal", f"house {move} cannot be played here")
        houses = list(state.houses)
        origin = at = HOUSES * state.side + move - 1
        seeds, houses[origin] = houses[origin], 0
        while seeds:
            at = (at + 1) % (2 * HOUSES)
            if at != origin:
                houses[at] += 1
                seeds -= 1
        other = HOUSES * (1 - state.side)
        taken = []
        while other <= at < other + HOUSES and houses[at] in (2, 3):
            taken.append(at)
            at -= 1
        won = sum(houses[house] for house in taken)
        if won == sum(houses[other : other + HOUSES]):
            taken, won = [], 0  # a grand slam captures nothing
        for house in taken:
            houses[house] = 0
        captured = list(state.captured)
        captured[state.side] += won
        after = State(tuple(houses), (captured[0], captured[1]), 1 - state.side, state.ply + 1)
        if self.legal_moves(after) or max(captured) > ALL_SEEDS // 2:
            return after
        south, north = sum(houses[:HOUSES]), sum(houses[HOUSES:])  # each player keeps the own seeds
        return after._replace(houses=(0,) * (2 * HOUSES), captured=(captured[0] + south, captured[1] + north))

    def outcome(self, state: State) -> Outcome | None:
        if self.legal_moves(state):
            return None
        south, north = state.captured
        winner = None if south == north else Side.FIRST if south > north else Side.SECOND
        return Outcome(winner, state.captured, "turn-cap" if state.ply >= MAX_PLIES else "score")

    def is_half_over(self, state: State) -> bool:
        return 2 * sum(state.captured) >= ALL_SEEDS or 2 * state.ply >= MAX_PLIES

    def parse_move(self, state: State, text: str) -> int:
        if not (text.isascii() and text.isdigit() and len(text) == 1):
            raise InvalidMoveError("bad-number", f"{text[:40]!r} is not the number of a house")
        return int(text)

    def format_move(self, state: State, move: int) -> str:
        return str(move)

    def board_text(self, state: State) -> str:
        south, north = state.houses[:HOUSES], state.houses[HOUSES:]
        return ",".join(map(str, (*north, state.captured[1], *south, state.captured[0])))

    def format_state(self, state: State) -> str:
        return f"{self.board_text(state)};{self.seats(state)[state.side]};{state.ply}"

    def parse_state(self, text: str) -> State:
        board, seat, ply = (*text.split(";"), "South", "0")[:3] if text.count(";") < 3 else ("", "", "")
        numbers = board.split(",")
        if (
            len(numbers) != 2 * HOUSES + 2
            or not all(
                number.isascii() and number.isdigit() and len(number) < 3 for number in (*numbers, ply[-2:])
            )
            or sum(map(int, numbers)) != ALL_SEEDS
            or seat not in self.seats(self.initial_state())
            or not (ply.isascii() and ply.isdigit() and len(ply) < 4)
        ):
            raise PositionError(f"{text[:80]!r} is no position of Oware")
        cells = tuple(map(int, numbers))
        north, south = cells[:HOUSES], cells[HOUSES + 1 : -1]
        side = self.seats(self.initial_state()).index(seat)
        return State((*south, *north), (cells[-1], cells[HOUSES]), side, int(ply))

    def layout(self, state: State) -> PitBoard:
        south, north = state.houses[:HOUSES], state.houses[HOUSES:]
        return PitBoard(
            bottom=PitRow(Side.FIRST, south, state.captured[0]),
            top=PitRow(Side.SECOND, north, state.captured[1]),
        )


register_game("oware", lambda spec: Oware(), about="Oware by the Abapa rules")
