"""The database of a course: people, submissions, competitions, and a journal of actions."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from tournaments.course.audit import Act, AuditLog
from tournaments.course.casual_games import CasualGames
from tournaments.course.challenges import Challenges
from tournaments.course.competitions import Competitions
from tournaments.course.mail.addresses import Addresses
from tournaments.course.mail.outbox import MailHome, Outbox
from tournaments.course.people.accounts import Accounts
from tournaments.course.people.credentials import Links, Sessions, Tokens
from tournaments.course.people.passwords import Passwords
from tournaments.course.people.teams import Teams
from tournaments.course.schema import REVISION
from tournaments.course.settings import SettingsTable
from tournaments.course.transactions import Transactions
from tournaments.course.versions import Versions
from tournaments.database.base import Connections, Location
from tournaments.database.location import Database
from tournaments.database.migrations import Migrations
from tournaments.database.state import DatabaseState, database_state

PEOPLE = "people"
"""Group of the tables of people and their access."""
CASUAL = "casual"
"""Group of the table of casual games."""
MAIL = "mail"
"""Group of the tables of addresses and mails."""
USES = "uses"
"""Group of the column with each token's last use, which changes nobody's access."""
MIGRATIONS = Migrations(
    scripts=Path(__file__).parent / "migrations",
    newest=REVISION,
    noun="course",
    remedy="start the server first",
)


class Course:
    """The course's database.  Use as a context manager, from any thread.

    All its methods raise CourseError for an invalid request, and StoreError for an error of the database.
    """

    def __init__(
        self, location: Location, passwords: Passwords | None = None, mail: MailHome | None = None
    ) -> None:
        """Open the course's database at a location; create it or migrate it if needed.

        ``mail`` is the data directory of a server that sends mail; without one no mail is written.
        """
        passwords = passwords or Passwords()
        self._connections = Connections(location)
        try:
            MIGRATIONS.apply(self._connections)
        except BaseException:
            self._connections.close()
            raise
        self._transactions = Transactions(self._connections)
        people, of_mail = self._transactions.group(PEOPLE), self._transactions.group(MAIL)
        self.settings = SettingsTable(self._transactions)
        self.addresses = Addresses(of_mail)
        self.outbox = Outbox(of_mail, self.settings, self.addresses, mail)
        self.accounts = Accounts(people, passwords)
        self.teams = Teams(people)
        self.sessions = Sessions(self._transactions, ending=people)
        self.links = Links(people, self.outbox.add_link)
        self.tokens = Tokens(people, using=self._transactions.group(USES))
        self.versions = Versions(self._transactions, self.outbox.add_check)
        self.competitions = Competitions(self._transactions, self.outbox.add_tournament)
        self.challenges = Challenges(self._transactions, self.outbox.add_challenge)
        self.casual_games = CasualGames(self._transactions.group(CASUAL))
        self.journal = AuditLog(self._transactions)

    def __enter__(self) -> "Course":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections."""
        self._connections.close()

    @property
    def writes(self) -> int:
        """Number of transactions of this object that may have changed data of the course.

        Casual games, of which each move is a write, mails and uses of tokens are not among these data.
        """
        return self._transactions.writes_without(CASUAL, MAIL, USES)

    @property
    def writes_of_people(self) -> int:
        """Number of such transactions for accounts, teams, links, tokens and the end of sessions."""
        return self._transactions.writes[PEOPLE]

    def state(self, database: Database) -> DatabaseState:
        """Return the state of the course's database.  Blocks."""
        return database_state(database, self._connections)

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Read all data in the block as of one moment, which is also faster."""
        with self._transactions.reading():
            yield

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Commit all changes of this thread in the block, or none.

        Other writers are blocked meanwhile: the block must not hash passwords or wait.
        """
        with self._transactions.writing():
            yield

    def act(
        self, now: datetime, account_id: int | None, action: str, subject: str = "", **detail: Any
    ) -> AbstractContextManager[Act]:
        """Record an action in the journal, in one transaction with the changes of the block.

        There is no other way to add an entry.  The block may complete the yielded ``Act``.  If it raises, or
        this process is killed, neither the changes nor the entry exist.  As for ``transaction``, the block
        must not hash passwords or wait.

        Args:
            now: The moment of the action.
            account_id: The account that acts; None for the server and the command line.
            action: Name of the action, such as ``version.withdraw``.
            subject: Object of the action, such as a login.
            detail: JSON data without secrets.

        """
        return self.journal.act(now, account_id, action, subject, **detail)
