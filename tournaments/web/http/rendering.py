"""Rendering of templates into HTTP responses."""

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from functools import cache
from secrets import token_urlsafe
from typing import Any, BinaryIO
from urllib.parse import quote

import trio
from jinja2 import Environment
from markupsafe import Markup, escape
from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, RedirectResponse, Response
from starlette.types import Receive, Scope, Send

from referee.judge.verdict_text import visible
from referee.version import VERSION
from tournaments.course.settings import Settings, moment_text
from tournaments.reporting.site.charts import interval
from tournaments.reporting.site.pages import template_environment
from tournaments.reporting.site.svg import numeral, short
from tournaments.web.http.request_context import RequestContext, context_of, site_of
from tournaments.web.http.routing import Route, in_thread
from tournaments.web.http.sessions import Cookie
from tournaments.web.http.static_files import asset_path
from tournaments.web.views.help_texts import linked_help

LONGEST_NAME = 40
"""Most characters of a name where there are many names."""
PARAMETER = re.compile(r"{(\w+)(:\w+)?}")


@cache
def environment() -> Environment:
    """Return the template environment."""
    made = template_environment("tournaments.web")
    made.filters |= {
        "moment": moment,
        "countdown": countdown,
        "in_zone": in_zone,
        "bot": bot_name,
        "interval": interval,
        "linked_help": linked_help,
        "numeral": numeral,
        "visible": visible,
    }
    made.globals |= {"asset": asset_path, "kalarena_version": VERSION}
    return made


def render(request: Request, template: str, status: int = 200, **values: Any) -> HTMLResponse:
    """Render a page.

    Templates receive ``user``, ``settings``, ``csrf`` (the text for forms), ``note``, ``url_for`` and
    ``now``, ``embedded`` (the page is for frames of other sites) and ``active`` (the page's entry in the
    navigation; by default none) beside the values.
    """
    context = context_of(request)
    embedded = context.route.embedded
    given = {
        "user": context.user,
        "settings": context.settings,
        "csrf": "" if embedded else csrf_text(context),
        "embedded": embedded,
        "note": context.note,
        "active": "",
        "now": context.site.now(),
        "url_for": lambda name, **parameters: path_for(context.site.routes, name, parameters),
    }
    response = HTMLResponse(environment().get_template(template).render(given | values), status)
    cookies = context.site.cookies
    if context.session_secret is not None:
        cookies.write(response, Cookie.SESSION, context.session_secret)  # lasts as long again
    elif context.form_text is not None:
        cookies.write(response, Cookie.FORM, context.form_text)
    if context.note is not None:
        cookies.clear(response, Cookie.NOTE)
    return response


def part(template: str, **values: Any) -> Markup:
    """Render a part of a page that depends on nothing but its values."""
    return Markup(environment().get_template(template).render(values))


def csrf_text(context: RequestContext) -> str:
    """Return the text with which a form proves that it comes from a page of this site."""
    if context.session is not None:
        return context.session.csrf
    if context.form_text is None:
        context.form_text = token_urlsafe()
    return context.form_text


def see_other(request: Request, path: str, note: str | None = None) -> RedirectResponse:
    """Redirect to a path of this site after a form was handled; the page there shows the note."""
    response = RedirectResponse(path, 303)
    if note is not None:
        site_of(request).cookies.write(response, Cookie.NOTE, note)
    return response


def attachment(content: bytes, name: str, media_type: str) -> Response:
    """Return a file for the browser to save; characters of its name that are not ASCII become ``_``."""
    ascii_name = name.encode("ascii", "replace").decode().replace("?", "_")
    headers = {"Content-Disposition": f'attachment; filename="{ascii_name}"'}
    return Response(content, headers=headers, media_type=media_type)


class OpenFileResponse(FileResponse):
    """Response that sends an open file without a name in any folder, so that no file is left behind."""

    def __init__(self, file: BinaryIO, name: str, media_type: str) -> None:
        self._file = file
        super().__init__(
            f"/proc/self/fd/{file.fileno()}",
            media_type=media_type,
            filename=name,
            headers={"Cache-Control": "no-store"},
            background=BackgroundTask(self._close),  # after HEAD, to which only the headers are sent
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the response by ASGI, and close the file."""
        try:
            await super().__call__(scope, receive, send)
        finally:  # ``background`` is not run after a range that cannot be sent
            with trio.CancelScope(shield=True):
                await self._close()

    async def _close(self) -> None:
        await in_thread(self._file.close)


def path_for(routes: Iterable[Route], name: str, parameters: Mapping[str, object]) -> str:
    """Return the path of a route with its parameters, encoded.

    Raises:
        KeyError: No such route, or a parameter is missing.

    """
    path = next((route.path for route in routes if route.name == name), None)
    if path is None:
        raise KeyError(f"no route is called {name!r}")

    def fill(match: re.Match[str]) -> str:
        return quote(str(parameters[match[1]]), safe="/" if match[2] == ":path" else "")

    return PARAMETER.sub(fill, path)


def moment(at: datetime, offset_shown: bool = True) -> Markup:
    """Format a moment for people and programs, in UTC; site.js shows it in the reader's own time."""
    at = at.astimezone(UTC)
    return Markup('<time datetime="{}">{}</time>').format(
        at.strftime("%Y-%m-%dT%H:%M:%SZ"), at.strftime("%Y-%m-%d %H:%M") + (" UTC" if offset_shown else "")
    )


def in_zone(at: datetime, settings: Settings) -> Markup:
    """Format a moment in the course's time zone, with its name: one that is the same for all readers."""
    text = Markup('<span class="nowrap">{}</span>')
    return text.format(moment_text(settings, at))


def countdown(at: datetime, now: datetime) -> Markup:
    """Format the time until a moment, or since; site.js keeps it up to date."""
    left = int((at - now).total_seconds())
    text = duration(abs(left))
    text = f"in {text}" if left >= 0 else f"{text} ago"
    return Markup('<span class="nowrap" data-until="{}">{}</span>').format(
        at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"), text
    )


def duration(seconds: int) -> str:
    """Return a duration in its two largest units, rounded down, as in ``3 days 4 hours``."""
    minutes, hours, days = seconds // 60 % 60, seconds // 3600 % 24, seconds // 86_400
    units = [(days, "day"), (hours, "hour"), (minutes, "minute")]
    first = next((at for at, (count, _) in enumerate(units) if count), None)
    if first is None:
        return "less than a minute"
    parts = [(count, unit) for count, unit in units[first : first + 2] if count]
    return " ".join(f"{count} {unit}{'' if count == 1 else 's'}" for count, unit in parts)


def bot_name(name: str, longest: int = LONGEST_NAME) -> Markup:
    """Format a user's choice of name: on one line, cut, and kept from reversing the text around it."""
    return Markup(f"<bdi>{escape(short(visible(name), longest))}</bdi>")
