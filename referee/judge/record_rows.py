"""Rows of a game's record: moves, lines, other events, corrections and files (pure).

A packed record has a column for each field of its moves, lines and facts, with a third of the bytes of a
mapping for each row and in a tenth of the time.  JSON has an object for each row.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple


class MoveRecord(NamedTuple):
    """One move as played."""

    player: int
    move: str
    wall_us: int
    """Microseconds from the last byte sent to the bot until its line was complete."""
    charged_us: int
    """Microseconds of that time which are charged to the bot."""
    cpu_us: int | None = None
    """CPU time of the bot in this turn, in microseconds; this and the next two are None where the counters
    were not read, as in a turn of under a millisecond (of which all is charged)."""
    wait_us: int | None = None
    """Stalled time in microseconds: the bot was ready to run and the host ran none of it, see
    referee/process/cpu_accounting.py."""
    referee_wait_us: int | None = None
    """Microseconds that the referee waited for a CPU before it could stamp the reply."""

    def view(self) -> dict[str, Any]:
        """Return the move as in JSON."""
        return {
            "player": self.player,
            "move": self.move,
            "wall_ms": self.wall_us / 1000,
            "charged_ms": self.charged_us / 1000,
            "cpu_ms": to_ms(self.cpu_us),
            "wait_ms": to_ms(self.wait_us),
            "referee_wait_ms": to_ms(self.referee_wait_us),
        }

    @classmethod
    def from_view(cls, view: dict[str, Any]) -> "MoveRecord":
        """Return the move in a JSON object."""
        return cls(
            view["player"],
            view["move"],
            round(view["wall_ms"] * 1000),
            round(view["charged_ms"] * 1000),
            *(to_us(view[name]) for name in ("cpu_ms", "wait_ms", "referee_wait_ms")),
        )


class WireLine(NamedTuple):
    """One line of a conversation."""

    player: int
    direction: str
    """``to`` the bot or ``from`` it."""
    line: str
    """The text without the line feed; decoded as UTF-8, or as Latin-1 if it is not UTF-8."""
    at_us: int
    """Microseconds from the start of the game until the line was completely sent, or read."""

    def view(self) -> dict[str, Any]:
        """Return the line as in JSON."""
        return {"player": self.player, "dir": self.direction, "line": self.line, "t_ms": self.at_us / 1000}

    @classmethod
    def from_view(cls, view: dict[str, Any]) -> "WireLine":
        """Return the line in a JSON object."""
        return cls(view["player"], view["dir"], view["line"], round(view["t_ms"] * 1000))


class Fact(NamedTuple):
    """An event of the judge other than a line."""

    player: int | None
    name: str
    """The event's name, for example ``BotExited``."""
    at_us: int
    """Microseconds since the start of the game."""
    after: int
    """Number of wire lines before the event."""
    data: tuple[Any, ...] = ()
    """The event's other fields, in their order."""

    @property
    def text(self) -> str:
        """The event's other fields as a text for people."""
        return "; ".join(str(part) for part in _flat(self.data) if part not in ("", None))

    def view(self) -> dict[str, Any]:
        """Return the fact as in JSON."""
        return {
            "player": self.player,
            "fact": self.name,
            "t_ms": self.at_us / 1000,
            "text": self.text,
            "after": self.after,
            "data": list(self.data),
        }

    @classmethod
    def from_view(cls, view: dict[str, Any]) -> "Fact":
        """Return the fact in a JSON object."""
        at_us = round(view["t_ms"] * 1000)
        return cls(view["player"], view["fact"], at_us, view["after"], to_tuples(view["data"]))


class Correction(NamedTuple):
    """Counters of a turn as they were read, if the counters of the move differ."""

    line: int
    """Index of the reply among the wire lines."""
    cpu_us: int
    """CPU time until the counters were read, in microseconds."""
    cores: int
    """Number of cores that the bot may have used after its reply."""


class KeptFile(NamedTuple):
    """A file that a bot wrote in its working directory.  It is private to the bot's author."""

    path: bytes
    """Path below the working directory, chosen by the bot: any bytes except NUL."""
    content: bytes
    """The whole file, or its end."""
    size: int
    """Bytes of the whole file."""


def columns_of(rows: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Return the columns of rows; without rows there are none."""
    return list(zip(*rows, strict=True))


def rows_of(columns: list[list[Any]]) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of columns."""
    return zip(*columns, strict=True) if columns else iter(())


def current_columns(data: dict[str, Any]) -> dict[str, Any]:
    """Convert the rows of a record of the first layout: all time was charged, and facts were text alone."""
    moves, facts = data["moves"], data["facts"]
    if moves:
        nothing = [None] * len(moves[0])
        moves = [*moves, moves[2], nothing, nothing, nothing]
    if facts:
        facts = [*facts[:3], [0] * len(facts[0]), [[text] for text in facts[3]]]
    return {**data, "moves": moves, "facts": facts}


def kept_files_of(lists: Any) -> tuple[tuple[KeptFile, ...], tuple[KeptFile, ...]]:
    """Return the files of both bots."""
    first, second = (tuple(KeptFile(*file) for file in files) for files in lists)
    return first, second


def to_ms(time_us: int | None) -> float | None:
    """Convert microseconds to milliseconds."""
    return None if time_us is None else time_us / 1000


def to_us(time_ms: float | None) -> int | None:
    """Convert the result of ``to_ms`` back.

    The result is exact: the error of the division is far below a thousandth.
    """
    return None if time_ms is None else round(time_ms * 1000)


def to_tuples(value: Any) -> Any:
    """Return a value with its lists, as msgpack and JSON have them, turned back into tuples."""
    return tuple(map(to_tuples, value)) if isinstance(value, list | tuple) else value


def _flat(value: tuple[Any, ...]) -> Iterator[Any]:
    for part in value:
        if isinstance(part, tuple | list):
            yield from _flat(tuple(part))
        else:
            yield part
