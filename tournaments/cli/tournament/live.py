"""Progress of a running tournament on standard error: a screen, plain lines, or nothing.

Standard output holds nothing but the result.
"""

import contextlib
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace

import trio
from rich.console import Console
from rich.live import Live

from referee.sandbox.host_resources import usable_cores
from tournaments.cli.main import discard_unwritten_messages
from tournaments.cli.tournament.progress import Progress, Snapshot, compute, fault_line, unplayed_line
from tournaments.cli.tournament.screen import screen
from tournaments.reporting.tournament_results import TournamentResults
from tournaments.results.game_summary import GameSummary
from tournaments.running.runner import Observer, Run
from tournaments.schedule.pairing import Pairing

REFRESH_S = 0.25
"""Seconds between two pictures: four a second are as many as anybody reads."""
RECOMPUTE_S = 2.0
"""Least seconds between two computations of the ratings."""
COMPUTING_SHARE = 20
"""Least time between them, in multiples of their duration: they take a twentieth of the time at most."""
PLAIN_FAULTS = 20
"""Most faults of each bot, and most games that could not be played, that are shown as plain lines."""

Clock = Callable[[], float]


class View(Observer):
    """Observer for people; this one shows nothing."""

    async def keep_up(self) -> None:
        """Show what changes, until cancelled."""


@contextlib.contextmanager
def open_view(run: Run, *, shown: bool, kind: type[TournamentResults] = TournamentResults) -> Iterator[View]:
    """Yield a screen if standard error is a terminal that can show one, else plain lines.

    Nothing is shown unless ``shown``.  ``kind`` is the class of the results.
    """
    console = Console(stderr=True)
    if not shown:
        yield View()
    elif console.is_terminal and not console.is_dumb_terminal:
        with LiveScreen(run, console, kind=kind).on() as view:
            yield view
    else:
        yield PlainLines(run)


def results_of(run: Run, kind: type[TournamentResults] = TournamentResults) -> TournamentResults:
    """Return the results of the games that a run began with."""
    return replace(kind.of(run.tournament), kept=run.rulings.games, journal=run.rulings.entries)


class PlainLines(View):
    """Prints a line for every tenth of the games, and one for each fault, if a bot has not too many."""

    def __init__(self, run: Run, out: Callable[[str], None] | None = None) -> None:
        self._run = run
        self._name = run.tournament.name
        self._tenth = _tenth(run.report.before, run.report.total)
        self._faults: Counter[str] = Counter()
        self._unplayed = 0
        self._out = out or _to_standard_error
        self._is_open = True

    def ended(self, pairing: Pairing, game: GameSummary, host: str = "") -> None:
        """See ``Observer``."""
        if game.fault is not None:
            self._fault(game, host)
        report = self._run.report
        done = report.before + report.played
        tenth = _tenth(done, report.total)
        if tenth > self._tenth:
            self._print(f"{done} of {report.total} games")
        self._tenth = tenth

    def _fault(self, game: GameSummary, host: str) -> None:
        bot = game.loser or game.first
        self._faults[bot] += 1
        if self._faults[bot] <= PLAIN_FAULTS:
            self._print(fault_line(game, host))
        elif self._faults[bot] == PLAIN_FAULTS + 1:
            self._print(f"further faults of {bot} are in the report")

    def unplayed(self, pairing: Pairing, why: str) -> None:
        """See ``Observer``."""
        self._unplayed += 1
        if self._unplayed <= PLAIN_FAULTS:
            self._print(unplayed_line(self._run.rulings.job_key(pairing.key), why))

    def _print(self, text: str) -> None:
        if self._is_open:
            try:
                self._out(f"{self._name}: {text}")
            except OSError:  # the reader has gone; the tournament goes on
                discard_unwritten_messages()
                self._is_open = False


def _tenth(done: int, total: int) -> int:
    """Return how many tenths of the games are done; the total is a forecast at times."""
    return done * 10 // max(total, done, 1)


def _to_standard_error(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


@contextlib.contextmanager
def _ignored_loss_of_terminal() -> Iterator[None]:
    """Leave the block if the terminal has gone; the tournament goes on."""
    try:
        yield
    except OSError:
        discard_unwritten_messages()


class LiveScreen(View):
    """Draws the tournament again and again.

    Computing and drawing are done in threads: neither makes a game wait for its slot or for the store.
    """

    def __init__(
        self,
        run: Run,
        console: Console,
        clock: Clock = time.monotonic,
        kind: type[TournamentResults] = TournamentResults,
    ) -> None:
        self._bots = run.rulings.bots
        self._job_key = run.rulings.job_key
        self._console = console
        self._clock = clock
        self._progress = Progress(results_of(run, kind), run.report, clock())
        self._most_playing = 2 * len(usable_cores())
        self._live = Live(console=console, auto_refresh=False, transient=True, vertical_overflow="crop")
        self._drawn: tuple[Snapshot, int, int] | None = None

    @contextlib.contextmanager
    def on(self) -> Iterator["LiveScreen"]:
        """Use the terminal during the block; nothing is left behind."""
        with _ignored_loss_of_terminal():
            self._live.start()
        try:
            yield self
        finally:
            with _ignored_loss_of_terminal():
                self._live.stop()

    def started(self, pairing: Pairing, key: str, host: str = "") -> None:
        """See ``Observer``."""
        first, second = self._bots[pairing.first], self._bots[pairing.second]
        self._progress.started(key, pairing.round, first, second, self._clock(), host)

    def ended(self, pairing: Pairing, game: GameSummary, host: str = "") -> None:
        """See ``Observer``."""
        self._progress.ended(game, self._clock(), host)

    def unplayed(self, pairing: Pairing, why: str) -> None:
        """See ``Observer``."""
        self._progress.unplayed(self._job_key(pairing.key), why)

    async def keep_up(self) -> None:
        """See ``View``."""
        took = await self.recompute()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._keep_computing, took)
            try:
                while True:
                    await self.redraw()
                    await trio.sleep(REFRESH_S)
            except OSError:  # the terminal has gone; the tournament goes on
                discard_unwritten_messages()
            nursery.cancel_scope.cancel()

    async def _keep_computing(self, took: float) -> None:
        while True:
            await trio.sleep(max(RECOMPUTE_S, COMPUTING_SHARE * took))
            took = await self.recompute()

    async def recompute(self) -> float:
        """Compute again the values that take long; return how long it took, in seconds."""
        began = self._clock()
        results = self._progress.results()
        await trio.to_thread.run_sync(compute, results, abandon_on_cancel=True)
        self._progress.take(results)
        return self._clock() - began

    async def redraw(self) -> None:
        """Draw the present state, if it has changed.  Raises OSError if the terminal has gone."""
        await trio.to_thread.run_sync(self._draw, self._progress.snapshot(self._clock()))

    def _draw(self, view: Snapshot) -> None:
        width, height = self._console.size
        drawn = (view, width, height)
        if drawn == self._drawn:
            return
        if self._drawn is not None and width < self._drawn[1]:
            self._console.clear()  # the lines that are there have been folded, and would stay
        self._drawn = drawn
        # The last line is left free: filling it makes some terminals scroll.
        self._live.update(screen(view, width, height - 1, self._most_playing), refresh=True)
