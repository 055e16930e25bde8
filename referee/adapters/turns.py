"""The ``turns`` protocol: a JSON object on one line for each turn of the bot, and one line with a move back.

The object has these members; later versions only add to them:

- ``game``: the spec text of the game;
- ``seat``: the name of the bot's seat now;
- ``position``: the board seen by the bot, see ``referee.games.layout.seen_by``;
- ``board``: the board as the Manchester protocol writes it, and ``state``: the rule book's exact text of it;
- ``legal_moves``: texts of all legal moves, ``SWAP`` among them if the seats may be exchanged;
- ``last_moves``: the moves since the bot's previous turn, that one included, each with ``by`` (``you`` or
  ``opponent``) and ``move``;
- ``ply``: the number of the move that is to be played, counted from 1;
- ``time_left_ms`` and ``opponent_time_left_ms``: rest of the time for the game, or without such a limit the
  time for one move;
- ``move_time_ms``: limit of this single move, or null.

The reply is one of the texts of ``legal_moves``, alone on a line; a JSON string, or a JSON object with the
member ``move``, is accepted as well.  The referee judges the reply, so an illegal move loses as always.  The
bot's input ends with the game.
"""

import json
from collections import deque
from typing import Any

from protocol.announced import AnnouncedTime
from protocol.messages import SWAP_WORD
from referee.adapters.beside import BotProcess, Loop, RefereeInput, announced_time, note, send_to_referee
from referee.adapters.game_follower import GameFollower
from referee.games.layout import seen_by

LONGEST_REPLY = 64 * 1024
"""Bytes of a reply without its line feed above which it is passed on unfinished: the referee's limit for the
lines of a bot gives the verdict."""
LONGEST_SHOWN = 80
"""Bytes of a reply that a note repeats at most."""


def turn(follower: GameFollower, announced: AnnouncedTime) -> dict[str, Any]:
    """Return the object of the bot's turn."""
    game, state, side = follower.game, follower.state, follower.side
    assert side is not None
    last = follower.moves[_previous_turn(follower) :]
    own_ms, opponent_ms = follower.clocks_ms or (None, None)
    return {
        "game": game.name,
        "seat": game.seats(state)[side],
        "position": seen_by(game.layout(state), side),
        "board": game.board_text(state),
        "state": game.format_state(state),
        "legal_moves": [
            SWAP_WORD if game.swap is not None and move == game.swap else game.format_move(state, move)
            for move in game.legal_moves(state)
        ],
        "last_moves": [{"by": "you" if by is side else "opponent", "move": move} for by, move in last],
        "ply": len(follower.moves) + 1,
        "time_left_ms": own_ms,
        "opponent_time_left_ms": opponent_ms,
        "move_time_ms": announced.move_ms,
    }


def _previous_turn(follower: GameFollower) -> int:
    """Return the index of the bot's last move; 0 if it has not moved."""
    own = [number for number, (by, _) in enumerate(follower.moves) if by is follower.side]
    return own[-1] if own else 0


def move_of(reply: bytes) -> bytes:
    """Return the move's text in a reply.  A reply in another form is returned as it is, for the referee."""
    text = reply.strip()
    if text[:1] in (b"{", b'"'):
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):  # not JSON, not UTF-8, or too deep
            return text
        if isinstance(value, dict):
            value = value.get("move")
        if isinstance(value, str | int) and not isinstance(value, bool):
            return " ".join(str(value).split()).encode("utf-8", "replace")  # JSON has lone surrogates
    return text


def _shown(reply: bytes) -> str:
    """Return a reply in quotes, shortened."""
    return repr(reply[:LONGEST_SHOWN].decode("utf-8", "replace"))


class TurnsAdapter:
    """Translates turns for a bot's process."""

    def __init__(self, command: list[str], follower: GameFollower) -> None:
        self._follower = follower
        self._announced = announced_time()
        self._legal_moves: list[str] | None = None
        """The texts of the legal moves while a reply is awaited, else None."""
        self._rest = b""
        self._replies: deque[bytes] = deque()
        """Lines that the bot sent before its turn."""
        self._loop = Loop()
        self._input = RefereeInput(self._loop, self._receive, lambda: self._bot.kill())
        self._bot = BotProcess(command, self._loop, on_exit=self._loop.stop, on_output=self._read)

    def run(self) -> None:
        """Play one game; does not return."""
        self._input.open()
        self._loop.run()
        self._bot.close_input()
        self._bot.end_alike()

    def _receive(self, line: str) -> None:
        is_turn = self._follower.receive(line)
        if self._follower.over:
            if self._legal_moves is not None and self._rest:
                note(f"turns adapter: the reply {_shown(self._rest)} had no line feed at the end of the game")
            self._bot.close_input()
        elif is_turn:
            message = turn(self._follower, self._announced)
            self._legal_moves = message["legal_moves"]
            self._bot.send(json.dumps(message, separators=(",", ":")).encode() + b"\n")
            self._reply(is_early=True)

    def _read(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        self._replies.extend(lines)
        self._reply()
        if len(self._rest) > LONGEST_REPLY:
            send_to_referee(b"MOVE;" + self._rest)
            self._rest = b""

    def _reply(self, *, is_early: bool = False) -> None:
        """Pass the next reply on, if one is awaited; ``is_early`` is true if it came before its turn."""
        if self._legal_moves is None or not self._replies:
            return
        legal_moves, self._legal_moves = self._legal_moves, None
        reply = self._replies.popleft()
        move = move_of(reply)
        if move.decode("utf-8", "replace") not in legal_moves:
            why = ", and came before this turn began" if is_early else ""
            legal = " ".join(legal_moves)
            note(f"turns adapter: the reply {_shown(reply)} is none of the legal_moves: {legal}{why}")
        if move != SWAP_WORD.encode():
            send_to_referee(b"MOVE;" + move + b"\n")
            return
        if SWAP_WORD in legal_moves:
            self._follower.swap()
        send_to_referee(b"SWAP\n")
