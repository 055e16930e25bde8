"""The practice ladder: who plays, when it rests, and that no game is lost or played twice."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st

from referee.errors import RefereeError
from referee.games.catalog import parse_game
from referee.games.opening import parse_opening
from referee.playing import Job
from tests.server.harness import FakeEngine, Harness, first_games, open_harness, until
from tests.support.builders import make_summary
from tests.support.courses import NOW, after
from tournaments.course.model import Competition, CompetitionState
from tournaments.database.location import Database
from tournaments.results.game_summary import GameSummary
from tournaments.results.store import Store
from tournaments.server.config import ServiceConfig
from tournaments.server.practice import matchmaking
from tournaments.server.practice.practice import Practice
from tournaments.server.practice.practice_games import PracticeGame, PracticeHistory, opening_of
from tournaments.server.slots import Kind

GAME = "kalah(3,2)"


@asynccontextmanager
async def practising(harness: Harness, **settings: Any) -> AsyncIterator[Practice]:
    """Run the ladder until the end of the block."""
    harness.course.settings.change(**{"game": GAME, "references": [], "practice_on": True} | settings)
    ladder = Practice(harness.context)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(ladder.run)
        yield ladder
        nursery.cancel_scope.cancel()


@asynccontextmanager
async def harness_with(data: Path, teams: int, **options: Any) -> AsyncIterator[Harness]:
    """Open a harness in which each team has a version."""
    async with open_harness(data, **options) as harness:
        for number in range(teams):
            harness.version(f"Team {number}")
        yield harness


def games(harness: Harness, slug: str = "practice") -> list[GameSummary]:
    if harness.course.competitions.by_slug(slug) is None:
        return []
    with Store(harness.context.database.competition(slug)) as store:  # creates its tables if needed
        return store.games()


async def until_games(harness: Harness, number: int, slug: str = "practice") -> None:
    await until(lambda: len(games(harness, slug)) >= number)


def competition(harness: Harness, slug: str = "practice") -> Competition:
    found = harness.course.competitions.by_slug(slug)
    assert found is not None
    return found


def names(played: list[GameSummary]) -> set[str]:
    return {name for game in played for name in (game.first, game.second)}


def assert_paired(played: list[GameSummary]) -> None:
    """Each return game has a first game from the same start, with the seats exchanged."""
    by_key = {game.key: game for game in played}
    assert len(by_key) == len(played)
    for game in played:
        if game.key.endswith("-2"):
            first = by_key[game.pair + "-1"]
            assert (first.first, first.second, first.opening) == (game.second, game.first, game.opening)


def is_first_game(job: Job) -> bool:
    return job.key.endswith("-1")


# Who plays


async def test_versions_and_reference_players_play_pairs_from_openings(
    tmp_path: Path, database: Database
) -> None:
    await play_pairs(tmp_path / "data", database=database)


@pytest.mark.slow
async def test_versions_and_reference_players_play_real_games(tmp_path: Path) -> None:
    await play_pairs(tmp_path / "data", real_games=True)


async def play_pairs(data: Path, **options: Any) -> None:
    async with open_harness(data, **options) as harness:
        harness.version("Team 1")
        harness.version("Team 2", "greedy")
        async with practising(harness, references=["random:1"]) as ladder:
            await until_games(harness, 12)
            assert ladder.resting == ""
        played = games(harness)
        assert names(played) == {"Team 1 v1", "Team 2 v1", "random:1"}
        assert_paired(played)
        assert len({game.opening for game in played if game.key.endswith("-1")}) > 3
        ladder_now = competition(harness)
        assert (ladder_now.state, ladder_now.spec["game"]) == (CompetitionState.RUNNING, GAME)
        assert harness.context.failures.newest() == ()


async def test_a_new_version_replaces_the_old_one_and_plays_first(tmp_path: Path) -> None:
    async with harness_with(tmp_path, 3) as harness:
        async with practising(harness) as ladder:
            harness.engine.allow(first_games(20))
            await until_games(harness, 20)
            await until(lambda: len(harness.engine.waiting) == 2)
            harness.version("Team 0", "greedy")
            ladder.wake()
            await until(lambda: "Team 0 v2" in ladder.bots_in_use)
            # These began before, and another game may otherwise be stored before them.
            held = set(harness.engine.waiting)
            harness.engine.allow(lambda job: job.key in held)
            await until_games(harness, 22)
            harness.engine.allow()
            await until(lambda: "Team 0 v2" in names(games(harness)))
            began = len(games(harness))
            await until_games(harness, began + 10)
        newest = games(harness)[began : began + 10]
        assert sum("Team 0 v2" in (game.first, game.second) for game in newest) >= 6
        late = [game for game in newest if "Team 0 v1" in (game.first, game.second)]
        assert all(game.key.endswith("-2") for game in late), "the old version only finishes its pairs"


async def test_frozen_versions_go_on_playing_under_their_first_names(tmp_path: Path) -> None:
    async with open_harness(tmp_path) as harness:
        for number in range(2):
            harness.version(f"Team {number}", at=after(hours=-3))
        harness.version("Team 0", "greedy", at=after(hours=-1))
        async with practising(harness, frozen_at=after(hours=-2)):
            await until_games(harness, 2)
        team = harness.course.teams.by_name("Team 0")
        assert team is not None
        harness.course.teams.rename(team.id, "The Others")
        stored = len(games(harness))
        async with practising(harness, frozen_at=after(hours=-2)):
            await until_games(harness, stored + 2)
        assert names(games(harness)) == {"Team 0 v1", "Team 1 v1"}


async def test_bots_without_openings_play_from_the_start_of_the_game(tmp_path: Path) -> None:
    async with harness_with(tmp_path, 2) as harness:
        harness.bots.without_openings.add("Team 0 v1")
        async with practising(harness):
            await until_games(harness, 4)
        assert {game.opening for game in games(harness)} == {""}


async def test_a_ladder_ends_when_the_course_plays_another_game(tmp_path: Path) -> None:
    async with harness_with(tmp_path, 2) as harness:
        async with practising(harness) as ladder:
            await until_games(harness, 1)
            harness.course.settings.change(game="kalah(4,3)")
            ladder.wake()
            await until_games(harness, 1, "practice-2")
        assert competition(harness).state is CompetitionState.FINISHED
        assert "kalah(4,3)" in competition(harness).message
        assert competition(harness, "practice-2").state is CompetitionState.RUNNING
        with harness.store("practice-2") as store:
            assert {store.record(key).game for key in store.played()} == {"kalah(4,3)"}


async def test_after_enough_games_it_plays_a_pair_now_and_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(matchmaking, "ENOUGH_PAIRS", 2)
    async with harness_with(tmp_path, 2) as harness:
        async with practising(harness.with_context(config=ServiceConfig(slots=2, leisure_s=3600))):
            await until_games(harness, 6)  # with one pair more than needed
            await trio.testing.wait_all_tasks_blocked(0.1)
            assert len(games(harness)) == 6
        async with practising(harness.with_context(config=ServiceConfig(slots=2, leisure_s=0.01))):
            await until_games(harness, 10)


# Interruptions and failures


async def test_interrupted_pairs_are_completed_first(tmp_path: Path) -> None:
    async with harness_with(tmp_path, 3) as harness:
        harness.engine.allow(is_first_game)
        async with practising(harness):
            await until(lambda: len(harness.engine.waiting) == 2)
        halves = games(harness)
        assert len(halves) == 2
        harness.version("Team 0", "greedy")  # the version that it replaces still finishes its pairs
        engine = FakeEngine()
        engine.allow(lambda _job: False)
        async with practising(harness.with_context(engine=engine)):
            await until(lambda: len(engine.waiting) == 2)
            assert set(engine.begun) == {f"{game.pair}-2" for game in halves}  # on both slots
            engine.allow()
            await until_games(harness, 8)
        assert_paired(games(harness))


async def test_a_pair_of_a_withdrawn_version_is_not_completed(tmp_path: Path) -> None:
    async with harness_with(tmp_path, 2) as harness:
        harness.engine.allow(is_first_game)
        async with practising(harness):
            await until(lambda: len(harness.engine.waiting) == 2)
        gone = harness.course.versions.of_team(1)[0]
        harness.course.versions.withdraw(gone.id, withdrawn=True)
        harness.version("Team 2")
        harness.engine.allow()
        before = games(harness)
        async with practising(harness):
            await until_games(harness, len(before) + 4)
        assert "Team 0 v1" not in names([game for game in games(harness) if game not in before])


@pytest.mark.slow
async def test_games_that_the_host_cannot_play_are_postponed_and_not_lost(tmp_path: Path) -> None:
    async with harness_with(tmp_path, 2) as harness:
        engine = harness.engine
        engine.allow(is_first_game)
        engine.error = RefereeError("no memory")
        retries = ServiceConfig(slots=2, retry_s=0.05)
        async with practising(harness.with_context(config=retries)):
            await until(lambda: sum(not key.endswith("-1") for key in engine.begun) >= 4)
            assert all(game.key.endswith("-1") for game in games(harness))
            engine.allow()
            await until(lambda: any(game.key.endswith("-2") for game in games(harness)))
        assert_paired(games(harness))
        failure = harness.context.failures.newest()[0]
        assert (failure.where, "no memory" in failure.why) == ("practice", True)


async def test_a_failing_game_is_tried_again_after_a_pause(tmp_path: Path) -> None:
    async with harness_with(tmp_path, 2) as harness:
        harness.engine.allow(lambda _job: False)
        harness.engine.error = RefereeError("no memory")
        async with practising(harness.with_context(config=ServiceConfig(slots=2, retry_s=3600.0))):
            await until(lambda: harness.engine.begun)
            await trio.testing.wait_all_tasks_blocked(0.1)
            assert len(harness.engine.begun) <= 2  # one on each slot


async def test_a_bot_that_cannot_be_started_does_not_hold_up_the_others(tmp_path: Path) -> None:
    async with harness_with(tmp_path, 3) as harness:
        harness.bots.broken.add("Team 1 v1")
        async with practising(harness):
            await until_games(harness, 4)
        assert names(games(harness)) == {"Team 0 v1", "Team 2 v1"}
        assert "Team 1 v1" in harness.context.failures.newest()[0].why


# Rest

AUCKLAND = {"quiet_from": "22:00", "quiet_to": "06:00", "time_zone": "Pacific/Auckland"}
"""It is 12:00 UTC on a Monday, when it is 01:00 in Auckland."""


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"practice_on": False}, "switched off"),
        ({"quiet_from": "11:30", "quiet_to": "13:00"}, "no practice from 11:30 to 13:00"),
        (AUCKLAND, "no practice from 22:00"),
    ],
)
async def test_it_rests_as_the_lecturer_chooses(tmp_path: Path, settings: dict[str, Any], why: str) -> None:
    async with harness_with(tmp_path, 2) as harness, practising(harness, **settings) as ladder:
        await until(lambda: why in ladder.resting)
        assert games(harness) == []
        harness.course.settings.change(practice_on=True, quiet_from=None, quiet_to=None)
        ladder.wake()
        await until_games(harness, 1)
        assert ladder.resting == ""


async def test_it_needs_two_bots(tmp_path: Path) -> None:
    async with harness_with(tmp_path, 1) as harness, practising(harness) as ladder:
        await until(lambda: "needs two bots" in ladder.resting)
        harness.version("Team 1")
        ladder.wake()
        await until_games(harness, 1)


async def test_a_paused_ladder_ends_its_games_and_begins_no_others(tmp_path: Path) -> None:
    async with harness_with(tmp_path, 2) as harness:
        set_state, slots = harness.course.competitions.set_state, harness.context.slots
        async with practising(harness) as ladder:
            await until_games(harness, 1)
            set_state(competition(harness).id, CompetitionState.PAUSED, "", NOW)
            ladder.wake()
            await until(lambda: "paused" in ladder.resting and slots.status()[Kind.PRACTICE].taken == 0)
            stored = len(games(harness))
        async with practising(harness) as ladder:  # also after a restart
            await until(lambda: "paused" in ladder.resting)
            assert len(games(harness)) == stored
            set_state(competition(harness).id, CompetitionState.RUNNING, "", NOW)
            ladder.wake()
            await until_games(harness, stored + 1)


async def test_it_uses_no_more_slots_than_permitted(tmp_path: Path) -> None:
    async with harness_with(tmp_path, 3) as harness:
        harness.engine.allow(lambda _job: False)
        async with practising(harness, practice_places=1) as ladder:
            await until(lambda: harness.engine.waiting)
            ladder.wake()
            await trio.testing.wait_all_tasks_blocked(0.1)
            assert len(harness.engine.waiting) == 1
            harness.course.settings.change(practice_places=None)
            ladder.wake()
            await until(lambda: len(harness.engine.waiting) == 2)


# Games and their keys


def test_openings_are_legal_and_differ() -> None:
    openings = [opening_of("manchester", number) for number in range(1, 50)]
    assert len(set(openings)) > 45
    assert all(parse_opening(parse_game("manchester"), text) for text in openings)
    assert opening_of("manchester", 7) == openings[6], "the opening of a number stays the same"
    assert opening_of("kalah(1,1)", 1) == "", "a game that ends at once has no openings"


@given(st.lists(st.sampled_from([0, 1, 2]), max_size=12))
def test_missing_return_games_are_found_again(legs: list[int]) -> None:
    stored = [
        make_summary(*(("a", "b") if leg == 1 else ("b", "a")), 0, key=f"p{number:07d}-{leg}")
        for number, played in enumerate(legs, 1)
        for leg in range(1, played + 1)
    ]
    history = PracticeHistory.from_games([*stored, make_summary("a", "b", 0, key="r001-1v2")])
    missing = [number for number, played in enumerate(legs, 1) if played == 1]
    assert history.return_games == [PracticeGame(number, 2, "b", "a", "") for number in missing]
    assert [game.key for game in history.return_games] == [f"p{number:07d}-2" for number in missing]
    assert all(game.back() is None for game in history.return_games)
    played_numbers = [number for number, played in enumerate(legs, 1) if played]
    assert history.next_number == max(played_numbers, default=0) + 1
    assert history.tally.pairs("a", "b") == (len(stored) + 1) / 2  # the other game counts, and begins no pair
