"""How many jobs of Slurm there should be, and what is said of those that ended; without a Slurm."""

import asyncio
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tournaments.engines.remote.slurm import NOTHING, _AsManyAsGames, complaint, last_words

Games = Mapping[str, Sequence[str]]
"""Name of a worker -> games that it plays, or that wait there."""


class FakeCluster:
    """What the rule sees of dask-jobqueue's cluster, and of the scheduler; addresses are ``at NAME``."""

    def __init__(self, cores: int, games: Games, asked_for: Sequence[str] = ()) -> None:
        self.new_spec = {"options": {"cores": cores}}
        self.plan = {*games, *asked_for}
        self.scheduler_comm = self
        self.scheduler_info = {"workers": {f"at {name}": {"name": name} for name in games}}
        self._games = games

    async def processing(self) -> dict[str, Sequence[str]]:
        return {f"at {name}": games for name, games in self._games.items()}


IMPORT = """
import signal
before = signal.getsignal(signal.SIGINT)
import tournaments.engines.remote.slurm
assert signal.getsignal(signal.SIGINT) is before
"""


def test_to_import_it_leaves_signals_alone() -> None:
    subprocess.run([sys.executable, "-c", IMPORT], check=True, timeout=60)


def rule(cluster: FakeCluster) -> Any:
    return _AsManyAsGames(cluster, interval=0)


@pytest.mark.parametrize(
    ("cores", "games", "jobs"),
    [
        (1, {}, 0),
        (1, {"a": ["1", "2"]}, 2),  # as many games again wait: twice as many jobs
        (1, {"a": ["1", "2"], "b": ["3", "4"]}, 4),
        (4, {"a": ["1", "2", "3"], "b": ["4", "5", "6"]}, 2),
        (4, {"a": ["1"], "b": ["2"], "c": []}, 2),  # two would do in one job, but are not taken from theirs
        (4, {"a": list("123456789")}, 3),
    ],
)
def test_as_many_jobs_as_games_need(cores: int, games: Games, jobs: int) -> None:
    assert asyncio.run(rule(FakeCluster(cores, games)).target()) == jobs


def test_only_jobs_without_a_game_are_ended() -> None:
    cluster = FakeCluster(4, {"a": ["1"], "b": [], "c": ["2"], "d": []}, asked_for=["e"])
    assert set(asyncio.run(rule(cluster).workers_to_close(2))) == {"b", "d"}
    assert len(asyncio.run(rule(cluster).workers_to_close(4))) == 1
    assert asyncio.run(rule(cluster).workers_to_close(5)) == []


def test_workers_that_are_no_jobs_of_ours_are_left_alone() -> None:
    cluster = FakeCluster(1, {"a": [], "somebody's": []})
    cluster.plan = {"a"}
    assert asyncio.run(rule(cluster).workers_to_close(0)) == ["a"]


def test_the_last_words_of_a_job(tmp_path: Path) -> None:
    assert last_words(tmp_path, "7") == NOTHING
    (tmp_path / "kalarena-7.out").write_text("lab-7: 4 cores\n")
    (tmp_path / "kalarena-7.err").write_text("\n")
    assert last_words(tmp_path, "7") == "lab-7: 4 cores"
    (tmp_path / "kalarena-7.err").write_text("Traceback\n" * 1000 + "Error: no place\n\n")
    assert last_words(tmp_path, "7") == "Error: no place"


def test_what_a_command_of_slurm_complained_of() -> None:
    text = "Command exited with non-zero exit code.\nExit code: 1\nCommand:\nsbatch x\nstdout:\n\nstderr:\n"
    assert complaint(f"{text}sbatch: error: invalid partition\nsbatch: error: no\n\n") == "sbatch: error: no"
    assert complaint("no room\n") == "no room"
