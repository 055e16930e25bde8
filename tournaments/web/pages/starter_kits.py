"""Zip archives, and the starter kits, which a student can upload before changing a line."""

import io
import zipfile
from collections.abc import Iterable
from functools import cache
from typing import IO

from starlette.requests import Request
from starlette.responses import Response

from sample_bots.starters_catalog import STARTERS, starter_directory
from tournaments.web.http.errors import NotFound
from tournaments.web.http.rendering import attachment
from tournaments.web.http.routing import Access, Route, in_thread

MOMENT = (1980, 1, 1, 0, 0, 0)
"""Time of every entry, the earliest that a zip can have: the same files make the same archive."""
FILE, PROGRAM = 0o100644, 0o100755
OWNER_MAY_EXECUTE = 0o100


def zip_archive(folder: str, files: Iterable[tuple[str, bytes, bool]]) -> bytes:
    """Return a zip with a folder of these files, each with its path, its content, and True if executable."""
    packed = io.BytesIO()
    write_zip(packed, folder, files)
    return packed.getvalue()


def write_zip(out: IO[bytes], folder: str, files: Iterable[tuple[str, bytes, bool]]) -> None:
    """Write a zip as ``zip_archive`` returns it."""
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, content, is_executable in files:
            entry = zipfile.ZipInfo(f"{folder}/{path}", MOMENT)
            entry.external_attr = (PROGRAM if is_executable else FILE) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, content)


@cache
def kit(name: str) -> bytes:
    """Return a zip of the kit of one of STARTERS, in a folder of its own."""
    paths = {file: starter_directory(name) / file for file in STARTERS[name].files}
    return zip_archive(
        f"{name}-bot",
        (
            (file, path.read_bytes(), bool(path.stat().st_mode & OWNER_MAY_EXECUTE))
            for file, path in paths.items()
        ),
    )


async def starter(request: Request) -> Response:
    """Send one kit."""
    name: str = request.path_params["language"]
    if name not in STARTERS:
        raise NotFound(f"There is no starter kit of that name; there are {', '.join(STARTERS)}.")
    return attachment(await in_thread(kit, name), f"{name}-bot.zip", "application/zip")


ROUTES = (Route("GET", "/starters/{language}.zip", starter, Access.EVERYBODY, "starter"),)
