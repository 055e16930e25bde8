"""Snapshots of running games, sent as datagrams that nobody needs to read."""

import socket
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st

from referee.judge.clock import TimeControl
from referee.judge.record_rows import MoveRecord
from referee.judge.results import GameRecord, Reason
from referee.live_feed import INTERVAL_S, MOST_MOVES, MOST_WORDS, Feed, Move, Snapshot
from referee.playing import Job, play_game
from tests.process.test_faults import honest, scripted
from tests.support.judging import Judged
from tournaments.engines.base import followed
from tournaments.engines.local import open_local_engine

LIMIT_S = 300


class Reader:
    """A socket and its datagrams."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.setblocking(False)
        self._socket.bind(self.path)

    def snapshots(self) -> list[Snapshot]:
        found = []
        while True:
            try:
                found.append(Snapshot.unpacked(self._socket.recv(65_536)))
            except BlockingIOError:
                return found

    def close(self) -> None:
        self._socket.close()
        Path(self.path).unlink()


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    with closing(Reader(tmp_path / "feed")) as found:
        yield found


def texts(snapshots: list[Snapshot]) -> list[str]:
    """All moves, none of which was sent twice or left out."""
    found: list[str] = []
    for snapshot in snapshots:
        assert snapshot.offset == len(found)
        found += [move.text for move in snapshot.moves]
    return found


def played(record: GameRecord) -> list[str]:
    return [move.move for move in record.moves]


def job(**changes: object) -> Job:
    return Job("r001-1v2", "kalah(4,3)", (honest(), honest()), TimeControl(move_s=60), **changes)  # type: ignore[arg-type]


# One feed, and a judge with made-up times.


def test_snapshots_have_the_first_turn_then_moves_then_the_verdict(reader: Reader) -> None:
    judged = Judged(asleep=(1,))
    feed = Feed(reader.path, judged.match)
    feed.publish(1.0)
    assert reader.snapshots() == []  # before the first turn
    judged.tell_taken(1, 0.5)
    feed.publish(1.0)
    assert reader.snapshots() == [Snapshot(0, (), (1000, 1000), 0, None)]
    judged.play("MOVE;1")
    feed.publish(1.0 + INTERVAL_S / 2)
    assert reader.snapshots() == []  # moves within the interval are sent together
    judged.play("MOVE;2")
    feed.publish(1.0 + INTERVAL_S)
    feed.publish(1.0 + 2 * INTERVAL_S)
    (snapshot,) = reader.snapshots()
    assert [move.text for move in snapshot.moves] == ["1", "2"]
    judged.play("MOVE;0")
    feed.end()
    (last,) = reader.snapshots()
    assert (last.offset, last.moves, last.on_turn) == (2, (), None)
    assert last.over == judged.result.detail != ""


def test_moves_that_a_full_queue_did_not_take_are_sent_later(reader: Reader) -> None:
    judged = Judged()
    feed = Feed(reader.path, judged.match)
    sent = 0
    for number in range(700):  # more than the queue of a socket holds
        judged.match.moves.append(MoveRecord(0, str(number), 1, 1))
        feed.publish(float(number + 1))
        sent = number + 1
    queued = reader.snapshots()
    assert 0 < len(texts(queued)) < sent
    feed.publish(1e6)
    more = reader.snapshots()
    assert len(more) == 1
    assert len(more[0].moves) == MOST_MOVES
    judged.play("MOVE;0")
    feed.end()
    rest = reader.snapshots()
    assert rest[-1].over is not None
    assert texts([*queued, *more, *rest]) == [str(number) for number in range(sent)]


def test_a_long_verdict_is_cut(reader: Reader) -> None:
    judged = Judged()
    judged.play("MOVE;0")
    judged.match.result = judged.result.__class__(None, Reason.SCORE, "x" * 9_999, None)
    Feed(reader.path, judged.match).end()
    assert [snapshot.over for snapshot in reader.snapshots()] == ["x" * MOST_WORDS]


@pytest.mark.parametrize("vanished", [False, True])
def test_without_a_reader_nothing_happens(tmp_path: Path, *, vanished: bool) -> None:
    judged = Judged()
    reader = Reader(tmp_path / "feed") if vanished else None
    feed = Feed(str(tmp_path / "feed"), judged.match)
    if reader is not None:
        reader.close()
    before = len([*Path("/proc/self/fd").iterdir()])
    feed.publish(1.0)
    judged.play("MOVE;1")
    feed.publish(2.0)
    feed.end()
    feed.end()
    assert len([*Path("/proc/self/fd").iterdir()]) == before - vanished


@given(
    st.builds(
        Snapshot,
        st.integers(0, 2**40),
        st.lists(st.builds(Move, st.text(), st.integers(0, 2**60))).map(tuple),
        st.tuples(st.integers(0, 2**60), st.integers(0, 2**60)),
        st.sampled_from([None, 0, 1]),
        st.none() | st.text(),
    )
)
def test_a_snapshot_can_be_read_again(snapshot: Snapshot) -> None:
    assert Snapshot.unpacked(snapshot.packed()) == snapshot


@given(st.binary(max_size=60))
def test_anything_else_is_a_value_error(datagram: bytes) -> None:
    with pytest.raises(ValueError, match="not a snapshot"):
        Snapshot.unpacked(datagram)


@pytest.mark.parametrize(
    "wrong",
    [
        Snapshot(-1, (), (0, 0), 0, None),
        Snapshot(0, (Move("1", -1),), (0, 0), 0, None),
        Snapshot(0, (Move(1, 1),), (0, 0), 0, None),  # type: ignore[arg-type]
        Snapshot(0, (), (0, None), 0, None),  # type: ignore[arg-type]
        Snapshot(0, (), (0, 0), 2, None),
        Snapshot(0, (), (0, 0), [], None),  # type: ignore[arg-type]
        Snapshot(0, (), (0, 0), 0, 5),  # type: ignore[arg-type]
        Snapshot(True, (), (0, 0), 0, None),
    ],
)
def test_values_of_a_wrong_kind_are_a_value_error(wrong: Snapshot) -> None:
    with pytest.raises(ValueError, match="not a snapshot"):
        Snapshot.unpacked(wrong.packed())


# Real games in worker processes.


@pytest.mark.parametrize("folder", ["s", "far/" * 40])
async def test_a_followed_game_arrives_as_it_was_played(tmp_path: Path, folder: str) -> None:
    """In a directory whose name is longer than a socket's may be, too."""
    scratch = tmp_path / folder
    scratch.mkdir(parents=True)
    told: list[Snapshot] = []
    with trio.fail_after(LIMIT_S):
        async with open_local_engine(scratch, 1) as engine:
            record = (await engine.play(job(), on_snapshot=told.append)).record
    assert texts(told) == played(record)
    assert told[-1].over == record.result.detail
    assert [move.charged_us for snapshot in told for move in snapshot.moves] == [
        move.charged_us for move in record.moves
    ]
    assert list(scratch.iterdir()) == []


async def test_moves_arrive_while_the_game_goes_on(tmp_path: Path) -> None:
    """A bot that never answers its second turn: its opponent's moves are known long before it has lost."""
    told: list[Snapshot] = []
    moved = trio.Event()

    def follow(snapshot: Snapshot) -> None:
        told.append(snapshot)
        if snapshot.moves:
            moved.set()

    player = scripted("--do", "hang", "--reply", "2")
    with trio.fail_after(LIMIT_S):
        async with open_local_engine(tmp_path, 1) as engine, trio.open_nursery() as nursery:
            slow = Job("slow", "kalah(4,3)", (player, honest()), TimeControl(move_s=600))
            nursery.start_soon(engine.play, slow, None, follow)
            await moved.wait()
            nursery.cancel_scope.cancel()
    assert told[0].over is None
    assert list(tmp_path.iterdir()) == []


async def test_a_game_is_played_without_a_reader_or_a_socket(tmp_path: Path) -> None:
    with closing(Reader(tmp_path / "feed")) as reader:
        for path in (reader.path, str(tmp_path / "gone")):
            record = await play_game(job(), feed=path)
            assert record.result.reason is Reason.SCORE
        assert reader.snapshots()[0].offset == 0
    async with followed(tmp_path / "missing" / "feed", print) as feed:
        assert feed is None


async def test_other_datagrams_are_ignored(tmp_path: Path) -> None:
    told: list[Snapshot] = []
    snapshot = Snapshot(0, (), (1, 1), 0, None)
    async with followed(tmp_path / "feed", told.append) as path:
        assert path is not None
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as other:
            other.connect(path)
            for datagram in (b"", b"nonsense", snapshot.packed()):
                other.send(datagram)
        await trio.testing.wait_all_tasks_blocked()
    assert told == [snapshot]
    assert not (tmp_path / "feed").exists()
