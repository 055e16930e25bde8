"""Limits of resources, each with a real process that exceeds it."""

import os
import threading
from pathlib import Path

import pytest

from referee.judge.clock import TimeControl
from referee.judge.limits import LEAST, Limits
from referee.judge.record_rows import WireLine
from referee.judge.replay_check import check_replay
from referee.judge.results import GameRecord, Player, Reason
from referee.playing import Job, play_game
from referee.process.bot import Bot
from referee.process.player import now
from tests.support.confinement import outcome, reading_bot, sandbox_of
from tournaments.bots.resolve import resolve_bot

pytestmark = pytest.mark.usefixtures("patient_referee")

CONTROL = TimeControl(move_s=60, start_s=60)
HELD = "\nimport signal\nsignal.pause()\n"

FORKS = """
import os, sys
input()
for _ in range(8):
    if os.fork() == 0:
        block = bytearray(os.urandom(1)) * (60 << 20)
        break
"""
SHARED = """
import mmap, os
input()
block = mmap.mmap(-1, 400 << 20)
for start in range(0, 400 << 20, 4096):
    block[start] = 1
"""
FILLS_AFTER = """
block = bytearray(os.urandom(1)) * (300 << 20)
until = time.process_time() + 0.3
while time.process_time() < until:
    pass
open("still_there", "w").close()
"""
WITHOUT_INPUT = {
    "starting": "import os, time\nos.close(0)\n",
    "playing": "import os, time\ninput()\nos.close(0)\nos.write(1, b'MOVE;1\\n')\n",
}
MANY_THREADS = """
import os, sys, threading
input()
for _ in range(40):
    try:
        threading.Thread(target=threading.Event().wait).start()
    except RuntimeError as error:
        print(error, file=sys.stderr, flush=True)
        os._exit(1)  # the others would be waited for
"""


async def play(
    folder: Path, code: str, limits: Limits, tier: str, control: TimeControl = CONTROL
) -> GameRecord:
    (folder / "bot").mkdir()
    (folder / "bot" / "bot.py").write_text(code)
    bot = resolve_bot("bot", folder)
    return await _play(bot, limits, tier, control)


async def _play(bot: Player, limits: Limits, tier: str, control: TimeControl = CONTROL) -> GameRecord:
    players = (bot, reading_bot(name="victim"))
    return await play_game(Job("k", "manchester", players, control, limits, sandbox=sandbox_of(tier)))


@pytest.mark.parametrize("name", LEAST)
def test_a_limit_has_its_least_value(name: str) -> None:
    assert getattr(Limits(**{name: LEAST[name]}), name) == LEAST[name]
    with pytest.raises(ValueError, match=f"{name} must be at least {LEAST[name]}, not {LEAST[name] - 1}"):
        Limits(**{name: LEAST[name] - 1})


@pytest.mark.parametrize(
    ("tier", "code"),
    [("confined", FORKS), ("weak", FORKS), ("weak", SHARED)],
    ids=["confined-processes", "weak-processes", "weak-shared"],
)
async def test_memory_of_all_processes_together(tmp_path: Path, tier: str, code: str) -> None:
    limits = Limits(memory_mb=200, end_grace_s=0.1)
    record = await play(tmp_path, code + HELD, limits, tier)
    assert outcome(record)[::2] == (1, "memory-limit"), (record.result, record.stderr)
    assert "200 MB are allowed" in record.result.detail
    assert record.exit_status[0] == -9


COMPLAINS = "input()\nprint('#', flush=True)" + HELD
MEMORY = "held = bytearray(b'x') * (230 << 20)\ninput()"
FILES_OPENED = "[open(f'file{number}', 'w').close() for number in range(60)]\ninput()"
"""These pass a limit before START is read, and so before the other bot moves."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("tier", "code", "limits"),
    [
        ("weak", MEMORY, Limits(memory_mb=200, end_grace_s=0.1)),
        ("confined", FILES_OPENED, Limits(directory_files=40, end_grace_s=0.1)),
    ],
    ids=["memory", "files"],
)
async def test_a_limit_that_the_opponent_passes_during_a_complaint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tier: str, code: str, limits: Limits
) -> None:
    """It decides nothing, and is in the record once, also if the process takes 0.1 s to end.

    The limits are checked from the complaint on: which bot is quicker depends on the machine.
    """
    kill, killed_at = Bot.kill, []
    limit_passed, complaints = Bot.limit_passed, []

    def kill_late(bot: Bot) -> None:
        killed_at.append(now())
        threading.Timer(max(0.0, killed_at[0] + 0.1 - now()), kill, (bot,)).start()

    def observe(line: WireLine) -> None:
        if line.line == "#":
            complaints.append(line)

    monkeypatch.setattr(Bot, "kill", kill_late)
    monkeypatch.setattr(Bot, "limit_passed", lambda bot: limit_passed(bot) if complaints else None)
    players = []
    for name, program in (("complaining", COMPLAINS), ("culprit", code + HELD)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "bot.py").write_text(program)
        players.append(resolve_bot(name, tmp_path))
    job = Job("k", "manchester", (players[0], players[1]), CONTROL, limits, sandbox=sandbox_of(tier))
    record = await play_game(job, observe=observe)
    assert outcome(record)[:2] == (1, "protocol"), (record.result, record.stderr)
    assert [fact.name for fact in record.facts if fact.player == 1].count("LimitPassed") == 1
    assert check_replay(record) == []


@pytest.mark.parametrize("code", WITHOUT_INPUT.values(), ids=WITHOUT_INPUT)
async def test_memory_of_a_bot_that_has_closed_its_input(tmp_path: Path, code: str) -> None:
    """Its end is waited for, and its limits hold meanwhile."""
    record = await play(tmp_path, code + FILLS_AFTER, Limits(memory_mb=200, end_grace_s=0.1), "weak")
    assert not (tmp_path / "bot" / "still_there").exists()
    assert outcome(record)[:2] == (1, "memory"), record.result
    assert check_replay(record) == []


@pytest.mark.slow
async def test_memory_of_the_opponent_of_a_bot_that_has_closed_its_input(tmp_path: Path) -> None:
    """Both are held to their limits while the end of one is waited for."""
    moved = str(tmp_path / "moved")
    wait = f"\nwhile not os.path.exists({moved!r}):\n    time.sleep(0.01)\ntime.sleep(0.3)"
    programs = {
        "closing": WITHOUT_INPUT["playing"] + f"open({moved!r}, 'w').close()\ntime.sleep(3)",
        "filling": "import os, time\ninput()" + wait + FILLS_AFTER,
    }
    for name, program in programs.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "bot.py").write_text(program)
    first, second = (resolve_bot(name, tmp_path) for name in programs)
    limits = Limits(memory_mb=200, end_grace_s=0.1)
    job = Job("k", "manchester", (first, second), CONTROL, limits, sandbox=sandbox_of("weak"))
    record = await play_game(job)
    assert not (tmp_path / "filling" / "still_there").exists()
    assert outcome(record) == (1, "exit", "exited"), record.result
    assert check_replay(record) == []


async def test_shared_memory_without_a_file_is_refused_when_confined(tmp_path: Path) -> None:
    record = await play(tmp_path, SHARED, Limits(memory_mb=200), "confined")
    assert outcome(record) == (1, "exit", "exited")
    assert "Operation not permitted" in record.stderr[0]


async def test_processes_beyond_the_limit_in_the_weak_tier(tmp_path: Path) -> None:
    record = await play(tmp_path, MANY_THREADS, Limits(processes=16, end_grace_s=0.1), "weak")
    assert outcome(record)[::2] == (1, "process-limit"), record.result
    assert "16 are allowed" in record.result.detail


WRITES = """
import os, sys
input()
def fill(path, size):
    try:
        with open(path, "wb", buffering=0) as file:
            for _ in range(size):
                if file.write(bytes(1 << 20)) < 1 << 20:
                    return "short"
        return "whole"
    except OSError as error:
        return error.strerror
"""


FILES = {
    "fill('/scratch/file', 3)": "File too large",
    "[fill(f'/scratch/{n}', 2) for n in range(3)][-1]": "No space left on device",
    "[fill(f'/tmp/{n}', 2) for n in range(9)][-1]": "No space left on device",
    "fill('/dev/shm/file', 2)": "No space left on device",
    "resource.getrlimit(resource.RLIMIT_CORE)": "(1, 1)",
    "resource.getrlimit(resource.RLIMIT_NOFILE)": "(256, 256)",
    "resource.getrlimit(resource.RLIMIT_FSIZE)": "(2097152, 2097152)",
    "resource.getrlimit(resource.RLIMIT_NPROC)": "(64, 64)",
}


async def test_files(tmp_path: Path) -> None:
    code = f"import resource, signal\n{WRITES}\nsignal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
    code += "".join(f"print({each}, file=sys.stderr)\n" for each in FILES)
    record = await play(tmp_path, code, Limits(file_mb=2, scratch_mb=4, end_grace_s=0.1), "confined")
    assert dict(zip(FILES, record.stderr[0].splitlines(), strict=True)) == FILES


async def test_a_core_is_not_written(tmp_path: Path) -> None:
    code = "import os\ninput()\nos.chdir('/tmp')\nos.abort()\n"
    record = await play(tmp_path, code, Limits(), "weak")
    assert outcome(record) == (1, "exit", "killed")
    assert os.listdir(tmp_path / "bot") == ["bot.py"]  # noqa: PTH208 - a list is what is compared


@pytest.mark.parametrize("tier", ["confined", "weak", "bare"])
async def test_a_line_longer_than_its_limit(tmp_path: Path, tier: str) -> None:
    long = "input()\nprint('MOVE;' + '0' * 59 + '1', flush=True)\ninput()\n"
    record = await play(tmp_path, long, Limits(line_bytes=64), tier)
    assert outcome(record) == (1, "flood", "long-line"), record.result


@pytest.mark.parametrize("tier", ["confined", "weak", "bare"])
async def test_more_bytes_than_are_kept(tmp_path: Path, tier: str) -> None:
    lines = "'MOVE;' + '0' * 1000 + '1\\n' + ('MOVE;' + '0' * 1000 + '2\\n') * 6"
    code = f"import sys\nsys.stdout.write({lines})\ninput()\n"
    record = await play(tmp_path, code + "sys.stdout.flush()" + HELD, Limits(wire_bytes=4096), tier)
    assert outcome(record) == (1, "flood", "wire-limit"), record.result
    assert "more than 4096 bytes" in record.result.detail


@pytest.mark.parametrize("tier", ["confined", "weak", "bare"])
async def test_standard_error_is_kept_to_its_limit(tier: str) -> None:
    record = await _play(
        reading_bot("--do", "stderr-flood"), Limits(stderr_bytes=2000, end_grace_s=0.3), tier
    )
    assert record.result.reason is Reason.SCORE
    assert 2000 <= len(record.stderr[0]) < 3000
    assert "bytes not kept" in record.stderr[0]
