"""Casual games of people against bots and one another.

Every move is in the course's database before it is acknowledged, and the database is authoritative: a
restarted server shows the games as they were, and bots go on from there.  Nothing is rated or kept for long.

A game is a ``Table`` as long as somebody needs it.  Its bot, if there is one, is played by a ``BotSession``,
which begins when it is needed, and ends when a person does not move for a while.  The rules alone decide on
people's moves; the referee decides on the bots'.
"""

import math
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import trio

from referee.errors import RefereeError
from referee.games.base import MoveError
from referee.games.catalog import AnyGame, parse_game
from referee.games.opening import OpeningError
from referee.games.spec import SpecError
from referee.judge.clock import SUSPEND, TimeControl
from referee.judge.results import Player
from referee.playing import Job
from referee.sandbox.detection import SandboxError
from tournaments.course.casual_games import CasualGame, CasualPlayer, with_move
from tournaments.course.model import Competitor, CourseError
from tournaments.course.settings import Settings
from tournaments.database.base import StoreError
from tournaments.engines.base import EngineError
from tournaments.engines.local import LocalEngine, open_local_engine
from tournaments.server.bot_provider import CannotPlayError
from tournaments.server.casual.bot_session import BotSession
from tournaments.server.casual.positions import Continuation, continuation, side_of, states_of
from tournaments.server.casual.seat import OPENINGS, seated_player
from tournaments.server.checks.qualifying import limits_of
from tournaments.server.metrics import PlayEnd
from tournaments.server.service_context import ServiceContext
from tournaments.server.slots import Kind

SCRATCH = "casual"
"""Subdirectory of the scratch directory, for the pipes and sockets of casual games."""
NICER_BY = 5
"""Nice value of casual games above that of other games: beside one of those, they get a quarter of a core.
With the highest value, 19, they get a twentieth, and a person waits for seconds in a tournament."""
HIGHEST_NICE = 19
SESSIONS_OF_SLOT = 4
"""Sessions for each slot of the server.  A session whose person thinks takes memory but no CPU time: about
100 MB for the worker and the bot together."""
IDLE_S = 60.0
"""Seconds without a move of the person after which a session ends; the next move begins another."""
MOST_OF_PERSON = 5
"""Maximum number of unfinished games against bots of one person."""
ABANDONED_AFTER = timedelta(hours=2)
"""Time without a move after which a game is over: nobody plays on, and its bot's session ended long ago."""
KEPT_FOR = timedelta(days=30)
"""Time for which a game can still be looked at after its end."""
MOST_KEPT = 10_000
"""Maximum number of ended games that are kept, of some 500 bytes each."""
SWEEP_S = 60.0
MOST_TABLES = 1_000
"""Tables in memory above which those that nobody watches are dropped."""
REFERENCE_MOVE_S = 2.0
"""Limit of a reference player's moves, in seconds: a person does not want to wait longer."""
PERSON_MOVE_S = 86_400.0
"""Limit of a person's moves for the referee; a session ends long before."""
PERSON = "a person"
ABANDONED = "Nobody moved for two hours."
OUR_FAILURES = (RefereeError, EngineError, SandboxError, SpecError, StoreError, CannotPlayError)


class NotYourTurnError(CourseError):
    """The move is for another position than the present one, for example sent twice."""


@dataclass(eq=False)
class Table:
    """A game in memory."""

    game: CasualGame
    rules: AnyGame
    states: list[Any]
    """State after the opening, and after each move."""
    changed: trio.Event = field(default_factory=trio.Event)
    """Event that is set, and replaced, at each change."""
    lock: trio.Lock = field(default_factory=trio.Lock)
    """Held during each change."""
    session: trio.CancelScope | None = None
    """Scope of the bot's session; None without one."""
    waits_for_person: bool = False
    """True while the session waits for a move of the person, and can end without harm."""
    since: float = 0.0
    """Time at which that wait began, in Trio's clock."""
    is_waiting: bool = False
    """True if the bot waits for a free slot."""
    trouble: str = ""
    """Sentence on why the bot does not go on; empty if it does."""
    watchers: int = 0

    @property
    def state(self) -> Any:
        """The present state."""
        return self.states[-1]

    @property
    def to_move(self) -> int | None:
        """Index of the player to move; None after the end."""
        if self.game.ended_at is not None or self.rules.outcome(self.state) is not None:
            return None
        return int(self.rules.to_move(self.state))

    @property
    def bot(self) -> int | None:
        """Index of the bot; None if two people play."""
        return next((index for index, player in enumerate(self.game.players) if player.is_bot), None)

    @property
    def is_open(self) -> bool:
        """True if a seat waits for a person."""
        return any(not player.is_bot and not player.owner for player in self.game.players)

    def side_of(self, owner: str) -> int | None:
        """Return the index of a person; None for a spectator."""
        return next((index for index, one in enumerate(self.game.players) if owner == one.owner), None)

    def wake(self) -> None:
        """Report a change."""
        self.changed.set()
        self.changed = trio.Event()


class CasualGames:
    """All casual games; see ``open_casual_games``."""

    def __init__(self, context: ServiceContext, engine: LocalEngine, scratch: Path) -> None:
        self._context, self._engine, self._scratch = context, engine, scratch
        self._tables: dict[str, Table] = {}
        self._opening = trio.Lock()
        self._nursery: trio.Nursery | None = None
        self._sessions: list[Table] = []
        """Tables with a session, the oldest first."""
        self._room = trio.CapacityLimiter(engine.concurrency)
        self._is_preparing = False

    async def run(self) -> None:
        """Run the bots of all games, until cancelled."""
        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            try:
                while True:
                    await self._sweep()
                    await trio.sleep(SWEEP_S)
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

    async def start(
        self, game: str, players: tuple[CasualPlayer, CasualPlayer], start: Continuation | None = None
    ) -> CasualGame:
        """Start a game of players with their seats, perhaps from a position.

        Raises CourseError if the game cannot be played, or if a person has too many; StoreError.
        """
        for player in players:
            if player.owner and any(one.is_bot for one in players):
                self._check_number(player.owner)
        try:
            rules = parse_game(game)
        except SpecError as error:
            raise CourseError(str(error)) from error
        opening = "" if start is None else start.opening
        try:
            states_of(rules, opening, ())
        except OpeningError as error:
            raise CourseError(f"no game can begin in this position: {error}") from error
        now = self._context.now()
        added = await trio.to_thread.run_sync(
            self._context.course.casual_games.add, rules.name, opening, players, now
        )
        table = self._add(added)
        self._begin_session(table)
        return added

    def _check_number(self, owner: str) -> None:
        unfinished = [table for table in self.unfinished(owner) if table.bot is not None]
        if len(unfinished) >= MOST_OF_PERSON:
            raise CourseError(
                f"you have {len(unfinished)} unfinished games against bots: finish or resign one first"
            )

    def unfinished(self, owner: str) -> list[Table]:
        """Return the unfinished games of a person since the start of the server, newest first."""
        tables = [
            table
            for table in self._tables.values()
            if table.game.ended_at is None and table.side_of(owner) is not None
        ]
        return sorted(tables, key=lambda table: -table.game.id)

    async def table(self, address: str) -> Table | None:
        """Return the game at an address.  Raises StoreError."""
        found = self._tables.get(address)
        if found is None:
            async with self._opening:
                found = self._tables.get(address)
                if found is None:
                    game = await trio.to_thread.run_sync(
                        self._context.course.casual_games.by_address, address
                    )
                    if game is None:
                        return None
                    found = self._add(game)
        return found

    def _add(self, game: CasualGame) -> Table:
        if len(self._tables) >= MOST_TABLES:
            for address in [address for address, one in self._tables.items() if self._is_idle(one)]:
                del self._tables[address]
        rules = parse_game(game.game)
        table = Table(game, rules, states_of(rules, game.opening, game.moves))
        self._tables[game.address] = table
        return table

    @staticmethod
    def _is_idle(table: Table) -> bool:
        return table.session is None and not table.watchers and not table.lock.locked()

    @contextmanager
    def watch(self, table: Table) -> Iterator[None]:
        """Keep a table in memory during the block, and its bot playing."""
        table.watchers += 1
        try:
            self._begin_session(table)
            yield
        finally:
            table.watchers -= 1

    # Actions of people.

    async def move(self, table: Table, owner: str, ply: int, text: str) -> None:
        """Play a person's move; it is on the disk when this method returns.

        ``ply`` is the number of moves before it, without the opening's.  Raises NotYourTurnError, CourseError
        if the move is not legal, StoreError.
        """
        async with table.lock:
            side = self._own_side(table, owner)
            if table.is_open:
                raise NotYourTurnError("nobody has the other seat yet: pass the link of this page on")
            if table.to_move != side or ply != len(table.game.moves):
                raise NotYourTurnError("it is not your turn in this position")
            await self._play(table, text)
        self._begin_session(table)

    async def _play(self, table: Table, text: str) -> None:
        """Store one more move, of whichever player has the turn.  Raises CourseError, StoreError."""
        rules, state = table.rules, table.state
        try:
            move = rules.parse_move(state, text)
            after = rules.apply(state, move)
        except MoveError as error:
            raise CourseError(f"this move is not possible: {error.message}") from error
        now = self._context.now()
        game = with_move(table.game, rules.format_move(state, move), now)
        outcome = rules.outcome(after)
        if outcome is not None:
            game = replace(
                game,
                ended_at=now,
                winner=None if outcome.winner is None else int(outcome.winner),
                sentence=_outcome_sentence(game, outcome.score, outcome.winner, outcome.detail),
            )
        await self._save(table, game)
        if outcome is not None:
            self._context.metrics.play_ended(PlayEnd.RULES)
        table.states.append(after)
        table.trouble = ""
        table.wake()

    async def take_back(self, table: Table, owner: str) -> None:
        """Take back a person's last move, and what the bot replied.  Raises CourseError, StoreError."""
        async with table.lock:
            side = self._own_side(table, owner)
            if table.bot is None:
                raise CourseError("moves against a person cannot be taken back")
            if not await self._takes_openings(table):
                raise CourseError(
                    "this bot cannot go on from an earlier position (capability openings): start a new game"
                )
            own = [
                ply
                for ply in range(len(table.game.moves))
                if int(table.rules.to_move(table.states[ply])) == side
            ]
            if not own:
                raise CourseError("there is no move of yours to take back")
            self._end_session(table)
            game = replace(
                table.game,
                moves=table.game.moves[: own[-1]],
                revision=table.game.revision + 1,
                changed_at=self._context.now(),
            )
            await self._save(table, game)
            del table.states[own[-1] + 1 :]
            table.trouble = ""
            table.wake()
        self._begin_session(table)

    async def resign(self, table: Table, owner: str) -> None:
        """Give a game up.  Raises CourseError, StoreError."""
        async with table.lock:
            side = self._own_side(table, owner)
            loser, winner = table.game.players[side], table.game.players[1 - side]
            has_opponent = winner.is_bot or bool(winner.owner)
            sentence = f"{loser.name} resigned." if has_opponent else f"{loser.name} ended the game."
            await self._end(table, 1 - side if has_opponent else None, sentence, PlayEnd.RESIGNED)
            self._end_session(table)

    async def join(self, table: Table, owner: str, name: str) -> None:
        """Give the open seat of a game to a person.  Raises CourseError, StoreError."""
        async with table.lock:
            if table.game.ended_at is not None:
                raise CourseError("this game is over")
            if table.side_of(owner) is not None:
                return
            if not table.is_open:
                raise CourseError("both seats of this game are taken; you can watch it")
            seats = tuple(
                replace(one, owner=owner, name=name) if not one.is_bot and not one.owner else one
                for one in table.game.players
            )
            await self._save(
                table, replace(table.game, players=(seats[0], seats[1]), changed_at=self._context.now())
            )
            table.wake()

    def retry(self, table: Table) -> None:
        """Start the bot again after a failure."""
        table.trouble = ""
        self._begin_session(table)
        table.wake()

    def _own_side(self, table: Table, owner: str) -> int:
        side = table.side_of(owner)
        if side is None:
            raise CourseError("you are not one of the players of this game")
        if table.game.ended_at is not None:
            raise CourseError("this game is over")
        return side

    async def _save(self, table: Table, game: CasualGame) -> None:
        """Store a game.  The change is complete, or nothing has changed."""
        with trio.CancelScope(shield=True):  # a connection that is lost leaves memory and disk alike
            await trio.to_thread.run_sync(self._context.course.casual_games.save, table.game, game)
            table.game = game

    async def _end(self, table: Table, winner: int | None, sentence: str, end: PlayEnd) -> None:
        now = self._context.now()
        game = replace(table.game, ended_at=now, changed_at=now, winner=winner, sentence=sentence)
        await self._save(table, game)
        self._context.metrics.play_ended(end)
        table.wake()

    # Bots.

    def _begin_session(self, table: Table) -> None:
        """Begin a session unless there is one, or nothing for the bot to do."""
        bot = table.bot
        if self._nursery is None or bot is None or table.session is not None or table.trouble:
            return
        if table.to_move is None or (table.game.moves and table.to_move != bot):
            return
        table.session = trio.CancelScope()
        self._nursery.start_soon(self._run_session, table, table.session)

    def _end_session(self, table: Table) -> None:
        if table.session is not None:
            table.session.cancel()
            table.session = None

    async def _run_session(self, table: Table, scope: trio.CancelScope) -> None:
        trouble = ""
        revision = table.game.revision
        try:
            with scope:
                table.is_waiting = True
                self._make_room()
                async with self._room:
                    self._sessions.append(table)
                    try:
                        await self._play_session(table, revision)
                    finally:
                        self._sessions.remove(table)
        except OUR_FAILURES as error:
            self._context.failures.note("casual games", str(error))
            trouble = f"The bot cannot play: {error}"
        except CourseError as error:  # the game was changed by another process, or cannot go on
            trouble = f"The bot cannot play on: {error}"
        finally:
            if table.session is scope:
                table.session = None
                table.is_waiting = table.waits_for_person = False
                table.trouble = trouble
                table.wake()
        if table.to_move == table.bot and table.session is None and not trouble and not scope.cancel_called:
            self._begin_session(table)  # the person moved just when the session ended

    async def _play_session(self, table: Table, revision: int) -> None:
        bot = table.bot
        assert bot is not None
        before = len(table.game.moves)
        try:
            start = continuation(table.rules, table.game.opening, table.game.moves)
        except OpeningError as error:
            raise CourseError(str(error)) from error
        player = await self._player(table)
        takes_openings = OPENINGS in player.capabilities
        if start.opening and not takes_openings:
            raise CourseError(
                "it cannot begin in the middle of a game (capability openings), as after a restart"
            )
        job, person = await self._job(table, player, start)

        async def on_move(text: str) -> None:
            async with table.lock:
                if table.game.revision == revision and table.to_move == bot:
                    await self._play(table, text)

        async def next_move(number: int) -> str | None:
            while len(table.game.moves) <= before + number:
                if table.game.ended_at is not None:
                    return None
                idle_s = IDLE_S if takes_openings else math.inf
                if takes_openings and self._room.statistics().tasks_waiting:
                    idle_s = 0.0  # others wait for the room of this session
                table.waits_for_person, table.since = takes_openings, trio.current_time()
                try:
                    with trio.move_on_after(idle_s) as waiting:
                        await table.changed.wait()
                finally:
                    table.waits_for_person = False
                if waiting.cancelled_caught:
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
                # The referee ended the game before the rules did: by a fault of the bot.
                await self._end(table, 1 - bot, result.detail, PlayEnd.FAULT)

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

    async def _takes_openings(self, table: Table) -> bool:
        try:
            return OPENINGS in (await self._player(table)).capabilities
        except CannotPlayError as error:
            raise CourseError(str(error)) from error

    def _make_room(self) -> None:
        """End the session whose person has thought longest, if there is no room for another."""
        if self._room.available_tokens >= 1:
            return
        idle = [table for table in self._sessions if table.waits_for_person]
        if idle:
            self._end_session(min(idle, key=lambda table: table.since))

    async def _sweep(self) -> None:
        """End abandoned games, and delete old ones."""
        now, games = self._context.now(), self._context.course.casual_games
        ended = await trio.to_thread.run_sync(games.abandon, now - ABANDONED_AFTER, now, ABANDONED)
        self._context.metrics.play_ended(PlayEnd.ABANDONED, len(ended))
        for address in ended:
            table = self._tables.get(address)
            if table is not None:
                async with table.lock:
                    stored = await trio.to_thread.run_sync(games.by_address, address)
                    table.game = table.game if stored is None else stored
                    self._end_session(table)
                    table.wake()
        await trio.to_thread.run_sync(games.remove, now - KEPT_FOR, MOST_KEPT)


def _outcome_sentence(game: CasualGame, score: tuple[int, int], winner: int | None, detail: str) -> str:
    cause = f" ({detail})" if detail else ""
    if winner is None:
        return f"It is a draw, {score[0]} to {score[1]}{cause}."
    return f"{game.players[winner].name} won {score[winner]} to {score[1 - winner]}{cause}."


@asynccontextmanager
async def open_casual_games(context: ServiceContext, scratch: Path) -> AsyncIterator[CasualGames]:
    """Open the casual games of a service.  Bots play as long as ``run`` does."""
    folder = scratch / SCRATCH
    await trio.to_thread.run_sync(lambda: folder.mkdir(mode=0o700, parents=True, exist_ok=True))
    sessions = SESSIONS_OF_SLOT * context.slots.total
    nice = min(HIGHEST_NICE, context.config.nice + NICER_BY)
    async with open_local_engine(folder, sessions, nice=nice) as engine:
        yield CasualGames(context, engine, folder)
