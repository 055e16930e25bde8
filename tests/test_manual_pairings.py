"""Pairings of a Swiss that the organiser fixes or forbids."""

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from hashlib import sha256

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.builders import make_summary
from tests.schedules import better_wins, bots, play
from tests.test_swiss import opponents, perfect_matchings, price
from tournaments.results.game_summary import GameSummary
from tournaments.results.journal import Action, Entry
from tournaments.results.rulings import RulingError, Rulings
from tournaments.schedule.formats.swiss import Swiss
from tournaments.schedule.formats.swiss_pairing import Table, can_avoid, pair_round
from tournaments.schedule.pairing import (
    NOBODY,
    Entrant,
    ForbiddenPairing,
    History,
    ManualPairings,
    Pairing,
    Result,
    round_under_way,
)

SEEDS = st.integers(0, 2**32)
NAMES = ["ann", "bob", "cid", "dan", "eve"]


# Pairing a round


@st.composite
def fixed_pairings(draw: st.DrawFn, count: int) -> Table:
    """Draw pairs and byes of some of the bots."""
    chosen = draw(st.permutations(range(count)))
    pairs, byes = draw(st.integers(0, count // 2)), draw(st.integers(0, 2))
    fixed = [(chosen[2 * pair], chosen[2 * pair + 1]) for pair in range(pairs)]
    fixed += [(bot, NOBODY) for bot in chosen[2 * pairs : 2 * pairs + byes]]
    return tuple(fixed)


@st.composite
def forbidden_pairs(draw: st.DrawFn, count: int) -> frozenset[frozenset[int]]:
    numbers = st.integers(0, count - 1)
    pairs = draw(st.lists(st.tuples(numbers, numbers), max_size=12))
    return frozenset(frozenset(pair) for pair in pairs if pair[0] != pair[1])


@settings(max_examples=120, deadline=None)
@given(data=st.data(), count=st.integers(2, 8), rounds=st.integers(1, 8), seed=SEEDS)
def test_each_round_is_as_good_as_brute_force_can_make_it(
    data: st.DataObject, count: int, rounds: int, seed: int
) -> None:
    """Fixed pairings hold; the others are the best pairing, in which forbidden pairs come before all else."""
    past: list[Table] = []
    points = dict.fromkeys(range(count), 0)
    for number in range(rounds):
        fixed, forbidden = data.draw(fixed_pairings(count)), data.draw(forbidden_pairs(count))
        table = pair_round(tuple(points.items()), tuple(past), seed, fixed, forbidden)
        once = Counter(bot for pair in table for bot in pair if bot != NOBODY)
        assert once == dict.fromkeys(range(count), 1), "every bot plays, or has a bye, once"
        chosen = {frozenset(pair) for pair in table}
        given_pairs = {frozenset(pair) for pair in fixed}
        assert given_pairs <= chosen
        free = {bot: half for bot, half in points.items() if not any(bot in pair for pair in fixed)}
        others = [*free, NOBODY] if len(free) % 2 else list(free)

        def cost(pairs: Sequence[frozenset[int]]) -> tuple[object, ...]:
            return (
                sum(pair in forbidden for pair in pairs),  # noqa: B023
                *price(pairs, free, past),  # noqa: B023
            )

        if free:
            best = min(cost(pairs) for pairs in perfect_matchings(others))
            assert cost([*(chosen - given_pairs)]) == best
            open_pairs = frozenset(pair for pair in forbidden if pair <= free.keys())
            assert can_avoid(range(count), fixed, open_pairs) == (best[0] == 0)
        past.append(table)
        for first, second in table:
            noise = sha256(f"{seed}/{number}/{first}".encode()).digest()[0] % 5
            points[first] += 4 if second == NOBODY else noise
            if second != NOBODY:
                points[second] += 4 - noise


@given(count=st.integers(2, 9), rounds=st.integers(1, 6), seed=SEEDS)
@settings(deadline=None)
def test_without_rulings_nothing_changes(count: int, rounds: int, seed: int) -> None:
    past: tuple[Table, ...] = ()
    for _ in range(rounds):
        standing = tuple((bot, (bot * 7 + len(past)) % 5) for bot in range(count))
        table = pair_round(standing, past, seed)
        assert pair_round(standing, past, seed, (), frozenset()) == table
        past += (table,)


# A tournament


def swiss_with(manual: ManualPairings, count: int = 8, rounds: int = 4) -> tuple[Swiss, History]:
    """Play a tournament to its end."""
    swiss = Swiss(bots(count), rounds)
    results: dict[str, Result] = {}
    while due := swiss.due(History(results, manual=manual)):
        results |= {game.key: better_wins(game) for game in due}
    return swiss, History(results, manual=manual)


def meetings(swiss: Swiss, history: History) -> dict[int, set[frozenset[int]]]:
    tables = opponents(swiss, history)
    return {number: {frozenset(pair) for pair in table} for number, table in tables.items()}


def test_a_fixed_pairing_is_of_one_round() -> None:
    swiss, history = swiss_with(ManualPairings({2: [(0, 7)], 3: [(0, 7), (1, 6)]}))
    met = meetings(swiss, history)
    assert frozenset((0, 7)) in met[2] & met[3]
    assert frozenset((1, 6)) in met[3]
    assert frozenset((0, 7)) not in met[4]
    assert met[1] == meetings(*swiss_with(ManualPairings()))[1], "what comes before is as it would have been"


def test_a_forbidden_pairing_and_its_end() -> None:
    """The ruling holds until it is taken back, unless there is no other pairing."""
    for until, first_meeting in ((None, 5), (1, 2), (2, 3)):
        forbidden = [ForbiddenPairing(frozenset((0, 1)), 1, until)]
        met = meetings(*swiss_with(ManualPairings(forbidden=forbidden), 4, 4))
        assert min((number for number in met if frozenset((0, 1)) in met[number]), default=5) >= first_meeting
    met = meetings(*swiss_with(ManualPairings(forbidden=[ForbiddenPairing(frozenset((0, 1)), 1)]), 2, 1))
    assert met == {1: {frozenset((0, 1))}}, "there is no other pairing"


def test_byes_that_are_given() -> None:
    swiss, history = swiss_with(ManualPairings({2: [(3, NOBODY)]}), 7, 3)
    assert swiss.byes(history)[3] == 2.0 * (
        1 + (3 in byes_of(swiss, history, 1) + byes_of(swiss, history, 3))
    )
    assert byes_of(swiss, history, 2) == [3], "the only one, since six are left"
    swiss, history = swiss_with(ManualPairings({2: [(3, NOBODY)]}), 8, 3)
    assert len(byes_of(swiss, history, 2)) == 2
    assert len(history.results) == swiss.total(history) == 8 + 6 + 8


def byes_of(swiss: Swiss, history: History, number: int) -> list[int]:
    met = meetings(swiss, history)[number]
    return [bot for bot in range(len(swiss.entrants)) if not any(bot in pair for pair in met)]


def test_the_total_counts_byes_of_coming_rounds() -> None:
    history = History(manual=ManualPairings({3: [(0, NOBODY), (1, NOBODY)]}))
    assert Swiss(bots(8), 3).total(history) == 8 + 8 + 6


def test_a_bot_that_withdrew_leaves_its_fixed_opponent_free() -> None:
    manual = ManualPairings({2: [(0, 7)], 3: [(0, 7)]})
    swiss = Swiss(bots(8, b7=2), 3)
    results: dict[str, Result] = {}
    while due := swiss.due(History(results, manual=manual)):
        results |= {game.key: better_wins(game) for game in due}
    met = meetings(swiss, History(results, manual=manual))
    assert frozenset((0, 7)) in met[2], "it had been paired when it withdrew"
    assert all(7 not in pair for pair in met[3])
    assert sum(0 in pair for pair in met[3]) <= 1


# The journal


def entry(action: Action, subject: str, for_round: int = 2, **data: object) -> Entry:
    at = "2026-01-02T03:04:05+00:00"
    return Entry(action, subject, "a reason", 1, at, {"for_round": for_round, **data}, 1)


def undo(ruled: Entry, for_round: int | None = None) -> Entry:
    number = for_round or ruled.data["for_round"]
    data = {**ruled.data, "what": ruled.action.value, "for_round": number}
    return Entry(Action.RESTORE, ruled.subject, "a reason", 1, ruled.at, data, 1)


PAIR = entry(Action.PAIR, "ann", opponent="bob")
BYE = entry(Action.BYE, "cid")
FORBID = entry(Action.FORBID, "dan", opponent="eve")
ROUND_1 = [make_summary("ann", "cid", 0, key="r001-1v3")]


def test_what_the_entries_mean() -> None:
    manual = Rulings(NAMES, ROUND_1, [PAIR, BYE, FORBID]).manual
    assert manual.fixed == {2: [(0, 1), (2, NOBODY)]}
    assert not manual.forbidden_in(1)
    assert manual.forbidden_in(2) == manual.forbidden_in(9) == {frozenset((3, 4))}


def test_what_is_taken_back() -> None:
    ruled = [PAIR, BYE, FORBID, undo(PAIR), undo(BYE), undo(FORBID, 4)]
    manual = Rulings(NAMES, ROUND_1, ruled).manual
    assert manual.fixed == {2: []}
    assert [bool(manual.forbidden_in(number)) for number in (2, 3, 4)] == [True, True, False]
    for again in (PAIR, BYE, entry(Action.FORBID, "eve", 4, opponent="dan")):
        Rulings(NAMES, ROUND_1, ruled).check(again)


def test_either_bot_may_be_named_first_when_it_is_taken_back() -> None:
    turned = entry(Action.PAIR, "bob", opponent="ann")
    rulings = Rulings(NAMES, ROUND_1, [PAIR, undo(turned)])
    assert rulings.manual.fixed == {2: []}


@pytest.mark.parametrize(
    ("new", "message"),
    [
        (
            entry(Action.PAIR, "ann", 1, opponent="dan"),
            "round 1 has begun, and its pairings stay as they are",
        ),
        (undo(PAIR, 1), "round 1 has begun, .*: the next round is 2"),
        (entry(Action.PAIR, "ann", opponent="dan"), "'ann' has a fixed pairing in round 2 already: take it"),
        (entry(Action.PAIR, "dan", opponent="cid"), "'cid' has a fixed pairing in round 2 already"),
        (entry(Action.BYE, "bob"), "'bob' has a fixed pairing in round 2 already"),
        (entry(Action.PAIR, "dan", opponent="dan"), "'dan' cannot meet itself: name two bots"),
        (entry(Action.FORBID, "dan", opponent="dan"), "'dan' cannot meet itself"),
        (entry(Action.PAIR, "dan", opponent="fay"), "there is no bot 'fay' here; there are ann, bob, cid"),
        (entry(Action.PAIR, "eve", opponent="dan"), "'eve' and 'dan' are forbidden to meet: take that back"),
        (entry(Action.FORBID, "eve", opponent="dan"), "'eve' and 'dan' are forbidden to meet already"),
        (entry(Action.FORBID, "bob", opponent="ann"), "'bob' and 'ann' meet in round 2 by a ruling: take"),
        (entry(Action.PAIR, "late", opponent="dan"), "'late' joins in round 3, after round 2"),
        (entry(Action.PAIR, "gone", opponent="dan"), "'gone' has withdrawn already"),
        (undo(PAIR, 3), "nothing to take back: nobody ruled that 'ann' meets bob in round 3"),
        (undo(entry(Action.BYE, "dan")), "nobody ruled that 'dan' has a bye in round 2"),
        (
            undo(entry(Action.FORBID, "ann", opponent="bob")),
            "nobody ruled that 'ann' does not meet bob from round 2 on",
        ),
    ],
)
def test_what_is_refused(new: Entry, message: str) -> None:
    at = PAIR.at
    ruled = [
        *(PAIR, BYE, FORBID),
        Entry(Action.ADD, "late", "x", 2, at, {"replaces": None}),
        Entry(Action.WITHDRAW, "gone", "x", 1, at, {"annul": False}),
    ]
    with pytest.raises(RulingError, match=message):
        Rulings([*NAMES, "gone"], ROUND_1, ruled).check(new)


@pytest.mark.parametrize(
    "damaged",
    [
        entry(Action.PAIR, "ann", opponent="nobody"),
        Entry(Action.BYE, "ann", "x", 1, PAIR.at, {}, 1),
        Entry(Action.FORBID, "ann", "x", 1, PAIR.at, {"opponent": "bob", "for_round": "x"}, 1),
        undo(entry(Action.PAIR, "ann", 5, opponent="bob")),
    ],
)
def test_a_damaged_entry(damaged: Entry) -> None:
    with pytest.raises(RulingError, match="entry 1 of the journal fits no game or bot here"):
        Rulings(NAMES, ROUND_1, [damaged])


@pytest.mark.parametrize(
    ("ruled", "text"),
    [
        (PAIR, "pair ann (meets bob in round 2): a reason"),
        (BYE, "bye cid (has a bye in round 2): a reason"),
        (FORBID, "forbid dan (does not meet eve from round 2 on): a reason"),
        (undo(PAIR), "restore ann (need not meet bob in round 2): a reason"),
        (undo(BYE), "restore cid (need not have a bye in round 2): a reason"),
        (undo(FORBID, 4), "restore dan (may meet eve from round 4 on): a reason"),
    ],
)
def test_an_entry_as_people_read_it(ruled: Entry, text: str) -> None:
    assert str(ruled) == text
    assert not ruled.is_of_game


def test_a_round_begins_with_a_result() -> None:
    assert Rulings(NAMES).rounds_begun == 0
    assert Rulings(NAMES, ROUND_1).rounds_begun == 1
    Rulings(NAMES).check(entry(Action.PAIR, "ann", 1, opponent="bob"))


def test_rulings_reach_the_schedule() -> None:
    rulings = Rulings(NAMES[:4], [], [entry(Action.PAIR, "ann", 1, opponent="dan")])
    swiss = Swiss([Entrant()] * 4, 1)
    table = {frozenset((game.first, game.second)) for game in swiss.due(rulings.history)}
    assert table == {frozenset((0, 3)), frozenset((1, 2))}
    assert play(swiss)


# Any sequence


class Played:
    """A Swiss that is played and ruled upon at random, as the command does it."""

    def __init__(self, data: st.DataObject) -> None:
        self.data = data
        count = data.draw(st.integers(2, 7))
        self.names = [f"bot {number}" for number in range(count)]
        self.games: list[GameSummary] = []
        self.entries: list[Entry] = []
        self.scoring = data.draw(st.sampled_from(["games", "match"]))
        self.seed = data.draw(SEEDS)

    @property
    def rulings(self) -> Rulings:
        return Rulings(self.names, self.games, self.entries)

    @property
    def swiss(self) -> Swiss:
        return Swiss(self.rulings.entrants, 4, self.seed, scoring=self.scoring)

    def play(self) -> None:
        """Play some of the games that are due."""
        due = self.swiss.due(self.rulings.history)
        self.games += map(self.result_of, due[: self.data.draw(st.integers(0, 9))])

    def result_of(self, game: Pairing) -> GameSummary:
        names = self.names[game.first], self.names[game.second]
        winner = sha256(f"{self.seed}/{game.key}".encode()).digest()[0] % 2
        return replace(make_summary(*names, winner, key=game.key), round=game.round)

    def rule(self) -> None:
        """Try a ruling; a refused one changes nothing."""
        draw, rulings = self.data.draw, self.rulings
        action = draw(st.sampled_from([Action.PAIR, Action.BYE, Action.FORBID, Action.WITHDRAW]))
        data: dict[str, object] = {"annul": False}
        if action is not Action.WITHDRAW:
            data = {"for_round": draw(st.integers(1, 4))}
        if action in (Action.PAIR, Action.FORBID):
            data["opponent"] = draw(st.sampled_from(self.names))
        if action is not Action.WITHDRAW and draw(st.booleans()):
            data["what"], action = action.value, Action.RESTORE
        under_way = round_under_way(self.swiss, rulings.history)
        new = Entry(action, draw(st.sampled_from(self.names)), "why", under_way, PAIR.at, data)
        with suppress(RulingError):
            rulings.check(new)
            self.entries.append(new)


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_any_sequence_of_rulings(data: st.DataObject) -> None:
    tournament = Played(data)
    for _ in range(data.draw(st.integers(1, 10))):
        tournament.play()
        begun, history = tournament.rulings.rounds_begun, tournament.rulings.history
        before = [game for game in tournament.swiss.pairings(history) if game.round <= begun]
        tournament.rule()
        rulings = tournament.rulings
        pairings = tournament.swiss.pairings(rulings.history)
        assert [game for game in pairings if game.round <= begun] == before, "what was played stays"
        assert {game.key for game in tournament.games} <= {game.key for game in pairings}
        for number in {game.round for game in pairings}:
            met = Counter(frozenset((game.first, game.second)) for game in pairings if game.round == number)
            assert set(met.values()) <= {2}
            assert max(Counter(bot for pair in met for bot in pair).values()) == 1, "once a round at most"
            playing = [bot for bot, entrant in enumerate(rulings.entrants) if entrant.plays(number)]
            for one, other in rulings.manual.fixed_in(number, playing):
                if other != NOBODY:
                    assert frozenset((one, other)) in met
                elif len(playing) > 1:
                    assert not any(one in pair for pair in met)
