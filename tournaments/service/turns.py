"""Whose version is checked next.  Pure.

Teams take turns: one that submits ten versions at once keeps nobody waiting but itself.  Within a team the
newest version goes first, since that is the one that its students wait for.
"""

from collections.abc import Mapping, Sequence

from tournaments.course.model import Version


def next_to_check(waiting: Sequence[Version], turns: Mapping[int, int]) -> Version:
    """One of the versions that wait, of which there is at least one.

    ``turns`` has a number for each team whose version was begun before, larger the later that was.
    """
    oldest: dict[int, int] = {}
    for version in waiting:
        oldest[version.team_id] = min(version.id, oldest.get(version.team_id, version.id))
    team = min(oldest, key=lambda team_id: (turns.get(team_id, 0), oldest[team_id]))
    return max((version for version in waiting if version.team_id == team), key=lambda version: version.id)
