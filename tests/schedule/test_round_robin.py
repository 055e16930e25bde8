"""Formats without results: the round robin and the gauntlet; games, keys, histories."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from itertools import combinations, permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tournaments.schedule.formats.gauntlet import Gauntlet
from tournaments.schedule.formats.round_robin import RoundRobin, circle
from tournaments.schedule.formats.rounds import drawn_lots
from tournaments.schedule.pairing import (
    Entrant,
    History,
    Pairing,
    Result,
    Schedule,
    key_of,
    pair_of_games,
    round_under_way,
)

BOTS = st.integers(2, 9)
OLD, NEW, NEWEST = Result(0), Result(1), Result(None)
FIELD = [Entrant()] * 7


def all_games(bots: int, rounds: int, **more: int) -> list[Pairing]:
    return RoundRobin([Entrant()] * bots, rounds, **more).pairings(History())


@given(BOTS, st.integers(1, 4))
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


def test_games_come_in_the_order_of_the_days() -> None:
    """The order is fixed for three bots; of 8 bots, 4 pairs of games use all."""
    assert circle(3) == [[(1, 2)], [(0, 2)], [(0, 1)]]
    games = all_games(8, 2)
    for start in range(0, len(games), 8):
        assert len({bot for game in games[start : start + 8] for bot in (game.first, game.second)}) == 8


def test_keys_and_lots_never_change() -> None:
    """Stores contain keys; another version of Python or another machine has to draw the same lots."""
    assert sorted(game.key for game in all_games(2, 2)) == [
        *("r001-1v2", "r001-2v1", "r002-1v2", "r002-2v1"),
    ]
    assert "r001-01v12" in {game.key for game in all_games(12, 1, width=2)}
    assert key_of(1000, 1, 0, 1) == "r1000-2v1"
    assert key_of(3, 0, 11, 2, leg=1) == "r003-01v12.2"
    assert [game.key for game in Gauntlet([Entrant()] * 2, 2, challengers=(1,)).due(History())] == [
        *("r001-2v1", "r001-1v2", "r002-2v1", "r002-1v2"),
    ]
    assert [round(lot, 6) for lot in drawn_lots(3, "0/1")] == [0.292128, 0.742368, 0.720915]
    assert drawn_lots(2, "0/1") == drawn_lots(3, "0/1")[:2]


def test_pair_of_games() -> None:
    assert pair_of_games(2, 4, 1, 1) == (
        Pairing("r002-5v2", 2, 4, 1, "r002-2+5", 1),
        Pairing("r002-2v5", 2, 1, 4, "r002-2+5", 1),
    )
    assert pair_of_games(2, 4, 1, 2, leg=1, opening=7) == (
        Pairing("r002-05v02.2", 2, 4, 1, "r002-02+05.2", 7),
        Pairing("r002-02v05.2", 2, 1, 4, "r002-02+05.2", 7),
    )


@pytest.mark.parametrize(
    ("schedule", "games"), [(RoundRobin([Entrant()] * 4, 1), 6), (Gauntlet(FIELD, 1, challengers=(3,)), 10)]
)
def test_a_withdrawal_leaves_what_was_played(schedule: RoundRobin | Gauntlet, games: int) -> None:
    first = schedule.due(History())[0]
    gone = first.second if first.first == 3 else first.first
    entrants = [Entrant(until=1 if bot == gone else None) for bot in range(len(schedule.entrants))]
    left: Schedule = replace(schedule, entrants=entrants)
    history = History({first.key: OLD})
    assert left.pairings(history)[0] == first
    assert left.total(history) == len(left.pairings(history)) == 1 + games
    assert all(gone not in (game.first, game.second) for game in left.due(history))


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
def test_rounds_of_an_entrant(entrant: Entrant, rounds: list[int]) -> None:
    assert [number for number in (1, 2, 3, 4) if entrant.plays(number)] == rounds


@pytest.mark.parametrize(
    ("results", "earlier", "by_round"),
    [
        # Ruled in round 2, and again in round 4.
        ({"k": NEWEST}, [(2, OLD), (4, NEW)], [OLD, OLD, NEW, NEW, NEWEST]),
        # To be played again.
        ({}, [(3, OLD)], [OLD, OLD, OLD, None, None]),
        # The first result was a ruling.
        ({"k": NEW}, [(3, None)], [None, None, None, NEW, NEW]),
        # Void and restored in round 2; then a bot is restored, so that round 1 is under way again; void.
        ({}, [(2, OLD), (2, None), (1, OLD)], [OLD, None, None, None, None]),
    ],
)
def test_a_ruling_counts_from_the_next_round_on(
    results: Mapping[str, Result], earlier: list[tuple[int, Result | None]], by_round: list[Result | None]
) -> None:
    history = History({**results, "other": OLD}, {"k": earlier})
    assert [history.at(number).get("k") for number in (1, 2, 3, 4, 5)] == by_round
    assert {history.at(number)["other"] for number in (1, 3, 5)} == {OLD}


def test_rounds_between_two_rulings_share_their_results() -> None:
    results = {"k": NEWEST, "other": OLD}
    history = History(results, {"k": [(2, OLD), (4, NEW)]})
    rounds = [history.at(number) for number in (1, 2, 3, 4, 5, 6)]
    assert [rounds.index(seen) for seen in rounds] == [0, 0, 2, 2, 4, 4]
    assert len({id(seen) for seen in rounds}) == 3
    results["later"] = NEW  # a game that ends
    assert all(history.at(number)["later"] == NEW for number in (1, 3, 5))


def test_the_round_under_way() -> None:
    assert round_under_way(RoundRobin([Entrant()] * 3, 4), History()) == 4
    assert round_under_way(RoundRobin([Entrant()], 4), History()) == 1


# The gauntlet.


def test_each_challenger_meets_all_others_once_from_each_side() -> None:
    games = Gauntlet(FIELD, 3, challengers=(1, 4)).due(History())
    others = {0, 2, 3, 5, 6}
    for number in (1, 2, 3):
        met = Counter((game.first, game.second) for game in games if game.round == number)
        assert met == Counter(
            sides for one in (1, 4) for other in others for sides in ((one, other), (other, one))
        )


def test_each_opponent_meets_one_challenger_before_any_meets_the_second() -> None:
    games = Gauntlet([Entrant()] * 8, 1, challengers=(0, 1)).due(History())
    others = [({game.first, game.second} - {0, 1}).pop() for game in games[::2]]
    assert set(others[:6]) == set(others[6:]) == set(range(2, 8))


def test_rounds_are_shuffled_each_in_its_own_way() -> None:
    games = Gauntlet([Entrant()] * 12, 2, challengers=(0,)).due(History())
    orders = [[game.key[5:] for game in games if game.round == number] for number in (1, 2)]
    assert sorted(orders[0]) == sorted(orders[1])
    assert orders[0] != orders[1]


def test_a_late_bot_is_an_opponent_and_leaves_the_order_of_the_others() -> None:
    before = Gauntlet(FIELD, 2, challengers=(3,)).due(History())
    after = Gauntlet([*FIELD, Entrant(since=3)], 2, challengers=(3,)).due(History())
    assert [game for game in after if 7 not in (game.first, game.second)] == before
    assert len(after) == len(before) + 4


def test_a_new_version_of_a_challenger_is_a_challenger() -> None:
    before = Gauntlet(FIELD, 2, challengers=(1, 4))
    first = before.due(History())[0]
    entrants = [*FIELD, Entrant(since=2, until=2, replaces=1), Entrant(since=3, replaces=7)]
    entrants[1] = Entrant(until=1)
    after = Gauntlet(entrants, 2, challengers=(1, 4))
    history = History({first.key: OLD})
    games = after.due(history)
    of_new = Counter((game.first, game.second) for game in games if 8 in (game.first, game.second))
    assert of_new == Counter(2 * [sides for other in (0, 2, 3, 5, 6) for sides in ((8, other), (other, 8))])
    known = {game.key: game for game in before.pairings(History())}
    assert all(known[game.key] == game for game in games if 4 in (game.first, game.second))
    assert after.total(history) == len(after.pairings(history)) == 1 + 20 + 20


def test_games_of_a_bot_that_had_another_role_stay() -> None:
    """Earlier versions paired a new version of a challenger with the other challengers."""
    entrants = [Entrant(until=1), *[Entrant()] * 3, Entrant(since=2, replaces=0)]
    schedule = Gauntlet(entrants, 2, challengers=(0, 1))
    history = History({"r001-2v5": OLD})
    assert {"r001-5v2", "r002-2v5", "r002-5v2"} < {game.key for game in schedule.due(history)}
    assert schedule.total(history) == len(schedule.pairings(history)) == 4 + 2 * 8
    assert [game.key for game in schedule.pairings(history)].count("r001-2v5") == 1
    # The replaced bot is restored: the new version, which has withdrawn, has the games that it played.
    entrants = [*[Entrant()] * 4, Entrant(since=2, until=2)]
    restored = Gauntlet(entrants, 2, challengers=(0, 1))
    history = History({"r001-5v3": OLD})
    assert {game.key for game in restored.pairings(history) if 4 in (game.first, game.second)} == {"r001-5v3"}
    assert restored.total(history) == len(restored.pairings(history)) == 1 + 16


def test_challengers() -> None:
    assert Gauntlet([Entrant()] * 2, 2, challengers=(0, 1)).due(History()) == []
    assert Gauntlet(FIELD, 2, challengers=()).due(History()) == []
    with pytest.raises(ValueError, match=r"challengers \[7\] are not among the 7 entrants"):
        Gauntlet(FIELD, 1, challengers=(0, 7))
