"""Attacks on the writable working directory: races with its making, kills, floods of files, shared places."""

import os
import re
import signal
import subprocess
import sys
import time
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import msgpack
import pytest
import trio
from sqlalchemy import text

import referee.process.bot
from referee.errors import RefereeError
from referee.judge.limits import Limits
from referee.judge.results import GameRecord, Player
from referee.process.bot import Bot
from referee.sandbox.working_directory import COPIED_FILE_BYTES
from tests.builders import invoke
from tests.confinement import living_with, needs_sandbox
from tests.places import store_of_revision
from tests.test_confined_bots import LIMITS, SMALL
from tests.test_working_directory import ATTEMPT, bot, played
from tournaments.database.sqlite import SQLiteFile
from tournaments.results.store import Store

REPOSITORY = Path(__file__).resolve().parent.parent
KALARENA = str(Path(sys.executable).parent / "kalarena")
SECRET = "the secret of the host"
GONE_WITHIN_S = 10.0
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


def to_link(place: Path, target: Path) -> None:
    place.rename(place.with_name("was " + place.name))
    place.symlink_to(target)


def swap_file(folder: Path, host: Path) -> None:
    to_link(folder / "log.txt", host / "secret.txt")


def swap_folder(folder: Path, host: Path) -> None:
    to_link(folder / "data", host)


def swap_deep_folder(folder: Path, host: Path) -> None:
    to_link(folder / "data" / "deep", host)


def to_pipe(folder: Path, _: Path) -> None:
    (folder / "log.txt").unlink()
    os.mkfifo(folder / "log.txt")


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


@pytest.mark.parametrize("swap", [swap_file, swap_folder, swap_deep_folder, to_pipe])
@pytest.mark.parametrize("moment", ["launch", "await_sandbox"])
async def test_what_becomes_a_link_while_the_sandbox_is_made_is_left_out(
    victim: Player,
    host: Path,
    monkeypatch: pytest.MonkeyPatch,
    swap: Callable[[Path, Path], None],
    moment: str,
) -> None:
    """``launch`` is after the plan and before the mounts, ``await_sandbox`` after these, before the copy."""
    original = getattr(referee.process.bot, moment)

    def swapped(*arguments: object) -> object:
        found = original(*arguments)
        if not (Path(victim.cwd) / "done").exists():
            (Path(victim.cwd) / "done").touch()
            swap(Path(victim.cwd), host)
        return found

    monkeypatch.setattr(referee.process.bot, moment, swapped)
    record = await played(victim)
    assert SECRET not in record.stderr[0]
    assert "bot.py changed: changed" in record.stderr[0]
    assert unharmed(host)


async def test_a_bound_file_that_becomes_a_link_is_found_out(
    victim: Player, host: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = getattr(referee.process.bot, "launch")  # noqa: B009 - mypy: it is imported there

    def swapped(*arguments: object) -> object:
        to_link(Path(victim.cwd) / "engine.bin", host / "secret.txt")
        return original(*arguments)

    monkeypatch.setattr(referee.process.bot, "launch", swapped)
    with pytest.RaisesGroup(pytest.RaisesExc(RefereeError, match="was replaced"), allow_unwrapped=True):
        await played(victim)


async def test_a_bot_whose_whole_directory_is_replaced_does_not_start(
    victim: Player, host: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = getattr(referee.process.bot, "await_sandbox")  # noqa: B009 - the same

    def swapped(*arguments: object) -> object:
        to_link(Path(victim.cwd), host)
        return original(*arguments)

    monkeypatch.setattr(referee.process.bot, "await_sandbox", swapped)
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
ROUNDS_OF_RACE = 25


def test_a_process_that_swaps_files_all_the_time_gets_nothing_shown(victim: Player, host: Path) -> None:
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


# One bot's own program, and two games at a time


async def test_a_bot_can_replace_its_own_program_and_run_it(tmp_path: Path) -> None:
    code = """
if "second" not in sys.argv:
    program = get("bot.py")
    os.rename("bot.py", "first.py")
    put("bot.py", program.replace("played by the first", "played by the second"))
    os.execv(sys.executable, [sys.executable, "bot.py", "second"])
sys.stderr.write("played by the first\\n")
"""
    player = bot(tmp_path / "bot", code)
    program = (tmp_path / "bot" / "bot.py").read_bytes()
    record = await played(player)
    assert record.result.fault is None, (record.result, record.stderr)
    assert record.stderr[0] == "played by the second\n"
    assert (tmp_path / "bot" / "bot.py").read_bytes() == program
    assert [path.name for path in (tmp_path / "bot").iterdir()] == ["bot.py"]


async def test_two_games_at_the_same_time_share_nothing(tmp_path: Path) -> None:
    code = """
import time
places = [".", "/tmp", os.environ["HOME"], "/dev/shm"]
began = time.monotonic()
mine = f"left-{time.monotonic_ns()}"
for place in places:
    put(f"{place}/{mine}", "left")
time.sleep(1.5)
found = [name for place in places for name in os.listdir(place) if "left-" in name and name != mine]
sys.stderr.write(f"{began} {time.monotonic()} {found}\\n")
"""
    player = bot(tmp_path / "bot", code)
    records: list[GameRecord] = []

    async def play() -> None:
        records.append(await trio.to_thread.run_sync(lambda: trio.run(played, player)))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(play)
        nursery.start_soon(play)
    said = [record.stderr[0].split(" ", 2) for record in records]
    assert [line[2] for line in said] == ["[]\n", "[]\n"]
    assert max(float(line[0]) for line in said) < min(float(line[1]) for line in said), "one after the other"


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


async def test_a_game_leaves_no_file_mount_or_descriptor(tmp_path: Path) -> None:
    name = f"litter-{os.getpid()}-a"
    player = bot(tmp_path / "bot", LITTER.replace("sys.argv[1]", repr(name)))
    await played(player)  # whatever is opened once
    before = (open_descriptors(), mounts())
    await played(player)
    assert (open_descriptors(), mounts()) == before
    assert left_of(name) == []


@pytest.mark.parametrize("after_s", [None, 0.0, 0.002, 0.005, 0.01, 0.02, 0.04])
def test_a_referee_that_is_killed_leaves_nothing(tmp_path: Path, after_s: float | None) -> None:
    """In the midst of a game, or so long after the sandbox's first process was begun."""
    name = f"litter-{os.getpid()}-{after_s}"
    bot(
        tmp_path / "bot",
        LITTER.replace("sys.argv[1]", repr(name)) + "time.sleep(600)\n",
    )
    for number in range(20):
        (tmp_path / "bot" / f"{number}.txt").write_bytes(bytes(100_000))
    home = tmp_path / "home"
    home.mkdir()
    before = mounts()
    environment = {**os.environ, "TMPDIR": str(home)}
    words = [KALARENA, "play", str(tmp_path / "bot"), "greedy", "--sandbox", "required", "--start-time", "60"]
    referee_process = subprocess.Popen(
        words, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        until = time.monotonic() + 60
        while not any(is_bubblewrap(pid) for pid in descendants_of(referee_process.pid)):
            assert referee_process.poll() is None
            assert time.monotonic() < until
        if after_s is None:
            while not any(is_bot(pid) for pid in descendants_of(referee_process.pid)):
                assert referee_process.poll() is None
                assert time.monotonic() < until
                time.sleep(0.01)
            time.sleep(0.5)
        else:
            time.sleep(after_s)
    finally:
        referee_process.send_signal(signal.SIGKILL)
        referee_process.wait()
    until = time.monotonic() + GONE_WITHIN_S
    while left := living_with(str(tmp_path / "bot")):
        assert time.monotonic() < until, [Path(f"/proc/{pid}/cmdline").read_bytes() for pid in left]
        time.sleep(0.05)
    assert left_of(name) == []
    assert list(home.iterdir()) == []
    assert mounts() == before


def command_of(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def is_bubblewrap(pid: int) -> bool:
    return b"kalarena-sandbox-" in command_of(pid)[:40] or b"--json-status-fd" in command_of(pid)


def is_bot(pid: int) -> bool:
    return (
        command_of(pid).endswith(b"bot.py\0") and b"bwrap" not in command_of(pid) and not is_bubblewrap(pid)
    )


def descendants_of(pid: int) -> list[int]:
    found: list[int] = []
    try:
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
    except OSError:  # it ended meanwhile
        return found
    for task in tasks:
        try:
            children = [int(word) for word in (task / "children").read_text().split()]
        except OSError:
            continue
        for child in children:
            found += [child, *descendants_of(child)]
    return found


# Many files, kept


FLOOD = """
put("0 first.txt", "wanted")
os.mkdir("many")
for number in range(100_000):
    os.close(os.open(f"many/{number}", os.O_CREAT | os.O_WRONLY))
put("1 last.txt", "wanted")
"""


def kept_in(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_playing_keeps_files_beside_a_flood(tmp_path: Path) -> None:
    bot(tmp_path / "bot", FLOOD)
    kept = tmp_path / "kept"
    words = ("--sandbox", "required", "--keep-files", kept, "--move-time", "60", "--start-time", "60")
    done = invoke("play", tmp_path / "bot", "first_legal", "--game", SMALL, *words)
    assert done.exit_code == 0, done.output
    names = kept_in(kept / "files-1-bot")
    assert len(names) <= 100
    assert any("first.txt" in name for name in names), names


@pytest.mark.slow
def test_a_tournament_keeps_files_beside_a_flood(tmp_path: Path) -> None:
    """The bot makes 100,000 files, and has a folder of 9,000 that it cannot change."""
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


# Records and tournaments of before


def as_before(packed: bytes) -> bytes:
    """A record as it was written before working directories could be written."""
    data = msgpack.unpackb(packed, unicode_errors="surrogatepass")
    data.pop("kept_files", None)
    for name in ("directory_mb", "directory_files"):
        del data["limits"][name]
    old: bytes = msgpack.packb(data, unicode_errors="surrogatepass")
    return old


async def test_a_record_of_before_is_read(tmp_path: Path) -> None:
    record = await played(bot(tmp_path / "bot", ""))
    old = GameRecord.from_msgpack(as_before(record.to_msgpack()))
    assert old == record
    assert old.kept_files == ((), ())
    view = record.to_json()
    for name in ("directory_mb", "directory_files"):
        del view["limits"][name]
    assert GameRecord.from_json(view).limits == Limits(**view["limits"])


def test_a_tournament_of_before_goes_on(tmp_path: Path) -> None:
    file = tmp_path / "cup.toml"
    file.write_text(f'name = "cup"\ngame = "{SMALL}"\nbots = ["first_legal", "greedy", "random:1"]\n')
    out = tmp_path / "out"
    assert invoke("tournament", "run", file, "--out", out).exit_code == 0
    before = invoke("tournament", "table", out, "--format", "csv").output
    with store_of_revision(SQLiteFile(out / "results.db"), "0003") as connection:
        noted = connection.execute(text("SELECT config FROM tournament")).scalar_one()
        assert "directory_" not in noted
        for key, packed in connection.execute(text("SELECT key, record FROM game")).all():
            old = zlib.compress(as_before(zlib.decompress(packed)))
            connection.execute(
                text("UPDATE game SET record = :record WHERE key = :key"), {"record": old, "key": key}
            )
        connection.execute(text("DELETE FROM game WHERE key = 'r001-2v1'"))
    assert invoke("tournament", "run", file, "--out", out).exit_code == 0
    assert invoke("tournament", "table", out, "--format", "csv").output == before
    assert invoke("verify", out).output.splitlines()[-1] == "6 games verified, nothing wrong"
