"""Drawings of boards with squares: positions as text and SVG, moves as an animation.

Rows are numbered from below, columns have letters.  The cells of the scene are the squares row by row from
above, and then, for a game with pieces that are not on the board, those of FIRST and of SECOND.
"""

from typing import Any

from referee.games.base import Game, Side
from referee.games.layout import GridBoard
from tournaments.reporting.board.drawing import (
    LEFT_BY_LAST_MOVE,
    Cell,
    Content,
    Phases,
    Scene,
    Shape,
    caption_line,
    captions,
    changed_cells,
    default_transfers,
    element,
    label,
    padded,
    picture,
)

AnyGame = Game[Any, Any]

STEP = 44
"""SVG units of a square."""
RADIUS, SMALL_RADIUS = 17, 8
"""Radii of a piece on the board, and of one beside it."""
MARGIN = 12
LINE = 26
"""Height of a player's caption, and of the line of the pieces that are not on the board."""
WORDS, CAPTION = 15, 17
"""Font sizes of coordinates and words beside the board, and of captions."""
MOST_SHOWN = 8
"""Pieces in reserve that are drawn; the number beside them gives the exact count."""
CSS_CLASSES = ("white", "black")
"""CSS classes of the pieces of FIRST and of SECOND."""


def _board(game: AnyGame, state: Any) -> GridBoard:
    board = game.layout(state)
    assert isinstance(board, GridBoard)
    return board


def _columns(board: GridBoard) -> str:
    return "abcdefghijklmnopqrstuvwxyz"[: len(board.rows[0])]


def contents(game: AnyGame, state: Any) -> list[Content]:
    """Return the mark on each square, then the numbers of pieces in reserve."""
    board = _board(game, state)
    squares: list[Content] = [mark or None for row in board.rows for mark in row]
    return squares if board.reserves is None else [*squares, *board.reserves]


def tallies(game: AnyGame, state: Any) -> tuple[int, int]:
    """Return the scores of a finished game; before its end the pieces of FIRST and of SECOND on the board."""
    outcome = game.outcome(state)
    if outcome is not None:
        return outcome.score
    board = _board(game, state)
    marks = [mark for row in board.rows for mark in row]
    return marks.count(board.marks[Side.FIRST]), marks.count(board.marks[Side.SECOND])


def transfers(game: AnyGame, state: Any, move: Any) -> Phases:
    """Return the difference that a move makes, as one phase."""
    return default_transfers(contents(game, state), contents(game, game.apply(state, move)))


def text(game: AnyGame, state: Any) -> str:
    """Return the position as lines of equal width."""
    board = _board(game, state)
    width = max(len(mark) for row in board.rows for mark in (*row, "."))
    indent = " " * len(str(len(board.rows)))
    letters = f"{indent}   {' '.join(letter.ljust(width) for letter in _columns(board))}"
    fence = f"{indent} +{'-' * ((width + 1) * len(board.rows[0]) + 1)}+"
    rows = [
        f"{number:>{len(indent)}} | {' '.join((mark or '.').ljust(width) for mark in row)} |"
        for number, row in zip(range(len(board.rows), 0, -1), board.rows, strict=True)
    ]
    first, second = (
        f"{board.marks[side]} = {caption}"
        + ("" if board.reserves is None else f", {board.reserves[side]} in reserve")
        for side, caption in enumerate(captions(game, state))
    )
    return padded([second, letters, fence, *rows, fence, letters, first])


def _squares(board: GridBoard, left: float, top: float) -> tuple[list[tuple[float, float]], list[str]]:
    """Return the middles of the squares row by row from above, and the drawing of the empty board."""
    height, width = len(board.rows), len(board.rows[0])
    frame = {"width": STEP * width + 10, "height": STEP * height + 10}
    parts = [element("rect", "dark", x=left - 5, y=top - 5, **frame, rx=6)]
    middles = []
    for row in range(height):
        for column in range(width):
            x, y = left + STEP * (column + 0.5), top + STEP * (row + 0.5)
            middles.append((x, y))
            if (row + column) % 2 == 0:
                parts.append(
                    element("rect", "board", x=x - STEP / 2, y=y - STEP / 2, width=STEP, height=STEP)
                )
    for column, letter in enumerate(_columns(board)):
        below = top + STEP * height + 5 + 0.7 * WORDS
        parts.append(label("soft", letter, left + STEP * (column + 0.5), below, WORDS))
    parts += [
        label("soft", str(height - row), left - WORDS, top + STEP * (row + 0.5), WORDS)
        for row in range(height)
    ]
    return middles, parts


def _piece(board: GridBoard, mark: str, x: float, y: float) -> list[str]:
    """Return the drawing of a piece: a disc for a player's plain piece, else a disc with its mark."""
    side = next((side for side in Side if mark.startswith(board.marks[side])), None)
    disc = element("circle", "hollow" if side is None else CSS_CLASSES[side], cx=x, cy=y, r=RADIUS)
    return [disc] if mark in board.marks else [disc, label("soft", mark, x, y, WORDS)]


def svg(game: AnyGame, state: Any, last: tuple[Any, Any] | None, title: str) -> str:
    """Return the position as an SVG element: a document, or part of a page."""
    board = _board(game, state)
    height, width = STEP * len(board.rows), STEP * len(board.rows[0])
    left, top = MARGIN + 1.8 * WORDS, MARGIN + LINE + 10
    total_width, total_height = max(width + 2 * left, 420), top + height + 2 * WORDS + LINE + MARGIN
    middles, parts = _squares(board, left, top)
    origins, entered = (
        (set[int](), set[int]())
        if last is None
        else changed_cells(contents(game, last[0]), contents(game, state))
    )
    for index, (x, y) in enumerate(middles):
        mark = board.rows[index // len(board.rows[0])][index % len(board.rows[0])]
        if mark:
            parts += _piece(board, mark, x, y)
        if index in entered:
            parts.append(element("circle", "mark", cx=x, cy=y, r=RADIUS + 1))
        elif index in origins:
            dashes = {"stroke_dasharray": LEFT_BY_LAST_MOVE}
            parts.append(element("circle", "mark", cx=x, cy=y, r=RADIUS - 2, **dashes))
    first, second = captions(game, state)
    parts += caption_line(second, left, MARGIN + LINE / 2, CAPTION)
    parts += caption_line(first, left, total_height - MARGIN - LINE / 2, CAPTION)
    return picture(total_width, total_height, title or f"{game.name}: {first}; {second}", parts)


def scene(game: AnyGame) -> Scene:
    """Return the empty board."""
    start = game.initial_state()
    board, seats = _board(game, start), game.seats(start)
    height, width = STEP * len(board.rows), STEP * len(board.rows[0])
    left, top = MARGIN + 1.8 * WORDS, MARGIN + LINE + 10
    total_width, total_height = max(width + 2 * left, 300), top + height + 2 * WORDS + LINE + MARGIN
    middles, parts = _squares(board, left, top)
    columns = _columns(board)
    names = [f"{letter}{len(board.rows) - row}" for row in range(len(board.rows)) for letter in columns]
    shapes = [Shape(STEP - 4, STEP - 4, 6, RADIUS, "", ((0, 0),))]
    cells = [Cell(name, x, y, 0) for name, (x, y) in zip(names, middles, strict=True)]
    if board.reserves is not None:
        for side, y in ((Side.FIRST, total_height - MARGIN - LINE / 2), (Side.SECOND, MARGIN + LINE / 2)):
            spots = tuple((1.6 * SMALL_RADIUS * index, 0.0) for index in range(MOST_SHOWN))
            cells.append(Cell(f"{seats[side]}, in reserve", left + 2 * LINE, y, len(shapes), left + LINE, y))
            shapes.append(Shape(16, 16, 8, SMALL_RADIUS, CSS_CLASSES[side], spots))
    return Scene(
        width=total_width,
        height=total_height,
        svg=picture(total_width, total_height, game.name, parts),
        seats=(seats[Side.SECOND], seats[Side.FIRST]),
        shapes=tuple(shapes),
        cells=tuple(cells),
        pieces={board.marks[side]: (CSS_CLASSES[side], seats[side].lower()) for side in Side},
        number_size=WORDS,
        tally="on the board",
    )
