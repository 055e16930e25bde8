"""The ladder: rounds of neighbours, climbs of new bots, withdrawals, rulings."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import pytest

from tests.support.schedules import number_of_calls, play
from tournaments.schedule.formats.ladder import Ladder, neighbours
from tournaments.schedule.pairing import Entrant, History, Pairing, Result, pair_of_games, round_under_way

Judge = Callable[[Pairing], Result]


def by_strength(*strengths: int) -> Judge:
    """The higher number wins, equal ones draw."""

    def judge(game: Pairing) -> Result:
        one, other = strengths[game.first], strengths[game.second]
        return Result(None if one == other else int(one < other))

    return judge


def played(ladder: Ladder, judge: Judge, results: Mapping[str, Result] = {}) -> History:
    return History(play(ladder, judge, results))


def played_from_round_1(
    field: Sequence[Entrant], strengths: Sequence[int], rounds: int
) -> tuple[Ladder, History]:
    """Play a round without withdrawals, then all rounds."""
    judge = by_strength(*strengths)
    first = Ladder([replace(entrant, until=None) for entrant in field], 1)
    ladder = Ladder(field, rounds)
    return ladder, played(ladder, judge, played(first, judge).results)


def matches(ladder: Ladder, history: History, number: int) -> list[tuple[int, int]]:
    """(lower, upper) of each match of a round."""
    games = [game for game in ladder.pairings(history) if game.round == number]
    return [(game.first, game.second) for game in games[:: 2 * ladder.pairs]]


def order(ladder: Ladder, history: History) -> list[int]:
    """The bots that play, from the top."""
    places = ladder.places(history)
    return sorted((bot for bot in places if ladder.entrants[bot].until is None), key=places.__getitem__)


HERE, NEW, GONE = Entrant(), Entrant(since=2), Entrant(until=1)


def entrants(count: int, *more: Entrant) -> Sequence[Entrant]:
    return [*[HERE] * count, *more]


def test_neighbours() -> None:
    assert neighbours("abcde", 1) == [("a", "b"), ("c", "d")]  # type: ignore[arg-type,comparison-overlap]
    assert neighbours([4, 2, 0, 1, 3], 2) == [(2, 0), (1, 3)]
    assert neighbours([4, 2], 2) == neighbours([4, 2], 1) == [(4, 2)]
    assert neighbours([4], 1) == neighbours([], 2) == []


def test_rounds_by_hand() -> None:
    """The strongest begins at the bottom of four and needs three matches to the top."""
    ladder, judge = Ladder(entrants(4), 4), by_strength(1, 2, 3, 4)
    history = played(ladder, judge)
    assert matches(ladder, history, 1) == [(1, 0), (3, 2)]
    assert matches(ladder, history, 2) == [(3, 0)], "1 3 | 0 2 became 1, 0, 3, 2"
    assert matches(ladder, history, 3) == [(3, 1), (2, 0)]
    assert matches(ladder, history, 4) == [(2, 1)]
    assert order(ladder, history) == [3, 2, 1, 0]


def test_as_many_rounds_as_bots_sort_the_ladder() -> None:
    """What is played is odd-even transposition sort, which needs no more rounds (Habermann, 1972)."""
    ladder = Ladder(entrants(9), 9)
    assert order(ladder, played(ladder, by_strength(*range(9)))) == list(range(8, -1, -1))


def test_a_level_match_changes_nothing() -> None:
    ladder = Ladder(entrants(4), 5, pairs=2)
    assert order(ladder, played(ladder, by_strength(1, 1, 1, 1))) == [0, 1, 2, 3]
    void = played(ladder, lambda _: Result(1, counts=False))
    assert order(ladder, void) == [0, 1, 2, 3]


def test_places_are_live() -> None:
    ladder = Ladder(entrants(4), 2)
    results: dict[str, Result] = {}
    assert ladder.places(History()) == {0: 1, 1: 2, 2: 3, 3: 4}
    for game in ladder.due(History())[2:]:
        assert order(ladder, History(results)) == [0, 1, 2, 3]
        results[game.key] = by_strength(0, 1, 2, 3)(game)
    assert order(ladder, History(results)) == [0, 1, 3, 2]


def version_of(bot: int, since: int = 2, until: int | None = None) -> Entrant:
    return Entrant(since=since, until=until, replaces=bot)


STRENGTHS = (90, 80, 70, 60)
CLIMBS: dict[str, tuple[Sequence[Entrant], Sequence[int], dict[int, list[tuple[int, int]]], list[int]]] = {
    "a new bot climbs from the bottom before the others play": (
        entrants(5, NEW),
        (9, 8, 7, 6, 5, 75),
        {1: [(1, 0), (3, 2)], 2: [(5, 4), (5, 3), (5, 2), (5, 1), (5, 0), (1, 0), (3, 2)]},
        [5, 0, 1, 2, 3, 4],
    ),
    "two that met in a climb do not meet again in the same round": (
        entrants(4, NEW),
        (*STRENGTHS, 65),
        {2: [(4, 3), (4, 2), (2, 1)], 3: [(1, 0), (4, 2)]},
        [0, 1, 2, 4, 3],
    ),
    "a new bot stays below an equal one": (
        entrants(4, NEW),
        (*STRENGTHS, 70),
        {2: [(4, 3), (4, 2), (2, 1)]},
        [0, 1, 2, 4, 3],
    ),
    "a new bot stays at the bottom": (
        entrants(4, NEW),
        (*STRENGTHS, 60),
        {2: [(4, 3), (2, 1)]},
        [0, 1, 2, 3, 4],
    ),
    "a new version takes the place of the old one and climbs": (
        [HERE, HERE, GONE, HERE, version_of(2)],
        (*STRENGTHS, 85),
        {2: [(4, 1), (4, 0)]},
        [0, 4, 1, 3],
    ),
    "a worse version of the first bot sinks": (
        [GONE, HERE, HERE, HERE, version_of(0)],
        (*STRENGTHS, 0),
        {2: [(1, 4), (2, 4), (3, 4)]},
        [1, 2, 3, 4],
    ),
    "a worse version in the middle tries to climb first": (
        [HERE, GONE, HERE, HERE, version_of(1)],
        (*STRENGTHS, 0),
        {2: [(4, 0), (2, 4), (3, 4)]},
        [0, 2, 3, 4],
    ),
    "the place of a withdrawn bot is kept for a later version": (
        [HERE, GONE, HERE, HERE, version_of(1, since=4)],
        (*STRENGTHS, 75),
        {2: [(3, 2)], 3: [(2, 0)], 4: [(4, 0), (2, 4)]},
        [0, 4, 2, 3],
    ),
    "a replaced bot that still plays keeps its place": (
        entrants(3, version_of(0)),
        (9, 8, 7, 6),
        {2: [(3, 2)]},
        [0, 1, 2, 3],
    ),
    "the later of two new bots waits for the one above it, then overtakes it": (
        entrants(2, NEW, NEW),
        (90, 80, 85, 95),
        {2: [(2, 1), (2, 0), (3, 1), (3, 2)]},
        [3, 0, 2, 1],
    ),
    "two new bots are placed side by side": (
        [GONE, HERE, HERE, HERE, version_of(0), NEW],
        (*STRENGTHS, 95, 75),
        {2: [(1, 4), (5, 3)]},
        [4, 1, 5, 2, 3],
    ),
    "a bot that withdraws while it sinks sinks no more": (
        [GONE, HERE, HERE, HERE, version_of(0, until=2)],
        (*STRENGTHS, 0),
        {2: [(1, 4), (2, 1)]},
        [1, 2, 3],
    ),
    # While bot 2 is busy above, bot 4 passes bot 3; both then go as high as they can.
    "a climb goes on after a defeat from below": (
        [HERE, HERE, NEW, NEW, NEW],
        (90, 60, 50, 70, 80),
        {2: [(2, 1), (4, 3)]},
        [0, 4, 3, 1, 2],
    ),
}


@pytest.mark.parametrize(("field", "strengths", "begin", "last_order"), CLIMBS.values(), ids=CLIMBS)
def test_new_bots_are_placed_first(
    field: Sequence[Entrant],
    strengths: Sequence[int],
    begin: dict[int, list[tuple[int, int]]],
    last_order: list[int],
) -> None:
    """The first matches of some rounds, and the order after the last of them."""
    ladder, history = played_from_round_1(field, strengths, max(begin))
    for number, expected in begin.items():
        assert matches(ladder, history, number)[: len(expected)] == expected
    assert order(ladder, history) == last_order


def test_one_match_of_a_climb_is_due_at_a_time_and_nothing_else() -> None:
    ladder, judge = Ladder(entrants(4, Entrant(since=2)), 2), by_strength(4, 3, 2, 1, 5)
    results = dict(played(Ladder(entrants(4), 1), judge).results)
    for opponent in (3, 2, 1, 0):
        due = ladder.due(History(results))
        assert [{game.first, game.second} for game in due] == [{4, opponent}] * 2
        results |= {game.key: judge(game) for game in due}


def test_who_withdraws_in_the_middle_of_its_climb_climbs_no_more() -> None:
    judge = by_strength(4, 3, 2, 1, 5)
    playing = Ladder(entrants(4, Entrant(since=2)), 3)
    results = dict(played(Ladder(entrants(4), 1), judge).results)
    results |= {game.key: judge(game) for game in playing.due(History(results))}
    challenge = playing.due(History(results))
    assert round_under_way(playing, History(results)) == 2
    left = Ladder(entrants(4, Entrant(since=2, until=2)), 3)
    assert [game for game in left.pairings(History(results)) if 4 in (game.first, game.second)][
        2:4
    ] == challenge
    history = played(left, judge, results)
    assert not {game.key for game in challenge} & history.results.keys()
    assert order(left, history) == [0, 1, 2, 3]
    assert left.places(history)[4] == 5
    assert left.total(history) == len(history.results)


def test_a_game_to_be_played_again_is_waited_for() -> None:
    judge = by_strength(4, 3, 2, 1)
    ladder = Ladder(entrants(4), 3)
    results = dict(played(Ladder(entrants(4), 2), judge).results)
    third = ladder.due(History(results))
    old = results.pop("r001-1v2")
    assert ladder.due(History(results, {"r001-1v2": [(2, old)]}))[0].key == "r001-1v2"
    assert round_under_way(ladder, History(results, {"r001-1v2": [(2, old)]})) == 2
    again = History(results | {"r001-1v2": old}, {"r001-1v2": [(2, old)]})
    assert ladder.due(again) == third


def test_the_work_for_a_round_after_a_ruling_does_not_grow_with_the_number_of_rounds() -> None:
    judge = by_strength(4, 3, 2, 1)

    def calls(rounds: int) -> int:
        ladder = Ladder(entrants(4), rounds)
        results = played(ladder, judge).results
        ruled = History(results, {"r001-1v2": [(1, results["r001-1v2"])]})
        assert ladder.due(ruled) == []
        return number_of_calls(lambda: ladder.pairings(ruled))

    assert calls(160) < 3 * calls(80)


def test_one_that_withdraws_is_passed_over() -> None:
    """Bot 2 wins one game of the match, and goes on to bot 0."""
    judge = by_strength(90, 80, 85)
    playing = Ladder(entrants(2, Entrant(since=2)), 2)
    results = dict(played(Ladder(entrants(2), 1), judge).results)
    game, cancelled = playing.due(History(results))
    results[game.key] = judge(game)
    left = Ladder([Entrant(), Entrant(until=2), Entrant(since=2)], 2)
    assert left.due(History(results)) == [*_match(2, 2, 0)]
    history = played(left, judge, results)
    assert cancelled.key not in history.results
    assert order(left, history) == [0, 2]
    both = Ladder([Entrant(), Entrant(until=2), Entrant(since=2, until=2)], 2)
    assert {game.key for game in both.pairings(history)} >= history.results.keys()


def _match(number: int, lower: int, upper: int) -> tuple[Pairing, ...]:
    return pair_of_games(number, lower, upper, 1)


def test_a_match_cut_short_moves_nobody() -> None:
    ladder = Ladder([Entrant(until=1), *entrants(3)], 1)
    results = {"r001-2v1": Result(0)}
    assert ladder.due(History(results)) == [*_match(1, 3, 2)]
    back = Ladder([Entrant(until=1), *entrants(3), Entrant(since=2, replaces=0)], 2)
    history = played(back, by_strength(9, 8, 7, 6, 5), results)
    assert matches(back, history, 2)[0] == (1, 4), "the new version has the first place to defend"


def test_a_ruling_moves_bots_only_while_its_round_is_under_way() -> None:
    judge = by_strength(9, 8, 7, 6)
    ladder = Ladder(entrants(4), 3)
    first = ladder.due(History())[:2]
    results = {game.key: judge(game) for game in ladder.due(History())}
    turned = results | {game.key: Result(1 - (results[game.key].winner or 0)) for game in first}
    in_time = History(turned, {game.key: [(1, results[game.key])] for game in first})
    assert order(ladder, in_time) == [1, 0, 2, 3]
    too_late = History(turned, {game.key: [(2, results[game.key])] for game in first})
    assert order(ladder, too_late) == [0, 1, 2, 3]
    assert ladder.due(too_late) == ladder.due(History(results))


def test_a_first_result_by_ruling_lets_a_climb_go_on() -> None:
    judge = by_strength(4, 3, 2, 1, 5)
    ladder = Ladder(entrants(4, Entrant(since=2)), 2)
    results = dict(played(Ladder(entrants(4), 1), judge).results)
    due = ladder.due(History(results))
    ruled = History(
        results | {game.key: judge(game) for game in due}, {game.key: [(2, None)] for game in due}
    )
    assert {game.second for game in ladder.due(ruled)} == {2, 4}


def test_total_knows_the_ordinary_rounds() -> None:
    ladder = Ladder(entrants(5), 4, pairs=3)
    assert ladder.total(History()) == 4 * 2 * 6
    assert len(played(ladder, by_strength(1, 2, 3, 4, 5)).results) == 48
