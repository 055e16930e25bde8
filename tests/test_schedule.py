"""What every schedule promises, and the round robin."""

import re
from collections import Counter
from collections.abc import Callable
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tournaments.schedule import Pairing, RoundRobin, Schedule, schedule_of

# Every kind of schedule goes through the tests of the contract below.
KINDS: dict[str, Callable[[int, int], Schedule]] = {"round robin": RoundRobin, "schedule_of": schedule_of}

BOTS = st.integers(2, 9)
ROUNDS = st.integers(1, 4)
EACH_KIND = pytest.mark.parametrize("make", KINDS.values(), ids=KINDS)


@EACH_KIND
@given(bots=BOTS, rounds=ROUNDS)
def test_contract_keys_are_unique_and_fit_file_names(
    make: Callable[[int, int], Schedule], bots: int, rounds: int
) -> None:
    keys = [pairing.key for pairing in make(bots, rounds).all()]
    assert len(set(keys)) == len(keys)
    assert all(re.fullmatch(r"[\w.-]{1,64}", key) for key in keys)


@EACH_KIND
@given(bots=BOTS, rounds=ROUNDS)
def test_contract_players_are_two_of_the_bots(
    make: Callable[[int, int], Schedule], bots: int, rounds: int
) -> None:
    for pairing in make(bots, rounds).all():
        assert pairing.first != pairing.second
        assert {pairing.first, pairing.second} <= set(range(bots))
        assert 1 <= pairing.round <= rounds


@EACH_KIND
@given(bots=BOTS, rounds=ROUNDS, data=st.data())
def test_contract_due_is_what_was_not_played(
    make: Callable[[int, int], Schedule], bots: int, rounds: int, data: st.DataObject
) -> None:
    schedule = make(bots, rounds)
    everything = schedule.all()
    played = data.draw(st.sets(st.sampled_from([pairing.key for pairing in everything])))
    due = schedule.due(played)
    assert [pairing for pairing in everything if pairing.key not in played] == list(due)
    assert list(schedule.due(set())) == list(everything)
    assert list(schedule.due({pairing.key for pairing in everything})) == []
    # A new object, as after a crash, says the same; so do keys that nobody knows.
    assert list(make(bots, rounds).due(played | {"r999-unknown"})) == list(due)


@EACH_KIND
@given(bots=BOTS, rounds=ROUNDS)
def test_contract_more_rounds_change_no_key(
    make: Callable[[int, int], Schedule], bots: int, rounds: int
) -> None:
    """A tournament may be given more rounds later: what was played keeps its meaning."""
    short, long = make(bots, rounds).all(), make(bots, rounds + 1).all()
    assert list(short) == list(long)[: len(short)]


@given(BOTS, ROUNDS)
def test_every_pair_each_side_once_a_round(bots: int, rounds: int) -> None:
    games = RoundRobin(bots, rounds).all()
    assert len(games) == rounds * bots * (bots - 1)
    for number in range(1, rounds + 1):
        played = Counter((game.first, game.second) for game in games if game.round == number)
        assert played == Counter(permutations(range(bots), 2))


@given(BOTS)
def test_circle_method_gives_no_bot_two_pairs_on_a_day(bots: int) -> None:
    """A day is half of the bots' pairs: its games, both sides of each pair, come one after another."""
    games = RoundRobin(bots, 1).all()
    pairs = [frozenset((game.first, game.second)) for game in games[::2]]
    assert pairs == [frozenset((game.first, game.second)) for game in games[1::2]]
    a_day = bots // 2
    for start in range(0, len(pairs), a_day):
        busy = [bot for pair in pairs[start : start + a_day] for bot in pair]
        assert len(set(busy)) == len(busy) == 2 * a_day


def test_three_bots_by_hand() -> None:
    """By the circle method: 1 has the bye, then 2, then 3."""
    assert RoundRobin(3, 1).all() == [
        Pairing("r001-2v3", 1, 1, 2),
        Pairing("r001-3v2", 1, 2, 1),
        Pairing("r001-1v3", 1, 0, 2),
        Pairing("r001-3v1", 1, 2, 0),
        Pairing("r001-1v2", 1, 0, 1),
        Pairing("r001-2v1", 1, 1, 0),
    ]


def test_keys_are_stable() -> None:
    """Stores refer to these: they may never change."""
    assert [game.key for game in RoundRobin(2, 2).all()] == ["r001-1v2", "r001-2v1", "r002-1v2", "r002-2v1"]
    assert RoundRobin(12, 1).all()[0].key == "r001-01v12"
    assert RoundRobin(2, 1000).all()[-1].key == "r1000-2v1"
