"""The fair clock in real games beside busy processes: a busy host costs no bot its time.

Nothing here depends on how fast the machine is: a bot that thinks for 80% of its time by its own measure must
not lose however long it takes, and one that needs far more than its time must.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path

import pytest
import trio

from benchmarks.fair_clock.busy import KINDS as BUSY_KINDS
from benchmarks.fair_clock.busy import Busy
from referee.conformance.game import play_conformance_game
from referee.conformance.script import TestOpponent
from referee.errors import RefereeError
from referee.judge.clock import FAIR, TimeControl
from referee.judge.limits import Limits
from referee.judge.replay_check import check_replay
from referee.judge.results import GameRecord, Player, Reason
from referee.playing import Job
from referee.process.process_tree import has_counters
from referee.sandbox.host_resources import usable_cores
from tests.support.confinement import sandbox_of
from tests.support.paths import REPOSITORY_ROOT, SUPPORT
from tournaments.checking.evidence import PlayedScenario
from tournaments.checking.output_rules import ending_fault
from tournaments.checking.scenarios import Scenario, varied
from tournaments.engines.local import open_local_engine
from tournaments.running.runner import MAX_ATTEMPTS

pytestmark = [
    pytest.mark.load,
    pytest.mark.usefixtures("started_workers"),  # as users have them
    pytest.mark.any_database,
    pytest.mark.skipif(not has_counters(), reason="the system does not count waits for a CPU"),
]

BOT = SUPPORT / "thinking_bot.py"
GAME = "kalah(3,2)"
"""Five moves, if all are the first legal one."""
MOVE_S = 0.1
LIMITS = Limits(end_grace_s=10.0)
KINDS = ("cpu", "wall", "sleep")
BUSY_PER_CORE = 4
AT_ONCE = 8
"""So many that games have a fair part of the machine: two at once are waited for twice as long."""
GAMES = 27
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
    with Busy(BUSY_PER_CORE * len(usable_cores())):
        yield


async def play_all(jobs: Sequence[Job], folder: Path, may_be_unplayed: int = 0) -> list[GameRecord]:
    """Play games as the runner does; a few may have no verdict on a host that is too busy."""
    records: list[GameRecord] = []
    unplayed: list[Job] = []
    async with open_local_engine(folder, AT_ONCE) as engine, trio.open_nursery() as nursery:

        async def play(one: Job) -> None:
            for _ in range(MAX_ATTEMPTS):
                try:
                    records.append((await engine.play(one)).record)
                    return
                except RefereeError as error:
                    failure = error
            unplayed.append(one)
            if len(unplayed) > may_be_unplayed:
                raise failure

        for one in jobs:
            nursery.start_soon(play, one)
    return records


def explain(record: GameRecord) -> str:
    return f"{record.result.detail}; moves {record.moves[-2:]}; facts {record.facts[-3:]}"


def late(records: Sequence[GameRecord]) -> list[str]:
    return [explain(record) for record in records if record.result.reason is Reason.TIMEOUT]


def stolen_ticks() -> int:
    """CPU time that the host of a virtual machine took, in ticks: man 5 proc_stat."""
    return int(Path("/proc/stat").read_text().split(maxsplit=9)[8])


SENTENCE = re.compile(r"the bot used ([\d.]+) s of CPU time, .* ([\d.]+) s are charged")


def stolen_us(record: GameRecord, loser: int) -> float:
    """Return the time charged beyond CPU time in the turn that a bot lost which only computes."""
    counted = SENTENCE.search(record.result.detail)
    if record.players[loser].name != "cpu" or counted is None:
        return 0.0
    used_s, charged_s = map(float, counted.groups())
    return (charged_s - used_s) * 1e6


def unjust(records: Sequence[GameRecord], *, was_stolen_from: bool) -> list[str]:
    """Losses on time of bots that were in time by their own clocks, too.

    A virtual machine's host may take a CPU away in the midst of a computation, for 10 to 70 ms.  Some report
    that to the system in it (``was_stolen_from``), but not from whom: it is then nobody's CPU time.  Where
    they do not, all clocks count it as CPU time of the bot that ran, the bot's own clocks, too.
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


def pairs(seconds: float) -> list[tuple[Player, Player]]:
    return [(thinker(one, seconds), thinker(other, seconds)) for one, other in product(KINDS, KINDS)]


@pytest.mark.usefixtures("overload")
async def test_no_bot_that_thinks_for_80_percent_loses_on_time(tmp_path: Path) -> None:
    players = pairs(0.8 * MOVE_S)
    jobs = [job(key, *players[key % len(players)]) for key in range(GAMES)]
    before = stolen_ticks()
    records = await play_all(jobs, tmp_path, may_be_unplayed=GAMES // 10)
    assert unjust(records, was_stolen_from=stolen_ticks() > before) == []
    assert len(late(records)) <= GAMES // 10
    assert {record.result.reason for record in records} <= {Reason.SCORE, Reason.TIMEOUT}
    assert {record.clock for record in records} == {FAIR}
    for record in records:
        assert check_replay(record) == []  # each charge follows from the counters beside it
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
        if lost:
            return
    pytest.fail("no bot lost on time by the wall clock")


@pytest.mark.usefixtures("overload")
async def test_bots_that_think_too_long_lose_under_overload_too(tmp_path: Path) -> None:
    good = thinker("sleep", 0.1 * MOVE_S)
    # What a bot waits within its wall time is not charged, so that it needs far more than its limit to lose.
    slow = [thinker("cpu", 3 * MOVE_S), thinker("sleep", 3 * MOVE_S), thinker("wall", 40 * MOVE_S)]
    slow.append(thinker("cpu", 6 * MOVE_S, "--threads=8"))
    for record in await play_all([job(key, each, good) for key, each in enumerate(slow)], tmp_path):
        assert (record.result.winner, record.result.reason) == (1, Reason.TIMEOUT), explain(record)
        assert " are charged" in record.result.detail


@pytest.mark.usefixtures("overload")
async def test_bots_that_use_120_percent_always_lose_under_overload(tmp_path: Path) -> None:
    good = thinker("sleep", 0.1 * MOVE_S)
    slow = [thinker("cpu", 1.2 * MOVE_S, f"--threads={1 + key % 2}") for key in range(8)]
    for record in await play_all([job(key, each, good) for key, each in enumerate(slow)], tmp_path):
        assert (record.result.winner, record.result.reason) == (1, Reason.TIMEOUT), explain(record)


async def test_bots_that_think_for_150_percent_lose_alone(tmp_path: Path) -> None:
    good = thinker("sleep", 0.1 * MOVE_S)
    for kind in ("cpu", "sleep"):  # what it needs of its own, whatever runs beside it
        [record] = await play_all([job(0, thinker(kind, 1.5 * MOVE_S), good)], tmp_path)
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
    assert check_replay(record) == []
    ended, *used_us = record.stderr[0].partition("took")[0].split()
    assert ended == "ended"
    moves = [move for move in record.moves if move.player == 0]
    # The first turn begins when the read of START is noticed, which is later the busier the machine is.
    for move, used in list(zip(moves, map(int, used_us), strict=True))[1:]:
        assert used >= 400_000
        # The referee's own wait is taken off for what is computed after a reply, for each core.
        spared_us = (move.referee_wait_us or 0) * len(usable_cores())
        assert move.charged_us >= min(used - spared_us, move.wall_us) - 10_000, (move, used)


# Conformance games: the time to end after END, and the move limit

GRACE_S = 1.0
AT_END = {
    "computes": "until = time.thread_time() + 0.3\nwhile time.thread_time() < until: pass\n",
    "sleeps": "time.sleep(2.5)\n",
    "dawdles": "time.sleep(0.9)\nuntil = time.thread_time() + 0.9\nwhile time.thread_time() < until: pass\n",
}
"""Programs after END.  The last two are late by 0.8 s and more; neither part of the last one is late alone.
The referee's own last wait is taken off: beside busy processes it was more than 0.1 s once."""
NORTH = """
import sys, time
for line in sys.stdin:
    if line == "END\\n": break
    if line.startswith("CHANGE;") and line.endswith(";YOU\\n"):
        board = list(map(int, line.split(";")[2].split(",")))
        north = board[:len(board) // 2 - 1]
        print(f"MOVE;{1 + next(pit for pit, seeds in enumerate(north) if seeds)}", flush=True)
"""
THINKING_NORTH = NORTH.replace(
    "board =",
    "until = time.thread_time() + 0.3\n        while time.thread_time() < until: pass\n        board =",
)


def conformance_job(program: str, game: str, control: TimeControl, grace_s: float, tier: str) -> Job:
    bot = Player("bot", (sys.executable, "-S", "-E", "-c", program), "/")
    players = (Player("examiner", ("examiner",), "/"), bot)
    return Job("end", game, players, control, Limits(end_grace_s=grace_s), "", sandbox_of(tier))


@pytest.mark.parametrize("tier", ["bare", "confined"])
@pytest.mark.parametrize("ending", AT_END)
@pytest.mark.usefixtures("overload")
def test_the_end_rule_beside_busy_processes(ending: str, tier: str) -> None:
    control = TimeControl(move_s=2.0, start_s=30.0)
    game = conformance_job(NORTH + AT_END[ending], "manchester", control, GRACE_S, tier)
    talk = play_conformance_game(game, 1, TestOpponent(varied, stops_at=1))
    scenario = Scenario("end", "as North", "end", "manchester", 1)
    verdict = ending_fault(PlayedScenario(scenario, talk.record, talk.observed), GRACE_S)
    if ending == "computes":
        assert verdict is None, verdict
        assert talk.observed.ended_us is not None
        # The referee's own last wait is taken off in the bot's favour: 272 ms of 300 were seen.
        assert 0.5 * 300_000 <= talk.observed.ended_us <= GRACE_S * 1e6
    else:
        assert verdict is not None
        assert verdict.cause == "stays after END"


@pytest.mark.usefixtures("overload")
def test_the_move_limit_of_a_conformance_game_beside_busy_processes() -> None:
    control = TimeControl(move_s=0.5, margin_s=0.0, setup_s=0.0, start_s=30.0)
    game = conformance_job(THINKING_NORTH, GAME, control, 5.0, "bare")
    record = play_conformance_game(game, 1, TestOpponent(varied)).record
    assert record.result.fault is None, record.result.detail
    assert record.clock == FAIR
    moves = [move for move in record.moves if move.player == 1]
    assert any(move.wall_us > move.charged_us for move in moves)
    assert check_replay(GameRecord.from_msgpack(record.to_msgpack())) == []


# Bots of several threads and processes: a short run of `python -m benchmarks.fair_clock`

ROW = re.compile(r"^(?P<kind>\w+) +\d+ +[\d.]+ +(?P<median>[\d.]+) +.* (?P<late>\d+) late +(?P<lost>\d) of 3")


@pytest.mark.parametrize("kind", [kind for kind in BUSY_KINDS if kind != "threads"])
def test_bots_are_charged_their_cpu_time(kind: str) -> None:
    needed = ("java", "javac") if kind == "jvm" else ("g++",)
    if not all(map(shutil.which, needed)) and os.environ.get("KALARENA_REQUIRE_TOOLCHAINS") != "1":
        pytest.skip(f"{' and '.join(needed)} must be there")
    options = ("--kinds", kind, "--turns", "5", "--seconds", "0.2", "--game", GAME)
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.fair_clock", *options],
        capture_output=True, text=True, timeout=600, cwd=REPOSITORY_ROOT, check=False,
    )  # fmt: skip
    row = ROW.match(done.stdout.splitlines()[1])
    assert row is not None, done.stdout + done.stderr
    # The referee's own last wait is taken off in the bot's favour; beside so short a sleep it is much.
    least = 0.75 if kind == "sleep" else 0.95
    assert least <= float(row["median"]) <= 1.15, done.stdout
    assert (row["late"], row["lost"]) == ("0", "3"), done.stdout
