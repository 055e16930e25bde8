"""The thin shell around the judge: carries its sends to the bots and brings it their events."""

from collections.abc import Callable, Sequence
from typing import Any

from referee.bot import Bot, now
from referee.errors import RefereeError
from referee.events import Event, InputClosed, LineReceived, Send, Taken, TimePassed
from referee.feed import Feed
from referee.games.base import Side
from referee.match import Match
from referee.results import WireLine
from referee.timing import NOTICED_S, Timekeeper
from referee.watch import BRIEF_WAIT_S, Watch

START_POLL_S = 0.0005
START_POLL_GROWTH = 1.3
START_POLL_MAX_S = 0.01
"""How often a bot is asked whether it has taken START: nothing wakes us when it does.  The error, at
most the longest interval, is in the bot's favour."""

END_OF_OUTPUT_GRACE_S = 1.0
"""After the end of a bot's output, this long is waited for the end of its process, so that the verdict
can name the exit status, and what the bot complained of.  A Java machine whose heap is full was seen to
take more than 0.25 s to go, with ten times as many processes as cores."""

EXIT_SETTLE_S = 0.2
"""The end of the bot on turn is judged this much later: if both bots end within it, the one that was not on
turn is taken to have gone first, since going is what the other one may do when it is told of nothing new.
An interpreter on a loaded machine takes up to 0.1 s to go."""

EXIT_POLL_S = 0.02
"""Where a process's end wakes nobody (no pidfd), it is looked for this often."""

LIMITS_POLL_S = 0.05
CLOSE_POLL_S = 0.01
"""How often the memory of the bots is looked at; the second one when a bot holds much already.  A process
fills 5 MB a millisecond."""

KILL_LIMIT_S = 5.0
"""A killed process that is not gone by then is stuck in the kernel: our host's fault."""

Observer = Callable[[WireLine], None]
"""Told each wire line as it happens; must not block."""

AnyMatch = Match[Any, Any]

OUTPUT, ERRORS, EXIT, LEASH = "output", "errors", "exit", "leash"


class Driver:
    """Runs one match with two started bots, then winds them down.

    A ``leash`` is a descriptor that becomes readable when nobody wants the game any more; that ends it with a
    RefereeError.  Whoever watches the game is told of it by a ``feed``, which costs a move nothing: it is
    asked to look for news as often as the bots' memory is looked at.
    """

    def __init__(
        self,
        match: AnyMatch,
        bots: tuple[Bot, Bot],
        observe: Observer | None = None,
        leash: int | None = None,
        feed: Feed | None = None,
    ) -> None:
        self._match = match
        self._bots = bots
        self.time = Timekeeper(bots, match.control)
        self._limits_due = now() + LIMITS_POLL_S
        self._observe = observe
        self._feed = feed
        self._observed = 0
        self._watch = Watch()
        self._start_poll_s = START_POLL_S
        self._exit_reported = [False, False]
        self._end_reported = [False, False]
        self.cpu_us: tuple[int | None, int | None] = (None, None)
        """CPU time of each bot until the end of the match; None where it is not counted."""
        self._ending = any(bot.exit_descriptor is None for bot in bots)
        """Whether a bot has begun to end, or may have without our being woken."""
        for bot in bots:
            self._watch.add(bot.stdout, (bot.index, OUTPUT))
            self._watch.add(bot.errors, (bot.index, ERRORS))
            if bot.exit_descriptor is not None:
                self._watch.add(bot.exit_descriptor, (bot.index, EXIT))
        self._leash = -1 if leash is None else leash
        if leash is not None:
            self._watch.add(leash, (0, LEASH))

    async def referee(self, sends: Sequence[Send]) -> None:
        """Play until the match has a result; ``sends`` are what its start asked for."""
        match, watch, time = self._match, self._watch, self.time
        self._carry_out(sends)
        while match.result is None:
            if match.starting is not None and self._look_for_start():
                continue
            # To give way would be to queue for a CPU while the reply comes, when it takes long anyway.
            ready = [] if time.is_looking else watch.glance()
            if watch.has_glanced_enough:
                await watch.rest()
                if self._look_at_limits():
                    continue
            elif not ready:
                if self._look_at_limits():
                    continue
                if not time.is_looking and match.on_turn is not None:
                    self._look_closer(match.on_turn)
                left_s = self._next_wake() - now()
                if left_s > BRIEF_WAIT_S or match.starting is None:  # else another glance is as long
                    if time.is_looking:
                        time.mark()
                    ready = await watch.ready(left_s)
            # Everything read so far comes before a flag falls.
            if not self._take(ready):
                at = now()
                if match.deadline is not None and at > match.deadline:
                    self._tell(self._time_passed(at))
        self.cpu_us = time.cpu_us()
        time.game_over()
        if self._feed is not None:
            self._feed.end()

    def _carry_out(self, sends: Sequence[Send]) -> None:
        match, bots, time = self._match, self._bots, self.time
        while sends:
            following: Sequence[Send] = ()
            for send in sends:
                if send is match.gives_turn and time.must_prepare[send.player] and match.starting is None:
                    if time.has_begun:
                        time.turn_begins(send.player)
                    else:  # enough for a turn that may be a quick one
                        time.game_begins(now() - match.began)
                event = bots[send.player].write(send.line)
                if type(event) is InputClosed:
                    event = bots[send.player].why_closed(event, END_OF_OUTPUT_GRACE_S)
                following = match.handle(event)
                assert not following or send is sends[-1] or match.result is not None
                if following and match.result is not None:
                    break  # the game ended on the way: what else was to be said no longer holds
            sends = following  # which can only be that of the last line
        if time.must_follow and match.on_turn is not None:
            time.turn_has_begun(match.on_turn)
        if self._observe is not None:
            for line in match.wire[self._observed :]:
                self._observe(line)
            self._observed = len(match.wire)

    def _tell(self, event: Event) -> None:
        match = self._match
        if match.deadline is not None and event.at > match.deadline and match.on_turn is not None:
            # Only the counters can tell whether the time is over; a reply has brought them with it.
            decides = isinstance(event, TimePassed) or (
                isinstance(event, LineReceived) and event.player == match.on_turn
            )
            if not decides:
                self._carry_out(match.handle(self._time_passed(event.at)))
                if match.result is not None:
                    return
        self._carry_out(match.handle(event))

    def _time_passed(self, at: float) -> TimePassed:
        """The event of a deadline that passed, with all that can be said of it."""
        match = self._match
        awaited = match.on_turn if match.on_turn is not None else match.starting
        tree = None if awaited is None else self._bots[awaited].tree
        unfinished = (self._bots[0].unfinished, self._bots[1].unfinished)
        usage = None
        if match.on_turn is not None:
            if not self.time.is_looking:
                self._look_closer(match.on_turn)
            usage = self.time.usage()
        doing = "" if tree is None else tree.doing()
        if usage is not None and doing == "running" and not self.time.came_and_went:
            doing = "queued" if self.time.is_queued(match.on_turn or 0) else doing
        return TimePassed(at, unfinished, usage, doing)

    def _with_usage(self, reply: LineReceived, wall_s: float) -> LineReceived:
        """The reply that ends the present turn, with what the turn used."""
        if not self.time.is_looking:
            self._look_closer(reply.player)
        return reply._replace(usage=self.time.turn_ends(reply.player, wall_s))

    def _look_closer(self, player: int) -> None:
        """The present turn is not a quick one, as was expected."""
        earlier_us = 0
        for move in reversed(self._match.moves):
            if move.cpu_us is not None:
                break  # after this one both bots' counters were read
            if move.player == player:
                earlier_us += move.wall_us
        self.time.look_closer(player, earlier_us)

    def _look_at_limits(self) -> bool:
        """See from time to time whether a bot holds more memory than it may; whether the match was told."""
        if now() < self._limits_due:
            return False
        for bot in self._bots:
            event = None if bot.has_ended() else bot.limit_passed()
            if event is not None:
                self._tell(event)
                return True
        if self.time.is_looking:
            self.time.look_at_processes()
        if self._feed is not None:
            self._feed.look(now())
        close = any(bot.is_near_a_limit for bot in self._bots)
        self._limits_due = now() + (CLOSE_POLL_S if close else LIMITS_POLL_S)
        return False

    def _look_for_start(self) -> bool:
        """Whether the bot that is starting has taken its START just now, or never will."""
        player = self._match.starting
        if player is None:
            return False
        bot = self._bots[player]
        if bot.has_taken_all():
            self._start_poll_s = START_POLL_S
            if player == Side.FIRST:
                self.time.game_begins(now() - self._match.began)
            self._tell(Taken(player, now()))
        elif bot.has_closed_input() and not self._exit_reported[player]:
            self._tell(bot.why_closed(InputClosed(player, now()), END_OF_OUTPUT_GRACE_S))
        else:
            return False
        return True

    def _next_wake(self) -> float:
        """When to look again even if nothing becomes readable."""
        match = self._match
        assert match.deadline is not None  # a match without a result always has one
        wake = min(match.deadline, self._limits_due)
        if match.starting is not None:
            wake = min(wake, now() + self._start_poll_s)
            self._start_poll_s = min(self._start_poll_s * START_POLL_GROWTH, START_POLL_MAX_S)
        if not self._ending:
            return wake
        for bot in self._bots:
            if bot.output_ended_at is not None and not self._end_reported[bot.index]:
                wake = min(wake, bot.output_ended_at + END_OF_OUTPUT_GRACE_S)
            if bot.ended_at is not None:
                wake = min(wake, bot.ended_at + EXIT_SETTLE_S)
            elif bot.exit_descriptor is None:
                wake = min(wake, now() + EXIT_POLL_S)
        return wake

    def _take(self, ready: list[tuple[int, str]]) -> bool:
        """Take in what is ready, output first; whether the match was told anything."""
        match = self._match
        told = False
        exits = []
        for index, kind in ready:
            bot = self._bots[index]
            if kind == OUTPUT:
                for event in bot.read_output():
                    told = True
                    if index == match.on_turn and type(event) is LineReceived:
                        wall_s = event.at - match.turn_began
                        if self.time.is_looking or wall_s > NOTICED_S:
                            event = self._with_usage(event, wall_s)
                        self._carry_out(match.handle(event))
                    else:
                        self._tell(event)
                    if match.result is not None:
                        return True
                if bot.output_ended_at is not None:
                    self._ending = True
                    self._watch.remove(bot.stdout)
            elif kind == ERRORS:
                self._read_errors(bot)
            elif kind == EXIT:
                exits.append(bot)
            else:
                self._watch.remove(self._leash)  # else it would wake us for ever while we wind down
                raise RefereeError("nobody wants this game any more")
        if exits:
            self._ending = True
        if not self._ending:
            return told
        for bot in self._other_first():
            if bot in exits and bot.has_ended() and bot.exit_descriptor is not None:
                self._watch.remove(bot.exit_descriptor)
            if self._must_report_exit(bot):
                told = self._report_exit(bot) or told
            elif self._must_report_end(bot):
                self._end_reported[bot.index] = told = True
                self._tell(bot.output_closed_event())
            if match.result is not None:
                return True
        return told

    def _read_errors(self, bot: Bot) -> None:
        before = bot.stderr.total
        if not bot.read_errors() and bot.stderr.total == before:
            self._watch.remove(bot.errors)

    def _must_report_end(self, bot: Bot) -> bool:
        ended_at = bot.output_ended_at
        if ended_at is None or self._end_reported[bot.index]:
            return False
        return now() >= ended_at + END_OF_OUTPUT_GRACE_S or self._flag_is_due()

    def _other_first(self) -> tuple[Bot, Bot]:
        """The bots, the one on turn last."""
        return self._bots if self._match.on_turn == 1 else self._bots[::-1]

    def _must_report_exit(self, bot: Bot) -> bool:
        if bot.exit_descriptor is None:
            bot.has_ended()
        if bot.ended_at is None or self._exit_reported[bot.index]:
            return False
        settled = now() >= bot.ended_at + EXIT_SETTLE_S
        return bot.index != self._match.on_turn or settled or self._flag_is_due()

    def _flag_is_due(self) -> bool:
        """Whether the deadline has passed, so that what happened before it must be told now."""
        deadline = self._match.deadline
        return deadline is not None and now() > deadline

    def _report_exit(self, bot: Bot) -> bool:
        """A process ended: first the lines that it left, then its end."""
        if self._exit_reported[bot.index]:
            return False
        self._exit_reported[bot.index] = True
        if self._match.starting == bot.index:
            self._look_for_start()  # it may have taken START since we asked last
        for event in bot.drain():
            self._tell(event)
            if self._match.result is not None:
                return True
        self._tell(bot.exited_event())
        return True

    async def wind_down(self, grace_s: float) -> None:
        """After the END lines: give the bots this long to end by themselves, draining what they say."""
        until = now() + grace_s
        while not all(bot.has_ended() for bot in self._bots):
            left = until - now()
            if left <= 0:
                break
            await self._drain_once(min(left, LIMITS_POLL_S))
            for bot in self._bots:
                if not bot.has_ended():
                    bot.limit_passed()  # which kills it; the game is over, and its verdict stands

    async def _drain_once(self, timeout_s: float) -> None:
        if any(bot.exit_descriptor is None for bot in self._bots):
            timeout_s = min(timeout_s, EXIT_POLL_S)
        for index, kind in self._watch.glance() or await self._watch.ready(timeout_s):
            bot = self._bots[index]
            if kind == OUTPUT:
                if not bot.discard_output():
                    self._watch.remove(bot.stdout)
            elif kind == ERRORS:
                self._read_errors(bot)
            elif kind == EXIT and bot.exit_descriptor is not None and bot.has_ended():
                self._watch.remove(bot.exit_descriptor)
            elif kind == LEASH:
                self._watch.remove(self._leash)

    async def kill(self) -> None:
        """Kill both process groups and wait until the processes are gone.  Raises RefereeError."""
        for bot in self._bots:
            bot.kill()
        until = now() + KILL_LIMIT_S
        for bot in self._bots:
            while not bot.has_ended():
                if now() > until:
                    raise RefereeError(f"process {bot.pid} cannot be killed")
                await self._drain_once(EXIT_POLL_S)
            bot.drain_errors()

    def close(self) -> None:
        """Give the selector back, and the feed's socket."""
        self.time.close()
        self._watch.close()
        if self._feed is not None:
            self._feed.close()
