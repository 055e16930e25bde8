"""Summaries for pages: cached, and recomputed in the background.

A page never waits for a computation if there is a recent summary: the page gets that one, and a newer one is
computed.  Only the first page after a long time waits, so that no page shows last night's table in the
morning.

All computations run in threads.  Ratings of 40 bots after 3,000 games take 50 ms of which most is numpy's
(after 30,000 games 220 ms); sending the games to a worker process and back would take longer than that.  The
time of a computation is also taken from bots: at most a tenth of a core is spent on one competition.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from enum import Enum, auto
from typing import NamedTuple

import trio

from tournaments.course.course import Course
from tournaments.course.model import Competition, CompetitionKind, CompetitionState
from tournaments.course.settings import Settings, frozen_moment
from tournaments.reporting.tournament_results import TournamentResults
from tournaments.results.store import NothingKeptError, Store
from tournaments.server.cache import SingleFlightCache
from tournaments.server.competitions.entrants import planned
from tournaments.server.competitions.tournament_spec import FixedSpec, TournamentSpecError
from tournaments.server.failures import Failures
from tournaments.server.practice.practice_results import LadderHistory, PracticeGames, PracticeResults
from tournaments.server.service_context import Stores

FRESH_S = 3.0
"""Minimum seconds between two reads of the results: games end each second, and changed standings are rendered
anew for each kind of page."""
OLDEST_S = 15.0
"""Maximum age in seconds of a summary for a page; a page waits for a newer one."""
REST = 10
"""Rest after a computation, as a multiple of the computation's time."""
NOT_IN_STORE = (-1, -1)
"""Size of a tournament that is not recorded in its store yet."""
MOST_KEPT = 1_000
"""Maximum number of summaries: more than a course has competitions."""


class _Kind(Enum):
    """Kind of a summary."""

    STANDINGS = auto()
    HISTORY = auto()
    """All bots that ever played on a ladder, not only the current ones."""
    WITHOUT_TABLE = auto()
    """The games and rulings of a tournament, without its table."""


class _Subject(NamedTuple):
    """Subject of a summary."""

    competition_id: int
    kind: _Kind = _Kind.STANDINGS


@dataclass(frozen=True)
class _Entry:
    """Summary of one competition, with the state for the next read of its results."""

    summary: TournamentResults
    number: int
    """Number of the read, in the order in which reads of all competitions began."""
    began: float
    """Moment at which the read began."""
    rests_until: float
    size: tuple[int, int]
    """Number of games and of journal entries behind the summary of a tournament; NOT_IN_STORE without any."""
    practice: PracticeGames

    @property
    def oldest_s(self) -> float:
        """Maximum age of the summary in seconds."""
        return max(OLDEST_S, 2 * (self.rests_until - self.began))


class Summaries:
    """Cache of summaries; see above.  For the tasks of one event loop."""

    def __init__(
        self,
        stores: Stores,
        course: Course,
        failures: Failures,
        now: Callable[[], datetime],
        changed: Callable[[Competition], None] = lambda _competition: None,
        clock: Callable[[], float] = trio.current_time,
    ) -> None:
        """``changed`` is called when there is a newer summary of a competition; ``clock`` is in seconds."""
        self._stores = stores
        self._course = course
        self._failures = failures
        self._now = now
        self._changed = changed
        self._clock = clock
        self._cache: SingleFlightCache[_Subject, _Entry] = SingleFlightCache(MOST_KEPT)
        self._reads = 0
        """Number of reads of the results that have begun."""
        self._refreshing: set[_Subject] = set()
        """Summaries that are being computed in the background."""
        self._nursery: trio.Nursery | None = None

    async def run(self) -> None:
        """Compute in the background, until cancelled.  Otherwise pages wait for their summaries."""
        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            try:
                await trio.sleep_forever()
            finally:
                self._nursery = None

    async def get(self, competition: Competition, *, wait: bool = False) -> TournamentResults:
        """Return the summary of a competition; with ``wait``, of all games stored before this call.

        Raises StoreError.
        """
        return await self._get(competition, _Subject(competition.id), wait=wait)

    async def history(self, ladder: Competition) -> LadderHistory:
        """Return the results of all bots that ever played on a practice ladder.  Raises StoreError."""
        found = await self._get(ladder, _Subject(ladder.id, _Kind.HISTORY))
        assert isinstance(found, LadderHistory)
        return found

    async def without_table(self, tournament: Competition) -> TournamentResults:
        """Return the results of all games and rulings stored before this call, for the tournament's control.

        The table is not computed: the intervals of 300 bots in a round robin take minutes.  Raises
        StoreError.
        """
        return await self._get(tournament, _Subject(tournament.id, _Kind.WITHOUT_TABLE), wait=True)

    async def _get(
        self, competition: Competition, subject: _Subject, *, wait: bool = False
    ) -> TournamentResults:
        if wait:
            return await self._newer(competition, subject, self._reads)
        entry, now = self._cache.peek(subject), self._clock()
        if entry is None:
            return await self._newer(competition, subject, 0)
        if now - entry.began > entry.oldest_s:
            return await self._newer(competition, subject, entry.number)
        if now > entry.rests_until and subject not in self._refreshing:
            if self._nursery is None:
                return await self._newer(competition, subject, entry.number)
            self._refreshing.add(subject)
            self._nursery.start_soon(self._refresh, competition, subject, entry.number)
        return entry.summary

    async def _refresh(self, competition: Competition, subject: _Subject, number: int) -> None:
        try:
            await self._newer(competition, subject, number)
        except Exception as error:  # raised again for a page that waits, once this summary is too old
            self._failures.note(f"summary of {competition.title}", error)
        finally:
            self._refreshing.discard(subject)

    async def _newer(self, competition: Competition, subject: _Subject, number: int) -> TournamentResults:
        """Return the summary of a read with a higher number."""
        entry = await self._cache.get(
            subject, lambda: self._read(competition, subject), lambda entry: entry.number > number
        )
        return entry.summary

    async def _read(self, competition: Competition, subject: _Subject) -> _Entry:
        before, began = self._cache.peek(subject), self._clock()
        self._reads += 1
        number = self._reads
        match subject.kind:
            case _Kind.STANDINGS:
                compute = self._compute
            case _Kind.HISTORY:
                compute = self._compute_history
            case _Kind.WITHOUT_TABLE:
                compute = self._compute_without_table
        summary, size, practice = await trio.to_thread.run_sync(compute, competition, before)
        is_new = before is None or summary is not before.summary
        if is_new and subject.kind is _Kind.STANDINGS:
            self._changed(competition)
        rests_until = began + max(FRESH_S, REST * (self._clock() - began))
        return _Entry(summary, number, began, rests_until, size, practice)

    def _compute(
        self, competition: Competition, before: _Entry | None
    ) -> tuple[TournamentResults, tuple[int, int], PracticeGames]:
        """Compute summary, size and practice games in a thread; the same summary if nothing changed.

        All parts that pages show are computed.
        """
        practice = PracticeGames() if before is None else before.practice
        if competition.kind is CompetitionKind.CHALLENGE:
            return self._of_challenges(competition, before), (0, 0), practice
        if competition.kind is CompetitionKind.PRACTICE:
            size, found = (0, 0), self._of_practice(competition, practice, before)
        else:
            with self._stores.using(competition.slug) as store:
                size, found = _of_tournament(competition, store, before)
        _ = found.table, found.total, found.conclusion
        return found, size, practice

    def _compute_history(
        self, competition: Competition, before: _Entry | None
    ) -> tuple[TournamentResults, tuple[int, int], PracticeGames]:
        """Compute the history of a ladder in a thread; the same one if nothing changed."""
        practice = PracticeGames() if before is None else before.practice
        names = [one.name for one in self._course.competitions.competitors(competition.id)]
        with self._stores.using(competition.slug) as store:
            changed = practice.read(store, names)
        if before is not None and not changed and before.summary.file_bots == names:
            return before.summary, (0, 0), practice
        control = str(self._course.settings.load().control())
        found = LadderHistory(
            competition.title, str(competition.spec["game"]), control, names, kept=practice.games
        )
        _ = found.table
        return found, (0, 0), practice

    def _compute_without_table(
        self, competition: Competition, before: _Entry | None
    ) -> tuple[TournamentResults, tuple[int, int], PracticeGames]:
        """Compute the results of a tournament in a thread; the same ones if nothing changed."""
        with self._stores.using(competition.slug) as store:
            size, found = _of_tournament(competition, store, before)
        _ = found.total, found.conclusion
        return found, size, PracticeGames()

    def _of_challenges(self, competition: Competition, before: _Entry | None) -> TournamentResults:
        """Return results without games: challenges have no standings.  They are new with each new bot."""
        names = [one.name for one in self._course.competitions.competitors(competition.id)]
        if before is not None and before.summary.file_bots == names:
            return before.summary
        control = str(self._course.settings.load().control())
        return PracticeResults(competition.title, str(competition.spec["game"]), control, names)

    def _of_practice(
        self, competition: Competition, practice: PracticeGames, before: _Entry | None
    ) -> TournamentResults:
        settings = self._course.settings.load()
        names = practice_names(self._course, competition, settings, self._now())
        with self._stores.using(competition.slug) as store:
            changed = practice.read(store, names)
        game, control = str(competition.spec["game"]), str(settings.control())
        found = None if before is None else before.summary
        if found is not None and not changed and found.control == control and found.file_bots == names:
            return found
        return PracticeResults(competition.title, game, control, names, kept=practice.games)


def _of_tournament(
    competition: Competition, store: Store, before: _Entry | None
) -> tuple[tuple[int, int], TournamentResults]:
    """Return the size and the results of a tournament; the same results if nothing changed.

    A tournament is in the course before it is in its store.  Meanwhile its specification is used.
    """
    size = store.size()
    if before is not None and before.size == size:
        return size, before.summary
    try:
        return size, TournamentResults.load(store)
    except NothingKeptError as error:
        try:
            return NOT_IN_STORE, TournamentResults.of(planned(FixedSpec.read(competition.spec)))
        except TournamentSpecError:
            raise error from None


def practice_names(course: Course, competition: Competition, settings: Settings, now: datetime) -> list[str]:
    """Return the current competitors of a practice ladder; for a finished ladder, all that ever played.

    Blocks.  Raises StoreError.
    """
    everybody = course.competitions.competitors(competition.id)
    if competition.state is CompetitionState.FINISHED:
        return [one.name for one in everybody]
    current = {version.id for version in course.versions.current(frozen_moment(settings, now)).values()}
    return [
        one.name for one in everybody if one.version_id in current or one.reference in settings.references
    ]
