"""The gauntlet."""

from collections import Counter
from dataclasses import replace

import pytest

from tournaments.schedule.formats.gauntlet import Gauntlet
from tournaments.schedule.pairing import Entrant, History, Result

FIELD = [Entrant()] * 7


def test_each_challenger_meets_all_others_once_from_each_side() -> None:
    games = Gauntlet(FIELD, 3, challengers=(1, 4)).due(History())
    others = {0, 2, 3, 5, 6}
    for number in (1, 2, 3):
        met = Counter((game.first, game.second) for game in games if game.round == number)
        assert met == Counter(
            sides for one in (1, 4) for other in others for sides in ((one, other), (other, one))
        )


def test_all_opponents_get_on_early() -> None:
    """Nobody is met by the second challenger before all were met by one."""
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


def test_withdrawals_leave_what_was_played() -> None:
    gauntlet = Gauntlet(FIELD, 1, challengers=(3,))
    first = gauntlet.due(History())[0]
    gone = ({first.first, first.second} - {3}).pop()
    left = replace(gauntlet, entrants=[Entrant(until=1 if bot == gone else None) for bot in range(7)])
    history = History({first.key: Result(0)})
    assert left.pairings(history)[0] == first
    assert len(left.pairings(history)) == left.total(history) == 1 + 10
    assert all(gone not in (game.first, game.second) for game in left.due(history))


def test_keys_are_stable() -> None:
    """Stores refer to these: they may never change."""
    assert [game.key for game in Gauntlet([Entrant()] * 2, 2, challengers=(1,)).due(History())] == [
        *("r001-2v1", "r001-1v2", "r002-2v1", "r002-1v2"),
    ]


def test_nobody_to_meet() -> None:
    assert Gauntlet([Entrant()] * 2, 2, challengers=(0, 1)).due(History()) == []
    assert Gauntlet(FIELD, 2, challengers=()).due(History()) == []


def test_a_challenger_that_is_no_entrant() -> None:
    with pytest.raises(ValueError, match=r"challengers \[7\] are not among the 7 entrants"):
        Gauntlet(FIELD, 1, challengers=(0, 7))
