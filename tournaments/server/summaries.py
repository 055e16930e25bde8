"""Summaries for pages: cached, and recomputed in the background.

A page never waits for a computation if there is a recent summary: the page gets that one, and a newer one is
computed.  Only the first page after a long time waits, so that no page shows last night's table in the
morning.

All computations run in threads.  Ratings of 40 bots after 3,000 games take 50 ms of which most is numpy's
(after 30,000 games 220 ms); sending the games to a worker process and back would take longer than that.  The
time of a computation is also taken from bots: at most a tenth of a core is spent on one competition.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

import trio

from tournaments.course.course import Course
from tournaments.course.model import Competition, CompetitionKind, CompetitionState
from tournaments.course.settings import Settings, frozen_moment
from tournaments.reporting.summary import Summary
from tournaments.server.failures import Failures
from tournaments.server.practice.practice_summary import PracticeGames, PracticeSummary
from tournaments.server.service_context import Stores

FRESH_S = 1.0
"""Minimum seconds between two reads of the results."""
OLDEST_S = 15.0
"""Maximum age in seconds of a summary for a page; a page waits for a newer one."""
REST = 10
"""Rest after a computation, as a multiple of the computation's time."""


@dataclass
class _Entry:
    """Cached summary of one competition.  Only the holder of the lock changes it."""

    lock: trio.Lock = field(default_factory=trio.Lock)
    summary: Summary | None = None
    size: tuple[int, int] = (-1, -1)
    """Number of games and of journal entries behind the summary."""
    practice: PracticeGames = field(default_factory=PracticeGames)
    begun: int = 0
    """Number of reads of the results that were begun."""
    ended: int = 0
    """Number of the last read that gave a summary."""
    looked_at: float = float("-inf")
    """Moment at which that read began."""
    rests_until: float = float("-inf")
    refreshing: bool = False
    """True while a newer summary is computed in the background."""


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
        self._entries: dict[int, _Entry] = {}
        self._nursery: trio.Nursery | None = None

    async def run(self) -> None:
        """Compute in the background, until cancelled.  Otherwise pages wait for their summaries."""
        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            try:
                await trio.sleep_forever()
            finally:
                self._nursery = None
                for entry in self._entries.values():
                    entry.refreshing = False

    async def of(self, competition: Competition, *, wait: bool = False) -> Summary:
        """Return the summary of a competition; with ``wait``, of all games stored before this call.

        Raises StoreError.
        """
        entry = self._entries.setdefault(competition.id, _Entry())
        now = self._clock()
        rest = entry.rests_until - entry.looked_at
        if entry.summary is None or wait or now - entry.looked_at > max(OLDEST_S, 2 * rest):
            return await self._refreshed(competition, entry, (entry.begun if wait else entry.ended) + 1)
        if now > entry.rests_until and not entry.refreshing:
            if self._nursery is None:
                return await self._refreshed(competition, entry, entry.ended + 1)
            entry.refreshing = True
            self._nursery.start_soon(self._refresh, competition, entry)
        return entry.summary

    async def _refresh(self, competition: Competition, entry: _Entry) -> None:
        try:
            await self._refreshed(competition, entry, entry.ended + 1)
        except Exception as error:  # raised again for a page that waits, once this summary is too old
            self._failures.note(f"summary of {competition.title}", error)
        finally:
            entry.refreshing = False

    async def _refreshed(self, competition: Competition, entry: _Entry, look: int) -> Summary:
        """Return the summary of the read with the number ``look``, or of a later one."""
        async with entry.lock:
            if entry.summary is None or entry.ended < look:
                before, began = entry.summary, self._clock()
                entry.begun += 1
                entry.summary = await trio.to_thread.run_sync(self._compute, competition, entry)
                entry.ended = entry.begun
                entry.looked_at = began
                entry.rests_until = began + max(FRESH_S, REST * (self._clock() - began))
                if entry.summary is not before:
                    self._changed(competition)
            return entry.summary

    def _compute(self, competition: Competition, entry: _Entry) -> Summary:
        """Compute in a thread; return the same summary if nothing changed.

        All parts that pages show are computed.
        """
        store = self._stores.get(competition.slug)
        if competition.kind is CompetitionKind.PRACTICE:
            found = self._of_practice(competition, entry)
        elif (size := store.size()) == entry.size and entry.summary is not None:
            found = entry.summary
        else:
            found = Summary.load(store)
            entry.size = size
        _ = found.table, found.total, found.conclusion
        return found

    def _of_practice(self, competition: Competition, entry: _Entry) -> Summary:
        settings = self._course.settings.load()
        names = practice_names(self._course, competition, settings, self._now())
        changed = entry.practice.read(self._stores.get(competition.slug), names)
        game, control = str(competition.spec["game"]), str(settings.control())
        found = entry.summary
        if found is not None and not changed and found.control == control and found.file_bots == names:
            return found
        return PracticeSummary(competition.title, game, control, names, kept=entry.practice.games)


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
