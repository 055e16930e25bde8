"""Starting a bot and what can go wrong with it: whose fault it is, and that nothing is left behind."""

import gc
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import trio

from referee import session
from referee.errors import RefereeError
from referee.judge.clock import TimeControl
from referee.judge.limits import Limits
from referee.judge.replay_check import check_replay
from referee.judge.results import GameRecord, Player
from referee.playing import Job, play_game
from referee.process import launch
from referee.process.bot import Bot
from referee.process.launch import NotRunnableError, wait_readable
from referee.sandbox import reaper
from referee.sandbox.bubblewrap import Sandbox
from tests.support.confinement import TIERS, needs_sandbox, outcome, reading_bot, sandbox_of
from tests.support.paths import SUPPORT
from tests.support.processes import kill_all_with, living_with
from tests.support.tiers import slow

pytestmark = pytest.mark.usefixtures("patient_referee")

CONTROL = TimeControl(move_s=60, start_s=60)
LIMITS = Limits(end_grace_s=0.2)
PATIENCE_S = 60.0
"""Nothing waits that long unless it has failed."""


LONG = "manchester"
"""A game that the first bot cannot win before the end of the second one's process is noticed."""


def job(first: Player, second: Player, sandbox: Sandbox, game: str = "kalah(2,2)") -> Job:
    return Job("k", game, (first, second), CONTROL, LIMITS, sandbox=sandbox)


@pytest.fixture
def mark(tmp_path: Path) -> Iterator[str]:
    """A word on the command lines of a test's bots, which are ended with it."""
    word = f"mark-{os.getpid()}-{tmp_path.name}"
    yield word
    kill_all_with(word)


def marked_bot(folder: Path, mark: str, *arguments: str) -> Player:
    """The scripted bot under a name by which it can be found."""
    script = folder / f"{mark}.py"
    shutil.copyfile(SUPPORT / "scripted_bot.py", script)
    command = (sys.executable, "-S", str(script), *arguments)
    return Player("marked", command, str(folder), reads=(str(script),))


SCRIPTS = {
    # Contents of the program, its mode, and words of the verdict.
    "interpreter": ("#!/nowhere/python\n", 0o755, "names an interpreter that is not there"),
    "crlf": ("#!/bin/sh\r\n", 0o755, "CR LF"),
    "interpreter and crlf": ("#!/nowhere/python\r\n", 0o755, "CR LF"),
    "mode": ("#!/bin/sh\n", 0o644, "is not executable: chmod +x bot"),
    "no first line": ("print('MOVE;1')\n", 0o755, "a script needs a first line"),
    "empty": ("", 0o755, "a script needs a first line"),
    "nul": ("#!/bin/sh\n", 0o755, "cannot be run"),
}
NOT_RUNNABLE = {
    **{name: words for name, (_, _, words) in SCRIPTS.items()},
    "missing": "there is no file bot (command not found)",
    "directory": "bot is a directory",
    "loader": "needs a loader or an interpreter that is not on this system",
    "machine": "must be compiled for this system",
    "no directory": "its directory is not there",
}
QUICK = ("missing", "interpreter", "mode")


def program_that_cannot_run(folder: Path, problem: str) -> tuple[str, ...]:
    program = folder / "bot"
    if problem in SCRIPTS:
        text, mode, _ = SCRIPTS[problem]
        program.write_text(text, newline="")
        program.chmod(mode)
    elif problem == "directory":
        program.mkdir()
    elif problem == "loader":
        if shutil.which("gcc") is None:
            pytest.skip("needs gcc")
        (folder / "bot.c").write_text("int main(void) { return 0; }")
        linker = "-Wl,--dynamic-linker=/nonexistent/loader"
        subprocess.run(["gcc", "-o", str(program), linker, "bot.c"], cwd=folder, check=True, timeout=60)
    elif problem == "machine":
        head = bytearray(Path(sys.executable).read_bytes()[:4096])
        head[18:20] = b"\xf3\xf3"  # a machine that does not exist
        program.write_bytes(head)
        program.chmod(0o755)
    return (str(program), *(["a\0b"] if problem == "nul" else []))


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize(
    ("problem", "seat"),
    [
        pytest.param(problem, seat, marks=() if problem in QUICK else pytest.mark.slow)
        for number, problem in enumerate(NOT_RUNNABLE)
        for seat in ((0, 1) if problem == "missing" else (number % 2,))
    ],
)
async def test_a_command_that_cannot_be_run(
    tmp_path: Path, mark: str, problem: str, tier: str, seat: int
) -> None:
    command = program_that_cannot_run(tmp_path, problem)
    cwd = tmp_path / "gone" if problem == "no directory" else tmp_path
    culprit = Player("culprit", command, str(cwd), reads=(str(tmp_path),))
    honest = reading_bot(f"--do={mark}", name="victim")
    players = (culprit, honest) if seat == 0 else (honest, culprit)
    record = await play_game(job(*players, sandbox_of(tier)))
    assert outcome(record) == (1 - seat, "start", "not-runnable"), record.result
    assert NOT_RUNNABLE[problem] in record.result.detail
    assert str(tmp_path) not in record.result.detail  # its directory is private
    assert record.moves == []
    assert record.exit_status[seat] in (None, 127)  # or the loader was missing inside the sandbox
    assert living_with(mark) == []


@pytest.fixture
def both_ends_awaited(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for the second end of two bots, whatever the bot and its sandbox do until then."""
    monkeypatch.setattr(session, "EXIT_SETTLE_S", PATIENCE_S)
    monkeypatch.setattr(session, "ENDING_LIMIT_S", PATIENCE_S)


@pytest.mark.usefixtures("both_ends_awaited")
@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("problem", ["missing", *slow("loader")])
async def test_two_bots_that_cannot_be_run_draw(tmp_path: Path, problem: str, tier: str) -> None:
    """The program without a loader fails inside the sandbox, where one of the two ends first."""
    command = program_that_cannot_run(tmp_path, problem)
    one, other = (Player(name, command, str(tmp_path), reads=(str(tmp_path),)) for name in ("one", "other"))
    record = await play_game(job(one, other, sandbox_of(tier)))
    assert outcome(record) == (None, "start", "not-runnable"), record.result
    assert record.result.detail.startswith("neither bot could be started: one (South): ")
    assert check_replay(record) == []


@pytest.mark.usefixtures("both_ends_awaited")
@pytest.mark.parametrize("tier", TIERS)
async def test_two_bots_that_crash_at_their_start_draw(tmp_path: Path, tier: str) -> None:
    scripts = ("echo broken >&2; exit 3", "kill -9 $$")
    one, other = (
        Player(name, ("/bin/sh", "-c", script), str(tmp_path), reads=(str(tmp_path),))
        for name, script in zip(("one", "other"), scripts, strict=True)
    )
    for players in ((one, other), (other, one)):
        record = await play_game(job(*players, sandbox_of(tier)))
        assert outcome(record) == (None, "start", "not-runnable"), record.result
        for part in ("its process ended with exit status 3 before", "killed by SIGKILL before"):
            assert part in record.result.detail
        assert "broken" not in record.result.detail  # standard error is private to its author
        assert check_replay(record) == []


@pytest.mark.parametrize("seat", [0, 1])
async def test_a_bot_that_still_starts_when_its_opponent_crashes_is_waited_for(
    seat: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a busy host every start takes long.  The opponent crashes when the bot computes."""
    monkeypatch.setattr(session, "ENDING_LIMIT_S", PATIENCE_S)
    os.mkfifo(tmp_path / "computes")
    text = (
        "import os, time\nopen('computes', 'w').close()\nwhile time.process_time() < 0.3: pass\nos._exit(3)"
    )
    slow = Player("slow", (sys.executable, "-S", "-E", "-c", text), str(tmp_path))
    quick = Player("quick", ("/bin/sh", "-c", "read line < computes; exit 4"), str(tmp_path))
    record = await play_game(job(*((slow, quick) if seat == 0 else (quick, slow)), Sandbox()))
    assert outcome(record) == (None, "start", "not-runnable"), record.result
    assert check_replay(record) == []


async def test_a_bot_that_is_waited_for_has_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bots: list[Bot] = []
    wait_ready = Bot.wait_ready

    def begin_when_the_other_has_ended(bot: Bot) -> None:
        bots.append(bot)
        if bot.index == 1:  # else it could pass its limit first, and lose
            assert wait_readable(bots[0].exit_descriptor or -1, PATIENCE_S)
        wait_ready(bot)

    monkeypatch.setattr(Bot, "wait_ready", begin_when_the_other_has_ended)
    text = (
        "import os, sys, time\n"
        "children = [pid for _ in range(4) if (pid := os.fork())]\n"
        "held = bytearray(os.urandom(1 << 20) * 80)\n"
        "while time.process_time() < 0.4: pass\n"
        "sys.exit(3)"
    )
    greedy = Player("greedy", (sys.executable, "-S", "-E", "-c", text), str(tmp_path))
    quick = Player("quick", ("/bin/sh", "-c", "exit 4"), str(tmp_path))
    game = replace(job(quick, greedy, sandbox_of("confined")), limits=replace(LIMITS, memory_mb=200))
    record = await play_game(game)
    assert outcome(record) == (1, "exit", "exited"), record.result  # the other process ended first
    assert check_replay(record) == []


@pytest.mark.parametrize("seat", [0, 1])
async def test_a_bot_that_crashes_at_its_start_loses_to_a_bot_that_does_not(
    seat: int, tmp_path: Path
) -> None:
    crash = Player("crash", ("/bin/sh", "-c", "exit 3"), str(tmp_path))
    players = (crash, reading_bot()) if seat == 0 else (reading_bot(), crash)
    record = await play_game(job(*players, Sandbox(), LONG))
    assert outcome(record) == (1 - seat, "exit", "exited")
    assert check_replay(record) == []


async def test_a_bot_that_cannot_be_run_loses_to_a_bot_that_can(tmp_path: Path) -> None:
    missing = Player("culprit", (str(tmp_path / "bot"),), str(tmp_path))
    record = await play_game(job(reading_bot(), missing, Sandbox()))
    assert outcome(record) == (0, "start", "not-runnable")
    assert check_replay(record) == []


@pytest.mark.parametrize("tier", TIERS)
async def test_env_that_finds_nothing_is_an_end_by_itself(tmp_path: Path, tier: str) -> None:
    """env itself was run and ended with 127; before a sandboxed env the command is checked."""
    program = tmp_path / "bot"
    program.write_text("#!/usr/bin/env nowhere-at-all\n")
    program.chmod(0o755)
    player = Player("culprit", (str(program),), str(tmp_path), reads=(str(tmp_path),))
    record = await play_game(job(player, reading_bot(), sandbox_of(tier)))
    assert record.result.winner == 1
    assert record.result.reason.value in ("start", "exit")


COMPLAINT = "prlimit: failed to execute x: "
PRETENDERS = {
    "other words": (rf"printf '{COMPLAINT}\033[2J\000 the referee cheated\n' >&2; exit 127", True),
    "other words, before START": (rf"printf '{COMPLAINT}\000 the referee cheated\n' >&2; exit 126", False),
    "the system's words": (f"echo '{COMPLAINT}No such file or directory' >&2; exit 127", True),
}
"""Name -> a shell's command, and whether the shell reads its START line first."""


@pytest.mark.parametrize("tier", ["confined", "weak"])
@pytest.mark.parametrize("seat", [0, 1])
@pytest.mark.parametrize("words", PRETENDERS)
async def test_a_bot_that_was_run_cannot_say_that_it_was_not(
    tmp_path: Path, words: str, seat: int, tier: str
) -> None:
    """Its text would be in the verdict, which everybody may read."""
    script, reads = PRETENDERS[words]
    command = ("/bin/sh", "-c", f"read line; {script}" if reads else script)
    culprit = Player("culprit", command, str(tmp_path), reads=(str(tmp_path),))
    players = (culprit, reading_bot()) if seat == 0 else (reading_bot(), culprit)
    record = await play_game(job(*players, sandbox_of(tier), LONG))
    assert outcome(record) == (1 - seat, "exit", "exited"), record.result
    assert "its process ended with exit status 12" in record.result.detail
    assert "cheated" not in record.result.detail
    assert check_replay(record) == []


GONE = f"""#!{sys.executable}
import os, sys
pid = os.fork()
if pid == 0:
    os.write(2, b"no room")
    os._exit(1)
os.waitpid(pid, 0)
os.write(int(sys.argv[2]), b'{{"child-pid": %d}}\\n' % pid)
"""
"""Program that reports a first process that has ended already, as bubblewrap may seem to on a busy host."""
FAILURES = {
    # Program in the place of bubblewrap, and the error.
    "#!/bin/sh\nexit 1\n": "the sandbox could not be made$",
    "#!/bin/sh\necho no room >&2; exit 1\n": "the sandbox could not be made: no room",
    "#!/bin/sh\nexit 0\n": "the sandbox could not be made",
    f"#!{sys.executable}\nimport os, sys\nos.write(int(sys.argv[2]), b'nonsense\\n')\n": "something unknown",
    GONE: "the sandbox could not be made: no room",
    "#!/bin/sh\nexec sleep 600 # MARK\n": "the sandbox could not be made",
    "": "could not start a process|could not be made",
}


@pytest.mark.parametrize("program", FAILURES)
async def test_a_sandbox_that_fails_is_no_loss(
    tmp_path: Path, mark: str, monkeypatch: pytest.MonkeyPatch, program: str
) -> None:
    sandbox = needs_sandbox()
    bwrap = tmp_path / "bwrap"
    if program:
        bwrap.write_text(program.replace("MARK", mark))
        bwrap.chmod(0o755)
    sandbox = replace(sandbox, tools=replace(sandbox.tools, bwrap=str(bwrap)))
    monkeypatch.setattr(launch, "SETUP_LIMIT_S", 0.2 if "sleep" in program else PATIENCE_S)
    began = trio.current_time()
    with pytest.raises(RefereeError, match=FAILURES[program]):
        await play_game(job(reading_bot(f"--do={mark}"), reading_bot(), sandbox))
    assert trio.current_time() - began < 300  # not the 600 s of the program that hangs
    assert living_with(mark) == []


async def test_a_reaper_that_cannot_be_started_is_no_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error's number is one that a bot's command is blamed for."""
    game = job(reading_bot(), reading_bot(), sandbox_of("confined"))
    monkeypatch.setattr(reaper, "_reaper", None)
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with pytest.raises(RefereeError, match=r"could not start the sandbox reaper: .*No such file"):
        await play_game(game)


def descriptors() -> dict[str, str]:
    found = {}
    for path in Path("/proc/self/fd").iterdir():
        try:
            found[path.name] = str(path.readlink())
        except FileNotFoundError:
            continue  # of this listing itself
    return found


def children() -> set[str]:
    return set(Path(f"/proc/self/task/{os.getpid()}/children").read_text().split())


@pytest.mark.slow
@pytest.mark.parametrize("tier", TIERS)
async def test_no_descriptor_and_no_process_is_left_by_many_games(tmp_path: Path, tier: str) -> None:
    sandbox = sandbox_of(tier)
    missing = Player("culprit", (str(tmp_path / "bot"),), str(tmp_path))
    pairs = [
        (reading_bot(), reading_bot()),
        (reading_bot("--do", "exit", "--reply", "1"), reading_bot()),
        (missing, reading_bot()),
        (reading_bot(), missing),
    ]
    for first, second in pairs:  # afterwards everything is open that stays open
        await play_game(job(first, second, sandbox))
    gc.collect()  # objects of earlier tests do not count
    before, own = descriptors(), children()
    for first, second in pairs:
        await play_game(job(first, second, sandbox))
    assert len(descriptors()) <= len(before), set(descriptors().items()) ^ set(before.items())
    assert children() <= own


@pytest.mark.parametrize(
    "delay_ms", [0, 5, *(pytest.param(delay, marks=pytest.mark.kill) for delay in (1, 2, 10, 30))]
)
@pytest.mark.parametrize("tier", TIERS)
async def test_a_game_that_is_cancelled_leaves_nothing(
    tmp_path: Path, mark: str, tier: str, delay_ms: int
) -> None:
    reaper.mark()  # its pipe stays open until this process ends
    before = len(descriptors())
    players = (marked_bot(tmp_path, mark, "--do", "hang", "--reply", "1"), marked_bot(tmp_path, mark))
    sandbox = sandbox_of(tier)
    record: GameRecord | None = None
    with trio.move_on_after(delay_ms / 1000) as scope:
        record = await play_game(job(*players, sandbox))
    assert scope.cancelled_caught
    assert record is None
    assert living_with(mark) == []
    assert len(descriptors()) <= before + 1  # the listing itself


@pytest.mark.parametrize("tier", ["confined", "weak"])
def test_a_bot_that_was_only_started_can_be_closed(tmp_path: Path, mark: str, tier: str) -> None:
    for _ in range(3):
        bot = Bot(0, marked_bot(tmp_path, mark), os.environb, sandbox=sandbox_of(tier))
        bot.kill()
        bot.close()
        assert living_with(mark) == []


def test_a_file_that_is_no_program_is_found_before_anything_is_started(tmp_path: Path) -> None:
    with pytest.raises(NotRunnableError, match="there is no file bot"):
        Bot(0, Player("bot", (str(tmp_path / "bot"),), str(tmp_path)), os.environb, sandbox=needs_sandbox())
