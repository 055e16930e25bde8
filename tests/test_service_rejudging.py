"""Judging all games of a competition again, in a process of its own."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import trio
from sqlalchemy import Engine, text

from tests.builders import make_summary
from tests.contest_parts import LIMIT_S, World, open_world, running, spec, until
from tests.courses import NOW
from tests.databases import database_of
from tests.tampering import tampering
from tournaments.course.model import Competition, CompetitionKind, CompetitionState
from tournaments.database.sqlite import SQLiteFile
from tournaments.reporting.verification import DeclaredTournament
from tournaments.results.game_summary import GameSummary
from tournaments.results.store import Store
from tournaments.schedule.pairing import Pairing
from tournaments.server.competitions import rejudge_job
from tournaments.server.competitions.rejudge_job import RejudgeJob, Rejudging, rejudge_all
from tournaments.server.competitions.tournament_manager import TournamentManager

KEY = "r001-1v2"


async def played(world: World, contests: TournamentManager) -> Competition:
    """A tournament of six games."""
    chosen = spec(references=["first_legal", "greedy", "random:1"])
    competition = await contests.create_tournament(chosen, None)
    await contests.start(competition.id)
    return await world.until_state(competition.id, CompetitionState.FINISHED)


async def judged(contests: TournamentManager, competition_id: int) -> Rejudging:
    """All games, judged again."""
    progress = await contests.rejudge(competition_id)
    assert contests.rejudging(competition_id) is progress
    await until_over(progress)
    return progress


async def until_over(progress: Rejudging) -> None:
    await until(lambda: progress.over)


def change(data: Path, key: str, column: str, value: object) -> None:
    """Give a game of the store another value."""
    update = text(f"UPDATE game SET {column} = :value WHERE key = :key")
    with tampering(database_of(data).competition("cup")) as connection:
        connection.execute(update, {"value": value, "key": key})


async def test_all_games_of_a_tournament(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world, running(world) as contests:
        competition = await played(world, contests)
        assert contests.rejudging(competition.id) is None
        good = await judged(contests, competition.id)
        assert (good.total, good.done, good.wrong, good.differences, good.failure) == (6, 6, 0, [], "")

        change(tmp_path, "r001-1v2", "first_moves", 77)
        change(tmp_path, "r001-1v3", "record", b"nothing")
        change(tmp_path, "r001-2v1", "round", 2)
        wire = tmp_path / "competitions" / "cup" / "games" / "r001-2v3" / "wire.txt"
        wire.write_text(wire.read_text() + "more\n")
        bad = await judged(contests, competition.id)
        assert (bad.done, bad.wrong) == (6, 4)
        moves, record, round_number, file = bad.differences
        assert moves.startswith("r001-1v2: store: moves: recorded (77, ")
        assert record.startswith("r001-1v3: record")
        assert round_number.startswith("r001-2v1: schedule: round: recorded 2, but 1 follows")
        assert file.startswith("r001-2v3: ")
        assert "wire.txt" in file


async def test_a_practice_ladder_has_no_schedule_and_no_files(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world, running(world) as contests:
        cup = await played(world, contests)
        record = await contests.record(cup.id, KEY)
        kind = CompetitionKind.PRACTICE
        ladder = world.course.competitions.add("ladder", "Ladder", kind, {"game": record.game}, None, NOW)
        with Store(world.parts.database.competition("ladder")) as store:
            store.add(record, 1)
        progress = await judged(contests, ladder.id)
        assert (progress.done, progress.differences) == (1, [])


async def test_it_can_be_stopped_and_is_begun_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rejudge_job, "CHUNK", 1)
    async with open_world(tmp_path) as world, running(world) as contests:
        competition = await played(world, contests)
        progress = await contests.rejudge(competition.id)
        assert await contests.rejudge(competition.id) is progress
        contests.stop_rejudging(competition.id)
        await until_over(progress)
        assert progress.failure == "it was stopped"
        assert progress.done < 6
        again = await judged(contests, competition.id)
        assert (again.done, again.failure) == (6, "")


class Deadly(SQLiteFile):
    """A place that ends the process which opens it."""

    @contextmanager
    def engine(self, *, read_only: bool) -> Iterator[Engine]:
        yield os._exit(1)


async def test_a_process_that_dies(tmp_path: Path) -> None:
    progress = Rejudging()
    games = [game(1)]
    with trio.fail_after(LIMIT_S):
        await rejudge_all(RejudgeJob(Deadly(tmp_path / "x.db"), games, None, None), progress)
    assert progress.over
    assert progress.done == 0
    assert progress.failure


async def test_a_store_that_is_gone(tmp_path: Path) -> None:
    progress = Rejudging()
    gone = database_of(tmp_path).competition("gone")
    with trio.fail_after(LIMIT_S):
        await rejudge_all(RejudgeJob(gone, [game(1)], None, None), progress)
    assert progress.over
    assert str(gone) in progress.failure


def game(number: int) -> GameSummary:
    return make_summary("one", "two", 0, key=f"r001-{number}v9")


def test_a_part_of_a_docket_has_what_it_needs(tmp_path: Path) -> None:
    games = [game(number) for number in range(1, 2 * rejudge_job.CHUNK)]
    pairings = {one.key: Pairing(one.key, 1, 0, 1) for one in games}
    meant = DeclaredTournament("kalah(3,2)", "2 s", ("one", "two"), len(games), pairings)
    job = RejudgeJob(SQLiteFile(tmp_path / "x.db"), games, meant, None)
    parts = [job.part(begin) for begin in range(0, len(games), rejudge_job.CHUNK)]
    assert [one for part in parts for one in part.games] == games
    for part in parts:
        assert part.meant is not None
        assert set(part.meant.pairings) == {one.key for one in part.games}
