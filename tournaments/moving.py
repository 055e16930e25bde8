"""A server's tables from one database to another: all of them, verified, or an error.

Rows are copied as they are, by the same tables on both sides, and then read from both and compared.  Numbers
that are never given twice go on where they were.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, MetaData, RowMapping, Table, func, insert, inspect, select, text

from tournaments.course import schema as course_schema
from tournaments.course.course import Course
from tournaments.database.connections import Connections
from tournaments.database.location import Database
from tournaments.database.place import Place
from tournaments.schema import metadata as store_metadata
from tournaments.store import Store

CHUNK = 200
"""Rows at a time: records of games have some kilobytes each."""
MODULUS = 1 << 256


class MoveError(Exception):
    """It could not be moved; the message says why and what to do."""


@dataclass(frozen=True)
class Contents:
    """What a table holds, whatever the order."""

    rows: int
    digest: str
    """The sum of the SHA-256 of all rows, in hexadecimal: equal for equal rows in any order."""


@dataclass(frozen=True)
class Moved:
    """One database, or schema, that was copied."""

    source: str
    target: str
    tables: Mapping[str, Contents]


def move(source: Database, target: Database, told: Callable[[Moved], None]) -> None:
    """Copy a course and all its competitions into a database that holds nothing of ours yet.

    ``told`` gets each schema when it is there and verified.  Nobody may write meanwhile.  Raises MoveError
    and StoreError; the source is as it was then, and what the target got is of no use.
    """
    with Course(source.course()) as course, Course(target.course()):
        slugs = [competition.slug for competition in course.competitions.all()]
    for slug in slugs:  # before the course, which is what a server looks for: half of a move is no server
        for database in (source, target):
            with Store(database.competition(slug)):
                pass  # has its tables now
    places = [(source.competition(slug), target.competition(slug), store_metadata) for slug in slugs]
    places.append((source.course(), target.course(), course_schema.metadata))
    for old, new, metadata in places:
        told(Moved(str(old), str(new), copy_tables(old, new, metadata)))


def copy_tables(source: Place, target: Place, metadata: MetaData) -> dict[str, Contents]:
    """Copy the rows of all tables, which are there and empty; what each holds.

    Raises MoveError, StoreError; then the target's tables are still empty.
    """
    tables = metadata.sorted_tables
    with (
        Connections(source, read_only=True) as old,
        Connections(target) as new,
        old.reading() as reader,
        new.writing("nothing was copied: ") as writer,
    ):
        for table in tables:
            if writer.execute(select(func.count()).select_from(table)).scalar_one():
                raise MoveError(f"{target} holds something already: use a database that is empty")
        for table in tables:
            for rows in _rows(reader, table):
                writer.execute(insert(table), [dict(row) for row in rows])
            _go_on_counting(reader, writer, table)
        copied = {table.name: contents(reader, table) for table in tables}
        for table in tables:
            if contents(writer, table) != copied[table.name]:
                raise MoveError(
                    f"{target}: the rows of {table.name} are not those of {source}: nothing was kept"
                )
    return copied


def contents(connection: Connection, table: Table) -> Contents:
    """What a table holds."""
    count, total = 0, 0
    for rows in _rows(connection, table):
        for row in rows:
            count += 1
            values = repr([row[column.name] for column in table.columns])
            total += int.from_bytes(hashlib.sha256(values.encode()).digest(), "big")
    return Contents(count, f"{total % MODULUS:064x}")


def _rows(connection: Connection, table: Table) -> Iterator[Sequence[RowMapping]]:
    """In chunks, and in the order of the primary key: who refers to an earlier row finds it there."""
    statement = select(table).order_by(*table.primary_key.columns)
    result = connection.execution_options(yield_per=CHUNK).execute(statement)
    return result.mappings().partitions(CHUNK)


def _go_on_counting(reader: Connection, writer: Connection, table: Table) -> None:
    """Let the target give the next number after the source's last one, also if that row is gone."""
    column = table.autoincrement_column
    if column is None or writer.dialect.name != "postgresql":
        return  # SQLite looks at the numbers that are there
    last = reader.execute(select(func.max(column))).scalar() or 0
    if reader.dialect.name == "sqlite" and inspect(reader).has_table("sqlite_sequence"):
        kept = text("SELECT seq FROM sqlite_sequence WHERE name = :name")
        last = max(last, reader.execute(kept, {"name": table.name}).scalar() or 0)
    if last:
        sequence = text("SELECT setval(pg_get_serial_sequence(:table, :column), :last)")
        told = {"table": f'"{table.name}"', "column": column.name, "last": last}
        writer.execute(sequence, told)
