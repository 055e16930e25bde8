"""The knockout when bots withdraw, when lecturers rule, and when it is killed."""

import random
from dataclasses import replace

import pytest

from tests.schedules import DRAW, FIRST, SECOND, VOID, bots, history_of, met, play
from tournaments.schedule.formats.knockout import Knockout
from tournaments.schedule.pairing import Entrant, History, Pairing, Result, round_under_way

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
        "{1} wins the knockout, the final without an opponent to its end"
    )


def test_a_bot_that_withdrew_before_the_first_round() -> None:
    schedule = Knockout(bots(4, b3=0))
    assert [game.key for game in schedule.pairings(History())] == ["r001-2v3", "r001-3v2"]
    results = play(schedule)
    assert schedule.places(History(results)) == {0: 1, 1: 2, 2: 3, 3: 4}


def test_if_both_withdraw_nobody_goes_on() -> None:
    schedule = Knockout(bots(8, b0=1, b7=1))
    results = play(schedule)
    assert met(schedule, results, 2) == [(1, 2)]
    assert met(schedule, results, 3) == [(1, 3)]  # bot 3 had nobody to beat in the semi-final
    assert schedule.places(History(results)) == {1: 1, 3: 2, 2: 3, 0: 5, 7: 5, 4: 5, 5: 5, 6: 5}


def test_if_both_finalists_withdraw_nobody_wins() -> None:
    schedule = Knockout(bots(4))
    results = play(schedule, until_round=1)
    gone = replace(schedule, entrants=bots(4, b0=2, b1=2))
    assert gone.conclusion(History(results)) == "nobody wins the knockout: those who could have withdrew"
    assert gone.places(History(results)) == {0: 2, 1: 2}
    assert gone.places(History(play(gone, known=results))) == {0: 2, 1: 2, 2: 3, 3: 4}


def test_if_both_that_play_for_the_third_place_withdraw_they_share_it() -> None:
    schedule = Knockout(bots(4))
    results = play(schedule, until_round=1)
    gone = replace(schedule, entrants=bots(4, b2=2, b3=2))
    assert gone.places(History(play(gone, known=results))) == {0: 1, 1: 2, 2: 3, 3: 3}


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


def test_first_result_may_be_a_ruling() -> None:
    """The game could not be played: the lecturer decided it."""
    schedule = Knockout(bots(2))
    history = history_of({"r001-1v2": FIRST}, ("r001-2v1", 1, FIRST))
    assert [game.key for game in schedule.due(history)] == ["r001-1v2.2", "r001-2v1.2"]
    history = History({**history.results, "r001-1v2.2": FIRST, "r001-2v1.2": DRAW}, history.earlier)
    assert schedule.conclusion(history) == "{0} wins the knockout"


# Killed and resumed.


@pytest.mark.parametrize("count", [2, 3, 6, 11, 16])
def test_any_order_of_endings_gives_the_same_games(count: int) -> None:
    def rule(game: Pairing) -> Result:
        dice = random.Random(game.key)
        return Result(dice.choice((0, 1, None)), dice.randint(-2, 2))

    orders = set()
    for order in range(6):
        dice = random.Random(f"{count}/{order}")
        results: dict[str, Result] = {}
        while due := Knockout(bots(count), pairs=2).due(History(results)):  # a new one each time
            assert all(game.key not in results for game in due)
            ended = dice.sample(due, dice.randint(1, len(due)))
            results |= {game.key: rule(game) for game in ended}
            left = [game for game in due if game.key not in results]
            still = Knockout(bots(count), pairs=2).due(History(results))
            assert [game for game in still if game in left] == left
        schedule = Knockout(bots(count), pairs=2)
        assert schedule.total(History(results)) == len(results) == len(schedule.pairings(History(results)))
        assert sorted(schedule.places(History(results))) == list(range(count))
        orders.add((frozenset(results), schedule.conclusion(History(results))))
    assert len(orders) == 1


def test_withdrawals_at_any_time_change_no_earlier_pairing() -> None:
    for trial in range(150):
        dice = random.Random(f"withdrawals/{trial}")
        schedule = Knockout(bots(dice.randint(2, 13)))
        results: dict[str, Result] = {}
        while due := schedule.due(History(results)):
            ended = dice.sample(due, dice.randint(1, len(due)))
            results |= {game.key: Result(dice.choice((0, 1)), dice.randint(-1, 1)) for game in ended}
            before = schedule.pairings(History(results))
            if dice.random() < 0.3:
                entrants = list(schedule.entrants)
                bot = dice.randrange(len(entrants))
                if entrants[bot].until is None:
                    entrants[bot] = Entrant(until=round_under_way(schedule, History(results)))
                    schedule = replace(schedule, entrants=entrants)
                after = schedule.pairings(History(results))
                assert [game for game in after if game in before] == before
        assert schedule.conclusion(History(results))
        assert sorted(schedule.places(History(results))) == list(range(len(schedule.entrants)))
        assert schedule.total(History(results)) == len(results)
