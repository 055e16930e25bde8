"""Streams of numbers in the fewest bits, with frequencies that adapt to the numbers so far (pure).

A number is written as its length in bits, which has a frequency, and its bits below the highest one, which
have none.  All of a stream is one integer, by range asymmetric numeral systems without limited precision.
Source: J. Duda, "Asymmetric numeral systems: entropy coding combining speed of Huffman coding with
compression rate of arithmetic coding", arXiv:1311.2540, 2013.  The codes are those of stored records, and
never change.
"""

LENGTHS = 32
"""Lengths that have a frequency each: a time of 2 to the power of 32 microseconds is over an hour."""
LONGEST = 127
"""Most bits of a number."""
STEP = 12
"""Frequency that each number adds to its length; all lengths begin with 1."""
MOST = 1200
"""Sum of frequencies at which all are halved: the scale of times changes within a game."""
_START = 1
"""The integer of an empty stream."""


class StreamError(ValueError):
    """The stream is damaged, or a number cannot be written."""


class Frequencies:
    """Frequencies of the lengths of similar numbers."""

    __slots__ = ("counts", "total")

    def __init__(self) -> None:
        self.counts = [1] * (LENGTHS + 1)
        """Frequency of each length; the last one is that of all greater lengths."""
        self.total = LENGTHS + 1

    def add(self, length: int) -> None:
        """Count a number of this length."""
        self.counts[length] += STEP
        self.total += STEP
        if self.total > MOST:
            self.counts = [(count + 1) // 2 for count in self.counts]
            self.total = sum(self.counts)


class NumberWriter:
    """A stream that is written."""

    def __init__(self) -> None:
        self._parts: list[tuple[int, int, int]] = []
        """Frequency, sum of the frequencies before, sum of all frequencies."""

    def choice(self, index: int, count: int) -> None:
        """Write one of ``count`` choices."""
        self._parts.append((1, index, count))

    def number(self, frequencies: Frequencies, value: int) -> None:
        """Write a number.  Raises StreamError if it is negative or too large."""
        length = value.bit_length()
        if value < 0 or length > LONGEST:
            raise StreamError(f"{value} cannot be written")
        kind = min(length, LENGTHS)
        counts = frequencies.counts
        self._parts.append((counts[kind], sum(counts[:kind]), frequencies.total))
        frequencies.add(kind)
        if kind == LENGTHS:
            self.choice(length, LONGEST + 1)
        if length > 1:
            self.choice(value - (1 << length - 1), 1 << length - 1)

    def signed(self, frequencies: Frequencies, value: int) -> None:
        """Write a number that can be negative.  Raises StreamError if it is too large."""
        self.number(frequencies, value << 1 if value >= 0 else (-value << 1) - 1)

    def content(self) -> bytes:
        """Return what was written."""
        state = _START
        for frequency, before, total in reversed(self._parts):
            quotient, rest = divmod(state, frequency)
            state = quotient * total + before + rest
        return state.to_bytes(-(-state.bit_length() // 8), "big")


class NumberReader:
    """A stream that is read, in the order of writing.

    Not every damage is found, and a stream never ends by itself: ``end`` must be called after the last
    number.  Methods raise StreamError.
    """

    def __init__(self, content: bytes) -> None:
        self._state = int.from_bytes(content, "big")

    def choice(self, count: int) -> int:
        """Read one of ``count`` choices."""
        if not self._state:
            raise StreamError("the numbers of a record end too early")
        self._state, index = divmod(self._state, count)
        return index

    def number(self, frequencies: Frequencies) -> int:
        """Read what ``NumberWriter.number`` wrote."""
        rest = self.choice(frequencies.total)
        counts = frequencies.counts
        kind = 0
        while rest >= counts[kind]:
            rest -= counts[kind]
            kind += 1
        self._state = self._state * counts[kind] + rest
        frequencies.add(kind)
        length = self.choice(LONGEST + 1) if kind == LENGTHS else kind
        return 1 << length - 1 | self.choice(1 << length - 1) if length > 1 else length

    def signed(self, frequencies: Frequencies) -> int:
        """Read what ``NumberWriter.signed`` wrote."""
        value = self.number(frequencies)
        return -(value + 1 >> 1) if value & 1 else value >> 1

    def end(self) -> None:
        """Check that everything was read."""
        if self._state != _START:
            raise StreamError("the numbers of a record do not end with it")
