"""Drawings of boards with two rows of pits: positions as text and SVG, moves as an animation.

Sowing runs counter-clockwise; the store of the lower row is on the right.  The cells of the scene are the
pits of the upper row in its owner's direction of sowing, the store of its owner, and the same of the lower
row.
"""

import math
from collections.abc import Collection, Iterable
from typing import Any

from referee.games.base import Game, Side
from referee.games.layout import PitBoard
from tournaments.reporting.board.drawing import (
    LEFT_BY_LAST_MOVE,
    Caption,
    Cell,
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

PICTURE_STEP, SCENE_STEP = 48, 66
"""SVG units from one pit's middle to the next; seeds of a scene need more room than a number."""
PICTURE_RADIUS, SCENE_RADIUS = 21, 29
"""Radius of a pit, in SVG units."""
PICTURE_MARGIN, SCENE_MARGIN = 12, 10


# Pictures.

MIN_WIDTH = 420
"""Room for the captions of a board with few pits."""
_NUMBER_SIZES = {1: 25, 2: 25, 3: 19}
"""Digits -> font size of a number in a pit; more digits get 14."""


def _board(game: AnyGame, state: Any) -> PitBoard:
    board = game.layout(state)
    assert isinstance(board, PitBoard)
    return board


def contents(game: AnyGame, state: Any) -> tuple[int, ...]:
    """Return the seeds of each cell."""
    board = _board(game, state)
    rows = (board.top, board.bottom)
    return tuple(seeds for row in rows for seeds in (*row.pits, row.store))


def tallies(game: AnyGame, state: Any) -> tuple[int, int]:
    """Return the seeds in the stores of FIRST and SECOND."""
    board = _board(game, state)
    top, bottom = board.top.store, board.bottom.store
    return (top, bottom) if board.top.owner is Side.FIRST else (bottom, top)


def transfers(game: AnyGame, state: Any, move: Any) -> Phases:
    """Return the difference that a move makes, as one phase: seeds go from the pits that lose some."""
    return default_transfers(contents(game, state), contents(game, game.apply(state, move)))


def _captions(game: AnyGame, state: Any) -> tuple[Caption, Caption]:
    """Return the captions of the players of the upper and of the lower row."""
    both = captions(game, state)
    board = _board(game, state)
    return both[board.top.owner], both[board.bottom.owner]


def text(game: AnyGame, state: Any) -> str:
    """Return the position as lines of equal width."""
    board = _board(game, state)
    pits = len(board.bottom.pits)
    width = max(2, *(len(str(number)) for number in (*contents(game, state), pits)))

    def cells(values: Iterable[int], fence: str) -> str:
        return fence.join(f" {value:>{width}} " for value in values)

    rule = "+".join(["-" * (width + 2)] * pits)
    side, blank = "-" * (width + 2), " " * (width + 2)
    upper, lower = _captions(game, state)
    return padded(
        [
            str(upper),
            f"  {blank}{cells(range(pits, 0, -1), ' ')}",
            f"+{side}+{rule}+{side}+",
            f"|{blank}|{cells(reversed(board.top.pits), '|')}|{blank}|",
            f"|{cells([board.top.store], '')}+{rule}+{cells([board.bottom.store], '')}|",
            f"|{blank}|{cells(board.bottom.pits, '|')}|{blank}|",
            f"+{side}+{rule}+{side}+",
            f"  {blank}{cells(range(1, pits + 1), ' ')}",
            str(lower),
        ]
    )


def svg(
    game: AnyGame,
    state: Any,
    last: tuple[Any, Any] | None,
    title: str,
    changes: tuple[Collection[int], Collection[int]] | None = None,
) -> str:
    """Return the position as an SVG element: a document, or part of a page.

    Args:
        game: The rule book.
        state: The position.
        last: The state before the last move, and that move; its changes are marked.
        title: The text for readers who do not see the picture; empty for the position in words.
        changes: Cells to mark as left and as changed, if not those that lost and gained seeds.
    """
    seeds = contents(game, state)
    p = len(seeds) // 2 - 1
    board_width = PICTURE_STEP * (p + 2) + PICTURE_MARGIN
    width = max(MIN_WIDTH, board_width + 2 * PICTURE_MARGIN)
    # A wide board is shown smaller, so its words are larger.
    size, pit_size = min(28, max(16, width / 25)), min(20, max(15, width / 36))
    left, top = (width - board_width) / 2, PICTURE_MARGIN + 1.4 * size + 1.4 * pit_size
    board_height = 2 * PICTURE_STEP + PICTURE_MARGIN
    height = top + board_height + 1.4 * pit_size + 1.4 * size + PICTURE_MARGIN
    if changes is None:
        changes = ((), ()) if last is None else changed_cells(contents(game, last[0]), seeds)
    origins, changed = changes

    parts = [element("rect", "board", x=left, y=top, width=board_width, height=board_height, rx=16)]

    def number(cell: int, x: float, y: float) -> str:
        digits = str(seeds[cell])
        return label(
            "number" if seeds[cell] else "zero",
            digits,
            x,
            y,
            _NUMBER_SIZES.get(len(digits), 14),
            font_weight="600",
        )

    def dashes(cell: int) -> dict[str, str]:
        return {"stroke_dasharray": LEFT_BY_LAST_MOVE} if cell in origins else {}

    for row, y in enumerate(
        (top + PICTURE_MARGIN / 2 + PICTURE_STEP / 2, top + PICTURE_MARGIN / 2 + 1.5 * PICTURE_STEP)
    ):
        for column in range(p):
            pit = column + 1 if row else p - column
            cell = pit - 1 + (p + 1 if row else 0)
            x = left + PICTURE_MARGIN / 2 + PICTURE_STEP * (column + 1.5)
            parts.append(element("circle", "hollow", cx=x, cy=y, r=PICTURE_RADIUS))
            if cell in origins or cell in changed:
                parts.append(element("circle", "mark", cx=x, cy=y, r=PICTURE_RADIUS, **dashes(cell)))
            parts.append(number(cell, x, y))
            label_y = top + board_height + 0.8 * pit_size if row else top - 0.8 * pit_size
            parts.append(label("soft", str(pit), x, label_y, pit_size))
    for cell, x in (
        (p, left + PICTURE_MARGIN / 2 + PICTURE_STEP / 2),
        (2 * p + 1, left + board_width - PICTURE_MARGIN / 2 - PICTURE_STEP / 2),
    ):
        y, tall = top + PICTURE_MARGIN / 2 + 3, 2 * PICTURE_STEP - 6
        box: dict[str, float | str] = {
            "x": x - PICTURE_RADIUS,
            "y": y,
            "width": 2 * PICTURE_RADIUS,
            "height": tall,
            "rx": PICTURE_RADIUS,
        }
        parts.append(element("rect", "hollow", **box))
        if cell in changed:
            parts.append(element("rect", "mark", **box))
        parts.append(number(cell, x, top + board_height / 2))

    upper, lower = _captions(game, state)
    words_x = PICTURE_MARGIN + 4
    parts += caption_line(upper, words_x, PICTURE_MARGIN + 0.6 * size, size)
    parts += caption_line(lower, words_x, height - PICTURE_MARGIN - 0.6 * size, size)
    stores = f"{game.name}: {upper}, {seeds[p]} in store; {lower}, {seeds[-1]} in store"
    return picture(width, height, title or stores, parts)


# Animations.

SEED_RADIUS = 4
"""Radius of a seed, in SVG units."""
SHOWN_IN_PIT = 20
"""Seeds that fit into a pit without touching; the number beside it gives the exact count."""
INDEX_SIZE = 19
"""Font size of a pit's number, outside the board."""
NUMBER_SIZE = 25
"""Font size of the number of seeds in a pit."""
NUMBER_LINE = 34
"""Height of the line of these numbers, with the space around it."""
GOLDEN_ANGLE = math.pi * (3 - math.sqrt(5))
"""Seeds placed so, one after the other, fill a disc evenly (Vogel 1979)."""
# The one style that pictures, which show numbers alone, do not have.
SEED_STYLE = (
    "<style>.kalarena-picture .seed{fill:#7b4a1f}"
    "@media (prefers-color-scheme:dark){.kalarena-picture .seed{fill:#e2b473}}</style>"
)


def _pit() -> Shape:
    across = SCENE_RADIUS - SEED_RADIUS - 2
    spots = []
    for index in range(SHOWN_IN_PIT):
        distance, angle = across * math.sqrt((index + 0.5) / SHOWN_IN_PIT), index * GOLDEN_ANGLE
        spots.append((round(distance * math.cos(angle), 1), round(distance * math.sin(angle), 1)))
    return Shape(2 * SCENE_RADIUS, 2 * SCENE_RADIUS, SCENE_RADIUS, SEED_RADIUS, "seed", tuple(spots))


def _store() -> Shape:
    """Return the shape of a store, as high as the two pits beside it.

    Its seeds lie in rows, filled from the middle.
    """
    height, apart = 4 * SCENE_RADIUS + SCENE_MARGIN, 2 * SEED_RADIUS + 1.5
    inner, straight = SCENE_RADIUS - SEED_RADIUS - 2, height / 2 - SCENE_RADIUS
    spots = [
        (apart * column, apart * row)
        for row in range(-7, 8)
        for column in range(-2, 3)
        if math.hypot(apart * column, max(0.0, abs(apart * row) - straight)) <= inner
    ]
    spots.sort(key=lambda spot: (math.hypot(*spot), spot))
    return Shape(2 * SCENE_RADIUS, height, SCENE_RADIUS, SEED_RADIUS, "seed", tuple(spots))


def scene(game: AnyGame) -> Scene:
    """Return the empty board."""
    start = game.initial_state()
    board = _board(game, start)
    seats = game.seats(start)
    upper, lower = seats[board.top.owner], seats[board.bottom.owner]
    p = len(board.bottom.pits)
    width = SCENE_STEP * (p + 2) + 4 * SCENE_MARGIN
    top = SCENE_MARGIN + 1.2 * INDEX_SIZE
    board_height = 4 * SCENE_RADIUS + SCENE_MARGIN + 2 * NUMBER_LINE
    height = top + board_height + 1.2 * INDEX_SIZE + SCENE_MARGIN
    first_row, second_row = (
        top + NUMBER_LINE + SCENE_RADIUS,
        top + NUMBER_LINE + 3 * SCENE_RADIUS + SCENE_MARGIN,
    )
    above, below = top + NUMBER_LINE / 2, top + board_height - NUMBER_LINE / 2
    shapes = (_pit(), _store())
    left = 2 * SCENE_MARGIN

    frame: dict[str, float | str] = {"x": SCENE_MARGIN, "y": top, "width": width - 2 * SCENE_MARGIN}
    parts = [SEED_STYLE, element("rect", "board", **frame, height=board_height, rx=22)]
    upper_row: list[Cell] = []
    lower_row: list[Cell] = []
    for pit in range(1, p + 1):
        for row, x, y, number_y, index_y in (
            (upper_row, left + SCENE_STEP * (p + 1.5 - pit), first_row, above, top - 0.65 * INDEX_SIZE),
            (
                lower_row,
                left + SCENE_STEP * (pit + 0.5),
                second_row,
                below,
                top + board_height + 0.65 * INDEX_SIZE,
            ),
        ):
            row.append(Cell(f"{lower if row is lower_row else upper} {pit}", x, y, 0, x, number_y))
            parts.append(element("circle", "hollow", cx=x, cy=y, r=SCENE_RADIUS))
            parts.append(label("soft", str(pit), x, index_y, INDEX_SIZE))
    middle = top + board_height / 2
    stores = []
    for seat, x, number_y in (
        (upper, left + SCENE_STEP / 2, above),
        (lower, left + SCENE_STEP * (p + 1.5), below),
    ):
        stores.append(Cell(f"{seat}'s store", x, middle, 1, x, number_y))
        shape = shapes[1]
        box = {
            "x": x - SCENE_RADIUS,
            "y": middle - shape.height / 2,
            "width": shape.width,
            "height": shape.height,
        }
        parts.append(element("rect", "hollow", **box, rx=SCENE_RADIUS))
    return Scene(
        width=width,
        height=height,
        svg=picture(width, height, game.name, parts),
        seats=(upper, lower),
        shapes=shapes,
        cells=(*upper_row, stores[0], *lower_row, stores[1]),
        pieces={},
        number_size=NUMBER_SIZE,
        tally="in store",
    )
