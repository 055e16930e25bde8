"""The conversation of a game, shown on standard error as it happens."""

import contextlib
import os
import queue
import sys
import threading
from collections.abc import Iterator

from protocol.messages import SWAP_WORD
from referee.games.base import MoveError
from referee.games.catalog import AnyGame
from referee.games.opening import parse_opening
from referee.judge.results import Player, WireLine
from referee.judge.verdict_text import visible
from tournaments.reporting.board.pictures import text_picture

MAX_WAITING = 10_000
"""Lines that may wait to be shown; more are dropped: the record has them all."""
LAST_LINES_S = 2.0
"""Seconds for which the end of the game waits for lines that are still to be shown."""


class ConversationView:
    """Shows lines from a thread of its own: a terminal or pipe that takes nothing must not hold up a game."""

    def __init__(self, game: AnyGame, players: tuple[Player, Player], opening: str = "") -> None:
        self._game = game
        self._players = players
        steps = parse_opening(game, opening)
        self._state = steps[-1].state if steps else game.initial_state()
        self._waiting: queue.Queue[WireLine | None] = queue.Queue(MAX_WAITING)
        self._thread = threading.Thread(target=self._show_all, daemon=True)

    @contextlib.contextmanager
    def shown(self) -> Iterator[None]:
        """Show the lines that are added, until the end of the block."""
        self._thread.start()
        try:
            yield
        finally:
            with contextlib.suppress(queue.Full):
                self._waiting.put_nowait(None)
            self._thread.join(LAST_LINES_S)

    def add(self, line: WireLine) -> None:
        """Add a line to be shown; never waits."""
        with contextlib.suppress(queue.Full):
            self._waiting.put_nowait(line)

    def _show_all(self) -> None:
        while (line := self._waiting.get()) is not None:
            try:
                self._show(line)
            except OSError:  # the reader has gone
                return

    def _show(self, line: WireLine) -> None:
        arrow = "<-" if line.direction == "to" else "->"
        name = self._players[line.player].name
        text = f"{line.at_us / 1000:10.1f} ms  {line.player + 1} {name}  {arrow}  {visible(line.line)}\n"
        os.write(sys.stderr.fileno(), (text + self._picture(line)).encode("utf-8", "backslashreplace"))

    def _picture(self, line: WireLine) -> str:
        """Return the board after a move, once: with the line to the bot that is next, or the first END."""
        match line.line.split(";") if line.direction == "to" else []:
            case ["CHANGE", move, board, "YOU" | "END"] if self._follow(move, board):
                rows = text_picture(self._game, self._state).split("\n")
                return "".join(f"      {row}".rstrip() + "\n" for row in rows)
        return ""

    def _follow(self, move: str, board: str) -> bool:
        """Apply a move that was sent; return False if it is not the next one of our game."""
        game, state = self._game, self._state
        try:
            swapped = move == SWAP_WORD and game.swap is not None
            following = game.apply(state, game.swap if swapped else game.parse_move(state, move))
        except MoveError:
            return False
        if game.board_text(following) != board:
            return False
        self._state = following
        return True
