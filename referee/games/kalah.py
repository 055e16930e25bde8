"""The rules of Kalah, every variant of docs/rules.md, as one parameterised rule book.

The clauses K1 to K9 that comments cite are those of docs/rules.md.
"""

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from referee.games.base import IllegalMoveError, InvalidMoveError, Outcome, PositionError, Side
from referee.games.layout import PitBoard, PitRow

MAX_PITS = 30
"""Documented bound of the rule book: a board text stays below 250 bytes."""
MAX_SEEDS = 100
"""Documented bound of the rule book, seeds per pit at the start."""

SWAP = 0
"""The pie rule's move; every other move is a pit's number, 1 to p."""

MAX_STATE_LENGTH = 1000
"""Longest text of a position: the largest board has 62 numbers of at most 4 digits."""

MAX_NUMBER = 2**31 - 1
"""Largest number of a pit: the course's engine reads a 32-bit integer; a larger one is a malformed line."""

SOUTH, NORTH = 0, 1
SEAT_NAMES = ("South", "North")


class EndRule(StrEnum):
    """K5: the condition under which a side without seeds ends the game."""

    EITHER = "either"
    ON_TURN = "on-turn"


class Phase(StrEnum):
    """The phase of the game, which decides the rules for the next move."""

    OPENING = "opening"
    """The very first sowing of the game."""
    REPEATING = "repeating"
    """A continuation of the opener's first turn (K9 with pie and repeats): the swap comes later."""
    REPLY = "reply"
    """The second player's first decision: SWAP may be played (K8)."""
    PLAY = "play"
    OVER = "over"


class KalahState(NamedTuple):
    """A position; immutable and hashable."""

    board: tuple[int, ...]
    """Seeds in the order of sowing and of the protocol: North's pits 1..p, North's store, South's
    pits 1..p, South's store."""
    seat: int
    """SOUTH or NORTH: the seat to move (or, in a finished game, that would have been)."""
    phase: Phase
    swapped: bool
    """True if SWAP was played, so that FIRST now sits North."""


# The text of a state: the protocol's board, then what the board alone does not show.
_STATE = re.compile(
    r"(?P<board>[0-9]+(?:,[0-9]+)*)"
    r"(?:;(?P<seat>South|North)(?:;(?P<phase>opening|repeating|reply))?(?P<swapped>;swapped)?)?",
    re.ASCII,
)
# MOVE;+1 and MOVE;01 are accepted by the course's engine, other digits than ASCII's are not.
_NUMBER = re.compile(r"[+-]?[0-9]+", re.ASCII)


# Names of the module are found faster than members of an enumeration, and ``apply`` is called most.
_OPENING, _REPEATING, _REPLY, _PLAY, _OVER = Phase
_EITHER = EndRule.EITHER
_FIRST, _SECOND = Side


class _Texts(dict[int, str]):
    """Number -> its text, filled as needed: a third of the time of calling ``str`` for every number."""

    def __missing__(self, number: int) -> str:
        text = self[number] = str(number)
        return text


_TEXTS = _Texts()


@dataclass(frozen=True)
class Kalah:
    """The rules of one variant of Kalah (a ``Game[KalahState, int]``)."""

    name: str
    """The canonical spec text."""
    pits: int
    """Pits a side (p of K1)."""
    seeds: int
    """Seeds in every pit at the start (s of K1)."""
    pie: bool
    """True if the second player may swap (K8, the pie rule)."""
    first_move_repeats: bool
    """True if a first sowing that ends in the store gives another turn (K9)."""
    end: EndRule
    """The condition of the end (K5)."""
    majority_end: bool
    """True if more than half of all seeds in a store ends the game (K6)."""
    empty_capture: bool
    """True if the last seed alone is captured when the opposite pit is empty (K4)."""

    swap = SWAP

    def __post_init__(self) -> None:
        if not (1 <= self.pits <= MAX_PITS and 1 <= self.seeds <= MAX_SEEDS):
            raise ValueError(
                f"no board ({self.pits},{self.seeds}): pits a side are 1 to {MAX_PITS}, "
                f"seeds a pit 1 to {MAX_SEEDS}"
            )

    @property
    def total_seeds(self) -> int:
        """The number of seeds on the board, which never changes."""
        return 2 * self.pits * self.seeds

    def initial_state(self) -> KalahState:
        """Return the start position (K1): s seeds in every pit, both stores empty, South to move."""
        row = (self.seeds,) * self.pits + (0,)
        return KalahState(row + row, SOUTH, Phase.OPENING, False)

    def to_move(self, state: KalahState) -> Side:
        """Return the player in the seat that is to move."""
        return _SECOND if state.seat ^ state.swapped else _FIRST

    def seats(self, state: KalahState) -> tuple[str, str]:
        """Return South and North, exchanged after a swap."""
        return ("North", "South") if state.swapped else ("South", "North")

    def legal_moves(self, state: KalahState) -> list[int]:
        """Return the legal moves: every own pit that is not empty (K2), and SWAP where it is offered (K8)."""
        board, seat, phase, _ = state
        if phase is Phase.OVER:
            return []
        before_pit_1 = -1 if seat == NORTH else self.pits
        moves = [pit for pit in range(1, self.pits + 1) if board[before_pit_1 + pit]]
        if phase is Phase.REPLY:
            moves.insert(0, SWAP)
        return moves

    def apply(self, state: KalahState, move: int) -> KalahState:
        """Return the state after one sowing or the swap, with all its consequences.

        Raises IllegalMoveError.
        """
        board, seat, phase, swapped = state
        if phase is _OVER:
            raise IllegalMoveError("game-over", "the game is over")
        if move == SWAP:
            if not self.pie:
                raise IllegalMoveError("swap-not-offered", "this game has no SWAP")
            if phase is not _REPLY:
                raise IllegalMoveError(
                    "swap-not-offered", "SWAP exists only as the second player's very first reply"
                )
            # K8: the players exchange seats; the board and the seat that is to move stay.
            return KalahState(board, seat, _PLAY, not swapped)
        p = self.pits
        if not 1 <= move <= p:
            raise IllegalMoveError("no-such-pit", f"there is no pit {move}: pits are numbered 1 to {p}")
        first = 0 if seat == NORTH else p + 1
        origin = first + move - 1
        seeds = board[origin]
        if not seeds:
            raise IllegalMoveError("empty-pit", f"pit {move} of {SEAT_NAMES[seat]} is empty")

        cells = list(board)
        store = first + p
        size = 2 * p + 2
        other_store = p if seat == SOUTH else size - 1
        # K2: one seed into each following pit and the own store; the opponent's store is skipped.
        cells[origin] = 0
        at = origin
        for _ in range(seeds):
            at += 1
            if at == other_store:
                at += 1
            if at >= size:
                at = 0  # South's store is the last cell: behind it, or past it, is North's pit 1
            cells[at] += 1

        again = False
        if at == store:
            # K3 extra turn; K9: perhaps not after the very first sowing.
            again = phase is not _OPENING or self.first_move_repeats
        elif cells[at] == 1 and first <= at < store:
            # K4 capture: opposite of pit i is pit p+1-i, hence the mirrored index.
            opposite = 2 * p - at
            if cells[opposite] or self.empty_capture:
                cells[store] += cells[opposite] + 1
                cells[opposite] = cells[at] = 0

        mover = seat if again else 1 - seat
        if self._is_over(cells, mover):
            return KalahState(tuple(cells), mover, _OVER, swapped)
        if phase is _PLAY or phase is _REPLY or not self.pie:
            following = _PLAY
        else:
            following = _REPEATING if again else _REPLY  # K8, K9
        return KalahState(tuple(cells), mover, following, swapped)

    def _is_over(self, cells: list[int], mover: int) -> bool:
        """Return True if the game is over by K5 or K6, with ``mover`` to move next.

        The remaining seeds are collected in place (K5).
        """
        p = self.pits
        if self.majority_end:
            half = self.total_seeds // 2
            if cells[p] > half or cells[-1] > half:
                return True  # K6 sweeps nothing, and comes before K5
        over = not any(cells[:p] if mover == NORTH else cells[p + 1 : -1])
        if not over and self.end is _EITHER:
            over = not any(cells[p + 1 : -1] if mover == NORTH else cells[:p])
        if over:
            # K5: what remains goes to the owner of the side it lies on.  With ``on-turn`` the mover's
            # side is empty, so "the opponent gets the rest" is the same.
            cells[p] += sum(cells[:p])
            cells[-1] += sum(cells[p + 1 : -1])
            cells[:p] = cells[p + 1 : -1] = [0] * p
        return over

    def outcome(self, state: KalahState) -> Outcome | None:
        """Return the result (K7): more seeds in the store wins, equal is a draw."""
        if state.phase is not _OVER:
            return None
        north, south = state.board[self.pits], state.board[-1]
        score = (north, south) if state.swapped else (south, north)
        if score[0] == score[1]:
            return Outcome(None, score)
        return Outcome(Side.FIRST if score[0] > score[1] else Side.SECOND, score)

    def is_half_over(self, state: KalahState) -> bool:
        """Return True if the stores together hold half of all seeds, as they do once the game is decided.

        On the (7,7) board 43 of 86 turns of random games are played by then; measured over 200 games.
        """
        return 2 * (state.board[self.pits] + state.board[-1]) >= self.total_seeds

    def parse_move(self, state: KalahState, text: str) -> int:
        """Return a pit's number, or SWAP.  Raises InvalidMoveError."""
        if len(text) == 1 and text in "123456789":  # nearly always
            return int(text)
        if text == "SWAP":
            return SWAP
        if not _NUMBER.fullmatch(text):
            raise InvalidMoveError("bad-number", f"{_shorten(text)!r} is not the number of a pit")
        # A text far too long for a 32-bit number is refused before it is converted.
        digits = text.lstrip("+-").lstrip("0")
        number = int(digits or "0") if len(digits) <= len(str(MAX_NUMBER)) else MAX_NUMBER + 1
        if number > MAX_NUMBER:
            raise InvalidMoveError("number-too-large", f"{_shorten(text)} is far beyond any pit's number")
        if number == 0 or text.startswith("-"):
            raise InvalidMoveError(
                "not-positive", f"{_shorten(text)} is not the number of a pit: pits are numbered from 1"
            )
        return number

    def format_move(self, state: KalahState, move: int) -> str:
        """Return the text of a move, such as ``3`` or ``SWAP``."""
        return "SWAP" if move == SWAP else str(move)

    def board_text(self, state: KalahState) -> str:
        """Return the board of the protocol: 2(p+1) numbers, North's pits, store, South's pits, store."""
        return ",".join(map(_TEXTS.__getitem__, state.board))

    def layout(self, state: KalahState) -> PitBoard:
        """Return the board with South's pits in the bottom row."""
        p, north = self.pits, Side.FIRST if state.swapped else Side.SECOND
        return PitBoard(
            bottom=PitRow(north.other, state.board[p + 1 : -1], state.board[-1]),
            top=PitRow(north, state.board[:p], state.board[p]),
        )

    def format_state(self, state: KalahState) -> str:
        """Return the board, the seat to move, and what else the board does not show."""
        text = f"{self.board_text(state)};{SEAT_NAMES[state.seat]}"
        if state.phase not in (Phase.PLAY, Phase.OVER):
            text += f";{state.phase}"
        return text + (";swapped" if state.swapped else "")

    def parse_state(self, text: str) -> KalahState:
        """Return the state of a text by ``format_state``, or of a bare board of the protocol.

        A bare board means: South to move, in the middle of a game (no swap is offered); the bare board of the
        start position is the start position.  Raises PositionError.
        """
        match = _STATE.fullmatch(text) if len(text) <= MAX_STATE_LENGTH else None
        if match is None:
            raise PositionError(
                f"{_shorten(text)!r} is no position: expected {2 * self.pits + 2} numbers with commas, "
                "then perhaps ;South or ;North, ;opening, ;repeating or ;reply, and ;swapped"
            )
        board = tuple(map(int, match["board"].split(",")))
        if len(board) != 2 * self.pits + 2:
            raise PositionError(f"a board of {self.name} has {2 * self.pits + 2} numbers, not {len(board)}")
        if sum(board) != self.total_seeds:
            raise PositionError(f"the board holds {sum(board)} seeds, but {self.name} has {self.total_seeds}")
        start = self.initial_state()
        if match["seat"] is None:
            if board == start.board:
                return start
            seat, phase = SOUTH, Phase.PLAY
        else:
            seat = SEAT_NAMES.index(match["seat"])
            phase = Phase(match["phase"] or Phase.PLAY)
        self._check_phase(board, seat, phase, swapped=bool(match["swapped"]))
        cells = list(board)
        if self._is_over(cells, seat):
            if phase is not Phase.PLAY:
                raise PositionError(f"the game is over in this position, so it cannot be in phase {phase}")
            phase = Phase.OVER
        return KalahState(tuple(cells), seat, phase, bool(match["swapped"]))

    def _check_phase(self, board: tuple[int, ...], seat: int, phase: Phase, *, swapped: bool) -> None:
        """Raise PositionError if the phase is impossible with this board and these rules."""
        if swapped and (phase is not Phase.PLAY or not self.pie):
            raise PositionError("a swap can only have been played with +pie, and ends the special phases")
        if phase is Phase.OPENING and (seat != SOUTH or board != self.initial_state().board):
            raise PositionError("the opening phase is the start position, with South to move")
        if phase is Phase.REPLY and not (self.pie and seat == NORTH):
            raise PositionError("the reply phase is North's first decision under +pie")
        if phase is Phase.REPEATING and not (self.pie and self.first_move_repeats and seat == SOUTH):
            raise PositionError("the repeating phase is South's, under +pie with first-move-repeats")


def _shorten(text: str, limit: int = 40) -> str:
    """Return at most ``limit`` characters of a text, for a message."""
    return text if len(text) <= limit else text[:limit] + "..."
