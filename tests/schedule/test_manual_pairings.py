"""Pairings of a Swiss that the organiser fixes or forbids."""

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import sha256

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.schedule.test_swiss import opponents, perfect_matchings, price
from tests.support.builders import make_summary
from tests.support.schedules import better_wins, bots
from tournaments.reporting.ruling_requests import PairingRequest, entries_of, pairing_rulings
from tournaments.reporting.tournament_results import TournamentResults
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
from tournaments.schedule.plan import Plan

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


@settings(max_examples=70)
@given(
    data=st.data(),
    count=st.integers(2, 8),
    rounds=st.integers(1, 9),
    seed=SEEDS,
    is_ruled=st.booleans(),
)
def test_each_round_is_as_good_as_brute_force_can_make_it(
    data: st.DataObject, count: int, rounds: int, seed: int, is_ruled: bool
) -> None:
    """Fixed pairings hold; the others are the best pairing, in which forbidden pairs come before all else.

    The next criteria are rematches, byes and scores, also when rematches cannot be avoided any more.
    """
    past: list[Table] = []
    points = dict.fromkeys(range(count), 0)
    for number in range(rounds):
        fixed = data.draw(fixed_pairings(count)) if is_ruled else ()
        forbidden = data.draw(forbidden_pairs(count)) if is_ruled else frozenset()
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


# A tournament


def test_byes_that_are_given() -> None:
    swiss = Swiss(bots(8), 3)
    given_bye = ManualPairings({2: [(3, NOBODY)]})
    results: dict[str, Result] = {}
    while due := swiss.due(history := History(results, manual=given_bye)):
        results |= {game.key: better_wins(game) for game in due}
    tables = opponents(swiss, history)
    byes = [bot for bot in range(8) if not any(bot in pair for pair in tables[2])]
    assert len(byes) == 2
    assert 3 in byes
    assert swiss.byes(history) == dict.fromkeys(byes, 2.0)
    assert len(results) == swiss.total(history) == 8 + 6 + 8
    coming = History(manual=ManualPairings({3: [(0, NOBODY), (1, NOBODY)]}))
    assert swiss.total(coming) == 8 + 8 + 6
    # Two bots that may not meet do, if there is no other pairing.
    forbidden = ManualPairings(forbidden=[ForbiddenPairing(frozenset((0, 1)), 1)])
    assert len(Swiss(bots(2), 1).due(History(manual=forbidden))) == 2


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


def test_entries_of_the_journal_and_their_end() -> None:
    manual = Rulings(NAMES, ROUND_1, [PAIR, BYE, FORBID]).manual
    assert manual.fixed == {2: [(0, 1), (2, NOBODY)]}
    assert not manual.forbidden_in(1)
    assert manual.forbidden_in(2) == manual.forbidden_in(9) == {frozenset((3, 4))}
    ruled = [PAIR, BYE, FORBID, undo(PAIR), undo(BYE), undo(FORBID, 4)]
    manual = Rulings(NAMES, ROUND_1, ruled).manual
    assert manual.fixed == {2: []}
    assert [bool(manual.forbidden_in(number)) for number in (2, 3, 4)] == [True, True, False]
    for again in (PAIR, BYE, entry(Action.FORBID, "eve", 4, opponent="dan")):
        Rulings(NAMES, ROUND_1, ruled).check(again)
    turned = undo(entry(Action.PAIR, "bob", opponent="ann"))
    assert Rulings(NAMES, ROUND_1, [PAIR, turned]).manual.fixed == {2: []}


def test_a_forbidden_pairing_is_taken_back_or_forbidden_again_from_an_earlier_round() -> None:
    ruled = [FORBID, replace(undo(FORBID, 8), number=2)]
    again = entry(Action.FORBID, "eve", 5, opponent="dan")
    Rulings(NAMES, ROUND_1, ruled).check(again)
    manual = Rulings(NAMES, ROUND_1, [*ruled, again]).manual
    assert all(manual.forbidden_in(number) for number in range(2, 20))
    with pytest.raises(RulingError, match="are already forbidden to meet"):
        Rulings(NAMES, ROUND_1, [*ruled, again]).check(entry(Action.FORBID, "dan", 6, opponent="eve"))
    # The ruling that the command and the server make.
    tournament = TournamentResults(
        *("Cup", "kalah(6,4)", "1 s", NAMES, "points", Plan({"kind": "swiss"}, rounds=9)),
        kept=ROUND_1,
        journal=ruled,
    )
    request = PairingRequest(forbidden=[("dan", "eve")], round_number=4, undo=True)
    now = datetime(2026, 1, 2, tzinfo=UTC)
    new = entries_of(tournament, pairing_rulings(tournament, request), "why", now)
    manual = Rulings(NAMES, ROUND_1, [*ruled, *new]).manual
    assert [bool(manual.forbidden_in(number)) for number in (2, 3, 4, 7, 8)] == [True, True, *[False] * 3]
    # Earlier versions accepted such an entry, too, and it changed nothing: rounds may have been paired since.
    manual = Rulings(NAMES, ROUND_1, [*ruled, undo(FORBID, 4)]).manual
    assert [bool(manual.forbidden_in(number)) for number in (2, 3, 4, 7, 8)] == [*[True] * 4, False]


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
        (entry(Action.FORBID, "eve", opponent="dan"), "'eve' and 'dan' are already forbidden to meet"),
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
def test_refused_rulings(new: Entry, message: str) -> None:
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


def test_rulings_reach_the_schedule_until_the_round_begins() -> None:
    assert [Rulings(NAMES, games).rounds_begun for games in ([], ROUND_1)] == [0, 1]
    ruled = entry(Action.PAIR, "ann", 1, opponent="dan")
    Rulings(NAMES).check(ruled)
    rulings = Rulings(NAMES[:4], [], [ruled])
    swiss = Swiss([Entrant()] * 4, 1)
    table = {frozenset((game.first, game.second)) for game in swiss.due(rulings.history)}
    assert table == {frozenset((0, 3)), frozenset((1, 2))}


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
        return make_summary(*names, winner, key=game.key)._replace(round=game.round)

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
            data |= {"what": action.value, "shortens": True}
            action = Action.RESTORE
        under_way = round_under_way(self.swiss, rulings.history)
        new = Entry(action, draw(st.sampled_from(self.names)), "why", under_way, PAIR.at, data)
        with suppress(RulingError):
            rulings.check(new)
            self.entries.append(new)


@settings(max_examples=30)
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
