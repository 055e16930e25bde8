"""Uploads that must be refused, each with a part of the sentence that refuses it."""

import io
import tarfile

from tests.bots.zips import STORED, Member, deflate, make_zip, overlapping_bomb

MEBIBYTE = 1 << 20
BOT = Member("bot.py", b"print('YOU')\n")


def with_name(name: str | bytes, flags: int = 0) -> bytes:
    return make_zip(BOT, Member(name, flags=flags))


def flipped(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 0xFF]) + data[at + 1 :]


def tar() -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("bot.py"))
    return out.getvalue()


GOOD = make_zip(BOT, Member("lib/a.py"))
BOMB = bytes(2 * MEBIBYTE)
LINKED = b"\x0d\0\x12\0" + bytes(12) + b"target"
"""Extra field 0x000d: times and owner, then the target of a link (APPNOTE.TXT 4.5.7)."""

ATTACKS = {
    # No zip archive, or a damaged one.
    "empty": (b"", '"bot.zip" is empty; upload a zip archive'),
    "text": (b"print()", '"bot.zip" is not a zip archive, whatever its name says; zip'),
    "tar": (tar(), '"bot.zip" is a tar archive; make it a zip archive'),
    "gzip": (b"\x1f\x8b\x08\0", '"bot.zip" is compressed by gzip; make it a zip'),
    "7z": (b"7z\xbc\xaf\x27\x1c\0\0", '"bot.zip" is a 7z archive; make it a zip'),
    "no entry": (make_zip(), '"bot.zip": it holds no file; zip'),
    "folders only": (make_zip(Member("a/", b"", mode=0o40755)), "it holds no file; zip"),
    "litter only": (make_zip(Member("b/.DS_Store")), 'beside what is passed over ("b/.DS_Store")'),
    "cut at the end": (GOOD[:-1], "its directory is not at its end; zip the folder again"),
    "cut in the middle": (GOOD[: len(GOOD) // 2], "is cut off or damaged"),
    "only its beginning": (b"PK\3\4", "is cut off or damaged"),
    "something behind": (GOOD + b"x", "is cut off or damaged"),
    "bytes missing before": (GOOD[:30] + GOOD[31:], "its directory is not where its end says"),
    "data flipped": (flipped(GOOD, 40), "damaged: the "),
    "directory flipped": (flipped(GOOD, GOOD.index(b"PK\1\2")), "its directory has no entry 1 of 2"),
    "local header flipped": (flipped(GOOD, 8), 'the entry "bot.py" differ'),
    "count too large": (make_zip(BOT, count=2), "its directory has no entry 2 of 2"),
    "count too small": (make_zip(BOT, Member("b"), count=1), "its directory holds more than its 1 entries"),
    "one of several": (make_zip(BOT, disk=1), "is one part of several; make one archive"),
    "zip64": (make_zip(BOT, count=0xFFFF), "is in the ZIP64 format"),
    "zip64 entry": (make_zip(Member("b", size=0xFFFFFFFF)), '"b" has its size in the ZIP64 format'),
    "elsewhere": (make_zip(BOT, Member("b", offset=5)), '"b", entry 2, is not where it should be'),
    "another name inside": (make_zip(Member("b", local_name=b"c")), 'its directory and the entry "b" differ'),
    "another method inside": (make_zip(Member("b", local_method=STORED)), 'the entry "b" differ'),
    "another size inside": (make_zip(Member("b", local_size=9999)), 'the entry "b" differ'),
    "beyond the end": (make_zip(Member("b", b"ab", method=STORED, compressed_size=99)), "beyond the end"),
    "crc": (make_zip(Member("b", crc=1)), 'the content of "b" is not what was put in'),
    "no deflate": (make_zip(Member("b", data=b"\xff\xff\xff")), 'the data of "b" cannot be decompressed'),
    "deflate cut": (make_zip(Member("b", data=deflate(b"print()\n")[:-3])), 'the data of "b" are cut off'),
    "something in between": (
        make_zip(Member("b", data=deflate(b"print()\n") + b"hidden")),
        'there is something behind the data of "b"',
    ),
    "encrypted": (make_zip(Member("b", flags=1)), '"b" is encrypted; zip the folder without a password'),
    "encrypted strongly": (make_zip(Member("b", flags=0x41)), '"b" is encrypted'),
    "encrypted inside": (make_zip(Member("b", local_flags=1)), 'the entry "b" differ'),
    "encrypted by AES": (make_zip(Member("b", method=99)), '"b" is encrypted'),
    "bzip2": (make_zip(Member("b", method=12)), '"b" is compressed by method 12; zip the folder'),
    "lzma": (make_zip(Member("b", method=14)), '"b" is compressed by method 14'),
    # Bombs.
    "flat bomb": (make_zip(Member("b", BOMB)), '"b" is compressed more than 100 to 1, as in a zip'),
    "large": (make_zip(Member("b", size=33 * MEBIBYTE)), '"b" has 33 MiB unpacked, 32 MiB are allowed'),
    "large together": (
        make_zip(*(Member(f"{i}", size=30 * MEBIBYTE, data=bytes(MEBIBYTE)) for i in range(3))),
        'its files have more than 64 MiB unpacked, counted up to "2"; leave out',
    ),
    "lying bomb": (make_zip(Member("b", BOMB, size=100)), '"b" holds more than its entry says, as in a'),
    "lying stored bomb": (make_zip(Member("b", BOMB, size=1, method=STORED)), "more than its entry says"),
    "says too much": (make_zip(Member("b", b"ab", size=100)), 'the content of "b" is not what was put in'),
    "overlapping bomb": (overlapping_bomb(30, 60_000), '"000000" shares its data with another entry'),
    "one entry twice": (make_zip(Member("a"), Member("b", local_name=b"a", offset=0)), "differ"),
    "same data twice": (make_zip(Member("a"), Member("a", offset=0)), '"a" shares its data with another'),
    "many files": (make_zip(*(Member(f"{i}") for i in range(2001))), "more than 2,000 files; leave out"),
    # Paths that lead elsewhere.
    "absolute": (with_name("/etc/passwd"), '"/etc/passwd" is an absolute path; zip the bot\'s folder itself'),
    "two slashes": (with_name("//host/share"), "is an absolute path"),
    "drive": (with_name("C:/x"), '"C:/x" begins with a drive letter'),
    "drive, relative": (with_name("c:x"), "begins with a drive letter"),
    "backslash": (with_name("..\\x"), '"..\\x" has a backslash in its name; use a zip program'),
    "up": (with_name("../x"), '"../x" leads out of the bot\'s folder (..)'),
    "up inside": (with_name("a/../../x"), "leads out of"),
    "up at the end": (with_name("a/.."), "leads out of"),
    "up to a folder": (with_name("../"), "leads out of"),
    "up below litter": (with_name("__MACOSX/../../x"), "leads out of"),
    "dot": (with_name("./x"), '"./x" has an empty part or a "." in its path'),
    "empty part": (with_name("a//x"), '"a//x" has an empty part'),
    "no name": (with_name(""), '"" has an empty part'),
    # Types.
    "link": (
        make_zip(BOT, Member("b", b"/etc/passwd", mode=0o120777)),
        '"b" is a symbolic link; put a copy of the file there, or leave it out',
    ),
    "link, from Windows": (make_zip(BOT, Member("b", mode=0o120777, system=0)), '"b" is a symbolic link'),
    "link to a folder": (make_zip(BOT, Member("b/", b"..", mode=0o120777)), '"b" is a symbolic link'),
    "hard link": (make_zip(BOT, Member("b", extra=LINKED)), '"b" is a link or a device; put a copy'),
    "fifo": (make_zip(Member("b", mode=0o010644)), '"b" is a device, a pipe or a socket'),
    "character device": (make_zip(Member("b", mode=0o020644)), '"b" is a device'),
    "block device": (make_zip(Member("b", mode=0o060644)), '"b" is a device'),
    "socket": (make_zip(Member("b", mode=0o140644)), '"b" is a device'),
    "unknown type": (make_zip(Member("b", mode=0o150644)), '"b" is a device'),
    "file that is a folder": (make_zip(Member("b", mode=0o040755)), '"b" is a file and a folder at once'),
    "folder that is a file": (make_zip(BOT, Member("b/", b"", mode=0o100644)), '"b" is a device'),
    "folder with content": (make_zip(BOT, Member("b/", mode=0o40755)), '"b" is a folder that has content'),
    # Names together.
    "twice": (make_zip(Member("b"), Member("b")), '"b" is there twice'),
    "case": (make_zip(Member("bot.py"), Member("Bot.py")), '"bot.py" and "Bot.py" differ only in upper'),
    "case of a folder": (make_zip(Member("a/x"), Member("A/y")), '"a" and "A" differ only'),
    "sharp s": (make_zip(Member("straße"), Member("STRASSE")), "differ only"),
    "normalisation": (make_zip(Member("caf\u00e9"), Member("cafe\u0301")), "differ only in upper and lower"),
    "compatibility": (make_zip(Member("\ufb01le"), Member("file")), "differ only"),
    "file and folder": (make_zip(Member("a"), Member("a/b")), '"a" is both a file and a folder'),
    "folder and file": (make_zip(Member("a/b"), Member("a")), '"a" is both a file and a folder'),
    "file and listed folder": (make_zip(Member("a"), Member("a/", b"", mode=0o40755)), '"a" is both a file'),
    # Names by themselves.
    "line end": (with_name("a\nb"), '"a\\nb" has a character in its name that does not show (U+000A)'),
    "NUL": (with_name("a\0b"), '"a\\x00b" has a character in its name that does not show (U+0000)'),
    "escape": (with_name("\x1b[2Jx"), '"\\x1b[2Jx" has a character'),
    "bidi": (with_name("bot\u202eyp.exe"), '"bot\\u202eyp.exe" has a character in its name that'),
    "zero width": (with_name("bo\u200bt.py"), "(U+200B)"),
    "no-break space": (with_name("a\u00a0b"), "(U+00A0)"),
    "unassigned": (with_name("a\U000e0001"), "(U+E0001)"),
    "markup": (with_name("<img src=x onerror=alert(1)>"), "has the character < in its name; rename it"),
    "stream": (with_name("bot.py:evil"), "has the character : in its name"),
    "not UTF-8": (with_name(b"a\xff"), '"a\\xff" is a name that is not in UTF-8'),
    "not UTF-8 as said": (with_name(b"a\xff", flags=0x800), "is a name that says that it is UTF-8, and"),
    "surrogate": (with_name(b"a\xed\xa0\x80"), "is not in UTF-8"),
    "dot at the end": (with_name("bot."), "ends with a space or a dot"),
    "space at the end": (with_name("a /x"), "ends with a space or a dot"),
    "space at the beginning": (with_name(" a"), "begins with a space"),
    "three dots": (with_name(".../x"), "ends with a space or a dot"),
    "device": (with_name("CON"), '"CON" has a name that stands for a device on Windows; rename it'),
    "device with a suffix": (with_name("lib/aux.tar.gz"), "stands for a device"),
    "device with spaces": (with_name("nul .txt"), "stands for a device"),
    "device in small digits": (with_name("com\u00b9"), "stands for a device"),
    "long name": (with_name("x" * 241), "is a path of 241 bytes, 240 are allowed; use shorter names"),
    "very long name": (with_name("x" * 60_000), "is a path of 60000 bytes"),
    "long by its bytes": (with_name("é" * 121), "is a path of 242 bytes"),
    "deep": (with_name("a/" * 16 + "x"), "lies 17 folders deep, 16 are allowed"),
}
"""Name of the defect -> the upload, and a part of the sentence."""
