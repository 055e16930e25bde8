"""`kalarena tournament run`."""

import contextlib
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import click
import trio

from referee.judge.limits import memory_shortage
from referee.judge.results import Player
from referee.sandbox.bubblewrap import Sandbox, Tier
from referee.sandbox.detection import MODES, SandboxError, find_sandbox
from referee.sandbox.host_resources import core_count, host_memory_bytes
from tournaments.bots.errors import BotError
from tournaments.cli.main import INTERRUPTED, Fault, Usage, print_message, single_error
from tournaments.cli.tournament.engine_options import LOCAL, EngineOptions, engine_options, open_engine
from tournaments.cli.tournament.live import open_view
from tournaments.cli.tournament.outcome import Outcome, Results, same_command
from tournaments.config.load import ConfigError, load_tournament
from tournaments.config.tournament import Tournament, withdrawn_players
from tournaments.engines.base import Engine
from tournaments.engines.remote.extra import ClusterError, SchedulerLostError
from tournaments.processes.process_settings import prepare_for_many_games, stopping_signals
from tournaments.reporting.tournament_directory import DirectoryError, TournamentDirectory, find_store
from tournaments.reporting.tournament_results import TournamentResults
from tournaments.results.game_files import FORMS, GameFilesError
from tournaments.results.rulings import RulingError
from tournaments.results.store import Store, StoreError
from tournaments.running.rehearsal import RehearsalError, problem_table, rehearse, unrehearsed
from tournaments.running.runner import Run, open_run, play_all

SHOWN_ERRORS = (StoreError, GameFilesError, DirectoryError, ClusterError, RehearsalError)
"""Errors of which only the message is shown."""
LOST_ADVICE = "start it again if it has ended; the same command goes on"


@click.command("run")
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Directory of the results, new or to be continued.  [default: results/cup for a FILE cup.toml]",
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
    "--quiet",
    is_flag=True,
    help="Print the final table, and nothing before it but errors and the command for workers.",
)
@click.option(
    "--sandbox",
    "sandbox_mode",
    type=click.Choice(MODES),
    help="How bots are confined.  [default: what FILE says]",
)
@click.option(
    "--no-rehearsal",
    is_flag=True,
    help="Begin without a short game of each bot that must be confined.",
)
@click.option(
    "--game-files",
    type=click.Choice(FORMS),
    help="Files of games: a folder for each, or an archive for each hundred.  [default: what FILE says]",
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
    no_rehearsal: bool,
    game_files: str | None,
    engine: str,
    scheduler: str | None,
    credentials: Path | None,
) -> None:
    """Run the tournament of FILE, or go on with what is in DIR.

    Bots that must be confined first play a short game each: if one cannot run confined, no game is played.

    It may be stopped, or killed, at any time: the same command goes on with the games that are missing.
    """
    shown = not (as_json or quiet)
    options = EngineOptions(engine, scheduler, credentials)
    directory = out or Path("results") / file.stem
    try:
        tournament = load_tournament(file, sandbox_mode, _withdrawn_in(directory))
        if concurrency is not None and engine == LOCAL:
            tournament = tournament.with_memory_for(concurrency)
        if game_files is not None:
            tournament = tournament.model_copy(update={"game_files": game_files})
        sandbox = find_sandbox(tournament.sandbox_mode)
        if tournament.untrusted and not sandbox.tier.confines:
            raise SandboxError("the file says untrusted = true, which needs a sandbox: leave --sandbox out")
    except (ConfigError, SandboxError) as error:
        raise (Fault if getattr(error, "is_ours", False) else Usage)(str(error)) from error
    outcome = run_in(
        directory,
        tournament,
        sandbox,
        base=file.parent,
        kind=TournamentResults,
        concurrency=concurrency,
        shown=shown,
        options=options,
        rehearses=tournament.must_confine and not no_rehearsal,
    )
    click.echo(outcome.results.render("json") if as_json else outcome.text(quiet=quiet))
    for line in outcome.problem_lines():
        print_message(line)
    if outcome.interrupted:
        print_message(f"{outcome.stopped()}\n  {same_command(context)}")
        raise SystemExit(INTERRUPTED)
    if outcome.report.unplayed:
        raise Fault(outcome.missing())


def _withdrawn_in(directory: Path) -> dict[int, Player]:
    """Return the bots of the file that have withdrawn, see ``withdrawn_players``.

    Returns an empty dictionary if the results cannot be read; the run itself reports that.
    """
    try:
        path = find_store(directory, missing=DirectoryError, unreadable=DirectoryError)
        with Store(path, read_only=True) as store:
            return withdrawn_players(store.identity(), store.journal())
    except (DirectoryError, StoreError):
        return {}


def run_in(
    path: Path,
    tournament: Tournament,
    sandbox: Sandbox,
    *,
    base: Path,
    kind: type[Results],
    concurrency: int | None = None,
    shown: bool = True,
    options: EngineOptions | None = None,
    rehearses: bool = False,
) -> Outcome[Results]:
    """Run a tournament in a directory, or resume it there.

    Args:
        base: Folder for the paths of bots that were added later.
        kind: Class of the results, on the screen and in the end.
        concurrency: Number of games at a time; None is that of the tournament.
        shown: True if progress is shown on standard error.
        options: Machines for the games; None is this one.
        rehearses: True if each bot without a game plays a short one first, see ``rehearsal``.

    Raises Usage, Fault; SystemExit if a new tournament is interrupted before its first game.
    """
    started = False
    try:
        directory = TournamentDirectory(path)
        directory.refuse_other_files()
        with directory.locked(), Store(directory.store_path) as store:
            run = open_run(tournament, store, base, claim=False)
            tournament = run.tournament
            _check_memory(run, concurrency, options, shown=shown)
            bots = unrehearsed(run) if rehearses else []

            def claim() -> None:
                nonlocal started
                is_changed = run.claim()
                started = True
                if is_changed:  # else a run that is killed leaves tables that no verification can make again
                    directory.write_reports(TournamentResults.load(store))

            if not bots:  # a tournament with a bot that cannot run is not stored: its bots may still change
                claim()
            if sandbox.tier is Tier.WEAK and shown:
                print_message(
                    f"{tournament.name}: bots are not confined on this host, only limited; that is for bots "
                    "that are trusted (kalarena doctor says more)"
                )
            for_people = shown and sys.stderr.isatty()  # programs take the first line for progress
            if for_people and tournament.anchor is None and tournament.anchor_rating:
                print_message(
                    f"{tournament.name}: [rating] value = {tournament.anchor_rating:g} has no effect without "
                    "an anchor: the average of all ratings is 0"
                )
            repeats = run.is_new and tournament.rounds > 1 and not tournament.openings
            if for_people and repeats:
                print_message(
                    f"{tournament.name}: there are no openings: bots that use no chance play the same games "
                    f"in each of the {tournament.rounds} rounds, and ratings count near-copies once; "
                    "openings = { random = { plies = 2, seed = 7 } } in the file gives them other games"
                )
            if shown and run.report.before:
                print_message(_going_on(run, directory))
            options = options or EngineOptions()
            if options.engine != LOCAL and not bots and not run.due():
                options = EngineOptions()  # the local engine starts no worker before a game
            with single_error(*SHOWN_ERRORS), prepare_for_many_games(), _stopped_once() as stopping:
                interrupted = trio.run(
                    partial(_run, run, directory, sandbox, kind, stopping, options, bots, claim),
                    concurrency or tournament.concurrency,
                    shown,
                )
            if not started and run.is_new:
                print_message("stopped before the first game; nothing was kept")
                raise SystemExit(INTERRUPTED)
            results = kind.load(store)
            # as `kalarena verify` and `table` will make them
            directory.write_reports(TournamentResults.load(store))
    except (ConfigError, DirectoryError, RulingError, StoreError) as error:
        raise (Fault if started or getattr(error, "is_ours", False) else Usage)(str(error)) from error
    except RehearsalError as error:
        raise Usage(str(error)) from error
    except SchedulerLostError as error:
        raise Fault(f"{error}: {LOST_ADVICE}") from error
    except (ClusterError, GameFilesError) as error:
        raise Fault(str(error)) from error
    except KeyboardInterrupt:
        raise SystemExit(INTERRUPTED) from None
    return Outcome(results, run.report, directory, interrupted, changed_bots(tournament))


def changed_bots(tournament: Tournament) -> list[str]:
    """Return the names of bots whose files are others than when the run began, or cannot be read any more.

    Each game starts its bots from their files, so a bot that was changed plays the later games.
    """
    changed = []
    for bot in tournament.players:
        if bot.name in tournament.sources:
            try:
                now = tournament.sources[bot.name].digest()
            except BotError:
                now = ""
            if now != bot.digest:
                changed.append(bot.name)
    return changed


def _check_memory(run: Run, concurrency: int | None, options: EngineOptions | None, *, shown: bool) -> None:
    """Print a warning if the bots may use more memory than this host has.

    Raises Usage if not even one game of a new tournament fits, and its file sets the limit.
    """
    if options is not None and options.engine != LOCAL:
        return
    tournament = run.tournament
    memory_mb, host = tournament.limits.memory_mb, host_memory_bytes()
    alone = memory_shortage(memory_mb, host, 1)
    if alone and run.is_new and not tournament.has_default_memory:
        raise Usage(f"{alone}: choose a smaller memory_mb")
    games = concurrency or tournament.concurrency or core_count()
    if shown and (shortage := memory_shortage(memory_mb, host, games)):
        print_message(
            f"{tournament.name}: {shortage}; if all of them do, games fail and are played again: choose "
            "a smaller memory_mb, or fewer games at a time (--concurrency)"
        )


def _going_on(run: Run, directory: TournamentDirectory) -> str:
    name, before, total = run.tournament.name, run.report.before, run.report.total
    if before >= total:
        return f"{name}: all of {total} games are in {directory.path} already"
    return f"{name}: going on with {before} of {total} games in {directory.path}"


@contextlib.contextmanager
def _stopped_once() -> Iterator[threading.Event]:
    """Ignore further signals to stop once the yielded event is set, so that the stop can be completed.

    They stay ignored after the block: another Ctrl-C must not cost the reports.  An earlier signal raises
    KeyboardInterrupt, as it does outside the block.
    """
    stopping = threading.Event()

    def stop(_number: int, _frame: object) -> None:
        if not stopping.is_set():
            stopping.set()
            raise KeyboardInterrupt

    before = {number: signal.signal(number, stop) for number in stopping_signals()}
    try:
        yield stopping
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_IGN if stopping.is_set() else handler)


async def _run(
    run: Run,
    directory: TournamentDirectory,
    sandbox: Sandbox,
    kind: type[TournamentResults],
    stopping: threading.Event,
    options: EngineOptions,
    bots: Sequence[Player],
    claim: Callable[[], None],
    concurrency: int | None,
    shown: bool,
) -> bool:
    """Run the tournament; return True if a signal stopped it.

    ``bots`` are rehearsed first; then ``claim`` is called.  Raises RehearsalError.
    """
    interrupted = False
    with trio.CancelScope() as scope:

        async def stop_on_signal(task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
            nonlocal interrupted
            with trio.open_signal_receiver(*stopping_signals()) as signals:
                task_status.started()
                async for _ in signals:
                    interrupted = True
                    stopping.set()
                    scope.cancel()

        def alert(sentence: str) -> None:
            print_message(f"{run.tournament.name}: {sentence}")

        def notify(sentence: str) -> None:
            if shown:
                alert(sentence)

        confined = options.sandbox(sandbox)
        async with trio.open_nursery() as nursery:
            await nursery.start(stop_on_signal)
            async with open_engine(
                options, run.tournament, directory.path, confined, concurrency, notify, alert
            ) as engine:
                if bots:
                    await _rehearse(run, bots, engine, confined, shown=shown)
                    claim()
                with open_view(run, shown=shown, kind=kind) as view:
                    async with trio.open_nursery() as watched:
                        watched.start_soon(view.keep_up)
                        await play_all(run, engine, directory.path, view, confined)
                        watched.cancel_scope.cancel()
            nursery.cancel_scope.cancel()
    return interrupted


async def _rehearse(
    run: Run, bots: Sequence[Player], engine: Engine, sandbox: Sandbox, *, shown: bool
) -> None:
    """Rehearse bots, with one line of progress.  Raises RehearsalError."""
    begin = f"{run.tournament.name}: rehearsal"
    count = f"{len(bots)} {'bot' if len(bots) == 1 else 'bots'}"
    rewrites = shown and sys.stderr.isatty()

    def progress(done: int) -> None:
        if rewrites:
            print_message(f"\r{begin}: {done} of {count}", newline=False)

    problems = await rehearse(bots, run.tournament, engine, sandbox, progress)
    if shown:
        runnable = len(bots) - len(problems)
        line = f"{begin}: {runnable} of {count} can run confined"
        print_message(("\r" if rewrites else "") + line)
    if problems:
        raise RehearsalError(problem_table(problems, len(bots), sandbox, resumed=not run.is_new))
