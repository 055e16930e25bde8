"""Page of the course's journal, which records all actions and their authors."""

import json

from starlette.requests import Request
from starlette.responses import Response

from tournaments.course.model import Event
from tournaments.web.http.rendering import render
from tournaments.web.http.request_context import Site, site_of
from tournaments.web.http.routing import Access, Route, in_thread
from tournaments.web.views.table_rows import PAGE, Page, page_start

HERE = "/teach/journal"
LONGEST_DETAIL = 300
"""Most characters of a detail that are shown without unfolding it."""
SERVER = "the server"
"""Author of entries without an account."""


def detail_text(event: Event) -> str:
    """Return the details of an entry as a text."""
    return "; ".join(f"{name}: {_value(value)}" for name, value in event.detail.items() if value != [])


def _value(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(map(_value, value))
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


async def page(request: Request) -> Response:
    """Show the newest entries, or those before a number."""
    found, logins = await in_thread(_entries, site_of(request), page_start(request))
    return render(
        request,
        "teach/journal.html",
        active="teach",
        rows=[(event, logins.get(event.account_id or 0, SERVER), detail_text(event)) for event in found.rows],
        older=found.older,
        longest=LONGEST_DETAIL,
    )


def _entries(site: Site, before: int | None) -> tuple[Page[Event], dict[int, str]]:
    events = site.course.journal.entries(PAGE + 1, before)
    return Page.of(events, lambda event: event.number), logins_of(site)


def logins_of(site: Site) -> dict[int, str]:
    """Return the login of each account by its id."""
    return {account.id: account.login for account in site.course.accounts.all()}


ROUTES = (Route("GET", HERE, page, Access.LECTURER, "teach.journal"),)
