"""Parts that the records of several games have in common, as a store keeps them: once, and numbered."""

from collections.abc import Mapping
from typing import NamedTuple

from sqlalchemy import Connection, insert, select

from tournaments.results.packing import is_split, is_whole, numbers_of, parts_of, split, whole
from tournaments.results.schema import shared_part

MOST_SHARED = 10_000
"""Maximum number of parts, which are kept in memory; further records are stored with theirs.

A tournament of 1000 bots on 100 hosts has fewer.  Only a part that differs in each game would have more.
"""


class SharedParts:
    """The parts of a store that were read or written so far.  Stored parts never change."""

    def __init__(self) -> None:
        self._contents: dict[int, bytes] = {}
        self._numbers: dict[bytes, int] = {}

    def whole(self, connection: Connection, records: Mapping[str, bytes]) -> dict[str, bytes]:
        """Return stored records by their keys, with their shared parts.

        A record whose parts are missing is not changed.
        """
        numbers = {number for one in records.values() if is_split(one) for number in numbers_of(one)}
        if not self._contents.keys() >= numbers:
            self.read(connection)
        return {key: self._whole(key, one) if is_split(one) else one for key, one in records.items()}

    def _whole(self, key: str, record: bytes) -> bytes:
        parts = [self._contents.get(number) for number in numbers_of(record)]
        there = [part for part in parts if part is not None]
        return whole(record, there, key) if len(there) == len(parts) > 0 else record

    def read(self, connection: Connection) -> None:
        """Read the parts that were stored since the last time."""
        last = max(self._contents, default=0)
        query = select(shared_part.c.number, shared_part.c.content).where(shared_part.c.number > last)
        self.add({row.number: row.content for row in connection.execute(query)})

    def add(self, stored: dict[int, bytes]) -> None:
        """Add parts that are stored."""
        self._contents |= stored
        self._numbers |= {content: number for number, content in stored.items()}

    def split_all(self, connection: Connection, packed: Mapping[str, bytes]) -> "SplitRecords":
        """Store the new parts of packed records, which are given by their keys; return the stored form.

        This is a step of a transaction; ``add`` must be called with the new parts when it is done.
        """
        parts = {key: parts_of(one) for key, one in packed.items() if is_whole(one)}
        contents = {content for one in parts.values() for content in one.shared}
        if not self._numbers.keys() >= contents:
            self.read(connection)  # another process may have stored them
        last = max(self._contents, default=0)
        new: dict[bytes, int] = {}
        records = dict(packed)
        for key, one in parts.items():
            missing = set(one.shared) - self._numbers.keys() - new.keys()
            if one.key != key or last + len(new) + len(missing) > MOST_SHARED:
                continue
            for content in sorted(missing):
                new[content] = last + len(new) + 1
            records[key] = split(one, [self._numbers.get(part) or new[part] for part in one.shared])
        added = {number: content for content, number in new.items()}
        if added:
            rows = [{"number": number, "content": content} for number, content in added.items()]
            connection.execute(insert(shared_part), rows)
        return SplitRecords(records, added)


class SplitRecords(NamedTuple):
    """Packed records as they are stored, and the parts that were stored with them."""

    records: Mapping[str, bytes]
    added: dict[int, bytes]
    """Number -> new part."""
