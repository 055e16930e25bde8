"""Standings as text, CSV and JSON (pure); ``site.pages.standings_page`` renders them as HTML."""

import csv
import io
import json
import math
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, TextIO

from rich.cells import cell_len

from tournaments.analysis.standing import Standing, Versus
from tournaments.analysis.tie_breaks import criteria_of
from tournaments.results.game_summary import GameSummary

Ranking = str | Sequence[str]
"""A preset of tournaments/analysis/tie_breaks.py, or criteria."""
Cell = str | int | float | bool | None
Row = dict[str, Cell]
"""Column -> cell of a file of games or moves."""
Cells = tuple[list[str], list[list[str]]]
"""Head and rows of a table."""

FORMATS = ("text", "csv", "json", "html")
TABLE_FILES = ("report.html", "standings.csv", "games.csv", "results.json")
"""Files of a tournament's directory that each run writes anew."""


class Figure(str):
    """A cell with a number, as it is written; empty if there is none."""

    __slots__ = ()


class Grid(NamedTuple):
    """A sheet of a workbook; cells that are no figures are texts."""

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    frozen_columns: int
    """Number of columns on the left that stay when others are scrolled."""

    def to_csv(self) -> str:
        """Return the CSV form; texts are harmless to spreadsheets."""
        out = io.StringIO()
        csv.writer(out, lineterminator="\n").writerows(map(inert, row) for row in (self.head, *self.rows))
        return out.getvalue()


def number(points: float) -> str:
    """Return points, which are whole or half, without a needless ``.0``."""
    return f"{points:.1f}".removesuffix(".0")


SHOWN_ANYWAY = ("points", "match-points", "score", "wins", "rating", "fewest-forfeits", "speed")
"""Criteria of a ranking that need no column of their own."""


def columns(table: Sequence[Standing], ranking: Ranking) -> Cells:
    """Return head and rows of the standings.

    Times are included only where they are a criterion: they differ between any two runs.
    """
    criteria = criteria_of(ranking)
    timed = "speed" in criteria
    others = [name for name in criteria if name not in SHOWN_ANYWAY]
    with_byes = any(line.bye_points for line in table)
    with_matches = any(line.match_points is not None for line in table)
    head = [
        "rank",
        "name",
        *["match_points"] * with_matches,
        "points",
        "played",
        "unique",
        "wins",
        "draws",
        "losses",
        "forfeits",
    ]
    head += ["byes"] * with_byes + [name.replace("-", "_") for name in others] + ["mean_move_ms"] * timed
    head += ["rating", "rating_low", "rating_high"]
    rows = []
    for line in table:
        row = [str(line.rank), line.name, *[str(line.match_points)] * with_matches, number(line.points)]
        counts = (line.games, line.unique, line.wins, line.draws, line.losses, line.forfeits)
        row += [str(count) for count in counts]
        row += [number(line.bye_points)] * with_byes
        row += [criterion(line.criteria.get(name)) for name in others]
        if timed:
            row.append("" if line.mean_move_ms is None else f"{line.mean_move_ms:.1f}")
        row += (
            ["", "", ""]
            if line.rating is None
            else [whole(elo) if math.isfinite(elo) else "" for elo in line.rating]
        )
        rows.append(row)
    return head, rows


def whole(elo: float) -> str:
    """Return a rating without decimals; never -0."""
    return str(round(elo))


SLACK = 1e-9
"""More than the error of a share of points, and less than any difference between two shares."""


def percent(share: float | None) -> str:
    """Return a share in percent with one decimal, halves rounded up; empty if there is none."""
    return "" if share is None else f"{math.floor(1000 * share + 0.5 + SLACK) / 10:.1f}"


def criterion(value: float | None) -> str:
    """Return a criterion's value with two decimals at most; empty if there is none."""
    return "" if value is None else f"{value:.2f}".rstrip("0").rstrip(".")


def people_columns(table: Sequence[Standing], ranking: Ranking) -> Cells:
    """Return the columns for people: the score, each interval in one cell, and spaces for underscores."""
    head, rows = columns(table, ranking)
    before_rating = head.index("rating")
    head.insert(before_rating, SCORE)
    for line, row in zip(table, rows, strict=True):
        row.insert(before_rating, percent(line.score))
    low = head.index("rating_low")
    shown = [*(name.replace("_", " ") for name in head[:low]), "95 % interval"]
    cells = [[*row[:low], f"{row[low]} to {row[low + 1]}" if row[low] else ""] for row in rows]
    for line, row in zip(table, cells, strict=True):
        if line.withdrawn:
            row[1] += " (withdrawn)"
    rated = [line.rating for line in table if line.rating is not None]
    if rated and not any(rating.has_interval for rating in rated):
        return shown[:-1], [row[:-1] for row in cells]
    return shown, cells


SCORE = "score %"
"""Title of the column with the share of points."""
EXPENDABLE = ("draws", "losses", "unique", "mean move ms", "byes", "wins", "forfeits", "played")
"""Columns for people that a narrow table omits, in this order.

They repeat other columns, or matter least.  After these, the ranking's own criteria are omitted, the last
criterion first, then the score.
"""
LAST_EXPENDABLE = ("95 % interval", "rating")
"""Columns that are omitted last."""
STAYING = ("rank", "name", "match points", "points")
GAP = 2
"""Terminal columns between two columns of a table."""


def fitting(cells: Cells, width: int, measure: Callable[[str], int] = cell_len) -> Cells:
    """Return the cells of ``people_columns``, without columns that do not fit into a terminal's width.

    Rank, name and points are never omitted.  ``measure`` returns the width of a text.
    """
    head, rows = cells
    widths = [max(map(measure, column)) for column in zip(head, *rows, strict=True)]
    kept = list(range(len(head)))
    criteria = [name for name in head if name not in (*EXPENDABLE, *LAST_EXPENDABLE, *STAYING)]
    for name in (*EXPENDABLE, *reversed(criteria), *LAST_EXPENDABLE):
        if sum(widths[index] for index in kept) + GAP * (len(kept) - 1) <= width:
            break
        kept = [index for index in kept if head[index] != name]
    return [head[index] for index in kept], [[row[index] for index in kept] for row in rows]


def cross(versus: Versus | None) -> str:
    """Return a cell of the cross table: points of the row against the column, and the number of games."""
    if versus is None:
        return "-"
    return f"{number(versus.points)}/{versus.games}" if versus.games else ""


def to_text(
    title: str, about: str, table: Sequence[Standing], ranking: Ranking, width: int | None = None
) -> str:
    """Return standings and cross table in one, for a terminal: column n is the record against the n-th line.

    If these do not fit into ``width``, the result is the standings alone; if they do not fit either, without
    some columns.
    """
    cells = people_columns(table, ranking)
    text = _text_table(_crossed(cells, table))
    left_out = ""
    if width is not None and _width(text) > width:
        fit = fitting(cells, width)
        text = _text_table(fit)
        left_out = "\n\n(the cross table is too wide for this terminal: see the report)"
        if fit != cells:
            left_out = "\n\n(no room here for the cross table and all columns: see the report)"
    return f"{title}: {about}\n\n{text}{left_out}"


def _crossed(cells: Cells, table: Sequence[Standing]) -> Cells:
    """Return the cells with the cross table beside them, and lines numbered for its columns."""
    head, rows = cells
    crossed = []
    for place, (line, row) in enumerate(zip(table, rows, strict=True), 1):
        crossed.append([str(place), *row, *(cross(line.versus.get(other.name)) for other in table)])
    return ["#", *head, *(str(place) for place in range(1, len(table) + 1))], crossed


def _width(text: str) -> int:
    return max(map(cell_len, text.split("\n")))


def _text_table(cells: Cells) -> str:
    head, rows = cells
    lines = [head, *rows]
    widths = [max(map(cell_len, column)) for column in zip(*lines, strict=True)]
    name = head.index("name")
    return "\n".join(
        (" " * GAP)
        .join(
            cell + _fill(cell, width) if index == name else _fill(cell, width) + cell
            for index, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        .rstrip()
        for line in lines
    )


def _fill(cell: str, width: int) -> str:
    """Return the spaces that pad a text to a width in terminal columns: some characters take two."""
    return " " * (width - cell_len(cell))


def to_csv(table: Sequence[Standing], ranking: Ranking, caveat: str = "") -> str:
    """Return the cells of ``to_grid`` as CSV."""
    return to_grid(table, ranking, caveat).to_csv()


def to_grid(table: Sequence[Standing], ranking: Ranking, caveat: str = "") -> Grid:
    """Return standings, a column of points against each bot (empty if the two have not met), and the score.

    A caveat about ratings is in a last column.
    """
    head, rows = columns(table, ranking)
    name = head.index("name")
    cells = []
    for line, row in zip(table, rows, strict=True):
        others = [line.versus.get(other.name) for other in table]
        met = [number(versus.points) if versus and versus.games else "" for versus in others]
        figures: list[str] = [Figure(cell) for cell in (*row, *met, percent(line.score))]
        figures[name] = row[name]
        cells.append(figures + [caveat] * bool(caveat))
    last = ["score_percent"] + ["ratings_caveat"] * bool(caveat)
    return Grid("Standings", [*head, *(f"vs {line.name}" for line in table), *last], cells, name + 1)


GAME_COLUMNS = (
    *("key", "round", "first", "second", "winner", "reason", "fault", "score_first", "score_second"),
    *("moves_first", "moves_second", "mean_move_ms_first", "mean_move_ms_second", "sandbox", "detail"),
    *("pair", "opening", "swapped", "fingerprint"),
)


def game_row(game: GameSummary) -> Row:
    """Return the cells of games.csv; the winner of a draw is None."""
    names = (game.first, game.second)
    means = [
        round(us / count / 1000, 3) if count else None
        for us, count in zip(game.charged_us, game.moves, strict=True)
    ]
    cells: tuple[Cell, ...] = (
        *(game.key, game.round, *names, None if game.winner is None else names[game.winner]),
        *(game.reason.value, game.fault, *(game.score or (None, None)), *game.moves, *means),
        *(game.sandbox, game.detail, game.pair, game.opening),
        *(None if game.swapped is None else names[game.swapped], game.fingerprint),
    )
    return dict(zip(GAME_COLUMNS, cells, strict=True))


def games_csv(games: Iterable[GameSummary]) -> str:
    """Return one line per game."""
    out = io.StringIO()
    write_csv(map(game_row, games), out, GAME_COLUMNS)
    return out.getvalue()


def write_csv(rows: Iterable[Row], file: TextIO, columns: Sequence[str] = ()) -> None:
    """Write a header and a line for each row.

    Texts are harmless to spreadsheets, milliseconds have three decimals.  ``columns`` are the header if there
    is no row.
    """
    writer = csv.writer(file, lineterminator="\n")
    head: Iterable[str] = columns
    for number, row in enumerate(rows):
        if not number:
            writer.writerow(row)
            head = ()
        writer.writerow([_cell(value) for value in row.values()])
    if head:
        writer.writerow(head)


def _cell(value: Cell) -> str | int:
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case int():
            return value
        case float():
            return f"{value:.3f}"
    return inert(value)


_ESCAPED = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""Characters that are escapes in cells.

These are control characters, other ends of lines, changes of the writing direction, and surrogates, which
UTF-8 does not have.  Joiners and special spaces are parts of names, although they do not print.
"""


def cell_text(text: str) -> str:
    """Return a text for a cell: on one line, with some characters as escapes."""
    return _ESCAPED.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


_FORMULA_INSIDE = re.compile(r';(?=[\s"]*[=+@-])(?![\s"]*[+-]?[0-9.]+[\s"]*(?:;|$))')
"""A ``;`` in a text, and behind it the beginning of a formula that is more than a number."""


def inert(cell: str) -> str:
    """Return a text that no spreadsheet takes for a formula: names and details come from students.

    Where ``;`` separates columns, as in German, Excel splits a text there.  Figures are unchanged, negative
    ones too.
    """
    if isinstance(cell, Figure):
        return cell
    cell = _FORMULA_INSIDE.sub(";'", cell_text(cell))
    return "'" + cell if cell[:1] in ("=", "+", "-", "@") else cell


def to_json(table: Sequence[Standing], ranking: Ranking, about: dict[str, Any]) -> dict[str, Any]:
    """Return the standings with the cross table; ``about`` comes first."""
    criteria = criteria_of(ranking)
    timed = "speed" in criteria
    return {
        **about,
        "ranking": ranking if isinstance(ranking, str) else list(ranking),
        "criteria": list(criteria),
        "standings": [
            {
                "rank": line.rank,
                "name": line.name,
                **({} if line.match_points is None else {"match_points": line.match_points}),
                "points": line.points,
                "played": line.games,
                "wins": line.wins,
                "draws": line.draws,
                "losses": line.losses,
                "forfeits": line.forfeits,
                "unique": line.unique,
                "bye_points": line.bye_points,
                "criteria": {name: value for name, value in line.criteria.items() if name != "speed"},
                "rating": None if line.rating is None else line.rating.value,
                "rating_low": line.rating.low if line.rating and line.rating.has_interval else None,
                "rating_high": line.rating.high if line.rating and line.rating.has_interval else None,
                "withdrawn": line.withdrawn,
                **({"mean_move_ms": line.mean_move_ms} if timed else {}),
                "versus": {
                    name: {
                        "points": v.points,
                        "wins": v.wins,
                        "draws": v.draws,
                        "losses": v.losses,
                        "games": v.games,
                    }
                    for name, v in line.versus.items()
                },
                "score_percent": None if line.score is None else round(100 * line.score, 2),
            }
            for line in table
        ],
    }


def json_text(value: Any) -> str:
    """Return JSON in the format of all output."""
    return json.dumps(value, indent=1)  # ASCII, which any terminal and any locale can show
