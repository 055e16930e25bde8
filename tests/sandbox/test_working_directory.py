"""The writable working directory of a confined bot, with real bots in a real sandbox."""

import contextlib
import errno
import os
import socket
import stat
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from referee.errors import GameStoppedError, RefereeError
from referee.judge.limits import Limits
from referee.judge.record_rows import WireLine
from referee.judge.results import GameRecord, Player
from referee.playing import Job, play_game
from referee.process.bot import Bot
from referee.sandbox.held_directories import HeldDirectories, written_files
from referee.sandbox.working_directory import (
    COPIED_FILE_BYTES,
    MAX_COPIED_FILES,
    MAX_DEPTH,
    MAX_FOLDER_FILES,
    Placement,
    is_readable_for_all,
)
from tests.sandbox.test_confined_bots import LIMITS, PATIENT, PYTHON_BOT, SMALL, make_environment
from tests.support.confinement import needs_sandbox
from tournaments.bots.resolve import resolve_bot
from tournaments.results.game_files import write_kept_files

ATTEMPT = """
import os, sys
def attempt(name, action):
    try:
        answer = action()
        sys.stderr.write(f"{name}: {answer if isinstance(answer, str) else 'done'}\\n")
    except OSError as error:
        sys.stderr.write(f"{name}: {error.strerror}\\n")
def put(path, text, mode="w"):
    with open(path, mode) as file:
        file.write(text)
def get(path):
    with open(path) as file:
        return file.read()
"""


@pytest.fixture(autouse=True)
def _sandbox_is_there() -> None:
    needs_sandbox()


def bot(folder: Path, code: str, files: Mapping[str, str] | None = None) -> Player:
    folder.mkdir(exist_ok=True)
    for name, text in (files or {}).items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    (folder / "bot.py").write_text(ATTEMPT + code + PYTHON_BOT)
    return resolve_bot(str(folder), folder.parent)


async def played(player: Player, *, limits: Limits = LIMITS, keep_files: bool = False) -> GameRecord:
    players = (player, resolve_bot("first_legal", Path("/")))
    job = Job("k", SMALL, players, PATIENT, limits, sandbox=needs_sandbox(), keep_files=keep_files)
    return await play_game(job)


async def answers(player: Player) -> dict[str, str]:
    """Return the results of a bot's attempts in a game that it plays to the end."""
    record = await played(player)
    assert record.result.fault is None, (record.result, record.stderr)
    return dict(line.split(": ", 1) for line in record.stderr[0].splitlines())


async def test_a_bot_can_change_its_files_and_the_submission_stays_as_it_was(tmp_path: Path) -> None:
    code = """
if "again" not in sys.argv:
    put("bot.py", get("bot.py").replace("first program", "second program"))
    os.execv(sys.executable, [sys.executable, "bot.py", "again"])
attempt("runs", lambda: "the first program")
attempt("resource", lambda: get("data/book.txt"))
attempt("overwrite", lambda: put("log.txt", "new"))
attempt("append", lambda: put("data/book.txt", "+", "a"))
attempt("appended", lambda: get("data/book.txt"))
attempt("new", lambda: put("output.txt", "1"))
attempt("folder", lambda: os.makedirs("made/deep"))
attempt("in it", lambda: put("made/deep/file", "1"))
attempt("rename", lambda: os.rename("old.txt", "renamed.txt"))
attempt("delete", lambda: os.remove("gone.txt"))
attempt("chmod", lambda: os.chmod("log.txt", 0o755))
attempt("own program", lambda: put("bot.py", "", "a"))
attempt("names", lambda: " ".join(sorted(os.listdir("."))))
attempt("time", lambda: str(os.stat("old time").st_mtime_ns))
"""
    files = dict.fromkeys(("log.txt", "old.txt", "gone.txt", "data/book.txt", "old time"), "old")
    player = bot(tmp_path / "bot", code, files)
    os.utime(tmp_path / "bot" / "old time", ns=(10**18, 10**18))
    before = {path: path.stat() for path in (tmp_path / "bot").rglob("*")}
    said = await answers(player)
    assert said.pop("runs") == "the second program"
    assert said.pop("names") == "bot.py data log.txt made old time output.txt renamed.txt"
    assert (said.pop("resource"), said.pop("appended")) == ("old", "old+")
    assert said.pop("time") == str(10**18)
    assert set(said.values()) == {"done"}, said
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "bot").rglob("*")} == {
        path: status.st_mtime_ns for path, status in before.items()
    }
    assert resolve_bot(str(tmp_path / "bot"), tmp_path).digest == player.digest


@pytest.mark.slow
@pytest.mark.parametrize("how", ["file", "command"])
async def test_bots_without_a_directory_of_their_own(tmp_path: Path, how: str) -> None:
    code = """
attempt("names", lambda: " ".join(os.listdir(".")))
attempt("write", lambda: put("log.txt", "1"))
"""
    bot(tmp_path / "bots", code)
    script = tmp_path / "bots" / "bot.py"
    script.write_text("#!/usr/bin/env python3\n" + script.read_text())
    script.chmod(0o755)
    (tmp_path / "bots" / "other.py").touch()
    text = str(script) if how == "file" else "python3 bot.py"
    assert await answers(resolve_bot(text, script.parent)) == {"names": "bot.py", "write": "done"}
    assert sorted(path.name for path in script.parent.iterdir()) == ["bot.py", "other.py"]


READS_AND_WRITES = """
attempt("data", lambda: get("data.txt"))
attempt("write", lambda: put("log.txt", "1"))
"""


async def test_a_bot_in_the_virtual_environment_that_runs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after ``python3 -m venv kalarena; cd kalarena; kalarena new python mybot``."""
    make_environment(tmp_path / "kalarena")
    monkeypatch.setattr(sys, "executable", str(tmp_path / "kalarena" / "bin" / "python"))
    player = bot(tmp_path / "kalarena" / "mybot", READS_AND_WRITES, {"data.txt": "text"})
    assert player.command[0] == sys.executable
    assert await answers(player) == {"data": "text", "write": "done"}
    assert not (tmp_path / "kalarena" / "mybot" / "log.txt").exists()


@pytest.mark.skipif(not os.access("/usr/local", os.W_OK), reason="no file can be made below /usr")
async def test_a_bot_in_a_home_below_usr() -> None:
    with tempfile.TemporaryDirectory(dir="/usr/local") as folder:
        player = bot(Path(folder), READS_AND_WRITES, {"data.txt": "text"})
        assert await answers(player) == {"data": "text", "write": "done"}


async def test_games_share_nothing(tmp_path: Path) -> None:
    player = bot(
        tmp_path / "bot", 'attempt("names", lambda: " ".join(sorted(os.listdir("."))))\nput("left", "")\n'
    )
    for _ in range(2):
        assert await answers(player) == {"names": "bot.py"}


async def test_large_files_and_full_folders_are_read_only(tmp_path: Path) -> None:
    code = """
attempt("large", lambda: put("engine.bin", "1"))
attempt("log", lambda: put("log.txt", "1"))
attempt("many", lambda: put("many/0", "1"))
attempt("git", lambda: put(".git/HEAD", "1"))
"""
    player = bot(tmp_path / "bot", code, {".git/HEAD": "x"})
    with (tmp_path / "bot" / "engine.bin").open("wb") as file:
        file.truncate(1 << 40)  # it takes no space
    (tmp_path / "bot" / "log.txt").write_bytes(bytes(2 * COPIED_FILE_BYTES))
    (tmp_path / "bot" / "many").mkdir()
    for number in range(MAX_FOLDER_FILES + 1):
        (tmp_path / "bot" / "many" / str(number)).touch()
    said = await answers(replace(player, digest=""))
    read_only = "Read-only file system"
    assert said == {"large": read_only, "log": "done", "many": read_only, "git": read_only}


async def test_more_files_than_can_be_copied_leave_the_directory_read_only(tmp_path: Path) -> None:
    player = bot(tmp_path / "bot", 'attempt("write", lambda: put("log.txt", "1"))\n')
    for number in range(MAX_COPIED_FILES + 1):
        (tmp_path / "bot" / f"{number}").touch()
    assert await answers(player) == {"write": "Read-only file system"}


async def test_strange_contents(tmp_path: Path) -> None:
    """Links stay links, and what is no file, folder or link is left out."""
    code = """
attempt("names", lambda: repr(sorted(os.listdir(b"."))))
attempt("link", lambda: os.readlink("link"))
attempt("through", lambda: put("link", "1"))
attempt("secret", lambda: get("secret"))
attempt("deep", lambda: str(sum(len(folders) for _, folders, _ in os.walk("d"))))
"""
    folder = tmp_path / "bot"
    player = bot(folder, code)
    (tmp_path / "outside.txt").write_text("secret")
    (folder / "link").symlink_to(tmp_path / "outside.txt")
    (folder / "secret").symlink_to("/etc/shadow")
    os.mkfifo(folder / "fifo")
    # The path of a socket has at most 107 bytes (unix(7)).
    with socket.socket(socket.AF_UNIX) as listener, contextlib.chdir(folder):
        listener.bind("s")
    Path(os.fsdecode(bytes(folder) + b"/\xff\nx")).write_text("")
    deep = folder
    for _ in range(40):
        deep /= "d" * (1 if deep == folder else 60)
        deep.mkdir()
    said = await answers(player)
    assert said["names"] == repr([b"bot.py", b"d", b"link", b"secret", b"\xff\nx"])
    assert said["link"] == str(tmp_path / "outside.txt")
    assert said["secret"] == "No such file or directory"
    assert said["deep"] == "39"
    assert (tmp_path / "outside.txt").read_text() == "secret"


@pytest.mark.usefixtures("patient_referee")
async def test_the_directory_is_bounded(tmp_path: Path) -> None:
    code = """
def fill():
    with open("big", "wb") as file:
        for _ in range(100):
            file.write(bytes(1 << 20))
attempt("fill", fill)
"""
    player = bot(tmp_path / "bot", code + "sys.exit(3)\n")
    record = await played(player, limits=replace(LIMITS, directory_mb=2))
    assert "fill: No space left on device" in record.stderr[0]
    assert "no space was left in its working directory" in record.result.note
    assert record.result.fault == "disk-full"


@pytest.mark.parametrize("then", ["input()\n", "sys.exit()\n"])
@pytest.mark.usefixtures("patient_referee")
async def test_files_are_counted(tmp_path: Path, then: str) -> None:
    code = 'for number in range(600): open(f"f{number}", "w").close()\n'
    player = bot(tmp_path / "bot", code + then, {f"own{number}": "" for number in range(50)})
    record = await played(player, limits=replace(LIMITS, directory_files=500))
    assert (record.result.winner, record.result.fault) == (1, "too-many-files")
    assert "it made more than 500 files" in record.result.detail


@pytest.mark.parametrize("mode", [0o755, 0o700])
async def test_with_no_space_the_directory_is_read_only(tmp_path: Path, mode: int) -> None:
    """As root, files that only root can read are copied, here into the sandbox's own /tmp."""
    code = 'attempt("write", lambda: put("log.txt", "1"))\nattempt("read", lambda: get("link"))\n'
    player = bot(tmp_path / "bot", code, {"inner/data": "text"})
    (tmp_path / "bot" / "link").symlink_to("inner/data")
    (tmp_path / "bot").chmod(mode)
    record = await played(player, limits=replace(LIMITS, directory_mb=0))
    write = "done" if mode == 0o700 and os.geteuid() == 0 else "Read-only file system"
    assert record.stderr[0] == f"write: {write}\nread: text\n"


HOSTILE = r"""
put("log.txt", "changed")
put("new.txt", "new")
os.mkfifo("fifo")
os.symlink("/etc/passwd", "passwd")
os.link("log.txt", "hard")
put("-rf", "option")
os.makedirs(".git/hooks")
put(".git/config", "hidden")
open(b"line\nfeed\xff\\..\\x", "w").close()
put("n" * 250, "long")
with open("sparse", "w") as file:
    file.truncate(50 << 20)
os.mkdir("closed", 0)
os.mkdir("many")
for number in range(5000):
    open(f"many/{number}", "w").close()
raise SystemExit("crashed")
"""


@pytest.mark.usefixtures("patient_referee")
async def test_files_of_a_bot_that_crashed_are_kept(tmp_path: Path) -> None:
    player = bot(tmp_path / "bot", HOSTILE, {"log.txt": "old", "own.txt": "own", "data/own.txt": "own"})
    record = await played(player, keep_files=True)
    assert record.result.fault == "exited"
    kept = {file.path: file for file in record.kept_files[0]}
    assert record.kept_files[1] == ()
    assert kept[b"log.txt"].content == b"changed"
    assert kept[b"new.txt"].content == b"new"
    assert not {b"fifo", b"passwd", b"own.txt", b"data/own.txt", b"bot.py"} & set(kept)
    assert len(kept) <= 100
    assert sum(len(file.content) for file in kept.values()) <= 1 << 20
    assert kept[b"sparse"].size == 50 << 20
    assert "new.txt" not in str(record.to_json())
    assert GameRecord.from_msgpack(record.to_msgpack()) == record
    target = tmp_path / "kept"
    write_kept_files(target, record.kept_files[0])
    assert stat.S_IMODE(target.stat().st_mode) == 0o700
    paths = list(target.rglob("*"))
    assert {stat.S_IMODE(path.stat().st_mode) for path in paths if path.is_file()} == {0o600}
    names = {path.name for path in paths}
    assert {"%2Drf", "%2Egit", "sparse.end", "log.txt"} <= names
    assert all(name.isprintable() and name.isascii() for name in names)


async def test_nothing_is_kept_unless_asked(tmp_path: Path) -> None:
    record = await played(bot(tmp_path / "bot", 'put("new.txt", "new")\n'))
    assert record.kept_files == ((), ())
    assert b"kept_files" not in record.to_msgpack()


async def test_files_of_a_stopped_game_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its bots are still running when the record is made."""

    def refuse(_bot: Bot) -> None:
        raise OSError("read while it runs")

    monkeypatch.setattr(Bot, "written_files", refuse)
    players = (bot(tmp_path / "bot", "input()\n"), resolve_bot("first_legal", Path("/")))
    job = Job("k", SMALL, players, PATIENT, LIMITS, sandbox=needs_sandbox(), keep_files=True)
    reader, writer = os.pipe()

    def stop(_line: WireLine) -> None:
        os.write(writer, b"x")

    try:
        with pytest.raises(GameStoppedError) as caught:
            await play_game(job, observe=stop, cancel_fd=reader)
    finally:
        os.close(reader)
        os.close(writer)
    assert isinstance(caught.value.unfinished, GameRecord)
    assert caught.value.unfinished.kept_files == ((), ())


# Plans without a sandbox


@contextlib.contextmanager
def finished(plan: Placement, path: Path, target: Path) -> Iterator[HeldDirectories]:
    """Write the copies of a plan into a folder that stands for the sandbox's working directory."""
    target.mkdir()
    held = HeldDirectories(plan.make_writable(path, None), os.open(target, os.O_RDONLY | os.O_DIRECTORY))
    assert held.plan is not None
    assert held.working is not None
    with contextlib.closing(held):
        held.plan.finish(held.working)
        yield held


def test_a_single_file_is_copied_if_it_is_small_and_else_bound(tmp_path: Path) -> None:
    small, large = tmp_path / "bot.py", tmp_path / "weights.bin"
    small.write_text("pass")
    large.write_bytes(bytes(COPIED_FILE_BYTES + 1))
    plan, descriptors = Placement(as_root=False), []  # type: tuple[Placement, list[int]]
    plan.add(small)
    plan.add(large)
    plan.add(tmp_path / "missing")
    words = plan.read_only_words(descriptors)
    (copy,) = descriptors
    assert os.read(copy, 10) == b"pass"
    os.close(copy)
    missing = str(tmp_path / "missing")
    assert words == [
        *("--perms", "0666", "--file", str(copy), str(small)),
        *("--ro-bind", missing, missing, "--ro-bind-try", str(large), str(large)),
    ]
    with finished(plan, tmp_path, tmp_path / "target"):
        assert (tmp_path / "target" / "bot.py").read_text() == "pass"
        assert not (tmp_path / "target" / "weights.bin").exists()


def test_a_folder_whose_files_lie_deeper_is_bound_as_a_whole(tmp_path: Path) -> None:
    deep = tmp_path / "bot" / "data" / "deep"
    deep.mkdir(parents=True)
    for number in range(MAX_FOLDER_FILES):
        (deep / str(number)).touch()
    plan = Placement(as_root=False)
    plan.add(tmp_path / "bot")
    assert set(plan.bound) == {str(tmp_path / "bot" / "data")}


def test_too_many_folders_in_one_another_are_refused(tmp_path: Path) -> None:
    """A folder that the bot's user cannot read has to be copied, however deep it lies."""
    deep = tmp_path / "/".join("d" * (MAX_DEPTH + 2))
    deep.mkdir(parents=True)
    deep.chmod(0o700)
    with pytest.raises(RefereeError, match=f"more than {MAX_DEPTH} folders are in one another"):
        Placement(as_root=True).add(tmp_path)
    deep.chmod(0o755)
    Placement(as_root=True).add(tmp_path)


def test_a_bot_that_vanished_before_its_sandbox_was_made_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "bot"
    folder.mkdir()
    plan = Placement(as_root=False)
    plan.add(folder)
    folder.rmdir()
    with pytest.raises(RefereeError, match=r"bot: could not be opened for the sandbox: .*No such file"):
        plan.read_only_words([])
    assert not is_readable_for_all(folder)


@pytest.mark.parametrize(
    ("number", "is_copied"), [(errno.EINVAL, True), (errno.ENOSYS, True), (errno.ENOSPC, False)]
)
def test_files_are_copied_also_where_sendfile_does_not_work(
    number: int, is_copied: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some file systems have no sendfile; other errors are not hidden."""

    def refuse(*_: object) -> int:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "sendfile", refuse)
    (tmp_path / "bot").mkdir()
    (tmp_path / "bot" / "bot.py").write_text("pass")
    plan = Placement(as_root=False)
    plan.add(tmp_path / "bot")
    expected = contextlib.nullcontext() if is_copied else pytest.raises(OSError, match=os.strerror(number))
    with expected, finished(plan, tmp_path / "bot", tmp_path / "target"):
        assert (tmp_path / "target" / "bot.py").read_text() == "pass"


def test_the_empty_name_of_a_bound_file_is_not_kept(tmp_path: Path) -> None:
    folder, target = tmp_path / "bot", tmp_path / "target"
    folder.mkdir()
    (folder / "weights.bin").write_bytes(bytes(COPIED_FILE_BYTES + 1))
    (folder / "bot.py").write_text("pass")
    plan = Placement(as_root=False)
    plan.add(folder)
    with finished(plan, folder, target) as held:
        (target / "weights.bin").touch()
        (target / "made.txt").touch()
        assert [file.path for file in written_files(held)] == [b"made.txt"]


def test_directories_of_a_process_that_is_no_more_are_our_failure() -> None:
    with pytest.raises(RefereeError, match="a bot's directory could not be opened"):
        HeldDirectories.open(2**22 + 1, None)
