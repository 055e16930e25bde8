"""Starting a bot and what can go wrong with it: whose fault it is, and that nothing is left behind."""

import gc
import os
import random
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import trio

from referee.errors import RefereeError
from referee.judge.clock import TimeControl
from referee.judge.limits import Limits
from referee.judge.results import GameRecord, Player
from referee.play import Job, play_game
from referee.process import launch
from referee.process.bot import Bot
from referee.process.launch import NotRunnableError
from referee.sandbox import reaper
from referee.sandbox.bubblewrap import Sandbox
from tests.builders import KALARENA
from tests.confinement import (
    TIERS,
    kill_all_with,
    living_with,
    needs_sandbox,
    outcome,
    reading_bot,
    sandbox_of,
)

CONTROL = TimeControl(move_s=20, start_s=20)
LIMITS = Limits(end_grace_s=0.2)
SMALL = "kalah(3,2)"
SCRIPTED_BOT = Path(__file__).with_name("scripted_bot.py")
GONE_WITHIN_S = 10.0
"""So long after its referee was killed a bot may live: milliseconds where cores are free."""
KILLS = 24
"""Of referees, in each tier."""
LOOK_MS = 1
"""How often it is looked whether a referee has started a bot."""


def job(first: Player, second: Player, sandbox: Sandbox) -> Job:
    return Job("k", SMALL, (first, second), CONTROL, LIMITS, sandbox=sandbox)


@pytest.fixture
def mark(tmp_path: Path) -> Iterator[str]:
    """A word on the command lines of a test's bots, which are ended with it."""
    word = f"mark-{os.getpid()}-{tmp_path.name}"
    yield word
    kill_all_with(word)


def marked_bot(folder: Path, mark: str, *arguments: str) -> Player:
    """The scripted bot under a name by which it can be found."""
    script = folder / f"{mark}.py"
    shutil.copyfile(SCRIPTED_BOT, script)
    return Player(
        "marked", (sys.executable, "-S", str(script), *arguments), str(folder), reads=(str(script),)
    )


def program_that_cannot_run(folder: Path, what: str) -> tuple[str, ...]:
    program = folder / "bot"
    if what == "missing":
        return (str(program),)
    if what == "directory":
        program.mkdir()
    elif what == "loader":
        if shutil.which("gcc") is None:
            pytest.skip("needs gcc")
        (folder / "bot.c").write_text("int main(void) { return 0; }")
        linker = "-Wl,--dynamic-linker=/nonexistent/loader"
        subprocess.run(["gcc", "-o", str(program), linker, "bot.c"], cwd=folder, check=True, timeout=60)
    elif what == "machine":
        head = bytearray(Path(sys.executable).read_bytes()[:4096])
        head[18:20] = b"\xf3\xf3"  # a machine that there is not
        program.write_bytes(head)
        program.chmod(0o755)
    else:
        texts = {
            "interpreter": "#!/nowhere/python\n",
            "mode": "#!/bin/sh\n",
            "no-program": "print('MOVE;1')\n",
        }
        texts |= {
            "crlf": "#!/bin/sh\r\n",
            "empty": "",
            "nul": "#!/bin/sh\n",
            "env": "#!/usr/bin/env nowhere-at-all\n",
        }
        program.write_text(texts[what], newline="")
        program.chmod(0o644 if what == "mode" else 0o755)
    return (str(program), "a\0b") if what == "nul" else (str(program),)


@pytest.mark.parametrize("seat", [0, 1])
@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("missing", "there is no file bot"),
        ("directory", "bot is a directory"),
        ("loader", "needs a loader or an interpreter that is not on this system"),
        ("interpreter", "names an interpreter that is not there"),
        ("crlf", "CR LF"),
        ("mode", "is not executable: chmod +x bot"),
        ("no-program", "a script needs a first line"),
        ("empty", "a script needs a first line"),
        ("machine", "must be compiled for this system"),
        ("nul", "cannot be run"),
    ],
)
async def test_what_cannot_be_run(
    tmp_path: Path, mark: str, what: str, words: str, tier: str, seat: int
) -> None:
    command = program_that_cannot_run(tmp_path, what)
    culprit = Player("culprit", command, str(tmp_path), reads=(str(tmp_path),))
    honest = reading_bot(f"--do={mark}", name="victim")
    players = (culprit, honest) if seat == 0 else (honest, culprit)
    record = await play_game(job(*players, sandbox_of(tier)))
    assert outcome(record) == (1 - seat, "start", "not-runnable"), record.result
    assert words in record.result.detail
    assert str(tmp_path) not in record.result.detail  # where it lies is nobody's business
    assert record.moves == []
    assert living_with(mark) == []


@pytest.mark.parametrize("tier", TIERS)
async def test_a_directory_that_is_not_there(tmp_path: Path, tier: str) -> None:
    culprit = Player("culprit", ("/bin/true",), str(tmp_path / "gone"))
    record = await play_game(job(culprit, reading_bot(), sandbox_of(tier)))
    assert outcome(record) == (1, "start", "not-runnable"), record.result
    assert "its directory is not there" in record.result.detail


@pytest.mark.parametrize("tier", TIERS)
async def test_env_that_finds_nothing_is_an_end_by_itself(tmp_path: Path, tier: str) -> None:
    """env itself was run; it ended with 127.  With something in front of it we say what would come of it."""
    player = Player(
        "culprit", program_that_cannot_run(tmp_path, "env"), str(tmp_path), reads=(str(tmp_path),)
    )
    record = await play_game(job(player, reading_bot(), sandbox_of(tier)))
    assert record.result.winner == 1
    assert record.result.reason.value in ("start", "exit")


def failing_bwrap(folder: Path, text: str) -> Sandbox:
    sandbox = needs_sandbox()
    program = folder / "bwrap"
    program.write_text(text)
    program.chmod(0o755)
    return replace(sandbox, tools=replace(sandbox.tools, bwrap=str(program)))


@pytest.mark.parametrize(
    "text", ["#!/bin/sh\nexit 1\n", "#!/bin/sh\necho no room >&2; exit 1\n", "#!/bin/sh\nexit 0\n"]
)
async def test_a_sandbox_that_fails_is_no_loss(tmp_path: Path, text: str) -> None:
    sandbox = failing_bwrap(tmp_path, text)
    with pytest.raises(RefereeError, match="the sandbox could not be made") as raised:
        await play_game(job(reading_bot(), reading_bot(), sandbox))
    assert ("no room" in str(raised.value)) == ("no room" in text)


@pytest.mark.parametrize("program", ["/bin/false", "/nowhere/bwrap"])
async def test_a_sandbox_that_cannot_be_run_is_no_loss(program: str) -> None:
    sandbox = needs_sandbox()
    sandbox = replace(sandbox, tools=replace(sandbox.tools, bwrap=program))
    with pytest.raises(RefereeError):
        await play_game(job(reading_bot(), reading_bot(), sandbox))


async def test_a_sandbox_that_tells_nonsense_is_no_loss(tmp_path: Path) -> None:
    sandbox = failing_bwrap(
        tmp_path, f"#!{sys.executable}\nimport os, sys\nos.write(int(sys.argv[2]), b'nonsense\\n')\n"
    )
    with pytest.raises(RefereeError, match="something unknown"):
        await play_game(job(reading_bot(), reading_bot(), sandbox))


async def test_a_guard_that_cannot_be_started_is_no_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    """Though the error's number is one that a bot's command is blamed for."""
    game = job(reading_bot(), reading_bot(), sandbox_of("confined"))
    monkeypatch.setattr(reaper, "_reaper", None)
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with pytest.raises(RefereeError, match=r"could not start a guard for sandboxes: .*No such file"):
        await play_game(game)


async def test_a_sandbox_that_hangs_is_no_loss(
    tmp_path: Path, mark: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launch, "SETUP_LIMIT_S", 0.2)
    sandbox = failing_bwrap(tmp_path, f"#!/bin/sh\nexec sleep 30 # {mark}\n")
    began = trio.current_time()
    with pytest.raises(RefereeError, match="the sandbox could not be made"):
        await play_game(job(reading_bot(f"--do={mark}"), reading_bot(), sandbox))
    assert trio.current_time() - began < 5
    assert living_with(mark) == []


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


@pytest.mark.parametrize("tier", TIERS)
async def test_no_descriptor_and_no_process_is_left_by_many_games(tmp_path: Path, tier: str) -> None:
    sandbox = sandbox_of(tier)
    missing = Player("culprit", (str(tmp_path / "bot"),), str(tmp_path))
    pairs = [
        (reading_bot(), reading_bot()),
        (reading_bot("--do", "exit"), reading_bot()),
        (missing, reading_bot()),
        (reading_bot(), missing),
    ]
    for first, second in pairs:  # what is kept for good, is kept by now
        await play_game(job(first, second, sandbox))
    gc.collect()  # what tests before this one have not let go of is not ours to count
    before, own = descriptors(), children()
    for number in range(12):
        await play_game(job(*pairs[number % len(pairs)], sandbox))
    assert len(descriptors()) <= len(before), set(descriptors().items()) ^ set(before.items())
    assert children() <= own


@pytest.mark.parametrize("delay_ms", [0, 1, 2, 5, 10, 30])
@pytest.mark.parametrize("tier", TIERS)
async def test_a_game_that_is_cancelled_leaves_nothing(
    tmp_path: Path, mark: str, tier: str, delay_ms: int
) -> None:
    before = len(descriptors())
    players = (marked_bot(tmp_path, mark, "--do", "hang"), marked_bot(tmp_path, mark))
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
    for _ in range(5):
        bot = Bot(0, marked_bot(tmp_path, mark), os.environb, sandbox=sandbox_of(tier))
        bot.kill()
        bot.close()
        assert living_with(mark) == []


def test_a_file_that_is_no_program_is_told_before_anything_is_started(tmp_path: Path) -> None:
    with pytest.raises(NotRunnableError, match="there is no file bot"):
        Bot(0, Player("bot", (str(tmp_path / "bot"),), str(tmp_path)), os.environb, sandbox=needs_sandbox())


def gone_in_time(mark: str) -> bool:
    """Whether all processes with the mark end in time; those that live now are waited for."""
    until = time.monotonic() + GONE_WITHIN_S
    while left := living_with(mark):
        for pid in left:
            try:
                pidfd = os.pidfd_open(pid)
            except ProcessLookupError:
                continue
            select.select([pidfd], [], [], max(0.0, until - time.monotonic()))
            os.close(pidfd)
        if time.monotonic() > until:
            return living_with(mark) == []
    return True


@pytest.mark.slow
def test_a_killed_referee_leaves_nothing(tmp_path: Path, mark: str) -> None:
    """SIGKILL of `kalarena play` at random moments, most of them while it starts the bots."""
    needs_sandbox()
    _kill_often(tmp_path, mark, ["--sandbox", "required"])


@pytest.mark.slow
def test_a_killed_referee_leaves_nothing_in_the_weak_tier(tmp_path: Path, mark: str) -> None:
    """The same where there is no bubblewrap: a PATH without it."""
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ("setpriv", "prlimit", "sh"):
        (programs / name).symlink_to(shutil.which(name) or "/nowhere")
    _kill_often(tmp_path, mark, ["--sandbox", "auto"], str(programs))


def _kill_often(folder: Path, mark: str, options: list[str], path: str | None = None) -> None:
    bot = folder / f"{mark}.py"
    bot.write_text("import sys\nfor line in sys.stdin: pass\n")
    command = [str(KALARENA), "play", str(bot), str(bot), "--move-time", "60", *options]
    environment = {**os.environ, **({"PATH": path} if path else {})}
    chance = random.Random(1)
    for number in range(KILLS):
        process = subprocess.Popen(
            command, env=environment, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        pidfd = os.pidfd_open(process.pid)
        try:
            poller = select.poll()
            poller.register(pidfd, select.POLLIN)
            # The program itself needs 0.2 s and more until it starts a bot: from there on it is killed.
            while not _children_of(process.pid):
                assert not poller.poll(LOOK_MS)
            if number >= 3 * KILLS // 4:  # and these once a bot lives, however slow the machine is
                while len(living_with(mark)) < 2:
                    assert not poller.poll(LOOK_MS)
            assert not poller.poll(chance.uniform(0, 60))
            process.kill()
            process.wait()
        finally:
            process.kill()
            process.wait()
            os.close(pidfd)
        assert gone_in_time(mark), [Path(f"/proc/{pid}/cmdline").read_text() for pid in living_with(mark)]


def _children_of(pid: int) -> str:
    return Path(f"/proc/{pid}/task/{pid}/children").read_text()
