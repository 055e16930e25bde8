"""Kalamala's board as numbers: lines, fillings of lines, hash numbers, codes of turns.

Theory of operation.  The turns on a line depend on its stones alone (rule 7).  So each of the 42 lines has
one number, its *filling*: the stones on it as digits to the base 3 (0 empty, 1 White, 2 Black; the square
with the lowest index is the lowest digit).  Lines that are equal for the rules and for the evaluation (the
same number of squares, the same distance from the edge) form a *class*.  Fillings are numbered through all
classes, so one number is an index of all tables about lines.  Squares are numbered as in the rule book: a1 =
0, h1 = 7, h8 = 63.
"""

import random

from referee.games.kalamala import SIZE, SQUARES
from sample_bots.strong.compiled import Array, array_of

SQUARE_COUNT = SIZE * SIZE
NO_SQUARE = 64
"""In place of a square in the code of a turn that has fewer squares."""


def _squares_of(right: int, up: int) -> list[list[int]]:
    """Return all lines of one direction with two squares or more; squares in the order of their indices."""
    lines = []
    for start in range(SQUARE_COUNT):
        column, row = start % SIZE, start // SIZE
        if 0 <= column - right < SIZE and 0 <= row - up < SIZE:
            continue  # not the first square of its line
        squares = []
        while 0 <= column < SIZE and 0 <= row < SIZE:
            squares.append(SIZE * row + column)
            column, row = column + right, row + up
        if len(squares) > 1:
            lines.append(squares)
    return lines


ROWS_AND_COLUMNS = _squares_of(1, 0) + _squares_of(0, 1)
DIAGONALS = _squares_of(1, 1) + _squares_of(-1, 1)
LINES = ROWS_AND_COLUMNS + DIAGONALS
LINE_COUNT = len(LINES)
NO_LINE = LINE_COUNT
"""Number of a line without squares, the fourth line of the corners, which lie on three lines."""

EDGE_DISTANCES = SIZE // 2
"""Number of the classes of rows and columns: 0 to 3, by the distance from the edge."""
CLASS_LENGTHS = [SIZE] * EDGE_DISTANCES + list(range(2, SIZE + 1))
"""Class -> squares of a line; diagonals are classified by their length."""
CLASS_STARTS = [sum(3**length for length in CLASS_LENGTHS[:index]) for index in range(len(CLASS_LENGTHS))]
"""Class -> filling of an empty line."""
FILLINGS = sum(3**length for length in CLASS_LENGTHS) + 1
"""Number of fillings; the last one is that of NO_LINE."""


def _class_of(line: int) -> int:
    if line < len(ROWS_AND_COLUMNS):
        return min(line % SIZE, SIZE - 1 - line % SIZE)
    return CLASS_LENGTHS.index(len(LINES[line]), EDGE_DISTANCES)


EMPTY_LINES = [CLASS_STARTS[_class_of(line)] for line in range(LINE_COUNT)] + [FILLINGS - 1]
"""Line -> its filling on an empty board."""

PLACES = 9
"""Numbers per line in LINE_SQUARES: eight squares, and NO_SQUARE."""
NO_PLACE = PLACES - 1
LINE_SQUARES: Array = array_of(
    [square for line in LINES for square in line + [NO_SQUARE] * (PLACES - len(line))],
    "int64",
)
"""Line and place on it -> square."""


def _through(square: int) -> list[tuple[int, int]]:
    """Return the four lines through a square, each with the weight of its digit there."""
    found = [(line, 3 ** squares.index(square)) for line, squares in enumerate(LINES) if square in squares]
    return found + [(NO_LINE, 0)] * (4 - len(found))


LINES_OF_SQUARE: Array = array_of(
    [line for square in range(SQUARE_COUNT) for line, _ in _through(square)], "int64"
)
"""Square -> its four lines."""
DIGITS_OF_SQUARE: Array = array_of(
    [worth for square in range(SQUARE_COUNT) for _, worth in _through(square)], "int64"
)
"""Square -> amounts that a White stone adds to the fillings of these lines."""

DISTANCES: Array = array_of(
    [min(column, SIZE - 1 - column, row, SIZE - 1 - row) for row in range(SIZE) for column in range(SIZE)]
    + [0],
    "int64",
)
"""Square -> steps from the nearest edge; 0 for NO_SQUARE."""

# Hash numbers (Zobrist, 1970).  62 bits, so that they stay positive in a signed word.

_DICE = random.Random(8)
HASH_BITS = 62
STONE_HASHES: Array = array_of([_DICE.getrandbits(HASH_BITS) for _ in range(2 * SQUARE_COUNT)], "int64")
"""Colour (0 White, 1 Black) and square -> hash number; a board's hash is the state of rule 3 without the
unplaced stones, of which there are never more than before."""
MAX_RESERVE = 8
"""Maximum unplaced stones of a side in a position that the rule book accepts."""
RESERVE_HASHES: Array = array_of(
    [_DICE.getrandbits(HASH_BITS) for _ in range(2 * (MAX_RESERVE + 1))], "int64"
)
"""Colour and number of unplaced stones -> hash number."""
SIDE_HASH: int = _DICE.getrandbits(HASH_BITS)
"""Hash number of positions in which Black is to move."""
PLY_HASHES: Array = array_of([_DICE.getrandbits(HASH_BITS) for _ in range(64)], "int64")
"""Turns left before the cap -> hash number, which is used near the cap."""

# The code of a turn consists of its changes.
#
#    bits 0-6, 7-13    squares that become empty, in the order of their indices
#    bits 14-20, 21-27 squares that become occupied
#    bits 28-29        stones removed
#    bit 30            the mover's own stones (else the opponent's)
#    bit 31            a placement

SECOND, THIRD, FOURTH = 7, 14, 21
SQUARE_MASK = 127
REMOVED = 28
OWN = 30
PLACEMENT = 31
NO_TURN = 0
"""Code of no turn: bits 0-6 and 14-20 cannot both be a1."""
EMPTY_PLACEMENT = NO_SQUARE | NO_SQUARE << SECOND | NO_SQUARE << FOURTH | 1 << OWN | 1 << PLACEMENT
"""Code of a placement without its square."""


def text_of(code: int) -> str:
    """Return a turn's text in the effect notation."""
    squares = [code >> shift & SQUARE_MASK for shift in (0, SECOND, THIRD, FOURTH)]
    before, after = (
        "".join(sorted(SQUARES[square] for square in part if square != NO_SQUARE))
        for part in (squares[:2], squares[2:])
    )
    if code >> PLACEMENT & 1:
        return after
    return f"{before}-{after}{'x' * (code >> REMOVED & 3)}"


def code_of(text: str, own: int) -> int:
    """Return the code of a text in the effect notation; ``own`` are the bits of the mover's stones."""
    before, dash, after = text.partition("-")
    if not dash:
        return EMPTY_PLACEMENT | SQUARES.index(text) << THIRD
    removed = after.count("x")
    code = removed << REMOVED
    for part, shift in ((before, 0), (after.rstrip("x"), THIRD)):
        squares = sorted(SQUARES.index(part[at : at + 2]) for at in range(0, len(part), 2))
        first, second = [*squares, NO_SQUARE, NO_SQUARE][:2]
        code |= first << shift | second << shift + SECOND
    return code | (own >> (code & SQUARE_MASK) & 1) << OWN
