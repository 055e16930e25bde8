"""Queue of versions that wait for their check.

Teams take turns: a team that submits ten versions at once delays only itself.  Within a team the newest
version goes first, since its students wait for that one.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import trio

from referee.judge.limits import Limits
from referee.sandbox.detection import SandboxError, find_sandbox
from tournaments.bots.build import BUILD_LIMIT_S
from tournaments.checking.report import Report
from tournaments.course.model import Checked, CheckedGame, CourseError, Version, VersionState
from tournaments.course.settings import Settings
from tournaments.database.base import StoreError
from tournaments.server.bot_provider import MARGIN_S
from tournaments.server.bot_storage import BotStorage
from tournaments.server.checks.bot_job import Answer, Task
from tournaments.server.checks.bot_worker import WorkerError, run_job
from tournaments.server.checks.check_log import CheckLog
from tournaments.server.failures import wait_s
from tournaments.server.metrics import CheckEnd
from tournaments.server.service_context import ServiceContext
from tournaments.server.slots import Kind


def next_to_check(waiting: Sequence[Version], turns: Mapping[int, int]) -> Version:
    """Return the next of the waiting versions, of which there is at least one.

    ``turns`` has a number for each team that had a turn, larger for a later turn.
    """
    oldest: dict[int, int] = {}
    for version in waiting:
        oldest[version.team_id] = min(version.id, oldest.get(version.team_id, version.id))
    team = min(oldest, key=lambda team_id: (turns.get(team_id, 0), oldest[team_id]))
    return max((version for version in waiting if version.team_id == team), key=lambda version: version.id)


MAX_ATTEMPTS = 3
"""Maximum attempts after failures of the host, as for a game of a tournament."""
MAX_UNFINISHED = 30
"""Maximum checks of a version that never end; such a check may kill the server each time."""
POLL_S = 5.0
"""Seconds between queries of the database: `kalarena admin` may have queued a version."""


@dataclass
class _Entry:
    """A version that is not decided yet, in this server's memory."""

    log: CheckLog
    failed: int = 0
    """Number of checks that failed because of the host."""
    tries: int = 0
    not_before: float = 0.0
    """Earliest moment of the next check, as of ``trio.current_time``."""
    is_running: bool = False
    was_requested: bool = False
    """True if its check was requested since the server began; then earlier attempts do not count."""


class CheckQueue:
    """Checker of all queued versions."""

    def __init__(
        self, context: ServiceContext, bots: BotStorage, at_a_time: int, on_decided: Callable[[Version], None]
    ) -> None:
        """``on_decided`` is called with each decided version, in the event loop."""
        self._course, self._slots, self._config = context.course, context.slots, context.config
        self._failures, self._now, self._metrics = context.failures, context.now, context.metrics
        self._bots, self._on_decided = bots, on_decided
        self._at_a_time = at_a_time
        self.workers = 0
        """Number of workers that check a version now."""
        self._checking: dict[int, str] = {}
        """Versions that are being checked, by id, with their submissions."""
        self._entries: dict[int, _Entry] = {}
        self._turns: dict[int, int] = {}
        """Number of each team's last turn, for ``next_to_check``."""
        self._woken = trio.Event()

    async def run(self) -> None:
        """Check versions until cancelled.

        Raises StoreError if the queue cannot be read; then it can be run again.
        """
        for entry in self._entries.values():
            entry.is_running = False
        self._checking.clear()
        async with trio.open_nursery() as nursery:
            while True:
                woken, known = self._woken, set(self._entries)
                unfinished = await trio.to_thread.run_sync(self._course.versions.unfinished)
                for version_id in known - {version.id for version in unfinished}:
                    self._forget(version_id)
                now = trio.current_time()
                waiting = [(version, self._entry(version.id)) for version in unfinished]
                free = self._at_a_time - sum(entry.is_running for entry in self._entries.values())
                due = [one for one, entry in waiting if not entry.is_running and entry.not_before <= now]
                for _ in range(min(free, len(due))):
                    version = next_to_check(due, self._turns)
                    due.remove(version)
                    self._turns[version.team_id] = max(self._turns.values(), default=0) + 1
                    entry = self._entry(version.id)
                    entry.is_running = True
                    self._checking[version.id] = version.content
                    nursery.start_soon(self._check, version, entry)
                later = [entry.not_before for _, entry in waiting if entry.not_before > now]
                with trio.move_on_at(min([now + POLL_S, *later])):
                    await woken.wait()

    def queued(self, version_id: int) -> None:
        """Queue the check of a version."""
        entry = self._entry(version_id)
        entry.was_requested = True
        entry.failed = entry.tries = 0
        entry.not_before = 0.0
        self._wake()

    def log(self, version_id: int) -> CheckLog:
        """Return the log of a version that is not decided."""
        return self._entry(version_id).log

    @property
    def checking(self) -> Collection[str]:
        """The submissions that are being checked, or wait for a slot."""
        return self._checking.values()

    @property
    def unchecked(self) -> int:
        """Number of versions that are not decided."""
        return len(self._entries)

    def _wake(self) -> None:
        self._woken.set()
        self._woken = trio.Event()

    def _entry(self, version_id: int) -> _Entry:
        return self._entries.setdefault(version_id, _Entry(CheckLog()))

    async def _check(self, version: Version, entry: _Entry) -> None:
        """Check a version once; a failure of the server is logged, and the check is tried again later."""
        try:
            async with self._slots.taken(Kind.QUALIFICATION):
                await self._check_now(version, entry)
        except (SandboxError, WorkerError) as error:
            entry.failed += 1
            self._postpone(version, entry, str(error))
        except StoreError as error:
            self._postpone(version, entry, str(error))
        except Exception as error:
            entry.failed += 1
            self._postpone(version, entry, error)
        finally:
            entry.is_running = False
            self._checking.pop(version.id, None)
            self._wake()

    def _postpone(self, version: Version, entry: _Entry, why: str | Exception) -> None:
        entry.tries += 1
        entry.not_before = trio.current_time() + wait_s(entry.tries, self._config.retry_s)
        self._metrics.check_ended(CheckEnd.HOST)
        # The reason is for the lecturer alone: it may contain the server's paths and tracebacks.
        entry.log.add("This host failed, which is not the bot's fault. The lecturer can see the reason.")
        self._failures.note(f"the check of version {version.id}", why)

    async def _check_now(self, version: Version, entry: _Entry) -> None:
        try:
            begun = await trio.to_thread.run_sync(self._course.versions.begin_check, version.id)
        except CourseError:  # another program has decided it meanwhile
            return
        if begun.attempts > MAX_UNFINISHED and not entry.was_requested:
            entry.log.add(f"Its check was begun {begun.attempts} times, and never came to an end.")
            await self._decide(begun, entry, VersionState.STUCK, Answer())
        elif entry.failed >= MAX_ATTEMPTS:
            entry.log.add("It is not tried again until a lecturer asks for it.")
            await self._decide(begun, entry, VersionState.STUCK, Answer())
        else:
            answer = await self._run_check(begun, entry)
            if answer.ours:
                raise WorkerError(answer.ours)
            passed = answer.report is not None and Report.from_json(answer.report).passed
            state = VersionState.QUALIFIED if passed else VersionState.FAILED
            await self._decide(begun, entry, state, answer)

    async def _run_check(self, version: Version, entry: _Entry) -> Answer:
        settings: Settings = await trio.to_thread.run_sync(self._course.settings.load)
        team = await trio.to_thread.run_sync(self._course.teams.get, version.team_id)
        name = f"{team.name if team is not None else 'a team'} v{version.number}"
        job = replace(
            self._bots.job(Task.CHECK, version.content, name, settings.game),
            control=settings.control(),
            limits=limits_of(settings),
            sandbox=await trio.to_thread.run_sync(find_sandbox, settings.sandbox_mode),
            total_s=settings.check_total_s,
            nice=self._config.nice,
        )
        self.workers += 1
        try:
            return await run_job(
                job,
                entry.log.add,
                within_s=BUILD_LIMIT_S + settings.check_total_s + MARGIN_S,
                shutdown_s=self._config.shutdown_s,
            )
        finally:
            self.workers -= 1

    async def _decide(self, version: Version, entry: _Entry, state: VersionState, answer: Answer) -> None:
        checked = Checked(answer.report, entry.log.text)
        failed = int((answer.report or {}).get("failed", 0))
        digest = answer.digest if state is VersionState.QUALIFIED else None
        decide = partial(
            self._course.versions.decide, version.id, state, checked, digest, failed, self._now()
        )
        try:
            decided = await self._decide_with_games(version, decide, answer.games)
        except CourseError:  # another check was requested while this one went on
            entry.log.add("Another check was asked for meanwhile.")
            return
        self._metrics.check_ended(CheckEnd(state.value))
        entry.is_running = False
        self._forget(version.id)
        self._on_decided(decided)

    async def _decide_with_games(
        self,
        version: Version,
        decide: Callable[[Sequence[CheckedGame]], Version],
        games: Sequence[CheckedGame],
    ) -> Version:
        """Store a verdict with the games of its check, or without them if the disk has no room for them."""
        try:
            return await trio.to_thread.run_sync(decide, games)
        except StoreError as error:
            if not games:
                raise
            decided = await trio.to_thread.run_sync(decide, ())
            self._failures.note(f"the games of the check of version {version.id}", f"not kept: {error}")
            return decided

    def _forget(self, version_id: int) -> None:
        """Drop the entry of a decided version, and end its log."""
        entry = self._entries.get(version_id)
        if entry is not None and not entry.is_running:
            del self._entries[version_id]
            entry.log.close()


def limits_of(settings: Settings) -> Limits:
    """Return the limits of each bot."""
    return Limits(memory_mb=settings.memory_mb, processes=settings.processes)
