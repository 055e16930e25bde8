"""The replay viewer's data of a running game.  Pure."""

from collections.abc import Sequence
from typing import Any

from tournaments.reporting.site.replay_board import ReplayBoard


class LiveReplay:
    """The data of a running game, which grows with it; each move is computed once for all viewers."""

    def __init__(self, game: str, opening: str) -> None:
        """``game`` is a spec text, ``opening`` an opening's text."""
        self._board = ReplayBoard(game, opening)
        self.plies: list[dict[str, Any]] = []
        """One for each move, as ``replay_data`` has them; there is no conversation yet."""

    @property
    def remark(self) -> str:
        """The reason why some moves have no ply; empty if all have one."""
        return self._board.remark

    def go_on(self, moves: Sequence[str], charged_us: Sequence[int]) -> None:
        """Add the new ones of all moves so far, except those that cannot be shown."""
        for text, time_us in list(zip(moves, charged_us, strict=True))[len(self.plies) :]:
            player = self._board.to_move
            if player is not None:
                self._board.play(player, text)
            if player is None or self.remark:
                return
            number = len(self.plies) + 1
            times = {"charged_us": time_us, "wall_us": None, "cpu_us": None}
            self.plies.append({"player": player, "move": text, **times, "wire": 0, **self._board.at(number)})

    def page(self, players: tuple[str, str]) -> dict[str, Any]:
        """Return the data for ``replay_page.live_html``; ``players`` are the names to show."""
        return {
            "players": list(players),
            "board": self._board.to_json(),
            "final_picture": self._board.final_picture(),
            "start": {"wire": 0, **self._board.at(0)},
            "plies": list(self.plies),
            "sentence": "",
        }
