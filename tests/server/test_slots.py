"""CPU slots: who gets the next one, and that none is ever lost."""

from functools import partial

import pytest
import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st

from referee.judge.clock import TimeControl
from referee.playing import Job
from tests.server.harness import FakeEngine
from tests.support.builders import make_player
from tournaments.engines.base import LimitedEngine
from tournaments.server.slots import PASSED_OVER, Kind, Slots, Use

pytestmark = pytest.mark.any_database

CHECK, TOURNAMENT, PRACTICE, CASUAL, PLAY, REMOTE = Kind


class Users:
    """Tasks that hold slots until they are released or cancelled."""

    def __init__(self, slots: Slots, nursery: trio.Nursery) -> None:
        self.slots, self.nursery = slots, nursery
        self.holders: list[str] = []
        """Names of the tasks in the order in which they got their slots."""
        self.scopes: dict[str, trio.CancelScope] = {}

    async def request(self, kind: Kind, *names: str) -> None:
        for name in names:
            self.scopes[name] = trio.CancelScope()
            self.nursery.start_soon(self._use, kind, name)
            await trio.testing.wait_all_tasks_blocked()

    async def release(self, name: str) -> None:
        self.scopes[name].cancel()
        await trio.testing.wait_all_tasks_blocked()

    async def _use(self, kind: Kind, name: str) -> None:
        with self.scopes[name]:
            async with self.slots.taken(kind):
                self.holders.append(name)
                await trio.sleep_forever()


async def test_slots_go_to_checks_tournaments_practice_and_casual_games(nursery: trio.Nursery) -> None:
    users = Users(Slots(1), nursery)
    await users.request(PRACTICE, "first")
    for number in (1, 2):
        for kind, letter in ((CASUAL, "x"), (PRACTICE, "p"), (TOURNAMENT, "t"), (CHECK, "c")):
            await users.request(kind, f"{letter}{number}")
    assert users.holders == ["first"], "a slot is never taken away"
    for number in range(8):
        await users.release(users.holders[number])
    assert users.holders == ["first", "c1", "c2", "t1", "t2", "p1", "p2", "x1", "x2"]


async def test_checks_never_keep_a_tournament_from_playing(nursery: trio.Nursery) -> None:
    users = Users(Slots(1), nursery)
    await users.request(CHECK, "c0")
    await users.request(TOURNAMENT, "t0", "t1")
    await users.request(CHECK, *(f"c{number}" for number in range(1, 9)))
    for number in range(10):
        await users.release(users.holders[number])
    assert PASSED_OVER == 3
    assert "".join(name[0] for name in users.holders) == "cccctccctcc"


async def test_endless_practice_does_not_keep_casual_games_from_being_played(nursery: trio.Nursery) -> None:
    users = Users(Slots(1), nursery)
    await users.request(TOURNAMENT, "t0")
    await users.request(CASUAL, "x0", "x1")
    await users.request(TOURNAMENT, *(f"t{number}" for number in range(1, 6)))
    await users.request(PRACTICE, *(f"p{number}" for number in range(8)))
    for number in range(14):
        await users.release(users.holders[number])
    assert "".join(name[0] for name in users.holders) == "ttttttpppxpppxp"


async def test_a_limit_leaves_slots_to_others_and_can_be_lifted(nursery: trio.Nursery) -> None:
    slots = Slots(3)
    users = Users(slots, nursery)
    slots.limit(PRACTICE, 1)
    await users.request(PRACTICE, "p0", "p1", "p2", "p3")
    assert users.holders == ["p0"]
    await users.request(TOURNAMENT, "t0")
    assert users.holders == ["p0", "t0"]
    unused = dict.fromkeys(Kind, Use(0, 0))
    assert slots.status() == unused | {TOURNAMENT: Use(1, 0), PRACTICE: Use(1, 3)}
    slots.limit(PRACTICE, None)
    await trio.testing.wait_all_tasks_blocked()
    assert users.holders == ["p0", "t0", "p1"]


async def test_games_of_people_have_slots_of_their_own_and_take_none_from_others(
    nursery: trio.Nursery,
) -> None:
    users = Users(Slots(2), nursery)
    await users.request(PLAY, "a0", "a1", "a2")
    assert users.holders == ["a0", "a1"]
    await users.request(PRACTICE, "p0", "p1", "p2", "p3", "p4")
    assert users.holders == ["a0", "a1", "p0", "p1"]
    await users.request(CHECK, "q0")
    await users.release("a0")
    assert users.holders[-1] == "a2"
    await users.release("p0")
    assert users.holders[-1] == "q0"


@pytest.mark.parametrize("total", [1, 2])
async def test_challenges_with_remote_bots_take_no_slot_from_others(
    nursery: trio.Nursery, total: int
) -> None:
    users = Users(Slots(total), nursery)
    remote = [f"r{number}" for number in range(total + 1)]
    await users.request(REMOTE, *remote)
    assert users.holders == remote[:-1]
    checks = [f"q{number}" for number in range(total)]
    await users.request(CHECK, *checks)
    assert users.holders == remote[:-1] + checks
    await users.release("r0")
    assert users.holders[-1] == remote[-1]


async def test_a_task_that_is_cancelled_when_its_turn_comes_passes_the_slot_on(nursery: trio.Nursery) -> None:
    users = Users(Slots(1), nursery)
    await users.request(PRACTICE, "a", "b", "c")
    users.scopes["b"].cancel()  # in the same moment in which it gets the slot
    await users.release("a")
    assert users.holders == ["a", "c"]
    await users.release("c")
    assert users.slots.status()[PRACTICE] == Use(0, 0)


STEPS = st.lists(st.tuples(st.sampled_from(["request", "release"]), st.sampled_from(list(Kind))), max_size=40)


@given(st.integers(1, 4), STEPS, st.data())
def test_no_slot_is_lost_or_given_twice(
    total: int, steps: list[tuple[str, Kind]], data: st.DataObject
) -> None:
    async def main() -> None:
        slots = Slots(total)
        async with trio.open_nursery() as nursery:
            users = Users(slots, nursery)
            for number, (step, kind) in enumerate(steps):
                if step == "request":
                    await users.request(kind, str(number))
                elif users.scopes:  # of a task that holds a slot, or waits for one
                    name = data.draw(st.sampled_from(sorted(users.scopes)))
                    await users.release(name)
                    del users.scopes[name]
                status = slots.status()
                for kind in (PLAY, REMOTE):
                    own, number = status.pop(kind), slots.own[kind]
                    assert 0 <= own.taken <= number
                    assert own.taken == number or not own.waiting
                taken = sum(use.taken for use in status.values())
                assert 0 <= taken <= total
                assert taken == total or not any(use.waiting for use in status.values())
            nursery.cancel_scope.cancel()
        assert slots.status() == dict.fromkeys(Kind, Use(0, 0))

    trio.run(main)


def test_there_is_at_least_one_slot() -> None:
    with pytest.raises(ValueError, match="at least 1 place"):
        Slots(0)


async def test_an_engine_holds_a_slot_during_each_game(nursery: trio.Nursery) -> None:
    inner = FakeEngine()
    inner.allow(lambda _job: False)
    slots = Slots(2)
    engine = LimitedEngine(inner, slots.total, partial(slots.taken, TOURNAMENT))
    assert engine.concurrency == 2
    player = make_player("one")
    for key in ("a", "b", "c"):
        nursery.start_soon(engine.play, Job(key, "kalah(3,2)", (player, player), TimeControl(move_s=1.0)))
    await trio.testing.wait_all_tasks_blocked()
    assert len(inner.begun) == 2
    assert slots.status()[TOURNAMENT] == Use(2, 1)
    inner.allow()
    await trio.testing.wait_all_tasks_blocked()
    assert sorted(inner.begun) == ["a", "b", "c"]
    assert slots.status()[TOURNAMENT] == Use(0, 0)
