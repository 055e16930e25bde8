"""Descriptions of boards as plain data, from which texts, pictures and the ``turns`` protocol are made.

A game describes its position as two rows of pits or as a grid of squares.  Everything that shows a position
begins with this description, so a game needs no drawing code of its own.
"""

from dataclasses import dataclass
from typing import Any

from referee.games.base import Side


@dataclass(frozen=True, slots=True)
class PitRow:
    """One row of pits."""

    owner: Side
    pits: tuple[int, ...]
    """Seeds of each pit, in the owner's direction of sowing."""
    store: int
    """Seeds in the owner's store, or captured."""


@dataclass(frozen=True, slots=True)
class PitBoard:
    """Two rows of pits that face each other; seeds are sown counter-clockwise."""

    bottom: PitRow
    top: PitRow

    def lead_permille(self, side: Side) -> int:
        """Return the lead of a side's store in thousandths of all seeds; negative if the side is behind."""
        own, other = self.bottom, self.top
        if own.owner is not side:
            own, other = other, own
        seeds = sum((*own.pits, own.store, *other.pits, other.store))
        return 1000 * (own.store - other.store) // max(1, seeds)


@dataclass(frozen=True, slots=True)
class GridBoard:
    """A rectangle of squares."""

    rows: tuple[tuple[str, ...], ...]
    """Marks of the squares, the top row first; an empty text is an empty square."""
    marks: tuple[str, str]
    """Mark of a piece of FIRST and of SECOND."""
    reserves: tuple[int, int] | None = None
    """Pieces of FIRST and of SECOND that are not on the board; None for a game without them."""


Layout = PitBoard | GridBoard


def seen_by(layout: Layout, side: Side) -> dict[str, Any]:
    """Return the description from one player's point of view, as JSON values."""
    if isinstance(layout, PitBoard):
        own, other = layout.bottom, layout.top
        if own.owner is not side:
            own, other = other, own
        return {
            "own": list(own.pits),
            "own_store": own.store,
            "other": list(other.pits),
            "other_store": other.store,
        }
    view: dict[str, Any] = {
        "rows": [list(row) for row in layout.rows],
        "own_mark": layout.marks[side],
        "other_mark": layout.marks[side.other],
    }
    if layout.reserves is not None:
        view |= {"own_reserve": layout.reserves[side], "other_reserve": layout.reserves[side.other]}
    return view
