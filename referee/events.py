"""What the judge is told (events: facts, each with its time) and what it asks for (effects)."""

from typing import NamedTuple


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
    """The last line on standard error; empty if there is none."""


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


PlayerEvent = (
    Sent
    | Taken
    | LineReceived
    | LineTooLong
    | OutputBlocked
    | InputClosed
    | OutputClosed
    | BotExited
    | NotStarted
)
Event = PlayerEvent | TimePassed


class Send(NamedTuple):
    """Effect: write this line to the bot, then report Sent, OutputBlocked or InputClosed."""

    player: int
    line: str


# The other effect there is, the end of the game, is ``Match.result`` being set.
