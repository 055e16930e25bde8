"""The command `kalarena check`."""

import shlex
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from referee.games.catalog import DEFAULT_GAME, all_games, parse_game
from referee.games.spec import SpecError
from referee.judge.limits import Limits
from referee.judge.verdict_text import visible
from referee.sandbox.bubblewrap import Sandbox
from referee.sandbox.detection import REQUIRED, SandboxError, find_sandbox
from tournaments.bots.errors import BotError, BuildError, ManifestError
from tournaments.bots.manifest import load_manifest
from tournaments.bots.resolve import resolve_bot
from tournaments.checking.check import check_bot, not_found
from tournaments.checking.evidence import PlayedScenario
from tournaments.checking.report import (
    Item,
    Report,
    Status,
    head_lines,
    item_lines,
    junit_xml,
    plain,
    summary_lines,
)
from tournaments.checking.scenarios import DEFAULT_SEED, DEFAULT_TOTAL_S, Scenario, Settings
from tournaments.cli.game_options import (
    announce_compilation,
    protocol_option,
    sandbox_options,
    time_control,
    time_options,
)
from tournaments.cli.main import Usage
from tournaments.cli.play import cancel_on_signals, require_folder
from tournaments.reporting.tables import json_text

FAILED = 1
"""Exit status if an item failed."""
NOT_CHECKED = 3
"""Exit status if our host failed: the bot was not checked to the end, or a file was not written."""
GAME_OPTIONS = {
    "move_time",
    "game_time",
    "increment",
    "margin",
    "start_time",
    "clock",
    "ponder",
    "sandbox",
    "memory_mb",
}
"""Names of the options for time, sandbox and memory, which `kalarena play` has, too."""
COLOURS = {
    Status.PASSED: "green",
    Status.FAILED: "red",
    Status.WARNING: "yellow",
    Status.SKIPPED: "bright_black",
}


@click.command("check")
@click.argument("bot", metavar="BOT")
@click.option(
    "--game",
    metavar="SPEC",
    help=f"See `kalarena games`.  [default: what its bot.toml says that it plays, else {DEFAULT_GAME}]",
)
@click.option(
    "--games",
    "rounds",
    type=int,
    default=1,
    show_default=True,
    metavar="N",
    help="Games against each opponent from each seat.",
)
@click.option(
    "--seed", type=int, default=DEFAULT_SEED, show_default=True, help="Of the random opponent's moves."
)
@time_options
@click.option(
    "--total-time",
    type=float,
    default=DEFAULT_TOTAL_S,
    show_default=True,
    metavar="S",
    help="Seconds for the whole check; what is not played by then is left out, and named.",
)
@sandbox_options
@protocol_option
@click.option("--json", "as_json", is_flag=True, help="Print the report as one JSON object, nothing else.")
@click.option(
    "--junit",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write the report as JUnit XML, too.",
)
@click.option(
    "--keep",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Keep the records of all games in a directory, for `kalarena verify`.",
)
@click.option("-v", "--verbose", is_flag=True, help="Show the details of what passed, too.")
def command(
    bot: str,
    game: str | None,
    rounds: int,
    seed: int,
    total_time: float,
    sandbox: str,
    memory_mb: int,
    protocol: str,
    as_json: bool,
    junit: Path | None,
    keep: Path | None,
    verbose: bool,
    **times: Any,
) -> None:
    """Check a bot: does it start, play by the rules, and end as it should?

    It is started as in a tournament, confined, and plays against several opponents from both sides, with
    swaps, extra turns and games that end in the middle.  Each item passes or fails with what to do about it.

    BOT is a path to a bot directory or executable file, a quoted command line, or a sample bot's name.

    Exit status: 0 nothing failed, 1 something failed, 2 bad usage, 3 this host could not complete the
    check, or not write a file of --junit or --keep, 130 stopped.
    """
    try:
        settings = Settings(
            games=_games(bot, game),
            control=time_control(**times),
            limits=Limits(memory_mb=memory_mb),
            sandbox=find_sandbox(sandbox),
            rounds=rounds,
            seed=seed,
            total_s=total_time,
        )
    except (SpecError, SandboxError, ValueError) as error:
        raise Usage(str(error)) from error
    if junit is not None:
        require_folder("--junit", junit)
    if keep is not None:
        try:
            keep.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise Usage(f"--keep: {keep}: {error.strerror}") from error
    announce_compilation(settings.games[0], bot)
    output = _CheckOutput(bot, settings, verbose=verbose, quiet=as_json, keep=keep)
    build_in = settings.sandbox if sandbox == REQUIRED else None
    report = _check(bot, settings, output, build_in=build_in, protocol=protocol)
    unwritten = list(output.unwritten)
    if junit is not None:
        try:
            junit.write_bytes(junit_xml(report))
        except OSError as error:
            unwritten.append(f"{junit}: the report could not be written: {error.strerror}")
    if as_json:
        click.echo(json_text(report.to_json()))
    else:
        output.end(report, protocol, _given_options())
    for message in unwritten:
        click.echo(f"Error: {visible(message)}", err=True)
    if report.host_fault or unwritten:
        raise SystemExit(NOT_CHECKED)
    if not report.passed:
        raise SystemExit(FAILED)


def _check(
    bot: str, settings: Settings, output: "_CheckOutput", *, build_in: Sandbox | None, protocol: str
) -> Report:
    try:
        player = resolve_bot(bot, Path.cwd(), game=settings.games[0], build_in=build_in, protocol=protocol)
    except BotError as error:
        report = not_found(
            bot, str(error), settings, is_ours=error.is_ours, is_build=isinstance(error, BuildError)
        )
        output.item(report.items[0])
        return report
    with cancel_on_signals("the check was not finished") as cancel_fd:
        return check_bot(
            player,
            settings,
            on_item=output.item,
            on_scenario=output.scenario,
            on_played=output.keep,
            cancel_fd=cancel_fd,
        )
    raise AssertionError("a cancelled check ends the program")


def _given_options() -> str:
    """Return those of GAME_OPTIONS that are on the command line, with their values, after a space."""
    context = click.get_current_context()
    words: list[str] = []
    for option in context.command.params:
        name = option.name or ""
        if name in GAME_OPTIONS and context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            words += [option.opts[0], str(context.params[name])]
    return f" {shlex.join(words)}" if words else ""


def _games(bot: str, game: str | None) -> tuple[str, ...]:
    """Return the games to check: the one given, or else those that the bot's manifest names.

    Raises SpecError.
    """
    if game is not None:
        return (parse_game(game).name,)
    try:
        path = Path(bot).expanduser()
        manifest = load_manifest(path) if path.is_dir() else None
    except (ManifestError, OSError, RuntimeError):  # ``resolve_bot`` reports the error, if there is one
        manifest = None
    named = manifest.games if manifest is not None and manifest.games else [DEFAULT_GAME]
    return tuple(dict.fromkeys(parse_game(all_games()[name].example).name for name in named))


class _CheckOutput:
    """Output of a check while it runs."""

    def __init__(
        self, bot: str, settings: Settings, *, verbose: bool, quiet: bool, keep: Path | None
    ) -> None:
        self._bot, self._settings = bot, settings
        self._verbose, self._quiet, self._keep = verbose, quiet, keep
        stdout, stderr = sys.stdout, sys.stderr  # None if it was closed: `>&-`
        encoding = (stdout.encoding or "") if stdout is not None else ""
        self._marks = encoding.lower().replace("-", "") == "utf8" and stdout.isatty()
        self._live = stderr is not None and stderr.isatty() and not quiet
        self.unwritten: list[str] = []
        """The message on a record that could not be written, which follows the report: it hides no result."""
        self._game: str | None = None
        self._has_begun = False

    def scenario(self, scenario: Scenario, number: int, total: int) -> None:
        """Show on a terminal the scenario that begins."""
        if self._live:
            click.echo(f"\r\x1b[K[{number}/{total}] {scenario.title}"[:90], nl=False, err=True)

    def item(self, item: Item) -> None:
        """Show an item."""
        if self._quiet:
            return
        self._clear()
        settings = self._settings
        if not self._has_begun:
            self._has_begun = True
            _echo(head_lines(self._bot, settings.games, str(settings.control), settings.sandbox.tier.value))
        if item.game and item.game != self._game:
            if self._game is not None:
                click.echo(f"\n{item.game}")
            self._game = item.game
        paint = _coloured if self._marks else plain
        _echo(item_lines(item, marks=self._marks, verbose=self._verbose, paint=paint))

    def keep(self, played: PlayedScenario) -> None:
        """Write a game's record, if --keep was given and no record has failed to be written."""
        if self._keep is None or self.unwritten:
            return
        path = self._keep / f"{played.scenario.key}.msgpack"
        try:
            path.write_bytes(played.record.to_msgpack())
        except OSError as error:
            self.unwritten.append(f"{path}: the record could not be written: {error.strerror}")

    def end(self, report: Report, protocol: str, options: str) -> None:
        """Show the summary; see ``summary_lines`` for ``options``."""
        self._clear()
        _echo(summary_lines(report, self._bot, protocol, options))
        if self._keep is not None and report.played and not self.unwritten:
            click.echo(f"Records: {visible(str(self._keep))}, one for each game")

    def _clear(self) -> None:
        if self._live:
            click.echo("\r\x1b[K", nl=False, err=True)


def _coloured(text: str, status: Status) -> str:
    return click.style(text, fg=COLOURS[status], bold=status is Status.FAILED)


def _echo(lines: Iterable[str]) -> None:
    for line in lines:
        click.echo(line)
