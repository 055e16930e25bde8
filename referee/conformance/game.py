"""Conformance games: games of one bot against a scripted opponent that has no process.

A game's record contains the data for a verdict.  Advice for a bot's author needs more: whether a line came in
pieces, whether the bot sent anything out of turn or after END, when it ended, and which processes it left
behind.  Here one bot is observed that closely.  Its opponent is a function, which can also end a game at any
moment.

Time is charged as in games between processes: the time that a busy host kept the bot waiting is not charged,
in its turns, at its start and after END.
"""

import os

from protocol.codec import encode
from protocol.messages import SWAP_WORD, End, Next
from referee.adapters.game_follower import GameFollower
from referee.conformance.script import ConformanceGame, FragmentedLine, Observations, TestOpponent
from referee.conformance.shutdown import POLL_S, observe_shutdown
from referee.errors import unexpected_errors_as_referee_errors
from referee.games.base import Side
from referee.judge.events import Event, LimitPassed, LineReceived, Sent
from referee.judge.limits import MIB
from referee.playing import Job, environment_of, play_alone
from referee.process.bot import Bot
from referee.process.cpu_accounting import Reading, between
from referee.process.launch import wait_readable
from referee.process.player import SessionPlayer, now
from referee.process.process_tree import has_counters
from referee.session import AnyMatch, Session

FORFEIT_LINE = "the examiner ends the game here"
"""The line by which the opponent loses on purpose: no message of the protocol."""
END_LINE = encode(End())
QUIET_S = 0.2
"""Most seconds that the opponent waits for a bot to stop sending: a bot that reads its lines at once is back
at reading within a millisecond; one that thinks on the opponent's time never is."""
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
    scripted = _ScriptedPlayer(1 - index, job, opponent, enough_s)
    bots: list[_ObservedBot] = []

    def start_bot(index: int, match: AnyMatch) -> SessionPlayer:
        bots.append(_ObservedBot(index, job, match, scripted))
        return bots[0]

    async def wind_down(session: Session) -> None:
        bots[0].record_rest()
        await observe_shutdown(bots[0], bots[0].observed, session, job.limits.end_grace_s)

    players = {index: start_bot, 1 - index: scripted.join}
    record = play_alone(job, cancel_fd=cancel_fd, players=players, wind_down=wind_down)
    if not bots:  # its command cannot be run
        return ConformanceGame(record, Observations())
    observed = bots[0].observed
    observed.stderr_bytes = bots[0].stderr.total
    observed.add_turns(record, index)
    return ConformanceGame(record, observed)


class _ObservedBot(Bot):
    """The bot, whose output is observed beside what the judge receives, also on the opponent's turn."""

    is_observed = True

    def __init__(self, index: int, job: Job, match: AnyMatch, opponent: "_ScriptedPlayer") -> None:
        player, environment = job.players[index], environment_of(job, index)
        super().__init__(index, player, environment, sandbox=job.sandbox, limits=job.limits)
        self.observed = Observations()
        opponent.bot = self
        self._match, self._opponent = match, opponent
        self._sent: list[str] = []
        """All lines of the bot until the end of the game."""
        self._fragment_began = 0.0
        self._fragment_reads = 0
        self._at_start: Reading | None = None

    def write(self, line: str) -> Event:
        """Send a line; a bot that has sent lines before its START takes it at once."""
        if line == END_LINE:
            self._record_usage()
        event = super().write(line)
        if self._sent and type(event) is Sent:
            self._record_start()
        if line.endswith(f";{Next.YOU}"):
            self._begin_turn()
        return event

    def has_read_all(self) -> bool:
        """Return True if the bot has read all lines; while it starts, it has taken START then."""
        if not super().has_read_all():
            return False
        if self._match.starting == self.index:
            self._record_start()
            if self.index == Side.FIRST and not self._match.opening:
                self._begin_turn()
        return True

    def _begin_turn(self) -> None:
        """Let the opponent leave if it is to do so in this turn, which no earlier line answers."""
        moves = sum(move.player == self.index for move in self._match.moves)
        if len(self._sent) == moves:
            self._opponent.bot_thinks(moves + 1)

    def read_output(self) -> list[Event]:
        """Read once, and record lines that come in pieces."""
        if self._opponent.has_left:
            return []  # its end, which ends the game, is the next event
        before = self.unfinished
        events = super().read_output()
        for event in events:
            if isinstance(event, LineReceived):
                self._sent.append(event.line)
                if self._fragment_reads and before:
                    span_us = round((now() - self._fragment_began) * 1e6)
                    fragmented = FragmentedLine(event.line, self._fragment_reads + 1, span_us)
                    self.observed.fragmented_lines.append(fragmented)
            before, self._fragment_reads = "", 0
        if self._sent and self._match.starting == self.index:
            self._record_start()
        if self.unfinished and self.unfinished != before:
            if not self._fragment_reads:
                self._fragment_began = now()
            self._fragment_reads += 1
        return events

    def read_errors(self) -> bool:
        """Read once from standard error; what comes after START is not counted as coming before."""
        if self._match.starting == self.index and super().has_read_all():
            self._record_start()
        return super().read_errors()

    def discard_output(self) -> bool:
        """Read once after the game, and record the output; return False if no more is examined."""
        try:
            data = os.read(self.stdout, EXAMINED_AT_ONCE)
        except BlockingIOError:
            return True
        if not data:
            self.output_ended_at = now()
            return False
        self.observed.add_output(data)
        return self.observed.after_end_bytes <= EXAMINED_BYTES

    def limit_passed(self) -> LimitPassed | None:
        """Check the limits, and record the memory in use."""
        passed = super().limit_passed()
        self._record_memory()
        return passed

    def _record_memory(self) -> None:
        if self.tree is not None and not self.has_ended():
            held = self.tree.memory_bytes(self.limits.memory_mb * MIB)
            self.observed.memory_bytes = max(self.observed.memory_bytes, held)

    def _record_start(self) -> None:
        """Record the time and the counters when the bot has taken START, once."""
        observed = self.observed
        if observed.start_us is None:
            observed.start_us = round((now() - self._match.began) * 1e6)
            self.drain_errors()
            observed.stderr_before_start = self.stderr.total
            self._at_start = self.tree.read() if self.tree is not None and has_counters() else None

    def _record_usage(self) -> None:
        """Record the counters since START; to be called at the end of the game."""
        self._record_memory()
        if self._at_start is not None and self.tree is not None and not self.has_ended():
            self.observed.cpu_us, self.observed.wait_us = between(self._at_start, self.tree.read())

    def record_rest(self) -> None:
        """Record the lines of the last read that came after the verdict; once, after the game."""
        wire = self._match.wire
        judged = sum(line.player == self.index and line.direction == "from" for line in wire)
        for line in self._sent[judged:]:
            self.observed.add_output(line.encode() + b"\n")


class _ScriptedPlayer(SessionPlayer):
    """The opponent.  Its pipe is readable from the beginning of its turn until it has replied."""

    def __init__(self, index: int, job: Job, script: TestOpponent, enough_s: float) -> None:
        super().__init__(index, job.players[index])
        self.bot: _ObservedBot | None = None
        self._script, self._enough_s = script, enough_s
        self._replies = 0
        self.has_left = False
        """True if the opponent's process is to be reported as ended."""
        self._quiet_until = 0.0

    def join(self, index: int, match: AnyMatch) -> SessionPlayer:
        """Take part in a match."""
        self._match = match
        self._follower = GameFollower(match.game, opening=bool(match.opening))
        return self

    def receive(self, line: str) -> None:
        """Begin a turn, if the line gives one."""
        if self._follower.receive(line):
            self._quiet_until = now() + QUIET_S
            self.send("")
        elif self._follower.over:
            self.end(int(self.has_left))

    def bot_thinks(self, turn: int) -> None:
        """Leave the game, if that is to happen in this turn of the bot."""
        leaves_in = self._script.leaves_in
        if leaves_in is not None and turn >= leaves_in and not self.has_left:
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
        assert bot is not None
        if now() >= self._quiet_until:
            return True
        if bot.output_ended_at is None and wait_readable(bot.stdout, POLL_S):
            return False  # its lines come first
        return bot.has_read_all() and bot.tree is not None and bot.tree.activity() == "reading"

    def _reply(self) -> str:
        """Return the opponent's next line: a move, or the line that ends the game."""
        match, script = self._match, self._script
        self._replies += 1
        has_swapped = any(move.player != self.index and move.move == SWAP_WORD for move in match.moves)
        stops = script.stops_at is not None and self._replies >= script.stops_at
        if (stops and not (has_swapped and script.plays_on_after_swap)) or (
            now() > match.began + self._enough_s
        ):
            return FORFEIT_LINE
        return self._follower.reply(script.choose(match.game, match.state))
