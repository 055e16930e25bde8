"""Current competitors of the practice competition, and their names there."""

from collections.abc import Iterator
from datetime import datetime

from tournaments.course.course import Course
from tournaments.course.model import Competition, CompetitionState, Competitor, VersionState
from tournaments.course.settings import Settings, frozen_moment, is_quiet


def enter_current(
    course: Course, competition: Competition, settings: Settings, now: datetime
) -> list[Competitor]:
    """Enter and return each team's current version and the settings' reference players.

    Once versions are frozen, the frozen versions are the current ones.  A version keeps the name under which
    it first played, even if its team is renamed.  Raises StoreError.
    """
    entered = course.competitions.competitors(competition.id)
    return [
        *_versions(course, competition, entered, frozen_moment(settings, now)),
        *_references(course, competition, entered, settings.references),
    ]


def _versions(
    course: Course, competition: Competition, entered: list[Competitor], at: datetime | None
) -> Iterator[Competitor]:
    known = {one.version_id: one for one in entered if one.version_id is not None}
    teams = {team.id: team.name for team in course.teams.all()}
    for team_id, version in course.versions.current(at).items():
        if version.id in known:
            yield known[version.id]
        elif team_id in teams:
            # A team's name is never reused.
            name = f"{teams[team_id]} v{version.number}"
            yield course.competitions.enter(competition.id, name, version.id, None)


def _references(
    course: Course, competition: Competition, entered: list[Competitor], references: list[str]
) -> Iterator[Competitor]:
    known = {one.reference: one for one in entered if one.reference is not None}
    for text in references:
        yield known.get(text) or course.competitions.enter(competition.id, text, None, text)


def reason_to_rest(competition: Competition, settings: Settings, now: datetime) -> str:
    """Return the reason why no practice game can begin now; empty if games can begin."""
    if not settings.practice_on:
        return "practice is switched off"
    if competition.state is not CompetitionState.RUNNING:
        return f"practice is {competition.state.value}"
    if is_quiet(settings, now):
        return (
            f"there is no practice from {settings.quiet_from} to {settings.quiet_to} ({settings.time_zone})"
        )
    return ""


def may_still_play(course: Course, competitor: Competitor) -> bool:
    """Return whether a competitor may finish a pair of games that it began.  Raises StoreError."""
    if competitor.version_id is None:
        return True
    version = course.versions.get(competitor.version_id)
    return version is not None and version.state is VersionState.QUALIFIED and not version.withdrawn
