"""Drawings of a Kalah board from South's side: positions as text and SVG, moves as an animation.

Sowing runs counter-clockwise, South's store is on the right.  The cells of the scene have the order of a
state's board.  K2 to K8 are the clauses of docs/rules.md.
"""

import math

from referee.games.kalah import NORTH, SEAT_NAMES, SOUTH, SWAP, Kalah, KalahState, Phase
from tournaments.reporting.board.drawing import (
    LEFT_BY_LAST_MOVE,
    Caption,
    Cell,
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

PICTURE_STEP, SCENE_STEP = 48, 66
"""SVG units from one pit's middle to the next; seeds of a scene need more room than a number."""
PICTURE_RADIUS, SCENE_RADIUS = 21, 29
"""Radius of a pit, in SVG units."""
PICTURE_MARGIN, SCENE_MARGIN = 12, 10


def _first_pit(game: Kalah, state: KalahState) -> int:
    """Return the index of the first pit of the seat to move."""
    return 0 if state.seat == NORTH else game.pits + 1


# Pictures.

MIN_WIDTH = 420
"""Room for the captions of a board with few pits."""
_NUMBER_SIZES = {1: 25, 2: 25, 3: 19}
"""Digits -> font size of a number in a pit; more digits get 14."""


def _rows(game: Kalah, state: KalahState) -> tuple[list[int], int, list[int], int]:
    """Return North's row from pit p to 1, North's store, South's row from pit 1 to p, South's store."""
    p, board = game.pits, state.board
    return list(board[p - 1 :: -1]), board[p], list(board[p + 1 : -1]), board[-1]


def _captions(game: Kalah, state: KalahState) -> tuple[Caption, Caption]:
    """Return the captions of North and South."""
    first, second = captions(game, state)
    return (first, second) if first.seat == "North" else (second, first)


def text(game: Kalah, state: KalahState) -> str:
    """Return the position as lines of equal width."""
    north, north_store, south, south_store = _rows(game, state)
    width = max(2, *(len(str(number)) for number in (*state.board, game.pits)))

    def cells(values: list[int] | range, fence: str) -> str:
        return fence.join(f" {value:>{width}} " for value in values)

    rule = "+".join(["-" * (width + 2)] * game.pits)
    side, blank = "-" * (width + 2), " " * (width + 2)
    caption_north, caption_south = _captions(game, state)
    return padded(
        [
            str(caption_north),
            f"  {blank}{cells(range(game.pits, 0, -1), ' ')}",
            f"+{side}+{rule}+{side}+",
            f"|{blank}|{cells(north, '|')}|{blank}|",
            f"|{cells([north_store], '')}+{rule}+{cells([south_store], '')}|",
            f"|{blank}|{cells(south, '|')}|{blank}|",
            f"+{side}+{rule}+{side}+",
            f"  {blank}{cells(range(1, game.pits + 1), ' ')}",
            str(caption_south),
        ]
    )


def _changes(
    game: Kalah, state: KalahState, last: tuple[KalahState, int] | None
) -> tuple[int | None, set[int]]:
    """Return the cell that the last move emptied (None for a swap, or no move), and the others it changed."""
    if last is None or last[1] == SWAP:
        return None, set()
    before, move = last
    origin = _first_pit(game, before) + move - 1
    changed = {cell for cell, seeds in enumerate(state.board) if seeds != before.board[cell]}
    return origin, changed - {origin}


def svg(game: Kalah, state: KalahState, last: tuple[KalahState, int] | None, title: str) -> str:
    """Return the position as an SVG element: a document, or part of a page."""
    p = game.pits
    board_width = PICTURE_STEP * (p + 2) + PICTURE_MARGIN
    width = max(MIN_WIDTH, board_width + 2 * PICTURE_MARGIN)
    # A wide board is shown smaller, so its words are larger.
    size, pit_size = min(28, max(16, width / 25)), min(20, max(15, width / 36))
    left, top = (width - board_width) / 2, PICTURE_MARGIN + 1.4 * size + 1.4 * pit_size
    board_height = 2 * PICTURE_STEP + PICTURE_MARGIN
    height = top + board_height + 1.4 * pit_size + 1.4 * size + PICTURE_MARGIN
    origin, changed = _changes(game, state, last)

    parts = [element("rect", "board", x=left, y=top, width=board_width, height=board_height, rx=16)]

    def number(cell: int, x: float, y: float) -> str:
        seeds = state.board[cell]
        digits = str(seeds)
        return label(
            "number" if seeds else "zero", digits, x, y, _NUMBER_SIZES.get(len(digits), 14), font_weight="600"
        )

    def dashes(cell: int) -> dict[str, str]:
        return {"stroke_dasharray": LEFT_BY_LAST_MOVE} if cell == origin else {}

    for row, y in enumerate(
        (top + PICTURE_MARGIN / 2 + PICTURE_STEP / 2, top + PICTURE_MARGIN / 2 + 1.5 * PICTURE_STEP)
    ):
        for column in range(p):
            pit = column + 1 if row else p - column
            cell = pit - 1 + (p + 1 if row else 0)
            x = left + PICTURE_MARGIN / 2 + PICTURE_STEP * (column + 1.5)
            parts.append(element("circle", "hollow", cx=x, cy=y, r=PICTURE_RADIUS))
            if cell == origin or cell in changed:
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

    north, south = _captions(game, state)
    words_x = PICTURE_MARGIN + 4
    parts += caption_line(north, words_x, PICTURE_MARGIN + 0.6 * size, size)
    parts += caption_line(south, words_x, height - PICTURE_MARGIN - 0.6 * size, size)
    stores = f"{game.name}: {north}, {state.board[p]} in store; {south}, {state.board[-1]} in store"
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


def scene(game: Kalah) -> Scene:
    """Return the empty board of this variant."""
    p = game.pits
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
    north: list[Cell] = []
    south: list[Cell] = []
    for pit in range(1, p + 1):
        for row, x, y, number_y, index_y in (
            (north, left + SCENE_STEP * (p + 1.5 - pit), first_row, above, top - 0.65 * INDEX_SIZE),
            (
                south,
                left + SCENE_STEP * (pit + 0.5),
                second_row,
                below,
                top + board_height + 0.65 * INDEX_SIZE,
            ),
        ):
            row.append(Cell(f"{SEAT_NAMES[SOUTH if row is south else NORTH]} {pit}", x, y, 0, x, number_y))
            parts.append(element("circle", "hollow", cx=x, cy=y, r=SCENE_RADIUS))
            parts.append(label("soft", str(pit), x, index_y, INDEX_SIZE))
    middle = top + board_height / 2
    stores = []
    for seat, x, number_y in (
        (NORTH, left + SCENE_STEP / 2, above),
        (SOUTH, left + SCENE_STEP * (p + 1.5), below),
    ):
        stores.append(Cell(f"{SEAT_NAMES[seat]}'s store", x, middle, 1, x, number_y))
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
        seats=(SEAT_NAMES[NORTH], SEAT_NAMES[SOUTH]),
        shapes=shapes,
        cells=(*north, stores[0], *south, stores[1]),
        pieces={},
        number_size=NUMBER_SIZE,
        tally="in store",
    )


def contents(game: Kalah, state: KalahState) -> tuple[int, ...]:
    """Return the seeds of each cell."""
    return state.board


def transfers(game: Kalah, state: KalahState, move: int) -> Phases:
    """Return the sowing seed by seed, then the capture, then the seeds collected at the end of the game."""
    after = game.apply(state, move)
    if move == SWAP:
        return []  # K8: the board stays, the players go round it
    p = game.pits
    first = _first_pit(game, state)
    store, other_store = first + p, p if state.seat == SOUTH else 2 * p + 1
    cells = list(state.board)
    phases: Phases = []

    def carry(*phase: Transfer) -> None:
        for origin, target, seeds in phase:
            assert origin is not None
            assert target is not None
            assert isinstance(seeds, int)
            cells[origin] -= seeds
            cells[target] += seeds
        if phase:
            phases.append(list(phase))

    origin = at = first + move - 1
    for _ in range(cells[origin]):
        at = (at + 1) % len(cells)
        if at == other_store:  # K2
            at = (at + 1) % len(cells)
        carry(Transfer(origin, at, 1))
    own = range(first, store)
    if at in own and cells[at] == 1:
        opposite = 2 * p - at
        if cells[opposite] or game.empty_capture:  # K4
            taken = [Transfer(opposite, store, cells[opposite])] if cells[opposite] else []
            carry(Transfer(at, store, 1), *taken)
    if after.phase is Phase.OVER:  # K5 leaves the pits empty, K6 leaves them as they are
        rest = [cell for cell, seeds in enumerate(after.board) if cells[cell] > seeds]
        carry(*(Transfer(cell, p if cell < p else 2 * p + 1, cells[cell]) for cell in rest))
    return phases


def tallies(game: Kalah, state: KalahState) -> tuple[int, int]:
    """Return the seeds in the stores."""
    return by_player(game.seats(state), SEAT_NAMES[SOUTH], (state.board[-1], state.board[game.pits]))
