"""The practice ladder and the tournaments of a course; the games of each are in a store of its own."""

import json
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, insert, select, update

from tournaments.course.model import (
    HIDDEN,
    Competition,
    CompetitionKind,
    CompetitionState,
    Competitor,
    CourseError,
)
from tournaments.course.schema import competition, competitor
from tournaments.course.texts import name_key, person_name, shown
from tournaments.course.transactions import Transactions
from tournaments.database.base import storable
from tournaments.database.location import SLUG

_MAY_BECOME: dict[CompetitionState, tuple[CompetitionState, ...]] = {
    CompetitionState.DRAFT: (CompetitionState.CREATED, CompetitionState.DELETED),
    CompetitionState.CREATED: (
        *(CompetitionState.RUNNING, CompetitionState.FAILED),
        *(CompetitionState.CANCELLED, CompetitionState.DELETED),
    ),
    CompetitionState.RUNNING: (
        *(CompetitionState.PAUSED, CompetitionState.FINISHED, CompetitionState.FAILED),
        CompetitionState.CANCELLED,
    ),
    # The last game may end while it is being paused.
    CompetitionState.PAUSED: (
        *(CompetitionState.RUNNING, CompetitionState.FINISHED, CompetitionState.FAILED),
        *(CompetitionState.CANCELLED, CompetitionState.DELETED),
    ),
    # A ruling may require more games.
    CompetitionState.FINISHED: (CompetitionState.RUNNING, CompetitionState.FAILED, CompetitionState.DELETED),
    CompetitionState.FAILED: (
        *(CompetitionState.RUNNING, CompetitionState.PAUSED),
        *(CompetitionState.CANCELLED, CompetitionState.DELETED),
    ),
    CompetitionState.CANCELLED: (CompetitionState.RUNNING, CompetitionState.DELETED),
    CompetitionState.DELETED: (),
}
"""Next states besides the current one, which only changes the message."""
REMOTE = "remote:"
"""Prefix of the name of a remote bot in ``Competitor.reference``."""


class Competitions:
    """Tables of competitions and their competitors."""

    def __init__(
        self, transactions: Transactions, on_finished: Callable[[Competition], None] = lambda _: None
    ) -> None:
        """``on_finished`` is called with each competition that has finished, within the transaction."""
        self._transactions = transactions
        self._on_finished = on_finished

    def add(
        self,
        slug: str,
        title: str,
        kind: CompetitionKind,
        spec: Mapping[str, Any],
        created_by: int | None,
        now: datetime,
        state: CompetitionState = CompetitionState.CREATED,
    ) -> Competition:
        """Add a competition.  Raises CourseError if its slug is taken or invalid."""
        title = person_name(title, "title")
        if not SLUG.fullmatch(slug):
            raise CourseError(f"{shown(slug)} cannot be in an address: use 1 to 40 of a-z, 0-9 and -")
        with self._transactions.writing() as connection:
            if self._one(competition.c.slug == slug) is not None:
                raise CourseError(f"there is a competition {slug!r} already: choose another name")
            statement = insert(competition).values(
                slug=slug,
                title=title,
                kind=kind.value,
                state=state.value,
                spec=json.dumps(spec),
                message="",
                created_at=now,
                created_by=created_by,
            )
            return _competition_of(connection.execute(statement.returning(competition)).one())

    def get(self, competition_id: int) -> Competition | None:
        """Return the competition with an ``id``."""
        return self._one(competition.c.id == competition_id)

    def by_slug(self, slug: str) -> Competition | None:
        """Return the competition with a slug."""
        return self._one(competition.c.slug == slug) if SLUG.fullmatch(slug) else None

    def all(self) -> list[Competition]:
        """Return all competitions, newest first."""
        with self._transactions.reading() as connection:
            rows = connection.execute(select(competition).order_by(competition.c.id.desc()))
            return [_competition_of(row) for row in rows]

    def set_state(
        self, competition_id: int, state: CompetitionState, message: str, now: datetime
    ) -> Competition:
        """Set a competition's state and message.

        Raises CourseError if the state cannot follow the current one.
        """
        with self._transactions.writing() as connection:
            found = self._existing(competition_id)
            if state is not found.state and state not in _MAY_BECOME[found.state]:
                raise CourseError(f"{found.title!r} is {found.state.value}: it cannot be {state.value} next")
            values: dict[str, Any] = {"state": state.value, "message": storable(message)}
            if state is CompetitionState.RUNNING:
                values |= {"started_at": found.started_at or now, "finished_at": None}
            elif state is CompetitionState.FINISHED:
                values["finished_at"] = found.finished_at or now
            changed = _change(connection, competition_id, **values)
            if state is CompetitionState.FINISHED and found.state is not state:
                self._on_finished(changed)
            return changed

    def set_hidden(self, competition_id: int, hidden: bool) -> Competition:
        """Hide a competition from all but lecturers, or show it again."""
        with self._transactions.writing() as connection:
            found = self._existing(competition_id)
            return _change(connection, competition_id, spec=json.dumps({**found.spec, HIDDEN: hidden}))

    def enter(
        self, competition_id: int, name: str, version_id: int | None, reference: str | None
    ) -> Competitor:
        """Enter a version, or a reference player, under a name, which it keeps for ever.

        Raises CourseError if the name, or a name too like it, belongs to another competitor here.
        """
        if (version_id is None) is (reference is None):
            raise CourseError(f"{shown(name)} needs either a version or a reference player")
        entering = Competitor(competition_id, name, version_id, reference)
        with self._transactions.writing() as connection:
            self._existing(competition_id)
            same = (competitor.c.competition_id == competition_id) & (competitor.c.key == name_key(name))
            row = connection.execute(select(competitor).where(same)).one_or_none()
            if row is None:
                _enter(connection, entering, name_key(name))
            elif _competitor_of(row) != entering:
                raise CourseError(f"in this competition the name {shown(row.name)} is somebody else's")
        return entering

    def enter_remote(self, competition_id: int, name: str, remote: str) -> Competitor:
        """Enter remote bots of a name, which several teams may use.  Names that are alike do not matter.

        A challenge has the team of its remote bot, and its games are for that team and lecturers alone.

        Args:
            competition_id: Id of a competition for challenges.
            name: Name in the games.
            remote: Name of the connection.
        """
        entering = Competitor(competition_id, name, None, f"{REMOTE}{remote}")
        with self._transactions.writing() as connection:
            self._existing(competition_id)
            # Older rows have the key of ``enter``.  No such key has a colon.
            same = (competitor.c.competition_id == competition_id) & (competitor.c.name == name)
            if connection.execute(select(competitor).where(same)).first() is None:
                _enter(connection, entering, f"{REMOTE}{remote}")
        return entering

    def competitors(self, competition_id: int) -> list[Competitor]:
        """Return all present and former competitors, by name."""
        query = select(competitor).where(competitor.c.competition_id == competition_id)
        with self._transactions.reading() as connection:
            found = [_competitor_of(row) for row in connection.execute(query)]
        return sorted(found, key=lambda one: one.name)

    def _one(self, condition: ColumnElement[bool]) -> Competition | None:
        with self._transactions.reading() as connection:
            row = connection.execute(select(competition).where(condition)).one_or_none()
            return None if row is None else _competition_of(row)

    def _existing(self, competition_id: int) -> Competition:
        found = self.get(competition_id)
        if found is None:
            raise CourseError(f"there is no competition {competition_id}")
        return found


def _change(connection: Connection, competition_id: int, **values: Any) -> Competition:
    statement = update(competition).where(competition.c.id == competition_id).values(**values)
    return _competition_of(connection.execute(statement.returning(competition)).one())


def _enter(connection: Connection, entering: Competitor, key: str) -> None:
    values = {"name": entering.name, "version_id": entering.version_id, "reference": entering.reference}
    statement = insert(competitor).values(competition_id=entering.competition_id, key=key, **values)
    connection.execute(statement)


def _competition_of(row: Any) -> Competition:
    values = {**row._mapping, "spec": json.loads(row.spec)}
    values |= {"kind": CompetitionKind(row.kind), "state": CompetitionState(row.state)}
    return Competition(**values)


def _competitor_of(row: Any) -> Competitor:
    return Competitor(row.competition_id, row.name, row.version_id, row.reference)
