"""`kalarena new`."""

import json
import re
import shlex
import shutil
from pathlib import Path

import click

from referee.games.spec import did_you_mean
from sample_bots.catalog import SAMPLE_BOTS
from sample_bots.starters_catalog import STARTERS, Starter, find_starter, starter_directory, starter_names
from tournaments.bots.manifest import MANIFEST_FILE, check_name
from tournaments.cli.main import Fault, Usage

NAME_LINE = re.compile(rb'^name = ".*"$', re.MULTILINE)
"""The line of a kit's manifest with the name."""

EXECUTABLE = 0o111
"""The bits of a file's mode that are copied."""


def _list(context: click.Context, _parameter: click.Parameter, wanted: bool) -> None:
    if not wanted or context.resilient_parsing:
        return
    for name, starter in STARTERS.items():
        also = f" (also {', '.join(starter.aliases)})" if starter.aliases else ""
        click.echo(f"{name:<11} {starter.title}{also}: {_needs(starter)}")
    context.exit()


@click.command("new")
@click.argument("language")
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--name", metavar="NAME", help="What the bot is called.  [default: DIR's name]")
@click.option(
    "--list",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_list,
    help="List the languages and what each needs.",
)
def command(language: str, directory: Path, name: str | None) -> None:
    """Begin a Kalah bot in LANGUAGE: copy its starter kit into DIR, a new or empty directory."""
    found = find_starter(language)
    if found is None:
        raise Usage(
            f"no starter kit for {language!r}{did_you_mean(language, starter_names())}; "
            f"there are {', '.join(STARTERS)}"
        )
    starter = STARTERS[found]
    title = _bot_name(name, directory)
    _make(directory)
    try:
        for file in starter.files:
            _copy(starter_directory(found) / file, directory / file, title)
    except OSError as error:
        raise Fault(
            f"{error.filename or directory}: the kit could not be written completely: {error.strerror}"
        ) from error
    _print_next_steps(starter, directory)


def _make(directory: Path) -> None:
    """Make the directory, or check that it is empty.  Raises Usage."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        full = any(directory.iterdir())
    except FileExistsError as error:
        raise Usage(f"{directory} is no directory: name one that is new or empty") from error
    except OSError as error:
        raise Usage(f"{directory} cannot be made or read: {error.strerror}") from error
    if full:
        raise Usage(f"{directory} holds files already, and was left as it is: name one that is new or empty")


def _bot_name(name: str | None, directory: Path) -> str:
    """Return the bot's name.  Raises Usage if it is invalid."""
    chosen = name if name is not None else directory.resolve().name
    try:
        checked = check_name(chosen)
    except ValueError as error:
        instead = "" if name is not None else " (give another one with --name)"
        raise Usage(f"{chosen!r} cannot be the bot's name: {error}{instead}") from error
    assert checked is not None
    return checked


def _copy(source: Path, target: Path, title: str) -> None:
    """Copy a file unchanged, except for the name in the manifest.  Raises OSError."""
    content = source.read_bytes()
    if source.name == MANIFEST_FILE:
        # JSON writes such a text as TOML does.
        line = f"name = {json.dumps(title, ensure_ascii=False)}".encode()
        content = NAME_LINE.sub(lambda _: line, content, count=1)
    target.write_bytes(content)
    target.chmod(target.stat().st_mode | (source.stat().st_mode & EXECUTABLE))


def _needs(starter: Starter) -> str:
    """Return a phrase on the programs that a language needs and those that are missing."""
    if not starter.programs:
        return "needs nothing more"
    missing = [program for program in starter.programs if shutil.which(program) is None]
    if not missing:
        return f"needs {' and '.join(starter.programs)}, found"
    return f"needs {' and '.join(missing)}, not on PATH (Debian and Ubuntu: apt install {starter.package})"


def _print_next_steps(starter: Starter, directory: Path) -> None:
    text = str(directory)
    if text.partition(":")[0] in SAMPLE_BOTS:
        text = f"./{text}"  # else the sample bot of this name would be meant
    bot = shlex.quote(text)
    click.echo(
        f"A {starter.title} bot is in {directory}.  Change {starter.source}; README.md says how.  Try:"
    )
    for line, about in (
        (f"kalarena play {bot} random", "one game; -v shows all that is said"),
        (f"kalarena check {bot}", "does it do everything right?"),
        (f"kalarena gauntlet {bot}", "how strong is it?"),
    ):
        click.echo(f"  {line:<40}  {about}")
    if any(shutil.which(program) is None for program in starter.programs):
        click.echo(f"But first: {starter.title} {_needs(starter)}.", err=True)
