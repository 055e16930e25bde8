"""The plan: what the store keeps of who meets whom, and what it was in older stores."""

import json

import pytest

from tournaments.schedule.formats.gauntlet import Gauntlet
from tournaments.schedule.formats.round_robin import RoundRobin
from tournaments.schedule.formats.sprt import Sprt
from tournaments.schedule.pairing import Entrant, History
from tournaments.schedule.plan import Plan

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
def test_what_cannot_be_played(plan: Plan, names: list[str]) -> None:
    with pytest.raises(ValueError):
        plan.schedule(names, [Entrant() for _ in names])
