"""Common parts of the drawings of all games: captions, SVG elements, and the scene of an animation."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from html import escape
from typing import Any, NamedTuple

from referee.games.base import Game, Side

# CSS class -> its style on a light and on a dark page.  Plain rules instead of variables, since not every
# program that shows SVG supports those; the class of the whole picture keeps them off a page around it.
_STYLES = {
    "ground": ("fill:#fbf8f2", "fill:#1e1d1b"),
    "ink": ("fill:#25211b", "fill:#ece7dd"),
    "soft": ("fill:#6b6255", "fill:#a79d8d"),
    "board": ("fill:#c79a62", "fill:#6d5030"),
    "dark": ("fill:#bb8c53", "fill:#614628"),
    "hollow": ("fill:#f6e7cf", "fill:#2c2219"),
    "number": ("fill:#2b1d0e", "fill:#f4e6cf"),
    "zero": ("fill:#a98f6d", "fill:#8a7458"),
    "white": ("fill:#fffdf8;stroke:#5a4526;stroke-width:1.5", "fill:#f5f0e6;stroke:#1a130b;stroke-width:1.5"),
    "black": ("fill:#26221e;stroke:#0f0d0b;stroke-width:1.5", "fill:#14110e;stroke:#a08d72;stroke-width:1.5"),
    "mark": ("fill:none;stroke:#c2185b;stroke-width:3.5", "fill:none;stroke:#ff8fb5;stroke-width:3.5"),
    "pointer": ("fill:#c2185b", "fill:#ff8fb5"),
}
_ROOT = "kalarena-picture"
LEFT_BY_LAST_MOVE = "4.5 4"
"""Dashes of the mark around the places that the last move emptied."""


def _style() -> str:
    light = "".join(f".{_ROOT} .{name}{{{style}}}" for name, (style, _) in _STYLES.items())
    dark = "".join(f".{_ROOT} .{name}{{{style}}}" for name, (_, style) in _STYLES.items())
    font = f".{_ROOT} text{{font-family:system-ui,'Segoe UI',Roboto,Helvetica,Arial,sans-serif}}"
    return f"<style>{font}{light}@media (prefers-color-scheme:dark){{{dark}}}</style>"


class Caption(NamedTuple):
    """The caption of a player."""

    seat: str
    player: str
    """``first player`` or ``second player``."""
    note: str
    """``to move``, ``won 27:22``, ...; empty for the player who waits."""
    leads: bool
    """True if the player is to move, or has won."""

    def __str__(self) -> str:
        return f"{self.seat} ({self.player})" + (f": {self.note}" if self.note else "")


_PLAYERS = ((Side.FIRST, "first player"), (Side.SECOND, "second player"))


def captions(game: Game[Any, Any], state: Any) -> tuple[Caption, Caption]:
    """Return the captions of FIRST and SECOND."""
    outcome = game.outcome(state)
    seats = game.seats(state)
    if outcome is None:
        may_swap = game.swap is not None and game.swap in game.legal_moves(state)
        return _captions_of_turn((seats[0], seats[1]), game.to_move(state), may_swap)
    found = []
    for side, player in _PLAYERS:
        note = "draw" if outcome.winner is None else "won" if side == outcome.winner else "lost"
        if not outcome.detail:  # else something beside the score ended the game
            note += f" {outcome.score[side]}:{outcome.score[side.other]}"
        found.append(Caption(seats[side], player, note, side == outcome.winner))
    return found[0], found[1]


@lru_cache
def _captions_of_turn(seats: tuple[str, str], mover: Side, may_swap: bool) -> tuple[Caption, Caption]:
    """Return the captions before a move: the same few in all games of a report."""
    note = "to move, or swap" if may_swap else "to move"
    first, second = (
        Caption(seats[side], player, note if side == mover else "", side == mover)
        for side, player in _PLAYERS
    )
    return first, second


def padded(lines: list[str]) -> str:
    """Return the lines, padded with spaces to equal width."""
    width = max(map(len, lines))
    return "\n".join(line.ljust(width) for line in lines)


def element(tag: str, css_class: str, content: str = "", /, **attributes: float | str) -> str:
    """Return an SVG element with text; underscores in names of attributes stand for hyphens."""
    written = "".join(
        f' {name.replace("_", "-")}="{escape(f"{value:g}" if not isinstance(value, str) else value)}"'
        for name, value in attributes.items()
    )
    return f'<{tag} class="{css_class}"{written}>{escape(content, quote=False)}</{tag}>'


def label(css_class: str, content: str, x: float, y: float, size: float, /, **attributes: float | str) -> str:
    """Return a text centred on (x, y), unless ``text_anchor`` makes x its start or end."""
    if "text_anchor" not in attributes:
        attributes["text_anchor"] = "middle"
    # Digits and capitals are 0.7 of the size high; not every program supports dominant-baseline.
    return element("text", css_class, content, x=x, y=y + 0.35 * size, font_size=size, **attributes)


def caption_line(caption: Caption, x: float, y: float, size: float) -> list[str]:
    """Return a player's caption, with a pointer before the player to move or the winner."""
    if not caption.leads:
        return [label("soft", str(caption), x, y, size, text_anchor="start")]
    points = f"{x:g},{y - 0.4 * size:g} {x + 0.6 * size:g},{y:g} {x:g},{y + 0.4 * size:g}"
    pointer = element("polygon", "pointer", points=points)
    return [pointer, label("ink", str(caption), x + size, y, size, text_anchor="start", font_weight="600")]


def picture(width: float, height: float, title: str, parts: list[str]) -> str:
    """Return the whole picture, on a ground of its own so that it can be read on any page."""
    ground = element("rect", "ground", width=width, height=height, rx=12)
    body = "\n".join([f"<title>{escape(title, quote=False)}</title>", _style(), ground, *parts])
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="{_ROOT}" role="img" '
        f'viewBox="0 0 {width:g} {height:g}" width="{width:g}" height="{height:g}" '
        f'style="max-width:100%;height:auto">\n{body}\n</svg>\n'
    )


# Animations.

Content = int | str | None
"""Content of a cell: the number of things in it, or the code of the one piece on it, or None for no piece."""


NOWHERE = -1
"""Origin of a thing from outside the scene, and target of one that leaves it.

A number takes less room in a report than ``null``.  It is a valid index of a list: compare before indexing.
"""


class Transfer(NamedTuple):
    """A movement of one or more things from one cell to another.

    The count of a counting cell changes by the number, or by one for a piece.  Any other cell loses its
    piece, or receives this one.
    """

    origin: int
    """Index of the cell that is left, or NOWHERE."""
    target: int
    """Index of the cell that is entered, or NOWHERE."""
    what: int | str
    """The number of things, or the code of a piece."""


Phases = list[tuple[Transfer, ...]]
"""Phases of a move in order, each with its simultaneous transfers."""


def changed_cells(before: Sequence[Content], after: Sequence[Content]) -> tuple[set[int], set[int]]:
    """Return the cells that lost something, and those that gained something or hold another piece."""
    left: set[int] = set()
    entered: set[int] = set()
    for cell, (old, new) in enumerate(zip(before, after, strict=True)):
        if old != new:
            lost = new is None or (isinstance(old, int) and isinstance(new, int) and new < old)
            (left if lost else entered).add(cell)
    return left, entered


def default_transfers(before: Sequence[Content], after: Sequence[Content]) -> Phases:
    """Return one phase with the transfers that lead from some contents to others.

    Counts go from cells that lose to cells that gain, in their order; pieces go from a cell that they left to
    one that they entered, or from and to outside the scene.
    """
    losses: list[list[Any]] = []  # cell, thing, number
    gains: list[list[Any]] = []
    for cell, (old, new) in enumerate(zip(before, after, strict=True)):
        if isinstance(old, int) and isinstance(new, int):
            if old != new:
                (losses if new < old else gains).append([cell, None, abs(new - old)])
        elif old != new:
            if old is not None:
                losses.append([cell, old, 1])
            if new is not None:
                gains.append([cell, new, 1])
    phase = []
    for gain in gains:
        target, thing, wanted = gain
        for loss in losses:
            if loss[2] and wanted and loss[1] == thing:
                number = min(loss[2], wanted)
                loss[2] -= number
                wanted -= number
                phase.append(Transfer(loss[0], target, number if thing is None else thing))
        if wanted:
            phase.append(Transfer(NOWHERE, target, wanted if thing is None else thing))
    phase += [
        Transfer(cell, NOWHERE, left if thing is None else thing) for cell, thing, left in losses if left
    ]
    return [tuple(phase)] if phase else []


class Shape(NamedTuple):
    """Shape of one kind of cell; lengths in SVG units, positions relative to the cell's middle."""

    width: float
    height: float
    rounding: float
    """Radius of the corners: half the width of a circle."""
    radius: float
    """Radius of each thing in the cell, which is drawn as a disc."""
    css_class: str
    """CSS class of the things in a counting cell; empty for a cell that holds one piece or none."""
    spots: tuple[tuple[float, float], ...]
    """Positions of the things, in the order in which they are filled; further things are not drawn."""


class Cell(NamedTuple):
    """A pit, a store, a square or a tray of a board."""

    name: str
    """Name for people."""
    x: float
    y: float
    shape: int
    """Index into the scene's shapes."""
    number_x: float | None = None
    """Position of the number of things, in the coordinates of the scene; None if it is not shown."""
    number_y: float | None = None


@dataclass(frozen=True, slots=True)
class Scene:
    """An empty board and its cells."""

    width: float
    """Width in SVG units, as all lengths."""
    height: float
    svg: str
    """The empty board with its labels as an SVG element, light and dark, with the CSS classes of ``_STYLES``
    and those of ``pieces`` and ``shapes``."""
    seats: tuple[str, str]
    """The seat on the upper side of the board, and the one on the lower side."""
    shapes: tuple[Shape, ...]
    cells: tuple[Cell, ...]
    pieces: Mapping[str, tuple[str, str]]
    """Code of a piece -> (its CSS class, its name for people)."""
    number_size: float
    """Font size of the numbers; their CSS classes are ``number`` and ``zero``."""
    tally: str
    """Unit of the counts of ``tallies``, a text that follows the number."""


def by_player(seats: tuple[str, str], first_seat: str, values: tuple[int, int]) -> tuple[int, int]:
    """Return the values of FIRST and SECOND, given those of two seats and the name of the first of them."""
    return values if seats[Side.FIRST] == first_seat else (values[Side.SECOND], values[Side.FIRST])
