"""Atom feeds: finished tournaments for everybody who sees them, and the events of a team for its members."""

import hashlib
from collections.abc import Sequence
from datetime import datetime

from starlette.requests import Request
from starlette.responses import Response

from tournaments.course.course import Course
from tournaments.course.mail.notices import Notice, challenge_notice, tournament_notice, version_notice
from tournaments.course.model import Challenge, Competition, CompetitionKind, CompetitionState, Version
from tournaments.course.people.credentials import FEED_PREFIX
from tournaments.web.http.errors import NotFound
from tournaments.web.http.rate_limits import address_key
from tournaments.web.http.request_context import (
    context_of,
    current_team_id,
    settings_of,
    site_address,
    site_of,
)
from tournaments.web.http.routing import Access, Route, in_thread
from tournaments.web.views.atom import MEDIA_TYPE, FeedEntry, atom_feed
from tournaments.web.views.names import Names
from tournaments.web.views.visibility import names_for, visible_to

MOST_ENTRIES = 30
"""Most events of each kind: a feed reader that polls once a day misses none in a busy week."""


async def public_feed(request: Request) -> Response:
    """Send the feed of finished tournaments, as the current user may see them."""
    address = f"{site_address(request)}/feed.atom"
    title = f"{settings_of(request).title}: tournaments"
    return _answer(request, title, "/competitions", await _tournaments(request), address)


async def team_feed(request: Request) -> Response:
    """Send the feed of an account, whose token is in the address.  Raises NotFound."""
    site, context = site_of(request), context_of(request)
    site.check_rate(site.limits.links, address_key(context.address), "Too many requests for feeds.")
    secret: str = request.path_params["secret"]
    account = await in_thread(site.course.tokens.find, secret, site.now(), FEED_PREFIX)
    if account is None:
        raise NotFound("There is no such feed, or its address was revoked.")
    before, context.user = context.user, account
    try:
        entries = [*await _tournaments(request), *await _of_team(request)]
        path = "/" if account.team_id is None else "/my"
        return _answer(request, settings_of(request).title, path, entries)
    finally:
        context.user = before  # the token permits nothing else, not even on a page of an error


async def _of_team(request: Request) -> list[FeedEntry]:
    """Return the events of the current user's team; none without a team."""
    team_id = current_team_id(request)
    if team_id is None:
        return []
    versions, challenges, competitions = await in_thread(_team_events, site_of(request).course, team_id)
    entries = [_version_entry(one) for one in versions]
    for one in challenges:
        names = await names_for(request, competitions[one.competition_id])
        entries.append(_challenge_entry(one, names, is_asker=one.team_id == team_id))
    return entries


def _team_events(
    course: Course, team_id: int
) -> tuple[Sequence[Version], Sequence[Challenge], dict[int, Competition]]:
    """Return the newest checked versions and ended challenges of a team, and all competitions by id."""
    with course.reading():
        versions = [one for one in course.versions.of_team(team_id) if one.decided_at is not None]
        challenges = [
            *course.challenges.of_team(team_id, MOST_ENTRIES),
            *course.challenges.against(team_id, MOST_ENTRIES),
        ]
        ended = [one for one in challenges if one.ended_at is not None]
        return versions[:MOST_ENTRIES], ended, {one.id: one for one in course.competitions.all()}


async def _tournaments(request: Request) -> list[FeedEntry]:
    site = site_of(request)
    found = visible_to(request, await site.read_cache.get(site.course.competitions.all))
    finished = [
        one
        for one in found
        if one.kind is CompetitionKind.TOURNAMENT and one.state is CompetitionState.FINISHED
    ]
    entries = []
    for one in finished[:MOST_ENTRIES]:
        notice = tournament_notice(one.slug, (await names_for(request, one)).sentence(one.title))
        entries.append(_entry(notice, "finished", one.finished_at or one.created_at))
    return entries


def _version_entry(version: Version) -> FeedEntry:
    at = version.decided_at or version.submitted_at
    # A number of attempts begins anew with each recheck.
    return _entry(version_notice(version), f"check-{at:%Y%m%dT%H%M%S}", at)


def _challenge_entry(challenge: Challenge, names: Names, *, is_asker: bool) -> FeedEntry:
    """Return the entry of a challenge that is over, from the side of the team."""
    other = names.shown(challenge.opponent_name if is_asker else challenge.bot_name)
    notice = challenge_notice(challenge, other, is_asker=is_asker)
    return _entry(notice, f"challenge-{challenge.id}", challenge.ended_at or challenge.asked_at)


def _entry(notice: Notice, fragment: str, at: datetime) -> FeedEntry:
    return FeedEntry(notice.path, fragment, notice.title, notice.summary, at)


def _answer(
    request: Request, title: str, path: str, entries: Sequence[FeedEntry], address: str | None = None
) -> Response:
    """Return the response with a feed; an empty one if the client has the same feed already."""
    content = atom_feed(title, site_address(request), path, entries, address)
    tag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
    headers = {"ETag": tag, "Cache-Control": "private, no-cache"}
    known = request.headers.get("if-none-match", "")
    if tag in [one.strip().removeprefix("W/") for one in known.split(",")]:
        return Response(status_code=304, headers=headers)
    return Response(content, headers=headers, media_type=f"{MEDIA_TYPE}; charset=utf-8")


ROUTES = (
    Route("GET", "/feed.atom", public_feed, Access.PUBLIC, "feed"),
    Route("GET", "/feeds/{secret}", team_feed, Access.EVERYBODY, "feed.team"),
)
