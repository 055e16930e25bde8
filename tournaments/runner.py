"""Runs what a schedule says is due, and keeps each game as it ends."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import trio

from referee.errors import RefereeError
from referee.play import Job
from referee.results import GameRecord
from referee.sandbox import Sandbox
from tournaments.config import Tournament
from tournaments.engines.base import Engine, EngineError
from tournaments.gamefiles import has_game_files, write_game_files
from tournaments.schedule import Pairing, schedule_of
from tournaments.store import Store, StoreError

MAX_ATTEMPTS = 3
"""A game that fails for a reason of ours is played again, at most this often in all."""

OPEN = Sandbox()
"""No sandbox."""

Observer = Callable[[Pairing, GameRecord], None]
"""Told each game after it was kept."""


@dataclass
class RunReport:
    """What a run did."""

    total: int
    """Games of the whole tournament."""
    before: int
    """Games that were there already."""
    played: int = 0
    unplayed: dict[str, str] = field(default_factory=dict)
    """Key of a game -> why our side could not play it.  Nobody's loss."""

    @property
    def complete(self) -> bool:
        """Whether every game has a result."""
        return self.before + self.played == self.total


def new_report(tournament: Tournament, store: Store) -> RunReport:
    """The report of a run that is about to begin.

    Raises StoreError if the store holds games that this tournament has not.
    """
    wanted = {pairing.key for pairing in schedule_of(len(tournament.bots), tournament.rounds).all()}
    played = store.played()
    if played - wanted:
        raise StoreError(
            f"{store.path} holds {len(played - wanted)} games of more rounds than rounds = "
            f"{tournament.rounds}: rounds can be raised, not lowered"
        )
    return RunReport(total=len(wanted), before=len(played))


async def run(
    tournament: Tournament,
    store: Store,
    engine: Engine,
    directory: Path,
    report: RunReport,
    observe: Observer | None = None,
    sandbox: Sandbox = OPEN,
) -> None:
    """Play everything that has no result yet.

    Raises StoreError if a result cannot be kept, GameFilesError if a game's files cannot be written.

    ``report`` is kept up to date.  When cancelled, games under way are given up; those that were kept
    stay, and the next run goes on there.
    """
    schedule = schedule_of(len(tournament.bots), tournament.rounds)
    played = await trio.to_thread.run_sync(_restore_files, store, directory)
    keeper = _Keeper(store, directory, observe, report)
    started: set[str] = set()
    waiting: deque[Pairing] = deque()
    under_way = 0
    progress = trio.Event()

    async def play_one(pairing: Pairing) -> None:
        nonlocal progress, under_way
        record = await _play(tournament, engine, pairing, report, sandbox)
        if record is not None:
            await keeper.keep(pairing, record)
            played.add(pairing.key)
        under_way -= 1
        progress.set()
        progress = trio.Event()

    async with trio.open_nursery() as nursery:
        over = False
        while not over:
            if not waiting:  # a schedule may be long: it is asked only when all that it said has been started
                waiting.extend(pairing for pairing in schedule.due(played) if pairing.key not in started)
            # Twice the engine's places, so that a worker never waits for the store.
            while waiting and under_way < 2 * engine.concurrency:
                pairing = waiting.popleft()
                started.add(pairing.key)
                under_way += 1
                nursery.start_soon(play_one, pairing)
            over = not under_way
            if not over:
                await progress.wait()


def _restore_files(store: Store, directory: Path) -> set[str]:
    """Write the files of kept games that have none, and return the keys of all games.

    A kill between a game's transaction and its files must not lose them for good.
    """
    games = store.games()
    for game in games:
        if not has_game_files(directory, game.key, (game.first, game.second)):
            write_game_files(directory, store.record(game.key))
    return {game.key for game in games}


async def _play(
    tournament: Tournament, engine: Engine, pairing: Pairing, report: RunReport, sandbox: Sandbox
) -> GameRecord | None:
    """Play a pairing, again if our side fails; None if it failed every time."""
    players = (tournament.bots[pairing.first], tournament.bots[pairing.second])
    opening = tournament.opening(pairing.round)
    job = Job(pairing.key, tournament.game, players, tournament.control, tournament.limits, opening, sandbox)
    failures = []
    for _ in range(MAX_ATTEMPTS):
        try:
            return await engine.play(job)
        except (RefereeError, EngineError) as error:
            failures.append(str(error))
            await trio.lowlevel.checkpoint()  # a cancelled tournament tries nothing again
    report.unplayed[pairing.key] = failures[-1]
    return None


class _Keeper:
    """Writes games one at a time, in a thread, so that the event loop goes on."""

    def __init__(self, store: Store, directory: Path, observe: Observer | None, report: RunReport) -> None:
        self._store = store
        self._directory = directory
        self._observe = observe
        self._report = report
        self._lock = trio.Lock()

    async def keep(self, pairing: Pairing, record: GameRecord) -> None:
        async with self._lock:
            # A thread cannot be stopped half-way: the game is kept whole even if we are being cancelled.
            added = await trio.to_thread.run_sync(self._write, pairing, record)
            self._report.played += added
            if self._observe is not None and added:
                self._observe(pairing, record)

    def _write(self, pairing: Pairing, record: GameRecord) -> bool:
        added = self._store.add(record, pairing.round)
        write_game_files(self._directory, record)
        return added
