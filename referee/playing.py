"""One game from start to record: the unit of work of every engine."""

import contextlib
import os
import platform
import signal
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, TypeVar

import trio

from protocol.announced import TIME_VARIABLE
from referee.errors import (
    GameStoppedError,
    RefereeError,
    described,
    unexpected_errors_as_referee_errors,
)
from referee.games.catalog import DEFAULT_GAME, GAME_VARIABLE, OPENING_VARIABLE, find_game, parse_game
from referee.games.opening import OpeningError, parse_opening
from referee.games.plugins import GAMES_VARIABLE
from referee.games.spec import parse_spec
from referee.judge.clock import DEFAULT_MOVE_S, WALL, TimeControl, announced
from referee.judge.events import NotStarted
from referee.judge.limits import Limits
from referee.judge.match import new_match
from referee.judge.results import NO_OWN_CONTROLS, NO_RESULT, GameRecord, OwnControls, Player
from referee.notebooks.event_loop import run_blocking
from referee.players.function_player import FunctionPlayer
from referee.players.socket_player import SocketPlayer
from referee.process.bot import Bot
from referee.process.launch import NotRunnableError
from referee.process.player import SessionPlayer, now
from referee.process.subreaper import become_subreaper, kill_orphans
from referee.sandbox.bubblewrap import Sandbox
from referee.sandbox.host_resources import usable_cores
from referee.session import AnyMatch, Observer, Session
from referee.version import VERSION

if TYPE_CHECKING:
    from referee.judge.record_rows import KeptFile

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
    own_controls: OwnControls = NO_OWN_CONTROLS
    """Time controls of players whose limits differ from ``control``, see ``GameRecord.own_controls``."""
    sockets: tuple[str, str] = ("", "")
    """Path of the socket of each player that is at the other end of one (players/socket_player.py); empty for
    a bot's process."""


StartPlayer = Callable[[int, AnyMatch], SessionPlayer]
"""Function (index, match) -> the player of that index."""
NO_PLAYERS: Mapping[int, StartPlayer] = {}


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
        OpeningError: The game has no such opening, or a bot does not declare that it can take openings.
        TypeError: A player is neither a FunctionPlayer nor a Player.
    """
    rules = parse_game(game)
    begins_elsewhere = bool(parse_opening(rules, opening))
    both = (first, second)
    for player in both:
        if not isinstance(player, Player | FunctionPlayer):
            raise TypeError(
                f"{player!r} is no player: take FunctionPlayer(function), or tournaments.bot(text) for a bot"
            )
    players = {index: player.start for index, player in enumerate(both) if isinstance(player, FunctionPlayer)}

    def own_control(player: Player | FunctionPlayer) -> TimeControl | None:
        return player.control if isinstance(player, FunctionPlayer) else None

    one, other = (player.identity if isinstance(player, FunctionPlayer) else player for player in both)
    for identity in (one, other):
        if begins_elsewhere and "openings" not in identity.capabilities:
            raise OpeningError(
                f"{identity.name} cannot take an opening: it does not declare the capability openings in a "
                "bot.toml"
            )
    job = Job(
        "play",
        rules.name,
        (one, other),
        control or TimeControl(move_s=move_s),
        limits or Limits(),
        opening,
        sandbox or Sandbox(),
        own_controls=(own_control(first), own_control(second)),
    )
    return run_blocking(partial(play_game, job, players=players))


async def play_game(
    job: Job,
    *,
    observe: Observer | None = None,
    cancel_fd: int | None = None,
    feed: str | None = None,
    players: Mapping[int, StartPlayer] = NO_PLAYERS,
    wind_down: Callable[[Session], Awaitable[None]] | None = None,
    owns_loop: bool = True,
) -> GameRecord:
    """Play a game with real processes, or with other players in the place of some.

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
        players: Index of a player -> function that makes it, if it is no process (``SessionPlayer``).
        wind_down: Called after END; by default, both players have ``end_grace_s`` to end by themselves.
        owns_loop: True if the event loop has nothing to do but this game, and may be blocked for some
            moments.  If False, long waits are in threads, and the fault of a bot that closes its input may be
            ``closed-input`` although its process ends a moment later.

    Raises:
        RefereeError: The referee or its host failed; the game has no result.
    """
    with unexpected_errors_as_referee_errors():
        bots: list[SessionPlayer] = []
        warnings: list[str] = []
        try:
            record = await _play(job, bots, warnings, observe, cancel_fd, feed, players, wind_down, owns_loop)
        finally:
            with trio.CancelScope(shield=True):  # bounded by the limits of ``Bot.close``
                warnings += await _run(partial(_end, bots), owns_loop)
        return _with_warnings(record, warnings)


async def _play(
    job: Job,
    bots: list[SessionPlayer],
    warnings: list[str],
    observe: Observer | None,
    cancel_fd: int | None,
    feed: str | None,
    players: Mapping[int, StartPlayer],
    wind_down: Callable[[Session], Awaitable[None]] | None,
    owns_loop: bool,
) -> GameRecord:
    """Play a game, and return its record.  The caller closes the bots.

    ``bots`` receives the bots as they are started, and ``warnings`` the failures after the verdict.
    """
    match = new_match(
        job.game,
        job.control,
        job.players,
        job.opening,
        job.limits,
        job.sandbox.tier.value,
        own_controls=job.own_controls,
    )
    started_at = datetime.now(UTC).isoformat(timespec="milliseconds")
    began = now()
    sends = match.start(began)
    failed: list[NotStarted] = []
    for index in (0, 1):
        try:
            bots.append(players.get(index, partial(_start_player, job))(index, match))
        except NotRunnableError as error:
            failed.append(NotStarted(index, now(), str(error)))
    if failed:
        why_other = failed[1].why if len(failed) > 1 else ""
        match.handle(failed[0]._replace(why_other=why_other))
        # Nothing was sent to the other bot yet, and nothing needs to be.
        return _record(job, match, bots, started_at, began)
    await _run(partial(_wait_ready, bots), owns_loop)
    session = Session(match, (bots[0], bots[1]), observe, cancel_fd, feed, owns_loop=owns_loop)
    try:
        await session.referee(sends)
        if wind_down is None:
            until = now() + job.limits.end_grace_s
            await session.wind_down(lambda: until - now())
        else:
            await wind_down(session)
    except GameStoppedError as error:
        if match.result is None:
            error.unfinished = _record(job, match, bots, started_at, began, session)
        raise
    except Exception as error:
        if match.result is None or wind_down is not None:
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


def _wait_ready(bots: Sequence[SessionPlayer]) -> None:
    for bot in bots:
        bot.wait_ready()


def _end(bots: Sequence[SessionPlayer]) -> list[str]:
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


def _start_player(job: Job, index: int, match: AnyMatch) -> SessionPlayer:
    """Start a player of a job.  Raises NotRunnableError, RefereeError."""
    if job.sockets[index]:
        return SocketPlayer(index, job.players[index], job.sockets[index], job.limits)
    return start_bot(job, index, match)


def start_bot(job: Job, index: int, match: AnyMatch) -> Bot:
    """Start the bot that is one player of a job.  Raises NotRunnableError, RefereeError."""
    return Bot(index, job.players[index], environment_of(job, index), sandbox=job.sandbox, limits=job.limits)


def environment_of(job: Job, index: int = 0) -> dict[bytes, bytes]:
    """Return this process's environment with the variables that announce the game to one of the bots."""
    game = parse_game(job.game)
    environment = {**os.environb, GAME_VARIABLE.encode(): game.name.encode()}
    environment[TIME_VARIABLE.encode()] = announced(job.own_controls[index] or job.control).encode()
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
    players: Sequence[SessionPlayer],
    started_at: str,
    began: float,
    session: Session | None = None,
    warnings: list[str] | None = None,
) -> GameRecord:
    """Return the record of a game.

    Args:
        job: The game.
        match: The judge, with the conversation so far.
        players: The players that were started.
        started_at: Time of the start: UTC, ISO 8601.
        began: The same time in the clock of the stamps.
        session: The session; None if the game never began.
        warnings: Receives the failures to read what is no part of the verdict.
    """
    there = {player.index: player for player in players}

    def both(value: Callable[[SessionPlayer], T], missing: T) -> tuple[T, T]:
        first, second = (value(there[index]) if index in there else missing for index in (0, 1))
        return first, second

    cpu_us = session.cpu_us if session is not None else (None, None)
    # The files are read after the end of all processes; of a stopped game, the bots are still running.
    has_ended = session is not None and match.result is not None
    kept: dict[int, tuple[KeptFile, ...]] = {}
    for player in players if job.keep_files and has_ended else ():
        try:
            kept[player.index] = player.written_files()
        except OSError as error:
            if warnings is None:
                raise
            warnings.append(f"the files of {player.player.name} could not be kept: {described(error)}")
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
        stderr=both(lambda player: player.stderr.text(), ""),
        exit_status=both(lambda player: player.status, None),
        started_at=started_at,
        opening=job.opening,
        duration_us=round((now() - began) * 1e6),
        host=platform.node(),
        versions=_versions(),
        cores=usable_cores(),
        limits=job.limits,
        sandbox=job.sandbox.tier.value,
        clock=session.timer.clock if session is not None else WALL,
        cpu_us=cpu_us,
        off_turn_cpu_us=(None, None) if session is None or cpu_us == (None, None) else session.timer.off_turn,
        judge=match.judge,
        runtime_settings=both(lambda player: player.runtime_settings, {}),
        own_controls=job.own_controls,
        corrections=tuple(match.corrections),
        kept_files=(kept.get(0, ()), kept.get(1, ())),
        peak_memory_bytes=both(lambda player: player.peak_memory_bytes, None),
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
        job = on_own_cores(job, [core])
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


def on_own_cores(job: Job, cores: Sequence[int]) -> Job:
    """Move this process to these cores, and return the job with bots that cannot leave them.

    Only a sandbox that confines bots binds them.
    """
    os.sched_setaffinity(0, cores)
    return replace(job, sandbox=replace(job.sandbox, own_core=True))


def _has_no_writer(pipe: int) -> bool:
    """Return True if no process holds a pipe open for writing that was just opened for reading.

    A poll never reports the end of a pipe that has had no writer since then.
    """
    try:
        return os.read(pipe, 1) == b""
    except BlockingIOError:
        return False


def play_alone(job: Job, **options: Any) -> GameRecord:
    """Run ``play_game``, with its ``options``, in a process that does nothing else and has no other children.

    The process adopts the processes that the bots leave behind, and kills them.
    """
    with adopting_orphans() as left:
        record = run_blocking(partial(play_game, job, **options))
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
