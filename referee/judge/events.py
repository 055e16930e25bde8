"""Events, which the judge receives, and effects, which it returns."""

from typing import NamedTuple


class Usage(NamedTuple):
    """Readings of the system's counters for a turn, from its beginning until now; all in microseconds."""

    cpu_us: int
    """CPU time of all threads of the bot's processes together."""
    wait_us: int
    """Stalled time: something of the bot was ready to run and the host ran none of it.  Records of earlier
    versions have the wait of the one thread that waited longest."""
    referee_wait_us: int
    """Delay of this time stamp: the time for which the referee was ready to run and had no CPU, and the time
    for which it read the processes of the other bot."""


class OffTurnUsage(NamedTuple):
    """CPU time of the bot that is not on turn, while the other bot is awaited."""

    cpu_us: int
    """Counted CPU time of all threads of its processes together, in microseconds.  The system does not count
    short-lived processes for which no parent waits, so the true time can be longer."""
    span_us: int
    """Time between the two readings, in microseconds."""
    cores: int
    """Number of cores that this game may use; a quota of CPU time can make it smaller."""


class Sent(NamedTuple):
    """A line was written to the bot completely."""

    player: int
    at: float
    line: str


class StartRead(NamedTuple):
    """The bot has read its START line; on systems that do not show this, the line was sent."""

    player: int
    at: float


class LineReceived(NamedTuple):
    """A complete line of the bot was read."""

    player: int
    at: float
    line: str
    usage: Usage | None = None
    """Counters of the bot's turn; None if they were not read: in a turn of under a millisecond, and with the
    wall clock."""
    cores: int = 0
    """Cores that the bot may have used after its reply, until the counters were read; 0 if it did not run."""
    off_turn: OffTurnUsage | None = None
    """CPU time of the other bot in the same turn; None if it was not read, as in turns of under a second."""


class LineTooLong(NamedTuple):
    """The bot sent a line that is too long."""

    player: int
    at: float
    head: str


class OutputBlocked(NamedTuple):
    """A line could not be written: the pipe is full of lines that the bot has not read."""

    player: int
    at: float


class InputClosed(NamedTuple):
    """A line could not be written: no process holds the bot's standard input open any more."""

    player: int
    at: float


class OutputClosed(NamedTuple):
    """The bot's standard output ended, but the process lives on."""

    player: int
    at: float
    unfinished: str
    """Text after the last line feed."""


class BotExited(NamedTuple):
    """The bot's process ended; every line it had completed was reported before."""

    player: int
    at: float
    status: int
    """Exit status; negative is the number of a signal."""
    unfinished: str
    """Text on standard output after the last line feed."""
    last_words: str
    """End of standard error, as ``stderr.last_words`` returns it; empty if there is none."""
    held_mb: int = 0
    """MiB of memory at the last check, if that was near the limit; otherwise 0."""
    full: str = ""
    """Directories that the bot could write and that had no space left."""


class LimitPassed(NamedTuple):
    """The bot exceeded a limit and was killed."""

    player: int
    at: float
    limit: str
    """The name of the limit: ``memory``, ``process`` or ``files``."""
    used: int
    """The amount used: MiB for memory, a number otherwise."""
    allowed: int
    """The limit, in the same unit."""


class NotStarted(NamedTuple):
    """The bot's command could not be run, or neither bot's process lived until its START line."""

    player: int
    at: float
    why: str
    why_other: str = ""
    """The reason why the other bot did not start either; empty if it did."""


class ProcessEnded(NamedTuple):
    """A player ended, with all that was seen of the cause.

    The judge makes BotExited, LimitPassed or NotStarted of it (``faults``).
    """

    player: int
    at: float
    status: int
    """See ``BotExited``, also for the next two fields."""
    unfinished: str
    last_words: str
    held_mb: int = 0
    """MiB of memory at the last check, or the most that the bot's control group used."""
    full: str = ""
    """See ``BotExited``."""
    new_files: int = 0
    """Number of files and folders that the bot made in its working directory."""
    is_reported: bool = False
    """True if a LimitPassed, after which the bot was killed, was reported before."""
    group_kills: tuple[int, int] | None = None
    """Number of times that the bot's control group reached its memory limit, and that the kernel killed in it
    for want of memory; None without a control group."""
    host_kills: int = 0
    """Number of processes that the kernel killed during the game for want of the host's memory, or of the
    part that we may use."""
    sandbox_fault: str | None = None
    """Error message of a sandbox that never started the bot; None if it did, or if there was no sandbox."""
    not_executed: str | None = None
    """Reason why the command could not be executed in the sandbox; None if it was."""
    other: "ProcessEnded | None" = None
    """The end of the other bot, if neither had taken its START line; None otherwise."""


class TimePassed(NamedTuple):
    """No other event happened until now."""

    at: float
    unfinished: tuple[str, str] = ("", "")
    """Each bot's output after its last line feed."""
    usage: Usage | None = None
    """Counters of the current turn, or of the bot's start; None where they were not read."""
    activity: str = ""
    """Activity of the awaited bot: one of ACTIVITIES; empty if it is unknown."""
    is_queued: bool = False
    """True if a thread of the awaited bot is ready to run and has no CPU; facts have this in ``activity``."""
    off_turn: OffTurnUsage | None = None
    """See ``LineReceived``."""


ACTIVITIES = ("reading", "running", "queued", "waiting", "stopped", "ended")
"""Activities of a bot: waiting to read its standard input, computing, ready to compute but without a CPU,
waiting for something else, stopped by a signal, or gone."""


PlayerEvent = (
    Sent
    | StartRead
    | LineReceived
    | LineTooLong
    | OutputBlocked
    | InputClosed
    | OutputClosed
    | BotExited
    | LimitPassed
    | NotStarted
    | ProcessEnded
)
Event = PlayerEvent | TimePassed
FaultEvent = LineTooLong | OutputBlocked | InputClosed | OutputClosed | LimitPassed
"""Events that are a fault of the bot in every stage of a game."""


class Send(NamedTuple):
    """Effect: write this line to the bot, then report Sent, OutputBlocked or InputClosed."""

    player: int
    line: str


# The only other effect, the end of the game, is ``Match.result``.
