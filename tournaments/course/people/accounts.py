"""Accounts of the people who can sign in."""

from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, delete, func, insert, select, update

from tournaments.course.model import Account, CourseError, MailKind, MailState, Role
from tournaments.course.people.passwords import Passwords
from tournaments.course.schema import account, link, mail, session, team
from tournaments.course.texts import login_of, person_name
from tournaments.course.transactions import Transactions


class Accounts:
    """Table of accounts.  Accounts are disabled, never deleted."""

    def __init__(self, transactions: Transactions, passwords: Passwords) -> None:
        self._transactions = transactions
        self._passwords = passwords

    def add(self, login: str, name: str, role: Role, team_id: int | None, now: datetime) -> Account:
        """Add an account, which cannot sign in before it has a password.

        Raises CourseError if the login is taken, or a name is invalid; and if there is no such team, or an
        account that is no student's has a team.
        """
        login, name = login_of(login), person_name(name)
        with self._transactions.writing() as connection:
            if connection.execute(select(account.c.id).where(account.c.login == login)).first() is not None:
                raise CourseError(f"the login {login!r} is taken: choose another one")
            _check_team(connection, role, team_id)
            values = {"name": name, "role": role.value, "team_id": team_id, "created_at": now}
            statement = insert(account).values(login=login, disabled=False, **values)
            number = connection.execute(statement.returning(account.c.id)).scalar_one()
            return _existing(connection, number)

    def get(self, account_id: int) -> Account | None:
        """Return the account with an ``id``."""
        with self._transactions.reading() as connection:
            return _find(connection, account_id)

    def by_login(self, login: str) -> Account | None:
        """Return the account with a login, in any spelling."""
        row = self._row(login)
        return None if row is None else account_of(row)

    def all(self) -> list[Account]:
        """Return all accounts, by login."""
        return self._listed(select(account))

    def of_team(self, team_id: int) -> list[Account]:
        """Return the members of a team, by login."""
        return self._listed(select(account).where(account.c.team_id == team_id))

    def hash_password(self, password: str) -> str:
        """Return the hash of a new password, for ``keep_password``.  Takes long: not for a transaction.

        Raises CourseError if the password is too short, too long or common.
        """
        return self._passwords.hash(password)

    def keep_password(self, account_id: int, kept: str) -> Account:
        """Store a new password's hash: all sessions end, and the account's link becomes void.

        Raises CourseError if there is no such account.
        """
        with self._transactions.writing() as connection:
            return keep_password(connection, account_id, kept)

    def check_password(self, login: str, password: str) -> tuple[Account, str] | None:
        """Return the account with this login and password, and the password's hash; None if there is none.

        An unknown login takes as long, and None does not reveal the reason.  As it takes long, the caller
        calls ``check_same_password`` with the hash in the transaction in which it acts on the result.
        """
        row = self._row(login)
        kept = None if row is None or row.disabled else row.password
        if not self._passwords.check(kept, password) or row is None or kept is None:
            return None
        if self._passwords.is_old(kept):
            kept = self._renew(row.id, kept, password)
        return account_of(row), kept

    def check_same_password(self, account_id: int, password_hash: str) -> None:
        """Raise CourseError if an account's password has another hash by now."""
        with self._transactions.reading() as connection:
            query = select(account.c.password).where(account.c.id == account_id)
            if connection.execute(query).scalar_one_or_none() != password_hash:
                raise CourseError("the password was changed in the meantime")

    def _row(self, login: str) -> Any | None:
        try:
            login = login_of(login)
        except CourseError:
            return None
        with self._transactions.reading() as connection:
            return connection.execute(select(account).where(account.c.login == login)).one_or_none()

    def _renew(self, account_id: int, kept: str, password: str) -> str:
        """Store a hash with the current parameters, unless another one was stored in the meantime.

        Return the hash that is stored then, if it is one of this password.
        """
        renewed = self._passwords.hash(password)
        with self._transactions.writing() as connection:
            same = (account.c.id == account_id) & (account.c.password == kept)
            if connection.execute(update(account).where(same).values(password=renewed)).rowcount:
                return renewed
            query = select(account.c.password).where(account.c.id == account_id)
            stored = connection.execute(query).scalar_one_or_none()
        return stored if stored is not None and self._passwords.check(stored, password) else kept

    def set_role(self, account_id: int, role: Role) -> Account:
        """Change the role; an account that is no longer a student's leaves its team.

        Raises CourseError for the last admin.
        """
        with self._transactions.writing() as connection:
            now = _existing(connection, account_id)
            if role is not Role.ADMIN:
                _check_not_last_admin(connection, now)
            team_id = now.team_id if role is Role.STUDENT else None
            return _change(connection, account_id, role=role.value, team_id=team_id)

    def set_disabled(self, account_id: int, disabled: bool) -> Account:
        """Disable or enable an account.

        Sessions end and links become void; tokens are suspended until it is enabled.

        Raises CourseError for the last admin.
        """
        with self._transactions.writing() as connection:
            now = _existing(connection, account_id)
            if disabled:
                _check_not_last_admin(connection, now)
                end_access(connection, account_id)
            return _change(connection, account_id, disabled=disabled)

    def move(self, account_id: int, team_id: int | None) -> Account:
        """Move a student into another team, or into none.  Raises CourseError."""
        with self._transactions.writing() as connection:
            _check_team(connection, _existing(connection, account_id).role, team_id)
            return _change(connection, account_id, team_id=team_id)

    def rename(self, account_id: int, name: str) -> Account:
        """Change the displayed name.  Raises CourseError."""
        name = person_name(name)
        with self._transactions.writing() as connection:
            _existing(connection, account_id)
            return _change(connection, account_id, name=name)

    def _listed(self, query: Select[Any]) -> list[Account]:
        with self._transactions.reading() as connection:
            found = [account_of(row) for row in connection.execute(query)]
        return sorted(found, key=lambda one: one.login)  # databases have different collations


def account_of(row: Any) -> Account:
    """Create an account from a row."""
    return Account(
        id=row.id,
        login=row.login,
        name=row.name,
        role=Role(row.role),
        team_id=row.team_id,
        has_password=row.password is not None,
        disabled=row.disabled,
        created_at=row.created_at,
    )


def keep_password(connection: Connection, account_id: int, kept: str) -> Account:
    """Store a hashed password; end all existing access, except tokens."""
    _existing(connection, account_id)
    end_access(connection, account_id)
    return _change(connection, account_id, password=kept)


def end_access(connection: Connection, account_id: int) -> None:
    """End an account's sessions, and make its link void."""
    connection.execute(delete(session).where(session.c.account_id == account_id))
    end_link(connection, account_id)


def end_link(connection: Connection, account_id: int) -> None:
    """Make an account's link void, and delete its mail if that was not sent."""
    connection.execute(delete(link).where(link.c.account_id == account_id))
    delete_unsent_links(connection, mail.c.account_id == account_id)


def delete_unsent_links(connection: Connection, condition: ColumnElement[bool]) -> None:
    """Delete the mails with links that were not sent, and that meet a condition."""
    unsent = mail.c.state.in_((MailState.WAITING.value, MailState.FAILED.value))
    connection.execute(delete(mail).where(mail.c.kind == MailKind.LINK.value, unsent, condition))


def _find(connection: Connection, account_id: int) -> Account | None:
    row = connection.execute(select(account).where(account.c.id == account_id)).one_or_none()
    return None if row is None else account_of(row)


def _existing(connection: Connection, account_id: int) -> Account:
    found = _find(connection, account_id)
    if found is None:
        raise CourseError(f"there is no account {account_id}")
    return found


def _change(connection: Connection, account_id: int, **values: Any) -> Account:
    connection.execute(update(account).where(account.c.id == account_id).values(**values))
    return _existing(connection, account_id)


def _check_team(connection: Connection, role: Role, team_id: int | None) -> None:
    if team_id is None:
        return
    if role is not Role.STUDENT:
        raise CourseError(f"only students have a team: this is {role.one}")
    if connection.execute(select(team.c.id).where(team.c.id == team_id)).first() is None:
        raise CourseError(f"there is no team {team_id}")


def _check_not_last_admin(connection: Connection, one: Account) -> None:
    """Check that another admin remains who can sign in, if this one can."""
    if one.role is not Role.ADMIN or one.disabled:
        return
    others = select(func.count()).where(
        account.c.role == Role.ADMIN.value, account.c.disabled.is_(False), account.c.id != one.id
    )
    if one.has_password:
        others = others.where(account.c.password.is_not(None))
    if connection.execute(others).scalar_one() == 0:
        raise CourseError("this is the last admin who can sign in: let another one sign in first")
