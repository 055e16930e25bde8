"""Summaries for pages: never computed twice for the same, never older than promised; and practice's table."""

import threading
from collections.abc import AsyncIterator, Collection, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from random import Random
from typing import cast

import pytest
import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st

from tests.builders import make_record, make_summary
from tests.contest_parts import until
from tests.courses import CHEAP, NO_CHECK, NOW, a_student
from tests.databases import database_of
from tournaments.course.course import Course
from tournaments.course.model import Competition, CompetitionKind, CompetitionState, Version, VersionState
from tournaments.database.location import Database
from tournaments.reporting.tournament_results import TournamentResults
from tournaments.results.game_summary import GameSummary
from tournaments.results.store import Store, StoreError
from tournaments.server.failures import Failures
from tournaments.server.practice import practice_results
from tournaments.server.practice.practice_results import PracticeGames, PracticeResults
from tournaments.server.service_context import Stores
from tournaments.server.summaries import FRESH_S, OLDEST_S, REST, Summaries

LIMIT_S = 10.0


class Shop:
    """A course with one competition and its summaries, under a clock that stands until it is moved."""

    def __init__(self, course: Course, database: Database, competition: Competition) -> None:
        self.course, self.competition = course, competition
        self.stores = Stores(database)
        self.store = self.stores.get(competition.slug)
        self.failures = Failures(lambda: NOW)
        self.now_s = 0.0
        self.changes = 0
        self.summaries = Summaries(
            self.stores, course, self.failures, lambda: NOW, self._changed, lambda: self.now_s
        )

    def _changed(self, competition: Competition) -> None:
        assert competition == self.competition
        self.changes += 1

    def add(self, number: int, first: str = "one", second: str = "two") -> None:
        assert self.store.add(make_record(f"p{number:07d}-1", first, second), 1)

    def version(self, team: str, number: int) -> Version:
        """A version that qualified and plays."""
        found = self.course.teams.by_name(team) or self.course.teams.add(team, NOW)
        by = a_student(self.course, found)
        version, _ = self.course.versions.add(found.id, f"{team}{number}", 1, 1, by.id, "page", NOW)
        self.course.versions.begin_check(version.id)
        version = self.course.versions.decide(version.id, VersionState.QUALIFIED, NO_CHECK, "d", 0, NOW)
        self.course.competitions.enter(self.competition.id, f"{team} v{version.number}", version.id, None)
        return version

    async def summary(self, *, wait: bool = False) -> TournamentResults:
        with trio.fail_after(LIMIT_S):
            return await self.summaries.get(self.competition, wait=wait)

    async def behind(self) -> None:
        """Wait until nothing is computed behind the pages' backs."""
        await until(lambda: not self.summaries._refreshing)


@contextmanager
def open_shop(folder: Path, kind: CompetitionKind = CompetitionKind.TOURNAMENT) -> Iterator[Shop]:
    database = database_of(folder)
    with Course(database.course(), CHEAP) as course:
        competition = course.competitions.add("cup", "Cup", kind, {"game": "kalah(3,2)"}, None, NOW)
        shop = Shop(course, database, competition)
        if kind is CompetitionKind.TOURNAMENT:
            tournament = TournamentResults("Cup", "kalah(1,1)", "2 s", ["one", "two"], "points")
            shop.store.claim("Cup", tournament.config(), {})
        try:
            yield shop
        finally:
            shop.stores.close()


@asynccontextmanager
async def behind_backs(shop: Shop) -> AsyncIterator[None]:
    """Let summaries be computed behind the pages' backs."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(shop.summaries.run)
        await trio.testing.wait_all_tasks_blocked()
        yield
        nursery.cancel_scope.cancel()


# How old


async def test_what_did_not_change_is_not_computed_again(tmp_path: Path) -> None:
    with open_shop(tmp_path) as shop:
        shop.add(1)
        first = await shop.summary()
        assert [game.key for game in first.games] == ["p0000001-1"]
        shop.now_s += OLDEST_S + 1
        assert await shop.summary() is first
        assert await shop.summary(wait=True) is first
        assert shop.changes == 1


async def test_pages_get_the_old_one_at_once_while_a_newer_one_is_made(tmp_path: Path) -> None:
    with open_shop(tmp_path) as shop:
        async with behind_backs(shop):
            old = await shop.summary()
            shop.add(1)
            assert await shop.summary() is old  # looked at a moment ago
            shop.now_s += FRESH_S + 0.1
            assert await shop.summary() is old
            await shop.behind()
            new = await shop.summary()
            assert len(new.games) == 1
            assert shop.changes == 2
            assert "ratings" in vars(new)  # computed before a page asks
            assert "table" in vars(new)


async def test_nobody_is_shown_last_nights_table(tmp_path: Path) -> None:
    with open_shop(tmp_path) as shop:
        async with behind_backs(shop):
            await shop.summary()
            shop.add(1)
            shop.now_s += OLDEST_S + 1
            assert len((await shop.summary()).games) == 1


async def test_who_has_just_ruled_waits_for_what_follows(tmp_path: Path) -> None:
    with open_shop(tmp_path) as shop:
        await shop.summary()
        shop.add(1)
        assert len((await shop.summary(wait=True)).games) == 1


async def test_many_who_wait_wait_for_one_computation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loads = []
    load = TournamentResults.load

    def counted(store: Store) -> TournamentResults:
        loads.append(threading.get_ident())
        return load(store)

    monkeypatch.setattr(TournamentResults, "load", counted)
    with open_shop(tmp_path) as shop:
        async with trio.open_nursery() as nursery:
            for _ in range(20):
                nursery.start_soon(shop.summary)
        assert len(loads) == 1
        assert threading.get_ident() not in loads


async def test_a_long_computation_is_followed_by_a_longer_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load = TournamentResults.load
    with open_shop(tmp_path) as shop:

        def slow(store: Store) -> TournamentResults:
            shop.now_s += 3.0
            return load(store)

        monkeypatch.setattr(TournamentResults, "load", slow)
        async with behind_backs(shop):
            old = await shop.summary()
            shop.add(1)
            shop.now_s = 3.0 * REST - 1  # longer than OLDEST_S, but it would take too much of the machine
            assert await shop.summary() is old
            await shop.behind()
            assert await shop.summary() is old
            shop.now_s = 3.0 * REST + 1
            assert await shop.summary() is old
            await shop.behind()
            assert await shop.summary() is not old


async def test_a_store_that_fails_is_told_to_those_who_must_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(_store: Store) -> tuple[int, int]:
        raise StoreError("the disk is gone", is_ours=True)

    with open_shop(tmp_path) as shop:
        async with behind_backs(shop):
            old = await shop.summary()
            with monkeypatch.context() as patched:
                patched.setattr(Store, "size", fails)
                shop.now_s += FRESH_S + 0.1
                assert await shop.summary() is old
                await shop.behind()
                (failure,) = shop.failures.newest()
                assert (failure.where, failure.why) == ("summary of Cup", "StoreError: the disk is gone")
                shop.now_s += OLDEST_S
                with pytest.raises(StoreError, match="the disk is gone"):
                    await shop.summary()
            assert await shop.summary() is old


# Practice


async def test_a_practice_ladder_shows_who_plays_now(tmp_path: Path) -> None:
    with open_shop(tmp_path, CompetitionKind.PRACTICE) as shop:
        shop.course.competitions.enter(shop.competition.id, "ladder:1", None, "ladder:1")
        shop.course.competitions.enter(shop.competition.id, "ladder:2", None, "ladder:2")  # no more chosen
        shop.version("Team 1", 1)
        shop.version("Team 2", 1)
        shop.add(1, "Team 1 v1", "ladder:1")
        shop.add(2, "Team 1 v1", "Team 2 v1")
        shop.add(3, "ladder:2", "ladder:1")
        summary = await shop.summary()
        assert summary.bots == ["Team 1 v1", "Team 2 v1", "ladder:1"]
        assert [game.key for game in summary.games] == ["p0000001-1", "p0000002-1"]
        assert (summary.total, summary.done, summary.conclusion, summary.places) == (2, 2, "", {})
        assert summary.about == "practice, kalah(3,2), 10 s per move (margin 0.05 s, start 30 s), 2 games"
        assert summary.table[0].name == "Team 1 v1"
        assert summary.table[0].criteria == {"rating": summary.estimates["Team 1 v1"].value}
        assert summary.is_adaptive
        assert summary.to_json()["format"] == {"kind": "practice"}

        shop.version("Team 1", 2)
        newer = await shop.summary(wait=True)
        assert newer.bots == ["Team 1 v2", "Team 2 v1", "ladder:1"]
        assert newer.games == []
        assert newer.estimates == {}
        shop.add(4, "Team 1 v2", "ladder:1")
        assert len((await shop.summary(wait=True)).games) == 1
        before = await shop.summary(wait=True)
        shop.add(5, "Team 1 v1", "ladder:1")  # an old version's last game
        assert await shop.summary(wait=True) is before


async def test_a_version_that_plays_again_has_its_games_again(tmp_path: Path) -> None:
    with open_shop(tmp_path, CompetitionKind.PRACTICE) as shop:
        shop.version("Team 1", 1)
        shop.version("Team 2", 1)
        shop.add(1, "Team 1 v1", "Team 2 v1")
        newer = shop.version("Team 1", 2)
        assert (await shop.summary(wait=True)).games == []
        shop.course.versions.withdraw(newer.id, True)
        assert len((await shop.summary(wait=True)).games) == 1


async def test_a_ladder_that_is_finished_shows_everybody(tmp_path: Path) -> None:
    with open_shop(tmp_path, CompetitionKind.PRACTICE) as shop:
        for number in (1, 2):
            shop.version("Team 1", number)
        shop.add(1, "Team 1 v1", "Team 1 v2")
        competitions = shop.course.competitions
        for state in (CompetitionState.RUNNING, CompetitionState.FINISHED):
            shop.competition = competitions.set_state(shop.competition.id, state, "", NOW)
        summary = await shop.summary()
        assert isinstance(summary, PracticeResults)
        assert len(summary.games) == 1


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=40),
    st.lists(st.tuples(st.integers(1, 15), st.sets(st.integers(0, 3))), max_size=6),
    st.randoms(use_true_random=False),
)
def test_games_read_bit_by_bit_are_those_read_at_once(
    pairings: list[tuple[int, int]],
    looks: list[tuple[int, set[int]]],
    dice: Random,
) -> None:
    """Whoever plays whom, in whatever order games end, whoever comes and goes."""
    late = 5
    ends = sorted(range(len(pairings)), key=lambda number: number + dice.randrange(late))
    store = Memory()
    with late_keys(late):
        games = PracticeGames()
        at = 0
        for count, who in [*looks, (len(ends), {0, 1, 2, 3})]:
            for number in ends[at : at + count]:
                first, second = pairings[number]
                store.add(make_summary(f"b{first}", f"b{second}", 0, key=f"p{number:07d}-1"))
            at += count
            names = [f"b{one}" for one in sorted(who)]
            before = games.games
            changed = games.read(cast("Store", store), names)
            assert games.games == among(store.games(), names)
            assert changed or before == games.games
            assert not games.read(cast("Store", store), names)


class Memory:
    """The games of a store that forgets them in the end."""

    def __init__(self) -> None:
        self.kept: dict[str, GameSummary] = {}

    def add(self, game: GameSummary) -> None:
        self.kept[game.key] = game

    def played(self, after: str = "") -> set[str]:
        return {key for key in self.kept if key > after}

    def games(self, keys: Collection[str] | None = None) -> list[GameSummary]:
        return [self.kept[key] for key in sorted(self.kept) if keys is None or key in keys]


@contextmanager
def late_keys(number: int) -> Iterator[None]:
    before = practice_results.LATE_KEYS
    practice_results.LATE_KEYS = number
    try:
        yield
    finally:
        practice_results.LATE_KEYS = before


def among(games: list[GameSummary], names: list[str]) -> list[GameSummary]:
    return [game for game in games if game.first in names and game.second in names]
