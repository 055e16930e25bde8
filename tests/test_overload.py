"""Real games beside 4 busy processes for each core: the fair clock charges nobody for the host's being busy.

Nothing here depends on how fast the machine is: a bot that thinks for 80% of its time by its own measure must
not lose however long it takes, and one that needs far more than its time must.
"""

import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import trio

from referee.errors import RefereeError
from referee.judge.clock import Clock, TimeControl, charged_us
from referee.judge.events import Usage
from referee.judge.limits import Limits
from referee.judge.results import GameRecord, Player, Reason
from referee.play import Job
from referee.sandbox.host_resources import usable_cores
from tournaments.engines.local import open_local_engine
from tournaments.running.runner import MAX_ATTEMPTS

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux counts waits for a CPU"),
]

BOT = Path(__file__).with_name("thinking_bot.py")
GAME = "kalah(3,2)"
"""Five moves, if all are the first legal one."""
MOVE_S = 0.1
LIMITS = Limits(end_grace_s=10.0)
KINDS = ("cpu", "wall", "sleep")
BUSY_PER_CORE = 4
AT_ONCE = 8
"""So many that games have a fair part of the machine: two at once are waited for twice as long."""
GAMES = 100
MOST_WALL_GAMES = 60
STOLEN_US = 80_000
"""At a time, by a virtual machine's host: 66 ms were seen."""


def thinker(kind: str, seconds: float, *more: str) -> Player:
    command = (sys.executable, "-S", "-E", str(BOT), f"--{kind}={seconds}", *more)
    return Player(kind, command, str(BOT.parent), reads=(str(BOT),))


def job(key: int, first: Player, second: Player, clock: str = "fair", move_s: float = MOVE_S) -> Job:
    control = TimeControl(move_s=move_s, margin_s=0.0, start_s=60.0, setup_s=0.0, clock=clock)
    return Job(f"game-{key}", GAME, (first, second), control, LIMITS)


@pytest.fixture
def overload() -> Iterator[None]:
    busy = [
        subprocess.Popen([sys.executable, "-S", "-E", "-c", "while True: pass"])
        for _ in range(BUSY_PER_CORE * len(usable_cores()))
    ]
    try:
        yield
    finally:
        for process in busy:
            process.kill()
        for process in busy:
            process.wait()


async def play_all(jobs: Sequence[Job], folder: Path, may_be_unplayed: int = 0) -> list[GameRecord]:
    """Of so many games a host may be too busy to say anything."""
    records: list[GameRecord] = []
    unplayed = 0
    async with open_local_engine(folder, AT_ONCE) as engine, trio.open_nursery() as nursery:

        async def play(one: Job) -> None:
            nonlocal unplayed
            for attempt in range(1, MAX_ATTEMPTS + 1):  # as the runner does: no verdict is no loss
                try:
                    records.append((await engine.play(one)).record)
                    return
                except RefereeError:
                    if attempt == MAX_ATTEMPTS:
                        unplayed += 1
                        if unplayed > may_be_unplayed:
                            raise

        for one in jobs:
            nursery.start_soon(play, one)
    return records


def explain(record: GameRecord) -> str:
    return f"{record.result.detail}; moves {record.moves[-2:]}; facts {record.facts[-3:]}"


def late(records: Sequence[GameRecord]) -> list[str]:
    return [explain(record) for record in records if record.result.reason is Reason.TIMEOUT]


def steal() -> int:
    """What the host of a virtual machine took of its CPUs, in ticks: man 5 proc_stat."""
    return int(Path("/proc/stat").read_text().split(maxsplit=9)[8])


SENTENCE = re.compile(r"the bot used ([\d.]+) s of CPU time, .* ([\d.]+) s are charged")


def stolen_us(record: GameRecord, loser: int) -> float:
    """Return what was charged beyond CPU time in the turn that a bot lost which only computes."""
    counted = SENTENCE.search(record.result.detail)
    if record.players[loser].name != "cpu" or counted is None:
        return 0.0
    used_s, charged_s = map(float, counted.groups())
    return (charged_s - used_s) * 1e6


def unjust(records: Sequence[GameRecord], *, was_stolen_from: bool) -> list[str]:
    """Losses on time of bots that were in time by their own clocks, too.

    A virtual machine's host may take a CPU away in the midst of a computation, for 10 to 70 ms.  Some tell
    the system in it (``was_stolen_from``), but not from whom: it is then nobody's CPU time.  Where they do
    not, all clocks count it as CPU time of whoever ran, the bot's own clocks, too.
    """
    found = []
    for record in records:
        if record.result.reason is Reason.TIMEOUT:
            loser = 1 - (record.result.winner or 0)
            took_us = [int(word) for word in record.stderr[loser].partition("took")[2].split()]
            if was_stolen_from and MOVE_S * 0.1e6 < stolen_us(record, loser) <= STOLEN_US:
                continue
            if not took_us or max(took_us) < 0.95 * MOVE_S * 1e6:
                found.append(f"{explain(record)}; by its own clocks {took_us}")
    return found


def check_charges(record: GameRecord) -> None:
    """Each move is charged by the formula, from the counters beside it."""
    for move in record.moves:
        if move.cpu_us is None or move.wait_us is None or move.referee_wait_us is None:
            assert move.charged_us == move.wall_us
        else:
            usage = Usage(move.cpu_us, move.wait_us, move.referee_wait_us)
            assert move.charged_us == charged_us(move.wall_us, usage)


def pairs(seconds: float) -> list[tuple[Player, Player]]:
    return [(thinker(one, seconds), thinker(other, seconds)) for one, other in product(KINDS, KINDS)]


@pytest.mark.usefixtures("overload")
async def test_nobody_who_thinks_for_80_percent_loses_on_time(tmp_path: Path) -> None:
    players = pairs(0.8 * MOVE_S)
    jobs = [job(key, *players[key % len(players)]) for key in range(GAMES)]
    before = steal()
    records = await play_all(jobs, tmp_path, may_be_unplayed=GAMES // 10)
    assert unjust(records, was_stolen_from=steal() > before) == []
    assert len(late(records)) <= GAMES // 10
    assert {record.result.reason for record in records} <= {Reason.SCORE, Reason.TIMEOUT}
    assert {record.clock for record in records} == {"fair"}
    for record in records:
        check_charges(record)
    moves = [move for record in records for move in record.moves]
    # Else this test has shown nothing.
    assert any(move.wall_us > MOVE_S * 1e6 for move in moves)


@pytest.mark.usefixtures("overload")
async def test_the_wall_clock_shows_losses_of_the_same_bots(tmp_path: Path) -> None:
    players = pairs(0.8 * MOVE_S)
    lost: list[str] = []
    for number in range(0, MOST_WALL_GAMES, 6):
        jobs = [job(key, *players[key % len(players)], clock="wall") for key in range(number, number + 6)]
        lost += late(await play_all(jobs, tmp_path))
        if len(lost) >= 3:
            break
    assert lost


@pytest.mark.usefixtures("overload")
@pytest.mark.parametrize("kind", KINDS)
async def test_who_thinks_too_long_loses_under_overload_too(kind: str, tmp_path: Path) -> None:
    slow, good = thinker(kind, 3.0 * MOVE_S), thinker("sleep", 0.1 * MOVE_S)
    if kind == "wall":  # what of its wall time it waits is not charged, so that it may even be in time
        slow = thinker(kind, 40 * MOVE_S)
    records = await play_all([job(0, slow, good), job(1, good, slow)], tmp_path)
    for record in records:
        assert record.result.reason is Reason.TIMEOUT, explain(record)
        assert record.result.winner == record.players.index(good)
        assert " are charged" in record.result.detail


@pytest.mark.parametrize("kind", ["cpu", "sleep"])  # what it needs of its own, whatever runs beside it
async def test_who_thinks_for_150_percent_loses_alone(kind: str, tmp_path: Path) -> None:
    slow, good = thinker(kind, 1.5 * MOVE_S), thinker("sleep", 0.1 * MOVE_S)
    [record] = await play_all([job(0, slow, good)], tmp_path)
    assert (record.result.winner, record.result.reason) == (1, Reason.TIMEOUT), explain(record)


@pytest.mark.parametrize("is_busy", [False, True])
async def test_eight_spinning_threads_are_charged_their_cpu(
    is_busy: bool, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    if is_busy:
        request.getfixturevalue("overload")
    spinner, good = thinker("cpu", 0.4, "--threads=8"), thinker("sleep", 0.001)
    [record] = await play_all([job(0, spinner, good, move_s=30.0)], tmp_path)
    assert record.result.reason is Reason.SCORE, explain(record)
    check_charges(record)
    ended, *used_us = record.stderr[0].partition("took")[0].split()
    assert ended == "ended"
    moves = [move for move in record.moves if move.player == 0]
    # The first turn begins when we see that START was taken, which is later the busier the machine is.
    for move, used in list(zip(moves, map(int, used_us), strict=True))[1:]:
        assert used >= 400_000
        # The referee's own wait is taken off for what is computed after a reply, for each core.
        spared_us = (move.referee_wait_us or 0) * len(usable_cores())
        assert move.charged_us >= min(used - spared_us, move.wall_us) - 10_000, (move, used)


@pytest.mark.usefixtures("overload")
async def test_eight_spinning_threads_lose_if_they_need_too_much(tmp_path: Path) -> None:
    spinner, good = thinker("cpu", 6 * MOVE_S, "--threads=8"), thinker("sleep", 0.1 * MOVE_S)
    [record] = await play_all([job(0, spinner, good)], tmp_path)
    assert (record.result.winner, record.result.reason) == (1, Reason.TIMEOUT), explain(record)


def test_what_a_virtual_machines_host_took() -> None:
    """The numbers were seen once in some thousand games."""
    usage = Usage(80_779, 217_543, 0)
    detail = Clock.fresh(TimeControl(move_s=0.1)).why_late(0.364, usage=usage, charged_s=0.146457)
    bots = [SimpleNamespace(name="sleep"), SimpleNamespace(name="cpu")]
    record = SimpleNamespace(result=SimpleNamespace(detail=detail), players=bots)
    assert stolen_us(cast("Any", record), 1) == pytest.approx(65_678, abs=1000)
    bots[1].name = "wall"  # which may sleep
    assert stolen_us(cast("Any", record), 1) == 0.0
