"""`kalarena tournament run`."""

import contextlib
import signal
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import click
import trio

from referee.probe import MODES, SandboxError, find_sandbox
from referee.sandbox import Sandbox, Tier
from tournaments.cli.main import INTERRUPTED, Fault, Usage
from tournaments.cli.tournament.ending import Ending, same_command
from tournaments.cli.tournament.engine_options import EngineOptions, engine_options, open_engine
from tournaments.cli.tournament.live import open_view
from tournaments.cluster.errors import ClusterError, SchedulerLostError
from tournaments.config import ConfigError, Tournament, load_tournament
from tournaments.directory import DirectoryError, TournamentDirectory
from tournaments.gamefiles import GameFilesError
from tournaments.interpreter import many_games
from tournaments.late_bots import with_late_bots
from tournaments.rulings import RulingError
from tournaments.runner import Run, RunReport, play_all
from tournaments.store import Store, StoreError
from tournaments.summary import Summary

LOST_ADVICE = "start it again if it has ended; the same command goes on"


@click.command("run")
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
@click.option("--quiet", is_flag=True, help="Print the final table, and nothing before it but errors.")
@click.option(
    "--sandbox",
    "sandbox_mode",
    type=click.Choice(MODES),
    help="How bots are confined.  [default: what FILE says]",
)
@engine_options
@click.pass_context
def command(
    context: click.Context,
    file: Path,
    out: Path | None,
    concurrency: int | None,
    as_json: bool,
    quiet: bool,
    sandbox_mode: str | None,
    engine: str,
    scheduler: str | None,
    credentials: Path | None,
) -> None:
    """Run the tournament of FILE, or go on with what is in DIR.

    It may be stopped, or killed, at any time: the same command goes on with the games that are missing.
    """
    shown = not (as_json or quiet)
    asked = EngineOptions(engine, scheduler, credentials)
    try:
        tournament = load_tournament(file)
        sandbox = find_sandbox(sandbox_mode or tournament.sandbox_mode)
        if tournament.untrusted and not sandbox.tier.confines:
            raise SandboxError("the file says untrusted = true, which needs a sandbox: leave --sandbox out")
    except (ConfigError, SandboxError) as error:
        raise (Fault if getattr(error, "is_ours", False) else Usage)(str(error)) from error
    outcome = run_in(
        out or Path("results") / file.stem,
        tournament,
        sandbox,
        base=file.parent,
        concurrency=concurrency,
        shown=shown,
        asked=asked,
    )
    summary = outcome.summary
    ending = Ending(summary, outcome.report, outcome.directory)
    click.echo(summary.render("json") if as_json else ending.result(quiet=quiet))
    for line in ending.unplayed():
        click.echo(line, err=True)
    if outcome.interrupted:
        click.echo(f"{ending.stopped()}\n  {same_command(context)}", err=True)
        raise SystemExit(INTERRUPTED)
    if outcome.report.unplayed:
        raise Fault(ending.missing())


@dataclass(frozen=True)
class Outcome:
    """What a run left."""

    summary: Summary
    report: RunReport
    directory: TournamentDirectory
    interrupted: bool
    """Whether a signal stopped it."""


def run_in(
    path: Path,
    tournament: Tournament,
    sandbox: Sandbox,
    *,
    base: Path,
    concurrency: int | None = None,
    shown: bool = True,
    kind: type[Summary] = Summary,
    asked: EngineOptions | None = None,
) -> Outcome:
    """Run a tournament in a directory, or go on with it; people see it on standard error if ``shown``.

    Paths of bots that were added later are taken from ``base``.  ``kind`` is what sums the results up, on the
    screen and in the end; ``asked`` is where games are played, by default here.  Raises Usage, Fault;
    SystemExit if it is interrupted before the first game.
    """
    started = False
    try:
        directory = TournamentDirectory(path)
        with directory.locked(), Store(directory.store_path) as store:
            store.check_identity(tournament.identity())
            tournament = with_late_bots(tournament, store.journal(), base)
            run = Run(tournament, store)
            plan = kind.of(tournament)
            store.claim(plan.name, plan.config(), tournament.identity())
            started = True
            if sandbox.tier is Tier.WEAK and shown:
                click.echo(
                    f"{tournament.name}: bots are not confined on this host, only limited; that is for bots "
                    "that are trusted (kalarena doctor says more)",
                    err=True,
                )
            if shown and run.report.before:
                click.echo(_going_on(run, directory), err=True)
            with single_error(), many_games(), _stopped_once() as heard:
                interrupted = trio.run(
                    partial(_run, run, directory, sandbox, kind, heard, asked or EngineOptions()),
                    concurrency or tournament.concurrency,
                    shown,
                )
            if interrupted:  # a second Ctrl-C must not cost the reports
                for number in _stopping_signals():
                    signal.signal(number, signal.SIG_IGN)
            summary = kind.load(store)
            directory.write_reports(Summary.load(store))  # as `kalarena verify` and `table` will make them
    except (ConfigError, DirectoryError, RulingError, StoreError) as error:
        raise (Fault if started or getattr(error, "is_ours", False) else Usage)(str(error)) from error
    except SchedulerLostError as error:
        raise Fault(f"{error}: {LOST_ADVICE}") from error
    except (ClusterError, GameFilesError) as error:
        raise Fault(str(error)) from error
    except KeyboardInterrupt:
        raise SystemExit(INTERRUPTED) from None
    return Outcome(summary, run.report, directory, interrupted)


def _going_on(run: Run, directory: TournamentDirectory) -> str:
    name, before, total = run.tournament.name, run.report.before, run.report.total
    if before >= total:
        return f"{name}: all of {total} games are in {directory.path} already"
    return f"{name}: going on with {before} of {total} games in {directory.path}"


@contextlib.contextmanager
def single_error() -> Iterator[None]:
    """Take the first error of ours out of the groups that nurseries put errors into."""
    try:
        yield
    except BaseExceptionGroup as group:
        leaf: BaseException = group
        while isinstance(leaf, BaseExceptionGroup):
            leaf = leaf.exceptions[0]
        if isinstance(leaf, StoreError | GameFilesError | DirectoryError | ClusterError):
            raise leaf from group  # noqa: ASYNC123 - only its message is shown, and that is whole
        raise


def _stopping_signals() -> list[signal.Signals]:
    """The signals that stop a run: of a closed terminal, too, unless we are told to outlive it (nohup)."""
    ignored = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    return [signal.SIGINT, signal.SIGTERM] + ([] if ignored else [signal.SIGHUP])


@contextlib.contextmanager
def _stopped_once() -> Iterator[threading.Event]:
    """Take no further signal to stop once the event is set: stopping is under way, and is not to be torn.

    A signal that comes before is a KeyboardInterrupt, as it is without us.
    """
    heard = threading.Event()

    def stop(_number: int, _frame: object) -> None:
        if not heard.is_set():
            heard.set()
            raise KeyboardInterrupt

    before = {number: signal.signal(number, stop) for number in _stopping_signals()}
    try:
        yield heard
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


async def _run(
    run: Run,
    directory: TournamentDirectory,
    sandbox: Sandbox,
    kind: type[Summary],
    heard: threading.Event,
    asked: EngineOptions,
    concurrency: int | None,
    shown: bool,
) -> bool:
    """Run it; whether a signal stopped it."""
    interrupted = False
    with trio.CancelScope() as scope:

        async def stop_on_signal(task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
            nonlocal interrupted
            with trio.open_signal_receiver(*_stopping_signals()) as signals:
                task_status.started()
                async for _ in signals:
                    interrupted = True
                    heard.set()
                    scope.cancel()

        def tell(sentence: str) -> None:
            if shown:
                click.echo(f"{run.tournament.name}: {sentence}", err=True)

        confined = asked.sandbox(sandbox)
        async with trio.open_nursery() as nursery:
            await nursery.start(stop_on_signal)
            async with open_engine(
                asked, run.tournament, directory.path, confined, concurrency, tell
            ) as engine:
                with open_view(run, shown=shown, kind=kind) as view:
                    async with trio.open_nursery() as watched:
                        watched.start_soon(view.keep_up)
                        await play_all(run, engine, directory.path, view, confined)
                        watched.cancel_scope.cancel()
            nursery.cancel_scope.cancel()
    return interrupted
