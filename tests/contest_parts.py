"""What the server's tournaments need, for tests: a real course, store, engine; sample bots as uploads."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, cast

import trio
import trio.testing

from referee.judge.results import Player
from referee.sandbox.bubblewrap import Sandbox
from tests.courses import CHEAP, NO_CHECK, NOW, a_student
from tests.databases import database_of
from tournaments.bots.errors import BotError
from tournaments.bots.resolve import resolve_bot
from tournaments.course.course import Course
from tournaments.course.model import Competition, CompetitionState, Competitor, Version, VersionState
from tournaments.database.location import Database
from tournaments.engines.local import open_local_engine
from tournaments.results.store import Store
from tournaments.server.bot_provider import BotProvider, CannotPlayError
from tournaments.server.competitions.tournament_manager import TournamentManager
from tournaments.server.competitions.tournament_spec import TournamentSpec
from tournaments.server.config import ServiceConfig
from tournaments.server.failures import Failures
from tournaments.server.live_hub import Hub
from tournaments.server.service_context import ServiceContext
from tournaments.server.slots import Slots

LIMIT_S = 60.0
"""Bound for what takes seconds."""
LOOK_S = 0.01
"""How often it is looked for something to come about."""


async def until(condition: Callable[[], bool]) -> None:
    """Wait for something to come about."""
    with trio.fail_after(LIMIT_S):
        await trio.lowlevel.checkpoint()
        while not condition():  # noqa: ASYNC110 - of the database, or another process
            await trio.sleep(LOOK_S)


@dataclass
class SampleBots:
    """Makes players as ``players.Bots`` does; the content of a version is the text of a sample bot."""

    course: Course
    base: Path
    without_openings: set[str] = field(default_factory=set)
    """Names of bots that cannot take openings."""
    changed: set[str] = field(default_factory=set)
    """Names of bots whose files are other ones than before."""
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
        values: dict[str, Any] = {}
        if competitor.name in self.without_openings:
            values["capabilities"] = ()
        if competitor.name in self.changed:
            values["digest"] = "another"
        return Player(**{**{name: getattr(player, name) for name in player.__slots__}, **values})

    async def sandbox(self, mode: str) -> Sandbox:
        return Sandbox()


@dataclass
class World:
    """A course with teams, and a server's parts that play there."""

    parts: ServiceContext
    bots: SampleBots

    @property
    def course(self) -> Course:
        return self.parts.course

    def version(self, team: str, content: str = "first_legal", at: datetime = NOW) -> Version:
        """Another version of a team's, which qualified; the team is made if there is none."""
        found = self.course.teams.by_name(team) or self.course.teams.add(team, NOW)
        student = self.course.accounts.of_team(found.id)
        by = student[0] if student else a_student(self.course, found)
        version, _ = self.course.versions.add(found.id, content, 1, 100, by.id, "page", at)
        self.course.versions.begin_check(version.id)
        digest = resolve_bot(content, self.bots.base, team).digest
        return self.course.versions.decide(version.id, VersionState.QUALIFIED, NO_CHECK, digest, 0, at)

    def competition(self, competition_id: int) -> Competition:
        found = self.course.competitions.get(competition_id)
        assert found is not None
        return found

    def store(self, slug: str) -> Store:
        return Store(self.parts.database.competition(slug), read_only=True)

    async def until_state(self, competition_id: int, *states: CompetitionState) -> Competition:
        """The competition, once it is in one of these states."""
        await until(lambda: self.competition(competition_id).state in states)
        return self.competition(competition_id)

    async def until_played(self, slug: str, games: int) -> None:
        """Wait until so many games are kept."""
        with self.store(slug) as store:
            await until(lambda: len(store.played()) >= games)


@asynccontextmanager
async def open_world(data: Path, places: int = 2, database: Database | None = None) -> AsyncIterator[World]:
    """A world in a folder, or what was left of it there."""
    database = database or database_of(data)
    data.mkdir(exist_ok=True, parents=True)
    with Course(database.course(), CHEAP) as course:
        if course.settings.load().sandbox_mode != "off":
            course.settings.save(course.settings.load().model_copy(update={"sandbox_mode": "off"}))
        bots = SampleBots(course, data)
        async with open_local_engine(data, places) as engine:
            config = ServiceConfig(slots=places)
            hub, failures = Hub(lambda: NOW), Failures(lambda: NOW)
            parts = ServiceContext(
                data,
                course,
                database,
                config,
                lambda: NOW,
                cast("BotProvider", bots),
                Slots(places),
                engine,
                hub,
                failures,
            )
            yield World(parts, bots)


@asynccontextmanager
async def running(world: World, patience_s: float = LIMIT_S) -> AsyncIterator[TournamentManager]:
    """The tournaments of a world, played until the end of the block."""
    contests = TournamentManager(world.parts, patience_s)
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(contests.run)
            await trio.testing.wait_all_tasks_blocked()
            yield contests
            nursery.cancel_scope.cancel()
    finally:
        contests.close()


def spec(**values: Any) -> TournamentSpec:
    """A tournament of tiny games."""
    tiny = {"title": "Cup", "game": "kalah(3,2)", "time": {"move_s": 20.0}}
    return TournamentSpec.read(tiny | values)
