"""Pages of bots: a team's bot with its versions, a bot of one competition, and a reference player."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import Response

from sample_bots.catalog import SAMPLE_BOTS
from tournaments.analysis.standing import Standing
from tournaments.course.challenges import MOST_PAIRS
from tournaments.course.course import Course
from tournaments.course.model import (
    Account,
    BotChoice,
    Competition,
    CompetitionKind,
    Team,
    Version,
    VersionState,
)
from tournaments.course.settings import check_reference
from tournaments.web.http.errors import NotFound
from tournaments.web.http.rendering import render
from tournaments.web.http.request_context import current_user, site_of
from tournaments.web.http.routing import Access, Route, in_thread
from tournaments.web.pages.home import practice_of
from tournaments.web.views.challenge_view import form_for
from tournaments.web.views.competition_view import ViewedCompetition
from tournaments.web.views.names import Entrant, Visibility
from tournaments.web.views.progress import Progress, lines_of_versions, progress_of
from tournaments.web.views.visibility import competition_of, history_of, this_viewer, titles_for, view_of

TIMED = 150
"""Number of a bot's newest games in its chart of move times."""
MOST_LISTED = 200
"""Most games listed on a bot's page; if there are more, only the full list has them."""
PARTS = ("figures", "opponents", "faults", "times", "swap")
"""Parts of the report's page of a bot that are shown; the games come last, if they are not too many."""
DECIDED = (VersionState.QUALIFIED, VersionState.FAILED)


@dataclass(frozen=True)
class TeamRecords:
    """Database records about a team's bot."""

    team: Team
    versions: Sequence[Version]
    """Newest first."""
    current: Version | None
    practice: Competition | None
    tournaments: Sequence[Competition]


def team_records(course: Course, team_id: int, teaches: bool) -> TeamRecords:
    """Read the records of a team, for a lecturer or not; blocks.  Raises NotFound."""
    with course.reading():
        team = course.teams.get(team_id)
        if team is None:
            raise NotFound("There is no such team.")
        versions = course.versions.of_team(team_id)
        own = {version.id for version in versions}
        competitions = course.competitions.all()
        return TeamRecords(
            team=team,
            versions=versions,
            current=course.versions.current().get(team_id),
            practice=practice_of(competitions),
            tournaments=[
                one
                for one in competitions
                if one.kind is CompetitionKind.TOURNAMENT
                and one.is_visible(teaches=teaches)
                and any(each.version_id in own for each in course.competitions.competitors(one.id))
            ],
        )


def line_of(shown: ViewedCompetition, attributes: Mapping[str, object]) -> Standing | None:
    """Return the standings line of the bot whose entrant has these values; None if the bot is not listed."""
    for name, line in shown.lines.items():
        entrant = shown.entrants.get(name)
        if entrant is not None and all(getattr(entrant, key) == value for key, value in attributes.items()):
            return line
    return None


async def parts_of(
    request: Request, competition: Competition, shown: ViewedCompetition, line: Standing
) -> list[Markup]:
    """Return the rendered parts of the report's page of a bot."""
    site = site_of(request)
    games = shown.view.games_of(line.name)
    keys = [game.key for game in games if shown.view.counts(game)][-TIMED:]
    times = await site.move_times.get(site.service.tournaments, competition.id, keys)
    made = await shown.bot_parts(line, times)
    listed = (*PARTS, "games") if len(games) <= MOST_LISTED else PARTS
    return [made[name] for name in listed]


async def team(request: Request) -> Response:
    """Show a team's bot: the ladder results of its current version, and all of its versions."""
    site, user = site_of(request), current_user(request)
    teaches = user is not None and user.role.teaches
    records = await site.read_cache.get(team_records, site.course, request.path_params["team"], teaches)
    if this_viewer(request).visibility is not Visibility.NAMED and not _is_own(user, records.team):
        raise NotFound("Bots appear under pseudonyms: see the standings.")
    may_open = user is not None and (user.role.teaches or _is_own(user, records.team))
    versions = [one for one in records.versions if may_open or one.state in DECIDED]
    parts: list[Markup] = []
    name, progress = "", None
    if records.practice is not None and versions:
        shown = await view_of(request, records.practice)
        progress = await _progress(request, records, shown, versions)
        line = None if records.current is None else line_of(shown, {"version_id": records.current.id})
        if line is not None:
            name = line.name
            parts = await parts_of(request, records.practice, shown, line)
    return render(
        request,
        "team.html",
        active="standings",
        records=records,
        versions=versions,
        parts=parts,
        progress=progress,
        name=name,
        titles=await titles_for(request, records.tournaments),
        may_open=may_open,
        games_href=_games_href(records.practice, name),
        challenge=None
        if records.current is None
        else await form_for(request, BotChoice(version_id=records.current.id)),
        most_pairs=MOST_PAIRS,
    )


async def _progress(
    request: Request, records: TeamRecords, shown: ViewedCompetition, versions: Sequence[Version]
) -> Progress | None:
    """Return the progress of a team over its versions; ``shown`` is the practice ladder."""
    assert records.practice is not None
    history = await history_of(request, records.practice)
    lines = lines_of_versions(history, versions)
    if not lines:
        return None
    newest, *others = names = [line.name for _, line in lines]
    estimates = site_of(request).estimates
    ratings = await estimates.get(history, names)
    differences = await estimates.get(history, others, newest) if others else {}
    current_id = None if records.current is None else records.current.id
    return await in_thread(progress_of, history, shown, lines, current_id, ratings, differences)


def _is_own(user: Account | None, team: Team) -> bool:
    return user is not None and user.team_id == team.id


def _games_href(competition: Competition | None, name: str) -> str:
    if competition is None or not name:
        return ""
    return f"/competitions/{competition.slug}/games?bot={quote(name, safe='')}"


async def bot(request: Request) -> Response:
    """Show a bot of one competition."""
    competition = await competition_of(request)
    shown = await view_of(request, competition)
    line = shown.line_at(request.path_params["bot"])
    entrant = shown.entrants.get(line.name)
    challenge = None
    if entrant is not None and (not shown.names.on or await _is_ladder(request, competition)):
        challenge = await form_for(request, _choice_of(entrant))
    return render(
        request,
        "bot.html",
        active="competitions",
        competition=competition,
        title=shown.names.sentence(competition.title),
        line=line,
        parts=await parts_of(request, competition, shown, line),
        team_href=_team_href(request, entrant),
        reference=None if entrant is None else entrant.reference,
        games_href=_games_href(competition, line.name),
        challenge=challenge,
        most_pairs=MOST_PAIRS,
    )


async def _is_ladder(request: Request, competition: Competition) -> bool:
    """Return whether a competition is the practice ladder, whose pseudonyms the form of a challenge has.

    With the form on another competition's page, readers could match the pseudonyms of both.
    """
    site = site_of(request)
    practice = practice_of(await site.read_cache.get(site.course.competitions.all))
    return practice is not None and practice.id == competition.id


def _choice_of(entrant: Entrant) -> BotChoice:
    return BotChoice(version_id=entrant.version_id, reference=entrant.reference)


def _team_href(request: Request, entrant: Entrant | None) -> str | None:
    """Return the address of a bot's team page; None if the viewer may not learn the team."""
    if entrant is None or entrant.team_id is None:
        return None
    viewer = this_viewer(request)
    may_know = viewer.visibility is Visibility.NAMED or viewer.team_id == entrant.team_id
    return f"/bots/{entrant.team_id}" if may_know else None


async def reference(request: Request) -> Response:
    """Show a reference player: its description, and its results on the ladder."""
    name: str = request.path_params["name"]
    kind, _, option = name.partition(":")
    try:
        check_reference(name)
    except ValueError as error:
        raise NotFound("There is no such reference player.") from error
    found = SAMPLE_BOTS[kind]
    site = site_of(request)
    practice = practice_of(await site.read_cache.get(site.course.competitions.all))
    parts: list[Markup] = []
    if practice is not None:
        shown = await view_of(request, practice)
        line = line_of(shown, {"reference": name})
        if line is not None:
            parts = await parts_of(request, practice, shown, line)
    return render(
        request,
        "reference.html",
        active="standings",
        name=name,
        about=found.about,
        option=option,
        parts=parts,
        games_href=_games_href(practice, name) if parts else "",
        challenge=await form_for(request, BotChoice(reference=name)),
        most_pairs=MOST_PAIRS,
    )


ROUTES = (
    Route("GET", "/bots/{team:int}", team, Access.PUBLIC, "team"),
    Route("GET", "/references/{name}", reference, Access.PUBLIC, "reference"),
    Route("GET", "/competitions/{slug}/bots/{bot}", bot, Access.PUBLIC, "bot"),
)
