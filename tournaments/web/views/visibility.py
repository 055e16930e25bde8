"""Visibility of a competition for the current user."""

from collections.abc import Iterable

from starlette.requests import Request

from tournaments.course.model import Competition, CompetitionKind
from tournaments.web.http.errors import NotFound
from tournaments.web.http.request_context import current_user, settings_of, site_of
from tournaments.web.views.competition_view import ViewedCompetition
from tournaments.web.views.names import (
    Names,
    Viewer,
    Visibility,
    viewer_of,
)


async def competition_of(request: Request, *, challenges: bool = False) -> Competition:
    """Return the competition in the address.  Raises NotFound.

    Challenges have no standings and no lists of games: only pages of a game pass ``challenges``.
    """
    site = site_of(request)
    slug: str = request.path_params["slug"]
    found = await site.read_cache.get(site.course.competitions.by_slug, slug)
    if found is None or not is_visible(request, found):
        raise NotFound("There is no such competition.")
    if found.kind is CompetitionKind.CHALLENGE and not challenges:
        raise NotFound("There is no such competition.")
    return found


def is_visible(request: Request, competition: Competition) -> bool:
    """Return whether the current user may see that a competition exists."""
    user = current_user(request)
    return competition.is_visible(teaches=user is not None and user.role.teaches)


def visible_to(request: Request, competitions: Iterable[Competition]) -> list[Competition]:
    """Return the competitions of lists that the current user may see; no list has challenges."""
    return [
        one for one in competitions if one.kind is not CompetitionKind.CHALLENGE and is_visible(request, one)
    ]


def this_viewer(request: Request) -> Viewer:
    """Return the current user as a viewer."""
    return viewer_of(settings_of(request), current_user(request))


async def view_of(request: Request, competition: Competition) -> ViewedCompetition:
    """Return a competition as the current user sees it."""
    site = site_of(request)
    summary = await site.service.tournaments.summary(competition.id)
    return await site.views.get(site.course, site.data, competition, this_viewer(request), summary)


async def history_of(request: Request, ladder: Competition) -> ViewedCompetition:
    """Return all bots that ever played on a practice ladder, as the current user sees them."""
    site = site_of(request)
    summary = await site.service.tournaments.history(ladder.id)
    return await site.histories.get(site.course, site.data, ladder, this_viewer(request), summary)


async def names_for(request: Request, competition: Competition) -> Names:
    """Return the displayed names of a competition's bots for the current user."""
    if this_viewer(request).visibility is Visibility.NAMED:
        return Names()
    return (await view_of(request, competition)).names


async def titles_for(request: Request, competitions: Iterable[Competition]) -> dict[str, str]:
    """Return displayed titles by slug; a title may have a bot's name in it."""
    return {one.slug: (await names_for(request, one)).sentence(one.title) for one in competitions}
