"""One game from start to record: the unit that every engine runs."""

import contextlib
import os
import platform
import signal
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache, partial
from importlib import metadata

import trio

from protocol.announced import TIME_VARIABLE
from referee.bot import Bot, now
from referee.clock import WALL, TimeControl, announced
from referee.driver import AnyMatch, Driver, Observer
from referee.errors import RefereeError
from referee.events import NotStarted
from referee.feed import Feed
from referee.games.catalog import GAME_VARIABLE, OPENING_VARIABLE, AnyGame, parse_game
from referee.games.opening import parse_opening
from referee.launch import NotRunnableError
from referee.limits import Limits
from referee.match import Match
from referee.orphans import adopt_orphans, sweep_orphans
from referee.results import GameRecord, Player
from referee.sandbox import Sandbox


@dataclass(frozen=True, slots=True)
class Job:
    """A game to be played; can be pickled."""

    key: str
    """Identifies the game within its tournament."""
    game: str
    """Spec text of the rules."""
    players: tuple[Player, Player]
    """Player 0 moves first."""
    control: TimeControl
    limits: Limits = field(default_factory=Limits)
    opening: str = ""
    """The opening's text, see referee/games/opening.py; empty for the game's own start."""
    sandbox: Sandbox = field(default_factory=Sandbox)
    """How the bots are confined."""
    pair: str = ""
    """Games with the same text here are played on one host, so that both bots meet the same conditions; empty
    for a game that may be played anywhere."""


async def play_game(
    job: Job, *, observe: Observer | None = None, leash: int | None = None, feed: str | None = None
) -> GameRecord:
    """Play a game with real processes.  Raises RefereeError for failures of ours: then no result stands.

    ``observe`` is told each wire line as it happens; ``leash`` is a descriptor that becomes readable when
    nobody wants the game any more; ``feed`` is the path of a socket for which see referee/feed.py.  However
    the game ends, by cancellation too, no process of the two groups is left behind; only if this process
    itself is killed they may be.
    """
    game = parse_game(job.game)
    first, second = job.players
    opening = parse_opening(game, job.opening)
    timed = ("time" in first.capabilities, "time" in second.capabilities)
    match: AnyMatch = Match(
        game, job.control, (first.name, second.name), opening, timed, job.limits.wire_bytes
    )
    started_at = datetime.now(UTC).isoformat(timespec="milliseconds")
    began = now()
    sends = match.start(began)
    bots: list[Bot] = []
    try:
        for index, player in enumerate(job.players):
            try:
                bots.append(Bot(index, player, environment_of(job), sandbox=job.sandbox, limits=job.limits))
            except NotRunnableError as error:
                match.handle(NotStarted(index, now(), str(error)))
                # Nobody was told anything yet, and the other bot need not learn of it.
                return _record(job, game, match, bots, started_at, began)
        for bot in bots:
            bot.settle()
        told = None if feed is None else Feed(feed, match)
        driver = Driver(match, (bots[0], bots[1]), observe, leash, told)
        with contextlib.closing(driver):
            await driver.referee(sends)
            await driver.wind_down(job.limits.end_grace_s)
            with trio.CancelScope(shield=True):  # bounded by KILL_LIMIT_S
                await driver.kill()
        return _record(job, game, match, bots, started_at, began, driver)
    finally:
        for bot in bots:
            bot.kill()
        for bot in bots:
            bot.close()


def environment_of(job: Job) -> dict[bytes, bytes]:
    """What a bot is told of its game before the conversation begins, in our own environment."""
    game = parse_game(job.game)
    environment = {**os.environb, GAME_VARIABLE.encode(): game.name.encode()}
    environment[TIME_VARIABLE.encode()] = announced(job.control).encode()
    environment.pop(b"PYTHONUNBUFFERED", None)  # whether a bot flushes must not depend on our shell
    environment.pop(OPENING_VARIABLE.encode(), None)
    if opening := parse_opening(game, job.opening):
        environment[OPENING_VARIABLE.encode()] = str(len(opening)).encode()
    return environment


def _record(
    job: Job,
    game: AnyGame,
    match: AnyMatch,
    bots: list[Bot],
    started_at: str,
    began: float,
    driver: Driver | None = None,
) -> GameRecord:
    """The record; without a driver if the game never began."""
    assert match.result is not None
    counted = driver is not None and driver.cpu_us != (None, None)
    texts = {bot.index: bot.stderr.text() for bot in bots}
    statuses = {bot.index: bot.status for bot in bots}
    return GameRecord(
        key=job.key,
        game=game.name,
        players=job.players,
        control=job.control,
        moves=match.moves,
        wire=match.wire,
        facts=match.facts,
        final_state=game.board_text(match.state),
        result=match.result,
        stderr=(texts.get(0, ""), texts.get(1, "")),
        exit_status=(statuses.get(0), statuses.get(1)),
        started_at=started_at,
        opening=job.opening,
        duration_us=round((now() - began) * 1e6),
        host=platform.node(),
        versions=_versions(),
        cores=sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else [],
        limits=job.limits,
        sandbox=job.sandbox.tier.value,
        clock=driver.time.clock if driver is not None else WALL,
        cpu_us=driver.cpu_us if driver is not None else (None, None),
        off_turn_cpu_us=driver.time.off_turn if driver is not None and counted else (None, None),
    )


@lru_cache(maxsize=1)
def _versions() -> dict[str, str]:
    return {
        "kalarena": metadata.version("kalarena"),
        "python": platform.python_version(),
        "system": platform.platform(),
    }


def play_leashed(
    job: Job, leash: str | None = None, core: int | None = None, feed: str | None = None
) -> GameRecord:
    """Play a game in an event loop of its own.  For worker processes.

    With ``core``, this process and the bots run on that core alone (where the system can do that).
    ``leash`` is the path of a named pipe: when the last process that holds it open for writing closes it,
    or dies, the game is given up (RefereeError).  For ``feed`` see ``play_game``.
    """
    if os.getpgrp() != os.getpid():
        os.setpgid(0, 0)  # a signal that ends the group of whoever asked must not end us before our bots
    if core is not None and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {core})
    if leash is None:
        return play_alone(job, feed=feed)
    try:
        descriptor = os.open(leash, os.O_RDONLY | os.O_NONBLOCK)
    except OSError as error:
        raise RefereeError(f"the program that asked for this game is gone: {error}") from error
    try:
        if _is_let_go(descriptor):
            raise RefereeError("the program that asked for this game is gone")
        return play_alone(job, leash=descriptor, feed=feed)
    finally:
        os.close(descriptor)


def _is_let_go(leash: int) -> bool:
    """Whether nobody held the named pipe open for writing when we opened it: that is never reported later."""
    try:
        return os.read(leash, 1) == b""
    except BlockingIOError:
        return False


def play_alone(
    job: Job, *, observe: Observer | None = None, leash: int | None = None, feed: str | None = None
) -> GameRecord:
    """``play_game`` for a process that does nothing else and has no other children: it adopts what the bots
    leave behind, and ends that, too.
    """
    with contextlib.suppress(ValueError):  # not in the main thread, where it cannot have been changed
        # Some daemons start their children so; then nobody's exit status could be had.
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    adopt_orphans()
    try:
        return trio.run(partial(play_game, job, observe=observe, leash=leash, feed=feed))
    finally:
        sweep_orphans()
