"""Tables: casual games in memory, and their changes, each of which is stored before it is visible."""

from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import trio

from referee.games.base import MoveError
from referee.games.catalog import AnyGame
from tournaments.course.casual_games import CasualGame, with_move
from tournaments.course.model import CourseError
from tournaments.database.base import StoreError
from tournaments.server.casual.positions import states_of
from tournaments.server.metrics import PlayEnd
from tournaments.server.service_context import ServiceContext


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

    def has_moved(self, side: int) -> bool:
        """Return whether the player with index ``side`` has moved in this game."""
        return any(self.rules.to_move(state) == side for state in self.states[:-1])

    @property
    def waits_for_bot(self) -> bool:
        """True if the bot is to move and has not failed."""
        return self.bot is not None and self.to_move == self.bot and not self.trouble

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


class TableChanges:
    """Changes of tables.  The caller holds the table's lock."""

    def __init__(self, context: ServiceContext) -> None:
        self._context = context

    async def play(self, table: Table, text: str) -> None:
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
        await self.save(table, game)
        if outcome is not None:
            self._context.metrics.play_ended(PlayEnd.RULES)
        table.states.append(after)
        table.trouble = ""
        table.wake()

    async def save(self, table: Table, game: CasualGame) -> None:
        """Store a game.  Raises CourseError, StoreError; the table is then read again if possible."""
        with trio.CancelScope(shield=True):  # a connection that is lost leaves memory and disk alike
            failure = await self._try_to_save(table.game, game)
            if failure is None:
                table.game = game
                return
            # The game can be stored all the same, if the database was lost just after the commit.
            with suppress(StoreError):
                await self.reload(table)
            raise failure

    async def _try_to_save(self, before: CasualGame, game: CasualGame) -> CourseError | StoreError | None:
        """Store a game; return the exception that prevented this, or None."""
        try:
            await trio.to_thread.run_sync(self._context.course.casual_games.save, before, game)
        except (CourseError, StoreError) as error:
            return error
        return None

    async def reload(self, table: Table) -> None:
        """Bring a table up to date with the database.  Raises StoreError."""
        stored = await trio.to_thread.run_sync(
            self._context.course.casual_games.by_address, table.game.address
        )
        if stored is not None and stored != table.game:
            table.game, table.states = stored, states_of(table.rules, stored.opening, stored.moves)
            table.wake()

    async def end(self, table: Table, winner: int | None, sentence: str, end: PlayEnd) -> None:
        """End a game by something else than its rules.  Raises CourseError, StoreError."""
        now = self._context.now()
        game = replace(table.game, ended_at=now, changed_at=now, winner=winner, sentence=sentence)
        await self.save(table, game)
        self._context.metrics.play_ended(end)
        table.wake()


def _outcome_sentence(game: CasualGame, score: tuple[int, int], winner: int | None, detail: str) -> str:
    cause = f" ({detail})" if detail else ""
    if winner is None:
        return f"It is a draw, {score[0]} to {score[1]}{cause}."
    return f"{game.players[winner].name} won {score[winner]} to {score[1 - winner]}{cause}."
