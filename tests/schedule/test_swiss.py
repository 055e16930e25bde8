"""The Swiss system; tests of manual pairings compare each round with brute force."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

import pytest

from tests.support.schedules import VOID, better_wins, bots, play
from tournaments.schedule.formats.rounds import drawn_lots
from tournaments.schedule.formats.swiss import Swiss
from tournaments.schedule.formats.swiss_pairing import Table
from tournaments.schedule.pairing import NOBODY, Entrant, History, Pairing, Result

EVEN = [Entrant()] * 8


def points_of(history: History, games: Iterable[Pairing]) -> Counter[int]:
    """Points of each bot from some games, void ones excepted."""
    points: Counter[int] = Counter()
    for game in games:
        result = history.results.get(game.key)
        if result is not None and result.counts and result.winner is not None:
            points[(game.first, game.second)[result.winner]] += 1
    return points


def played(swiss: Swiss, known: Mapping[str, Result] = {}) -> History:
    return History(play(swiss, known=known))


def points_before(swiss: Swiss, history: History, number: int) -> Counter[int]:
    """Points from the games of earlier rounds."""
    return points_of(history, [game for game in swiss.pairings(history) if game.round < number])


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


def test_the_top_half_of_a_score_group_meets_the_bottom_half() -> None:
    """Lots are drawn once: the order of the first round holds in the second, too."""
    swiss = Swiss(EVEN, 2)
    history = played(swiss)
    first, second = opponents(swiss, history).values()
    lots = drawn_lots(8, f"{swiss.seed}")
    halves = [sorted(pair, key=lots.__getitem__) for pair in first]
    order = [*(half[0] for half in halves), *(half[1] for half in halves)]
    points = points_before(swiss, history, 2)
    for score in (2, 0):
        group = [bot for bot in order if points[bot] == score]
        expected = [{group[0], group[2]}, {group[1], group[3]}]
        assert [set(pair) for pair in second if points[pair[0]] == score] == expected


def test_large_fields_meet_bots_of_their_score() -> None:
    """If the better bot always wins, scores differ by at most one round's points, and the best bot leads."""
    swiss = Swiss([Entrant()] * 32, 5)
    history = played(swiss)
    for number, table in opponents(swiss, history).items():
        points = points_before(swiss, history, number)
        assert max(abs(points[one] - points[other]) for one, other in table) <= 2
    assert points_before(swiss, history, 6).most_common(1) == [(0, 10)]


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


def test_the_first_move_alternates() -> None:
    """Within one match between openings; between matches as far as opponents allow."""
    swiss = Swiss([Entrant()] * 21, 7, pairs=2)
    games = swiss.pairings(played(swiss))
    surplus: Counter[int] = Counter()
    for opening in range(0, len(games), 4):
        one, back, two, back_two = games[opening : opening + 4]
        assert (one.first, one.second) == (back.second, back.first) == (two.second, two.first)
        assert (two.first, two.second) == (back_two.second, back_two.first)
        assert [one.opening, two.opening] == [2 * one.round - 2, 2 * one.round - 1]
        surplus[one.first] += 1
        surplus[one.second] -= 1
    assert max(map(abs, surplus.values())) <= 3


def test_a_withdrawal_gives_the_opponent_the_games_that_were_not_played() -> None:
    swiss = Swiss(EVEN, 2)
    first, back = swiss.due(History())[:2]
    withdrew, opponent = first.first, first.second
    swiss = Swiss(bots(8, **{f"b{withdrew}": 1}), 2)
    results = {first.key: Result(0)}
    assert back not in swiss.due(History(results))
    assert back in swiss.pairings(History(results))
    assert swiss.byes(History(results)) == {opponent: 1.0}
    history = played(swiss, results)
    second = opponents(swiss, history)[2]
    assert withdrew not in {bot for pair in second for bot in pair}
    assert len(history.results) == swiss.total(history) == 7 + 6
    assert sum(swiss.byes(history).values()) == 1 + 2, "seven are left: one has a bye"
    # Both games were forfeited: the opponent has 2 points, like all winners, and meets one of these.
    history = played(swiss)
    points = points_before(swiss, history, 2)
    assert points[opponent] == 0
    (rival,) = [(set(pair) - {opponent}).pop() for pair in opponents(swiss, history)[2] if opponent in pair]
    assert points[rival] == 2


@pytest.mark.parametrize(
    ("until", "byes"),
    [({"b1": 1}, {0: 2.0}), ({"b0": 1, "b1": 1}, {}), ({"b0": 1, "b1": 2}, {1: 2.0})],
)
def test_withdrawals_of_two_bots(until: dict[str, int], byes: dict[int, float]) -> None:
    """The bot that stays longer gets the games of the round; a bot alone has no bye."""
    swiss = Swiss(bots(2, **until), 3)
    assert swiss.due(History()) == []
    assert swiss.byes(History()) == byes
    assert swiss.total(History()) == 0


def _bots(key: str) -> list[int]:
    return [int(number) - 1 for number in key.partition("-")[2].split("v")]


def test_a_late_bot_begins_at_the_bottom() -> None:
    swiss = Swiss([*EVEN, Entrant(since=2)], 2)
    history = played(swiss)
    assert {bot for pair in opponents(swiss, history)[1] for bot in pair} == set(range(8))
    points = points_before(swiss, history, 2)
    met = [set(pair) for pair in opponents(swiss, history)[2] if 8 in pair]
    assert met == [] or points[(met[0] - {8}).pop()] == 0


def test_a_void_game_gives_no_points() -> None:
    """Two void games leave both without points: they meet bots without points."""
    swiss = Swiss(EVEN, 2)
    first = swiss.due(History())
    results = {game.key: better_wins(game) for game in first}
    results |= {game.key: VOID for game in first[:2]}
    history = played(swiss, results)
    points = points_of(history, first)
    unlike = [abs(points[one] - points[other]) for one, other in opponents(swiss, history)[2]]
    assert sorted(unlike) == [0, 0, 0, 2], "three have 2 points, five have none"


def test_a_ruling_counts_from_the_next_round_on() -> None:
    """After round 1, its results are turned round while round 2 is under way: round 3 is paired from that."""
    swiss = Swiss(EVEN, 3)
    results = {game.key: better_wins(game) for game in swiss.due(History())}
    second = swiss.due(History(results))
    turned = {key: Result(1 - (result.winner or 0)) for key, result in results.items()}
    earlier = {key: [(2, result)] for key, result in results.items()}
    assert swiss.due(History(turned, earlier)) == second
    ended = turned | {game.key: better_wins(game) for game in second}
    third = [game for game in swiss.pairings(History(ended, earlier)) if game.round == 3]
    points = points_before(swiss, History(ended, earlier), 3)
    assert {abs(points[game.first] - points[game.second]) for game in third} == {0}


def test_a_game_to_be_played_again_is_waited_for() -> None:
    swiss = Swiss(EVEN, 3)
    results = {game.key: better_wins(game) for game in swiss.due(History())}
    again, old = next(iter(results.items()))
    second = swiss.due(History(results))
    del results[again]
    history = History(results, {again: [(2, old)]})
    assert [game.key for game in swiss.due(history)] == [again, *(game.key for game in second)]
    results |= {game.key: better_wins(game) for game in second}
    assert [game.key for game in swiss.due(History(results, {again: [(2, old)]}))] == [again]
