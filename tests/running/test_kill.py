"""SIGKILL of the runner and of its workers at random moments: no game is lost or played twice.

Fourteen kills are a worker's, while games are played.  Six are the runner's: more than half of them at any
moment, also while it starts, the others while games are played.
"""

import os
import random
import select
import signal
import subprocess
from pathlib import Path

import pytest

from tests.running.test_resume import BOTS, KALARENA, run_to_the_end, table, write_tournament
from tests.support.builders import invoke
from tests.support.processes import all_end, descendants, open_pidfds
from tournaments.results.game_summary import GameSummary
from tournaments.results.store import Store

TARGETS = ("worker",) * 14 + ("runner",) * 6
ROUNDS = 8
GAMES = ROUNDS * len(BOTS) * (len(BOTS) - 1)
LONGEST_S = 0.3
"""Maximum time of a kill after the previous one, or after the runner began to play: 20 kills come during less
than half of the games."""
LOOK_S = 0.02
"""Seconds between two polls of the runner."""

pytestmark = [
    pytest.mark.kill,
    pytest.mark.any_database,
    pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="waits for processes by pidfd (Linux)"),
]


def ends_within(pidfd: int, seconds: float) -> bool:
    poller = select.poll()
    poller.register(pidfd, select.POLLIN)
    return bool(poller.poll(seconds * 1000))


def workers(runner: int) -> list[int]:
    """The runner's own children that play games: those that have children, or may have at any moment."""
    found = []
    try:
        threads = list(Path(f"/proc/{runner}/task").iterdir())
        children = [int(pid) for thread in threads for pid in (thread / "children").read_text().split()]
    except OSError:  # the runner has ended, or a thread of it
        return []
    for pid in children:
        try:
            if os.getsid(pid) == os.getsid(runner):
                found.append(pid)
        except ProcessLookupError:
            continue
    return found


def killed(worker: int) -> bool:
    """Kill a worker; return False if it has ended since it was found."""
    try:
        os.kill(worker, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def results_of(games: list[GameSummary]) -> dict[str, str]:
    """Return the sentence on the end of each game, by its key.  No bot may have lost by a fault."""
    assert not [game for game in games if game.fault is not None]
    return {game.key: game.detail for game in games}


class Disturbed:
    """A tournament that is being killed."""

    def __init__(self, path: Path, out: Path, chance: random.Random) -> None:
        self.command = [KALARENA, "tournament", "run", str(path), "--out", str(out)]
        self.chance = chance
        self.targets = chance.sample(TARGETS, len(TARGETS))
        """The targets of the kills that are left; the last one is next."""

    def run(self) -> bool:
        """Run until the runner was killed; return False if it came to its end."""
        runner = subprocess.Popen(self.command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        pidfd = os.pidfd_open(runner.pid)
        try:
            while self.targets:
                at_any_moment = self.targets[-1] == "runner" and self.chance.random() < 0.6
                while not at_any_moment and not workers(runner.pid) and not ends_within(pidfd, LOOK_S):
                    pass
                if ends_within(pidfd, self.chance.uniform(0.0, LONGEST_S)):
                    break
                if self.targets[-1] == "worker":
                    if (victims := workers(runner.pid)) and killed(self.chance.choice(victims)):
                        self.targets.pop()
                    continue
                everybody = open_pidfds(descendants(runner.pid))
                runner.kill()
                self.targets.pop()
                runner.wait(timeout=60)
                assert all_end(everybody), "bots or workers outlived the runner"
                return True
            # Status 1: games lost their worker three times; the next run plays them.
            assert runner.wait(timeout=900) in (0, 1)
            return False
        finally:
            os.close(pidfd)
            if runner.poll() is None:
                runner.kill()
                runner.wait()


@pytest.mark.long
def test_twenty_kills_lose_no_game_and_repeat_none(tmp_path: Path) -> None:
    path = write_tournament(tmp_path, ROUNDS, "kalah(3,2)")
    run_to_the_end(path, tmp_path / "calm")
    with Store(tmp_path / "calm" / "results.db") as store:
        expected = results_of(store.games())
    calm = {form: table(tmp_path / "calm", form) for form in ("text", "csv", "json", "html")}

    out = tmp_path / "disturbed"
    disturbed = Disturbed(path, out, random.Random(20))
    seen: set[str] = set()
    while disturbed.run() or disturbed.targets:
        if not (out / "results.db").exists():
            continue
        with Store(out / "results.db") as store:
            played = store.played()
        assert seen <= played, "a game that was kept is gone"
        seen = played
        assert len(seen) < GAMES, f"over too soon: not killed yet are {disturbed.targets}"

    run_to_the_end(path, out)
    with Store(out / "results.db") as store:
        games = store.games()
    assert len(games) == len({game.key for game in games}) == GAMES
    assert results_of(games) == expected
    assert {form: table(out, form) for form in calm} == calm
    assert not list(out.glob("leash-*"))
    done = invoke("verify", out)
    assert done.exit_code == 0, done.output
