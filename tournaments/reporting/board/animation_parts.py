"""Common parts of the scenes of all games: cells, their shapes, and transfers between them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from referee.games.base import Side

Content = int | str | None
"""Content of a cell: the number of things in it, or the code of the one piece on it, or None for no piece."""


class Transfer(NamedTuple):
    """A thing, or several, that move from one cell to another.

    The count of a cell that counts changes by the number, or by one for a piece; any other cell loses its
    piece, or gets this one.
    """

    origin: int | None
    """Index of the cell that is left; None: the thing comes from outside the scene."""
    target: int | None
    """Index of the cell that is entered; None: the thing leaves the scene."""
    what: int | str
    """The number of things, or the code of a piece."""


Phases = list[list[Transfer]]


class Shape(NamedTuple):
    """The look of one kind of cell; lengths in SVG units, positions relative to the cell's middle."""

    width: float
    height: float
    rounding: float
    """Radius of the corners: half the width of a circle."""
    radius: float
    """Radius of each thing in the cell, which is drawn as a disc."""
    look: str
    """Class of the things in a cell that counts; empty for a cell that holds one piece or none."""
    spots: tuple[tuple[float, float], ...]
    """Positions of the things, in the order in which they are filled; further things are not drawn."""


class Cell(NamedTuple):
    """A place where something can lie."""

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
    """A board and its places."""

    width: float
    """Width in SVG units, as all lengths."""
    height: float
    svg: str
    """The board with its labels and nothing on it: an SVG element, light and dark, with the classes of
    picture_parts and those of ``pieces`` and ``shapes``."""
    seats: tuple[str, str]
    """The seat whose side of the board is above, and the one whose is below."""
    shapes: tuple[Shape, ...]
    cells: tuple[Cell, ...]
    pieces: Mapping[str, tuple[str, str]]
    """Code of a piece -> (its class, its name for people)."""
    number_size: float
    """Font size of the numbers; their classes are ``number`` and ``zero``."""
    tally: str
    """Unit of the counts of ``tallies``, a text that follows the number."""


def by_player(seats: tuple[str, str], first_seat: str, values: tuple[int, int]) -> tuple[int, int]:
    """Return the values of FIRST and SECOND, given those of two seats and the name of the first of them."""
    return values if seats[Side.FIRST] == first_seat else (values[Side.SECOND], values[Side.FIRST])
