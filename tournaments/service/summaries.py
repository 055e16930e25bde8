"""Summaries for pages: kept, and computed again behind the pages' backs.

A page never waits for a computation if there is a summary that was looked at a short while ago: it gets that
one, and a newer one is begun.  Only the first page after a long time waits, so that nobody is shown last
night's table in the morning.

All of it happens in threads.  Ratings of 40 bots after 3,000 games take 50 ms of which most is numpy's (after
30,000 games 220 ms); sending the games to a worker process and back would take longer than that.  What a
computation takes is also what it keeps from bots: a tenth of a core at most is spent on one competition.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

import trio

from tournaments.course.course import Course
from tournaments.course.deadlines import frozen_moment
from tournaments.course.model import Competition, CompetitionKind, CompetitionState
from tournaments.course.settings import Settings
from tournaments.service.failures import Failures
from tournaments.service.practice_summary import PracticeGames, PracticeSummary
from tournaments.service.stores import Stores
from tournaments.summary import Summary

FRESH_S = 1.0
"""Results are looked at no more often than this."""
OLDEST_S = 15.0
"""A page waits for a newer summary if nobody looked at the results for so long."""
REST = 10
"""A computation is followed by a rest of so many times the time that it took."""


@dataclass
class _Entry:
    """What is kept of one competition.  Changed by whoever has the lock."""

    lock: trio.Lock = field(default_factory=trio.Lock)
    summary: Summary | None = None
    size: tuple[int, int] = (-1, -1)
    """Games and entries of the journal that it was made from."""
    practice: PracticeGames = field(default_factory=PracticeGames)
    begun: int = 0
    """How often it was begun to look at the results."""
    ended: int = 0
    """Which of these looks was the last one that brought a summary."""
    looked_at: float = float("-inf")
    """When that one was begun."""
    rests_until: float = float("-inf")
    refreshing: bool = False
    """Whether a newer one was begun behind the pages' backs."""


class Summaries:
    """See above.  For the tasks of one event loop."""

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
        """Compute behind the pages' backs, until cancelled.  Without it pages wait for what they ask."""
        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            try:
                await trio.sleep_forever()
            finally:
                self._nursery = None
                for entry in self._entries.values():
                    entry.refreshing = False

    async def of(self, competition: Competition, *, wait: bool = False) -> Summary:
        """The summary of a competition; with ``wait``, of all that was kept before it was asked for.

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
        except Exception as error:  # the page that waits for it, when this one is too old, is told
            self._failures.note(f"summary of {competition.title}", error)
        finally:
            entry.refreshing = False

    async def _refreshed(self, competition: Competition, entry: _Entry, look: int) -> Summary:
        """The summary of this look at the results, or of a later one."""
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
        """In a thread: a newer summary with all that pages show of it, or the same one if nothing changed."""
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
    """Who plays on a practice ladder now; on one that is finished, everybody who did.

    Blocks.  Raises StoreError.
    """
    everybody = course.competitions.competitors(competition.id)
    if competition.state is CompetitionState.FINISHED:
        return [one.name for one in everybody]
    current = {version.id for version in course.versions.current(frozen_moment(settings, now)).values()}
    return [
        one.name for one in everybody if one.version_id in current or one.reference in settings.references
    ]
