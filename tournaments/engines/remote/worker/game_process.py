"""The process that referees games for a worker, one after the other.

It is run as ``python -m tournaments.engines.remote.worker.game_process DESCRIPTOR``.  It is no thread of the
worker, whose heartbeats would delay a stamp.  It is reused from game to game, since its start takes longer
than a quick game.

``DESCRIPTOR`` is the file descriptor of a ``multiprocessing.connection``.  The worker sends a pickled
``Order``.  The reply is ``GAME`` and a pickled ``PackedGame``, or ``FAILURE`` or ``ENDED`` and a sentence.
``ENDED`` means that the host is shutting down, or that the game was cancelled.  The worker itself replies
``DIED`` when this process has died.  During a game the worker sends nothing but ``GIVE_UP``.  This message,
or the end of the connection when the worker is killed, ends the game and its bots at once.  A ``GIVE_UP``
that arrives too late is ignored.

A batch system that ends a job sends a signal to each of its processes, and the bot may receive it first.  So
after a game that was decided by the end of a bot's process, this process waits up to ``SETTLE_S`` whether its
own end follows, and only then reports the result.
"""

import os
import pickle
import select
import sys
import traceback
from contextlib import suppress
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection

from referee.errors import RefereeError
from referee.judge.results import GONE, GameRecord, Player, Reason
from referee.playing import Job, on_own_cores, play_alone
from tournaments.results.game_summary import PackedGame

GIVE_UP, GAME, FAILURE, ENDED, DIED = b"G", b"P", b"F", b"E", b"D"
SETTLE_S = 2.0
"""Seconds of waiting after the end of a bot's process.

Slurm was seen to signal the processes of a job within 4 ms; on a busy machine, once, a bot was judged that
had been ended with its job, which takes EXIT_SETTLE_S.
"""


@dataclass(frozen=True, slots=True)
class Order:
    """A game to be played on this host."""

    job: Job
    """The game, with commands and paths of this host."""
    players: tuple[Player, Player]
    """The players on the head, as they are recorded."""
    cores: tuple[int, ...] = ()
    """Cores that the game may run on; empty if the system chooses."""
    own_core: bool = False
    """True if ``cores`` is the game's own core, which a confined bot cannot leave."""
    feed: str | None = None
    """Address of the feed; see ``play_game``."""
    speed: float | None = None
    """Speed of this host, for the record; see ``GameRecord.host_speed``."""

    def packed(self) -> bytes:
        """Return the order as it is sent."""
        return pickle.dumps(self)


def failure(error: object, kind: bytes = FAILURE) -> bytes:
    """Return the reply for a game without a result."""
    return kind + str(error).encode("utf-8", "backslashreplace")


def _play(order: Order, cancel_fd: int) -> bytes:
    job = order.job
    if order.cores and hasattr(os, "sched_setaffinity"):
        if order.own_core:
            job = on_own_cores(job, order.cores)
        else:
            os.sched_setaffinity(0, order.cores)
    try:
        record = play_alone(job, cancel_fd=cancel_fd, feed=order.feed)
        if ended_before_its_time(record) and select.select([cancel_fd], [], [], SETTLE_S)[0]:
            return failure("this worker was ended, or the game was cancelled by the tournament runner", ENDED)
        return GAME + pickle.dumps(
            PackedGame.of(replace(record, players=order.players, host_speed=order.speed))
        )
    except RefereeError as error:
        return failure(error)
    except Exception as error:  # a bug: reported to the head, and printed here for debugging
        traceback.print_exc()
        return failure(repr(error))


def ended_before_its_time(record: GameRecord) -> bool:
    """Return whether a game was lost by a bot whose process ended.

    Its exit status does not matter: a bot may turn a signal into a status of its own.
    """
    return record.result.reason in (*GONE, Reason.START)


def main() -> None:
    """Play games until the worker ends."""
    descriptor = int(sys.argv[1])
    os.set_inheritable(descriptor, False)  # bots do not inherit it
    with Connection(descriptor) as worker, suppress(EOFError, OSError):  # the worker has ended
        while True:
            if (order := worker.recv_bytes()) != GIVE_UP:
                worker.send_bytes(_play(pickle.loads(order), descriptor))


if __name__ == "__main__":
    main()
