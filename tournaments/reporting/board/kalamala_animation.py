"""The scene of a Kalamala board, White below.

Cells are the squares a1, b1, ... h8, then the unplaced stones of White and of Black, then the stones of
White and of Black that are off the board for good.  The rules are those of docs/rules.md.
"""

from collections.abc import Iterator

from referee.games.kalamala import (
    BITS,
    BLACK,
    RESERVE,
    SEAT_NAMES,
    SIZE,
    SQUARES,
    WHITE,
    Kalamala,
    KalamalaState,
    line_movements,
)
from tournaments.reporting.board.animation_parts import (
    Cell,
    Content,
    Phases,
    Scene,
    Shape,
    Transfer,
    by_player,
)
from tournaments.reporting.board.picture_parts import element, label, picture

COLUMNS = "abcdefgh"
CODES = "wb"
"""Codes of a white stone and of a black one."""
LOOKS = ("white", "black")
STEP = 44
"""SVG units of a square."""
RADIUS = 17
SMALL_RADIUS = 8
MARGIN = 12
COORDINATE = 15
"""Font size of a coordinate, and of a word beside the board."""
LINE = 26
"""Height of the line of the stones that are not on the board."""
STONES = 2 * RESERVE
"""Stones of each side, wherever they are."""
UNPLACED = SIZE * SIZE
"""The first cell of unplaced stones; Black's follows."""
REMOVED = UNPLACED + 2
"""The first cell of stones off the board; Black's follows."""


def scene(game: Kalamala) -> Scene:
    """Return the board, which is the same for all variants."""
    left, top, side_length = MARGIN + 1.4 * COORDINATE, MARGIN + LINE + 8, SIZE * STEP
    width, below = side_length + 2 * left, top + side_length
    height = below + 8 + 1.3 * COORDINATE + LINE + MARGIN
    frame: dict[str, float | str] = {"x": left - 5, "y": top - 5, "width": side_length + 10}
    parts = [element("rect", "dark", **frame, height=side_length + 10, rx=6)]
    cells = []
    for index, name in enumerate(SQUARES):
        column, row = index % SIZE, index // SIZE
        x, y = left + STEP * (column + 0.5), top + STEP * (SIZE - row - 0.5)
        cells.append(Cell(name, x, y, 0))
        if (column + row) % 2:
            parts.append(element("rect", "board", x=x - STEP / 2, y=y - STEP / 2, width=STEP, height=STEP))
    for place in range(SIZE):
        middle = STEP * (place + 0.5)
        parts.append(label("soft", COLUMNS[place], left + middle, below + 0.95 * COORDINATE, COORDINATE))
        parts.append(label("soft", str(place + 1), left - COORDINATE, below - middle, COORDINATE))

    # Unplaced stones lie side by side, removed ones overlap: a position can have eight of either.
    shapes = [Shape(STEP - 4, STEP - 4, 6, RADIUS, "", ((0, 0),))]
    trays = (
        ("unplaced", left, 5 * COORDINATE, 2 * SMALL_RADIUS + 2),
        ("removed", left + 0.53 * side_length, 5.1 * COORDINATE, 1.3 * SMALL_RADIUS),
    )
    lines = {WHITE: height - MARGIN - LINE / 2, BLACK: MARGIN + LINE / 2}
    for word, x, word_width, apart in trays:
        for side, y in lines.items():
            parts.append(label("soft", word, x, y, COORDINATE, text_anchor="start"))
            spots = tuple((round(apart * place, 1), 0.0) for place in range(STONES))
            size = 2 * SMALL_RADIUS + 4
            cells.append(Cell(f"{SEAT_NAMES[side]}, {word}", x + word_width + SMALL_RADIUS, y, len(shapes)))
            shapes.append(Shape(size, size, size / 2, SMALL_RADIUS, LOOKS[side], spots))
    return Scene(
        width=width,
        height=height,
        svg=picture(width, height, game.name, parts),
        seats=(SEAT_NAMES[BLACK], SEAT_NAMES[WHITE]),
        shapes=tuple(shapes),
        cells=tuple(cells),
        pieces={CODES[side]: (LOOKS[side], LOOKS[side]) for side in (WHITE, BLACK)},
        number_size=COORDINATE,
        tally="left",
    )


def contents(game: Kalamala, state: KalamalaState) -> list[Content]:
    """Return the stone on each square, then the numbers of those beside the board."""
    stones = (state.white, state.black)
    board: list[Content] = [_stone(stones, bit) for bit in BITS.values()]
    removed = (STONES - left for left in _left(state))
    return [*board, *state.reserves, *removed]


def transfers(game: Kalamala, state: KalamalaState, move: str) -> Phases:
    """Return the transfers of one placement, or of one group that moves as a whole."""
    game.apply(state, move)
    if "-" not in move:  # rule 5
        return [[Transfer(UNPLACED + state.side, SQUARES.index(move), CODES[state.side])]]
    group, after = next(_movements(state, move))
    stones = (state.white, state.black)
    code = _stone(stones, 1 << group[0])
    assert code is not None
    tray = REMOVED + CODES.index(code)
    # Rule 7: all of the group moves; stones that end off the board are removed for good.
    pairs = zip(group, after, strict=True)
    return [[Transfer(origin, tray if target is None else target, code) for origin, target in pairs]]


def tallies(game: Kalamala, state: KalamalaState) -> tuple[int, int]:
    """Return the stones left, on the board and unplaced."""
    return by_player(game.seats(state), SEAT_NAMES[WHITE], _left(state))


def _stone(stones: tuple[int, int], bit: int) -> str | None:
    return CODES[WHITE] if stones[WHITE] & bit else CODES[BLACK] if stones[BLACK] & bit else None


def _left(state: KalamalaState) -> tuple[int, int]:
    return (
        state.white.bit_count() + state.reserves[WHITE],
        state.black.bit_count() + state.reserves[BLACK],
    )


def _movements(state: KalamalaState, move: str) -> Iterator[tuple[list[int], list[int | None]]]:
    """Yield the movements with an effect: the group's squares, and each stone's target (None: off the board).

    Several movements can have the same effect; any of them will do.
    """
    stones = (state.white, state.black)
    before, _, behind = move.partition("-")
    emptied = {SQUARES.index(before[at : at + 2]) for at in range(0, len(before), 2)}
    filled_text = behind.rstrip("x")
    filled = {SQUARES.index(filled_text[at : at + 2]) for at in range(0, len(filled_text), 2)}
    for squares in _lines_through(min(emptied)):
        own, other = (
            sum(1 << place for place, square in enumerate(squares) if stones[side] >> square & 1)
            for side in (state.side, 1 - state.side)
        )
        for group, after, _ in line_movements(len(squares), own, other):
            # Both come as sets, shifted by the same distance: their orders agree.
            origins = [squares[place] for place in sorted(group)]
            targets = [squares[place] if 0 <= place < len(squares) else None for place in sorted(after)]
            left_behind, entered = set(origins) - set(targets), set(targets) - set(origins) - {None}
            if left_behind == emptied and entered == filled:
                yield origins, targets


def _lines_through(square: int) -> Iterator[list[int]]:
    """Yield the row, the column and the diagonals of a square, each from one end to the other."""
    for right, up in ((1, 0), (0, 1), (1, 1), (1, -1)):
        column, row = square % SIZE, square // SIZE
        places = [(column + right * by, row + up * by) for by in range(1 - SIZE, SIZE)]
        yield [SIZE * y + x for x, y in places if 0 <= x < SIZE and 0 <= y < SIZE]
