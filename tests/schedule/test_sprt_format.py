"""The sequential test as a format: batches, decisions, copies of games, rulings."""

import random
from collections.abc import Callable, Mapping
from dataclasses import replace
from math import log

import pytest

from tests.support.schedules import VOID, number_of_calls, play
from tournaments.schedule.formats import sprt_statistics
from tournaments.schedule.formats.sprt import Sprt
from tournaments.schedule.formats.sprt_statistics import (
    Hypotheses,
    PairEvidence,
    log_likelihood_ratio,
)
from tournaments.schedule.pairing import Entrant, History, Pairing, Result

TWO = (Entrant(), Entrant())

UPPER = log(0.95 / 0.05)


def wins(game: Pairing) -> Result:
    """Bot 0 wins every game, each another one."""
    return Result(game.first, line=game.key)


def same_games(game: Pairing) -> Result:
    """Bot 0 wins the same two games again and again."""
    return Result(game.first, line=str(game.first))


def level(game: Pairing) -> Result:
    """The bot that moves first wins, each time in another game."""
    return Result(0, line=game.key)


def play_batches(
    schedule: Sprt, rule: Callable[[Pairing], Result], batches: int, known: Mapping[str, Result] = {}
) -> dict[str, Result]:
    return play(
        schedule, rule, known, until_round=(batches + len(known) // schedule.batch) * schedule.batch // 2
    )


def of_strength(elo: float, draws: float, bias: float, seed: str) -> Callable[[Pairing], Result]:
    """Bot 0 is that much stronger; ``bias`` is what moving first is worth, in points of a game."""

    def rule(game: Pairing) -> Result:
        dice = random.Random(f"{seed}/{game.key}")
        score = 1 / (1 + 10 ** (-elo / 400)) + (bias if game.first == 0 else -bias)
        number = dice.random()
        if number < draws:
            winner = None
        else:
            zero_wins = number < draws + (score - draws / 2)
            winner = game.first if zero_wins else 1 - game.first
        return Result(winner, line=game.key)

    return rule


# Pairs and batches.


def test_pairs_have_rounds_and_openings_of_their_own() -> None:
    games = Sprt(TWO, batch=4, width=2).due(History())
    assert [(game.key, game.round, game.opening, game.pair) for game in games] == [
        ("r001-01v02", 1, 0, "r001-01+02"),
        ("r001-02v01", 1, 0, "r001-01+02"),
        ("r002-01v02", 2, 1, "r002-01+02"),
        ("r002-02v01", 2, 1, "r002-01+02"),
    ]


def test_next_batch_only_when_all_games_of_the_one_before_are_there() -> None:
    schedule = Sprt(TWO, batch=6)
    *most, last = schedule.due(History())
    assert len(most) == 5
    results = {game.key: level(game) for game in most}
    assert schedule.due(History(results)) == [last]
    results[last.key] = level(last)
    assert [game.round for game in schedule.due(History(results))] == [4, 4, 5, 5, 6, 6]
    assert len(schedule.pairings(History(results))) == 12


def test_the_first_pair_beyond_a_bound_decides_and_the_batch_is_played_out() -> None:
    schedule = Sprt(TWO, batch=60)
    results = play(schedule, wins)
    pairs = next(n for n in range(1, 100) if log_likelihood_ratio([0, 0, 0, 0, n], 0, 50) >= UPPER)
    assert 1 < pairs < 30
    assert len(results) == 60 == schedule.total(History(results))
    decided = schedule.conclusion(History(results))
    assert decided.startswith(f"H1 accepted after {2 * pairs} games: ")
    # Later pairs do not count, nor does a withdrawal after the decision.
    late = {game.key: Result(1 - game.first) for game in schedule.due(History()) if game.round > pairs}
    assert schedule.conclusion(History(results | late)) == decided
    gone = replace(schedule, entrants=(Entrant(until=30), Entrant()))
    assert gone.conclusion(History(results)) == decided


@pytest.mark.parametrize(
    ("schedule", "rule", "games", "conclusion"),
    [
        (
            Sprt(TWO, batch=16, max_games=24),
            level,
            24,
            "undecided after 24 games: no more games are allowed (LLR ",
        ),
        (Sprt(TWO, max_games=7), level, 6, "undecided after 6 games: no more games are allowed (LLR -"),
        # Void games are no copies of each other.
        (Sprt(TWO, batch=4, max_games=40), lambda game: VOID, 40, "undecided after 40 games: no more games"),
        # One batch with a new pair, two without.
        (
            Sprt(TWO, batch=8),
            same_games,
            24,
            "undecided after 24 games: {0} and {1} play the same games again; different pairs: 1 of 12 (LLR ",
        ),
        # One new pair in the fifth round.
        (
            Sprt(TWO, batch=4),
            lambda game: Result(0, line="new" + game.key if game.round == 5 else str(game.first)),
            3 * 4 + 2 * 4,
            "undecided after 20 games: {0} and {1} play the same games again; different pairs: 2 of 10 (LLR ",
        ),
    ],
)
def test_ends_without_a_decision(
    schedule: Sprt, rule: Callable[[Pairing], Result], games: int, conclusion: str
) -> None:
    results = play(schedule, rule)
    assert len(results) == games
    assert schedule.conclusion(History(results)).startswith(conclusion)


def test_conclusions() -> None:
    schedule = Sprt(TWO)
    assert schedule.conclusion(History()) == ""
    begun = play_batches(schedule, level, 1)
    assert schedule.conclusion(History(begun)).startswith("not yet decided after 16 games (LLR -")
    ratio = schedule.conclusion(History(play(schedule, wins)))
    assert (
        "{0} is taken to be stronger than {1} (if the difference were 0 Elo, about 5 % of such tests" in ratio
    )
    assert "bounds -2.94 and 2.94)" in ratio
    assert ratio.format("Ann", "Bob").count("Ann") == 1
    lost = schedule.conclusion(History(play(schedule, lambda game: Result(1 - game.first, line=game.key))))
    assert lost.startswith("H0 accepted after ")
    assert (
        "{0} is taken to be less than 50 Elo stronger than {1} (if the difference were 50 Elo, about 5 %"
        in lost
    )


@pytest.mark.parametrize(
    ("elo0", "elo1", "more", "less"),
    [
        (0, 50, "stronger than {1}", "less than 50 Elo stronger than {1}"),
        (-20, 0, "less than 20 Elo weaker than {1}", "weaker than {1}"),
        (-30, -10, "less than 30 Elo weaker than {1}", "more than 10 Elo weaker than {1}"),
        (10, 12.5, "more than 10 Elo stronger than {1}", "less than 12.5 Elo stronger than {1}"),
    ],
)
def test_words_for_differences(elo0: float, elo1: float, more: str, less: str) -> None:
    schedule = Sprt(TWO, elo0=elo0, elo1=elo1, max_games=100_000, batch=1000)
    for rule, words in ((wins, more), (lambda game: Result(1 - game.first), less)):
        assert f"{{0}} is taken to be {words} (" in schedule.conclusion(History(play(schedule, rule)))


def test_forecast() -> None:
    """As many games as the bound needs at the pace so far, in whole batches."""
    schedule = Sprt(TWO, batch=10)
    assert schedule.total(History()) == 2000
    results = play_batches(schedule, level, 2)
    ratio = log_likelihood_ratio([0, 0, 10, 0, 0], 0, 50)
    assert ratio < 0
    games = 20 * UPPER / -ratio
    assert games <= schedule.total(History(results)) < games + 10
    assert Sprt(TWO, batch=10, max_games=24).total(History(results)) == 24
    one_more = results | {schedule.due(History(results))[0].key: Result(0)}
    assert schedule.total(History(one_more)) == schedule.total(History(results))


@pytest.mark.parametrize(
    ("count", "wrong", "message"),
    [
        (3, {}, "2 bots, not 3"),
        (2, {"elo0": 50.0}, "elo0 = 50 must be below"),
        (2, {"alpha": 0.5}, "alpha = 0.5"),
        (2, {"beta": 0.0}, "beta = 0 "),
        (2, {"batch": 3}, "batch = 3 must be even"),
        (2, {"batch": 0}, "batch = 0"),
        (2, {"max_games": 1}, "max_games = 1"),
        (2, {"openings": -1}, "openings = -1"),
    ],
)
def test_wrong_parameters(count: int, wrong: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Sprt([Entrant()] * count, **wrong)  # type: ignore[arg-type]


# Copies.


def test_copies_are_weighed_within_their_start() -> None:
    """Start 0: three pairs, one twice, 9/5 different ones.  Start 1: the same games are others there."""
    seen = PairEvidence(Hypotheses(0, 50, 0.05, 0.05))
    won, lost = (
        (Result(0, line="a"), Result(1, line="b")),
        (Result(1, line="c"), Result(0)),
    )
    seen.add(0, VOID, Result(1))
    seen.add(0, Result(0), VOID)
    assert (seen.counts, seen.pairs, seen.counted, seen.ratio) == ([0] * 5, 2, 0, 0)
    drawn = Result(None, line="d")
    for start, pair in ((0, won), (0, won), (0, (won[0], drawn)), (1, won)):
        seen.add(start, *pair)
    assert seen.counts == pytest.approx([0, 0, 0, 3 / 5, 6 / 5 + 1])
    seen.add(1, *lost)
    seen.add(1, *lost)  # without a fingerprint, each is unlike the others
    assert seen.counts == pytest.approx([2, 0, 0, 3 / 5, 6 / 5 + 1])
    assert seen.unique == 5
    copies = PairEvidence(Hypotheses(0, 50, 0.05, 0.05))
    for _ in range(1000):
        copies.add(0, *won)
    assert copies.counts == [0, 0, 0, 0, 1]
    assert copies.ratio == log_likelihood_ratio([0, 0, 0, 0, 1], 0, 50)
    assert (copies.pairs, copies.unique, copies.accepted) == (1000, 1, None)


def test_the_work_for_a_pair_does_not_grow_with_the_number_of_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Hypotheses, "ratio", lambda *_: 0.0)

    def add(pairs: int) -> None:
        """Add different pairs from one start."""
        evidence = PairEvidence(Hypotheses(0, 50, 0.05, 0.05))
        for number in range(pairs):
            evidence.add(0, Result(0, line=f"there {number}"), Result(0, line=f"back {number}"))
        assert evidence.unique == pairs

    assert number_of_calls(lambda: add(800)) < 3 * number_of_calls(lambda: add(400))


def test_the_ratios_of_a_long_test_are_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    computed = 0

    def ratio(*_: object) -> float:
        nonlocal computed
        computed += 1
        return 0.0

    monkeypatch.setattr(sprt_statistics, "log_likelihood_ratio", ratio)
    hypotheses = Hypotheses(0, 50, 0.05, 0.05)
    for _ in range(2):
        for pairs in range(20_000):
            hypotheses.ratio((0.0, 0.0, -1.0, 0.0, float(pairs)))  # of no test, since the cache is global
    assert computed == 20_000


def test_each_opening_is_new_once() -> None:
    schedule = Sprt(TWO, batch=4, openings=6)
    # Twelve games from six openings, then two batches of copies.
    results = play(schedule, lambda game: Result(0, line=f"{game.opening % 6}/{game.first}"))
    assert len(results) == 12 + 2 * 4
    # From the game's own start alone they would be six different pairs, too: so would unlike games be.
    assert len(play(Sprt(TWO, batch=4, openings=1), same_games)) == 4 + 2 * 4
    # The same fingerprints from different openings are different games.
    assert len(play(schedule, lambda game: Result(0, line=str(game.first)))) == 12 + 2 * 4


# Withdrawals and rulings.


def test_a_bot_that_withdraws_ends_it_undecided() -> None:
    schedule = Sprt(TWO, batch=4)
    results = play_batches(schedule, level, 2)
    gone = replace(schedule, entrants=(Entrant(), Entrant(until=6)))
    assert gone.due(History(results)) == []
    assert gone.pairings(History(results)) == schedule.pairings(History(results))
    assert gone.total(History(results)) == 8
    assert gone.conclusion(History(results)).startswith("undecided after 8 games: {1} withdrew (")
    both = replace(schedule, entrants=(Entrant(until=0), Entrant(until=0)))
    assert both.pairings(History()) == []
    assert both.conclusion(History()).startswith("undecided after 0 games: {0} and {1} withdrew (")
    # Games that end after the withdrawal cause no further batch.
    early = replace(schedule, entrants=(Entrant(until=2), Entrant()))
    results = {game.key: level(game) for game in early.pairings(History())}
    assert len(early.pairings(History(results))) == len(results) == 4


def test_ruling_after_the_decision_reopens_it() -> None:
    schedule = Sprt(TWO, batch=4)
    results = play(schedule, wins)
    rounds = len(results) // 2
    voided = {key: VOID for key in results if key.startswith(("r001", "r002"))}
    history = History(results | voided, {key: [(rounds, results[key])] for key in voided})
    assert [game.round for game in schedule.due(history)] == [rounds + 1, rounds + 1, rounds + 2, rounds + 2]
    results = play(schedule, wins, known=history.results)
    history = History({**history.results, **results}, history.earlier)
    assert schedule.conclusion(history).startswith("H1 accepted")


def test_ruling_takes_no_batch_back() -> None:
    """Bot 0 wins everything but its first pair; ruled later that it won that, too, it had won long ago."""
    schedule = Sprt(TWO, batch=2)
    results = play(schedule, lambda game: wins(game) if game.round > 1 else Result(1 - game.first))
    rounds = len(results) // 2
    before = schedule.pairings(History(results))
    ruled = {key: Result(1 - (results[key].winner or 0)) for key in results if key.startswith("r001")}
    history = History(results | ruled, {key: [(rounds, results[key])] for key in ruled})
    assert schedule.pairings(history) == before
    assert schedule.due(history) == []
    first, second = (
        int(schedule.conclusion(one).split("after ")[1].split()[0]) for one in (history, History(results))
    )
    assert first < second == 2 * rounds


def test_game_to_be_played_again_is_waited_for() -> None:
    schedule = Sprt(TWO, batch=4)
    results = play_batches(schedule, level, 3)
    history = History(
        {key: result for key, result in results.items() if key != "r002-1v2"},
        {"r002-1v2": [(8, results["r002-1v2"])]},
    )
    # Ruled while the fourth batch was under way: it stays, a fifth one has to wait.
    assert [game.key for game in schedule.due(history)][:2] == ["r002-1v2", "r007-1v2"]
    rest = {game.key: level(game) for game in schedule.due(history)}
    without = History({**history.results, **rest, "r002-1v2": Result(1)}, history.earlier)
    assert {game.round for game in schedule.due(without)} == {9, 10}
    del rest["r002-1v2"]
    waiting = History({**history.results, **rest}, history.earlier)
    assert [game.key for game in schedule.due(waiting)] == ["r002-1v2"]


def test_forecast_has_at_least_the_games_that_were_given() -> None:
    """A game of the second batch is to be played again: the evidence is that of the first alone."""
    schedule = Sprt(TWO, batch=4)
    first = play_batches(schedule, wins, 1)
    results = play_batches(schedule, of_strength(25, 0.1, 0.0, "forecast"), 20, first)
    given = len(schedule.pairings(History(results)))
    assert schedule.total(History(first)) < given == 4 * 22
    again = {"r003-1v2": [(given // 2, results.pop("r003-1v2"))]}
    assert len(schedule.pairings(History(results, again))) == given == schedule.total(History(results, again))


# Killed and resumed, and whether it decides rightly.


@pytest.mark.slow
@pytest.mark.parametrize(("elo", "wrong"), [(0, "H1"), (100, "H0")])
@pytest.mark.parametrize(("draws", "bias"), [(0.05, 0.0), (0.3, 0.15)])
def test_errs_as_seldom_as_promised(elo: float, wrong: str, draws: float, bias: float) -> None:
    """With error 5 %, of 100 tests more than 12 err with chance 0.15 % (binomial); the seed is fixed."""
    schedule = Sprt(TWO, elo0=0, elo1=100, max_games=20_000, batch=16)
    ends = []
    for run in range(100):
        results = play(schedule, of_strength(elo, draws, bias, str(run)))
        ends.append(schedule.conclusion(History(results))[:2])
    assert set(ends) <= {"H0", "H1"}
    assert ends.count(wrong) <= 12
