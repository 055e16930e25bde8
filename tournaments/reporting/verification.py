"""Verification of a tournament: every game is rejudged, and all files made from the games are made again.

Nothing is changed, and each process holds one game at a time in memory.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path

from referee.errors import RefereeError
from referee.games.catalog import find_game
from referee.games.plugins import GAMES_VARIABLE
from referee.games.spec import SpecError, parse_spec
from referee.judge.replay_check import Complaint, check_replay
from referee.judge.results import GameRecord
from referee.version import VERSION
from tournaments.config.tournament import module_digest
from tournaments.database.base import Location
from tournaments.files.durable import FileLock
from tournaments.processes.process_pool import map_in_processes
from tournaments.reporting import tables
from tournaments.reporting.file_differences import text_differences
from tournaments.reporting.game_verification import DeclaredTournament, Sentence, judge_games
from tournaments.reporting.old_tables import (
    earlier_results,
    fewer_games,
    fewer_rounds,
    games_in_tables,
    is_made_from,
    linked_games,
    missing_rulings,
    number_in,
    order_of_storing,
    read_text,
)
from tournaments.reporting.tournament_directory import STORE_FILE
from tournaments.reporting.tournament_results import TournamentResults
from tournaments.results.chain import Head
from tournaments.results.chain_check import CHAIN, HEAD, ChainCheck, ExpectedHead, Finding
from tournaments.results.game_archives import GameFilesReader
from tournaments.results.game_files import GAMES, LOCK_FILE
from tournaments.results.store import GAME_MODULE, NothingKeptError, Store, StoreError

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
SINCE_CHAINS = {
    "results.json": '"score_percent"',
    "standings.csv": ",score_percent",
    "report.html": "<th>score %</th>",
}
"""Table -> text in it that versions without a chain do not write; their games.csv is that of today."""
GAMES_PER_PROCESS = 200
"""Minimum games per process, which takes up to a second to start, in which so many games are judged."""


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
        """Rejudge a single record.  Raises RefereeError if the rules of its game are not here."""
        _require_rules(record.game)
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
        the head is ambiguous, RefereeError if the rules of its game are not here, WorkerDiedError.
        """
        elsewhere_before = self.elsewhere
        files = GameFilesReader(directory)
        folders = files.keys()  # before the games, since each game is stored before it has a folder
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
                yield self._add_general(STORE_FILE, damaged)
                chained = store.chained()
                if chained is not None:
                    yield from self._of_chain(directory, ChainCheck(chained), expected)
                return
            yield from _other_module(store)
            if summary.kept and _is_of(meant.game, store, summary.kept[0].key):
                _require_rules(meant.game)
            chained = store.chained()  # after the games, so that the chain covers each of them
            chain = None if chained is None else ChainCheck(chained)
            judge = partial(
                judge_games, store.location, meant, {} if chain is None else chain.games, directory
            )
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
                    yield self._add_general(
                        HEAD, Sentence(HEAD, f"{expected.digest} cannot be compared: {_NOT_CHAINED}")
                    )
        for key in sorted(folders - {row.key for row in summary.kept}):
            yield self._add_general(
                key, Complaint("folder", GAMES, "one of this game", "no such game is kept, and none")
            )
        for name, why in files.damaged.items():
            damaged = Complaint("archive", GAMES, "as a whole one", f"{why}, and another one")
            yield self._add_general(name, damaged)
        if at_work or _is_at_work(directory):
            yield RecordFinding(TABLES, Remark("a run is active: its tables are not compared"))
        else:
            yield from self._of_reports(summary, directory, started, chain)
        if not summary.kept and self.elsewhere == elsewhere_before:
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
        return self._add_general(finding.subject, Sentence(what, finding.text))

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
        order = order_of_storing(chain, started)
        earlier = cache(lambda: list(earlier_results(summary, order, games_in_tables(directory))))
        linked = linked_games(read_text(directory / "report.html") or "")
        reports: dict[str, Callable[[TournamentResults], str]] = {
            "results.json": lambda made: made.render("json") + "\n",
            "standings.csv": lambda made: made.render("csv") + "\n",
            "games.csv": lambda made: tables.games_csv(made.games),
            "report.html": lambda made: made.render("html", has_folder=linked.__contains__),
        }
        was_adopted = chain is None or chain.adopted is not None
        for name, made in reports.items():
            written = read_text(directory / name)
            if written is None:
                continue
            try:
                follows = made(summary)
            except (LookupError, TypeError, ValueError, ArithmeticError) as error:
                yield self._add_general(name, Complaint("table", "", "as one of these games", f"{error!r}"))
                continue
            if written == follows:
                continue
            is_table_of = partial(is_made_from, name, written, made)
            # Versions without a chain wrote other tables, and computed other ratings.
            is_old = was_adopted and SINCE_CHAINS.get(name, "") not in written
            if is_old or is_table_of(summary):
                yield RecordFinding(name, Remark(_OLD_VERSION))
                continue
            recorded_rounds = number_in(directory, "rounds")
            games = fewer_games(earlier(), is_table_of, recorded_rounds)
            if games is not None:
                yield RecordFinding(name, Remark(_OLD_TABLE.format(games, len(summary.games))))
                continue
            rounds = fewer_rounds(summary, is_table_of, recorded_rounds)
            if rounds is not None:
                yield RecordFinding(name, Remark(_OLD_ROUNDS.format(rounds, summary.plan.rounds)))
                continue
            missing = missing_rulings(summary, is_table_of)
            if missing:
                entries = "entry" if missing == 1 else f"{missing} entries"
                yield RecordFinding(name, Remark(_OLD_RULINGS.format(entries)))
                continue
            for complaint in text_differences(name, written, follows):
                yield self._add_general(name, complaint)

    def _add_general(self, key: str, complaint: Complaint) -> RecordFinding:
        self.elsewhere += 1
        return RecordFinding(key, complaint)

    def _count(self, key: str, complaints: Sequence[Complaint]) -> Iterator[RecordFinding]:
        self.games += 1
        self.wrong += any(not complaint.remark for complaint in complaints)
        for complaint in complaints:
            yield RecordFinding(key, complaint)


def _is_of(game: str, store: Store, key: str) -> bool:
    """Return whether a stored record is of a game; False if it cannot be read."""
    try:
        return store.record(key).game == game
    except (StoreError, LookupError, TypeError, ValueError, AttributeError):
        return False


def _other_module(store: Store) -> Iterator[RecordFinding]:
    """Yield a remark if the module of the tournament's game is another one than when results were begun."""
    identity = store.identity() or {}
    try:
        here = module_digest(str(identity.get("game")))
    except SpecError:  # see ``_require_rules``
        return
    if here and identity.get(GAME_MODULE, here) != here:
        text = "the module of its game has changed since; games that do not follow may do so with the old one"
        yield RecordFinding("tournament", Remark(text))


def _require_rules(game: str) -> None:
    """Raise RefereeError if the rules of a record's game are not here, so that it cannot be judged."""
    try:
        name = parse_spec(game).name
    except SpecError:
        return  # no game has such a name, so the record was altered
    try:
        if find_game(name) is not None:
            return
    except SpecError as error:
        raise RefereeError(str(error)) from error
    raise RefereeError(
        f"the rules of the game {name} are not here, so that nothing can be judged: give the path of their "
        f"file in the environment variable {GAMES_VARIABLE}, see docs/games.md"
    )


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
