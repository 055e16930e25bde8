"""Zip archives made byte by byte, with any field that a test sets to a false value."""

import struct
import zlib
from dataclasses import dataclass

STORED, DEFLATED = 0, 8


@dataclass
class Member:
    """One entry; a field that is None gets the value of an honest program."""

    name: bytes | str
    content: bytes = b"print()\n"
    mode: int = 0o100644
    method: int = DEFLATED
    flags: int = 0
    system: int = 3
    extra: bytes = b""
    data: bytes | None = None
    """Compressed data in the archive."""
    size: int | None = None
    crc: int | None = None
    compressed_size: int | None = None
    """Both headers have ``size``, ``crc`` and ``compressed_size``."""
    local_size: int | None = None
    local_name: bytes | None = None
    local_flags: int | None = None
    local_method: int | None = None
    offset: int | None = None
    """Offset in the central directory; None: the real one."""

    def __post_init__(self) -> None:
        if isinstance(self.name, str):
            self.name = self.name.encode()
        if self.data is None:
            self.data = deflate(self.content) if self.method == DEFLATED else self.content
        if self.size is None:
            self.size = len(self.content)
        if self.crc is None:
            self.crc = zlib.crc32(self.content)
        if self.compressed_size is None:
            self.compressed_size = len(self.data)


def deflate(content: bytes) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    return packer.compress(content) + packer.flush()


def local_header(member: Member) -> bytes:
    name = member.name if member.local_name is None else member.local_name
    size = member.size if member.local_size is None else member.local_size
    flags = member.flags if member.local_flags is None else member.local_flags
    method = member.method if member.local_method is None else member.local_method
    numbers = (20, flags, method, 0, 0x21, member.crc, member.compressed_size, size)
    assert isinstance(name, bytes)
    return struct.pack("<4s5H3L2H", b"PK\3\4", *numbers, len(name), 0) + name


def central_header(member: Member, offset: int) -> bytes:
    name = member.name
    assert isinstance(name, bytes)
    sizes = (member.crc, member.compressed_size, member.size, len(name), len(member.extra), 0)
    place = (0, 0, member.mode << 16, offset if member.offset is None else member.offset)
    head = struct.pack("<4s4B4H", b"PK\1\2", 20, member.system, 20, 0, member.flags, member.method, 0, 0x21)
    return head + struct.pack("<3L3H2H2L", *sizes, *place) + name + member.extra


def end_record(count: int, length: int, start: int, *, disk: int = 0, comment: bytes = b"") -> bytes:
    return struct.pack("<4s4H2LH", b"PK\5\6", disk, 0, count, count, length, start, len(comment)) + comment


def make_zip(*members: Member, count: int | None = None, disk: int = 0, comment: bytes = b"") -> bytes:
    """Return an archive; ``count`` is the number of members in its end record."""
    body, directory, at = [], [], 0
    for member in members:
        assert member.data is not None
        directory.append(central_header(member, at))
        body.append(local_header(member) + member.data)
        at += len(body[-1])
    number = len(members) if count is None else count
    end = end_record(number, sum(map(len, directory)), at, disk=disk, comment=comment)
    return b"".join([*body, *directory, end])


def overlapping_bomb(count: int, kernel_size: int) -> bytes:
    """Fifield's bomb: each file is the headers of all that follow, quoted in stored blocks, and one kernel.

    The kernel is in the archive once and in every file.
    """
    kernel = deflate(bytes(kernel_size))
    content, data = bytes(kernel_size), kernel
    chain: list[Member] = []
    for number in reversed(range(count)):
        member = Member(b"%06d" % number, content, data=data)
        chain.insert(0, member)
        header = local_header(member)
        data = struct.pack("<BHH", 0, len(header), len(header) ^ 0xFFFF) + header + data
        content = header + content
    first = chain[0]
    assert first.data is not None
    body = local_header(first) + first.data
    directory, at = b"", 0
    for member in chain:
        directory += central_header(member, at)
        at += len(local_header(member)) + 5  # behind the quoting block's own header
    return body + directory + end_record(count, len(directory), len(body))
