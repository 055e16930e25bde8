"""Summaries for pages: never computed twice for the same games, and never older than promised."""

import threading
from collections.abc import AsyncIterator, Collection, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from itertools import combinations
from pathlib import Path
from random import Random
from typing import cast

import pytest
import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st

from tests.server.harness import until
from tests.support.builders import make_record, make_summary
from tests.support.courses import FAST_PASSWORDS, NOW, add_qualified
from tests.support.databases import database_of
from tests.support.ratings import recorded_intervals
from tournaments.course.course import Course
from tournaments.course.model import Competition, CompetitionKind, CompetitionState, Version
from tournaments.database.location import Database
from tournaments.reporting.tournament_results import TournamentResults
from tournaments.results.game_summary import GameSummary
from tournaments.results.store import Store, StoreError
from tournaments.server.failures import Failures
from tournaments.server.practice import practice_results
from tournaments.server.practice.practice_results import PracticeGames, PracticeResults
from tournaments.server.service_context import Stores
from tournaments.server.summaries import FRESH_S, OLDEST_S, REST, Summaries

LIMIT_S = 60.0


class OneCompetition:
    """A competition and its summaries, under a clock that stands."""

    def __init__(self, course: Course, database: Database, competition: Competition) -> None:
        self.course, self.competition = course, competition
        self.stores = Stores(database)
        self.using = ExitStack()
        self.store = self.using.enter_context(self.stores.using(competition.slug))
        self.failures = Failures(lambda: NOW)
        self.now_s = 0.0
        self.changes = 0
        self.summaries = Summaries(
            self.stores, course, self.failures, lambda: NOW, self._on_change, lambda: self.now_s
        )

    def _on_change(self, competition: Competition) -> None:
        assert competition == self.competition
        self.changes += 1

    def add_game(self, number: int, first: str = "one", second: str = "two") -> None:
        assert self.store.add(make_record(f"p{number:07d}-1", first, second), 1)

    def add_version(self, team: str) -> Version:
        """Add a version that has qualified and plays."""
        number = len(self.course.versions.all(100))
        version = add_qualified(self.course, team, f"c{number}", "d")
        self.course.competitions.enter(self.competition.id, f"{team} v{version.number}", version.id, None)
        return version

    async def summary(self, *, wait: bool = False) -> TournamentResults:
        with trio.fail_after(LIMIT_S):
            return await self.summaries.get(self.competition, wait=wait)

    async def refreshed(self) -> None:
        """Wait until no summary is computed in the background."""
        await until(lambda: not self.summaries._refreshing)

    @asynccontextmanager
    async def background(self) -> AsyncIterator[None]:
        """Compute summaries in the background."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.summaries.run)
            await trio.testing.wait_all_tasks_blocked()
            yield
            nursery.cancel_scope.cancel()


@contextmanager
def open_competition(folder: Path, kind: CompetitionKind) -> Iterator[OneCompetition]:
    database = database_of(folder)
    with Course(database.course(), FAST_PASSWORDS) as course:
        competition = course.competitions.add("cup", "Cup", kind, {"game": "kalah(3,2)"}, None, NOW)
        opened = OneCompetition(course, database, competition)
        if kind is CompetitionKind.TOURNAMENT:
            tournament = TournamentResults("Cup", "kalah(1,1)", "2 s", ["one", "two"], "points")
            opened.store.claim("Cup", tournament.config(), {})
        try:
            yield opened
        finally:
            opened.using.close()
            opened.stores.close()


@pytest.fixture
def cup(tmp_path: Path) -> Iterator[OneCompetition]:
    with open_competition(tmp_path, CompetitionKind.TOURNAMENT) as opened:
        yield opened


@pytest.fixture
def ladder(tmp_path: Path) -> Iterator[OneCompetition]:
    with open_competition(tmp_path, CompetitionKind.PRACTICE) as opened:
        yield opened


# History of a ladder


async def test_the_history_of_a_ladder_has_versions_that_were_replaced(ladder: OneCompetition) -> None:
    old = ladder.add_version("Team")
    other = ladder.add_version("Other")
    ladder.add_game(1, f"Team v{old.number}", f"Other v{other.number}")
    new = ladder.add_version("Team")
    ladder.add_game(2, f"Team v{new.number}", f"Other v{other.number}")
    history = await ladder.summaries.history(ladder.competition)
    assert [game.key for game in history.games] == ["p0000001-1", "p0000002-1"]
    assert all(estimate.has_interval for estimate in history.estimates_of(history.bots).values())
    assert len(history.estimates) == 3
    summary = await ladder.summary()
    assert [game.key for game in summary.games] == ["p0000002-1"]
    assert not any(estimate.has_interval for estimate in summary.estimates.values())


async def test_a_ladder_computes_the_intervals_that_are_shown(
    ladder: OneCompetition, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"{team} v{ladder.add_version(team).number}" for team in ("One", "Two", "Three", "Four")]
    for number, pair in enumerate(combinations(names, 2)):
        ladder.add_game(number, *pair)
    computed = recorded_intervals(monkeypatch)
    history = await ladder.summaries.history(ladder.competition)
    summary = await ladder.summary()
    assert computed[1::2] == [0, 0]
    for anchor in (None, names[0]):
        whole = history.estimates_of(names, anchor)
        computed.clear()
        assert history.estimates_of({names[2]}, anchor) == {names[2]: pytest.approx(whole[names[2]])}
        assert computed[1:] == [1]
    assert history.estimates.keys() == summary.estimates.keys() == whole.keys()


async def test_a_history_without_new_games_is_not_computed_again(ladder: OneCompetition) -> None:
    names = [f"{team} v{ladder.add_version(team).number}" for team in ("Team", "Other")]
    ladder.add_game(1, *names)
    first = await ladder.summaries.history(ladder.competition)
    ladder.now_s += OLDEST_S + 1
    assert await ladder.summaries.history(ladder.competition) is first
    ladder.add_game(2, *names)
    ladder.now_s += OLDEST_S + 1
    assert len((await ladder.summaries.history(ladder.competition)).games) == 2
    assert ladder.changes == 0  # the standings did not change because of a history


# Age


async def test_a_summary_of_the_same_games_is_not_computed_again(cup: OneCompetition) -> None:
    cup.add_game(1)
    first = await cup.summary()
    assert [game.key for game in first.games] == ["p0000001-1"]
    cup.now_s += OLDEST_S + 1
    assert await cup.summary() is first
    assert await cup.summary(wait=True) is first
    assert cup.changes == 1
    cup.add_game(2)
    assert len((await cup.summary(wait=True)).games) == 2  # after a ruling, for example


async def test_the_control_of_a_tournament_needs_no_ratings(
    cup: OneCompetition, monkeypatch: pytest.MonkeyPatch
) -> None:
    computed = recorded_intervals(monkeypatch)
    cup.add_game(1)
    first = await cup.summaries.without_table(cup.competition)
    assert [game.key for game in first.games] == ["p0000001-1"]
    assert await cup.summaries.without_table(cup.competition) is first
    cup.add_game(2)
    assert (await cup.summaries.without_table(cup.competition)).done == 2
    assert (computed, cup.changes) == ([], 0)
    assert len((await cup.summary()).table) == 2


async def test_pages_get_the_old_summary_while_a_newer_one_is_computed(cup: OneCompetition) -> None:
    async with cup.background():
        old = await cup.summary()
        cup.add_game(1)
        assert await cup.summary() is old  # the games were read a moment ago
        cup.now_s += FRESH_S + 0.1
        assert await cup.summary() is old
        await cup.refreshed()
        new = await cup.summary()
        assert (len(new.games), cup.changes) == (1, 2)
        assert {"ratings", "table"} <= vars(new).keys(), "they are computed before a page needs them"
        cup.add_game(2)
        cup.now_s += OLDEST_S + 1
        assert len((await cup.summary()).games) == 2, "a summary that is too old is not shown"


async def test_waiting_tasks_share_one_computation(
    cup: OneCompetition, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads = []
    load = TournamentResults.load

    def counted(store: Store) -> TournamentResults:
        threads.append(threading.get_ident())
        return load(store)

    monkeypatch.setattr(TournamentResults, "load", counted)
    async with trio.open_nursery() as nursery:
        for _ in range(20):
            nursery.start_soon(cup.summary)
    assert len(threads) == 1
    assert threading.get_ident() not in threads


async def test_a_long_computation_is_followed_by_a_longer_rest(
    cup: OneCompetition, monkeypatch: pytest.MonkeyPatch
) -> None:
    load = TournamentResults.load

    def slow(store: Store) -> TournamentResults:
        cup.now_s += 3.0
        return load(store)

    monkeypatch.setattr(TournamentResults, "load", slow)
    async with cup.background():
        old = await cup.summary()
        cup.add_game(1)
        for cup.now_s in (3.0 * REST - 1, 3.0 * REST + 1):  # longer than OLDEST_S, for the bots' sake
            assert await cup.summary() is old
            await cup.refreshed()
        assert await cup.summary() is not old


async def test_a_store_that_fails_is_reported_to_pages_that_must_wait(
    cup: OneCompetition, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(_store: Store) -> tuple[int, int]:
        raise StoreError("the disk is gone", is_ours=True)

    async with cup.background():
        old = await cup.summary()
        with monkeypatch.context() as patched:
            patched.setattr(Store, "size", fails)
            cup.now_s += FRESH_S + 0.1
            assert await cup.summary() is old
            await cup.refreshed()
            (failure,) = cup.failures.newest()
            assert (failure.where, failure.why) == ("summary of Cup", "StoreError: the disk is gone")
            cup.now_s += OLDEST_S
            with pytest.raises(StoreError, match="the disk is gone"):
                await cup.summary()
        assert await cup.summary() is old


# Practice


async def test_the_table_of_a_practice_ladder_has_the_current_bots(ladder: OneCompetition) -> None:
    for reference in ("ladder:1", "ladder:2"):  # the settings have the first one only
        ladder.course.competitions.enter(ladder.competition.id, reference, None, reference)
    ladder.add_version("Team 1")
    ladder.add_version("Team 2")
    ladder.add_game(1, "Team 1 v1", "ladder:1")
    ladder.add_game(2, "Team 1 v1", "Team 2 v1")
    ladder.add_game(3, "ladder:2", "ladder:1")
    summary = await ladder.summary()
    assert summary.bots == ["Team 1 v1", "Team 2 v1", "ladder:1"]
    assert [game.key for game in summary.games] == ["p0000001-1", "p0000002-1"]
    assert (summary.total, summary.done, summary.conclusion, summary.places) == (2, 2, "", {})
    assert summary.about == "practice, kalah(3,2), 10 s per move (margin 0.05 s, start 30 s), 2 games"
    assert summary.table[0].name == "Team 1 v1"
    assert summary.table[0].criteria == {"rating": summary.estimates["Team 1 v1"].value}
    assert summary.is_adaptive
    assert summary.to_json()["format"] == {"kind": "practice"}

    newer = ladder.add_version("Team 1")
    summary = await ladder.summary(wait=True)
    assert summary.bots == ["Team 1 v2", "Team 2 v1", "ladder:1"]
    assert (summary.games, summary.estimates) == ([], {})
    ladder.add_game(4, "Team 1 v2", "ladder:1")
    summary = await ladder.summary(wait=True)
    assert len(summary.games) == 1
    ladder.add_game(5, "Team 1 v1", "ladder:1")  # the last game of the old version
    assert await ladder.summary(wait=True) is summary
    ladder.course.versions.withdraw(newer.id, True)
    assert len((await ladder.summary(wait=True)).games) == 3  # the old version plays again


async def test_the_table_of_a_finished_ladder_has_all_bots(ladder: OneCompetition) -> None:
    ladder.add_version("Team 1")
    ladder.add_version("Team 1")
    ladder.add_game(1, "Team 1 v1", "Team 1 v2")
    for state in (CompetitionState.RUNNING, CompetitionState.FINISHED):
        ladder.competition = ladder.course.competitions.set_state(ladder.competition.id, state, "", NOW)
    summary = await ladder.summary()
    assert isinstance(summary, PracticeResults)
    assert len(summary.games) == 1


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=40),
    st.lists(st.tuples(st.integers(1, 15), st.sets(st.integers(0, 3))), max_size=6),
    st.randoms(use_true_random=False),
)
def test_games_that_are_read_in_parts_are_all_games(
    pairings: list[tuple[int, int]],
    looks: list[tuple[int, set[int]]],
    dice: Random,
) -> None:
    """For any pairings, in any order of the games' ends, and with any bots that come and go."""
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
    """A store in memory."""

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
