"""The live view of a running tournament: progress, the table so far, and the latest faults."""

import sys
from collections import deque
from types import TracebackType

from rich.console import Console, Group
from rich.live import Live
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

from referee.results import GameRecord
from tournaments.schedule import Pairing
from tournaments.standings import GameSummary, Tally
from tournaments.summary import Summary
from tournaments.tables import columns

LATEST_FAULTS = 3
REFRESH_PER_SECOND = 4
FRAME_LINES = 6
"""Lines of the terminal that the table's frame and the progress bar take."""
NARROW = 75
"""Columns below which the table leaves some of its columns out."""
MAX_LINES = 24
"""Lines of the table that are shown live; the whole table is printed at the end."""


class LiveView:
    """Shows a tournament on a terminal; on anything else, one line for every tenth of the games.

    Everything goes to standard error, so that standard output holds nothing but the result.
    """

    def __init__(self, summary: Summary, *, shown: bool) -> None:
        self._summary = summary
        self._tally = Tally(summary.bots, summary.games)
        self._done = len(summary.games)
        self._shown = shown
        self._console = Console(stderr=True)
        self._faults: deque[Text] = deque(maxlen=LATEST_FAULTS)
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=self._console,
        )
        self._task = self._progress.add_task(summary.name, total=summary.total, completed=self._done)
        self._live = Live(
            get_renderable=self._render,
            console=self._console,
            refresh_per_second=REFRESH_PER_SECOND,
            transient=True,
        )
        self._on_terminal = shown and self._console.is_terminal and not self._console.is_dumb_terminal

    def __enter__(self) -> "LiveView":
        if self._on_terminal:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._on_terminal:
            self._live.stop()

    def add(self, pairing: Pairing, record: GameRecord) -> None:
        """A game has ended and was kept."""
        result = record.result
        self._tally.add(GameSummary.of(record, pairing.round))
        self._done += 1
        self._progress.update(self._task, completed=self._done)
        if result.fault is not None:
            self._faults.append(
                Text(f"{record.key}  {result.detail}", style="red", overflow="ellipsis", no_wrap=True)
            )
        if self._shown and not self._on_terminal:
            self._print_tenth()

    def _print_tenth(self) -> None:
        done, total = self._done, self._summary.total
        if done * 10 // total != (done - 1) * 10 // total:
            print(f"{self._summary.name}: {done} of {total} games", file=sys.stderr, flush=True)

    def _render(self) -> Group:
        table = Table(title=None, expand=False)
        room = self._console.height - len(self._faults) - FRAME_LINES
        if room < 1:
            return Group(*self._faults, self._progress)
        ranking = self._summary.ranking
        head, rows = columns(self._tally.table(ranking), ranking)
        if self._console.width < NARROW:  # what the others tell as well
            kept = [index for index, name in enumerate(head) if name not in ("played", "draws", "losses")]
            head, rows = [head[index] for index in kept], [[row[index] for index in kept] for row in rows]
        for name in head:
            table.add_column(name.replace("_", " "), justify="left" if name == "name" else "right")
        for row in rows[: min(room, MAX_LINES)]:
            table.add_row(*map(Text, row))
        return Group(table, *self._faults, self._progress)
