"""Suspension: process trees that are stopped, bare and confined, and bots that ponder in real games."""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from referee.judge.clock import TimeControl
from referee.judge.events import LineReceived
from referee.judge.limits import Limits
from referee.judge.results import GameRecord, Player, Reason
from referee.playing import Job, play_game
from referee.process import procfs
from referee.process.bot import Bot
from referee.process.cpu_accounting import between
from referee.process.process_tree import ProcessTree
from referee.sandbox.bubblewrap import Sandbox
from tests.process.test_procfs import (
    CLONE,
    CLONE_VFORK,
    CLONE_VM,
    HEAD,
    LIMIT_S,
    MIB,
    burn,
    started,
    until,
    until_doing,
    until_used,
)
from tests.support.confinement import needs_sandbox, sandbox_of
from tests.support.paths import SUPPORT

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")

STORM = """
say()
sys.stdin.readline()
def storm(depth):
    if depth:
        children(2, lambda: storm(depth - 1))
    os.write(1, b'.\\n')
    spin()
storm(4)
"""
"""31 processes, each spinning."""


def test_stop_a_fork_storm() -> None:
    with started(STORM) as bot:
        bot.send()
        bot.receive()
        assert bot.tree.stop(LIMIT_S)
        assert bot.tree.activity() == "stopped"
        stopped = bot.tree.pids()
        before = bot.tree.read()
        burn(0.05)
        assert between(before, bot.tree.read()).cpu_us == 0
        assert bot.tree.pids() == stopped
        bot.tree.resume()
        until_used(bot.tree, before)
        until(lambda: bot.tree.count() == 31)
        assert bot.tree.stop(LIMIT_S)
        assert len(bot.tree.pids()) == 31


def test_stop_threads() -> None:
    with started("[thread(spin) for _ in range(6)]; say(); spin()") as bot:
        for _ in range(10):
            assert bot.tree.stop(LIMIT_S)
            before = bot.tree.read()
            assert before.cpu_ns == bot.tree.read().cpu_ns
            assert bot.tree.stop(0)  # nothing to be done
            bot.tree.resume()
            until_used(bot.tree, before)


def test_stop_while_a_parent_waits_for_its_vfork() -> None:
    with started("say()" + CLONE.format(flags=CLONE_VM | CLONE_VFORK)) as bot:
        until(lambda: len(bot.tree.pids()) == 2)
        assert bot.tree.stop(LIMIT_S)
        bot.tree.resume()
        assert len(bot.tree.pids()) == 2


def test_a_stop_without_effect_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(procfs.Process, "signal", lambda *_: None)
    with started("say(); spin()") as bot:
        assert not bot.tree.stop(0.01)


def test_an_orphan_stays_in_the_tree() -> None:
    """Its parent ends, and the system gives it to another process."""
    text = (
        "def below(): children(1, lambda: (os.write(1, b'%d\\n' % os.getpid()), spin())); time.sleep(600)\n"
        "say(); pid, = children(1, below); sys.stdin.readline(); os.kill(pid, 9); os.waitpid(pid, 0); say();"
        "sys.stdin.readline()"
    )
    with started(text) as bot:
        orphan = int(bot.receive())
        assert len(bot.tree.pids()) == 3
        bot.send()
        bot.receive()
        assert bot.tree.pids() == [bot.pid, orphan]
        assert bot.tree.stop(LIMIT_S)
        os.kill(orphan, signal.SIGKILL)
        until(lambda: bot.tree.pids() == [bot.pid])


# In a sandbox


@contextmanager
def confined(text: str) -> Iterator[tuple[Bot, ProcessTree]]:
    player = Player("bot", (sys.executable, "-S", "-E", "-c", HEAD + text), "/")
    bot = Bot(0, player, os.environb, sandbox=needs_sandbox())
    try:
        bot.wait_ready()
        assert bot.tree is not None
        yield bot, bot.tree
    finally:
        bot.kill()
        bot.close()


def line_of(bot: Bot) -> str:
    """The next line of a program that sends one line at a time."""
    lines: list[str] = []

    def has_line() -> bool:
        lines.extend(event.line for event in bot.read_output() if isinstance(event, LineReceived))
        return bool(lines)

    until(has_line)
    return lines[0]


def test_inside_a_sandbox() -> None:
    text = (
        "say(os.getpid()); sys.stdin.readline(); burn(0.2); say(time.process_time()); "
        "sys.stdin.readline(); spin()"
    )
    with confined(text) as (bot, tree):
        assert int(line_of(bot)) == 2  # the first is the sandbox's own
        until_doing(tree, "reading")
        assert len(tree.pids()) == tree.count() == 1
        assert 0 < tree.memory_bytes(1 << 40) < 30 * MIB
        assert 0 < tree.memory_bytes(0) < 30 * MIB
        before = tree.read()
        assert len(before.threads) == 1
        bot.write("go")
        used = float(line_of(bot))
        until_doing(tree, "reading")
        assert tree.read().cpu_ns == pytest.approx(used * 1e9, abs=30_000_000)
        bot.write("on")
        until_doing(tree, "running")
        assert tree.stop(LIMIT_S)
        assert tree.activity() == "stopped"
        stopped = tree.read()
        burn(0.05)
        assert tree.read().cpu_ns == stopped.cpu_ns
        tree.resume()
        until_used(tree, stopped)


def test_time_of_orphans_that_the_sandbox_has_reaped() -> None:
    text = (
        "def below(): children(1, lambda: (burn(0.2), os.write(1, b'done\\n')))\n"
        "say(); sys.stdin.readline(); pid, = children(1, below); os.waitpid(pid, 0); sys.stdin.readline()"
    )
    with confined(text) as (bot, tree):
        line_of(bot)
        before = tree.read()
        bot.write("go")
        assert line_of(bot) == "done"
        until(lambda: len(tree.pids()) == 1)
        assert between(before, tree.read()).cpu_us == pytest.approx(200_000, abs=50_000)


def test_a_runner_seldom_escapes_its_stop() -> None:
    """It forks and ends, again and again, so that no number is good for long.

    About one stop in thousands finds so many processes, all stopped, that each walk is too slow for the one
    that still runs, which shows in its CPU time off turn.  To wait longer does not help; to resume does.
    """
    text = (
        "def run():\n    say()\n    while not os.fork(): os.fork() and os._exit(0)\n"
        "children(1, run); time.sleep(600)"
    )
    with confined(text) as (bot, tree):
        line_of(bot)
        escapes = 0
        for _ in range(6):
            is_stopped = tree.stop(LIMIT_S / 4)
            before = tree.read()
            if is_stopped:
                burn(0.02)
                # Threads that had ended before may be reaped meanwhile; then their CPU time is known in
                # steps of 10 ms, so it is not compared.
                assert tree.read().threads.items() <= before.threads.items()
            escapes += not is_stopped
            tree.resume()
            until_used(tree, before)
        assert escapes < 2


# Pondering

BOT = SUPPORT / "thinking_bot.py"
WAYS = ("--ponder", "--child-ponder", "--fork-ponder")
OPPONENT_S = 0.6
"""Thinking time of the opponent for a move; it has two or more moves in a game."""
LIMITS = Limits(end_grace_s=10.0)


@pytest.fixture(params=["bare", "confined"])
def sandbox(request: pytest.FixtureRequest) -> Sandbox:
    return sandbox_of(request.param)


def thinker(name: str, *arguments: str) -> Player:
    return Player(
        name, (sys.executable, "-S", "-E", str(BOT), *arguments), str(BOT.parent), reads=(str(BOT),)
    )


async def play(
    ponder: str,
    players: tuple[Player, Player],
    sandbox: Sandbox,
    setup_s: float = 0.75,
    move_s: float = 20.0,
    *,
    owns_loop: bool = True,
) -> GameRecord:
    control = TimeControl(move_s=move_s, start_s=60.0, setup_s=setup_s, ponder=ponder)
    job = Job("ponder", "kalah(3,2)", players, control, LIMITS, sandbox=sandbox)
    record = await play_game(job, owns_loop=owns_loop)
    assert record.result.reason is Reason.SCORE, record.result.detail
    # Both have read END, and have ended by themselves.
    assert record.exit_status == (0, 0)
    assert all(text.startswith("ended") for text in record.stderr), record.stderr
    return record


@pytest.mark.parametrize(
    ("way", "seat"), [(WAYS[0], 0), *(pytest.param(way, 1, marks=pytest.mark.slow) for way in WAYS)]
)
async def test_suspend_stops_everything_that_ponders(way: str, seat: int, sandbox: Sandbox) -> None:
    ponderer, opponent = thinker("ponderer", way), thinker("opponent", f"--sleep={OPPONENT_S}")
    players = (ponderer, opponent) if seat == 0 else (opponent, ponderer)
    measured = (await play("measure", players, sandbox)).off_turn_cpu_us[seat]
    assert measured is not None
    for owns_loop in (True, False):
        stopped = (await play("suspend", players, sandbox, owns_loop=owns_loop)).off_turn_cpu_us[seat]
        assert stopped is not None
        # A suspended bot computes until the stop reaches it: for 40 ms a turn on two busy cores, of which it
        # gets a part alone, as the other one does.
        assert measured > 10_000
        assert stopped < measured / 3


async def test_suspended_bots_that_do_not_ponder_play_as_ever(sandbox: Sandbox) -> None:
    players = (thinker("one", "--sleep=0.01"), thinker("other", "--cpu=0.01"))
    record = await play("suspend", players, sandbox)
    assert len(record.moves) == 5


async def test_the_time_of_being_stopped_is_not_the_bots(sandbox: Sandbox) -> None:
    players = (thinker("one", "--sleep=0.4"), thinker("other"))
    record = await play("suspend", players, sandbox)
    for move in record.moves:
        if move.player == 1:
            assert move.charged_us < 300_000, move


async def test_setup_that_was_suspended_is_free_in_the_second_players_first_turn(sandbox: Sandbox) -> None:
    players = (thinker("one", "--sleep=0.01"), thinker("other", "--setup=0.5"))
    record = await play("suspend", players, sandbox, setup_s=20.0)
    first_of_other = next(move for move in record.moves if move.player == 1)
    assert first_of_other.charged_us == 0
    assert first_of_other.wall_us > 100_000
