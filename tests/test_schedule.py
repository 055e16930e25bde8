"""What schedules are made of, and the round robin."""

from collections import Counter
from itertools import combinations, permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tournaments.schedule.formats.round_robin import RoundRobin, circle
from tournaments.schedule.formats.rounds import drawn_lots
from tournaments.schedule.pairing import (
    Entrant,
    History,
    Pairing,
    Result,
    key_of,
    pair_of_games,
    round_under_way,
)
from tournaments.schedule.plan import FORMATS, ROUND_ROBIN, schedule_of

BOTS = st.integers(2, 9)
ROUNDS = st.integers(1, 4)
OLD, NEW, NEWEST = Result(0), Result(1), Result(None)


def all_games(bots: int, rounds: int, **more: int) -> list[Pairing]:
    return RoundRobin([Entrant()] * bots, rounds, **more).pairings(History())


@given(BOTS, ROUNDS)
def test_every_pair_each_side_once_a_round(bots: int, rounds: int) -> None:
    games = all_games(bots, rounds)
    assert len(games) == rounds * bots * (bots - 1)
    for number in range(1, rounds + 1):
        played = Counter((game.first, game.second) for game in games if game.round == number)
        assert played == Counter(permutations(range(bots), 2))


@given(BOTS)
def test_circle_method_gives_no_bot_two_pairs_on_a_day(bots: int) -> None:
    days = circle(bots)
    assert Counter(frozenset(pair) for day in days for pair in day) == Counter(
        frozenset(pair) for pair in combinations(range(bots), 2)
    )
    for day in days:
        busy = [bot for pair in day for bot in pair]
        assert len(set(busy)) == len(busy) == bots - bots % 2


def test_circle_of_three_by_hand() -> None:
    """0 has the bye, then 1, then 2."""
    assert circle(3) == [[(1, 2)], [(0, 2)], [(0, 1)]]


def test_games_come_in_the_order_of_the_days() -> None:
    """Of 8 bots, 4 pairs of games use all."""
    games = all_games(8, 2)
    for start in range(0, len(games), 8):
        assert len({bot for game in games[start : start + 8] for bot in (game.first, game.second)}) == 8


def test_keys_are_stable() -> None:
    """Stores refer to these: they may never change."""
    assert sorted(game.key for game in all_games(2, 2)) == [
        *("r001-1v2", "r001-2v1", "r002-1v2", "r002-2v1"),
    ]
    assert "r001-01v12" in {game.key for game in all_games(12, 1, width=2)}
    assert key_of(1000, 1, 0, 1) == "r1000-2v1"
    assert key_of(3, 0, 11, 2, leg=1) == "r003-01v12.2"


def test_lots_are_the_same_everywhere() -> None:
    """Written down once: another version of Python, or another machine, has to draw the same."""
    assert [round(lot, 6) for lot in drawn_lots(3, "0/1")] == [0.292128, 0.742368, 0.720915]
    assert drawn_lots(2, "0/1") == drawn_lots(3, "0/1")[:2]


def test_a_round_robin_without_the_one_that_withdrew() -> None:
    first = all_games(4, 1)[0]
    entrants = [Entrant(until=1) if bot == first.first else Entrant() for bot in range(4)]
    schedule = RoundRobin(entrants, 1)
    history = History({first.key: OLD})
    assert schedule.pairings(history)[0] == first
    assert schedule.total(history) == len(schedule.pairings(history)) == 1 + 6
    assert {bot for game in schedule.due(history) for bot in (game.first, game.second)} == (
        set(range(4)) - {first.first}
    )


def test_pair_of_games() -> None:
    assert pair_of_games(2, 4, 1, 1) == (
        Pairing("r002-5v2", 2, 4, 1, "r002-2+5", 1),
        Pairing("r002-2v5", 2, 1, 4, "r002-2+5", 1),
    )
    one, other = pair_of_games(2, 4, 1, 2, leg=1, opening=7)
    assert (one.key, other.key) == ("r002-05v02.2", "r002-02v05.2")
    assert one.pair == other.pair == "r002-02+05.2"
    assert one.opening == other.opening == 7


@pytest.mark.parametrize(
    ("entrant", "rounds"),
    [
        (Entrant(), [1, 2, 3, 4]),
        (Entrant(since=3), [3, 4]),
        (Entrant(until=2), [1, 2]),
        (Entrant(since=2, until=2), [2]),
        (Entrant(until=0), []),
    ],
)
def test_when_a_bot_plays(entrant: Entrant, rounds: list[int]) -> None:
    assert [number for number in (1, 2, 3, 4) if entrant.plays(number)] == rounds


def test_what_a_round_was_paired_from() -> None:
    """Ruled in round 2, and again in round 4."""
    history = History({"k": NEWEST, "other": OLD}, {"k": [(2, OLD), (4, NEW)]})
    assert [history.at(number)["k"] for number in (1, 2, 3, 4, 5)] == [OLD, OLD, NEW, NEW, NEWEST]
    assert {history.at(number)["other"] for number in (1, 3, 5)} == {OLD}


def test_a_game_to_be_played_again_has_no_result_later() -> None:
    history = History({}, {"k": [(3, OLD)]})
    assert history.at(3) == {"k": OLD}
    assert history.at(4) == {}


def test_a_first_result_by_ruling_was_not_there_before() -> None:
    history = History({"k": NEW}, {"k": [(3, None)]})
    assert history.at(3) == {}
    assert history.at(4) == {"k": NEW}


def test_without_rulings_all_rounds_see_the_same() -> None:
    history = History({"k": OLD})
    assert history.at(1) is history.at(2) is history.results


def test_the_round_under_way() -> None:
    assert round_under_way(RoundRobin([Entrant()] * 3, 4), History()) == 4
    assert round_under_way(RoundRobin([Entrant()], 4), History()) == 1


def test_a_schedule_from_its_parameters() -> None:
    entrants = [Entrant()] * 11
    assert schedule_of({"kind": ROUND_ROBIN}, entrants, 3, 7, 2) == RoundRobin(entrants, 3, 7, 2)
    ladder = schedule_of({"kind": "ladder", "pairs": 2}, entrants, 3, 7, 2)
    assert ladder == FORMATS["ladder"](entrants=entrants, rounds=3, width=2, pairs=2)
