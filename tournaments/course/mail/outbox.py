"""Outbox of a course: mails that are written in the transaction of their cause, and sent afterwards.

A mail is a row from the moment at which its cause is stored, until days after it was sent: a server that is
killed sends what waits when it is started again.  A kill between the mail server's answer and ``sent`` lets a
mail go out twice, with the same ``Message-ID``.

A link in a mail has a secret that is in no row: it follows from a random seed in the row and the server's
key, so that the database alone opens no account.

Mails belong to the data directory in which they were written.  A restored directory has another identity,
and does not send the mails of the backup, which the original may have sent: they are held until the operator
releases or discards them.
"""

import base64
import hmac
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Connection, Select, case, delete, func, insert, select, update

from tournaments.course.mail.addresses import Addresses
from tournaments.course.mail.notices import (
    Notice,
    challenge_notice,
    confirmation_notice,
    link_notice,
    tournament_notice,
    version_notice,
)
from tournaments.course.model import (
    FINISH,
    Challenge,
    Competition,
    CompetitionKind,
    CourseError,
    FailedMail,
    LinkPurpose,
    Mail,
    MailKind,
    MailState,
    OutboxStatus,
    Role,
    Version,
)
from tournaments.course.people.credentials import new_secret
from tournaments.course.schema import account, competitor, journal, mail, mail_address, team, version
from tournaments.course.settings import Settings, SettingsTable, moment_text
from tournaments.course.transactions import Transactions
from tournaments.database.base import storable

KEPT = timedelta(days=30)
"""Age at which rows of sent and failed mails are deleted: as long as their links are valid."""
MOST_FAILURES = 20
"""Failed mails that a status lists."""
LONGEST_ANSWER = 500
"""Characters of a mail server's answer that are kept; RFC 5321 allows 512 bytes a line."""
URGENT = (MailKind.LINK.value, MailKind.ADDRESS.value)
"""Kinds that are sent before all others, as a person waits for them."""
HIDDEN_BOT = "another team's bot"
"""Name of an opponent in the mails of students from whom names are hidden."""


@dataclass(frozen=True)
class MailHome:
    """Data directory that sends mail."""

    identity: str
    key: bytes
    """The server's key."""

    def secret(self, seed: str) -> str:
        """Return the secret of a link, in the form of other secrets."""
        digest = hmac.digest(self.key, b"mail " + seed.encode(), "sha256")
        return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


class MailNumbers(NamedTuple):
    """Numbers of mails that are not sent."""

    waiting: int
    """Mails that wait, without those of disabled accounts."""
    held: int
    """Mails that wait, and that another data directory has written."""
    failed: int


def mail_numbers(connection: Connection, identity: str | None) -> MailNumbers:
    """Return the numbers of mails that are not sent, for the data directory with this identity."""

    def count(condition: ColumnElement[bool]) -> int:
        return connection.execute(select(func.count()).select_from(mail).where(condition)).scalar_one()

    waiting = mail.c.state == MailState.WAITING.value
    return MailNumbers(
        count(waiting & (mail.c.home == identity) & _is_enabled()),
        count(waiting & (mail.c.home != identity)),
        count(mail.c.state == MailState.FAILED.value),
    )


def _is_enabled() -> ColumnElement[bool]:
    """Return the condition that the account of a mail is enabled."""
    return mail.c.account_id.in_(select(account.c.id).where(account.c.disabled.is_(False)))


def _finished_before(connection: Connection, slug: str, at: datetime) -> bool:
    """Return whether the journal has an end of the tournament at or before a moment."""
    ended = (journal.c.action == FINISH) & (journal.c.subject == slug) & (journal.c.at <= at)
    return connection.execute(select(journal.c.number).where(ended).limit(1)).first() is not None


class Outbox:
    """Table of mails.

    Without a home no mail is written: a course sends none unless its operator asks for it.
    """

    def __init__(
        self,
        transactions: Transactions,
        settings: SettingsTable,
        addresses: Addresses,
        home: MailHome | None,
    ) -> None:
        self._transactions = transactions
        self._settings = settings
        self._addresses = addresses
        self._home = home

    @property
    def is_on(self) -> bool:
        """True if mails are written."""
        return self._home is not None

    # Causes, each within the transaction that stores it

    def add_check(self, decided: Version) -> None:
        """Write the result of a check to the members of its team."""
        if self._home is not None and decided.decided_at is not None:
            settings, notice = self._settings.load(), version_notice(decided)
            to = self._recipients(MailKind.CHECKS, account.c.team_id == decided.team_id)
            self._add(MailKind.CHECKS, settings, {one.id: notice for one in to}, to, decided.decided_at)

    def add_challenge(self, ended: Challenge) -> None:
        """Write the end of a challenge to the team that asked for it.

        The other team finds it in its feed and on its page: strangers must not be able to fill a mailbox.
        """
        if self._home is not None and ended.ended_at is not None:
            settings = self._settings.load()
            is_hidden = (
                ended.opponent_team_id not in (None, ended.team_id) and not settings.students_see_names
            )
            other = HIDDEN_BOT if is_hidden else ended.opponent_name
            notice = challenge_notice(ended, other, is_asker=True)
            to = self._recipients(MailKind.CHALLENGES, account.c.team_id == ended.team_id)
            self._add(MailKind.CHALLENGES, settings, {one.id: notice for one in to}, to, ended.ended_at)

    def add_tournament(self, finished: Competition) -> None:
        """Write the end of a tournament to the teams that played in it, and to lecturers, once each.

        A ruling may resume a finished tournament.  If it finished so long ago that the rows of its mails may
        be deleted, no mail is written.
        """
        if self._home is None or finished.kind is not CompetitionKind.TOURNAMENT or not finished.finished_at:
            return
        settings = self._settings.load()
        entered = competitor.c.competition_id == finished.id
        with self._transactions.reading() as connection:
            teams = select(version.c.team_id).join(competitor, competitor.c.version_id == version.c.id)
            played = set(connection.execute(teams.where(entered)).scalars())
            names = [
                *connection.execute(select(competitor.c.name).where(entered)).scalars(),
                *connection.execute(select(team.c.name)).scalars(),
            ]
            path = tournament_notice(finished.slug, "").path
            same = (mail.c.kind == MailKind.TOURNAMENTS.value) & (mail.c.path == path)
            before = set(connection.execute(select(mail.c.account_id).where(same)).scalars())
            if _finished_before(connection, finished.slug, finished.finished_at - KEPT):
                return
        teaches = account.c.role != Role.STUDENT.value
        to = [
            one
            for one in self._recipients(MailKind.TOURNAMENTS, teaches | account.c.team_id.in_(played))
            if one.id not in before and finished.is_visible(teaches=Role(one.role).teaches)
        ]
        title = finished.title.casefold()
        is_telling = not settings.students_see_names and any(name.casefold() in title for name in names)
        notices = {
            one.id: tournament_notice(
                finished.slug,
                "A tournament" if is_telling and one.role == Role.STUDENT.value else finished.title,
            )
            for one in to
        }
        self._add(MailKind.TOURNAMENTS, settings, notices, to, finished.finished_at)

    def add_link(self, account_id: int, purpose: LinkPurpose, until: datetime, now: datetime) -> str | None:
        """Write a one-time link to an account's address, and return the link's secret.

        Returns None if no mail is sent.
        """
        if self._home is None:
            return None
        with self._transactions.writing():
            to = self._recipients(None, account.c.id == account_id)
            if not to:
                return None
            settings, seed = self._settings.load(), new_secret()
            notice = link_notice(to[0].login, purpose, moment_text(settings, until))
            self._add(MailKind.LINK, settings, {account_id: notice}, to, now, seed)
            return self._home.secret(seed)

    def ask_to_confirm(self, account_id: int, address: str, now: datetime) -> None:
        """Store a new address of an account, and write the link that confirms it.

        Raises CourseError if the address is invalid, or no mail is sent.
        """
        if self._home is None:
            raise CourseError("this server sends no mail")
        seed = new_secret()
        with self._transactions.writing() as connection:
            until = self._addresses.begin(account_id, address, self._home.secret(seed), now)
            pending = select(account.c.id, account.c.login, mail_address.c.pending.label("address"))
            to = connection.execute(pending.join(mail_address).where(account.c.id == account_id)).all()
            settings = self._settings.load()
            notice = confirmation_notice(to[0].login, moment_text(settings, until))
            self._add(MailKind.ADDRESS, settings, {account_id: notice}, to, now, seed)

    def _recipients(self, kind: MailKind | None, condition: ColumnElement[bool]) -> Any:
        """Return the enabled accounts with an address that want a kind of mails; None is any kind."""
        query = (
            select(account.c.id, account.c.login, account.c.role, mail_address.c.address)
            .join(mail_address)
            .where(condition, account.c.disabled.is_(False), mail_address.c.address.is_not(None))
            .order_by(account.c.id)
        )
        if kind is not None:
            query = query.where(mail_address.c[kind.value].is_(True))
        with self._transactions.reading() as connection:
            return connection.execute(query).all()

    def _add(
        self,
        kind: MailKind,
        settings: Settings,
        notices: Mapping[int, Notice],
        to: Iterable[Any],
        now: datetime,
        seed: str | None = None,
    ) -> None:
        assert self._home is not None
        rows = [
            {
                "account_id": one.id,
                "kind": kind.value,
                "address": one.address,
                "subject": storable(f"[{settings.title}] {notices[one.id].title}"),
                "body": storable(notices[one.id].text),
                "path": notices[one.id].path,
                "seed": seed,
                "home": self._home.identity,
                "created_at": now,
                "state": MailState.WAITING.value,
                "attempts": 0,
                "due_at": now,
                "answer": "",
            }
            for one in to
        ]
        if rows:
            with self._transactions.writing() as connection:
                connection.execute(insert(mail), rows)

    # For the task that sends

    def due(self, now: datetime, most: int) -> list[Mail]:
        """Return mails that are to be sent now: links first, then the oldest.

        Mails of disabled accounts wait until these are enabled again.

        No mail waits for the time of a clock that was ahead: only an attempt that was made puts a mail off.
        """
        was_tried = (mail.c.attempts > 0) & (mail.c.tried_at <= now)
        is_urgent = case((mail.c.kind.in_(URGENT), 0), else_=1)
        query = (
            select(mail)
            .where(self._own(), (mail.c.due_at <= now) | ~was_tried)
            .order_by(is_urgent, mail.c.due_at, mail.c.id)
            .limit(most)
        )
        with self._transactions.reading() as connection:
            return [self._mail_of(row) for row in connection.execute(query)]

    def tried_between(self, after: datetime, now: datetime) -> list[datetime]:
        """Return the moments of the last attempts after a moment and until now, oldest first.

        Attempts are not counted that were made while the clock was ahead.
        """
        tried_at = mail.c.tried_at
        query = select(tried_at).where(tried_at > after, tried_at <= now).order_by(tried_at)
        with self._transactions.reading() as connection:
            return [at for at in connection.execute(query).scalars() if at is not None]

    def sent(self, mail_id: int, answer: str, now: datetime) -> None:
        """Record that the mail server has accepted a mail."""
        self._tried(mail_id, answer, now, state=MailState.SENT.value)

    def postponed(self, mail_id: int, answer: str, now: datetime, due_at: datetime) -> None:
        """Record an attempt that failed; the next one is made at ``due_at`` at the earliest."""
        self._tried(mail_id, answer, now, due_at=due_at)

    def failed(self, mail_id: int, answer: str, now: datetime) -> None:
        """Record that a mail cannot be delivered."""
        self._tried(mail_id, answer, now, state=MailState.FAILED.value)

    def _tried(self, mail_id: int, answer: str, now: datetime, **values: Any) -> None:
        row = {"attempts": mail.c.attempts + 1, "tried_at": now, "answer": storable(answer)[:LONGEST_ANSWER]}
        with self._transactions.writing() as connection:
            connection.execute(update(mail).where(mail.c.id == mail_id).values(**row, **values))

    def purge(self, now: datetime) -> None:
        """Delete old rows of mails that are sent or have failed."""
        over = (mail.c.state != MailState.WAITING.value) & (mail.c.created_at <= now - KEPT)
        with self._transactions.writing() as connection:
            connection.execute(delete(mail).where(over))

    # For the operator

    def status(self) -> OutboxStatus:
        """Return the numbers of mails that are not sent, and the last failures."""
        newest = (
            select(account.c.login, mail.c.kind, mail.c.address, mail.c.tried_at, mail.c.answer)
            .join(account)
            .where(mail.c.state == MailState.FAILED.value)
            .order_by(mail.c.tried_at.desc(), mail.c.id.desc())
            .limit(MOST_FAILURES)
        )
        with self._transactions.reading() as connection:
            numbers = mail_numbers(connection, None if self._home is None else self._home.identity)
            oldest: Select[Any] = select(func.min(mail.c.created_at)).where(self._own())
            return OutboxStatus(
                **numbers._asdict(),
                oldest=connection.execute(oldest).scalar_one(),
                failures=[
                    FailedMail(row.login, MailKind(row.kind), row.address, row.tried_at, row.answer)
                    for row in connection.execute(newest)
                ],
            )

    def release(self, now: datetime) -> int:
        """Let the mails be sent that are held; return their number."""
        assert self._home is not None
        values = {"home": self._home.identity, "due_at": now}
        with self._transactions.writing() as connection:
            return connection.execute(update(mail).where(self._held()).values(**values)).rowcount

    def discard(self) -> int:
        """Delete the mails that are held; return their number."""
        with self._transactions.writing() as connection:
            return connection.execute(delete(mail).where(self._held())).rowcount

    def retry(self, now: datetime) -> int:
        """Let the mails be sent that have failed, to the present addresses; return their number.

        Those of people without an address and of disabled accounts stay as they are, and so do links that
        confirm an address: their person can ask for another one.
        """
        address = select(mail_address.c.address).where(mail_address.c.account_id == mail.c.account_id)
        failed = (
            (mail.c.state == MailState.FAILED.value)
            & (mail.c.kind != MailKind.ADDRESS.value)
            & address.scalar_subquery().is_not(None)
            & _is_enabled()
        )
        values = {"state": MailState.WAITING.value, "attempts": 0, "due_at": now}
        again = update(mail).where(failed).values(address=address.scalar_subquery(), **values)
        with self._transactions.writing() as connection:
            return connection.execute(again).rowcount

    def _own(self) -> ColumnElement[bool]:
        """Return the condition of a mail that waits, and that this data directory sends."""
        identity = None if self._home is None else self._home.identity
        return (mail.c.state == MailState.WAITING.value) & (mail.c.home == identity) & _is_enabled()

    def _held(self) -> ColumnElement[bool]:
        identity = "" if self._home is None else self._home.identity
        return (mail.c.state == MailState.WAITING.value) & (mail.c.home != identity)

    def _mail_of(self, row: Any) -> Mail:
        path = row.path
        if row.seed is not None and self._home is not None:
            path += self._home.secret(row.seed)
        return Mail(
            row.id, MailKind(row.kind), row.address, row.subject, row.body, path, row.created_at, row.attempts
        )
