"""Conformance games: games of one bot against a scripted opponent that has no process.

A game's record contains the data for a verdict.  Advice for a bot's author needs more: whether a line came in
pieces, whether the bot sent anything out of turn or after END, when it ended, and which processes it left
behind.  Here one bot is observed that closely.  Its opponent is a function, which can also end a game at any
moment.

Time is charged as in games between processes: the time that a busy host kept the bot waiting is not charged,
in its turns, at its start and after END.
"""

import contextlib
import select
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

from referee.conformance.script import (
    ConformanceGame,
    FragmentedLine,
    Observations,
    TestOpponent,
    UnexpectedLine,
)
from referee.conformance.shutdown import POLL_S, ShutdownObserver, read_errors
from referee.errors import GameStoppedError, unexpected_errors_as_referee_errors
from referee.games.base import Side
from referee.judge.clock import MEASURE
from referee.judge.events import (
    BotExited,
    Event,
    InputClosed,
    LineReceived,
    NotStarted,
    Send,
    Sent,
    StartRead,
)
from referee.judge.limits import MIB
from referee.judge.match import carry_out
from referee.judge.results import GameRecord
from referee.playing import Job, adopting_orphans, basic_record, environment_of, new_match
from referee.process.bot import Bot, now
from referee.process.cpu_accounting import Reading, between
from referee.process.launch import NotRunnableError
from referee.process.process_tree import ProcessTree, has_counters
from referee.process.turn_timer import Grace, TurnTimer
from referee.session import (
    CLOSE_POLL_S,
    END_OF_OUTPUT_GRACE_S,
    KILL_LIMIT_S,
    LIMITS_POLL_S,
    START_POLL_S,
    AnyMatch,
    needs_counters_first,
    time_passed,
)

FORFEIT_LINE = "the examiner ends the game here"
"""The line by which the opponent loses on purpose: no message of the protocol."""
QUIET_S = 0.2
"""Most seconds that the opponent waits for a bot to stop sending: a bot that reads its lines at once is back
at reading within a millisecond; one that thinks on the opponent's time never is."""


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
    with adopting_orphans():
        match = new_match(job)
        bots: list[Bot | _NoProcess] = [_NoProcess(), _NoProcess()]
        # The bot is never suspended: lines that it sends on the opponent's turn are to be observed.
        timer = TurnTimer(bots, replace(job.control, ponder=MEASURE))
        started_at = datetime.now(UTC).isoformat(timespec="milliseconds")
        began = now()
        sends = match.start(began)

        def record(bots: Sequence[Bot], opponent_status: int) -> GameRecord:
            found = basic_record(job, match, bots, started_at, began, timer.clock)
            own = found.exit_status[index]
            statuses = (own, opponent_status) if index == 0 else (opponent_status, own)
            return replace(found, exit_status=statuses)

        with contextlib.closing(timer):
            try:
                bot = Bot(
                    index, job.players[index], environment_of(job), sandbox=job.sandbox, limits=job.limits
                )
            except NotRunnableError as error:
                match.handle(NotStarted(index, now(), str(error)))
                return ConformanceGame(record((), 0), Observations())
            bots[index] = bot
            try:
                session = _ConformanceSession(job, match, bot, bots, timer, opponent, enough_s, cancel_fd)
                session.play(sends)
                return ConformanceGame(record((bot,), session.opponent_status), session.observed)
            finally:
                bot.kill()
                bot.close()


class _NoProcess:
    """Placeholder for the bot that the opponent's script replaces."""

    tree: ProcessTree | None = None
    unfinished = ""


class _ConformanceSession:
    """Runs one match with one started bot, and observes the bot.  All waiting is in ``_wait``."""

    def __init__(
        self,
        job: Job,
        match: AnyMatch,
        bot: Bot,
        bots: Sequence[Bot | _NoProcess],
        timer: TurnTimer,
        opponent: TestOpponent,
        enough_s: float,
        cancel_fd: int | None,
    ) -> None:
        self._job, self._match, self._timer = job, match, timer
        self._bot, self._bots = bot, bots
        self._index, self._other = bot.index, 1 - bot.index
        self._opponent, self._enough_s, self._cancel_fd = opponent, enough_s, cancel_fd
        self.observed = Observations()
        self.opponent_status = 0
        """The opponent's exit status for the record."""
        self._replies = 0
        """Number of the opponent's replies."""
        self._has_swapped = False
        self._last_sent = ""
        """The last line that was sent to the bot."""
        self._fragment_began = 0.0
        self._fragment_reads = 0
        self._limits_due = 0.0
        self._at_start: Reading | None = None
        self._exit_reported = self._end_reported = False
        self._poll = select.poll()
        self._shutdown = ShutdownObserver(self.observed, self._poll)

    def play(self, sends: Sequence[Send]) -> None:
        """Play until the bot has ended; ``sends`` are the effects returned by the start of the match."""
        bot = self._bot
        bot.wait_ready()
        for descriptor in (bot.stdout, bot.errors, bot.exit_descriptor, self._cancel_fd):
            if descriptor is not None:
                self._poll.register(descriptor, select.POLLIN)
        self._referee(sends)
        self._record_usage()
        grace = Grace(self._timer, self._index, self._job.limits.end_grace_s)
        self._shutdown.observe(bot, grace, self._wait)
        bot.kill()
        until = now() + KILL_LIMIT_S
        while not bot.has_ended() and now() <= until:
            select.select([], [], [], POLL_S)
        bot.drain_errors()
        self.observed.stderr_bytes = bot.stderr.total

    def _referee(self, sends: Sequence[Send]) -> None:
        """Play until the match has a result."""
        match = self._match
        self._carry_out(sends)
        while match.result is None:
            if match.starting == self._other:
                self._handle(StartRead(self._other, now()))
            elif match.on_turn == self._other:
                self._play_opponents_move()
            else:
                if match.starting == self._index:
                    self._check_start()
                self._process_events(self._next_check_s())

    def _next_check_s(self) -> float:
        """Return the time until the next check, in seconds."""
        match = self._match
        if match.deadline is None:  # the game is over, or the judge waits for no player
            return 0.0
        left_s = match.deadline - now()
        if self._timer.is_measuring:
            left_s = min(left_s, self._timer.sample_due - now())
        if match.starting is not None:
            left_s = min(left_s, START_POLL_S)
        return max(0.0, min(left_s + 0.0005, LIMITS_POLL_S))

    def _check_start(self) -> None:
        """Check whether the bot has taken START, or closed its input."""
        bot = self._bot
        if bot.has_read_all():
            self._record_start()
            if self._index == Side.FIRST and not self._job.opening:
                self._timer.begin_turn(self._index)
            self._handle(StartRead(self._index, now()))
        elif bot.has_closed_input() and not self._exit_reported:
            self._handle(bot.closed_input_event(InputClosed(self._index, now()), END_OF_OUTPUT_GRACE_S))

    def _record_start(self) -> None:
        """Record the time and the counters when the bot has taken START, once."""
        bot, observed = self._bot, self.observed
        if observed.start_us is None:
            observed.start_us = round((now() - self._match.began) * 1e6)
            bot.drain_errors()
            observed.stderr_before_start = bot.stderr.total
            self._at_start = bot.tree.read() if bot.tree is not None and has_counters() else None

    def _record_unexpected(self, line: str) -> None:
        """Record a line that came out of turn.

        A reply to START;South does not count as such: it may come before START was seen to be taken.
        """
        answers_start = self._match.starting == self._index == 0 and self._last_sent.startswith("START;")
        if self._job.opening or not answers_start:
            self.observed.unexpected_lines.append(UnexpectedLine(line, self._last_sent))

    def _play_opponents_move(self) -> None:
        """Make the opponent's next move, after processing the lines that the bot sends before it."""
        opponent, match = self._opponent, self._match
        if opponent.waits and not self._wait_for_silence():
            return
        self._replies += 1
        stops = opponent.stops_at
        plays_on = self._has_swapped and opponent.plays_on_after_swap
        if (stops is not None and self._replies >= stops and not plays_on) or (
            now() > match.began + self._enough_s
        ):
            line = FORFEIT_LINE
        else:
            move = opponent.choose(match.game, match.state)
            is_swap = move == match.game.swap
            line = "SWAP" if is_swap else f"MOVE;{match.game.format_move(match.state, move)}"
        self._handle(LineReceived(self._other, now(), line))

    def _wait_for_silence(self) -> bool:
        """Process the bot's events until it is back at reading; return False if that ended the game."""
        bot = self._bot
        until = now() + QUIET_S
        while now() < until:
            self._process_events(POLL_S)
            if self._match.result is not None:
                return False
            if bot.has_read_all() and bot.tree is not None and bot.tree.activity() == "reading":
                break
        self._process_events(0.0)
        return self._match.result is None

    def _carry_out(self, sends: Sequence[Send]) -> None:
        match = self._match
        carry_out(match, sends, self._write)
        if match.on_turn is not None:
            self._timer.turn_begun(match.on_turn)

    def _write(self, send: Send) -> Event:
        """Send a line; the opponent receives its lines at once."""
        match, bot = self._match, self._bot
        if send.player != self._index:
            return Sent(send.player, now(), send.line)
        if send is match.gives_turn and match.starting is None:
            self._timer.begin_turn(self._index)
        event = bot.write(send.line)
        self._last_sent = send.line
        if isinstance(event, InputClosed):
            event = bot.closed_input_event(event, END_OF_OUTPUT_GRACE_S)
            self._exit_reported = True
        return event

    def _handle(self, event: Event) -> None:
        """Pass an event to the judge and carry out its effects."""
        match, index = self._match, self._index
        is_own_line = isinstance(event, LineReceived) and event.player == index
        if needs_counters_first(match, event):
            self._handle(time_passed(match, self._bots, self._timer, event.at))
            if match.result is not None:
                return
        elif (
            self._timer.is_measuring
            and isinstance(event, LineReceived)
            and event.player == index == match.on_turn
        ):  # the reply carries the counters of the turn
            event = event._replace(usage=self._timer.end_turn(index, event.at - match.turn_began))
        was_on_turn, was_starting, moves = match.on_turn == index, match.starting == index, len(match.moves)
        # The lines of a runtime that gives up are no replies, but no misunderstanding of the turn either.
        if isinstance(event, LineReceived) and is_own_line and not was_on_turn and not match.awaits_cause:
            self._record_unexpected(event.line)
        self._carry_out(match.handle(event))
        if was_starting and match.starting != index and match.result is None:
            self._record_start()
        if len(match.moves) > moves and match.moves[moves].player == index:
            self._has_swapped = self._has_swapped or match.moves[moves].move == "SWAP"
        if match.result is not None:
            # If the bot's own line ended the game, that was its reply; later output is none.
            self.observed.was_on_turn = was_on_turn and not is_own_line
        elif match.on_turn == index and self.opponent_status == 0 and self._opponent_exits_now():
            self.opponent_status = 1
            self._handle(BotExited(self._other, now(), 1, "", ""))

    def _opponent_exits_now(self) -> bool:
        turn = 1 + sum(move.player == self._index for move in self._match.moves)
        return self._opponent.leaves_in is not None and turn >= self._opponent.leaves_in

    def _process_events(self, timeout_s: float) -> None:
        """Wait for the bot's next event and pass it to the judge."""
        match, bot, timer = self._match, self._bot, self._timer
        ready = self._wait(timeout_s)
        if bot.errors in ready:  # first, since the events of the output may read it, too
            read_errors(bot, self._poll)
        if bot.stdout in ready and bot.output_ended_at is None:
            self._read_output()
        if match.result is None and bot.has_ended() and not self._exit_reported:
            self._exit_reported = True
            if match.starting == self._index:
                self._check_start()
            for event in bot.drain():
                if match.result is None:
                    self._handle(event)
            if match.result is None:
                self._handle(bot.exited_event())
        elif match.result is None and self._has_closed_output():
            self._end_reported = True
            self._handle(bot.output_closed_event())
        at = now()
        if timer.is_measuring and at >= timer.sample_due:
            timer.sample()
        if match.result is None and at >= self._limits_due:
            self._check_limits()
        if match.result is None and match.deadline is not None and at > match.deadline:
            self._handle(time_passed(match, self._bots, timer, at))

    def _read_output(self) -> None:
        bot = self._bot
        before = bot.unfinished
        for event in bot.read_output():
            if isinstance(event, LineReceived) and self._fragment_reads and before:
                span_us = round((now() - self._fragment_began) * 1e6)
                fragmented = FragmentedLine(event.line, self._fragment_reads + 1, span_us)
                self.observed.fragmented_lines.append(fragmented)
            before, self._fragment_reads = "", 0
            if self._match.result is None:
                self._handle(event)
            else:
                self._shutdown.record_output(getattr(event, "line", "").encode() + b"\n")
        if bot.output_ended_at is not None:
            self._poll.unregister(bot.stdout)
        elif bot.unfinished and bot.unfinished != before:
            if not self._fragment_reads:
                self._fragment_began = now()
            self._fragment_reads += 1

    def _record_usage(self) -> None:
        """Record the counters since START; to be called at the end of the game."""
        bot = self._bot
        self._record_memory()
        if self._at_start is not None and bot.tree is not None and not bot.has_ended():
            self.observed.cpu_us, self.observed.wait_us = between(self._at_start, bot.tree.read())

    def _record_memory(self) -> None:
        bot = self._bot
        if bot.tree is not None and not bot.has_ended():
            held = bot.tree.memory_bytes(self._job.limits.memory_mb * MIB)
            self.observed.memory_bytes = max(self.observed.memory_bytes, held)

    def _check_limits(self) -> None:
        bot = self._bot
        event = None if bot.has_ended() else bot.limit_passed()
        self._record_memory()
        self._limits_due = now() + (CLOSE_POLL_S if bot.is_near_a_limit else LIMITS_POLL_S)
        if event is not None:
            self._handle(event)

    def _has_closed_output(self) -> bool:
        """Return True if the output has ended and the process has not, even a moment later."""
        bot = self._bot
        if bot.output_ended_at is None or self._end_reported:
            return False
        until = now() + END_OF_OUTPUT_GRACE_S
        while not bot.has_ended() and now() < until:
            self._wait(POLL_S)
        return not bot.has_ended()

    def _wait(self, timeout_s: float) -> set[int]:
        """Wait for at most so many seconds and return the descriptors that are ready.

        Raises GameStoppedError.
        """
        if self._timer.is_measuring:
            self._timer.mark()
        ready = {descriptor for descriptor, _ in self._poll.poll(timeout_s * 1000)}
        if self._cancel_fd in ready:
            raise GameStoppedError("the game was cancelled by the tournament runner")
        return ready
