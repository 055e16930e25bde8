"""Workbooks for spreadsheet programs (XLSX), written by XlsxWriter, an optional dependency."""

import io
from collections.abc import Sequence
from importlib.util import find_spec

from rich.cells import cell_len

from tournaments.reporting.tables import Figure, Grid, cell_text

XLSX = "xlsx"
"""Name of the format."""
MISSING = (
    f"{XLSX} needs the package XlsxWriter: install the extra {XLSX} (pip install 'kalarena[{XLSX}]'), "
    "or take csv"
)
MOST_CHARACTERS = 32_767
"""Longest text of a cell: Excel's limit."""
WIDEST = 60
"""Greatest width of a column in characters; longer texts are wrapped."""
AS_TEXT = "@"
"""Excel's number format for text: later input in such a cell stays a text too."""


class WorkbookError(Exception):
    """No workbook can be written; the message gives the reason."""


def is_available() -> bool:
    """Return whether the optional dependency is installed."""
    return find_spec("xlsxwriter") is not None


def workbook(grids: Sequence[Grid]) -> bytes:
    """Return an XLSX file with a sheet for each grid, its head frozen.

    Figures become numbers.  All other cells become text, whatever they look like: no name is a formula, and
    no identifier loses a leading zero.

    Raises:
        WorkbookError: XlsxWriter is not installed.

    """
    if not is_available():
        raise WorkbookError(MISSING)
    from xlsxwriter import Workbook

    out = io.BytesIO()
    with Workbook(out, {"in_memory": True}) as book:
        title = book.add_format({"bold": True, "num_format": AS_TEXT, "text_wrap": True, "valign": "top"})
        text = book.add_format({"num_format": AS_TEXT, "text_wrap": True, "valign": "top"})
        figure = book.add_format({"valign": "top"})
        for grid in grids:
            sheet = book.add_worksheet(grid.title)
            sheet.freeze_panes(1, grid.frozen_columns)
            for column, cells in enumerate(zip(grid.head, *grid.rows, strict=True)):
                widest = max(cell_len(cell_text(cell)) for cell in cells)
                sheet.set_column(column, column, min(WIDEST, widest + 2))
                sheet.write_string(0, column, _text(cells[0]), title)
                for row, cell in enumerate(cells[1:], 1):
                    if not isinstance(cell, Figure):
                        sheet.write_string(row, column, _text(cell), text)
                    elif cell:
                        sheet.write_number(row, column, float(cell), figure)
    return out.getvalue()


def _text(cell: str) -> str:
    return cell_text(cell)[:MOST_CHARACTERS]
