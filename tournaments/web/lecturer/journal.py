"""Page of the course's journal, which records all actions and their authors."""

from dataclasses import dataclass
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response

from tournaments.course.audit import OldestFirst
from tournaments.course.model import Event
from tournaments.web.http.rendering import render
from tournaments.web.http.request_context import Site, site_of
from tournaments.web.http.routing import Access, Route, in_thread
from tournaments.web.views.journal_sentences import GROUPS, detail_text, sentence_of
from tournaments.web.views.lists import LONGEST_SEARCH, natural_key
from tournaments.web.views.table_rows import PAGE, Page, page_start

HERE = "/teach/journal"
SERVER = "The server"
"""Author of entries without an account."""
COMMAND_LINE = "kalarena admin"
"""Author of entries of the command line, which has no account."""


@dataclass(frozen=True)
class JournalQuery:
    """The selected entries."""

    search: str
    group: str
    """One of GROUPS, or empty."""
    author: int | None
    """Id of an account; 0 for the server."""
    oldest_first: bool
    start: int | None
    """Number of the entry at which the page before this one ended."""

    @classmethod
    def read(cls, request: Request, logins: dict[int, str]) -> "JournalQuery":
        """Return the query of an address; values that are not offered are ignored."""
        query = request.query_params
        group, author = query.get("group", ""), query.get("by", "")
        known = author.isascii() and author.isdecimal() and int(author[:9]) in {0, *logins}
        return cls(
            search=query.get("q", "").strip()[:LONGEST_SEARCH],
            group=group if group in GROUPS else "",
            author=int(author[:9]) if known else None,
            oldest_first=query.get("order") == "asc",
            start=page_start(request),
        )

    def address(self, before: int | None) -> str:
        """Return the query string of the page that begins at a number."""
        values = {
            "before": before,
            "q": self.search,
            "group": self.group,
            "by": self.author,
            "order": "asc" if self.oldest_first else "",
        }
        return "?" + urlencode({name: value for name, value in values.items() if value not in ("", None)})


@dataclass(frozen=True)
class Row:
    """An entry of the journal in words."""

    event: Event
    sentence: str
    detail: str


def row_of(event: Event, logins: dict[int, str]) -> Row:
    """Return an entry in words; ``logins`` is from ``logins_of``."""
    nobody = COMMAND_LINE if event.detail.get("by") == COMMAND_LINE else SERVER
    author = logins.get(event.account_id or 0, nobody)
    return Row(event, sentence_of(event, author), detail_text(event))


async def page(request: Request) -> Response:
    """Show the entries that the query selects, by default the newest."""
    site = site_of(request)
    logins = await in_thread(logins_of, site)
    query = JournalQuery.read(request, logins)
    found = await in_thread(_entries, site, query)
    authors = sorted(logins.items(), key=lambda item: natural_key(item[1]))
    return render(
        request,
        "teach/journal.html",
        active="teach",
        rows=[row_of(event, logins) for event in found.rows],
        query=query,
        groups=list(GROUPS.items()),
        authors=[(0, SERVER), *authors],
        more=None if found.older is None else query.address(found.older),
    )


def _entries(site: Site, query: JournalQuery) -> Page[Event]:
    events = site.course.journal.entries(
        PAGE + 1,
        OldestFirst(query.start) if query.oldest_first else query.start,
        group=query.group,
        account_id=query.author,
        text=query.search,
    )
    return Page.of(events, lambda event: event.number)


def logins_of(site: Site) -> dict[int, str]:
    """Return the login of each account by its id."""
    return {account.id: account.login for account in site.course.accounts.all()}


ROUTES = (Route("GET", HERE, page, Access.LECTURER, "teach.journal"),)
