"""Messages and lines: what is read, what is refused, and the word for each way of getting it wrong."""

import inspect
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol import codec
from protocol.codec import decode_bot_line, decode_bytes, decode_referee_line, encode
from protocol.errors import LocalProtocolError, ProtocolError, RemoteProtocolError
from protocol.messages import BotMessage, Change, End, Move, Next, RefereeMessage, Start, Swap

# What a field of a message may hold: printable ASCII without the space and the separator.  No move has a
# backslash, which is how bytes that are not UTF-8 are written.
FIELD_CHARACTERS = "".join(chr(code) for code in range(0x21, 0x7F) if chr(code) not in ";\\")
fields = st.text(st.sampled_from(FIELD_CHARACTERS), min_size=1, max_size=12)
bot_messages: st.SearchStrategy[BotMessage] = st.builds(Move, fields) | st.just(Swap())
referee_messages: st.SearchStrategy[RefereeMessage] = (
    st.builds(Start, fields) | st.builds(Change, fields, fields, st.sampled_from(Next)) | st.just(End())
)

# --- messages to lines and back ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("message", "line"),
    [
        (Start("South"), "START;South"),
        (Start("North"), "START;North"),
        (Change("3", "7,7,0,7,7,0", Next.YOU), "CHANGE;3;7,7,0,7,7,0;YOU"),
        (Change("SWAP", "7,7,0,7,7,0", Next.OPPONENT), "CHANGE;SWAP;7,7,0,7,7,0;OPP"),
        (Change("3", "0,0,14,0,0,14", Next.NOBODY), "CHANGE;3;0,0,14,0,0,14;END"),
        (End(), "END"),
        (Move("3"), "MOVE;3"),
        (Swap(), "SWAP"),
    ],
)
def test_lines_of_the_grammar(message: RefereeMessage | BotMessage, line: str) -> None:
    assert encode(message) == line
    decode = decode_bot_line if isinstance(message, Move | Swap) else decode_referee_line
    assert decode(line) == message


@given(bot_messages)
def test_a_bots_message_survives_its_line(message: BotMessage) -> None:
    assert decode_bot_line(encode(message)) == message


@given(referee_messages)
def test_a_referees_message_survives_its_line(message: RefereeMessage) -> None:
    assert decode_referee_line(encode(message)) == message


@given(bot_messages | referee_messages)
def test_lines_are_printable_ascii_without_line_feed(message: BotMessage | RefereeMessage) -> None:
    line = encode(message)
    assert line.isascii()
    assert line.isprintable()
    assert " " not in line


@pytest.mark.parametrize(
    "field", ["", ";", "a;b", " ", "a b", "a\n", "\n", "\r", "a\tb", "\0", "\x7f", "\N{FULLWIDTH DIGIT ONE}"]
)
def test_what_the_reader_could_not_tell_apart_is_our_bug(field: str) -> None:
    messages: list[Any] = [
        Start(field),
        Move(field),
        Change(field, "7,7", Next.YOU),
        Change("1", field, Next.YOU),
    ]
    for message in messages:
        with pytest.raises(LocalProtocolError):
            encode(message)


# --- a bot's lines ----------------------------------------------------------------------------------


@pytest.mark.parametrize("move", ["1", "+1", "01", "0", "-1", "99999999999", "e2e4", "a1-b2:x", "~"])
def test_the_move_itself_is_the_games_business(move: str) -> None:
    assert decode_bot_line(f"MOVE;{move}") == Move(move)


FAULTS = [
    # docs/protocol.md, "What it accepts and refuses": every line that is a protocol fault in form.
    ("MOVE", "no-move"),
    ("MOVE;", "no-move"),
    ("MOVE;3;x", "extra-field"),
    ("MOVE;3;", "extra-field"),
    ("MOVE;;3", "extra-field"),
    ("MOVE;;", "extra-field"),
    (" MOVE;3", "spaces"),
    ("MOVE;3 ", "spaces"),
    ("MOVE; 3", "spaces"),
    ("MOVE ;3", "spaces"),
    ("MO VE;3", "spaces"),
    ("MOVE;1 2", "spaces"),
    ("MOVE;3\t", "spaces"),
    (" SWAP", "spaces"),
    ("SWAP ", "spaces"),
    ("S WAP", "spaces"),
    ("MOVE;3\r", "crlf"),
    ("SWAP\r", "crlf"),
    ("\r", "crlf"),
    ("debug text\r", "crlf"),
    ("", "blank-line"),
    ("move;3", "lower-case"),
    ("Move;3", "lower-case"),
    ("MOVe;3", "lower-case"),
    ("move", "lower-case"),
    ("move 3", "lower-case"),
    ("swap", "lower-case"),
    ("Swap", "lower-case"),
    ("MOVE;3\0", "nul-byte"),
    ("\0", "nul-byte"),
    ("\0SWAP", "nul-byte"),
    ("MOVE;\N{FULLWIDTH DIGIT THREE}", "not-ascii"),
    ("MOVE;\N{ARABIC-INDIC DIGIT THREE}", "not-ascii"),
    ("\N{ZERO WIDTH NO-BREAK SPACE}MOVE;3", "not-ascii"),  # a byte order mark
    ("MOVE;3\N{NO-BREAK SPACE}", "not-ascii"),
    ("thinking...", "unknown-message"),
    ("best move: 3", "unknown-message"),
    ("3", "unknown-message"),
    ("MOVE3", "unknown-message"),
    ("MOVE,3", "unknown-message"),
    ("MOVE:3", "unknown-message"),
    ("MOVES;3", "unknown-message"),
    ("SWAP;", "unknown-message"),
    ("SWAP;3", "unknown-message"),
    ("SWAPPED", "unknown-message"),
    ("MOVE;3\x07", "unknown-message"),
    (";", "unknown-message"),
    (" ", "unknown-message"),
    # what only the referee says
    ("END", "unknown-message"),
    ("START;South", "unknown-message"),
    ("CHANGE;1;7,7;YOU", "unknown-message"),
]


@pytest.mark.parametrize(("line", "fault"), FAULTS)
def test_each_refused_line_has_a_word_and_a_sentence(line: str, fault: str) -> None:
    with pytest.raises(RemoteProtocolError) as error:
        decode_bot_line(line)
    assert error.value.fault == fault
    assert error.value.message == str(error.value)
    assert len(error.value.message) > 20


def test_every_fault_word_of_the_codec_has_a_case() -> None:
    words = set(re.findall(r'RemoteProtocolError\(\s*"([a-z-]+)"', inspect.getsource(codec)))
    assert words == {fault for _, fault in FAULTS}


@pytest.mark.parametrize(
    ("line", "advice"),
    [
        ("MOVE;3\r", "Windows"),
        ("MOVE;3\r", r"\\n"),
        ("debug", "standard error"),
        ("", "line feed too many"),
        ("move;3", "capital letters"),
        ("MOVE;3 ", "no space"),
        ("MOVE;", "'MOVE;<move>' or 'SWAP'"),
    ],
)
def test_the_sentence_says_what_to_do(line: str, advice: str) -> None:
    with pytest.raises(RemoteProtocolError, match=advice):
        decode_bot_line(line)


near_misses = st.text(st.sampled_from("MOVESWAPmove;;1 \r\t\0\xe9"), max_size=10)
mutated = st.tuples(
    st.sampled_from(["MOVE;3", "SWAP", "MOVE;"]), st.integers(0, 6), st.characters(max_codepoint=0x2FF)
).map(lambda parts: parts[0][: parts[1]] + parts[2] + parts[0][parts[1] :])


@given(st.text(max_size=10) | near_misses | mutated)
def test_any_line_is_exactly_a_message_or_refused(line: str) -> None:
    try:
        message = decode_bot_line(line)
    except RemoteProtocolError:
        return
    # Nothing is read generously: what was read is written the same.
    assert encode(message) == line


def test_whose_fault_an_error_is() -> None:
    assert issubclass(LocalProtocolError, ProtocolError)
    assert issubclass(RemoteProtocolError, ProtocolError)
    assert not issubclass(RemoteProtocolError, LocalProtocolError)
    assert not issubclass(LocalProtocolError, RemoteProtocolError)


# --- bytes ------------------------------------------------------------------------------------------


@given(st.text(st.characters(max_codepoint=0x7F), max_size=20))
def test_ascii_bytes_are_their_text(text: str) -> None:
    assert decode_bytes(text.encode("ascii")) == text


@given(st.binary(max_size=20))
def test_any_bytes_become_text_that_can_be_written(raw: bytes) -> None:
    decode_bytes(raw).encode("utf-8")


def test_bytes_that_are_not_utf8_stay_readable() -> None:
    assert decode_bytes(b"MOVE;3\xff\xfe") == "MOVE;3\u00ff\u00fe"  # as Latin-1


@pytest.mark.parametrize(
    "raw", [b"MOVE;\xef\xbc\x93", b"MOVE;\xff", b"MOVE;3\xe9", b"MOVE;\xc3", b"MOVE;\x80\x81", b"SWAP\xff"]
)
def test_bytes_that_are_not_ascii_are_refused(raw: bytes) -> None:
    with pytest.raises(RemoteProtocolError):
        decode_bot_line(decode_bytes(raw))


# --- a referee's lines ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "line",
    [
        "",
        "START",
        "START;",
        "START;South;7",
        "start;South",
        "CHANGE",
        "CHANGE;1;7,7",
        "CHANGE;;7,7;YOU",
        "CHANGE;1;;YOU",
        "CHANGE;1;7,7;",
        "CHANGE;1;7,7;you",
        "CHANGE;1;7,7;NOBODY",
        "CHANGE;1;7,7;YOU;",
        "CHANGE;1;7,7;YOU\r",
        "END;",
        "END ",
        "end",
        "MOVE;1",
        "SWAP",
    ],
)
def test_lines_that_no_referee_says(line: str) -> None:
    with pytest.raises(RemoteProtocolError) as error:
        decode_referee_line(line)
    assert error.value.fault == "unknown-message"


@given(st.text(st.sampled_from("STARENDCHGYOUP;1,7 "), max_size=16) | st.text(max_size=8))
def test_any_text_is_a_referees_line_or_refused(line: str) -> None:
    try:
        decode_referee_line(line)
    except RemoteProtocolError as error:
        if error.fault != "unknown-message":
            raise


@pytest.mark.parametrize("line", ["MOVE 3", "3", "MOVE3", "MOVE:3", "MOVE, 3"])
def test_a_move_written_another_way_is_told_how(line: str) -> None:
    with pytest.raises(RemoteProtocolError, match=r"did you mean 'MOVE;3'\?"):
        decode_bot_line(line)
