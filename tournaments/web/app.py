"""The site as an ASGI application: routing, authentication, access control and error responses.

A request goes through these steps, each of which may end it:

    Host header -> route -> session or token -> access rule -> Origin, CSRF -> handler

Handlers therefore run only once the account, or the visitor, is identified.  Every error becomes a page of
the site, or JSON for the API; no exception in a handler ends the server.
"""

import logging
from contextlib import nullcontext
from secrets import token_hex

import trio
from python_multipart.multipart import parse_options_header
from starlette.datastructures import Headers
from starlette.formparsers import MultiPartException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Match
from starlette.routing import Route as Pattern
from starlette.types import Message, Receive, Scope, Send
from starlette.websockets import WebSocket

from tournaments.bots.upload.limits import MEBIBYTE
from tournaments.course.model import CourseError
from tournaments.database.base import StoreError
from tournaments.web.api import remote
from tournaments.web.http import auth
from tournaments.web.http.connections import LARGEST_HEADERS
from tournaments.web.http.errors import (
    BadInput,
    Forbidden,
    HeadersTooLarge,
    MethodNotAllowed,
    NotFound,
    NotSignedIn,
    ServerFault,
    TooSlow,
    WebError,
    database_failure,
)
from tournaments.web.http.rendering import render
from tournaments.web.http.request_body import DRAIN_S, UPLOAD_DRAIN_S, Body
from tournaments.web.http.request_context import RequestContext, Site
from tournaments.web.http.routing import LARGEST_NUMBER, Access, Route
from tournaments.web.http.security import (
    client_address,
    content_security_policy,
    host_allowed,
    masked,
    may_post,
    security_headers,
)
from tournaments.web.http.uploads import admitted_upload

LOG = logging.getLogger("kalarena.web")
FORM_BYTES = 2 * MEBIBYTE
"""Bytes allowed for the rest of a form with an upload: names of files, boundaries between parts."""
HEALTH = "/health"
"""Path for monitors, which get JSON in any case."""
CLOSE = {"Connection": "close"}
CLOSE_S = 5.0
"""Seconds to close the temporary files of a form, which takes milliseconds."""


class Application:
    """ASGI application that answers the requests to one site."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._patterns = [
            (route, Pattern(route.path, route.handler, methods=[route.method], name=route.name))
            for route in site.routes
        ]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one ASGI connection; lifespan is not supported, and WebSockets are for remote bots alone."""
        if scope["type"] == "websocket":
            await self._handle_websocket(scope, receive, send)
            return
        if scope["type"] != "http":
            # As the ASGI specification demands: the server then goes on without lifespan events.
            raise ValueError(f"ASGI connections of type {scope['type']!r} are not supported")
        sender = _ResponseSender(scope, send, security_headers(self._site.https))
        began = trio.current_time()
        try:
            await self._handle(scope, receive, sender)
        except trio.Cancelled:
            raise
        except ClientDisconnect:
            pass
        except BaseException as fault:  # in the middle of a response, which can only be ended
            if not _ends_one_request(fault):
                raise
            self._log_fault(scope, fault)
        LOG.debug(
            "%s %s %s %.0f ms",
            scope["method"],
            masked(scope["path"]),
            sender.status,
            1000 * (trio.current_time() - began),
        )

    async def _handle_websocket(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a remote bot, after the same checks as for a request of the HTTP API."""
        socket = WebSocket(scope, receive, send)
        site = self._site
        try:
            await socket.receive()  # the event of the connection
            _check_headers(scope)
            if not host_allowed(socket.headers.get("host", ""), site.public_url):
                raise BadInput("This server does not go by that name.")
            if not may_post(socket.headers, site.public_url):
                raise Forbidden("This connection was made from another site.")
            if scope["path"] != remote.PATH:
                raise NotFound
            peer = socket.client.host if socket.client else "unknown"
            address = client_address(peer, socket.headers.getlist("x-forwarded-for"), site.trusted_proxies)
            context = RequestContext(site, await site.settings(), REMOTE_ROUTE, address)
            await auth.authenticate(socket, context)
            auth.check_access(socket, context)
            await remote.serve_remote_bot(socket, context)
        except trio.Cancelled:
            raise
        except WebError as error:
            await remote.refuse(socket, error)
        except StoreError as error:
            await remote.refuse(socket, self._store_failure(scope, error))
        except BaseException as fault:
            if not _ends_one_request(fault):
                raise
            self._log_fault(scope, fault)

    async def _handle(self, scope: Scope, receive: Receive, sender: "_ResponseSender") -> None:
        body = Body(receive, 0, _declared(scope))
        request = Request(scope, body.receive)
        wrong: WebError | None = None
        try:
            response = await self._respond(request, body)
        except WebError as error:
            wrong = error
        except StoreError as error:
            wrong = self._store_failure(scope, error)
        except (trio.Cancelled, ClientDisconnect):
            raise
        except BaseException as fault:  # SystemExit, too
            if not _ends_one_request(fault):
                raise
            wrong = ServerFault(self._log_fault(scope, fault))
        finally:
            with trio.CancelScope(shield=True), trio.move_on_after(CLOSE_S):
                await request.close()
        if wrong is not None:
            response = await self._error(request, wrong)
        context: RequestContext | None = getattr(request.state, "context", None)
        if context is not None and context.route.embedded:
            origins = context.settings.embed_origins
            response.headers["Content-Security-Policy"] = content_security_policy(origins)
        if not body.over:
            may_take_longer = (
                context is not None and context.route.is_upload and not isinstance(wrong, TooSlow)
            )
            await body.drain(UPLOAD_DRAIN_S if may_take_longer else DRAIN_S)
        await sender.send(response, body.receive)

    async def _respond(self, request: Request, body: Body) -> Response:
        site = self._site
        _check_headers(request.scope)
        if not host_allowed(request.headers.get("host", ""), site.public_url):
            raise BadInput("This server does not go by that name.")
        route = self._route(request)
        settings = await site.settings()
        body.limit = min(route.body_limit, FORM_BYTES + round(settings.upload_mb * MEBIBYTE))
        peer = request.client.host if request.client else "unknown"
        address = client_address(peer, request.headers.getlist("x-forwarded-for"), site.trusted_proxies)
        request.state.context = context = RequestContext(site, settings, route, address)
        await auth.authenticate(request, context)
        auth.check_access(request, context)
        user = context.user
        try:
            with admitted_upload(site, user) if route.is_upload and user is not None else nullcontext():
                if route.method == "POST":
                    await auth.check_form(request, context)
                return await route.handler(request)
        except CourseError as error:
            raise BadInput(str(error)) from error
        except MultiPartException as error:
            raise BadInput(f"The form cannot be read: {error.message}") from error

    def _route(self, request: Request) -> Route:
        """Return the route of a request, and add its path parameters to the request."""
        allowed: set[str] = set()
        if "\0" in request.scope["path"]:  # no name has one, and PostgreSQL takes none
            raise NotFound
        for route, pattern in self._patterns:
            try:
                match, found = pattern.matches(request.scope)
            except ValueError as error:  # a number of more digits than int() takes
                raise NotFound from error
            if match is Match.NONE:
                continue
            if match is Match.PARTIAL:
                allowed |= pattern.methods or set()
                continue
            request.scope.update(found)
            if any(
                isinstance(value, int) and value > LARGEST_NUMBER for value in request.path_params.values()
            ):
                raise NotFound
            return route
        if allowed:
            raise MethodNotAllowed(request.method, allowed)
        raise NotFound

    async def _error(self, request: Request, error: WebError) -> Response:
        context: RequestContext | None = getattr(request.state, "context", None)
        path = request.scope["path"]
        if path == HEALTH:
            return JSONResponse(
                {"status": "unavailable", "error": error.sentence}, error.status, error.headers
            )
        if path.startswith("/api/") or (context is not None and context.route.api):
            return JSONResponse({"error": error.sentence}, error.status, error.headers)
        if "application/json" in request.headers.get("accept", ""):  # a script of a page
            return JSONResponse({"error": error.sentence}, error.status, error.headers)
        if isinstance(error, NotSignedIn):
            return RedirectResponse(auth.sign_in_path(request), 303)
        try:
            if context is None:
                context = await self._without_route(request)
            response: Response = render(request, "error.html", error.status, error=error)
        except Exception as fault:
            number = self._log_fault(request.scope, fault)
            response = Response(
                f"{error.sentence}\n(The page for this cannot be shown: {number}.)", error.status
            )
        response.headers.update(error.headers)
        return response

    async def _without_route(self, request: Request) -> RequestContext:
        """Return the context of a request that matches no route, or came while the database is away."""
        try:
            context = RequestContext(self._site, await self._site.settings(), ERROR_ROUTE, "")
            request.state.context = context
            await auth.authenticate(request, context)
        except StoreError:
            context = RequestContext(self._site, self._site.last_settings, ERROR_ROUTE, "")
            request.state.context = context
        return context

    def _store_failure(self, scope: Scope, error: StoreError) -> WebError:
        """Log the error, and return the response: 503 if the database cannot be used just now, else 500."""
        if error.is_ours:
            return database_failure(error)
        return ServerFault(self._log_fault(scope, error), str(error))

    def _log_fault(self, scope: Scope, fault: BaseException) -> str:
        number = f"fault {token_hex(4)}"
        method = scope.get("method", "WebSocket")  # the scope of a WebSocket has none
        LOG.error("%s: %s %s", number, method, masked(scope["path"]), exc_info=fault)
        return number


class _ResponseSender:
    """Sends a response with the common headers, and records its status."""

    def __init__(self, scope: Scope, send: Send, headers: dict[str, str]) -> None:
        self._scope = scope
        self._send = send
        self._headers = headers
        self.status = 0

    async def send(self, response: Response, receive: Receive) -> None:
        for name, value in self._headers.items():
            response.headers.setdefault(name, value)
        response.headers.setdefault("Cache-Control", "no-store")
        if self._scope["method"] == "HEAD":
            # The headers alone: the body of a stream has no end.
            await self._send_message(
                {
                    "type": "http.response.start",
                    "status": response.status_code,
                    "headers": response.raw_headers,
                }
            )
            await self._send_message({"type": "http.response.body", "body": b""})
            if response.background is not None:  # it may remove files that the handler has made
                await response.background()
        else:
            await response(self._scope, receive, self._send_message)

    async def _send_message(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
        await self._send(message)


def _check_headers(scope: Scope) -> None:
    """Check a request's headers: their size, the length that they state, and the encoding of a form.

    The HTTP library limits headers only as long as they are incomplete.  After a request with two lengths,
    which a proxy may read otherwise, the connection is closed (RFC 9112, 6.3).  A form's encoding is that of
    its page, UTF-8; decoders of others can take minutes (punycode), or return text that cannot be stored.

    Raises:
        HeadersTooLarge: The headers have more bytes than LARGEST_HEADERS.
        BadInput: The request has both Content-Length and Transfer-Encoding, or a form that is not in UTF-8.

    """
    size = len(scope.get("raw_path", b"")) + len(scope["query_string"])
    names = set()
    for name, value in scope["headers"]:
        size += len(name) + len(value) + len(b": \r\n")
        names.add(name.lower())
    if size > LARGEST_HEADERS:
        raise HeadersTooLarge(f"The headers of a request may have {LARGEST_HEADERS >> 10} KiB.", CLOSE)
    if {b"content-length", b"transfer-encoding"} <= names:
        raise BadInput("A request has either Content-Length or Transfer-Encoding, not both.", CLOSE)
    kind, options = parse_options_header(Headers(scope=scope).get("content-type"))
    if kind == b"multipart/form-data" and options.get(b"charset", b"utf-8").lower() != b"utf-8":
        raise BadInput("Forms are read as UTF-8: send this one without another charset.")


def _declared(scope: Scope) -> int | None:
    """Return the declared length of a request's body; None without a valid one."""
    for name, value in scope["headers"]:
        if name == b"content-length":
            return int(value) if value.isdigit() else None
    return None


def _ends_one_request(fault: BaseException) -> bool:
    """Return True if an exception ends one request alone: all but cancellation, which ends the server.

    SystemExit and KeyboardInterrupt are among them: the server is ended by signals that it handles itself.
    """
    if isinstance(fault, trio.Cancelled | GeneratorExit):
        return False
    if isinstance(fault, BaseExceptionGroup):
        return fault.subgroup(lambda one: isinstance(one, trio.Cancelled | GeneratorExit)) is None
    return True


async def _no_page(_request: Request) -> Response:
    raise NotFound


REMOTE_ROUTE = Route("GET", remote.PATH, _no_page, Access.STUDENT, "remote", api=True)
"""Access rule of the WebSocket of remote bots."""
ERROR_ROUTE = Route("GET", "", _no_page, Access.EVERYBODY, "error")
"""Placeholder for the route of requests that match none."""
