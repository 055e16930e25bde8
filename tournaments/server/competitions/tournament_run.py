"""Run of a tournament on the server, until nothing is left to play or it is stopped."""

import errno
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import trio

from referee.judge.results import Player
from referee.sandbox.bubblewrap import Sandbox
from referee.sandbox.detection import SandboxError
from tournaments.config.tournament import Tournament
from tournaments.course.model import Competition, CompetitionState, Competitor
from tournaments.engines.base import Engine, LimitedEngine
from tournaments.engines.remote.extra import ClusterError, SchedulerLostError
from tournaments.engines.remote.waiting import Demands, sandbox_on_workers
from tournaments.reporting.tournament_directory import DirectoryError, TournamentDirectory
from tournaments.results.game_files import GameFilesError
from tournaments.results.journal import Entry
from tournaments.results.rulings import RulingError
from tournaments.results.store import StoreError
from tournaments.running.runner import Run, StopRequest, first_error, open_run, play_all
from tournaments.server.bot_provider import CannotPlayError
from tournaments.server.cluster import MOST_FOLLOWED
from tournaments.server.competitions.entrants import tournament_of
from tournaments.server.competitions.late_entrants import late_entrants, with_late_entrants
from tournaments.server.competitions.tournament_spec import Entered, FixedSpec, TournamentSpecError
from tournaments.server.failures import wait_s
from tournaments.server.live_hub import WatchedEngine
from tournaments.server.metrics import TOURNAMENT
from tournaments.server.service_context import ServiceContext, Stores
from tournaments.server.slots import Kind

TROUBLE = (
    CannotPlayError,
    ClusterError,
    DirectoryError,
    GameFilesError,
    RulingError,
    SandboxError,
    StoreError,
    TournamentSpecError,
)
"""Expected errors that stop a tournament; their messages are sentences for its lecturer."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """State of a tournament when its run has ended."""

    state: CompetitionState
    message: str = ""


class TournamentRun:
    """A tournament that is played from the call of ``play`` until nothing is left, or it is stopped."""

    def __init__(self, context: ServiceContext, stores: Stores, competition: Competition) -> None:
        self.competition = competition
        self.over = trio.Event()
        """Set by the caller of ``play``, once the outcome has been processed."""
        self.outcome: Outcome | None = None
        """Outcome of ``play``.

        It is None until ``play`` ends, and if ``play`` was cancelled from outside, or the tournament's stored
        state is not RUNNING.
        """
        self._context = context
        self._stores = stores
        self._run: Run | None = None
        """Run of the present try; None before it begins."""
        self._retry_reason = ""
        self._stop_request = StopRequest()
        self._scope = trio.CancelScope()

    @property
    def stopped(self) -> bool:
        """True if ``stop`` was called; then the caller of ``stop`` decides the tournament's next state."""
        return self._stop_request.is_set

    @property
    def retry_reason(self) -> str:
        """Failure after which the tournament is tried again; empty once a game was stored since."""
        return "" if self._has_played else self._retry_reason

    @property
    def _has_played(self) -> bool:
        """True if a game was stored in the present try."""
        return self._run is not None and self._run.report.played > 0

    async def stop(self, limit_s: float) -> None:
        """Stop the tournament: games that are being played end, no others begin; wait until it is over.

        Games that take longer than ``limit_s`` are cancelled; they are replayed when the tournament is
        resumed.
        """
        self._stop_request.set()
        with trio.move_on_after(limit_s):
            await self.over.wait()
        self._scope.cancel()
        await self.over.wait()

    async def play(self) -> None:
        """Play the tournament and set ``outcome``.  Raises nothing."""
        try:
            self.outcome = await self._played()
        except Exception as error:
            trouble = first_error(error)
            if isinstance(trouble, TROUBLE):
                message = str(trouble)
            else:
                self._context.failures.note(f"tournament {self.competition.title}", error)
                message = f"the server failed ({trouble!r}): go on, and it is tried again"
            self.outcome = Outcome(CompetitionState.FAILED, message)

    async def _played(self) -> Outcome | None:
        """Play the tournament; after each failure that may pass, wait, and play the missing games.

        Returns None, and changes nothing, if another state than RUNNING is stored.
        """
        directory: TournamentDirectory | None = None
        failures = 0
        with self._scope, ExitStack() as lock:
            while True:
                try:
                    if not await self._is_to_be_played():
                        return None
                    if directory is None:
                        directory = TournamentDirectory(folder_of(self._context, self.competition.slug))
                        lock.enter_context(directory.locked())  # excludes rulings by the command line
                    return await self._play_missing(directory.path)
                except* (GameFilesError, SchedulerLostError, StoreError) as error:
                    if not is_transient(error):
                        raise
                    failures = 1 if self._has_played else failures + 1
                    self._run, self._retry_reason = None, str(first_error(error))
                    if not self._stop_request.is_set:
                        self._context.failures.note(
                            f"tournament {self.competition.title}", self._retry_reason
                        )
                with trio.CancelScope() as scope, self._stop_request.cancels(scope):
                    await trio.sleep(wait_s(failures, self._context.config.retry_s))
                if self._stop_request.is_set:
                    break
        return Outcome(CompetitionState.PAUSED)

    async def _is_to_be_played(self) -> bool:
        """Return whether the stored state is RUNNING.

        Another state may be stored: a run also begins if it is unknown whether a change of state was stored.
        """
        get = self._context.course.competitions.get
        stored = await trio.to_thread.run_sync(get, self.competition.id)
        return stored is not None and stored.state is CompetitionState.RUNNING

    async def _play_missing(self, directory: Path) -> Outcome:
        """Play the games that are missing now."""
        in_thread = trio.to_thread.run_sync
        fixed = FixedSpec.read(self.competition.spec)
        late = late_entrants(await in_thread(self._journal))
        field = [*fixed.field, *late]
        players = await players_of(self._context, field, fixed.chosen.game, self.competition.id)
        tournament = await in_thread(tournament_of, fixed, players)
        tournament = with_late_entrants(tournament, late, players)
        sandbox = await self._sandbox(fixed.sandbox)
        cluster = self._context.cluster
        demands = None if cluster is None else await cluster.demands(tournament, sandbox)
        with ExitStack() as stack:
            using = self._stores.using(self.competition.slug)
            store = await in_thread(stack.enter_context, using)
            run = self._run = await in_thread(open_run, tournament, store)
            async with self._engine(tournament, demands) as engine:
                await play_all(run, engine, directory, sandbox=sandbox, stop=self._stop_request)
        return await in_thread(_outcome, run)  # it may pair a round

    def _journal(self) -> list[Entry]:
        with self._stores.using(self.competition.slug) as store:
            return store.journal()

    async def _sandbox(self, mode: str) -> Sandbox:
        """Return the sandbox for bots on the machines where they play.  Raises SandboxError."""
        here = await self._context.bots.sandbox(mode)
        return here if self._context.cluster is None else sandbox_on_workers(here)

    @asynccontextmanager
    async def _engine(self, tournament: Tournament, demands: Demands | None) -> AsyncIterator[Engine]:
        """Open the engine for the games; ``demands`` is None except on a cluster.  Raises ClusterError."""
        context, slug = self._context, self.competition.slug
        counted = context.count_games(TOURNAMENT)
        if context.cluster is not None and demands is not None:
            async with context.cluster.engine(slug, tournament, demands, self._stop_request) as engine:
                yield WatchedEngine(engine, context.hub, slug, MOST_FOLLOWED, counted)
            return
        slots = context.slots
        limited = LimitedEngine(context.engine, slots.total, partial(slots.taken, Kind.TOURNAMENT))
        watched = WatchedEngine(limited, context.hub, slug, on_ended=counted)
        if tournament.concurrency is None:
            yield watched
            return
        games = trio.CapacityLimiter(tournament.concurrency)
        yield LimitedEngine(watched, tournament.concurrency, lambda: games)


def folder_of(context: ServiceContext, slug: str) -> Path:
    """Return the directory of a competition's files."""
    return context.data / "competitions" / slug


async def players_of(
    context: ServiceContext, field: list[Entered], game: str, competition_id: int = 0
) -> dict[str, Player]:
    """Return the players by name.  Raises StoreError, TournamentSpecError with all bots that cannot play."""
    players: dict[str, Player] = {}
    problems: list[str] = []
    for entered in field:
        competitor = Competitor(competition_id, entered.name, entered.version, entered.reference)
        try:
            players[entered.name] = await context.bots.player(competitor, game)
        except CannotPlayError as error:
            problems.append(str(error))
    if problems:
        raise TournamentSpecError(problems)
    return players


def is_transient(error: BaseException) -> bool:
    """Return whether a tournament may go on by itself after an error; of a group, after all of them.

    That is so after the loss of a cluster's scheduler, and after failures of the database and of a full disk.
    """
    if isinstance(error, BaseExceptionGroup):
        return all(map(is_transient, error.exceptions))
    if isinstance(error, StoreError):
        return error.is_ours and not error.is_damaged
    if isinstance(error, GameFilesError):
        cause = error.__cause__
        return isinstance(cause, OSError) and cause.errno in (errno.ENOSPC, errno.EDQUOT)
    return isinstance(error, SchedulerLostError)


def _outcome(run: Run) -> Outcome:
    """Return the tournament's outcome after ``play_all``."""
    unplayed = run.report.unplayed
    if unplayed:
        games = "1 game" if len(unplayed) == 1 else f"{len(unplayed)} games"
        why = next(iter(unplayed.values()))
        return Outcome(
            CompetitionState.PAUSED,
            f"{games} could not be played, for a reason that is the server's, and nobody lost by it: {why}. "
            "Go on, and they are tried again.",
        )
    return Outcome(CompetitionState.PAUSED if run.due() else CompetitionState.FINISHED)
