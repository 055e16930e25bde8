"""Files to download: a tournament's static report and its tables, made in processes of their own."""

import os
import zipfile
from pathlib import Path

from tournaments.database.place import Place
from tournaments.reporting.exports import COLUMNS, WHAT, WRITERS, pgn_games
from tournaments.reporting.site.site import build_site
from tournaments.reporting.summary import Summary
from tournaments.results.store import Store

PGN = "pgn"
NICENESS = 10
"""Nice value of the worker process: games that are being played have priority."""


def export_file(place: Place, what: str, form: str, out: Path) -> None:
    """Write all games or all moves of a store; as PGN, the games that count.  Raises StoreError, OSError."""
    _give_way()
    with Store(place, read_only=True) as store, out.open("w", encoding="utf-8", newline="") as file:
        summary = Summary.load(store)
        if form == PGN:
            file.writelines(pgn_games(summary.rulings, store.record, summary.name))
        else:
            WRITERS[form](WHAT[what](summary.rulings, store.record), file, COLUMNS[what])


def report_zip(place: Place, folder: Path, title: str, pseudonyms: dict[str, str] | None) -> Path:
    """Make the report of a store in a folder, pack it, and return the path of the archive.

    Raises ReportError, StoreError, OSError.
    """
    _give_way()
    with Store(place, read_only=True) as store:
        summary = Summary.load(store)
    site = folder / title
    build_site(place, summary, site, pseudonyms, most_processes=1)
    packed = folder / f"{title}.zip"
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for path in sorted(site.rglob("*")):
            if path.is_file():
                archive.write(path, path.relative_to(folder))
    return packed


def _give_way() -> None:
    """Set the nice value of the worker process; repeated calls change nothing."""
    os.nice(max(0, NICENESS - os.nice(0)))
