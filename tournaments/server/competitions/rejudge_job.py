"""Rejudging of all games of a competition from their records, while the server goes on."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import trio_parallel

from tournaments.database.base import Location
from tournaments.processes.process_settings import lower_priority
from tournaments.reporting.game_verification import DeclaredTournament, verify_game
from tournaments.reporting.tournament_results import TournamentResults
from tournaments.reporting.verification import RecordFinding
from tournaments.results.game_archives import GameFilesReader
from tournaments.results.game_summary import GameSummary
from tournaments.results.rulings import pairing_key
from tournaments.results.store import Store, StoreError

CHUNK = 50
"""Number of games that a worker process rejudges at a time: half a second, so that progress is visible."""
MOST_DIFFERENCES = 1000
"""Maximum number of differences that are kept; more are only counted, since they have one cause."""
NICENESS = 10
"""Nice value of the worker process: games that are being played go first."""


@dataclass
class Rejudging:
    """Progress and findings of a rejudging."""

    total: int = 0
    """Number of games to rejudge."""
    done: int = 0
    differences: list[str] = field(default_factory=list)
    """Sentences on records that do not follow from the games, at most MOST_DIFFERENCES."""
    remarks: list[str] = field(default_factory=list)
    """Sentences on remarkable facts that are not wrong, at most MOST_DIFFERENCES."""
    wrong: int = 0
    """Number of games with a difference."""
    over: bool = False
    failure: str = ""
    """Reason why it ended before all games were rejudged; empty if it did not."""

    def take(self, found: Sequence[tuple[str, Sequence[RecordFinding]]]) -> None:
        """Count games and add their findings."""
        for _, complaints in found:
            self.done += 1
            self.wrong += any(not one.complaint.remark for one in complaints)
            for one in complaints:
                kept = self.remarks if one.complaint.remark else self.differences
                if len(kept) < MOST_DIFFERENCES:
                    kept.append(str(one))


@dataclass(frozen=True)
class RejudgeJob:
    """Games to rejudge, with the data that is needed for it.  Can be pickled."""

    location: Location
    """Location of the store."""
    games: Sequence[GameSummary]
    meant: DeclaredTournament | None
    """The games' scheduled properties; None for games without a schedule."""
    directory: Path | None
    """Directory of the games' files; None if there are none."""

    @classmethod
    def of(cls, store: Store, directory: Path | None) -> "RejudgeJob":
        """Return the job for all games of a store.  Raises StoreError.

        ``directory`` has the files of a tournament's games; None for practice and challenges, whose games
        have no schedule.
        """
        if directory is None:
            return cls(store.location, store.games(), None, None)
        summary = TournamentResults.load(store)
        declared = DeclaredTournament.of(summary, store.identity())
        return cls(store.location, summary.kept, declared, directory)

    def part(self, begin: int) -> "RejudgeJob":
        """Return CHUNK games, with the part of the other data that they need."""
        games = self.games[begin : begin + CHUNK]
        if self.meant is None:
            return replace(self, games=games)
        keys = {pairing_key(game.key) for game in games}
        pairings = {key: self.meant.pairings[key] for key in keys if key in self.meant.pairings}
        return replace(self, games=games, meant=replace(self.meant, pairings=pairings))


async def rejudge_all(job: RejudgeJob, progress: Rejudging) -> None:
    """Rejudge all games in a worker process, and add the findings to ``progress``.

    When cancelled, the process is killed.
    """
    progress.total = len(job.games)
    try:
        async with trio_parallel.open_worker_context(init=partial(lower_priority, NICENESS)) as context:
            for begin in range(0, len(job.games), CHUNK):
                part = job.part(begin)
                progress.take(await context.run_sync(rejudge_part, part, kill_on_cancel=True))
    except (StoreError, trio_parallel.BrokenWorkerError) as error:
        progress.failure = str(error) or "the process that judged the games again died"
    except Exception as error:  # a mistake of ours, which must not end the tournaments that are being played
        progress.failure = f"the server failed ({error!r})"
    finally:
        if progress.done < progress.total and not progress.failure:
            progress.failure = "it was stopped"
        progress.over = True


def rejudge_part(job: RejudgeJob) -> list[tuple[str, list[RecordFinding]]]:
    """Return the games' keys and findings.  For a worker process.  Raises StoreError."""
    files = None if job.directory is None else GameFilesReader(job.directory)
    with Store(job.location, read_only=True) as store:
        return [
            (
                game.key,
                [RecordFinding(game.key, one) for one in verify_game(store, job.meant, game, files)],
            )
            for game in job.games
        ]
