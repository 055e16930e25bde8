"""Contract of all tournament formats, see ``tournaments.schedule.pairing.Schedule``."""

import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from hashlib import sha256
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tournaments.schedule.pairing import Entrant, History, Pairing, Result, Schedule, round_under_way
from tournaments.schedule.plan import FORMATS, schedule_of

SMALL = tuple(range(2, 10))
LARGE = (*range(10, 18), 31, 32, 33, 40, 41)
"""Numbers of bots up to that of a course, among them those around the powers of two."""
LONGEST = 50_000
"""Number of steps after which a tournament counts as endless."""


@dataclass(frozen=True)
class Case:
    """Parameters of the tests of a format."""

    own: Callable[[int], Mapping[str, Any]] = lambda _: {}
    """Number of bots -> the format's own parameters."""
    sizes: Sequence[int] = SMALL
    rounds: int = 3
    lots: bool = True
    """True if the seed changes the pairings."""
    joins: bool = True
    """True if bots that join late are paired."""
    catches_up: bool = False
    """True if late bots also play the rounds before they joined."""
    grows: bool = True
    """True if rounds can be raised at any time."""
    ranks: bool = False
    """True if the format itself ranks all bots."""
    steady: bool = True
    """Whether a ruling on the very round that is under way also keeps what was paired.  In a knockout it may
    decide a match whose extra games are then not needed any more."""


FORMAT_CASES = {
    "round-robin": Case(catches_up=True),
    "gauntlet": Case(lambda bots: {"challengers": (0, 2)[: bots // 2]}, catches_up=True),
    "swiss": Case(rounds=5),
    "ladder": Case(rounds=5, lots=False),
    "knockout": Case(lambda _: {"seeding": "random"}, joins=False, ranks=True, steady=False),
    "groups": Case(
        lambda bots: {"groups": max(1, bots // 4), "final": ("knockout", "round-robin")[bots % 2]},
        joins=False,
        grows=False,
        ranks=True,
        steady=False,
    ),
    "placement": Case(lambda bots: {"challengers": (bots // 2,)}, rounds=5, lots=False, joins=False),
    "sprt": Case(lambda _: {"max_games": 48, "batch": 8}, sizes=(2,), lots=False, joins=False),
}
EACH_FORMAT = pytest.mark.parametrize("name", FORMAT_CASES)
SEEDS = st.integers(0, 2**32)


@dataclass
class Event:
    """A tournament that is under way."""

    name: str
    entrants: list[Entrant]
    seed: int = 0
    rounds: int = 0
    results: dict[str, Result] = field(default_factory=dict)
    earlier: dict[str, list[tuple[int, Result | None]]] = field(default_factory=dict)
    salt: str = ""
    """The results are a pure function of this and the key."""

    def __post_init__(self) -> None:
        self.rounds = self.rounds or FORMAT_CASES[self.name].rounds
        self.own = FORMAT_CASES[self.name].own(len(self.entrants))  # as the tournament file had it

    @property
    def schedule(self) -> Schedule:
        """A new object each time, as after a crash."""
        parameters = {"kind": self.name, **self.own}
        return schedule_of(parameters, tuple(self.entrants), self.rounds, self.seed, width=2)

    @property
    def history(self) -> History:
        return History(dict(self.results), {key: tuple(changes) for key, changes in self.earlier.items()})

    @property
    def pairings(self) -> Sequence[Pairing]:
        return self.schedule.pairings(self.history)

    @property
    def due(self) -> Sequence[Pairing]:
        return self.schedule.due(self.history)

    def end(self, keys: Iterable[str]) -> None:
        self.results |= {key: result_of(key, self.salt) for key in keys}

    def play(self) -> "Event":
        """To the end, all that is due at a time."""
        for _ in range(LONGEST):
            due = self.due
            if not due:
                return self
            assert not {game.key for game in due} & self.results.keys()
            self.end(game.key for game in due)
        raise AssertionError(f"{self.name} does not end")

    def withdraw(self, bot: int) -> None:
        self.entrants[bot] = replace(self.entrants[bot], until=round_under_way(self.schedule, self.history))

    def join(self, replaces: int | None = None) -> int:
        since = round_under_way(self.schedule, self.history) + 1
        self.entrants.append(Entrant(since=since, replaces=replaces))
        return since

    def rule(self, key: str, result: Result | None) -> None:
        """None: to be played again."""
        under_way = round_under_way(self.schedule, self.history)
        self.earlier.setdefault(key, []).append((under_way, self.results.pop(key, None)))
        if result is not None:
            self.results[key] = result


def result_of(key: str, salt: str = "") -> Result:
    """Of 16 games, 1 void, 3 drawn."""
    noise = sha256(f"{salt}/{key}".encode()).digest()
    if noise[0] % 16 < 4:
        return Result(None, 0, noise[:4].hex(), counts=noise[0] % 16 > 0)
    winner = noise[1] % 2
    return Result(winner, (1 - 2 * winner) * (1 + noise[2] % 9), noise[:4].hex())


def started(name: str, bots: int, seed: int = 0, **more: Any) -> Event:
    return Event(name, [Entrant()] * bots, seed, **more)


def drawn(data: st.DataObject, name: str) -> Event:
    """A small event, and results, by chance."""
    bots = data.draw(st.sampled_from(FORMAT_CASES[name].sizes), label="bots")
    seed = data.draw(SEEDS, label="seed")
    return started(name, bots, seed, salt=f"{seed}")


def check_games(games: Sequence[Pairing], bots: int, may_miss: bool = False) -> None:
    """Check the games of any event; if bots withdrew, return games may be missing."""
    assert len({game.key for game in games}) == len(games)
    pairs: dict[str, list[Pairing]] = {}
    for game in games:
        assert re.fullmatch(r"[A-Za-z0-9._+-]{1,60}", game.key)
        assert game.first != game.second
        assert {game.first, game.second} <= set(range(bots))
        assert game.round >= 1
        assert game.opening >= 0
        pairs.setdefault(game.pair, []).append(game)
    for one, *rest in pairs.values():
        assert re.fullmatch(r"[A-Za-z0-9._+-]{1,60}", one.pair)
        if may_miss and not rest:
            continue
        (other,) = rest
        assert (one.first, one.second, one.round) == (other.second, other.first, other.round)
        assert one.opening == other.opening


def check_end(event: Event) -> None:
    """Check an event in which no game is due any more."""
    assert not event.due
    schedule, history = event.schedule, event.history
    assert schedule.total(history) == len(event.results)
    assert all(place >= 1 for place in schedule.places(history).values())
    assert all(points > 0 for points in schedule.byes(history).values())
    assert {*schedule.places(history), *schedule.byes(history)} <= set(range(len(event.entrants)))
    assert isinstance(schedule.conclusion(history), str)
    if FORMAT_CASES[event.name].ranks:
        in_time = {bot for bot, entrant in enumerate(event.entrants) if entrant.since <= 1}
        assert set(schedule.places(history)) == in_time


def check_due(event: Event) -> None:
    playing = [
        game
        for game in event.pairings
        if game.key not in event.results
        and event.entrants[game.first].until is None is event.entrants[game.second].until
    ]
    assert list(event.due) == playing


def check_kept(before: Sequence[Pairing], event: Event) -> None:
    """Check that pairings stay; only games that a withdrawal left unplayed may be removed."""
    now = {game.key: game for game in event.pairings}
    for game in before:
        if game.key in now:
            assert now[game.key] == game
        else:
            assert any(event.entrants[bot].until is not None for bot in (game.first, game.second))
            assert game.key not in event.results


def check_withdrawn(event: Event) -> None:
    for game in event.pairings:
        for bot in (game.first, game.second):
            until = event.entrants[bot].until
            assert until is None or game.round <= until


def test_every_format_is_tested() -> None:
    assert FORMAT_CASES.keys() == FORMATS.keys()


def check_whole(name: str, bots: int) -> None:
    """Play an event to its end; every bot moves first as often as second."""
    event = started(name, bots)
    check_due(event)
    event.play()
    check_end(event)
    games = event.pairings
    assert [game for game in games if game.key not in event.results] == []
    check_games(games, bots)
    firsts, seconds = Counter(game.first for game in games), Counter(game.second for game in games)
    assert firsts == seconds
    if name != "placement" and (bots > 2 or name != "ladder"):
        assert set(firsts) == set(range(bots))


@EACH_FORMAT
def test_small_fields_to_the_end(name: str) -> None:
    for bots in FORMAT_CASES[name].sizes:
        check_whole(name, bots)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in FORMAT_CASES if name != "sprt"])
def test_large_fields_to_the_end(name: str) -> None:
    for bots in LARGE:
        check_whole(name, bots)


@EACH_FORMAT
@settings(max_examples=8)
@given(data=st.data())
def test_killed_and_resumed_at_any_point(name: str, data: st.DataObject) -> None:
    """Games end in any order, several are in flight, and now and then all of these are lost."""
    event = drawn(data, name)
    quiet = started(name, len(event.entrants), event.seed, salt=event.salt).play()
    chance = random.Random(event.seed)
    in_flight: list[str] = []
    paired: Sequence[Pairing] = ()
    for _ in range(LONGEST):
        due = event.due
        check_kept(paired, event)
        paired = event.pairings
        keys = [game.key for game in due]
        assert set(in_flight) <= set(keys)
        in_flight += [key for key in keys if key not in in_flight][: chance.randrange(9)]
        if chance.random() < 0.1:
            in_flight.clear()
        if in_flight:
            chance.shuffle(in_flight)
            event.end(in_flight.pop() for _ in range(chance.randint(1, min(4, len(in_flight)))))
        elif not due:
            break
    assert event.results == quiet.results
    assert event.pairings == quiet.pairings
    check_end(event)


@EACH_FORMAT
def test_the_seed_decides_the_drawing_of_lots(name: str) -> None:
    bots = min(8, max(FORMAT_CASES[name].sizes))
    orders = [started(name, bots, seed).pairings for seed in (1, 2, 3, 1)]
    assert orders[0] == orders[3]
    assert (orders[0] != orders[1] != orders[2] != orders[0]) == FORMAT_CASES[name].lots


@EACH_FORMAT
@settings(max_examples=8)
@given(data=st.data())
def test_more_rounds_change_nothing_that_was_paired(name: str, data: st.DataObject) -> None:
    has_rounds = "rounds" in {one.name for one in fields(FORMATS[name])}
    event = drawn(data, name)
    if not (has_rounds and FORMAT_CASES[name].grows):
        return
    for _ in range(data.draw(st.integers(0, FORMAT_CASES[name].rounds), label="batches")):
        event.end(game.key for game in event.due)
    before = event.pairings
    event.rounds += 2
    assert event.pairings[: len(before)] == before
    event.play()
    assert event.pairings[: len(before)] == before
    assert len(event.pairings) > len(before)
    check_end(event)


@EACH_FORMAT
@settings(max_examples=8)
@given(data=st.data())
def test_late_joins(name: str, data: st.DataObject) -> None:
    case, event = FORMAT_CASES[name], drawn(data, name)
    if len(case.sizes) == 1:
        return
    event.end(game.key for game in data.draw(subsets(event.due), label="ended"))
    before = event.pairings
    since = event.join()
    newcomer = len(event.entrants) - 1
    check_kept(before, event)
    event.play()
    check_kept(before, event)
    check_end(event)
    check_games(event.pairings, len(event.entrants))
    rounds = {game.round for game in event.pairings if newcomer in (game.first, game.second)}
    if not case.joins:
        assert rounds == set()
    elif case.catches_up:
        assert rounds == set(range(1, event.rounds + 1))
    else:
        assert min(rounds) >= since


def subsets(games: Sequence[Pairing]) -> st.SearchStrategy[list[Pairing]]:
    return st.lists(st.sampled_from(games), unique=True) if games else st.just([])


@EACH_FORMAT
@settings(max_examples=15)
@given(data=st.data())
def test_withdrawals_late_joins_and_rulings_at_any_time(name: str, data: st.DataObject) -> None:
    event = drawn(data, name)
    chance = random.Random(event.seed)
    for _ in range(data.draw(st.integers(1, 30), label="steps")):
        before, due = event.pairings, event.due
        act(event, chance, due)
        check_kept(before, event)
        check_due(event)
        check_withdrawn(event)
    before = event.pairings
    event.play()
    check_kept(before, event)
    check_withdrawn(event)
    check_end(event)
    left = any(entrant.until is not None for entrant in event.entrants)
    check_games(event.pairings, len(event.entrants), may_miss=left)


def act(event: Event, chance: random.Random, due: Sequence[Pairing]) -> None:
    """A withdrawal, a late join, a ruling on any game, or the end of some games."""
    what = chance.random()
    staying = [bot for bot, entrant in enumerate(event.entrants) if entrant.until is None]
    if what < 0.1 and staying:
        event.withdraw(chance.choice(staying))
    elif what < 0.2 and FORMAT_CASES[event.name].joins:
        gone = [bot for bot in range(len(event.entrants)) if bot not in staying]
        event.join(chance.choice([None, *gone]))
    elif what < 0.35 and event.results:
        under_way = round_under_way(event.schedule, event.history)
        rounds = {game.key: game.round for game in event.pairings}
        steady = FORMAT_CASES[event.name].steady
        keys = [key for key in sorted(event.results) if steady or rounds[key] < under_way]
        if keys:
            event.rule(
                chance.choice(keys), chance.choice([None, Result(None, counts=False), Result(0), Result(1)])
            )
    elif what < 0.4 and due and FORMAT_CASES[event.name].steady:
        event.rule(chance.choice(due).key, chance.choice([Result(None, counts=False), Result(0)]))
    elif what < 0.7:
        event.end(game.key for game in due if chance.random() < 0.7)
    else:
        event.end(game.key for game in due)


@EACH_FORMAT
def test_nothing_but_void_games(name: str) -> None:
    for bots in FORMAT_CASES[name].sizes:
        event = started(name, bots)
        for _ in range(LONGEST):
            if not event.due:
                break
            event.results |= {game.key: Result(None, counts=False) for game in event.due}
        check_end(event)


@EACH_FORMAT
def test_unknown_results_change_nothing(name: str) -> None:
    event = started(name, min(7, max(FORMAT_CASES[name].sizes)))
    before = event.pairings
    event.results["r999-unknown"] = Result(0)
    assert event.pairings == before
