"""`kalarena tournament marks`."""

from pathlib import Path

import click

from referee.judge.verdict_text import visible
from tournaments.cli.main import Fault, Usage
from tournaments.cli.tournament.results import check_workbook, open_results
from tournaments.reporting.exports import ExportError, protected, write_whole
from tournaments.reporting.marks.earlier_sheet import EarlierError, EarlierSheet, earlier_sheet
from tournaments.reporting.marks.marks_file import MarksError, load_marks, students_path
from tournaments.reporting.marks.plan import FORMATS, MarkPlan, mark_sheet, plan_marks, sheet_file
from tournaments.reporting.marks.sheet import Sheet
from tournaments.reporting.tournament_results import TournamentResults
from tournaments.reporting.workbook import XLSX


@click.command("marks")
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
@click.option(
    "--rules",
    required=True,
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="How marks are made: a TOML file, see docs/marks.md.",
)
@click.option(
    "--out", metavar="FILE", type=click.Path(path_type=Path, dir_okay=False), help="Write into FILE instead."
)
@click.option("--format", "form", type=click.Choice(FORMATS), default="csv", show_default=True)
@click.option("--unfinished", is_flag=True, help="Even if games are still to be played.")
@click.option(
    "--since",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Only what changed since this earlier sheet, made with --format json.",
)
def command(
    directory: Path, rules: Path, out: Path | None, form: str, unfinished: bool, since: Path | None
) -> None:
    """Print a mark sheet of the results in DIR."""
    if form == XLSX:
        check_workbook(out)
    with open_results(directory) as (_, results):
        plan = _plan(results, rules)
        students = students_path(rules, plan.file.students_file)
        inputs = [path for path in (rules, students, since) if path is not None]
        if out is not None and (why := protected(out, directory, inputs)):
            raise Usage(why)
        _remark_progress(results, unfinished=unfinished)
        earlier = None if since is None else _earlier(since, results.name)
        try:
            sheet = mark_sheet(results, plan, _bytes(rules), None if students is None else _bytes(students))
        except MarksError as error:
            raise Usage(f"{rules}: {error}") from error
    for remark in sheet.remarks:
        click.echo(f"{rules}: remark: {visible(remark)}", err=True)
    if earlier is not None:
        sheet = _compared(sheet, earlier)
    content = sheet_file(sheet, form)
    if out is None:
        click.echo(content.decode(), nl=False)
        return
    try:
        write_whole(out, content)
        click.echo(f"{out}: the mark sheet")
    except ExportError as error:
        raise Fault(str(error)) from error


def _plan(results: TournamentResults, rules: Path) -> MarkPlan:
    """Return the plan for the marks, and print its remarks.  Raises Usage."""
    try:
        file, people = load_marks(rules)
    except MarksError as error:
        raise Usage(str(error)) from error
    try:
        plan = plan_marks(file, people, results.bots, results.rulings.withdrawn)
    except MarksError as error:
        raise Usage("\n".join(f"{rules}: {problem}" for problem in str(error).split("\n"))) from error
    for remark in plan.remarks:
        click.echo(f"{rules}: remark: {remark}", err=True)
    return plan


def _remark_progress(results: TournamentResults, *, unfinished: bool) -> None:
    """Print a remark if games are due.  Raises Usage unless ``unfinished``."""
    if not results.schedule.due(results.history):  # exact, unlike a format's estimated total
        return
    so_far = f"{results.done} of {results.total} games have a result"
    if not unfinished:
        raise Usage(f"{so_far}: run the tournament to its end, or add --unfinished")
    click.echo(f"remark: {so_far} so far", err=True)


def _earlier(path: Path, tournament: str) -> EarlierSheet:
    """Return the earlier sheet of a tournament.  Raises Usage."""
    try:
        return earlier_sheet(_bytes(path).decode("utf-8-sig"), tournament)
    except UnicodeDecodeError as error:
        raise Usage(f"{path}: cannot be read: it is not UTF-8 text") from error
    except EarlierError as error:
        raise Usage(f"{path}: {error}") from error


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise Usage(f"{path}: cannot be read: {error.strerror}") from error


def _compared(sheet: Sheet, earlier: EarlierSheet) -> Sheet:
    """Return the sheet with the changed rows only; print a remark on those that were removed."""
    changed = sheet.changed_since(earlier)
    click.echo(f"remark: {len(changed.rows)} of {len(sheet.rows)} rows changed", err=True)
    gone = sheet.gone_since(earlier)
    if gone:
        click.echo(f"remark: rows that are not here any more: {', '.join(map(visible, gone))}", err=True)
    return changed
