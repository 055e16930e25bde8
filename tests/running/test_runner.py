"""Runs of formats that pair round by round, with an engine whose games take no time."""

from collections.abc import Sequence
from pathlib import Path

import pytest
import trio
import trio.testing

from benchmarks.instant import InstantEngine
from referee.playing import Job
from tests.server.harness import until
from tests.support.builders import make_record, write_tournament
from tournaments.config.load import load_tournament
from tournaments.engines.base import OnSnapshot, OnStart
from tournaments.results.game_files import GAMES
from tournaments.results.game_summary import PackedGame
from tournaments.results.store import Store
from tournaments.running import runner
from tournaments.running.runner import Run, play_all
from tournaments.schedule.formats.swiss import Swiss
from tournaments.schedule.pairing import History, Pairing, Schedule

ROUNDS, GAMES_OF_A_ROUND = 3, 4


@pytest.fixture
def swiss(tmp_path: Path) -> Path:
    bots = '["first_legal", "greedy", "random:1", "random:2"]'
    text = f'game = "kalah(1,1)"\nformat = "swiss"\nrounds = {ROUNDS}\nbots = {bots}\n'
    return write_tournament(tmp_path, text)


async def test_a_round_is_paired_while_the_event_loop_goes_on(
    swiss: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    queries = 0

    def due(self: Swiss, history: History) -> Sequence[Pairing]:
        nonlocal queries
        queries += 1
        trio.from_thread.run(trio.lowlevel.checkpoint)  # blocks for ever, or fails, unless the loop goes on
        return Schedule.due(self, history)

    with Store(tmp_path / "results.db") as store:
        run = Run(load_tournament(swiss), store)
        monkeypatch.setattr(Swiss, "due", due)
        await play_all(run, InstantEngine(2, make_record()), tmp_path)
    assert queries > ROUNDS
    assert (run.report.played, run.report.missing) == (ROUNDS * GAMES_OF_A_ROUND, 0)


async def test_games_that_end_while_a_round_is_paired_are_not_forgotten(
    swiss: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The schedule is queried when the first game has ended; the others end during the query."""
    is_queried = trio.Event()
    queries = 0

    class Waiting(InstantEngine):
        async def play(
            self, job: Job, on_start: OnStart | None = None, on_snapshot: OnSnapshot | None = None
        ) -> PackedGame:
            if run.report.played or job.key != first:
                await is_queried.wait()
            return await super().play(job, on_start, on_snapshot)

    async def all_have_ended() -> None:
        is_queried.set()
        folder = tmp_path / GAMES
        await until(lambda: run.report.played == GAMES_OF_A_ROUND == len(list(folder.iterdir())))
        await trio.testing.wait_all_tasks_blocked()

    def due(self: Swiss, history: History) -> Sequence[Pairing]:
        nonlocal queries
        queries += 1
        found = Schedule.due(self, history)
        if queries == 2:
            trio.from_thread.run(all_have_ended)
        return found

    monkeypatch.setattr(runner, "ASKING_SHARE", 0)
    with Store(tmp_path / "results.db") as store:
        run = Run(load_tournament(swiss), store)
        first = run.due()[0].key
        monkeypatch.setattr(Swiss, "due", due)
        await play_all(run, Waiting(GAMES_OF_A_ROUND, make_record()), tmp_path)
    assert queries > ROUNDS
    assert (run.report.played, run.report.missing) == (ROUNDS * GAMES_OF_A_ROUND, 0)
