"""Rejudging of all games of a competition, in a worker process."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import cast

import pytest
import trio
from sqlalchemy import Engine, text

from tests.server.harness import LIMIT_S, Harness, open_harness, running, spec, until
from tests.support.builders import make_summary
from tests.support.courses import NOW
from tests.support.databases import database_of
from tests.support.tampering import tampering
from tournaments.course.model import Competition, CompetitionKind, CompetitionState
from tournaments.database.sqlite import SQLiteFile
from tournaments.reporting.game_verification import DeclaredTournament
from tournaments.results.game_summary import GameSummary
from tournaments.results.store import Store
from tournaments.schedule.pairing import Pairing
from tournaments.server.competitions import rejudge_job
from tournaments.server.competitions.rejudge_job import RejudgeJob, Rejudging, rejudge_all
from tournaments.server.competitions.tournament_manager import TournamentManager

KEY = "r001-1v2"


async def played(harness: Harness, tournaments: TournamentManager) -> Competition:
    """Play a tournament of six games."""
    choices = spec(references=["first_legal", "greedy", "random:1"])
    competition = await tournaments.create_tournament(choices, None)
    await tournaments.start(competition.id)
    return await harness.until_state(competition.id, CompetitionState.FINISHED)


async def rejudged(tournaments: TournamentManager, competition_id: int) -> Rejudging:
    progress = await tournaments.rejudge(competition_id)
    assert tournaments.rejudgings.get(competition_id) is progress
    await until(lambda: progress.over)
    return progress


def change(data: Path, key: str, column: str, value: object) -> None:
    """Change a value of a game in the store."""
    update = text(f"UPDATE game SET {column} = :value WHERE key = :key")
    with tampering(database_of(data).competition("cup")) as connection:
        connection.execute(update, {"value": value, "key": key})


@pytest.mark.slow
async def test_the_games_of_a_tournament_and_of_a_ladder(tmp_path: Path) -> None:
    async with open_harness(tmp_path, real_games=True) as harness, running(harness) as tournaments:
        competition = await played(harness, tournaments)
        assert tournaments.rejudgings.get(competition.id) is None
        good = await rejudged(tournaments, competition.id)
        assert (good.total, good.done, good.wrong, good.differences, good.failure) == (6, 6, 0, [], "")

        # A practice ladder has no schedule and no files.
        record = await tournaments.record(competition.id, KEY)
        competitions, kind = harness.course.competitions, CompetitionKind.PRACTICE
        ladder = competitions.add("ladder", "Ladder", kind, {"game": record.game}, None, NOW)
        with Store(harness.context.database.competition("ladder")) as store:
            store.add(record, 1)
        progress = await rejudged(tournaments, ladder.id)
        assert (progress.done, progress.differences) == (1, [])

        change(tmp_path, "r001-1v2", "first_moves", 77)
        change(tmp_path, "r001-1v3", "record", b"nothing")
        change(tmp_path, "r001-2v1", "round", 2)
        wire = tmp_path / "competitions" / "cup" / "games" / "r001-2v3" / "wire.txt"
        wire.write_text(wire.read_text() + "more\n")
        bad = await rejudged(tournaments, competition.id)
        assert (bad.done, bad.wrong) == (6, 4)
        moves, unreadable, round_number, file = bad.differences
        assert moves.startswith("r001-1v2: store: moves: recorded (77, ")
        assert unreadable.startswith("r001-1v3: record")
        assert round_number.startswith("r001-2v1: schedule: round: recorded 2, but 1 follows")
        assert file.startswith("r001-2v3: ")
        assert "wire.txt" in file


@pytest.mark.slow
async def test_a_rejudging_is_begun_once_and_ends_with_its_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rejudge_job, "CHUNK", 1)
    async with open_harness(tmp_path) as harness:
        async with running(harness) as tournaments:
            competition = await played(harness, tournaments)
            progress = await tournaments.rejudge(competition.id)
            assert await tournaments.rejudge(competition.id) is progress
        assert (progress.over, progress.failure) == (True, "it was stopped")
        assert progress.done < 6
        async with running(harness) as tournaments:
            assert tournaments.rejudgings.get(competition.id) is None
            again = await rejudged(tournaments, competition.id)
            assert (again.done, again.failure) == (6, "")


class FaultyFile(SQLiteFile):
    """A location that cannot be opened because of a mistake in this program."""

    @contextmanager
    def engine(self, *, read_only: bool) -> Iterator[Engine]:
        yield cast("Engine", 1 // 0)


class DeadlyFile(SQLiteFile):
    """A location that ends the process which opens it."""

    @contextmanager
    def engine(self, *, read_only: bool) -> Iterator[Engine]:
        yield os._exit(1)


@pytest.mark.slow
@pytest.mark.parametrize("why", ["gone", "died", "ZeroDivisionError"])
async def test_a_rejudging_that_fails_says_why_and_ends_nothing_else(tmp_path: Path, why: str) -> None:
    file = tmp_path / "x.db"
    locations = {"gone": database_of(tmp_path).competition("gone"), "died": DeadlyFile(file)}
    progress = Rejudging()
    job = RejudgeJob(locations.get(why, FaultyFile(file)), [game(1)], None, None)
    with trio.fail_after(LIMIT_S):
        await rejudge_all(job, progress)
    assert (progress.over, progress.done) == (True, 0)
    assert why in progress.failure


def game(number: int) -> GameSummary:
    return make_summary("one", "two", 0, key=f"r001-{number}v9")


def test_a_part_of_a_job_has_the_data_that_it_needs(tmp_path: Path) -> None:
    games = [game(number) for number in range(1, 2 * rejudge_job.CHUNK)]
    pairings = {one.key: Pairing(one.key, 1, 0, 1) for one in games}
    declared = DeclaredTournament("kalah(3,2)", "2 s", ("one", "two"), len(games), pairings)
    job = RejudgeJob(SQLiteFile(tmp_path / "x.db"), games, declared, None)
    parts = [job.part(begin) for begin in range(0, len(games), rejudge_job.CHUNK)]
    assert [one for part in parts for one in part.games] == games
    for part in parts:
        assert part.meant is not None
        assert set(part.meant.pairings) == {one.key for one in part.games}
