"""The service: everything of a server but its pages.

One event loop holds it all: the queue of checks, the practice ladder, the tournaments, and who may play when.
Bots run in processes of their own, which end with this one.  What it was asked to do is in the databases, so
that starting it again is all that has to be done after a crash.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import trio

from referee.probe import find_sandbox
from referee.sandbox import Sandbox
from tournaments.cluster.extra import require_extra
from tournaments.cluster.waiting import sandbox_elsewhere
from tournaments.course.course import Course
from tournaments.course.deadlines import day_of, may_upload
from tournaments.course.errors import CourseError
from tournaments.course.model import CompetitionKind, CompetitionState, Version, VersionState
from tournaments.database.location import Database
from tournaments.engines.local import open_local_engine, usable_cores
from tournaments.service.check_log import CheckLog
from tournaments.service.cluster import ServiceCluster
from tournaments.service.config import ServiceConfig
from tournaments.service.contests import Contests
from tournaments.service.failures import Failures, kept_running
from tournaments.service.live import Hub
from tournaments.service.parts import Parts
from tournaments.service.places import Places
from tournaments.service.players import Bots, Shop
from tournaments.service.practice import Practice
from tournaments.service.qualifying import Qualifying
from tournaments.service.status import Status, load_average
from tournaments.service.workshop import Workshop
from tournaments.submissions.content import ContentStore, content_digest
from tournaments.submissions.upload import Upload

SUBMISSIONS, BOTS, SCRATCH, CLUSTER = "submissions", "bots", "scratch", "cluster"
"""In the data directory: what was uploaded, what was built, the engine's named pipes, and a cluster's
credentials and logs."""
UNCHECKED = (VersionState.QUEUED, VersionState.CHECKING)
CLOSE_LIMIT_S = 5.0
"""Connections close within milliseconds."""
PAGE = 500
"""Versions that are read at a time."""


class Service:
    """See ``open_service``."""

    def __init__(self, parts: Parts, shop: Shop, cores: int) -> None:
        self.contents = shop.contents
        self.live = parts.hub
        self.places = parts.places
        self.database = parts.database
        self.contests = Contests(parts)
        """The tournaments, and what was played in all competitions."""
        self._parts, self._shop, self._cores = parts, shop, cores
        self._practice = Practice(parts)
        self._qualifying = Qualifying(parts, shop, parts.config.checks_on(cores), self._decided)

    async def run(self) -> None:
        """Go on with all that there is to do, until cancelled."""
        tasks = {
            "the queue of checks": self._qualifying.run,
            "practice": self._practice.run,
            "tournaments": self.contests.run,
        }
        if self._parts.cluster is not None:
            tasks["the cluster"] = self._parts.cluster.run
        async with trio.open_nursery() as nursery:
            for name, task in tasks.items():
                nursery.start_soon(kept_running, name, task, self._parts.failures)

    async def submit(
        self, upload: Upload, team_id: int, account_id: int, origin: str
    ) -> tuple[Version, bool]:
        """Keep an upload as its team's next version, and queue its check.

        When this returns it is on the disk.  False, and the version that there is, if the team's newest one
        has the same files.  Raises CourseError if the team may not upload now; ContentError, StoreError if it
        could not be kept.
        """
        version, is_new = await trio.to_thread.run_sync(self._keep, upload, team_id, account_id, origin)
        if version.state in UNCHECKED:
            self._qualifying.queued(version.id)
        return version, is_new

    def _keep(self, upload: Upload, team_id: int, account_id: int, origin: str) -> tuple[Version, bool]:
        course, now = self._parts.course, self._parts.now()
        settings = course.settings.load()
        # What will be refused is not written to the disk first.  What counts is asked again, below.
        newest = course.versions.of_team(team_id)[:1]
        today = course.versions.counts(team_id, day_of(settings, now)[0])
        why_not = may_upload(settings, now, today, newest[0].number if newest else 0)
        if why_not is not None and not (newest and newest[0].content == content_digest(upload.files)):
            raise CourseError(why_not)
        content = self.contents.put(upload.files)
        size = sum(len(file.content) for file in upload.files)
        files = len(upload.files)
        return course.versions.add(team_id, content, files, size, account_id, origin, now, settings)

    async def recheck(self, version_id: int) -> Version:
        """Check a version again; until it has qualified it does not play.  Raises CourseError, StoreError."""
        version = await trio.to_thread.run_sync(self._parts.course.versions.requeue, version_id)
        self._parts.bots.forget(version.content)
        self._qualifying.queued(version_id)
        self._practice.wake()
        return version

    async def check_log(self, version_id: int) -> CheckLog:
        """What was told of a version's check, and is told while it goes on.

        It is empty for what was decided by an earlier check only.  Raises CourseError if there is no such
        version, StoreError.
        """
        versions = self._parts.course.versions
        version = await trio.to_thread.run_sync(versions.get, version_id)
        if version is None:
            raise CourseError(f"there is no version with the id {version_id}")
        if version.state in UNCHECKED:
            return self._qualifying.log(version_id)
        checked = await trio.to_thread.run_sync(versions.checked, version_id)
        return CheckLog.of(checked.log if checked is not None else "")

    async def start(self, competition_id: int) -> None:
        """Play a competition, or go on with it.  Raises CourseError, StoreError."""
        if not await self._set_practice(competition_id, CompetitionState.RUNNING):
            await self.contests.start(competition_id)

    async def pause(self, competition_id: int) -> None:
        """Stop a competition.  Raises CourseError, StoreError."""
        if not await self._set_practice(competition_id, CompetitionState.PAUSED):
            await self.contests.pause(competition_id)

    async def _set_practice(self, competition_id: int, state: CompetitionState) -> bool:
        """Whether it is a practice ladder; then it is told at once, and ends what it is playing."""
        competitions = self._parts.course.competitions
        found = await trio.to_thread.run_sync(competitions.get, competition_id)
        if found is None or found.kind is not CompetitionKind.PRACTICE:
            return False
        if found.state is CompetitionState.FINISHED:
            raise CourseError(f"{found.title!r} is finished: another game is played now")
        await trio.to_thread.run_sync(competitions.set_state, found.id, state, "", self._parts.now())
        self._practice.wake()
        return True

    def settings_changed(self) -> None:
        """The lecturer has changed something that practice depends on."""
        self._practice.wake()

    def status(self) -> Status:
        """What is going on."""
        parts = self._parts
        return Status(
            unchecked=self._qualifying.unchecked,
            playing=tuple(parts.hub.playing()),
            places=parts.places.total,
            uses=parts.places.status(),
            resting=self._practice.resting,
            load=load_average(),
            cores=self._cores,
            failures=parts.failures.newest(),
            cluster=None if parts.cluster is None else parts.cluster.status(),
        )

    @property
    def tournament_places(self) -> int:
        """Games of tournaments at a time, as far as is known."""
        if self._parts.cluster is None:
            return self.places.total
        return max(1, self._parts.cluster.status().slots)

    def _decided(self, version: Version) -> None:
        self._parts.bots.forget(version.content)
        self._practice.wake()


@asynccontextmanager
async def open_service(
    data: Path,
    course: Course,
    database: Database,
    config: ServiceConfig | None = None,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> AsyncIterator[Service]:
    """The service of one data directory, for as long as the block lasts.

    It takes up at once what an earlier one left: unfinished checks, running competitions.  Only one may use a
    data directory at a time; whoever calls this sees to that.  At the end, and when cancelled, all that it
    has started ends within about a second, and a cluster within some seconds.  Raises ContentError,
    WorkshopError, OSError if the directory cannot be used, StoreError; ClusterError if a cluster is asked for
    and what it needs is not installed.
    """
    config = config or ServiceConfig()
    if config.cluster is not None:
        require_extra()
    cores = len(usable_cores())
    shop = await trio.to_thread.run_sync(_shop, data, course)
    scratch = data / SCRATCH
    await trio.to_thread.run_sync(lambda: scratch.mkdir(mode=0o700, parents=True, exist_ok=True))
    places, failures = Places(config.places_on(cores)), Failures(now)
    async with open_local_engine(scratch, places.total, nice=config.nice) as engine:
        parts = Parts(
            data=data,
            course=course,
            database=database,
            config=config,
            now=now,
            bots=Bots(course, shop, config),
            places=places,
            engine=engine,
            hub=Hub(now),
            failures=failures,
            cluster=_cluster(config, data, course, now, failures),
        )
        service = Service(parts, shop, cores)
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(service.run)
                yield service
                nursery.cancel_scope.cancel()
        finally:
            with trio.move_on_after(CLOSE_LIMIT_S, shield=True):
                await trio.to_thread.run_sync(service.contests.close)


def _cluster(
    config: ServiceConfig, data: Path, course: Course, now: Callable[[], datetime], failures: Failures
) -> ServiceCluster | None:
    if config.cluster is None:
        return None

    def sandbox() -> Sandbox:
        return sandbox_elsewhere(find_sandbox(course.settings.load().sandbox_mode))

    return ServiceCluster(config.cluster, data / (config.cluster.folder or CLUSTER), now, sandbox, failures)


def _shop(data: Path, course: Course) -> Shop:
    """The store of submissions and the workshop, without what killed processes left in them."""
    contents = ContentStore(data / SUBMISSIONS)
    contents.sweep()
    workshop = Workshop(contents, data / BOTS)
    workshop.sweep(_playable(course))
    return Shop(contents, workshop)


def _playable(course: Course) -> set[str]:
    """The submissions of all versions that have qualified, or still may: some competition may play them."""
    found: set[str] = set()
    before = None
    while versions := course.versions.all(PAGE, before):
        found |= {one.content for one in versions if one.state is not VersionState.FAILED}
        before = versions[-1].id
    return found
