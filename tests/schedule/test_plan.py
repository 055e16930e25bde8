"""The plan of a tournament as the store keeps it, and the placement of one bot among ordered players."""

import json

import pytest

from tournaments.schedule.formats.gauntlet import Gauntlet
from tournaments.schedule.formats.placement import Placement
from tournaments.schedule.formats.round_robin import RoundRobin
from tournaments.schedule.formats.sprt import Sprt
from tournaments.schedule.pairing import Entrant, History, Pairing, Result
from tournaments.schedule.plan import FORMATS, ROUND_ROBIN, Plan, schedule_of

NAMES = ["ann", "bob", "cid"]
PLANS = [
    Plan(),
    Plan(rounds=7, seed=3, width=2, openings=5),
    Plan({"kind": "gauntlet", "challengers": ["cid"]}, rounds=2),
    Plan({"kind": "swiss", "pairs": 2}, rounds=2, seed=-1),
    Plan(
        {"kind": "sprt", "elo0": 0.0, "elo1": 10.0, "alpha": 0.05, "beta": 0.05, "max_games": 10, "batch": 2}
    ),
]


@pytest.mark.parametrize("plan", PLANS, ids=str)
def test_the_store_keeps_it_whole(plan: Plan) -> None:
    noted = {"game": "kalah", "bots": NAMES, **plan.to_json()}
    assert Plan.from_json(json.loads(json.dumps(noted))) == plan


@pytest.mark.parametrize("bots", [1, 2, 3, 11])
@pytest.mark.parametrize("rounds", [1, 4])
def test_a_store_of_the_first_versions_is_of_a_round_robin(bots: int, rounds: int) -> None:
    config = {"bots": [f"bot {number}" for number in range(bots)], "total": rounds * bots * (bots - 1)}
    plan = Plan.from_json(config)
    assert plan.kind == "round-robin"
    assert plan.rounds == (rounds if bots > 1 else 0)
    schedule = plan.schedule(config["bots"], [Entrant() for _ in range(bots)])  # type: ignore[arg-type]
    keys = {pairing.key for pairing in schedule.pairings(History())}
    assert len(keys) == config["total"]
    if bots == 11:
        assert {"r001-01v11", "r001-11v01"} < keys


def test_names_become_numbers() -> None:
    entrants = [Entrant() for _ in NAMES]
    assert schedule_of({"kind": ROUND_ROBIN}, entrants, 3, 7, 2) == RoundRobin(entrants, 3, 7, 2)
    ladder = schedule_of({"kind": "ladder", "pairs": 2}, entrants, 3, 7, 2)
    assert ladder == FORMATS["ladder"](entrants=entrants, rounds=3, width=2, pairs=2)
    assert PLANS[0].schedule(NAMES, entrants) == RoundRobin(entrants, 1)
    gauntlet = PLANS[2].schedule(NAMES, entrants)
    assert isinstance(gauntlet, Gauntlet)
    assert (gauntlet.challengers, gauntlet.rounds) == ((2,), 2)
    sprt = Plan(PLANS[4].format, openings=9).schedule(NAMES[:2], entrants[:2])
    assert isinstance(sprt, Sprt)
    assert sprt.openings == 9


def test_keys_keep_their_width_when_the_tenth_bot_joins() -> None:
    """The digits are those of the file's bots, so that no key that was played changes."""
    nine = [Entrant() for _ in range(9)]
    names = [f"bot {number}" for number in range(11)]
    before = {pairing.key for pairing in Plan().schedule(names[:9], nine).pairings(History())}
    later = [*nine, Entrant(since=2), Entrant(since=2)]
    after = {pairing.key for pairing in Plan().schedule(names, later).pairings(History())}
    assert before < after
    assert {"r001-1v11", "r001-11v1", "r001-10v11"} < after
    assert len(after) == 11 * 10


@pytest.mark.parametrize(
    ("plan", "names"),
    [(PLANS[4], NAMES), (Plan({"kind": "gauntlet", "challengers": ["eve"]}), NAMES)],
)
def test_refused_plans(plan: Plan, names: list[str]) -> None:
    with pytest.raises(ValueError):
        plan.schedule(names, [Entrant() for _ in names])


# The placement.

TEN = [Entrant()] * 11
"""A challenger, number 0, and ten players."""


def placement(rounds: int = 8, entrants: list[Entrant] = TEN, **own: int) -> Placement:
    return Placement(entrants, rounds, width=2, challengers=(0,), **own)


def played(schedule: Placement, level: float) -> list[set[int]]:
    """The players of each round, when the challenger beats all below a level and nobody else."""
    results: dict[str, Result] = {}
    met: dict[int, set[int]] = {}
    while due := schedule.due(History(results)):
        for game in due:
            player = game.first or game.second
            met.setdefault(game.round, set()).add(player)
            wins = player < level
            results[game.key] = Result(int(wins == (game.second == 0)), line=game.key)
    return [met[number] for number in sorted(met)]


def test_a_placement_begins_in_the_middle() -> None:
    due = placement(pairs=2).due(History())
    assert [(game.key, game.opening) for game in due] == [
        *(("r001-01v06", 0), ("r001-06v01", 0), ("r001-06v01.2", 1), ("r001-01v06.2", 1)),
        *(("r001-01v07", 0), ("r001-07v01", 0), ("r001-07v01.2", 1), ("r001-01v07.2", 1)),
    ]


@pytest.mark.parametrize(
    ("level", "last"),
    [(0.5, {1, 2}), (1.5, {1, 2}), (3.5, {3, 4}), (5.5, {5, 6}), (8.5, {8, 9}), (11, {9, 10})],
)
def test_a_placement_ends_at_the_challengers_place(level: float, last: set[int]) -> None:
    rounds = played(placement(), level)
    assert len(rounds) == 8
    assert rounds[-3:] == [last] * 3


def test_the_next_round_waits_for_all_games_of_the_last_one() -> None:
    schedule = placement()
    first = schedule.due(History())
    results = {game.key: Result(0, line=game.key) for game in first[:-1]}
    assert schedule.due(History(results)) == first[-1:]
    assert schedule.total(History(results)) == 8 * 4


def test_a_player_that_withdrew_is_met_no_more() -> None:
    entrants = [*TEN]
    entrants[5] = Entrant(until=1)
    results: dict[str, Result] = {}
    schedule = placement(entrants=entrants)
    games: list[Pairing] = []
    while due := schedule.due(History(results)):
        games += due
        results |= {game.key: Result(None, line=game.key) for game in due}
    assert 5 not in {game.first for game in games} | {game.second for game in games}
    assert schedule.total(History(results)) == len(results)


def test_one_player_is_enough() -> None:
    assert played(placement(3, [Entrant(), Entrant()]), 5) == [{1}] * 3


@pytest.mark.slow
def test_a_placement_reaches_the_weakest_of_a_thousand_players() -> None:
    withdrawn = [Entrant(until=0)] * 997  # so that the second round is at the bottom already
    assert played(placement(3, [*[Entrant()] * 3, *withdrawn]), 0) == [{1, 2}] * 3


@pytest.mark.parametrize(
    ("entrants", "challengers", "message"),
    [
        (3, (0, 1), "one challenger, not 2"),
        (3, (3,), "challenger 3"),
        (1, (0,), "somebody to be compared with"),
    ],
)
def test_refused_placements(entrants: int, challengers: tuple[int, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Placement([Entrant()] * entrants, 1, challengers=challengers)
