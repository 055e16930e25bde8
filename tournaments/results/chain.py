"""Hash chain over the contents of a store, in the order of storing (pure).

docs/verify.md documents the encoding, which never changes: chains of earlier versions stay valid.
"""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from typing import NamedTuple

SHORTEST_DIGEST = 16
"""Hexadecimal digits of the short form of a digest."""


class Kind(StrEnum):
    """The kind of an entry."""

    TOURNAMENT = "tournament"
    """Name, configuration and identity of the tournament; entered again when one of them changes."""
    GAME = "game"
    RULING = "ruling"
    """An entry of the journal."""
    ADOPTED = "adopted"
    """End of the items stored before the store had a chain; the subject is the time of the migration."""


class Item(NamedTuple):
    """A stored item."""

    kind: str
    subject: str
    """The name for people: a game's key; number, action and subject of a ruling."""
    content: str
    """SHA-256 of the content, in hexadecimal."""


class Link(NamedTuple):
    """One entry of the chain."""

    number: int
    """Counted from 1, without gaps."""
    kind: str
    subject: str
    content: str
    digest: str
    """SHA-256 of this entry and the digest before, in hexadecimal."""

    @property
    def name(self) -> str:
        """Name of the stored item, for people."""
        return self.kind if self.kind in (Kind.TOURNAMENT, Kind.ADOPTED) else f"{self.kind} {self.subject}"


class Head(NamedTuple):
    """Last entry of a chain at some time: a short proof of everything that was stored until then."""

    digest: str
    number: int


def digest_of(*fields: str | int | bytes) -> str:
    """Return the SHA-256, in hexadecimal, of the fields as netstrings (``3:abc,``).

    Numbers are written in decimal, text in UTF-8.
    """
    total = hashlib.sha256()
    for field in fields:
        encoded = field if isinstance(field, bytes) else str(field).encode()
        total.update(b"%d:%b," % (len(encoded), encoded))
    return total.hexdigest()


def tournament_item(name: str, config: str, identity: str) -> Item:
    """Return the item of the tournament; ``config`` and ``identity`` are the stored texts."""
    return Item(Kind.TOURNAMENT, name, digest_of(name, config, identity))


def game_item(key: str, round_number: int, pair: str, record: bytes) -> Item:
    """Return the item of a game; ``record`` is the packed record with its shared parts, see ``packing``."""
    return Item(Kind.GAME, key, digest_of(key, round_number, pair, record))


def ruling_item(
    number: int, at: str, action: str, subject: str, why: str, round_number: int, data: str
) -> Item:
    """Return the item of an entry of the journal; ``data`` is the stored text."""
    content = digest_of(number, at, action, subject, why, round_number, data)
    return Item(Kind.RULING, f"{number} ({action} {subject})", content)


def adopted_item(at: str) -> Item:
    """Return the item that ends those stored before there was a chain; ``at`` is UTC, ISO 8601."""
    return Item(Kind.ADOPTED, at, digest_of(at))


def extend(last: Head | None, items: Iterable[Item]) -> Iterator[Link]:
    """Yield the entries of items that are stored after ``last``, which is None if there is no entry yet."""
    before, after = last or ("", 0)
    for number, item in enumerate(items, after + 1):
        before = digest_of(number, before, *item)
        yield Link(number, *item, before)


def head_of(links: Sequence[Link]) -> Head | None:
    """Return the head of a chain; None if it has no entry."""
    return Head(links[-1].digest, links[-1].number) if links else None
