"""`kalarena tournament marks`."""

from pathlib import Path

import click

from tournaments.cli.main import Fault, Usage
from tournaments.cli.tournament.results import open_results
from tournaments.exports import ExportError, whole_file
from tournaments.marks.file import MarksError, load_marks, plan_marks
from tournaments.marks.marking import marks_of
from tournaments.marks.sheet import sheet_of
from tournaments.summary import Summary
from tournaments.tables import json_text


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
@click.option("--format", "form", type=click.Choice(("csv", "json")), default="csv", show_default=True)
def command(directory: Path, rules: Path, out: Path | None, form: str) -> None:
    """Print a mark sheet of the results in DIR."""
    with open_results(directory) as (_, summary):
        text = _sheet(summary, rules, form)
    if out is None:
        click.echo(text, nl=False)
        return
    try:
        with whole_file(out) as file:
            file.write(text)
        click.echo(f"{out}: the mark sheet")
    except ExportError as error:
        raise Fault(str(error)) from error


def _sheet(summary: Summary, rules: Path, form: str) -> str:
    """Raises Usage."""
    try:
        file, people = load_marks(rules)
    except MarksError as error:
        raise Usage(str(error)) from error
    try:
        plan = plan_marks(file, people, summary.bots, summary.rulings.withdrawn)
    except MarksError as error:
        raise Usage("\n".join(f"{rules}: {problem}" for problem in str(error).split("\n"))) from error
    for remark in plan.remarks:
        click.echo(f"{rules}: remark: {remark}", err=True)
    if summary.done < summary.total:
        click.echo(f"remark: {summary.done} of {summary.total} games have a result so far", err=True)
    nobody = [""] if plan.people is not None and plan.people.no_bot else []
    marks = marks_of(summary.table, plan.marked, file.scheme, [*plan.missing, *nobody])
    sheet = sheet_of(
        summary.name,
        marks,
        plan.people,
        file.scheme,
        by_group=file.rows == "group",
        by_name=file.order == "name",
        without=marks.get(""),
    )
    return sheet.to_csv() if form == "csv" else json_text(sheet.to_json()) + "\n"
