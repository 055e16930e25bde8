"""Standard output that takes nothing: a full disk, or a reader that has gone."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.builders import KALARENA, RUN_LIMIT_S
from tests.reports import write_store

FULL = "/dev/full"
"""A device of Linux that is a full disk."""

COMMANDS = {
    "games": ("games",),
    "help": ("--help",),
    "perft": ("perft", "manchester", "--depth", "1"),
    "table": ("tournament", "table", "cup"),
    "export": ("tournament", "export", "cup", "--what", "games"),
    "one game": ("tournament", "export", "cup", "--game", "r001-1v2"),
    "marks": ("tournament", "marks", "cup", "--rules", "marks.toml"),
    "verify": ("verify", "--json", "cup"),
}

RULES = """
[students]
ada = "Ann Smith"
bob = "Bob Jones"
cleo = "Cid Hall"

[[rule]]
name = "All"
kind = "points"
marks = 10
"""

needs_full = pytest.mark.skipif(not os.path.exists(FULL), reason="no /dev/full here")  # noqa: PTH110


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_store(tmp_path / "cup", ["ada", "bob", "cleo"])
    (tmp_path / "marks.toml").write_text(RULES, encoding="utf-8")
    return tmp_path


def run(folder: Path, command: str, output: int, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [KALARENA, *COMMANDS[command]],
        cwd=folder,
        env={**os.environ, **environment},
        stdout=output,
        stderr=subprocess.PIPE,
        text=True,
        timeout=RUN_LIMIT_S,
        check=False,
    )


@needs_full
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("command", COMMANDS)
def test_a_full_disk(folder: Path, command: str, unbuffered: str) -> None:
    output = os.open(FULL, os.O_WRONLY)
    try:
        done = run(folder, command, output, PYTHONUNBUFFERED=unbuffered)
    finally:
        os.close(output)
    assert done.stderr.splitlines()[-1] == "Error: standard output: No space left on device"
    assert done.stderr.count("Error") == 1
    assert "Traceback" not in done.stderr
    assert done.returncode == 1


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("command", COMMANDS)
def test_a_reader_that_has_gone(folder: Path, command: str, unbuffered: str) -> None:
    """`| head` is no error that anybody wants to read of."""
    theirs, ours = os.pipe()
    os.close(theirs)
    try:
        done = run(folder, command, ours, PYTHONUNBUFFERED=unbuffered)
    finally:
        os.close(ours)
    assert "rror" not in done.stderr
    assert done.returncode == 1


@pytest.mark.parametrize(
    "command",
    [
        COMMANDS["games"],
        ("check", "first_legal", "--game", "kalah(2,1)", "--sandbox", "off"),
        (
            "gauntlet",
            "first_legal",
            "--levels",
            "1",
            "--games",
            "2",
            "--game",
            "kalah(2,1)",
            "--out",
            "closed",
        ),
    ],
    ids=lambda command: command[0],
)
def test_standard_output_that_was_closed(command: tuple[str, ...], folder: Path) -> None:
    done = subprocess.run(
        ["sh", "-c", 'exec "$@" >&-', "sh", KALARENA, *command],
        cwd=folder,
        stderr=subprocess.PIPE,
        text=True,
        timeout=RUN_LIMIT_S,
        check=False,
    )
    assert "Traceback" not in done.stderr
