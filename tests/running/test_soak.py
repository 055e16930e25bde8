"""Hostile games, 8 at a time: nothing is left, and each verdict is right.  `make soak` plays 2,000."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.confinement import needs_sandbox
from tests.support.paths import REPOSITORY_ROOT

LIMIT_S = 1200
GAMES = 120
"""Each bot that misbehaves plays twice, once in each seat."""


@pytest.mark.load
def test_hostile_games_leave_nothing_behind(tmp_path: Path) -> None:
    needs_sandbox()
    # In a process of its own, with a temporary directory of its own: other tests leave files and descriptors.
    command = [sys.executable, "-m", "tests.soak", "--games", str(GAMES), "--at-once", "8"]
    done = subprocess.run(
        command,
        cwd=REPOSITORY_ROOT,
        env=os.environ | {"TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith(f"{GAMES} games in ")
    assert done.stdout.endswith("nothing left behind, nothing judged wrong\n")
