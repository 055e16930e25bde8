"""List of all submissions.  Their forms are handled in web/pages/versions.py."""

from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from tournaments.course.model import Version, VersionState
from tournaments.web.http.rendering import render
from tournaments.web.http.request_context import Site, site_of
from tournaments.web.http.routing import Access, Route, in_thread
from tournaments.web.views.lists import Column, ListQuery, listed, natural_key

HERE = "/teach/submissions"
MOST = 20_000
"""Most versions in the list, the newest ones: a course has some hundred."""


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
        return self.version.state.is_decided


COLUMNS: dict[str, Column[Line]] = {
    "submitted": Column("Submitted", lambda line: line.version.id, is_descending=True),
    "team": Column("Version", lambda line: (natural_key(line.team), line.version.number)),
    "state": Column("State", lambda line: line.version.state.value),
    "by": Column("By", lambda line: natural_key(line.by)),
    "size": Column("Size", lambda line: line.version.size, is_descending=True),
}


async def page(request: Request) -> Response:
    """List the submissions that the query selects, by default the newest first."""
    states = [state.value for state in VersionState]
    query = ListQuery.read(request.query_params, COLUMNS, {"state": states})
    state = query.filters.get("state")
    lines = await in_thread(_lines, site_of(request))
    found = listed(
        lines,
        query,
        COLUMNS,
        lambda line: (f"{line.team} v{line.version.number}", line.by, line.version.origin),
        lambda line: state is None or line.version.state.value == state,
    )
    return render(request, "teach/submissions.html", active="teach", listed=found, states=states)


def _lines(site: Site) -> list[Line]:
    teams = {team.id: team.name for team in site.course.teams.all()}
    accounts = {account.id: account.login for account in site.course.accounts.all()}
    current = {version.id for version in site.course.versions.current().values()}
    return [
        Line(one, teams.get(one.team_id, ""), accounts.get(one.submitted_by, ""), one.id in current)
        for one in site.course.versions.all(MOST)
    ]


ROUTES = (Route("GET", HERE, page, Access.LECTURER, "teach.submissions"),)
