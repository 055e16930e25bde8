"""Pool of the sessions in which bots play casual games, with room for a fixed number at a time.

A session begins when there is something for a bot to do, and ends when a person does not move for a while, or
when another session needs its room.
"""

from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path

import trio

from referee.errors import RefereeError, unexpected_errors_as_referee_errors
from referee.games.opening import OpeningError
from referee.games.spec import SpecError
from referee.judge.clock import SUSPEND, TimeControl
from referee.judge.results import Player
from referee.playing import Job
from referee.sandbox.detection import SandboxError
from tournaments.course.casual_games import CasualPlayer
from tournaments.course.model import Competitor, CourseError
from tournaments.course.settings import Settings
from tournaments.database.base import StoreError
from tournaments.engines.base import EngineError
from tournaments.engines.local import LocalEngine
from tournaments.server.bot_provider import CannotPlayError
from tournaments.server.casual.bot_session import BotSession
from tournaments.server.casual.positions import Continuation, continuation, side_of
from tournaments.server.casual.seat import OPENINGS, seated_player
from tournaments.server.casual.table import Table, TableChanges
from tournaments.server.checks.qualifying import limits_of
from tournaments.server.metrics import PlayEnd
from tournaments.server.service_context import ServiceContext
from tournaments.server.slots import Kind

IDLE_S = 60.0
"""Seconds without a move of the person after which a session ends; the next move begins another."""
MOST_IDLE_TIMES = 15
"""Multiple of IDLE_S after which the session of a bot that takes no openings ends, too, although the page is
open: a quarter of an hour is long for a move, and others may need the session's room."""
REFERENCE_MOVE_S = 2.0
"""Limit of a reference player's moves, in seconds: a person does not want to wait longer."""
PERSON_MOVE_S = 86_400.0
"""Limit of a person's moves for the referee; a session ends long before."""
PERSON = "a person"
CANNOT_RUN = "The bot cannot play: the server could not run it. Try again, or play against another bot."
"""Sentence for players after a failure of the server, whose reason may contain paths and addresses."""
OUR_FAILURES = (RefereeError, EngineError, SandboxError, SpecError, StoreError, CannotPlayError)


class SessionPool:
    """Sessions of all tables; they begin while ``run_sessions`` runs."""

    def __init__(
        self,
        context: ServiceContext,
        engine: LocalEngine,
        scratch: Path,
        changes: TableChanges,
        versions: int,
    ) -> None:
        """``versions`` is the maximum number of sessions of teams' bots."""
        self._context, self._engine, self._scratch, self._changes = context, engine, scratch, changes
        self._nursery: trio.Nursery | None = None
        self._sessions: list[Table] = []
        """Tables with a session, the oldest first."""
        self._room = trio.CapacityLimiter(engine.concurrency)
        self._room_of_versions = trio.CapacityLimiter(versions)
        self._is_preparing = False

    async def run_sessions(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Run the sessions, until cancelled."""
        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            task_status.started()
            try:
                await trio.sleep_forever()
            finally:
                self._nursery = None

    def prepare(self) -> None:
        """Start a worker if none is free: somebody is choosing a game, which takes longer."""
        if self._nursery is not None and not self._is_preparing and self._room.available_tokens >= 1:
            self._is_preparing = True
            self._nursery.start_soon(self._prepare)

    async def _prepare(self) -> None:
        try:
            await self._engine.check()
        except EngineError as error:
            self._context.failures.note("casual games", str(error))
        finally:
            self._is_preparing = False

    def begin(self, table: Table) -> None:
        """Begin a session if there is none, the bot has something to do, and ``run_sessions`` runs."""
        bot = table.bot
        if self._nursery is None or bot is None or table.session is not None or table.trouble:
            return
        if table.to_move is None or (table.game.moves and table.to_move != bot):
            return
        table.session = trio.CancelScope()
        self._nursery.start_soon(self._run, table, table.session)

    def end(self, table: Table) -> None:
        """End a table's session, if there is one."""
        if table.session is not None:
            table.session.cancel()
            table.session = None

    async def _run(self, table: Table, scope: trio.CancelScope) -> None:
        trouble = ""
        revision = table.game.revision
        try:
            with scope:
                table.is_waiting = True
                async with AsyncExitStack() as stack:
                    for room in self._rooms(table):
                        self._make_room(room)
                        await stack.enter_async_context(room)
                    self._sessions.append(table)
                    try:
                        with unexpected_errors_as_referee_errors(*OUR_FAILURES, CourseError):
                            await self._play(table, revision)
                    finally:
                        self._sessions.remove(table)
        except OUR_FAILURES as error:
            trouble = self._note_failure(error)
        except CourseError as error:  # the game was changed by another process, or cannot go on
            trouble = f"The bot cannot play on: {error}"
        finally:
            if table.session is scope:
                table.session = None
                table.is_waiting = table.waits_for_person = False
                table.trouble = trouble
                table.wake()
        if table.waits_for_bot and table.session is None and not scope.cancel_called:
            self.begin(table)  # the person moved just when the session ended

    async def _play(self, table: Table, revision: int) -> None:
        bot = table.bot
        assert bot is not None
        player = await self._player(table)
        takes_openings = OPENINGS in player.capabilities
        before = len(table.game.moves)
        if not takes_openings and not table.has_moved(bot):
            before = 0  # it plays the game from its beginning, and is sent the moves made so far
        try:
            start = continuation(table.rules, table.game.opening, table.game.moves[:before])
        except OpeningError as error:
            raise CourseError(str(error)) from error
        if start.opening and not takes_openings:
            raise CourseError(
                "it cannot begin in the middle of a game (capability openings), as after a long pause"
            )
        job, person = await self._job(table, player, start)

        async def on_move(text: str) -> None:
            async with table.lock:
                if table.game.revision == revision and table.to_move == bot:
                    await self._changes.play(table, text)

        async def next_move(number: int) -> str | None:
            idle_times = 0
            while len(table.game.moves) <= before + number:
                if table.game.ended_at is not None:
                    return None
                # The game of a bot that takes no openings ends with its session, so the person has longer.
                has_longer = not takes_openings and table.watchers > 0
                others_wait = takes_openings and any(
                    room.statistics().tasks_waiting > 0 for room in self._rooms(table)
                )
                table.waits_for_person, table.since = takes_openings, trio.current_time()
                try:
                    with trio.move_on_after(0.0 if others_wait else IDLE_S) as waiting:
                        await table.changed.wait()
                finally:
                    table.waits_for_person = False
                idle_times += waiting.cancelled_caught
                if waiting.cancelled_caught and not (has_longer and idle_times < MOST_IDLE_TIMES):
                    return None
            return table.game.moves[before + number]

        def on_waiting(is_waiting: bool) -> None:
            if table.is_waiting != is_waiting:
                table.is_waiting = is_waiting
                table.wake()

        await self._engine.check()  # a worker may have to be started, which needs no slot
        slot = partial(self._context.slots.taken, Kind.PLAY)
        session = BotSession(
            self._engine, job, table.rules, person, self._scratch, slot, on_move, on_waiting, next_move
        )
        result = await session.run()
        async with table.lock:
            if result is not None and table.game.ended_at is None and table.game.revision == revision:
                # The referee ended the game before the rules did.
                if result.winner != person:  # no fault of the bot, and a person can make none
                    raise RefereeError(result.detail)
                await self._changes.end(table, 1 - bot, result.detail, PlayEnd.FAULT)

    async def _job(self, table: Table, bot: Player, start: Continuation) -> tuple[Job, int]:
        """Return the game from a position on, and the index of the person in it."""
        settings = await trio.to_thread.run_sync(self._context.course.settings.load)
        sandbox = await self._context.bots.sandbox(settings.sandbox_mode)
        assert table.bot is not None
        seated = [seated_player(one.name, PERSON) if not one.is_bot else bot for one in table.game.players]
        patient = TimeControl(move_s=PERSON_MOVE_S)
        controls = [None if one.is_bot else patient for one in table.game.players]
        if start.is_exchanged:
            seated.reverse()
            controls.reverse()
        job = Job(
            f"casual-{table.game.id}",
            table.game.game,
            (seated[0], seated[1]),
            self._control(settings, table.game.players[table.bot]),
            limits_of(settings),
            start.opening,
            sandbox,
            own_controls=(controls[0], controls[1]),
        )
        return job, side_of(start.is_exchanged, 1 - table.bot)

    @staticmethod
    def _control(settings: Settings, player: CasualPlayer) -> TimeControl:
        if player.reference:
            return TimeControl(move_s=REFERENCE_MOVE_S, ponder=SUSPEND)
        return replace(settings.control(), ponder=SUSPEND)

    async def _player(self, table: Table) -> Player:
        assert table.bot is not None
        one = table.game.players[table.bot]
        competitor = Competitor(0, one.name, one.version_id, one.reference or None)
        return await self._context.bots.player(competitor, table.game.game)

    async def takes_openings(self, table: Table) -> bool:
        """Return whether a table's bot can begin in the middle of a game.  Raises CourseError."""
        try:
            return OPENINGS in (await self._player(table)).capabilities
        except CannotPlayError as error:
            raise CourseError(self._note_failure(error)) from error

    def _note_failure(self, error: Exception) -> str:
        """Note a failure for the operator, and return the sentence that players see."""
        self._context.failures.note("casual games", str(error))
        is_of_bot = isinstance(error, CannotPlayError) and not error.is_ours
        return f"The bot cannot play: {error}" if is_of_bot else CANNOT_RUN

    def _rooms(self, table: Table) -> list[trio.CapacityLimiter]:
        """Return the limits that a table's session is counted for."""
        assert table.bot is not None
        is_reference = bool(table.game.players[table.bot].reference)
        return [self._room] if is_reference else [self._room_of_versions, self._room]

    def _make_room(self, room: trio.CapacityLimiter) -> None:
        """End the session whose person has thought longest, if there is no room for another."""
        if room.available_tokens >= 1:
            return
        idle = [
            table
            for table in self._sessions
            # ``waits_for_person`` is still true after a move until the session's task runs.
            if table.waits_for_person and table.to_move != table.bot and room in self._rooms(table)
        ]
        if idle:
            self.end(min(idle, key=lambda table: table.since))
