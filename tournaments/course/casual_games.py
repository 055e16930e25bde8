"""Casual games of people against bots and one another; they count for nothing."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from secrets import token_urlsafe
from typing import Any

from sqlalchemy import delete, func, insert, select, update

from tournaments.course.model import CourseError
from tournaments.course.schema import casual_game
from tournaments.course.transactions import Transactions

ADDRESS_BYTES = 16
"""Random bytes of an address, which gives access to the open seat and so must not be found by guessing."""


@dataclass(frozen=True, slots=True)
class CasualPlayer:
    """A player of a casual game."""

    name: str
    """Name on the page of the game, whose address the players may pass on."""
    owner: str = ""
    """Person who plays: an account or a visitor's browser; empty for a bot, and for a seat that is open."""
    reference: str = ""
    """Text of a reference player, such as ``ladder:5``; empty for others."""
    version_id: int | None = None
    """Id of the version that plays; None for others."""

    @property
    def is_bot(self) -> bool:
        """True if a bot plays."""
        return bool(self.reference) or self.version_id is not None


@dataclass(frozen=True, slots=True)
class CasualGame:
    """A casual game as it is stored."""

    id: int
    address: str
    """Unguessable text in the address of the game's page."""
    game: str
    """Spec text of the game."""
    opening: str
    """Text of the opening; empty for the game's own start."""
    players: tuple[CasualPlayer, CasualPlayer]
    """Players; the first one moves first."""
    moves: tuple[str, ...]
    """Moves after the opening, among them SWAP."""
    revision: int
    """Number of take-backs."""
    created_at: datetime
    changed_at: datetime
    ended_at: datetime | None = None
    winner: int | None = None
    sentence: str = ""
    """Sentence on the end of the game; empty while it goes on."""


class CasualGames:
    """Table of casual games."""

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions

    def add(
        self, game: str, opening: str, players: tuple[CasualPlayer, CasualPlayer], now: datetime
    ) -> CasualGame:
        """Add a game without moves."""
        values = {
            "address": token_urlsafe(ADDRESS_BYTES),
            "game": game,
            "opening": opening,
            "players": _players_text(players),
            "moves": "",
            "revision": 0,
            "created_at": now,
            "changed_at": now,
            "sentence": "",
        }
        with self._transactions.writing() as connection:
            row = connection.execute(insert(casual_game).values(values).returning(casual_game)).one()
            return _game_of(row)

    def by_address(self, address: str) -> CasualGame | None:
        """Return the game with an address."""
        with self._transactions.reading() as connection:
            row = connection.execute(
                select(casual_game).where(casual_game.c.address == address)
            ).one_or_none()
            return None if row is None else _game_of(row)

    def save(self, before: CasualGame, after: CasualGame) -> None:
        """Store a game's players, moves and end.  Raises CourseError if it has changed since ``before``."""
        statement = (
            update(casual_game)
            .where(
                casual_game.c.id == before.id,
                casual_game.c.moves == _moves_text(before.moves),
                casual_game.c.revision == before.revision,
                casual_game.c.players == _players_text(before.players),
                casual_game.c.ended_at.is_(None),
            )
            .values(
                players=_players_text(after.players),
                moves=_moves_text(after.moves),
                revision=after.revision,
                changed_at=after.changed_at,
                ended_at=after.ended_at,
                winner=after.winner,
                sentence=after.sentence,
            )
        )
        with self._transactions.writing() as connection:
            if connection.execute(statement).rowcount != 1:
                raise CourseError("the game has changed meanwhile: load its page again")

    def abandon(self, before: datetime, now: datetime, sentence: str) -> list[str]:
        """End all games without a change since a moment; return their addresses."""
        statement = (
            update(casual_game)
            .where(casual_game.c.ended_at.is_(None), casual_game.c.changed_at < before)
            .values(ended_at=now, sentence=sentence)
            .returning(casual_game.c.address)
        )
        with self._transactions.reading() as connection:
            query = select(func.count()).where(
                casual_game.c.ended_at.is_(None), casual_game.c.changed_at < before
            )
            if not connection.execute(query).scalar_one():
                return []
        with self._transactions.writing() as connection:
            return list(connection.execute(statement).scalars())

    def versions(self) -> set[int]:
        """Return the ids of the versions that play in games that are not over."""
        query = select(casual_game).where(casual_game.c.ended_at.is_(None))
        with self._transactions.reading() as connection:
            games = [_game_of(row) for row in connection.execute(query)]
        return {one.version_id for game in games for one in game.players if one.version_id is not None}

    def remove(self, before: datetime, most: int) -> None:
        """Delete the games that ended before a moment, and the oldest ended ones beyond a number."""
        ended = casual_game.c.ended_at.is_not(None)
        with self._transactions.reading() as connection:
            old = set(
                connection.execute(
                    select(casual_game.c.id).where(ended, casual_game.c.changed_at < before)
                ).scalars()
            )
            newest_first = select(casual_game.c.id).where(ended).order_by(casual_game.c.id.desc())
            old |= set(connection.execute(newest_first.offset(most)).scalars())
        if old:
            with self._transactions.writing() as connection:
                connection.execute(delete(casual_game).where(casual_game.c.id.in_(old)))


def _players_text(players: Sequence[CasualPlayer]) -> str:
    return json.dumps([asdict(player) for player in players])


def _moves_text(moves: Sequence[str]) -> str:
    return " ".join(moves)


def _game_of(row: Any) -> CasualGame:
    values = dict(row._mapping)
    first, second = (CasualPlayer(**fields) for fields in json.loads(values["players"]))
    return CasualGame(**values | {"players": (first, second), "moves": tuple(values["moves"].split())})


def with_move(game: CasualGame, move: str, now: datetime) -> CasualGame:
    """Return a game with one more move."""
    return replace(game, moves=(*game.moves, move), changed_at=now)
