"""The Swiss system."""

from collections import Counter
from collections.abc import Iterator, Sequence
from hashlib import sha256
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tournaments.schedule.formats.rounds import drawn_lots
from tournaments.schedule.formats.swiss import Swiss
from tournaments.schedule.formats.swiss_pairing import Table, pair_round
from tournaments.schedule.pairing import NOBODY, Entrant, History, Pairing, Result

EVEN = [Entrant()] * 8
SEEDS = st.integers(0, 2**32)


def by_chance(key: str) -> Result:
    noise = sha256(key.encode()).digest()
    return Result(None if noise[0] < 25 else noise[1] % 2)


def stronger_wins(game: Pairing) -> Result:
    """The lower number is the stronger bot."""
    return Result(0 if game.first < game.second else 1)


def played(swiss: Swiss, results: dict[str, Result] | None = None) -> History:
    results = {} if results is None else results
    while due := swiss.due(History(results)):
        results |= {game.key: stronger_wins(game) for game in due}
    return History(results)


def points_before(swiss: Swiss, history: History, number: int) -> Counter[int]:
    """Points from the games of earlier rounds."""
    points: Counter[int] = Counter()
    for game in swiss.pairings(history):
        if game.round < number:
            winner = history.results[game.key].winner
            points[game.first] += winner == 0
            points[game.second] += winner == 1
    return points


def opponents(swiss: Swiss, history: History) -> dict[int, list[tuple[int, int]]]:
    """Round -> who met whom, the one that moved first in the first game first."""
    tables: dict[int, list[tuple[int, int]]] = {}
    for game in swiss.pairings(history)[:: 2 * swiss.pairs]:
        tables.setdefault(game.round, []).append((game.first, game.second))
    return tables


def perfect_matchings(bots: Sequence[int]) -> Iterator[list[frozenset[int]]]:
    """All ways to pair these; with an odd number, NOBODY is one of them."""
    if not bots:
        yield []
        return
    one, *others = bots
    for other in others:
        rest = [bot for bot in others if bot != other]
        for pairs in perfect_matchings(rest):
            yield [frozenset((one, other)), *pairs]


def price(
    pairs: Sequence[frozenset[int]], points: dict[int, int], past: Sequence[Table]
) -> tuple[list[int], list[int], int, int]:
    """The costs of a round that come before order within score groups, computed plainly."""
    met = Counter(frozenset(pair) for table in past for pair in table)
    byes = [pair for pair in pairs if NOBODY in pair]
    games = [pair for pair in pairs if NOBODY not in pair]
    again = sorted((met[pair] for pair in games), reverse=True)
    byes_again = [met[pair] for pair in byes]
    lowest = min(points.values())
    high_byes = sum(points[bot] - lowest for pair in byes for bot in pair if bot != NOBODY)
    unlike = sum((points[one] - points[other]) ** 2 for one, other in map(tuple, games))
    return again, byes_again, high_byes, unlike


@settings(max_examples=60, deadline=None)
@given(bots=st.integers(2, 8), rounds=st.integers(1, 12), seed=SEEDS)
def test_each_round_is_as_good_as_brute_force_can_make_it(bots: int, rounds: int, seed: int) -> None:
    """No rematch while there is another way, then byes, then scores; also when rematches begin."""
    past: list[Table] = []
    points = dict.fromkeys(range(bots), 0)
    everybody = [*range(bots), NOBODY] if bots % 2 else list(range(bots))
    for number in range(rounds):
        table = pair_round(tuple(points.items()), tuple(past), seed)
        chosen = [frozenset(pair) for pair in table]
        assert sorted(bot for pair in chosen for bot in pair) == sorted(everybody)
        best = min(price(pairs, points, past) for pairs in perfect_matchings(everybody))
        assert price(chosen, points, past) == best
        past.append(table)
        for first, second in table:
            noise = sha256(f"{seed}/{number}/{first}".encode()).digest()[0] % 5
            points[first] += 4 if second == NOBODY else noise
            if second != NOBODY:
                points[second] += 4 - noise


@pytest.mark.parametrize("bots", [8, 9])
def test_no_pair_meets_twice_while_it_need_not(bots: int) -> None:
    swiss = Swiss([Entrant()] * bots, 5)
    tables = opponents(swiss, played(swiss))
    met = Counter(frozenset(pair) for table in tables.values() for pair in table)
    assert set(met.values()) == {1}


def test_everybody_meets_everybody_before_anybody_a_third_time() -> None:
    swiss = Swiss([Entrant()] * 4, 6)
    met = Counter(frozenset(pair) for table in opponents(swiss, played(swiss)).values() for pair in table)
    assert met == {frozenset(pair): 2 for pair in combinations(range(4), 2)}


def test_two_second_meetings_are_better_than_one_third() -> None:
    """Although bots of the same score would meet in the latter."""
    third = (((0, 1),), ((0, 1),))
    second = (((0, 2), (1, 3)),)
    often = (((0, 3), (1, 2)),) * 3
    table = pair_round(((0, 4), (1, 4), (2, 0), (3, 0)), third + second + often, 0)
    assert {frozenset(pair) for pair in table} == {frozenset((0, 2)), frozenset((1, 3))}


def test_the_top_half_of_a_score_group_meets_the_bottom_half() -> None:
    """All lots are drawn once: who is before whom in the first round is so in the second."""
    swiss = Swiss(EVEN, 2)
    history = played(swiss)
    first, second = opponents(swiss, history).values()
    order = [*(_by_lot(swiss, pair)[0] for pair in first), *(_by_lot(swiss, pair)[1] for pair in first)]
    assert [{order[place], order[place + 4]} for place in range(4)] == [set(pair) for pair in first]
    points = points_before(swiss, history, 2)
    for score in (2, 0):
        group = [bot for bot in order if points[bot] == score]
        expected = [{group[0], group[2]}, {group[1], group[3]}]
        assert [set(pair) for pair in second if points[pair[0]] == score] == expected


def _by_lot(swiss: Swiss, pair: tuple[int, int]) -> tuple[int, int]:
    """The bot with the better lot first: the one that is ahead of all others alone with this one."""
    lots = drawn_lots(len(swiss.entrants), f"{swiss.seed}")
    one, other = pair
    return (one, other) if lots[one] < lots[other] else (other, one)


def test_forty_bots_meet_their_like() -> None:
    """Where the better one always wins, scores differ by one round's points at most; the best is found."""
    swiss = Swiss([Entrant()] * 40, 6)
    history = played(swiss)
    for number, table in opponents(swiss, history).items():
        points = points_before(swiss, history, number)
        assert max(abs(points[one] - points[other]) for one, other in table) <= 2
    assert points_before(swiss, history, 7).most_common(1) == [(0, 12)]


@pytest.mark.parametrize("pairs", [1, 2])
def test_a_bye_goes_to_the_lowest_that_had_none(pairs: int) -> None:
    swiss = Swiss([Entrant()] * 7, 7, pairs=pairs)
    history = played(swiss)
    byes: Counter[int] = Counter()
    for number, table in opponents(swiss, history).items():
        (out,) = set(range(7)) - {bot for pair in table for bot in pair}
        points = points_before(swiss, history, number) + Counter(
            {bot: 2 * pairs * times for bot, times in byes.items()}
        )
        if number < 4:  # later, that nobody meets again leaves no choice
            assert points[out] == min(points[bot] for bot in range(7) if not byes[bot])
        byes[out] += 1
    assert byes == dict.fromkeys(range(7), 1)
    assert swiss.byes(history) == dict.fromkeys(range(7), 2.0 * pairs)


def test_two_bots_and_one_alone() -> None:
    swiss = Swiss([Entrant()] * 2, 3)
    assert len(played(swiss).results) == 6
    alone = Swiss([Entrant(), Entrant(until=1)], 3)
    assert alone.due(History()) == []
    assert alone.byes(History()) == {0: 2.0}, "of the opponent's games, and no bye after that"
    assert alone.total(History()) == 0


def test_who_moves_first_in_a_match_alternates() -> None:
    """Within one match between openings; between matches as far as opponents allow."""
    swiss = Swiss([Entrant()] * 41, 9, pairs=2)
    results: dict[str, Result] = {}
    while due := swiss.due(History(results)):
        results |= {game.key: by_chance(game.key) for game in due}
    games = swiss.pairings(History(results))
    surplus: Counter[int] = Counter()
    for opening in range(0, len(games), 4):
        one, back, two, back_two = games[opening : opening + 4]
        assert (one.first, one.second) == (back.second, back.first) == (two.second, two.first)
        assert (two.first, two.second) == (back_two.second, back_two.first)
        assert [one.opening, two.opening] == [2 * one.round - 2, 2 * one.round - 1]
        surplus[one.first] += 1
        surplus[one.second] -= 1
    assert max(map(abs, surplus.values())) <= 3


def test_by_hand() -> None:
    swiss = Swiss([Entrant()] * 2, 2, width=2)
    keys = [game.key for game in swiss.due(History())]
    assert sorted(keys) == ["r001-01v02", "r001-02v01"]
    assert swiss.total(History()) == 4


def test_a_withdrawal_gives_the_opponent_what_was_not_played() -> None:
    swiss = Swiss(EVEN, 2)
    first, back = swiss.due(History())[:2]
    withdrew, opponent = first.first, first.second
    left = [Entrant(until=1) if bot == withdrew else Entrant() for bot in range(8)]
    swiss = Swiss(left, 2)
    results = {first.key: Result(0)}
    assert back not in swiss.due(History(results))
    assert back in swiss.pairings(History(results))
    assert swiss.byes(History(results)) == {opponent: 1.0}
    history = played(swiss, results)
    assert all(withdrew not in _bots(key) for key in history.results if key.startswith("r002"))
    assert len(history.results) == swiss.total(history) == 7 + 6
    assert sum(swiss.byes(history).values()) == 1 + 2, "seven are left: one has a bye"


def _bots(key: str) -> list[int]:
    return [int(number) - 1 for number in key.partition("-")[2].split("v")]


def test_forfeited_games_count_for_the_next_pairing() -> None:
    """The opponent of the one that withdrew has 2 points, as all winners, and meets one of them."""
    first = Swiss(EVEN, 2).due(History())[0]
    swiss = Swiss([Entrant(until=1) if bot == first.first else Entrant() for bot in range(8)], 2)
    results = {game.key: stronger_wins(game) for game in swiss.due(History())}
    points = Counter(game.first for game in swiss.due(History()) if results[game.key].winner == 0)
    points.update(game.second for game in swiss.due(History()) if results[game.key].winner == 1)
    assert points[first.second] == 0
    (rival,) = {
        bot
        for game in swiss.due(History(results))
        if first.second in (game.first, game.second)
        for bot in (game.first, game.second)
    } - {first.second}
    assert points[rival] == 2


def test_if_both_withdraw_nobody_gets_the_games() -> None:
    both = Swiss([Entrant(until=1), Entrant(until=1)], 2)
    assert both.byes(History()) == {}
    later = Swiss([Entrant(until=1), Entrant(until=2)], 2)
    assert later.byes(History()) == {1: 2.0}


def test_a_late_bot_begins_at_the_bottom() -> None:
    swiss = Swiss([*EVEN, Entrant(since=2)], 2)
    history = played(swiss)
    assert {bot for pair in opponents(swiss, history)[1] for bot in pair} == set(range(8))
    points = points_before(swiss, history, 2)
    met = [set(pair) for pair in opponents(swiss, history)[2] if 8 in pair]
    assert met == [] or points[(met[0] - {8}).pop()] == 0


def test_a_void_game_is_nobodys() -> None:
    """Two void games leave both without points: they meet bots without points."""
    swiss = Swiss(EVEN, 2)
    one, back = swiss.due(History())[:2]
    results = {game.key: stronger_wins(game) for game in swiss.due(History())}
    results |= {game.key: Result(0, counts=False) for game in (one, back)}
    history = played(swiss, results)
    points: Counter[int] = Counter()
    for game in swiss.pairings(history)[:8]:
        if history.results[game.key].counts:
            points[game.first if history.results[game.key].winner == 0 else game.second] += 1
    table = opponents(swiss, history)[2]
    unlike = [abs(points[first] - points[second]) for first, second in table]
    assert sorted(unlike) == [0, 0, 0, 2], "three have 2 points, five have none"


def test_a_ruling_counts_from_the_next_round_on() -> None:
    """After round 1, its results are turned round while round 2 is under way: round 3 is paired from that."""
    swiss = Swiss(EVEN, 3)
    results = {game.key: stronger_wins(game) for game in swiss.due(History())}
    second = swiss.due(History(results))
    turned = {key: Result(1 - (result.winner or 0)) for key, result in results.items()}
    earlier = {key: [(2, result)] for key, result in results.items()}
    assert swiss.due(History(turned, earlier)) == second
    ended = turned | {game.key: stronger_wins(game) for game in second}
    third = [game for game in swiss.pairings(History(ended, earlier)) if game.round == 3]
    points = Counter(
        game.first if ended[game.key].winner == 0 else game.second
        for game in swiss.pairings(History(ended, earlier))
        if game.round < 3
    )
    assert {abs(points[game.first] - points[game.second]) for game in third} == {0}


def test_a_game_to_be_played_again_is_waited_for() -> None:
    swiss = Swiss(EVEN, 3)
    results = {game.key: stronger_wins(game) for game in swiss.due(History())}
    again, old = next(iter(results.items()))
    second = swiss.due(History(results))
    del results[again]
    history = History(results, {again: [(2, old)]})
    assert [game.key for game in swiss.due(history)] == [again, *(game.key for game in second)]
    results |= {game.key: stronger_wins(game) for game in second}
    assert [game.key for game in swiss.due(History(results, {again: [(2, old)]}))] == [again]
