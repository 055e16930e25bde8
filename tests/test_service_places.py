"""Places: who gets the next one, and that none is ever lost."""

from functools import partial

import pytest
import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st

from referee.judge.clock import TimeControl
from referee.play import Job
from tests.builders import make_player, make_record
from tests.test_engines import noted
from tournaments.engines.base import LimitedEngine, OnSnapshot, OnStart
from tournaments.results.game_summary import PackedGame
from tournaments.server.slots import PASSED_OVER, Kind, Slots, Use

CHECK, TOURNAMENT, PRACTICE = Kind.QUALIFICATION, Kind.TOURNAMENT, Kind.PRACTICE


class Users:
    """Tasks that take places and keep them until they are told to go."""

    def __init__(self, places: Slots, nursery: trio.Nursery) -> None:
        self.places, self.nursery = places, nursery
        self.got: list[str] = []
        self._leave: dict[str, trio.Event] = {}
        self._scopes: dict[str, trio.CancelScope] = {}

    async def want(self, kind: Kind, name: str) -> None:
        self._leave[name] = trio.Event()
        self._scopes[name] = trio.CancelScope()
        self.nursery.start_soon(self._use, kind, name)
        await trio.testing.wait_all_tasks_blocked()

    async def leave(self, name: str) -> None:
        self._leave[name].set()
        await trio.testing.wait_all_tasks_blocked()

    def cancel(self, name: str) -> None:
        self._scopes[name].cancel()

    async def _use(self, kind: Kind, name: str) -> None:
        with self._scopes[name]:
            async with self.places.taken(kind):
                self.got.append(name)
                await self._leave[name].wait()


async def test_places_go_to_checks_then_tournaments_then_practice(nursery: trio.Nursery) -> None:
    users = Users(Slots(1), nursery)
    await users.want(PRACTICE, "first")
    for kind, name in (
        (PRACTICE, "p1"),
        (TOURNAMENT, "t1"),
        (CHECK, "c1"),
        (PRACTICE, "p2"),
        (TOURNAMENT, "t2"),
        (CHECK, "c2"),
    ):
        await users.want(kind, name)
    assert users.got == ["first"], "nobody is put out of a place"
    for number in range(6):
        await users.leave(users.got[number])
    assert users.got == ["first", "c1", "c2", "t1", "t2", "p1", "p2"]


async def test_checks_never_keep_a_tournament_from_playing(nursery: trio.Nursery) -> None:
    users = Users(Slots(1), nursery)
    await users.want(CHECK, "c0")
    for number in range(2):
        await users.want(TOURNAMENT, f"t{number}")
    for number in range(1, 9):
        await users.want(CHECK, f"c{number}")
    for number in range(10):
        await users.leave(users.got[number])
    assert [name[0] for name in users.got] == ["c", *"ccc", "t", *"ccc", "t", *"cc"]
    assert PASSED_OVER == 3


async def test_a_limit_leaves_places_to_others_and_can_be_lifted(nursery: trio.Nursery) -> None:
    places = Slots(3)
    users = Users(places, nursery)
    places.limit(PRACTICE, 1)
    for number in range(4):
        await users.want(PRACTICE, f"p{number}")
    assert users.got == ["p0"]
    await users.want(TOURNAMENT, "t0")
    assert users.got == ["p0", "t0"]
    assert places.status() == {CHECK: Use(0, 0), TOURNAMENT: Use(1, 0), PRACTICE: Use(1, 3)}
    places.limit(PRACTICE, None)
    await trio.testing.wait_all_tasks_blocked()
    assert users.got == ["p0", "t0", "p1"]


async def test_whoever_is_cancelled_when_its_turn_comes_gives_the_place_on(nursery: trio.Nursery) -> None:
    users = Users(Slots(1), nursery)
    for name in ("a", "b", "c"):
        await users.want(PRACTICE, name)
    users.cancel("b")  # in the same moment in which it gets the place
    await users.leave("a")
    assert users.got == ["a", "c"]
    await users.leave("c")
    assert users.places.status()[PRACTICE] == Use(0, 0)


@given(
    st.integers(1, 4),
    st.lists(
        st.tuples(st.sampled_from(["want", "leave", "cancel"]), st.sampled_from(list(Kind))), max_size=40
    ),
)
def test_no_place_is_lost_or_given_twice_whatever_happens(total: int, steps: list[tuple[str, Kind]]) -> None:
    async def main() -> None:
        places = Slots(total)
        async with trio.open_nursery() as nursery:
            users = Users(places, nursery)
            left: set[str] = set()
            for number, (what, kind) in enumerate(steps):
                inside = [name for name in users.got if name not in left]
                if what == "want":
                    await users.want(kind, str(number))
                elif what == "leave" and inside:
                    left.add(inside[0])
                    await users.leave(inside[0])
                elif what == "cancel" and number:
                    for name in list(users._scopes)[:1]:
                        users.cancel(name)
                        left.add(name)
                        await trio.testing.wait_all_tasks_blocked()
                        del users._scopes[name]
                status = places.status()
                taken = sum(use.taken for use in status.values())
                assert 0 <= taken <= total
                assert taken == total or not any(use.waiting for use in status.values())
            nursery.cancel_scope.cancel()
        assert places.status() == dict.fromkeys(Kind, Use(0, 0))

    trio.run(main)


def test_there_is_at_least_one_place() -> None:
    with pytest.raises(ValueError, match="at least 1 place"):
        Slots(0)


async def test_an_engine_takes_a_place_for_each_game(nursery: trio.Nursery) -> None:
    going_on = trio.Event()
    begun: list[str] = []

    class Slow:
        concurrency = 8

        async def play(
            self, job: Job, on_start: OnStart | None = None, on_snapshot: OnSnapshot | None = None
        ) -> PackedGame:
            assert on_start is not None
            on_start("")
            await going_on.wait()
            return PackedGame.of(make_record(job.key))

    places = Slots(2)
    engine = LimitedEngine(Slow(), places.total, partial(places.taken, TOURNAMENT))
    assert engine.concurrency == 2
    player = make_player("one")
    for key in ("a", "b", "c"):
        job = Job(key, "manchester", (player, player), TimeControl(move_s=1.0))
        nursery.start_soon(engine.play, job, noted(begun, key))
    await trio.testing.wait_all_tasks_blocked()
    assert len(begun) == 2
    assert places.status()[TOURNAMENT] == Use(2, 1)
    going_on.set()
    await trio.testing.wait_all_tasks_blocked()
    assert sorted(begun) == ["a", "b", "c"]
    assert places.status()[TOURNAMENT] == Use(0, 0)
