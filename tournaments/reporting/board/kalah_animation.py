"""The scene of a Kalah board, as South sees it: sowing runs counter-clockwise, South's store is right.

Cells are in the order of the board of a state.  The clauses are those of docs/rules.md.
"""

import math

from referee.games.kalah import NORTH, SEAT_NAMES, SOUTH, SWAP, Kalah, KalahState, Phase
from tournaments.reporting.board.animation_parts import Cell, Phases, Scene, Shape, Transfer, by_player
from tournaments.reporting.board.picture_parts import element, label, picture

STEP = 66
"""SVG units from one pit's middle to the next."""
RADIUS = 29
"""Radius of a pit, in SVG units."""
SEED = 4
"""Radius of a seed, in SVG units."""
SHOWN_IN_PIT = 20
"""Seeds that fit into a pit without touching; the number beside it gives the exact count."""
MARGIN = 10
INDEX = 19
"""Font size of a pit's number, outside the board."""
NUMBER = 25
"""Font size of the number of seeds in a pit, and the height of its line with the space around it."""
LINE = 34
GOLDEN_ANGLE = math.pi * (3 - math.sqrt(5))
"""Seeds placed so, one after the other, fill a disc evenly (Vogel 1979)."""
# The one look that pictures, which show numbers alone, do not have.
STYLE = (
    "<style>.kalarena-picture .seed{fill:#7b4a1f}"
    "@media (prefers-color-scheme:dark){.kalarena-picture .seed{fill:#e2b473}}</style>"
)


def _pit() -> Shape:
    across = RADIUS - SEED - 2
    spots = []
    for place in range(SHOWN_IN_PIT):
        distance, angle = across * math.sqrt((place + 0.5) / SHOWN_IN_PIT), place * GOLDEN_ANGLE
        spots.append((round(distance * math.cos(angle), 1), round(distance * math.sin(angle), 1)))
    return Shape(2 * RADIUS, 2 * RADIUS, RADIUS, SEED, "seed", tuple(spots))


def _store() -> Shape:
    """Return the shape of a store, as high as the two pits beside it.

    Its seeds lie in rows, filled from the middle.
    """
    height, apart = 4 * RADIUS + MARGIN, 2 * SEED + 1.5
    inner, straight = RADIUS - SEED - 2, height / 2 - RADIUS
    spots = [
        (apart * column, apart * row)
        for row in range(-7, 8)
        for column in range(-2, 3)
        if math.hypot(apart * column, max(0.0, abs(apart * row) - straight)) <= inner
    ]
    spots.sort(key=lambda spot: (math.hypot(*spot), spot))
    return Shape(2 * RADIUS, height, RADIUS, SEED, "seed", tuple(spots))


def scene(game: Kalah) -> Scene:
    """Return the board of this variant."""
    p = game.pits
    width = STEP * (p + 2) + 4 * MARGIN
    top = MARGIN + 1.2 * INDEX
    board_height = 4 * RADIUS + MARGIN + 2 * LINE
    height = top + board_height + 1.2 * INDEX + MARGIN
    first_row, second_row = top + LINE + RADIUS, top + LINE + 3 * RADIUS + MARGIN
    above, below = top + LINE / 2, top + board_height - LINE / 2
    shapes = (_pit(), _store())
    left = 2 * MARGIN

    frame: dict[str, float | str] = {"x": MARGIN, "y": top, "width": width - 2 * MARGIN}
    parts = [STYLE, element("rect", "board", **frame, height=board_height, rx=22)]
    north: list[Cell] = []
    south: list[Cell] = []
    for pit in range(1, p + 1):
        for row, x, y, number_y, index_y in (
            (north, left + STEP * (p + 1.5 - pit), first_row, above, top - 0.65 * INDEX),
            (south, left + STEP * (pit + 0.5), second_row, below, top + board_height + 0.65 * INDEX),
        ):
            row.append(Cell(f"{SEAT_NAMES[SOUTH if row is south else NORTH]} {pit}", x, y, 0, x, number_y))
            parts.append(element("circle", "hollow", cx=x, cy=y, r=RADIUS))
            parts.append(label("soft", str(pit), x, index_y, INDEX))
    middle = top + board_height / 2
    stores = []
    for seat, x, number_y in ((NORTH, left + STEP / 2, above), (SOUTH, left + STEP * (p + 1.5), below)):
        stores.append(Cell(f"{SEAT_NAMES[seat]}'s store", x, middle, 1, x, number_y))
        shape = shapes[1]
        box = {"x": x - RADIUS, "y": middle - shape.height / 2, "width": shape.width, "height": shape.height}
        parts.append(element("rect", "hollow", **box, rx=RADIUS))
    return Scene(
        width=width,
        height=height,
        svg=picture(width, height, game.name, parts),
        seats=(SEAT_NAMES[NORTH], SEAT_NAMES[SOUTH]),
        shapes=shapes,
        cells=(*north, stores[0], *south, stores[1]),
        pieces={},
        number_size=NUMBER,
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
    first = 0 if state.seat == NORTH else p + 1
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
