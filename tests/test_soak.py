"""200 hostile games, 8 at a time: nothing is left, and each verdict is right.  `make soak` plays 2,000."""

import tempfile
from pathlib import Path

import pytest
import trio

from tests.confinement import needs_sandbox
from tests.soak import show, soak
from tournaments.store import Store

GAMES = 200
LIMIT_S = 400


@pytest.mark.slow
async def test_two_hundred_hostile_games_leave_nothing_behind() -> None:
    needs_sandbox()
    with tempfile.TemporaryDirectory(prefix="kalarena-soak-") as name, trio.fail_after(LIMIT_S):
        folder = Path(name)
        folder.chmod(0o755)
        outcome = await soak(GAMES, 8, folder)
        print(show(outcome))
        assert outcome.complaints() == []
        assert outcome.games == GAMES
        with Store(folder / "results.db") as store:
            assert len([key for key in store.played() if key.startswith("s")]) == GAMES
