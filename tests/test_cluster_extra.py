"""The core without the extra `cluster`, in processes that cannot import any of it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.builders import RUN_LIMIT_S, write_tournament
from tournaments.engines.remote.extra import MODULES

CUP = 'name = "Cup"\ngame = "kalah(1,1)"\nbots = ["first_legal", "greedy"]\n'
WITHOUT = f"""
import sys
sys.modules.update(dict.fromkeys(("dask", "tornado", *{MODULES!r})))
from tournaments.cli.main import entry
entry()
"""
"""None in the place of a module: it cannot be imported, and is not found."""


def without(folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-c", WITHOUT, *arguments]
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=RUN_LIMIT_S, check=False
    )


@pytest.mark.parametrize(
    "arguments",
    [
        ("tournament", "run", "cup.toml", "--engine", "dask"),
        ("worker", "--scheduler", "tls://127.0.0.1:1", "--credentials", "credentials"),
    ],
)
def test_asking_for_it_says_what_to_install(arguments: tuple[str, ...], tmp_path: Path) -> None:
    write_tournament(tmp_path, CUP)
    done = without(tmp_path, *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f"Error: playing on a cluster needs what is not installed here ({', '.join(MODULES)}): "
        "pip install 'kalarena[cluster]'\n"
    )
    assert [path.name for path in tmp_path.iterdir()] == ["cup.toml"]


def test_without_it_a_tournament_is_played_here(tmp_path: Path) -> None:
    write_tournament(tmp_path, CUP)
    done = without(tmp_path, "tournament", "run", "cup.toml", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["games_done"] == 2
