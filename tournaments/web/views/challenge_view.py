"""Challenges as the current user sees them: the bots to choose from, and rows of lists."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from urllib.parse import quote

from starlette.requests import Request

from tournaments.course.challenges import may_be_opponent, may_challenge, pairs_left
from tournaments.course.model import BotChoice, Challenge, ChallengeState, Competition
from tournaments.results.game_summary import GameSummary
from tournaments.server.challenges.challenge_games import game_of
from tournaments.web.http.errors import BadInput
from tournaments.web.http.request_context import current_user, settings_of, signed_in_user, site_of
from tournaments.web.http.routing import in_thread
from tournaments.web.pages.home import practice_of
from tournaments.web.views.names import Names, Visibility
from tournaments.web.views.visibility import names_for, this_viewer, view_of

OUTCOMES = {0: "won", 1: "drawn", 2: "lost"}


class OpponentKind(StrEnum):
    """Kind of a bot that can be challenged."""

    REFERENCE = "reference"
    TEAM = "team"
    """The current version of another team."""
    REMOTE = "remote"
    """A connected remote bot of the own team."""


@dataclass(frozen=True)
class Opponent:
    """A bot that the user's team may challenge."""

    name: str
    """Name that the user may see; requests contain it."""
    kind: OpponentKind
    choice: BotChoice


@dataclass(frozen=True)
class ChallengeForm:
    """Values of the form with which a team challenges a bot."""

    bots: tuple[str, ...]
    """Own bots to choose from: the current version first, as an empty text; remote bots by name."""
    opponents: tuple[Opponent, ...]
    refusal: str | None
    """Reason why the team can challenge nobody now."""
    left: int | None
    """Number of pairs that are left on this day; None without a limit."""
    only: bool
    """True for the form of one opponent."""


async def opponents_for(request: Request) -> list[Opponent]:
    """Return the bots that the user's team may challenge: reference players first, then by name."""
    site, settings, user = site_of(request), settings_of(request), signed_in_user(request)
    course, cache = site.course, site.read_cache
    team_id = user.team_id or 0
    found = [
        Opponent(reference, OpponentKind.REFERENCE, BotChoice(reference=reference))
        for reference in settings.references
    ]
    if settings.challenges_with == "teams":
        current = await cache.get(course.versions.current)
        consents = await cache.get(course.challenges.consents)
        names = await _names_of_current(request)
        teams = [
            Opponent(names[version.id], OpponentKind.TEAM, choice)
            for other_id, version in current.items()
            if version.id in names
            and may_be_opponent(
                settings,
                team_id,
                choice := BotChoice(version_id=version.id),
                other_id,
                consents.get(other_id, True),
            )
            is None
        ]
        found += sorted(teams, key=lambda one: one.name.casefold())
    found += [
        Opponent(f"{name} (remote)", OpponentKind.REMOTE, BotChoice(remote=name))
        for name in site.service.challenges.remotes.names(team_id)
    ]
    return found


async def _names_of_current(request: Request) -> dict[int, str]:
    """Return the names of all teams' current versions, by their ids: of the team, or a pseudonym.

    Pseudonyms are those on the practice ladder; a version that is too new for one is left out.
    """
    site = site_of(request)
    if this_viewer(request).visibility is Visibility.NAMED:
        current = await site.read_cache.get(site.course.versions.current)
        teams = {team.id: team.name for team in await site.read_cache.get(site.course.teams.all)}
        return {version.id: teams[team_id] for team_id, version in current.items() if team_id in teams}
    practice = practice_of(await site.read_cache.get(site.course.competitions.all))
    if practice is None:
        return {}
    shown = await view_of(request, practice)
    return {one.version_id: name for name, one in shown.entrants.items() if one.version_id is not None}


async def form_for(request: Request, only: BotChoice | None = None) -> ChallengeForm | None:
    """Return the form of the user's team; with ``only``, for one opponent.

    Returns None if the course has no challenges, the user has no team, or may not challenge ``only``.
    """
    site, settings, user = site_of(request), settings_of(request), current_user(request)
    if user is None or user.team_id is None or settings.challenges_with == "nobody":
        return None
    opponents = await opponents_for(request)
    if only is not None:
        opponents = [one for one in opponents if one.choice == only]
        if not opponents:
            return None
    now = site.now()
    used = await in_thread(site.course.challenges.usage, user.team_id, settings, now)
    current = (await site.read_cache.get(site.course.versions.current)).get(user.team_id)
    versions = [""] if current is not None else []
    bots = (*versions, *site.service.challenges.remotes.names(user.team_id))
    refusal = may_challenge(settings, now, used)
    if not bots:
        refusal = "Your team has no version that plays: submit one first."
    elif not opponents:
        refusal = "There is no bot that you could challenge yet."
    return ChallengeForm(bots, tuple(opponents), refusal, pairs_left(settings, used), only is not None)


async def chosen_bots(request: Request, opponent: str, bot: str = "") -> tuple[BotChoice, BotChoice]:
    """Return the team's own bot and the opponent of a request.  Raises BadInput.

    ``bot`` is the name of a remote bot; empty for the team's current version.
    """
    site, user = site_of(request), signed_in_user(request)
    own = BotChoice(remote=bot)
    if not bot:
        current = (await in_thread(site.course.versions.current)).get(user.team_id or 0)
        if current is None:
            raise BadInput("Your team has no version that plays: submit one first.")
        own = BotChoice(version_id=current.id)
    found = next((one for one in await opponents_for(request) if one.name == opponent), None)
    if found is None:
        raise BadInput(f"There is no bot {opponent!r} that you can challenge: choose one of the list.")
    return own, found.choice


@dataclass(frozen=True)
class GameLink:
    """A game of a challenge."""

    summary: GameSummary
    href: str
    outcome: str
    """Result for the viewer's team."""
    why_href: str | None
    """Address of the explanation of a loss."""


@dataclass(frozen=True)
class ChallengeRow:
    """A challenge in a list, from the side of the viewer's team."""

    id: int
    competition: str
    """Slug of the competition with the games."""
    asked_at: datetime
    ended_at: datetime | None
    bot: str
    opponent: str
    pairs: int
    state: ChallengeState
    message: str
    wins: int
    draws: int
    losses: int
    games: tuple[GameLink, ...]

    @property
    def played(self) -> int:
        """Number of games that are over."""
        return self.wins + self.draws + self.losses


async def rows_for(request: Request, challenges: Sequence[Challenge]) -> list[ChallengeRow]:
    """Return the rows of challenges of the user's team, or to it."""
    site, user = site_of(request), signed_in_user(request)
    known = {one.id: one for one in await in_thread(site.course.competitions.all)}
    games = await site.service.challenges.games(challenges)
    names: dict[int, Names] = {}
    found = []
    for challenge in challenges:
        competition = known[challenge.competition_id]
        if competition.id not in names:
            names[competition.id] = await names_for(request, competition)
        is_asker = challenge.team_id == user.team_id
        found.append(_row(challenge, competition, games[challenge.id], names[competition.id], is_asker))
    return found


def _row(
    challenge: Challenge,
    competition: Competition,
    games: Sequence[GameSummary],
    names: Names,
    is_asker: bool,
) -> ChallengeRow:
    wins, losses = (challenge.wins, challenge.losses) if is_asker else (challenge.losses, challenge.wins)
    own, other = names.shown(challenge.bot_name), names.shown(challenge.opponent_name)
    return ChallengeRow(
        id=challenge.id,
        competition=competition.slug,
        asked_at=challenge.asked_at,
        ended_at=challenge.ended_at,
        bot=own if is_asker else other,
        opponent=other if is_asker else own,
        pairs=challenge.pairs,
        state=challenge.state,
        message=names.sentence(challenge.message),
        wins=wins,
        draws=challenge.draws,
        losses=losses,
        games=tuple(_link(game, competition.slug, names, is_asker) for game in games),
    )


def _link(game: GameSummary, slug: str, names: Names, is_asker: bool) -> GameLink:
    found = game_of(game.key)
    own = 0 if found is None else found.own if is_asker else 1 - found.own
    result = 1 if game.winner is None else 0 if game.winner == own else 2
    href = f"/competitions/{slug}/games/{quote(game.key, safe='')}"
    return GameLink(
        summary=game._replace(
            first=names.shown(game.first),
            second=names.shown(game.second),
            detail=names.sentence(game.detail),
        ),
        href=href,
        outcome=OUTCOMES[result],
        why_href=f"{href}#why" if result == 2 else None,
    )


def own_players_of(challenge: Challenge, key: str, team_id: int | None) -> tuple[int, ...]:
    """Return the players of a challenge's game that belong to a team."""
    found = game_of(key)
    if team_id is None or found is None:
        return ()
    sides: Mapping[int, int | None] = {
        found.own: challenge.team_id,
        1 - found.own: challenge.opponent_team_id,
    }
    return tuple(side for side in (0, 1) if sides[side] == team_id)
