"""Services and tournaments for tests, within the process of the test.

``open_service`` opens a real service, whose versions are uploads of real bots.  ``open_harness`` opens only
the parts of a service that play games; its versions are sample bots, and by default its games end at once.
"""

import math
import os
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import count
from pathlib import Path
from typing import Any, cast

import trio
import trio.testing

from referee.judge.results import Player
from referee.playing import Job
from referee.sandbox.bubblewrap import Sandbox
from tests.support.courses import FAST_PASSWORDS, NOW, add_qualified, add_student
from tests.support.databases import database_of
from tests.support.paths import REPOSITORY_ROOT
from tests.support.processes import GONE_WITHIN_S, living_with
from tests.support.random_games import random_game
from tournaments.bots.errors import BotError
from tournaments.bots.resolve import resolve_bot
from tournaments.bots.upload.limits import SubmittedFile, Upload
from tournaments.checking.report import Report
from tournaments.course.course import Course
from tournaments.course.model import Competition, CompetitionState, Competitor, Version, VersionState
from tournaments.database.location import Database
from tournaments.engines.base import Engine, OnSnapshot, OnStart
from tournaments.engines.local import open_local_engine
from tournaments.results.game_summary import PackedGame
from tournaments.results.store import Store
from tournaments.server import service as service_module
from tournaments.server.bot_provider import BotProvider, CannotPlayError
from tournaments.server.checks.bot_job import Answer, BotJob
from tournaments.server.competitions.tournament_manager import TournamentManager
from tournaments.server.competitions.tournament_spec import TournamentSpec
from tournaments.server.config import ServiceConfig
from tournaments.server.failures import Failures, kept_running
from tournaments.server.live_hub import Hub
from tournaments.server.service import Service
from tournaments.server.service_context import ServiceContext
from tournaments.server.slots import Slots

LIMIT_S = 900.0
"""Bound for events that take seconds; on a busy machine, each check of a bot may take its two minutes."""
ENDS_WITHIN_S = 60.0
"""Bound for the end of a service, which takes milliseconds and does not wait for unfinished work."""
POLL_S = 0.02
GAME = "kalah(4,3)"
STARTER = REPOSITORY_ROOT / "sample_bots" / "starters" / "python"
QUICK = ServiceConfig(slots=2, checks=1, retry_s=0.01, nice=1)
ANY_VERSION = Version(
    id=1, team_id=1, number=1, content="", files=1, size=1, submitted_at=NOW, submitted_by=1, origin="page",
    state=VersionState.QUEUED, attempts=0, decided_at=None, digest=None, failures=0, withdrawn=False,
)  # fmt: skip


async def until(condition: Callable[[], Any], within_s: float = LIMIT_S) -> None:
    """Wait for a condition that no event reports: of the database, or of another process."""
    with trio.fail_after(within_s):
        await trio.lowlevel.checkpoint()
        while not condition():  # noqa: ASYNC110
            await trio.sleep(POLL_S)


async def until_gone(mark: str) -> None:
    """Wait until no process has a text on its command line."""
    await until(lambda: not living_with(mark), GONE_WITHIN_S)


def lasting_command(number: int) -> str:
    """Return a shell command that lasts, and differs from all others on this machine."""
    return f"sleep {3600 + number + os.getpid() / 1e7:.7f}"


# Uploads


def starter() -> list[SubmittedFile]:
    """Return the files of the starter kit for Python."""
    return [SubmittedFile(name, (STARTER / name).read_bytes()) for name in ("bot.py", "bot.toml")]


def built_bot(build: str, made: str = "bot.py", **files: str) -> list[SubmittedFile]:
    """Return a bot whose build is a shell command; names of files have _ in place of the dot."""
    manifest = f"command = ['python3', 'bot.py']\nbuild = ['sh', '-c', {build!r}]\nmade = [{made!r}]\n"
    texts = {"bot.toml": manifest} | {name.replace("_", "."): text for name, text in files.items()}
    return [SubmittedFile(name, text.encode()) for name, text in texts.items()]


def upload(*files: SubmittedFile) -> Upload:
    return Upload(tuple(sorted(files, key=lambda file: file.path)))


def bot(number: int = 1) -> Upload:
    """Return the starter kit's bot with a file that makes it another upload."""
    return upload(*starter(), SubmittedFile("notes.txt", str(number).encode()))


# Services


@dataclass
class FakeChecks:
    """Replacement of check workers: each bot passes as soon as ``released`` is set."""

    begun: list[str] = field(default_factory=list)
    most: int = 0
    """Maximum number of checks at a time."""
    released: trio.Event = field(default_factory=trio.Event)
    _running: int = 0

    async def run_job(self, job: BotJob, *_: object, **__: object) -> Answer:
        self.begun.append(job.name)
        self._running += 1
        self.most = max(self.most, self._running)
        await self.released.wait()
        self._running -= 1
        return Answer(report=Report(job.name, (), "d", (), "", "", ()).to_json(), digest="d")


@dataclass
class ServiceHarness:
    """A service, and its course and database."""

    service: Service
    course: Course
    data: Path
    database: Database

    async def submit(self, team: str, files: Upload) -> Version:
        """Submit a team's next version; the team is added if there is none of the name."""
        found = self.course.teams.by_name(team) or self.course.teams.add(team, NOW)
        student = (self.course.accounts.of_team(found.id) or [add_student(self.course, found)])[0]
        version, is_new = await self.service.submit(files, found.id, student.id, "page", NOW)
        assert is_new
        return version

    def version(self, version_id: int) -> Version:
        found = self.course.versions.get(version_id)
        assert found is not None
        return found

    async def decided(self, version_id: int) -> Version:
        """Return a version after its check."""
        await until(lambda: self.version(version_id).state.is_decided)
        return self.version(version_id)


@asynccontextmanager
async def open_service(
    data: Path,
    config: ServiceConfig = QUICK,
    database: Database | None = None,
    limit_s: float = LIMIT_S,
    **settings: Any,
) -> AsyncIterator[ServiceHarness]:
    """Open the service of a directory.  Practice is off unless the settings say otherwise."""
    database = database or database_of(data)
    data.mkdir(parents=True, exist_ok=True)
    defaults = {"game": GAME, "sandbox_mode": "off", "practice_on": False, "references": []}
    with Course(database.course(), FAST_PASSWORDS) as course:
        course.settings.change(**defaults | settings)
        with trio.fail_after(limit_s):
            async with service_module.open_service(data, course, database, config, lambda: NOW) as service:
                yield ServiceHarness(service, course, data, database)


# Tournaments and practice


def first_games(number: int) -> Callable[[Job], bool]:
    """Return a condition for ``FakeEngine.allow`` that is true for this number of games."""
    numbers = count()
    return lambda _job: next(numbers) < number


class FakeEngine:
    """Engine without processes.  A game is a random one that ends as soon as it is allowed."""

    concurrency = 8

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.followed: dict[str, bool] = {}
        """Key -> True if snapshots of the game are requested."""
        self.waiting: list[str] = []
        """Keys of the games that wait until they are allowed."""
        self.error: Exception | None = None
        """Exception that is raised in place of waiting."""
        self._is_allowed: Callable[[Job], bool] = lambda _job: True
        self._changed = trio.Event()

    def allow(self, is_allowed: Callable[[Job], bool] = lambda _job: True) -> None:
        """Allow the games that meet a condition; by default, all."""
        self._is_allowed = is_allowed
        self._changed.set()
        self._changed = trio.Event()

    async def play(
        self, job: Job, on_start: OnStart | None = None, on_snapshot: OnSnapshot | None = None
    ) -> PackedGame:
        self.begun.append(job.key)
        self.followed[job.key] = on_snapshot is not None
        if on_start is not None:
            on_start("")
        await trio.lowlevel.checkpoint()
        while not self._is_allowed(job):
            with self._noted(job):
                if self.error is not None:
                    raise self.error
                await self._changed.wait()
        game = random_game(job.game, sum(job.key.encode()), job.opening)
        return PackedGame.of(replace(game, key=job.key, players=job.players))

    @contextmanager
    def _noted(self, job: Job) -> Iterator[None]:
        self.waiting.append(job.key)
        try:
            yield
        finally:
            self.waiting.remove(job.key)


@dataclass
class SampleBots:
    """Provider of sample bots: the content of a version is the text of a sample bot."""

    course: Course
    base: Path
    without_openings: set[str] = field(default_factory=set)
    """Names of bots that cannot take openings."""
    changed: set[str] = field(default_factory=set)
    """Names of bots whose files have changed."""
    broken: set[str] = field(default_factory=set)
    """Names of bots that cannot be started."""

    async def player(self, competitor: Competitor, game: str) -> Player:
        if competitor.name in self.broken:
            raise CannotPlayError(competitor.name, "it is broken", is_ours=True)
        text = competitor.reference
        if competitor.version_id is not None:
            version = self.course.versions.get(competitor.version_id)
            assert version is not None
            text = version.content
        try:
            player = resolve_bot(text or "", self.base, competitor.name, game)
        except BotError as error:
            raise CannotPlayError(competitor.name, str(error), is_ours=False) from error
        if competitor.name in self.without_openings:
            player = replace(player, capabilities=())
        return replace(player, digest="another") if competitor.name in self.changed else player

    async def sandbox(self, mode: str) -> Sandbox:
        return Sandbox()


@dataclass
class Harness:
    """A course with teams, and the parts of a service that play games."""

    context: ServiceContext
    bots: SampleBots
    engine: FakeEngine
    """The engine, unless the games are real ones."""

    @property
    def course(self) -> Course:
        return self.context.course

    def with_context(self, **changes: Any) -> "Harness":
        """Return the harness with another engine, for example."""
        return replace(self, context=replace(self.context, **changes))

    def version(self, team: str, content: str = "first_legal", at: datetime = NOW) -> Version:
        """Add a team's next version, which has qualified."""
        digest = resolve_bot(content, self.bots.base, team).digest
        return add_qualified(self.course, team, content, digest, at)

    def competition(self, competition_id: int) -> Competition:
        found = self.course.competitions.get(competition_id)
        assert found is not None
        return found

    def store(self, slug: str) -> Store:
        return Store(self.context.database.competition(slug), read_only=True)

    async def until_state(self, competition_id: int, *states: CompetitionState) -> Competition:
        """Return the competition as soon as it is in one of these states."""
        await until(lambda: self.competition(competition_id).state in states)
        return self.competition(competition_id)

    async def until_played(self, slug: str, games: int) -> None:
        """Wait until this number of games is stored."""
        with self.store(slug) as store:
            await until(lambda: len(store.played()) >= games)


@asynccontextmanager
async def open_harness(
    data: Path, slots: int = 2, database: Database | None = None, *, real_games: bool = False
) -> AsyncIterator[Harness]:
    """Open the parts of a directory's service that play games."""
    database = database or database_of(data)
    data.mkdir(exist_ok=True, parents=True)
    with Course(database.course(), FAST_PASSWORDS) as course:
        if course.settings.load().sandbox_mode != "off":
            course.settings.change(sandbox_mode="off")
        bots, fake = SampleBots(course, data), FakeEngine()
        async with _real_engine(data, slots) if real_games else _no_processes(fake) as engine:
            context = ServiceContext(
                data=data,
                course=course,
                database=database,
                config=ServiceConfig(slots=slots),
                now=lambda: NOW,
                bots=cast("BotProvider", bots),
                slots=Slots(slots),
                engine=engine,
                hub=Hub(lambda: NOW),
                failures=Failures(lambda: NOW),
            )
            yield Harness(context, bots, fake)


@asynccontextmanager
async def _real_engine(data: Path, slots: int) -> AsyncIterator[Engine]:
    async with open_local_engine(data, slots) as engine:
        yield engine


@asynccontextmanager
async def _no_processes(engine: FakeEngine) -> AsyncIterator[Engine]:
    yield engine


@asynccontextmanager
async def running(
    harness: Harness, pause_limit_s: float = math.inf, *, keeps_running: bool = False
) -> AsyncIterator[TournamentManager]:
    """Play the tournaments of a harness until the end of the block.

    With ``keeps_running``, they are taken up again after a failure, as in a service.
    """
    tournaments = TournamentManager(harness.context, pause_limit_s)
    try:
        async with trio.open_nursery() as nursery:
            if keeps_running:
                nursery.start_soon(kept_running, "tournaments", tournaments.run, harness.context.failures)
            else:
                nursery.start_soon(tournaments.run)
            await trio.testing.wait_all_tasks_blocked()
            yield tournaments
            nursery.cancel_scope.cancel()
    finally:
        tournaments.close()


def spec(**values: Any) -> TournamentSpec:
    """Return the choices for a tournament of tiny games."""
    tiny = {"title": "Cup", "game": "kalah(3,2)", "time": {"move_s": 20.0}}
    return TournamentSpec.read(tiny | values)
