"""Verification of a tournament: every game is rejudged, and all files made from the games are made again.

Nothing is changed, and each process holds one game at a time in memory.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

from referee.errors import RefereeError
from referee.judge.replay_check import Complaint, check_replay
from referee.judge.results import GameRecord
from referee.judge.verdict_text import visible
from referee.version import VERSION
from tournaments.config.host_speed import ScaledControl
from tournaments.database.base import Location
from tournaments.files.durable import FileLock
from tournaments.processes.process_pool import map_in_processes
from tournaments.reporting import tables
from tournaments.reporting.old_tables import (
    fewer_rounds,
    games_at_that_time,
    missing_rulings,
    number_in,
    read_text,
)
from tournaments.reporting.tournament_directory import STORE_FILE
from tournaments.reporting.tournament_results import TournamentResults
from tournaments.results.chain import Head, Link
from tournaments.results.chain_check import CHAIN, HEAD, ChainCheck, ExpectedHead, Finding, changed
from tournaments.results.game_files import GAMES, LOCK_FILE, public_view, wire_text
from tournaments.results.game_summary import GameSummary
from tournaments.results.journal import Action
from tournaments.results.rulings import pairing_key
from tournaments.results.store import NothingKeptError, Store, StoreError
from tournaments.schedule.pairing import Pairing

TABLES = "tables"
"""Subject of findings about all tables together."""

_NOT_CHAINED = (
    "not chained: the store is of an older version and has no hash chain, so that missing or rewritten games "
    "are not found; the next run makes the chain"
)
_OLD_TABLE = (
    "made from {} games, there are {} now: run the tournament again to have it written anew, or see "
    "kalarena tournament table"
)
_OLD_ROUNDS = (
    "made with rounds = {}, the tournament has rounds = {} now: run the tournament again to have it written "
    "anew, or see kalarena tournament table"
)

_OLD_RULINGS = (
    "made before the last {} of the journal: a ruling was interrupted before it wrote the tables; run the "
    "tournament again to have them written anew"
)

_OLD_VERSION = (
    "an earlier version wrote it, and this one writes it otherwise: run the tournament again, which plays "
    "nothing, to have it written anew"
)
SINCE_CHAINS = '"score_percent"'
"""A key of results.json that versions without a chain do not write."""
GAMES_PER_PROCESS = 200
"""Minimum games per process, which takes up to a second to start, in which so many games are judged."""


class Sentence(Complaint):
    """A complaint that is a complete sentence."""

    def __init__(self, what: str, text: str, *, remark: bool = False) -> None:
        super().__init__(what, "", "", text, remark=remark)

    def __str__(self) -> str:
        return visible(self.follows)


class Remark(Sentence):
    """A sentence for information, when nothing is wrong."""

    def __init__(self, text: str) -> None:
        super().__init__("remark", text, remark=True)


@dataclass(frozen=True, slots=True)
class RecordFinding:
    """A complaint with its game."""

    key: str
    """Key of the game, or the name of the file that is about all games."""
    complaint: Complaint

    def __str__(self) -> str:
        return f"{self.key}: {self.complaint}"

    def to_json(self) -> dict[str, object]:
        """Return the complaint for scripts."""
        one = self.complaint
        return {
            "key": self.key,
            "what": one.what,
            "where": one.where,
            "recorded": one.recorded,
            "follows": one.follows,
            "remark": one.remark,
        }


@dataclass
class Verification:
    """Findings of a verification, counted continuously."""

    games: int = 0
    """Number of games that were rejudged."""
    wrong: int = 0
    """Number of games with a difference."""
    elsewhere: int = 0
    """Number of complaints about tables, reports and the chain, which cover all games together."""
    heads: dict[str, Head] = field(default_factory=dict)
    """Directory -> head of its chain."""
    processes: int = 1
    """Maximum number of processes that judge games at a time."""
    progress: Callable[[int, int], None] = lambda done, total: None
    """Callback for the number of games that were judged, and of all games of the directory."""

    @property
    def is_clean(self) -> bool:
        """True if nothing is wrong; remarks do not count."""
        return not self.wrong and not self.elsewhere

    def of_record(self, record: GameRecord) -> Iterator[RecordFinding]:
        """Rejudge a single record."""
        yield from self._count(record.key, check_replay(record, VERSION))

    def of_directory(
        self, directory: Path, expected: ExpectedHead | None = None, location: Location | None = None
    ) -> Iterator[RecordFinding]:
        """Verify a tournament's directory, where a run may be in progress, or may have been killed.

        Args:
            directory: The tournament's directory.
            expected: A head digest that was kept elsewhere.
            location: The tournament's database if it is not in the directory.

        Raises StoreError if its store cannot be read at all, NothingKeptError if it is empty, HeadError if
        the head is ambiguous, WorkerDiedError.
        """
        folders = _folders(directory)  # before the games, since each game is stored before it has a folder
        at_work = _is_at_work(directory)
        started: dict[str, str] = {}
        with Store(location or directory / STORE_FILE, read_only=True) as store:
            try:
                summary = TournamentResults.load(store)
                meant = DeclaredTournament.of(summary, store.identity())
            except NothingKeptError:
                raise
            except (StoreError, LookupError, TypeError, ValueError) as error:
                store.played()  # raises StoreError if more than a column or two is damaged
                damaged = Complaint("tournament", "", "as one that was played", str(error))
                yield self._elsewhere(STORE_FILE, damaged)
                chained = store.chained()
                if chained is not None:
                    yield from self._of_chain(directory, ChainCheck(chained), expected)
                return
            chained = store.chained()  # after the games, so that the chain covers each of them
            chain = None if chained is None else ChainCheck(chained)
            judge = partial(_judge, store.location, meant, {} if chain is None else chain.games, directory)
            processes = min(self.processes, len(summary.kept) // GAMES_PER_PROCESS)
            judged = map_in_processes(judge, summary.kept, processes, (StoreError,))
            for number, (row, (complaints, started_at)) in enumerate(
                zip(summary.kept, judged, strict=True), 1
            ):
                started[row.key] = started_at
                self.progress(number, len(summary.kept))
                yield from self._count(row.key, complaints)
            if chain is not None:
                yield from self._of_chain(directory, chain, expected)
            else:
                yield RecordFinding(CHAIN, Remark(_NOT_CHAINED))
                if expected is not None:
                    yield self._elsewhere(
                        HEAD, Sentence(HEAD, f"{expected.digest} cannot be compared: {_NOT_CHAINED}")
                    )
        for key in sorted(folders - {row.key for row in summary.kept}):
            yield self._elsewhere(
                key, Complaint("folder", GAMES, "one of this game", "no such game is kept, and none")
            )
        if at_work or _is_at_work(directory):
            yield RecordFinding(TABLES, Remark("a run is at work: its tables are not compared"))
        else:
            yield from self._of_reports(summary, directory, started, chain)
        if not summary.kept and not self.elsewhere:
            raise NothingKeptError(
                f"{directory} holds no game yet, there is nothing to verify: run the tournament first"
            )

    def _of_chain(
        self, directory: Path, chain: ChainCheck, expected: ExpectedHead | None
    ) -> Iterator[RecordFinding]:
        """Check that the chain is whole, and that its items are unchanged in the store."""
        if chain.store.head is not None:
            self.heads[str(directory)] = chain.store.head
        for finding in chain.findings():
            yield self._finding(CHAIN, finding)
        if expected is not None:
            yield self._finding(HEAD, chain.against(expected))

    def _finding(self, what: str, finding: Finding) -> RecordFinding:
        if finding.remark:
            return RecordFinding(finding.subject, Remark(finding.text))
        return self._elsewhere(finding.subject, Sentence(what, finding.text))

    def _of_reports(
        self,
        summary: TournamentResults,
        directory: Path,
        started: Mapping[str, str],
        chain: ChainCheck | None,
    ) -> Iterator[RecordFinding]:
        """Compare the tables that were written last with the stored games.

        A run or a ruling that was killed has written none: the tables are then those of an earlier time.
        """
        games_csv = read_text(directory / "games.csv")
        made_from = cache(partial(games_at_that_time, games_csv or "", summary, started))
        reports: dict[str, Callable[[TournamentResults], str]] = {
            "results.json": lambda made: made.render("json") + "\n",
            "standings.csv": lambda made: made.render("csv") + "\n",
            "games.csv": lambda made: tables.games_csv(made.games),
            "report.html": lambda made: made.render("html"),
        }
        # Versions without a chain wrote other tables, and computed other ratings.
        was_adopted = chain is None or chain.adopted is not None
        is_old = was_adopted and SINCE_CHAINS not in (read_text(directory / "results.json") or "")
        for name, made in reports.items():
            written = read_text(directory / name)
            if written is None:
                continue
            try:
                follows = made(summary)
            except (LookupError, TypeError, ValueError, ArithmeticError) as error:
                yield self._elsewhere(name, Complaint("table", "", "as one of these games", f"{error!r}"))
                continue
            if written == follows:
                continue
            games = made_from()
            if games is None and (name == "results.json" or games_csv is None):
                games = number_in(directory, "games")
            if games is not None and games < len(summary.games):
                yield RecordFinding(name, Remark(_OLD_TABLE.format(games, len(summary.games))))
                continue
            if is_old:
                yield RecordFinding(name, Remark(_OLD_VERSION))
                continue
            rounds = fewer_rounds(summary, made, written, number_in(directory, "rounds"))
            if rounds is not None:
                yield RecordFinding(name, Remark(_OLD_ROUNDS.format(rounds, summary.plan.rounds)))
                continue
            missing = missing_rulings(summary, made, written)
            if missing:
                entries = "entry" if missing == 1 else f"{missing} entries"
                yield RecordFinding(name, Remark(_OLD_RULINGS.format(entries)))
                continue
            for complaint in _text_differences(name, written, follows):
                yield self._elsewhere(name, complaint)

    def _elsewhere(self, key: str, complaint: Complaint) -> RecordFinding:
        self.elsewhere += 1
        return RecordFinding(key, complaint)

    def _count(self, key: str, complaints: Sequence[Complaint]) -> Iterator[RecordFinding]:
        self.games += 1
        self.wrong += any(not complaint.remark for complaint in complaints)
        for complaint in complaints:
            yield RecordFinding(key, complaint)


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


def _judge(
    place: Location,
    meant: DeclaredTournament,
    links: Mapping[str, Link],
    directory: Path,
    rows: Sequence[GameSummary],
) -> Iterator[Judged]:
    """Rejudge games of a store, in any process, and yield the findings of each.  Raises StoreError."""
    with Store(place, read_only=True) as store:
        for row in rows:
            started: dict[str, str] = {}
            complaints = of_game(store, meant, row, directory, started, links.get(row.key))
            yield Judged(complaints, started.get(row.key, ""))


def of_game(
    store: Store,
    meant: DeclaredTournament | None,
    row: GameSummary,
    directory: Path | None,
    started: dict[str, str] | None = None,
    link: Link | None = None,
) -> list[Complaint]:
    """Return the findings of a game: its record, the store's columns, its pairing, its files.

    ``meant`` is None for games without a schedule, ``directory`` None for games without files.  The time of
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
        if directory is not None:
            complaints += _of_files(directory, row.key, record)
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        complaints.append(Complaint("record", "", "as a whole one", f"{error!r}"))
    return complaints


def _of_columns(row: GameSummary, record: GameRecord) -> Iterator[Complaint]:
    """Compare the columns of the store's table with the record."""
    follows = GameSummary.of(record, row.round, row.pair)
    for column, stored, made in zip(GameSummary._fields, row, follows, strict=True):
        if stored != made:
            yield Complaint(column, "store", repr(stored), repr(made))


def _of_tournament(
    tournament: DeclaredTournament, row: GameSummary, record: GameRecord
) -> Iterator[Complaint]:
    """Check that the schedule has the game, and that it was played according to it."""
    pairing = tournament.pairings.get(pairing_key(row.key))
    if pairing is None:
        yield Complaint("key", "store", row.key, f"no game of that key among {tournament.total}, and none")
    else:
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


def _of_files(directory: Path, key: str, record: GameRecord) -> Iterator[Complaint]:
    """Compare the published files with the record, where there are some."""
    folder = directory / GAMES / key
    written = read_text(folder / "game.json")
    if written is not None:
        follows = json.dumps(public_view(record)) + "\n"
        if written != follows:
            yield from _json_differences(written, follows)
    written = read_text(folder / "wire.txt")
    if written is not None:
        text = wire_text(record).encode("utf-8", "backslashreplace").decode("utf-8")
        yield from _text_differences("wire.txt", written, text)


def _json_differences(written: str, follows: str) -> Iterator[Complaint]:
    """Yield the fields of a game's JSON that differ.

    Fields that an older version did not write yet are no fault.
    """
    try:
        old = json.loads(written)
        if not isinstance(old, dict):
            raise ValueError("it is no object")
    except ValueError as error:
        yield Complaint("game.json", "", "as JSON", str(error))
        return
    new = json.loads(follows)
    for name, value in old.items():
        if name not in new:
            yield Complaint(name, "game.json", "there", "no such field")
        elif not _agrees(value, new[name]):
            yield Complaint(name, "game.json", *_first_difference(value, new[name]))
    if old.get("versions") == {**new["versions"], "kalarena": VERSION}:
        for name in new.keys() - old.keys():
            yield Complaint(name, "game.json", "nothing", _short(new[name]))


def _agrees(old: Any, new: Any) -> bool:
    """Return whether two JSON values are equal, and of the same type: 1 is neither 1.0 nor true."""
    return json.dumps(old) == json.dumps(new)


def _first_difference(old: Any, new: Any) -> tuple[str, str]:
    """Return the two values, or for lists of equal length the first pair that differs."""
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for one, other in zip(old, new, strict=True):
            if not _agrees(one, other):
                return _short(one), _short(other)
    if isinstance(old, list) and isinstance(new, list) and len(old) != len(new):
        return f"{len(old)} rows", f"{len(new)} rows"
    return _short(old), _short(new)


def _text_differences(name: str, written: str, follows: str) -> Iterator[Complaint]:
    """Yield the first line of a text that differs."""
    if written == follows:
        return
    old, new = written.split("\n"), follows.split("\n")
    for number, (one, other) in enumerate(zip(old, new, strict=False), 1):
        if one != other:
            same = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), 0)
            begin = max(0, same - SHOWN_BEFORE)
            yield Complaint(name, f"line {number}", _short(one[begin:]), _short(other[begin:]))
            return
    yield Complaint(name, "", f"{len(old)} lines", f"{len(new)} lines")


LONGEST_SHOWN = 200
"""Characters of a value in a complaint."""
SHOWN_BEFORE = 60
"""Characters of a line that are shown before its first difference."""


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= LONGEST_SHOWN else text[:LONGEST_SHOWN] + "..."


def _is_at_work(directory: Path) -> bool:
    """Return whether a run, or a ruling, holds the directory's lock."""
    try:
        # Shared: another check is no run. Released at once, so that a run can start.
        FileLock(directory / LOCK_FILE, shared=True, wait=False).close()
    except BlockingIOError:
        return True
    except OSError:  # there was no run, or the file is not readable, or this file system has no locks
        pass
    return False


def _folders(directory: Path) -> set[str]:
    """Return the keys of the games that have a folder, without the incomplete folders of killed runs."""
    folder = directory / GAMES
    if not folder.is_dir():
        return set()
    return {path.name for path in folder.iterdir() if not path.name.startswith(".")}


def read_record(path: Path) -> GameRecord:
    """Return the record in a file, msgpack or JSON, whatever its name.  Raises RefereeError, OSError."""
    content = path.read_bytes()
    if content.lstrip()[:1] != b"{":
        return GameRecord.from_msgpack(content)
    try:
        view = json.loads(content)
    except ValueError as error:
        raise RefereeError(f"this is no game record: {error}") from error
    return GameRecord.from_json(view)
