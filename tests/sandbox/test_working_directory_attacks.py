"""Attacks on the writable working directory: races with its making, floods of files, shared places."""

import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import msgpack
import pytest
import trio

import referee.process.bot
from referee.errors import RefereeError
from referee.games.catalog import AnyGame
from referee.judge.clock import TimeControl
from referee.judge.limits import Limits
from referee.judge.results import GameRecord, Player
from referee.players.function_player import FunctionPlayer
from referee.playing import Job, play_game
from referee.process.bot import Bot
from referee.sandbox.working_directory import COPIED_FILE_BYTES
from sample_bots import first_move
from tests.sandbox.test_confined_bots import LIMITS, SMALL
from tests.sandbox.test_working_directory import ATTEMPT, bot, played
from tests.support.builders import RUN_LIMIT_S, invoke
from tests.support.confinement import needs_sandbox
from tournaments.results.store import Store

SECRET = "the secret of the host"
SHOW = """
for folder, _, names in os.walk("."):
    for name in names:
        path = os.path.join(folder, name)
        attempt(path[2:], lambda: get(path) if os.path.isfile(path) else "no file")
        attempt(path[2:] + " changed", lambda: put(path, "by the bot") or "changed")
"""


@pytest.fixture(autouse=True)
def _sandbox_is_there() -> None:
    needs_sandbox()


# The copy, raced


def to_link(path: Path, target: Path) -> None:
    path.rename(path.with_name("was " + path.name))
    path.symlink_to(target)


def to_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


SWAPS: dict[str, Callable[[Path, Path], None]] = {
    "file": lambda folder, host: to_link(folder / "log.txt", host / "secret.txt"),
    "folder": lambda folder, host: to_link(folder / "data", host),
    "deep folder": lambda folder, host: to_link(folder / "data" / "deep", host),
    "pipe": lambda folder, _: to_pipe(folder / "log.txt"),
    "bound file": lambda folder, host: to_link(folder / "engine.bin", host / "secret.txt"),
    "whole directory": to_link,
}


@pytest.fixture
def host(tmp_path: Path) -> Path:
    """A directory that no bot is part of, with the names of the bot's files."""
    folder = tmp_path / "host"
    folder.mkdir()
    for name in ("secret.txt", "log.txt", "book.txt"):
        (folder / name).write_text(SECRET)
    return folder


@pytest.fixture
def victim(tmp_path: Path) -> Player:
    files = dict.fromkeys(("log.txt", "data/secret.txt", "data/book.txt"), "own")
    player = bot(tmp_path / "bot", SHOW, files)
    (tmp_path / "bot" / "data" / "deep").mkdir()
    (tmp_path / "bot" / "data" / "deep" / "secret.txt").write_text("own")
    (tmp_path / "bot" / "engine.bin").write_bytes(bytes(COPIED_FILE_BYTES + 1))
    return replace(player, digest="")


def unharmed(host: Path) -> bool:
    return {path.name: path.read_text() for path in host.iterdir()} == dict.fromkeys(
        ("secret.txt", "log.txt", "book.txt"), SECRET
    )


@pytest.fixture
def swapped(victim: Player, host: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """Makes a file of the victim another one just before or after a step of the sandbox's making.

    ``launch`` is after the plan and before the mounts, ``await_sandbox`` after these, before the copy.
    """

    def swap_at(name: str, moment: str) -> None:
        when, step = moment.split()
        original = getattr(referee.process.bot, step)
        swaps = [SWAPS[name]]

        def swapping(*arguments: object) -> object:
            if when == "before" and swaps:
                swaps.pop()(Path(victim.cwd), host)
            found = original(*arguments)
            if swaps:
                swaps.pop()(Path(victim.cwd), host)
            return found

        monkeypatch.setattr(referee.process.bot, step, swapping)

    return swap_at


@pytest.mark.slow
@pytest.mark.parametrize("name", ["file", "folder", "deep folder", "pipe"])
@pytest.mark.parametrize("moment", ["after launch", "after await_sandbox"])
async def test_files_that_become_links_while_the_sandbox_is_made_are_left_out(
    victim: Player, host: Path, swapped: Callable[[str, str], None], name: str, moment: str
) -> None:
    swapped(name, moment)
    record = await played(victim)
    assert SECRET not in record.stderr[0]
    assert "bot.py changed: changed" in record.stderr[0]
    assert unharmed(host)


@pytest.mark.parametrize(
    ("name", "moment"), [("bound file", "before launch"), ("whole directory", "before await_sandbox")]
)
async def test_a_bot_whose_mounted_files_are_replaced_does_not_start(
    victim: Player, swapped: Callable[[str, str], None], name: str, moment: str
) -> None:
    swapped(name, moment)
    before = open_descriptors()
    with pytest.RaisesGroup(pytest.RaisesExc(RefereeError, match="was replaced"), allow_unwrapped=True):
        await played(victim)
    assert open_descriptors() <= before


RACER = """
import os, sys
folder, host = sys.argv[1:]
pairs = [("log.txt", host + "/secret.txt"), ("data", host), ("data/deep", host)]
pairs.append(("engine.bin", host + "/log.txt"))
os.chdir(folder)
for name, target in pairs:
    os.symlink(target, name + ".link")
open("ready", "w").close()
while True:
    for name, _ in pairs:
        own, link = name + ".own", name + ".link"
        for old, new in ((name, own), (link, name), (name, link), (own, name)):
            try:
                os.rename(old, new)
            except OSError:
                pass
"""
ROUNDS_OF_RACE = 15


@pytest.mark.attack
def test_a_process_that_swaps_files_all_the_time_makes_no_other_file_visible(
    victim: Player, host: Path
) -> None:
    script = ATTEMPT + SHOW + 'print("shown", flush=True)\ninput()\n'
    (Path(victim.cwd) / "bot.py").write_text(script)
    racer = subprocess.Popen([sys.executable, "-c", RACER, victim.cwd, str(host)])
    started = 0
    try:
        while not (Path(victim.cwd) / "ready").exists():
            assert racer.poll() is None
            time.sleep(0.01)
        for _ in range(ROUNDS_OF_RACE):
            try:
                one = Bot(0, victim, {}, sandbox=needs_sandbox(), limits=LIMITS)
            except RefereeError:
                continue
            try:
                one.wait_ready()
                until = time.monotonic() + 10
                while not one.read_output() and one.output_ended_at is None and time.monotonic() < until:
                    one.read_errors()
                while one.read_errors():
                    pass
                started += "bot.py changed: changed" in one.stderr.text()
                assert SECRET not in one.stderr.text()
            except RefereeError:
                continue
            finally:
                one.kill()
                one.close()
    finally:
        racer.kill()
        racer.wait()
    assert unharmed(host)
    assert started, "every start was refused"


# Two games at a time


@pytest.mark.slow
async def test_two_games_at_the_same_time_share_nothing(tmp_path: Path) -> None:
    """Each bot looks for files once both have made theirs, and lives until both have looked.

    A bot makes its files before it takes START, and looks in its first turn.  Its opponent, a function, makes
    its first two moves at the same time as the opponent in the other game.
    """
    code = """
import time
places = [".", "/tmp", os.environ["HOME"], "/dev/shm"]
mine = f"left-{time.monotonic_ns()}"
for place in places:
    put(f"{place}/{mine}", "left")
start, first_turn = sys.stdin.readline(), sys.stdin.readline()
found = [name for place in places for name in os.listdir(place) if "left-" in name and name != mine]
sys.stderr.write(f"{found}\\n")
print("MOVE;1", flush=True)
"""
    player = bot(tmp_path / "bot", code)
    both = threading.Barrier(2)
    records: list[GameRecord] = []

    async def play_one() -> GameRecord:
        turns = count()

        def choose(game: AnyGame, state: Any) -> Any:
            if next(turns) < 2:
                both.wait(RUN_LIMIT_S)
            return first_move.choose(game, state)

        function = FunctionPlayer(choose)
        players, control = (function.identity, player), TimeControl(move_s=2 * RUN_LIMIT_S)
        job = Job("k", SMALL, players, control, LIMITS, sandbox=needs_sandbox())
        return await play_game(job, players={0: function.start})

    async def play() -> None:
        records.append(await trio.to_thread.run_sync(trio.run, play_one))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(play)
        nursery.start_soon(play)
    assert [(record.result.fault, record.stderr[1]) for record in records] == [(None, "[]\n")] * 2


# What is left


def open_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def mounts() -> list[str]:
    return [line.split(" ", 1)[1] for line in Path("/proc/self/mountinfo").read_text().splitlines()]


LITTER = """
import time
for place in (".", "/tmp", os.environ["HOME"], "/dev/shm"):
    put(f"{place}/{sys.argv[1]}", "left")
"""


def left_of(name: str) -> list[str]:
    return [
        str(Path(folder, entry))
        for place in ("/tmp", "/dev/shm")
        for folder, _, entries in os.walk(place)
        for entry in entries
        if name == entry
    ]


@pytest.mark.slow
async def test_a_game_leaves_no_file_mount_or_descriptor(tmp_path: Path) -> None:
    name = f"litter-{os.getpid()}-a"
    player = bot(tmp_path / "bot", LITTER.replace("sys.argv[1]", repr(name)))
    await played(player)  # whatever is opened once
    before = (open_descriptors(), mounts())
    await played(player)
    assert (open_descriptors(), mounts()) == before
    assert left_of(name) == []


# Many files, kept


FLOOD = """
put("0 first.txt", "wanted")
os.mkdir("many")
for number in range(50_000):
    os.close(os.open(f"many/{number}", os.O_CREAT | os.O_WRONLY))
put("1 last.txt", "wanted")
"""


def kept_in(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


@pytest.mark.attack
def test_playing_keeps_files_beside_a_flood(tmp_path: Path) -> None:
    bot(tmp_path / "bot", FLOOD)
    kept = tmp_path / "kept"
    words = ("--sandbox", "required", "--keep-files", kept, "--move-time", "60", "--start-time", "60")
    done = invoke("play", tmp_path / "bot", "first_legal", "--game", SMALL, *words)
    assert done.exit_code == 0, done.output
    names = kept_in(kept / "files-1-bot")
    assert len(names) <= 100
    assert any("first.txt" in name for name in names), names


@pytest.mark.attack
def test_a_tournament_keeps_files_beside_a_flood(tmp_path: Path) -> None:
    """The bot makes 50,000 files, and has a folder of 9,000 that it cannot change."""
    bot(tmp_path / "bot", FLOOD)
    (tmp_path / "bot" / "own").mkdir()
    for number in range(9000):
        os.close(os.open(tmp_path / "bot" / "own" / str(number), os.O_CREAT | os.O_WRONLY))
    file = tmp_path / "cup.toml"
    file.write_text(
        f'name = "cup"\ngame = "{SMALL}"\nbots = ["{tmp_path / "bot"}", "first_legal"]\n'
        "untrusted = true\nkeep_files = true\n[time]\nmove_s = 60\nstart_s = 60\n"
        "[limits]\ndirectory_files = 200000\n"
    )
    out = tmp_path / "out"
    done = invoke("tournament", "run", file, "--out", out)
    assert done.exit_code == 0, done.output
    folders = sorted(path for path in (out / "games").rglob("files-*") if path.is_dir())
    assert len(folders) == 2
    for folder in folders:
        names = kept_in(folder)
        assert len(names) <= 100
        assert {"first.txt", "last.txt"} <= {re.split(r"20| ", name)[-1] for name in names}, names
    with Store(out / "results.db", read_only=True) as store:
        assert [game.fault for game in store.games()] == [None, None]
    assert invoke("verify", out).output.splitlines()[-1] == "2 games verified, nothing wrong"


# Older records


def as_older(packed: bytes) -> bytes:
    """A record as it was written before working directories could be written."""
    data = msgpack.unpackb(packed, unicode_errors="surrogatepass")
    data.pop("kept_files", None)
    for name in ("directory_mb", "directory_files"):
        del data["limits"][name]
    old: bytes = msgpack.packb(data, unicode_errors="surrogatepass")
    return old


async def test_an_older_record_is_read(tmp_path: Path) -> None:
    record = await played(bot(tmp_path / "bot", ""))
    old = GameRecord.from_msgpack(as_older(record.to_msgpack()))
    assert old == record
    assert old.kept_files == ((), ())
    view = record.to_json()
    for name in ("directory_mb", "directory_files"):
        del view["limits"][name]
    assert GameRecord.from_json(view).limits == Limits(**view["limits"])
