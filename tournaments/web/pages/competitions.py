"""Pages of the practice ladder, of a course's competitions and of their games."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from tournaments.analysis.game_tags import Tag, Tagger
from tournaments.course.model import Account, Competition, CompetitionKind
from tournaments.reporting.site import words
from tournaments.results.game_summary import GameSummary
from tournaments.web.http.rendering import render
from tournaments.web.http.request_body import number_in
from tournaments.web.http.request_context import current_team_id, current_user, site_of
from tournaments.web.http.routing import Access, Route, in_thread
from tournaments.web.pages.home import practice_of
from tournaments.web.views.competition_view import ViewedCompetition
from tournaments.web.views.table_rows import GameRow, game_rows, rungs
from tournaments.web.views.visibility import competition_of, titles_for, view_of, visible_to

PAGE = 100
"""Games on one page of their list."""
PARTS = (
    *("about", "standings", "groups", "bracket", "rulings", "cross", "rating", "race", "sides", "times"),
    *("faults", "aside"),
)
"""Parts of the report's first page that are shown, in the same order."""
ANY_FAULT = "any fault"
STOPPED = "The competition has stopped; the lecturer can see the reason."
OUTCOMES = ("won", "drawn", "lost")
"""Outcomes of a game for the selected bot."""


@dataclass(frozen=True)
class Filter:
    """Filter of a list of games; an empty field matches every game."""

    bot: str = ""
    """Displayed name of a bot."""
    outcome: str = ""
    """One of OUTCOMES; ignored without a bot."""
    end: str = ""
    """Ending of a game, or ANY_FAULT."""
    tag: Tag | None = None

    @classmethod
    def read(cls, query: Mapping[str, str]) -> "Filter":
        """Return the filter in a query string; an unknown outcome or tag is ignored."""
        outcome = query.get("outcome", "")
        tag = query.get("tag", "")
        return cls(
            query.get("bot", ""),
            outcome if outcome in OUTCOMES else "",
            query.get("end", ""),
            Tag(tag) if tag in list(Tag) else None,
        )

    def passes(self, game: GameSummary, tagger: Tagger) -> bool:
        """Return True if a game matches; ``tagger`` is that of its competition."""
        if self.tag is not None and self.tag not in tagger.tags(game):
            return False
        if self.bot:
            if self.bot not in (game.first, game.second):
                return False
            word = {"win": "won", "draw": "drawn", "loss": "lost"}[words.outcome(game, self.bot)]
            if self.outcome and word != self.outcome:
                return False
        if self.end == ANY_FAULT:
            return game.fault is not None
        return not self.end or words.ending(game) == self.end

    def query(self, page: int) -> str:
        """Return the query string of one page of the filtered list."""
        values = {
            "bot": self.bot,
            "outcome": self.outcome,
            "end": self.end,
            "tag": self.tag,
            "page": str(page),
        }
        return "?" + urlencode({name: value for name, value in values.items() if value})


@dataclass(frozen=True)
class GameList:
    """One page of a list of games."""

    rows: Sequence[GameRow]
    found: int
    all: int
    page: int
    """Number of this page, from 1."""
    pages: int
    names: Sequence[str]
    endings: Sequence[str]


def game_list(shown: ViewedCompetition, wanted: Filter, page: int, team_id: int | None) -> GameList:
    """Return a page of games, the newest first; a page number out of range selects the nearest page."""
    kept = shown.view.kept
    games = [game for game in reversed(kept) if wanted.passes(game, shown.tagger)]
    pages = max(1, -(-len(games) // PAGE))
    page = min(max(page, 1), pages)
    return GameList(
        rows=game_rows(shown, games[(page - 1) * PAGE : page * PAGE], team_id),
        found=len(games),
        all=len(kept),
        page=page,
        pages=pages,
        names=sorted(shown.lines),
        endings=shown.endings,
    )


async def competitions(request: Request) -> Response:
    """List all tournaments and practice ladders."""
    site = site_of(request)
    found = visible_to(request, await site.read_cache.get(site.course.competitions.all))
    return render(
        request,
        "competitions.html",
        active="competitions",
        practice=[one for one in found if one.kind is CompetitionKind.PRACTICE],
        tournaments=[one for one in found if one.kind is CompetitionKind.TOURNAMENT],
        titles=await titles_for(request, found),
    )


async def competition(request: Request) -> Response:
    """Show one tournament; a practice ladder redirects to its own page."""
    found = await competition_of(request)
    if found.kind is CompetitionKind.PRACTICE:
        return RedirectResponse("/standings", 303)
    site = site_of(request)
    shown = await view_of(request, found)
    user = current_user(request)
    times = await site.move_times.get(
        site.service.tournaments, found.id, [game.key for game in shown.view.games]
    )
    parts = await shown.parts(PARTS, times)
    return render(
        request,
        "competition.html",
        active="competitions",
        competition=found,
        title=shown.names.sentence(found.title),
        message=_message(found, user),
        summary=shown.view.summary,
        parts_of=parts.values(),
        hidden=shown.names.on,
    )


def _message(found: Competition, user: Account | None) -> str:
    """Return the message of a stopped competition, in full for lecturers only.

    The full message may contain the output of a team's build, or paths on the server.
    """
    if not found.message or (user is not None and user.role.teaches):
        return found.message
    return STOPPED


async def games(request: Request) -> Response:
    """List the games of a competition."""
    found = await competition_of(request)
    shown = await view_of(request, found)
    wanted = Filter.read(request.query_params)
    listed = await in_thread(  # a term's ladder has tens of thousands of games to tag
        game_list,
        shown,
        wanted,
        number_in(request.query_params.get("page"), 1),
        current_team_id(request),
    )
    return render(
        request,
        "games.html",
        active="competitions",
        competition=found,
        title=shown.names.sentence(found.title),
        wanted=wanted,
        listed=listed,
        any_fault=ANY_FAULT,
        tags=list(Tag),
        outcomes=OUTCOMES,
    )


LADDER_PARTS = ("cross", "rating", "faults")
"""Parts of the report's first page that are shown, in the order of this page."""
MOST_IN_CROSS_TABLE = 60
"""Most bots of a ladder whose page has the cross table.  A cell takes 100 to 150 bytes, so that the page of
300 bots would have 10 MB, and readers request it again whenever the standings change."""


async def standings(request: Request) -> Response:
    """Show the practice ladder, with its cross table, ratings and faults."""
    site = site_of(request)
    practice = practice_of(await site.read_cache.get(site.course.competitions.all))
    if practice is None:
        return render(
            request, "standings.html", active="standings", practice=None, ladder=(), parts_of={}, hidden=False
        )
    shown = await view_of(request, practice)
    has_cross_table = len(shown.view.table) <= MOST_IN_CROSS_TABLE
    parts = tuple(part for part in LADDER_PARTS if has_cross_table or part != "cross")
    return render(
        request,
        "standings.html",
        active="standings",
        practice=practice,
        most_in_cross_table=None if has_cross_table else MOST_IN_CROSS_TABLE,
        ladder=rungs(shown, current_team_id(request)),
        parts_of=await shown.parts(parts, {}),
        hidden=shown.names.on,
    )


ROUTES = (
    Route("GET", "/standings", standings, Access.PUBLIC, "standings"),
    Route("GET", "/competitions", competitions, Access.PUBLIC, "competitions"),
    Route("GET", "/competitions/{slug}", competition, Access.PUBLIC, "competition"),
    Route("GET", "/competitions/{slug}/games", games, Access.PUBLIC, "games"),
)
