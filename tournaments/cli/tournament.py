"""`kalarena tournament run` and `kalarena tournament table`."""

import contextlib
import shutil
import signal
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import click
import trio

from referee.probe import MODES, SandboxError, find_sandbox
from referee.sandbox import Sandbox, Tier
from tournaments.cli.live import LiveView
from tournaments.cli.main import INTERRUPTED, Fault, Usage
from tournaments.config import ConfigError, Tournament, load_tournament
from tournaments.directory import STORE_FILE, DirectoryError, TournamentDirectory
from tournaments.engines.local import open_local_engine
from tournaments.gamefiles import GameFilesError
from tournaments.runner import RunReport, new_report, run
from tournaments.store import Store, StoreError
from tournaments.summary import Summary
from tournaments.tables import FORMATS


@click.group("tournament")
def command() -> None:
    """Run tournaments and print their tables."""


@command.command("run")
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Where the results go, or are.  [default: results/NAME of FILE]",
)
@click.option(
    "--concurrency",
    type=click.IntRange(1, 256),
    metavar="N",
    help="Games at a time.  [default: one per core]",
)
@click.option(
    "--json", "as_json", is_flag=True, help="Print the final table as one JSON object, nothing else."
)
@click.option(
    "--sandbox",
    "sandbox_mode",
    type=click.Choice(MODES),
    help="How bots are confined.  [default: what FILE says]",
)
def run_command(
    file: Path, out: Path | None, concurrency: int | None, as_json: bool, sandbox_mode: str | None
) -> None:
    """Run the tournament of FILE, or go on with what is in DIR.

    It may be stopped, or killed, at any time: the same command goes on with the games that are missing.
    """
    started = False
    try:
        tournament = load_tournament(file)
        sandbox = find_sandbox(sandbox_mode or tournament.sandbox_mode)
        if tournament.untrusted and not sandbox.tier.confines:
            raise SandboxError("the file says untrusted = true, which needs a sandbox: leave --sandbox out")
        directory = TournamentDirectory(out or Path("results") / file.stem)
        with directory.locked(), Store(directory.store_path) as store:
            store.check_identity(tournament.identity())
            report = new_report(tournament, store)
            plan = Summary.of(tournament)
            store.claim(plan.name, plan.config(), tournament.identity())
            started = True
            if sandbox.tier is Tier.WEAK and not as_json:
                click.echo(
                    f"{tournament.name}: bots are not confined on this host, only limited; that is for bots "
                    "that are trusted (kalarena doctor says more)",
                    err=True,
                )
            with single_error():
                interrupted = trio.run(
                    partial(_run, tournament, store, directory, report, sandbox),
                    concurrency or tournament.concurrency,
                    not as_json,
                )
            if interrupted:  # a second Ctrl-C must not cost the reports
                for number in _stopping_signals():
                    signal.signal(number, signal.SIG_IGN)
            summary = Summary.load(store)
            directory.write_reports(summary)
    except (ConfigError, DirectoryError, SandboxError, StoreError) as error:
        raise (Fault if started else Usage)(str(error)) from error
    except GameFilesError as error:
        raise Fault(str(error)) from error
    except KeyboardInterrupt:
        raise SystemExit(INTERRUPTED) from None
    _conclude(summary, report, directory, interrupted=interrupted, as_json=as_json)


@contextlib.contextmanager
def single_error() -> Iterator[None]:
    """Take the first error of ours out of the groups that nurseries put errors into."""
    try:
        yield
    except BaseExceptionGroup as group:
        leaf: BaseException = group
        while isinstance(leaf, BaseExceptionGroup):
            leaf = leaf.exceptions[0]
        if isinstance(leaf, StoreError | GameFilesError | DirectoryError):
            raise leaf from group  # noqa: ASYNC123 - only its message is shown, and that is whole
        raise


def _stopping_signals() -> list[signal.Signals]:
    """The signals that stop a run: of a closed terminal, too, unless we are told to outlive it (nohup)."""
    ignored = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    return [signal.SIGINT, signal.SIGTERM] + ([] if ignored else [signal.SIGHUP])


async def _run(
    tournament: Tournament,
    store: Store,
    directory: TournamentDirectory,
    report: RunReport,
    sandbox: Sandbox,
    concurrency: int | None,
    live: bool,
) -> bool:
    """Run it; whether a signal stopped it."""
    interrupted = False
    with LiveView(Summary.load(store), shown=live) as view, trio.CancelScope() as scope:

        async def stop_on_signal(task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
            nonlocal interrupted
            with trio.open_signal_receiver(*_stopping_signals()) as signals:
                task_status.started()
                async for _ in signals:
                    interrupted = True
                    scope.cancel()

        async with trio.open_nursery() as nursery:
            await nursery.start(stop_on_signal)
            async with open_local_engine(directory.path, concurrency, own_core=tournament.own_core) as engine:
                await run(tournament, store, engine, directory.path, report, view.add, sandbox)
            nursery.cancel_scope.cancel()
    return interrupted


def terminal_width() -> int | None:
    """The width of the terminal that is printed to; None if it is none."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def _conclude(
    summary: Summary, report: RunReport, directory: TournamentDirectory, *, interrupted: bool, as_json: bool
) -> None:
    if as_json:
        click.echo(summary.render("json"))
    else:
        click.echo(summary.render("text", terminal_width()))
        click.echo(f"\nresults  {directory.store_path}\nreport   {directory.report_path}")
    for key, why in report.unplayed.items():
        click.echo(f"game {key} could not be played, and counts for nobody: {why}", err=True)
    missing = report.total - report.before - report.played
    if interrupted:
        click.echo(
            f"stopped with {missing} of {report.total} games to play; the same command goes on", err=True
        )
        raise SystemExit(INTERRUPTED)
    if report.unplayed:
        raise Fault(f"{missing} of {report.total} games have no result; the same command tries them again")


@command.command("table")
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--format", "form", type=click.Choice(FORMATS), default="text", show_default=True)
def table_command(directory: Path, form: str) -> None:
    """Print the table of the results in DIR."""
    path = directory / STORE_FILE
    if not path.is_file():
        raise Usage(f"{directory} holds no {STORE_FILE}: is it the directory of a tournament?")
    try:
        with Store(path, read_only=True) as store:
            click.echo(Summary.load(store).render(form, terminal_width()), nl=form != "html")
    except StoreError as error:
        raise Usage(str(error)) from error
