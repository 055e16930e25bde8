"""The board of a game that is shown move by move: the contents of cells and the transfers of moves.  Pure."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from referee.games.catalog import AnyGame, parse_game
from referee.games.opening import parse_opening
from tournaments.reporting.board.board_animation import contents, scene, tallies, transfers
from tournaments.reporting.board.picture_parts import captions
from tournaments.reporting.board.pictures import svg_picture

if TYPE_CHECKING:
    from tournaments.reporting.board.animation_parts import Scene

NOWHERE = -1
"""Stands for a transfer's missing origin or target: a number takes less room than ``null``."""


@dataclass(frozen=True, slots=True)
class _Played:
    """A position, and the move that led to it."""

    state: Any
    move: Any
    phases: list[list[list[Any]]]
    contents: list[Any]


class ReplayBoard:
    """The positions of a game as far as they can be replayed.

    A record that was altered, or that an older version wrote, can hold anything: no method raises an
    exception because of it, and ``remark`` says what is missing.
    """

    def __init__(self, game: str, opening: str) -> None:
        """``game`` is a spec text, ``opening`` an opening's text."""
        self.remark = ""
        """The reason why a part could not be replayed; empty if there is none."""
        self._game: AnyGame | None = None
        self._scene: Scene | None = None
        self._played: list[_Played] = []
        self._number = 0
        try:
            self._game = rules = parse_game(game)
            self._scene = scene(rules)
            steps = parse_opening(rules, opening)
            state = steps[-1].state if steps else rules.initial_state()
            self._played.append(_Played(state, None, [], contents(rules, state)))
        except Exception as error:
            self.remark = f"The board cannot be shown: {error}"
            self._scene = None

    @property
    def to_move(self) -> int | None:
        """The player whose turn it is; None where that is not known."""
        if self._game is None or self.remark or self._game.outcome(self._played[-1].state) is not None:
            return None
        return int(self._game.to_move(self._played[-1].state))

    def play(self, player: int, text: str) -> None:
        """Play a move."""
        self._number += 1
        if self._game is None or self.remark:
            return
        state = self._played[-1].state
        try:
            if player != self._game.to_move(state):
                raise ValueError("it is not this player's turn")
            self._played.append(self._after(self._game, state, text))
        except Exception as error:
            self.remark = f"The board cannot be shown from move {self._number} on: {error}"

    @staticmethod
    def _after(game: AnyGame, state: Any, text: str) -> _Played:
        move = game.parse_move(state, text)
        after = game.apply(state, move)
        phases = [
            [[_index(one.origin), _index(one.target), one.what] for one in phase]
            for phase in transfers(game, state, move)
        ]
        return _Played(after, move, phases, contents(game, after))

    def to_json(self) -> dict[str, Any] | None:
        """Return the scene, and as ``contents`` the content of each cell at the start."""
        stage = self._scene
        if stage is None:
            return None
        return {
            **{name: getattr(stage, name) for name in ("width", "height", "svg", "tally", "number_size")},
            "shapes": [[*shape[:-1], [list(spot) for spot in shape.spots]] for shape in stage.shapes],
            "cells": [list(cell) for cell in stage.cells],
            "pieces": {code: list(piece) for code, piece in stage.pieces.items()},
            "seats": list(stage.seats),
            "contents": self._played[0].contents,
        }

    def at(self, ply: int) -> dict[str, Any]:
        """Return the board's data of a ply; no keys for a ply that could not be replayed.

        ``changes``: index and content of each changed cell, one after the other; ``phases`` of transfers as
        [origin, target, what]; ``seats``: for each player [seat, note, leads]; ``tallies``.
        """
        if self._game is None or not 0 <= ply < len(self._played):
            return {}
        played = self._played[ply]
        changes = []
        if ply:
            before = self._played[ply - 1].contents
            for cell, content in enumerate(played.contents):
                if content != before[cell]:
                    changes += [cell, content]
        seats = [
            [caption.seat, caption.note, int(caption.leads)] for caption in captions(self._game, played.state)
        ]
        return {
            "changes": changes,
            "phases": played.phases,
            "seats": seats,
            "tallies": list(tallies(self._game, played.state)),
        }

    def final_picture(self) -> str:
        """Return the last position that could be replayed, as an SVG element; empty if there is none."""
        if self._game is None or not self._played:
            return ""
        last = (self._played[-2].state, self._played[-1].move) if len(self._played) > 1 else None
        return svg_picture(self._game, self._played[-1].state, last=last)


def _index(cell: int | None) -> int:
    return NOWHERE if cell is None else cell
