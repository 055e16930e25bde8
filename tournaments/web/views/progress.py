"""Progress of a team's bot: the rating of each version, and its results against each opponent.  Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from markupsafe import Markup

from referee.judge.verdict_text import visible
from tournaments.analysis.standing import Estimate, Standing, Versus
from tournaments.course.model import Version
from tournaments.reporting.site.progress_chart import Level, VersionRating, progress_chart
from tournaments.web.views.competition_view import ViewedCompetition

MOST_COLUMNS = 6
"""Versions, the newest ones, with a column of their own among the results against opponents."""
MOST_LEVELS = 5
"""Reference players, spread over their order, that are lines of the chart."""


@dataclass(frozen=True)
class VersionRow:
    """A version that has played on the ladder."""

    number: int
    name: str
    """Name of the bot in the games."""
    submitted_at: datetime
    is_current: bool
    line: Standing
    rating: Estimate | None
    """Its rating with the interval; ``line.rating`` has none."""
    difference: Estimate | None
    """Its rating relative to the newest version in the table; None for that one."""


@dataclass(frozen=True)
class OpponentRow:
    """An opponent that one of the versions has met."""

    name: str
    href: str | None
    rating: Estimate | None
    is_own: bool
    """True for another version of the team."""
    by_version: Mapping[int, Versus]
    """Number of the version -> its results."""

    @property
    def total(self) -> Versus:
        """Results of all versions together."""
        found = Versus()
        for one in self.by_version.values():
            found.wins += one.wins
            found.draws += one.draws
            found.losses += one.losses
        return found


@dataclass(frozen=True)
class Progress:
    """Progress of a team's bot on a practice ladder."""

    versions: Sequence[VersionRow]
    """Versions with games, the newest first."""
    opponents: Sequence[OpponentRow]
    """The strongest first."""
    chart: Markup

    @property
    def columns(self) -> list[int]:
        """Numbers of the versions with a column of their own, the newest first."""
        return [one.number for one in self.versions[:MOST_COLUMNS]]


Lines = Sequence[tuple[Version, Standing]]
"""Versions of one team that have games, the newest first, each with its line in the history of a ladder."""


def lines_of_versions(history: ViewedCompetition, versions: Sequence[Version]) -> Lines:
    """Return the lines of the versions that have games; ``versions`` are the newest first."""
    names = {entrant.version_id: name for name, entrant in history.entrants.items()}
    found = [(one, history.lines.get(names.get(one.id, ""))) for one in versions]
    return [(one, line) for one, line in found if line is not None and line.games]


def progress_of(
    history: ViewedCompetition,
    ladder: ViewedCompetition,
    lines: Lines,
    current_id: int | None,
    ratings: Mapping[str, Estimate],
    differences: Mapping[str, Estimate],
) -> Progress:
    """Return the progress of a team.

    Args:
        history: All bots that ever played on the ladder, as the viewer may see them.
        ladder: The ladder itself, whose bots have pages.
        lines: The team's versions; at least one.
        current_id: Id of the version that plays.
        ratings: Displayed name -> rating with its interval, for the team's versions.
        differences: Displayed name -> rating relative to the newest version with games.

    """
    rows = [
        VersionRow(
            number=version.number,
            name=line.name,
            submitted_at=version.submitted_at,
            is_current=version.id == current_id,
            line=line,
            rating=ratings.get(line.name),
            difference=differences.get(line.name) if index else None,
        )
        for index, (version, line) in enumerate(lines)
    ]
    met: dict[str, dict[int, Versus]] = {}
    for row in rows:
        for name, versus in row.line.versus.items():
            if versus.games:
                met.setdefault(name, {})[row.number] = versus
    team_id = lines[0][0].team_id
    opponents = [
        OpponentRow(
            name=line.name,
            href=ladder.bot_href(line.name),
            rating=line.rating,
            is_own=history.team_of(line.name) == team_id,
            by_version=met[line.name],
        )
        for line in history.view.table
        if line.name in met
    ]
    return Progress(rows, opponents, _chart(rows, _levels(history, ladder)))


def _chart(rows: Sequence[VersionRow], levels: Sequence[Level]) -> Markup:
    rated = [VersionRating(row.number, row.rating) for row in reversed(rows) if row.rating]
    return Markup(progress_chart(rated, levels))


def _levels(history: ViewedCompetition, ladder: ViewedCompetition) -> list[Level]:
    """Return the ratings of the ladder's reference players; of many, a selection spread over their order."""
    found = [
        Level(visible(line.name), line.rating.value)
        for line in history.view.table
        if line.rating is not None
        and line.name in ladder.lines
        and (entrant := history.entrants.get(line.name)) is not None
        and entrant.reference is not None
    ]
    if len(found) <= MOST_LEVELS:
        return found
    last = len(found) - 1
    return [found[round(index * last / (MOST_LEVELS - 1))] for index in range(MOST_LEVELS)]
