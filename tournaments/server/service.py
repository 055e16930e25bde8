"""The service: the parts of a server without its pages.

One event loop runs the queue of checks, the practice ladder, the tournaments, the challenges and the
allocation of slots.
Bots run in processes of their own, which end with this one.  All requested work is in the databases, so that
a restart suffices after a crash.
"""

from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import trio

from referee.sandbox.bubblewrap import Sandbox
from referee.sandbox.detection import find_sandbox
from referee.sandbox.host_resources import default_memory_here, usable_cores
from tournaments.bots.storage import ContentStore, content_digest
from tournaments.bots.upload.limits import Upload
from tournaments.course.course import Course
from tournaments.course.model import Account, CourseError, Version
from tournaments.course.settings import day_of
from tournaments.course.upload_limits import may_upload
from tournaments.database.location import Database
from tournaments.engines.local import open_local_engine
from tournaments.engines.remote.extra import require_extra
from tournaments.engines.remote.waiting import sandbox_on_workers
from tournaments.server.bot_provider import BotProvider
from tournaments.server.bot_storage import BotStorage
from tournaments.server.casual.games import CasualGames, open_casual_games
from tournaments.server.challenges.challenge_runner import Challenges, open_challenges
from tournaments.server.checks.check_log import CheckLog
from tournaments.server.checks.qualifying import CheckQueue
from tournaments.server.cluster import ServiceCluster
from tournaments.server.competitions.tournament_manager import TournamentManager
from tournaments.server.config import ServiceConfig
from tournaments.server.failures import Failures, kept_running
from tournaments.server.live_hub import Hub
from tournaments.server.mail.mailer import Mailer
from tournaments.server.metrics import Metrics
from tournaments.server.practice.practice import Practice
from tournaments.server.retired_bots import RetiredBots, playable
from tournaments.server.service_context import ServiceContext
from tournaments.server.slots import Slots
from tournaments.server.status import Disk, Status, load_average

SUBMISSIONS, BOTS, SCRATCH, CLUSTER = "submissions", "bots", "scratch", "cluster"
"""Subdirectories of the data directory.

They hold uploads, built bots, the engine's named pipes, and a cluster's credentials and logs.
"""
CLOSE_LIMIT_S = 5.0
"""Seconds for closing connections, which takes milliseconds."""


class Service:
    """Interface of the service to the pages; see ``open_service``."""

    def __init__(
        self,
        context: ServiceContext,
        bots: BotStorage,
        cores: int,
        casual: CasualGames,
        challenges: Challenges,
    ) -> None:
        self.contents = bots.contents
        self.casual = casual
        """Games of people."""
        self.live = context.hub
        self.slots = context.slots
        self.metrics = context.metrics
        self.database = context.database
        self.tournaments = TournamentManager(context)
        """Tournaments, and the results of all competitions."""
        self.challenges = challenges
        """Games that teams ask for."""
        self._context, self._bots, self._cores = context, bots, cores
        self._practice = Practice(context)
        self._uploading: defaultdict[int, trio.Lock] = defaultdict(trio.Lock)
        """Lock of each team, so that an upload which another one excludes is not written to the disk."""
        config = context.config
        self._mailer = (
            None
            if config.mail is None
            else Mailer(context.course.outbox, config.mail, context.failures, context.now, config.retry_s)
        )
        self._qualifying = CheckQueue(context, bots, context.config.checks_on(cores), self._decided)
        self._retired = RetiredBots(
            context.course,
            bots,
            context.bots,
            lambda: self._qualifying.checking,
            lambda: self._practice.bots_in_use,
            context.config.retired_s,
        )
        self.metrics.watch(self.status)

    async def run(self) -> None:
        """Run all parts of the service, until cancelled."""
        tasks = {
            "the queue of checks": self._qualifying.run,
            "practice": self._practice.run,
            "tournaments": self.tournaments.run,
            "challenges": self.challenges.run,
            "casual games": self.casual.run,
            "the removal of old bots": self._retired.run,
        }
        if self._context.cluster is not None:
            tasks["the cluster"] = self._context.cluster.run
        if self._mailer is not None:
            tasks["mail"] = self._mailer.run
        async with trio.open_nursery() as nursery:
            for name, task in tasks.items():
                nursery.start_soon(kept_running, name, task, self._context.failures)

    async def submit(
        self, upload: Upload, team_id: int, account_id: int, origin: str, at: datetime
    ) -> tuple[Version, bool]:
        """Store an upload that arrived at ``at`` as its team's next version, and queue its check.

        The upload is on the disk when this method returns.  Returns the existing version and False if the
        team's newest version has the same files.  Raises CourseError if the team was not allowed to
        upload at that time; ContentError, StoreError if the upload could not be stored.
        """
        async with self._uploading[team_id]:
            version, is_new = await trio.to_thread.run_sync(
                self._keep, upload, team_id, account_id, origin, at
            )
        if not version.state.is_decided:
            self._qualifying.queued(version.id)
        return version, is_new

    def _keep(
        self, upload: Upload, team_id: int, account_id: int, origin: str, at: datetime
    ) -> tuple[Version, bool]:
        course = self._context.course
        settings = course.settings.load()
        # A refused upload is not written to the disk.  The conditions are checked again in ``add``, below.
        newest = course.versions.of_team(team_id)[:1]
        today = course.versions.counts(team_id, day_of(settings, at)[0])
        size, digest = sum(len(file.content) for file in upload.files), content_digest(upload.files)
        storage = replace(
            course.versions.storage(team_id, digest, size),
            built_of_team=self.built_size(team_id),
            built_of_course=self._bots.size(self._bots.digests()),
        )
        why_not = may_upload(settings, at, today, newest[0].number if newest else 0, storage)
        if why_not is not None and not (newest and newest[0].content == digest):
            raise CourseError(why_not)
        content = self.contents.put(upload.files)
        files = len(upload.files)
        return course.versions.add(team_id, content, files, size, account_id, origin, at, settings)

    def built_size(self, team_id: int) -> int:
        """Return the bytes of the bots that are built from a team's uploads.  Blocks."""
        return self._bots.size(one.content for one in self._context.course.versions.of_team(team_id))

    async def recheck(self, version_id: int, by: Account | None = None) -> Version:
        """Check a version again; until it has qualified it does not play.  Raises CourseError, StoreError."""
        course, now = self._context.course, self._context.now()
        author = None if by is None else by.id

        def requeue() -> Version:
            with course.act(now, author, "version.recheck", f"version {version_id}") as act:
                version = course.versions.requeue(version_id)
                act.detail["number"] = version.number
            return version

        version = await trio.to_thread.run_sync(requeue)
        self._context.bots.forget(version.content)
        self._qualifying.queued(version_id)
        self._practice.wake()
        return version

    async def check_log(self, version_id: int) -> CheckLog:
        """Return the log of a version's check, which may still grow.

        The log is empty for results of an earlier check only.  Raises CourseError if there is no such
        version, StoreError.
        """
        versions = self._context.course.versions
        version = await trio.to_thread.run_sync(versions.get, version_id)
        if version is None:
            raise CourseError(f"there is no version with the id {version_id}")
        if not version.state.is_decided:
            return self._qualifying.log(version_id)
        checked = await trio.to_thread.run_sync(versions.checked, version_id)
        return CheckLog.of(checked.log if checked is not None else "")

    def settings_changed(self) -> None:
        """Apply changed settings to the practice ladder at once."""
        self._practice.wake()

    def status(self) -> Status:
        """Return the current status."""
        context = self._context
        return Status(
            unchecked=self._qualifying.unchecked,
            checking=self._qualifying.workers,
            playing=tuple(context.hub.playing()),
            slots=context.slots.total,
            uses=context.slots.status(),
            resting=self._practice.resting,
            load=load_average(),
            cores=self._cores,
            failures=context.failures.newest(),
            disk=Disk.of(context.data),
            cluster=None if context.cluster is None else context.cluster.status(),
            mail_trouble=None if self._mailer is None else self._mailer.trouble,
        )

    @property
    def tournament_slots(self) -> int:
        """Number of games of tournaments at a time, as far as it is known."""
        if self._context.cluster is None:
            return self.slots.total
        return max(1, self._context.cluster.status().slots)

    def _decided(self, version: Version) -> None:
        self._context.bots.forget(version.content)
        self._practice.wake()


@asynccontextmanager
async def open_service(
    data: Path,
    course: Course,
    database: Database,
    config: ServiceConfig | None = None,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> AsyncIterator[Service]:
    """Open the service of one data directory, for as long as the block lasts.

    Unfinished checks and running competitions are resumed at once.  Only one service may use a data directory
    at a time, which the caller ensures.  At the end, and when cancelled, all that the service has started
    ends within about a second, and a cluster within some seconds.  Raises ContentError, BotStorageError,
    OSError if the directory cannot be used, StoreError; ClusterError if a cluster is configured and its
    requirements are not installed.
    """
    config = config or ServiceConfig()
    if config.cluster is not None:
        require_extra()
    cores = len(usable_cores())
    await trio.to_thread.run_sync(_begin_settings, course, config.slots_on(cores))
    bots = await trio.to_thread.run_sync(_bot_storage, data, course)
    scratch = data / SCRATCH
    await trio.to_thread.run_sync(lambda: scratch.mkdir(mode=0o700, parents=True, exist_ok=True))
    slots, metrics = Slots(config.slots_on(cores)), Metrics()
    failures = Failures(now, metrics.failed)
    async with open_local_engine(scratch, slots.total, nice=config.nice) as engine:
        context = ServiceContext(
            data=data,
            course=course,
            database=database,
            config=config,
            now=now,
            bots=BotProvider(course, bots, config),
            slots=slots,
            engine=engine,
            hub=Hub(now),
            failures=failures,
            cluster=_cluster(config, data, course, now, failures),
            metrics=metrics,
        )
        async with (
            open_casual_games(context, scratch) as casual,
            open_challenges(context, scratch) as challenges,
        ):
            service = Service(context, bots, cores, casual, challenges)
            try:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(service.run)
                    yield service
                    nursery.cancel_scope.cancel()
            finally:
                with trio.move_on_after(CLOSE_LIMIT_S, shield=True):
                    await trio.to_thread.run_sync(service.tournaments.close)
                    await trio.to_thread.run_sync(service.challenges.close)


def _cluster(
    config: ServiceConfig, data: Path, course: Course, now: Callable[[], datetime], failures: Failures
) -> ServiceCluster | None:
    if config.cluster is None:
        return None

    def sandbox() -> Sandbox:
        return sandbox_on_workers(find_sandbox(course.settings.load().sandbox_mode))

    return ServiceCluster(config.cluster, data / (config.cluster.folder or CLUSTER), now, sandbox, failures)


def _begin_settings(course: Course, games: int) -> None:
    """Store this host's default memory limit for a new course; a course with versions keeps its own."""
    if not course.versions.all(1):
        course.settings.begin(default_memory_here(games))


def _bot_storage(data: Path, course: Course) -> BotStorage:
    """Return the stores of submissions and bots, without the leftovers of killed processes."""
    contents = ContentStore(data / SUBMISSIONS)
    contents.sweep()
    bots = BotStorage(contents, data / BOTS)
    bots.sweep(playable(course))
    return bots
