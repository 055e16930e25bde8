"""Runs of a tournament: the games that are due are played, and each is stored as it ends.

`kalarena tournament run`, `duel`, `gauntlet` and the server all call ``open_run``, open an engine, and call
``play_all``.
"""

import math
import os
from collections import deque
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import trio

from referee.errors import RefereeError
from referee.playing import Job
from referee.sandbox.bubblewrap import Sandbox
from tournaments.config.late_entries import with_late_bots
from tournaments.config.tournament import Tournament, withdrawn_players
from tournaments.config.tournament_config import TournamentConfig
from tournaments.engines.base import Engine, EngineError, OnStart, WorkerLostError
from tournaments.files.durable import os_errors_as, sync_filesystem
from tournaments.results.game_archives import ArchivePlan, GameFilesReader, archive_name, write_games
from tournaments.results.game_files import (
    ARCHIVES,
    GAMES,
    GameFilesError,
    are_files_trusted,
    has_game_files,
    set_files_trusted,
    write_game_files,
)
from tournaments.results.game_summary import GameSummary, PackedGame
from tournaments.results.rulings import Rulings, result_of
from tournaments.results.store import Store, StoreError
from tournaments.running.result_writer import open_result_writer
from tournaments.schedule.pairing import Pairing
from tournaments.schedule.plan import pairs_rounds

MAX_ATTEMPTS = 3
"""Maximum attempts at a game that fails because of the host."""
MAX_LOSSES = 20
"""Maximum losses of the machine that plays a game, which are no failures of the game: machines come and go.

A game that has outlived none of so many may be what ends them.
"""

ASKING_SHARE = 10
"""Minimum ratio of the time between two queries of the schedule to the time of a query.

A schedule of 320,000 games takes a fifth of a second to list the due games: that is a tenth of the time, at
most, and no query is made while it matters little.
"""

MOST_BESIDE = 1000
"""Maximum games that wait for a slot, or for the store, beside those that are played."""

OPEN = Sandbox()
"""No sandbox."""


class Observer:
    """Callbacks for the events of each game, in the event loop; all return at once, and do nothing here."""

    def started(self, pairing: Pairing, key: str, host: str = "") -> None:
        """Called when a game begins, as ``key``; called again when it is retried.

        ``host`` is the cluster host that plays it; empty if this machine does.
        """

    def ended(self, pairing: Pairing, game: GameSummary, host: str = "") -> None:
        """Called when a game has its result, and is stored; for ``host`` see ``PackedGame``."""

    def unplayed(self, pairing: Pairing, why: str) -> None:
        """Called when the host could not play a game, in all its attempts."""


@dataclass
class RunReport:
    """Report of a run."""

    total: int
    """Estimated number of games of the whole tournament, exact once nothing is due."""
    before: int
    """Number of games that had a result before the run."""
    played: int = 0
    unplayed: dict[str, str] = field(default_factory=dict)
    """Key of a game -> reason why the host could not play it.  It is lost by neither bot."""
    warnings: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Key of a game that has a result -> what failed after its verdict."""

    @property
    def missing(self) -> int:
        """Number of games without a result."""
        return self.total - self.before - self.played


class Run:
    """Run of a tournament, with its state as it goes on.

    Raises StoreError if the store holds games that this tournament does not have.
    """

    def __init__(self, tournament: Tournament, store: Store, *, is_new: bool = False) -> None:
        self.tournament = tournament
        self.store = store
        self.is_new = is_new
        """True if the store held no tournament."""
        self.rulings = Rulings(tournament.names, store.games(), store.journal())
        self.schedule = tournament.plan.schedule(self.rulings.bots, self.rulings.entrants)
        self.history = self.rulings.history
        known = {pairing.key for pairing in self.schedule.pairings(self.history)}
        strange = [key for key in self.rulings.results if key not in known]
        if strange:
            length = f"rounds = {tournament.rounds} (--games of a duel or gauntlet)"
            if tournament.format["kind"] == "sprt":
                length = f"max_games = {tournament.format['max_games']} (--max-games of a duel)"
            raise StoreError(
                f"{store.location} holds {len(strange)} games that this tournament does not have, such as "
                f"{strange[0]}: {length} can be raised, not lowered"
            )
        self.report = RunReport(total=self.schedule.total(self.history), before=len(self.rulings.results))

    def claim(self) -> bool:
        """Record the tournament in the store.  Blocks.  Raises StoreError.

        Returns True if the configuration changed, so that tables which were written before are outdated.
        """
        config = TournamentConfig.of(self.tournament)
        return self.store.claim(config.name, config.config(), self.tournament.identity())

    def due(self) -> Sequence[Pairing]:
        """Return the games that can be started now."""
        return self.schedule.due(self.history)

    async def new_games(self, started: Collection[str], *, is_idle: bool) -> Sequence[Pairing]:
        """Return the games that can be started now, and update the report's total.

        The total is updated only if there is such a game or no game is under way: for 100,000 games that
        takes 10 ms, as long as a game.  A round of a Swiss is paired in a thread, since that takes seconds
        for hundreds of bots; games that end meanwhile are not taken into account.

        Args:
            started: Keys of games that are not returned.
            is_idle: True if no game is under way.

        """
        # A copy, since games are added to the results while the thread reads them.
        in_thread = pairs_rounds(self.tournament.plan.kind)
        history = replace(self.history, results=dict(self.history.results)) if in_thread else self.history

        def query() -> tuple[Sequence[Pairing], int | None]:
            found = [pairing for pairing in self.schedule.due(history) if pairing.key not in started]
            # Only then can there be new games.
            return found, self.schedule.total(history) if found or is_idle else None

        if in_thread:
            found, total = await trio.to_thread.run_sync(query, abandon_on_cancel=True)
        else:
            found, total = query()
        if total is not None:
            self.report.total = total
        return found

    def job(self, pairing: Pairing, sandbox: Sandbox) -> Job:
        """Return the job of a pairing for the engine."""
        tournament = self.tournament
        return Job(
            self.rulings.job_key(pairing.key),
            tournament.game,
            (tournament.players[pairing.first], tournament.players[pairing.second]),
            tournament.control,
            tournament.limits,
            tournament.opening(pairing.opening),
            sandbox,
            pairing.pair,
            keep_files=tournament.keep_files,
        )

    def ended(self, pairing: Pairing, game: GameSummary) -> None:
        """Record the result of a stored game."""
        self.rulings.results[pairing.key] = result_of(game)
        self.report.played += 1


def open_run(tournament: Tournament, store: Store, base: Path | None = None, *, claim: bool = True) -> Run:
    """Return a run of a tournament in a store, where it is resumed if the store holds its games.

    Args:
        base: Folder of the tournament's file, for the paths of bots that joined later; None if none can join.
        claim: True if the tournament is recorded in the store now.

    Blocks.  Raises StoreError if the store holds another tournament; ConfigError, RulingError.
    """
    identity = store.identity()
    config = None if identity is None else store.config()
    tournament = tournament.with_memory_of(identity).with_ranking_of(config).with_openings_of(config)
    journal = store.journal()
    if base is not None:
        tournament = tournament.without_withdrawn(withdrawn_players(identity, journal))
    store.check_identity(tournament.identity())
    if base is not None:
        tournament = with_late_bots(tournament, journal, base)
    run = Run(tournament, store, is_new=identity is None)
    if claim:
        run.claim()
    return run


class StopRequest:
    """Request to stop a run: games under way are finished and stored, and no other games begin."""

    def __init__(self) -> None:
        self.is_set = False
        self._waiting: set[trio.CancelScope] = set()

    def set(self) -> None:
        """Begin no more games.  Called in the event loop."""
        self.is_set = True
        for scope in self._waiting:
            scope.cancel()

    @contextmanager
    def cancels(self, scope: trio.CancelScope) -> Iterator[None]:
        """Cancel the scope in this block when the request is made: nothing is lost by that."""
        if self.is_set:
            scope.cancel()
        self._waiting.add(scope)
        try:
            yield
        finally:
            self._waiting.discard(scope)

    async def play(self, engine: Engine, job: Job, on_start: OnStart) -> PackedGame | None:
        """Play one game, see ``Engine.play``; return None if the request was made before it began."""
        with trio.CancelScope() as scope, self.cancels(scope):

            def started(host: str) -> None:
                self._waiting.discard(scope)
                on_start(host)

            return await engine.play(job, started)
        return None


async def play_all(
    run: Run,
    engine: Engine,
    directory: Path,
    observer: Observer | None = None,
    sandbox: Sandbox = OPEN,
    stop: StopRequest | None = None,
) -> None:
    """Play all games without a result, until ``stop`` is set.

    Raises StoreError if a result cannot be stored, GameFilesError if a game's files cannot be written.

    The run's report is updated continuously.  When cancelled, games in progress are cancelled; stored ones
    stay, and the next run resumes there.

    At the end all files of games are on the disk: a tournament that is over has no next run, which would
    write files anew that a power cut has damaged.
    """
    request = stop or StopRequest()
    reported = observer or Observer()
    archives = None
    if run.tournament.game_files == ARCHIVES:
        archives = await trio.to_thread.run_sync(_restore_archives, run, directory)
    else:
        await trio.to_thread.run_sync(_restore_files, run, directory)
    started: set[str] = set()
    waiting: deque[Pairing] = deque()
    under_way = 0
    progress = trio.Event()

    changed = True
    """True if a game has ended since the schedule was last queried."""

    async def play_one(pairing: Pairing) -> None:
        nonlocal progress, under_way, changed
        game = await _play(run, engine, pairing, sandbox, reported, request)
        if game is not None:
            await writer.write(pairing, game)
        under_way -= 1
        changed = True
        progress.set()
        progress = trio.Event()

    def on_stored(pairing: Pairing, game: PackedGame) -> None:
        run.ended(pairing, game.summary)
        if game.warnings:
            run.report.warnings[game.summary.key] = game.warnings
        reported.ended(pairing, game.summary, game.host)

    async with (
        open_result_writer(run.store, directory, on_stored, archives) as writer,
        trio.open_nursery() as nursery,
    ):
        over = False
        ask_at = -math.inf
        while not over:
            if request.is_set:
                waiting.clear()
            # A schedule may be long: it is queried when all its due games were started, and not after each
            # game if a query takes long.
            elif not waiting and (not under_way or (changed and trio.current_time() >= ask_at)):
                asked_at = trio.current_time()
                changed = False
                found = await run.new_games(started, is_idle=not under_way)
                if not request.is_set:
                    waiting.extend(found)
                ask_at = trio.current_time() + ASKING_SHARE * (trio.current_time() - asked_at)
            # More than the engine's slots, so that a worker never waits for the store.
            while waiting and under_way < engine.concurrency + min(engine.concurrency, MOST_BESIDE):
                pairing = waiting.popleft()
                started.add(pairing.key)
                under_way += 1
                nursery.start_soon(play_one, pairing)
            over = not under_way and (not changed or request.is_set)
            if under_way:
                may_ask = changed and not waiting and not request.is_set
                with trio.move_on_at(ask_at if may_ask else math.inf):
                    await progress.wait()
    if archives is not None:
        await trio.to_thread.run_sync(_write_archives, run, directory, list(archives.due(at_end=True)))
    await trio.to_thread.run_sync(_sync_files, directory)


def _restore_files(run: Run, directory: Path) -> None:
    """Write the missing files of stored games.  In a thread; can be cancelled between two games.

    A kill between a game's transaction and its files must not lose them for good.  A game's folder exists
    with all its files or not at all, so the list of folders shows what is missing.  Only a crash of the
    machine can leave folders with damaged files: after it was started again, all files are compared.  So are
    they after a run that began with folders of other games, see ``_set_trust``.
    """
    try:
        there = set(os.listdir(directory / GAMES))  # noqa: PTH208 - the names alone, of 100,000 at times
        are_whole = are_files_trusted(directory)
    except FileNotFoundError:
        there, are_whole = set(), True
    except OSError as error:
        raise GameFilesError(f"{directory / GAMES} cannot be read: {error.strerror}") from error
    for game in run.rulings.games:
        if game.key in there and are_whole:
            continue
        trio.from_thread.check_cancelled()
        record = run.store.record(game.key)
        with os_errors_as(GameFilesError, f"{directory / GAMES / game.key} cannot be read"):
            is_whole = game.key in there and has_game_files(directory, record)
        if not is_whole:
            write_game_files(directory, record)
    _set_trust(run, directory, GameFilesReader(directory))


def _restore_archives(run: Run, directory: Path) -> ArchivePlan:
    """Write the missing and the different archives of stored games, and return the plan of further ones.

    In a thread; can be cancelled between two archives.
    """
    plan = ArchivePlan(run.store.in_order())
    reader = GameFilesReader(directory)
    with os_errors_as(GameFilesError, f"{directory / GAMES} cannot be read"):
        are_whole = are_files_trusted(directory)
        there = {path.name: list(keys) for path, keys in reader.archives.items()}
    wanted = [
        (number, keys)
        for number, keys in plan.due(at_end=True)
        if not are_whole or there.get(archive_name(number)) != keys
    ]
    _write_archives(run, directory, wanted)
    _set_trust(run, directory, reader)
    return plan


def _set_trust(run: Run, directory: Path, files: GameFilesReader) -> None:
    """Store that the files of games need no comparison until the next start of the machine.

    If there are files of games that are not stored, as of a tournament that was begun anew, the next run
    compares all: this one may store such a game, and be killed before it replaces its files.
    """
    with os_errors_as(GameFilesError, f"{directory / GAMES} cannot be read"):
        has_others = not files.keys() <= {game.key for game in run.rulings.games}
    with os_errors_as(GameFilesError, f"{directory / GAMES} cannot be written to"):
        set_files_trusted(directory, trusted=not has_others)


def _write_archives(run: Run, directory: Path, archives: Sequence[tuple[int, Sequence[str]]]) -> None:
    """Write archives, given their numbers and keys.  In a thread."""
    for number, keys in archives:
        trio.from_thread.check_cancelled()
        write_games(directory, number, list(run.store.records(keys).values()))


def _sync_files(directory: Path) -> None:
    with os_errors_as(GameFilesError, f"{directory / GAMES} could not be written to the disk"):
        sync_filesystem(directory)


async def _play(
    run: Run, engine: Engine, pairing: Pairing, sandbox: Sandbox, observer: Observer, stop: StopRequest
) -> PackedGame | None:
    """Play a pairing, with retries after failures of the host.

    Returns None if all attempts failed, or ``stop`` was set before the game began.
    """
    job = run.job(pairing, sandbox)
    attempts, losses, failure = 0, 0, ""
    while attempts < MAX_ATTEMPTS and losses < MAX_LOSSES:
        try:
            game = await stop.play(engine, job, partial(observer.started, pairing, job.key))
            return None if game is None else game.in_round(pairing.round, pairing.pair)
        except WorkerLostError as error:
            losses += 1
            failure = str(error)
        except (RefereeError, EngineError) as error:
            attempts += 1
            failure = str(error)
        await trio.lowlevel.checkpoint()  # a cancelled tournament retries nothing
    run.report.unplayed[job.key] = failure
    observer.unplayed(pairing, failure)
    return None


def first_error(error: BaseException) -> BaseException:
    """Return the first exception within the exception groups of nurseries."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
