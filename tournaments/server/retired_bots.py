"""Removal of built bots that do not play any more, which count as storage of their teams.

A removed bot is built again when it is needed: every new use of a bot begins with ``BotProvider.player``,
or with a check, and both build a bot that is missing.  So only uses that began earlier matter here.
Tournaments, challenges and casual games are rows in the course's database for as long as they need a bot.
The other uses are read in the event loop, immediately before bots are moved away: checks, games of the
practice ladder, and players that were handed out a moment ago.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass

import trio

from tournaments.course.course import Course
from tournaments.course.model import CompetitionKind, CompetitionState
from tournaments.server.bot_provider import BotProvider
from tournaments.server.bot_storage import BotStorage

SETTLE_S = 300.0
"""Seconds for which a player that was handed out keeps its bot.  A tournament that is being created has no
row until all of its bots are built."""


def playable(course: Course) -> set[str]:
    """Return the submissions whose bots are kept, because they may play without another check.

    These submissions wait for their check, play for their team now or in a tournament of frozen versions, or
    are entered in a tournament: a bot that is built anew may differ.  Other old versions are built again when
    they are needed.
    """
    frozen_at = course.settings.load().frozen_at or course.settings.load().deadline
    playing = [*course.versions.current().values(), *course.versions.current(frozen_at).values()]
    kept = {one.content for one in (*playing, *course.versions.unfinished())}
    entered = {
        one.version_id
        for competition in course.competitions.all()
        if competition.kind is CompetitionKind.TOURNAMENT
        and competition.state is not CompetitionState.DELETED
        for one in course.competitions.competitors(competition.id)
        if one.version_id is not None
    }
    return kept | {one.content for one in course.versions.by_ids(entered).values()}


@dataclass(frozen=True)
class _Needs:
    """Contents of the course's database at one moment."""

    built: frozenset[str]
    """Submissions with a built bot."""
    needed: frozenset[str]
    """Submissions whose bots are needed."""
    practising: dict[str, str]
    """Name on a practice ladder -> submission."""


class RetiredBots:
    """Remover of the bots that do not play any more."""

    def __init__(
        self,
        course: Course,
        storage: BotStorage,
        provider: BotProvider,
        checking: Callable[[], Collection[str]],
        practising: Callable[[], Collection[str]],
        period_s: float,
    ) -> None:
        """Create the remover.

        Args:
            course: The course.
            storage: The store of built bots.
            provider: The provider of their players.
            checking: Returns the submissions that are being checked.
            practising: Returns the names of the bots that play on the practice ladder, or are about to.
            period_s: Seconds between two removals.

        """
        self._course, self._storage, self._provider = course, storage, provider
        self._checking, self._practising, self._period_s = checking, practising, period_s

    async def run(self) -> None:
        """Remove bots until cancelled.  Raises StoreError, BotStorageError; then it can be run again."""
        while True:
            await trio.sleep(self._period_s)
            await self.remove()

    async def remove(self) -> int:
        """Remove the bots that do not play any more; return their number.

        Raises StoreError, BotStorageError.
        """
        needs = await trio.to_thread.run_sync(self._read)
        # From here to the call of ``set_aside`` no other task runs.
        practising = self._practising()
        if not needs.practising.keys() >= set(practising):
            return 0  # a bot has just joined: next time
        held = {needs.practising[name] for name in practising} | set(self._checking())
        retired = [
            content
            for content in needs.built - needs.needed - held
            if not self._provider.is_in_use(content, SETTLE_S)
        ]
        if not retired or not self._storage.set_aside(retired):
            return 0
        for content in retired:
            self._provider.forget(content)
        await trio.to_thread.run_sync(self._storage.remove_leftovers)
        return len(retired)

    def _read(self) -> _Needs:
        course = self._course
        with course.reading():
            challenges = course.challenges.unfinished()
            choices = [choice for one in challenges for choice in (one.bot, one.opponent)]
            wanted = course.casual_games.versions()
            wanted |= {choice.version_id for choice in choices if choice.version_id is not None}
            ladders = [one for one in course.competitions.all() if one.kind is CompetitionKind.PRACTICE]
            competitors = [one for ladder in ladders for one in course.competitions.competitors(ladder.id)]
            known = wanted | {one.version_id for one in competitors if one.version_id is not None}
            contents = {number: one.content for number, one in course.versions.by_ids(known).items()}
            return _Needs(
                built=frozenset(self._storage.digests()),
                needed=frozenset(playable(course) | {contents[number] for number in wanted}),
                practising={one.name: contents.get(one.version_id or 0, "") for one in competitors},
            )
