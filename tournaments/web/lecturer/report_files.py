"""A tournament's static report and its tables as files to download: made aside, in processes of their own."""

import os
import zipfile
from pathlib import Path

from tournaments.database.place import Place
from tournaments.exports import COLUMNS, WHAT, WRITERS
from tournaments.report.site import build_site
from tournaments.store import Store
from tournaments.summary import Summary

NICENESS = 10
"""Of the worker process: games that are being played go first."""


def export_file(place: Place, what: str, form: str, out: Path) -> None:
    """Write all games or all moves of a store.  Raises StoreError, OSError."""
    _give_way()
    with Store(place, read_only=True) as store, out.open("w", encoding="utf-8", newline="") as file:
        rows = WHAT[what](Summary.load(store).rulings, store.record)
        WRITERS[form](rows, file, COLUMNS[what])


def report_zip(place: Place, folder: Path, title: str, pseudonyms: dict[str, str] | None) -> Path:
    """Make the report of a store, below a folder that is there for it, and pack it; the packed file.

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
    """Once for each worker process, which may do this again and again."""
    os.nice(max(0, NICENESS - os.nice(0)))
