"""Moves and wire lines of a game as the lines that the rules do not give, and numbers for the times (pure).

Theory of operation.  A ``Script`` holds the conversation that the rules and the protocol prescribe: after
each reply of a bot it has the lines that the referee sends next.  Of a line that the script expects, only its
time is written, and of an expected reply the index of its move among the legal ones as well.  Other lines are
kept as texts: those of a bot that sends early, or that makes a fault.

Times are written as differences.  The time of a move follows from the lines around it, except where its
counters were read; what does not follow is kept as an exception.

Only games of the catalog have a script: the rules of another distribution's game may not be there when the
record is read.
"""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from protocol.codec import encode
from protocol.errors import ProtocolError
from protocol.messages import SWAP_WORD, Move
from referee.games.base import MoveError, Side
from referee.games.catalog import find_game, parse_game
from referee.games.opening import OpeningError, parse_opening
from referee.games.spec import SpecError, parse_spec
from referee.judge.clock import Clock, TimeControl
from referee.judge.conversations import Conversations
from tournaments.results.number_stream import Frequencies, NumberReader, NumberWriter

COUNTED_FROM_US = 1000
"""Wall time of a turn from which on its counters may be there, which takes a bit.

None are read in shorter turns (referee/process/turn_timer.py).
"""

Line = tuple[int, str, str]
"""Player, direction and text of a wire line."""
_MOVE = "MOVE;"
TO, FROM = "to", "from"
"""Directions of wire lines."""


class NoScriptError(ValueError):
    """The conversation of this game does not follow from the rules."""


@dataclass(frozen=True)
class ScriptSettings:
    """The settings of a game on which its conversation depends."""

    game: str
    """Spec text of the rules."""
    opening: str
    timed: tuple[bool, bool]
    """True for each bot that is sent TIME lines."""
    controls: tuple[TimeControl, TimeControl]
    """Time control of each player."""


class Script:
    """The conversation that the rules prescribe, as far as the replies are known.

    Raises NoScriptError for a game that the catalog does not have.
    """

    def __init__(self, settings: ScriptSettings) -> None:
        try:
            entry = find_game(parse_spec(settings.game).name)
            if entry is None or entry.source:
                raise NoScriptError(f"{settings.game} is no game of the catalog")
            rules = self._rules = parse_game(settings.game)
            opening = parse_opening(rules, settings.opening)
        except (SpecError, OpeningError) as error:
            raise NoScriptError(str(error)) from error
        self._state = opening[-1].state if opening else rules.initial_state()
        self._legal: Sequence[Any] | None = None
        self._last_seat = rules.seats(rules.initial_state())[Side.SECOND]
        self._seats = rules.seats(self._state)
        self._clocks = list(map(Clock.fresh, settings.controls))
        talk = self._conversations = Conversations(rules, opening, settings.timed, self)
        sends = [*talk.start(Side.SECOND, self._seats[1]), *talk.start(Side.FIRST, self._seats[0])]
        if opening:
            sends += talk.announce_opening()
        self.pending: deque[Line] = deque((int(send.player), TO, send.line) for send in sends)
        """Lines that the referee sends next."""
        self.on_turn: int | None = int(rules.to_move(self._state)) if opening else int(Side.FIRST)
        """Player whose reply is expected after them; None at the end."""
        self.early: tuple[deque[str], deque[str]] = (deque(), deque())
        """Lines that each player sent before its turn."""

    @property
    def shown_ms(self) -> tuple[int, int]:
        """Values of both clocks, for TIME lines."""
        first, second = self._clocks
        return first.shown_ms, second.shown_ms

    @property
    def board(self) -> str:
        """The position as it is sent to bots."""
        return self._rules.board_text(self._state)

    @property
    def legal(self) -> Sequence[Any]:
        """All legal moves, in the order of the rules."""
        if self._legal is None:
            self._legal = self._rules.legal_moves(self._state)
        return self._legal

    def choice(self, index: int) -> str:
        """Return the line of a legal move.  Raises IndexError."""
        rules, move = self._rules, self.legal[index]
        return SWAP_WORD if move == rules.swap else encode(Move(rules.format_move(self._state, move)))

    def index(self, line: str) -> int | None:
        """Return the index of the legal move whose line this is; None if there is none."""
        rules = self._rules
        try:
            move = (
                rules.swap if line == SWAP_WORD else rules.parse_move(self._state, line.removeprefix(_MOVE))
            )
        except MoveError:
            return None
        legal = self.legal
        if move not in legal:
            return None
        index = legal.index(move)
        return index if self.choice(index) == line else None

    def reply(self, line: str) -> tuple[int, str] | None:
        """Play the reply of the player on turn; return the player and its move, or None at a fault.

        After a move, ``announce`` must be called next; after a fault the script has ended.
        """
        player, talk, rules = self.on_turn, self._conversations, self._rules
        assert player is not None
        self.on_turn = None
        try:
            move = talk.receive(player, line, self._state)
            following = rules.apply(self._state, move)
        except (ProtocolError, MoveError):
            return None
        self._played = player, rules.format_move(self._state, move), line == SWAP_WORD
        self._state, self._legal = following, None
        return self._played[:2]

    def announce(self, charged_us: int) -> None:
        """Expect the lines that announce the move of the last reply, which was charged so much time."""
        talk, rules, state = self._conversations, self._rules, self._state
        mover, text, is_swap = self._played
        self._clocks[mover] = self._clocks[mover].after(charged_us / 1e6)
        if is_swap:
            self._seats = rules.seats(state)
        if rules.outcome(state) is None:
            self.on_turn = int(rules.to_move(state))
            but = mover if is_swap and mover != self.on_turn else None
            sends = talk.announce_move(text, state, but=but)
        else:
            order = (0, 1) if self._seats[0] == self._last_seat else (1, 0)
            sends = [*talk.announce_last_move(text, state), *talk.end(order)]
        self.pending.extend((int(send.player), TO, send.line) for send in sends)


class Texts(NamedTuple):
    """The part of a packed conversation that is no number of the stream."""

    moves: int
    """Number of moves.  A reply after the last one is a fault, such as one that came too late."""
    runs: list[int]
    """Number of expected lines before the first other line, between other lines, and after the last one."""
    others: list[Line]
    """Lines that the script does not expect."""
    exceptions: list[tuple[int, int, int, bool]]
    """Index of a move, its wall time and charged time in microseconds, and whether its counters were read,
    where one of them does not follow from the others and from the lines."""


class _Conversation(ABC):
    """The state that is the same when a conversation is packed and when it is unpacked."""

    def __init__(self, settings: ScriptSettings, moves: int) -> None:
        self.script = Script(settings)
        self.count = moves
        """Number of moves of the whole game."""
        self.at_us = 0
        """Time of the last line."""
        self.since_us = 0
        """Time of the last line that was sent."""
        self.sends = (Frequencies(), Frequencies())
        """Times of the first line that is sent after a reply, and of further ones."""
        self.replies = (Frequencies(), Frequencies())
        """Times of each player's replies."""
        self.presence = Frequencies()
        """Flags of turns: 1 for a turn with counters, otherwise 0."""
        self.others = Frequencies()
        self.counters = tuple((Frequencies(), Frequencies(), Frequencies()) for _ in range(2))
        self.after_reply = True
        """True if the last line is a reply, or if there was no line yet."""
        self.played = 0
        """Number of moves so far."""

    def frequencies(self) -> Frequencies:
        """Return the frequencies of the next expected line's time.  Raises NoScriptError if there is none."""
        if self.script.pending:
            return self.sends[not self.after_reply]
        if self.script.on_turn is None:
            raise NoScriptError("no line is expected any more")
        return self.replies[self.script.on_turn]

    def settle(self) -> None:
        """Play the replies that were sent before their turn."""
        script = self.script
        while not script.pending and script.on_turn is not None and script.early[script.on_turn]:
            self.play(script.early[script.on_turn].popleft(), 0)

    def play(self, line: str, wall_us: int) -> None:
        """Play a reply, whose wall time is expected to be this, and code its times."""
        played = self.script.reply(line)
        if played is not None and self.played < self.count:
            self.script.announce(self.move(*played, wall_us))
            self.played += 1

    @abstractmethod
    def move(self, player: int, text: str, wall_us: int) -> int:
        """Code the times of a move; return its charged time."""

    def line(self, line: Line, *, is_expected: bool) -> None:
        """Follow a line whose time was coded."""
        script, (player, direction, text) = self.script, line
        is_reply = direction == FROM and player == script.on_turn and not script.pending
        if is_expected and not is_reply:
            script.pending.popleft()
        if direction == TO:
            self.since_us = self.at_us
        elif not is_reply and player in (0, 1):
            script.early[player].append(text)
        self.after_reply = direction == FROM
        if is_reply:
            self.play(text, self.at_us - self.since_us)


class _Packer(_Conversation):
    """A conversation that is packed."""

    def __init__(self, settings: ScriptSettings, moves: Sequence[Sequence[Any]]) -> None:
        super().__init__(settings, len(moves))
        self.moves = moves
        self.stream = NumberWriter()
        self.texts = Texts(len(moves), [0], [], [])

    def add(self, line: Line, at_us: int) -> None:
        """Pack the next line."""
        self.settle()
        script, (player, direction, text) = self.script, line
        index: int | None = None
        if script.pending:
            is_expected = line == script.pending[0]
        elif direction == FROM and player == script.on_turn:
            index = script.index(text)
            is_expected = index is not None
        else:
            is_expected = False
        passed_us, self.at_us = at_us - self.at_us, at_us
        if is_expected:
            self.texts.runs[-1] += 1
            self.stream.number(self.frequencies(), passed_us)
            if index is not None:
                self.stream.choice(index, len(script.legal))
        else:
            self.texts.runs.append(0)
            self.texts.others.append(line)
            self.stream.number(self.others, passed_us)
        self.line(line, is_expected=is_expected)

    def move(self, player: int, text: str, wall_us: int) -> int:
        """See ``_Conversation``."""
        if tuple(self.moves[self.played][:2]) != (player, text):
            raise NoScriptError("its moves do not follow from its lines")
        wall, charged, *counters = self.moves[self.played][2:]
        has_counters = None not in counters
        if not has_counters and any(counter is not None for counter in counters):
            raise NoScriptError("it has a part of the counters of a turn")
        is_short = wall_us < COUNTED_FROM_US
        if (wall, charged) != (wall_us, expected_charge(wall_us, counters)) or (is_short and has_counters):
            self.texts.exceptions.append((self.played, wall, charged, has_counters))
        elif not is_short:
            self.stream.number(self.presence, has_counters)
        if has_counters:
            cpu, wait, referee_wait = counters
            kinds = self.counters[player]
            self.stream.number(kinds[0], wait)
            self.stream.number(kinds[1], referee_wait)
            self.stream.signed(kinds[2], wall - wait - referee_wait - cpu)
        return int(charged)


class _Unpacker(_Conversation):
    """A conversation that is unpacked."""

    def __init__(self, settings: ScriptSettings, texts: Texts, stream: NumberReader) -> None:
        super().__init__(settings, texts.moves)
        self.stream = stream
        self.exceptions = {index: rest for index, *rest in texts.exceptions}
        self.moves: list[tuple[Any, ...]] = []
        self.wire: list[tuple[int, str, str, int]] = []

    def expected(self) -> None:
        """Unpack a line that the script expects."""
        self.settle()
        script = self.script
        self.at_us += self.stream.number(self.frequencies())
        if script.pending:
            line = script.pending[0]
        else:
            assert script.on_turn is not None  # ``frequencies`` raises otherwise
            index = self.stream.choice(len(script.legal))
            line = (script.on_turn, FROM, script.choice(index))
        self._append(line, is_expected=True)

    def other(self, line: Line) -> None:
        """Unpack a line that the script does not expect."""
        self.settle()
        self.at_us += self.stream.number(self.others)
        self._append(line, is_expected=False)

    def _append(self, line: Line, *, is_expected: bool) -> None:
        self.wire.append((*line, self.at_us))
        self.line(line, is_expected=is_expected)

    def move(self, player: int, text: str, wall_us: int) -> int:
        """See ``_Conversation``."""
        exception = self.exceptions.get(self.played)
        wall = wall_us if exception is None else exception[0]
        if exception is not None:
            has_counters = exception[2]
        else:
            has_counters = wall_us >= COUNTED_FROM_US and bool(self.stream.number(self.presence))
        counters: list[int | None] = [None, None, None]
        if has_counters:
            kinds = self.counters[player]
            wait, referee_wait = self.stream.number(kinds[0]), self.stream.number(kinds[1])
            counters = [wall - wait - referee_wait - self.stream.signed(kinds[2]), wait, referee_wait]
        charged: int = expected_charge(wall_us, counters) if exception is None else exception[1]
        self.moves.append((player, text, wall, charged, *counters))
        return charged


def expected_charge(wall_us: int, counters: Sequence[int | None]) -> int:
    """Return the charged time that a turn most often has; the rest of them are exceptions.

    The formula is that of the clock (referee/judge/clock.py) when this way of packing was made, and never
    changes.
    """
    cpu, wait, referee_wait = counters
    if cpu is None or wait is None or referee_wait is None:
        return wall_us
    return min(wall_us, max(wall_us - wait - referee_wait, cpu))


def pack_conversation(
    settings: ScriptSettings, moves: Sequence[Sequence[Any]], wire: Iterable[tuple[int, str, str, int]]
) -> tuple[Texts, bytes, str]:
    """Return the packed moves and lines, and the board at their end.

    Args:
        settings: The settings of the game.
        moves: Rows with the fields of MoveRecord.
        wire: Rows with the fields of WireLine.

    Raises:
        NoScriptError: The game cannot be packed in this way.
        StreamError: A number cannot be written.
    """
    packer = _Packer(settings, moves)
    for player, direction, text, at_us in wire:
        packer.add((player, direction, text), at_us)
    packer.settle()
    if packer.played != len(moves):
        raise NoScriptError("its moves do not follow from its lines")
    return packer.texts, packer.stream.content(), packer.script.board


def unpack_conversation(
    settings: ScriptSettings, texts: Texts, stream: bytes
) -> tuple[list[tuple[Any, ...]], list[tuple[int, str, str, int]], str]:
    """Return what ``pack_conversation`` packed: moves, lines and the last board.

    Raises NoScriptError, StreamError or LookupError for a damaged one.
    """
    unpacker = _Unpacker(settings, texts, NumberReader(stream))
    for number, run in enumerate(texts.runs):
        for _ in range(run):
            unpacker.expected()
        if number < len(texts.others):
            player, direction, text = texts.others[number]
            unpacker.other((player, direction, text))
    unpacker.settle()
    unpacker.stream.end()
    return unpacker.moves, unpacker.wire, unpacker.script.board
