"""Teams take turns."""

from dataclasses import replace
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from tests.courses import NOW
from tournaments.course.model import Version, VersionState
from tournaments.server.checks.qualifying import next_to_check

ONE = Version(
    id=1, team_id=1, number=1, content="", files=1, size=1, submitted_at=NOW, submitted_by=1, origin="page",
    state=VersionState.QUEUED, attempts=0, decided_at=None, digest=None, failures=0, withdrawn=False,
)  # fmt: skip


def order_of(teams: list[int]) -> list[tuple[int, int]]:
    """Team and id of versions that were submitted in this order, as they are checked one after another."""
    waiting = [replace(ONE, id=number, team_id=team) for number, team in enumerate(teams, 1)]
    turns: dict[int, int] = {}
    found: list[tuple[int, int]] = []
    while waiting:
        version = next_to_check(waiting, turns)
        waiting.remove(version)
        turns[version.team_id] = len(found) + 1
        found.append((version.team_id, version.id))
    return found


def test_who_submits_often_waits_for_the_others() -> None:
    assert order_of([7, 7, 7, 5, 6, 5]) == [(7, 3), (5, 6), (6, 5), (7, 2), (5, 4), (7, 1)]


@given(st.lists(st.integers(1, 4), max_size=12))
def test_every_version_has_its_turn_and_teams_alternate(teams: list[int]) -> None:
    order = order_of(teams)
    assert sorted(number for _, number in order) == list(range(1, len(teams) + 1))
    for team in set(teams):
        own = [number for one, number in order if one == team]
        assert own == sorted(own, reverse=True)
        turns = [place for place, (one, _) in enumerate(order) if one == team]
        for before, after in pairwise(turns):
            between = [one for one, _ in order[before + 1 : after]]
            waiting = {one for one, _ in order[after + 1 :]} - {team}
            assert waiting <= set(between)  # nobody who waits was left out
