"""The knockout: seeding, byes, decisions of matches, places, withdrawals, rulings."""

from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest

from tests.support.schedules import (
    DRAW,
    FIRST,
    SECOND,
    VOID,
    better_wins,
    bots,
    first_wins,
    history_of,
    met,
    play,
)
from tournaments.schedule.formats.bracket import (
    Match,
    MatchRules,
    MatchView,
    Outcome,
    matches_of,
    standard_order,
)
from tournaments.schedule.formats.knockout import Knockout
from tournaments.schedule.pairing import History, Pairing, Result, round_under_way

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


@pytest.mark.parametrize("size", PUBLISHED)
def test_seeding_is_the_published_one(size: int) -> None:
    assert [seed + 1 for seed in standard_order(size)] == PUBLISHED[size]


@pytest.mark.parametrize("count", [2, 3, 4, 5, 7, 8, 9, 13, 16, 17, 33, 41])
def test_byes_go_to_the_best_seeds(count: int) -> None:
    schedule = Knockout(bots(count))
    size = 2
    while size < count:
        size *= 2
    results = play(schedule)
    first_round = {bot for pair in met(schedule, results, 1) for bot in pair}
    assert first_round == set(range(size - count, count))
    # No bot has a second bye: in each later round, half of the remaining bots meet.
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


def test_one_bot_wins_without_a_game() -> None:
    alone = Knockout(bots(1))
    assert not alone.pairings(History())
    assert alone.places(History()) == {0: 1}
    assert alone.conclusion(History()) == "{0} wins the knockout"


def test_random_seeding_is_drawn_from_the_seed() -> None:
    orders = {tuple(Knockout(bots(9), seed=seed, seeding="random").bracket.seeds) for seed in range(20)}
    assert len(orders) == 20
    assert all(sorted(order) == list(range(9)) for order in orders)
    # Tournaments that are under way depend on this order.
    assert Knockout(bots(5), seed=1, seeding="random").bracket.seeds == [3, 0, 2, 4, 1]
    assert Knockout(bots(5), seed=1).bracket.seeds == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [({"pairs": 0}, "pairs = 0"), ({"extra_pairs": -1}, "extra_pairs = -1"), ({"seeding": "elo"}, "'elo'")],
)
def test_wrong_parameters(wrong: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Knockout(bots(4), **wrong)  # type: ignore[arg-type]


# Keys and openings.


def test_every_pair_of_a_round_has_its_opening() -> None:
    """The games of a round are played pair by pair."""
    schedule = Knockout(bots(4), pairs=2, extra_pairs=1, width=2)
    assert [game.key for game in schedule.pairings(History())] == [
        *("r001-01v04", "r001-04v01", "r001-02v03", "r001-03v02"),
        *("r001-01v04.2", "r001-04v01.2", "r001-02v03.2", "r001-03v02.2"),
    ]
    games = schedule.pairings(History(play(schedule, first_wins)))
    openings = [game.opening for game in games if (game.first, game.second) in ((0, 3), (0, 1))]
    assert openings == list(range(6))


# What decides a match.

ONE, BACK = "r001-2v1", "r001-1v2"
"""The games of bots 0 and 1, where bot 1 is the better seed."""


def the_match(extra_pairs: int = 2) -> Match:
    return Match(1, 1, 0, bots(2), MatchRules(1, extra_pairs))


def outcome(match: Match, results: Mapping[str, Result]) -> Outcome | None:
    return match.outcome(MatchView(results, results))


def level(margin: int) -> dict[str, Result]:
    """All three pairs level; the worse seed's margin summed up over the match."""
    keys = [f"{game}{behind}" for behind in ("", ".2", ".3") for game in (ONE, BACK)]
    return dict.fromkeys(keys, Result(0, 5)) | {f"{BACK}.2": Result(0, 5 + margin)}


BETTER, WORSE = (1, (0,)), (0, (1,))


@pytest.mark.parametrize(
    ("extra_pairs", "results", "expected"),
    [
        (2, {ONE: FIRST, BACK: DRAW}, (*BETTER, "points")),
        (2, {ONE: SECOND, BACK: DRAW}, (*WORSE, "points")),
        (2, {ONE: SECOND}, None),
        (2, {ONE: Result(None, -40), BACK: Result(1, -1)}, (*BETTER, "points")),
        (2, level(1), (*WORSE, "margin")),
        (2, level(-1), (*BETTER, "margin")),
        (2, level(0), (*BETTER, "seed")),
        (0, {ONE: Result(0, 3), BACK: Result(0, 4)}, (*WORSE, "margin")),
        (2, {ONE: VOID, BACK: FIRST}, (*WORSE, "points")),
        (0, {ONE: VOID, BACK: Result(None, 1)}, (*WORSE, "margin")),
        (0, {ONE: VOID, BACK: VOID}, (*BETTER, "seed")),
    ],
)
def test_points_then_margins_then_seeds_decide(
    extra_pairs: int, results: dict[str, Result], expected: tuple[object, ...] | None
) -> None:
    assert outcome(the_match(extra_pairs), results) == expected


@pytest.mark.parametrize(
    ("results", "points"),
    [
        ({}, {}),
        ({ONE: FIRST}, {1: 1.0, 0: 0.0}),
        ({ONE: SECOND}, {1: 0.0, 0: 1.0}),
        ({ONE: FIRST, BACK: DRAW}, {1: 1.5, 0: 0.5}),
        ({ONE: FIRST, BACK: FIRST}, {1: 1.0, 0: 1.0}),
        ({ONE: VOID, BACK: FIRST}, {1: 0.0, 0: 1.0}),
    ],
)
def test_points_of_a_match_are_those_of_its_games_so_far(
    results: dict[str, Result], points: dict[int, float]
) -> None:
    assert the_match().points(MatchView(results, results)) == points


def test_extra_pairs_follow_one_after_another_until_one_bot_leads() -> None:
    match = the_match()
    results: dict[str, Result] = {}
    for leg, behind in enumerate(("", ".2")):
        assert len(match.games(MatchView(results, results))) == leg + 1
        results[f"{ONE}{behind}"] = FIRST
        assert len(match.games(MatchView(results, results))) == leg + 1
        results[f"{BACK}{behind}"] = FIRST
    assert len(match.games(MatchView(results, results))) == 3
    assert outcome(match, results) is None
    results |= {f"{ONE}.3": SECOND, f"{BACK}.3": DRAW}
    assert outcome(match, results) == (*WORSE, "points")
    assert len(match.games(MatchView(results, results))) == 3
    decided = {ONE: FIRST, BACK: SECOND}
    assert len(the_match().games(MatchView(decided, decided))) == 1


@pytest.mark.parametrize(
    ("rule", "sentence"),
    [
        (
            lambda game: Result(0, 2 if game.first else 1),
            "{1} wins the knockout: the final was level on points, and the sum",
        ),
        (lambda game: DRAW, "{0} wins the knockout: the final was level in everything, and the better seed"),
    ],
)
def test_conclusion_names_the_criterion(rule: Callable[[Pairing], Result], sentence: str) -> None:
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


@pytest.mark.parametrize("third_place", [True, False])
@pytest.mark.parametrize("count", [5, 8])
def test_bots_that_are_still_in_come_first_at_every_moment(count: int, third_place: bool) -> None:
    schedule = Knockout(bots(count), third_place=third_place)
    results: dict[str, Result] = {}
    while due := schedule.due(History(results)):
        results[due[0].key] = better_wins(due[0])
        history = History(results)
        order, places = schedule.standing_order(history), schedule.places(history)
        assert places.items() <= order.items()
        still_in = {bot for game in schedule.due(history) for bot in (game.first, game.second)}
        if still_in:
            assert set(order) == set(range(count))
            out = [order[bot] for bot in places if places[bot] > 4]
            assert max(order[bot] for bot in still_in) < min(out, default=5)
    assert schedule.standing_order(History(results)) == schedule.places(History(results))


def test_without_a_match_for_it_the_third_place_is_shared() -> None:
    schedule = Knockout(bots(8), third_place=False)
    results = play(schedule)
    assert len(results) == 14 == schedule.total(History())
    places = schedule.places(History(results))
    assert [places[bot] for bot in range(8)] == [1, 2, 3, 3, 5, 5, 5, 5]


# Withdrawals.


def test_unplayed_games_of_a_bot_that_withdrew_are_not_due_and_the_opponent_goes_on() -> None:
    history = History({"r001-1v4": FIRST})
    schedule = Knockout(bots(4, b0=1))
    assert [game.key for game in schedule.due(history)] == ["r001-2v3", "r001-3v2"]
    assert "r001-4v1" in [game.key for game in schedule.pairings(history)]
    results = play(schedule, known=history.results)
    assert met(schedule, results, 2) == [(1, 3)]  # bot 0 is not there to play for the third place
    assert schedule.places(History(results)) == {1: 1, 3: 2, 2: 3, 0: 4}
    assert schedule.total(History(results)) == len(results) == 5


def test_a_match_that_was_decided_stays_decided() -> None:
    """Bot 0 won, then withdrew while the other match was under way: its opponent in the final goes on."""
    results = {"r001-1v4": FIRST, "r001-4v1": SECOND}
    schedule = Knockout(bots(4, b0=1))
    assert schedule.places(History(results)) == {}
    results = play(schedule, known=results)
    assert met(schedule, results, 2) == [(2, 3)]
    assert schedule.places(History(results)) == {1: 1, 0: 2, 2: 3, 3: 4}
    assert schedule.conclusion(History(results)) == (
        "{1} wins the knockout: it had no opponent at the end of the final"
    )


@pytest.mark.parametrize(
    ("until", "places"),
    [
        # Bot 3 withdrew before the first round.
        ({"b3": 0}, {0: 1, 1: 2, 2: 3, 3: 4}),
        # Bots 2 and 3 withdrew from their match for the third place, and share it.
        ({"b2": 2, "b3": 2}, {0: 1, 1: 2, 2: 3, 3: 3}),
        # Both finalists withdrew.
        ({"b0": 2, "b1": 2}, {0: 2, 1: 2, 2: 3, 3: 4}),
    ],
)
def test_places_after_withdrawals(until: dict[str, int], places: dict[int, int]) -> None:
    results = play(Knockout(bots(4)), until_round=1) if until != {"b3": 0} else {}
    schedule = Knockout(bots(4, **until))
    assert schedule.places(History(play(schedule, known=results))) == places


def test_if_both_bots_of_a_match_withdraw_neither_goes_on() -> None:
    schedule = Knockout(bots(8, b0=1, b7=1))
    results = play(schedule)
    assert met(schedule, results, 2) == [(1, 2)]
    assert met(schedule, results, 3) == [(1, 3)]  # bot 3 had no opponent in the semi-final
    assert schedule.places(History(results)) == {1: 1, 3: 2, 2: 3, 0: 5, 7: 5, 4: 5, 5: 5, 6: 5}


def test_if_both_finalists_withdraw_nobody_wins() -> None:
    schedule = Knockout(bots(4))
    results = play(schedule, until_round=1)
    gone = replace(schedule, entrants=bots(4, b0=2, b1=2))
    assert gone.conclusion(History(results)) == "nobody wins the knockout: those who could have withdrew"
    assert gone.places(History(results)) == {0: 2, 1: 2}


def test_a_walkover_stands_when_its_winner_withdraws_later() -> None:
    """Bot 7 went on because bot 0 withdrew; that it withdraws in the next round changes no match there."""
    schedule = Knockout(bots(8, b0=1))
    results = play(schedule, until_round=1)
    assert met(schedule, results, 2) == [(3, 7), (1, 2)]
    later = replace(schedule, entrants=bots(8, b0=1, b7=2))
    assert met(later, results, 2) == [(3, 7), (1, 2)]
    assert met(later, play(later, known=results), 3) == [(1, 3)]


def test_forecast_knows_of_withdrawals() -> None:
    assert Knockout(bots(8)).total(History()) == 16
    assert Knockout(bots(8), third_place=False, pairs=3).total(History()) == 42
    assert Knockout(bots(8, b0=1, b7=1)).total(History()) == 2 * (3 + 1 + 1)
    # Bot 0 won its match of the first round before it withdrew: a semi-final falls out, and its third place.
    won = {"r001-1v8": FIRST, "r001-8v1": SECOND}
    assert Knockout(bots(8)).total(History(won)) == 16
    assert Knockout(bots(8, b0=1)).total(History(won)) == 2 * (4 + 1 + 1)


# Rulings.


def test_ruling_before_the_next_round_is_paired_changes_who_goes_on() -> None:
    schedule = Knockout(bots(4))
    results = {"r001-1v4": FIRST, "r001-4v1": DRAW, "r001-2v3": FIRST}
    history = history_of(results, ("r001-1v4", 1, SECOND))
    history = History({**play(schedule, known=history.results), **history.results}, history.earlier)
    assert met(schedule, history.results, 2) == [(1, 3), (0, 2)]


@pytest.mark.parametrize("ruled", [SECOND, VOID, None], ids=["other way", "void", "again"])
def test_later_ruling_keeps_the_rounds_that_were_paired(ruled: Result | None) -> None:
    schedule = Knockout(bots(8))
    results = play(schedule, until_round=2)
    before = schedule.pairings(History(results))
    assert round_under_way(schedule, History(results)) == 3
    rulings = [(key, 3, ruled) for key in ("r001-1v8", "r002-1v4", "r002-2v3")]
    history = history_of(results, *rulings)
    assert schedule.pairings(history) == before
    again = {game.key for game in schedule.due(history)} - {
        game.key for game in schedule.due(History(results))
    }
    assert again == ({key for key, _, _ in rulings} if ruled is None else set())
    # Played again, they change nothing of that either.
    history = History(results | dict.fromkeys(again, SECOND), history.earlier)
    assert schedule.pairings(history) == before


def test_ruling_on_the_final_changes_its_winner() -> None:
    schedule = Knockout(bots(2))
    results = play(schedule)
    assert schedule.conclusion(History(results)).startswith("{0}")
    history = history_of(results, ("r001-1v2", 1, SECOND), ("r001-2v1", 1, FIRST))
    assert schedule.conclusion(history).startswith("{1}")
    assert not schedule.due(history)


def test_ruling_may_make_an_extra_pair_necessary() -> None:
    schedule = Knockout(bots(2))
    results = play(schedule)
    history = history_of(results, ("r001-1v2", 1, SECOND))
    assert [game.key for game in schedule.due(history)] == ["r001-1v2.2", "r001-2v1.2"]
    assert schedule.conclusion(history) == ""


def test_extra_pair_that_was_given_stays_whatever_is_ruled() -> None:
    schedule = Knockout(bots(2))
    results = {"r001-1v2": FIRST, "r001-2v1": FIRST}
    history = history_of(results, ("r001-2v1", 1, SECOND))
    assert [game.key for game in schedule.due(history)] == ["r001-1v2.2", "r001-2v1.2"]
    history = history_of(results | {"r001-1v2.2": FIRST}, ("r001-1v2", 1, None))
    assert [game.key for game in schedule.due(history)] == ["r001-1v2", "r001-2v1.2"]


def test_extra_pair_that_a_ruling_made_necessary_stays_once_it_was_begun() -> None:
    schedule = Knockout(bots(2))
    results = play(schedule)
    rulings = [
        ("r001-1v2", 1, SECOND),
        ("r001-2v1", 1, FIRST),
    ]  # the first makes it level, both turn it round
    assert not schedule.due(history_of(results, *rulings))
    history = history_of(results | {"r001-1v2.2": FIRST}, *rulings)
    assert [game.key for game in schedule.due(history)] == ["r001-2v1.2"]
