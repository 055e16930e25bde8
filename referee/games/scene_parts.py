"""What the scenes of all games have in common: cells, their shapes, and transfers between them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from referee.games.base import Side

Content = int | str | None
"""Of a cell: how many are in it, or the code of the one piece on it, or None for no piece."""


class Transfer(NamedTuple):
    """Something goes from one cell to another.

    A cell that counts is changed by the number, or by one for a piece; any other cell loses its piece, or
    gets this one.
    """

    origin: int | None
    """Index of the cell that it leaves; None: it comes from outside the scene."""
    target: int | None
    """Index of the cell that it enters; None: it leaves the scene."""
    what: int | str
    """How many, or the code of a piece."""


Phases = list[list[Transfer]]


class Shape(NamedTuple):
    """What cells of one kind look like; lengths in SVG units, places relative to the cell's middle."""

    width: float
    height: float
    rounding: float
    """Radius of the corners: half the width of a circle."""
    radius: float
    """Of each thing in it, which is drawn as a disc."""
    look: str
    """Class of the things in a cell that counts; empty for a cell that holds one piece or none."""
    spots: tuple[tuple[float, float], ...]
    """Where the things lie, the first one first; more of them than spots are not drawn."""


class Cell(NamedTuple):
    """A place where something can lie."""

    name: str
    """For people."""
    x: float
    y: float
    shape: int
    """Index into the scene's shapes."""
    number_x: float | None = None
    """Where the number of things is written, relative to nothing but the scene; None: it is not."""
    number_y: float | None = None


@dataclass(frozen=True, slots=True)
class Scene:
    """A board and its places."""

    width: float
    """In SVG units, as all lengths."""
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
    """What ``tallies`` counts, as it is said behind the number."""


def by_player(seats: tuple[str, str], first_seat: str, values: tuple[int, int]) -> tuple[int, int]:
    """The values of FIRST and SECOND, given those of two seats and where FIRST sits."""
    return values if seats[Side.FIRST] == first_seat else (values[Side.SECOND], values[Side.FIRST])
