"""Both players' clocks in one game, and the deadline of the awaited player (pure).

A player is awaited while it starts and on its turn.  The caller gives times in seconds of any clock.  The
times are stored in whole microseconds since the start, so that a game can be judged again from its record
with the same verdict.  With the fair clock, a passed deadline only causes a check of the counters.  If they
show that less time is charged than passed, the deadline is extended by the difference.
"""

from referee.errors import RefereeError
from referee.judge import verdict_text
from referee.judge.clock import (
    FAIR,
    QUEUED_EXTENSION_US,
    SUSPEND,
    Clock,
    TimeControl,
    charged_us,
    extension_us,
    host_fault_us,
    is_starved,
    off_turn_share,
    own_cpu_us,
)
from referee.judge.events import Event, LineReceived, OffTurnUsage, TimePassed, Usage
from referee.judge.faults import Loss
from referee.judge.record_rows import Correction
from referee.judge.results import OwnControls, Reason


class GameClock:
    """The clocks of one game; at most one of them runs.

    ``advance`` must be called with the time of each event before the other methods.
    """

    def __init__(
        self,
        control: TimeControl,
        own_controls: OwnControls,
        names: tuple[str, str],
        judge: int,
        *,
        first_on_turn: int,
        is_confined: bool,
    ) -> None:
        """Create the clocks.

        ``first_on_turn`` is the player of the very first turn; see ``Match`` for the other arguments.
        """
        self._control = control
        self._names = names
        self._judge = judge
        self._is_confined = is_confined
        self.began = 0.0
        """Start of the game, before its processes are started, in the time of the events."""
        self.now_us = 0
        """Time of the last event."""
        self.player: int | None = None
        """The player that is awaited; None between turns and after the end."""
        self._is_starting = False
        """True if the player is awaited to read its START line, not to move."""
        self.since_us = 0
        """Time at which START was sent to the awaited player, or its turn began."""
        self.deadline_us: int | None = None
        """Time after which the awaited player is late, unless the counters extend it; None if not set."""
        self._start_us = _to_us(control.start_s)
        setup_us = _to_us(control.setup_s)
        # A bot that is stopped while its opponent thinks cannot set itself up then.
        setting_up = (0, 1) if control.ponder == SUSPEND else (first_on_turn if judge > 2 else 0,)
        self._free_us = [setup_us if player in setting_up else 0 for player in (0, 1)]
        """Microseconds of each player's next turn that are not charged: nonzero only before a first turn."""
        for player, own in enumerate(own_controls if judge > 5 else ()):
            if own is not None and own.setup_s > control.setup_s:  # a remote bot starts in its first turn
                self._free_us[player] = _to_us(own.setup_s)
        self._clocks = [Clock.fresh(control if own is None else own) for own in own_controls]
        self._limits_us = [_to_us(clock.limit_s) for clock in self._clocks]
        self.corrections: list[Correction] = []
        self._correction: Correction | None = None
        """Correction of the last reply, until it is recorded."""

    @property
    def shown_ms(self) -> tuple[int, int]:
        """Values of the players' clocks when the current turn began, in milliseconds."""
        first, second = self._clocks
        return first.shown_ms, second.shown_ms

    def advance(self, at: float) -> int:
        """Set the time to that of an event, and return it.

        The time never decreases.  If one read brings two lines, the second may have an earlier stamp than the
        lines that were sent in response to the first; it then counts as received at the current time.
        """
        now_us = int((at - self.began) * 1e6 + 0.5)
        if now_us > self.now_us:
            self.now_us = now_us
        return self.now_us

    def await_start(self, player: int) -> None:
        """Begin to wait until a player has read its START, which is sent next."""
        self.player, self._is_starting = player, True
        self.since_us = self.now_us
        self.deadline_us = None if self._judge > 4 else self.now_us + self._start_us

    def start_sent(self) -> None:
        """Begin the start limit: START was sent to the player that is awaited.

        The sandboxes of both players are made before the first START is sent.
        """
        if self._judge > 4:
            self.since_us = self.now_us
            self.deadline_us = self.now_us + self._start_us

    def await_move(self, player: int) -> None:
        """Begin a player's turn: its clock runs from now."""
        self.player, self._is_starting = player, False
        self.since_us = now_us = self.now_us
        self.deadline_us = now_us + self._free_us[player] + self._limits_us[player]

    def await_cause(self, wait_us: int) -> None:
        """End the turn, and set a deadline for the cause of a failure, never later than the turn's."""
        self.player = None
        limit_us = self.now_us + wait_us
        self.deadline_us = limit_us if self.deadline_us is None else min(limit_us, self.deadline_us)

    def stop(self) -> None:
        """Await no player."""
        self.player = self.deadline_us = None

    def charge(self, player: int, usage: Usage | None) -> tuple[int, int]:
        """End a player's turn; return its wall time and its charged time, in microseconds."""
        wall_us = self.now_us - self.since_us
        spent_us = self._charged_us(usage) if usage is not None or self._free_us[player] else wall_us
        clock = self._clocks[player]
        if clock.left_s is not None:
            self._clocks[player] = clock = clock.after(spent_us / 1e6)
            self._limits_us[player] = _to_us(clock.limit_s)
        self._free_us[player] = 0
        self.player = self.deadline_us = None
        return wall_us, spent_us

    def corrected(self, reply: LineReceived, usage: Usage, line: int) -> LineReceived:
        """Return a reply without the CPU time that the bot used after it.

        ``line`` is the reply's index among the wire lines.
        """
        if reply.off_turn is not None and not self.counts_off_turn():
            reply = reply._replace(off_turn=None)
        if not reply.cores:
            return reply
        cpu_us = own_cpu_us(usage, self.now_us - self.since_us, reply.cores)
        if cpu_us != usage.cpu_us:
            self._correction = Correction(line, usage.cpu_us, reply.cores)
        return reply._replace(usage=usage._replace(cpu_us=cpu_us))

    def record_correction(self) -> None:
        """Record the correction of the last reply, whose counters are recorded: a move, or a late reply."""
        if self._correction is not None:
            self.corrections.append(self._correction)
            self._correction = None

    def is_overdrawn(self, reply: LineReceived) -> bool:
        """Return True if a reply of the player on turn is charged more than its limit."""
        if reply.player != self.player or self._is_starting or self._judge < 2:
            return False
        return self._charged_us(reply.usage) > self._limits_us[reply.player]

    def counts_off_turn(self) -> bool:
        """Return True if the counters of the bot off turn can decide the game, and so must be recorded."""
        return self._is_confined and self.player is not None and self._is_beyond_cap(self.player)

    def past_deadline(self, event: Event) -> tuple[int, Loss] | None:
        """Return the loser and the fault for a passed deadline, or extend the deadline and return None.

        Raises:
            RefereeError: The host kept the awaited player waiting for too long.
        """
        player = self.player
        assert player is not None  # a deadline is set only while a player is awaited
        wall_us, usage = self.now_us - self.since_us, self._usage(event)
        spent_us, limit_us = self._charged_us(usage), self._limit_us(player)
        is_queued = isinstance(event, TimePassed) and event.activity == "queued"
        more_us = extension_us(limit_us, spent_us, usage, is_queued=is_queued)
        if more_us is None:
            return player, self._late(player, event)
        if self._is_beyond_cap(player):
            # Both bots' counters begin with their processes, and so with the game, while a player starts.
            starved_us = self.now_us if self._is_starting else wall_us
            off_turn = _off_turn(event)
            if usage is not None and off_turn is not None and is_starved(starved_us, usage, off_turn):
                return 1 - player, self._starving(player, starved_us, usage, off_turn)
            raise RefereeError(self._kept_waiting(player, wall_us, spent_us, off_turn))
        least_us = QUEUED_EXTENSION_US if self._is_starting else 0
        self.deadline_us = self.now_us + max(more_us, least_us)
        return None

    def _limit_us(self, player: int) -> int:
        """Return the limit of the awaited player's charged time, in microseconds."""
        return self._start_us if self._is_starting else self._limits_us[player]

    def _uncharged_us(self, player: int) -> int:
        return 0 if self._is_starting else self._free_us[player]

    def _charged_us(self, usage: Usage | None) -> int:
        """Return the charged time of the awaited player so far, in microseconds."""
        player = self.player
        assert player is not None  # called while a player is awaited
        counted = usage if self._control.clock == FAIR else None
        return max(0, charged_us(self.now_us - self.since_us, counted) - self._uncharged_us(player))

    def _usage(self, event: Event) -> Usage | None:
        """Return the counters of the awaited player that an event carries, if they count."""
        if self._control.clock != FAIR or (self._is_starting and self._judge < 2):
            return None
        if isinstance(event, TimePassed):
            return event.usage
        is_reply = isinstance(event, LineReceived) and event.player == self.player and not self._is_starting
        return event.usage if is_reply else None  # type: ignore[union-attr]

    def _is_beyond_cap(self, player: int) -> bool:
        """Return True if the awaited player waited for so long that the host or the opponent is at fault."""
        limit_us = self._limit_us(player) + self._uncharged_us(player)
        return self.now_us - self.since_us > host_fault_us(limit_us)

    def _starving(self, awaited: int, wall_us: int, usage: Usage, off_turn: OffTurnUsage) -> Loss:
        """Return the fault of a bot whose processes kept its awaited opponent from the CPU."""
        share = off_turn_share(wall_us, usage, off_turn)
        name, is_starting = self._names[awaited], self._is_starting
        detail = verdict_text.starved(name, wall_us, usage, off_turn, share, is_starting=is_starting)
        return Loss(Reason.CPU, "off-turn-cpu", detail)

    def _kept_waiting(self, player: int, wall_us: int, spent_us: int, off_turn: OffTurnUsage | None) -> str:
        text = (
            f"this host kept {self._names[player]} waiting for a CPU for so long that its "
            f"{'start' if self._is_starting else 'turn'} could not be timed: {wall_us / 1e6:.3f} s passed, "
            f"{spent_us / 1e6:.3f} s of it are charged"
        )
        if off_turn is None:
            return text
        return f"{text}; {self._names[1 - player]} used {off_turn.cpu_us / 1e6:.3f} s of CPU time meanwhile"

    def _late(self, player: int, event: Event) -> Loss:
        """Return the fault of a player that is late; the event comes after the deadline."""
        passed = event if isinstance(event, TimePassed) else TimePassed(event.at)
        if self._is_starting:
            detail = verdict_text.start_limit(self._control.start_s, passed.activity)
            return Loss(Reason.START, "start-limit", detail)
        usage = self._usage(event)
        why = self._clocks[player].why_late(
            (self.now_us - self.since_us) / 1e6,
            self._free_us[player] / 1e6,
            usage,
            self._charged_us(usage) / 1e6,
        )
        if isinstance(event, LineReceived) and event.player == player:
            detail = verdict_text.late_reply(why, event.line)
        else:
            detail = verdict_text.late(why, passed.unfinished[player], passed.activity)
        return Loss(Reason.TIMEOUT, "late", detail)


def _off_turn(event: Event) -> OffTurnUsage | None:
    """Return the counters of the bot that is not awaited, if the event carries any."""
    return event.off_turn if isinstance(event, TimePassed | LineReceived) else None


def _to_us(seconds: float) -> int:
    return round(seconds * 1e6)
