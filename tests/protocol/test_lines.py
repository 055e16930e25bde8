"""Bytes to lines: the same lines however the bytes arrive, and a stop at the first line that is too long."""

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
@example(b"", [], 3)
@example(b"aaa\nbbb\n", [2, 3, 4], 3)  # exactly the maximum, cut before and after the line feed
@example(b"aaaa\nbbb\n", [3], 3)  # one more, the last byte and the line feed in the second piece
@example(b"a\naaaa", [1, 2, 3], 3)  # too long and not ended
@example(b"a\naaaa\nb\n", [], 3)
@example(b"a\nbbb\nc\nddd", [], 2)  # two lines are too long: the first one counts
def test_the_same_lines_however_the_bytes_are_split(data: bytes, cuts: list[int], longest: int) -> None:
    lines, overflow, unfinished = expected(data, longest)
    buffer = LineBuffer(longest)
    received: list[bytes] = []
    for piece in pieces_of(data, cuts):
        received += buffer.feed(piece)
    assert received == lines
    assert buffer.overflow == overflow
    assert buffer.unfinished == unfinished


def test_a_line_is_returned_as_soon_as_it_is_complete() -> None:
    buffer = LineBuffer()
    assert buffer.feed(b"MOV") == []
    assert buffer.unfinished == b"MOV"
    assert buffer.feed(b"E;3") == []
    assert buffer.feed(b"\n") == [b"MOVE;3"]
    assert buffer.feed(b"MOVE;1\r\n\nMOVE;2\r") == [b"MOVE;1\r", b""]
    assert buffer.unfinished == b"MOVE;2\r"
    assert buffer.overflow is None


@pytest.mark.parametrize(
    ("pieces", "lines", "ends"),
    [
        pytest.param([b"xxxxx\n"], [], True, id="only line"),
        pytest.param([b"xxxxx"], [], False, id="without its end"),
        pytest.param([b"a\nxxxxx\nc\n"], [b"a"], True, id="in the middle"),
        pytest.param([b"xxx", b"xx\nb\n"], [], True, id="begun earlier, ended"),
        pytest.param([b"a\nxxxx", b"x\nb\n"], [b"a"], True, id="one byte too many"),
        pytest.param([b"x", b"x", b"x", b"x", b"x"], [], False, id="byte by byte"),
        pytest.param([b"xxxxxxxxxx"], [], False, id="far too long"),
    ],
)
def test_nothing_is_returned_after_a_line_that_is_too_long(
    pieces: list[bytes], lines: list[bytes], ends: bool
) -> None:
    buffer = LineBuffer(4)
    received: list[bytes] = []
    for piece in pieces:
        received += buffer.feed(piece)
    assert buffer.has_overflow_ended == ends
    for piece in [b"xx\n", b"a\n", b"yyyyyyyyy\n"]:
        received += buffer.feed(piece)
    assert received == lines
    assert buffer.has_overflow_ended
    assert buffer.overflow_bytes == b"".join(pieces).count(b"x") + 2 * (not ends)
    assert buffer.overflow == b"xxxx"
    assert buffer.unfinished == b""


def test_the_default_maximum() -> None:
    buffer = LineBuffer()
    assert buffer.feed(b"x" * MAX_LINE_BYTES + b"\n") == [b"x" * MAX_LINE_BYTES]
    assert buffer.feed(b"x" * MAX_LINE_BYTES + b"x") == []
    assert buffer.overflow == b"x" * MAX_LINE_BYTES
