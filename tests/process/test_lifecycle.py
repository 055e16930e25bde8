"""The end of a game: every wait ends, no verdict is lost, and what could not be ended is reported."""

import errno
import os
import select
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import trio

from referee import session
from referee.conformance.game import play_conformance_game
from referee.conformance.script import TestOpponent
from referee.errors import RefereeError
from referee.games.catalog import AnyGame, parse_game
from referee.games.kalah import Kalah
from referee.judge.clock import TimeControl
from referee.judge.limits import Limits
from referee.judge.results import GameRecord, Player
from referee.players.function_player import FunctionBot, FunctionPlayer
from referee.playing import Job, adopting_orphans, play_game
from referee.process import bot as bot_module
from referee.process import launch, subreaper
from referee.process.bot import Bot
from referee.process.launch import wait_readable
from referee.process.subreaper import become_subreaper, kill_orphans
from referee.sandbox.bot_users import can_assign_users
from referee.sandbox.bubblewrap import Sandbox
from referee.session import Session
from tests.support.confinement import needs_sandbox, outcome, reading_bot
from tests.support.paths import REPOSITORY_ROOT, SUPPORT
from tests.support.processes import kill_all_with, living_with

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="ptrace and /proc as on Linux")

CONTROL = TimeControl(move_s=60, start_s=60)
LIMITS = Limits(end_grace_s=0.05)


@pytest.fixture
def mark(tmp_path: Path) -> Iterator[str]:
    """A word on the command lines of a test's bots, which are ended with it."""
    word = f"mark-{os.getpid()}-{tmp_path.name}"
    yield word
    kill_all_with(word)
    kill_orphans()


def job(first: Player, second: Player, sandbox: Sandbox | None = None) -> Job:
    return Job("k", "kalah(2,2)", (first, second), CONTROL, LIMITS, sandbox=sandbox or Sandbox())


def marked_bot(folder: Path, mark: str, *arguments: str) -> Player:
    """The scripted bot under a name by which it can be found."""
    script = folder / f"{mark}.py"
    shutil.copyfile(SUPPORT / "scripted_bot.py", script)
    return Player("marked", (sys.executable, "-S", "-E", str(script), *arguments), str(folder))


def traced_bot(mark: str, reply: str) -> Player:
    command = (sys.executable, "-S", "-E", str(SUPPORT / "traced_bot.py"), mark, reply)
    return Player("traced", command, str(SUPPORT))


@pytest.mark.parametrize(("reply", "reason"), [("nonsense", "protocol"), ("exit", "exit")])
async def test_a_bot_that_is_traced_loses_and_what_is_left_of_it_is_reported(
    mark: str, reply: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bot has ended, but its descendant, not the referee, could reap it."""
    monkeypatch.setattr(subreaper, "KILL_LIMIT_S", 60.0)
    become_subreaper()
    record = await play_game(job(traced_bot(mark, reply), reading_bot(name="victim")))
    assert living_with(mark)  # the game has not waited for the end of the descendant
    assert (record.result.winner, record.result.reason.value) == (1, reason)
    assert record.exit_status[0] == (3 if reply == "exit" else -signal.SIGKILL)
    (warning,) = record.warnings
    assert "traced" in warning
    assert GameRecord.from_msgpack(record.to_msgpack()).warnings == record.warnings
    kill_orphans()
    assert living_with(mark) == []


async def test_a_verdict_stands_if_the_process_does_not_end(
    tmp_path: Path, mark: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Signals to the bots' groups have no effect, as on a process that is stuck in the kernel."""
    monkeypatch.setattr(session, "KILL_LIMIT_S", 0.05)
    monkeypatch.setattr(bot_module, "GONE_LIMIT_S", 0.05)
    monkeypatch.setattr(bot_module, "REAP_LIMIT_S", 0.05)
    with monkeypatch.context() as stuck:
        stuck.setattr(os, "killpg", lambda _group, _signal: None)
        # The loser's end is its fault: that process has ended before there are limits for its end.
        loser = reading_bot("--do", "exit", "--reply", "1", name="loser")
        record = await play_game(job(loser, marked_bot(tmp_path, mark, "--do", "stay-after-end")))
    assert outcome(record) == (1, "exit", "exited")
    (warning,) = record.warnings
    assert "of marked was killed and does not end" in warning
    kill_all_with(mark)


async def test_what_fails_after_the_verdict_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    for name in ("written_files", "close"):
        real = getattr(Bot, name)

        def failing(bot: Bot, real: Callable[[Bot], object] = real) -> None:
            real(bot)
            fail()

        monkeypatch.setattr(Bot, name, failing)
    real_close = Session.close

    def failing_close(one: Session) -> None:
        real_close(one)
        fail()

    monkeypatch.setattr(Session, "close", failing_close)
    monkeypatch.setattr(Session, "wind_down", fail)
    played = replace(job(reading_bot("--do", "crlf", "--reply", "1"), reading_bot()), keep_files=True)
    record = await play_game(played)
    assert outcome(record) == (1, "protocol", "crlf")
    assert len(record.warnings) == 6
    assert all("Input/output error" in warning for warning in record.warnings)


def test_orphans_that_trace_one_another_are_all_ended(mark: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The traced process is listed first, and nobody but its tracer can reap it."""
    monkeypatch.setattr(subreaper, "KILL_LIMIT_S", 60.0)
    become_subreaper()
    process = subprocess.Popen(
        traced_bot(mark, "nonsense").command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    with process.stdin, process.stdout:
        process.stdin.write("START;South\n")
        process.stdin.flush()
        assert process.stdout.readline() == "nonsense\n"  # it is traced now
        assert kill_orphans() == []
    assert living_with(mark) == []
    process.wait()


def test_orphans_that_cannot_be_killed_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """As those of another user, which a program with the set-user-ID bit makes."""

    def refuse(_pid: int, _signal: int) -> None:
        raise PermissionError

    monkeypatch.setattr(subreaper, "KILL_LIMIT_S", 0.05)
    with subprocess.Popen(["sleep", "60"], start_new_session=True) as process:
        with monkeypatch.context() as refusing:
            refusing.setattr(os, "kill", refuse)
            assert kill_orphans() == [process.pid]
            with adopting_orphans() as left:
                pass
        assert [str(process.pid) in text for text in left] == [True]
        process.kill()


async def test_a_bug_of_a_game_is_an_error_of_one_game(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(Kalah, "apply", fail)
    with pytest.raises(RefereeError, match=r"unexpected ZeroDivisionError: a bug \(in fail, line"):
        await play_game(job(reading_bot(), reading_bot()))
    with pytest.raises(RefereeError, match="unexpected ZeroDivisionError: a bug"):
        play_conformance_game(job(reading_bot(), reading_bot()), 0, TestOpponent(lambda *_: None))


@pytest.mark.parametrize(("call", "caller"), [("pipe", "_bubblewrapped"), ("open", "_folder_words")])
async def test_a_system_call_that_fails_is_no_loss(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, caller: str
) -> None:
    """The sandbox makes pipes and opens files, which fails when descriptors run out."""
    sandbox = needs_sandbox()
    closed = tmp_path / "closed"  # to other users: as root, its files are copied
    closed.mkdir(mode=0o700)
    (closed / "data").write_text("data")
    if call == "open" and not can_assign_users():
        pytest.skip("needs root")
    first = reading_bot()
    first = replace(first, reads=(*first.reads, str(closed)))
    real = getattr(os, call)

    def fail(*arguments: object, **options: object) -> object:
        if sys._getframe(1).f_code.co_name == caller:
            raise OSError(errno.EMFILE, "Too many open files")
        return real(*arguments, **options)

    monkeypatch.setattr(os, call, fail)
    with pytest.raises(RefereeError, match=r"unexpected OSError: .*Too many open files"):
        await play_game(job(first, reading_bot(), sandbox))


async def test_a_function_that_fails_with_a_long_message_does_not_block_the_end() -> None:
    """Its traceback is longer than a pipe."""
    game = parse_game("kalah(2,2)")
    is_called, may_fail = threading.Event(), threading.Event()

    def choose(_game: object, _state: object) -> str:
        is_called.set()
        may_fail.wait(20)
        raise ValueError("x" * 1_000_000)

    bot = FunctionBot(0, FunctionPlayer(choose), game, opening=False)
    bot.wait_ready()
    bot.write("START;South")
    assert is_called.wait(20)
    before = threading.active_count()
    may_fail.set()
    assert wait_readable(bot.exit_descriptor or -1, 20)
    closing = threading.Thread(target=bot.close, daemon=True)
    closing.start()
    closing.join(20)
    assert not closing.is_alive()
    assert threading.active_count() <= before


async def test_two_games_at_a_time_in_one_process(tmp_path: Path) -> None:
    """Their confined bots are different users where they are users of their own.

    No game goes on before both bots have begun to play.
    """
    program = tmp_path / "bot.py"
    first_legal = REPOSITORY_ROOT / "sample_bots" / "first_legal.py"
    program.write_text(
        "import os, runpy, sys\nprint('user', os.getuid(), file=sys.stderr, flush=True)\n"
        f"runpy.run_path({str(first_legal)!r}, run_name='__main__')\n"
    )
    command = (sys.executable, "-S", "-E", str(program))
    bot = Player("bot", command, str(tmp_path), reads=(str(tmp_path), str(first_legal)))
    waiting = 0
    both_play = trio.Event()

    async def choose(game: AnyGame, state: Any) -> Any:
        nonlocal waiting
        waiting += 1
        if waiting == 2:
            both_play.set()
        await both_play.wait()
        return game.legal_moves(state)[0]

    person = FunctionPlayer(choose)
    records: list[GameRecord] = []
    sandbox = needs_sandbox()

    async def play_one() -> None:
        confined = job(bot, person.identity, sandbox)
        records.append(await play_game(confined, players={1: person.start}, owns_loop=False))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(play_one)
        nursery.start_soon(play_one)
    assert [record.result.reason.value for record in records] == ["score"] * 2
    assert len({record.stderr[0] for record in records}) == (2 if can_assign_users() else 1)


@pytest.mark.slow
@pytest.mark.parametrize("ponder", ["measure", "suspend"])
@pytest.mark.parametrize("owns_loop", [False, True])
async def test_waits_of_a_game_do_not_block_a_shared_event_loop(
    monkeypatch: pytest.MonkeyPatch, owns_loop: bool, ponder: str
) -> None:
    """Blocking calls are counted: a measured pause could be the machine's."""
    blocking: list[str] = []
    loop = threading.get_ident()

    def counted(name: str, wait_s: float) -> None:
        if wait_s > 0 and threading.get_ident() == loop:
            blocking.append(name)

    real_wait, real_sleep, real_epoll = launch.wait_readable, time.sleep, select.epoll

    def wait_readable(descriptor: int, within_s: float) -> bool:
        counted("wait_readable", within_s)
        return real_wait(descriptor, within_s)

    def sleep(seconds: float) -> None:
        counted("sleep", seconds)
        real_sleep(seconds)

    class Epoll:
        def __init__(self) -> None:
            self._epoll = real_epoll()

        def poll(self, timeout: float) -> list[tuple[int, int]]:
            counted("poll", timeout)
            return self._epoll.poll(timeout)

        def __getattr__(self, name: str) -> Any:
            return getattr(self._epoll, name)

    for module in (bot_module, launch):
        monkeypatch.setattr(module, "wait_readable", wait_readable)
    monkeypatch.setattr(time, "sleep", sleep)
    monkeypatch.setattr(select, "epoll", Epoll)
    game = job(reading_bot("--do", "close-input", "--reply", "1"), reading_bot(), needs_sandbox())
    game = replace(game, control=replace(CONTROL, ponder=ponder))
    record = await play_game(game, owns_loop=owns_loop)
    assert outcome(record) == (1, "exit", "closed-input")
    assert bool(blocking) == owns_loop, set(blocking)
