"""Terminal screen of a running tournament: a snapshot, laid out in given lines and columns.  Pure."""

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest

from rich.cells import cell_len, set_cell_size
from rich.console import Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from tournaments.cli.tournament.progress import Playing, Snapshot
from tournaments.reporting.tables import GAP, Cells, fitting

TOP_LINES = 2
"""The title, and the bar with the numbers."""
CONCLUSION_LINES = 2
"""Most lines of a conclusion; all of it is shown at the end only."""
FAULTS_BELOW = 3
"""Most faults that are shown below the table; beside it there may be room for all that are kept."""
PLAYING_SHARE = 8
"""A table that could fill all lines leaves one in this many to the games under way: 2 of 24, 4 of 40."""
LEAST_BOTS = 5
"""Lines of the table, with its head, that have priority over everything below it."""
SPACIOUS = 20
"""Lines of a screen from which on a line may be left empty between two parts."""
SIDE_COLUMNS = 60
"""Columns needed beside the table: for a key, two names and a time, or for a fault's first words."""
SIDE_GAP = 4
"""Columns between the table and what is beside it."""
LONGEST_NAME = 3
"""Divisor of a screen's columns for a bot's name: a third, as it may be 60 characters long (manifest.py)."""
BAR_COLUMNS = 8
"""Least columns of the bar; a shorter one shows nothing."""
BAR_STEP = 4
"""The bar's length is a multiple of this, so that it does not change with every digit beside it."""


def screen(view: Snapshot, width: int, height: int, most_playing: int) -> Group:
    """Return at most ``height`` lines of ``width`` columns, with at most ``most_playing`` games under way.

    If there is too little room, the least informative parts are left out first: the games under way, all but
    the best bots, the columns that follow from others.
    """
    bar = _bar(view, width)
    if height < TOP_LINES + LEAST_BOTS:
        return Group(*([_title(view), bar][-height:] if height > 0 else []))
    closing = _conclusion(view, width) if height >= SPACIOUS // 2 else []
    empty = [Text()] if height >= SPACIOUS else []
    room = height - TOP_LINES - len(closing) - len(empty) * (1 + bool(closing))
    cells = fitting(_with_short_names(view.table, width // LONGEST_NAME), width, cell_len)
    side = width - SIDE_GAP - _width(cells)
    if side >= SIDE_COLUMNS:
        middle = _side_by_side(view, cells, side, room, most_playing)
    else:
        middle = _stacked(view, cells, room, most_playing, empty)
    return Group(_title(view), bar, *empty, *middle, *(empty if closing else []), *closing)


@dataclass(frozen=True)
class _Shares:
    """Lines for each part below the top."""

    table: int
    faults: int
    playing: int


def _shares(view: Snapshot, room: int, most_playing: int, gap: int) -> _Shares:
    """Return the lines of each part if all stand below each other, with ``gap`` lines below the table."""
    spare = room - LEAST_BOTS
    faults = max(0, min(len(view.faults), FAULTS_BELOW, spare))
    spare -= faults
    wanted = min(view.places, most_playing)
    left_over = room - faults - gap - 1 - len(view.table[1])
    playing = max(0, min(wanted, max(left_over, room // PLAYING_SHARE), spare - gap))
    below = faults + playing
    return _Shares(room - below - (gap if below else 0), faults, playing)


def _stacked(view: Snapshot, cells: Cells, room: int, most_playing: int, empty: list[Text]) -> list[Text]:
    shares = _shares(view, room, most_playing, len(empty))
    below = _faults(view.faults, shares.faults) + _playing(view.playing, shares.playing)
    return [*_table(cells, shares.table), *(empty if below else []), *below]


def _side_by_side(view: Snapshot, cells: Cells, side: int, room: int, most_playing: int) -> list[Text]:
    playing = min(view.places, most_playing, room)
    faults = max(0, min(len(view.faults), room - playing - 1))
    beside = _playing(view.playing, playing) + [Text()] * bool(faults) + _faults(view.faults, faults)
    table = _table(cells, room)
    columns = max(line.cell_len for line in table) + SIDE_GAP
    lines = []
    for left, right in zip_longest(table, beside, fillvalue=Text()):
        line = left.copy()
        line.truncate(columns, pad=True)
        rest = right.copy()
        rest.truncate(side, overflow="ellipsis")
        lines.append(line.append_text(rest))
    return lines


def _line(text: str, style: str = "") -> Text:
    """Return a text that takes one line, cut if it must be."""
    return Text(text, style, no_wrap=True, overflow="ellipsis")


def _title(view: Snapshot) -> Text:
    title = _line(view.name, "bold")
    title.append(f"  {view.about}", "dim")
    if view.round:
        title.append(f"  round {view.round}", "not bold")
    return title


def _bar(view: Snapshot, width: int) -> RenderableType:
    numbers = [f"{view.done} of {view.total} games"]
    if view.per_second is not None:
        numbers.append(pace_text(view.per_second))
    numbers.append(f"{time_text(view.elapsed_s)} elapsed")
    if view.left_s is not None:
        numbers.append(f"{time_text(view.left_s)} left")
    text = "  ".join(numbers)
    columns = (width - len(text) - GAP) // BAR_STEP * BAR_STEP
    if columns < BAR_COLUMNS:
        return _line(text)
    grid = Table.grid(padding=(0, GAP, 0, 0))
    grid.add_column(width=columns)
    grid.add_column(no_wrap=True)
    grid.add_row(ProgressBar(total=max(view.total, 1), completed=view.done, width=columns), _line(text))
    return grid


def _with_short_names(cells: Cells, longest: int) -> Cells:
    head, rows = cells
    place = head.index("name")
    short = []
    for row in rows:
        name = row[place]
        cut = name if cell_len(name) <= longest else set_cell_size(name, longest - 1).rstrip() + "…"
        short.append([*row[:place], cut, *row[place + 1 :]])
    return head, short


def _width(cells: Cells) -> int:
    head, rows = cells
    return sum(max(map(cell_len, column)) for column in zip(head, *rows, strict=True)) + GAP * (len(head) - 1)


def _table(cells: Cells, lines: int) -> list[Text]:
    """Return the table in at most this many lines; if there are more bots, the best of them.

    The result is lines of text, as a table of rich's takes ten times as long to draw.
    """
    head, rows = cells
    hidden = 0 if len(rows) < lines else len(rows) - (lines - 2)
    shown = rows[: len(rows) - hidden]
    widths = [max(map(cell_len, column)) for column in zip(head, *shown, strict=True)]
    name = head.index("name")
    texts: list[Text] = []
    for row in (head, *shown):
        padded = [
            set_cell_size(cell, width) if index == name else cell.rjust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        texts.append(_line((" " * GAP).join(padded), "" if texts else "bold"))
    return texts + ([_line(f"and {hidden} more", "dim")] if hidden else [])


def _faults(faults: Sequence[str], lines: int) -> list[Text]:
    return [_line(fault, "red") for fault in faults[len(faults) - lines :]]


def _playing(playing: Sequence[Playing], lines: int) -> list[Text]:
    """Return exactly this many lines, some of them empty: those below must not jump whenever a game ends."""
    shown = playing if len(playing) <= lines else playing[: lines - 1]
    texts = []
    for game in shown[:lines]:
        text = _line(f"{game.key}  ", "dim")
        text.append(f"{game.first} v {game.second}", "not dim")
        text.append(f"  for {time_text(game.for_s)}{f' on {game.host}' if game.host else ''}")
        texts.append(text)
    if lines and len(playing) > lines:
        texts.append(_line(f"and {len(playing) - len(texts)} more games", "dim"))
    return texts + [Text() for _ in range(lines - len(texts))]


def _conclusion(view: Snapshot, width: int) -> list[Text]:
    lines = textwrap.wrap(view.conclusion, width, max_lines=CONCLUSION_LINES, placeholder=" …")
    return [_line(line, "bold") for line in lines]


def time_text(seconds: int) -> str:
    """Return a duration as people write it: 0:05, 12:34, 1:00:00."""
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d}" if hours else f"{minutes}:{seconds:02d}"


def pace_text(per_second: float) -> str:
    """Return games per second, or per minute or hour where that would be less than one."""
    for factor, unit in ((1, "s"), (60, "min"), (3600, "h")):
        if per_second * factor >= 1 or unit == "h":
            break
    number = per_second * factor
    return f"{number:.0f} games/{unit}" if number >= 100 else f"{number:.1f} games/{unit}"
