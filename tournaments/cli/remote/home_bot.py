"""A bot at home in one game of a server: its process, between the referee's lines and its own."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager

import trio

from referee.errors import RefereeError
from referee.judge.events import LineReceived, LineTooLong, Sent
from referee.playing import Job, environment_of
from referee.process.bot import Bot
from referee.process.launch import NotRunnableError

STATUS_S = 0.5
"""Seconds for a process to end after its output has ended."""


class HomeBot:
    """A running bot; see ``open_bot``."""

    def __init__(self, bot: Bot) -> None:
        self._bot = bot

    def send(self, line: str) -> bool:
        """Send a line of the referee to the bot; return False if the bot takes none any more."""
        return isinstance(self._bot.write(line), Sent)

    async def lines(self) -> AsyncGenerator[str, None]:
        """Iterate over the bot's lines, until its output ends."""
        while self._bot.output_ended_at is None:
            await trio.lowlevel.wait_readable(self._bot.stdout)
            for event in self._bot.read_output():
                if isinstance(event, LineReceived):
                    yield event.line
                elif isinstance(event, LineTooLong):
                    yield event.head

    async def read_errors(self) -> None:
        """Read the bot's standard error until it ends, so that the bot is never kept waiting."""
        while True:
            await trio.lowlevel.wait_readable(self._bot.errors)
            if not self._bot.read_errors():
                return

    async def reason_of_end(self) -> str:
        """Return a sentence on the end of the bot, after that of its output."""
        if self._bot.exit_descriptor is not None:
            with trio.move_on_after(STATUS_S):
                await trio.lowlevel.wait_readable(self._bot.exit_descriptor)
        if not self._bot.has_ended():
            return "the remote bot closed its output"
        status = self._bot.status or 0
        how = f"was ended by signal {-status}" if status < 0 else f"ended with exit status {status}"
        return f"the remote bot {how}"

    @property
    def last_words(self) -> str:
        """The most informative line of its standard error; empty without one."""
        self._bot.drain_errors()
        return self._bot.stderr.last_words()


@asynccontextmanager
async def open_bot(job: Job, index: int) -> AsyncIterator[HomeBot]:
    """Start the bot that is one player of a job; it is ended with the block.

    Raises NotRunnableError, RefereeError.
    """

    def start() -> Bot:
        bot = Bot(
            index, job.players[index], environment_of(job, index), sandbox=job.sandbox, limits=job.limits
        )
        try:
            bot.wait_ready()
        except BaseException:
            bot.kill()
            bot.close()
            raise
        return bot

    bot = await trio.to_thread.run_sync(start)
    try:
        yield HomeBot(bot)
    finally:
        bot.kill()
        with trio.CancelScope(shield=True):
            await trio.to_thread.run_sync(bot.close)


NOT_STARTED = (NotRunnableError, RefereeError)
"""Errors of ``open_bot``."""
