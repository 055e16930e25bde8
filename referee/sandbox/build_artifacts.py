"""The parser for the stream of a confined build's products.  Pure: bytes in, files out.

The build could write into this stream itself.  The parser therefore trusts nothing: every number is bounded,
and a name is only a text, which the caller compares with the expected products.

The stream is a sequence of records, each a text that ends with a NUL: ``copied`` when the bot's directory has
been copied, ``built`` when the build command has ended with 0, ``KIND SIZE NAME`` for each product, followed
by its content of SIZE bytes, the same with size 0 for some undeclared files, and ``end``.
"""

from dataclasses import dataclass
from enum import StrEnum

MAX_HEADER_BYTES = 4096 + 64
"""PATH_MAX of Linux (linux/limits.h), and room for the rest of the record."""


class ArtifactError(ValueError):
    """The stream is too long or invalid; the message completes a sentence that begins ``its build``."""


class Kind(StrEnum):
    """The type of the file with a product's name."""

    FILE = "file"
    PROGRAM = "program"
    """A file that is executable."""
    LINK = "link"
    OTHER = "other"
    """A pipe, a socket, a device."""
    UNDECLARED = "undeclared"
    """A file that is no product, and was written by a build that wrote no product."""


@dataclass(frozen=True, slots=True)
class Artifact:
    """One file that was sent; only a regular file has content."""

    name: str
    """The name as it was sent: ``./`` and a path."""
    kind: Kind
    content: bytes


class Unpacker:
    """Parses the stream incrementally, with bounds on the bytes of contents and the number of artifacts."""

    def __init__(self, most_bytes: int, most_artifacts: int) -> None:
        self.copied = False
        self.built = False
        self.ended = False
        self.artifacts: list[Artifact] = []
        self._bytes_left = most_bytes
        self._most_bytes = most_bytes
        self._most_artifacts = most_artifacts
        self._waiting = bytearray()
        self._open: tuple[str, Kind, int] | None = None
        """Name, kind and size of the artifact whose content is not complete yet."""

    def feed(self, data: bytes) -> None:
        """Add received bytes.  Raises ArtifactError."""
        self._waiting += data
        while self._parse_next():
            pass

    def _parse_next(self) -> bool:
        """Parse one record or one content; return False if it is not complete."""
        if self._open is not None:
            name, kind, size = self._open
            if len(self._waiting) < size:
                return False
            self.artifacts.append(Artifact(name, kind, bytes(self._waiting[:size])))
            del self._waiting[:size]
            self._open = None
            return True
        end = self._waiting.find(b"\0", 0, MAX_HEADER_BYTES)
        if end < 0:
            if len(self._waiting) >= MAX_HEADER_BYTES:
                raise ArtifactError("wrote into what is the sandbox's own")
            return False
        record = bytes(self._waiting[:end])
        del self._waiting[: end + 1]
        self._parse_record(record)
        return True

    def _parse_record(self, record: bytes) -> None:
        if not self.copied and record == b"copied":
            self.copied = True
        elif self.copied and not self.built and record == b"built":
            self.built = True
        elif self.built and not self.ended and record == b"end":
            self.ended = True
        elif self.built and not self.ended:
            self._begin_artifact(record)
        else:
            raise ArtifactError("wrote into what is the sandbox's own")

    def _begin_artifact(self, record: bytes) -> None:
        words = record.split(b" ", 2)
        # A size of more digits is refused before it is a number.
        if len(words) != 3 or not words[1].isdigit() or len(words[1]) > 15:
            raise ArtifactError("wrote into what is the sandbox's own")
        try:
            kind, name = Kind(words[0].decode()), words[2].decode()
        except ValueError as error:  # not UTF-8, too
            raise ArtifactError("made a file whose name is no text") from error
        size = int(words[1])
        if len(self.artifacts) >= self._most_artifacts:
            raise ArtifactError(f"made more than {self._most_artifacts} files")
        if size > self._bytes_left:
            raise ArtifactError(f"made files of more than {self._most_bytes >> 20} MB together")
        self._bytes_left -= size
        self._open = (name, kind, size)
