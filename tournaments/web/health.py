"""Whether the server answers and reaches its database, for whatever watches it."""

from starlette.requests import Request
from starlette.responses import JSONResponse

from tournaments.web.routing import Access, Route


async def health(_request: Request) -> JSONResponse:
    """The settings were just read from the database, or this would not have been reached."""
    return JSONResponse({"status": "ok"})


ROUTES = (Route("GET", "/health", health, Access.EVERYBODY, "health"),)
