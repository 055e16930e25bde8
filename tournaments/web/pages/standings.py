"""Page of the whole practice ladder."""

from starlette.requests import Request
from starlette.responses import Response

from tournaments.web.http.rendering import render
from tournaments.web.http.request_context import me_of, site_of
from tournaments.web.http.routing import Access, Route
from tournaments.web.pages.home import practice_of
from tournaments.web.views.table_rows import rungs
from tournaments.web.views.visibility import shown_to

PARTS = ("cross", "rating", "faults")
"""Parts of the report's first page that are shown, in the order of this page."""


async def standings(request: Request) -> Response:
    """Show the practice ladder, with its cross table, ratings and faults."""
    site, me = site_of(request), me_of(request)
    practice = practice_of(await site.recall.of(site.course.competitions.all))
    if practice is None:
        return render(
            request, "standings.html", active="standings", practice=None, ladder=(), parts_of={}, hidden=False
        )
    shown = await shown_to(request, practice)
    return render(
        request,
        "standings.html",
        active="standings",
        practice=practice,
        ladder=rungs(shown, me.team_id if me is not None else None),
        parts_of=await shown.parts(PARTS, {}),
        hidden=shown.names.on,
    )


ROUTES = (Route("GET", "/standings", standings, Access.PUBLIC, "standings"),)
