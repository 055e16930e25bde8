"""The Kalah Game Protocol of the Erlangen course (KGP), without input or output: the server's side.

Facts from the protocol's text, draft 1.1.0, and from its public server, which announces version 1.0.1.  Two
modes are served.  In both the client is sent one position after the other and answers each with moves, of
which the last one counts.  In the mode ``freeplay`` positions have ids, to which moves refer.  The mode
``simple`` has no ids: the client sends one ``yield`` for each position, which separates its moves.
"""

import re
from dataclasses import dataclass
from enum import Enum, auto

from referee.games.base import Side
from referee.games.layout import PitBoard

VERSION = (1, 0, 1)
LONGEST_LINE = 16_384
"""Characters of a line at most, its end included (draft 1.1.0)."""

LONGEST_COMMENT = 200
"""Characters of a line that a comment repeats at most."""
MODES = ("freeplay", "simple")

_LINE = re.compile(
    r"(?:(?P<id>\d{1,20})?(?:@(?P<ref>\d{1,20}))?\s+)?(?P<name>[a-z][\w:-]*)(?:\s+(?P<arguments>.*))?",
    re.ASCII | re.IGNORECASE,
)
_ARGUMENT = re.compile(r'"(?:\\.|[^"\\])*"|\S+')
_ESCAPE = re.compile(r"\\(.)")
_INTEGER = re.compile(r"[+-]?[0-9]{1,9}")


class Change(Enum):
    """A change of the session that its owner must handle."""

    READY = auto()
    """The client has chosen a mode and can be asked for moves."""
    FINAL = auto()
    """The client has declared its last move final."""
    GONE = auto()
    """The client leaves, or has to."""


@dataclass(frozen=True, slots=True)
class Command:
    """One line."""

    id: int | None
    ref: int | None
    """The id of the line to which this one refers."""
    name: str
    arguments: tuple[str, ...]
    """Words as they are, strings without their quotation marks and escapes."""


def parse_line(line: str) -> Command | None:
    """Return the command of a line; None for a line that is none, which the protocol ignores."""
    match = _LINE.fullmatch(line.strip())
    if match is None:
        return None
    own, ref = (None if text is None else int(text) for text in (match["id"], match["ref"]))
    arguments = tuple(_ARGUMENT.findall(match["arguments"] or ""))
    return Command(own, ref, match["name"].lower(), tuple(map(_unquoted, arguments)))


def _unquoted(argument: str) -> str:
    if len(argument) < 2 or not (argument.startswith('"') and argument.endswith('"')):
        return argument
    return _ESCAPE.sub(lambda found: "\n" if found[1] == "n" else found[1], argument[1:-1])


def quoted(text: str) -> str:
    """Return a text as an argument of type string."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def board_text(board: PitBoard, side: Side) -> str:
    """Return a Kalah board as the bot of a side sees it: South is always itself."""
    own, other = board.bottom, board.top
    if own.owner is not side:
        own, other = other, own
    numbers = (len(own.pits), own.store, other.store, *own.pits, *other.pits)
    return f"<{','.join(map(str, numbers))}>"


class KgpSession:
    """The server's side of a conversation.

    Lines to send are collected in ``out``.  The owner asks for one move at a time: ``ask``, then ``receive``
    until a change is FINAL or the time is over, then ``stop``.
    """

    def __init__(self) -> None:
        self.out: list[str] = []
        """Lines to send, without their ends."""
        self.comments: list[str] = []
        """Comments of the client, and errors in both directions, for the bot's author."""
        self.move: int | None = None
        """The last move for the position that was asked, a pit from 1; None if there is none."""
        self._last_id = 0
        self._current: int | None = None
        """The id of the position that was asked; None between two."""
        self._previous: set[int] = set()
        self._mode: str | None = None
        """The mode that the client chose; None before."""
        self._has_yielded = False
        """True if the client has answered the position that was asked by ``yield``."""
        self._unanswered = 0
        """Positions of the mode ``simple`` that were stopped before the client sent ``yield``: its next lines
        belong to them."""
        # Without an id, as the text shows it; clients may compare the beginning of the line.
        self.out.append(" ".join(("kgp", *map(str, VERSION))))

    def ask(self, board: str) -> None:
        """Ask for a move in a position."""
        self.move, self._has_yielded = None, False
        self._current = self._send("state", board)

    def stop(self) -> int | None:
        """End the wait for a move; return the last one."""
        if self._current is not None:
            self._send("stop", ref=self._current)
            self._previous.add(self._current)
            self._current = None
            self._unanswered += self._is_simple and not self._has_yielded
        return self.move

    def leave(self) -> None:
        """Say goodbye at the end of the game; clients end the search of an open position at its stop."""
        self.stop()
        self.out.append("goodbye")

    def receive(self, line: str) -> Change | None:
        """Process a line of the client."""
        if len(line) > LONGEST_LINE:
            self._send("error", quoted(f"a line has at most {LONGEST_LINE} characters"))
            return None
        command = parse_line(line)
        if command is None:
            if line.strip():
                self.comments.append(
                    f"KGP adapter: ignored, since it is no command: {line[:LONGEST_COMMENT]!r}"
                )
            return None
        match command.name:
            case "mode":
                return self._choose_mode(command)
            case "move":
                self._receive_move(command)
            case "yield":
                return self._receive_yield(command)
            case "ping":
                self._send("pong", ref=command.id)
            case "set" if command.arguments[:1] == ("info:comment",):
                self.comments.append(" ".join(command.arguments[1:]))
            case "error":
                self.comments.append(f"error: {' '.join(command.arguments)}")
            case "ok" if self._unanswered:
                # Earlier drafts of the mode ``simple`` answer ``stop`` by ``ok``.
                self._unanswered -= 1
            case "goodbye":
                return Change.GONE
        return None

    @property
    def _is_simple(self) -> bool:
        return self._mode == "simple"

    def _choose_mode(self, command: Command) -> Change | None:
        if self._mode is not None:
            self._error(command, "the mode was chosen before")
            return None
        mode = " ".join(command.arguments).lower()
        if mode not in MODES:
            self._error(command, f"the modes here are {' and '.join(MODES)}")
            self.leave()
            return Change.GONE
        self._mode = mode
        self._send("ok", ref=command.id)
        return Change.READY

    def _receive_move(self, command: Command) -> None:
        if not self._concerns_current(command):
            return
        text = command.arguments[0] if len(command.arguments) == 1 else ""
        if _INTEGER.fullmatch(text) is None:
            self._error(command, "a move is the number of a pit")
            return
        self.move = int(text)

    def _receive_yield(self, command: Command) -> Change | None:
        if self._unanswered:
            self._unanswered -= 1
            return None
        if not self._concerns_current(command):
            return None
        self._has_yielded = True
        if self.move is None:
            self._error(command, "there is no move yet that could be final")
            return None
        return Change.FINAL

    def _concerns_current(self, command: Command) -> bool:
        """Return True if a line belongs to the position that was asked; answer errors."""
        if self._is_simple:
            return self._current is not None and not self._unanswered
        if command.ref is not None and command.ref == self._current:
            return True
        if command.ref is None or command.ref not in self._previous:
            self._error(command, f"{command.name} has to refer to a state")
        return False

    def _error(self, command: Command, text: str) -> None:
        words = " ".join((command.name, *command.arguments))[:LONGEST_COMMENT]
        self.comments.append(f"KGP adapter: error in answer to {words!r}: {text}")
        self._send("error", quoted(text), ref=command.id)

    def _send(self, name: str, *arguments: str, ref: int | None = None) -> int:
        self._last_id += 2  # the server's ids are even
        reference = "" if ref is None else f"@{ref}"
        # The mode ``simple`` has no ids, except in replies to lines that have one.
        is_bare = self._is_simple and (ref is None or name == "stop")
        number = () if is_bare else (f"{self._last_id}{reference}",)
        self.out.append(" ".join((*number, name, *arguments)))
        return self._last_id
