"""A process that runs ``kalarena play`` again and again: ``python -m tests.attacks.plays``.

Each game is played by a process of its own, as by the command, but one that is forked where all modules are
there already: to load them takes longer than most attacks.
"""

import json
import os
import select
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tournaments.cli import play
from tournaments.cli.main import entry

COMMAND = (sys.executable, "-m", "tests.attacks.plays")
REPOSITORY = Path(__file__).resolve().parents[2]
END_LIMIT_S = 120


@dataclass(frozen=True)
class Played:
    """Exit status and output of the command."""

    status: int
    """Exit status; below 0 the number of the signal that ended it."""
    output: str
    errors: str


class Plays:
    """A running process that plays games on request; see ``running``."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def play(self, folder: Path, arguments: Sequence[str], limit_s: float) -> Played:
        """Run ``kalarena play`` in a folder; raise TimeoutError if it takes too long."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([str(folder), *arguments]) + "\n")
        self._process.stdin.flush()
        if not select.select([self._process.stdout], [], [], limit_s)[0]:
            raise TimeoutError(f"no end after {limit_s} s")
        return Played(*json.loads(self._process.stdout.readline()))


@contextmanager
def running(command: Sequence[str], environment: Mapping[str, str]) -> Iterator[Plays]:
    """Start such a process, by COMMAND or by a command that runs it as another user."""
    process = subprocess.Popen(
        command, cwd=REPOSITORY, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        yield Plays(process)
        process.communicate(timeout=END_LIMIT_S)
    finally:
        process.kill()
        process.communicate()


def main() -> None:
    """Play the game of each line of standard input, and answer with a line."""
    for line in sys.stdin:
        folder, *arguments = json.loads(line)
        with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
            pid = os.fork()
            if pid == 0:
                os.chdir(folder)
                os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
                os.dup2(output.fileno(), 1)
                os.dup2(errors.fileno(), 2)
                sys.argv = ["kalarena", str(play.command.name), *arguments]
                entry()
            status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
            for file in (output, errors):
                file.seek(0)
            print(json.dumps([status, output.read().decode(), errors.read().decode()]), flush=True)


if __name__ == "__main__":
    main()
