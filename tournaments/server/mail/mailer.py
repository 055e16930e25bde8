"""The task that sends the mails of the outbox, one after another and within a bound a minute."""

from collections.abc import Callable
from datetime import datetime, timedelta

import trio

from tournaments.course.mail.outbox import Outbox
from tournaments.course.model import Mail
from tournaments.server.failures import Failures, wait_s
from tournaments.server.mail.mail_table import Mailing
from tournaments.server.mail.smtp import MailServerError, RefusedError, deliver, message_of

POLL_S = 5.0
"""Seconds between queries of the outbox: a person who waits for a link does not notice them."""
MINUTE = timedelta(minutes=1)
RETRY_AFTER = timedelta(minutes=1)
"""Delay after a temporary refusal, doubled after each further one: servers that accept no first attempt
("greylisting") accept one after minutes."""
MOST_TRIES = 12
"""Attempts after which a mail has failed.  With the doubled delays these are 34 hours: a mailbox that is full
over night still gets its mail, and one that does not exist any more is noticed on the next day."""


class Mailer:
    """Sender of a course's mails.  Pages and games never wait for it."""

    def __init__(
        self,
        outbox: Outbox,
        mailing: Mailing,
        failures: Failures,
        now: Callable[[], datetime],
        retry_s: float,
        poll_s: float = POLL_S,
    ) -> None:
        """``retry_s`` is the delay after a failure of the mail server, doubled after each further one."""
        self._outbox, self._mailing, self._failures, self._now = outbox, mailing, failures, now
        self._retry_s, self._poll_s = retry_s, poll_s
        self._delivered: dict[int, tuple[str, datetime]] = {}
        """Id -> answer and moment, of mails whose delivery is not recorded in the outbox yet."""
        self.trouble = ""
        """Reason why no mail could be delivered at the last attempt; empty if mails are delivered."""

    async def run(self) -> None:
        """Send mails until cancelled.  Raises StoreError; then it can be run again."""
        failures = 0
        while True:
            try:
                is_idle = not await self._send_next()
            except MailServerError as error:
                failures += 1
                self.trouble = str(error)
                self._failures.note("mail", self.trouble)
                await trio.sleep(wait_s(failures, self._retry_s))
            else:
                failures = 0
                if is_idle:
                    await trio.sleep(self._poll_s)

    async def _send_next(self) -> bool:
        """Send the next mail that is due; return False if there is none, or the limit per minute is reached.

        Mails are read one at a time: the address of a mail may change while others are sent, its account may
        be disabled, and a link that is written meanwhile is sent first.  Raises MailServerError, StoreError.
        """
        await self._record_delivered()
        in_thread, now = trio.to_thread.run_sync, self._now()
        tried = await in_thread(self._outbox.tried_between, now - MINUTE, now)
        if len(tried) >= self._mailing.table.per_minute:
            return False
        mails = await in_thread(self._outbox.due, now, 1)
        if not mails:
            return False
        await self._send(mails[0])
        return True

    async def _send(self, mail: Mail) -> None:
        """Try to send one mail, and record the result.  Raises MailServerError, StoreError."""
        in_thread, outbox, table = trio.to_thread.run_sync, self._outbox, self._mailing.table
        try:
            message = message_of(self._mailing, mail)
        except ValueError as error:  # one mail must not stop the others
            await in_thread(outbox.failed, mail.id, f"it cannot be written: {error}", self._now())
            return
        try:
            # The thread is left behind when this server ends: a mail server may take long to answer.
            answer = await in_thread(deliver, table, message, mail.address, abandon_on_cancel=True)
        except RefusedError as error:
            now, tries = self._now(), mail.attempts + 1
            if error.is_final or tries >= MOST_TRIES:
                await in_thread(outbox.failed, mail.id, str(error), now)
            else:
                await in_thread(outbox.postponed, mail.id, str(error), now, next_try(tries, now))
            return
        self._delivered[mail.id] = (answer, self._now())
        with trio.CancelScope(shield=True):  # a mail that was accepted is not sent again
            await self._record_delivered()
        self.trouble = ""

    async def _record_delivered(self) -> None:
        """Record the delivered mails in the outbox.

        Raises StoreError; then they must be recorded before another mail is sent, or they are sent again.
        """
        for mail_id, (answer, at) in list(self._delivered.items()):
            await trio.to_thread.run_sync(self._outbox.sent, mail_id, answer, at)
            del self._delivered[mail_id]


def next_try(tries: int, now: datetime) -> datetime:
    """Return the moment of the next attempt after so many temporary refusals."""
    return now + RETRY_AFTER * (1 << (tries - 1))
