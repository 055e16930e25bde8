"""Routes of the HTTP API, with its OpenAPI document."""

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from referee.version import VERSION
from tournaments.web.api import challenges, competitions, submissions
from tournaments.web.api.openapi import document
from tournaments.web.http.request_context import settings_of
from tournaments.web.http.routing import Access, Route

OPERATIONS = (*submissions.OPERATIONS, *challenges.OPERATIONS, *competitions.OPERATIONS)


async def openapi(request: Request) -> Response:
    """Send the OpenAPI document."""
    return JSONResponse(document(OPERATIONS, settings_of(request).title, VERSION))


ROUTES = (
    *(operation.route for operation in OPERATIONS),
    Route("GET", "/api/openapi.json", openapi, Access.EVERYBODY, "api_openapi", api=True),
)
