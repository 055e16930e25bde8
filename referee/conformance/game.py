"""Conformance games: games of one bot against a scripted opponent that has no process.

A game's record contains the data for a verdict.  Advice for a bot's author needs more: whether a line came in
pieces, whether the bot sent anything out of turn or after END, when it ended, and which processes it left
behind.  Here one bot is observed that closely.  Its opponent is a function, which can also end a game at any
moment.

Time is charged as in games between processes: the time that a busy host kept the bot waiting is not charged,
in its turns, at its start and after END.
"""

import os
from functools import partial

from protocol.codec import encode
from protocol.messages import SWAP_WORD, End, Next
from referee.adapters.game_follower import GameFollower
from referee.conformance.script import (
    FORFEIT_LINE,
    ConformanceGame,
    FragmentedLine,
    Observations,
    TestOpponent,
)
from referee.errors import RefereeError, unexpected_errors_as_referee_errors
from referee.games.base import Side
from referee.games.catalog import parse_game
from referee.judge.events import Event, LimitPassed, LineReceived, Sent
from referee.judge.limits import MIB
from referee.playing import Job, StartPlayer, environment_of, play_alone
from referee.process.bot import Bot
from referee.process.cpu_accounting import Reading, between
from referee.process.launch import wait_readable
from referee.process.player import SessionPlayer, now
from referee.process.process_tree import has_counters
from referee.process.procfs import surviving_programs
from referee.process.turn_timer import Grace
from referee.session import AnyMatch, Session

END_LINE = encode(End())
POLL_S = 0.0005
"""Seconds between two checks of a condition for which there is no event to wait for."""
QUIET_S = 0.2
"""Most seconds that the opponent waits for a bot to stop sending: a bot that reads its lines at once is back
at reading within a millisecond; one that thinks on the opponent's time never is."""
LEFT_OPEN_S = 0.1
"""Seconds of charged time to wait for the end of the output, and of the bot's helpers, after the bot's end.

Helpers that end with the bot need a moment for it.  If the output is still open after this time, another
process holds it open."""
EXAMINED_BYTES, EXAMINED_AT_ONCE = 1 << 20, 1 << 16
"""Bytes read of the output after the end of the game, and of one read: more would not add information."""


@unexpected_errors_as_referee_errors()
def play_conformance_game(
    job: Job,
    index: int,
    opponent: TestOpponent,
    *,
    enough_s: float = float("inf"),
    cancel_fd: int | None = None,
) -> ConformanceGame:
    """Play a game of one player of a job against an opponent that has no process.

    For a process that does nothing else and has no other children, like ``play_alone``.

    Args:
        job: The game.
        index: The player that is the bot.
        opponent: The script of the other player.
        enough_s: Seconds after which the opponent loses on purpose, at its next reply.
        cancel_fd: Descriptor that becomes readable when the game is cancelled.

    Raises:
        GameStoppedError: The game was cancelled.
        RefereeError: The referee or its host failed.
    """
    observed = Observations()
    scripted = _ScriptedPlayer(1 - index, job, opponent, enough_s)
    start_bot = partial(_ObservedBot, job, scripted, observed)

    async def wind_down(session: Session) -> None:
        await scripted.bot.observe_shutdown(session)

    players: dict[int, StartPlayer] = {index: start_bot, 1 - index: lambda index, match: scripted}
    record = play_alone(job, cancel_fd=cancel_fd, players=players, wind_down=wind_down)
    observed.add_turns(record, index)
    return ConformanceGame(record, observed)


class _ObservedBot(Bot):
    """The bot, whose output is observed beside what the judge receives, also on the opponent's turn."""

    is_observed = True

    def __init__(
        self, job: Job, opponent: "_ScriptedPlayer", observed: Observations, index: int, match: AnyMatch
    ) -> None:
        player, environment = job.players[index], environment_of(job, index)
        super().__init__(index, player, environment, sandbox=job.sandbox, limits=job.limits)
        self.match = match
        self._opponent, self._observed = opponent, observed
        opponent.bot = self
        self._sent: list[str] = []
        """All lines of the bot until the end of the game."""
        self._pieces: list[float] = []
        """Times of the reads of the pieces of an incomplete line."""
        self._at_first_piece: Reading | None = None
        """Counters at the first of these reads."""
        self._at_start: Reading | None = None

    def write(self, line: str) -> Event:
        """Send a line; a bot that has sent lines before its START takes it at once."""
        if line == END_LINE:
            self._record_usage()
        event = super().write(line)
        if self._sent and type(event) is Sent:
            self._record_start()
        if line.endswith(f";{Next.YOU}"):
            self._opponent.bot_thinks(len(self._sent))
        return event

    def has_read_all(self) -> bool:
        """Return True if the bot has read all lines; while it starts, it has taken START then."""
        has_read = super().has_read_all()
        if has_read and self.match.starting == self.index:
            self._record_start()
            if self.index == Side.FIRST and not self.match.opening:
                self._opponent.bot_thinks(len(self._sent))
        return has_read

    def read_output(self) -> list[Event]:
        """Read once, and record lines that come in pieces."""
        if self._opponent.has_left:
            return []  # its end, which ends the game, is the next event
        before = self.unfinished
        events = super().read_output()
        for event in events:
            if isinstance(event, LineReceived):
                self._sent.append(event.line)
                if self._pieces:
                    fragmented = FragmentedLine(event.line, len(self._pieces) + 1, self._span_us())
                    self._observed.fragmented_lines.append(fragmented)
            before = ""
            self._pieces.clear()
        self._record_long_line()
        if self._sent and self.match.starting == self.index:
            self._record_start()
        if self.unfinished and self.unfinished != before:
            if not self._pieces:
                self._at_first_piece = self._counters()
            self._pieces.append(now())
        return events

    def _span_us(self) -> int:
        """Return the time since the first piece of a line, less the bot's waits for a CPU."""
        span_us = round((now() - self._pieces[0]) * 1e6)
        counters = self._counters()
        if self._at_first_piece is None or counters is None:
            return span_us
        return max(0, span_us - between(self._at_first_piece, counters).wait_us)

    def _counters(self) -> Reading | None:
        """Return the bot's counters; None where the system has none, and after its end."""
        if self.tree is None or self.has_ended() or not has_counters():
            return None
        return self.tree.read()

    def read_errors(self) -> bool:
        """Read once from standard error; what comes after START is not counted as coming before."""
        before = self.stderr.total
        if self.match.starting == self.index and super().has_read_all():
            self._record_start()
        super().read_errors()
        self._observed.stderr_bytes = self.stderr.total
        return self.stderr.total > before

    def discard_output(self) -> bool:
        """Read once after the game, and record the output; return False if no more is examined."""
        try:
            data = os.read(self.stdout, EXAMINED_AT_ONCE)
        except BlockingIOError:
            return True
        if not data:
            self.output_ended_at = now()
            return False
        self._observed.add_output(data)
        if self._lines.overflow is not None:
            self._lines.feed(data)
            self._record_long_line()
        return self._observed.after_end_bytes <= EXAMINED_BYTES

    def limit_passed(self) -> LimitPassed | None:
        """Check the limits, and record the memory in use."""
        self._record_memory()
        return super().limit_passed()

    def _record_long_line(self) -> None:
        """Record how much of a line that is too long was read."""
        self._observed.long_line_bytes = self._lines.overflow_bytes
        self._observed.has_long_line_ended = self._lines.has_overflow_ended

    def _record_memory(self) -> None:
        if self.tree is not None and not self.has_ended():
            held = self.tree.memory_bytes(self.limits.memory_mb * MIB)
            self._observed.memory_bytes = max(self._observed.memory_bytes, held)

    def _record_start(self) -> None:
        """Record the time and the counters when the bot has taken START, once."""
        observed = self._observed
        if observed.start_us is None:
            observed.start_us = round((now() - self.match.began) * 1e6)
            self.drain_errors()
            observed.stderr_before_start = self.stderr.total
            self._at_start = self._counters()

    def _record_usage(self) -> None:
        """Record the counters since START; to be called at the end of the game."""
        self._record_memory()
        counters = self._counters()
        if self._at_start is not None and counters is not None:
            self._observed.cpu_us, self._observed.wait_us = between(self._at_start, counters)

    async def observe_shutdown(self, session: Session) -> None:
        """Observe the bot from END until it has ended by itself or its grace is over.

        Raises:
            RefereeError: The host kept the bot waiting for too long.
        """
        observed, wire = self._observed, self.match.wire
        judged = sum(line.player == self.index and line.direction == "from" for line in wire)
        for line in self._sent[judged:]:  # they came in the last read, after the verdict
            observed.add_output(line.encode() + b"\n")
        grace = Grace(session.timer, self.index, self.limits.end_grace_s)
        await session.wind_down(lambda: 0.0 if grace.is_over() else max(POLL_S, grace.wait_s()))
        if not self.has_ended():
            if grace.is_hosts_fault:
                raise RefereeError(
                    f"the end of {self.player.name} after END could not be timed: this host kept the bot "
                    "waiting for too long"
                )
            observed.activity = self.tree.activity() if self.tree is not None else ""
            return
        observed.ended_us = grace.spent_us()
        left_open = grace.again(LEFT_OPEN_S)
        while (left := self._left_behind()) or self.output_ended_at is None:
            if left_open.is_over():
                break
            await session.drain_once(min(POLL_S, left_open.wait_s()))
        observed.left_behind = left
        observed.holds_output = bool(left) and self.output_ended_at is None

    def _left_behind(self) -> list[str]:
        """Return the names of the programs that the bot has left behind."""
        return surviving_programs(self.pid, self.tree.pids() if self.tree is not None else [])


class _ScriptedPlayer(SessionPlayer):
    """The opponent.  Its pipe is readable from the beginning of its turn until it has replied."""

    def __init__(self, index: int, job: Job, script: TestOpponent, enough_s: float) -> None:
        super().__init__(index, job.players[index])
        self.bot: _ObservedBot
        """The other player; set when that player is started."""
        self._script, self._enough_s = script, enough_s
        self._follower = GameFollower(parse_game(job.game), opening=bool(job.opening))
        self.has_left = False
        """True if the opponent's process is to be reported as ended."""
        self._quiet_until = 0.0

    def receive(self, line: str) -> None:
        """Begin a turn, if the line gives one."""
        if self._follower.receive(line):
            self._quiet_until = now() + QUIET_S
            self.send("")
        elif self._follower.over:
            self.end(int(self.has_left))

    def bot_thinks(self, lines: int) -> None:
        """Leave the game if the script requires that in this turn of the bot; not after the bot's reply."""
        moves = sum(move.player != self.index for move in self.bot.match.moves)
        leaves_in = self._script.leaves_in
        if leaves_in is not None and leaves_in <= moves + 1 and lines == moves and not self.has_left:
            self.has_left = True
            self.end(1)

    def read_output(self) -> list[Event]:
        """Return the reply, if the bot is silent or the opponent does not wait for that."""
        if self._script.waits and not self._is_bot_silent():
            return []
        return [LineReceived(self.index, now(), self._reply())] if super().read_output() else []

    def _is_bot_silent(self) -> bool:
        """Return True if the bot is back at reading, or has had the time to be; wait for a moment."""
        bot = self.bot
        if now() >= self._quiet_until:
            return True
        # The activity is read first: a line that the bot wrote before it went back to reading is then found.
        is_reading = bot.has_read_all() and bot.tree is not None and bot.tree.activity() == "reading"
        if bot.output_ended_at is None and wait_readable(bot.stdout, POLL_S):
            return False  # its lines come first
        return is_reading

    def _reply(self) -> str:
        """Return the opponent's next line: a move, or the line that ends the game."""
        match, script = self.bot.match, self._script
        replies = sum(move.player == self.index for move in match.moves) + 1
        has_swapped = any(move.player != self.index and move.move == SWAP_WORD for move in match.moves)
        stops = script.stops_at is not None and replies >= script.stops_at
        plays_on = has_swapped and script.plays_on_after_swap
        if (stops and not plays_on) or now() > match.began + self._enough_s:
            return FORFEIT_LINE
        return self._follower.reply(script.choose(match.game, match.state))
