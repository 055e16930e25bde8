"""A placement: whom the challenger meets next."""

import pytest

from tournaments.schedule.formats.placement import Placement
from tournaments.schedule.pairing import Entrant, History, Pairing, Result

TEN = [Entrant()] * 11
"""A challenger, number 0, and ten players."""


def placement(rounds: int = 8, entrants: list[Entrant] = TEN, **own: int) -> Placement:
    return Placement(entrants, rounds, width=2, challengers=(0,), **own)


def played(schedule: Placement, level: float) -> list[set[int]]:
    """The players of each round, when the challenger beats all below a level and nobody else."""
    results: dict[str, Result] = {}
    met: dict[int, set[int]] = {}
    while due := schedule.due(History(results)):
        for game in due:
            player = game.first or game.second
            met.setdefault(game.round, set()).add(player)
            wins = player < level
            results[game.key] = Result(int(wins == (game.second == 0)), line=game.key)
    return [met[number] for number in sorted(met)]


def test_it_begins_in_the_middle() -> None:
    due = placement(pairs=2).due(History())
    assert [(game.key, game.opening) for game in due] == [
        *(("r001-01v06", 0), ("r001-06v01", 0), ("r001-06v01.2", 1), ("r001-01v06.2", 1)),
        *(("r001-01v07", 0), ("r001-07v01", 0), ("r001-07v01.2", 1), ("r001-01v07.2", 1)),
    ]


@pytest.mark.parametrize(
    ("level", "last"),
    [(0.5, {1, 2}), (1.5, {1, 2}), (3.5, {3, 4}), (5.5, {5, 6}), (8.5, {8, 9}), (11, {9, 10})],
)
def test_it_finds_the_place(level: float, last: set[int]) -> None:
    rounds = played(placement(), level)
    assert len(rounds) == 8
    assert rounds[-3:] == [last] * 3


def test_the_next_round_waits_for_all_games_of_the_last_one() -> None:
    schedule = placement()
    first = schedule.due(History())
    results = {game.key: Result(0, line=game.key) for game in first[:-1]}
    assert schedule.due(History(results)) == first[-1:]
    assert schedule.total(History(results)) == 8 * 4


def test_a_player_that_withdrew_is_met_no_more() -> None:
    entrants = [*TEN]
    entrants[5] = Entrant(until=1)
    results: dict[str, Result] = {}
    schedule = placement(entrants=entrants)
    games: list[Pairing] = []
    while due := schedule.due(History(results)):
        games += due
        results |= {game.key: Result(None, line=game.key) for game in due}
    assert 5 not in {game.first for game in games} | {game.second for game in games}
    assert schedule.total(History(results)) == len(results)


def test_one_player_is_enough() -> None:
    assert played(placement(3, [Entrant(), Entrant()]), 5) == [{1}] * 3


@pytest.mark.parametrize(
    ("entrants", "challengers", "complaint"),
    [
        (3, (0, 1), "one challenger, not 2"),
        (3, (3,), "challenger 3"),
        (1, (0,), "somebody to be compared with"),
    ],
)
def test_what_is_no_placement(entrants: int, challengers: tuple[int, ...], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        Placement([Entrant()] * entrants, 1, challengers=challengers)
