"""The event loop of one game, which carries lines and events between the judge and the bots."""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

from referee.errors import GameStoppedError
from referee.games.base import Side
from referee.judge.clock import HOST_FAULT_EXTRA_US, MEASURE
from referee.judge.events import Event, InputClosed, LineReceived, ProcessEnded, Send, StartRead, TimePassed
from referee.judge.match import Match, carry_out
from referee.judge.record_rows import WireLine
from referee.live_feed import Feed
from referee.process.player import SessionPlayer, now
from referee.process.poller import BRIEF_WAIT_S, Poller
from referee.process.turn_timer import NEVER, NOTICED_S, TurnTimer

START_POLL_S = 0.0005
START_POLL_GROWTH = 0.3
START_POLL_MAX_S = 0.01
"""Seconds between two checks that a bot has read START: first interval, its growth as a share of the time
since START was sent, and longest interval.  The system reports no such event.  The error, at most the longest
interval, is in the bot's favour."""

END_OF_OUTPUT_GRACE_S = 1.0
"""Seconds to wait for the end of the process after the end of its output, so that the verdict can contain the
exit status and the bot's error messages.  A Java machine whose heap is full was seen to take more than 0.25 s
to end, with ten times as many processes as cores."""

EXIT_SETTLE_S = 0.2
"""Seconds by which the exit of the bot on turn is reported later.  If both bots end within this time, the bot
that was not on turn counts as the first one: the other bot may end because nothing new is sent to it.  An
interpreter on a loaded machine takes up to 0.1 s to end."""

ENDING_LIMIT_S = 5.0
"""Seconds that a bot is waited for at most while it seems to be ending, which takes long on a busy host.

It is waited for before START if the other has ended, since neither wins if it ends, too, and after the end of
its output or input.  With eight times as many processes as cores, 0.5 s of CPU time took over 2 s."""

LIMITS_POLL_S = 0.05
CLOSE_POLL_S = 0.01
"""Seconds between two checks of the bots' memory; the second value applies when a bot is near its limit.  A
process fills 5 MB a millisecond.  On systems without pidfds these checks notice the end of a process, too."""

KILL_LIMIT_S = 5.0
"""Seconds after which a killed process is considered stuck in the kernel; the verdict stands."""

LEAST_CAP_S = HOST_FAULT_EXTRA_US / 1e6
"""Seconds that a turn must have taken before the judge needs the counters of the bot that is not on turn."""

Observer = Callable[[WireLine], None]
"""Callback for each wire line; it must not block."""

AnyMatch = Match[Any, Any]

OUTPUT, ERRORS, EXIT, CANCEL = "output", "errors", "exit", "cancel"


class Session:
    """Runs one match with two started bots, then waits for their end.

    ``cancel_fd`` is a descriptor that becomes readable when the tournament runner cancels the game, which
    then ends with a GameStoppedError.  ``feed`` is the path of a socket for spectators (live_feed.py).  New
    moves are published whenever the bots' memory is checked, so that a move costs no more time.  With
    ``owns_loop`` the event loop has nothing else to do, and may be blocked for a moment; otherwise no wait
    blocks it.
    """

    def __init__(
        self,
        match: AnyMatch,
        bots: tuple[SessionPlayer, SessionPlayer],
        observe: Observer | None = None,
        cancel_fd: int | None = None,
        feed: str | None = None,
        *,
        owns_loop: bool = True,
    ) -> None:
        self._match = match
        self._bots = bots
        is_observed = any(bot.is_observed for bot in bots)
        control = replace(match.control, ponder=MEASURE) if is_observed else match.control
        self.timer = TurnTimer(bots, control, owns_loop=owns_loop)
        self._start_poll_max_s = START_POLL_S if is_observed else START_POLL_MAX_S
        self._start_checked = 0.0
        """Time of the last check whether the starting bot has read START."""
        self._limits_due = now() + LIMITS_POLL_S
        self._observe = observe
        self._feed = Feed(feed, match)
        self._observed = 0
        self._poller = Poller(owns_loop=owns_loop)
        self._end_wait_s = END_OF_OUTPUT_GRACE_S if owns_loop else 0.0
        """Seconds that a bot that has closed its input is waited for in the event loop."""
        self._exit_reported, self._end_reported = [False, False], [False, False]
        self.cpu_us: tuple[int | None, int | None] = (None, None)
        """CPU time of each bot until the end of the match, in microseconds; None where it is not counted."""
        self._ending = False
        """True if a bot's process is ending or has ended."""
        for bot in bots:
            self._poller.add(bot.stdout, (bot.index, OUTPUT))
            self._poller.add(bot.errors, (bot.index, ERRORS))
            self._poller.add(bot.exit_descriptor, (bot.index, EXIT))
        self._cancel_fd = cancel_fd
        self._poller.add(cancel_fd, (0, CANCEL))

    async def referee(self, sends: Sequence[Send]) -> None:
        """Play until the match has a result; ``sends`` are the effects returned by its start."""
        match, poller, timer = self._match, self._poller, self.timer
        self._carry_out(sends)
        while match.result is None:
            if match.starting is not None and self._check_start(match.starting):
                continue
            # In a slow turn a poll that yields the CPU could leave this process in the run queue when the
            # reply comes.
            ready = self._poll_slow_turn() if timer.is_measuring else poller.poll()
            if is_due := poller.is_checkpoint_due:
                await poller.checkpoint()
            if (is_due or not ready) and self._check_limits():
                continue
            if not (is_due or ready):
                if match.on_turn is not None:
                    self._measure_slow_turn(match.on_turn)
                left_s = self._next_wake() - now()
                if left_s > BRIEF_WAIT_S or match.starting is None:  # else ``poll`` waits long enough
                    ready = self._poll_slow_turn() if timer.is_measuring else []
                    ready = ready or await poller.wait(left_s)
            if self._process(ready) or match.deadline is None or (at := now()) <= match.deadline:
                continue
            # Everything that had come by then is read before a flag falls.
            if not self._process(poller.poll_once()):
                self._carry_out(match.handle(self._time_passed(at)))
        self.cpu_us = timer.cpu_us()
        timer.end_game()
        self._feed.end()

    def _poll_slow_turn(self) -> list[tuple[int, str]]:
        """Return the descriptors that are ready in a turn that is being measured.

        If there are none, no wait of the referee until now delays the reply.  Each later wait may delay it:
        the wait for the wake-up, and a wait while the counters are read.
        """
        waited_ns = self.timer.own_wait_ns()
        ready = self._poller.poll_once()
        if not ready:
            self.timer.mark(waited_ns)
        return ready

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
        # An early line ends a turn without an event, so the timer is still measuring that turn here.
        is_measured = timer.must_prepare[send.player] or timer.is_measuring
        if send is match.gives_turn and is_measured and match.starting is None:
            if timer.has_begun:
                timer.begin_turn(send.player)
            else:  # enough for a turn that may be a quick one
                timer.begin_game(now() - match.began)
        bot = self._bots[send.player]
        event = bot.write(send.line)
        if type(event) is not InputClosed:
            return event
        return self._with_other_failure(self._closed_input_event(event))

    def _closed_input_event(self, event: InputClosed) -> Event:
        """Wait for the end of a bot that has closed its input; return that, or a limit that it passes first.

        This blocks.  If neither happens in time, the event itself is returned.
        """
        bot, began = self._bots[event.player], now()
        wait_s = 0.0 if bot.exit_descriptor is None else min(self._end_wait_s, CLOSE_POLL_S)
        while type(end := bot.closed_input_event(event, wait_s)) is InputClosed and wait_s:
            passed = [either.limit_passed() for either in self._bots][bot.index]  # kills either bot
            if passed is not None:
                return passed
            waited_s = now() - began
            if waited_s >= self._end_wait_s and (waited_s >= ENDING_LIMIT_S or not self._is_ending(bot)):
                break
        return end

    def _is_ending(self, bot: SessionPlayer) -> bool:
        """Return True if a bot has no process any more, or if it computes and nobody else is to move."""
        activity = "" if bot.tree is None else bot.tree.activity()
        return activity == "ended" or (activity == "running" and self._match.on_turn in (None, bot.index))

    def _with_other_failure(self, event: Event) -> Event:
        """Return the event, with the other bot's end if neither had taken its START line."""
        if type(event) is not ProcessEnded or event.other is not None or self._match.starting != Side.SECOND:
            return event
        bot, began = self._bots[1 - event.player], now()
        closed, wait_s = InputClosed(bot.index, event.at), min(self._end_wait_s, CLOSE_POLL_S)
        while type(end := bot.closed_input_event(closed, wait_s)) is not ProcessEnded:
            if bot.exit_descriptor is None or not wait_s or bot.limit_passed() is not None:
                return event
            if bot.index == Side.SECOND and bot.has_read_all():
                return event  # it has started
            if now() - began >= (ENDING_LIMIT_S if self._is_ending(bot) else EXIT_SETTLE_S):
                return event
        if bot.index == Side.SECOND and bot.has_read_all():
            return event  # it had started before it ended
        return event._replace(other=end)

    def _handle(self, event: Event) -> None:
        """Pass an event to the match, with the counters that decide whether a turn or a start is late."""
        match, timer = self._match, self.timer
        if match.on_turn is None:
            if match.starting is not None and match.deadline is not None and event.at > match.deadline:
                self._carry_out(match.handle(self._time_passed(event.at)))
            event = self._with_other_failure(event)
        elif type(event) is LineReceived and event.player == match.on_turn:
            wall_s = event.at - match.turn_began
            if timer.is_measuring or wall_s > NOTICED_S:
                self._measure_slow_turn(event.player)
                usage = timer.end_turn(event.player, wall_s)
                off_turn = timer.off_turn_usage() if usage is not None and wall_s > LEAST_CAP_S else None
                event = event._replace(usage=usage, cores=timer.cores_after, off_turn=off_turn)
        elif match.deadline is not None and event.at > match.deadline:
            self._carry_out(match.handle(self._time_passed(event.at)))
        self._carry_out(match.handle(event))

    def _time_passed(self, at: float) -> TimePassed:
        """Return the event of a deadline that passed, with the counters of the awaited player."""
        match, timer, (first, second) = self._match, self.timer, self._bots
        awaited = match.on_turn if match.on_turn is not None else match.starting
        unfinished = (first.unfinished, second.unfinished)
        if awaited is None:
            return TimePassed(at, unfinished)
        if match.on_turn is not None:
            self._measure_slow_turn(awaited)
        # The state comes first: a wait that is over is in the counters that are read after it.
        is_queued = timer.is_queued(awaited)
        if match.on_turn is not None:
            usage, off_turn = timer.usage(), timer.off_turn_usage()
        else:
            usage, off_turn = timer.start_usage(awaited), timer.off_turn_usage_in_start(awaited)
        tree = self._bots[awaited].tree
        activity = "" if tree is None else tree.activity()
        if activity == "reading" and tree is not None and tree.has_running_thread():
            activity = ""  # one thread waits for lines, as it may, while another one computes
        return TimePassed(at, unfinished, usage, activity, is_queued and usage is not None, off_turn)

    def _measure_slow_turn(self, player: int) -> None:
        """Start measuring the current turn, if it was expected to be a quick one."""
        if self.timer.is_measuring:
            return
        earlier_us = 0
        for move in reversed(self._match.moves):
            if move.cpu_us is not None:
                break  # both players' counters were read after this move
            if move.player == player:
                earlier_us += move.wall_us
        self.timer.measure_slow_turn(player, earlier_us, self._match.turn_began)

    def _check_limits(self) -> bool:
        """Check the bots' limits if that is due; return True if an event was passed to the match."""
        self.timer.poll()
        if now() < self._limits_due:
            return False
        if self._match.starting is not None:
            self.timer.sample_start(self._match.starting)
        for bot in self._bots:
            if bot.has_ended():
                self._ending = True
            else:
                is_off_turn = self._match.on_turn == 1 - bot.index
                with self.timer.reading_other_bot() if is_off_turn else nullcontext():
                    event = bot.limit_passed()
                if event is not None:
                    self._handle(event)
                    return True
        self._feed.publish(now())
        close = any(bot.is_near_a_limit for bot in self._bots)
        self._limits_due = now() + (CLOSE_POLL_S if close else LIMITS_POLL_S)
        return False

    def _check_start(self, player: int) -> bool:
        """Report that the starting bot has read START or closed its input; return False if it has not."""
        bot, self._start_checked = self._bots[player], now()
        # The input is checked first: a bot that reads START and ends between the two calls has read START.
        has_closed_input = bot.has_closed_input()
        if bot.has_read_all():
            if player == Side.FIRST:
                self.timer.begin_game(now() - self._match.began)
            self._handle(StartRead(player, now()))
        elif has_closed_input and not self._exit_reported[player]:
            self._handle(self._closed_input_event(InputClosed(player, now())))
        else:
            return False
        return True

    def _next_wake(self) -> float:
        """Return the time of the next check if nothing becomes readable."""
        match = self._match
        assert match.deadline is not None  # a match without a result always has one
        wake = min(match.deadline, self._limits_due, self.timer.due)
        if match.starting is not None:
            at = self._start_checked
            interval_s = START_POLL_S + START_POLL_GROWTH * (at - match.turn_began)
            wake = min(wake, at + min(interval_s, self._start_poll_max_s))
        if self._ending:
            wake = min(wake, *(self._end_due(bot) for bot in self._bots))
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
                    self._handle(event)
                if match.result is not None:
                    return True
                if bot.output_ended_at is not None:
                    self._ending = True
                    self._poller.remove(bot.stdout)
            else:
                self._note(bot, kind)
                if kind == CANCEL:
                    raise GameStoppedError("the game was cancelled by the tournament runner")
        if self._ending:
            for bot in self._bots if match.on_turn == 1 else self._bots[::-1]:  # the bot on turn last
                if match.result is None and now() >= self._end_due(bot):
                    handled = True
                    self._report_end(bot)
        return handled

    def _note(self, bot: SessionPlayer, kind: str) -> None:
        """Process a ready descriptor that has no lines, and remove it unless more can be read."""
        if kind == ERRORS and not bot.read_errors():
            self._poller.remove(bot.errors)
        elif kind == EXIT:
            self._ending = True
            if bot.has_ended():
                self._poller.remove(bot.exit_descriptor)
        elif kind == CANCEL:
            self._poller.remove(self._cancel_fd)

    def _end_due(self, bot: SessionPlayer) -> float:
        """Return the time at which the end of a bot, or of its output, is due to be reported.

        The time is not after the deadline.  It is infinite if there is nothing to report.
        """
        match = self._match
        if bot.ended_at is not None and not self._exit_reported[bot.index]:
            due = bot.ended_at + (EXIT_SETTLE_S if bot.index == match.on_turn else 0.0)
        elif bot.output_ended_at is not None and not self._end_reported[bot.index]:
            due, at = bot.output_ended_at + END_OF_OUTPUT_GRACE_S, now()
            if at >= due and self._is_ending(bot):
                due = min(at + CLOSE_POLL_S, bot.output_ended_at + ENDING_LIMIT_S)
        else:
            return NEVER
        return due if match.deadline is None else min(due, match.deadline)

    def _report_end(self, bot: SessionPlayer) -> None:
        """Report the end of a bot after its last lines, or the end of its output alone."""
        match = self._match
        if bot.ended_at is None:
            self._end_reported[bot.index] = True
            self._handle(bot.output_closed_event())
            return
        self._exit_reported[bot.index] = self._end_reported[bot.index] = True
        if match.starting == bot.index:
            self._check_start(bot.index)  # it may have read START since the last check
        for event in bot.drain():
            self._handle(event)
        if match.result is None:
            self._handle(bot.exited_event())

    async def wind_down(self, left_s: Callable[[], float]) -> None:
        """Discard output after the END lines until both bots have ended, or until ``left_s`` returns 0.

        ``left_s`` returns the seconds after which it is to be called again.
        """
        while not all(bot.has_ended() for bot in self._bots) and (left := left_s()) > 0:
            await self.drain_once(min(left, LIMITS_POLL_S))
            for bot in self._bots:
                if not bot.has_ended():
                    bot.limit_passed()  # kills the bot; the game is over, and its verdict stands

    async def drain_once(self, timeout_s: float) -> None:
        """Wait for an event after the game, at most so many seconds, and discard output."""
        if self._poller.is_checkpoint_due:
            await self._poller.checkpoint()
        for index, kind in self._poller.poll() or await self._poller.wait(timeout_s):
            bot = self._bots[index]
            if kind != OUTPUT:
                self._note(bot, kind)
            elif not bot.discard_output():
                self._poller.remove(bot.stdout)

    async def kill(self) -> None:
        """Kill both process groups and wait until the processes have ended, for KILL_LIMIT_S at most.

        ``Bot.close`` reports a process that has not ended by then.
        """
        for bot in self._bots:
            bot.kill()
        until = now() + KILL_LIMIT_S
        for bot in self._bots:
            while not bot.has_ended() and now() <= until:
                await self.drain_once(CLOSE_POLL_S)
            bot.drain_errors()

    def close(self) -> None:
        """Close the selector, the timer and the feed's socket."""
        self.timer.close()
        self._poller.close()
        self._feed.close()
