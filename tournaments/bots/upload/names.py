"""Checks of the paths of a submission's files.

They combine the rules of all systems: an accepted path can be unpacked by a student on Windows, a lecturer
on macOS and the server on Linux, and names the same file everywhere.
"""

import re
import unicodedata
from collections.abc import Iterable

from tournaments.bots.upload.limits import UploadError, UploadLimits, shown

PASSED_OVER = frozenset(
    {"__macosx", ".ds_store", "thumbs.db", "desktop.ini", ".git", ".hg", ".svn", ".venv", "__pycache__"}
)
"""Casefolded names of files and folders that file managers, version control and Python create.
A ``.git`` holds commands that run when somebody uses git there.  A ``__pycache__`` can hold another program
than the source beside it, and is not in the digest of ``tournaments.bots.resolve``."""

PYVENV = "pyvenv.cfg"
"""File at the top of each virtual environment of Python (PEP 405)."""

RESERVED = re.compile(r"con|prn|aux|nul|conin\$|conout\$|(com|lpt)[0-9]")
"""Names of devices on Windows, with any suffix (Microsoft, "Naming Files, Paths, and Namespaces")."""
NOT_ON_WINDOWS = '<>:"|?*'
"""Characters that names on Windows cannot have (the same page); ``<`` and ``"`` are also markup in HTML."""

RENAME = "rename it, and zip the folder again"
ZIP_THE_FOLDER = "zip the bot's folder itself, with a file manager or `zip -r bot.zip bot`"


def check_structure(path: str) -> None:
    """Raise UploadError for a path that leads, or could lead, out of the bot's directory."""
    if "\\" in path:
        raise UploadError(
            f"{shown(path)} has a backslash in its name; "
            "use a zip program that writes / between folders, or rename the file"
        )
    if path.startswith("/"):
        raise UploadError(f"{shown(path)} is an absolute path; {ZIP_THE_FOLDER}")
    if re.match(r"[A-Za-z]:", path):
        raise UploadError(f"{shown(path)} begins with a drive letter; {ZIP_THE_FOLDER}")
    for part in path.split("/"):
        if part == "..":
            raise UploadError(f"{shown(path)} leads out of the bot's folder (..); {ZIP_THE_FOLDER}")
        if part in ("", "."):
            raise UploadError(f'{shown(path)} has an empty part or a "." in its path; {ZIP_THE_FOLDER}')


def passed_over(path: str) -> str | None:
    """Return the part of a path up to a file or folder that belongs to no bot; None if there is none."""
    parts = path.split("/")
    for number, part in enumerate(parts, 1):
        # ._NAME is how macOS keeps a file's attributes on other file systems.
        if part.casefold() in PASSED_OVER or part.startswith("._"):
            return "/".join(parts[:number])
        # The links of npm, whose programs a bot does not start by name.
        if parts[number - 2 : number] == ["node_modules", ".bin"]:
            return "/".join(parts[:number])
    return None


def check_names(path: str, limits: UploadLimits) -> None:
    """Raise UploadError for a path that is too long, or has a name that some system does not accept."""
    length = len(path.encode("utf-8", "surrogatepass"))
    if length > limits.path_bytes:
        raise UploadError(
            f"{shown(path)} is a path of {length} bytes, {limits.path_bytes} are allowed; use shorter names"
        )
    parts = path.split("/")
    if len(parts) > limits.depth:
        raise UploadError(
            f"{shown(path)} lies {len(parts)} folders deep, {limits.depth} are allowed; use fewer folders"
        )
    for part in parts:
        what = _wrong_name(part)
        if what:
            raise UploadError(f"{shown(path)} {what}; {RENAME}")


def _wrong_name(part: str) -> str | None:
    """Return the reason why a name is not allowed; None if it is."""
    for char in part:
        if not char.isprintable():
            # Control characters, line ends, marks of the direction of writing, characters without width.
            return f"has a character in its name that does not show (U+{ord(char):04X})"
        if char in NOT_ON_WINDOWS:
            return f"has the character {char} in its name"
    if part.endswith((".", " ")) or part.startswith(" "):
        return "has a name that begins with a space, or ends with a space or a dot"
    device = unicodedata.normalize("NFKC", part.partition(".")[0]).strip().casefold()
    if RESERVED.fullmatch(device):
        return "has a name that stands for a device on Windows"
    return None


def check_together(paths: Iterable[str], folders: Iterable[str] = ()) -> None:
    """Raise UploadError for names that are equal on some system, and for a file with the path of a folder.

    ``folders`` are those that an archive lists by themselves; they may be repeated.
    """
    known: dict[tuple[str, ...], tuple[str, bool]] = {}  # as compared -> as written, whether a file

    def add(path: str, *, is_file: bool) -> None:
        parts = path.split("/")
        keys = tuple(map(_as_compared, parts))
        for count in range(1, len(parts) + 1):
            written, whole = "/".join(parts[:count]), count == len(parts)
            earlier, was_file = known.setdefault(keys[:count], (written, is_file and whole))
            if earlier != written:
                raise UploadError(
                    f"{shown(earlier)} and {shown(written)} differ only in upper and lower case, or in how "
                    f"letters are encoded, and are the same name on some systems; rename one of them"
                )
            if was_file != (is_file and whole):
                raise UploadError(f"{shown(written)} is both a file and a folder; rename one of them")

    seen = set()
    for path in paths:
        if path in seen:
            raise UploadError(f"{shown(path)} is there twice; zip the folder again into a new archive")
        seen.add(path)
        add(path, is_file=True)
    for path in folders:
        add(path, is_file=False)


def _as_compared(part: str) -> str:
    """Return a name as the least discerning file system compares it."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKD", part).casefold())
