"""Interviews: games of one bot against a scripted opponent without a process, to examine its behaviour.

A game's record contains what a verdict needs.  Advice for a bot's author needs more: whether a line came in
pieces, whether the bot sent anything out of turn or after END, when it ended, and what it left behind.  Here
one bot is watched that closely.  Its opponent is a function, which also makes it possible to end a game at
any moment.

Time is charged as in games: the time that a busy host kept the bot waiting is not charged, in its turns, at
its start and after END.
"""

import contextlib
import select
import signal
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from referee.conformance.aftermath import POLL_S, Aftermath, read_errors
from referee.conformance.script import ConformanceGame, Pieces, Seen, TestOpponent, Unasked
from referee.errors import RefereeError
from referee.games.base import Side
from referee.games.catalog import parse_game
from referee.games.opening import parse_opening
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
from referee.judge.match import Match, limits_of
from referee.judge.results import GameRecord
from referee.play import Job, environment_of
from referee.process.bot import Bot, now
from referee.process.cpu_accounting import Reading, between
from referee.process.launch import NotRunnableError
from referee.process.process_tree import ProcessTree, has_counters
from referee.process.subreaper import adopt_orphans, sweep_orphans
from referee.process.turn_timer import Grace, TurnTimer
from referee.session import (
    CLOSE_POLL_S,
    END_OF_OUTPUT_GRACE_S,
    KILL_LIMIT_S,
    LIMITS_POLL_S,
    START_POLL_S,
    needs_counters_first,
    time_passed,
)
from referee.version import VERSION

PARTING = "the examiner ends the game here"
"""The line by which an examiner loses on purpose: no message of the protocol."""
QUIET_S = 0.2
"""Most seconds that an examiner waits for a bot to stop sending: a bot that reads its lines at once is back
at reading within a millisecond; one that thinks on the opponent's time never is."""


def play_conformance_game(
    job: Job,
    index: int,
    examiner: TestOpponent,
    *,
    enough_s: float = float("inf"),
    leash: int | None = None,
) -> ConformanceGame:
    """Play a game of player ``index`` of a job against the examiner, which has no process.

    After ``enough_s`` seconds the examiner loses on purpose, at its next reply.

    For a process that does nothing else and has no other children, like ``play_alone``.  Raises RefereeError
    for failures of the referee, and if the ``leash`` became readable, which means that the interview was
    cancelled.
    """
    with contextlib.suppress(ValueError):  # as in play_alone
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    adopt_orphans()
    try:
        with contextlib.closing(_Talk(job, index, examiner, enough_s, leash)) as talk:
            return talk.lead()
    finally:
        sweep_orphans()


class _NoProcess:
    """Placeholder for the bot that the examiner replaces."""

    tree: ProcessTree | None = None
    unfinished = ""


class _Talk:
    """Driver of one judge and one bot.  It has one thread, which waits in ``_wait`` alone."""

    def __init__(
        self, job: Job, index: int, examiner: TestOpponent, enough_s: float, leash: int | None
    ) -> None:
        self.job = job
        self.index, self.other = index, 1 - index
        self.examiner = examiner
        self.enough_s = enough_s
        self.leash = leash
        self.game = parse_game(job.game)
        first, second = job.players
        self.match: Match[Any, Any] = Match(
            self.game,
            self.job.control,
            (first.name, second.name),
            parse_opening(self.game, job.opening),
            ("time" in first.capabilities, "time" in second.capabilities),
            job.limits.wire_bytes,
            limits_of(job.limits, job.sandbox.tier.value),
        )
        self.seen = Seen()
        self.bot: Bot | None = None
        self._bots: list[Bot | _NoProcess] = [_NoProcess(), _NoProcess()]
        # The bot is never suspended: lines that it sends on the examiner's turn are to be observed.
        self._time = TurnTimer(self._bots, replace(job.control, ponder=MEASURE))
        self._replies = 0
        self._has_swapped = False
        self._opponent_status: int | None = 0
        self._told = ""
        self._piece_began = 0.0
        self._piece_reads = 0
        self._limits_due = 0.0
        self._at_start: Reading | None = None
        self._exit_told = self._end_told = False
        self._poll = select.poll()
        self._aftermath = Aftermath(self.seen, self._poll)

    def lead(self) -> ConformanceGame:
        """Start the bot, play the game, watch the bot's end, and return the interview."""
        match = self.match
        started_at = datetime.now(UTC).isoformat(timespec="milliseconds")
        began = now()
        sends = match.start(began)
        try:
            self.bot = bot = Bot(
                self.index,
                self.job.players[self.index],
                environment_of(self.job),
                sandbox=self.job.sandbox,
                limits=self.job.limits,
            )
        except NotRunnableError as error:
            match.handle(NotStarted(self.index, now(), str(error)))
        else:
            self._bots[self.index] = bot
            bot.settle()
            self._watch(bot)
            self._referee(bot, sends)
            self._look_at_use(bot)
            grace = Grace(self._time, self.index, self.job.limits.end_grace_s)
            self._aftermath.watch(bot, grace, self._wait)
            bot.kill()
            self._wait_for_end(bot)
            bot.drain_errors()
            self.seen.stderr_bytes = bot.stderr.total
        return ConformanceGame(self._record(started_at, began), self.seen)

    def close(self) -> None:
        """End the bot, however the interview ended."""
        self._time.close()
        if self.bot is not None:
            self.bot.kill()
            self.bot.close()

    def _watch(self, bot: Bot) -> None:
        self._poll.register(bot.stdout, select.POLLIN)
        self._poll.register(bot.errors, select.POLLIN)
        if bot.exit_descriptor is not None:
            self._poll.register(bot.exit_descriptor, select.POLLIN)
        if self.leash is not None:
            self._poll.register(self.leash, select.POLLIN)

    def _referee(self, bot: Bot, sends: Sequence[Send]) -> None:
        match = self.match
        self._carry_out(bot, sends)
        while match.result is None:
            if match.starting == self.other:
                self._tell(bot, StartRead(self.other, now()))
            elif match.on_turn == self.other:
                self._examiner_replies(bot)
            else:
                if match.starting == self.index:
                    self._look_for_start(bot)
                self._hear(bot, self._patience_s())

    def _patience_s(self) -> float:
        """Return the time until the next check, in seconds."""
        match = self.match
        if match.deadline is None:  # the game is over, or the judge waits for no player
            return 0.0
        left_s = match.deadline - now()
        if self._time.is_looking:
            left_s = min(left_s, self._time.sample_due - now())
        if match.starting is not None:
            left_s = min(left_s, START_POLL_S)
        return max(0.0, min(left_s + 0.0005, LIMITS_POLL_S))

    def _look_for_start(self, bot: Bot) -> None:
        if bot.has_taken_all():
            self._has_started(bot)
            if self.index == Side.FIRST and not self.job.opening:
                self._time.turn_begins(self.index)
            self._tell(bot, StartRead(self.index, now()))
        elif bot.has_closed_input() and not self._exit_told:
            self._tell(bot, bot.why_closed(InputClosed(self.index, now()), END_OF_OUTPUT_GRACE_S))

    def _unasked(self, line: str) -> None:
        """Record a line that came out of turn.

        An answer to START;South does not count as such: it may come before START was seen to be taken.
        """
        answers_start = self.match.starting == self.index == 0 and self._told.startswith("START;")
        if self.job.opening or not answers_start:
            self.seen.unasked.append(Unasked(line, self._told))

    def _has_started(self, bot: Bot) -> None:
        if self.seen.start_us is None:
            self.seen.start_us = round((now() - self.match.began) * 1e6)
            bot.drain_errors()
            self.seen.stderr_before_start = bot.stderr.total
            self._at_start = bot.tree.read() if bot.tree is not None and has_counters() else None

    def _examiner_replies(self, bot: Bot) -> None:
        """Make the examiner's next move, after processing the lines that the bot sends before it."""
        if self.examiner.waits and not self._wait_for_silence(bot):
            return
        self._replies += 1
        stops = self.examiner.stops_at
        plays_on = self._has_swapped and self.examiner.plays_on_after_swap
        stops_now = stops is not None and self._replies >= stops and not plays_on
        if stops_now or now() > self.match.began + self.enough_s:
            self._tell(bot, LineReceived(self.other, now(), PARTING))
            return
        state = self.match.state
        move = self.examiner.choose(self.game, state)
        line = "SWAP" if move == self.game.swap else f"MOVE;{self.game.format_move(state, move)}"
        self._tell(bot, LineReceived(self.other, now(), line))

    def _wait_for_silence(self, bot: Bot) -> bool:
        """Process the bot's events until it is back at reading; return False if that ended the game."""
        until = now() + QUIET_S
        while now() < until:
            self._hear(bot, POLL_S)
            if self.match.result is not None:
                return False
            if bot.has_taken_all() and bot.tree is not None and bot.tree.doing() == "reading":
                break
        self._hear(bot, 0.0)
        return self.match.result is None

    def _carry_out(self, bot: Bot, sends: Sequence[Send]) -> None:
        """Send lines to the bot, as ``Driver._carry_out`` does."""
        match = self.match
        while sends:
            following: Sequence[Send] = ()
            for send in sends:
                event: Event = Sent(send.player, now(), send.line)
                if send.player == self.index:
                    if send is match.gives_turn and match.starting is None:
                        self._time.turn_begins(self.index)
                    event = bot.write(send.line)
                    self._told = send.line
                    if isinstance(event, InputClosed):
                        event = bot.why_closed(event, END_OF_OUTPUT_GRACE_S)
                        self._exit_told = True
                following = match.handle(event)
                if following and match.result is not None:
                    break
            sends = following
        if match.on_turn is not None:
            self._time.turn_has_begun(match.on_turn)

    def _tell(self, bot: Bot, event: Event) -> None:
        match = self.match
        if needs_counters_first(match, event):
            self._tell(bot, time_passed(match, self._bots, self._time, event.at))
            if match.result is not None:
                return
        elif isinstance(event, LineReceived) and event.player == self.index == match.on_turn:
            event = self._with_usage(event)
        on_turn, moves = match.on_turn, len(match.moves)
        spoke = isinstance(event, LineReceived) and event.player == self.index
        # The lines of a runtime that gives up are no replies, but no misunderstanding of the turn either.
        if isinstance(event, LineReceived) and spoke and on_turn != self.index and not match.awaits_cause:
            self._unasked(event.line)
        # If the bot's own line ended the game, that was its reply; later output is none.
        was_on_turn = on_turn == self.index and not spoke
        was_starting = match.starting == self.index
        self._carry_out(bot, match.handle(event))
        if was_starting and match.starting != self.index and match.result is None:
            self._has_started(bot)
        if len(match.moves) > moves and match.moves[moves].player == self.index:
            self._has_swapped = self._has_swapped or match.moves[moves].move == "SWAP"
        if match.result is not None:
            self.seen.was_on_turn = was_on_turn
        elif match.on_turn == self.index and self._opponent_status == 0 and self._must_leave():
            self._opponent_status = 1
            self._tell(bot, BotExited(self.other, now(), 1, "", ""))

    def _with_usage(self, reply: LineReceived) -> LineReceived:
        """Return the reply that ends the current turn, with the counters of the turn."""
        if not self._time.is_looking:
            return reply
        usage = self._time.turn_ends(self.index, reply.at - self.match.turn_began)
        return reply._replace(usage=usage)

    def _must_leave(self) -> bool:
        turn = 1 + sum(move.player == self.index for move in self.match.moves)
        return self.examiner.leaves_in is not None and turn >= self.examiner.leaves_in

    def _hear(self, bot: Bot, timeout_s: float) -> None:
        """Wait for the bot's next event and pass it to the judge."""
        match = self.match
        ready = self._wait(timeout_s)
        if bot.errors in ready:  # first, since the events of the output may read it, too
            read_errors(bot, self._poll)
        if bot.stdout in ready and bot.output_ended_at is None:
            self._read_output(bot)
        if match.result is None and bot.has_ended() and not self._exit_told:
            self._exit_told = True
            if match.starting == self.index:
                self._look_for_start(bot)
            for event in bot.drain():
                if match.result is None:
                    self._tell(bot, event)
            if match.result is None:
                self._tell(bot, bot.exited_event())
        elif match.result is None and self._has_closed_output(bot):
            self._end_told = True
            self._tell(bot, bot.output_closed_event())
        at = now()
        if self._time.is_looking and at >= self._time.sample_due:
            self._time.sample()
        if match.result is None and at >= self._limits_due:
            self._look_at_limits(bot)
        if match.result is None and match.deadline is not None and at > match.deadline:
            self._tell(bot, time_passed(match, self._bots, self._time, at))

    def _read_output(self, bot: Bot) -> None:
        before = bot.unfinished
        for event in bot.read_output():
            if isinstance(event, LineReceived) and self._piece_reads and before:
                span_us = round((now() - self._piece_began) * 1e6)
                self.seen.pieces.append(Pieces(event.line, self._piece_reads + 1, span_us))
            before, self._piece_reads = "", 0
            if self.match.result is None:
                self._tell(bot, event)
            else:
                self._aftermath.keep(getattr(event, "line", "").encode() + b"\n")
        if bot.output_ended_at is not None:
            self._poll.unregister(bot.stdout)
        elif bot.unfinished and bot.unfinished != before:
            if not self._piece_reads:
                self._piece_began = now()
            self._piece_reads += 1

    def _look_at_use(self, bot: Bot) -> None:
        """Record the counters since START; to be called at the end of the game."""
        self._look_at_memory(bot)
        if self._at_start is not None and bot.tree is not None and not bot.has_ended():
            self.seen.cpu_us, self.seen.wait_us = between(self._at_start, bot.tree.read())

    def _look_at_memory(self, bot: Bot) -> None:
        if bot.tree is not None and not bot.has_ended():
            held = bot.tree.memory_bytes(self.job.limits.memory_mb * MIB)
            self.seen.memory_bytes = max(self.seen.memory_bytes, held)

    def _look_at_limits(self, bot: Bot) -> None:
        event = None if bot.has_ended() else bot.limit_passed()
        self._look_at_memory(bot)
        self._limits_due = now() + (CLOSE_POLL_S if bot.is_near_a_limit else LIMITS_POLL_S)
        if event is not None:
            self._tell(bot, event)

    def _wait(self, timeout_s: float) -> set[int]:
        if self._time.is_looking:
            self._time.mark()
        ready = {descriptor for descriptor, _ in self._poll.poll(timeout_s * 1000)}
        if self.leash in ready:
            raise RefereeError("nobody wants this game any more")
        return ready

    def _has_closed_output(self, bot: Bot) -> bool:
        """Return True if the output has ended and the process has not, even a moment later."""
        if bot.output_ended_at is None or self._end_told:
            return False
        until = now() + END_OF_OUTPUT_GRACE_S
        while not bot.has_ended() and now() < until:
            self._wait(POLL_S)
        return not bot.has_ended()

    def _wait_for_end(self, bot: Bot) -> None:
        """Wait for the end of the killed bot.  Raises RefereeError if it does not end."""
        until = now() + KILL_LIMIT_S
        while not bot.has_ended():
            if now() > until:
                raise RefereeError(f"process {bot.pid} cannot be killed")
            select.select([], [], [], POLL_S)

    def _record(self, started_at: str, began: float) -> GameRecord:
        match, job = self.match, self.job
        assert match.result is not None
        stderr, statuses = ["", ""], [self._opponent_status, self._opponent_status]
        statuses[self.index] = None
        settings: list[dict[str, str]] = [{}, {}]
        if self.bot is not None:
            stderr[self.index], statuses[self.index] = self.bot.stderr.text(), self.bot.status
            settings[self.index] = self.bot.runtime_settings
        return GameRecord(
            key=job.key,
            game=self.game.name,
            players=job.players,
            control=job.control,
            moves=match.moves,
            wire=match.wire,
            facts=match.facts,
            final_state=self.game.board_text(match.state),
            result=match.result,
            stderr=(stderr[0], stderr[1]),
            exit_status=(statuses[0], statuses[1]),
            started_at=started_at,
            opening=job.opening,
            duration_us=round((now() - began) * 1e6),
            host="",
            versions={"kalarena": VERSION},
            limits=job.limits,
            sandbox=job.sandbox.tier.value,
            clock=self._time.clock,
            judge=match.judge,
            runtime_settings=(settings[0], settings[1]),
        )
