"""Bots on their way to another host, and ready on it."""

import fcntl
import os
import sys
import threading
import time
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
    needed_programs,
    pack,
    player_here,
    unpack,
)
from tournaments.engines.remote.worker import bot_cache
from tournaments.engines.remote.worker.bot_cache import KEPT_S, BotCache


def no_kernels() -> Path:
    raise AssertionError("they were not asked for")


def write_bot(folder: Path, **files: str) -> Path:
    folder.mkdir()
    for name, text in files.items():
        path = folder / name.replace("__", "/").replace("_dot_", ".")
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return folder


def cache(folder: Path) -> BotCache:
    return BotCache(folder, threading.Lock())


def never(digest: str) -> bytes:
    raise AssertionError(f"{digest} was asked for")


def test_a_folder_arrives_as_it_was_under_another_path(tmp_path: Path) -> None:
    folder = write_bot(tmp_path / "bot", bot_dot_py="print()", lib__book_dot_txt="e4", _dot_git__hooks="evil")
    (folder / "run.sh").write_text("#!/bin/sh\n")
    (folder / "run.sh").chmod(0o755)
    (folder / "again").symlink_to("lib")
    (folder / "nowhere").symlink_to("missing")
    player = resolve_bot(str(folder), tmp_path)
    packed, archive = pack(player)
    unpack(archive, packed.digest, tmp_path / "there")
    here = player_here(packed, tmp_path / "there", no_kernels)
    home = Path(here.cwd)
    assert home.is_relative_to(tmp_path / "there")
    assert here.reads == (str(home),)
    assert here.command == (sys.executable, str(home / "bot.py"))
    assert sorted(path.name for path in home.iterdir()) == ["again", "bot.py", "lib", "run.sh"]
    assert (home / "again" / "book.txt").read_text() == "e4"
    assert (home / "again").is_symlink()
    assert (home / "run.sh").stat().st_mode & 0o777 == 0o755
    assert replace(here, command=player.command, cwd=player.cwd, reads=player.reads) == player


def test_a_bot_that_is_a_program_of_its_own_travels(tmp_path: Path) -> None:
    folder = write_bot(tmp_path / "bot", run_dot_sh="#!/bin/sh\n", bot_dot_toml='command = "./run.sh"\n')
    (folder / "run.sh").chmod(0o755)
    packed, archive = pack(resolve_bot(str(folder), tmp_path))
    unpack(archive, packed.digest, tmp_path / "there")
    folder.rename(tmp_path / "gone")
    here = player_here(packed, tmp_path / "there", no_kernels)
    assert here.command == (f"{here.cwd}/run.sh",)
    assert Path(here.command[0]).is_relative_to(tmp_path / "there")


def test_the_same_files_have_the_same_digest_wherever_and_whenever(tmp_path: Path) -> None:
    digests = set()
    for place in ("one", "two"):
        (tmp_path / place).mkdir()
        folder = write_bot(tmp_path / place / "bot", bot_dot_py="print()", a="1", b="2")
        digests.add(pack(resolve_bot(str(folder), tmp_path, "bot"))[0].digest)
    assert len(digests) == 1
    (folder / "a").chmod(0o755)
    assert pack(resolve_bot(str(folder), tmp_path, "bot"))[0].digest not in digests


def test_files_that_were_damaged_on_the_way_are_refused(tmp_path: Path) -> None:
    folder = write_bot(tmp_path / "bot", bot_dot_py="print()")
    packed, archive = pack(resolve_bot(str(folder), tmp_path))
    with pytest.raises(ClusterError, match="damaged"):
        unpack(archive.replace(b"print", b"prinz"), packed.digest, tmp_path / "there")
    assert not (tmp_path / "there").exists()


def test_a_link_out_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("solutions")
    folder = write_bot(tmp_path / "bot", bot_dot_py="print()")
    (folder / "link").symlink_to(tmp_path / "secret")
    with pytest.raises(ClusterError, match="leads out of"):
        pack(resolve_bot(str(folder), tmp_path))


def test_sample_bots_stay_and_are_found_where_our_packages_are(monkeypatch: pytest.MonkeyPatch) -> None:
    player = resolve_bot("greedy", Path("/"))
    packed, archive = pack(player)
    assert (packed.digest, archive, packed.folders) == ("", b"", ())
    for name in list(PACKAGES):
        monkeypatch.setitem(PACKAGES, name, f"/opt/other/{name}")
    monkeypatch.setattr(sys, "executable", "/opt/python")
    here = player_here(packed, Path("/unused"), no_kernels)
    assert here.command[0] == "/opt/python"
    assert "/opt/other/sample_bots/launch.py" in here.command
    assert set(here.reads) == {"/opt/other/protocol", "/opt/other/referee", "/opt/other/sample_bots"}


def test_compiled_searches_are_compiled_on_the_host_that_needs_them(tmp_path: Path) -> None:
    there = "/home/them/.cache/kalarena/kernels-1"
    player = Player("strong", (sys.executable, "x", "--kernels", there), "/", reads=(there,))
    packed = replace(pack(player)[0], folders=(), installed=((there, KERNELS),), digest="")
    here = player_here(packed, tmp_path, lambda: Path("/here"))
    assert here.command[-1] == "/here"
    assert here.reads == ("/here",)


def test_paths_within_words_are_translated_and_others_left_alone(tmp_path: Path) -> None:
    folder = write_bot(tmp_path / "bot", Bot_dot_class="x", lib__a_dot_jar="y")
    (tmp_path / "bot-2").mkdir()
    words = (f"-cp={folder}:{folder}/lib/a.jar", f"{folder}-2", "Bot")
    player = Player("java", ("/bin/sh", *words), str(folder), reads=(str(folder),))
    packed, _ = pack(player)
    here = player_here(packed, tmp_path / "there", no_kernels)
    assert here.command == ("/bin/sh", f"-cp={here.cwd}:{here.cwd}/lib/a.jar", f"{folder}-2", "Bot")
    (tmp_path / "bot-2").rmdir()
    with pytest.raises(ClusterError, match=r"java needs .*bot-2, which is not on this host"):
        player_here(packed, tmp_path / "there", no_kernels)


def test_a_program_may_lie_elsewhere_but_must_be_there(tmp_path: Path) -> None:
    player = Player("shell", ("/bin/sh", "bot.sh"), "/")
    packed, _ = pack(player)
    elsewhere = replace(player, command=("/opt/strange/sh", "bot.sh"))
    moved = replace(packed, player=elsewhere, needs=(Need("/opt/strange/sh", is_program=True),))
    assert Path(player_here(moved, tmp_path, no_kernels).command[0]).samefile("/bin/sh")
    missing = replace(moved, needs=(Need("/opt/strange/no-such-program", is_program=True),))
    with pytest.raises(ClusterError, match="needs /opt/strange/no-such-program, which is not on this host"):
        player_here(missing, tmp_path, no_kernels)


def test_what_a_build_made_stays_and_is_made_again_once(tmp_path: Path) -> None:
    folder = write_bot(
        tmp_path / "bot", source_dot_c="print()", make="cp source.c made.py; echo 1 >> ../../../../count"
    )
    (folder / "bot.toml").write_text('command = "python3 made.py"\nbuild = "sh make"\nmade = ["made.py"]\n')
    (folder / "made.py").write_text("of another machine")
    packed, archive = pack(resolve_bot(str(folder), tmp_path))
    asked: list[str] = []

    def fetch(digest: str) -> bytes:
        asked.append(digest)
        return archive

    folder.rename(tmp_path / "gone")
    for _ in range(2):  # another worker of the same host
        here = cache(tmp_path / "shelf").prepare(packed, Sandbox(), fetch)
        assert (Path(here.cwd) / "made.py").read_text() == "print()"
    assert asked == [packed.digest]
    assert (tmp_path / "count").read_text() == "1\n"


def test_what_a_killed_worker_left_half_made_is_made_again(tmp_path: Path) -> None:
    folder = write_bot(tmp_path / "bot", bot_dot_py="print()")
    packed, archive = pack(resolve_bot(str(folder), tmp_path))
    half = tmp_path / "shelf" / packed.digest / bot_cache.FILES
    half.mkdir(parents=True)
    (half / "stray").write_text("")
    cache(tmp_path / "shelf").prepare(packed, Sandbox(), lambda _: archive)
    assert not (half / "stray").exists()


def test_what_no_game_needed_for_a_week_is_removed(tmp_path: Path) -> None:
    places = {}
    for name, age_s in (("old", KEPT_S + 60), ("used", KEPT_S - 60), ("again", KEPT_S + 60), ("half", None)):
        folder = write_bot(tmp_path / name, bot_dot_py=f"print('{name}')")
        packed, _ = pack(resolve_bot(str(folder), tmp_path))
        place = tmp_path / "shelf" / packed.digest
        cache(tmp_path / "shelf").prepare(packed, Sandbox(), never)
        if age_s is None:
            (place / bot_cache.READY).unlink()
        else:
            moment = time.time() - age_s
            os.utime(place / bot_cache.READY, (moment, moment))
        places[name] = (place, packed)
    cache(tmp_path / "shelf").prepare(places["again"][1], Sandbox(), never)
    cache(tmp_path / "shelf").remove_old()
    assert {name for name, (place, _) in places.items() if place.exists()} == {"used", "again"}
    assert (places["used"][0] / bot_cache.FILES).is_dir()
    cache(tmp_path / "shelf").prepare(places["old"][1], Sandbox(), never)  # it is made again
    assert (places["old"][0] / bot_cache.READY).exists()


def test_who_starts_does_not_wait_for_who_makes_a_bot(tmp_path: Path) -> None:
    (tmp_path / "shelf" / "ab12").mkdir(parents=True)  # and so it is not ready
    with (tmp_path / "shelf" / "ab12.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        cache(tmp_path / "shelf").remove_old()
        assert (tmp_path / "shelf" / "ab12").exists()
    cache(tmp_path / "shelf").remove_old()
    assert not (tmp_path / "shelf" / "ab12").exists()


def test_nothing_is_sent_where_the_same_files_are_at_the_same_path(tmp_path: Path) -> None:
    folder = write_bot(tmp_path / "bot", bot_dot_py="print()")
    packed, archive = pack(resolve_bot(str(folder), tmp_path))
    cache(tmp_path / "one").prepare(packed, Sandbox(), never)
    (folder / "bot.py").write_text("another one's")
    here = cache(tmp_path / "two").prepare(packed, Sandbox(), lambda _: archive)
    assert (Path(here.cwd) / "bot.py").read_text() == "print()"


def test_a_build_that_fails_here_is_this_hosts_fault(tmp_path: Path) -> None:
    folder = write_bot(tmp_path / "bot", bot_dot_py="print()")
    (folder / "bot.toml").write_text('command = "python3 made.py"\nbuild = "false"\nmade = ["made.py"]\n')
    (folder / "made.py").write_text("")
    packed, _ = pack(resolve_bot(str(folder), tmp_path))
    with pytest.raises(ClusterError, match="exit status 1"):
        cache(tmp_path / "shelf").prepare(packed, Sandbox(), never)


def test_a_bot_that_is_too_large_is_not_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tournaments.engines.remote.packed_bot.MOST_BYTES", 1 << 20)
    folder = write_bot(tmp_path / "bot", bot_dot_py="print()", table="0" * (1 << 20))
    with pytest.raises(ClusterError, match="more than 10000 files or 1 MB"):
        pack(resolve_bot(str(folder), tmp_path))


def own_program(path: Path, text: str = "#!/bin/sh\necho here\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


@pytest.mark.parametrize("text", ["bots/test", "./bots/test 3"])
def test_a_program_of_the_bots_own_travels_and_is_no_other_of_its_name(text: str, tmp_path: Path) -> None:
    """There is a ``test`` on each host: it must neither be asked for nor be played with."""
    program = own_program(tmp_path / "cup" / "bots" / "test")
    player = resolve_bot(text, tmp_path / "cup")
    packed, archive = pack(player)
    assert needed_programs([player]) == ("/bin/sh",)
    (tmp_path / "cup").rename(tmp_path / "gone")
    unpack(archive, packed.digest, tmp_path / "there")
    here = player_here(packed, tmp_path / "there", no_kernels)
    assert here.command == (here.reads[0], *text.split()[1:])
    assert Path(here.command[0]).is_relative_to(tmp_path / "there")
    assert Path(here.command[0]).read_text() == "#!/bin/sh\necho here\n"
    assert os.access(here.command[0], os.X_OK)
    assert not program.exists()


def test_what_lies_outside_a_bots_directory_keeps_its_place_to_one_another(tmp_path: Path) -> None:
    program = own_program(tmp_path / "else" / "programs" / "solve")
    book = tmp_path / "else" / "data" / "book.bin"
    book.parent.mkdir()
    book.write_text("e4")
    (tmp_path / "cup").mkdir()
    player = resolve_bot(f"{program} {book}", tmp_path / "cup")
    packed, archive = pack(player)
    unpack(archive, packed.digest, tmp_path / "there")
    here = player_here(packed, tmp_path / "there", no_kernels)
    assert [Path(word).is_relative_to(tmp_path / "there") for word in here.command] == [True, True]
    assert (Path(here.command[0]).parent / "../data/book.bin").samefile(here.command[1])


def test_a_program_travels_with_its_libraries_but_no_installation_does(tmp_path: Path) -> None:
    program = own_program(tmp_path / "cup" / "solver" / "bin" / "solve")
    (tmp_path / "cup" / "solver" / "lib").mkdir()
    (tmp_path / "cup" / "solver" / "lib" / "solver.so").write_text("")
    packed, archive = pack(resolve_bot("./solver/bin/solve 3", tmp_path / "cup"))
    unpack(archive, packed.digest, tmp_path / "there")
    here = player_here(packed, tmp_path / "there", no_kernels)
    assert (Path(here.command[0]).parent / "../lib/solver.so").exists()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "bot.jl").write_text("")
    packed, _ = pack(resolve_bot(f"{program} bot.jl", tmp_path / "other"))
    assert [name for _, name in packed.folders] == ["home/bot.jl", "home"]
    assert Need(str(program), is_program=True) in packed.needs


def test_a_link_to_what_is_installed_is_not_taken_for_another_of_its_name(tmp_path: Path) -> None:
    (tmp_path / "test").symlink_to("/bin/sh")
    (tmp_path / "bot.sh").write_text("")
    packed, archive = pack(resolve_bot("./test bot.sh", tmp_path))
    assert Need(str(tmp_path / "test"), is_program=False) in packed.needs
    unpack(archive, packed.digest, tmp_path / "there")
    assert player_here(packed, tmp_path / "there", no_kernels).command[0] == str(tmp_path / "test")
    (tmp_path / "test").unlink()
    with pytest.raises(ClusterError, match=r"needs .*/test, which is not on this host"):
        player_here(packed, tmp_path / "there", no_kernels)


def test_a_link_that_is_the_bot_itself_is_followed(tmp_path: Path) -> None:
    own_program(tmp_path / "versions" / "solve-2")
    (tmp_path / "solve").symlink_to("versions/solve-2")
    packed, archive = pack(resolve_bot("./solve 3", tmp_path))
    unpack(archive, packed.digest, tmp_path / "there")
    here = player_here(packed, tmp_path / "there", no_kernels)
    assert not Path(here.command[0]).is_symlink()
    assert Path(here.command[0]).read_text() == "#!/bin/sh\necho here\n"


def test_an_installation_stays_wherever_it_lies(tmp_path: Path) -> None:
    java = own_program(tmp_path / "jdk" / "bin" / "java")
    (tmp_path / "jdk" / "lib").mkdir()
    (tmp_path / "jdk" / "lib" / "modules").write_text("")
    (tmp_path / "bot.jar").write_text("")
    packed, archive = pack(resolve_bot(f"{java} -jar bot.jar", tmp_path))
    assert [name for _, name in packed.folders] == ["home/bot.jar", "home"]
    assert Need(str(java), is_program=True) in packed.needs
    unpack(archive, packed.digest, tmp_path / "there")
    here = player_here(packed, tmp_path / "there", no_kernels)
    assert here.command == (str(java), "-jar", "bot.jar")
    assert (Path(here.cwd) / "bot.jar").exists()


@pytest.fixture
def closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory of somebody else, as it is for who is not root."""
    folder = tmp_path / "closed"
    folder.mkdir()
    stat = os.stat

    def may_not(path: int | str | bytes | os.PathLike[str], *arguments: Any, **how: Any) -> os.stat_result:
        if not isinstance(path, int) and Path(os.fsdecode(path)).is_relative_to(folder / "cup"):
            raise PermissionError(13, "Permission denied", str(path))
        return stat(path, *arguments, **how)

    monkeypatch.setattr(os, "stat", may_not)
    monkeypatch.setattr("genericpath.os.stat", may_not)
    return folder / "cup"


def test_a_directory_that_is_closed_to_us_here_is_as_one_that_is_not_here(
    closed: Path, tmp_path: Path
) -> None:
    packed, _ = pack(resolve_bot("greedy", Path("/")))
    moved = replace(packed, player=replace(packed.player, cwd=str(closed)))
    here = player_here(moved, tmp_path / "there", no_kernels)
    assert Path(here.cwd).is_relative_to(tmp_path / "there")
    needs = replace(moved, needs=(Need(str(closed / "jdk/bin/sh"), is_program=True),))
    player_here(needs, tmp_path / "there", no_kernels)
    assert program_here(str(closed / "bin" / "no-such-program")) is None
    folder = write_bot(tmp_path / "bot", bot_dot_py="print()")
    packed, archive = pack(resolve_bot(str(folder), tmp_path))
    lies = replace(packed.player, cwd=str(closed), reads=(str(closed),), command=(sys.executable, "bot.py"))
    away = replace(packed, player=lies, folders=((str(closed), "home"),), needs=())
    here = cache(tmp_path / "shelf").prepare(away, Sandbox(), lambda _: archive)
    assert (Path(here.cwd) / "bot.py").exists()
