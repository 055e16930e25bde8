"""Matchmaking on the practice ladder: new bots first, then whoever has met least and is about as strong."""

from collections import Counter
from itertools import combinations

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


def play_pair(tally: Tally, match: Match, winner: str | None = None) -> None:
    for first, second in ((match.first, match.second), (match.second, match.first)):
        won = None if winner is None else (0 if winner == first else 1)
        tally.add(first, second, won)


def play_pairs(tally: Tally, one: str, other: str, pairs: int, winner: str | None = None) -> None:
    for _ in range(pairs):
        play_pair(tally, Match(one, other, is_leisure=False), winner)


def test_nobody_plays_alone() -> None:
    assert next_match([], Tally()) is None
    assert next_match(field("a"), Tally()) is None
    assert next_match(field("a", "b"), Tally(), resting=["b"]) is None


def test_a_new_version_goes_first_and_meets_everybody() -> None:
    names = ["a", "b", "c", "d"]
    tally = Tally()
    for one, other in combinations(names, 2):
        play_pairs(tally, one, other, 6)
    met = []
    for _ in range(4):
        match = next_match(field(*names, "new"), tally)
        assert match is not None
        assert "new" in (match.first, match.second)
        met += [name for name in (match.first, match.second) if name != "new"]
        play_pair(tally, match)
    assert sorted(met) == names


def test_a_new_version_that_wins_meets_the_strong_next() -> None:
    names = ["weak", "middling", "strong"]
    tally = Tally()
    play_pairs(tally, "strong", "middling", 10, "strong")
    play_pairs(tally, "middling", "weak", 10, "middling")
    play_pairs(tally, "strong", "weak", 10, "strong")
    assert tally.rating("strong") > tally.rating("middling") > tally.rating("weak")
    for _ in range(12):
        match = next_match(field(*names, "new"), tally)
        assert match is not None
        play_pair(tally, match, "new" if "new" in (match.first, match.second) else None)
    assert tally.pairs("new", "strong") > tally.pairs("new", "weak")


def test_two_new_versions_do_not_wait_for_one_another() -> None:
    tally = Tally()
    play_pairs(tally, "a", "b", 3)
    first = next_match(field("a", "b", "new-1", "new-2"), tally)
    assert first is not None
    second = next_match(field("a", "b", "new-1", "new-2"), tally, [(first.first, first.second)])
    assert second is not None
    assert {first.first, first.second} != {second.first, second.second}


def test_enough_is_enough_and_then_there_is_leisure() -> None:
    tally = Tally()
    play_pairs(tally, "a", "b", ENOUGH_PAIRS - 1)
    assert next_match(field("a", "b"), tally) == Match("a", "b", is_leisure=False)
    play_pairs(tally, "a", "b", 1)
    match = next_match(field("a", "b"), tally)
    assert match is not None
    assert match.is_leisure
    # A newcomer ends the leisure.
    match = next_match(field("a", "b", "c"), tally)
    assert match is not None
    assert not match.is_leisure
    assert "c" in (match.first, match.second)


def test_bots_that_would_only_repeat_themselves_do_so_less_often() -> None:
    for contenders in (field("a", "b", openings=False), [*field("a"), *field("b", openings=False)]):
        tally = Tally()
        play_pairs(tally, "a", "b", ENOUGH_ALIKE - 1)
        match = next_match(contenders, tally)
        assert match is not None
        assert not match.is_leisure
        play_pairs(tally, "a", "b", 1)
        match = next_match(contenders, tally)
        assert match is not None
        assert match.is_leisure
    assert ENOUGH_ALIKE < ENOUGH_PAIRS


def test_pairs_that_are_being_played_count() -> None:
    under_way = [("a", "b")] * ENOUGH_PAIRS
    match = next_match(field("a", "b"), Tally(), under_way)
    assert match is not None
    assert match.is_leisure


def test_a_tally_counts_games_by_halves_of_pairs() -> None:
    tally = Tally()
    tally.add("b", "a", 0)
    assert tally.pairs("a", "b") == tally.pairs("b", "a") == 0.5
    assert tally.played("a") == tally.played("b") == 1
    assert tally.rating("b") == -tally.rating("a") > 0
    tally.add("a", "b", None)
    assert 0 < tally.rating("b") < 33


@given(
    st.lists(st.booleans(), min_size=2, max_size=7),
    st.integers(0, 3),
    st.randoms(use_true_random=False),
)
def test_everybody_meets_everybody_often_enough_in_the_end(
    openings: list[bool], stronger: int, dice: object
) -> None:
    """Whoever wins: until leisure begins, all match-ups were played as often as they should, never more."""
    contenders = [Candidate(f"bot-{number}", can) for number, can in enumerate(openings)]
    tally = Tally()
    met: Counter[frozenset[str]] = Counter()
    while not (match := next_match(contenders, tally)).is_leisure:  # type: ignore[union-attr]
        assert match is not None
        assert match.first != match.second
        met[frozenset((match.first, match.second))] += 1
        favourite = f"bot-{stronger}"
        play_pair(tally, match, favourite if favourite in (match.first, match.second) else None)
    for one, other in combinations(contenders, 2):
        wanted = ENOUGH_PAIRS if one.takes_openings and other.takes_openings else ENOUGH_ALIKE
        assert met[frozenset((one.name, other.name))] == wanted


@given(st.integers(2, 8), st.integers(1, 60))
def test_nobody_falls_behind_in_a_field_of_equals(size: int, pairs: int) -> None:
    contenders = field(*(f"bot-{number}" for number in range(size)))
    tally = Tally()
    for _ in range(pairs):
        match = next_match(contenders, tally)
        assert match is not None
        play_pair(tally, match)
    played = [tally.played(one.name) for one in contenders]
    assert max(played) - min(played) <= 4, "two pairs at most"
