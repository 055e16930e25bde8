"""Bytes to lines: the same lines however the bytes arrive, and a stop at the first one that is too long."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from protocol.lines import MAX_LINE_BYTES, LineBuffer


def expected(data: bytes, longest: int) -> tuple[list[bytes], bytes | None, bytes]:
    """Lines, overflow and unfinished rest of some bytes, taken at once and one by one."""
    lines: list[bytes] = []
    line = b""
    for byte in data:
        if byte == ord("\n"):
            lines.append(line)
            line = b""
        elif len(line) == longest:
            return lines, line, b""
        else:
            line += bytes([byte])
    return lines, None, line


def pieces_of(data: bytes, cuts: list[int]) -> list[bytes]:
    ends = sorted(min(cut, len(data)) for cut in cuts)
    return [data[begin:end] for begin, end in zip([0, *ends], [*ends, len(data)], strict=True)]


@given(
    # Line feeds are frequent, so that lines of every length around the maximum occur.
    st.lists(st.sampled_from([b"a", b"b", b"\n", b"\r", b"\0", b"\xff"]), max_size=40).map(b"".join),
    st.lists(st.integers(0, 40), max_size=12),
    st.integers(1, 6),
)
@example(b"aaa\nbbb\n", [2, 3, 4], 3)  # exactly the maximum, cut before and after the line feed
@example(b"aaaa\nbbb\n", [3], 3)  # one more, the last byte and the line feed in the second piece
@example(b"a\naaaa", [1, 2, 3], 3)  # too long and not ended
@example(b"a\naaaa\nb\n", [], 3)
def test_the_same_lines_however_the_bytes_are_split(data: bytes, cuts: list[int], longest: int) -> None:
    lines, overflow, unfinished = expected(data, longest)
    buffer = LineBuffer(longest)
    given_back: list[bytes] = []
    for piece in pieces_of(data, cuts):
        given_back += buffer.feed(piece)
    assert given_back == lines
    assert buffer.overflow == overflow
    assert buffer.unfinished == unfinished


def test_a_line_is_given_as_soon_as_it_is_complete() -> None:
    buffer = LineBuffer()
    assert buffer.feed(b"MOV") == []
    assert buffer.unfinished == b"MOV"
    assert buffer.feed(b"E;3") == []
    assert buffer.feed(b"\n") == [b"MOVE;3"]
    assert buffer.unfinished == b""


def test_lines_in_one_piece_keep_their_order() -> None:
    buffer = LineBuffer()
    assert buffer.feed(b"MOVE;1\nMOVE;2\n\nSWA") == [b"MOVE;1", b"MOVE;2", b""]
    assert buffer.unfinished == b"SWA"
    assert buffer.overflow is None


def test_a_carriage_return_stays_in_the_line() -> None:
    buffer = LineBuffer()
    assert buffer.feed(b"MOVE;1\r\nMOVE;2\r") == [b"MOVE;1\r"]
    assert buffer.unfinished == b"MOVE;2\r"


def test_nothing_fed_is_nothing() -> None:
    buffer = LineBuffer()
    assert buffer.feed(b"") == []
    assert buffer.unfinished == b""
    assert buffer.overflow is None


@pytest.mark.parametrize(
    ("pieces", "lines"),
    [
        pytest.param([b"xxxxx\n"], [], id="only line"),
        pytest.param([b"xxxxx"], [], id="without its end"),
        pytest.param([b"xxxxx\nb\nc\n"], [], id="first"),
        pytest.param([b"a\nxxxxx\nc\n"], [b"a"], id="in the middle"),
        pytest.param([b"a\nb\nxxxxx\n"], [b"a", b"b"], id="last"),
        pytest.param([b"a\nb\nxxxxx"], [b"a", b"b"], id="last, without its end"),
        pytest.param([b"xxx", b"xx\nb\n"], [], id="begun earlier, ended"),
        pytest.param([b"xxx", b"xx"], [], id="begun earlier, not ended"),
        pytest.param([b"a\nxxxx", b"x\nb\n"], [b"a"], id="one byte too many"),
        pytest.param([b"x", b"x", b"x", b"x", b"x"], [], id="byte by byte"),
    ],
)
def test_overflow_in_each_position(pieces: list[bytes], lines: list[bytes]) -> None:
    buffer = LineBuffer(4)
    given_back: list[bytes] = []
    for piece in pieces:
        given_back += buffer.feed(piece)
    assert given_back == lines
    assert buffer.overflow == b"xxxx"
    assert buffer.unfinished == b""


def test_nothing_is_given_after_an_overflow() -> None:
    buffer = LineBuffer(4)
    buffer.feed(b"xxxxx")
    for piece in (b"\n", b"a\n", b"yyyyyyyyy\n"):
        assert buffer.feed(piece) == []
        assert buffer.overflow == b"xxxx"
        assert buffer.unfinished == b""


def test_two_overflows_in_one_piece_tell_the_first() -> None:
    buffer = LineBuffer(2)
    assert buffer.feed(b"a\nbbb\nc\nddd") == [b"a"]
    assert buffer.overflow == b"bb"


def test_the_default_maximum() -> None:
    buffer = LineBuffer()
    assert buffer.feed(b"x" * MAX_LINE_BYTES) == []
    assert buffer.overflow is None
    assert buffer.feed(b"\n") == [b"x" * MAX_LINE_BYTES]
    assert buffer.feed(b"x" * MAX_LINE_BYTES + b"x") == []
    assert buffer.overflow == b"x" * MAX_LINE_BYTES


def test_buffers_share_nothing() -> None:
    one, other = LineBuffer(4), LineBuffer(4)
    one.feed(b"xxxxx")
    assert other.feed(b"a\n") == [b"a"]
    assert other.overflow is None
