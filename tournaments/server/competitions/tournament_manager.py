"""Tournaments of the server: creation, start, pause and rejudging; rulings pause a tournament.

The course's database holds each tournament's specification, and each tournament's store holds its games.  A
tournament in the state RUNNING is resumed whenever ``run`` begins, so that a server that was killed continues
as if nothing had happened.  Each action of a lecturer is in the course's journal.  All changes of a
tournament are made by tasks of ``run``, one at a time for each tournament: a lecturer who closes the page
half-way leaves nothing half done.

**Pausing** lets games that are being played end; games that take longer than PAUSE_LIMIT_S are cancelled, and
are replayed when the tournament is resumed.  **A ruling** on a tournament that is being played pauses it for
a moment, since the due games follow from the journal; there, games that take longer than RULING_LIMIT_S
are cancelled.
"""

from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from typing import Any, TypeVar

import trio

from referee.judge.results import GameRecord, Player
from tournaments.config.tournament_file import LimitsTable
from tournaments.course.audit import Act
from tournaments.course.marked_students import roster_entry
from tournaments.course.model import (
    FINISH,
    Account,
    BotChoice,
    Competition,
    CompetitionKind,
    CompetitionState,
    CourseError,
)
from tournaments.course.settings import frozen_moment
from tournaments.reporting.ruling_requests import PairingRequest, pairing_rulings
from tournaments.reporting.tournament_results import TournamentResults
from tournaments.results.game_files import LOCK_FILE
from tournaments.results.journal import Action
from tournaments.results.store import Store, StoreError
from tournaments.running.runner import open_run
from tournaments.server.cache import ReadCache
from tournaments.server.competitions.entrants import candidates, fix, tournament_of
from tournaments.server.competitions.rejudge_job import RejudgeJob, Rejudging, rejudge_all
from tournaments.server.competitions.tournament_rulings import (
    NotedRulings,
    RulingsFrom,
    TournamentRulings,
    requested_rulings,
)
from tournaments.server.competitions.tournament_run import (
    TROUBLE,
    Outcome,
    TournamentRun,
    folder_of,
    is_transient,
    players_of,
)
from tournaments.server.competitions.tournament_spec import FixedSpec, TournamentSpec, free_slug
from tournaments.server.practice.practice_results import LadderHistory
from tournaments.server.service_context import ServiceContext, Stores
from tournaments.server.summaries import Summaries

PAUSE_LIMIT_S = 60.0
"""Seconds for which a pause waits for games.

Most are over by then, and a lecturer who pauses needs the machine.
"""
RULING_LIMIT_S = 5.0
"""Seconds for which a ruling waits for games.

A lecturer waits for the answer, and all slots are idle meanwhile.
"""

T = TypeVar("T")


class TournamentManager:
    """Manager of the server's tournaments; see above.  For the tasks of one event loop."""

    def __init__(self, context: ServiceContext, pause_limit_s: float = PAUSE_LIMIT_S) -> None:
        self._context = context
        self.pause_limit_s = pause_limit_s
        self._stores = Stores(context.database, context.metrics)
        self._rulings = TournamentRulings(context, self._stores)
        self._read_cache = ReadCache(context.course)
        self._summaries = Summaries(
            self._stores, context.course, context.failures, context.now, self._on_change
        )
        self._runs: dict[int, TournamentRun] = {}
        self.rejudgings: dict[int, Rejudging] = {}
        """The latest rejudging of each competition since the server was started."""
        self._locks: defaultdict[int, trio.Lock] = defaultdict(trio.Lock)
        self._making = trio.Lock()
        self._nursery: trio.Nursery | None = None

    async def run(self) -> None:
        """Play all tournaments in the state RUNNING, until cancelled.  Raises StoreError."""
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._summaries.run)
                nursery.start_soon(self._rulings.run)
                self._nursery = nursery
                known = await trio.to_thread.run_sync(self._context.course.competitions.all)
                tournaments = list(filter(_is_tournament, known))
                await self._rulings.record(tournaments)
                # Those that were played come first: completing another one may build bots.
                for competition in sorted(
                    tournaments, key=lambda one: one.state is not CompetitionState.RUNNING
                ):
                    await self._take_up(competition)
                await trio.sleep_forever()
        finally:
            self._nursery = None
            self._runs.clear()
            self.rejudgings.clear()

    async def _take_up(self, known: Competition) -> None:
        """Resume a tournament, and complete an action that a crash interrupted between two databases."""
        in_thread = trio.to_thread.run_sync
        try:
            async with self._locks[known.id]:
                competition = await self._competition(known.id)  # its state may have changed meanwhile
                state = competition.state
                if competition.id in self._runs:
                    return
                if state is CompetitionState.RUNNING:
                    self._begin(competition)
                elif state in (CompetitionState.DRAFT, CompetitionState.CREATED):
                    if not await in_thread(self._is_claimed, competition):
                        await self._complete(competition)
                elif state is CompetitionState.FINISHED and await in_thread(self._has_due_games, competition):
                    with self._begun_on_failure(competition):
                        await self._go_on(competition)
        except (*TROUBLE, CourseError) as error:
            if known.state is CompetitionState.RUNNING and is_transient(error):
                raise  # nobody would play it: all tournaments are taken up again after a moment
            self._context.failures.note(f"tournament {known.title}", error)

    async def _complete(self, competition: Competition) -> None:
        """Record a tournament in its store if its creation was interrupted, but wait for one under way."""
        fixed = FixedSpec.read(competition.spec)
        players = await players_of(self._context, fixed.field, fixed.chosen.game, competition.id)
        async with self._making:
            if not await trio.to_thread.run_sync(self._is_claimed, competition):
                await trio.to_thread.run_sync(self._claim, competition.slug, fixed, players)

    def _is_claimed(self, competition: Competition) -> bool:
        with self._stores.using(competition.slug) as store:
            return store.identity() is not None

    def _claim(self, slug: str, fixed: FixedSpec, players: dict[str, Player]) -> None:
        """Record a new tournament in its store."""
        with self._stores.using(slug) as store:
            open_run(tournament_of(fixed, players), store)

    def _has_due_games(self, competition: Competition) -> bool:
        """Return whether a finished tournament has due games.

        A ruling before a crash may have made games due.  If the tournament finished while a backup was made,
        the backup may lack its last games.  A restored directory has no lock file before it is played in.
        """
        was_played_here = (folder_of(self._context, competition.slug) / LOCK_FILE).exists()
        with self._stores.using(competition.slug) as store:
            if was_played_here and not store.journal():  # loading thousands of games takes 0.1 s
                return False
            summary = TournamentResults.load(store)
        return bool(summary.schedule.due(summary.history))

    def close(self) -> None:
        """Close all database connections.  Blocks."""
        self._stores.close()

    # Creation, start and pause

    async def create_tournament(
        self, spec: TournamentSpec, by: Account | None, *, draft: bool = False
    ) -> Competition:
        """Create a tournament with fixed bots and settings; it is not started, and a draft not published.

        Raises TournamentSpecError with all problems; CourseError, StoreError.
        """
        context = self._context
        settings = await trio.to_thread.run_sync(context.course.settings.load)
        now = context.now()
        frozen_at = frozen_moment(settings, now)
        chosen = await trio.to_thread.run_sync(
            candidates, spec, context.course.versions, context.course.teams, frozen_at, now
        )
        wanted = [one.entered("") for one in chosen]
        players = await players_of(context, wanted, spec.game)
        limits = LimitsTable(memory_mb=settings.memory_mb, processes=settings.processes)
        fixed = await trio.to_thread.run_sync(fix, spec, chosen, players, limits, settings.sandbox_mode)

        def make() -> Competition:
            courses = context.course.competitions
            names = {one.name for one in context.course.teams.all()}
            names |= {one.name for one in chosen if one.version is not None}
            slug = free_slug(spec.title, {one.slug for one in courses.all()}, names)
            kind = CompetitionKind.TOURNAMENT
            state = CompetitionState.DRAFT if draft else CompetitionState.CREATED
            with self._act("create", slug, by, title=spec.title, state=state) as act:
                author = None if by is None else by.id
                made = courses.add(slug, spec.title, kind, fixed.to_json(), author, context.now(), state)
                for entered in fixed.field:
                    courses.enter(made.id, entered.name, entered.version, entered.reference)
                act.detail["bots"] = [entered.name for entered in fixed.field]
            try:
                self._claim(slug, fixed, players)
            except Exception:
                # If this fails, too, the lecturer can delete the tournament, or the next start completes it.
                with suppress(StoreError, CourseError), self._act("delete", slug, by):
                    courses.set_state(made.id, CompetitionState.DELETED, "", context.now())
                raise
            return made

        async with self._making:
            return await trio.to_thread.run_sync(make)

    async def start(self, competition_id: int, by: Account | None = None) -> None:
        """Start a tournament.  Raises CourseError if it is being played, StoreError."""
        await self._do_to_tournament(competition_id, partial(self._start, "start", by))

    async def resume(self, competition_id: int, by: Account | None = None) -> None:
        """Resume a tournament.  Raises CourseError if it is being played, StoreError."""
        await self._do_to_tournament(competition_id, partial(self._start, "resume", by))

    async def pause(self, competition_id: int, by: Account | None = None) -> None:
        """Pause a tournament; see the module.  Raises CourseError if it is not being played, StoreError."""
        await self._do_to_tournament(competition_id, partial(self._pause, by))

    def retry_reason(self, competition_id: int) -> str:
        """Return the failure after which a tournament that is being played is tried again; empty if none."""
        run = self._runs.get(competition_id)
        return "" if run is None else run.retry_reason

    async def publish(self, competition_id: int, by: Account | None = None) -> None:
        """Show a draft to students.  Raises CourseError if it is no draft, StoreError."""
        await self._do_to_tournament(competition_id, partial(self._publish, by))

    async def cancel(self, competition_id: int, by: Account | None = None) -> None:
        """End a tournament before its last game; what was played stays.  Raises CourseError, StoreError."""
        await self._do_to_tournament(competition_id, partial(self._cancel, by))

    async def delete(self, competition_id: int, by: Account | None = None) -> None:
        """Delete a tournament from all pages; its games stay in the database.

        Raises CourseError if it is being played, StoreError.
        """
        await self._do_to_tournament(competition_id, partial(self._delete, by))

    async def hide(self, competition_id: int, hidden: bool, by: Account | None = None) -> None:
        """Hide a tournament from all but lecturers, or show it again.  Raises CourseError, StoreError."""
        await self._do_to_tournament(competition_id, partial(self._hide, hidden, by))

    async def _publish(self, by: Account | None, competition: Competition) -> None:
        if competition.state is not CompetitionState.DRAFT:
            raise CourseError(f"{competition.title!r} is no draft: it is {competition.state}")
        await self._act_on_state("publish", by, competition, Outcome(CompetitionState.CREATED))

    async def _cancel(self, by: Account | None, competition: Competition) -> None:
        if competition.state is CompetitionState.CANCELLED:
            raise CourseError(f"{competition.title!r} is cancelled already")
        with self._begun_on_failure(competition):
            outcome = await self._stop(competition, RULING_LIMIT_S)
            if outcome is None or outcome.state is not CompetitionState.FINISHED:
                await self._act_on_state("cancel", by, competition, Outcome(CompetitionState.CANCELLED))
                return
            await self._set(competition, outcome)
        raise CourseError(f"{competition.title!r} has finished meanwhile")

    async def _delete(self, by: Account | None, competition: Competition) -> None:
        if competition.state is CompetitionState.RUNNING:
            raise CourseError(f"{competition.title!r} is being played: pause or cancel it first")
        await self._act_on_state("delete", by, competition, Outcome(CompetitionState.DELETED))

    async def _hide(self, hidden: bool, by: Account | None, competition: Competition) -> None:
        def change() -> None:
            with self._act("hide" if hidden else "show", competition.slug, by) as act:
                act.is_recorded = competition.is_hidden is not hidden
                self._context.course.competitions.set_hidden(competition.id, hidden)

        await trio.to_thread.run_sync(change)

    async def _start(self, action: str, by: Account | None, competition: Competition) -> None:
        if competition.state is CompetitionState.RUNNING:
            raise CourseError(f"{competition.title!r} is being played")
        with self._begun_on_failure(competition):
            started = await self._act_on_state(action, by, competition, Outcome(CompetitionState.RUNNING))
        self._begin(started)

    async def _pause(self, by: Account | None, competition: Competition) -> None:
        if competition.state is not CompetitionState.RUNNING:
            raise CourseError(f"{competition.title!r} is not being played: it is {competition.state}")
        with self._begun_on_failure(competition):
            outcome = await self._stop(competition, self.pause_limit_s)
            await self._act_on_state("pause", by, competition, outcome or Outcome(CompetitionState.PAUSED))

    def _act(self, action: str, slug: str, by: Account | None, **detail: Any) -> AbstractContextManager[Act]:
        """Return ``Course.act`` for an action on a tournament, of an account or of the server."""
        now, author = self._context.now(), None if by is None else by.id
        return self._context.course.act(now, author, f"tournament.{action}", slug, **detail)

    async def _act_on_state(
        self, action: str, by: Account | None, competition: Competition, outcome: Outcome
    ) -> Competition:
        def change() -> Competition:
            with self._act(action, competition.slug, by):
                return self._set_state(competition, outcome)

        return await trio.to_thread.run_sync(change)

    # Rulings

    async def rule(
        self,
        competition_id: int,
        action: Action,
        subject: str,
        why: str,
        annul: bool | None = None,
        by: Account | None = None,
    ) -> list[str]:
        """Add a ruling on a game or a bot, whether the tournament is being played or not.

        The ruling has the login of the account that made it, ``by``.  ``annul`` applies to a bot that
        withdraws, see ``ruling_requests.withdrawal``.  Returns sentences on the new journal entries and on
        their unexpected consequences.  A finished tournament is resumed if games become due.  Raises
        RulingError for an invalid ruling; CourseError, StoreError.
        """
        request = partial(requested_rulings, action=action, subject=subject, annul=annul)
        return await self._do_to_tournament(competition_id, partial(self._rule, request, why, by))

    async def pair(
        self, competition_id: int, request: PairingRequest, why: str, by: Account | None = None
    ) -> list[str]:
        """Fix or forbid pairings of a coming round, or take such rulings back; otherwise as ``rule``."""
        rulings = partial(pairing_rulings, request=request)
        return await self._do_to_tournament(competition_id, partial(self._rule, rulings, why, by))

    async def add_bot(
        self,
        competition_id: int,
        choice: BotChoice,
        why: str,
        replaces: str | None = None,
        by: Account | None = None,
    ) -> list[str]:
        """Let a version or a reference player join, in the place of ``replaces`` if it is not None.

        Raises TournamentSpecError for a bot that cannot play; otherwise as ``rule``.
        """
        return await self._do_to_tournament(competition_id, partial(self._add_bot, choice, why, replaces, by))

    async def _add_bot(
        self, choice: BotChoice, why: str, replaces: str | None, by: Account | None, competition: Competition
    ) -> list[str]:
        if competition.state is CompetitionState.DELETED:
            raise CourseError(f"{competition.title!r} is deleted")
        request = await self._rulings.late_bot(competition, choice, replaces)
        return await self._rule(request, why, by, competition)

    async def _rule(
        self, request: RulingsFrom, why: str, by: Account | None, competition: Competition
    ) -> list[str]:
        await self._rulings.check(competition, request, why, by)  # an invalid one pauses nothing
        was_played = competition.id in self._runs
        failure: Exception | None = None
        noted = NotedRulings()
        with self._begun_on_failure(competition):
            await self._stop(competition, RULING_LIMIT_S)
            try:
                noted = await self._rulings.note(competition, request, why, by)
            except Exception as error:
                failure = error
            now = await self._competition(competition.id)
            if was_played or (now.state is CompetitionState.FINISHED and noted.has_due_games):
                await self._go_on(now)
        if failure is not None:
            raise failure
        return noted.sentences

    # Results

    async def summary(self, competition_id: int, *, wait: bool = False) -> TournamentResults:
        """Return a summary, see ``Summaries.get``.

        Raises CourseError for an unknown competition, StoreError.
        """
        return await self._summaries.get(await self._cached_competition(competition_id), wait=wait)

    async def history(self, competition_id: int) -> LadderHistory:
        """Return the results of all bots that ever played on a practice ladder.

        Raises CourseError for an unknown competition, StoreError.
        """
        return await self._summaries.history(await self._cached_competition(competition_id))

    async def without_table(self, competition_id: int) -> TournamentResults:
        """Return the results of a tournament without its table, see ``Summaries.without_table``.

        Raises CourseError for an unknown competition, StoreError.
        """
        return await self._summaries.without_table(await self._cached_competition(competition_id))

    async def record(self, competition_id: int, key: str) -> GameRecord:
        """Return a game's record.

        Raises CourseError for an unknown competition, StoreError for an unknown game.
        """
        return await self.read(competition_id, lambda store: store.record(key))

    async def read(self, competition_id: int, work: Callable[[Store], T]) -> T:
        """Return what ``work`` returns for the competition's store, in a thread.

        Raises CourseError for an unknown competition, and the exceptions of ``work``.
        """
        competition = await self._cached_competition(competition_id)

        def read() -> T:
            with self._stores.using(competition.slug) as store:
                return work(store)

        return await trio.to_thread.run_sync(read)

    async def rejudge(self, competition_id: int, by: Account | None = None) -> Rejudging:
        """Begin to rejudge all games, unless that is in progress.  Raises CourseError, StoreError."""
        return await self._do(competition_id, partial(self._rejudge, by))

    async def _rejudge(self, by: Account | None, competition: Competition) -> Rejudging:
        before = self.rejudgings.get(competition.id)
        if before is not None and not before.over:
            return before

        def prepare() -> RejudgeJob:
            directory = folder_of(self._context, competition.slug) if _is_tournament(competition) else None
            with self._stores.using(competition.slug) as store:
                job = RejudgeJob.of(store, directory)
            with self._act("rejudge", competition.slug, by):
                return job

        job = await trio.to_thread.run_sync(prepare)
        progress = self.rejudgings[competition.id] = Rejudging(total=len(job.games))
        self._running_nursery.start_soon(rejudge_all, job, progress)
        return progress

    # Implementation

    @property
    def _running_nursery(self) -> trio.Nursery:
        if self._nursery is None:
            raise CourseError("tournaments are just being taken up: try again in a moment")
        return self._nursery

    async def _do_to_tournament(self, competition_id: int, what: Callable[[Competition], Awaitable[T]]) -> T:
        """Apply ``what`` to a tournament.  Raises CourseError if the competition is not a tournament."""

        async def checked(competition: Competition) -> T:
            if not _is_tournament(competition):
                raise CourseError(
                    f"{competition.title!r} is no tournament: the settings say whether it is played"
                )
            if competition.state is not CompetitionState.RUNNING:
                # A run that began on a failure may still wait until it can read the state.
                await self._stop(competition, 0)
            return await what(competition)

        return await self._do(competition_id, checked)

    async def _do(self, competition_id: int, what: Callable[[Competition], Awaitable[T]]) -> T:
        """Apply ``what`` in a task that goes on if the caller is cancelled."""
        done = trio.Event()
        results: list[T] = []
        errors: list[Exception] = []

        async def do() -> None:
            try:
                async with self._locks[competition_id]:
                    results.append(await what(await self._competition(competition_id)))
            except Exception as error:
                errors.append(error)
            finally:
                done.set()

        self._running_nursery.start_soon(do)
        await done.wait()
        if errors:
            raise errors[0]
        if not results:
            raise CourseError(
                "the server was interrupted before it could confirm this action: see on the page whether the "
                "action took effect, and repeat it if it did not"
            )
        return results[0]

    async def _competition(self, competition_id: int) -> Competition:
        return _there(
            competition_id,
            await trio.to_thread.run_sync(self._context.course.competitions.get, competition_id),
        )

    async def _cached_competition(self, competition_id: int) -> Competition:
        """Return the competition from the cache: its state may be a moment old."""
        return _there(
            competition_id, await self._read_cache.get(self._context.course.competitions.get, competition_id)
        )

    async def _set(self, competition: Competition, outcome: Outcome) -> Competition:
        return await trio.to_thread.run_sync(self._set_state, competition, outcome)

    def _set_state(self, competition: Competition, outcome: Outcome) -> Competition:
        course, now = self._context.course, self._context.now()
        with course.transaction():
            if outcome.state is CompetitionState.FINISHED:
                with course.act(now, None, FINISH, competition.slug) as act:
                    act.detail["roster"] = roster_entry(course.accounts.all())
            return course.competitions.set_state(competition.id, outcome.state, outcome.message, now)

    async def _go_on(self, competition: Competition) -> None:
        self._begin(await self._set(competition, Outcome(CompetitionState.RUNNING)))

    def _begin(self, competition: Competition) -> None:
        run = TournamentRun(self._context, self._stores, competition)
        self._runs[competition.id] = run
        self._running_nursery.start_soon(self._play, run)

    async def _stop(self, competition: Competition, limit_s: float) -> Outcome | None:
        """Stop a tournament if it is being played; return its outcome."""
        run = self._runs.get(competition.id)
        if run is None:
            return None
        await run.stop(limit_s)
        return run.outcome

    @contextmanager
    def _begun_on_failure(self, competition: Competition) -> Iterator[None]:
        """Begin a tournament if the block, which changes its state, fails.

        The stored state may be RUNNING: a stop was not stored, or a start was, and only its answer was lost.
        Nothing else would play the tournament before the next start of the server.  If the state is another
        one, the run ends at once.
        """
        try:
            yield
        except Exception:
            self._begin(competition)
            raise

    async def _play(self, run: TournamentRun) -> None:
        """Play a tournament and store its outcome, unless the task that stopped it does."""
        competition = run.competition
        try:
            await run.play()
            if run.outcome is not None and not run.stopped:
                await self._set(competition, run.outcome)
        finally:
            if self._runs.get(competition.id) is run:
                del self._runs[competition.id]
            run.over.set()

    def _on_change(self, competition: Competition) -> None:
        if competition.kind is CompetitionKind.PRACTICE:
            self._context.hub.standings_changed()


def _there(competition_id: int, found: Competition | None) -> Competition:
    if found is None:
        raise CourseError(f"there is no competition {competition_id}")
    return found


def _is_tournament(competition: Competition) -> bool:
    return competition.kind is CompetitionKind.TOURNAMENT
