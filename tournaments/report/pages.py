"""A report's pages as HTML.  Pure: what they say is in the templates, what they know in ``View``."""

from dataclasses import dataclass
from typing import NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from referee.sentences import visible
from tournaments.journal import Action, Entry
from tournaments.report import words
from tournaments.report.race_chart import race_chart
from tournaments.report.rating_chart import Rated, interval, rating_chart
from tournaments.report.svg import duration, numeral, short
from tournaments.report.time_chart import Timed, time_chart, time_histogram
from tournaments.report.view import View, heat
from tournaments.standing import Standing
from tournaments.summary import CAVEAT
from tournaments.tables import SHOWN_ANYWAY

LONGEST_NAME = 32
"""Characters of a bot's name where there are many of them; the whole name is on the bot's own page."""
LONGEST_SENTENCE = 400
"""Characters of a verdict's sentence in lists: it quotes up to 80 of a bot's line."""


class Link(NamedTuple):
    """A page, seen from one that is one folder deep."""

    text: str
    href: str


@dataclass(frozen=True)
class GamePage:
    """What is around a game's replay.  Small, since it is sent to worker processes."""

    key: str
    """As the store has it."""
    shown: str
    """The same as it is shown."""
    file: str
    tournament: str
    bots: tuple[Link, Link]
    previous: Link | None
    following: Link | None
    rulings: tuple[str, ...]
    counts: bool


def environment() -> Environment:
    """The templates."""
    made = Environment(
        loader=PackageLoader("tournaments.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "blame": lambda game: short(visible(words.blame(game)), LONGEST_SENTENCE),
        "bot": _bot,
        "date": words.date,
        "duration": duration,
        "ending": words.ending,
        "interval": interval,
        "numeral": numeral,
        "points": words.points,
        "result": words.result,
        "ruled": words.ruled,
        "score": words.score,
        "visible": visible,
    }
    return made


def _bot(name: str, longest: int = LONGEST_NAME) -> Markup:
    """A bot's name, on one line, cut, and kept from turning the text around it."""
    return Markup("<bdi>{}</bdi>").format(short(visible(name), longest))


class Pages:
    """Renders the pages of one view."""

    def __init__(self, view: View) -> None:
        self.view = view
        self._environment = environment()
        self._environment.globals |= {
            "view": view,
            "summary": view.summary,
            "address": view.addresses,
            "key_of": view.disguise.key,
            "heat": heat,
            "outcome": words.outcome,
            "Action": Action,
        }

    def index(self) -> str:
        """The first page."""
        view, summary = self.view, self.view.summary
        hrefs = {line.name: view.addresses.bot(line.name) for line in view.table}
        rated = [
            Rated(visible(line.name), line.rating, hrefs[line.name])
            for line in sorted(view.table, key=_by_rating)
            if line.rating is not None
        ]
        timed = [Timed(visible(line.name), view.times_of(line.name), hrefs[line.name]) for line in view.table]
        zero = (
            f", {visible(summary.anchor)} = {summary.anchor_rating:g}" if summary.anchor else ", average = 0"
        )
        return self._render(
            "index.html",
            root="",
            format_words=words.format_words(summary.plan.format, summary.plan.rounds),
            criteria=[name for name in summary.criteria if name not in SHOWN_ANYWAY],
            byes=any(line.bye_points for line in view.table),
            rating=Markup(rating_chart(rated, zero)),
            race=Markup(race_chart(view.race, hrefs)),
            times=Markup(time_chart(timed, view.move_limit_us)),
            timed=timed,
            caveat=CAVEAT if summary.is_adaptive else "",
            advantage=summary.ratings.advantage if summary.games else None,
            missing=max(summary.total - summary.done, 0),
            criterion=_criterion,
            detail=_detail,
        )

    def bot(self, line: Standing) -> str:
        """A bot's page."""
        times = self.view.times_of(line.name)
        return self._render(
            "bot.html",
            root="../",
            line=line,
            times=times,
            histogram=Markup(time_histogram(times.charged_us, self.view.move_limit_us)),
            meetings=self.view.meetings(line),
            faults=[kind for kind in self.view.faults if kind.bot == line.name],
            swaps=self.view.swaps.bots[line.name] if self.view.swaps else None,
        )

    def games(self) -> str:
        """The list of all games."""
        names = sorted(self.view.places)
        return self._render(
            "games.html",
            root="",
            names=names,
            number={name: number for number, name in enumerate(names)},
            endings=sorted({words.ending(game) for game in self.view.kept}),
        )

    def game_pages(self) -> list[GamePage]:
        """What goes around every game, in the order in which they are read."""
        games, links = self.view.kept, self.view.addresses
        near = [Link(self.view.disguise.key(game.key), f"../{links.game(game.key)}") for game in games]
        return [
            GamePage(
                key=game.key,
                shown=near[number].text,
                file=links.game_file(game.key),
                tournament=self.view.summary.name,
                bots=(self._bot_link(game.first), self._bot_link(game.second)),
                previous=near[number - 1] if number else None,
                following=near[number + 1] if number + 1 < len(near) else None,
                rulings=tuple(map(_ruling, self.view.rulings.get(game.key, ()))),
                counts=self.view.counts(game),
            )
            for number, game in enumerate(games)
        ]

    def _bot_link(self, name: str) -> Link:
        return Link(name, f"../{self.view.addresses.bot(name)}")

    def _render(self, template: str, **values: object) -> str:
        return self._environment.get_template(template).render(values)


def game_html(made: Environment, page: GamePage, replay: str) -> str:
    """A game's page around the replay."""
    return made.get_template("game.html").render(page=page, replay=Markup(replay), root="../")


def _ruling(entry: Entry) -> str:
    return f"{words.date(entry.at)}: {words.ruled(entry)}. {entry.why}"


def _by_rating(line: Standing) -> tuple[float, int]:
    return (0.0 if line.rating is None else -round(line.rating.value), line.rank)


def _criterion(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}".rstrip("0").rstrip(".")


def _detail(line: Standing, other: str) -> str:
    """A cell of the cross table in words."""
    versus = line.versus[other]
    return (
        f"{short(visible(line.name), LONGEST_NAME)} against {short(visible(other), LONGEST_NAME)}: "
        f"{versus.wins} won, {versus.draws} drawn, {versus.losses} lost"
    )
