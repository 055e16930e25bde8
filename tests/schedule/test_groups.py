"""Groups and their final: allotment, tables, seeding of the final, withdrawals, rulings."""

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain, permutations, product
from typing import Literal

import pytest

from tests.support.schedules import DRAW, FIRST, SECOND, VOID, better_wins, bots, drawn, history_of, met, play
from tournaments.schedule.formats.bracket import standard_order
from tournaments.schedule.formats.groups import Groups, final_seeds, ranked
from tournaments.schedule.pairing import History, Pairing, Result

# The groups.


def test_serpentine_allotment() -> None:
    assert Groups(bots(8), 1).allotment == [[0, 3, 4, 7], [1, 2, 5, 6]]
    assert Groups(bots(10), 1, groups=3).allotment == [[0, 5, 6], [1, 4, 7], [2, 3, 8, 9]]
    assert Groups(bots(4), 1, groups=1).allotment == [[0, 1, 2, 3]]


@pytest.mark.parametrize(
    ("count", "groups", "rounds"), [(8, 2, 1), (9, 2, 2), (10, 3, 1), (7, 3, 3), (4, 1, 1)]
)
def test_each_group_is_a_round_robin_of_all_rounds(count: int, groups: int, rounds: int) -> None:
    schedule = Groups(bots(count), rounds, groups=groups)
    games = schedule.due(History())
    for number in range(1, rounds + 1):
        played = Counter((game.first, game.second) for game in games if game.round == number)
        assert played == Counter(pair for group in schedule.allotment for pair in permutations(group, 2))
    assert {game.opening for game in games} == set(range(rounds))
    assert len({game.key for game in games}) == len(games)


@pytest.mark.parametrize(
    ("count", "wrong", "message"),
    [
        (5, {"groups": 3}, "groups = 3 with 5 bots: each group needs at least 2 bots, so .* at most 2"),
        (5, {"groups": 0}, "groups = 0"),
        (5, {"rounds": 0}, "rounds = 0"),
        (5, {"advance": 0}, "advance = 0"),
        (5, {"groups": 1, "advance": 1}, "advance = 1 from each of 1 groups"),
        (5, {"final": "swiss"}, "no final 'swiss'"),
        (5, {"pairs": 0}, "pairs = 0"),
        (5, {"extra_pairs": -1}, "extra_pairs = -1"),
    ],
)
def test_wrong_parameters(count: int, wrong: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Groups(bots(count), **({"rounds": 1} | wrong))  # type: ignore[arg-type]


# The table of a group.


@pytest.mark.parametrize(
    ("games", "order"),
    [
        # Points.
        ([(0, 1, SECOND), (0, 2, DRAW), (1, 2, FIRST)], [1, 0, 2]),
        # The games among those level on points (0 and 1 have 1.5): bot 0 has the higher margins.
        (
            [
                (0, 1, SECOND),
                (0, 2, Result(0, 30)),
                (1, 2, Result(1, -30)),
                (2, 3, SECOND),
                (3, 0, DRAW),
                (1, 3, DRAW),
            ],
            [3, 1, 0, 2],
        ),
        # Wins: both have a point and did not meet, bot 0 from two draws, bot 1 from a win.
        ([(0, 2, DRAW), (0, 2, DRAW), (1, 2, SECOND), (1, 2, FIRST)], [1, 0]),
        # Margins, then the given order.
        ([(0, 2, Result(0, 3)), (2, 1, Result(1, -4))], [1, 0, 2]),
        ([(0, 2, Result(0, 3)), (2, 1, Result(1, -3))], [0, 1, 2]),
        # A void game gives nothing.
        ([(1, 0, VOID), (2, 0, FIRST)], [2, 0, 1]),
    ],
)
def test_criteria_of_a_groups_table(games: Sequence[tuple[int, int, Result]], order: list[int]) -> None:
    pairings = [Pairing(str(index), 1, first, second) for index, (first, second, _) in enumerate(games)]
    results = {str(index): result for index, (_, _, result) in enumerate(games)}
    assert ranked(range(len(order)), pairings, results) == order


def test_the_table_of_each_group() -> None:
    schedule = Groups(bots(6, b2=1), 1, advance=1)
    assert schedule.allotment == [[0, 3, 4], [1, 2, 5]]
    results = {"unknown": FIRST}
    for table, order in zip(schedule.standings(History(results)), ([0, 3, 4], [1, 5, 2]), strict=True):
        assert [line.bot for line in table.lines] == order  # the seeding; who withdrew is last
        assert not table.advancing
    *most, last = schedule.due(History())
    results = {game.key: Result(int(game.first > game.second), 3) for game in most}
    assert not any(table.advancing for table in schedule.standings(History(results)))
    results[last.key] = DRAW
    first, second = schedule.standings(History(results))
    decided = schedule.tables(History(results))
    assert decided is not None
    assert [line.bot for line in first.lines] == decided[0]
    assert [line.bot for line in second.lines] == [*decided[1], 2]
    assert [table.advancing for table in (first, second)] == [{decided[0][0]}, {decided[1][0]}]
    best = first.lines[0]
    assert (best.points, best.wins, best.draws, best.losses) == (4, 4, 0, 0)
    assert sum(line.margin for line in first.lines) == 0
    assert second.lines[-1] == (2, 0, 0, 0, 0, 0)


# The final.


def test_knockout_final_by_hand() -> None:
    schedule = Groups(bots(8), 2)
    results = play(schedule, until_round=2)
    assert schedule.tables(History(results)) == [[0, 3, 4, 7], [1, 2, 5, 6]]
    # Winners are seeded first; 0 would meet the last seed, 2, and 1 the third, 3.
    assert met(schedule, results, 3) == [(0, 2), (1, 3)]
    assert {game.opening for game in schedule.due(History(results))} == {2}
    results = play(schedule, known=results)
    assert met(schedule, results, 4) == [(0, 1), (2, 3)]
    places = schedule.places(History(results))
    assert places == {0: 1, 1: 2, 2: 3, 3: 4, 4: 5, 5: 5, 6: 7, 7: 7}
    assert schedule.conclusion(History(results)) == "{0} wins the final"
    assert schedule.total(History(results)) == schedule.total(History()) == len(results) == 2 * 24 + 8
    level = Groups(bots(8), 3, pairs=2, extra_pairs=1)
    games = level.pairings(History(play(level, drawn)))
    openings = [sorted({game.opening for game in games if game.round == number}) for number in range(1, 6)]
    assert openings == [[0], [1], [2], [3, 4, 5], [6, 7, 8]]


def test_round_robin_final_by_hand() -> None:
    schedule = Groups(bots(8), 1, final="round-robin")
    results = play(schedule, until_round=1)
    assert schedule.conclusion(History(results)) == ""
    assert schedule.places(History(results)) == {4: 5, 5: 5, 6: 7, 7: 7}
    assert sorted(met(schedule, results, 2)) == [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]
    results = play(schedule, known=results)
    assert schedule.conclusion(History(results)) == "{0} wins the final"
    assert [schedule.places(History(results))[bot] for bot in range(8)] == [1, 2, 3, 4, 5, 5, 7, 7]
    assert schedule.total(History()) == len(results) == schedule.total(History(results)) == 24 + 12


@pytest.mark.parametrize("final", ["knockout", "round-robin"])
def test_finalists_come_first_at_every_moment_of_the_final(final: Literal["knockout", "round-robin"]) -> None:
    schedule = Groups(bots(8), 1, final=final)
    results: dict[str, Result] = {}
    while due := schedule.due(History(results)):
        order = schedule.standing_order(History(results))
        if due[0].round == 1:
            assert order == {}
        else:
            assert [order[bot] for bot in (4, 5, 6, 7)] == [5, 5, 7, 7]
            assert max(order[bot] for bot in range(4)) < 5
        results[due[0].key] = better_wins(due[0])
    assert schedule.standing_order(History(results)) == schedule.places(History(results))


def test_nothing_of_the_final_before_the_groups_are_done() -> None:
    schedule = Groups(bots(4), 1)
    *most, last = schedule.due(History())
    results = {game.key: better_wins(game) for game in most}
    assert schedule.due(History(results)) == [last]
    assert schedule.places(History(results)) == {}
    assert schedule.conclusion(History(results)) == ""
    results[last.key] = better_wins(last)
    assert {game.round for game in schedule.due(History(results))} == {2}


def clashes(seeds: Sequence[int], group_of: Mapping[int, int]) -> int:
    """Matches of a knockout's first round between two of the same group."""
    order = standard_order(max(len(seeds), 2))
    return sum(
        group_of[seeds[one]] == group_of[seeds[other]]
        for one, other in zip(order[::2], order[1::2], strict=True)
        if max(one, other) < len(seeds)
    )


@pytest.mark.parametrize("advance", [1, 2, 3, 6])
@pytest.mark.parametrize("groups", [2, 3, 4, 5, 8])
def test_two_of_a_group_do_not_meet_in_the_first_round_of_the_final(groups: int, advance: int) -> None:
    tables = [[10 * group + row for row in range(advance)] for group in range(groups)]
    seeds = final_seeds(tables)
    group_of = {bot: index for index, table in enumerate(tables) for bot in table}
    assert clashes(seeds, group_of) == 0
    assert seeds[:groups] == [10 * group for group in range(groups)]
    # Winners before seconds before thirds.
    assert [bot % 10 for bot in seeds] == sorted(bot % 10 for bot in seeds)


def test_as_few_clashes_as_can_be_when_groups_are_not_alike() -> None:
    """Against all orders that keep winners before seconds before thirds."""
    for trial in range(80):
        dice = random.Random(f"tables/{trial}")
        tables = [
            [10 * group + row for row in range(dice.randint(0, 3))] for group in range(dice.randint(1, 4))
        ]
        group_of = {bot: bot // 10 for table in tables for bot in table}
        seeds = final_seeds(tables)
        assert sorted(seeds) == sorted(group_of)
        assert [bot % 10 for bot in seeds] == sorted(bot % 10 for bot in seeds)
        tiers = [[bot for bot in group_of if bot % 10 == row] for row in range(3)]
        orders = product([tuple(tiers[0])], *(permutations(tier) for tier in tiers[1:]))
        assert clashes(seeds, group_of) == min(clashes([*chain(*order)], group_of) for order in orders)


@pytest.mark.parametrize(
    ("tables", "seeds"),
    [
        # Seed 3 meets seed 6, which would be of the same group.
        ([[0, 10], [1, 11], [2, 12]], [0, 1, 2, 12, 11, 10]),
        ([[0, 10], [1, 11]], [0, 1, 10, 11]),
        # The clash cannot be avoided, or there is no match.
        ([[4, 2, 3, 1]], [4, 2, 3, 1]),
        ([[4, 2], []], [4, 2]),
        ([[], []], []),
    ],
)
def test_seeds_change_places_only_if_they_must(tables: list[list[int]], seeds: list[int]) -> None:
    assert final_seeds(tables) == seeds


def test_all_bots_of_a_small_group_advance() -> None:
    schedule = Groups(bots(5), 1, advance=3)
    results = play(schedule)
    assert sorted(schedule.places(History(results)).items()) == [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5)]
    assert schedule.total(History()) == len(results)


# Withdrawals.


def test_bot_that_withdraws_from_its_group_does_not_advance() -> None:
    history = History({"r001-1v4": FIRST})
    schedule = Groups(bots(6, b0=1), 1, advance=1)  # groups 0, 3, 4 and 1, 2, 5
    assert all(0 not in (game.first, game.second) for game in schedule.due(history))
    results = play(schedule, known=history.results)
    assert met(schedule, results, 2) == [(1, 3)]
    assert schedule.places(History(results)) == {1: 1, 3: 2, 2: 3, 4: 3, 5: 5, 0: 6}
    assert schedule.total(History(results)) == len(results) == 1 + 2 + 6 + 2


@pytest.mark.parametrize(("rulings", "best"), [([], (0, 3)), ([("r001-1v8", 1, VOID)], (0, 2))])
def test_annulled_games_of_a_bot_that_withdraws_leave_an_even_group(
    rulings: list[tuple[str, int, Result]], best: tuple[int, float]
) -> None:
    """Bot 7 lost to bot 0 and withdrew: nobody has points for its unplayed games."""
    schedule = Groups(bots(8, b7=1), 1)  # groups 0, 3, 4, 7 and 1, 2, 5, 6
    results = play(schedule, drawn, known={"r001-1v8": FIRST})
    table = schedule.standings(history_of(results, *rulings))[0]
    assert [(line.bot, line.points) for line in table.lines if line.bot != 7] == [best, (3, 2), (4, 2)]


@pytest.mark.parametrize("final", ["knockout", "round-robin"])
def test_bot_that_withdraws_in_the_final_keeps_its_place_in_it(final: str) -> None:
    schedule = Groups(bots(4), 1, advance=1, final=final)  # type: ignore[arg-type]
    results = play(schedule, until_round=1)
    later = replace(schedule, entrants=bots(4, b0=2))
    assert [game.key for game in later.pairings(History(results))][-2:] == ["r002-1v2", "r002-2v1"]
    assert later.due(History(results)) == []
    assert later.places(History(results)) == {1: 1, 0: 2, 2: 3, 3: 3}
    assert later.conclusion(History(results)).startswith("{1} wins the final")
    assert later.total(History(results)) == len(results)


@pytest.mark.parametrize("final", ["knockout", "round-robin"])
def test_all_bots_may_withdraw(final: str) -> None:
    schedule = Groups(bots(4, b0=1, b1=1, b2=1, b3=1), 1, final=final)  # type: ignore[arg-type]
    assert schedule.pairings(History()) == []
    assert schedule.conclusion(History()) == ""
    assert schedule.total(History()) == 0


# Rulings, and being killed.


@pytest.mark.parametrize("final", ["knockout", "round-robin"])
@pytest.mark.parametrize("ruled", [SECOND, VOID, None], ids=["other way", "void", "again"])
def test_ruling_on_the_groups_changes_no_final_that_was_paired(ruled: Result | None, final: str) -> None:
    schedule = Groups(bots(6), 2, advance=1, final=final)  # type: ignore[arg-type]
    results = play(schedule, until_round=2)
    before = schedule.pairings(History(results))
    keys = [game.key for game in before if 0 in (game.first, game.second) and game.round < 3]
    now = {key: result for key, result in results.items() if key not in keys}
    if ruled is not None:
        now |= {key: Result(1 - (results[key].winner or 0)) for key in keys}
    later = History(now, {key: [(3, results[key])] for key in keys})
    assert schedule.pairings(later) == before
    assert set(keys) <= {game.key for game in schedule.due(later)} or ruled is not None
    earlier = History(now, {key: [(2, results[key])] for key in keys})
    final_games = [game for game in schedule.pairings(earlier) if game.round == 3]
    assert all(0 not in (game.first, game.second) for game in final_games)


def test_more_rounds_before_the_final_change_no_key() -> None:
    short, long = (Groups(bots(7), rounds).pairings(History()) for rounds in (1, 2))
    assert long[: len(short)] == short
