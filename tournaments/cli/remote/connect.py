"""`kalarena connect`: a bot at home plays unrated games on a server."""

import json
import re
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import click
import trio

from referee.games.spec import SpecError
from referee.judge.clock import TimeControl
from referee.judge.crash_hints import explain
from referee.judge.limits import Limits
from referee.judge.results import Player
from referee.judge.verdict_text import visible
from referee.playing import Job
from referee.process.subreaper import become_subreaper, kill_orphans, spare_children
from referee.sandbox.bubblewrap import Sandbox
from referee.sandbox.detection import REQUIRED, SandboxError, find_sandbox
from tournaments.bots.errors import BotError
from tournaments.bots.resolve import resolve_bot
from tournaments.cli.game_options import announce_compilation, protocol_option, sandbox_options
from tournaments.cli.main import INTERRUPTED, Fault, Usage, single_error
from tournaments.cli.remote.api_client import Client, SubmitError
from tournaments.cli.remote.home_bot import NOT_STARTED, HomeBot, open_bot
from tournaments.cli.remote.server_options import Unreachable, odd_answer, server_options, warn_of_exposure
from tournaments.cli.remote.websocket import (
    ConnectionLostError,
    RefusedError,
    WebSocketClient,
    open_websocket,
)
from tournaments.processes.process_settings import stopping_signals

PATH = "/api/v1/remote"
ALIVE_S = 10.0
"""Seconds between two messages to the server, which takes a connection for lost after 30 s without one."""
SILENCE_S = 30.0
"""Seconds without a message of the server after which the connection is lost."""
FIRST_WAIT_S, LONGEST_WAIT_S = 1.0, 30.0
"""Seconds until the first try after a lost connection, doubled after each failure, and their maximum."""
TRIES = 25
"""Tries in a row after which reconnecting is given up: 11 minutes, in which a server is updated."""
LONGEST_LINE = 8_000
"""Most characters of a bot's line that are sent; a longer one is too long for the referee anyway."""
TAKEN_OVER = 4001
"""Close code of the server for a connection that another one of the same name has replaced."""
TOO_MANY, SERVER_ERRORS = 429, 500
CLEANUP_S = 1.0
"""Most seconds to wait until the thread of an ended build has removed the build's files."""


@click.command("connect")
@click.argument("bot")
@server_options
@click.option(
    "--name", metavar="NAME", help="Name on the server, of A-Z, a-z, 0-9, _, . and -.  [default: of the bot]"
)
@sandbox_options
@protocol_option
def command(
    bot: str, server: str, token: str, name: str | None, sandbox: str, memory_mb: int, protocol: str
) -> None:
    """Let the BOT on this machine play on a server, in games that are in no standings.

    Your team chooses the bot as an opponent, or lets it challenge others, on the page of challenges or by
    `kalarena challenge --bot NAME`.  A lost connection is made again.  Ctrl-C ends the command.

    Exit status: 1 another connection took the name, 2 the bot, the address or the token is wrong, 3 the
    server cannot be reached, 130 ended by Ctrl-C.
    """
    try:
        confined = find_sandbox(sandbox)
        build_in = confined if sandbox == REQUIRED else None
        base = Path.cwd()  # which may be deleted before a later game

        def prepare(game: str | None) -> Player:
            if game is not None:
                announce_compilation(game, bot)
            return resolve_bot(bot, base, game=game, build_in=build_in, protocol=protocol)

        player = prepare(None)
        client = Client(server, token)
    except (BotError, SandboxError, SubmitError, ValueError) as error:
        raise Usage(str(error)) from error
    warn_of_exposure(client)
    name = name or re.sub(r"[^A-Za-z0-9_.-]+", "-", player.name).strip("-_.")[:30] or "bot"
    home = _Home(client, name, player.capabilities, prepare, confined, Limits(memory_mb=memory_mb))
    with spare_children(), single_error(OSError):  # ``entry`` prints its message
        try:
            stopped = trio.run(home.run)
        finally:
            home.end_build()
    if isinstance(stopped, Exception):
        raise stopped
    click.echo("disconnected")
    sys.exit(INTERRUPTED)


class _Home:
    """The bot's side of the connection."""

    def __init__(
        self,
        client: Client,
        name: str,
        capabilities: Sequence[str],
        prepare: Callable[[str | None], Player],
        sandbox: Sandbox,
        limits: Limits,
    ) -> None:
        """``prepare`` returns the bot for a game, built if it is not up to date; see ``_prepared``."""
        self._client, self._name, self._capabilities = client, name, capabilities
        self._prepare, self._sandbox, self._limits = prepare, sandbox, limits
        # A second build would see the half-made products of the first.
        self._preparing = trio.Semaphore(1)
        self._building = threading.Lock()
        self._nursery: trio.Nursery | None = None
        """Nursery of builds, which outlast connections."""
        self._was_connected = False
        self._failures = 0

    async def run(self) -> Exception | None:
        """Play until Ctrl-C, or until a further try would be useless; return the error in that case."""
        error: Exception | None = None
        with trio.open_signal_receiver(*stopping_signals()) as signals:
            async with trio.open_nursery() as nursery:
                self._nursery = nursery

                async def stop() -> None:
                    async for _ in signals:
                        nursery.cancel_scope.cancel()

                nursery.start_soon(stop)
                error = await self._keep_connected()
                nursery.cancel_scope.cancel()
        return error

    async def _keep_connected(self) -> Exception:
        while True:
            lost = await self._connect()
            if isinstance(lost, click.ClickException):
                return lost
            self._failures += 1
            if not self._was_connected or self._failures > TRIES:
                return Unreachable(f"{self._client.base} cannot be reached: {lost}")
            wait_s = min(LONGEST_WAIT_S, FIRST_WAIT_S * 2 ** (self._failures - 1))
            click.echo(f"the connection was lost ({lost}): trying again in {wait_s:g} s", err=True)
            await trio.sleep(wait_s)

    async def _connect(self) -> Exception:
        """Connect, and play until the connection ends; return the reason."""
        target = f"{PATH}?{urlencode({'name': self._name})}"
        try:
            async with open_websocket(self._client.base, target, self._client.token) as socket:
                return await self._serve(socket)
        except RefusedError as error:
            if error.status == TOO_MANY or error.status >= SERVER_ERRORS:
                return ConnectionLostError(str(error))
            return Usage(str(error))
        except ConnectionLostError as error:
            return error

    async def _serve(self, socket: WebSocketClient) -> Exception:
        """Play the server's games until the connection ends; return the reason."""
        await socket.send(json.dumps({"type": "hello", "capabilities": list(self._capabilities)}))
        ended: list[Exception] = []
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_keep_alive, socket)
            try:
                await self._receive(socket, nursery)
            except ConnectionLostError as error:
                is_taken = error.code == TAKEN_OVER
                ended.append(Fault(f"ended: {error}") if is_taken else error)
            except trio.TooSlowError:
                ended.append(ConnectionLostError(f"the server was silent for {SILENCE_S:g} s"))
            except (LookupError, TypeError, ValueError) as error:
                ended.append(odd_answer(self._client.base, error))
            nursery.cancel_scope.cancel()
        return ended[0]

    async def _receive(self, socket: WebSocketClient, nursery: trio.Nursery) -> None:
        """Process the server's messages.

        Raises ConnectionLostError; LookupError, TypeError, ValueError for messages of an unexpected shape.
        """
        games: dict[str, trio.MemorySendChannel[str]] = {}
        while True:
            with trio.fail_after(SILENCE_S):
                message = json.loads(await socket.receive())
            match message["type"]:
                case "welcome":
                    again = " again" if self._was_connected else ""
                    self._was_connected, self._failures = True, 0
                    click.echo(
                        f"{visible(self._name)} is connected to {self._client.base}{again} as a remote bot. "
                        "Ctrl-C ends it."
                    )
                    nursery.start_soon(self._prepare_ahead, message["game"])
                case "game":
                    seat = "first" if message["moves_first"] else "second"
                    click.echo(
                        f"game {visible(message['key'])} begins: against {visible(message['opponent'])}, "
                        f"you move {seat}"
                    )
                    sender, receiver = trio.open_memory_channel[str](1_000)
                    games = {message["key"]: sender}
                    nursery.start_soon(self._play, socket, message, receiver)
                case "line" if message["key"] in games:
                    games[message["key"]].send_nowait(message["line"])
                case "over" | "failed" as kind:
                    result = message["outcome"] if kind == "over" else "no result"
                    click.echo(f"game {visible(message['key'])}: {result}: {visible(message['detail'])}")
                    for sender in games.values():
                        sender.close()
                    games = {}

    async def _prepared(self, game: str) -> Player:
        """Return the bot for a game, built if it is not up to date.

        Raises BotError; SpecError for a game that this version does not have.
        """
        assert self._nursery is not None
        await self._preparing.acquire()
        sender, receiver = trio.open_memory_channel[Player | Exception](1)
        self._nursery.start_soon(self._build, game, sender)
        prepared = await receiver.receive()
        if isinstance(prepared, Exception):
            raise prepared
        return prepared

    async def _build(self, game: str, sender: trio.MemorySendChannel[Player | Exception]) -> None:
        """Prepare the bot for a game, and send it or the error; a broken connection does not end this."""

        def prepare() -> Player:
            with self._building:
                return self._prepare(game)

        try:
            prepared: Player | Exception = await trio.to_thread.run_sync(prepare, abandon_on_cancel=True)
        except (BotError, SpecError) as error:
            prepared = error
        finally:
            self._preparing.release()
        sender.send_nowait(prepared)

    def end_build(self) -> None:
        """End a build that is under way, after ``run``.  Blocks, for two seconds at most."""
        if self._building.locked():
            become_subreaper()  # of the processes that the build's command has started
            kill_orphans()
            self._building.acquire(timeout=CLEANUP_S)

    async def _prepare_ahead(self, game: str) -> None:
        """Build the bot before its first game, in whose time it would be built otherwise."""
        try:
            await self._prepared(game)
        except (BotError, SpecError) as error:
            click.echo(f"the bot cannot play as it is: {visible(str(error))}", err=True)

    async def _play(
        self, socket: WebSocketClient, message: Mapping[str, Any], lines: trio.MemoryReceiveChannel[str]
    ) -> None:
        """Play one game."""
        key, index = message["key"], 0 if message["moves_first"] else 1
        opponent = Player(message["opponent"], (), "")
        control = TimeControl(**message["control"])
        try:
            try:
                player = await self._prepared(message["game"])
                players = (player, opponent) if index == 0 else (opponent, player)
                job = Job(
                    key, message["game"], players, control, self._limits, message["opening"], self._sandbox
                )
                async with open_bot(job, index) as bot, trio.open_nursery() as nursery:
                    nursery.start_soon(bot.read_errors)
                    nursery.start_soon(self._forward, socket, key, bot)
                    async for line in lines:
                        bot.send(line)
                    nursery.cancel_scope.cancel()
            except (BotError, SpecError, *NOT_STARTED) as error:
                click.echo(f"the bot could not be started: {visible(str(error))}", err=True)
                await _forfeit(socket, key, "the remote bot could not be started")
        except ConnectionLostError:
            pass  # the receiving task notices the same

    async def _forward(self, socket: WebSocketClient, key: str, bot: HomeBot) -> None:
        """Send the bot's lines to the server, and a forfeit at their end."""
        try:
            async with aclosing(bot.lines()) as lines:
                async for line in lines:
                    await socket.send(json.dumps({"type": "line", "key": key, "line": line[:LONGEST_LINE]}))
            why = await bot.reason_of_end()
            if words := bot.last_words:
                meaning = explain(words)
                text = f"{words}. That is: {meaning}" if meaning else words
                click.echo(f"standard error of the bot: {visible(text)}", err=True)
            await _forfeit(socket, key, why)
        except ConnectionLostError:
            pass  # the receiving task notices the same


async def _forfeit(socket: WebSocketClient, key: str, why: str) -> None:
    await socket.send(json.dumps({"type": "forfeit", "key": key, "why": why}))


async def _keep_alive(socket: WebSocketClient) -> None:
    try:
        while True:
            await trio.sleep(ALIVE_S)
            await socket.send('{"type": "alive"}')
    except ConnectionLostError:
        pass  # the receiving task notices the same
