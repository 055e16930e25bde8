"""What the judge is told (events: facts, each with its time) and what it asks for (effects)."""

from typing import NamedTuple


class Usage(NamedTuple):
    """What the system's counters say of a turn, from its beginning until now; all in microseconds."""

    cpu_us: int
    """CPU time of all threads of the bot's processes together."""
    wait_us: int
    """How long one of them, the one that waited longest, was ready to run and had no CPU."""
    referee_wait_us: int
    """How long the referee itself was ready to run, to stamp this moment, and had no CPU."""


class Sent(NamedTuple):
    """Our line left for the bot completely."""

    player: int
    at: float
    line: str


class Taken(NamedTuple):
    """The bot has read its START line (or where that cannot be seen, the line was sent)."""

    player: int
    at: float


class LineReceived(NamedTuple):
    """A complete line of the bot was read."""

    player: int
    at: float
    line: str
    usage: Usage | None = None
    """Of its turn, if the counters were read: not for a turn of under a millisecond, nor for
    the wall clock."""


class LineTooLong(NamedTuple):
    """The bot sent more than a line may hold."""

    player: int
    at: float
    head: str


class OutputBlocked(NamedTuple):
    """Our line could not be written: what the bot has not read yet fills the pipe."""

    player: int
    at: float


class InputClosed(NamedTuple):
    """Our line could not be written: nobody holds the bot's standard input open any more."""

    player: int
    at: float


class OutputClosed(NamedTuple):
    """The bot's standard output ended, but the process lives on."""

    player: int
    at: float
    unfinished: str
    """What came after the last line feed."""


class BotExited(NamedTuple):
    """The bot's process ended; every line it had completed was reported before."""

    player: int
    at: float
    status: int
    """Exit status; negative is the number of a signal."""
    unfinished: str
    """What came on standard output after the last line feed."""
    last_words: str
    """What standard error ends with, see referee/diagnosis.py; empty if there is nothing."""


class LimitPassed(NamedTuple):
    """The bot used more than it may, and was killed for it."""

    player: int
    at: float
    limit: str
    """Which one: ``memory`` or ``processes``."""
    used: int
    """In MiB for memory, else a number."""
    allowed: int
    """The same, of the limit."""


class NotStarted(NamedTuple):
    """The bot's command could not be run."""

    player: int
    at: float
    why: str


class TimePassed(NamedTuple):
    """Nothing else happened until now."""

    at: float
    unfinished: tuple[str, str] = ("", "")
    """What each bot sent after its last line feed."""
    usage: Usage | None = None
    """Of the present turn, if the counters were read."""
    doing: str = ""
    """What the bot that is awaited is doing: one of DOING; empty if that cannot be told."""


DOING = ("reading", "running", "queued", "waiting", "stopped", "ended")
"""What a bot can be found doing: waiting to read its standard input, computing, ready to compute but without
a CPU, waiting for something else, stopped by a signal, or gone."""


PlayerEvent = (
    Sent
    | Taken
    | LineReceived
    | LineTooLong
    | OutputBlocked
    | InputClosed
    | OutputClosed
    | BotExited
    | LimitPassed
    | NotStarted
)
Event = PlayerEvent | TimePassed


class Send(NamedTuple):
    """Effect: write this line to the bot, then report Sent, OutputBlocked or InputClosed."""

    player: int
    line: str


# The other effect there is, the end of the game, is ``Match.result`` being set.
