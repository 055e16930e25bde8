"""Transfer of a server's tables to another database, verified as a whole.

Rows are copied unchanged, then read from both databases and compared.  Sequences of numbers that are never
reused continue at the same number.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, MetaData, RowMapping, Table, func, insert, inspect, select, text

from tournaments.course import schema
from tournaments.course.course import Course
from tournaments.database.base import Connections, Location
from tournaments.database.location import Database
from tournaments.results.schema import metadata as store_metadata
from tournaments.results.store import Store

CHUNK = 200
"""Rows at a time: records of games have some kilobytes each."""
MODULUS = 1 << 256


class MoveError(Exception):
    """The transfer failed; the message gives the reason and the remedy."""


@dataclass(frozen=True)
class Contents:
    """Contents of a table; the order of its rows does not matter."""

    rows: int
    digest: str
    """Sum of the SHA-256 of all rows, in hexadecimal: equal for equal rows in any order."""


@dataclass(frozen=True)
class Moved:
    """Database or schema that was copied."""

    source: str
    target: str
    tables: Mapping[str, Contents]


def move(source: Database, target: Database, on_moved: Callable[[Moved], None]) -> None:
    """Copy a course and all its competitions into a database that has none of Kalarena's data.

    ``on_moved`` is called with each schema when it is copied and verified.  Nothing else may write meanwhile.
    Raises MoveError and StoreError; then the source is unchanged, and the target must not be used.
    """
    with Course(source.course()) as course, Course(target.course()):
        slugs = [competition.slug for competition in course.competitions.all()]
    for slug in slugs:
        for database in (source, target):
            with Store(database.competition(slug)):
                pass  # creates its tables
    pairs = [(source.competition(slug), target.competition(slug), store_metadata) for slug in slugs]
    # The course is last, so that a partial transfer is not taken for a server's database.
    pairs.append((source.course(), target.course(), schema.metadata))
    for old, new, metadata in pairs:
        on_moved(Moved(str(old), str(new), copy_tables(old, new, metadata)))


def copy_tables(source: Location, target: Location, metadata: MetaData) -> dict[str, Contents]:
    """Copy the rows of all tables, which exist and are empty in the target; return the contents of each.

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
            _continue_sequence(reader, writer, table)
        copied = {table.name: contents(reader, table) for table in tables}
        for table in tables:
            if contents(writer, table) != copied[table.name]:
                raise MoveError(
                    f"{target}: the rows of {table.name} are not those of {source}: nothing was kept"
                )
    return copied


def contents(connection: Connection, table: Table) -> Contents:
    """Return the contents of a table."""
    count, total = 0, 0
    for rows in _rows(connection, table):
        for row in rows:
            count += 1
            values = repr([row[column.name] for column in table.columns])
            total += int.from_bytes(hashlib.sha256(values.encode()).digest(), "big")
    return Contents(count, f"{total % MODULUS:064x}")


def _rows(connection: Connection, table: Table) -> Iterator[Sequence[RowMapping]]:
    """Yield rows in chunks by primary key: rows refer to earlier rows of their table."""
    statement = select(table).order_by(*table.primary_key.columns)
    result = connection.execution_options(yield_per=CHUNK).execute(statement)
    return result.mappings().partitions(CHUNK)


def _continue_sequence(reader: Connection, writer: Connection, table: Table) -> None:
    """Continue the target's sequence after the source's last number, even if that row is deleted."""
    column = table.autoincrement_column
    if column is None or writer.dialect.name != "postgresql":
        return  # SQLite uses the existing numbers
    last = reader.execute(select(func.max(column))).scalar() or 0
    if reader.dialect.name == "sqlite" and inspect(reader).has_table("sqlite_sequence"):
        kept = text("SELECT seq FROM sqlite_sequence WHERE name = :name")
        last = max(last, reader.execute(kept, {"name": table.name}).scalar() or 0)
    if last:
        sequence = text("SELECT setval(pg_get_serial_sequence(:table, :column), :last)")
        writer.execute(sequence, {"table": f'"{table.name}"', "column": column.name, "last": last})
