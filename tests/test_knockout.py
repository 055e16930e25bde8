"""The knockout: seeding, byes, what decides a match, withdrawals, rulings, places."""

from collections.abc import Callable, Mapping, Sequence

import pytest

from tests.schedules import DRAW, FIRST, SECOND, VOID, bots, first_wins, met, play
from tournaments.schedule.formats.bracket import (
    Bracket,
    Match,
    MatchRules,
    MatchView,
    Outcome,
    matches_of,
    standard_order,
)
from tournaments.schedule.formats.knockout import Knockout
from tournaments.schedule.pairing import Entrant, History, Pairing, Result, round_under_way

# Seeding.

# Published brackets, top to bottom: 8 and 16 from the alliance bracket of the FIRST Robotics Competition
# (github.com/Team254/cheesy-arena, matchups 1,16,8,9,...), 32 as in several published tables.
PUBLISHED = {
    2: [1, 2],
    4: [1, 4, 2, 3],
    8: [1, 8, 4, 5, 2, 7, 3, 6],
    16: [1, 16, 8, 9, 4, 13, 5, 12, 2, 15, 7, 10, 3, 14, 6, 11],
    32: [
        *(1, 32, 16, 17, 8, 25, 9, 24, 4, 29, 13, 20, 5, 28, 12, 21),
        *(2, 31, 15, 18, 7, 26, 10, 23, 3, 30, 14, 19, 6, 27, 11, 22),
    ],
}

# A region of the NCAA's basketball tournament, top to bottom: the same matches in every round, drawn in
# another order.
NCAA = [1, 16, 8, 9, 5, 12, 4, 13, 6, 11, 3, 14, 7, 10, 2, 15]


@pytest.mark.parametrize("size", PUBLISHED)
def test_seeding_is_the_published_one(size: int) -> None:
    assert [seed + 1 for seed in standard_order(size)] == PUBLISHED[size]


def tree(order: Sequence[int]) -> object:
    """Who can meet whom in every round, without top and bottom."""
    if len(order) == 1:
        return order[0]
    half = len(order) // 2
    return frozenset((tree(order[:half]), tree(order[half:])))


def test_seeding_has_the_matches_of_the_ncaa() -> None:
    assert tree([seed + 1 for seed in standard_order(16)]) == tree(NCAA)
    assert tree(PUBLISHED[16][::-1]) == tree(NCAA)
    assert tree([1, 16, 8, 9, 5, 12, 3, 13, 6, 11, 4, 14, 7, 10, 2, 15]) != tree(NCAA)


def test_eight_bots_by_hand() -> None:
    schedule = Knockout(bots(8))
    results = play(schedule)
    assert met(schedule, results, 1) == [(0, 7), (3, 4), (1, 6), (2, 5)]
    assert met(schedule, results, 2) == [(0, 3), (1, 2)]
    assert met(schedule, results, 3) == [(0, 1), (2, 3)]
    assert schedule.places(History(results)) == {0: 1, 1: 2, 2: 3, 3: 4, 4: 5, 5: 5, 6: 5, 7: 5}
    assert schedule.conclusion(History(results)) == "{0} wins the knockout"


@pytest.mark.parametrize("count", range(2, 42))
def test_byes_go_to_the_best_seeds(count: int) -> None:
    schedule = Knockout(bots(count))
    size = 2
    while size < count:
        size *= 2
    results = play(schedule)
    first_round = {bot for pair in met(schedule, results, 1) for bot in pair}
    assert first_round == set(range(size - count, count))
    # Nobody has a second bye: in each later round, half of those that are left meet.
    left = size
    for number in range(2, round_under_way(schedule, History(results)) + 1):
        left //= 2
        expected = [(seed, left - 1 - seed) for seed in range(left // 2)]
        losers = [(2, 3)] if left == 2 and count > 3 else []
        assert sorted(met(schedule, results, number)) == sorted(expected + losers)
    places = schedule.places(History(results))
    assert [places[bot] for bot in range(count)] == [
        bot + 1 if bot < 4 else next(2**k + 1 for k in range(2, 7) if bot < 2 ** (k + 1))
        for bot in range(count)
    ]
    assert len(results) == 2 * matches_of(count, True) == schedule.total(History())


def test_random_seeding_is_drawn_from_the_seed() -> None:
    orders = {tuple(Knockout(bots(9), seed=seed, seeding="random").bracket.seeds) for seed in range(20)}
    assert len(orders) == 20
    assert all(sorted(order) == list(range(9)) for order in orders)
    # Never another one: tournaments that are under way rest on it.
    assert Knockout(bots(5), seed=1, seeding="random").bracket.seeds == RANDOM_SEEDS
    assert Knockout(bots(5), seed=1).bracket.seeds == [0, 1, 2, 3, 4]


RANDOM_SEEDS = [3, 0, 2, 4, 1]


def test_late_bots_are_ignored() -> None:
    with_late = Knockout([*bots(4), Entrant(since=2), *bots(1)])
    assert with_late.bracket.seeds == [0, 1, 2, 3, 5]
    assert all(4 not in (game.first, game.second) for game in with_late.pairings(History()))


def test_one_bot_wins_without_a_game() -> None:
    alone = Knockout(bots(1))
    assert not alone.pairings(History())
    assert alone.places(History()) == {0: 1}
    assert alone.conclusion(History()) == "{0} wins the knockout"


@pytest.mark.parametrize(
    ("wrong", "message"),
    [({"pairs": 0}, "pairs = 0"), ({"extra_pairs": -1}, "extra_pairs = -1"), ({"seeding": "elo"}, "'elo'")],
)
def test_wrong_parameters(wrong: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Knockout(bots(4), **wrong)  # type: ignore[arg-type]


# Keys and openings.


def test_every_pair_of_a_round_has_its_opening() -> None:
    schedule = Knockout(bots(4), pairs=2, extra_pairs=1, width=2)
    results = play(schedule, first_wins)
    keys = {game.key: game.opening for game in schedule.pairings(History(results)) if game.first == 0}
    first, second = ({f"{key}{leg}" for leg in ("", ".2", ".3")} for key in ("r001-01v04", "r002-01v02"))
    assert {key: keys[key] for key in sorted(keys)} == dict(
        zip(sorted(first) + sorted(second), range(6), strict=True)
    )


def test_order_of_play_is_pair_by_pair() -> None:
    schedule = Knockout(bots(4), pairs=2)
    assert [game.key for game in schedule.pairings(History())] == [
        *("r001-1v4", "r001-4v1", "r001-2v3", "r001-3v2"),
        *("r001-1v4.2", "r001-4v1.2", "r001-2v3.2", "r001-3v2.2"),
    ]


# What decides a match.


def the_match(pairs: int = 1, extra_pairs: int = 2) -> Match:
    """Bot 1 is the better seed, bot 0 the worse."""
    return Match(1, 1, 0, bots(2), MatchRules(pairs, extra_pairs))


def outcome(match: Match, results: Mapping[str, Result]) -> Outcome | None:
    return match.outcome(MatchView(results, results))


def test_points_decide() -> None:
    drawn = {"r001-2v1": FIRST, "r001-1v2": DRAW}
    assert outcome(the_match(), drawn) == Outcome(1, (0,), "points")
    assert outcome(the_match(), {"r001-2v1": SECOND, "r001-1v2": DRAW}) == Outcome(0, (1,), "points")
    assert outcome(the_match(), {"r001-2v1": SECOND}) is None


def test_points_go_before_margins() -> None:
    results = {"r001-2v1": Result(None, -40), "r001-1v2": Result(1, -1)}
    assert outcome(the_match(), results) == Outcome(1, (0,), "points")


def test_extra_pairs_one_after_another_until_one_leads() -> None:
    match = the_match()
    results: dict[str, Result] = {}
    for leg, behind in enumerate(("", ".2")):
        assert len(match.games(MatchView(results, results))) == leg + 1
        results[f"r001-2v1{behind}"] = FIRST
        assert len(match.games(MatchView(results, results))) == leg + 1
        results[f"r001-1v2{behind}"] = FIRST
    assert len(match.games(MatchView(results, results))) == 3
    assert outcome(match, results) is None
    results |= {"r001-2v1.3": SECOND, "r001-1v2.3": DRAW}
    assert outcome(match, results) == Outcome(0, (1,), "points")
    assert len(match.games(MatchView(results, results))) == 3


def test_a_lead_needs_no_extra_pair() -> None:
    results = {"r001-2v1": FIRST, "r001-1v2": SECOND}
    assert len(the_match().games(MatchView(results, results))) == 1


def level(margin: int) -> dict[str, Result]:
    """All three pairs level; the worse seed's margin summed up over the match."""
    keys = [f"r001-{two}{behind}" for behind in ("", ".2", ".3") for two in ("2v1", "1v2")]
    return dict.fromkeys(keys, Result(0, 5)) | {"r001-1v2.2": Result(0, 5 + margin)}


def test_margins_decide_if_all_pairs_are_level() -> None:
    assert outcome(the_match(), level(1)) == Outcome(0, (1,), "margin")
    assert outcome(the_match(), level(-1)) == Outcome(1, (0,), "margin")


def test_the_better_seed_goes_on_if_everything_is_level() -> None:
    assert outcome(the_match(), level(0)) == Outcome(1, (0,), "seed")


def test_without_extra_pairs() -> None:
    results = {"r001-2v1": Result(0, 3), "r001-1v2": Result(0, 4)}
    assert outcome(the_match(extra_pairs=0), results) == Outcome(0, (1,), "margin")


def test_void_games_give_nothing() -> None:
    results = {"r001-2v1": VOID, "r001-1v2": FIRST}
    assert outcome(the_match(), results) == Outcome(0, (1,), "points")
    # Neither points nor margin.
    results = {"r001-2v1": VOID, "r001-1v2": Result(None, 1)}
    assert outcome(the_match(extra_pairs=0), results) == Outcome(0, (1,), "margin")
    assert outcome(the_match(extra_pairs=0), dict.fromkeys(results, VOID)) == Outcome(1, (0,), "seed")


@pytest.mark.parametrize(
    ("rule", "sentence"),
    [
        (
            lambda game: Result(0, 2 if game.first else 1),
            "{1} wins the knockout, the final being level by the sum",
        ),
        (lambda game: DRAW, "{0} wins the knockout, the final being level in everything"),
    ],
)
def test_conclusion_tells_what_decided(rule: Callable[[Pairing], Result], sentence: str) -> None:
    schedule = Knockout(bots(2))
    assert schedule.conclusion(History()) == ""
    assert schedule.conclusion(History(play(schedule, rule))).startswith(sentence)


# Places.


def test_places_only_as_far_as_decided() -> None:
    schedule = Knockout(bots(8))
    results: dict[str, Result] = {}
    for key in ("r001-1v8", "r001-8v1"):
        assert schedule.places(History(results)) == {}
        results[key] = FIRST if key == "r001-1v8" else SECOND
    assert schedule.places(History(results)) == {7: 5}
    results = play(schedule, known=results, until_round=2)
    assert schedule.places(History(results)) == {4: 5, 5: 5, 6: 5, 7: 5}
    third = results | {"r003-3v4": SECOND, "r003-4v3": FIRST}
    assert schedule.places(History(third)) == {4: 5, 5: 5, 6: 5, 7: 5, 3: 3, 2: 4}
    final = results | {"r003-1v2": SECOND, "r003-2v1": FIRST}
    assert schedule.places(History(final)) == {4: 5, 5: 5, 6: 5, 7: 5, 1: 1, 0: 2}


def test_without_a_match_for_it_the_third_place_is_shared() -> None:
    schedule = Knockout(bots(8), third_place=False)
    results = play(schedule)
    assert len(results) == 14 == schedule.total(History())
    places = schedule.places(History(results))
    assert [places[bot] for bot in range(8)] == [1, 2, 3, 3, 5, 5, 5, 5]


def test_of_three_bots_the_loser_of_the_only_semi_final_is_third() -> None:
    schedule = Knockout(bots(3))
    results = play(schedule)
    assert sorted(results) == ["r001-2v3", "r001-3v2", "r002-1v2", "r002-2v1"]
    assert schedule.places(History(results)) == {0: 1, 1: 2, 2: 3}


def test_bracket_can_follow_other_rounds() -> None:
    bracket = Bracket([3, 1], bots(4), MatchRules(1, 1), first_round=5, first_opening=7)
    assert [(game.key, game.opening) for game in bracket.pairings(History())] == [
        ("r005-4v2", 7),
        ("r005-2v4", 7),
    ]
