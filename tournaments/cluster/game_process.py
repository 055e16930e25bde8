"""The process that referees games for a worker, one after the other, and the few bytes they exchange.

It is run as ``python -m tournaments.cluster.game_process`` and is no thread of the worker, whose heartbeats
would delay a stamp.  It lives on from game to game, since starting it takes longer than a quick game.

Orders come on its standard input: ``ORDER``, four bytes of length, a pickled ``Order``.  Each is answered on
its standard output by ``GAME``, ``FAILURE`` or ``ENDED`` (this host was to play no longer), four bytes of
length, and a pickled ``PackedGame`` or a sentence.
Standard input is also the leash: while a game is played, nothing comes there but ``GIVE_UP``, or its end,
because the worker was killed.  Both end the game and its bots at once.  A ``GIVE_UP`` that comes too late is
read, and means nothing.

A batch system that ends a job sends a signal to each of its processes, and the bot's may come first.  So
where a bot's end decided a game, we wait whether ours is coming, too, before anybody is told.
"""

import os
import pickle
import select
import traceback
from dataclasses import dataclass, replace
from typing import NamedTuple

from referee.errors import RefereeError
from referee.play import Job, play_alone
from referee.results import GameRecord, Player, Reason
from tournaments.packed_game import PackedGame

ORDER, GIVE_UP, GAME, FAILURE, ENDED = b"J", b"G", b"P", b"F", b"E"
LENGTH_BYTES = 4
SETTLE_S = 2.0
"""How long is waited where a bot's process ended.  Slurm was seen to signal the processes of a job
within 4 ms; on a busy machine, once, a bot was judged that had been ended with its job, which takes
EXIT_SETTLE_S."""


@dataclass(frozen=True, slots=True)
class Order:
    """A game to be played here."""

    job: Job
    """With commands and paths of this host."""
    players: tuple[Player, Player]
    """As the head has them: so they are in the record."""
    cores: tuple[int, ...] = ()
    """The cores that it may run on; empty if that is left to the system."""
    feed: str | None = None
    """See ``play_game``."""
    speed: float | None = None
    """This host's, for the record; see ``GameRecord.host_speed``."""

    def packed(self) -> bytes:
        """As it is sent."""
        return pickle.dumps(self)


class Reply(NamedTuple):
    """What became of it."""

    kind: bytes
    """``GAME``, ``FAILURE`` or ``ENDED``."""
    content: bytes


def frame(kind: bytes, content: bytes) -> bytes:
    """As it is sent."""
    return kind + len(content).to_bytes(LENGTH_BYTES, "big") + content


def write_all(descriptor: int, data: bytes) -> None:
    """Write all of it.  Raises OSError."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def read_exactly(descriptor: int, size: int) -> bytes | None:
    """So many bytes and no more, since what follows may be for the leash; None at the end of the stream."""
    data = bytearray()
    while len(data) < size:
        part = os.read(descriptor, size - len(data))
        if not part:
            return None
        data += part
    return bytes(data)


def read_frame(descriptor: int) -> tuple[bytes, bytes] | None:
    """Kind and content of the next frame; None at the end of the stream, also in the middle of a frame."""
    while (kind := read_exactly(descriptor, 1)) == GIVE_UP:
        continue
    length = None if kind is None else read_exactly(descriptor, LENGTH_BYTES)
    content = None if length is None else read_exactly(descriptor, int.from_bytes(length, "big"))
    return None if kind is None or content is None else (kind, content)


def _play(order: Order, leash: int) -> bytes:
    if order.cores and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, order.cores)
    try:
        record = play_alone(order.job, leash=leash, feed=order.feed)
        if ended_before_its_time(record) and select.select([leash], [], [], SETTLE_S)[0]:
            return frame(ENDED, b"this worker was ended, or nobody wants the game any more")
        game = PackedGame.of(replace(record, players=order.players, host_speed=order.speed))
        return frame(GAME, pickle.dumps(game))
    except RefereeError as error:
        return frame(FAILURE, str(error).encode("utf-8", "backslashreplace"))
    except Exception as error:  # a mistake of ours: told to who asked, and here to who looks for it
        traceback.print_exc()
        return frame(FAILURE, f"{error!r}".encode("utf-8", "backslashreplace"))


def ended_before_its_time(record: GameRecord) -> bool:
    """Whether a game was lost by a bot whose process ended.

    By whatever exit status: a bot may turn a signal into one of its own.
    """
    return record.result.reason in (Reason.EXIT, Reason.START)


def main() -> None:
    """Play until the worker is gone."""
    orders, replies = os.dup(0), os.dup(1)
    # What a library prints must not get into the replies, nor a child hold the leash.
    os.dup2(2, 1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    while (found := read_frame(orders)) is not None:
        answer = _play(pickle.loads(found[1]), orders)
        try:
            write_all(replies, answer)
        except BrokenPipeError:  # the worker was killed, and with it all interest in the game
            return


if __name__ == "__main__":
    main()
