"""Reader of CSV tables as spreadsheets save them, with any of their separators (pure)."""

import csv
import io
import re
from collections.abc import Iterator

DELIMITERS = ",;\t"
"""Separators of columns, which depend on the country and on how the file was saved."""
SEPARATOR_LINE = re.compile(r"""("?)sep=([^\w\s"]|\t)\1[ ]*(?:\r\n|\r|\n|\Z)""", re.IGNORECASE)
"""Optional first line with the separator for Excel (which Excel does not show)."""
LINE_END = re.compile(r"\r\n|\r|\n")


class SpreadsheetError(ValueError):
    """The text is not CSV; the message gives the line."""


def spreadsheet_rows(text: str) -> list[tuple[int, list[str]]]:
    """Return the rows that are not empty, each with its first line, from 1; cells are stripped.

    The separator is that of a first line ``sep=``, else the one of DELIMITERS that is most frequent in the
    first line.  Raises SpreadsheetError.
    """
    return [(number, row) for number, row in _rows(text) if any(row)]


def _rows(text: str) -> Iterator[tuple[int, list[str]]]:
    separator = SEPARATOR_LINE.match(text)
    skipped = 0 if separator is None else 1
    if separator is None:
        first = text.partition("\n")[0]
        delimiter = max(DELIMITERS, key=first.count)
    else:
        delimiter = separator[2]
        text = text[separator.end() :]
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    begins = 1
    try:
        for row in reader:
            yield skipped + begins, [cell.strip() for cell in row]
            begins = reader.line_num + 1
    except csv.Error as error:
        opened = _open_quote(text, delimiter)
        if opened is None:
            raise SpreadsheetError(f"line {skipped + begins}: this is not CSV: {error}") from error
        raise SpreadsheetError(
            f"line {skipped + opened}: the cell that begins with a quote here does not end with one: "
            "add the quote, or remove this one"
        ) from error


def _open_quote(text: str, delimiter: str) -> int | None:
    """Return the line of the first cell that begins with a quote and does not end with one; None without any.

    The reader itself reports only where it stopped, which is often the end of the file.
    """
    stop = re.escape(delimiter)
    cell = re.compile(
        rf'''(?:"(?:[^"]|"")*+"(?=[{stop}\r\n]|\Z)|[^"{stop}\r\n][^{stop}\r\n]*+|)(?:{stop}|\r\n|\r|\n|\Z)'''
    )
    at = 0
    while at < len(text):
        found = cell.match(text, at)
        if found is None:
            return len(LINE_END.findall(text, 0, at)) + 1
        at = found.end()
    return None
