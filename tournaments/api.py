"""Tournaments from Python: bots by their texts, a run of a tournament, and its results as rows.

With ``Tournament`` of ``config`` this is the public interface, see docs/api/tournaments.md.
"""

import multiprocessing
from functools import partial
from pathlib import Path
from typing import Any

from referee.games.catalog import DEFAULT_GAME
from referee.judge.results import GameRecord, Player
from referee.notebooks.event_loop import run_blocking
from referee.sandbox.bubblewrap import Sandbox
from referee.sandbox.detection import REQUIRED, find_sandbox
from tournaments.bots.resolve import resolve_bot
from tournaments.config.tournament import Tournament
from tournaments.engines.base import EngineError
from tournaments.engines.local import open_local_engine
from tournaments.reporting.exports import games_rows, moves_rows
from tournaments.reporting.site.pages import standings_fragment
from tournaments.reporting.tables import Row
from tournaments.reporting.tournament_directory import TournamentDirectory, find_store
from tournaments.reporting.tournament_results import TournamentResults
from tournaments.results.store import Store, StoreError
from tournaments.running.rehearsal import RehearsalError, problem_table, rehearse, unrehearsed
from tournaments.running.runner import Run, first_error, open_run, play_all


def bot(text: str, name: str | None = None, *, game: str = DEFAULT_GAME, folder: str | Path = ".") -> Player:
    """Return the player that a text names, for ``referee.play``.

    Args:
        text: A sample bot's name, a path to a bot's directory or file, or a command line.
        name: The player's name; by default it follows from the text.
        game: The spec text of the game that it will play.  The bot of a directory is built if needed.
        folder: Folder for relative paths.

    Raises:
        BotError: The text names no bot, or the bot does not play this game.
    """
    return resolve_bot(text, Path(folder), name, game)


class Results:
    """Results of a tournament as they were when they were loaded.

    ``print`` shows the standings as a text, a notebook shows them as a table.  Rows are mappings of plain
    values, so that ``pandas.DataFrame(results.games())`` needs no conversion.
    """

    def __init__(self, directory: Path, results: TournamentResults) -> None:
        self.directory = directory
        """Directory of the results."""
        self._results = results

    @classmethod
    def load(cls, out: str | Path) -> "Results":
        """Read the results in a directory, also while the tournament is running.

        Raises:
            FileNotFoundError: The directory has no results.
            StoreError: The results cannot be read.
        """
        directory = Path(out)
        with _open(directory) as store:
            return cls(directory, TournamentResults.load(store))

    @property
    def table(self) -> list[dict[str, Any]]:
        """Standings, a row for each bot.

        The columns are those of ``standings`` in `kalarena tournament table --format json`, with the criteria
        of the ranking as columns, and without the records against single opponents.
        """
        rows = self._results.to_json()["standings"]
        return [
            {key: value for key, value in row.items() if not isinstance(value, dict)}
            | {key.replace("-", "_"): value for key, value in row["criteria"].items() if key not in row}
            for row in rows
        ]

    def games(self) -> list[Row]:
        """Return a row for each game, with the columns of docs/exports.md.

        Games that were set aside have ``counts`` False.  Raises StoreError.
        """
        with _open(self.directory) as store:
            return list(games_rows(self._results.rulings, store.record))

    def moves(self) -> list[Row]:
        """Return a row for each move of each game, with the columns of docs/exports.md.

        Raises StoreError.
        """
        with _open(self.directory) as store:
            return list(moves_rows(self._results.rulings, store.record))

    def record(self, key: str) -> GameRecord:
        """Return the whole record of a game, which a notebook shows as a replay.  Raises StoreError."""
        with _open(self.directory) as store:
            return store.record(key)

    def __str__(self) -> str:
        return self._results.render("text")

    def __repr__(self) -> str:
        results = self._results
        return f"<Results of {results.name}: {results.done} of {results.total} games in {self.directory}>"

    def _repr_html_(self) -> str:
        """Return the standings for a notebook."""
        results = self._results
        return standings_fragment(
            results.name, results.about, results.table, results.ranking, results.remarks
        )


def _open(directory: Path) -> Store:
    """Open the results in a directory for reading.  Raises FileNotFoundError, StoreError."""
    path = find_store(directory, missing=FileNotFoundError, unreadable=StoreError)
    return Store(path, read_only=True)


def run(tournament: Tournament, out: str | Path, *, concurrency: int | None = None) -> Results:
    """Play the games of a tournament that have no result yet, on this machine, and return all results.

    Each game is stored as it ends.  After an interrupt (Ctrl-C) or a crash, the same call plays the games
    that are missing.  The files in the directory are those of `kalarena tournament run`.

    A script must call this function below ``if __name__ == "__main__":``, since worker processes import it.

    Args:
        tournament: The tournament.
        out: Directory of the results, which is created if needed.
        concurrency: Number of games at a time; None is that of the tournament, by default one per core.

    Raises:
        SandboxError: The bots must be confined, and this host cannot do that.
        RehearsalError: A bot that must be confined cannot run confined; no further game was played.
        DirectoryError: The directory cannot be used, has files of something else, or another run is at work
            there.
        StoreError: The directory holds another tournament, or a result cannot be stored.
        ConfigError: A bot that was added to the stored tournament cannot be used.
        EngineError: Workers cannot start, or the host could not play some games; the others are stored.
    """
    if getattr(multiprocessing.current_process(), "_inheriting", False):  # a worker that imports the script
        raise RuntimeError(
            'call tournaments.run below `if __name__ == "__main__":`: workers import this script'
        )
    sandbox = find_sandbox(tournament.sandbox_mode)
    if concurrency is not None:
        tournament = tournament.with_memory_for(concurrency)
    directory = TournamentDirectory(Path(out))
    directory.refuse_other_files()
    with directory.locked(), Store(directory.store_path) as store:
        going_on = open_run(tournament, store, Path.cwd(), claim=False)
        try:
            run_blocking(partial(_play, going_on, directory, sandbox, concurrency))
        except BaseExceptionGroup as group:
            raise first_error(group) from group
        results = TournamentResults.load(store)
        directory.write_reports(results)
    if unplayed := going_on.report.unplayed:
        key, why = next(iter(unplayed.items()))
        raise EngineError(
            f"{len(unplayed)} of {going_on.report.total} games have no result; the same call plays them; "
            f"{key}: {why}"
        )
    return Results(directory.path, results)


async def _play(run: Run, directory: TournamentDirectory, sandbox: Sandbox, concurrency: int | None) -> None:
    """Rehearse the bots that must be confined, and play all games."""
    tournament = run.tournament
    async with open_local_engine(
        directory.path, concurrency or tournament.concurrency, own_core=tournament.own_core
    ) as engine:
        await engine.check()
        bots = unrehearsed(run) if tournament.sandbox_mode == REQUIRED else []
        if problems := await rehearse(bots, tournament, engine, sandbox):
            raise RehearsalError(problem_table(problems, len(bots), sandbox, resumed=not run.is_new))
        if run.claim():  # see ``tournaments.cli.tournament.run``
            directory.write_reports(TournamentResults.load(run.store))
        await play_all(run, engine, directory.path, sandbox=sandbox)
