"""Matchmaking on the practice ladder: new bots first, then opponents of like strength that have met least."""

from collections import Counter
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tournaments.server.practice.matchmaking import (
    ENOUGH_ALIKE,
    ENOUGH_PAIRS,
    Candidate,
    Match,
    Tally,
    next_match,
)


def field(*names: str, openings: bool = True) -> list[Candidate]:
    return [Candidate(name, openings) for name in names]


def chosen(
    candidates: list[Candidate], tally: Tally, under_way: list[tuple[str, str]] | None = None
) -> Match:
    match = next_match(candidates, tally, under_way or [])
    assert match is not None
    return match


def add_pairs(tally: Tally, one: str, other: str, pairs: int = 1, winner: str | None = None) -> None:
    for first, second in ((one, other), (other, one)) * pairs:
        tally.add(first, second, None if winner is None else int(winner != first))


def test_nobody_plays_alone() -> None:
    for candidates, resting in ((field(), []), (field("a"), []), (field("a", "b"), ["b"])):
        assert next_match(candidates, Tally(), resting=resting) is None


def test_a_new_version_goes_first_and_meets_everybody() -> None:
    names = ["a", "b", "c", "d"]
    tally = Tally()
    for one, other in combinations(names, 2):
        add_pairs(tally, one, other, 6)
    met = []
    for _ in range(4):
        match = chosen(field(*names, "new"), tally)
        (opponent,) = {match.first, match.second} - {"new"}
        met.append(opponent)
        add_pairs(tally, match.first, match.second)
    assert sorted(met) == names


def test_a_new_version_that_wins_meets_the_strong_next() -> None:
    names = ["weak", "middling", "strong"]
    tally = Tally()
    for better, worse in (("strong", "middling"), ("middling", "weak"), ("strong", "weak")):
        add_pairs(tally, better, worse, 10, better)
    assert tally.rating("strong") > tally.rating("middling") > tally.rating("weak")
    for _ in range(12):
        match = chosen(field(*names, "new"), tally)
        winner = "new" if "new" in (match.first, match.second) else None
        add_pairs(tally, match.first, match.second, 1, winner)
    assert tally.pairs("new", "strong") > tally.pairs("new", "weak")


def test_two_new_versions_do_not_wait_for_each_other() -> None:
    tally = Tally()
    add_pairs(tally, "a", "b", 3)
    candidates = field("a", "b", "new-1", "new-2")
    first = chosen(candidates, tally)
    second = chosen(candidates, tally, [(first.first, first.second)])
    assert {first.first, first.second} != {second.first, second.second}


@pytest.mark.parametrize(
    ("candidates", "enough"),
    [
        (field("a", "b"), ENOUGH_PAIRS),
        (field("a", "b", openings=False), ENOUGH_ALIKE),
        ([*field("a"), *field("b", openings=False)], ENOUGH_ALIKE),
    ],
)
def test_after_enough_pairs_there_is_leisure_until_a_new_version_comes(
    candidates: list[Candidate], enough: int
) -> None:
    tally = Tally()
    add_pairs(tally, "a", "b", enough - 1)
    assert chosen(candidates, tally) == Match("a", "b", is_leisure=False)
    assert chosen(candidates, tally, [("a", "b")]).is_leisure, "pairs that are being played count"
    add_pairs(tally, "a", "b")
    assert chosen(candidates, tally).is_leisure
    match = chosen([*candidates, *field("c")], tally)
    assert not match.is_leisure
    assert "c" in (match.first, match.second)


def test_a_tally_counts_games_as_halves_of_pairs() -> None:
    tally = Tally()
    tally.add("b", "a", 0)
    assert tally.pairs("a", "b") == tally.pairs("b", "a") == 0.5
    assert tally.played("a") == tally.played("b") == 1
    assert tally.rating("b") == -tally.rating("a") > 0
    tally.add("a", "b", None)
    assert 0 < tally.rating("b") < 33


@given(st.lists(st.booleans(), min_size=2, max_size=7), st.integers(0, 3))
def test_each_match_up_is_played_as_often_as_it_should_be(openings: list[bool], stronger: int) -> None:
    """Until leisure begins, and with any winners."""
    candidates = [Candidate(f"bot-{number}", can) for number, can in enumerate(openings)]
    tally = Tally()
    met: Counter[frozenset[str]] = Counter()
    while not (match := chosen(candidates, tally)).is_leisure:
        assert match.first != match.second
        met[frozenset((match.first, match.second))] += 1
        winner = f"bot-{stronger}" if f"bot-{stronger}" in (match.first, match.second) else None
        add_pairs(tally, match.first, match.second, 1, winner)
    for one, other in combinations(candidates, 2):
        wanted = ENOUGH_PAIRS if one.takes_openings and other.takes_openings else ENOUGH_ALIKE
        assert met[frozenset((one.name, other.name))] == wanted


@given(st.integers(2, 8), st.integers(1, 60))
def test_nobody_falls_behind_in_a_field_of_equals(size: int, pairs: int) -> None:
    candidates = field(*(f"bot-{number}" for number in range(size)))
    tally = Tally()
    for _ in range(pairs):
        match = chosen(candidates, tally)
        add_pairs(tally, match.first, match.second)
    played = [tally.played(one.name) for one in candidates]
    assert max(played) - min(played) <= 4, "two pairs at most"
