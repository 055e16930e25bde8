"""Uploads: each attack is refused with its sentence, and no bytes lead out of the bot's directory."""

import io
import random
import re
import shutil
import struct
import sys
import zipfile
import zlib
from collections.abc import Callable
from functools import cache
from pathlib import Path, PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.bots.zips import DEFLATED, STORED, Member, make_zip, overlapping_bomb
from tests.server.hostile_uploads import ATTACKS, BOMB, BOT, GOOD, MEBIBYTE
from tests.support.builders import run_command
from tests.support.paths import REPOSITORY_ROOT
from tournaments.bots.upload.archive import read_folder, read_upload
from tournaments.bots.upload.limits import SubmittedFile, Upload, UploadError, UploadLimits
from tournaments.bots.upload.zip_format import CHUNK


def read(data: bytes, name: str = "bot.zip", limits: UploadLimits | None = None) -> Upload:
    return read_upload(name, io.BytesIO(data), limits or UploadLimits())


def refusal(data: bytes, name: str = "bot.zip", limits: UploadLimits | None = None) -> str:
    with pytest.raises(UploadError) as caught:
        read(data, name, limits)
    message = str(caught.value)
    assert message.isprintable(), message
    assert len(message) < 500
    return message


@pytest.mark.parametrize("attack", ATTACKS)
def test_attacks_are_refused(attack: str) -> None:
    data, sentence = ATTACKS[attack]
    assert sentence in refusal(data)


def test_an_honest_archive_is_accepted_and_each_truncated_one_is_refused() -> None:
    assert [file.path for file in read(GOOD).files] == ["bot.py", "lib/a.py"]
    assert read(make_zip(BOT, comment=b"PK\5\6 and more")).files == read(make_zip(BOT)).files
    late = make_zip(Member("b", flags=8, local_size=0))  # sizes follow the data, as where they are streamed
    assert read(late).files == (SubmittedFile("b", b"print()\n"),)
    for length in range(len(GOOD)):
        refusal(GOOD[:length])


@pytest.mark.parametrize(
    ("limits", "sentence"),
    [
        (UploadLimits(upload_bytes=len(GOOD) - 1), f"has {len(GOOD)} bytes, {len(GOOD) - 1} bytes are allow"),
        (UploadLimits(files=1), "more than 1 files"),
        (UploadLimits(file_bytes=12), '"bot.py" has 13 bytes unpacked, 12 bytes are allowed'),
        (UploadLimits(total_bytes=20), 'more than 20 bytes unpacked, counted up to "lib/a.py"'),
        (UploadLimits(path_bytes=7), "8 bytes, 7 are allowed"),
        (UploadLimits(depth=1), "2 folders deep, 1 are allowed"),
    ],
)
def test_uploads_beyond_a_limit_are_refused(limits: UploadLimits, sentence: str) -> None:
    assert sentence in refusal(GOOD, limits=limits)
    exactly = UploadLimits(
        upload_bytes=len(GOOD), files=2, file_bytes=13, total_bytes=21, path_bytes=8, depth=2
    )
    assert len(read(GOOD, limits=exactly).files) == 2


def test_fields_of_other_programs_in_an_archive_are_passed_over() -> None:
    """The times of Info-ZIP are harmless; a field behind them may still be that of a device."""
    times = struct.pack("<2HBL", 0x5455, 5, 3, 0)
    assert [file.path for file in read(make_zip(Member("bot.py", extra=times))).files] == ["bot.py"]
    device = struct.pack("<2H", 0x000D, 16) + bytes(16)
    for extra in (device, times + device):
        assert '"bot.py" is a link or a device' in refusal(make_zip(Member("bot.py", extra=extra)))


def test_the_documented_limits() -> None:
    text = (REPOSITORY_ROOT / "docs/submissions.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \| ([\d,]+)( MiB)? \|", text, re.MULTILINE)
    documented = {name: int(value.replace(",", "")) * (MEBIBYTE if unit else 1) for name, value, unit in rows}
    assert documented == vars(UploadLimits())
    with pytest.raises(ValueError, match="files = 0"):
        UploadLimits(files=0)


def test_the_only_folder_at_the_top_is_removed_from_paths() -> None:
    folder = Member("my bot/", b"", mode=0o40755)
    upload = read(make_zip(folder, Member("my bot/bot.py"), Member("my bot/src/a.c"), Member("__MACOSX/x")))
    assert [file.path for file in upload.files] == ["bot.py", "src/a.c"]
    nested = read(make_zip(Member("a/b/bot.py")))
    assert nested.files[0].path == "b/bot.py"
    beside = read(make_zip(Member("a/bot.py"), Member("README")))
    assert [file.path for file in beside.files] == ["README", "a/bot.py"]


def test_files_that_belong_to_no_bot_are_left_out() -> None:
    litter = ["__MACOSX/._b", ".DS_Store", "a/.git/config", "a/.git/hooks/x", ".GIT", "a/__pycache__/x.pyc"]
    upload = read(make_zip(BOT, *map(Member, litter), Member(".venv/bin/python", mode=0o120777)))
    assert [file.path for file in upload.files] == ["bot.py"]
    assert upload.passed_over == (".DS_Store", ".GIT", ".venv", "__MACOSX", "a/.git", "a/__pycache__")
    links = [Member(name, mode=0o120777) for name in ("env/bin/python3", "a/node_modules/.bin/tsc")]
    kept = [Member("a/node_modules/tsc/lib.js"), Member("env/lib/numpy.py")]
    upload = read(make_zip(BOT, *links, *kept, Member("env/pyvenv.cfg")))
    own = ["a/node_modules/tsc/lib.js", "bot.py", "env/lib/numpy.py", "env/pyvenv.cfg"]
    assert [file.path for file in upload.files] == own
    assert upload.passed_over == ("a/node_modules/.bin", "env/bin/python3")
    many = read(make_zip(BOT, *(Member(f"{number}/.git/x") for number in range(3000))))
    assert len(many.passed_over) == 100
    assert read(make_zip(Member(".gitignore"), BOT)).files[0].path == ".gitignore"


def test_names_from_macos_are_stored_as_programs_spell_them() -> None:
    """macOS may separate letters and accents, and programs name the file by letters with their accents."""
    decomposed, composed = "M\u0075\u0308ller/ho\u0308rer.py", "M\u00fcller/h\u00f6rer.py"
    uploads = [
        read(make_zip(BOT, Member(decomposed))),
        read_folder([("bot.py", BOT.content), (decomposed, b"print()\n")]),
    ]
    assert uploads == [read(make_zip(BOT, Member(composed)))] * 2
    assert read(b"pass", "ho\u0308rer.py").files[0].path == "h\u00f6rer.py"
    with pytest.raises(UploadError, match="differ only in upper and lower case, or in how letters are enc"):
        read_folder([(decomposed, b""), (composed, b"")])


def test_the_length_of_a_name_is_that_of_the_stored_name() -> None:
    note = "\U0001d160"  # is decomposed even where letters are composed
    assert "is a path of 480 bytes, 240 are allowed" in refusal(make_zip(Member(40 * note)))
    accents = 120 * "o\u0308"
    assert read(make_zip(Member(accents))).files[0].path == 120 * "\u00f6"


def test_executable_files() -> None:
    """The owner's executable bit is kept; without permissions, the first bytes show a program."""
    modes = {"a": 0o104755, "b": 0o102644, "c": 0o100711, "d": 0o100677, "e": 0o100700, "f": 0o755}
    upload = read(make_zip(*(Member(name, mode=mode) for name, mode in modes.items())))
    assert {file.path for file in upload.files if file.executable} == {"a", "c", "e", "f"}
    script, binary = b"#!/bin/sh\n", b"\x7fELF\2\1\1"
    members = [Member("a", script, mode=0, system=0), Member("b", binary, mode=0), Member("c", mode=0)]
    assert [file.executable for file in read(make_zip(*members)).files] == [True, True, False]
    assert not read(make_zip(Member("a", script))).files[0].executable  # its mode forbids it
    # Python and tar on Windows record these modes, tar as a program on Unix.
    windows = [Member("a", script, mode=0o100666), Member("b", mode=0o100666), Member("c.bat", mode=0o100777)]
    assert [file.executable for file in read(make_zip(*windows)).files] == [True, False, True]
    windows[0].system = 0
    assert read(make_zip(windows[0])).files[0].executable
    assert read(script, "bot.sh").files == (SubmittedFile("bot.sh", script, True),)


def test_single_files() -> None:
    assert read(b"print()", "bot.py").files == (SubmittedFile("bot.py", b"print()"),)
    assert read(GOOD, "bot.jar").files == (SubmittedFile("bot.jar", GOOD),)
    inner = make_zip(Member("../x", BOMB))  # archives inside stay as they are
    assert read(make_zip(Member("lib.zip", inner, method=STORED))).files == (SubmittedFile("lib.zip", inner),)
    assert len(read(GOOD, "download").files) == 2  # a zip archive whatever it is called
    for name, sentence in (
        ("../bot.py", "has a / in its name"),
        ("..", "leads out of"),
        ("C:\\fakepath\\bot.py", "has a backslash"),
        ("a/bot.py", '"a/bot.py" has a / in its name; upload the file without its folder'),
        ("con.py", "stands for a device"),
        ("a\x1b.py", "U+001B"),
        (".DS_Store", "holds no file"),
        ("bot.tar", "is a tar archive"),
        ("\ud800.py", "U+D800"),
    ):
        assert sentence in refusal(b"x", name)


def test_folders() -> None:
    upload = read_folder([("kit/bot.py", b"#!x"), ("kit/src/a", b""), ("kit/.git/config", b"")])
    assert upload.files == (SubmittedFile("bot.py", b"#!x", True), SubmittedFile("src/a", b""))
    assert upload.passed_over == ("kit/.git",)
    small = UploadLimits(upload_bytes=3, total_bytes=5)
    for files, sentence in (
        ([], "it holds no file"),
        ([("a", b""), ("a", b"")], '"a" is there twice'),
        ([("a", b""), ("../a", b"")], "leads out of"),
        ([("a/b", b""), ("A/c", b"")], "differ only"),
        ([("a", b"xxx"), ("b", b"x")], 'more than 3 bytes together, counted up to "b"'),
        ([("a", b"xxxxxx")], "more than 5 bytes unpacked"),
    ):
        with pytest.raises(UploadError) as caught:
            read_folder(files, small)
        assert sentence in str(caught.value)


NAME = st.text(st.sampled_from("abcXYZ019._- é\u0301ß日/\\.:\n\u202e"), max_size=12)
MEMBER = st.builds(
    Member,
    name=NAME | st.binary(max_size=8),
    content=st.binary(max_size=40) | st.just(bytes(3000)),
    mode=st.sampled_from([0, 0o100644, 0o104755, 0o40755, 0o120777, 0o10644]),
    method=st.sampled_from([STORED, DEFLATED, DEFLATED, 12]),
    flags=st.sampled_from([0, 0, 0, 1, 8, 0x800]),
    size=st.none() | st.none() | st.integers(0, 5000),
    offset=st.none() | st.none() | st.integers(0, 200),
)
TIGHT = UploadLimits(4000, 6000, 2500, files=4, path_bytes=10, depth=3, ratio=50, ratio_from_bytes=500)


def assert_within(upload: Upload, limits: UploadLimits) -> None:
    paths = [file.path for file in upload.files]
    assert 0 < len(paths) <= limits.files
    assert len({path.casefold() for path in paths}) == len(paths)
    assert sum(len(file.content) for file in upload.files) <= limits.total_bytes
    for file in upload.files:
        path = PurePosixPath(file.path)
        assert str(path) == file.path
        assert not path.is_absolute()
        assert not {"..", "."} & set(path.parts)
        assert file.path.isprintable()
        assert "\\" not in file.path
        assert len(path.parts) <= limits.depth
        assert len(file.path.encode()) <= limits.path_bytes
        assert len(file.content) <= limits.file_bytes


def check(data: bytes, name: str = "bot.zip") -> None:
    try:
        upload = read(data, name, TIGHT)
    except UploadError:
        refusal(data, name, TIGHT)
    else:
        assert_within(upload, TIGHT)


@given(
    st.lists(MEMBER, max_size=5),
    st.none() | st.integers(0, 6),
    st.just([]) | st.lists(st.tuples(st.integers(0, 2000), st.integers(0, 255)), max_size=4),
)
def test_any_archive_is_within_the_limits_or_refused(
    members: list[Member], count: int | None, changes: list[tuple[int, int]]
) -> None:
    data = bytearray(make_zip(*members, count=count))
    for at, value in changes:
        data[at % len(data)] = value
    check(bytes(data))


@given(st.binary(max_size=200), st.text(max_size=12))
def test_any_bytes_are_within_the_limits_or_refused(data: bytes, name: str) -> None:
    check(data, name)
    check(b"PK\3\4" + data + b"PK\5\6" + data[:18])


PART = st.text("abcdefgh0123456789_-", min_size=1, max_size=8)
TREES = st.dictionaries(
    st.lists(PART, min_size=1, max_size=3).map("/".join),
    st.tuples(st.binary(max_size=300), st.booleans()),
    min_size=1,
)


@given(TREES, st.sampled_from([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED]), st.booleans())
def test_archives_of_zipfile_are_read(
    tree: dict[str, tuple[bytes, bool]], method: int, streamed: bool
) -> None:
    tree = {
        path: what
        for path, what in tree.items()
        if not any(other.startswith(path + "/") for other in tree)
        and path.partition("/")[0] not in ("con", "nul")
    }
    out = io.BytesIO()
    with zipfile.ZipFile(Unseekable(out) if streamed else out, "w", method) as archive:
        for path, (content, executable) in tree.items():
            info = zipfile.ZipInfo(f"top/{path}")
            info.external_attr = (0o100755 if executable else 0o100644) << 16
            archive.writestr(info, content, method)
    upload = read(out.getvalue())
    assert {file.path: (file.content, file.executable) for file in upload.files} == tree
    assert upload.passed_over == ()


def test_sizes_around_a_chunk() -> None:
    """The end of the compressed data may be read before the end of the content."""
    for size in [*range(CHUNK - 3, CHUNK + 4), *range(CHUNK + 5, CHUNK + 1100, 7)]:
        content = bytes(size)
        assert read(make_zip(Member("b", content))).files[0].content == content


def test_the_starter_kits_are_accepted(tmp_path: Path) -> None:
    """shutil zips them with entries for folders, and with the permissions on the disk."""
    for kit in sorted((REPOSITORY_ROOT / "sample_bots/starters").glob("*/bot.toml")):
        folder = kit.parent
        archive = shutil.make_archive(str(tmp_path / folder.name), "zip", folder.parent, folder.name)
        upload = read(Path(archive).read_bytes())
        expected = {
            path.relative_to(folder).as_posix(): (path.read_bytes(), bool(path.stat().st_mode & 0o100))
            for path in folder.rglob("*")
            if path.is_file() and "__pycache__" not in path.parts
        }
        assert {file.path: (file.content, file.executable) for file in upload.files} == expected


class Unseekable(io.RawIOBase):
    """A pipe: zipfile then writes the sizes behind the data."""

    def __init__(self, out: io.BytesIO) -> None:
        self.out = out

    def writable(self) -> bool:
        return True

    def write(self, data: object) -> int:
        assert isinstance(data, bytes | bytearray | memoryview)
        return self.out.write(data)


READ_AND_MEASURE = """
import sys
from tournaments.bots.upload.archive import read_upload
from tournaments.bots.upload.limits import UploadError

def most_kib():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM:"))

with open(sys.argv[1], "rb") as file:
    before = most_kib()
    try:
        read_upload("bot.zip", file)
        print("taken")
    except UploadError as error:
        print(error)
    print((most_kib() - before) // 1024)
"""
"""Prints the error, and the MiB that were used at most.  (ru_maxrss would count the parent process, too.)"""


LARGE = 256 * MEBIBYTE
"""Far more than any bound below."""


@cache
def zeros_deflated() -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    return b"".join(packer.compress(bytes(MEBIBYTE)) for _ in range(LARGE // MEBIBYTE)) + packer.flush()


def bomb(size: int) -> bytes:
    """Return an archive with a large file; its entry says that the file has ``size`` bytes."""
    return make_zip(Member("b", b"", data=zeros_deflated(), size=size))


def many_folders() -> bytes:
    return make_zip(*(Member(b"%05d/" % n, b"", method=STORED, mode=0o40755) for n in range(65_534)))


def as_large_as_allowed() -> bytes:
    blocks = (random.Random(number).randbytes(10_000).hex().encode() * 4 for number in range(420))
    content = b"".join(blocks)[: 32 * MEBIBYTE]
    packed = zlib.compress(content, 1, wbits=-zlib.MAX_WBITS)
    return make_zip(*(Member(name, content, data=packed) for name in "ab"))


@pytest.mark.attack
@pytest.mark.parametrize(
    ("make", "message", "most_mib"),
    [
        (lambda: bomb(LARGE), "256 MiB unpacked", 20),
        (lambda: bomb(20 * MEBIBYTE), "holds more than its entry says", 60),
        (lambda: overlapping_bomb(500, MEBIBYTE), "shares its data", 20),
        (many_folders, "more than 2,000 folders", 80),
        (as_large_as_allowed, "taken", 64 + 32 + 20),
    ],
)
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads Linux's /proc")
def test_memory_is_bounded(tmp_path: Path, make: Callable[[], bytes], message: str, most_mib: int) -> None:
    """At most all files, the largest one of them twice, and the directory."""
    file = tmp_path / "bot.zip"
    file.write_bytes(make())
    done = run_command([sys.executable, "-c", READ_AND_MEASURE, file], REPOSITORY_ROOT)
    assert done.returncode == 0, done.stderr
    printed, used_mib = done.stdout.splitlines()
    assert message in printed
    assert int(used_mib) <= most_mib
    assert (int(used_mib) >= 64) == (message == "taken")
