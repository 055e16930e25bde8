"""kill -9 of a server that checks and plays: nothing lost, nothing doubled, no process left."""

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.courses import CHEAP
from tests.test_resume import GONE_WITHIN_S, all_end, descendants, open_pidfds
from tournaments.course.course import Course
from tournaments.course.model import VersionState
from tournaments.database.location import Database
from tournaments.store import Store
from tournaments.submissions.content import ContentStore

ROOT = Path(__file__).resolve().parent.parent
KILLS = 6
UPLOADS = 8
LIMIT_S = 240.0

pytestmark = pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="waits for processes by pidfd (Linux)")


class Server:
    """One life of a server."""

    def __init__(self, data: Path) -> None:
        arguments = (sys.executable, "-m", "tests.service_process", str(data), str(UPLOADS))
        self.process = subprocess.Popen(arguments, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "ready\n"

    def kill(self) -> list[list[object]]:
        """Kill it, see that all it had started ends; the uploads that it acknowledged."""
        left_behind = open_pidfds(descendants(self.process.pid))
        self.process.kill()
        said, _ = self.process.communicate(timeout=60)
        assert all_end(left_behind, GONE_WITHIN_S), "bots or workers outlived the server"
        # A line may have been cut off by the kill: that upload was not acknowledged.
        return [json.loads(line) for line in said.splitlines(keepends=True) if line.endswith("\n")]


def wait_until(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.2)


@pytest.mark.slow
def test_kill_9_at_any_moment_loses_and_doubles_nothing(tmp_path: Path) -> None:
    dice = random.Random(7)
    database = Database(tmp_path)
    acknowledged: list[list[object]] = []
    games: dict[str, str] = {}
    for _ in range(KILLS):
        server = Server(tmp_path)
        time.sleep(dice.uniform(0.0, 3.0))
        acknowledged += server.kill()
        with Store(database.competition("practice")) as store:
            now = {game.key: game.fingerprint for game in store.games()}
            assert games.items() <= now.items(), "a game that was kept is gone, or another one"
            games = now
    server = Server(tmp_path)
    try:
        with Course(database.course(), CHEAP) as course, Store(database.competition("practice")) as store:
            wait_until(lambda: len(course.versions.all(1000)) == UPLOADS and not course.versions.unfinished())
            before = len(store.played())
            wait_until(lambda: len(store.played()) > before + 10)
    finally:
        acknowledged += server.kill()
    with Course(database.course(), CHEAP) as course, Store(database.competition("practice")) as store:
        versions = course.versions.all(1000)
        found = [[one.id, one.team_id, one.number, one.content] for one in versions]
        assert all(one in found for one in acknowledged)
        assert len({one.content for one in versions}) == UPLOADS, "every upload is there once"
        assert {one.state for one in versions} == {VersionState.QUALIFIED}
        contents = ContentStore(tmp_path / "submissions")
        for one in versions:
            contents.verify(one.content)
        played = store.games()
        assert games.items() <= {game.key: game.fingerprint for game in played}.items()
        pairs = {game.pair for game in played if game.key.endswith("-1")}
        assert {game.pair for game in played if game.key.endswith("-2")} <= pairs
        assert len(played) >= 2 * len(pairs) - 2, "only pairs that were being played are not complete"
        names = {one.name for one in course.competitions.competitors(1)}
        assert {name for game in played for name in (game.first, game.second)} <= names
