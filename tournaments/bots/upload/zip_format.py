"""Strict reader of the structure of zip archives: their entries, and the position of their data.

Sources: PKWARE's APPNOTE.TXT 6.3.10, by its sections; David Fifield, "A better zip bomb", WOOT 2019, for
entries that overlap.  The standard library's ``zipfile`` is not used: it creates an object for each entry
before they can be counted, accepts entries that overlap, and decompresses bzip2 and LZMA without a bound.

Memory and time are bounded by the size of the archive.
"""

import stat
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import BinaryIO

from tournaments.bots.upload.limits import UploadError, shown

END = struct.Struct("<4s4H2LH")  # 4.3.16
END_SIGNATURE = b"PK\5\6"
CENTRAL = struct.Struct("<4s4B4HL2L5H2L")  # 4.3.12
CENTRAL_SIGNATURE = b"PK\1\2"
LOCAL = struct.Struct("<4s5H3L2H")  # 4.3.7
LOCAL_SIGNATURE = b"PK\3\4"
LONGEST_COMMENT = 0xFFFF  # 4.4.12: two bytes for its length
IN_ZIP64 = 0xFFFFFFFF  # 4.4.8: the number is in a field of the ZIP64 format
MANY = 0xFFFF  # 4.4.22: so is the count

ENCRYPTED = 1 << 0 | 1 << 6 | 1 << 13  # 4.4.4: encryption, strong encryption, masked headers
SIZES_FOLLOW = 1 << 3  # 4.4.4: the local header was written before the sizes were known
UTF_8 = 1 << 11  # 4.4.4
STORED, DEFLATED = 0, 8  # 4.4.5
UNIX_EXTRA = 0x000D  # 4.5.7: times, owner, and a link's target or a device's numbers
UNIX_EXTRA_FIXED = 12

CHUNK = 1 << 16
"""Bytes that are read, and decompressed, at a time."""

AGAIN = "zip the folder again and upload the new archive"
DAMAGED = "the archive is damaged"


@dataclass(frozen=True, slots=True)
class Entry:
    """The central directory's entry of one file or folder, with the position of its compressed data."""

    name: str
    """Unchecked name, without the ``/`` at the end of a folder's name."""
    is_folder: bool
    mode: int
    """Permissions and type as on Unix; 0 if the archive has none."""
    method: int
    size: int
    compressed_size: int
    crc: int
    data_offset: int

    @property
    def is_other(self) -> str | None:
        """Words for an entry that is neither a file nor a folder; None for any other entry."""
        kind = stat.S_IFMT(self.mode)
        if kind == stat.S_IFLNK:
            return "a symbolic link"
        if kind not in (0, stat.S_IFDIR if self.is_folder else stat.S_IFREG):
            return "a device, a pipe or a socket" if kind != stat.S_IFDIR else "a file and a folder at once"
        return None


def read_entries(file: BinaryIO, size: int, longest_name: int) -> list[Entry]:
    """Return all entries of an archive of ``size`` bytes, in the order of its directory.

    Names of more than ``longest_name`` bytes are refused.  Raises UploadError.
    """
    end, count, start = _find_end(file, size)
    entries, extents = [], [(start, end, "")]
    for number, fields, raw, extra in _central_headers(file, start, end, count):
        flags, method, crc, compressed, unpacked, attributes, offset = fields
        if len(raw) > longest_name:
            raise UploadError(
                f"{shown(_readable(raw))} is a path of {len(raw)} bytes, {longest_name} are allowed; "
                "use shorter names"
            )
        name = _decode(raw, flags)
        if flags & ENCRYPTED or method == 99:  # 4.4.5: AES
            raise UploadError(f"{shown(name)} is encrypted; zip the folder without a password")
        if IN_ZIP64 in (compressed, unpacked, offset):
            raise UploadError(f"{shown(name)} has its size in the ZIP64 format; use an ordinary zip program")
        if method not in (STORED, DEFLATED):
            raise UploadError(
                f"{shown(name)} is compressed by method {method}; zip the folder with the method Deflate"
            )
        _check_extra(extra, name)
        data = _check_local(
            file, number, (flags, method, crc, compressed, unpacked, offset, raw), name, start
        )
        extents.append((offset, data + compressed, name))
        is_folder = raw.endswith(b"/")
        entries.append(
            Entry(
                name[:-1] if is_folder else name,
                is_folder,
                attributes >> 16,
                method,
                unpacked,
                compressed,
                crc,
                data,
            )
        )
    extents.sort()
    for (_, before, first), (after, _, second) in pairwise(extents):
        if after < before:
            raise UploadError(
                f"{shown(first or second)} shares its data with another entry, as in a zip bomb; {AGAIN}"
            )
    return entries


def _find_end(file: BinaryIO, size: int) -> tuple[int, int, int]:
    """Return the end of the directory, its number of entries, and its beginning."""
    tail_start = max(0, size - END.size - LONGEST_COMMENT)
    file.seek(tail_start)
    tail = file.read(size - tail_start)
    at = len(tail)
    while (at := tail.rfind(END_SIGNATURE, 0, at)) >= 0:
        if len(tail) - at < END.size:
            continue
        _, disk, first_disk, here, count, length, start, comment = END.unpack_from(tail, at)
        if at + END.size + comment == len(tail):  # else these four bytes are part of something else
            break
    else:
        raise UploadError(f"the archive is cut off or damaged: its directory is not at its end; {AGAIN}")
    if disk or first_disk or here != count:
        raise UploadError("the archive is one part of several; make one archive in one piece")
    end = tail_start + at
    if count == MANY or IN_ZIP64 in (length, start):
        raise UploadError("the archive is in the ZIP64 format; zip fewer files, with an ordinary zip program")
    if start + length != end:
        raise UploadError(f"{DAMAGED}: its directory is not where its end says; {AGAIN}")
    return end, count, start


_Fields = tuple[int, int, int, int, int, int, int]


def _central_headers(
    file: BinaryIO, start: int, end: int, count: int
) -> Iterator[tuple[int, _Fields, bytes, bytes]]:
    """Yield number, fields, name and extra field of each entry; local headers may be read in between."""
    at = start
    for number in range(1, count + 1):
        file.seek(at)
        header = file.read(min(CENTRAL.size, end - at))
        if len(header) < CENTRAL.size or not header.startswith(CENTRAL_SIGNATURE):
            raise UploadError(f"{DAMAGED}: its directory has no entry {number} of {count}; {AGAIN}")
        fields = CENTRAL.unpack(header)
        flags, method, crc, compressed, unpacked = fields[5], fields[6], fields[9], fields[10], fields[11]
        name_length, extra_length, comment_length = fields[12:15]
        attributes, offset = fields[17:19]
        at += CENTRAL.size + name_length + extra_length + comment_length
        if at > end:
            raise UploadError(f"{DAMAGED}: entry {number} of its directory is cut off; {AGAIN}")
        raw, extra = file.read(name_length), file.read(extra_length)
        yield number, (flags, method, crc, compressed, unpacked, attributes, offset), raw, extra
    if at != end:
        raise UploadError(f"{DAMAGED}: its directory holds more than its {count} entries; {AGAIN}")


def _readable(raw: bytes) -> str:
    return raw.decode("utf-8", "backslashreplace")


def _decode(raw: bytes, flags: int) -> str:
    """Return a name, in UTF-8 even where the flag is not set, as macOS writes it."""
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        encoding = "says that it is UTF-8, and is not" if flags & UTF_8 else "is not in UTF-8"
        raise UploadError(
            f"{shown(_readable(raw))} is a name that {encoding}; rename the file with plain letters"
        ) from None


def _check_extra(extra: bytes, name: str) -> None:
    """Raise UploadError for the field that makes an entry a hard link or a device."""
    at = 0
    while at + 4 <= len(extra):
        kind, length = struct.unpack_from("<2H", extra, at)
        if kind == UNIX_EXTRA and length > UNIX_EXTRA_FIXED:
            raise UploadError(
                f"{shown(name)} is a link or a device; put a copy of the file there, or leave it out"
            )
        at += 4 + length


def _check_local(
    file: BinaryIO, number: int, central: tuple[int, int, int, int, int, int, bytes], name: str, limit: int
) -> int:
    """Return the beginning of an entry's data.

    Raises UploadError unless its local header agrees with the directory.
    """
    flags, method, crc, compressed, unpacked, offset, raw = central
    file.seek(offset)
    header = file.read(LOCAL.size)
    if len(header) < LOCAL.size or not header.startswith(LOCAL_SIGNATURE):
        raise UploadError(f"{DAMAGED}: {shown(name)}, entry {number}, is not where it should be; {AGAIN}")
    fields = LOCAL.unpack(header)
    name_length, extra_length = fields[9:11]
    differs = fields[3] != method or name_length != len(raw) or file.read(name_length) != raw
    if not (flags | fields[2]) & SIZES_FOLLOW:
        differs |= fields[6] != crc
        differs |= fields[7] not in (compressed, IN_ZIP64) or fields[8] not in (unpacked, IN_ZIP64)
    if differs or fields[2] & ENCRYPTED:
        raise UploadError(f"{DAMAGED}: its directory and the entry {shown(name)} differ; {AGAIN}")
    data: int = offset + LOCAL.size + name_length + extra_length
    if data + compressed > limit:
        raise UploadError(f"{DAMAGED}: the data of {shown(name)} go beyond the end of all data; {AGAIN}")
    return data


def unpack(file: BinaryIO, entry: Entry) -> bytes:
    """Return the content of an entry.

    At most one chunk more than the entry's size is decompressed; the caller has checked that size.  Raises
    UploadError.
    """
    where = shown(entry.name)
    content = bytearray()
    for piece in _pieces(file, entry, where):
        content += piece
        if len(content) > entry.size:
            raise UploadError(f"{where} holds more than its entry says, as in a zip bomb; {AGAIN}")
    if len(content) != entry.size or zlib.crc32(content) != entry.crc:
        raise UploadError(f"{DAMAGED}: the content of {where} is not what was put in; {AGAIN}")
    return bytes(content)


def _pieces(file: BinaryIO, entry: Entry, where: str) -> Iterator[bytes]:
    """Yield the content, at most a chunk at a time."""
    inflate = zlib.decompressobj(-zlib.MAX_WBITS) if entry.method == DEFLATED else None
    file.seek(entry.data_offset)
    left = entry.compressed_size
    while left:
        compressed = file.read(min(left, CHUNK))
        left -= len(compressed)
        if not compressed:
            raise UploadError(f"{DAMAGED}: the data of {where} are cut off; {AGAIN}")
        if inflate is None:
            yield compressed
            continue
        try:
            while compressed and not inflate.eof:
                yield inflate.decompress(compressed, CHUNK)
                compressed = inflate.unconsumed_tail
        except zlib.error:
            raise UploadError(f"{DAMAGED}: the data of {where} cannot be decompressed; {AGAIN}") from None
        if inflate.unused_data or (inflate.eof and left):
            raise UploadError(f"{DAMAGED}: there is something behind the data of {where}; {AGAIN}")
    if inflate is not None:
        # Output that did not fit into the last chunk may still be inside, even with no input left.
        while not inflate.eof and (rest := inflate.decompress(b"", CHUNK)):
            yield rest
        if not inflate.eof:
            raise UploadError(f"{DAMAGED}: the data of {where} are cut off; {AGAIN}")
