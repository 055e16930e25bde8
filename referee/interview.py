"""One bot in a conversation that we lead alone: the judge of every game, and an opponent without a process.

A game's record tells what a verdict needs.  Whoever wants to help a bot's author wants to know more: did a
line come in pieces, did the bot speak before it was asked, what did it say after END, when did it end, what
did it leave behind?  Here one bot is watched that closely.  Its opponent is a function, which also makes it
possible to end a game at any moment.

All time that passes is charged (``clock.WALL``): what is asked here is how a bot behaves.  How long it
thinks, and who is to blame for it, is for games to say.
"""

import contextlib
import select
import signal
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from importlib import metadata
from typing import Any

from referee.aftermath import LEFT_OPEN_S, POLL_S, Aftermath, read_errors
from referee.bot import Bot, now
from referee.clock import WALL
from referee.driver import CLOSE_POLL_S, KILL_LIMIT_S, LIMITS_POLL_S, START_POLL_S
from referee.errors import RefereeError
from referee.events import (
    BotExited,
    Event,
    InputClosed,
    LineReceived,
    NotStarted,
    Send,
    Sent,
    Taken,
    TimePassed,
)
from referee.games.catalog import parse_game
from referee.games.opening import parse_opening
from referee.interview_script import Examiner, Interview, Pieces, Seen, Unasked
from referee.launch import NotRunnableError
from referee.limits import MIB
from referee.match import Match
from referee.orphans import adopt_orphans, sweep_orphans
from referee.play import Job, environment_of
from referee.processes import Reading, between, has_counters
from referee.results import GameRecord

PARTING = "the examiner ends the game here"
"""The line with which an examiner loses on purpose: no message of the protocol."""
QUIET_S = 0.2
"""How long an examiner that waits for a bot's silence waits at most: a bot that reads its lines at once is
back at reading within a millisecond; one that thinks on the opponent's time never is."""


def interview(
    job: Job,
    index: int,
    examiner: Examiner,
    *,
    enough_s: float = float("inf"),
    leash: int | None = None,
) -> Interview:
    """Lead a conversation with player ``index`` of a job; the other one is the examiner, who has no process.

    After ``enough_s`` seconds the examiner loses on purpose, at its next reply.

    For a process that does nothing else and has no other children, as ``play_alone`` is.  Raises RefereeError
    for failures of ours, and when the ``leash`` became readable, which says that nobody wants it any more.
    """
    with contextlib.suppress(ValueError):  # as in play_alone
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    adopt_orphans()
    try:
        with contextlib.closing(_Talk(job, index, examiner, enough_s, leash)) as talk:
            return talk.lead()
    finally:
        sweep_orphans()


class _Talk:
    """The shell around one judge and one bot.  One thread, which waits in ``_wait`` alone."""

    def __init__(self, job: Job, index: int, examiner: Examiner, enough_s: float, leash: int | None) -> None:
        self.job = replace(job, control=replace(job.control, clock=WALL))
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
        )
        self.seen = Seen()
        self.bot: Bot | None = None
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

    def lead(self) -> Interview:
        """From the start of the process to its end."""
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
            bot.settle()
            self._watch(bot)
            self._referee(bot, sends)
            self._look_at_use(bot)
            self._aftermath.watch(bot, self.job.limits.end_grace_s, self._wait)
            bot.kill()
            self._wait_for_end(bot)
            bot.drain_errors()
            self.seen.stderr_bytes = bot.stderr.total
        return Interview(self._record(started_at, began), self.seen)

    def close(self) -> None:
        """End the bot, however we got here."""
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
                self._tell(bot, Taken(self.other, now()))
            elif match.on_turn == self.other:
                self._examiner_replies(bot)
            else:
                if match.starting == self.index:
                    self._look_for_start(bot)
                self._hear(bot, self._patience_s())

    def _patience_s(self) -> float:
        """How long nothing needs to be looked at."""
        match = self.match
        if match.deadline is None:  # it is over, or the judge waits for nobody
            return 0.0
        left_s = match.deadline - now()
        if match.starting is not None:
            left_s = min(left_s, START_POLL_S)
        return max(0.0, min(left_s + 0.0005, LIMITS_POLL_S))

    def _look_for_start(self, bot: Bot) -> None:
        if bot.has_taken_all():
            self._has_started(bot)
            self._tell(bot, Taken(self.index, now()))
        elif bot.has_closed_input() and not self._exit_told:
            self._tell(bot, bot.why_closed(InputClosed(self.index, now()), LEFT_OPEN_S))

    def _unasked(self, line: str) -> None:
        """It may answer START;South before it was seen to have taken it; nothing else."""
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
        """One decision of the opponent, after what the bot has to say before it."""
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
        """Hear the bot until it is back at reading; False if that ended the game."""
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
        """As the driver does it (Driver._carry_out)."""
        match = self.match
        while sends:
            following: Sequence[Send] = ()
            for send in sends:
                event: Event = Sent(send.player, now(), send.line)
                if send.player == self.index:
                    event = bot.write(send.line)
                    self._told = send.line
                    if isinstance(event, InputClosed):
                        event = bot.why_closed(event, LEFT_OPEN_S)
                        self._exit_told = True
                following = match.handle(event)
                if following and match.result is not None:
                    break
            sends = following

    def _tell(self, bot: Bot, event: Event) -> None:
        match = self.match
        on_turn, moves = match.on_turn, len(match.moves)
        spoke = isinstance(event, LineReceived) and event.player == self.index
        if isinstance(event, LineReceived) and spoke and on_turn != self.index:
            self._unasked(event.line)
        # Its own line that ended the game was its reply; whatever follows is none.
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

    def _must_leave(self) -> bool:
        turn = 1 + sum(move.player == self.index for move in self.match.moves)
        return self.examiner.leaves_in is not None and turn >= self.examiner.leaves_in

    def _hear(self, bot: Bot, timeout_s: float) -> None:
        """Wait for something, take it in, and tell the judge."""
        match = self.match
        ready = self._wait(timeout_s)
        if bot.errors in ready:  # first: what output leads to may read it, too
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
        if match.result is None and at >= self._limits_due:
            self._look_at_limits(bot)
        if match.result is None and match.deadline is not None and at > match.deadline:
            unfinished = ["", ""]
            unfinished[self.index] = bot.unfinished
            doing = bot.tree.doing() if bot.tree is not None else ""
            self._tell(bot, TimePassed(at, (unfinished[0], unfinished[1]), None, doing))

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
        """At the end of the game: what it used since START."""
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
        ready = {descriptor for descriptor, _ in self._poll.poll(timeout_s * 1000)}
        if self.leash in ready:
            raise RefereeError("nobody wants this game any more")
        return ready

    def _has_closed_output(self, bot: Bot) -> bool:
        """Whether its output has ended, but not, a moment later, its process."""
        if bot.output_ended_at is None or self._end_told:
            return False
        until = now() + LEFT_OPEN_S
        while not bot.has_ended() and now() < until:
            self._wait(POLL_S)
        return not bot.has_ended()

    def _wait_for_end(self, bot: Bot) -> None:
        """After ``kill``.  Raises RefereeError if it does not die."""
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
        if self.bot is not None:
            stderr[self.index], statuses[self.index] = self.bot.stderr.text(), self.bot.status
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
            versions={"kalarena": metadata.version("kalarena")},
            limits=job.limits,
            sandbox=job.sandbox.tier.value,
            clock=WALL,
        )
