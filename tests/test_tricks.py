"""What reviewers tried against the sandbox and the clock, and found open once.  Real processes."""

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from referee.judge.clock import TimeControl
from referee.judge.limits import Limits
from referee.judge.results import GameRecord, Player, Reason
from referee.play import Job, play_game
from tests.builders import invoke, kalarena
from tests.confinement import needs_sandbox
from tests.test_faults import honest
from tournaments.bots.resolve import resolve_bot
from tournaments.config.load import ConfigError, load_tournament

PLAYS = """
import os, sys, time, signal
def replies():
    seat, pits = "", []
    for line in sys.stdin:
        word, *fields = line.strip().split(";")
        if word == "START":
            seat, pits = fields[0], [7] * 7
            mine = seat == "South"
        elif word == "CHANGE":
            seat = "North" if fields[0] == "SWAP" else seat
            seeds = [int(number) for number in fields[1].split(",")]
            half = len(seeds) // 2
            pits = (seeds[:half] if seat == "North" else seeds[half:])[:-1]
            mine = fields[2] == "YOU"
        else:
            return
        if mine:
            before()
            print(f"MOVE;{next(n for n, seeds in enumerate(pits, 1) if seeds)}", flush=True)
"""
"""A bot that plays its first legal move, and calls ``before`` first."""


def make_bot(folder: Path, program: str, first_line: str = "") -> Player:
    """A bot's directory with this program."""
    folder.mkdir(exist_ok=True)
    name = "bot.py" if not first_line else "bot"
    (folder / name).write_text((first_line + "\n" if first_line else "") + PLAYS + program + "\nreplies()\n")
    (folder / name).chmod(0o755)
    return resolve_bot(str(folder), folder.parent, game="manchester")


async def play(player: Player, move_s: float, limits: Limits | None = None) -> GameRecord:
    victim = honest()
    victim = Player(victim.name, victim.command, victim.cwd, reads=(victim.command[-1],))
    control = TimeControl(move_s=move_s, margin_s=0.05, start_s=20, setup_s=0.0)
    limits = limits or Limits()
    return await play_game(Job("trick", "manchester", (player, victim), control, limits, "", needs_sandbox()))


FORKS_UNSEEN = """
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
def burn(seconds):
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass
def before():
    until = time.monotonic() + 4
    while time.monotonic() < until:
        for _ in range(25):
            if os.fork() == 0:
                burn(0.012)
                os._exit(0)
        burn(0.01)
"""


async def test_time_burnt_in_children_that_nobody_counts_is_no_wait_for_the_host(tmp_path: Path) -> None:
    """They end uncounted where SIGCHLD is ignored, and the bot queues behind them on one core."""
    record = await play(make_bot(tmp_path / "bot", FORKS_UNSEEN), move_s=0.5)
    assert (record.result.winner, record.result.fault) == (1, "late"), record.result.detail


SAYS = """
def before():
    global before
    before = lambda: None
    try:
        result = repr(attempt())
    except OSError as error:
        result = error.strerror
    print("result:", result, file=sys.stderr, flush=True)
"""


async def test_a_bot_cannot_change_how_its_processes_are_scheduled(tmp_path: Path) -> None:
    attempt = (
        SAYS + "def attempt():\n    return os.write(os.open('/proc/self/autogroup', os.O_WRONLY), b'19')\n"
    )
    record = await play(make_bot(tmp_path / "bot", attempt), move_s=5)
    assert record.result.reason is Reason.SCORE
    said = record.stderr[0].split("result: ")[1].strip()
    assert said in ("Read-only file system", "No such file or directory", "Permission denied")


async def test_memory_is_watched_after_the_end_too(tmp_path: Path) -> None:
    program = """
def before(): pass
import atexit
def grow():
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    kept = []
    for _ in range(300):
        kept.append(bytearray(b"x" * (4 << 20)))
        print(len(kept) * 4, file=sys.stderr, flush=True)
    time.sleep(60)
atexit.register(grow)
"""
    record = await play(make_bot(tmp_path / "bot", program), 5, Limits(memory_mb=128, end_grace_s=30))
    assert record.result.reason is Reason.SCORE
    held = int(record.stderr[0].split()[-1])
    assert 64 < held < 400, "killed long before the 1,200 MB that it wanted"
    assert record.exit_status[0] == -9


def other_course(tmp_path: Path) -> Path:
    """Somebody else's directory, laid out like a program's installation."""
    other = tmp_path / "other"
    (other / "bin").mkdir(parents=True)
    (other / "lib" / "modules").mkdir(parents=True)
    (other / "secret.txt").write_text("the other's strategy")
    (other / "bin" / "bot").write_text('#!/bin/sh\nexec /usr/bin/python3 "$@"\n')
    (other / "bin" / "bot").chmod(0o755)
    for folder in (tmp_path, other, other / "bin"):
        folder.chmod(0o755)
    return other


@pytest.mark.parametrize("first_line", ["#!/usr/bin/env -S -u {other}/bin/bot python3", "#!{other}/bin/bot"])
async def test_a_first_line_does_not_choose_what_is_seen(tmp_path: Path, first_line: str) -> None:
    other = other_course(tmp_path)
    attempt = SAYS + f"def attempt():\n    return open({str(other / 'secret.txt')!r}).read()\n"
    record = await play(make_bot(tmp_path / "bot", attempt, first_line.format(other=other)), 5)
    assert "strategy" not in record.stderr[0]


async def test_a_link_or_a_manifest_does_not_choose_it_either(tmp_path: Path) -> None:
    other = other_course(tmp_path)
    program = SAYS + f"def attempt():\n    return open({str(other / 'secret.txt')!r}).read()\n"
    bot = tmp_path / "bot"
    make_bot(bot, program)
    (bot / "run").symlink_to(other / "bin" / "bot")
    for command in ('["./run", "bot.py"]', f'["{other}/bin/bot", "bot.py"]'):
        (bot / "bot.toml").write_text(f"command = {command}\n")
        record = await play(resolve_bot(str(bot), tmp_path, game="manchester"), 5)
        assert "strategy" not in record.stderr[0]
        assert record.result.reason in (Reason.START, Reason.EXIT)


def test_the_build_of_a_stranger_is_confined(tmp_path: Path) -> None:
    needs_sandbox()
    bot = tmp_path / "bot"
    make_bot(bot, "def before(): pass")
    (bot / "bot.toml").write_text(
        f'command = ["python3", "bot.py"]\nbuild = ["touch", "{tmp_path}/built"]\nmade = ["made"]\n'
    )
    path = tmp_path / "cup.toml"
    path.write_text('untrusted = true\nbots = ["bot", "greedy"]\n')
    with pytest.raises(ConfigError, match=r"ended with exit status 1: .*cannot touch"):
        load_tournament(path)
    done = invoke("play", str(bot), "greedy", "--sandbox", "required")
    assert done.exit_code == 2
    assert not (tmp_path / "built").exists()


@pytest.mark.parametrize("limit", ["-c 0", "-s 8192", "-f 1000", "-l 0", "-n 64"])
def test_a_limit_of_ours_is_nobodys_loss(tmp_path: Path, limit: str) -> None:
    needs_sandbox()
    names = {"c": "CORE", "s": "STACK", "f": "FSIZE", "l": "MEMLOCK", "n": "NOFILE"}
    option, value = limit[1:].split()
    number = getattr(resource, f"RLIMIT_{names[option]}")
    wanted = int(value) * (1024 if option in "sfl" else 1)

    def lower() -> None:
        resource.setrlimit(number, (wanted, wanted))

    done = subprocess.run(
        [
            str(Path(sys.executable).with_name("kalarena")),
            "play",
            "first_legal",
            "greedy",
            "--sandbox",
            "required",
        ],
        cwd=tmp_path,
        preexec_fn=lower,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "[score]" in done.stdout, done.stdout + done.stderr


async def test_a_complaint_that_a_bot_makes_up_changes_no_reason(tmp_path: Path) -> None:
    program = """
def before():
    print("prlimit: failed to execute /x: Operation not permitted", file=sys.stderr, flush=True)
    print("MOVE;1", flush=True)
    os._exit(126)
"""
    record = await play(make_bot(tmp_path / "bot", program), 5)
    assert (record.result.reason, record.result.fault) == (Reason.EXIT, "exited")


def test_who_and_where_a_bot_is_can_be_asked(tmp_path: Path) -> None:
    needs_sandbox()
    program = "import getpass, pwd, socket\ndef before():\n    pwd.getpwuid(os.getuid()), getpass.getuser()\n"
    make_bot(tmp_path / "bot", program + "    socket.gethostbyname('localhost')\n")
    done = kalarena(
        tmp_path, "play", "bot", "greedy", "--sandbox", "required", HOME=os.environ.get("HOME", "/")
    )
    assert "[score]" in done.stdout, done.stdout
