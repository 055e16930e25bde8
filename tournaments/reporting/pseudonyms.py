"""Pseudonyms: neutral names of bots in published reports.

They are drawn once and stored in a file of the lecturer, so that the next report uses the same ones.
"""

import csv
import io
import os
import random
import stat
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from tournaments.files.durable import FileLock, os_errors_as, replacing

KEY_FILE = "pseudonyms.csv"
"""Name of the file in the tournament's directory."""
HEAD = ["pseudonym", "name"]
PRIVATE = 0o600
"""Mode of the file, which reveals the names: only its owner can read it."""

COLOURS = (
    *("Amber", "Azure", "Bronze", "Copper", "Coral", "Crimson", "Ebony", "Golden", "Indigo", "Ivory"),
    *("Jade", "Lilac", "Maroon", "Ochre", "Olive", "Pearl", "Russet", "Scarlet", "Silver", "Teal"),
)
BIRDS = (
    *("Avocet", "Bittern", "Bunting", "Condor", "Crane", "Curlew", "Dunlin", "Egret", "Falcon", "Finch"),
    *("Gannet", "Godwit", "Grebe", "Heron", "Hoopoe", "Ibis", "Jackdaw", "Kestrel", "Kingfisher", "Lapwing"),
    *("Linnet", "Magpie", "Merlin", "Nuthatch", "Oriole", "Osprey", "Petrel", "Pipit", "Plover", "Puffin"),
    *("Redstart", "Sandpiper", "Shrike", "Siskin", "Skylark", "Stork", "Swallow", "Tern", "Thrush"),
    "Wagtail",
)
"""Words of pseudonyms: two make one, 800 in all, far more than a course has bots."""


class PseudonymError(Exception):
    """The key file cannot be used; the message gives the reason."""


def pseudonyms_for(path: Path, names: Sequence[str], chance: random.Random | None = None) -> dict[str, str]:
    """Return name -> pseudonym for all of these names, and for the others in the file.

    The order is that of the file, and reveals nothing of the names: new pseudonyms are drawn in random order.
    Existing pseudonyms are never changed; missing ones are drawn and added to the file, which is created if
    needed.  ``chance`` is the system's own source, except in tests.

    Raises PseudonymError.
    """
    with os_errors_as(PseudonymError, f"{path}: the pseudonyms cannot be read"):
        is_there = path.exists()
    known = _read(path) if is_there else {}
    if all(name in known for name in names) and known:
        return known
    cannot_be_kept = os_errors_as(PseudonymError, f"{path}: the pseudonyms cannot be kept here")
    with cannot_be_kept, _locked(path.resolve()) as lock:
        known = _read(lock.path)  # another report may have been quicker
        drawn = draw([name for name in names if name not in known], known, chance or random.SystemRandom())
        _append(lock.path, drawn)
    return known | drawn


def _locked(path: Path) -> FileLock:
    """Lock the file, which is created if needed.  Raises OSError."""
    while True:
        lock = FileLock(path, create=PRIVATE)
        if lock.is_in_place():
            return lock
        lock.close()  # another report has replaced the file in the meantime


def draw(names: Sequence[str], known: Mapping[str, str], chance: random.Random) -> dict[str, str]:
    """Return new pseudonyms, each used once, none of which contains a word of a bot's name."""
    taken = set(known.values())
    words = [name.casefold() for name in (*names, *known)]
    colours, birds = (
        [word for word in choice if not any(name and name in word.casefold() for name in words)]
        for choice in (COLOURS, BIRDS)
    )
    free = [f"{colour} {bird}" for colour in colours for bird in birds]
    free = [name for name in free if name not in taken and not any(word == name.casefold() for word in words)]
    number = 1
    while len(free) < len(names):  # more bots than words: numbers reveal nothing either
        free += [name for name in (f"Bird {number}",) if name not in taken and name.casefold() not in words]
        number += 1
    shuffled = list(names)
    chance.shuffle(shuffled)
    return dict(zip(shuffled, chance.sample(free, len(names)), strict=True))


def _read(path: Path) -> dict[str, str]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:  # a spreadsheet may put a mark first
            rows = [row for row in csv.reader(file, strict=True) if row]
    except (OSError, ValueError, csv.Error) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise PseudonymError(f"{path}: the pseudonyms cannot be read: {why}") from error
    if not rows:
        return {}
    if rows[0] != HEAD:
        raise PseudonymError(f"{path}: this is no list of pseudonyms: its first line is not {','.join(HEAD)}")
    known: dict[str, str] = {}
    for number, row in enumerate(rows[1:], 2):
        if len(row) != len(HEAD) or not all(row):
            raise PseudonymError(f"{path}: row {number} is not a pseudonym and a name")
        pseudonym, name = row[0], _bare(row[1])
        if name in known or pseudonym in known.values():
            raise PseudonymError(f"{path}: row {number}: {pseudonym!r} or its name is there twice")
        known[name] = pseudonym
    return known


def _append(path: Path, drawn: Mapping[str, str]) -> None:
    """Append all of the rows, or none, even if this process is killed.  Raises OSError."""
    before = path.read_bytes()
    out = io.StringIO()
    if before and not before.endswith(b"\n"):  # an editor left the last line open
        out.write("\n")
    writer = csv.writer(out, lineterminator="\n", quoting=csv.QUOTE_ALL)  # a name may hold a line end
    if not before:
        writer.writerow(HEAD)
    writer.writerows([pseudonym, _inert(name)] for name, pseudonym in drawn.items())
    status = path.stat()
    with replacing(path, stat.S_IMODE(status.st_mode)) as file:
        with suppress(PermissionError):  # root may add bots to the file of a server's own user
            os.fchown(file.fileno(), status.st_uid, status.st_gid)
        file.write(before + out.getvalue().encode("utf-8"))


FORMULA = ("=", "+", "-", "@", "'")


def _inert(name: str) -> str:
    """Return a name that no spreadsheet takes for a formula; ``_bare`` is the inverse."""
    return "'" + name if name.startswith(FORMULA) else name


def _bare(cell: str) -> str:
    return cell[1:] if cell.startswith("'") else cell
