"""Pages of challenges: the form, the list of a team's challenges, and the team's consent."""

from starlette.requests import Request
from starlette.responses import Response

from tournaments.course.audit import Act
from tournaments.course.challenges import MOST_PAIRS
from tournaments.course.model import Challenge, CourseError
from tournaments.web.http.errors import BadInput, NotFound
from tournaments.web.http.rendering import render, see_other
from tournaments.web.http.request_body import number_in, text_of
from tournaments.web.http.request_context import act, settings_of, signed_in_user, site_of
from tournaments.web.http.routing import LARGEST_NUMBER, Access, Route, in_thread
from tournaments.web.pages.submissions_page import team_of
from tournaments.web.views.challenge_view import chosen_bots, form_for, rows_for

HERE = "/my/challenges"
PAGE = 20
"""Challenges on a page."""


async def page(request: Request, status: int = 200, complaint: str = "", **values: str) -> Response:
    """Show the form and the team's challenges; ``complaint`` is the problem of a form with these values."""
    site, team_id = site_of(request), team_of(signed_in_user(request))
    table = site.course.challenges
    before = number_in(request.query_params.get("before"), LARGEST_NUMBER)
    found = await in_thread(table.of_team, team_id, PAGE + 1, before)
    received = await in_thread(table.against, team_id, PAGE)
    return render(
        request,
        "challenges.html",
        status,
        active="my",
        form=await form_for(request),
        chosen=values,
        most_pairs=MOST_PAIRS,
        complaint=complaint,
        rows=await rows_for(request, found[:PAGE]),
        older=found[PAGE - 1].id if len(found) > PAGE else None,
        received=await rows_for(request, received),
        accepts=await in_thread(table.accepts, team_id),
        between_teams=settings_of(request).challenges_with == "teams",
    )


async def ask(request: Request) -> Response:
    """Challenge a bot."""
    site, user, form = site_of(request), signed_in_user(request), await request.form()
    given = {name: text_of(form, name) for name in ("opponent", "bot", "pairs")}
    try:
        own, other = await chosen_bots(request, given["opponent"], given["bot"])
        pairs = number_in(given["pairs"], 0)
        await site.service.challenges.ask(team_of(user), user, own, other, pairs, "page")
    except (BadInput, CourseError) as error:
        return await page(request, 422, str(error), **given)
    return see_other(request, HERE, "Your challenge was received: its games are played next.")


async def cancel(request: Request) -> Response:
    """Cancel a challenge of the team."""
    site, user = site_of(request), signed_in_user(request)
    challenge = await own_challenge(request)
    await site.service.challenges.cancel(challenge.id, user)
    return see_other(request, HERE, "The challenge was cancelled.")


async def consent(request: Request) -> Response:
    """Store whether other teams may challenge the team's bot."""
    site, team_id, form = site_of(request), team_of(signed_in_user(request)), await request.form()
    accepts = text_of(form, "accepts") == "yes"

    def change(act: Act) -> None:
        act.is_recorded = site.course.challenges.set_consent(team_id, accepts)

    await act(request, change, "challenge.consent", f"team {team_id}", accepts=accepts)
    sentence = "Other teams may challenge your bot." if accepts else "Other teams cannot challenge your bot."
    return see_other(request, HERE, sentence)


async def own_challenge(request: Request) -> Challenge:
    """Return the challenge in the path.  Raises NotFound if the user's team has no such challenge."""
    team_id = team_of(signed_in_user(request))
    found = await in_thread(site_of(request).course.challenges.get, request.path_params["id"])
    if found is None or found.team_id != team_id:
        raise NotFound("Your team has no such challenge.")
    return found


ROUTES = (
    Route("GET", HERE, page, Access.STUDENT, "challenges"),
    Route("POST", HERE, ask, Access.STUDENT, "challenges.ask"),
    Route("POST", f"{HERE}/consent", consent, Access.STUDENT, "challenges.consent"),
    Route("POST", f"{HERE}/{{id:int}}/cancel", cancel, Access.STUDENT, "challenges.cancel"),
)
