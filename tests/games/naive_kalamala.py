"""Kalamala a second time, as slowly and plainly as its rules read (rules 1 to 9 and the effect notation).

This is what the fast rule book is compared with.  It was written from the rules' text only and shares
nothing with referee.games: the board is a dict of squares, every group of every line is listed, and every
state that the game has been in is kept.
"""

from dataclasses import dataclass
from typing import Literal

Colour = Literal["w", "b"]
Square = tuple[int, int]  # column and row, each 1 to 8: a1 is (1, 1)
Line = list[Square]
Ko = Literal["superko", "basic", "none"]
Arrangement = tuple[frozenset[tuple[Square, Colour]], int, int]
Turns = dict[str, tuple[dict[Square, Colour], dict[Colour, int]]]

COLOURS: tuple[Colour, Colour] = ("w", "b")
OTHER: dict[Colour, Colour] = {"w": "b", "b": "w"}
NUMBERS = range(1, 9)
SQUARES: list[Square] = [(x, y) for x in NUMBERS for y in NUMBERS]


def name_of(square: Square) -> str:
    return "abcdefgh"[square[0] - 1] + str(square[1])


def square_of(name: str) -> Square:
    return "abcdefgh".index(name[0]) + 1, int(name[1])


# Rule 2: w on c4 d3 f5 e6, b on c5 d6 f4 e3.
START_SQUARES: dict[Square, Colour] = {
    **{square_of(name): "w" for name in ("c4", "d3", "f5", "e6")},
    **{square_of(name): "b" for name in ("c5", "d6", "f4", "e3")},
}


def all_lines() -> list[Line]:
    """Every row, column and diagonal."""
    lines: list[Line] = []
    lines += [[(x, y) for x in NUMBERS] for y in NUMBERS]
    lines += [[(x, y) for y in NUMBERS] for x in NUMBERS]
    lines += [[(x, y) for x, y in SQUARES if x - y == difference] for difference in range(-7, 8)]
    lines += [[(x, y) for x, y in SQUARES if x + y == total] for total in range(2, 17)]
    return lines


LINES = all_lines()


@dataclass(frozen=True)
class Choice:
    """A movement as a player would choose it (rule 7); several may have the same effect."""

    anchor: tuple[Square, ...]
    """The A-group."""
    moved: tuple[Square, ...]
    """The P-group."""
    step: tuple[int, int]
    """The direction that P moves in, one square."""
    distance: int
    """Return the number of squares that P moves."""


class NaiveKalamala:
    """A game that is being played."""

    def __init__(self, ko: Ko = "superko", cap: int = 600, position: str | None = None) -> None:
        self.ko = ko
        self.cap = cap
        self.board: dict[Square, Colour] = dict(START_SQUARES)
        self.unplaced: dict[Colour, int] = {"w": 4, "b": 4}
        self.on_turn: Colour = "w"
        if position is not None:
            self._set_up(position)
        self.turns_played = 0
        self._known: Turns | None = None  # what turns() found for the present board
        self.earlier: list[Arrangement] = [self.arrangement()]  # with the present one, which is the last

    def _set_up(self, position: str) -> None:
        rows, unplaced, on_turn = position.split(":")
        self.board = {}
        for y, row in zip(reversed(NUMBERS), rows.split("/"), strict=True):
            for x, cell in zip(NUMBERS, row, strict=True):
                if cell != ".":
                    self.board[x, y] = "w" if cell == "w" else "b"
        self.unplaced = {"w": int(unplaced[0]), "b": int(unplaced[1])}
        self.on_turn = "w" if on_turn == "w" else "b"

    def position(self) -> str:
        rows = ["".join(self.board.get((x, y), ".") for x in NUMBERS) for y in reversed(NUMBERS)]
        return f"{'/'.join(rows)}:{self.unplaced['w']}{self.unplaced['b']}:{self.on_turn}"

    def arrangement(self) -> Arrangement:
        """Rule 3: what must not come back; the side to move is no part of it."""
        return frozenset(self.board.items()), self.unplaced["w"], self.unplaced["b"]

    def groups(self, line: Line) -> list[tuple[Square, ...]]:
        """Rule 6: every run of stones of one colour on consecutive squares, and every part of one."""
        found: list[tuple[Square, ...]] = []
        for first, square in enumerate(line):
            colour = self.board.get(square)
            if colour is None:
                continue
            for last in range(first, len(line)):
                if self.board.get(line[last]) != colour:
                    break
                found.append(tuple(line[first : last + 1]))
        return found

    def choices(self) -> list[Choice]:
        """Rule 7, word for word: every A-group, every P-group, push and pull, every distance."""
        found: list[Choice] = []
        for line in LINES:
            groups = self.groups(line)
            for anchor in groups:
                if self.board[anchor[0]] != self.on_turn:
                    continue
                for moved in groups:
                    found += self._choices_of(line, anchor, moved)
        return found

    def _choices_of(self, line: Line, anchor: tuple[Square, ...], moved: tuple[Square, ...]) -> list[Choice]:
        if set(anchor) & set(moved):
            return []
        places_a = [line.index(square) for square in anchor]
        places_p = [line.index(square) for square in moved]
        if max(places_a) < min(places_p):
            between = line[max(places_a) + 1 : min(places_p)]
            away = (line[1][0] - line[0][0], line[1][1] - line[0][1])
        else:
            between = line[max(places_p) + 1 : min(places_a)]
            away = (line[0][0] - line[1][0], line[0][1] - line[1][1])
        if any(square in self.board for square in between):
            return []
        towards = (-away[0], -away[1])
        return [
            Choice(anchor, moved, step, distance)
            for step in (away, towards)
            for distance in range(1, len(anchor) // len(moved) + 1)
            if self._way_is_free(moved, step, distance)
        ]

    def _way_is_free(self, moved: tuple[Square, ...], step: tuple[int, int], distance: int) -> bool:
        """Every square that a stone enters or crosses and that is on the board is empty or P's own."""
        for x, y in moved:
            for k in range(1, distance + 1):
                square = (x + k * step[0], y + k * step[1])
                if square in self.board and square not in moved:
                    return False
        return True

    def after_choice(self, choice: Choice) -> dict[Square, Colour]:
        board = dict(self.board)
        colour = self.board[choice.moved[0]]
        for square in choice.moved:
            del board[square]
        for x, y in choice.moved:
            square = (x + choice.distance * choice.step[0], y + choice.distance * choice.step[1])
            # A stone that ends off the board is gone for good.
            if square[0] in NUMBERS and square[1] in NUMBERS:
                board[square] = colour
        return board

    def turns(self) -> Turns:
        """Every turn that rules 4 to 7 allow, with the board and the unplaced stones after it."""
        if self._known is not None:
            return self._known
        found: Turns = {}
        if self.unplaced[self.on_turn] > 0:
            for square in SQUARES:
                if square not in self.board:
                    unplaced = dict(self.unplaced)
                    unplaced[self.on_turn] -= 1
                    found[name_of(square)] = ({**self.board, square: self.on_turn}, unplaced)
        for choice in self.choices():
            board = self.after_choice(choice)
            text = effect(self.board, board)
            if text in found:
                assert found[text][0] == board, f"{text} stands for two different boards"
            found[text] = (board, dict(self.unplaced))
        self._known = found
        return found

    def repeats(self, board: dict[Square, Colour], unplaced: dict[Colour, int]) -> bool:
        """Rule 8, or what the option says instead of it."""
        after: Arrangement = (frozenset(board.items()), unplaced["w"], unplaced["b"])
        if self.ko == "superko":
            return after in self.earlier
        if self.ko == "basic":  # how it was before the previous turn
            return after in self.earlier[-2:]
        return after == self.earlier[-1]

    def legal_turns(self) -> list[str]:
        """The texts of all legal turns, sorted; none when the game is over."""
        if self.turns_played >= self.cap:
            return []
        return self.turns_by_the_rules()

    def turns_by_the_rules(self) -> list[str]:
        """The same without the house's cap."""
        return sorted(text for text, after in self.turns().items() if not self.repeats(*after))

    def play(self, text: str) -> None:
        assert text in self.legal_turns(), text
        self.board, self.unplaced = self.turns()[text]
        self._known = None
        self.on_turn = OTHER[self.on_turn]
        self.turns_played += 1
        self.earlier.append(self.arrangement())

    def stones_left(self, colour: Colour) -> int:
        return list(self.board.values()).count(colour) + self.unplaced[colour]

    def result(self) -> tuple[bool, Colour | None]:
        """Return whether the game is over, and its winner; None for a draw at the cap."""
        if not self.turns_by_the_rules():
            return True, OTHER[self.on_turn]  # rule 9
        if self.turns_played < self.cap:
            return False, None
        w, b = self.stones_left("w"), self.stones_left("b")
        return True, None if w == b else "w" if w > b else "b"


def effect(before: dict[Square, Colour], after: dict[Square, Colour]) -> str:
    """The notation of a movement: squares that become empty, squares that are filled, an x for each loss."""
    emptied = sorted(name_of(square) for square in before if square not in after)
    filled = sorted(name_of(square) for square in after if square not in before)
    return "".join(emptied) + "-" + "".join(filled) + "x" * (len(before) - len(after))


def naive_perft(game: NaiveKalamala, depth: int) -> int:
    """Sequences of exactly so many turns."""
    if depth == 0:
        return 1
    if depth == 1:
        return len(game.legal_turns())
    total = 0
    for text in game.legal_turns():
        child = NaiveKalamala(game.ko, game.cap, game.position())
        child.turns_played = game.turns_played
        child.earlier = list(game.earlier)
        child.play(text)
        total += naive_perft(child, depth - 1)
    return total
