"""200 hostile games, 8 at a time: nothing is left, and each verdict is right.  `make soak` plays 2,000."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.confinement import needs_sandbox

GAMES = 200
LIMIT_S = 400


@pytest.mark.slow
def test_two_hundred_hostile_games_leave_nothing_behind(tmp_path: Path) -> None:
    needs_sandbox()
    done = subprocess.run(
        # In a process of its own: what other tests left open in this one is none of its business.
        [sys.executable, "-m", "tests.soak", "--games", str(GAMES), "--at-once", "8"],
        cwd=Path(__file__).parent.parent,
        env=os.environ | {"TMPDIR": str(tmp_path)},  # other tests leave files in the usual one meanwhile
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith(f"{GAMES} games in ")
    assert done.stdout.endswith("nothing left behind, nothing judged wrong\n")
