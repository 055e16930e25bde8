"""The event loop of one game, which carries lines and events between the judge and the bots."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from referee.errors import GameStoppedError
from referee.games.base import Side
from referee.judge.clock import MEASURE
from referee.judge.events import Event, InputClosed, LineReceived, ProcessEnded, Send, StartRead, TimePassed
from referee.judge.match import Match, carry_out
from referee.judge.results import WireLine
from referee.live_feed import Feed
from referee.process.player import SessionPlayer, now
from referee.process.poller import BRIEF_WAIT_S, Poller
from referee.process.turn_timer import NOTICED_S, TurnTimer

START_POLL_S = 0.0005
START_POLL_GROWTH = 1.3
START_POLL_MAX_S = 0.01
"""Seconds between two checks that a bot has read START: first interval, growth and longest interval.  The
system reports no such event.  The error, at most the longest interval, is in the bot's favour."""

END_OF_OUTPUT_GRACE_S = 1.0
"""Seconds to wait for the end of the process after the end of its output, so that the verdict can contain the
exit status and the bot's error messages.  A Java machine whose heap is full was seen to take more than 0.25 s
to end, with ten times as many processes as cores."""

EXIT_SETTLE_S = 0.2
"""Seconds by which the exit of the bot on turn is reported later.  If both bots end within this time, the bot
that was not on turn counts as the first one: the other bot may end because nothing new is sent to it.  An
interpreter on a loaded machine takes up to 0.1 s to end."""

EXIT_POLL_S = 0.02
"""Seconds between two checks for the end of a process on systems without pidfds."""

LIMITS_POLL_S = 0.05
CLOSE_POLL_S = 0.01
"""Seconds between two checks of the bots' memory; the second value applies when a bot is near its limit.  A
process fills 5 MB a millisecond."""

KILL_LIMIT_S = 5.0
"""Seconds after which a killed process is considered stuck in the kernel; the verdict stands."""

Observer = Callable[[WireLine], None]
"""Callback for each wire line; it must not block."""

AnyMatch = Match[Any, Any]

OUTPUT, ERRORS, EXIT, CANCEL = "output", "errors", "exit", "cancel"


class Session:
    """Runs one match with two started bots, then waits for their end.

    ``cancel_fd`` is a descriptor that becomes readable when the tournament runner cancels the game, which
    then ends with a GameStoppedError.  ``feed`` publishes new moves for spectators whenever the bots' memory
    is checked, so that a move costs no more time.  With ``owns_loop`` the event loop has nothing else to do,
    and may be blocked for a moment; otherwise no wait blocks it.
    """

    def __init__(
        self,
        match: AnyMatch,
        bots: tuple[SessionPlayer, SessionPlayer],
        observe: Observer | None = None,
        cancel_fd: int | None = None,
        feed: Feed | None = None,
        *,
        owns_loop: bool = True,
    ) -> None:
        self._match = match
        self._bots = bots
        is_observed = any(bot.is_observed for bot in bots)
        control = replace(match.control, ponder=MEASURE) if is_observed else match.control
        self.timer = TurnTimer(bots, control)
        self._start_poll_max_s = START_POLL_S if is_observed else START_POLL_MAX_S
        self._limits_due = now() + LIMITS_POLL_S
        self._observe = observe
        self._feed = feed
        self._observed = 0
        self._poller = Poller(owns_loop=owns_loop)
        self._end_wait_s = END_OF_OUTPUT_GRACE_S if owns_loop else 0.0
        """Seconds that a bot that has closed its input is waited for in the event loop."""
        self._start_poll_s = START_POLL_S
        self._exit_reported = [False, False]
        self._end_reported = [False, False]
        self.cpu_us: tuple[int | None, int | None] = (None, None)
        """CPU time of each bot until the end of the match, in microseconds; None where it is not counted."""
        self._ending = any(bot.exit_descriptor is None for bot in bots)
        """True if a bot has begun to end, or may have ended without an event."""
        for bot in bots:
            self._poller.add(bot.stdout, (bot.index, OUTPUT))
            if bot.errors is not None:
                self._poller.add(bot.errors, (bot.index, ERRORS))
            if bot.exit_descriptor is not None:
                self._poller.add(bot.exit_descriptor, (bot.index, EXIT))
        self._cancel_fd = -1 if cancel_fd is None else cancel_fd
        if cancel_fd is not None:
            self._poller.add(cancel_fd, (0, CANCEL))

    async def referee(self, sends: Sequence[Send]) -> None:
        """Play until the match has a result; ``sends`` are the effects returned by its start."""
        match, poller, timer = self._match, self._poller, self.timer
        self._carry_out(sends)
        while match.result is None:
            if match.starting is not None and self._check_start():
                continue
            # In a slow turn a poll, which yields the CPU, could leave this process in the run queue when the
            # reply comes.
            ready = [] if timer.is_measuring else poller.poll()
            if poller.is_checkpoint_due:
                await poller.checkpoint()
                if self._check_limits():
                    continue
            elif not ready:
                if self._check_limits():
                    continue
                if not timer.is_measuring and match.on_turn is not None:
                    self._measure_slow_turn(match.on_turn)
                left_s = self._next_wake() - now()
                if left_s > BRIEF_WAIT_S or match.starting is None:  # else ``poll`` waits long enough
                    if timer.is_measuring:
                        timer.mark()
                    ready = await poller.wait(left_s)
            # Everything read so far comes before a flag falls.
            if not self._process(ready):
                at = now()
                if match.deadline is not None and at > match.deadline:
                    self._carry_out(match.handle(self._time_passed(at)))
        self.cpu_us = timer.cpu_us()
        timer.end_game()
        if self._feed is not None:
            self._feed.end()

    def _carry_out(self, sends: Sequence[Send]) -> None:
        match, timer = self._match, self.timer
        carry_out(match, sends, self._write)
        if timer.must_follow and match.on_turn is not None:
            timer.turn_begun(match.on_turn)
        if self._observe is not None:
            for line in match.wire[self._observed :]:
                self._observe(line)
            self._observed = len(match.wire)

    def _write(self, send: Send) -> Event:
        match, timer = self._match, self.timer
        if send is match.gives_turn and timer.must_prepare[send.player] and match.starting is None:
            if timer.has_begun:
                timer.begin_turn(send.player)
            else:  # enough for a turn that may be a quick one
                timer.begin_game(now() - match.began)
        bot = self._bots[send.player]
        event = bot.write(send.line)
        if type(event) is not InputClosed:
            return event
        return self._with_other_failure(bot.closed_input_event(event, self._end_wait_s))

    def _with_other_failure(self, event: Event) -> Event:
        """Return the event, with the other bot's reason if neither command could be run in its sandbox."""
        if type(event) is ProcessEnded and event.not_executed is not None and not event.why_other:
            other = 1 - event.player
            wait_s = min(self._end_wait_s, EXIT_SETTLE_S)
            end = self._bots[other].closed_input_event(InputClosed(other, event.at), wait_s)
            if type(end) is ProcessEnded and end.not_executed is not None:
                return event._replace(why_other=end.not_executed)
        return event

    def _handle(self, event: Event) -> None:
        match, event = self._match, self._with_other_failure(event)
        # Only the counters show whether the time of a turn is over.  A reply already carries them.
        if (
            match.on_turn is not None
            and match.deadline is not None
            and event.at > match.deadline
            and not (type(event) is LineReceived and event.player == match.on_turn)
        ):
            self._carry_out(match.handle(self._time_passed(event.at)))
            if match.result is not None:
                return
        self._carry_out(match.handle(event))

    def _time_passed(self, at: float) -> TimePassed:
        """Return the event of a deadline that passed, with the counters of the awaited player."""
        match, timer, (first, second) = self._match, self.timer, self._bots
        awaited = match.on_turn if match.on_turn is not None else match.starting
        unfinished = (first.unfinished, second.unfinished)
        if awaited is None:
            return TimePassed(at, unfinished)
        if match.starting is not None:
            usage = timer.start_usage(awaited)
        else:
            if not timer.is_measuring:
                self._measure_slow_turn(awaited)
            usage = timer.usage()
        tree = self._bots[awaited].tree
        activity = "" if tree is None else tree.activity()
        is_queued = usage is not None and timer.is_queued(awaited)
        return TimePassed(at, unfinished, usage, activity, is_queued)

    def _measure_slow_turn(self, player: int) -> None:
        """Start measuring the current turn, which was expected to be a quick one."""
        earlier_us = 0
        for move in reversed(self._match.moves):
            if move.cpu_us is not None:
                break  # both players' counters were read after this move
            if move.player == player:
                earlier_us += move.wall_us
        self.timer.measure_slow_turn(player, earlier_us, self._match.turn_began)

    def _with_usage(self, reply: LineReceived, wall_s: float) -> LineReceived:
        """Return the reply that ends the current turn, with the counters of the turn."""
        if not self.timer.is_measuring:
            self._measure_slow_turn(reply.player)
        return reply._replace(usage=self.timer.end_turn(reply.player, wall_s), cores=self.timer.cores_after)

    def _check_limits(self) -> bool:
        """Check the bots' limits if that is due; return True if an event was passed to the match."""
        at = now()
        if self.timer.is_measuring and at >= self.timer.sample_due:
            self.timer.sample()
        if at < self._limits_due:
            return False
        if self._match.starting is not None:
            self.timer.sample_start(self._match.starting)
        for bot in self._bots:
            event = None if bot.has_ended() else bot.limit_passed()
            if event is not None:
                self._handle(event)
                return True
        if self._feed is not None:
            self._feed.publish(now())
        close = any(bot.is_near_a_limit for bot in self._bots)
        self._limits_due = now() + (CLOSE_POLL_S if close else LIMITS_POLL_S)
        return False

    def _check_start(self) -> bool:
        """Report that the starting bot has read START or closed its input; return False if it has not."""
        player = self._match.starting
        if player is None:
            return False
        bot = self._bots[player]
        if bot.has_read_all():
            self._start_poll_s = START_POLL_S
            if player == Side.FIRST:
                self.timer.begin_game(now() - self._match.began)
            self._handle(StartRead(player, now()))
        elif bot.has_closed_input() and not self._exit_reported[player]:
            self._handle(bot.closed_input_event(InputClosed(player, now()), self._end_wait_s))
        else:
            return False
        return True

    def _next_wake(self) -> float:
        """Return the time of the next check if nothing becomes readable."""
        match = self._match
        assert match.deadline is not None  # a match without a result always has one
        wake = min(match.deadline, self._limits_due)
        if self.timer.is_measuring:
            wake = min(wake, self.timer.sample_due)
        if match.starting is not None:
            wake = min(wake, now() + self._start_poll_s)
            self._start_poll_s = min(self._start_poll_s * START_POLL_GROWTH, self._start_poll_max_s)
        if self._ending:
            for bot in self._bots:
                due = self._end_due(bot)
                if due is not None:
                    wake = min(wake, due)
                elif bot.exit_descriptor is None:
                    wake = min(wake, now() + EXIT_POLL_S)
        return wake

    def _process(self, ready: list[tuple[int, str]]) -> bool:
        """Process the ready descriptors, output first; return True if an event was passed to the match."""
        match = self._match
        handled = False
        for index, kind in ready:
            bot = self._bots[index]
            if kind == OUTPUT:
                for event in bot.read_output():
                    handled = True
                    if index == match.on_turn and type(event) is LineReceived:
                        wall_s = event.at - match.turn_began
                        if self.timer.is_measuring or wall_s > NOTICED_S:
                            event = self._with_usage(event, wall_s)
                        self._carry_out(match.handle(event))
                    else:
                        self._handle(event)
                    if match.result is not None:
                        return True
                if bot.output_ended_at is not None:
                    self._ending = True
                    self._poller.remove(bot.stdout)
            elif kind == ERRORS:
                self._read_errors(bot)
            elif kind == EXIT:
                self._ending = True
                self._note_exit(bot)
            else:
                self._poller.remove(self._cancel_fd)  # it stays readable, and would end each later wait
                raise GameStoppedError("the game was cancelled by the tournament runner")
        if self._ending:
            for bot in self._bots if match.on_turn == 1 else self._bots[::-1]:  # the bot on turn last
                due = self._end_due(bot)
                if due is not None and now() >= due:
                    handled = True
                    self._report_end(bot)
                    if match.result is not None:
                        break
        return handled

    def _read_errors(self, bot: SessionPlayer) -> None:
        before = bot.stderr.total
        if not bot.read_errors() and bot.stderr.total == before and bot.errors is not None:
            self._poller.remove(bot.errors)

    def _note_exit(self, bot: SessionPlayer) -> None:
        if bot.exit_descriptor is not None and bot.has_ended():
            self._poller.remove(bot.exit_descriptor)

    def _end_due(self, bot: SessionPlayer) -> float | None:
        """Return when the end of a bot, or of its output alone, is to be reported; None if there is none.

        It is reported before the deadline at the latest.
        """
        match = self._match
        if bot.exit_descriptor is None:
            bot.has_ended()
        if self._exit_reported[bot.index]:
            return None
        if bot.ended_at is not None:
            due = bot.ended_at + (EXIT_SETTLE_S if bot.index == match.on_turn else 0.0)
        elif bot.output_ended_at is not None and not self._end_reported[bot.index]:
            due = bot.output_ended_at + END_OF_OUTPUT_GRACE_S
        else:
            return None
        return due if match.deadline is None else min(due, match.deadline)

    def _report_end(self, bot: SessionPlayer) -> None:
        """Report the end of a bot after its last lines, or the end of its output alone."""
        match = self._match
        if bot.ended_at is None:
            self._end_reported[bot.index] = True
            self._handle(bot.output_closed_event())
            return
        self._exit_reported[bot.index] = True
        if match.starting == bot.index:
            self._check_start()  # it may have read START since the last check
        for event in bot.drain():
            self._handle(event)
            if match.result is not None:
                return
        self._handle(bot.exited_event())

    async def wind_down(self, left_s: Callable[[], float]) -> None:
        """Discard output after the END lines until both bots have ended, or until ``left_s`` returns 0.

        ``left_s`` returns the seconds after which it is to be called again.
        """
        while not all(bot.has_ended() for bot in self._bots) and (left := left_s()) > 0:
            self.timer.mark()
            await self.drain_once(min(left, LIMITS_POLL_S))
            for bot in self._bots:
                if not bot.has_ended():
                    bot.limit_passed()  # kills the bot; the game is over, and its verdict stands

    async def drain_once(self, timeout_s: float) -> None:
        """Wait for an event after the game, at most so many seconds, and discard output."""
        if any(bot.exit_descriptor is None for bot in self._bots):
            timeout_s = min(timeout_s, EXIT_POLL_S)
        if self._poller.is_checkpoint_due:
            await self._poller.checkpoint()
        for index, kind in self._poller.poll() or await self._poller.wait(timeout_s):
            bot = self._bots[index]
            if kind == OUTPUT:
                if not bot.discard_output():
                    self._poller.remove(bot.stdout)
            elif kind == ERRORS:
                self._read_errors(bot)
            elif kind == EXIT:
                self._note_exit(bot)
            else:
                self._poller.remove(self._cancel_fd)

    async def kill(self) -> None:
        """Kill both process groups and wait until the processes have ended, for KILL_LIMIT_S at most.

        ``Bot.close`` reports a process that has not ended by then.
        """
        for bot in self._bots:
            bot.kill()
        until = now() + KILL_LIMIT_S
        for bot in self._bots:
            while not bot.has_ended() and now() <= until:
                await self.drain_once(EXIT_POLL_S)
            bot.drain_errors()

    def close(self) -> None:
        """Close the selector, the timer and the feed's socket."""
        self.timer.close()
        self._poller.close()
        if self._feed is not None:
            self._feed.close()
