"""Connect Four, as an example of a game in one file; ``docs/games.md`` explains its parts.

Seven columns and six rows.  The players drop discs into columns in turn; four own discs in a row, in a column
or on a diagonal win.  A full board is a draw.
"""

from referee.games.base import IllegalMoveError, InvalidMoveError, Outcome, PositionError, Side
from referee.games.catalog import register_game
from referee.games.layout import GridBoard

COLUMNS, ROWS = 7, 6
MARKS = "XO"
EMPTY = "."
LINES = [
    [(column + index * right, row + index * up) for index in range(4)]
    for right, up in ((1, 0), (0, 1), (1, 1), (1, -1))
    for column in range(COLUMNS)
    for row in range(ROWS)
    if column + 3 * right < COLUMNS and 0 <= row + 3 * up < ROWS
]
"""All lines of four squares, as columns and rows from 0; row 0 is the lowest."""

State = str
"""The columns from left to right, each with its discs from below; columns are divided by a slash."""


class ConnectFour:
    """The rule book."""

    name = "connect-four"
    swap = None

    def initial_state(self) -> State:
        return "/" * (COLUMNS - 1)

    def to_move(self, state: State) -> Side:
        return Side(self._discs(state) % 2)

    def _discs(self, state: State) -> int:
        return len(state) - (COLUMNS - 1)

    def seats(self, state: State) -> tuple[str, str]:
        return ("Red", "Yellow")

    def _winner(self, state: State) -> Side | None:
        columns = [column.ljust(ROWS, EMPTY) for column in state.split("/")]
        for line in LINES:
            marks = {columns[column][row] for column, row in line}
            if len(marks) == 1 and marks != {EMPTY}:
                return Side(MARKS.index(marks.pop()))
        return None

    def legal_moves(self, state: State) -> list[int]:
        if self._winner(state) is not None:
            return []
        return [number for number, column in enumerate(state.split("/"), 1) if len(column) < ROWS]

    def apply(self, state: State, move: int) -> State:
        if move not in self.legal_moves(state):
            raise IllegalMoveError("not-legal", f"no disc can be dropped into column {move} here")
        columns = state.split("/")
        columns[move - 1] += MARKS[self.to_move(state)]
        return "/".join(columns)

    def outcome(self, state: State) -> Outcome | None:
        if self.legal_moves(state):
            return None
        winner = self._winner(state)
        score = (0, 0) if winner is None else (1, 0) if winner is Side.FIRST else (0, 1)
        return Outcome(winner, score)

    def is_half_over(self, state: State) -> bool:
        return 2 * self._discs(state) >= COLUMNS * ROWS

    def parse_move(self, state: State, text: str) -> int:
        if not (text.isascii() and text.isdigit() and len(text) == 1):
            raise InvalidMoveError("bad-number", f"{text[:40]!r} is not the number of a column")
        return int(text)

    def format_move(self, state: State, move: int) -> str:
        return str(move)

    def board_text(self, state: State) -> str:
        return state

    def format_state(self, state: State) -> str:
        return state

    def parse_state(self, text: str) -> State:
        columns = text.split("/")
        counts = [text.count(mark) for mark in MARKS]
        if (
            len(columns) != COLUMNS
            or any(len(column) > ROWS or column.strip(MARKS) for column in columns)
            or counts[0] - counts[1] not in (0, 1)
        ):
            raise PositionError(f"{text[:80]!r} is no position of Connect Four")
        return text

    def layout(self, state: State) -> GridBoard:
        columns = [column.ljust(ROWS) for column in state.split("/")]
        rows = tuple(tuple(column[row].strip() for column in columns) for row in reversed(range(ROWS)))
        return GridBoard(rows, (MARKS[0], MARKS[1]))


register_game("connect-four", lambda spec: ConnectFour(), about="Connect Four on 7 x 6 squares")
