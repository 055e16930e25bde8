"""Teams, each with one bot."""

from dataclasses import replace
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, insert, select, update

from tournaments.course.model import CourseError, Team
from tournaments.course.schema import team, team_name
from tournaments.course.texts import name_key, same_name, shown
from tournaments.course.texts import team_name as valid_name
from tournaments.course.transactions import Transactions


class Teams:
    """Table of teams.  A team's former names stay reserved for it: they are in games."""

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions

    def add(self, name: str, now: datetime) -> Team:
        """Add a team.  Raises CourseError if the name is invalid, or too like one of another team."""
        name = valid_name(name)
        with self._transactions.writing() as connection:
            _check_free(connection, name, None)
            statement = insert(team).values(name=name, created_at=now).returning(team.c.id)
            number: int = connection.execute(statement).scalar_one()
            _note_name(connection, name, number)
            return Team(number, name, now)

    def get(self, team_id: int) -> Team | None:
        """Return the team with an ``id``."""
        with self._transactions.reading() as connection:
            row = connection.execute(select(team).where(team.c.id == team_id)).one_or_none()
            return None if row is None else _team_of(row)

    def by_name(self, name: str) -> Team | None:
        """Return the team that has or had a name; case is ignored."""
        try:
            wanted = same_name(valid_name(name))
        except CourseError:
            return None
        query = select(team).join(team_name).where(team_name.c.name == wanted)
        with self._transactions.reading() as connection:
            row = connection.execute(query).one_or_none()
            return None if row is None else _team_of(row)

    def all(self) -> list[Team]:
        """Return all teams, by name."""
        with self._transactions.reading() as connection:
            found = [_team_of(row) for row in connection.execute(select(team))]
        return sorted(found, key=lambda one: same_name(one.name))

    def rename(self, team_id: int, name: str) -> Team:
        """Change a team's name.  Raises CourseError as ``add`` does, or if there is no such team."""
        name = valid_name(name)
        with self._transactions.writing() as connection:
            found = self.get(team_id)
            if found is None:
                raise CourseError(f"there is no team {team_id}")
            _check_free(connection, name, team_id)
            _note_name(connection, name, team_id)
            connection.execute(update(team).where(team.c.id == team_id).values(name=name))
            return replace(found, name=name)


def _check_free(connection: Connection, name: str, own_id: int | None) -> None:
    """Raise CourseError if another team has, or had, a name like this one."""
    query = select(team.c.name, team.c.id).join(team_name).where(team_name.c.key == name_key(name))
    other = next((row for row in connection.execute(query) if row.id != own_id), None)
    if other is None:
        return
    if same_name(other.name) == same_name(name):
        raise CourseError(f"the team name {shown(name)} is taken: choose another one")
    if name_key(other.name) == name_key(name):
        raise CourseError(f"the team name {shown(name)} is too like {shown(other.name)}: choose another one")
    raise CourseError(
        f"the team name {shown(name)} belonged to {shown(other.name)} before: choose another one"
    )


def _note_name(connection: Connection, name: str, team_id: int) -> None:
    """Reserve a name for a team for ever, if it is not reserved yet."""
    same = same_name(name)
    if connection.execute(select(team_name.c.name).where(team_name.c.name == same)).first() is None:
        connection.execute(insert(team_name).values(name=same, key=name_key(name), team_id=team_id))


def _team_of(row: Any) -> Team:
    return Team(row.id, row.name, row.created_at)
