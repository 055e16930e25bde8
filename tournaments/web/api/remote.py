"""The WebSocket of remote bots, see ``tournaments.server.remote.remote_bots``."""

import contextlib

import trio
from starlette.responses import JSONResponse
from starlette.websockets import WebSocket, WebSocketDisconnect

from tournaments.database.base import StoreError
from tournaments.server.remote.remote_bots import (
    FLOOD,
    LOST,
    MESSAGES_AT_ONCE,
    MESSAGES_PER_S,
    REPLACED,
    SILENCE_S,
    WAITING,
    RemoteBot,
    RemoteBotError,
    RemoteBots,
    capabilities_of,
    message_of,
)
from tournaments.web.http import auth
from tournaments.web.http.errors import Conflict, Forbidden, WebError
from tournaments.web.http.rate_limits import Rate, RateLimit
from tournaments.web.http.request_context import RequestContext
from tournaments.web.http.sse import until_not_admitted

PATH = "/api/v1/remote"
HELLO_S = 10.0
"""Seconds for the first message."""
SEND_S = 20.0
"""Seconds in which a bot's side must take a message."""
NOT_ADMITTED = "the token of the remote bot is not valid any more, or its account has changed"
POLICY, GOING_AWAY, TAKEN_OVER = 1008, 1001, 4001
"""Close codes: 1008 is for a message that is not accepted, 1001 for the end of the server (RFC 6455, 7.4.1);
4001 is of Kalarena alone, for a connection that another one of the same name has replaced."""


async def refuse(socket: WebSocket, error: WebError) -> None:
    """Refuse a connection with an HTTP response, if the web server supports that."""
    if "websocket.http.response" not in socket.scope.get("extensions", {}):
        await socket.close(POLICY)
        return
    await socket.send_denial_response(
        JSONResponse({"error": error.sentence}, error.status, {**error.headers, "Connection": "close"})
    )


async def serve_remote_bot(socket: WebSocket, context: RequestContext) -> None:
    """Serve the connection of a remote bot of a student who has a team, until it ends.

    Raises:
        WebError: The bot cannot be connected; nothing was sent.

    """
    team_id = context.user.team_id if context.user is not None else None
    remotes: RemoteBots = context.site.service.challenges.remotes
    if team_id is None:
        raise Forbidden("You are in no team yet: ask the lecturer.")
    name = socket.query_params.get("name", "")
    try:
        remotes.check(team_id, name)
    except RemoteBotError as error:
        raise Conflict(str(error)) from error
    await socket.accept()
    outgoing, waiting = trio.open_memory_channel[str](WAITING)
    bot: RemoteBot | None = None
    code, reason = POLICY, "the first message was not hello"
    with trio.move_on_after(HELLO_S):
        hello = await _receive(socket)
        if hello is not None and (message := message_of(hello)) is not None and message["type"] == "hello":
            bot = RemoteBot(team_id, name, capabilities_of(message), outgoing)
    if bot is not None:
        try:
            with remotes.connected(bot):
                bot.send("welcome", name=name, game=context.settings.game)
                code, reason = await _serve(socket, context, bot, waiting)
        except RemoteBotError as error:  # another one was connected meanwhile
            reason = str(error)
    with trio.move_on_after(SEND_S), contextlib.suppress(RuntimeError, WebSocketDisconnect):  # it has gone
        await socket.close(code, reason[:120])


async def _serve(
    socket: WebSocket, context: RequestContext, bot: RemoteBot, waiting: trio.MemoryReceiveChannel[str]
) -> tuple[int, str]:
    """Pass messages on until the connection ends; return the close code and the reason."""
    closing = False

    async def end_with_site() -> None:
        nonlocal closing
        await context.site.closing.wait()
        closing = True
        bot.disconnect(LOST, forfeits=False)

    async def is_admitted() -> bool:
        try:
            again = await auth.admitted_again(socket, context)
        except StoreError:  # a failure of ours must not become a forfeit: the next check decides
            return True
        return again is not None and again.user is not None and again.user.team_id == bot.team_id

    async def end_without_permission() -> None:
        await until_not_admitted(is_admitted)
        bot.disconnect(NOT_ADMITTED)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(end_with_site)
        nursery.start_soon(end_without_permission)
        nursery.start_soon(_send, socket, bot, waiting)
        nursery.start_soon(_read, socket, bot)
        await bot.lost.wait()
        nursery.cancel_scope.cancel()
    if closing:
        return GOING_AWAY, "the server is shutting down"
    if bot.why_lost == REPLACED:
        return TAKEN_OVER, REPLACED
    return POLICY, bot.why_lost


async def _send(socket: WebSocket, bot: RemoteBot, waiting: trio.MemoryReceiveChannel[str]) -> None:
    async for text in waiting:
        try:
            with trio.fail_after(SEND_S):
                await socket.send_text(text)
        except (trio.TooSlowError, RuntimeError, WebSocketDisconnect):
            bot.disconnect(LOST)


async def _read(socket: WebSocket, bot: RemoteBot) -> None:
    rate = RateLimit(Rate(MESSAGES_AT_ONCE, MESSAGES_PER_S), 1)
    while True:
        text: str | None = None
        with trio.move_on_after(SILENCE_S):
            text = await _receive(socket)
        if text is None:
            bot.disconnect(LOST)
            return
        if rate.take("", trio.current_time()):
            bot.disconnect(FLOOD)
            return
        message = message_of(text)
        if message is None:
            bot.disconnect("the remote bot's side sent something other than messages of kalarena connect")
            return
        if message["type"] == "alive":
            bot.send("alive")
        elif message["type"] in ("line", "forfeit"):
            bot.receive(message)


async def _receive(socket: WebSocket) -> str | None:
    """Return the next message; None at the end of the connection, and "" for one of bytes."""
    message = await socket.receive()
    if message["type"] != "websocket.receive":
        return None
    return message.get("text") or ""
