"""Verification of single games: the record, the store's columns, the pairing, and the published files."""

import contextlib
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from referee.games.base import LONGEST_FAULT
from referee.judge.replay_check import Complaint, check_replay
from referee.judge.results import GameRecord
from referee.judge.verdict_text import visible
from referee.version import VERSION
from tournaments.config.host_speed import ScaledControl
from tournaments.database.base import Location, storable
from tournaments.reporting.file_differences import json_differences, text_differences
from tournaments.reporting.tournament_results import TournamentResults
from tournaments.results.chain import Link
from tournaments.results.chain_check import CHAIN, changed
from tournaments.results.game_archives import GameFilesReader
from tournaments.results.game_files import contents, kept_contents
from tournaments.results.game_summary import GameSummary
from tournaments.results.journal import Action
from tournaments.results.rulings import pairing_key
from tournaments.results.store import Store, StoreError
from tournaments.schedule.pairing import Pairing


class Sentence(Complaint):
    """A complaint that is a complete sentence."""

    def __init__(self, what: str, text: str, *, remark: bool = False) -> None:
        super().__init__(what, "", "", text, remark=remark)

    def __str__(self) -> str:
        return visible(self.follows)


@dataclass(frozen=True)
class DeclaredTournament:
    """Properties of a tournament's games according to its schedule and configuration."""

    game: str
    control: str
    bots: Sequence[str]
    """Names of the bots, by their numbers."""
    total: int
    """Number of games of the whole tournament."""
    pairings: Mapping[str, Pairing]
    """All pairings so far, by their keys."""
    scaled: ScaledControl | None = None
    """Time control on each host; None if it is the same on all."""
    digests: Mapping[str, str] = field(default_factory=dict)
    """Name of a bot -> digest of its files, where it is recorded."""
    openings: Mapping[int, str] = field(default_factory=dict)
    """Number of an opening -> its text; empty if it is not known."""
    replayed: Collection[str] = ()
    """Keys of the pairings that a ruling has had replayed."""

    def control_of(self, record: GameRecord) -> str:
        """Return the time control of a game, which depends on the host that played it."""
        return self.control if self.scaled is None else str(self.scaled.on(record.host_speed))

    def opening_of(self, pairing: Pairing) -> str | None:
        """Return the opening's text; None if it is not known."""
        return self.openings.get(pairing.opening % len(self.openings)) if self.openings else None

    @classmethod
    def of(
        cls, summary: TournamentResults, identity: Mapping[str, Any] | None = None
    ) -> "DeclaredTournament":
        """Create the object from a summary and the identity in the store."""
        identity = identity or {}
        pairings = {pairing.key: pairing for pairing in summary.schedule.pairings(summary.history)}
        added = {
            entry.subject: entry.data["digest"] for entry in summary.journal if entry.action is Action.ADD
        }
        return cls(
            summary.game,
            summary.control,
            tuple(summary.bots),
            summary.total,
            pairings,
            summary.scaled,
            {**identity.get("bots", {}), **added},
            _openings(summary, pairings, has_none=identity.get("openings") == ""),
            summary.history.earlier,
        )


def _openings(
    summary: TournamentResults, pairings: Mapping[str, Pairing], *, has_none: bool
) -> Mapping[int, str]:
    """Return the openings by number: the text that most games of that number have."""
    if has_none:
        return {0: ""}
    played: dict[int, Counter[str]] = {number: Counter() for number in range(summary.plan.openings)}
    for row in summary.kept:
        pairing = pairings.get(pairing_key(row.key))
        if pairing is not None and played:
            played[pairing.opening % len(played)][row.opening] += 1
    return {number: max(texts, key=texts.__getitem__, default="") for number, texts in played.items()}


class Judged(NamedTuple):
    """Complaints about one game."""

    complaints: list[Complaint]
    started_at: str
    """UTC, ISO 8601; empty if the record cannot be read."""


def judge_games(
    location: Location,
    meant: DeclaredTournament,
    links: Mapping[str, Link],
    directory: Path,
    rows: Sequence[GameSummary],
) -> Iterator[Judged]:
    """Rejudge games of a store, in any process, and yield the findings of each.  Raises StoreError."""
    files = GameFilesReader(directory)
    with Store(location, read_only=True) as store:
        for row in rows:
            started: dict[str, str] = {}
            complaints = verify_game(store, meant, row, files, started, links.get(row.key))
            yield Judged(complaints, started.get(row.key, ""))


def verify_game(
    store: Store,
    meant: DeclaredTournament | None,
    row: GameSummary,
    files: GameFilesReader | None,
    started: dict[str, str] | None = None,
    link: Link | None = None,
) -> list[Complaint]:
    """Return the findings of a game: its record, the store's columns, its pairing, its files.

    ``meant`` is None for games without a schedule, ``files`` None for games without files.  The time of
    its start is added to ``started``.  ``link`` is its entry in the chain.
    """
    complaints: list[Complaint] = []
    try:
        if link is not None:
            stored = store.stored([row.key]).get(row.key)
            if stored is not None and stored.item.content != link.content:
                complaints.append(Sentence(CHAIN, changed(link)))
        record = store.record(row.key)
    except StoreError as error:
        return [*complaints, Complaint("record", "", "as a whole one", str(error))]
    if started is not None:
        started[row.key] = record.started_at
    complaints += check_replay(record, VERSION)
    try:
        complaints += _of_columns(row, record)
        if meant is not None:
            complaints += _of_tournament(meant, row, record)
        if files is not None:
            complaints += _of_files(files, row.key, record)
    except OSError as error:
        complaints.append(Sentence("files", f"a file of this game cannot be read ({error})"))
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        complaints.append(Complaint("record", "", "as a whole one", f"{error!r}"))
    return complaints


def _of_columns(row: GameSummary, record: GameRecord) -> Iterator[Complaint]:
    """Compare the columns of the store's table with the record."""
    # SQLite tables of earlier versions have verdicts and words that PostgreSQL could not store.
    row, follows = (
        one._replace(detail=storable(one.detail), fault=one.fault and one.fault[:LONGEST_FAULT])
        for one in (row, GameSummary.of(record, row.round, row.pair))
    )
    for column, stored, made in zip(GameSummary._fields, row, follows, strict=True):
        if stored != made:
            yield Complaint(column, "store", repr(stored), repr(made))


def _of_tournament(
    tournament: DeclaredTournament, row: GameSummary, record: GameRecord
) -> Iterator[Complaint]:
    """Check that the schedule has the game, and that it was played according to it."""
    key = pairing_key(row.key)
    pairing = tournament.pairings.get(key)
    # A game that was to be replayed is due no more if a bot has withdrawn since.
    if pairing is None and key not in tournament.replayed:
        yield Complaint("key", "store", row.key, f"no game of that key among {tournament.total}, and none")
    if pairing is not None:
        bots = (tournament.bots[pairing.first], tournament.bots[pairing.second])
        meant = (pairing.round, *bots, pairing.pair)
        stored = (row.round, row.first, row.second, row.pair)
        for name, one, other in zip(("round", "first", "second", "pair"), stored, meant, strict=True):
            if one != other:
                yield Complaint(name, "schedule", repr(one), repr(other))
        opening = tournament.opening_of(pairing)
        if opening is not None and record.opening != opening:
            yield Complaint("opening", "schedule", repr(record.opening), repr(opening))
    for player in record.players:
        digest = tournament.digests.get(player.name, player.digest)
        if digest != player.digest:
            yield Complaint(f"digest of {player.name}", "tournament", repr(player.digest), repr(digest))
    for name, recorded, declared in (
        ("game", record.game, tournament.game),
        ("control", str(record.control), tournament.control_of(record)),
    ):
        if recorded != declared:
            yield Complaint(name, "tournament", repr(recorded), repr(declared))


def _of_files(files: GameFilesReader, key: str, record: GameRecord) -> Iterator[Complaint]:
    """Compare the published files with the record, in each place where the game has files.

    Missing files are no fault: those that are private to a bot may have been handed out.
    """
    for name, text in contents(record).items():
        follows = text.encode("utf-8", "backslashreplace")
        for written in files.copies(key, name):
            if written != follows:
                both = written.decode("utf-8", "replace"), follows.decode("utf-8")
                yield from json_differences(*both) if name == "game.json" else text_differences(name, *both)
    # Only their owner, who runs the tournament, can read the files that were kept.
    with contextlib.suppress(PermissionError):
        for name, content in kept_contents(record).items():
            for kept in files.copies(key, name):
                if kept != content:
                    yield Sentence("files", f"{name} is not the file that was kept")
