"""Static assets: style sheets and scripts of this site, and of the report, in whose package they stay."""

import hashlib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from starlette.requests import Request
from starlette.responses import Response

from tournaments.web.http.errors import NotFound
from tournaments.web.http.routing import Access, Route

FOLDERS = (("tournaments.web", "static"), ("tournaments.reporting.site", "assets"))
"""Folders of assets, as (package, folder); a name in the first hides one in the second."""
TYPES = {
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
FOR_EVER = "public, max-age=31536000, immutable"
"""A year: the longest that caches honour.  The address changes with the content of the file."""


@dataclass(frozen=True)
class Asset:
    """A static file."""

    content: bytes
    media_type: str
    version: str
    """Digest of the content."""


@cache
def assets() -> dict[str, Asset]:
    """Return all assets by file name."""
    found: dict[str, Asset] = {}
    for package, folder in FOLDERS:
        for file in files(package).joinpath(folder).iterdir():
            media_type = TYPES.get(file.name.rpartition(".")[2])
            if media_type is not None and file.name not in found:
                content = file.read_bytes()
                version = hashlib.sha256(content).hexdigest()[:16]
                found[file.name] = Asset(content, media_type, version)
    return found


def asset_path(name: str) -> str:
    """Return the address of an asset, with its version."""
    return f"/assets/{name}?v={assets()[name].version}"


async def asset(request: Request) -> Response:
    """Send an asset; a browser caches it for ever if the address names its current version."""
    found = assets().get(request.path_params["file"])
    if found is None:
        raise NotFound
    tag = f'"{found.version}"'
    asked = request.query_params.get("v") == found.version
    headers = {"ETag": tag, "Cache-Control": FOR_EVER if asked else "no-cache"}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    return Response(found.content, headers=headers, media_type=found.media_type)


ROUTES = (Route("GET", "/assets/{file}", asset, Access.EVERYBODY, "asset"),)
