"""The rules of Kalamala, by Daniel Sherlock and Salih Kadri; rule numbers are those of docs/rules.md.

Theory of operation.  A turn is named by its effect (the squares that become empty and occupied), so that two
choices of groups with the same result are one turn.  All movements happen on one line, and the possible
movements depend on the stones of that line alone.  The effects of each line are therefore kept in a table,
keyed by the stones on it and filled as positions come up; the turns of a position are the union over its
lines.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple

from referee.games.base import IllegalMoveError, InvalidMoveError, Outcome, PositionError, Side
from referee.games.layout import GridBoard

SIZE = 8
"""Rule 1: 8 x 8 squares, a1 to h8."""
RESERVE = 4
"""Rule 2: unplaced stones of each side at the start."""
STONES = 16
"""Rule 2: stones of both sides together."""
REMOVED_BY_HALF = 6
"""Removed stones after which a game is half over, see ``Kalamala.is_half_over``."""
DEFAULT_CAP = 600
"""House rule, not the authors': turns after which a game is decided by the stones left.  The longest of
20,000 random games had 325 turns, the longest between alpha-beta players 313."""
MAX_CAP = 5_000
"""Documented bound: the history of a game that goes on for ever without a placement or removal grows."""

WHITE, BLACK = 0, 1
SEAT_NAMES = ("White", "Black")

SQUARES = [f"{column}{row}" for row in range(1, SIZE + 1) for column in "abcdefgh"]
"""Names by index; a1 is 0, h1 is 7, h8 is 63."""
BITS = {name: 1 << index for index, name in enumerate(SQUARES)}

Past = frozenset[tuple[int, int]]
Effects = dict[str, tuple[int, int, bool]]
"""Turn's text -> (bits that change, stones removed, whether the mover's own stones move)."""

# The effect notation: see docs/rules.md.
_TURN = re.compile(r"(?:[a-h][1-8]|(?:[a-h][1-8]){1,2}-(?:[a-h][1-8]){0,2}x{0,2})", re.ASCII)
_POSITION = re.compile(
    r"(?P<board>[wb.]{8}(?:/[wb.]{8}){7}):(?P<white>[0-8])(?P<black>[0-8]):(?P<side>[wb])"
    r"(?:;(?P<ply>[0-9]{1,6});(?P<past>(?:[wb./]{71}(?:,[wb./]{71})*)?))?",
    re.ASCII,
)


class Ko(StrEnum):
    """Rule 8, and its variants that have been played."""

    SUPERKO = "superko"
    """No state of the game may come again (the rule)."""
    BASIC = "basic"
    """Only the state before the opponent's turn may not (the authors' short rules)."""
    NONE = "none"


class KalamalaState(NamedTuple):
    """A position with the history that the rules need; immutable and hashable."""

    white: int
    """Squares with white stones, bit i for square i of SQUARES."""
    black: int
    reserves: tuple[int, int]
    """Unplaced stones of White and of Black."""
    side: int
    """WHITE or BLACK: the side to move."""
    ply: int
    """Turns played."""
    past: Past
    """Rule 8: boards that may not come again.  Only those since the last placement or removal are
    kept: no turn leads back behind one (each makes a number smaller that never grows)."""


# Movements on one line, in the line's own coordinates (rule 7).


def line_movements(length: int, own: int, other: int) -> Iterator[tuple[set[int], set[int], bool]]:
    """Yield all movements on a line: the P-group's squares before and after, and if it is the mover's own.

    Squares after a movement can be off the line.  By rule 7 an A-group of n stones moves a P-group of m up to
    floor(n/m) squares; since any part of a run is a group, the longest A-group that ends at a stone allows
    all that the shorter ones do.
    """
    for end in range(length):
        if not own >> end & 1:
            continue
        for step in (1, -1):
            stones = 1  # of the longest A-group that ends here, seen from the P-group
            while 0 <= end - step * stones < length and own >> (end - step * stones) & 1:
                stones += 1
            near, gap = end + step, 0
            while 0 <= near < length and not (own | other) >> near & 1:
                near, gap = near + step, gap + 1
            if not 0 <= near < length:
                continue
            colour = own if own >> near & 1 else other
            moved = 0
            while 0 <= near + step * moved < length and colour >> (near + step * moved) & 1:
                moved += 1
                if moved > stones:
                    break
                before = {near + step * index for index in range(moved)}
                beyond = near + step * moved
                room = 0  # for a push: empty squares beyond, or the edge, behind which there is room for all
                while 0 <= beyond + step * room < length and not (own | other) >> (beyond + step * room) & 1:
                    room += 1
                if not 0 <= beyond + step * room < length:
                    room = length
                for distance in range(1, stones // moved + 1):
                    if distance <= gap:  # pull
                        yield before, {square - step * distance for square in before}, colour is own
                    if distance <= room:  # push
                        yield before, {square + step * distance for square in before}, colour is own


class _Line:
    """One row, column or diagonal, with the table of its effects."""

    def __init__(self, squares: list[int]) -> None:
        self.mask = sum(1 << square for square in squares)
        self._squares = squares
        self.table: dict[tuple[int, int], Effects] = {}

    def effects(self, key: tuple[int, int]) -> Effects:
        """Return the effects for the (mover's, opponent's) stones on this line.

        The result is stored in the table.
        """
        own, other = (
            sum(1 << index for index, square in enumerate(self._squares) if bits >> square & 1)
            for bits in key
        )
        found: Effects = {}
        for before, after, is_own in line_movements(len(self._squares), own, other):
            on_board = {index for index in after if 0 <= index < len(self._squares)}
            removed = len(after) - len(on_board)
            emptied = sorted(SQUARES[self._squares[index]] for index in before - on_board)
            filled = sorted(SQUARES[self._squares[index]] for index in on_board - before)
            text = f"{''.join(emptied)}-{''.join(filled)}{'x' * removed}"
            found[text] = (sum(BITS[name] for name in emptied + filled), removed, is_own)
        if len(self.table) >= MAX_TABLE:
            self.table.clear()
        self.table[key] = found
        return found


MAX_TABLE = 6561
"""Entries of one line's table: all 3^8 fillings of the longest line."""


@lru_cache(maxsize=1)  # made when Kalamala is played, since a game of Kalah imports this module, too
def _lines() -> list[_Line]:
    """Return all lines of two squares or more."""
    found = []
    for right, up in ((1, 0), (0, 1), (1, 1), (1, -1)):
        for start in range(SIZE * SIZE):
            column, row = start % SIZE, start // SIZE
            if 0 <= column - right < SIZE and 0 <= row - up < SIZE:
                continue  # not where the line begins
            squares = []
            while 0 <= column < SIZE and 0 <= row < SIZE:
                squares.append(SIZE * row + column)
                column, row = column + right, row + up
            if len(squares) > 1:
                found.append(_Line(squares))
    return found


def _movements(own: int, other: int) -> Effects:
    """Return all movements of a side, by their effect (rule 7), without regard to the history (rule 8)."""
    found: Effects = {}
    for line in _lines():
        stones = own & line.mask
        if stones:
            key = (stones, other & line.mask)
            effects = line.table.get(key)
            found.update(line.effects(key) if effects is None else effects)
    return found


@lru_cache(maxsize=512)  # a caller of ``legal_moves`` will apply one, or all, of them next
def _legal(state: KalamalaState) -> dict[str, tuple[int, int]]:
    """Return turn -> the boards after it, for every legal turn but for the cap; sorted."""
    white, black, reserves, side, _, past = state
    own, other = (white, black) if side == WHITE else (black, white)
    boards: dict[str, tuple[int, int]] = {}
    for text, (change, removed, is_own) in _movements(own, other).items():
        after = (own ^ change, other) if is_own else (own, other ^ change)
        board = after if side == WHITE else (after[1], after[0])
        if removed or board not in past:  # rule 8
            boards[text] = board
    if reserves[side]:  # rule 5
        for name, bit in BITS.items():
            if not (white | black) & bit:
                boards[name] = (white | bit, black) if side == WHITE else (white, black | bit)
    return dict(sorted(boards.items()))


@dataclass(frozen=True)
class Kalamala:
    """The rules (a ``Game[KalamalaState, str]``); a move is its effect's text."""

    name: str
    """The canonical spec text."""
    ko: Ko = Ko.SUPERKO
    """The variant of rule 8."""
    cap: int = DEFAULT_CAP
    """The house rule: turns after which the stones left decide."""

    swap = None

    def initial_state(self) -> KalamalaState:
        """Return the start position (rule 2)."""
        white = sum(BITS[name] for name in ("c4", "d3", "f5", "e6"))
        black = sum(BITS[name] for name in ("c5", "d6", "f4", "e3"))
        return KalamalaState(white, black, (RESERVE, RESERVE), WHITE, 0, self._first_past(white, black))

    def _first_past(self, white: int, black: int) -> Past:
        return frozenset({(white, black)}) if self.ko is Ko.SUPERKO else frozenset()

    def to_move(self, state: KalamalaState) -> Side:
        """Return the player to move (rule 4): sides alternate, White begins."""
        return Side.FIRST if state.side == WHITE else Side.SECOND

    def seats(self, state: KalamalaState) -> tuple[str, str]:
        """Return White and Black, for the whole game."""
        return SEAT_NAMES

    def legal_moves(self, state: KalamalaState) -> list[str]:
        """Return the legal turns (rules 4 to 8), sorted as texts; none once the cap is reached."""
        return [] if state.ply >= self.cap else list(_legal(state))

    def apply(self, state: KalamalaState, move: str) -> KalamalaState:
        """Return the state after one placement or one movement (rule 4).  Raises IllegalMoveError."""
        board = _legal(state).get(move)
        if board is None or state.ply >= self.cap:
            raise self._why_illegal(state, move)
        white, black = board
        reserves, past = state.reserves, state.past
        if "-" not in move:
            reserves = (
                (reserves[0] - 1, reserves[1]) if state.side == WHITE else (reserves[0], reserves[1] - 1)
            )
        if self.ko is Ko.SUPERKO:
            # A placement or a removal can never be undone: no board before it can come again.
            lasting = "-" not in move or "x" in move
            past = frozenset({board}) if lasting else past | {board}
        elif self.ko is Ko.BASIC:
            past = frozenset({(state.white, state.black)})
        return KalamalaState(white, black, reserves, 1 - state.side, state.ply + 1, past)

    def _why_illegal(self, state: KalamalaState, move: str) -> IllegalMoveError:
        """Return the error for an illegal turn, for the student whose bot played it."""
        if self.outcome(state) is not None:
            return IllegalMoveError("game-over", "the game is over")
        own, other = (state.white, state.black) if state.side == WHITE else (state.black, state.white)
        seat = SEAT_NAMES[state.side]
        if "-" not in move:
            if (own | other) & BITS.get(move, 0):
                return IllegalMoveError("occupied", f"{move} is not empty")
            return IllegalMoveError("no-stones", f"{seat} has no unplaced stones left")
        if move in _movements(own, other):
            return IllegalMoveError("repetition", f"{move} leads to a position that was there before")
        return IllegalMoveError("no-such-turn", f"no movement of {seat} has the effect {move}")

    def outcome(self, state: KalamalaState) -> Outcome | None:
        """Return the result: a player without a legal turn has lost (rule 9); then the cap decides."""
        score = (
            state.white.bit_count() + state.reserves[WHITE],
            state.black.bit_count() + state.reserves[BLACK],
        )
        if not _legal(state):
            seat = SEAT_NAMES[state.side]
            return Outcome(self.to_move(state).other, score, detail=f"{seat} has no legal turn")
        if state.ply < self.cap:
            return None
        winner = None if score[0] == score[1] else Side.FIRST if score[0] > score[1] else Side.SECOND
        return Outcome(winner, score, "turn-cap", f"the stones left decide after turn {self.cap}")

    def is_half_over(self, state: KalamalaState) -> bool:
        """Return True if six of the sixteen stones are removed, about half of those that a game removes.

        Eight random games removed 12.5 stones on average, and the sixth after 46 % of their turns.
        """
        left = (state.white | state.black).bit_count() + sum(state.reserves)
        return left <= STONES - REMOVED_BY_HALF

    def parse_move(self, state: KalamalaState, text: str) -> str:
        """Return a turn's text in the effect notation.  Raises InvalidMoveError."""
        if not _TURN.fullmatch(text):
            raise InvalidMoveError(
                "bad-turn", f"{text[:40]!r} is not the text of a turn, such as d4, e5-e7 or b3-x"
            )
        before, _, after = text.partition("-")
        if after or "-" in text:
            if len(before) != len(after.replace("x", "")) + 2 * after.count("x"):
                raise InvalidMoveError("bad-turn", f"{text!r} does not say where each stone went")
            for part in (before, after.rstrip("x")):
                names = [part[index : index + 2] for index in range(0, len(part), 2)]
                if names != sorted(set(names)):
                    raise InvalidMoveError("bad-turn", f"{text!r}: squares stand in the order a1 a2 ... h8")
        return text

    def format_move(self, state: KalamalaState, move: str) -> str:
        """Return the move, which is its own text."""
        return move

    def board_text(self, state: KalamalaState) -> str:
        """Return the 76 characters of the position."""
        return f"{_board(state.white, state.black)}:{state.reserves[0]}{state.reserves[1]}:{'wb'[state.side]}"

    def layout(self, state: KalamalaState) -> GridBoard:
        """Return the 8 x 8 squares, row 8 first."""
        rows = _board(state.white, state.black).replace(".", " ").split("/")
        squares = tuple(tuple(mark.strip() for mark in row) for row in rows)
        return GridBoard(squares, ("w", "b"), state.reserves)

    def format_state(self, state: KalamalaState) -> str:
        """Return the position; after the first turn also turns played and boards that may not recur."""
        text = self.board_text(state)
        if state.ply == 0 and state.past == self._first_past(state.white, state.black):
            return text
        return f"{text};{state.ply};{','.join(sorted(_board(*board) for board in state.past))}"

    def parse_state(self, text: str) -> KalamalaState:
        """Return the state of a text by ``format_state``; a bare position has no past but itself.

        Raises PositionError.
        """
        match = _POSITION.fullmatch(text)
        if match is None:
            raise PositionError(
                f"{text[:80]!r} is no position: expected 8 rows of w, b and . from row 8 to row 1 with / "
                "between, then :, two digits for the unplaced stones, and :w or :b"
            )
        white, black = _bits(match["board"])
        reserves = (int(match["white"]), int(match["black"]))
        for seat, stones, reserve in zip(SEAT_NAMES, (white, black), reserves, strict=True):
            if stones.bit_count() + reserve > 2 * RESERVE:
                raise PositionError(f"{seat} has more than {2 * RESERVE} stones")
        past = self._first_past(white, black)
        if match["past"] is not None and self.ko is not Ko.NONE:
            past |= {_bits(board) for board in match["past"].split(",") if board}
        return KalamalaState(white, black, reserves, "wb".index(match["side"]), int(match["ply"] or 0), past)


def _board(white: int, black: int) -> str:
    """Return the 71 characters of the stones: rows 8 to 1."""
    rows = []
    for row in range(SIZE - 1, -1, -1):
        squares = range(SIZE * row, SIZE * row + SIZE)
        rows.append("".join("w" if white >> s & 1 else "b" if black >> s & 1 else "." for s in squares))
    return "/".join(rows)


def _bits(board: str) -> tuple[int, int]:
    """Return the stones of a text by ``_board``.  Raises PositionError."""
    rows = board.split("/")
    if [len(row) for row in rows] != [SIZE] * SIZE:
        raise PositionError(f"{board[:80]!r} is no board")
    cells = "".join(reversed(rows))
    white = sum(1 << index for index, cell in enumerate(cells) if cell == "w")
    return white, sum(1 << index for index, cell in enumerate(cells) if cell == "b")
