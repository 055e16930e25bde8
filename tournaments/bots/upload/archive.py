"""Extraction of a submission's files from an uploaded zip archive, single file or folder.

Nothing is written here, and nothing in an archive is trusted: names, sizes and types are checked before
anything is decompressed, and decompression stops where a size was false.  The memory holds at most the
files, a second copy of the largest of them, and the archive's directory.
"""

import stat
import unicodedata
from collections.abc import Iterable
from pathlib import PurePosixPath
from typing import BinaryIO

from tournaments.bots.upload.limits import (
    SubmittedFile,
    Upload,
    UploadError,
    UploadLimits,
    excess_text,
    shown,
    size_text,
)
from tournaments.bots.upload.names import PYVENV, check_names, check_structure, check_together, passed_over
from tournaments.bots.upload.zip_format import Entry, read_entries, unpack

DEFAULT_LIMITS = UploadLimits()

ZIP_SIGNATURES = (b"PK\3\4", b"PK\5\6")
"""First bytes of a zip archive; the second are those of an empty one (APPNOTE.TXT 4.3.7, 4.3.16)."""
ZIPS_THAT_RUN = (".jar", ".pyz")
"""Suffixes of zip archives that are programs; one of them uploaded alone is a bot of one file."""
OTHER_ARCHIVES = (
    (b"7z\xbc\xaf\x27\x1c", ".7z", "a 7z archive"),
    (b"Rar!\x1a\x07", ".rar", "a RAR archive"),
    (b"\x1f\x8b", ".gz", "compressed by gzip"),
    (b"BZh", ".bz2", "compressed by bzip2"),
    (b"\xfd7zXZ\0", ".xz", "compressed by xz"),
    (b"\x28\xb5\x2f\xfd", ".zst", "compressed by zstd"),
    (b"", ".tar", "a tar archive"),
    (b"", ".tgz", "a tar archive"),
)
"""First bytes, suffix and description of formats that students send; tar has its signature elsewhere."""
TAR_SIGNATURE, TAR_SIGNATURE_AT = b"ustar", 257

PROGRAMS = (b"#!", b"\x7fELF")
"""First bytes of files that Linux can run: a script that names its interpreter, a binary."""
OWNER_MAY_EXECUTE = 0o100
MODE_ON_WINDOWS = 0o666
"""Permissions that Python's zipfile and tar record on Windows, which has no permission to execute."""

NOTED = 100
"""Number of passed-over paths that are reported; an archive can have 65,534."""
LEAVE_OUT = "leave out what the bot does not need"


def read_upload(name: str, file: BinaryIO, limits: UploadLimits = DEFAULT_LIMITS) -> Upload:
    """Return the files of an upload: those of a zip archive, or the one file that it is.

    ``name`` is the upload's own name, as the browser sent it; ``file`` can be read and sought, and nothing
    else uses it meanwhile.  Raises UploadError; OSError if ``file`` cannot be read.
    """
    where = shown(name)
    size = file.seek(0, 2)
    if size > limits.upload_bytes:
        raise UploadError(
            f"{where} has {excess_text(size, limits.upload_bytes)}; leave out what the bot does not need"
        )
    if size == 0:
        raise UploadError(f"{where} is empty; upload a zip archive of the bot's folder, or the bot's file")
    file.seek(0)
    head = file.read(TAR_SIGNATURE_AT + len(TAR_SIGNATURE))
    suffix = "." + name.lower().rpartition(".")[2]
    is_zip = head.startswith(ZIP_SIGNATURES)
    if is_zip and suffix not in ZIPS_THAT_RUN:
        try:
            return _read_zip(file, size, limits)
        except UploadError as error:
            raise UploadError(f"{where}: {error}") from None
    other = _other_archive(head, suffix)
    if other:
        raise UploadError(f"{where} is {other}; make it a zip archive")
    if suffix == ".zip":
        raise UploadError(f"{where} is not a zip archive, whatever its name says; zip the bot's folder")
    if "/" in name:
        raise UploadError(f"{where} has a / in its name; upload the file without its folder")
    file.seek(0)
    return read_folder([(name, file.read(limits.upload_bytes + 1))], limits, strip=False)


def read_folder(
    files: Iterable[tuple[str, bytes]], limits: UploadLimits = DEFAULT_LIMITS, *, strip: bool = True
) -> Upload:
    """Return the files of a folder that a browser sends one by one: pairs of path and content.

    Browsers send no permissions; a file that begins like a program is made executable.  With ``strip``, the
    folder itself is removed from the paths if all files are in one.  Raises UploadError.
    """
    kept: dict[str, bytes] = {}
    left_out: set[str] = set()
    total = 0
    for path, content in files:
        if path in kept:
            raise UploadError(f"{shown(path)} is there twice; upload the folder again")
        if _is_part(path, left_out, limits):
            kept[path] = content
            total += len(content)
            _check_sizes(path, len(content), len(content), total, len(kept), limits)
            if total > limits.upload_bytes:
                raise UploadError(
                    f"its files have more than {size_text(limits.upload_bytes)} together, counted up to "
                    f"{shown(path)}; leave out what the bot does not need, or upload a zip archive"
                )
    check_together(kept)
    top = _only_folder(kept, left_out)
    top = top if strip else None
    return _upload(((path, content, _is_program(content)) for path, content in kept.items()), top, left_out)


def _read_zip(file: BinaryIO, size: int, limits: UploadLimits) -> Upload:
    # All entries are checked before the first one is unpacked: a refusal costs next to nothing.
    folders: list[str] = []
    kept: list[Entry] = []
    left_out: set[str] = set()
    total = 0
    # Files that are left out may have longer names than those of the bot.
    entries = read_entries(file, size, longest_name=4 * limits.path_bytes)
    environments = {one.name.removesuffix(f"/{PYVENV}") for one in entries if one.name.endswith(f"/{PYVENV}")}
    for entry in entries:
        if not _is_part(entry.name, left_out, limits):
            continue
        if entry.is_other and not environments.isdisjoint(map(str, PurePosixPath(entry.name).parents)):
            if len(left_out) < NOTED:
                left_out.add(entry.name)  # a link to a Python of its author's machine
            continue
        if entry.is_other:
            raise UploadError(
                f"{shown(entry.name)} is {entry.is_other}; put a copy of the file there, or leave it out"
            )
        if entry.is_folder:
            if entry.size:
                raise UploadError(
                    f"{shown(entry.name)} is a folder that has content like a file; zip it again"
                )
            folders.append(entry.name)
            if len(folders) > limits.files:
                raise UploadError(f"it holds more than {limits.files:,} folders; {LEAVE_OUT}")
            continue
        kept.append(entry)
        total += entry.size
        _check_sizes(entry.name, entry.size, entry.compressed_size, total, len(kept), limits)
    check_together((entry.name for entry in kept), folders)
    top = _only_folder([entry.name for entry in kept], left_out)
    files = ((entry.name, content := unpack(file, entry), _may_execute(entry, content)) for entry in kept)
    return _upload(files, top, left_out)


def _is_part(path: str, left_out: set[str], limits: UploadLimits) -> bool:
    """Return whether a path is a part of the bot; add it to ``left_out`` if not.

    Raises UploadError if the path is not allowed.
    """
    path = _composed(path)
    check_structure(path)
    beginning = passed_over(path)
    if beginning is not None:
        if len(left_out) < NOTED:
            left_out.add(beginning)
        return False
    check_names(path, limits)
    return True


def _check_sizes(path: str, size: int, compressed: int, total: int, count: int, limits: UploadLimits) -> None:
    """Raise UploadError if a file, or all files so far, exceed the limits."""
    if count > limits.files:
        raise UploadError(f"it holds more than {limits.files:,} files; {LEAVE_OUT}")
    if size > limits.file_bytes:
        raise UploadError(
            f"{shown(path)} has {excess_text(size, limits.file_bytes, ' unpacked')}; "
            "make it smaller, or leave it out"
        )
    if size > limits.ratio_from_bytes and size > limits.ratio * compressed:
        raise UploadError(
            f"{shown(path)} is compressed more than {limits.ratio} to 1, as in a zip bomb; "
            "let the build command make such a file"
        )
    if total > limits.total_bytes:
        raise UploadError(
            f"its files have more than {size_text(limits.total_bytes)} unpacked, counted up to "
            f"{shown(path)}; "
            "leave out what the bot does not need"
        )


def _only_folder(paths: Iterable[str], left_out: set[str]) -> str | None:
    """Return the folder at the top that holds all files, as in a zip of that folder; None without one."""
    tops = {path.partition("/")[0] if "/" in path else "" for path in paths}
    if not tops:
        names = ", ".join(map(shown, sorted(left_out)[:3]))
        what = f", beside what is passed over ({names})" if names else ""
        raise UploadError(f"it holds no file{what}; zip the bot's folder")
    top = tops.pop()
    return None if tops else top or None


def _upload(files: Iterable[tuple[str, bytes, bool]], top: str | None, left_out: set[str]) -> Upload:
    skip = len(top) + 1 if top else 0
    submitted = sorted(
        (SubmittedFile(_composed(path[skip:]), content, executable) for path, content, executable in files),
        key=lambda file: file.path,
    )
    return Upload(tuple(submitted), tuple(sorted(left_out)))


def _composed(path: str) -> str:
    """Return a path as programs spell it: macOS may send letters and their accents as separate characters."""
    return unicodedata.normalize("NFC", path)


def _may_execute(entry: Entry, content: bytes) -> bool:
    """Return the owner's execute bit, without setuid and the like; a guess if there are no permissions."""
    if not entry.mode or stat.S_IMODE(entry.mode) == MODE_ON_WINDOWS:
        return _is_program(content)
    return bool(entry.mode & OWNER_MAY_EXECUTE)


def _is_program(content: bytes) -> bool:
    return content.startswith(PROGRAMS)


def _other_archive(head: bytes, suffix: str) -> str | None:
    for signature, ending, what in OTHER_ARCHIVES:
        if suffix == ending or (signature and head.startswith(signature)):
            return what
    return "a tar archive" if head[TAR_SIGNATURE_AT:] == TAR_SIGNATURE else None
