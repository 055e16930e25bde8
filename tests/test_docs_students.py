"""The students' guide works as written: each of its commands, in order, in an empty folder."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.test_docs import ENVIRONMENT, ROOT, blocks

GUIDE = (ROOT / "docs" / "students.md").read_text(encoding="utf-8")
SHORTER = {
    "kalarena gauntlet mybot": " --levels 1-3 --games 4",
    "kalarena duel v1 mybot --sprt 0,20": " --max-games 8",
}
"""What is added to commands that take minutes."""
LIMIT_S = 300


def test_what_is_made_shorter_is_in_the_guide() -> None:
    commands = [line for block in blocks(GUIDE, "sh") for line in block.splitlines()]
    assert set(SHORTER) <= set(commands)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("javac") is None, reason="no Java here")
def test_every_command_of_the_guide_works(tmp_path: Path) -> None:
    for name, text in re.findall(r"Save this as `([^`]+)`:\n\n```[a-z]+\n(.*?)^```", GUIDE, re.M | re.S):
        (tmp_path / name).write_text(text, encoding="utf-8")
    said = ""
    for block in blocks(GUIDE, "sh"):
        for command in block.splitlines():
            done = subprocess.run(
                ["bash", "-c", command + SHORTER.get(command, "")],
                cwd=tmp_path,
                env=ENVIRONMENT,
                capture_output=True,
                text=True,
                timeout=LIMIT_S,
                check=False,
            )
            assert done.returncode == 0, (command, done.stdout, done.stderr)
            assert "Traceback" not in done.stderr
            said += done.stdout
    assert (tmp_path / "cup-results" / "report" / "index.html").is_file()
    # The bot that was broken on purpose loses with the sentence that the guide shows.
    assert re.search(r"broken \(South\) lost: it sent 'MOVE;\d': ", said)
