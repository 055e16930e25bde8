"""One game from start to record: the unit of work of every engine."""

import contextlib
import os
import platform
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import lru_cache, partial
from typing import TypeVar

import trio

from protocol.announced import TIME_VARIABLE
from referee.errors import (
    GameStoppedError,
    RefereeError,
    described,
    unexpected_errors_as_referee_errors,
)
from referee.event_loop import run_blocking
from referee.function_player import FunctionBot, FunctionPlayer
from referee.games.catalog import DEFAULT_GAME, GAME_VARIABLE, OPENING_VARIABLE, find_game, parse_game
from referee.games.opening import parse_opening
from referee.games.plugins import GAMES_VARIABLE
from referee.games.spec import parse_spec
from referee.judge.clock import DEFAULT_MOVE_S, WALL, TimeControl, announced
from referee.judge.events import NotStarted
from referee.judge.limits import Limits
from referee.judge.match import Match, limits_of
from referee.judge.results import NO_RESULT, GameRecord, KeptFile, Player
from referee.live_feed import Feed
from referee.process.bot import Bot, now
from referee.process.launch import NotRunnableError
from referee.process.subreaper import become_subreaper, kill_orphans
from referee.sandbox.bubblewrap import Sandbox
from referee.sandbox.host_resources import usable_cores
from referee.session import AnyMatch, Observer, Session
from referee.version import VERSION

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Job:
    """A game to be played; it can be pickled."""

    key: str
    """Name of the game, unique in its tournament."""
    game: str
    """Spec text of the rules."""
    players: tuple[Player, Player]
    """The two players; player 0 moves first."""
    control: TimeControl
    limits: Limits = field(default_factory=Limits)
    opening: str = ""
    """The opening's text, see referee/games/opening.py; empty for the game's own start."""
    sandbox: Sandbox = field(default_factory=Sandbox)
    """The confinement of the bots."""
    pair: str = ""
    """Label of a group of games that are played on one host, so that both bots meet the same conditions;
    empty for a game that may be played anywhere."""
    keep_files: bool = False
    """True if the record keeps the files that bots write in their working directories."""


NO_FUNCTIONS: Mapping[int, FunctionPlayer] = {}


def play(
    first: Player | FunctionPlayer,
    second: Player | FunctionPlayer,
    game: str = DEFAULT_GAME,
    *,
    move_s: float = DEFAULT_MOVE_S,
    control: TimeControl | None = None,
    opening: str = "",
    limits: Limits | None = None,
    sandbox: Sandbox | None = None,
) -> GameRecord:
    """Play one game and return its record: the shortest way from Python.

    Several games can be played in one process, one after the other.  It also works in a notebook, whose
    event loop is blocked until the game is over.  Processes that bots leave behind are ended only by
    ``play_alone``, in a process that does nothing else.

    Args:
        first: The player that moves first: a function, or a bot's command (see ``tournaments.bot``).
        second: The other player.
        game: The spec text of the game.
        move_s: Seconds for each move.
        control: The time control, in place of ``move_s``.
        opening: The opening's text, see referee/games/opening.py.
        limits: The limits of bots.
        sandbox: The confinement of bots; none by default.

    Raises:
        RefereeError: The referee or its host failed; the game has no result.
        SpecError: There is no such game.
        OpeningError: The game has no such opening.
        TypeError: A player is neither a FunctionPlayer nor a Player.
    """
    rules = parse_game(game)
    parse_opening(rules, opening)
    both = (first, second)
    for player in both:
        if not isinstance(player, Player | FunctionPlayer):
            raise TypeError(
                f"{player!r} is no player: take FunctionPlayer(function), or tournaments.bot(text) for a bot"
            )
    functions = {index: player for index, player in enumerate(both) if isinstance(player, FunctionPlayer)}
    one, other = (player.identity if isinstance(player, FunctionPlayer) else player for player in both)
    job = Job(
        "play",
        rules.name,
        (one, other),
        control or TimeControl(move_s=move_s),
        limits or Limits(),
        opening,
        sandbox or Sandbox(),
    )
    return run_blocking(partial(play_game, job, functions=functions))


async def play_game(
    job: Job,
    *,
    observe: Observer | None = None,
    cancel_fd: int | None = None,
    feed: str | None = None,
    functions: Mapping[int, FunctionPlayer] = NO_FUNCTIONS,
    owns_loop: bool = True,
) -> GameRecord:
    """Play a game with real processes, or with functions in the place of some.

    All processes of the bots' two process groups end with the game, also when it is cancelled.  Some may be
    left only if this process itself is killed, or if the system cannot end them; the record of a game that
    has a verdict then says so (``GameRecord.warnings``).

    With ``owns_loop=False`` several games can be played at a time in one event loop, with less exact times,
    since each takes time from the others.  A tournament plays each game in a process of its own.

    Args:
        job: The game.
        observe: Callback for each wire line.
        cancel_fd: Descriptor that becomes readable when the game is cancelled.
        feed: Path of a socket for snapshots of the game, see referee/live_feed.py.
        functions: Index of a player -> the function that plays it, in this process.
        owns_loop: True if the event loop has nothing to do but this game, and may be blocked for some
            moments.  If False, long waits are in threads, and the fault of a bot that closes its input may be
            ``closed-input`` although its process ends a moment later.

    Raises:
        RefereeError: The referee or its host failed; the game has no result.
    """
    with unexpected_errors_as_referee_errors():
        bots: list[Bot | FunctionBot] = []
        warnings: list[str] = []
        try:
            record = await _play(job, bots, warnings, observe, cancel_fd, feed, functions, owns_loop)
        finally:
            with trio.CancelScope(shield=True):  # bounded by the limits of ``Bot.close``
                warnings += await _run(partial(_end, bots), owns_loop)
        return _with_warnings(record, warnings)


async def _play(
    job: Job,
    bots: list[Bot | FunctionBot],
    warnings: list[str],
    observe: Observer | None,
    cancel_fd: int | None,
    feed: str | None,
    functions: Mapping[int, FunctionPlayer],
    owns_loop: bool,
) -> GameRecord:
    """Play a game, and return its record.  The caller closes the bots.

    ``bots`` receives the bots as they are started, and ``warnings`` the failures after the verdict.
    """
    match = new_match(job)
    started_at = datetime.now(UTC).isoformat(timespec="milliseconds")
    began = now()
    sends = match.start(began)
    failed: list[NotStarted] = []
    for index, player in enumerate(job.players):
        if index in functions:
            bots.append(FunctionBot(index, functions[index], match.game, opening=bool(job.opening)))
            continue
        try:
            bots.append(Bot(index, player, environment_of(job), sandbox=job.sandbox, limits=job.limits))
        except NotRunnableError as error:
            failed.append(NotStarted(index, now(), str(error)))
    if failed:
        why_other = failed[1].why if len(failed) > 1 else ""
        match.handle(failed[0]._replace(why_other=why_other))
        # Nothing was sent to the other bot yet, and nothing needs to be.
        return _record(job, match, bots, started_at, began)
    await _run(partial(_wait_ready, bots), owns_loop)
    publisher = None if feed is None else Feed(feed, match)
    session = Session(match, (bots[0], bots[1]), observe, cancel_fd, publisher, owns_loop=owns_loop)
    try:
        await session.referee(sends)
        await session.wind_down(job.limits.end_grace_s)
    except GameStoppedError as error:
        if match.result is None:
            error.unfinished = _record(job, match, bots, started_at, began, session)
        raise
    except Exception as error:
        if match.result is None:
            raise
        warnings.append(f"after the verdict: {described(error)}")
    finally:
        try:
            with trio.CancelScope(shield=True):  # bounded by KILL_LIMIT_S
                await session.kill()
            session.close()
        except Exception as error:
            warnings.append(f"the game could not be ended in order: {described(error)}")
    return _record(job, match, bots, started_at, began, session, warnings)


async def _run(function: Callable[[], T], owns_loop: bool) -> T:
    """Call a function that may block: in a thread if the event loop has other tasks."""
    if owns_loop:
        return function()
    try:
        return await trio.to_thread.run_sync(function)
    except RuntimeError:  # no thread can be started, for example because a bot has started too many
        return function()


def _wait_ready(bots: Sequence[Bot | FunctionBot]) -> None:
    for bot in bots:
        bot.wait_ready()


def _end(bots: Sequence[Bot | FunctionBot]) -> list[str]:
    """Kill and close bots; return a sentence for each failure."""
    failures = []
    for bot in bots:
        bot.kill()
    for bot in bots:
        try:
            left = bot.close()
        except Exception as error:
            left = f"{bot.player.name} could not be closed: {described(error)}"
        if left:
            failures.append(left)
    return failures


def _with_warnings(record: GameRecord, warnings: Sequence[str]) -> GameRecord:
    return replace(record, warnings=(*record.warnings, *warnings)) if warnings else record


def new_match(job: Job) -> AnyMatch:
    """Return the judge of a job's game, before the start."""
    game = parse_game(job.game)
    first, second = job.players
    return Match(
        game,
        job.control,
        (first.name, second.name),
        parse_opening(game, job.opening),
        ("time" in first.capabilities, "time" in second.capabilities),
        job.limits.wire_bytes,
        limits_of(job.limits, job.sandbox.tier.value),
    )


def environment_of(job: Job) -> dict[bytes, bytes]:
    """Return this process's environment with the variables that announce the game to a bot."""
    game = parse_game(job.game)
    environment = {**os.environb, GAME_VARIABLE.encode(): game.name.encode()}
    environment[TIME_VARIABLE.encode()] = announced(job.control).encode()
    environment.pop(b"PYTHONUNBUFFERED", None)  # a bot's buffering must not depend on the operator's shell
    environment.pop(OPENING_VARIABLE.encode(), None)
    environment.pop(GAMES_VARIABLE.encode(), None)
    entry = find_game(parse_spec(job.game).name)
    if entry is not None and entry.source:
        environment[GAMES_VARIABLE.encode()] = os.fsencode(entry.source)
    if opening := parse_opening(game, job.opening):
        environment[OPENING_VARIABLE.encode()] = str(len(opening)).encode()
    return environment


def _record(
    job: Job,
    match: AnyMatch,
    bots: Sequence[Bot | FunctionBot],
    started_at: str,
    began: float,
    session: Session | None = None,
    warnings: list[str] | None = None,
) -> GameRecord:
    """Return the record of a game between processes; ``session`` is None if the game never began.

    ``warnings`` receives the failures to read what is no part of the verdict.
    """
    counted = session is not None and session.cpu_us != (None, None)
    # The files are read after the end of all processes; of a stopped game, the bots are still running.
    has_ended = session is not None and match.result is not None
    kept: dict[int, tuple[KeptFile, ...]] = {}
    for bot in bots if job.keep_files and has_ended else ():
        try:
            kept[bot.index] = bot.written_files()
        except OSError as error:
            if warnings is None:
                raise
            warnings.append(f"the files of {bot.player.name} could not be kept: {described(error)}")
    clock = session.timer.clock if session is not None else WALL
    return replace(
        basic_record(job, match, bots, started_at, began, clock),
        host=platform.node(),
        versions=_versions(),
        cores=usable_cores(),
        cpu_us=session.cpu_us if session is not None else (None, None),
        kept_files=(kept.get(0, ()), kept.get(1, ())),
        off_turn_cpu_us=session.timer.off_turn if session is not None and counted else (None, None),
    )


def basic_record(
    job: Job,
    match: AnyMatch,
    bots: Sequence[Bot | FunctionBot],
    started_at: str,
    began: float,
    clock: str,
) -> GameRecord:
    """Return the part of a record that conformance games have, too: without the host and the CPU times."""
    texts = {bot.index: bot.stderr.text() for bot in bots}
    statuses = {bot.index: bot.status for bot in bots}
    settings = {bot.index: bot.runtime_settings for bot in bots}
    return GameRecord(
        key=job.key,
        game=match.game.name,
        players=job.players,
        control=job.control,
        moves=match.moves,
        wire=match.wire,
        facts=match.facts,
        final_state=match.game.board_text(match.state),
        result=match.result or NO_RESULT,
        stderr=(texts.get(0, ""), texts.get(1, "")),
        exit_status=(statuses.get(0), statuses.get(1)),
        started_at=started_at,
        opening=job.opening,
        duration_us=round((now() - began) * 1e6),
        host="",
        versions={"kalarena": VERSION},
        limits=job.limits,
        sandbox=job.sandbox.tier.value,
        clock=clock,
        judge=match.judge,
        runtime_settings=(settings.get(0, {}), settings.get(1, {})),
    )


@lru_cache(maxsize=1)
def _versions() -> dict[str, str]:
    return {
        "kalarena": VERSION,
        "python": platform.python_version(),
        "system": platform.platform(),
    }


def play_in_worker(
    job: Job, cancel_pipe: str | None = None, core: int | None = None, feed: str | None = None
) -> GameRecord:
    """Play a game in a worker process, in an event loop of its own.

    Args:
        job: The game.
        cancel_pipe: Path of a named pipe.  When the last process that holds the pipe open for writing closes
            it, or dies, the game is cancelled (RefereeError).
        core: Number of the core on which this process and the bots run, where the system can do that.
        feed: See ``play_game``.
    """
    if os.getpgrp() != os.getpid():
        os.setpgid(0, 0)  # a signal to the caller's group must not end us before our bots
    if core is not None and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {core})
    if cancel_pipe is None:
        return play_alone(job, feed=feed)
    try:
        descriptor = os.open(cancel_pipe, os.O_RDONLY | os.O_NONBLOCK)
    except OSError as error:
        raise RefereeError(f"the program that asked for this game is gone: {error}") from error
    try:
        if _has_no_writer(descriptor):
            raise RefereeError("the program that asked for this game is gone")
        return play_alone(job, cancel_fd=descriptor, feed=feed)
    finally:
        os.close(descriptor)


def _has_no_writer(pipe: int) -> bool:
    """Return True if no process holds a pipe open for writing that was just opened for reading.

    A poll never reports the end of a pipe that has had no writer since then.
    """
    try:
        return os.read(pipe, 1) == b""
    except BlockingIOError:
        return False


def play_alone(
    job: Job, *, observe: Observer | None = None, cancel_fd: int | None = None, feed: str | None = None
) -> GameRecord:
    """Run ``play_game`` in a process that does nothing else and has no other children.

    The process adopts the processes that the bots leave behind, and kills them.
    """
    with adopting_orphans() as left:
        record = trio.run(partial(play_game, job, observe=observe, cancel_fd=cancel_fd, feed=feed))
    return _with_warnings(record, left)


@contextlib.contextmanager
def adopting_orphans() -> Iterator[list[str]]:
    """Adopt the processes that the bots of this block leave behind, and end them after the block.

    For a process that does nothing else and has no other children.  Yields a list, which receives a sentence
    for each process that could not be ended.
    """
    with contextlib.suppress(ValueError):  # not in the main thread, where it cannot have been changed
        # Some daemons start their children with SIG_IGN; then no exit status could be read.
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    become_subreaper()
    left: list[str] = []
    try:
        yield left
    finally:
        left += [f"process {pid}, which a bot left behind, could not be ended" for pid in kill_orphans()]
