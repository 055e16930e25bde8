"""The simulation of a large cluster, with a small one."""

from collections.abc import Sequence
from pathlib import Path

import pytest
import trio

from benchmarks.instant import InstantEngine, made_up_result, tournament_of
from benchmarks.scale import Cluster, measure_run
from referee.playing import Job
from tests.support.builders import CONTROL, make_player, make_record
from tournaments.results.game_files import GAMES
from tournaments.results.game_summary import PackedGame
from tournaments.results.store import Store
from tournaments.running.result_writer import MOST_AT_ONCE
from tournaments.running.runner import Run, play_all

BOTS = 24
GAMES_OF_A_ROUND = BOTS * (BOTS - 1)


class CountingStore(Store):
    """Counts the games of each transaction."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.transactions: list[int] = []

    def add_all(self, games: Sequence[PackedGame]) -> set[str]:
        self.transactions.append(len(games))
        return super().add_all(games)


@pytest.mark.slow
def test_games_that_end_together_are_stored_in_one_transaction(tmp_path: Path) -> None:
    tournament = tournament_of(BOTS, 1, "kalah(1,1)")
    counting = CountingStore(tmp_path / "results.db")
    with counting as store:
        run = Run(tournament, store)
        due = {pairing.key for pairing in run.due()}
        trio.run(play_all, run, InstantEngine(10_000, make_record()), tmp_path)
        assert sum(counting.transactions) == GAMES_OF_A_ROUND == run.report.played
        assert len(counting.transactions) <= 1 + GAMES_OF_A_ROUND // MOST_AT_ONCE + 1
        assert max(counting.transactions) <= MOST_AT_ONCE
        assert store.played() == due
        assert {path.name for path in (tmp_path / GAMES).iterdir()} == due


def test_a_result_is_the_same_every_time() -> None:
    job = Job("r001-1v2", "kalah(1,1)", (make_player("one"), make_player("two")), CONTROL)
    assert made_up_result(job) == made_up_result(job)


def test_the_figures_are_of_the_whole_tournament() -> None:
    found = measure_run(Cluster(workers=40, length_s=0.2), 5, 2, make_record())
    assert found["games"] == found["most_in_flight"] == 40
    assert found["stored_per_s"] == pytest.approx(40 / found["stored_s"])
    assert found["files_too_s"] >= found["stored_s"] > 0.2
    assert all(figure > 0 for name, figure in found.items() if name != "files_cpu_us_a_game")


@pytest.mark.cluster
def test_simulated_workers_play_for_the_real_scheduler() -> None:
    found = measure_run(Cluster(workers=3, slots=2, length_s=0.2, dask=True), 4, 1, make_record())
    assert found["games"] == 12
    assert 1 < found["most_on_workers"] <= 6
    assert found["scheduler_cpu_us_a_game"] > 0
