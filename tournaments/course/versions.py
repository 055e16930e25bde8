"""Versions of bots that teams submitted, with their checks."""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, delete, func, insert, select, update

from tournaments.course.model import Checked, CheckedGame, CourseError, Version, VersionState
from tournaments.course.schema import checked, checked_game, team, version
from tournaments.course.settings import Settings, day_of
from tournaments.course.transactions import Transactions
from tournaments.course.upload_limits import Storage, may_upload
from tournaments.database.base import storable

VERSIONS_WITH_GAMES = 10
"""Number of a team's newest versions whose checks' games are kept."""


class Versions:
    """Table of all versions of all teams.  No version is ever deleted."""

    def __init__(
        self, transactions: Transactions, on_decided: Callable[[Version], None] = lambda _: None
    ) -> None:
        """``on_decided`` is called with each decided version, within the transaction."""
        self._transactions = transactions
        self._on_decided = on_decided
        self._arriving: list[tuple[int, datetime]] = []

    @contextmanager
    def arriving(self, team_id: int, at: datetime) -> Iterator[None]:
        """Note that an upload arrived at ``at``; it is stored or refused when the block ends."""
        upload = (team_id, at)
        self._arriving.append(upload)
        try:
            yield
        finally:
            self._arriving.remove(upload)

    def teams_arriving(self, at: datetime) -> set[int]:
        """Return the teams with uploads that arrived at or before a moment and are not stored yet.

        Call it before the versions are read: an upload is among the former until it is among the latter.
        """
        return {team_id for team_id, arrived in tuple(self._arriving) if arrived <= at}

    def add(
        self,
        team_id: int,
        content: str,
        files: int,
        size: int,
        submitted_by: int,
        origin: str,
        now: datetime,
        rules: Settings | None = None,
    ) -> tuple[Version, bool]:
        """Store an upload as the team's next version, which waits for its check.

        Returns the existing version and False if the team's newest version has the same content.  With
        ``rules``, raises CourseError if they do not permit an upload at this moment: uploads are counted
        here, so that two simultaneous ones cannot both be the last one.
        """
        with self._transactions.writing() as connection:
            newest = connection.execute(_newest_first(version.c.team_id == team_id).limit(1)).one_or_none()
            if newest is not None and newest.content == content:
                return _version_of(newest), False
            if connection.execute(select(team.c.id).where(team.c.id == team_id)).first() is None:
                raise CourseError(f"there is no team {team_id}")
            if rules is not None:
                before = newest.number if newest is not None else 0
                today = self.counts(team_id, day_of(rules, now)[0])
                why_not = may_upload(rules, now, today, before, self.storage(team_id, content, size))
                if why_not is not None:
                    raise CourseError(why_not)
            statement = insert(version).values(
                team_id=team_id,
                number=1 if newest is None else newest.number + 1,
                content=content,
                files=files,
                size=size,
                submitted_at=now,
                submitted_by=submitted_by,
                origin=origin,
                state=VersionState.QUEUED.value,
                attempts=0,
                failures=0,
                withdrawn=False,
            )
            return _version_of(connection.execute(statement.returning(version)).one()), True

    def get(self, version_id: int) -> Version | None:
        """Return the version with an ``id``."""
        with self._transactions.reading() as connection:
            return _find(connection, version_id)

    def by_ids(self, version_ids: Iterable[int]) -> dict[int, Version]:
        """Return the versions with these ids, by id."""
        found = self._listed(select(version).where(version.c.id.in_(set(version_ids))))
        return {one.id: one for one in found}

    def of_team(self, team_id: int) -> list[Version]:
        """Return a team's versions, newest first."""
        return self._listed(_newest_first(version.c.team_id == team_id))

    def newest(self) -> dict[int, Version]:
        """Return team id -> newest version, in whatever state it is."""
        last = select(func.max(version.c.id)).group_by(version.c.team_id).scalar_subquery()
        found = self._listed(select(version).where(version.c.id.in_(last)).order_by(version.c.team_id))
        return {one.team_id: one for one in found}

    def all(self, limit: int) -> list[Version]:
        """Return versions of all teams, newest first: at most ``limit``."""
        return self._listed(select(version).order_by(version.c.id.desc()).limit(limit))

    def unfinished(self) -> list[Version]:
        """Return the versions that wait for a check or whose check was interrupted, oldest first."""
        states = [state.value for state in VersionState if not state.is_decided]
        return self._listed(select(version).where(version.c.state.in_(states)).order_by(version.c.id))

    def without_result(self, at: datetime | None = None) -> list[Version]:
        """Return the versions that may still qualify: those that are not decided, and those that are stuck.

        The oldest is first.  Withdrawn versions are left out.  With ``at``, only versions that were submitted
        at or before that moment count.
        """
        states = [
            state.value for state in VersionState if not state.is_decided or state is VersionState.STUCK
        ]
        may_qualify = version.c.state.in_(states) & version.c.withdrawn.is_(False)
        if at is not None:
            may_qualify &= version.c.submitted_at <= at
        return self._listed(select(version).where(may_qualify).order_by(version.c.id))

    def begin_check(self, version_id: int) -> Version:
        """Record the beginning of a check, of a version that waits for one or whose check was interrupted.

        Raises CourseError if the version is decided.
        """
        with self._transactions.writing() as connection:
            found = _existing(connection, version_id)
            if found.state.is_decided:
                raise CourseError(f"version {found.number} is {found.state.value} already: requeue it first")
            values = {"state": VersionState.CHECKING.value, "attempts": found.attempts + 1}
            return _change(connection, version_id, **values)

    def requeue(self, version_id: int) -> Version:
        """Queue a version for another check.

        A decided version loses its result: it does not play until it qualifies again.
        """
        with self._transactions.writing() as connection:
            found = _existing(connection, version_id)
            attempts = 0 if found.state.is_decided else found.attempts
            values = {"attempts": attempts, "decided_at": None, "digest": None, "failures": 0}
            _forget_check(connection, version_id)
            return _change(connection, version_id, state=VersionState.QUEUED.value, **values)

    def decide(
        self,
        version_id: int,
        state: VersionState,
        result: Checked,
        digest: str | None,
        failures: int,
        now: datetime,
        games: Sequence[CheckedGame] = (),
    ) -> Version:
        """Store the result of a check, and delete the games of the team's old versions.

        ``digest`` is that of the bot that plays, for a version that qualified; else None.  ``games`` are
        those of the check, in their order.  Raises CourseError if no check is in progress.
        """
        if not state.is_decided or (digest is None) is (state is VersionState.QUALIFIED):
            raise ValueError(f"{state} with the digest {digest} is no decision")
        report = None if result.report is None else json.dumps(result.report)
        with self._transactions.writing() as connection:
            found = _existing(connection, version_id)
            if found.state is not VersionState.CHECKING:
                raise CourseError(f"version {found.number} is {found.state.value}, and not being checked")
            _forget_check(connection, version_id)
            values = {"version_id": version_id, "report": report, "log": storable(result.log)}
            connection.execute(insert(checked).values(**values))
            if games:
                connection.execute(insert(checked_game), list(_game_rows(version_id, games)))
                _forget_old_games(connection, found)
            changes = {"decided_at": now, "digest": digest, "failures": failures}
            decided = _change(connection, version_id, state=state.value, **changes)
            self._on_decided(decided)
            return decided

    def checked(self, version_id: int) -> Checked | None:
        """Return the result of the last decided check; None if there is none."""
        with self._transactions.reading() as connection:
            row = connection.execute(select(checked).where(checked.c.version_id == version_id)).one_or_none()
            if row is None:
                return None
            return Checked(None if row.report is None else json.loads(row.report), row.log)

    def checked_games(self, version_id: int) -> list[str]:
        """Return the keys of the stored games of a version's last decided check, in their order."""
        query = (
            select(checked_game.c.key)
            .where(checked_game.c.version_id == version_id)
            .order_by(checked_game.c.number)
        )
        with self._transactions.reading() as connection:
            return list(connection.execute(query).scalars())

    def checked_game(self, version_id: int, key: str) -> CheckedGame | None:
        """Return a game of a version's last decided check; None if it is not stored."""
        query = select(checked_game.c.key, checked_game.c.player, checked_game.c.record).where(
            checked_game.c.version_id == version_id, checked_game.c.key == storable(key)
        )
        with self._transactions.reading() as connection:
            row = connection.execute(query).one_or_none()
            return None if row is None else CheckedGame(*row)

    def withdraw(self, version_id: int, withdrawn: bool) -> Version:
        """Take a version out of use, or into use again.  Raises CourseError if there is none."""
        with self._transactions.writing() as connection:
            _existing(connection, version_id)
            return _change(connection, version_id, withdrawn=withdrawn)

    def current(self, at: datetime | None = None) -> dict[int, Version]:
        """Return team id -> version that plays for the team: the newest qualified one that is not withdrawn.

        With ``at``, only versions that were submitted at or before that moment count, whenever they
        qualified.
        """
        plays = (version.c.state == VersionState.QUALIFIED.value) & version.c.withdrawn.is_(False)
        if at is not None:
            plays &= version.c.submitted_at <= at
        newest = (
            select(version.c.team_id, func.max(version.c.number).label("number"))
            .where(plays)
            .group_by(version.c.team_id)
            .subquery()
        )
        same = (version.c.team_id == newest.c.team_id) & (version.c.number == newest.c.number)
        found = self._listed(select(version).join(newest, same).order_by(version.c.team_id))
        return {one.team_id: one for one in found}

    def counts(self, team_id: int, since: datetime) -> int:
        """Return the number of versions that a team submitted at a moment or after it."""
        query = select(func.count()).where(version.c.team_id == team_id, version.c.submitted_at >= since)
        with self._transactions.reading() as connection:
            return connection.execute(query).scalar_one()

    def storage(self, team_id: int, content: str = "", size: int = 0) -> Storage:
        """Return the storage of uploads, and what one of ``size`` bytes with the digest ``content`` adds."""
        contents = select(version.c.content, func.max(version.c.size).label("size")).group_by(
            version.c.content
        )
        own = contents.where(version.c.team_id == team_id).subquery()
        everybody = contents.subquery()
        is_there = select(version.c.id).where(version.c.team_id == team_id, version.c.content == content)
        with self._transactions.reading() as connection:
            of_team, of_course = (
                int(connection.execute(select(func.coalesce(func.sum(one.c.size), 0))).scalar_one())
                for one in (own, everybody)
            )
            adds = 0 if connection.execute(is_there.limit(1)).first() is not None else size
        return Storage(of_team, of_course, adds)

    def _listed(self, query: Select[Any]) -> list[Version]:
        with self._transactions.reading() as connection:
            return [_version_of(row) for row in connection.execute(query)]


def _newest_first(condition: ColumnElement[bool]) -> Select[Any]:
    return select(version).where(condition).order_by(version.c.number.desc())


def _find(connection: Connection, version_id: int) -> Version | None:
    row = connection.execute(select(version).where(version.c.id == version_id)).one_or_none()
    return None if row is None else _version_of(row)


def _existing(connection: Connection, version_id: int) -> Version:
    found = _find(connection, version_id)
    if found is None:
        raise CourseError(f"there is no version with the id {version_id}")
    return found


def _forget_check(connection: Connection, version_id: int) -> None:
    """Delete the result and the games of a version's check."""
    for table in (checked, checked_game):
        connection.execute(delete(table).where(table.c.version_id == version_id))


def _game_rows(version_id: int, games: Sequence[CheckedGame]) -> Iterator[dict[str, Any]]:
    for number, game in enumerate(games, 1):
        values = {"key": game.key, "player": game.player, "record": game.packed}
        yield {"version_id": version_id, "number": number, **values}


def _forget_old_games(connection: Connection, decided: Version) -> None:
    """Delete the games of a team's versions except the newest ones and the one that is being decided."""
    newest_first = _newest_first(version.c.team_id == decided.team_id).with_only_columns(version.c.id)
    old = set(connection.execute(newest_first.offset(VERSIONS_WITH_GAMES)).scalars()) - {decided.id}
    if old:
        connection.execute(delete(checked_game).where(checked_game.c.version_id.in_(old)))


def _change(connection: Connection, version_id: int, **values: Any) -> Version:
    statement = update(version).where(version.c.id == version_id).values(**values).returning(version)
    return _version_of(connection.execute(statement).one())


def _version_of(row: Any) -> Version:
    return Version(**{**row._mapping, "state": VersionState(row.state)})
