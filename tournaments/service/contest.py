"""One tournament while the server plays it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import trio

from referee.probe import SandboxError
from referee.results import Player
from referee.sandbox import Sandbox
from tournaments.cluster.errors import ClusterError, SchedulerLostError
from tournaments.cluster.waiting import Demands, sandbox_elsewhere
from tournaments.config import Tournament
from tournaments.course.model import Competition, CompetitionState, Competitor
from tournaments.directory import DirectoryError, TournamentDirectory
from tournaments.engines.base import Engine
from tournaments.gamefiles import GameFilesError
from tournaments.rulings import RulingError
from tournaments.runner import Brake, Run, play_all
from tournaments.service.cluster import MOST_FOLLOWED
from tournaments.service.failures import wait_s
from tournaments.service.line_up import tournament_of
from tournaments.service.narrow_engine import NarrowEngine
from tournaments.service.parts import Parts
from tournaments.service.places import Kind, PlacedEngine
from tournaments.service.players import CannotPlayError
from tournaments.service.stores import Stores
from tournaments.service.tournament_spec import Entered, FixedSpec, TournamentSpecError
from tournaments.service.watched_engine import WatchedEngine
from tournaments.store import Store, StoreError
from tournaments.summary import Summary

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
"""Why a tournament cannot go on, in sentences for its lecturer."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """Where a tournament is when it is not played any more."""

    state: CompetitionState
    message: str = ""


class Contest:
    """A tournament that is played from when ``play`` is called until nothing is left, or it is stopped."""

    def __init__(self, parts: Parts, stores: Stores, competition: Competition) -> None:
        self.competition = competition
        self.over = trio.Event()
        """Set by whoever calls ``play``, when all that follows from its outcome is done."""
        self.outcome: Outcome | None = None
        """Where it is after ``play``; None until then, and if it was cancelled from without."""
        self._parts = parts
        self._stores = stores
        self._brake = Brake()
        self._scope = trio.CancelScope()

    @property
    def stopped(self) -> bool:
        """Whether somebody stopped it: then what follows is that one's to say."""
        return self._brake.pulled

    async def stop(self, patience_s: float) -> None:
        """Let the games that are being played end, begin no others, and wait until it is over.

        Games that take longer than ``patience_s`` are given up; they are played anew when it goes on.
        """
        self._brake.pull()
        with trio.move_on_after(patience_s):
            await self.over.wait()
        self._scope.cancel()
        await self.over.wait()

    async def play(self) -> None:
        """Play it, and say where it is then in ``outcome``.  Raises nothing."""
        try:
            self.outcome = await self._played()
        except Exception as error:
            trouble = first_of(error)
            if isinstance(trouble, TROUBLE):
                message = str(trouble)
            else:
                self._parts.failures.note(f"tournament {self.competition.title}", error)
                message = f"the server failed ({trouble!r}): go on, and it is tried again"
            self.outcome = Outcome(CompetitionState.FAILED, message)

    async def _played(self) -> Outcome:
        with self._scope:
            fixed = FixedSpec.read(self.competition.spec)
            players = await players_of(self._parts, fixed.field, fixed.chosen.game, self.competition.id)
            tournament = await trio.to_thread.run_sync(tournament_of, fixed, players)
            sandbox = await self._sandbox(fixed.sandbox)
            store = await trio.to_thread.run_sync(self._stores.get, self.competition.slug)
            directory = TournamentDirectory(folder_of(self._parts, self.competition.slug))
            with directory.locked():  # from rulings of the command line
                return await self._until_over(tournament, store, directory.path, sandbox)
        return Outcome(CompetitionState.PAUSED)

    async def _until_over(
        self, tournament: Tournament, store: Store, directory: Path, sandbox: Sandbox
    ) -> Outcome:
        """Play it; again, with what is missing, whenever the cluster was lost."""
        cluster = self._parts.cluster
        demands = None if cluster is None else await cluster.demands(tournament, sandbox)
        losses = 0
        while True:
            run = await trio.to_thread.run_sync(claimed, tournament, store)
            is_lost = False
            try:
                async with self._engine(tournament, demands) as engine:
                    await play_all(run, engine, directory, sandbox=sandbox, brake=self._brake)
            except* SchedulerLostError as error:  # other errors beside it are raised
                is_lost = True
                if not self._brake.pulled:
                    self._parts.failures.note(f"tournament {self.competition.title}", str(first_of(error)))
            if not is_lost:
                return _outcome(run)
            losses = 1 if run.report.played else losses + 1
            with trio.CancelScope() as scope, self._brake.cancels(scope):
                await trio.sleep(wait_s(losses))
            if self._brake.pulled:
                return Outcome(CompetitionState.PAUSED)

    async def _sandbox(self, mode: str) -> Sandbox:
        """How bots are confined where they play.  Raises SandboxError."""
        here = await self._parts.bots.sandbox(mode)
        return here if self._parts.cluster is None else sandbox_elsewhere(here)

    @asynccontextmanager
    async def _engine(self, tournament: Tournament, demands: Demands | None) -> AsyncIterator[Engine]:
        """Where the games are played; there are demands where that is a cluster.  Raises ClusterError."""
        parts, slug = self._parts, self.competition.slug
        if parts.cluster is not None and demands is not None:
            async with parts.cluster.engine(slug, tournament, demands, self._brake) as engine:
                yield WatchedEngine(engine, parts.hub, slug, MOST_FOLLOWED)
            return
        placed = PlacedEngine(parts.engine, parts.places, Kind.TOURNAMENT)
        watched = WatchedEngine(placed, parts.hub, slug)
        yield watched if tournament.concurrency is None else NarrowEngine(watched, tournament.concurrency)


def first_of(error: BaseException) -> BaseException:
    """The first error of the groups that nurseries put errors into."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def folder_of(parts: Parts, slug: str) -> Path:
    """Where a competition's files are."""
    return parts.data / "competitions" / slug


async def players_of(
    parts: Parts, field: list[Entered], game: str, competition_id: int = 0
) -> dict[str, Player]:
    """The players by their names.  Raises TournamentSpecError with all who cannot play, StoreError."""
    players: dict[str, Player] = {}
    problems: list[str] = []
    for entered in field:
        competitor = Competitor(competition_id, entered.name, entered.version, entered.reference)
        try:
            players[entered.name] = await parts.bots.player(competitor, game)
        except CannotPlayError as error:
            problems.append(str(error))
    if problems:
        raise TournamentSpecError(problems)
    return players


def claimed(tournament: Tournament, store: Store) -> Run:
    """A run in the store, which notes which tournament it is.  Blocks.  Raises StoreError, RulingError."""
    store.check_identity(tournament.identity())
    run = Run(tournament, store)
    summary = Summary.of(tournament)
    store.claim(summary.name, summary.config(), tournament.identity())
    return run


def _outcome(run: Run) -> Outcome:
    """Where the tournament is after ``play_all``."""
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
