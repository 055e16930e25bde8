"""Rows of tables: games, and the rungs of the practice ladder; pagination of long lists.  Pure."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from starlette.requests import Request

from tournaments.analysis.game_tags import Tag
from tournaments.reporting.site import words
from tournaments.reporting.site.svg import numeral
from tournaments.reporting.tables import percent
from tournaments.results.game_summary import GameSummary
from tournaments.web.http.routing import LARGEST_NUMBER
from tournaments.web.views.competition_view import ViewedCompetition
from tournaments.web.views.names import Entrant


@dataclass(frozen=True)
class GameRow:
    """A game in a list."""

    key: str
    href: str
    first: str
    first_href: str
    second: str
    second_href: str
    result: str
    score: str
    moves: int
    ending: str
    is_fault: bool
    counts: bool
    blame: str
    """Description of the loser's fault; empty without one."""
    tags: tuple[str, ...]
    """Tags of the game, see tournaments/analysis/game_tags.py, without that of its fault."""
    outcome: str
    """``win``, ``draw`` or ``loss`` of the viewer's bot; empty if it did not play."""


@dataclass(frozen=True)
class Rung:
    """A bot on the practice ladder."""

    rank: int
    """The rank, counted from 1 at the top."""
    name: str
    href: str
    elo: str
    games: int
    score: str
    """Score in percent."""
    wins: int
    draws: int
    losses: int
    forfeits: int
    is_reference: bool
    is_own: bool


def game_rows(
    shown: ViewedCompetition, games: Iterable[GameSummary], team_id: int | None = None
) -> list[GameRow]:
    """Return the rows of games; ``team_id`` is the viewer's team."""
    return [_game_row(shown, game, team_id) for game in games]


def _game_row(shown: ViewedCompetition, game: GameSummary, team_id: int | None) -> GameRow:
    links = shown.links
    own = [name for name in (game.first, game.second) if is_own(shown.entrants.get(name), team_id)]
    return GameRow(
        key=shown.names.key(game.key),
        href=links.game(game.key),
        first=game.first,
        first_href=links.bot(game.first),
        second=game.second,
        second_href=links.bot(game.second),
        result=words.result(game),
        score=words.score(game),
        moves=sum(game.moves),
        ending=words.ending(game),
        is_fault=game.fault is not None,
        counts=shown.view.counts(game),
        blame=words.blame(game) if game.fault is not None else "",
        tags=tuple(tag.value for tag in shown.tagger.tags(game) if tag is not Tag.BY_FAULT),
        outcome=words.outcome(game, own[0]) if len(own) == 1 else "",
    )


def is_own(entrant: Entrant | None, team_id: int | None) -> bool:
    """Return True if a bot belongs to the viewer's team."""
    return entrant is not None and team_id is not None and entrant.team_id == team_id


def rungs(shown: ViewedCompetition, team_id: int | None) -> list[Rung]:
    """Return the rungs of a practice ladder; ``team_id`` is the viewer's team."""
    found = []
    for line in shown.view.table:
        entrant = shown.entrants.get(line.name)
        found.append(
            Rung(
                rank=line.rank,
                name=line.name,
                href=shown.links.bot(line.name),
                elo="" if line.rating is None else numeral(round(line.rating.value)),
                games=line.games,
                score=percent(line.score),
                wins=line.wins,
                draws=line.draws,
                losses=line.losses,
                forfeits=line.forfeits,
                is_reference=entrant is not None and entrant.reference is not None,
                is_own=is_own(entrant, team_id),
            )
        )
    return found


T = TypeVar("T")

PAGE = 50
"""Rows of a page."""


@dataclass(frozen=True)
class Page(Generic[T]):
    """One page of a list."""

    rows: Sequence[T]
    older: int | None
    """Number below which the next page begins; None for the last page."""

    @classmethod
    def of(cls, found: Sequence[T], number: Callable[[T], int]) -> "Page[T]":
        """Return the page of the first PAGE rows; a row beyond them means that another page follows."""
        rows = found[:PAGE]
        return cls(rows, number(rows[-1]) if len(found) > PAGE else None)


def page_start(request: Request) -> int | None:
    """Return the number below which the requested page begins; None for the first page, or if invalid."""
    text = request.query_params.get("before", "")
    return min(int(text), LARGEST_NUMBER) if text.isascii() and text.isdecimal() and len(text) < 20 else None
