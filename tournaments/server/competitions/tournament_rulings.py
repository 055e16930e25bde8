"""Rulings on tournaments of the server: their entries in the tournament's journal and in the course.

A ruling is stored in two databases, one after the other.  The journal in the tournament's store decides on
games and standings; its transaction ends first.  The course's database then gets an entry for the account
that ruled, and a competitor for a bot that joins.  If the course's database fails in between, ``run`` writes
the missing rows as soon as the database works again; after a crash, the next start does.

``tournament_manager`` pauses a tournament that is being played while a ruling is noted.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from threading import Lock

import trio

from tournaments.course.model import Account, BotChoice, Competition, CourseError
from tournaments.reporting.ruling_requests import Ruling, entries_of, restoration, unexpected, withdrawal
from tournaments.reporting.tournament_results import TournamentResults
from tournaments.results.journal import Action, Entry
from tournaments.results.rulings import RulingError
from tournaments.server.competitions.late_entrants import joining, late_candidate, late_entrants
from tournaments.server.competitions.tournament_run import players_of
from tournaments.server.competitions.tournament_spec import FixedSpec, TournamentSpecError
from tournaments.server.failures import wait_s
from tournaments.server.service_context import ServiceContext, Stores

RulingsFrom = Callable[[TournamentResults], list[Ruling]]
"""Function that makes rulings from a tournament's results.  Raises RulingError for invalid ones."""


@dataclass(frozen=True, slots=True)
class NotedRulings:
    """Result of a ruling that was noted."""

    sentences: list[str] = field(default_factory=list)
    """Sentences on the new journal entries and on their unexpected consequences."""
    has_due_games: bool = False
    """True if games are due after the ruling."""


class TournamentRulings:
    """Rulings on the server's tournaments; see above.  For the tasks of one event loop."""

    def __init__(self, context: ServiceContext, stores: Stores) -> None:
        self._context = context
        self._stores = stores
        self._unrecorded: dict[int, Competition] = {}
        """Tournaments whose rulings the course's database may lack."""
        self._recording = Lock()
        self._wakeup = trio.Event()

    async def run(self) -> None:
        """Repeat what the course's database did not take, until cancelled."""
        tries = 0
        while True:
            if not self._unrecorded:
                tries = 0
                await self._wakeup.wait()
                self._wakeup = trio.Event()
                continue
            tries += 1
            await trio.sleep(wait_s(tries, self._context.config.retry_s))
            await self.record(tuple(self._unrecorded.values()))

    async def check(
        self, competition: Competition, request: RulingsFrom, why: str, by: Account | None
    ) -> None:
        """Check rulings without noting them.  Raises RulingError for an invalid one, StoreError."""

        def check() -> None:
            with self._stores.using(competition.slug) as store:
                summary = TournamentResults.load(store)
            self._entries(summary, request, why, by)

        await trio.to_thread.run_sync(check)

    async def note(
        self, competition: Competition, request: RulingsFrom, why: str, by: Account | None
    ) -> NotedRulings:
        """Note rulings on a tournament that is not being played now.

        Raises RulingError for an invalid ruling, StoreError if the tournament's store fails.
        """

        def note() -> NotedRulings:
            with self._stores.using(competition.slug) as store:
                summary = TournamentResults.load(store)
                entries = self._entries(summary, request, why, by)
                store.note(*entries)
                self._record_all([competition])
                summary = TournamentResults.load(store)
            due = summary.schedule.due(summary.history)
            sentences = [*(f"noted: {entry}" for entry in entries), *unexpected(summary, entries)]
            return NotedRulings(sentences, bool(due))

        try:
            return await trio.to_thread.run_sync(note)
        finally:
            self._wakeup.set()

    def _entries(
        self, summary: TournamentResults, request: RulingsFrom, why: str, by: Account | None
    ) -> list[Entry]:
        author = None if by is None else by.login
        return entries_of(summary, request(summary), why, self._context.now(), author)

    async def late_bot(
        self, competition: Competition, choice: BotChoice, replaces: str | None
    ) -> RulingsFrom:
        """Return the function for the rulings by which a bot joins; see ``joining``.

        Raises TournamentSpecError for a bot that cannot play; CourseError, StoreError.
        """
        context, fixed = self._context, FixedSpec.read(competition.spec)
        spec = fixed.chosen
        versions, teams = context.course.versions, context.course.teams
        candidate = await trio.to_thread.run_sync(
            late_candidate, spec, choice, versions, teams, context.now()
        )
        players = await players_of(context, [candidate.entered("")], spec.game, competition.id)
        player = players[candidate.name]
        return partial(joining, candidate=candidate, player=player, replaces=replaces, field=fixed.field)

    async def record(self, tournaments: Iterable[Competition]) -> None:
        """Add the rows for the rulings of some tournaments that the course's database lacks.

        Failures are logged, and ``run`` repeats what may succeed later.
        """
        try:
            await trio.to_thread.run_sync(self._record_all, tournaments)
        finally:
            self._wakeup.set()

    def _record_all(self, tournaments: Iterable[Competition]) -> None:
        with self._recording:
            for competition in tournaments:
                self._unrecorded[competition.id] = competition
                try:
                    self._record(competition)
                except (CourseError, TournamentSpecError) as error:  # as the next time: no repetition helps
                    self._context.failures.note(f"the rulings of {competition.title}", error)
                except Exception as error:
                    self._context.failures.note(f"the rulings of {competition.title}", error)
                    continue
                del self._unrecorded[competition.id]

    def _record(self, competition: Competition) -> None:
        """Add the missing journal entries and competitors of the course for a tournament's rulings."""
        course = self._context.course
        with self._stores.using(competition.slug) as store:
            rulings = store.journal()
        joined = {one.name: one for one in late_entrants(rulings)}
        for ruling in rulings:
            entered = joined[ruling.subject] if ruling.action is Action.ADD else None
            author = None if ruling.by is None else course.accounts.by_login(ruling.by)
            if author is None:  # of the command line
                if entered is not None:
                    course.competitions.enter(
                        competition.id, entered.name, entered.version, entered.reference
                    )
                continue
            detail = {"ruled_on": ruling.subject, "why": ruling.why, "ruling": ruling.number}
            action, at = f"tournament.{ruling.action}", datetime.fromisoformat(ruling.at)
            with course.act(at, author.id, action, competition.slug, **detail) as act:
                events = course.journal.of_subject(competition.slug)
                # After a restore, an entry with this number may be of an earlier ruling that the store lacks.
                known = {(event.detail.get("ruling"), event.at) for event in events}
                act.is_recorded = (ruling.number, at) not in known
                if entered is not None:
                    course.competitions.enter(
                        competition.id, entered.name, entered.version, entered.reference
                    )


def requested_rulings(
    summary: TournamentResults, action: Action, subject: str, annul: bool | None
) -> list[Ruling]:
    """Return the ruling on a game or a bot.  Raises RulingError if it is invalid."""
    if action is Action.WITHDRAW:
        return [withdrawal(summary, subject, annul)]
    if action is Action.RESTORE:
        return [restoration(summary, subject)]
    if action is Action.ADD:
        raise RulingError("choose the version or the reference player that joins")
    return [Ruling(action, subject)]
