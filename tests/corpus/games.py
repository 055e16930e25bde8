"""Games between bots of the corpus, played as ``kalarena play`` does for its users."""

import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.attacks import plays
from tests.support.ordinary_user import as_ordinary_user

GAME_LIMIT_S = 300
"""Far beyond the length of any of these games."""
KEPT_STDERR = 1500
"""Characters of a loser's standard error that a failure shows."""


@dataclass(frozen=True)
class Outcome:
    """The end of a game."""

    bots: tuple[str, str]
    reason: str
    """As in the game's record; ``score`` for a game without a fault, ``error`` if there is no record."""
    fault: str
    loser: str
    """The bot that committed the fault, if there is one."""
    text: str
    """The verdict's sentences and the end of the loser's standard error."""
    duration_s: float

    def __str__(self) -> str:
        return f"{' - '.join(self.bots)}: {self.loser} {self.reason} {self.fault}\n{self.text}"


@contextmanager
def playing(corpus: Path, *, ordinary_user: bool) -> Iterator["Table"]:
    """Start a process that plays games, as the current user or as one without privileges."""
    base = Path(tempfile.mkdtemp(prefix="corpus-"))
    try:
        base.chmod(0o755)
        home = base / "home"
        home.mkdir()
        command = list(plays.COMMAND)
        if ordinary_user:
            command = as_ordinary_user(command, [home], [corpus])
        with plays.running(command, {**os.environ, "HOME": str(home)}) as process:
            yield Table(process, corpus)
    finally:
        shutil.rmtree(base, ignore_errors=True)


@dataclass(frozen=True)
class Table:
    """A process that plays one game after the other."""

    process: plays.Plays
    corpus: Path

    def play(self, first: str, second: str, *options: str, folder: Path | None = None) -> Outcome:
        """Play a game at the default limits; a bot is a name in the corpus or any bot of the command.

        Relative paths are taken from ``folder``.
        """
        bots = (first, second)
        arguments = [str(self.corpus / bot) if (self.corpus / bot).exists() else bot for bot in bots]
        played = self.process.play(folder or self.corpus, [*arguments, "--json", *options], GAME_LIMIT_S)
        if played.status != 0:
            return Outcome(bots, "error", "", "", played.errors[-KEPT_STDERR:], 0.0)
        game = json.loads(played.output)
        faulty = game["fault"] is not None and game["winner"] is not None
        loser = 1 - game["winner"] if faulty else None
        sentences = [game["detail"] or "", game["note"] or ""]
        if loser is not None:
            sentences.append(game["stderr"][loser][-KEPT_STDERR:])
        return Outcome(
            bots,
            game["reason"],
            game["fault"] or "",
            "" if loser is None else bots[loser],
            "\n".join(filter(None, sentences)),
            game["duration_ms"] / 1000,
        )
