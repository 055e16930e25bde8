"""Starter kits as zip archives, which a student can upload before changing a line."""

import io
import zipfile
from functools import cache

from starlette.requests import Request
from starlette.responses import Response

from sample_bots.starters_catalog import STARTERS, starter_directory
from tournaments.web.http.errors import NotFound
from tournaments.web.http.routing import Access, Route, in_thread

MOMENT = (1980, 1, 1, 0, 0, 0)
"""Time of every entry, the earliest that a zip can have: the same kit is the same archive."""
FILE, PROGRAM = 0o100644, 0o100755
OWNER_MAY_EXECUTE = 0o100


@cache
def kit(name: str) -> bytes:
    """Return a zip of the kit of one of STARTERS, in a folder of its own."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in STARTERS[name].files:
            path = starter_directory(name) / file
            entry = zipfile.ZipInfo(f"{name}-bot/{file}", MOMENT)
            mode = PROGRAM if path.stat().st_mode & OWNER_MAY_EXECUTE else FILE
            entry.external_attr = mode << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, path.read_bytes())
    return packed.getvalue()


async def starter(request: Request) -> Response:
    """Send one kit."""
    name: str = request.path_params["language"]
    if name not in STARTERS:
        raise NotFound(f"There is no starter kit of that name; there are {', '.join(STARTERS)}.")
    headers = {"Content-Disposition": f'attachment; filename="{name}-bot.zip"'}
    return Response(await in_thread(kit, name), headers=headers, media_type="application/zip")


ROUTES = (Route("GET", "/starters/{language}.zip", starter, Access.EVERYBODY, "starter"),)
