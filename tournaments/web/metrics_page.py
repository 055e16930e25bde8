"""ASGI application that answers with the metrics of a server, at an address of its own."""

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import Receive, Scope, Send

from tournaments.server.metrics import CONTENT_TYPE, Metrics

PATH = "/metrics"


class MetricsPage:
    """Application with one path.

    It has no accounts, and so is no part of the site: every program that can connect to its address can
    read it.
    """

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one ASGI connection."""
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
            return
        request = Request(scope, receive)
        await self._response(request)(scope, receive, send)

    def _response(self, request: Request) -> Response:
        if request.url.path != PATH:
            return PlainTextResponse(f"Metrics are at {PATH}.\n", 404)
        if request.method not in ("GET", "HEAD"):
            return PlainTextResponse("Metrics can only be read.\n", 405, {"Allow": "GET, HEAD"})
        return Response(self._metrics.page(), media_type=CONTENT_TYPE, headers={"Cache-Control": "no-store"})
