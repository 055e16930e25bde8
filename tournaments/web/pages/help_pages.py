"""Help on the site: an overview, and the pages of docs/ that are for students and lecturers."""

from starlette.requests import Request
from starlette.responses import Response

from sample_bots.starters_catalog import STARTERS
from tournaments.bots.upload.limits import MEBIBYTE, size_text
from tournaments.web.http.errors import NotFound
from tournaments.web.http.rendering import render
from tournaments.web.http.request_context import current_user, settings_of
from tournaments.web.http.routing import Access, Route, in_thread
from tournaments.web.views.course_game import game_label
from tournaments.web.views.help_texts import GROUPS, HOME, PAGES, help_page, help_title


async def overview(request: Request) -> Response:
    """Show what the help contains, and the rules of this course."""
    return await in_thread(_overview, request)


def _overview(request: Request) -> Response:
    settings = settings_of(request)
    may_see = current_user(request) is not None or settings.standings_for != "nobody"
    return render(
        request,
        "help.html",
        active="help",
        groups=GROUPS,
        title_of=help_title,
        starters=STARTERS,
        shows_course=may_see,
        game=game_label(settings.game),
        largest=size_text(round(settings.upload_mb * MEBIBYTE)),
    )


async def page(request: Request) -> Response:
    """Show one help page."""
    name: str = request.path_params["page"]
    if name not in PAGES:
        raise NotFound("There is no such help page.")
    found = await in_thread(help_page, name)
    return await in_thread(
        render, request, "help_page.html", active="help", page=found, groups=GROUPS, title_of=help_title
    )


ROUTES = (
    Route("GET", HOME, overview, Access.EVERYBODY, "help"),
    Route("GET", f"{HOME}/{{page}}", page, Access.EVERYBODY, "help.page"),
)
