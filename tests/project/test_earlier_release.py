"""A tournament's directory and a server's data of the release before the layout of today, kept as they were.

tests/data/earlier has both: a round robin that was stopped after 10 of 30 games (tournament.tar.gz, with its
file and a bot), and the data of `kalarena serve --demo` after 46 practice games (server.tar.gz).
"""

import sqlite3
import tarfile
import time
import urllib.request
from pathlib import Path

import pytest

from referee.judge.replay_check import check_replay
from tests.server.server_process import served
from tests.support.builders import RUN_LIMIT_S, invoke
from tests.support.confinement import needs_sandbox
from tests.support.paths import TEST_DATA
from tournaments.results.store import Store

EARLIER = TEST_DATA / "earlier"
PLAYED, ALL = 10, 30
PRACTICE_GAMES = 46
PRACTICE_LIMIT_S = 600


def unpacked(name: str, folder: Path) -> Path:
    with tarfile.open(EARLIER / name) as archive:
        archive.extractall(folder, filter="data")
    return folder


def last_line(*arguments: str | Path) -> str:
    result = invoke(*arguments)
    assert result.exit_code == 0, result.output
    return result.output.splitlines()[-1]


@pytest.mark.slow
@pytest.mark.any_database
def test_a_tournament_opens_resumes_and_verifies(tmp_path: Path) -> None:
    needs_sandbox()
    folder = unpacked("tournament.tar.gz", tmp_path)
    out = folder / "out"
    assert f"{PLAYED} of {ALL} games" in invoke("tournament", "table", out).output
    assert last_line("verify", out) == f"{PLAYED} games verified, nothing wrong"
    result = invoke("tournament", "run", folder / "old.toml", "--out", out)
    assert result.exit_code == 0, result.output
    assert last_line("verify", out) == f"{ALL} games verified, nothing wrong"


def practice_games(data: Path) -> int:
    connection = sqlite3.connect(data / "competitions" / "practice" / "results.db")
    try:
        number: int = connection.execute("SELECT count(*) FROM game").fetchone()[0]
    finally:
        connection.close()
    return number


@pytest.mark.slow
@pytest.mark.any_database
def test_a_server_opens_goes_on_and_verifies(tmp_path: Path) -> None:
    needs_sandbox()
    data = unpacked("server.tar.gz", tmp_path) / "data"
    assert practice_games(data) == PRACTICE_GAMES
    with served(data) as server:
        with urllib.request.urlopen(f"{server.url}/health", timeout=RUN_LIMIT_S) as answer:
            assert answer.status == 200
        end = time.monotonic() + PRACTICE_LIMIT_S
        while practice_games(data) < PRACTICE_GAMES + 2 and time.monotonic() < end:
            time.sleep(0.2)
        status, _, errors = server.end()
    assert (status, "Traceback" in errors) == (0, False)
    assert practice_games(data) >= PRACTICE_GAMES + 2
    with Store(data / "competitions" / "practice" / "results.db") as store:
        for game in store.games():
            assert check_replay(store.record(game.key)) == []
