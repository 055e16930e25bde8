"""Remote bots: the registry of those that are connected, and the games that they play.

A bot at home is connected by `kalarena connect`.  Both sides send JSON objects, each in one text message of
the WebSocket, whose ``type`` is:

    to the bot's side     welcome   name, game
                          game      key, game, opponent, control: a game begins
                          line      key, line: a line of the referee
                          over      key, outcome, detail: the result, with the verdict's sentence
                          failed    key, detail: the game has no result
                          alive
    from the bot's side   hello     capabilities of the bot, once at the beginning
                          line      key, line: a line of the bot
                          forfeit   key, why: the bot does not go on
                          alive

A connection that is silent for ``SILENCE_S`` is lost.  A bot that loses its connection during a game forfeits
the game.  Remote bots have a wall-clock time control of their own, see ``remote_control``.
"""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import trio

from referee.errors import RefereeError
from referee.judge.clock import WALL, TimeControl
from referee.judge.results import CAPABILITIES, Player
from referee.playing import Job
from tournaments.engines.base import Engine, EngineError
from tournaments.results.game_summary import PackedGame
from tournaments.server.casual.seat import Seat, SeatClosedError, open_game, seated_player

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,29}")
MOST_OF_TEAM = 3
"""Maximum number of a team's remote bots: one for each member who tries something."""
MOST_REMOTE = 200
"""Maximum number of remote bots; each holds a connection."""
MOST_MESSAGE_BYTES = 16_384
"""Maximum size of a message: far more than a line of the protocol has."""
MESSAGES_AT_ONCE = 200
MESSAGES_PER_S = 50.0
"""Rate of messages from a bot.  A bot sends one for each of its moves, of which it makes a few per second."""
SILENCE_S = 30.0
"""Seconds without a message after which a connection is lost."""
WAITING = 1_000
"""Maximum number of messages that wait to be sent to a bot; a game has some hundred lines."""
NETWORK_S = 5.0
"""Seconds per move for the network, beside twice the course's limit: a home connection may stall for seconds
and recover."""
GAME_NETWORK_S = 120.0
"""Seconds per game for the network."""
HOW = "a remote bot"
LOST = "the connection to the remote bot was lost"
FLOOD = "the remote bot sent more messages than are accepted"


class RemoteBotError(Exception):
    """A bot cannot be connected; the message gives the reason and a remedy."""


class RemoteBotLostError(Exception):
    """The connection to a remote bot was lost before its game had begun: nobody loses by that."""


class Outbox(Protocol):
    """The sender of messages to a bot's side."""

    def send_nowait(self, message: str) -> None:
        """Queue a message.  Raises trio.WouldBlock, trio.BrokenResourceError."""


def remote_control(control: TimeControl) -> TimeControl:
    """Return the time control of a remote bot, which includes the network: twice the limits, and more.

    Its first turn also includes its start, which the referee does not see.
    """
    move_s = None if control.move_s is None else 2 * control.move_s + NETWORK_S
    game_s = None if control.game_s is None else 2 * control.game_s + GAME_NETWORK_S
    increment_s, setup_s = 2 * control.increment_s, control.setup_s + control.start_s
    return replace(
        control, move_s=move_s, game_s=game_s, increment_s=increment_s, setup_s=setup_s, clock=WALL
    )


def line_for_home(line: str, control: TimeControl) -> str:
    """Return a line of the referee for a remote bot, whose TIME lines have the course's own limits."""
    name, *clocks = line.split(";")
    if name != "TIME":
        return line
    own_ms = int(clocks[0])
    if control.game_s is not None:
        own_ms = max(1, (own_ms - round(GAME_NETWORK_S * 1000)) // 2)
    elif control.move_s is not None:
        own_ms = round(control.move_s * 1000)
    return ";".join((name, str(own_ms), *clocks[1:]))


class RemoteBot:
    """A connected remote bot.  It plays one game at a time."""

    def __init__(self, team_id: int, name: str, capabilities: tuple[str, ...], outbox: Outbox) -> None:
        self.team_id = team_id
        self.name = name
        self.capabilities = capabilities
        self.lost = trio.Event()
        """Set when the connection has ended."""
        self.why_lost = LOST
        self._forfeits = True
        self._outbox = outbox
        self._playing = trio.Lock()
        self._key = ""
        """Key of the game that is being played; empty without one."""
        self._lines: trio.MemorySendChannel[dict[str, Any]] | None = None

    def player(self, name: str) -> Player:
        """Return the player under a name, as records have it."""
        return seated_player(name, HOW, self.capabilities)

    def disconnect(self, why: str, *, forfeits: bool = True) -> None:
        """End the connection; ``why`` is a sentence for the verdict of a game under way.

        With ``forfeits`` false that game goes on without the bot, as when the server shuts down: then it is
        cancelled with the server, and is played again.
        """
        if not self.lost.is_set():
            self.why_lost = why
            self._forfeits = forfeits
            self.lost.set()

    def receive(self, message: dict[str, Any]) -> None:
        """Process a message of the bot's side.  Messages for other games are ignored."""
        if self._lines is not None and message.get("key") == self._key:
            try:
                self._lines.send_nowait(message)
            except trio.WouldBlock:
                self.disconnect(FLOOD)

    def send(self, kind: str, **values: Any) -> None:
        """Send a message; a bot's side that reads nothing has lost its connection."""
        try:
            self._outbox.send_nowait(json.dumps({"type": kind, **values}))
        except (trio.WouldBlock, trio.BrokenResourceError, trio.ClosedResourceError):
            self.disconnect(LOST)

    async def play(self, engine: Engine, job: Job, index: int, scratch: Path) -> PackedGame:
        """Play a game as the player of this index, and return it; the caller holds a slot.

        Raises RefereeError, EngineError if the game could not be refereed to a result; RemoteBotLostError.
        """
        controls = [job.own_controls[0], job.own_controls[1]]
        controls[index] = remote_control(job.control)
        patient = replace(job, own_controls=(controls[0], controls[1]))
        async with self._playing:
            if self.lost.is_set():
                raise RemoteBotLostError(self.why_lost)
            sender, receiver = trio.open_memory_channel[dict[str, Any]](WAITING)
            self._key, self._lines = job.key, sender
            self.send(
                "game",
                key=job.key,
                game=job.game,
                opening=job.opening,
                opponent=job.players[1 - index].name,
                moves_first=index == 0,
                control={
                    "move_s": job.control.move_s,
                    "game_s": job.control.game_s,
                    "increment_s": job.control.increment_s,
                },
            )
            packed: PackedGame | None = None
            failure: Exception | None = None
            try:
                async with open_game(engine, patient, index, scratch) as game, trio.open_nursery() as nursery:
                    nursery.start_soon(self._forward, game.seat, receiver)
                    nursery.start_soon(self._forfeit_if_lost, game.seat)
                    try:
                        async for line in game.seat:
                            self.send("line", key=job.key, line=line_for_home(line, job.control))
                        packed = await game.result()
                    except (RefereeError, EngineError) as error:  # raised below, outside the nurseries
                        failure = error
                    nursery.cancel_scope.cancel()
                if packed is None:
                    raise failure or EngineError("the game ended without a result")
                return packed
            finally:
                self._key, self._lines = "", None
                self._announce_end(job.key, packed, index)

    def _announce_end(self, key: str, packed: PackedGame | None, index: int) -> None:
        if packed is None:
            self.send("failed", key=key, detail="the game was stopped, and has no result")
            return
        winner = packed.summary.winner
        outcome = "drawn" if winner is None else "won" if winner == index else "lost"
        self.send("over", key=key, outcome=outcome, detail=packed.summary.detail)

    async def _forward(self, seat: Seat, messages: trio.MemoryReceiveChannel[dict[str, Any]]) -> None:
        """Send the bot's lines to the referee, until the game is over."""
        async for message in messages:
            try:
                if message["type"] == "forfeit":
                    await seat.forfeit(_text(message, "why") or "the remote bot gave up")
                else:
                    await seat.send(_text(message, "line"))
            except SeatClosedError:
                return

    async def _forfeit_if_lost(self, seat: Seat) -> None:
        await self.lost.wait()
        if self._forfeits:
            await seat.forfeit(self.why_lost)


class RemoteBots:
    """Registry of the connected remote bots, by team and name."""

    def __init__(self) -> None:
        self._bots: dict[tuple[int, str], RemoteBot] = {}
        self.changed = trio.Event()
        """Event that is set, and replaced, when a bot is connected."""

    def names(self, team_id: int) -> list[str]:
        """Return the names of a team's connected bots, sorted."""
        return sorted(name for owner, name in self._bots if owner == team_id)

    def get(self, team_id: int, name: str) -> RemoteBot | None:
        """Return a connected bot."""
        return self._bots.get((team_id, name))

    def check(self, team_id: int, name: str) -> None:
        """Raise RemoteBotError if a team cannot connect a bot of this name."""
        if not NAME.fullmatch(name):
            raise RemoteBotError(
                "The name of a remote bot has 1 to 30 of A-Z, a-z, 0-9, _, . and -, and begins with a letter "
                "or a digit: choose another one with --name."
            )
        others = [one for one in self.names(team_id) if one != name]
        if len(others) >= MOST_OF_TEAM:
            raise RemoteBotError(
                f"Your team has {MOST_OF_TEAM} remote bots connected already ({', '.join(others)}): end one."
            )
        if len(self._bots) >= MOST_REMOTE and (team_id, name) not in self._bots:
            raise RemoteBotError("Too many remote bots are connected now: try again later.")

    @contextmanager
    def connected(self, bot: RemoteBot) -> Iterator[None]:
        """Register a bot for as long as the block lasts.

        A bot that is connected under the same name is disconnected: its computer may have lost the connection
        without the server's noticing.  Raises RemoteBotError.
        """
        self.check(bot.team_id, bot.name)
        key = bot.team_id, bot.name
        earlier = self._bots.get(key)
        if earlier is not None:
            earlier.disconnect(REPLACED)
        self._bots[key] = bot
        self.changed.set()
        self.changed = trio.Event()
        try:
            yield
        finally:
            bot.disconnect(LOST)
            if self._bots.get(key) is bot:
                del self._bots[key]


REPLACED = "another remote bot of the team was connected under the same name"


def capabilities_of(message: dict[str, Any]) -> tuple[str, ...]:
    """Return the known capabilities in a ``hello``."""
    given = message.get("capabilities")
    return tuple(one for one in CAPABILITIES if isinstance(given, list) and one in given)


def _text(message: dict[str, Any], field: str) -> str:
    """Return a text of a message; empty for values of other types, which can be too deep for ``str``."""
    found = message.get(field)
    return found if isinstance(found, str) else ""


def message_of(text: str) -> dict[str, Any] | None:
    """Return a message of the bot's side; None if it is none."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) and isinstance(found.get("type"), str) else None
