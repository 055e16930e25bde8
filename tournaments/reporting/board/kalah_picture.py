"""Pictures of a Kalah board, as South sees it: sowing runs counter-clockwise, South's store is right."""

from referee.games.kalah import SWAP, Kalah, KalahState
from tournaments.reporting.board.picture_parts import (
    LEFT_BY_LAST_MOVE,
    Caption,
    caption_line,
    captions,
    element,
    label,
    padded,
    picture,
)

STEP = 48
"""SVG units from one pit's middle to the next."""
RADIUS = 21
MARGIN = 12
MIN_WIDTH = 420
"""Room for the captions of a board with few pits."""
_SIZES = {1: 25, 2: 25, 3: 19}
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
    origin = move - 1 + (0 if before.seat else game.pits + 1)
    changed = {cell for cell, seeds in enumerate(state.board) if seeds != before.board[cell]}
    return origin, changed - {origin}


def svg(game: Kalah, state: KalahState, last: tuple[KalahState, int] | None, title: str) -> str:
    """Return the position as an SVG element: a document, or part of a page."""
    p = game.pits
    board_width = STEP * (p + 2) + MARGIN
    width = max(MIN_WIDTH, board_width + 2 * MARGIN)
    # A wide board is shown smaller, so its words are larger.
    size, pit_size = min(28, max(16, width / 25)), min(20, max(15, width / 36))
    left, top = (width - board_width) / 2, MARGIN + 1.4 * size + 1.4 * pit_size
    board_height = 2 * STEP + MARGIN
    height = top + board_height + 1.4 * pit_size + 1.4 * size + MARGIN
    origin, changed = _changes(game, state, last)

    parts = [element("rect", "board", x=left, y=top, width=board_width, height=board_height, rx=16)]

    def number(cell: int, x: float, y: float) -> str:
        seeds = state.board[cell]
        digits = str(seeds)
        return label(
            "number" if seeds else "zero", digits, x, y, _SIZES.get(len(digits), 14), font_weight="600"
        )

    def dashes(cell: int) -> dict[str, str]:
        return {"stroke_dasharray": LEFT_BY_LAST_MOVE} if cell == origin else {}

    for row, y in enumerate((top + MARGIN / 2 + STEP / 2, top + MARGIN / 2 + 1.5 * STEP)):
        for place in range(p):
            pit = place + 1 if row else p - place
            cell = pit - 1 + (p + 1 if row else 0)
            x = left + MARGIN / 2 + STEP * (place + 1.5)
            parts.append(element("circle", "hollow", cx=x, cy=y, r=RADIUS))
            if cell == origin or cell in changed:
                parts.append(element("circle", "mark", cx=x, cy=y, r=RADIUS, **dashes(cell)))
            parts.append(number(cell, x, y))
            label_y = top + board_height + 0.8 * pit_size if row else top - 0.8 * pit_size
            parts.append(label("soft", str(pit), x, label_y, pit_size))
    for cell, x in (
        (p, left + MARGIN / 2 + STEP / 2),
        (2 * p + 1, left + board_width - MARGIN / 2 - STEP / 2),
    ):
        y, tall = top + MARGIN / 2 + 3, 2 * STEP - 6
        box: dict[str, float | str] = {
            "x": x - RADIUS,
            "y": y,
            "width": 2 * RADIUS,
            "height": tall,
            "rx": RADIUS,
        }
        parts.append(element("rect", "hollow", **box))
        if cell in changed:
            parts.append(element("rect", "mark", **box))
        parts.append(number(cell, x, top + board_height / 2))

    north, south = _captions(game, state)
    words_x = MARGIN + 4
    parts += caption_line(north, words_x, MARGIN + 0.6 * size, size)
    parts += caption_line(south, words_x, height - MARGIN - 0.6 * size, size)
    stores = f"{game.name}: {north}, {state.board[p]} in store; {south}, {state.board[-1]} in store"
    return picture(width, height, title or stores, parts)
