"""Bots on their way to another host, and ready on it."""

import fcntl
import os
import shutil
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from referee.judge.results import Player
from referee.sandbox.bubblewrap import Sandbox
from tournaments.bots.resolve import resolve_bot
from tournaments.engines.remote.extra import ClusterError
from tournaments.engines.remote.host import program_here
from tournaments.engines.remote.packed_bot import (
    KERNELS,
    PACKAGES,
    Need,
    PackedBot,
    needed_programs,
    pack,
    player_here,
    unpack,
)
from tournaments.engines.remote.worker import bot_cache
from tournaments.engines.remote.worker.bot_cache import KEPT_S, BotCache, ProgramsMissingError

SHELL = "#!/bin/sh\necho here\n"


def no_kernels() -> Path:
    raise AssertionError("kernels were requested")


def no_archive(digest: str) -> bytes:
    raise AssertionError(f"{digest} was requested")


def write_bot(folder: Path, files: dict[str, str] | None = None) -> Path:
    """A folder with these files, else with a bot.py."""
    for name, text in (files or {"bot.py": "print()"}).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def program(path: Path, text: str = SHELL) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def sent(player: Player, there: Path) -> tuple[PackedBot, Player]:
    """A bot as it is sent, and as it is on the other host, whose files are in ``there``."""
    packed, archive = pack(player)
    if packed.digest:
        unpack(archive, packed.digest, there)
    return packed, player_here(packed, there, no_kernels)


def prepared(shelf: Path, packed: PackedBot, fetch: Callable[[str], bytes] = no_archive) -> Player:
    return BotCache(shelf, threading.Lock()).prepare(packed, Sandbox(), fetch)


def test_a_folder_arrives_as_it_was_under_another_path(tmp_path: Path) -> None:
    folder = write_bot(tmp_path / "bot", {"bot.py": "", "lib/book.txt": "e4", ".git/hooks": "evil"})
    program(folder / "run.sh")
    (folder / "again").symlink_to("lib")
    (folder / "nowhere").symlink_to("missing")
    player = resolve_bot(str(folder), tmp_path)
    _, here = sent(player, tmp_path / "there")
    home = Path(here.cwd)
    assert home.is_relative_to(tmp_path / "there")
    assert here.reads == (str(home),)
    assert here.command == (sys.executable, str(home / "bot.py"))
    assert sorted(path.name for path in home.iterdir()) == ["again", "bot.py", "lib", "run.sh"]
    assert (home / "again" / "book.txt").read_text() == "e4"
    assert (home / "again").is_symlink()
    assert (home / "run.sh").stat().st_mode & 0o777 == 0o755
    assert replace(here, command=player.command, cwd=player.cwd, reads=player.reads) == player


def test_empty_directories_arrive_too(tmp_path: Path) -> None:
    """A bot may write to them: ``open("logs/x", "w")`` must not fail on another host only."""
    folder = write_bot(tmp_path / "bot")
    (folder / "logs" / "old").mkdir(parents=True)
    (folder / ".git").mkdir()
    _, here = sent(resolve_bot(str(folder), tmp_path), tmp_path / "there")
    assert (Path(here.cwd) / "logs" / "old").is_dir()
    assert not (Path(here.cwd) / ".git").exists()


def test_the_digest_depends_on_files_and_permissions_alone(tmp_path: Path) -> None:
    digests = set()
    for place in ("one", "two"):
        folder = write_bot(tmp_path / place / "bot", {"bot.py": "print()", "a": "1", "b": "2"})
        digests.add(pack(resolve_bot(str(folder), tmp_path, "bot"))[0].digest)
    assert len(digests) == 1
    (folder / "a").chmod(0o755)
    assert pack(resolve_bot(str(folder), tmp_path, "bot"))[0].digest not in digests


def test_damaged_files_are_refused(tmp_path: Path) -> None:
    packed, archive = pack(resolve_bot(str(write_bot(tmp_path / "bot")), tmp_path))
    with pytest.raises(ClusterError, match="damaged"):
        unpack(archive.replace(b"print", b"prinz"), packed.digest, tmp_path / "there")
    assert not (tmp_path / "there").exists()


def test_bots_that_cannot_be_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A link out of the folder may lead to a private file of the head's user."""
    (tmp_path / "secret").write_text("solutions")
    folder = write_bot(tmp_path / "bot")
    (folder / "link").symlink_to(tmp_path / "secret")
    with pytest.raises(ClusterError, match="leads out of"):
        pack(resolve_bot(str(folder), tmp_path))
    (folder / "link").unlink()
    monkeypatch.setattr("tournaments.engines.remote.packed_bot.MOST_BYTES", 1 << 20)
    (folder / "table").write_text("0" * (1 << 20))
    with pytest.raises(ClusterError, match="more than 10000 files or 1 MB"):
        pack(resolve_bot(str(folder), tmp_path))


def test_sample_bots_are_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    packed, archive = pack(resolve_bot("greedy", Path("/")))
    assert (packed.digest, archive, packed.folders) == ("", b"", ())
    for name in list(PACKAGES):
        monkeypatch.setitem(PACKAGES, name, f"/opt/other/{name}")
    monkeypatch.setattr(sys, "executable", "/opt/python")
    here = player_here(packed, Path("/unused"), no_kernels)
    assert here.command[0] == "/opt/python"
    assert "/opt/other/sample_bots/launch.py" in here.command
    assert set(here.reads) == {"/opt/other/protocol", "/opt/other/referee", "/opt/other/sample_bots"}


def test_kernels_are_compiled_on_the_host_that_needs_them(tmp_path: Path) -> None:
    there = "/home/them/.cache/kalarena/kernels-1"
    player = Player("strong", (sys.executable, "x", "--kernels", there), "/", reads=(there,))
    packed = replace(pack(player)[0], folders=(), installed=((there, KERNELS),), digest="")
    here = player_here(packed, tmp_path, lambda: Path("/here"))
    assert here.command[-1] == "/here"
    assert here.reads == ("/here",)


# Command lines


def test_paths_within_words_are_translated_and_others_left_alone(tmp_path: Path) -> None:
    folder = write_bot(tmp_path / "bot", {"Bot.class": "x", "lib/a.jar": "y"})
    (tmp_path / "bot-2").mkdir()
    words = (f"-cp={folder}:{folder}/lib/a.jar", f"{folder}-2", "Bot")
    player = Player("java", ("/bin/sh", *words), str(folder), reads=(str(folder),))
    packed, here = sent(player, tmp_path / "there")
    assert here.command == ("/bin/sh", f"-cp={here.cwd}:{here.cwd}/lib/a.jar", f"{folder}-2", "Bot")
    (tmp_path / "bot-2").rmdir()
    with pytest.raises(ClusterError, match=r"java needs .*bot-2, which is not on this host"):
        player_here(packed, tmp_path / "there", no_kernels)


def test_an_installed_program_may_have_another_path_but_must_exist(tmp_path: Path) -> None:
    player = Player("shell", ("/bin/sh", "bot.sh"), "/")
    packed, _ = pack(player)
    elsewhere = replace(player, command=("/opt/strange/sh", "bot.sh"))
    moved = replace(packed, player=elsewhere, needs=(Need("/opt/strange/sh", is_program=True),))
    assert Path(player_here(moved, tmp_path, no_kernels).command[0]).samefile("/bin/sh")
    missing = replace(moved, needs=(Need("/opt/strange/no-such-program", is_program=True),))
    with pytest.raises(ClusterError, match="needs /opt/strange/no-such-program, which is not on this host"):
        player_here(missing, tmp_path, no_kernels)


@pytest.mark.parametrize("text", ["bots/test", "./bots/test 3"])
def test_a_bots_own_program_is_sent_and_is_no_installed_one_of_its_name(text: str, tmp_path: Path) -> None:
    """Each host has a ``test``, which must neither be demanded nor be played with."""
    program(tmp_path / "cup" / "bots" / "test")
    player = resolve_bot(text, tmp_path / "cup")
    packed, archive = pack(player)
    assert needed_programs(player) == ("/bin/sh",)
    (tmp_path / "cup").rename(tmp_path / "gone")
    unpack(archive, packed.digest, tmp_path / "there")
    here = player_here(packed, tmp_path / "there", no_kernels)
    assert here.command == (here.reads[0], *text.split()[1:])
    assert Path(here.command[0]).is_relative_to(tmp_path / "there")
    assert Path(here.command[0]).read_text() == SHELL
    assert os.access(here.command[0], os.X_OK)


def test_files_outside_of_the_bots_directory_keep_their_relative_positions(tmp_path: Path) -> None:
    solve = program(tmp_path / "else" / "programs" / "solve")
    book = write_bot(tmp_path / "else", {"data/book.bin": "e4"}) / "data" / "book.bin"
    (tmp_path / "cup").mkdir()
    _, here = sent(resolve_bot(f"{solve} {book}", tmp_path / "cup"), tmp_path / "there")
    assert [Path(word).is_relative_to(tmp_path / "there") for word in here.command] == [True, True]
    assert (Path(here.command[0]).parent / "../data/book.bin").samefile(here.command[1])


def test_a_program_is_sent_with_its_libraries_and_an_installation_is_not(tmp_path: Path) -> None:
    solve = program(tmp_path / "cup" / "solver" / "bin" / "solve")
    write_bot(tmp_path / "cup", {"solver/lib/solver.so": ""})
    _, here = sent(resolve_bot("./solver/bin/solve 3", tmp_path / "cup"), tmp_path / "there")
    assert (Path(here.command[0]).parent / "../lib/solver.so").exists()
    java = program(tmp_path / "jdk" / "bin" / "java")
    write_bot(tmp_path / "jdk", {"lib/modules": ""})
    other = write_bot(tmp_path / "other", {"bot.jl": "", "bot.jar": ""})
    for installed, words, own in ((solve, (), "bot.jl"), (java, ("-jar",), "bot.jar")):
        player = resolve_bot(" ".join([str(installed), *words, own]), other)
        packed, here = sent(player, tmp_path / "there" / own)
        assert [name for _, name in packed.folders] == [f"home/{own}", "home"]
        assert Need(str(installed), is_program=True) in packed.needs
        assert here.command == (str(installed), *words, own)
        assert (Path(here.cwd) / own).exists()


def test_a_link_to_an_installed_program_is_not_replaced_by_another_of_its_name(tmp_path: Path) -> None:
    (tmp_path / "test").symlink_to("/bin/sh")
    (tmp_path / "bot.sh").write_text("")
    packed, here = sent(resolve_bot("./test bot.sh", tmp_path), tmp_path / "there")
    assert Need(str(tmp_path / "test"), is_program=False) in packed.needs
    assert here.command[0] == str(tmp_path / "test")
    (tmp_path / "test").unlink()
    with pytest.raises(ClusterError, match=r"needs .*/test, which is not on this host"):
        player_here(packed, tmp_path / "there", no_kernels)


def test_a_link_that_is_the_bot_itself_is_followed(tmp_path: Path) -> None:
    program(tmp_path / "versions" / "solve-2")
    (tmp_path / "solve").symlink_to("versions/solve-2")
    _, here = sent(resolve_bot("./solve 3", tmp_path), tmp_path / "there")
    assert not Path(here.command[0]).is_symlink()
    assert Path(here.command[0]).read_text() == SHELL


# The cache of a host


def test_build_products_are_not_sent_but_built_once_on_each_host(tmp_path: Path) -> None:
    make = "cp source.c made.py; echo 1 >> ../../../../count"
    manifest = 'command = "python3 made.py"\nbuild = "sh make"\nmade = ["made.py"]\n'
    files = {"source.c": "print()", "make": make, "bot.toml": manifest, "made.py": "of another machine"}
    folder = write_bot(tmp_path / "bot", files)
    packed, archive = pack(resolve_bot(str(folder), tmp_path))
    requested: list[str] = []

    def fetch(digest: str) -> bytes:
        requested.append(digest)
        return archive

    folder.rename(tmp_path / "gone")
    for _ in range(2):  # another worker of the same host
        here = prepared(tmp_path / "shelf", packed, fetch)
        assert (Path(here.cwd) / "made.py").read_text() == "print()"
    assert requested == [packed.digest]
    assert (tmp_path / "count").read_text() == "1\n"


def test_the_directory_of_a_product_is_there_when_it_is_built(tmp_path: Path) -> None:
    manifest = 'command = ["bin/bot"]\nbuild = ["cp", "bot.sh", "bin/bot"]\nmade = ["bin/bot"]\n'
    folder = write_bot(tmp_path / "bot", {"bot.toml": manifest})
    program(folder / "bot.sh")
    program(folder / "bin" / "bot", "of another machine")
    packed, _ = pack(resolve_bot(str(folder), tmp_path))
    assert Path(prepared(tmp_path / "shelf", packed).command[0]).read_text() == SHELL


@pytest.mark.skipif(shutil.which("make") is None, reason="no make")
def test_object_files_of_another_host_are_built_again(tmp_path: Path) -> None:
    makefile = "made.py: part.o table\n\tcat part.o table > made.py\npart.o: part.c\n\tcp part.c part.o\n"
    manifest = 'command = "python3 made.py"\nbuild = "make"\nmade = ["made.py"]\n'
    files = {"part.c": "new ", "part.o": "old ", "table": "data", "Makefile": makefile, "bot.toml": manifest}
    packed, _ = pack(resolve_bot(str(write_bot(tmp_path / "bot", files)), tmp_path))
    here = prepared(tmp_path / "shelf", packed)
    assert (Path(here.cwd) / "made.py").read_text() == "new data"


def test_a_bot_that_a_killed_worker_left_incomplete_is_made_again(tmp_path: Path) -> None:
    packed, archive = pack(resolve_bot(str(write_bot(tmp_path / "bot")), tmp_path))
    incomplete = tmp_path / "shelf" / packed.digest / bot_cache.FILES
    write_bot(incomplete, {"stray": ""})
    prepared(tmp_path / "shelf", packed, lambda _: archive)
    assert not (incomplete / "stray").exists()


def test_a_bot_is_on_the_disk_before_it_counts_as_complete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a power cut, a complete bot with empty files would lose each of its games."""
    packed, _ = pack(resolve_bot(str(write_bot(tmp_path / "bot")), tmp_path))
    synced: set[int] = set()
    real_sync, real_touch = os.fsync, Path.touch

    def sync(descriptor: int) -> None:
        synced.add(os.fstat(descriptor).st_ino)
        real_sync(descriptor)

    def touch(self: Path) -> None:
        files = self.with_name(bot_cache.FILES)
        assert {path.stat().st_ino for path in [files, *files.rglob("*")]} <= synced
        real_touch(self)

    monkeypatch.setattr(os, "fsync", sync)
    monkeypatch.setattr(Path, "touch", touch)
    prepared(tmp_path / "shelf", packed)
    assert synced


def test_bots_that_no_game_used_for_a_week_are_removed(tmp_path: Path) -> None:
    shelf, bots = tmp_path / "shelf", {}
    for name, age_s in (("old", KEPT_S + 60), ("used", KEPT_S - 60), ("again", KEPT_S + 60), ("half", None)):
        folder = write_bot(tmp_path / name, {"bot.py": f"print('{name}')"})
        packed, _ = pack(resolve_bot(str(folder), tmp_path))
        ready = shelf / packed.digest / bot_cache.READY
        prepared(shelf, packed)
        if age_s is None:
            ready.unlink()
        else:
            os.utime(ready, (time.time() - age_s, time.time() - age_s))
        bots[name] = (ready, packed)
    prepared(shelf, bots["again"][1])
    BotCache(shelf, threading.Lock()).remove_old()
    assert {name for name, (ready, _) in bots.items() if ready.parent.exists()} == {"used", "again"}
    assert (bots["used"][0].parent / bot_cache.FILES).is_dir()
    prepared(shelf, bots["old"][1])
    assert bots["old"][0].exists()


def test_a_starting_worker_does_not_wait_for_one_that_prepares_a_bot(tmp_path: Path) -> None:
    incomplete = tmp_path / "shelf" / "ab12"
    incomplete.mkdir(parents=True)
    starting = BotCache(tmp_path / "shelf", threading.Lock())
    with incomplete.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        starting.remove_old()
        assert incomplete.exists()
    starting.remove_old()
    assert not incomplete.exists()


def test_nothing_is_sent_if_the_same_files_are_at_the_same_path(tmp_path: Path) -> None:
    folder = write_bot(tmp_path / "bot")
    packed, archive = pack(resolve_bot(str(folder), tmp_path))
    prepared(tmp_path / "one", packed)
    (folder / "bot.py").write_text("another one's")
    here = prepared(tmp_path / "two", packed, lambda _: archive)
    assert (Path(here.cwd) / "bot.py").read_text() == "print()"


@pytest.mark.parametrize("build", ["", 'build = "nobody-has-this"\nmade = ["made"]\n'])
def test_a_program_that_is_missing_on_this_host_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, build: str
) -> None:
    """Whether it starts the bot or builds it: the game is played on a host that has it."""
    (tmp_path / "bin").mkdir()
    name = "nobody-has-this"
    installed = program(tmp_path / "bin" / name, "#!/bin/sh\ntouch made\n")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=":")
    command = "./bot.sh" if build else name
    folder = write_bot(tmp_path / "bot", {"bot.toml": f'command = "{command}"\n{build}'})
    program(folder / "bot.sh")
    packed, archive = pack(resolve_bot(str(folder), tmp_path))
    installed.unlink()
    with pytest.raises(
        ProgramsMissingError, match=f"^lacks {name}, and bot needs that: install it"
    ) as raised:
        prepared(tmp_path / "shelf", packed, lambda _: archive)
    assert [Path(needed).name for needed in raised.value.programs] == [name]


def test_a_failing_build_is_this_hosts_fault(tmp_path: Path) -> None:
    manifest = 'command = "python3 made.py"\nbuild = "false"\nmade = ["made.py"]\n'
    folder = write_bot(tmp_path / "bot", {"bot.py": "", "bot.toml": manifest, "made.py": ""})
    with pytest.raises(ClusterError, match="exit status 1"):
        prepared(tmp_path / "shelf", pack(resolve_bot(str(folder), tmp_path))[0])


@pytest.fixture
def unreadable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A path in another user's directory, as it is for users other than root."""
    folder = tmp_path / "closed" / "cup"
    stat = os.stat

    def refusing(path: int | str | bytes | os.PathLike[str], *arguments: Any, **how: Any) -> os.stat_result:
        if not isinstance(path, int) and Path(os.fsdecode(path)).is_relative_to(folder):
            raise PermissionError(13, "Permission denied", str(path))
        return stat(path, *arguments, **how)

    monkeypatch.setattr(os, "stat", refusing)
    monkeypatch.setattr("genericpath.os.stat", refusing)
    return folder


def test_an_unreadable_directory_counts_as_missing(unreadable: Path, tmp_path: Path) -> None:
    packed, _ = pack(resolve_bot("greedy", Path("/")))
    moved = replace(packed, player=replace(packed.player, cwd=str(unreadable)))
    here = player_here(moved, tmp_path / "there", no_kernels)
    assert Path(here.cwd).is_relative_to(tmp_path / "there")
    needs = replace(moved, needs=(Need(str(unreadable / "jdk/bin/sh"), is_program=True),))
    player_here(needs, tmp_path / "there", no_kernels)
    assert program_here(str(unreadable / "bin" / "no-such-program")) is None
    packed, archive = pack(resolve_bot(str(write_bot(tmp_path / "bot")), tmp_path))
    own = (sys.executable, "bot.py")
    lies = replace(packed.player, cwd=str(unreadable), reads=(str(unreadable),), command=own)
    away = replace(packed, player=lies, folders=((str(unreadable), "home"),), needs=())
    assert (Path(prepared(tmp_path / "shelf", away, lambda _: archive).cwd) / "bot.py").exists()
