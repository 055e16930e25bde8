"""Drawings of a Kalamala board, White below: positions as text and SVG, moves as an animation.

Rows are numbered 8 to 1 from above, columns are a to h.  The cells of the scene are the squares a1, b1, ...
h8, then the unplaced stones of White and of Black, then the stones of White and of Black that are off the
board for good.  The rules are those of docs/rules.md.
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
from tournaments.reporting.board.drawing import (
    LEFT_BY_LAST_MOVE,
    Cell,
    Content,
    Phases,
    Scene,
    Shape,
    Transfer,
    by_player,
    caption_line,
    captions,
    element,
    label,
    padded,
    picture,
)

COLUMNS = "abcdefgh"
CODES = "wb"
"""Codes of a white stone and of a black one."""
CSS_CLASSES = ("white", "black")
"""CSS classes of these stones, and their names for people."""
PICTURE_STEP, SCENE_STEP = 40, 44
"""SVG units of a square."""
PICTURE_RADIUS, SCENE_RADIUS, SMALL_RADIUS = 15, 17, 8
"""Radii of a stone on the board, and of one beside it."""
MARGIN = 12
LINE = 26
"""Height of a player's caption, and of the line of the stones that are not on the board."""
PICTURE_WORDS, SCENE_WORDS = 16, 15
"""Font sizes of coordinates, and of words beside the board."""
CAPTION = 17
"""Font size of a caption."""


def _frame(left: float, top: float, length: float) -> str:
    return element("rect", "dark", x=left - 5, y=top - 5, width=length + 10, height=length + 10, rx=6)


def _squares(left: float, top: float, step: float) -> Iterator[tuple[str, float, float, list[str]]]:
    """Yield the name and the middle of each square, and the drawing of a light one."""
    for index, name in enumerate(SQUARES):
        column, row = index % SIZE, index // SIZE
        x, y = left + step * (column + 0.5), top + step * (SIZE - row - 0.5)
        light = element("rect", "board", x=x - step / 2, y=y - step / 2, width=step, height=step)
        yield name, x, y, [light] if (column + row) % 2 else []


def _coordinates(left: float, below: float, step: float, size: float, letters_y: float) -> Iterator[str]:
    """Yield the letters of the columns and the numbers of the rows."""
    for index in range(SIZE):
        middle = step * (index + 0.5)
        yield label("soft", COLUMNS[index], left + middle, letters_y, size)
        yield label("soft", str(index + 1), left - size, below - middle, size)


# Pictures.


def text(game: Kalamala, state: KalamalaState) -> str:
    """Return the position as lines of equal width."""
    letters = f"    {' '.join(COLUMNS)}"
    fence = f"  +{'-' * (2 * SIZE + 1)}+"
    rows = []
    for row in range(SIZE, 0, -1):
        names = [f"{column}{row}" for column in COLUMNS]
        cells = ["w" if state.white & BITS[n] else "b" if state.black & BITS[n] else "." for n in names]
        rows.append(f"{row} | {' '.join(cells)} | {row}")
    lines = [
        f"{CODES[side]} = {caption}, {_counts(state, side)}"
        for side, caption in enumerate(captions(game, state))
    ]
    return padded([lines[BLACK], letters, fence, *rows, fence, letters, lines[WHITE]])


def _changed_squares(last: tuple[KalamalaState, str] | None) -> tuple[list[str], list[str]]:
    """Return the squares that the last turn left, and those that it entered."""
    if last is None:
        return [], []
    before, _, after = last[1].rpartition("-")
    return _names(before), _names(after.rstrip("x"))


def _names(squares: str) -> list[str]:
    return [squares[index : index + 2] for index in range(0, len(squares), 2)]


def svg(game: Kalamala, state: KalamalaState, last: tuple[KalamalaState, str] | None, title: str) -> str:
    """Return the position as an SVG element: a document, or part of a page."""
    left, top, length = MARGIN + 1.4 * PICTURE_WORDS, MARGIN + 2 * LINE + 10, SIZE * PICTURE_STEP
    width, below = length + 2 * left, top + length
    height = below + 1.5 * PICTURE_WORDS + 2 * LINE + 4 + MARGIN
    parts = [_frame(left, top, length)]
    left_squares, entered_squares = _changed_squares(last)
    for name, x, y, square in _squares(left, top, PICTURE_STEP):
        parts += square
        if (state.white | state.black) & BITS[name]:
            parts.append(_stone(WHITE if state.white & BITS[name] else BLACK, x, y, PICTURE_RADIUS))
        if name in entered_squares:
            parts.append(element("circle", "mark", cx=x, cy=y, r=PICTURE_RADIUS + 1))
        elif name in left_squares:
            dashes = {"stroke_dasharray": LEFT_BY_LAST_MOVE}
            parts.append(element("circle", "mark", cx=x, cy=y, r=PICTURE_RADIUS - 2, **dashes))
    parts += _coordinates(left, below, PICTURE_STEP, PICTURE_WORDS, below + PICTURE_WORDS)
    players = captions(game, state)
    lines = {
        BLACK: (MARGIN + LINE / 2, MARGIN + 1.5 * LINE),
        WHITE: (height - MARGIN - LINE / 2, height - MARGIN - 1.5 * LINE),
    }
    for side, (caption_y, stones_y) in lines.items():
        parts += caption_line(players[side], left, caption_y, CAPTION)
        parts += _unplaced(state, side, left, stones_y)
    counts = (f"{caption}, {_counts(state, side)}" for side, caption in enumerate(players))
    return picture(width, height, title or f"{game.name}: {'; '.join(counts)}", parts)


def _stone(side: int, x: float, y: float, radius: float) -> str:
    return element("circle", CSS_CLASSES[side], cx=x, cy=y, r=radius)


def _counts(state: KalamalaState, side: int) -> str:
    return f"{state.reserves[side]} unplaced, {_left(state)[side]} left"


def _left(state: KalamalaState) -> tuple[int, int]:
    """Return the stones of White and of Black that are on the board or unplaced."""
    return (
        state.white.bit_count() + state.reserves[WHITE],
        state.black.bit_count() + state.reserves[BLACK],
    )


def _unplaced(state: KalamalaState, side: int, left: float, y: float) -> list[str]:
    """Return the unplaced stones in a line, and their number behind them."""
    step = 2 * SMALL_RADIUS + 4
    stones = [
        _stone(side, left + SMALL_RADIUS + step * index, y, SMALL_RADIUS)
        for index in range(state.reserves[side])
    ]
    x = left + (step * len(stones) + 4 if stones else 0)
    return [*stones, label("soft", _counts(state, side), x, y, PICTURE_WORDS, text_anchor="start")]


# Animations.

STONES = 2 * RESERVE
"""Stones of each side, on the board and beside it."""
UNPLACED = SIZE * SIZE
"""The first cell of unplaced stones; Black's follows."""
REMOVED = UNPLACED + 2
"""The first cell of stones off the board; Black's follows."""


def scene(game: Kalamala) -> Scene:
    """Return the empty board, which is the same for all variants."""
    left, top, length = MARGIN + 1.4 * SCENE_WORDS, MARGIN + LINE + 8, SIZE * SCENE_STEP
    width, below = length + 2 * left, top + length
    height = below + 8 + 1.3 * SCENE_WORDS + LINE + MARGIN
    parts = [_frame(left, top, length)]
    cells = []
    for name, x, y, square in _squares(left, top, SCENE_STEP):
        cells.append(Cell(name, x, y, 0))
        parts += square
    parts += _coordinates(left, below, SCENE_STEP, SCENE_WORDS, below + 0.95 * SCENE_WORDS)

    # Unplaced stones lie side by side, removed ones overlap: a position can have eight of either.
    shapes = [Shape(SCENE_STEP - 4, SCENE_STEP - 4, 6, SCENE_RADIUS, "", ((0, 0),))]
    trays = (
        ("unplaced", left, 5 * SCENE_WORDS, 2 * SMALL_RADIUS + 2),
        ("removed", left + 0.53 * length, 5.1 * SCENE_WORDS, 1.3 * SMALL_RADIUS),
    )
    lines = {WHITE: height - MARGIN - LINE / 2, BLACK: MARGIN + LINE / 2}
    for word, x, word_width, apart in trays:
        for side, y in lines.items():
            parts.append(label("soft", word, x, y, SCENE_WORDS, text_anchor="start"))
            spots = tuple((round(apart * index, 1), 0.0) for index in range(STONES))
            size = 2 * SMALL_RADIUS + 4
            cells.append(Cell(f"{SEAT_NAMES[side]}, {word}", x + word_width + SMALL_RADIUS, y, len(shapes)))
            shapes.append(Shape(size, size, size / 2, SMALL_RADIUS, CSS_CLASSES[side], spots))
    return Scene(
        width=width,
        height=height,
        svg=picture(width, height, game.name, parts),
        seats=(SEAT_NAMES[BLACK], SEAT_NAMES[WHITE]),
        shapes=tuple(shapes),
        cells=tuple(cells),
        pieces={CODES[side]: (CSS_CLASSES[side], CSS_CLASSES[side]) for side in (WHITE, BLACK)},
        number_size=SCENE_WORDS,
        tally="left",
    )


def contents(game: Kalamala, state: KalamalaState) -> list[Content]:
    """Return the stone on each square, then the numbers of stones beside the board."""
    stones = (state.white, state.black)
    board: list[Content] = [_code(stones, bit) for bit in BITS.values()]
    removed = (STONES - left for left in _left(state))
    return [*board, *state.reserves, *removed]


def transfers(game: Kalamala, state: KalamalaState, move: str) -> Phases:
    """Return the transfers of one placement, or of one group that moves as a whole."""
    game.apply(state, move)
    if "-" not in move:  # rule 5
        return [(Transfer(UNPLACED + state.side, SQUARES.index(move), CODES[state.side]),)]
    group, after = next(_movements(state, move))
    stones = (state.white, state.black)
    code = _code(stones, 1 << group[0])
    assert code is not None
    tray = REMOVED + CODES.index(code)
    # Rule 7: all of the group moves; stones that end off the board are removed for good.
    pairs = zip(group, after, strict=True)
    return [tuple(Transfer(origin, tray if target is None else target, code) for origin, target in pairs)]


def tallies(game: Kalamala, state: KalamalaState) -> tuple[int, int]:
    """Return the stones left, on the board and unplaced."""
    return by_player(game.seats(state), SEAT_NAMES[WHITE], _left(state))


def _code(stones: tuple[int, int], bit: int) -> str | None:
    return CODES[WHITE] if stones[WHITE] & bit else CODES[BLACK] if stones[BLACK] & bit else None


def _movements(state: KalamalaState, move: str) -> Iterator[tuple[list[int], list[int | None]]]:
    """Yield the movements with an effect: the group's squares, and each stone's target (None: off the board).

    Several movements can have the same effect; any of them will do.
    """
    stones = (state.white, state.black)
    emptied, filled = (set(map(SQUARES.index, names)) for names in _changed_squares((state, move)))
    for squares in _lines_through(min(emptied)):
        own, other = (
            sum(1 << index for index, square in enumerate(squares) if stones[side] >> square & 1)
            for side in (state.side, 1 - state.side)
        )
        for group, after, _ in line_movements(len(squares), own, other):
            # Both are sets, shifted by the same distance: their orders agree.
            origins = [squares[index] for index in sorted(group)]
            targets = [squares[index] if 0 <= index < len(squares) else None for index in sorted(after)]
            left_behind, entered = set(origins) - set(targets), set(targets) - set(origins) - {None}
            if left_behind == emptied and entered == filled:
                yield origins, targets


def _lines_through(square: int) -> Iterator[list[int]]:
    """Yield the row, the column and the diagonals of a square, each from one end to the other."""
    for right, up in ((1, 0), (0, 1), (1, 1), (1, -1)):
        column, row = square % SIZE, square // SIZE
        points = [(column + right * by, row + up * by) for by in range(1 - SIZE, SIZE)]
        yield [SIZE * y + x for x, y in points if 0 <= x < SIZE and 0 <= y < SIZE]
