"""The practice ladder with real games: who plays, when it rests, and that no game is lost or doubled."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from referee.errors import RefereeError
from referee.play import Job
from tests.contest_parts import World, open_world
from tests.courses import NOW, after
from tests.test_service_bot_worker import until
from tournaments.course.model import Competition, CompetitionState
from tournaments.database.location import Database
from tournaments.engines.base import OnSnapshot, OnStart
from tournaments.results.game_summary import GameSummary, PackedGame
from tournaments.results.store import Store
from tournaments.server.config import ServiceConfig
from tournaments.server.practice import matchmaking
from tournaments.server.practice.practice import Practice
from tournaments.server.slots import Kind

GAME = "kalah(3,2)"


@asynccontextmanager
async def playing(world: World, **settings: Any) -> AsyncIterator[Practice]:
    """The ladder of a world, until the end of the block."""
    world.course.settings.change(**{"game": GAME, "references": [], "practice_on": True} | settings)
    ladder = Practice(world.parts)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(ladder.run)
        yield ladder
        nursery.cancel_scope.cancel()


def games(world: World, slug: str = "practice") -> list[GameSummary]:
    if world.course.competitions.by_slug(slug) is None:
        return []
    with Store(world.parts.database.competition(slug)) as store:  # which may not be there yet
        return store.games()


def ladder_of(world: World, slug: str = "practice") -> Competition:
    found = world.course.competitions.by_slug(slug)
    assert found is not None
    return found


def names(played: list[GameSummary]) -> set[str]:
    return {name for game in played for name in (game.first, game.second)}


def assert_paired(played: list[GameSummary]) -> None:
    """Every return game follows its first one, from the same start with seats exchanged."""
    by_key = {game.key: game for game in played}
    assert len(by_key) == len(played)
    for game in played:
        if game.key.endswith("-2"):
            first = by_key[game.pair + "-1"]
            assert (first.first, first.second, first.opening) == (game.second, game.first, game.opening)


async def test_versions_and_reference_players_play_pairs_from_openings(
    tmp_path: Path, database: Database
) -> None:
    async with open_world(tmp_path / "data", database=database) as world:
        world.version("Team 1")
        world.version("Team 2", "greedy")
        async with playing(world, references=["random:1"]) as ladder:
            await until(lambda: len(games(world)) >= 12)
            assert ladder.resting == ""
        played = games(world)
        assert names(played) == {"Team 1 v1", "Team 2 v1", "random:1"}
        assert_paired(played)
        assert len({game.opening for game in played if game.key.endswith("-1")}) > 3
        competition = ladder_of(world)
        assert (competition.state, competition.spec["game"]) == (CompetitionState.RUNNING, GAME)
        assert world.parts.failures.newest() == ()


async def test_a_new_version_takes_the_old_ones_place_and_plays_first(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        for number in range(3):
            world.version(f"Team {number}")
        async with playing(world) as ladder:
            await until(lambda: len(games(world)) >= 20)
            world.version("Team 0", "greedy")
            ladder.wake()
            await until(lambda: "Team 0 v2" in names(games(world)))
            began = len(games(world))
            await until(lambda: len(games(world)) >= began + 10)
        newest = games(world)[began:]
        assert sum("Team 0 v2" in (game.first, game.second) for game in newest) >= 6
        late = [game for game in newest if "Team 0 v1" in (game.first, game.second)]
        assert all(game.key.endswith("-2") for game in late), "it only ends what it had begun"


class Gate:
    """An engine that holds some of the games back, or fails at them."""

    def __init__(self, world: World, lets: Callable[[Job], bool] = lambda _: True) -> None:
        self.inner, self.lets = world.parts.engine, lets
        self.concurrency = world.parts.engine.concurrency
        self.begun: list[str] = []
        self.held: list[str] = []
        self.fails = False
        self.world = replace(world, parts=replace(world.parts, engine=self))

    async def play(
        self, job: Job, on_start: OnStart | None = None, on_snapshot: OnSnapshot | None = None
    ) -> PackedGame:
        self.begun.append(job.key)
        if self.lets(job):
            return await self.inner.play(job, on_start, on_snapshot)
        self.held.append(job.key)
        if self.fails:
            raise RefereeError("no memory")
        await trio.sleep_forever()
        raise AssertionError("it sleeps for ever")


def is_first_game(job: Job) -> bool:
    return job.key.endswith("-1")


async def test_pairs_that_were_broken_off_are_completed_first(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        for number in range(3):
            world.version(f"Team {number}")
        gate = Gate(world, is_first_game)
        async with playing(gate.world):
            await until(lambda: len(gate.held) == 2)
        halves = games(world)
        assert len(halves) == 2
        world.version("Team 0", "greedy")  # the one that is replaced still ends its pairs
        gate = Gate(world)
        async with playing(gate.world):
            await until(lambda: len(games(world)) >= 8)
        assert set(gate.begun[:2]) == {f"{game.pair}-2" for game in halves}
        assert_paired(games(world))


async def test_a_pair_of_a_version_that_was_withdrawn_is_not_completed(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        gone = world.version("Team 0")
        world.version("Team 1")
        gate = Gate(world, is_first_game)
        async with playing(gate.world):
            await until(lambda: len(gate.held) == 2)
        world.course.versions.withdraw(gone.id, withdrawn=True)
        world.version("Team 2")
        before = games(world)
        async with playing(world):
            await until(lambda: len(games(world)) >= len(before) + 4)
        assert "Team 0 v1" not in names([game for game in games(world) if game not in before])


async def test_games_that_our_host_cannot_play_are_put_off_and_not_lost(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        for number in range(2):
            world.version(f"Team {number}")
        parts = replace(world.parts, config=ServiceConfig(slots=2, retry_s=0.05))
        gate = Gate(replace(world, parts=parts), is_first_game)
        gate.fails = True
        async with playing(gate.world):
            await until(lambda: len(gate.held) >= 4)
            tried = len(gate.begun)
            await trio.sleep(0.2)
            assert len(gate.begun) <= tried + 4, "it does not try all the time"
            gate.lets = lambda _: True
            await until(lambda: any(game.key.endswith("-2") for game in games(world)))
        assert_paired(games(world))
        failure = world.parts.failures.newest()[0]
        assert "no memory" in failure.why
        assert failure.where == "practice"


async def test_a_bot_that_cannot_be_started_does_not_keep_the_others_from_playing(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        for number in range(3):
            world.version(f"Team {number}")
        world.bots.broken.add("Team 1 v1")
        async with playing(world):
            await until(lambda: len(games(world)) >= 4)
        assert names(games(world)) == {"Team 0 v1", "Team 2 v1"}
        assert "Team 1 v1" in world.parts.failures.newest()[0].why


async def test_bots_without_openings_play_from_the_games_own_start(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        for number in range(2):
            world.version(f"Team {number}")
        world.bots.without_openings.add("Team 0 v1")
        async with playing(world):
            await until(lambda: len(games(world)) >= 4)
        assert {game.opening for game in games(world)} == {""}


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"practice_on": False}, "switched off"),
        ({"quiet_from": "11:30", "quiet_to": "13:00"}, "no practice from 11:30 to 13:00"),
        (
            {"quiet_from": "22:00", "quiet_to": "06:00", "time_zone": "Pacific/Auckland"},
            "no practice from 22:00",
        ),
    ],
)
async def test_it_rests_when_the_lecturer_wants_it(
    tmp_path: Path, settings: dict[str, Any], why: str
) -> None:
    """It is 12:00 UTC on a Monday, when it is 01:00 in Auckland."""
    async with open_world(tmp_path) as world:
        for number in range(2):
            world.version(f"Team {number}")
        async with playing(world, **settings) as ladder:
            await until(lambda: why in ladder.resting)
            assert games(world) == []
            world.course.settings.change(practice_on=True, quiet_from=None, quiet_to=None)
            ladder.wake()
            await until(lambda: games(world))
            assert ladder.resting == ""


async def test_it_needs_two_bots(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        world.version("Team 0")
        async with playing(world) as ladder:
            await until(lambda: "needs two bots" in ladder.resting)
            world.version("Team 1")
            ladder.wake()
            await until(lambda: games(world))


async def test_a_paused_ladder_ends_its_games_and_begins_no_others(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        for number in range(2):
            world.version(f"Team {number}")
        async with playing(world) as ladder:
            await until(lambda: games(world))
            set_state = world.course.competitions.set_state
            set_state(ladder_of(world).id, CompetitionState.PAUSED, "", NOW)
            ladder.wake()
            places = world.parts.slots
            await until(lambda: "paused" in ladder.resting and places.status()[Kind.PRACTICE].taken == 0)
            kept = len(games(world))
        async with playing(world) as ladder:  # it stays so after a restart
            await until(lambda: "paused" in ladder.resting)
            assert len(games(world)) == kept
            set_state(ladder_of(world).id, CompetitionState.RUNNING, "", NOW)
            ladder.wake()
            await until(lambda: len(games(world)) > kept)


async def test_frozen_versions_go_on_playing(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        for number in range(2):
            world.version(f"Team {number}", at=after(hours=-3))
        world.version("Team 0", "greedy", at=after(hours=-1))
        async with playing(world, frozen_at=after(hours=-2)):
            await until(lambda: len(games(world)) >= 2)
        assert names(games(world)) == {"Team 0 v1", "Team 1 v1"}


async def test_a_version_keeps_its_name_when_its_team_gets_another(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        for number in range(2):
            world.version(f"Team {number}")
        async with playing(world):
            await until(lambda: games(world))
        team = world.course.teams.by_name("Team 0")
        assert team is not None
        world.course.teams.rename(team.id, "The Others")
        kept = len(games(world))
        async with playing(world):
            await until(lambda: len(games(world)) >= kept + 2)
        assert names(games(world)) == {"Team 0 v1", "Team 1 v1"}


async def test_another_game_begins_another_ladder(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        for number in range(2):
            world.version(f"Team {number}")
        async with playing(world) as ladder:
            await until(lambda: games(world))
            world.course.settings.change(game="kalah(4,3)")
            ladder.wake()
            await until(lambda: games(world, "practice-2"))
        assert ladder_of(world).state is CompetitionState.FINISHED
        assert "kalah(4,3)" in ladder_of(world).message
        assert ladder_of(world, "practice-2").state is CompetitionState.RUNNING
        with world.store("practice-2") as store:
            assert {store.record(key).game for key in store.played()} == {"kalah(4,3)"}


async def test_when_all_have_met_often_enough_it_goes_on_at_leisure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(matchmaking, "ENOUGH_PAIRS", 2)
    async with open_world(tmp_path) as world:
        for number in range(2):
            world.version(f"Team {number}")
        parts = replace(world.parts, config=ServiceConfig(slots=2, leisure_s=3600))
        async with playing(replace(world, parts=parts)):
            await until(lambda: len(games(world)) == 6)  # and one pair at leisure
            await trio.testing.wait_all_tasks_blocked(0.1)
            assert len(games(world)) == 6
        parts = replace(world.parts, config=ServiceConfig(slots=2, leisure_s=0.01))
        async with playing(replace(world, parts=parts)):
            await until(lambda: len(games(world)) >= 10)


async def test_it_uses_no_more_places_than_it_may(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        for number in range(3):
            world.version(f"Team {number}")
        gate = Gate(world, lambda _: False)
        async with playing(gate.world, practice_places=1) as ladder:
            await until(lambda: gate.held)
            ladder.wake()
            await trio.testing.wait_all_tasks_blocked(0.1)
            assert len(gate.held) == 1
            world.course.settings.change(practice_places=None)
            ladder.wake()
            await until(lambda: len(gate.held) == 2)
