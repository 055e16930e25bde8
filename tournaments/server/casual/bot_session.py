"""One bot in a casual game: started from the game's position, and asked for its moves.

The stored game is authoritative.  A session mirrors its moves to a bot, whose moves it returns.  It may end
at any time, for example when a person does not move for long, when a move is taken back, or when the server
is killed: the next session begins in the position of that moment.

A slot is held while it is the bot's turn.  Meanwhile, and in the person's turn, a worker process plays the
game, in which the bot is suspended while it is not its turn.
"""

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

from protocol.messages import SWAP_WORD
from referee.adapters.game_follower import GameFollower
from referee.games.catalog import AnyGame
from referee.games.opening import parse_opening
from referee.judge.results import MatchResult
from referee.playing import Job
from tournaments.engines.base import Engine
from tournaments.server.casual.seat import open_game

Slot = Callable[[], AbstractAsyncContextManager[None]]


@dataclass(frozen=True)
class BotSession:
    """The parts of a session."""

    engine: Engine
    job: Job
    """The game from the present position on."""
    rules: AnyGame
    person: int
    """Index of the person in the job's players."""
    scratch: Path
    slot: Slot
    """Returns a context manager that waits for a slot, and holds it during its block."""
    on_move: Callable[[str], Awaitable[None]]
    """Called with each move of the bot."""
    on_waiting: Callable[[bool], None]
    """Called when the session begins to wait for a slot, and when it has one."""
    next_move: Callable[[int], Awaitable[str | None]]
    """Function (n) -> the person's move with the index n in the job's game; None ends the session."""

    async def run(self) -> MatchResult | None:
        """Play until the game is over; return the referee's result, or None if the session was ended.

        Raises RefereeError, EngineError if the game could not be refereed.
        """
        async with AsyncExitStack() as turn:
            await self._take_slot(turn)
            async with open_game(self.engine, self.job, self.person, self.scratch) as game:
                follower = GameFollower(self.rules, opening=bool(self.job.opening))
                steps = parse_opening(self.rules, self.job.opening)
                first = known = sum(step.move is not None for step in steps)
                async for line in game.seat:
                    is_persons_turn = follower.receive(line)
                    for side, move in follower.moves[known:]:
                        known += 1
                        if side != self.person:
                            await self.on_move(move)
                    if is_persons_turn:
                        await turn.aclose()
                        with game.until_ended():
                            move_text = await self.next_move(len(follower.moves) - first)
                            if move_text is None:
                                return None
                            await self._take_slot(turn)
                            await game.seat.send(self._reply(follower, move_text))
                return (await game.result()).record.result

    async def _take_slot(self, turn: AsyncExitStack) -> None:
        self.on_waiting(True)
        try:
            await turn.enter_async_context(self.slot())
        finally:
            self.on_waiting(False)

    def _reply(self, follower: GameFollower, move: str) -> str:
        if move == SWAP_WORD:
            return follower.reply(self.rules.swap)
        return follower.reply(self.rules.parse_move(follower.state, move))
