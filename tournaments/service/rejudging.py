"""Every game of a competition judged again from its record, while the server goes on."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import trio_parallel

from tournaments.database.place import Place
from tournaments.game_summary import GameSummary
from tournaments.giving_way import give_way
from tournaments.rulings import pairing_key
from tournaments.store import Store, StoreError
from tournaments.verification import Found, Meant, of_game

CHUNK = 50
"""Games that a worker process takes at a time: about half a second, so that progress is seen."""
MOST_DIFFERENCES = 1000
"""More are counted, and not kept: what is that wrong has one cause."""
NICENESS = 10
"""Of the worker process: games that are being played go first."""


@dataclass
class Rejudging:
    """How far it is, and what was found."""

    total: int = 0
    """Games to be judged again."""
    done: int = 0
    differences: list[str] = field(default_factory=list)
    """Sentences: what was recorded and does not follow; the first MOST_DIFFERENCES of them."""
    remarks: list[str] = field(default_factory=list)
    """What to know, of which nothing is wrong; no more than of differences."""
    wrong: int = 0
    """Games of which something does not follow."""
    over: bool = False
    failure: str = ""
    """Why it ended before all games were judged; empty if it did not."""

    def take(self, found: Sequence[tuple[str, Sequence[Found]]]) -> None:
        """Count games, with what was found of each."""
        for _, complaints in found:
            self.done += 1
            self.wrong += any(not one.complaint.remark for one in complaints)
            for one in complaints:
                kept = self.remarks if one.complaint.remark else self.differences
                if len(kept) < MOST_DIFFERENCES:
                    kept.append(str(one))


@dataclass(frozen=True)
class Docket:
    """What is to be judged again.  Can be pickled."""

    place: Place
    """Of the store."""
    games: Sequence[GameSummary]
    meant: Meant | None
    """None if no schedule has the games."""
    directory: Path | None
    """Where the games' files are; None if they have none."""

    def part(self, begin: int) -> "Docket":
        """CHUNK games, with as much of the rest as they need."""
        games = self.games[begin : begin + CHUNK]
        if self.meant is None:
            return replace(self, games=games)
        keys = {pairing_key(game.key) for game in games}
        pairings = {key: self.meant.pairings[key] for key in keys if key in self.meant.pairings}
        return replace(self, games=games, meant=replace(self.meant, pairings=pairings))


async def judge_all_again(docket: Docket, progress: Rejudging) -> None:
    """Judge all games again in a worker process, and put what was found into ``progress``.

    Can be cancelled: then the process is killed.
    """
    progress.total = len(docket.games)
    try:
        async with trio_parallel.open_worker_context(init=_step_back) as context:
            for begin in range(0, len(docket.games), CHUNK):
                part = docket.part(begin)
                progress.take(await context.run_sync(judge_again, part, kill_on_cancel=True))
    except (StoreError, trio_parallel.BrokenWorkerError) as error:
        progress.failure = str(error) or "the process that judged the games again died"
    finally:
        if progress.done < progress.total and not progress.failure:
            progress.failure = "it was stopped"
        progress.over = True


def judge_again(docket: Docket) -> list[tuple[str, list[Found]]]:
    """The games' keys, with what does not follow of each.  In a worker process.  Raises StoreError."""
    with Store(docket.place, read_only=True) as store:
        return [
            (game.key, [Found(game.key, one) for one in of_game(store, docket.meant, game, docket.directory)])
            for game in docket.games
        ]


def _step_back() -> bool:
    """Let others have the cores first."""
    give_way(NICENESS)
    return True
