"""Casual games of people against bots and one another.

Every move is in the course's database before it is acknowledged, and the database is authoritative: a
restarted server shows the games as they were, and bots go on from there.  Nothing is rated or kept for long.

A game is a ``Table`` as long as somebody needs it.  Its bot, if there is one, is played by a ``BotSession``,
which begins when it is needed, and ends when a person does not move for a while.  The rules alone decide on
people's moves; the referee decides on the bots'.
"""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import trio

from referee.games.catalog import parse_game
from referee.games.opening import OpeningError
from referee.games.spec import SpecError
from tournaments.course.casual_games import CasualGame, CasualPlayer
from tournaments.course.model import CourseError
from tournaments.database.base import StoreError
from tournaments.engines.local import LocalEngine, open_local_engine
from tournaments.server.casual.positions import Continuation, states_of
from tournaments.server.casual.session_pool import SessionPool
from tournaments.server.casual.table import NotYourTurnError, Table, TableChanges
from tournaments.server.metrics import PlayEnd
from tournaments.server.service_context import ServiceContext

SCRATCH = "casual"
"""Subdirectory of the scratch directory, for the pipes and sockets of casual games."""
NICER_BY = 5
"""Nice value of casual games above that of other games: beside one of those, they get a quarter of a core.
With the highest value, 19, they get a twentieth, and a person waits for seconds in a tournament."""
HIGHEST_NICE = 19
SESSIONS_OF_SLOT = 12
"""Sessions for each slot of the server.  A session whose person thinks takes memory but no CPU time: 20 MB
for the worker, and what the bot holds.  With fewer sessions than people, nearly every move starts a bot
again; docs/decisions.md has what that costs."""
VERSIONS_OF_SLOT = 4
"""Sessions for each slot that may be of teams' bots.  With the default limit of memory, so many can hold no
more than the machine has (``default_memory_mb``: a quarter of it for each slot)."""
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
ABANDONED = "Nobody moved for two hours."


class CasualGames:
    """All casual games; see ``open_casual_games``."""

    def __init__(self, context: ServiceContext, engine: LocalEngine, scratch: Path) -> None:
        self._context = context
        self._tables: dict[str, Table] = {}
        self._opening = trio.Lock()
        self._changes = TableChanges(context)
        versions = VERSIONS_OF_SLOT * context.slots.total
        self._sessions = SessionPool(context, engine, scratch, self._changes, versions)

    async def run(self) -> None:
        """Run the bots of all games, until cancelled."""
        async with trio.open_nursery() as nursery:
            await nursery.start(self._sessions.run_sessions)
            # Sessions that could not begin before, and those that ended with an earlier run
            for table in self._tables.values():
                self._sessions.begin(table)
            while True:
                try:
                    await self._sweep()
                except StoreError as error:  # the next one makes up for it
                    self._context.failures.note("casual games", str(error))
                await trio.sleep(SWEEP_S)

    def prepare(self) -> None:
        """Start a worker if none is free: somebody is choosing a game, which takes longer."""
        self._sessions.prepare()

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
        self._sessions.begin(table)
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
        is_needed = table.session is not None or table.waits_for_bot or table.watchers
        return not is_needed and not table.lock.locked()

    @contextmanager
    def watch(self, table: Table) -> Iterator[None]:
        """Keep a table in memory during the block, and its bot playing."""
        table.watchers += 1
        try:
            self._sessions.begin(table)
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
            try:
                await self._changes.play(table, text)
            finally:  # the move can be stored although an error says otherwise
                self._sessions.begin(table)

    async def take_back(self, table: Table, owner: str) -> None:
        """Take back a person's last move, and what the bot replied.  Raises CourseError, StoreError."""
        async with table.lock:
            side = self._own_side(table, owner)
            if table.bot is None:
                raise CourseError("moves against a person cannot be taken back")
            if not await self._sessions.takes_openings(table):
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
            self._sessions.end(table)
            game = replace(
                table.game,
                moves=table.game.moves[: own[-1]],
                revision=table.game.revision + 1,
                changed_at=self._context.now(),
            )
            try:
                await self._changes.save(table, game)
                del table.states[own[-1] + 1 :]
                table.trouble = ""
                table.wake()
            finally:
                self._sessions.begin(table)

    async def resign(self, table: Table, owner: str) -> None:
        """Give a game up.  Raises CourseError, StoreError."""
        async with table.lock:
            side = self._own_side(table, owner)
            loser, winner = table.game.players[side], table.game.players[1 - side]
            has_opponent = winner.is_bot or bool(winner.owner)
            sentence = f"{loser.name} resigned." if has_opponent else f"{loser.name} ended the game."
            await self._changes.end(table, 1 - side if has_opponent else None, sentence, PlayEnd.RESIGNED)
            self._sessions.end(table)

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
            await self._changes.save(
                table, replace(table.game, players=(seats[0], seats[1]), changed_at=self._context.now())
            )
            table.wake()

    def retry(self, table: Table) -> None:
        """Start the bot again after a failure."""
        table.trouble = ""
        self._sessions.begin(table)
        table.wake()

    def _own_side(self, table: Table, owner: str) -> int:
        side = table.side_of(owner)
        if side is None:
            raise CourseError("you are not one of the players of this game")
        if table.game.ended_at is not None:
            raise CourseError("this game is over")
        return side

    async def _sweep(self) -> None:
        """End abandoned games, and delete old ones."""
        now, games = self._context.now(), self._context.course.casual_games
        ended = await trio.to_thread.run_sync(games.abandon, now - ABANDONED_AFTER, now, ABANDONED)
        self._context.metrics.play_ended(PlayEnd.ABANDONED, len(ended))
        for address in ended:
            table = self._tables.get(address)
            if table is not None:
                async with table.lock:  # what the database has now; reading it again could fail
                    table.game = replace(table.game, ended_at=now, sentence=ABANDONED)
                    self._sessions.end(table)
                    table.wake()
        await trio.to_thread.run_sync(games.remove, now - KEPT_FOR, MOST_KEPT)


@asynccontextmanager
async def open_casual_games(context: ServiceContext, scratch: Path) -> AsyncIterator[CasualGames]:
    """Open the casual games of a service.  Bots play as long as ``run`` does."""
    folder = scratch / SCRATCH
    await trio.to_thread.run_sync(lambda: folder.mkdir(mode=0o700, parents=True, exist_ok=True))
    sessions = SESSIONS_OF_SLOT * context.slots.total
    nice = min(HIGHEST_NICE, context.config.nice + NICER_BY)
    async with open_local_engine(folder, sessions, nice=nice) as engine:
        yield CasualGames(context, engine, folder)
