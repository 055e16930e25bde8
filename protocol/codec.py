"""Conversion between messages and lines.  A line here is text without its line feed.

A bot's line is parsed strictly, as by the course's own engine (docs/protocol.md).  Each kind of mistake has a
fault word and a sentence of its own: the reader of the sentence is a student whose bot has just lost.
"""

from functools import lru_cache

from protocol.errors import LocalProtocolError, RemoteProtocolError
from protocol.messages import (
    SWAP_WORD,
    BotMessage,
    Change,
    End,
    Move,
    Next,
    RefereeMessage,
    Start,
    Swap,
    Time,
)

MAX_COUNT_DIGITS = 15
"""Maximum digits of a number of milliseconds: more than any clock has."""

ENCODING = "utf-8"
"""Encoding of lines, which are ASCII.  Other bytes stay readable in the log, and the line is refused."""

_MOVE = "MOVE"
_EXPECTED = "expected 'MOVE;<move>' or 'SWAP'"


def decode_bytes(raw: bytes) -> str:
    """Decode a line's bytes into text that can be logged.

    A line that is not UTF-8 is decoded as Latin-1, which has a character for every byte; only ASCII bytes
    become ASCII characters.
    """
    try:
        return raw.decode(ENCODING)
    except UnicodeDecodeError:
        return raw.decode("latin-1")


def encode(message: RefereeMessage | BotMessage) -> str:
    """Write a message as a line, without the line feed.

    Raises LocalProtocolError if a field contains characters that the reader would take for a separator.
    """
    if isinstance(message, Change):
        return change_prefix(message.move, message.board) + message.next  # a StrEnum is a str
    match message:
        case Move(move):
            line = f"{_MOVE};{_field(move)}"
        case Start(seat):
            line = f"START;{_field(seat)}"
        case Time(own_ms, opponent_ms):
            line = f"TIME;{own_ms:d};{opponent_ms:d}"
        case End():
            line = "END"
        case Swap():
            line = SWAP_WORD
    return line


def change_prefix(move: str, board: str) -> str:
    """Return a CHANGE line without its last field, in which the lines to both bots differ.

    Raises LocalProtocolError if a field cannot be parsed again.
    """
    line = f"CHANGE;{move};{board};"
    if line.count(";") != 3 or not _is_plain(line) or not (move and board):
        raise LocalProtocolError(
            f"CHANGE of {move!r} to {board!r} cannot be parsed again: a field is empty or not plain"
        )
    return line


def _field(text: str) -> str:
    if not text or ";" in text or not _is_plain(text):
        raise LocalProtocolError(f"{text!r} cannot be a field of a message")
    return text


def _is_plain(text: str) -> bool:
    """Return True if all characters are printable ASCII other than the space."""
    return text.isascii() and text.isprintable() and " " not in text


@lru_cache(maxsize=256)  # a game has few different lines; malformed ones are not kept
def decode_bot_line(line: str) -> BotMessage:
    """Parse a bot's line.  Raises RemoteProtocolError with a fault word and a sentence."""
    if line == SWAP_WORD:
        return Swap()
    word, separator, move = line.partition(";")
    if word == _MOVE and separator and move and ";" not in move and _is_plain(move):
        return Move(move)
    raise _explain(line)


def _explain(line: str) -> RemoteProtocolError:
    """Return the error for the likeliest mistake in a malformed line; the first one that fits is taken."""
    if line == "":
        return RemoteProtocolError(
            "blank-line", f"the line is empty; {_EXPECTED}. Does the bot print a line feed too many?"
        )
    if line.endswith("\r"):
        return RemoteProtocolError(
            "crlf",
            "the line ends in CR LF, the line end of Windows; the protocol wants LF alone. "
            'Print "\\n" and not println or endl on Windows '
            '(Python: sys.stdout.reconfigure(newline="\\n"))',
        )
    if "\0" in line:
        return RemoteProtocolError("nul-byte", f"the line holds a NUL byte; {_EXPECTED}")
    if not line.isascii():
        return RemoteProtocolError("not-ascii", f"the line holds characters that are not ASCII; {_EXPECTED}")
    compact = "".join(line.split())
    if compact != line and (compact == SWAP_WORD or compact.startswith(_MOVE + ";")):
        return RemoteProtocolError("spaces", f"the line holds spaces; {_EXPECTED} with no space in it")
    upper = line.upper()
    if upper != line and (upper == SWAP_WORD or (upper.startswith(_MOVE) and not line.startswith(_MOVE))):
        return RemoteProtocolError("lower-case", f"the protocol is in capital letters; {_EXPECTED}")
    if line in (_MOVE, _MOVE + ";"):
        return RemoteProtocolError("no-move", f"the move is missing; {_EXPECTED}")
    if line.startswith(_MOVE + ";") and ";" in line[len(_MOVE) + 1 :]:
        return RemoteProtocolError("extra-field", f"there is a field too many; {_EXPECTED}")
    move = line.removeprefix(_MOVE).strip(" :,")
    meant = f" (did you mean 'MOVE;{move}'?)" if move.isascii() and move.isdigit() else ""
    return RemoteProtocolError(
        "unknown-message",
        f"the line is no message of the protocol; {_EXPECTED}{meant}. "
        "Only moves belong on standard output: print debug text to standard error",
    )


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= MAX_COUNT_DIGITS


def decode_referee_line(line: str) -> RefereeMessage:
    """Parse a referee's line (for bots).  Raises RemoteProtocolError."""
    match line.split(";"):
        case ["START", seat] if seat:
            return Start(seat)
        case ["CHANGE", move, board, following] if move and board:
            if following in list(Next):
                return Change(move, board, Next(following))
        case ["TIME", own_ms, opponent_ms] if _is_count(own_ms) and _is_count(opponent_ms):
            return Time(int(own_ms), int(opponent_ms))
        case ["END"]:
            return End()
    raise RemoteProtocolError("unknown-message", f"{line!r} is no message of a referee")
