"""What a search of either game is to the player that uses it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True)
class Budget:
    """When a search has to stop: at whichever of these comes first.  All None: when the game is solved."""

    seconds: float | None = None
    """Time that may pass, in seconds."""
    nodes: int | None = None
    """Positions that may be made (one move played on a board is one node); deterministic, unlike seconds."""
    depth: int | None = None
    """Plies that may be looked ahead before extensions."""


@dataclass(frozen=True)
class Found:
    """What a search found.  There is always a move, however small the budget was."""

    move: Any
    """The best move, one of the game's own."""
    value: int
    """How good the position is for the player to move; the unit is the engine's (Kalah: seeds ahead at the
    end)."""
    depth: int
    """Plies of the last completed iteration; 0 if none was."""
    nodes: int
    """Positions made."""
    proven: bool
    """Whether the value is exact: every line was followed to the end of the game."""
    line: tuple[Any, ...] = ()
    """The expected moves, as far as they are known; the first one is ``move``."""


class Engine(Protocol):
    """A search that may keep what it learned from one call to the next (a transposition table)."""

    def search(self, state: Any, budget: Budget, on_depth: Callable[[Found], None] | None = None) -> Found:
        """The best move of a state that is not over.

        ``on_depth`` is called after each completed iteration.  With a budget in nodes or depth alone the
        result is a function of the calls so far, the same compiled and in plain Python.
        """
        ...

    def forget(self) -> None:
        """Empty the memory: the next search is the same as a new engine's."""
        ...
