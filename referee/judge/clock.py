"""Time controls, clocks, and the charged time of a turn (pure: time is an argument).

The fair clock.  On a busy machine a bot may be ready to run while the host runs none of it.  The charged part
of a turn's wall time is

    min(wall, max(wall - stalled - referee's wait, CPU time))

where stalled is the time in which something of the bot was ready to run and nothing of it ran
(referee/process/cpu_accounting.py), the referee's wait is the delay of the reply's time stamp, and the CPU
time is that of all threads and processes together.  A bot that queues behind its own threads gains nothing,
since their CPU time counts; a bot that the host kept waiting loses nothing.
"""

import re
from dataclasses import dataclass

from protocol.announced import AnnouncedTime
from protocol.codec import MAX_COUNT_DIGITS
from referee.judge.events import OffTurnUsage, Usage

FAIR, WALL = "fair", "wall"
CLOCKS = (FAIR, WALL)
"""Kinds of clock: the charged time is computed as above, or is all the time that passed."""
ALLOW, SUSPEND, MEASURE = "allow", "suspend", "measure"
PONDERING = (ALLOW, SUSPEND, MEASURE)
"""Settings for a bot while its opponent thinks: it may compute; it is stopped; or it may compute and its CPU
time is recorded."""
HOST_FAULT_FACTOR = 20
HOST_FAULT_EXTRA_US = 1_000_000
"""Factor and offset of the wall time, relative to the turn's limit, beyond which a turn ends the game as the
host's fault, if less than the limit is charged.  A machine with 8 busy processes for 2 CPUs was seen to take
5 times as long."""
MOST_OFF_TURN_SHARE = 0.25
"""Largest share that the bot off turn may use of the CPU time that the awaited bot leaves on the game's
cores, while the awaited bot is kept waiting for longer than ``host_fault_us``.  A scheduler gives equal
shares to all threads that are ready to run.  If the awaited bot waits in 19 of 20 moments and its opponent
has more than a quarter of the time, the opponent has more than 5 busy threads, or sessions, for each core.
A bot that ponders with one or two threads uses less, however busy the host is."""
MOST_OFF_TURN_SHARE_OF_A_CROWD = 0.1
"""Largest share for a bot that used ``HOST_FAULT_FACTOR`` times the CPU time of the awaited bot.  Such a bot
has that many busy threads or sessions, and more than 2 for each core.  Where the referee and its bots have a
part of the host, such as a service beside others, that bot alone keeps its opponent from computing."""
LEAST_WAIT_SHARE = 0.6
"""Least share of such a turn in which the awaited bot, or the referee, waited for a CPU by the counters.  A
wait that is not over is not counted yet; beside 60 busy processes on one core, a wait lasts a second."""
LEAST_EXTENSION_US = 1000
"""Least extension of a deadline that passed without being confirmed."""
QUEUED_EXTENSION_US = 10_000
"""Least extension for a bot that waits for a CPU at that moment: a wait is counted only when it is over.
Linux runs each process that is ready within some milliseconds."""

DEFAULT_MARGIN_S = 0.05
"""Forgiven overshoot of a deadline.  Above the p99 of 3 ms between a bot's write and the referee's stamp,
measured for one game in a worker process of its own, and still far below what a person would notice."""
DEFAULT_START_S = 30.0
"""Start limit, which is not part of a bot's playing time: a cold Java or JIT start on a loaded machine takes
seconds."""
DEFAULT_SETUP_S = 0.75
"""Time of the very first turn of a game that is not charged: a bot sets itself up after START (late imports,
tables, just-in-time compilation), and the second player does so for free while the first one is on turn.  The
course's engine charged nothing for it either: its recorded bot that takes 0.7 s a reply made five moves as
South within 3 s, and four as North."""
TOO_LONG_S = 10**MAX_COUNT_DIGITS / 1000
"""Exclusive upper bound of all times: more milliseconds than a TIME line or an announcement can hold."""
DEFAULT_MOVE_S = 10.0
"""Default limit per move if no limit is given, so that every game ends."""


@dataclass(frozen=True, slots=True)
class TimeControl:
    """The time limits of a game, in seconds.  Raises ValueError for an invalid combination."""

    move_s: float | None = None
    """Limit of each single move; None for no such limit."""
    game_s: float | None = None
    """Limit of all of a bot's moves of one game together (the course's rule); None for no such limit."""
    increment_s: float = 0.0
    """Time added to the rest of ``game_s`` after each move."""
    margin_s: float = DEFAULT_MARGIN_S
    """Largest overshoot that is forgiven."""
    start_s: float = DEFAULT_START_S
    """Limit for the time from the moment at which START is sent until the bot has taken it."""
    setup_s: float = DEFAULT_SETUP_S
    """Time of the very first turn of the game that is not charged."""
    clock: str = FAIR
    """One of CLOCKS."""
    ponder: str = MEASURE
    """One of PONDERING."""

    def __post_init__(self) -> None:
        if self.move_s is None and self.game_s is None:
            raise ValueError("a time control needs a limit per move or a limit per game")
        for name in ("move_s", "game_s", "start_s"):
            value = getattr(self, name)
            if value is not None and not value > 0:  # also refuses NaN
                raise ValueError(f"{name} must be more than 0 seconds, not {value:g}")
        for name in ("increment_s", "margin_s", "setup_s"):
            value = getattr(self, name)
            if not value >= 0:
                raise ValueError(f"{name} must not be below 0 seconds, but is {value:g}")
        for name in ("move_s", "game_s", "start_s", "increment_s", "margin_s", "setup_s"):
            if getattr(self, name) == float("inf"):
                raise ValueError(f"{name} must be below {TOO_LONG_S:g} seconds, not inf")
        if self.increment_s and self.game_s is None:
            raise ValueError("an increment needs a limit per game to be added to")
        for name, known in (("clock", CLOCKS), ("ponder", PONDERING)):
            if getattr(self, name) not in known:
                raise ValueError(f"{name} must be one of {', '.join(known)}, not {getattr(self, name)!r}")

    def __str__(self) -> str:
        parts = []
        if self.game_s is not None:
            parts.append(f"{self.game_s:g} s per game")
        if self.increment_s:
            parts.append(f"+{self.increment_s:g} s a move")
        if self.move_s is not None:
            parts.append(f"{self.move_s:g} s per move")
        if self.clock == WALL:
            parts.append("wall clock")
        if self.ponder == SUSPEND:
            parts.append("bots suspended while the opponent thinks")
        return ", ".join(parts) + f" (margin {self.margin_s:g} s, start {self.start_s:g} s)"


def announceable(control: TimeControl) -> TimeControl:
    """Return a new game's time control.  Raises ValueError if bots cannot read its times.

    Records of earlier versions may have such times.
    """
    for name in ("move_s", "game_s", "start_s", "increment_s", "margin_s", "setup_s"):
        if (getattr(control, name) or 0) >= TOO_LONG_S:
            raise ValueError(f"{name} must be below {TOO_LONG_S:g} seconds, not {getattr(control, name):g}")
    return control


_GAME_LIMIT = re.compile(r"(?P<game>[-+.e\d]+) s per game(?:, \+(?P<increment>[-+.e\d]+) s a move)?")


def game_limit_in(words: str) -> tuple[float, float] | None:
    """Return the limit per game and the increment in the words of a time control, in seconds.

    Returns None without a limit per game.
    """
    found = _GAME_LIMIT.match(words)
    return None if found is None else (float(found["game"]), float(found["increment"] or 0))


def announced(control: TimeControl) -> str:
    """Return the time control as the environment variable ``TIME_VARIABLE`` announces it to bots."""

    def in_ms(seconds: float | None) -> int | None:
        return None if seconds is None else max(1, int(seconds * 1000))

    return str(
        AnnouncedTime(in_ms(control.move_s), in_ms(control.game_s), in_ms(control.increment_s or None) or 0)
    )


def charged_us(wall_us: int, usage: Usage | None) -> int:
    """Return the charged part of a turn's wall time; all of it where the counters were not read."""
    if usage is None:
        return wall_us
    fair_us = wall_us - usage.wait_us - usage.referee_wait_us
    return min(wall_us, max(fair_us, usage.cpu_us))


def own_cpu_us(usage: Usage, wall_us: int, cores: int) -> int:
    """Return the CPU time of a turn, in microseconds, if the bot went on computing after its reply.

    Until the referee got a CPU to read the reply, the bot used at most all of the ``cores``, at the rate of
    the turn.  That time is not the turn's.
    """
    if not 0 < usage.referee_wait_us < wall_us:
        return usage.cpu_us
    return usage.cpu_us - int(usage.referee_wait_us * min(cores, usage.cpu_us / wall_us))


def host_fault_us(limit_us: int) -> int:
    """Return the wall time of a turn after which the host, not the bot, is to blame."""
    return HOST_FAULT_FACTOR * limit_us + HOST_FAULT_EXTRA_US


def is_starved(wall_us: int, usage: Usage | None, off_turn: OffTurnUsage | None) -> bool:
    """Return True if the bot off turn took the CPU from the awaited bot.

    Its CPU time is compared with all that the awaited bot did not use itself.  The rest counts for the host:
    other programs, other games, idle cores and CPU time that nobody counted.

    Args:
        wall_us: The time that the bot has been awaited, which is beyond ``host_fault_us``.
        usage: The counters of the awaited bot in this time.
        off_turn: The counters of the other bot.
    """
    if usage is None or off_turn is None:
        return False
    if usage.wait_us + usage.referee_wait_us < LEAST_WAIT_SHARE * wall_us:
        return False
    is_crowd = off_turn.cpu_us > HOST_FAULT_FACTOR * usage.cpu_us
    most = MOST_OFF_TURN_SHARE_OF_A_CROWD if is_crowd else MOST_OFF_TURN_SHARE
    return off_turn_share(wall_us, usage, off_turn) > most


def off_turn_share(wall_us: int, usage: Usage, off_turn: OffTurnUsage) -> float:
    """Return the share of the bot off turn in the CPU time that the awaited bot did not use."""
    others_us = off_turn.cores * max(wall_us, off_turn.span_us) - usage.cpu_us
    return off_turn.cpu_us / max(1, others_us)


def extension_us(limit_us: int, spent_us: int, usage: Usage | None, *, is_queued: bool) -> int | None:
    """Return the extension of a deadline that passed, in microseconds; None if the deadline holds.

    Args:
        limit_us: The limit in charged time.
        spent_us: Charged time so far.
        usage: The counters on which the charged time rests; None where they were not read.
        is_queued: Whether the bot waits for a CPU at this moment.  The wait is counted only when it is over.
    """
    if is_queued and usage is not None and usage.cpu_us <= limit_us:
        return max(limit_us - spent_us, QUEUED_EXTENSION_US)
    return None if spent_us > limit_us else max(limit_us - spent_us, LEAST_EXTENSION_US)


@dataclass(frozen=True, slots=True)
class Clock:
    """One bot's clock between two turns."""

    control: TimeControl
    left_s: float | None
    """Remaining time of the limit per game; None without such a limit."""

    @classmethod
    def fresh(cls, control: TimeControl) -> "Clock":
        """Return the clock at the start of a game."""
        return cls(control, control.game_s)

    @property
    def budget_s(self) -> float:
        """Time allowed for the next move, without the margin."""
        move_s = self.control.move_s
        if self.left_s is None:
            assert move_s is not None  # a time control has at least one limit
            return move_s
        return self.left_s if move_s is None else min(move_s, self.left_s)

    @property
    def shown_ms(self) -> int:
        """The clock as it is sent to bots, in ms: the game's remaining time, else the limit of a move."""
        left_s = self.control.move_s if self.left_s is None else self.left_s
        assert left_s is not None  # a time control has at least one limit
        return int(left_s * 1000)

    @property
    def limit_s(self) -> float:
        """Time after which the next move is late."""
        return self.budget_s + self.control.margin_s

    def after(self, elapsed_s: float) -> "Clock":
        """Return the clock after a move of this length that was in time: charged, then incremented."""
        if self.left_s is None:
            return self
        # An overshoot within the margin is not carried over as a debt.
        return Clock(self.control, max(0.0, self.left_s - elapsed_s) + self.control.increment_s)

    def why_late(
        self, elapsed_s: float, free_s: float = 0.0, usage: Usage | None = None, charged_s: float = 0.0
    ) -> str:
        """Describe the limit that a move of this length exceeded; ``free_s`` of the length were not charged.

        ``usage`` is given where the counters were read, with ``charged_s``, the time charged by them.
        """
        control = self.control
        passed = f"{elapsed_s:.3f} s passed"
        if free_s:
            passed += f" (the first {free_s:g} s of the game's first turn are not counted)"
        if usage is not None:
            waited_s = min(elapsed_s, (usage.wait_us + usage.referee_wait_us) / 1e6)
            passed += (
                f": the bot used {usage.cpu_us / 1e6:.3f} s of CPU time, and waited {waited_s:.3f} s while "
                f"other programs had the CPU, which is not charged; {charged_s:.3f} s are charged"
            )
        if self.left_s is not None and (control.move_s is None or self.left_s < control.move_s):
            return (
                f"the game limit is {control.game_s:g} s"
                + (f" plus {control.increment_s:g} s a move" if control.increment_s else "")
                + f", {self.left_s:.3f} s of it were left for this move, and {passed}"
            )
        return f"the limit is {control.move_s:g} s a move, and {passed}"
