"""Bots that take the CPU from their opponent while they are not on turn, in the tier without control groups.

On one core, 60 busy processes leave a sixtieth to anybody else, on any machine.

``KALARENA_STARVING_GAMES`` is the number of games of each kind (2).
"""

import contextlib
import os
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.fair_clock.busy import Busy
from referee.errors import RefereeError
from referee.judge.clock import TimeControl
from referee.judge.replay_check import check_replay
from referee.judge.results import GameRecord, Player, Reason
from referee.playing import Job
from referee.sandbox.host_resources import usable_cores
from tests.support.confinement import needs_sandbox
from tests.support.paths import SUPPORT
from tournaments.engines.local import open_local_engine

pytestmark = [
    pytest.mark.load,
    # The process whose forks others are is in no control group of a test.
    pytest.mark.usefixtures("started_workers"),
    pytest.mark.skipif(sys.platform != "linux", reason="confinement is Linux's"),
]

BOT = SUPPORT / "thinking_bot.py"
MOVE_S = 0.2
CROWD = "--starve=60"
"""Processes; 64 are allowed."""
UNHURRIED = TimeControl(move_s=60.0, start_s=60.0)
GAMES = int(os.environ.get("KALARENA_STARVING_GAMES", "2"))
AUTOGROUP = Path("/proc/sys/kernel/sched_autogroup_enabled")
GROUPS = Path("/sys/fs/cgroup/cpu")
"""Groups of version 1, whose processes are in no autogroup (Linux, kernel/sched/autogroup.c)."""


SHARES = 100 * 1024
"""A hundred times the usual share, so that nothing depends on what else runs on this machine."""


def thinker(name: str, *options: str) -> Player:
    return Player(name, ("/usr/bin/python3", "-S", "-E", str(BOT), *options), str(SUPPORT), reads=(str(BOT),))


VICTIM = thinker("victim", f"--cpu={0.6 * MOVE_S}")
"""Beside 60 processes it needs 7 s for a move, and the cap is 6 s."""
SLOW_VICTIM = thinker("victim", f"--cpu={0.95 * MOVE_S}")
SMALLER_CROWD = f"--starve={20 * len(usable_cores())}"
"""Beside it, on all cores, SLOW_VICTIM needs 4 s for a move: it replies before the cap."""


@pytest.fixture
def without_autogroup() -> Iterator[None]:
    """Let all processes of this test share the processors one by one, whatever their sessions."""
    if not AUTOGROUP.exists() or AUTOGROUP.read_text().strip() == "0":
        yield
        return
    group = GROUPS / f"kalarena-test-{os.getpid()}"
    try:
        group.mkdir()
    except OSError as error:
        pytest.skip(f"sessions are grouped here, and no group can be made instead: {error}")
    try:
        (group / "cpu.shares").write_text(str(SHARES))
        (group / "cgroup.procs").write_text("0")
        yield
    finally:
        (GROUPS / "cgroup.procs").write_text("0")
        for pid in (group / "cgroup.procs").read_text().split():
            with contextlib.suppress(OSError):
                (GROUPS / "cgroup.procs").write_text(pid)
        group.rmdir()


def job(number: int, victim: Player, starver: Player) -> Job:
    """Return a game with each of them as first player in turns."""
    players = (victim, starver) if number % 2 else (starver, victim)
    control = TimeControl(move_s=MOVE_S, setup_s=0.0, start_s=60.0)
    return Job(f"game-{number}", "kalah(3,2)", players, control, sandbox=needs_sandbox())


async def played_against(
    starver: Player, folder: Path, victim: Player = VICTIM, games: int = GAMES, *, own_core: bool = True
) -> list[GameRecord]:
    """Play games in turns as first and second player.  Raises RefereeError if one has no verdict."""
    async with open_local_engine(folder, 1, own_core=own_core) as engine:
        return [(await engine.play(job(number, victim, starver))).record for number in range(games)]


def check_no_harm(records: list[GameRecord]) -> None:
    for record in records:
        winner = record.players[record.result.winner or 0]
        assert record.result.fault is None or winner.name == "victim", record.result.detail
        assert check_replay(record) == []
        print(f"{record.duration_us / 1e6:.1f} s: {record.result.detail}")


@pytest.mark.usefixtures("without_autogroup")
async def test_a_bot_that_starves_its_opponent_loses_and_voids_no_game(tmp_path: Path) -> None:
    records = await played_against(thinker("starver", CROWD), tmp_path)
    check_no_harm(records)
    convicted = [record for record in records if record.result.reason is Reason.CPU]
    assert convicted, [record.result.detail for record in records]
    for record in convicted:
        starver = [player.name for player in record.players].index("starver")
        cpu_us, span_us, cores = record.facts[-1].data[-1]
        assert cores == 1
        assert span_us > 20 * MOVE_S * 1e6
        assert cpu_us <= (record.off_turn_cpu_us[starver] or 0)


@pytest.mark.usefixtures("without_autogroup")
async def test_a_bot_that_is_starved_and_replies_in_the_end_loses_no_game(tmp_path: Path) -> None:
    """The referee, which has no CPU either, may look at the reply long after it came."""
    records = await played_against(thinker("starver", SMALLER_CROWD), tmp_path, SLOW_VICTIM, own_core=False)
    check_no_harm(records)
    walls_us = [move.wall_us for record in records for move in record.moves]
    assert max(walls_us, default=0) > 5 * MOVE_S * 1e6  # else this test has shown nothing


@contextlib.contextmanager
def busy_core(count: int) -> Iterator[None]:
    """Let so many processes compute on the first core, where games with ``own_core`` are played."""
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})
    try:
        with Busy(count):
            os.sched_setaffinity(0, cores)
            yield
    finally:
        os.sched_setaffinity(0, cores)


@pytest.mark.usefixtures("without_autogroup")
async def test_a_wait_that_other_programs_caused_is_the_hosts_fault(tmp_path: Path) -> None:
    """The same load as by the starver, beside an opponent that has two busy processes itself."""
    ponderer = thinker("ponderer", "--starve=2")
    async with open_local_engine(tmp_path, 1, own_core=True) as engine:
        await engine.play(job(0, VICTIM, ponderer))  # starts the worker
        with busy_core(60), pytest.raises(RefereeError, match="this host kept victim waiting"):
            await engine.play(job(1, VICTIM, ponderer))


async def test_sessions_of_its_own_give_a_bot_no_more_of_the_processors(tmp_path: Path) -> None:
    """If the kernel gave each session a share, 60 sessions would have 60 shares."""
    if not AUTOGROUP.exists() or AUTOGROUP.read_text().strip() == "0":
        pytest.skip("sessions are not grouped here")
    records = await played_against(thinker("starver", CROWD, "--sessions"), tmp_path, games=GAMES // 2)
    check_no_harm(records)
    assert Reason.CPU not in {record.result.reason for record in records}


@pytest.mark.usefixtures("without_autogroup")
async def test_a_bot_that_ponders_with_two_processes_starves_nobody(tmp_path: Path) -> None:
    records = await played_against(thinker("ponderer", "--starve=2"), tmp_path)
    assert Reason.CPU not in {record.result.reason for record in records}


@pytest.mark.usefixtures("without_autogroup")
@pytest.mark.parametrize(("opponent", "sleeps"), [("--starve=2", 1.5), (CROWD, 6)])
async def test_a_bot_that_sleeps_past_its_limit_loses_beside_a_busy_opponent(
    opponent: str, sleeps: float, tmp_path: Path
) -> None:
    """Beside 60 processes the referee has no CPU for 0.3 s and more, which the bot is not charged.

    The sleeper has the first turn, and its opponent all the time that it needs: a crowd that computes right
    after a reply of its bot can keep the referee from that reply for so long that the bot would lose.
    """
    sleeper, ponderer = thinker("sleeper", f"--sleep={sleeps * MOVE_S}"), thinker("ponderer", opponent)
    async with open_local_engine(tmp_path, 1, own_core=True) as engine:
        for number in range(1, 2 * GAMES, 2):
            game = replace(job(number, sleeper, ponderer), own_controls=(None, UNHURRIED))
            record = (await engine.play(game)).record
            loser = record.players[1 - (record.result.winner or 0)]
            assert (loser.name, record.result.reason) == ("sleeper", Reason.TIMEOUT), record.result.detail
