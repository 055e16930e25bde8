"""List of all submissions.  The actions on a submission are on its own page, in web/versions.py."""

from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from tournaments.course.model import Version, VersionState
from tournaments.web.http.rendering import render
from tournaments.web.http.request_context import Site, site_of
from tournaments.web.http.routing import Access, Route, in_thread
from tournaments.web.pages.versions import UNDECIDED
from tournaments.web.views.table_rows import PAGE, Page, page_start

HERE = "/teach/submissions"
CHUNK = 500
"""Versions read at a time where only some of them are shown."""


@dataclass(frozen=True)
class Line:
    """A version with the names of its team and its submitter."""

    version: Version
    team: str
    by: str
    current: bool

    @property
    def is_decided(self) -> bool:
        """True if the check has ended, so that it can be repeated."""
        return self.version.state not in UNDECIDED


async def page(request: Request) -> Response:
    """Show the newest versions, or those before a number; all, or those of one state."""
    asked = request.query_params.get("state", "")
    state = next((state for state in VersionState if state.value == asked), None)
    found = await in_thread(_lines, site_of(request), state, page_start(request))
    return render(
        request,
        "teach/submissions.html",
        active="teach",
        lines=found.rows,
        older=found.older,
        states=[one.value for one in VersionState],
        state=state.value if state else "",
    )


def _lines(site: Site, state: VersionState | None, before: int | None) -> Page[Line]:
    teams = {team.id: team.name for team in site.course.teams.all()}
    accounts = {account.id: account.login for account in site.course.accounts.all()}
    current = {version.id for version in site.course.versions.current().values()}
    found: list[Version] = []
    while len(found) <= PAGE and (some := site.course.versions.all(CHUNK, before)):
        found += [version for version in some if state is None or version.state is state]
        before = some[-1].id
    lines = [
        Line(one, teams.get(one.team_id, ""), accounts.get(one.submitted_by, ""), one.id in current)
        for one in found[: PAGE + 1]
    ]
    return Page.of(lines, lambda line: line.version.id)


ROUTES = (Route("GET", HERE, page, Access.LECTURER, "teach.submissions"),)
