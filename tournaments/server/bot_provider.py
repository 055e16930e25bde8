"""Players of a competition: competitors resolved to bots that can be started."""

from collections import Counter, defaultdict
from dataclasses import replace

import trio

from referee.games.spec import SpecError
from referee.judge.results import Player
from referee.sandbox.bubblewrap import Sandbox
from referee.sandbox.detection import SandboxError, find_sandbox
from sample_bots.catalog import needs_kernels
from tournaments.bots.build import BUILD_LIMIT_S
from tournaments.bots.errors import BotError
from tournaments.course.course import Course
from tournaments.course.model import Competitor
from tournaments.server.bot_storage import BotStorage, NotBuiltError
from tournaments.server.checks.bot_job import Answer, BotJob, Task, player_of
from tournaments.server.checks.bot_worker import WorkerError, run_job
from tournaments.server.config import ServiceConfig

MARGIN_S = 60.0
"""Seconds for the work around a build.

That is starting a worker on a busy machine, copying files, waiting for the disk.
"""
WORKERS = 2
"""Builds at a time.  Few are needed: bots that were checked are built, except those of a restored backup."""
COMPILERS = 1
"""Reference players that are compiled at a time, beside the builds.

Compilation takes a minute, once on a machine, and all of these players need the same code: the others wait
for the first, and no other bot waits.
"""
MAX_KEPT = 2000
"""Maximum number of players that are cached; a course has some hundred."""


class CannotPlayError(Exception):
    """A bot cannot be started; the message gives the reason."""

    def __init__(self, name: str, why: str, *, is_ours: bool) -> None:
        super().__init__(f"{name}: {why}")
        self.name = name
        """Name of the bot."""
        self.is_ours = is_ours
        """True if the host, and not the bot, is at fault."""


class BotProvider:
    """Provider of players.  At its first use a bot is compared with its digest, and built if needed."""

    def __init__(self, course: Course, storage: BotStorage, config: ServiceConfig) -> None:
        self._course, self._storage, self._config = course, storage, config
        self._ready: dict[tuple[str, str], Player] = {}
        self._asked: Counter[str] = Counter()
        """Submission -> number of calls of ``player`` that have not returned."""
        self._handed_out: dict[str, float] = {}
        """Submission -> moment at which its player was returned last, as of ``trio.current_time``."""
        self._making: defaultdict[tuple[str, str], trio.Lock] = defaultdict(trio.Lock)
        self._workers = trio.CapacityLimiter(WORKERS)
        self._compilers = trio.CapacityLimiter(COMPILERS)

    async def sandbox(self, mode: str) -> Sandbox:
        """Return the sandbox of one of ``referee.sandbox.detection``'s modes.  Raises SandboxError."""
        return await trio.to_thread.run_sync(find_sandbox, mode)

    async def player(self, competitor: Competitor, game: str) -> Player:
        """Return the player of a competitor, under its name, built with the course's current settings.

        Raises CannotPlayError, StoreError.  A bot that was built anew may have another digest than its
        version: compilers need not write the same twice.
        """
        content = ""
        if competitor.version_id is not None:
            version = await trio.to_thread.run_sync(self._course.versions.get, competitor.version_id)
            if version is None:
                raise CannotPlayError(competitor.name, "its version is not there any more", is_ours=True)
            content = version.content
        key = (content or f"reference {competitor.reference}", game)
        self._asked[content] += 1
        try:
            async with self._making[key]:  # the same player is built only once
                player = self._ready.get(key) or await self._make(competitor, content, game)
        finally:
            self._asked[content] -= 1
        self._handed_out[content] = trio.current_time()
        if len(self._ready) >= MAX_KEPT:
            self._ready.clear()
            self._making.clear()
        self._ready[key] = player
        return replace(player, name=competitor.name)

    def forget(self, content: str) -> None:
        """Drop a submission's cached players, because the bot was checked and perhaps built anew."""
        for key in [key for key in self._ready if key[0] == content]:
            del self._ready[key]

    def is_in_use(self, content: str, within_s: float) -> bool:
        """Return whether a submission's player is being made, or was returned at most ``within_s`` ago."""
        handed_out = self._handed_out.get(content)
        is_new = handed_out is not None and trio.current_time() - handed_out < within_s
        return bool(self._asked[content]) or is_new

    async def _make(self, competitor: Competitor, content: str, game: str) -> Player:
        name = competitor.name
        if not content:
            task = BotJob(Task.REFERENCE, name, game, reference=competitor.reference or "")
            answer = await self._ask(task)
            if answer.player is None:
                raise CannotPlayError(name, answer.ours or answer.wrong, is_ours=True)
            return player_of(answer.player)
        for is_last_try in (False, True):
            try:
                return await trio.to_thread.run_sync(self._storage.player, content, name, game)
            except (BotError, SpecError) as error:
                raise CannotPlayError(name, str(error), is_ours=False) from error
            except NotBuiltError as error:
                if is_last_try:
                    raise CannotPlayError(name, str(error), is_ours=True) from error
            answer = await self._ask(self._storage.job(Task.BUILD, content, name, game))
            if answer.ours or answer.wrong:
                raise CannotPlayError(name, answer.ours or answer.wrong, is_ours=bool(answer.ours))
        raise AssertionError("the second try returns or raises")

    async def _ask(self, job: BotJob) -> Answer:
        settings = await trio.to_thread.run_sync(self._course.settings.load)
        try:
            sandbox = await self.sandbox(settings.sandbox_mode)
            async with self._compilers if needs_kernels(job.reference) else self._workers:
                return await run_job(
                    replace(job, sandbox=sandbox, nice=self._config.nice),
                    lambda _line: None,
                    within_s=BUILD_LIMIT_S + MARGIN_S,
                    shutdown_s=self._config.shutdown_s,
                )
        except (SandboxError, WorkerError) as error:
            raise CannotPlayError(job.name, str(error), is_ours=True) from error
