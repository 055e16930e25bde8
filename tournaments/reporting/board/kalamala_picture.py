"""Pictures of a Kalamala board, White below: rows 8 to 1, columns a to h."""

from referee.games.kalamala import BITS, BLACK, SIZE, SQUARES, WHITE, Kalamala, KalamalaState
from tournaments.reporting.board.picture_parts import (
    LEFT_BY_LAST_MOVE,
    caption_line,
    captions,
    element,
    label,
    padded,
    picture,
)

COLUMNS = "abcdefgh"
STEP = 40
"""SVG units of a square."""
RADIUS = 15
MARGIN = 12
COORDINATE = 16
"""Font size of a coordinate."""
CAPTION = 17
SMALL_RADIUS = 8
LINE = 26
"""Height of a player's caption, and of the line of unplaced stones."""


def text(game: Kalamala, state: KalamalaState) -> str:
    """Return the position as lines of equal width."""
    letters = f"    {' '.join(COLUMNS)}"
    fence = f"  +{'-' * (2 * SIZE + 1)}+"
    rows = []
    for row in range(SIZE, 0, -1):
        names = [f"{column}{row}" for column in COLUMNS]
        cells = ["w" if state.white & BITS[n] else "b" if state.black & BITS[n] else "." for n in names]
        rows.append(f"{row} | {' '.join(cells)} | {row}")
    said = [
        f"{'wb'[side]} = {caption}, {_counts(state, side)}"
        for side, caption in enumerate(captions(game, state))
    ]
    return padded([said[BLACK], letters, fence, *rows, fence, letters, said[WHITE]])


def _marked(last: tuple[KalamalaState, str] | None) -> tuple[list[str], list[str]]:
    """Return the squares that the last turn left, and those that it entered."""
    if last is None:
        return [], []
    before, _, after = last[1].rpartition("-")
    return _squares(before), _squares(after.rstrip("x"))


def _squares(names: str) -> list[str]:
    return [names[index : index + 2] for index in range(0, len(names), 2)]


def svg(game: Kalamala, state: KalamalaState, last: tuple[KalamalaState, str] | None, title: str) -> str:
    """Return the position as an SVG element: a document, or part of a page."""
    left, top, side_length = MARGIN + 1.4 * COORDINATE, MARGIN + 2 * LINE + 10, SIZE * STEP
    width, below = side_length + 2 * left, top + side_length
    height = below + 1.5 * COORDINATE + 2 * LINE + 4 + MARGIN
    frame: dict[str, float | str] = {
        "x": left - 5,
        "y": top - 5,
        "width": side_length + 10,
        "height": side_length + 10,
        "rx": 6,
    }
    parts = [element("rect", "dark", **frame)]
    left_squares, entered_squares = _marked(last)
    for index, name in enumerate(SQUARES):
        column, row = index % SIZE, index // SIZE
        x, y = left + STEP * (column + 0.5), top + STEP * (SIZE - row - 0.5)
        if (column + row) % 2:
            parts.append(element("rect", "board", x=x - STEP / 2, y=y - STEP / 2, width=STEP, height=STEP))
        if (state.white | state.black) & BITS[name]:
            parts.append(_stone(WHITE if state.white & BITS[name] else BLACK, x, y, RADIUS))
        if name in entered_squares:
            parts.append(element("circle", "mark", cx=x, cy=y, r=RADIUS + 1))
        elif name in left_squares:
            dashes = {"stroke_dasharray": LEFT_BY_LAST_MOVE}
            parts.append(element("circle", "mark", cx=x, cy=y, r=RADIUS - 2, **dashes))
    for place in range(SIZE):
        middle = STEP * (place + 0.5)
        parts.append(label("soft", COLUMNS[place], left + middle, below + COORDINATE, COORDINATE))
        parts.append(label("soft", str(place + 1), left - COORDINATE, below - middle, COORDINATE))
    said = captions(game, state)
    lines = {
        BLACK: (MARGIN + LINE / 2, MARGIN + 1.5 * LINE),
        WHITE: (height - MARGIN - LINE / 2, height - MARGIN - 1.5 * LINE),
    }
    for side, (caption_y, stones_y) in lines.items():
        parts += caption_line(said[side], left, caption_y, CAPTION)
        parts += _unplaced(state, side, left, stones_y)
    counts = (f"{caption}, {_counts(state, side)}" for side, caption in enumerate(said))
    return picture(width, height, title or f"{game.name}: {'; '.join(counts)}", parts)


def _stone(side: int, x: float, y: float, radius: float) -> str:
    return element("circle", ("white", "black")[side], cx=x, cy=y, r=radius)


def _counts(state: KalamalaState, side: int) -> str:
    on_board = (state.white, state.black)[side].bit_count()
    return f"{state.reserves[side]} unplaced, {on_board + state.reserves[side]} left"


def _unplaced(state: KalamalaState, side: int, left: float, y: float) -> list[str]:
    """Return the unplaced stones in a line, and their number behind them."""
    step = 2 * SMALL_RADIUS + 4
    stones = [
        _stone(side, left + SMALL_RADIUS + step * place, y, SMALL_RADIUS)
        for place in range(state.reserves[side])
    ]
    x = left + (step * len(stones) + 4 if stones else 0)
    return [*stones, label("soft", _counts(state, side), x, y, COORDINATE, text_anchor="start")]
