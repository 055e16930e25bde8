"""Messages and lines: encoding, decoding, the fault word of each refused line; the announced time control."""

import inspect
import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol import codec
from protocol.announced import TIME_VARIABLE, AnnouncedTime, parse_announced_time
from protocol.codec import decode_bot_line, decode_bytes, decode_referee_line, encode
from protocol.errors import LocalProtocolError, RemoteProtocolError
from protocol.messages import BotMessage, Change, End, Move, Next, RefereeMessage, Start, Swap, Time
from referee.judge.clock import TimeControl, announced
from referee.judge.results import Player
from referee.playing import Job, play_alone
from tests.support.confinement import UNHURRIED

# Fields are printable ASCII without the space, the separator and the backslash, by which bytes that are not
# UTF-8 are written.
FIELD_CHARACTERS = "".join(chr(code) for code in range(0x21, 0x7F) if chr(code) not in ";\\")
fields = st.text(st.sampled_from(FIELD_CHARACTERS), min_size=1, max_size=12)
bot_messages: st.SearchStrategy[BotMessage] = st.builds(Move, fields) | st.just(Swap())
referee_messages: st.SearchStrategy[RefereeMessage] = (
    st.builds(Start, fields)
    | st.builds(Change, fields, fields, st.sampled_from(Next))
    | st.builds(Time, st.integers(0, 10**15 - 1), st.integers(0, 10**15 - 1))
    | st.just(End())
)


@pytest.mark.parametrize(
    ("message", "line"),
    [
        (Start("South"), "START;South"),
        (Change("3", "7,7,0,7,7,0", Next.YOU), "CHANGE;3;7,7,0,7,7,0;YOU"),
        (Change("SWAP", "7,7,0,7,7,0", Next.OPPONENT), "CHANGE;SWAP;7,7,0,7,7,0;OPP"),
        (Change("3", "0,0,14,0,0,14", Next.NOBODY), "CHANGE;3;0,0,14,0,0,14;END"),
        (Time(4000, 3750), "TIME;4000;3750"),
        (End(), "END"),
        (Move("3"), "MOVE;3"),
        (Swap(), "SWAP"),
    ],
)
def test_lines_of_the_grammar(message: RefereeMessage | BotMessage, line: str) -> None:
    assert encode(message) == line
    decode = decode_bot_line if isinstance(message, Move | Swap) else decode_referee_line
    assert decode(line) == message


@given(bot_messages | referee_messages)
def test_a_message_survives_its_line_of_printable_ascii(message: BotMessage | RefereeMessage) -> None:
    line = encode(message)
    decode = decode_bot_line if isinstance(message, Move | Swap) else decode_referee_line
    assert decode(line) == message
    assert line.isascii()
    assert line.isprintable()
    assert " " not in line


@pytest.mark.parametrize(
    "field", ["", ";", "a;b", " ", "a b", "a\n", "\n", "\r", "a\tb", "\0", "\x7f", "\N{FULLWIDTH DIGIT ONE}"]
)
def test_a_message_with_an_ambiguous_field_is_our_bug(field: str) -> None:
    messages: list[Any] = [
        *(Start(field), Move(field), Change(field, "7,7", Next.YOU), Change("1", field, Next.YOU)),
    ]
    for message in messages:
        with pytest.raises(LocalProtocolError):
            encode(message)


# A bot's lines.


@pytest.mark.parametrize("move", ["1", "+1", "01", "0", "-1", "99999999999", "e2e4", "a1-b2:x", "~"])
def test_the_move_itself_is_checked_by_the_game(move: str) -> None:
    assert decode_bot_line(f"MOVE;{move}") == Move(move)


# docs/protocol.md, "What it accepts and refuses": every line that is a protocol fault in form.
FAULTS = {
    "no-move": ["MOVE", "MOVE;"],
    "extra-field": ["MOVE;3;x", "MOVE;3;", "MOVE;;3", "MOVE;;"],
    "spaces": [
        " MOVE;3",
        "MOVE;3 ",
        "MOVE; 3",
        "MOVE ;3",
        "MO VE;3",
        "MOVE;1 2",
        "MOVE;3\t",
        " SWAP",
        "SWAP ",
        "S WAP",
    ],
    "crlf": ["MOVE;3\r", "SWAP\r", "\r", "debug text\r"],
    "blank-line": [""],
    "lower-case": ["move;3", "Move;3", "MOVe;3", "move", "move 3", "swap", "Swap"],
    "nul-byte": ["MOVE;3\0", "\0", "\0SWAP"],
    "not-ascii": [
        "MOVE;\N{FULLWIDTH DIGIT THREE}",
        "MOVE;\N{ARABIC-INDIC DIGIT THREE}",
        "\N{ZERO WIDTH NO-BREAK SPACE}MOVE;3",
        "MOVE;3\N{NO-BREAK SPACE}",
    ],
    "unknown-message": [
        "thinking...",
        "best move: 3",
        "3",
        "MOVE3",
        "MOVE,3",
        "MOVE:3",
        "MOVES;3",
        "SWAP;",
        "SWAP;3",
        "SWAPPED",
        "MOVE;3\x07",
        ";",
        " ",
        "END",
        "START;South",
        "CHANGE;1;7,7;YOU",
    ],
}


@pytest.mark.parametrize(("line", "fault"), [(line, fault) for fault in FAULTS for line in FAULTS[fault]])
def test_each_refused_line_has_a_fault_word_and_a_sentence(line: str, fault: str) -> None:
    with pytest.raises(RemoteProtocolError) as error:
        decode_bot_line(line)
    assert error.value.fault == fault
    assert error.value.message == str(error.value)
    assert len(error.value.message) > 20


def test_every_fault_word_of_the_codec_has_a_case() -> None:
    words = set(re.findall(r'RemoteProtocolError\(\s*"([a-z-]+)"', inspect.getsource(codec)))
    assert words == set(FAULTS)


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
        *((line, r"did you mean 'MOVE;3'\?") for line in ("MOVE 3", "3", "MOVE3", "MOVE:3", "MOVE, 3")),
    ],
)
def test_the_sentence_has_advice(line: str, advice: str) -> None:
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
    # Nothing is read generously: the message is written as it was read.
    assert encode(message) == line


# Bytes.


@given(st.binary(max_size=20))
def test_any_bytes_become_text_that_can_be_written(raw: bytes) -> None:
    text = decode_bytes(raw)
    text.encode("utf-8")
    assert not raw.isascii() or text == raw.decode("ascii")


def test_bytes_that_are_not_utf8_stay_readable() -> None:
    assert decode_bytes(b"MOVE;3\xff\xfe") == "MOVE;3\u00ff\u00fe"  # as Latin-1


@pytest.mark.parametrize(
    "raw", [b"MOVE;\xef\xbc\x93", b"MOVE;\xff", b"MOVE;3\xe9", b"MOVE;\xc3", b"MOVE;\x80\x81", b"SWAP\xff"]
)
def test_bytes_that_are_not_ascii_are_refused(raw: bytes) -> None:
    with pytest.raises(RemoteProtocolError):
        decode_bot_line(decode_bytes(raw))


# A referee's lines.


@pytest.mark.parametrize(
    "line",
    [
        *("", "START", "START;", "START;South;7", "start;South", "END;", "END ", "end", "MOVE;1", "SWAP"),
        *("CHANGE", "CHANGE;1;7,7", "CHANGE;;7,7;YOU", "CHANGE;1;;YOU", "CHANGE;1;7,7;"),
        *("CHANGE;1;7,7;you", "CHANGE;1;7,7;NOBODY", "CHANGE;1;7,7;YOU;", "CHANGE;1;7,7;YOU\r"),
        *("TIME", "TIME;1", "TIME;1;", "TIME;-1;2", "TIME;1;2;3", "TIME;1.5;2", f"TIME;{10**15};1"),
    ],
)
def test_lines_that_no_referee_sends(line: str) -> None:
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


# The time control in a bot's environment.

limits = st.integers(min_value=1, max_value=10**9)


@given(st.builds(AnnouncedTime, limits, st.none() | limits, st.integers(0, 10**6)))
def test_an_announced_time_survives_its_text(time: AnnouncedTime) -> None:
    assert parse_announced_time(str(time)) == time


@pytest.mark.parametrize(
    ("control", "text"),
    [
        (TimeControl(move_s=1), "move_ms=1000"),
        (TimeControl(game_s=60, increment_s=0.5), "game_ms=60000;increment_ms=500"),
        (TimeControl(move_s=0.0001), "move_ms=1"),
        (TimeControl(move_s=1e11), "move_ms=100000000000000"),
        (TimeControl(move_s=10, game_s=120), "move_ms=10000;game_ms=120000"),
    ],
)
def test_time_controls_as_texts(control: TimeControl, text: str) -> None:
    assert announced(control) == text


def test_unknown_keys_are_ignored() -> None:
    assert parse_announced_time("move_ms=5;moon_phase=3") == AnnouncedTime(5)


@pytest.mark.parametrize(
    "text", ["", "move_ms", "move_ms=-1", "move_ms=1.5", "move_ms=1 ;game_ms=2", "=3", "1"]
)
def test_texts_that_are_no_time_control(text: str) -> None:
    with pytest.raises(ValueError, match="no time control"):
        parse_announced_time(text)


def test_a_bot_finds_its_time_control_in_its_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(os.environ, TIME_VARIABLE, "move_ms=1")  # somebody else's
    bot = tmp_path / "bot.py"
    bot.write_text(f"import os, sys; sys.exit(os.environ[{TIME_VARIABLE!r}])")
    player = Player("one", (sys.executable, str(bot)), str(tmp_path), "")
    # The other process may end first, while this one still starts: END does not hurry it.
    control = TimeControl(move_s=2, game_s=20)
    record = play_alone(Job("one", "manchester", (player, player), control, UNHURRIED))
    assert record.stderr[0].strip() == "move_ms=2000;game_ms=20000"
