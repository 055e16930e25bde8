"""Workbooks, read with another library: texts stay texts, numbers are numbers."""

import io
import sys
from pathlib import Path
from typing import Any

import pytest
from openpyxl import load_workbook

from tests.reporting.test_marks_command import make_results, marks
from tests.reporting.test_marks_file import PEOPLE, RULE
from tests.reporting.test_tables import EVIL, NAMES, summary, table_of
from tests.support.builders import invoke, write_tournament
from tournaments.reporting.tables import Figure, Grid, to_grid
from tournaments.reporting.workbook import WorkbookError, workbook

JOINED = "\u0645\u06cc\u200c\u062e\u0648"
"""A name with an invisible character."""


def sheet_of(content: bytes) -> Any:
    return load_workbook(io.BytesIO(content)).active


def values(content: bytes) -> list[list[object]]:
    return [[cell.value for cell in row] for row in sheet_of(content).iter_rows()]


def test_standings_have_the_cells_of_the_csv_form() -> None:
    content = workbook([to_grid(table_of(), "points")])
    head, ann, _, cid = values(content)
    assert head[:3] == ["rank", "name", "points"]
    assert head[-4:] == ["vs ann", "vs bob", "vs cid", "score_percent"]
    assert ann == [1, "ann", 2.5, 3, 3, 2, 1, 0, 0, 218, -138, 811, None, 1.5, 1, 83.3]
    assert cid[-4:] == [0, None, None, 0]
    assert {type(value) for value in ann} == {int, float, str, type(None)}


@pytest.mark.parametrize(
    "evil", [*EVIL, "00123", "1e5", "2026-01-02", "http://x.example/", "", "a\x00b", JOINED]
)
def test_texts_stay_texts(evil: str) -> None:
    content = workbook([Grid("Cup", [evil, "n"], [[evil, Figure("-1.50")]], 1)])
    sheet = sheet_of(content)
    for cell in (sheet["A1"], sheet["A2"]):
        assert cell.data_type == "s"
        assert cell.hyperlink is None
        assert cell.number_format == "@"
    if evil.isprintable() or evil == JOINED:
        assert (sheet["A2"].value or "") == evil
    assert (sheet["B2"].value, sheet["B2"].data_type) == (-1.5, "n")


def test_the_head_stays_and_columns_are_wide_enough() -> None:
    long = "a name of forty characters, more or less"
    sheet = sheet_of(workbook([to_grid(summary([], [long, *NAMES]).table, "points")]))
    assert sheet.freeze_panes == "C2"
    assert sheet.column_dimensions["B"].width > len(long)
    sheet = sheet_of(workbook([Grid("Cup", ["why"], [["word " * 20_000]], 0)]))
    assert sheet.column_dimensions["A"].width < 70
    assert len(sheet["A2"].value) == 32_767


def test_without_the_library_there_is_one_clear_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "xlsxwriter", None)
    with pytest.raises(WorkbookError, match="xlsx needs the package XlsxWriter: install the extra xlsx"):
        workbook([])
    out = make_results(tmp_path / "out")
    failed = invoke("tournament", "table", out, "--format", "xlsx", "--out", tmp_path / "x.xlsx")
    assert failed.exit_code == 2
    assert "pip install 'kalarena[xlsx]'" in failed.stderr
    failed = marks(tmp_path, PEOPLE + RULE, "--format", "xlsx", "--out", str(tmp_path / "x.xlsx"))
    assert (failed.exit_code, failed.stdout) == (2, "")
    assert not (tmp_path / "x.xlsx").exists()


def test_a_table_is_written_into_a_file(tmp_path: Path) -> None:
    out = make_results(tmp_path / "out")
    path = tmp_path / "standings.xlsx"
    done = invoke("tournament", "table", out, "--format", "xlsx", "--out", path)
    assert (done.exit_code, done.stdout) == (0, f"{path}: the table\n")
    assert [row[1] for row in values(path.read_bytes())] == ["name", "alpha", "beta", "minimax:2"]
    for form in ("csv", "json", "html", "text"):
        done = invoke("tournament", "table", out, "--format", form, "--out", tmp_path / f"table.{form}")
        assert done.exit_code == 0, done.stderr
        printed = invoke("tournament", "table", out, "--format", form).stdout
        assert (tmp_path / f"table.{form}").read_text() == printed
    failed = invoke("tournament", "table", out, "--format", "csv", "--out", out / "standings.csv")
    assert failed.exit_code == 2
    assert "is one of the tournament's own files" in failed.stderr
    failed = invoke("tournament", "table", out, "--format", "xlsx")
    assert failed.exit_code == 2
    assert "say where it goes, with --out FILE.xlsx" in failed.stderr


def test_a_mark_sheet_keeps_the_zeros_of_identifiers(tmp_path: Path) -> None:
    make_results(tmp_path / "out")
    (tmp_path / "s.csv").write_text("bot,student,id,=class\nalpha,=Ann,0071,+1\nbeta,Bob,0008,B\n")
    text = 'references = ["minimax:2"]\nstudents_file = "s.csv"\n' + RULE
    override = '[[override]]\nstudent = "0008"\nmark = 7.5\nreason = "=appeal"\n'
    path = tmp_path / "marks.xlsx"
    done = marks(tmp_path, text + override, "--format", "xlsx", "--out", str(path))
    assert (done.exit_code, done.stdout) == (0, f"{path}: the mark sheet\n")
    head, ann, bob = (
        dict(zip(values(path.read_bytes())[0], row, strict=True)) for row in values(path.read_bytes())
    )
    assert list(head)[:5] == ["student", "id", "=class", "bot", "points"]
    assert [ann[name] for name in ("student", "id", "=class", "mark", "All (marks)")] == [
        *("=Ann", "0071", "+1", 10, 10),
    ]
    assert [bob[name] for name in ("id", "mark", "adjustment (marks)", "adjustment (why)")] == [
        *("0008", 7.5, 2.5, "override: =appeal"),
    ]
    sheet = sheet_of(path.read_bytes())
    assert all(cell.data_type in "sn" for row in sheet.iter_rows() for cell in row)
    assert sheet.freeze_panes == "C2"


def test_marks_of_a_swiss_have_no_intervals(tmp_path: Path) -> None:
    """Ratings whose pairings depended on results have none; a rule that needs one is refused."""
    write_tournament(
        tmp_path, 'game = "kalah(3,2)"\nformat = "swiss"\nrounds = 1\nbots = ["first_legal", "greedy"]\n'
    )
    out, rules, book = tmp_path / "out", tmp_path / "marks.toml", tmp_path / "marks.xlsx"
    [file] = tmp_path.glob("*.toml")
    assert invoke("tournament", "run", file, "--out", out).exit_code == 0
    students = '[students]\nfirst_legal = "Ann"\ngreedy = "Bob"\n'
    rules.write_text(students + '[[rule]]\nname = "P"\nkind = "points"\nmarks = 10\n')
    asked = ("tournament", "marks", out, "--rules", rules, "--format", "xlsx", "--out", book)
    assert invoke(*asked).exit_code == 0
    head, *rows = values(book.read_bytes())
    for row in rows:
        cells = dict(zip(head, row, strict=True))
        assert isinstance(cells["rating"], int)
        assert (cells["rating_low"], cells["rating_high"]) == (None, None)
    rule = '[[rule]]\nname = "R"\nkind = "rating"\nuse = "low"\nfrom = 0\nto = 100\nmarks = 10\n'
    rules.write_text(students + rule)
    refused = invoke(*asked)
    assert refused.exit_code == 2
    assert "rule 'R': the ratings of this tournament have no intervals" in refused.stderr
