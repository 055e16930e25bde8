"""The body of a request: so many bytes and no more, and not for ever."""

import trio
from starlette.types import Message, Receive

from tournaments.submissions.limits import size_text
from tournaments.web.errors import TooLarge, TooSlow

PATIENCE_S = 20.0
"""For any body."""
SLOWEST = 20_000
"""Bytes a second that a client must manage beyond that: a tenth of a bad mobile connection."""
DRAIN_S = 5.0
"""How long we go on reading what we will not take: a client that still sends does not see our answer."""


class Body:
    """Receives one request's body."""

    def __init__(self, receive: Receive, limit: int, declared: int | None) -> None:
        self._receive = receive
        self.limit = limit
        """Bytes; may be set until the body is read."""
        self._declared = declared
        self._seen = 0
        self.over = False
        """Whether all of it was read, or the client has gone."""
        self._deadline: float | None = None

    async def receive(self) -> Message:
        """As ASGI has it.

        Raises:
            TooLarge: More bytes than the limit, declared or sent.
            TooSlow: They take too long.

        """
        if self.over:
            return await self._receive()  # a disconnection, whenever it comes
        if self._declared is not None and self._declared > self.limit:
            raise self._too_large()
        if self._deadline is None:
            expected = self.limit if self._declared is None else self._declared
            self._deadline = trio.current_time() + PATIENCE_S + expected / SLOWEST
        message: Message | None = None
        with trio.move_on_at(self._deadline):
            message = await self._receive()
        if message is None:
            raise TooSlow("The request took too long to arrive. Try again over a better connection.")
        self._note(message)
        if self._seen > self.limit:
            raise self._too_large()
        return message

    async def drain(self) -> None:
        """Read on for a while and forget it."""
        with trio.move_on_after(DRAIN_S):
            while True:
                self._note(await self._receive())
                if self.over:
                    break

    def _note(self, message: Message) -> None:
        self._seen += len(message.get("body", b""))
        self.over = message["type"] != "http.request" or not message.get("more_body", False)

    def _too_large(self) -> TooLarge:
        return TooLarge(f"This is too large: at most {size_text(self.limit)} are taken here.")
