"""Pages of a report as HTML (pure): the templates contain the text, ``View`` the data."""

import html
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, Protocol

from jinja2 import BytecodeCache, Environment, PackageLoader, StrictUndefined
from jinja2.bccache import Bucket
from markupsafe import Markup, escape

from referee.judge.verdict_text import counted, visible
from referee.version import VERSION
from tournaments.analysis.standing import Estimate, Standing
from tournaments.reporting.site import words
from tournaments.reporting.site.bracket_chart import bracket_chart, bracket_of
from tournaments.reporting.site.charts import (
    RatingRow,
    TimeRow,
    interval,
    race_chart,
    rating_chart,
    time_chart,
    time_histogram,
)
from tournaments.reporting.site.svg import duration, numeral, short
from tournaments.reporting.site.view import View, heat
from tournaments.reporting.tables import (
    SHOWN_ANYWAY,
    Ranking,
    criterion,
    cross,
    number,
    people_columns,
    percent,
)
from tournaments.results.game_summary import GameSummary
from tournaments.results.journal import Action, Entry
from tournaments.schedule.formats.groups import Groups, GroupTable

if TYPE_CHECKING:
    from types import CodeType

LONGEST_NAME = 32
"""Characters of a bot's name where there are many of them; the whole name is on the bot's own page."""
BOT_PARTS = ("figures", "opponents", "faults", "times", "swap", "games")
OPEN_FAULTS = 20
"""Number of faults above which a page of standings shows them folded, bot by bot."""
LONGEST_SENTENCE = 400
"""Characters of a verdict's sentence in lists; verdicts quote up to 80 of a bot's line."""


class Link(NamedTuple):
    """A link to a page, from a page that is one folder deep."""

    text: str
    href: str


@dataclass(frozen=True)
class GamePage:
    """The data of a game's page around the replay.  It is small, since it is sent to worker processes."""

    key: str
    """The key in the store."""
    shown: str
    """The key as it is shown."""
    file: str
    tournament: str
    bots: tuple[Link, Link]
    previous: Link | None
    following: Link | None
    rulings: tuple[str, ...]
    counts: bool
    data: str = ""
    """File with the data of the game; empty for a whole page."""


class _TemplateCache(BytecodeCache):
    """A cache of compiled templates for all views: a site makes many views an hour."""

    def __init__(self) -> None:
        self._kept: dict[str, CodeType] = {}

    def load_bytecode(self, bucket: Bucket) -> None:
        bucket.code = self._kept.get(bucket.key)

    def dump_bytecode(self, bucket: Bucket) -> None:
        if bucket.code is not None:
            self._kept[bucket.key] = bucket.code


TEMPLATE_CACHE = _TemplateCache()


def template_environment(package: str, cache: BytecodeCache | None = None) -> Environment:
    """Return an environment for the templates of a package, which escape by default."""
    made = Environment(
        loader=PackageLoader(package),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
        bytecode_cache=cache,
    )
    made.globals["counted"] = counted
    return made


def environment() -> Environment:
    """Return the environment of the templates."""
    made = template_environment("tournaments.reporting.site", TEMPLATE_CACHE)
    made.filters |= {
        "blame": lambda game: short(visible(words.blame(game)), LONGEST_SENTENCE),
        "bot": _bot,
        "date": words.date,
        "duration": duration,
        "ending": words.ending,
        "html": lambda text: Markup(html.escape(text)),
        "interval": interval,
        "numeral": numeral,
        "percent": percent,
        "points": words.points,
        "result": words.result,
        "ruled": words.ruled,
        "score": words.score,
        "visible": visible,
    }
    return made


def _bot(name: str, longest: int = LONGEST_NAME) -> Markup:
    """Return a bot's name on one line, cut, and isolated from the text direction around it."""
    return Markup(f"<bdi>{escape(short(visible(name), longest))}</bdi>")


class Links(Protocol):
    """The addresses of a view's pages, such as ``addresses.Addresses``."""

    @property
    def games(self) -> Container[str]:
        """Keys of games that have a page."""

    def bot(self, name: str) -> str:
        """Return a link to a bot's page."""

    def game(self, key: str) -> str:
        """Return a link to a game's page."""

    def meeting(self, name: str, other: str) -> str:
        """Return a link to the games between two bots."""

    def anchor(self, other: str) -> str:
        """Return the anchor of the part of a bot's page that is about an opponent."""


class Pages:
    """Renders the pages of one view, or parts of them."""

    def __init__(self, view: View, links: Links | None = None) -> None:
        """``links`` are relative to the page that uses the parts; they default to those of whole pages."""
        self.view = view
        self.links = links or view.addresses
        self._environment = environment()
        self._environment.globals |= {
            "pages": self,
            "view": view,
            "summary": view.summary,
            "address": self.links,
            "key_of": view.anonymizer.key,
            "heat": heat,
            "outcome": words.outcome,
            "criterion": criterion,
            "detail": _detail,
            "Action": Action,
        }

    # Data for the parts of the first page, each computed when a part uses it.

    @cached_property
    def format_words(self) -> str:
        """The format with its parameters."""
        plan = self.view.summary.plan
        return words.format_words(plan.format, plan.rounds)

    @cached_property
    def criteria(self) -> list[str]:
        """Criteria that have a column of their own."""
        return [name for name in self.view.summary.criteria if name not in SHOWN_ANYWAY]

    @cached_property
    def match_points(self) -> bool:
        """True if points are given for matches."""
        return any(line.match_points is not None for line in self.view.table)

    @cached_property
    def byes(self) -> bool:
        """True if a bot has points of a bye."""
        return any(line.bye_points for line in self.view.table)

    @cached_property
    def rating(self) -> Markup:
        """The chart of ratings."""
        summary = self.view.summary
        rated = [
            RatingRow(visible(line.name), line.rating, self.links.bot(line.name))
            for line in sorted(self.view.table, key=_by_rating)
            if line.rating is not None
        ]
        zero = (
            f", {visible(summary.anchored)} = {summary.anchor_rating:g}"
            if summary.anchored
            else ", average = 0"
        )
        return Markup(rating_chart(rated, zero))

    @cached_property
    def bracket(self) -> Markup:
        """The picture of a knockout's bracket; empty in other formats."""
        summary = self.view.summary
        bracket = bracket_of(summary.schedule, summary.history)
        if bracket is None:
            return Markup()
        return Markup(bracket_chart(bracket, summary.history, summary.bots, self.links.bot))

    @cached_property
    def groups(self) -> list[GroupTable]:
        """The tables of the groups; empty in other formats."""
        summary = self.view.summary
        schedule = summary.schedule
        return schedule.standings(summary.history) if isinstance(schedule, Groups) else []

    @cached_property
    def race(self) -> Markup:
        """The chart of points round by round."""
        return Markup(
            race_chart(self.view.race, {line.name: self.links.bot(line.name) for line in self.view.table})
        )

    @cached_property
    def timed(self) -> list[TimeRow]:
        """The times of each bot's moves, in the order of the table."""
        return [
            TimeRow(visible(line.name), self.view.times_of(line.name), self.links.bot(line.name))
            for line in self.view.table
        ]

    @cached_property
    def times(self) -> Markup:
        """The chart of the times of moves."""
        return Markup(time_chart(self.timed, self.view.move_limit_us))

    @property
    def advantage(self) -> Estimate | None:
        """The advantage of moving first, in Elo."""
        return self.view.summary.ratings.advantage if self.view.summary.games else None

    @property
    def missing(self) -> int:
        """Number of games that are still to be played."""
        return max(self.view.summary.total - self.view.summary.done, 0)

    def index(self) -> str:
        """Return the first page."""
        return self._render("index.html", root="")

    def part(self, name: str, **values: object) -> Markup:
        """Return a part of the first page; ``name`` is a file in templates/parts, without its ending."""
        return Markup(self._render(f"parts/{name}.html", root="", **values))

    def bot(self, line: Standing) -> str:
        """Return a bot's page."""
        return self._render("bot.html", root="../", **self._about(line))

    def bot_parts(self, line: Standing) -> dict[str, Markup]:
        """Return the parts of a bot's page, by their files' names in templates/parts without ``bot_``."""
        about = self._about(line)
        return {name: Markup(self._render(f"parts/bot_{name}.html", root="", **about)) for name in BOT_PARTS}

    def _about(self, line: Standing) -> dict[str, object]:
        """Return the data of a bot's page."""
        times = self.view.times_of(line.name)
        return {
            "line": line,
            "times": times,
            "histogram": Markup(time_histogram(times.charged_us, self.view.move_limit_us)),
            "meetings": self.view.meetings(line),
            "faults": [kind for kind in self.view.faults if kind.bot == line.name],
            "swaps": self.view.swaps.bots[line.name] if self.view.swaps else None,
        }

    def games(self) -> str:
        """Return the list of all games."""
        names = sorted(self.view.places)
        return self._render(
            "games.html",
            root="",
            names=names,
            number={name: number for number, name in enumerate(names)},
            endings=sorted({words.ending(game) for game in self.view.kept}),
        )

    def game_pages(self) -> list[GamePage]:
        """Return the data around every game's replay, in reading order."""
        games, links = self.view.kept, self.view.addresses
        near = [Link(self.view.anonymizer.key(game.key), f"../{links.game(game.key)}") for game in games]
        return [
            GamePage(
                key=game.key,
                shown=near[number].text,
                file=links.game_file(game.key),
                tournament=self.view.summary.name,
                bots=(self._bot_link(game.first), self._bot_link(game.second)),
                previous=near[number - 1] if number else None,
                following=near[number + 1] if number + 1 < len(near) else None,
                rulings=tuple(map(ruling_text, self.view.rulings.get(game.key, ()))),
                counts=self.view.counts(game),
            )
            for number, game in enumerate(games)
        ]

    def _bot_link(self, name: str) -> Link:
        return Link(name, f"../{self.view.addresses.bot(name)}")

    def _render(self, template: str, **values: object) -> str:
        return self._environment.get_template(template).render(values)


def standings_page(
    title: str,
    about: str,
    table: Sequence[Standing],
    games: Sequence[GameSummary],
    ranking: Ranking,
    remarks: Sequence[str] = (),
    has_folder: Callable[[str], bool] = lambda _: True,
) -> str:
    """Return a page that needs no other file, with standings, cross table and faults (report.html).

    It links to the conversation of a game with a fault if ``has_folder`` is true for the game's key.
    """
    head, rows = people_columns(table, ranking)
    faults: dict[str, list[GameSummary]] = {}
    for game in games:
        if game.fault is not None and game.loser is not None:
            faults.setdefault(game.loser, []).append(game)
    return (
        environment()
        .get_template("standings_page.html")
        .render(
            title=title,
            about=about,
            head=head,
            rows=rows,
            name_column=head.index("name"),
            remarks=remarks,
            table=table,
            faults=sorted(faults.items()),
            are_few=sum(map(len, faults.values())) <= OPEN_FAULTS,
            has_folder=has_folder,
            is_unlinked=not all(has_folder(game.key) for lost in faults.values() for game in lost),
            cross=cross,
            number=number,
        )
    )


def standings_fragment(
    title: str, about: str, table: Sequence[Standing], ranking: Ranking, remarks: Sequence[str]
) -> str:
    """Return the standings of that page as a fragment of HTML, for notebooks."""
    head, rows = people_columns(table, ranking)
    made = environment().get_template("standings_table.html")
    shown = made.render(head=head, rows=rows, name_column=head.index("name"))
    lines = "".join(f"<p>{html.escape(text)}</p>" for text in (f"{title}: {about}", *remarks))
    return f"<div>{lines}{shown}</div>"


def game_html(made: Environment, page: GamePage, replay: str) -> str:
    """Return a game's page around the replay."""
    return made.get_template("game.html").render(page=page, replay=Markup(replay), root="../")


def game_body(made: Environment, page: GamePage, replay: str) -> str:
    """Return the body of a game's page around the replay."""
    return made.get_template("game_body.html").render(page=page, replay=Markup(replay))


def game_loader(made: Environment, page: GamePage, checksum: str) -> str:
    """Return a small page that shows a game of a file with the data of many.

    ``checksum`` is that of the file: a browser that has an earlier report in its cache reads the new data.
    """
    return made.get_template("game_loader.html").render(page=page, checksum=checksum, version=VERSION)


def ruling_text(entry: Entry) -> str:
    """Return the words for a ruling on a game's page."""
    return f"{words.date(entry.at)}: {words.ruled(entry)}. Reason: {entry.why}"


def _by_rating(line: Standing) -> tuple[float, int]:
    return (0.0 if line.rating is None else -round(line.rating.value), line.rank)


def _detail(line: Standing, other: str) -> str:
    """Return a cell of the cross table in words."""
    versus = line.versus[other]
    return (
        f"{short(visible(line.name), LONGEST_NAME)} against {short(visible(other), LONGEST_NAME)}: "
        f"{versus.wins} won, {versus.draws} drawn, {versus.losses} lost"
    )
