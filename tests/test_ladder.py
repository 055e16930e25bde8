"""The ladder."""

from collections.abc import Callable, Sequence

from tournaments.schedule.formats.ladder import Ladder, neighbours
from tournaments.schedule.pairing import Entrant, History, Pairing, Result, pair_of_games, round_under_way

Judge = Callable[[Pairing], Result]


def by_strength(*strengths: int) -> Judge:
    """The higher number wins, equal ones draw."""

    def judge(game: Pairing) -> Result:
        one, other = strengths[game.first], strengths[game.second]
        return Result(None if one == other else int(one < other))

    return judge


def played(ladder: Ladder, judge: Judge, results: dict[str, Result] | None = None) -> History:
    results = dict(results or {})
    while due := ladder.due(History(results)):
        results |= {game.key: judge(game) for game in due}
    return History(results)


def matches(ladder: Ladder, history: History, number: int) -> list[tuple[int, int]]:
    """(lower, upper) of each match of a round."""
    games = [game for game in ladder.pairings(history) if game.round == number]
    return [(game.first, game.second) for game in games[:: 2 * ladder.pairs]]


def order(ladder: Ladder, history: History) -> list[int]:
    """The bots that play, from the top."""
    places = ladder.places(history)
    return sorted((bot for bot in places if ladder.entrants[bot].until is None), key=places.__getitem__)


def entrants(count: int, *more: Entrant) -> Sequence[Entrant]:
    return [*[Entrant()] * count, *more]


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


def test_a_new_bot_climbs_from_the_bottom_before_the_others_play() -> None:
    ladder = Ladder(entrants(5, Entrant(since=2)), 2)
    history = played(ladder, by_strength(9, 8, 7, 6, 5, 75))
    assert matches(ladder, history, 1) == [(1, 0), (3, 2)]
    assert matches(ladder, history, 2)[:5] == [(5, 4), (5, 3), (5, 2), (5, 1), (5, 0)]
    assert matches(ladder, history, 2)[5:] == [(1, 0), (3, 2)]
    assert order(ladder, history) == [5, 0, 1, 2, 3, 4]


def test_two_that_met_in_a_climb_do_not_meet_again_in_the_same_round() -> None:
    """The ladder is then 0 1 2 4 3: in an even round, 1 meets 2, and 4 would meet 3 again."""
    ladder = Ladder(entrants(4, Entrant(since=2)), 3)
    history = played(ladder, by_strength(90, 80, 70, 60, 65))
    assert matches(ladder, history, 2) == [(4, 3), (4, 2), (2, 1)]
    assert matches(ladder, history, 3) == [(1, 0), (4, 2)]


def test_one_match_of_a_climb_is_due_at_a_time_and_nothing_else() -> None:
    ladder, judge = Ladder(entrants(4, Entrant(since=2)), 2), by_strength(4, 3, 2, 1, 5)
    results = dict(played(Ladder(entrants(4), 1), judge).results)
    for opponent in (3, 2, 1, 0):
        due = ladder.due(History(results))
        assert [{game.first, game.second} for game in due] == [{4, opponent}] * 2
        results |= {game.key: judge(game) for game in due}


def test_a_new_bot_stays_where_it_does_not_win() -> None:
    for strength, climb in ((65, [(4, 3), (4, 2)]), (70, [(4, 3), (4, 2)]), (60, [(4, 3)]), (1, [(4, 3)])):
        ladder = Ladder(entrants(4, Entrant(since=2)), 2)
        history = played(ladder, by_strength(90, 80, 70, 60, strength))
        of_new = [match for match in matches(ladder, history, 2) if 4 in match]
        assert of_new == climb
        assert order(ladder, history) == ([0, 1, 2, 4, 3] if strength > 60 else [0, 1, 2, 3, 4])


def test_a_new_version_takes_the_place_of_the_old_one_and_climbs() -> None:
    ladder = Ladder(entrants(2, Entrant(until=1), Entrant(), Entrant(since=2, replaces=2)), 2)
    judge = by_strength(90, 80, 70, 60, 85)
    before = {game.key: judge(game) for game in Ladder(entrants(4), 1).due(History())}
    history = played(ladder, judge, before)
    assert matches(ladder, history, 2)[:2] == [(4, 1), (4, 0)]
    assert [bot for bot in order(ladder, history) if bot in (0, 1, 4)] == [0, 4, 1]


def test_a_new_version_that_is_worse_sinks() -> None:
    """It takes the first place, so that it has to defend it; the one in the middle tries to climb first."""
    judge = by_strength(90, 80, 70, 60, 0, 0)
    top = [Entrant(until=1), *entrants(3), Entrant(since=2, replaces=0), Entrant()]
    before = {game.key: judge(game) for game in Ladder([*entrants(4), Entrant(since=9)], 1).due(History())}
    ladder = Ladder(top[:5], 2)
    history = played(ladder, judge, before)
    assert matches(ladder, history, 2)[:3] == [(1, 4), (2, 4), (3, 4)]
    assert order(ladder, history) == [1, 2, 3, 4]
    middle = Ladder([Entrant(), Entrant(until=1), *entrants(2), Entrant(since=2, replaces=1)], 2)
    history = played(middle, judge, before)
    assert matches(middle, history, 2)[:3] == [(4, 0), (2, 4), (3, 4)]
    assert order(middle, history) == [0, 2, 3, 4]


def test_the_place_of_a_withdrawn_bot_is_kept_for_a_later_version() -> None:
    judge = by_strength(90, 80, 70, 60, 75)
    before = {game.key: judge(game) for game in Ladder(entrants(4), 1).due(History())}
    ladder = Ladder([Entrant(), Entrant(until=1), *entrants(2), Entrant(since=4, replaces=1)], 4)
    history = played(ladder, judge, before)
    assert matches(ladder, history, 2) == [(3, 2)]
    assert matches(ladder, history, 3) == [(2, 0)]
    assert matches(ladder, history, 4)[:2] == [(4, 0), (2, 4)], "back at its place, above bot 2"
    assert order(ladder, history) == [0, 4, 2, 3]


def test_a_replaced_bot_that_still_plays_keeps_its_place() -> None:
    ladder = Ladder(entrants(3, Entrant(since=2, replaces=0)), 2)
    history = played(ladder, by_strength(9, 8, 7, 6))
    assert matches(ladder, history, 2)[0] == (3, 2)


def test_two_new_bots_are_placed_side_by_side() -> None:
    """One in the place of bot 0, one at the bottom: their first matches are due together."""
    judge = by_strength(90, 80, 70, 60, 95, 75)
    before = {game.key: judge(game) for game in Ladder(entrants(4), 1).due(History())}
    field = [Entrant(until=1), *entrants(3), Entrant(since=2, replaces=0), Entrant(since=2)]
    ladder = Ladder(field, 2)
    due = ladder.due(History(before))
    assert [{game.first, game.second} for game in due] == [{4, 1}, {4, 1}, {5, 3}, {5, 3}]
    history = played(ladder, judge, before)
    assert order(ladder, history) == [4, 1, 5, 2, 3]


def test_two_new_bots_from_the_bottom() -> None:
    """The later one waits for the one above it, then overtakes it."""
    judge = by_strength(90, 80, 85, 95)
    ladder = Ladder(entrants(2, Entrant(since=2), Entrant(since=2)), 2)
    history = played(ladder, judge)
    assert matches(ladder, history, 2)[:4] == [(2, 1), (2, 0), (3, 1), (3, 2)]
    assert order(ladder, history) == [3, 0, 2, 1]


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


def test_who_withdraws_while_it_sinks_sinks_no_more() -> None:
    judge = by_strength(90, 80, 70, 60, 0)
    before = {game.key: judge(game) for game in Ladder(entrants(4), 1).due(History())}
    ladder = Ladder([Entrant(until=1), *entrants(3), Entrant(since=2, until=2, replaces=0)], 2)
    history = played(ladder, judge, before)
    assert matches(ladder, history, 2) == [(1, 4), (2, 1)], "the second one is an ordinary match"


def test_a_climb_goes_on_after_a_defeat_from_below() -> None:
    """While bot 2 is busy above, bot 4 passes bot 3; both then go as high as they can."""
    judge = by_strength(90, 60, 50, 70, 80)
    ladder = Ladder([*entrants(2), *[Entrant(since=2)] * 3], 2)
    history = played(ladder, judge)
    assert matches(ladder, history, 2)[:2] == [(2, 1), (4, 3)]
    assert order(ladder, history) == [0, 4, 3, 1, 2]


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
