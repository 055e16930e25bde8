"""The process that referees games for a worker, one after the other, and its protocol.

It is run as ``python -m tournaments.engines.remote.worker.game_process`` and is no thread of the worker,
whose heartbeats would delay a stamp.  It is reused from game to game, since starting it takes longer than a
quick game. Orders arrive on its standard input: ``ORDER``, four bytes of length, a pickled ``Order``.  Each
is answered on its standard output by ``GAME``, ``FAILURE`` or ``ENDED`` (the host is shutting down, or the
game was cancelled), four bytes of length, and a pickled ``PackedGame`` or a sentence.  Standard input also
cancels games: while a game is played, it carries only ``GIVE_UP``, or ends, because the worker was killed.
Both end the game and its bots at once.  A ``GIVE_UP`` that arrives too late is read and ignored.

A batch system that ends a job sends a signal to each of its processes, and the bot may receive it first.  So
after a game that was decided by the end of a bot's process, this process waits up to ``SETTLE_S`` whether its
own end follows, and only then reports the result.
"""

import os
import pickle
import select
import traceback
from dataclasses import dataclass, replace
from typing import NamedTuple

from referee.errors import RefereeError
from referee.judge.results import GONE, GameRecord, Player, Reason
from referee.playing import Job, play_alone
from tournaments.results.game_summary import PackedGame

ORDER, GIVE_UP, GAME, FAILURE, ENDED = b"J", b"G", b"P", b"F", b"E"
LENGTH_BYTES = 4
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
    feed: str | None = None
    """Address of the feed; see ``play_game``."""
    speed: float | None = None
    """Speed of this host, for the record; see ``GameRecord.host_speed``."""

    def packed(self) -> bytes:
        """Return the order as it is sent."""
        return pickle.dumps(self)


class Reply(NamedTuple):
    """Answer to an order."""

    kind: bytes
    """``GAME``, ``FAILURE`` or ``ENDED``."""
    content: bytes


def frame(kind: bytes, content: bytes) -> bytes:
    """Return a frame as it is sent."""
    return kind + len(content).to_bytes(LENGTH_BYTES, "big") + content


def write_all(descriptor: int, data: bytes) -> None:
    """Write all of the data.  Raises OSError."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def read_exactly(descriptor: int, size: int) -> bytes | None:
    """Read exactly ``size`` bytes, since the next ones may cancel a game; None at the end of the stream."""
    data = bytearray()
    while len(data) < size:
        part = os.read(descriptor, size - len(data))
        if not part:
            return None
        data += part
    return bytes(data)


def read_frame(descriptor: int) -> tuple[bytes, bytes] | None:
    """Return the kind and content of the next frame; None at the end of the stream, even within a frame."""
    while (kind := read_exactly(descriptor, 1)) == GIVE_UP:
        continue
    length = None if kind is None else read_exactly(descriptor, LENGTH_BYTES)
    content = None if length is None else read_exactly(descriptor, int.from_bytes(length, "big"))
    return None if kind is None or content is None else (kind, content)


def _play(order: Order, cancel_fd: int) -> bytes:
    if order.cores and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, order.cores)
    try:
        record = play_alone(order.job, cancel_fd=cancel_fd, feed=order.feed)
        if ended_before_its_time(record) and select.select([cancel_fd], [], [], SETTLE_S)[0]:
            return frame(ENDED, b"this worker was ended, or the game was cancelled by the tournament runner")
        game = PackedGame.of(replace(record, players=order.players, host_speed=order.speed))
        return frame(GAME, pickle.dumps(game))
    except RefereeError as error:
        return frame(FAILURE, str(error).encode("utf-8", "backslashreplace"))
    except Exception as error:  # a bug: reported to the head, and printed here for debugging
        traceback.print_exc()
        return frame(FAILURE, f"{error!r}".encode("utf-8", "backslashreplace"))


def ended_before_its_time(record: GameRecord) -> bool:
    """Return whether a game was lost by a bot whose process ended.

    Its exit status does not matter: a bot may turn a signal into a status of its own.
    """
    return record.result.reason in (*GONE, Reason.START)


def main() -> None:
    """Play games until the worker ends."""
    orders, replies = os.dup(0), os.dup(1)
    # Output of libraries must not get into the replies, and no child may inherit standard input.
    os.dup2(2, 1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    while (found := read_frame(orders)) is not None:
        answer = _play(pickle.loads(found[1]), orders)
        try:
            write_all(replies, answer)
        except BrokenPipeError:  # the worker was killed, and the game is cancelled
            return


if __name__ == "__main__":
    main()
