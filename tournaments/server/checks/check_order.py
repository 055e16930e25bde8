"""Fair queue order of versions awaiting their check (pure).

Teams take turns: a team that submits ten versions at once delays only itself.  Within a team the newest
version goes first, since its students wait for that one.
"""

from collections.abc import Mapping, Sequence

from tournaments.course.model import Version


def next_to_check(waiting: Sequence[Version], turns: Mapping[int, int]) -> Version:
    """Return the next of the waiting versions, of which there is at least one.

    ``turns`` has a number for each team that had a turn, larger for a later turn.
    """
    oldest: dict[int, int] = {}
    for version in waiting:
        oldest[version.team_id] = min(version.id, oldest.get(version.team_id, version.id))
    team = min(oldest, key=lambda team_id: (turns.get(team_id, 0), oldest[team_id]))
    return max((version for version in waiting if version.team_id == team), key=lambda version: version.id)
