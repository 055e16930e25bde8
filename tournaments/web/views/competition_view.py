"""Views of a competition for each kind of viewer, cached for as long as nothing has changed.

A page of standings costs more than all else that the site does, and hundreds of users open the same one.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

import trio
from markupsafe import Markup

from tournaments.analysis.game_tags import Tagger
from tournaments.analysis.standing import Estimate, Standing
from tournaments.course.course import Course
from tournaments.course.model import Competition, CompetitionKind, Competitor
from tournaments.reporting.pseudonyms import KEY_FILE, PseudonymError, pseudonyms_for
from tournaments.reporting.site import words
from tournaments.reporting.site.addresses import Addresses
from tournaments.reporting.site.pages import Pages
from tournaments.reporting.site.times import GameTimes
from tournaments.reporting.site.view import View
from tournaments.reporting.tournament_results import TournamentResults
from tournaments.results.game_summary import GameSummary
from tournaments.server.cache import SingleFlightCache
from tournaments.server.practice.practice_results import LadderHistory, PracticeResults
from tournaments.web.http.errors import NotFound, disk_failure
from tournaments.web.http.routing import in_thread
from tournaments.web.views.names import (
    Entrant,
    Names,
    Viewer,
    Visibility,
    known_names,
    names_to_hide,
)

T = TypeVar("T")

MOST_PARTS = 2
"""Most sets of rendered parts of a view: a page has one, and another one once more times could be read."""
MOST_BOTS = 1_000
"""Most bots of a view with rendered parts: as many as a tournament may have."""
MOST_ESTIMATES = 200
"""Most sets of estimates kept: the page of a team needs two, and fewer than 100 of these pages are open."""
MOST_KEPT = 100
"""Most views kept: competitions times kinds of viewers; one of 3,000 games takes some megabytes."""


@dataclass(frozen=True)
class SiteLinks:
    """Addresses of a competition's pages on this site: ``report.pages.Links``."""

    slug: str
    files: Addresses
    names: Names
    games: frozenset[str]

    def bot(self, name: str) -> str:
        """Return the address of a bot's page."""
        return f"/competitions/{self.slug}/bots/{quote(self.files.bots[name], safe='')}"

    def game(self, key: str) -> str:
        """Return the address of a game's page."""
        return f"/competitions/{self.slug}/games/{quote(self.names.key(key), safe='')}"

    def meeting(self, name: str, other: str) -> str:
        """Return the address of the games between two bots."""
        return f"{self.bot(name)}#{quote(self.anchor(other))}"

    def anchor(self, other: str) -> str:
        """Return the anchor of the part of a bot's page that is about an opponent."""
        return self.files.anchor(other)


@dataclass
class ViewedCompetition:
    """A competition for one kind of viewer.  All of its names are those that this viewer may see."""

    slug: str
    """Slug of the competition."""
    names: Names
    view: View
    entrants: Mapping[str, Entrant]
    """Entrants by displayed name."""
    source: TournamentResults
    """The summary that this view was made from."""
    _rendering: trio.Lock = field(default_factory=trio.Lock)
    """Held while a part is rendered, which computes attributes of the view."""
    _parts: SingleFlightCache[tuple[tuple[str, ...], int], Mapping[str, Markup]] = field(
        default_factory=lambda: SingleFlightCache(MOST_PARTS)
    )
    """Parts by their names and the number of timed games."""
    _bots: SingleFlightCache[str, tuple[int, Mapping[str, Markup]]] = field(
        default_factory=lambda: SingleFlightCache(MOST_BOTS)
    )
    """Number of timed games behind the parts of a bot's page, and the parts."""

    @cached_property
    def links(self) -> SiteLinks:
        """Addresses of its pages."""
        files = Addresses.of(sorted(self.view.summary.bots), {})
        games = frozenset(game.key for game in self.view.kept)
        return SiteLinks(self.slug, files, self.names, games)

    @cached_property
    def pages(self) -> Pages:
        """Parts of the report's pages."""
        return Pages(self.view, self.links)

    async def parts(self, names: tuple[str, ...], times: Mapping[str, GameTimes]) -> Mapping[str, Markup]:
        """Return several of these parts; ``times`` (by key) are for the part about times."""

        def make() -> Mapping[str, Markup]:
            timed = self._timed(times)
            return {name: (timed if name == "times" else self.pages).part(name) for name in names}

        return await self._parts.get((names, len(times)), lambda: self._render(make))

    async def bot_parts(self, line: Standing, times: Mapping[str, GameTimes]) -> Mapping[str, Markup]:
        """Return the parts of a bot's page, which are rendered once for each number of ``times``."""
        _, parts = await self._bots.get(
            line.name,
            lambda: self._render(lambda: (len(times), self._timed(times).bot_parts(line))),
            lambda made: made[0] == len(times),
        )
        return parts

    async def _render(self, work: Callable[[], T]) -> T:
        async with self._rendering:
            return await in_thread(work)

    def _timed(self, times: Mapping[str, GameTimes]) -> Pages:
        return Pages(View(self.view.summary, self.view.anonymizer, times), self.links)

    @cached_property
    def endings(self) -> list[str]:
        """Endings of games that occur, sorted."""
        return sorted({words.ending(game) for game in self.view.kept})

    @cached_property
    def tagger(self) -> Tagger:
        """Tags of its games; a practice ladder's time control may have changed from game to game."""
        is_one = not isinstance(self.source, PracticeResults) and self.source.scaled is None
        return Tagger.of(self.view.table, self.view.kept, self.source.control if is_one else "")

    @cached_property
    def lines(self) -> Mapping[str, Standing]:
        """Standings line of each bot."""
        return {line.name: line for line in self.view.table}

    def line_at(self, file: str) -> Standing:
        """Return the line of the bot whose page has this name.  Raises NotFound."""
        for name, own in self.links.files.bots.items():
            if own == file and name in self.lines:
                return self.lines[name]
        raise NotFound("There is no such bot in this competition.")

    @cached_property
    def indices(self) -> Mapping[str, int]:
        """Displayed key of a game -> its index among those that were played."""
        return {self.names.key(game.key): index for index, game in enumerate(self.view.kept)}

    @cached_property
    def _of_bot(self) -> Mapping[str, list[int]]:
        """Bot -> indices of its games among those that were played, ascending."""
        found: dict[str, list[int]] = {}
        for index, game in enumerate(self.view.kept):
            for name in (game.first, game.second):
                found.setdefault(name, []).append(index)
        return found

    def latest_of_team(self, team_id: int, most: int) -> list[GameSummary]:
        """Return the newest games of a team's bots, newest first."""
        own = [name for name, entrant in self.entrants.items() if entrant.team_id == team_id]
        indices = {index for name in own for index in self._of_bot.get(name, [])[-most:]}
        return [self.view.kept[index] for index in sorted(indices, reverse=True)[:most]]

    def key_at(self, shown_key: str) -> str:
        """Return the key of a game in the store for a displayed key.  Raises NotFound.

        A practice ladder shows the games of the bots that are on it, but also stores those of others; the
        keys of the latter reveal nothing, and are displayed unchanged.
        """
        if shown_key in self.indices:
            return self.view.kept[self.indices[shown_key]].key
        if self.names.key(shown_key) != shown_key:
            raise NotFound("There is no such game in this competition.")
        return shown_key

    def bot_href(self, name: str) -> str | None:
        """Return the address of a bot's page by displayed name; None if it has no page, or none any more."""
        if name in self.lines:
            return self.links.bot(name)
        team = self.team_of(name)
        return None if team is None or self.names.on else f"/bots/{team}"

    def team_of(self, name: str) -> int | None:
        """Return the team of a bot by displayed name; None without a team, or if the name is unknown."""
        entrant = self.entrants.get(name)
        return None if entrant is None else entrant.team_id


class ViewedCompetitions:
    """Cache of views, by competition and kind of viewer."""

    def __init__(self) -> None:
        self._cache: SingleFlightCache[tuple[int, Viewer], ViewedCompetition] = SingleFlightCache(MOST_KEPT)

    async def get(
        self, course: Course, data: Path, competition: Competition, viewer: Viewer, summary: TournamentResults
    ) -> ViewedCompetition:
        """Return a competition as a viewer sees it; the same object as long as the summary is the same."""
        key = (competition.id, viewer)
        return await self._cache.get(
            key,
            lambda: in_thread(make_view, course, data, competition, viewer, summary, self._cache.peek(key)),
            lambda view: view.source is summary,
        )


class VersionEstimates:
    """Cache of ratings with their intervals, of a few bots each, from the history of a practice ladder."""

    def __init__(self) -> None:
        self._cache: SingleFlightCache[
            tuple[str, frozenset[str], str | None], tuple[TournamentResults, Mapping[str, Estimate]]
        ] = SingleFlightCache(MOST_ESTIMATES)

    async def get(
        self, history: ViewedCompetition, names: Iterable[str], relative_to: str | None = None
    ) -> Mapping[str, Estimate]:
        """Return displayed name -> estimate, see ``LadderHistory.estimates_of``, with displayed names."""
        source = history.source
        if not isinstance(source, LadderHistory):
            raise TypeError("only the history of a ladder has estimates of versions")
        real = {history.names.shown(bot): bot for bot in source.bots}
        bots = frozenset(real[name] for name in names)
        anchor = None if relative_to is None else real[relative_to]

        async def compute() -> tuple[TournamentResults, Mapping[str, Estimate]]:
            return source, await in_thread(source.estimates_of, bots, anchor)

        key = (history.slug, bots, anchor)
        _, found = await self._cache.get(key, compute, lambda kept: kept[0] is source)
        return {history.names.shown(bot): estimate for bot, estimate in found.items()}


def make_view(
    course: Course,
    data: Path,
    competition: Competition,
    viewer: Viewer,
    summary: TournamentResults,
    before: ViewedCompetition | None = None,
) -> ViewedCompetition:
    """Make the view of a competition for a viewer; blocks.

    Games that the viewer's previous view, ``before``, has under the same names are not renamed again.
    """
    entrants = entrants_of(course, course.competitions.competitors(competition.id))
    teams = {team.id: team.name for team in course.teams.all()}
    names = Names()
    if viewer.visibility is not Visibility.NAMED:
        everybody = [*names_to_hide(entrants, teams)]
        everybody += [name for name in summary.bots if name not in everybody]
        pseudonyms = site_pseudonyms(data, _pseudonyms_slug(course, competition), everybody)
        names = Names.hidden(pseudonyms, known_names(viewer, entrants, teams), summary.bots)
    known: dict[GameSummary, GameSummary] = {}
    if before is not None and names.on and before.names.anonymizer.names == names.anonymizer.names:
        known = dict(zip(before.source.kept, before.view.summary.kept, strict=True))
    view = View(names.anonymizer.summary(summary, known), names.anonymizer)
    by_name = {names.shown(entrant.name): entrant for entrant in entrants}
    return ViewedCompetition(competition.slug, names, view, by_name, summary)


def site_pseudonyms(data: Path, slug: str, names: Sequence[str]) -> dict[str, str]:
    """Return the pseudonyms on the pages of a competition, see ``pseudonyms_for``; blocks.

    Raises Unavailable if their file cannot be used.
    """
    folder = data / "competitions" / slug
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return pseudonyms_for(folder / KEY_FILE, names)
    except (OSError, PseudonymError) as error:
        raise disk_failure(error) from error


def _pseudonyms_slug(course: Course, competition: Competition) -> str:
    """Return the slug of the competition with the pseudonyms: for challenges, the practice ladder.

    Students choose their opponents by the pseudonyms there.
    """
    if competition.kind is CompetitionKind.CHALLENGE:
        for one in course.competitions.all():
            if one.kind is CompetitionKind.PRACTICE and one.spec.get("game") == competition.spec.get("game"):
                return one.slug
    return competition.slug


def entrants_of(course: Course, competitors: list[Competitor]) -> list[Entrant]:
    """Return the entrants for these competitors, with their teams."""
    found = []
    versions = course.versions.by_ids(one.version_id for one in competitors if one.version_id is not None)
    for one in competitors:
        version = versions.get(one.version_id or 0)
        team, number = (None, None) if version is None else (version.team_id, version.number)
        found.append(Entrant(one.name, team, number, one.reference, one.version_id))
    return found
