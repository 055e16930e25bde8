"""Builds in the sandbox: real compilers, and build commands that attack the host."""

import os
import select
import shutil
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from referee.process import confined_build
from referee.process.bot import Bot
from referee.sandbox.bubblewrap import Sandbox
from sample_bots.starters_catalog import STARTERS, starter_directory
from tests.support.builders import RUN_LIMIT_S, invoke
from tests.support.building import MAKES, SECRET, BuildFolder, refused
from tests.support.confinement import needs_sandbox
from tests.support.ordinary_user import as_ordinary_user
from tests.support.paths import REPOSITORY_ROOT
from tests.support.processes import kill_all_with, living_with
from tournaments.bots import build as build_module
from tournaments.bots.build import build
from tournaments.bots.errors import BotError, BuildError
from tournaments.bots.resolve import resolve_bot
from tournaments.config.load import load_tournament
from tournaments.results.store import Store
from tournaments.running.runner import open_run


def rows_in_tiers(table: Iterable[str], *quick: str) -> list[object]:
    """Return the names of a table as parameters, of which all but the quick ones have the tier ``attack``."""
    return [name if name in quick else pytest.param(name, marks=pytest.mark.attack) for name in table]


@pytest.fixture
def place(tmp_path: Path) -> Iterator[BuildFolder]:
    made = BuildFolder(tmp_path, f"mark-{os.getpid()}-{tmp_path.name}")
    made.bot.mkdir()
    made.outside.mkdir()
    (made.outside / "secret").write_text(SECRET)
    (made.bot / "bot.c").write_text("int main(void) { return 0; }\n")
    (made.bot / "bot.toml").write_text('command = ["./engine"]\nbuild = ["sh", "make.sh"]\n')
    yield made
    kill_all_with(made.mark)


@pytest.fixture
def sandbox() -> Sandbox:
    return needs_sandbox()


HARMLESS = {
    "writes outside": "for to in {outside}/new {outside}/secret {bot}/new /usr/new /etc/new; do "
    "echo changed > $to; done 2>/dev/null\n",
    "replaces its sources": "echo changed > bot.c; echo changed > bot.toml; echo changed > make.sh; "
    "echo more > Other.java\n",
    "removes its directory's files": "rm -rf bot.c bot.toml .git {bot} 2>/dev/null; true\n",
    "sets bits": "umask 0; touch engine; chmod 6777 engine\n",
    "leaves a process": "mkfifo begun; trap '' HUP TERM; "
    "setsid sh -c 'echo > begun; while :; do sleep 1; done' sh $1 & read word < begun\n",
    "leaves a process that holds the output": "(while :; do sleep 1; done) &\n",
    "takes a link back": "ln -s {outside}/secret engine; rm engine\n",
}
"""Attacks of build commands that end well; only the product may be new after them."""


def test_a_build_does_not_see_paths_of_the_host_on_command_lines(
    place: BuildFolder, sandbox: Sandbox
) -> None:
    """bubblewrap's own, which all processes of the sandbox can read, would have them."""
    command = place.write("cat /proc/[0-9]*/cmdline | tr '\\0' ' ' > engine; chmod +x engine\n")
    assert place.made_by(command, ["engine"], sandbox) == {"bot/engine"}
    lines = (place.bot / "engine").read_text()
    assert "bwrap" in lines
    assert "--ro-bind" not in lines
    assert str(place.bot.parent) not in lines


@pytest.mark.parametrize("name", rows_in_tiers(HARMLESS, "writes outside"))
def test_only_the_product_of_an_attacking_build_is_kept(
    place: BuildFolder, sandbox: Sandbox, name: str
) -> None:
    command = place.write(HARMLESS[name] + MAKES)
    assert place.made_by(command, ["engine"], sandbox) == {"bot/engine"}
    assert (place.bot / "engine").lstat().st_mode == stat.S_IFREG | 0o755
    assert (place.bot / "engine").lstat().st_uid == os.geteuid()


REFUSED: dict[str, tuple[str, str | tuple[str, ...]]] = {
    "a link as the product": ("ln -s /etc/passwd engine", "'engine' is a link, not a file"),
    "a link to a directory": ("ln -s /etc engine", "'engine' is a link, not a file"),
    "a pipe as the product": ("mkfifo engine", "'engine' is not a file"),
    "no product": ("true", "'engine' was not made"),
    "a directory that is empty": ("mkdir engine", "'engine' was not made"),
    "a file of 10 GB": ("truncate -s 10G engine", "ended with exit status"),
    "many files of 10 MB": (
        "mkdir engine; for n in 0 1 2 3 4 5 6 7 8 9; do truncate -s 10M engine/$n; done",
        "made files of more than 64 MB together",
    ),
    "a source as a product": ("mkdir engine; echo > engine/new.java", "'engine' was not made"),
    "all its files": (
        "yes | head -c 60000000 > 0; for n in 1 2 3 4 5 6 7 8 9; do cp 0 $n || exit 3; done",
        "No space left on device",
    ),
    "prints for ever": ("yes to all", "printed over 16 MB: "),
    "ends everything": ("kill -9 -1; sleep 60", "ended with exit status 137"),
    "reads another's files": (
        "cat {outside}/secret && echo could read it; ls /root /home; exit 1",
        "ended with exit status 1: cat: {outside}/secret: No such file or directory",
    ),
    "too much memory": (
        """exec python3 -c 'import os, time
os.fork()
kept = b"x" * (600 << 20)
time.sleep(1000)'
""",
        "used over 1024 MB of memory",
    ),
    # As root it cannot even open the pipe, which is another user's.
    "writes into the sandbox's own pipe": (
        "for file in /proc/$PPID/fd/*; do printf 'end\\0' > $file; done 2>/dev/null\nexit 3",
        ("ended with exit status 3", "wrote into what is the sandbox's own"),
    ),
}
"""Script of a build -> words of the error; with several, one of them."""


@pytest.mark.parametrize("name", rows_in_tiers(REFUSED, "a link as the product", "no product"))
def test_bad_builds_are_refused(place: BuildFolder, sandbox: Sandbox, name: str) -> None:
    script, words = REFUSED[name]
    message = refused(place, place.write(script + "\n"), sandbox)
    choices = (words,) if isinstance(words, str) else words
    assert any(choice.replace("{outside}", str(place.outside)) in message for choice in choices), message
    assert SECRET not in message
    assert len(message) < 3000


def test_what_a_build_makes_beside_the_bots_script_is_named(place: BuildFolder, sandbox: Sandbox) -> None:
    script = place.bot / "engine"
    script.write_text("#!/bin/sh\nexec ./core\n")
    command = place.write(f"until [ core -nt {confined_build.BEGAN} ]; do echo > core; done\n")
    assert 'name all those that the bot needs, as in made = ["core"]' in refused(place, command, sandbox)
    assert place.made_by(command, ["engine", "core"], sandbox) == {"bot/core"}
    assert place.made_by(["true"], ["engine"], sandbox) == set()


def test_a_build_that_reads_its_own_products_is_at_fault(
    place: BuildFolder, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As ``cat /proc/$PPID/fd/11 &`` does: the pipe may be empty between the referee's poll and its read."""
    read = os.read

    def read_after_another_reader(descriptor: int, size: int) -> bytes:
        data = read(descriptor, size)
        return read(descriptor, size) if data.startswith(b"copied") else data

    monkeypatch.setattr(os, "read", read_after_another_reader)
    with pytest.raises(BuildError, match="wrote into what is the sandbox's own") as raised:
        build(place.bot, place.write(f"sleep 1\n{MAKES}"), ["engine"], sandbox)
    assert not raised.value.is_ours


@pytest.mark.attack
def test_too_many_files(place: BuildFolder, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(confined_build, "MAX_PRODUCTS", 20)
    command = place.write("mkdir engine; cd engine; seq 21 | xargs touch\n")
    assert "made more than 20 files" in refused(place, command, sandbox)


ENDLESS = {
    "never ends": (
        "make.sh",
        # A build has a lower priority, which it gets soon after its start.
        'until [ "$(nice)" -ge 10 ]; do sleep 0.01; done\necho begun\nsleep 1000\n',
    ),
    "ignores signals": ("make.sh", "trap '' TERM INT HUP QUIT\necho begun\nwhile :; do sleep 1; done\n"),
    "forks for ever": (
        "make.py",
        """
import os, time
def fork():
    try:
        return os.fork()
    except OSError:
        return None
first = os.getpid()
while True:
    if fork() is None:
        if os.getpid() == first:
            print("begun", flush=True)
        time.sleep(1000)
""",
    ),
}


@pytest.mark.attack
@pytest.mark.parametrize("name", ENDLESS)
def test_an_endless_build_is_ended(
    place: BuildFolder, sandbox: Sandbox, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow_down = confined_build._slow_down

    def slow_down_until_begun(bot: Bot, slowed: set[int]) -> None:
        """Let no time limit pass, however busy the machine is, before the build has printed its word."""
        until = time.monotonic() + RUN_LIMIT_S
        slow_down(bot, slowed)
        while "begun" not in bot.stderr.text() and time.monotonic() < until:
            select.select([bot.errors], [], [], confined_build.LIMITS_POLL_S)
            bot.read_errors()
            slow_down(bot, slowed)

    monkeypatch.setattr(confined_build, "_slow_down", slow_down_until_begun)
    monkeypatch.setattr(build_module, "BUILD_LIMIT_S", 0.5)
    file, script = ENDLESS[name]
    assert "took over 0.5 s: begun" in refused(place, place.write(script, file), sandbox)


@pytest.mark.attack
def test_a_build_has_no_network(place: BuildFolder, sandbox: Sandbox) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        port = server.getsockname()[1]
        script = f"import socket\nsocket.create_connection(('127.0.0.1', {port}), 5).send(b'x')\n"
        command = place.write(script, "make.py")
        assert "Error: [Errno " in refused(place, command, sandbox)
        with pytest.raises(BlockingIOError):
            server.accept()
        subprocess.run([sys.executable, place.bot / "make.py"], check=True, timeout=RUN_LIMIT_S)
        server.accept()[0].close()  # it does reach it where nothing confines it


@pytest.mark.attack
def test_the_attacks_succeed_without_a_sandbox(place: BuildFolder) -> None:
    build(place.bot, place.write(HARMLESS["writes outside"].replace("/usr/new /etc/new", "") + MAKES))
    assert (place.outside / "secret").read_text() == "changed\n"
    build(place.bot, place.write(HARMLESS["replaces its sources"] + "chmod 4755 bot.c\n"))
    assert (place.bot / "bot.c").read_text() == "changed\n"
    assert (place.bot / "bot.c").stat().st_mode & stat.S_ISUID
    build(place.bot, place.write(f"mkfifo pipe; ln -s /etc/passwd link\n{HARMLESS['leaves a process']}"))
    assert stat.S_ISFIFO((place.bot / "pipe").stat().st_mode)
    assert (place.bot / "link").is_symlink()
    assert living_with(place.mark) != []


@pytest.mark.attack
def test_links_in_the_directory_are_replaced_and_not_followed(place: BuildFolder, sandbox: Sandbox) -> None:
    (place.bot / "engine").symlink_to(place.outside / "secret")
    assert place.made_by(place.write("rm engine\n" + MAKES), ["engine"], sandbox) == {"bot/engine"}
    assert not (place.bot / "engine").is_symlink()
    (place.bot / "out").symlink_to(place.outside)
    command = place.write("rm out; mkdir out; echo > out/engine\n")
    message = refused(place, command, sandbox, "out/engine")
    assert "'out/engine' lies below 'out', which is no directory" in message


def test_a_directory_can_be_the_product(place: BuildFolder, sandbox: Sandbox) -> None:
    command = place.write(
        "mkdir -p out/deep; echo 1 > out/one.d; echo 2 > out/deep/two; echo 3 > three; echo > out/bot.d.ts\n"
    )
    made = {"bot/out", "bot/out/one.d", "bot/out/deep", "bot/out/deep/two"}
    assert place.made_by(command, ["out"], sandbox) == made
    assert (place.bot / "out" / "deep" / "two").read_text() == "2\n"
    assert not (place.bot / "three").exists()


@pytest.mark.attack
def test_a_file_does_not_replace_a_directory(place: BuildFolder, sandbox: Sandbox) -> None:
    (place.bot / "engine").mkdir()
    (place.bot / "engine" / "kept").write_text("")
    message = refused(place, place.write("rm -r engine\n" + MAKES), sandbox)
    assert "'engine' is a directory here" in message


@pytest.mark.attack
@pytest.mark.parametrize("closed", [False, True])
def test_a_directory_that_only_its_owner_can_read(place: BuildFolder, sandbox: Sandbox, closed: bool) -> None:
    (place.bot / "inner").mkdir(mode=0o700)
    (place.bot / "inner" / "data").write_text(MAKES)
    (place.bot / "inner" / "data").chmod(0o400)
    place.bot.chmod(0o500 if closed else 0o700)
    command = ["env", "sh", "inner/data"]
    if closed and os.geteuid() != 0:
        with pytest.raises(BuildError, match="could not be kept: Permission denied"):
            build(place.bot, command, ["engine"], sandbox)
    else:
        assert place.made_by(command, ["engine"], sandbox) == {"bot/engine"}
    place.bot.chmod(0o700)


@pytest.mark.attack
def test_a_directory_that_is_too_large(place: BuildFolder, sandbox: Sandbox) -> None:
    with (place.bot / "large").open("wb") as file:
        file.truncate(100 << 20)
        assert "its directory could not be copied" in refused(place, place.write(MAKES), sandbox)


@pytest.mark.parametrize(
    ("made", "words"),
    [
        ("../outside/secret", "'../outside/secret' is not below the bot's directory"),
        ("/etc/passwd", "'/etc/passwd' is not below"),
        (".", "'.' is not below"),
        ("bot.c", "'bot.c' is a source"),
        ("bot.toml", "'bot.toml' is a source, or none of what a build may write"),
        (".git/hooks/post-checkout", "'.git/hooks/post-checkout' is a source, or none"),
    ],
)
def test_invalid_names_of_products(place: BuildFolder, sandbox: Sandbox, made: str, words: str) -> None:
    assert words in refused(place, place.write(MAKES), sandbox, made)


def test_commands_that_cannot_be_run(place: BuildFolder, sandbox: Sandbox) -> None:
    message = refused(place, ["no-such-compiler-anywhere", "x"], sandbox)
    assert "cannot be run: no-such-compiler-anywhere is not on PATH" in message
    assert "ended with exit status 127" in refused(place, ["./gone"], sandbox)
    with pytest.raises(
        BuildError, match="this host's fault, not the bot's: no sandbox holds a build here"
    ) as raised:
        build(place.bot, ["true"], ["engine"], Sandbox())
    assert raised.value.is_ours
    broken = replace(sandbox, tools=replace(sandbox.tools, bwrap="/bin/false"))
    with pytest.raises(BuildError, match="this host's fault") as raised:
        build(place.bot, ["true"], ["engine"], broken)
    assert raised.value.is_ours
    (place.bot / "bot.toml").write_text('command = ["./engine"]\nbuild = ["true"]\nmade = ["engine"]\n')
    with pytest.raises(BotError, match="this host's fault") as not_made:
        resolve_bot(str(place.bot), place.base, game="manchester", build_in=broken)
    assert not_made.value.is_ours


@pytest.mark.parametrize(
    ("command", "within_s"),
    [
        (["python3", "make.sh"], None),
        (["sh", "/dev/ptmx"], 0.5),  # the shell waits for a line, too
        (["sh", "x" * 300], None),
    ],
    ids=["another interpreter", "device", "long name"],
)
def test_only_scripts_of_the_bot_for_a_shell_are_looked_at(
    place: BuildFolder, sandbox: Sandbox, command: list[str], within_s: float | None
) -> None:
    """Python accepts the line ends of Windows, and to read a device could take forever."""
    (place.bot / "make.sh").write_bytes(b"#!/usr/bin/python3\r\nopen('engine', 'w')\r\n")
    try:
        build(place.bot, command, ["engine"], sandbox, within_s)
    except BuildError as error:
        assert "CR LF" not in str(error)  # noqa: PT017 - there may be none
    assert (place.bot / "engine").exists() == (command[0] == "python3")


@pytest.mark.parametrize("command", [["./make.sh"], ["sh", "make.sh"]])
def test_a_script_with_line_ends_of_windows_is_named(place: BuildFolder, command: list[str]) -> None:
    (place.bot / "make.sh").write_bytes(b"#!/bin/sh\r\ncc bot.c\r\n")
    for sandbox in (None, Sandbox()):
        with pytest.raises(BuildError, match=r"the lines of '.*make.sh' end in CR LF, .*save it with LF"):
            build(place.bot, command, ["engine"], sandbox)


def test_the_cache_of_a_build_at_home_is_not_used(place: BuildFolder, sandbox: Sandbox) -> None:
    """CMake ends with an error where its cache is of another directory."""
    for name in ("build/CMakeCache.txt", "build/CMakeFiles/rules", "build/sub/CMakeLists.txt"):
        (place.bot / name).parent.mkdir(parents=True, exist_ok=True)
        (place.bot / name).write_text("")
    command = place.write("ls build/CMakeCache.txt build/CMakeFiles && exit 3; find build > engine\n")
    assert place.made_by(command, ["engine"], sandbox) == {"bot/engine"}
    assert "build/sub/CMakeLists.txt" in (place.bot / "engine").read_text()


NO_MEMORY_LEFT = "this host's fault, not the bot's: the build command .*no memory left"


def count_kills(
    monkeypatch: pytest.MonkeyPatch, host_kills: int, group_kills: tuple[int, int] | None = None
) -> None:
    """Set what the kernel counts during a build."""
    exited = Bot.exited_event
    monkeypatch.setattr(
        Bot,
        "exited_event",
        lambda bot: exited(bot)._replace(host_kills=host_kills, group_kills=group_kills),
    )


@pytest.mark.parametrize(
    ("ends", "host_kills", "group_kills", "words"),
    [
        ("kill -9 $$", 0, (1, 1), "used over 1024 MB of memory"),
        ("kill -9 $$", 0, (0, 1), NO_MEMORY_LEFT),
        ("kill -9 $$", 1, None, NO_MEMORY_LEFT),
        ("sh -c 'kill -9 $$' || exit 2", 1, None, NO_MEMORY_LEFT),  # as make does
        ("exit 2", 1, (0, 0), "ended with exit status 2"),
    ],
)
def test_a_build_that_ends_for_lack_of_memory(
    place: BuildFolder,
    sandbox: Sandbox,
    monkeypatch: pytest.MonkeyPatch,
    ends: str,
    host_kills: int,
    group_kills: tuple[int, int] | None,
    words: str,
) -> None:
    count_kills(monkeypatch, host_kills, group_kills)
    with pytest.raises(BuildError, match=words) as raised:
        build(place.bot, place.write(f"{ends}\n"), ["engine"], sandbox)
    assert raised.value.is_ours == (words == NO_MEMORY_LEFT)


def test_a_build_that_succeeds_while_the_host_kills_others(
    place: BuildFolder, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    count_kills(monkeypatch, host_kills=1)
    assert place.made_by(place.write(MAKES), ["engine"], sandbox) == {"bot/engine"}


def test_a_sandbox_that_fails_after_its_start(place: BuildFolder, sandbox: Sandbox) -> None:
    bwrap = place.base / "bwrap"
    bwrap.write_text(f'#!/bin/sh\nexec {sandbox.tools.bwrap} --ro-bind /nowhere /mnt "$@"\n')
    bwrap.chmod(0o755)
    broken = replace(sandbox, tools=replace(sandbox.tools, bwrap=str(bwrap)))
    failed = r"the sandbox (of the build command failed|could not be made)"  # the latter on a busy host
    words = f"this host's fault, not the bot's: {failed}: .*/nowhere"
    with pytest.raises(BuildError, match=words) as raised:
        build(place.bot, place.write(MAKES), ["engine"], broken)
    assert raised.value.is_ours


# Compilers


@pytest.mark.toolchain
@pytest.mark.parametrize("language", ["cpp", "java"])
def test_a_starter_is_built(place: BuildFolder, sandbox: Sandbox, language: str) -> None:
    starter = STARTERS[language]
    if any(shutil.which(program) is None for program in starter.programs):
        pytest.skip(f"no {', '.join(starter.programs)}")
    folder = place.base / "kit"
    folder.mkdir()
    for file in starter.files:
        shutil.copy(starter_directory(language) / file, folder / file)
    before = set(folder.iterdir())
    player = resolve_bot("kit", place.base, game="manchester", build_in=sandbox)
    made = {path.name for path in set(folder.iterdir()) - before}
    assert made == ({"Bot.class"} if language == "java" else {"bot"})
    digest = player.digest
    assert resolve_bot("kit", place.base, game="manchester", build_in=sandbox).digest == digest  # not again


@pytest.mark.toolchain
def test_all_class_files_belong_to_a_product_that_is_one(place: BuildFolder, sandbox: Sandbox) -> None:
    if shutil.which("javac") is None:
        pytest.skip("no javac")
    (place.bot / "sub").mkdir()
    (place.bot / "sub" / "Far.java").write_text("package sub; public class Far {}\n")
    (place.bot / "Bot.java").write_text("class Bot { static class In { sub.Far far = new sub.Far(); } }\n")
    changed = place.made_by(["javac", "Bot.java"], ["Bot.class"], sandbox)
    assert {name for name in changed if name.endswith(".class")} == {
        "bot/Bot.class",
        "bot/Bot$In.class",
        "bot/sub/Far.class",
    }


def test_a_makefile_and_its_compiler(place: BuildFolder, sandbox: Sandbox) -> None:
    if shutil.which("make") is None or shutil.which("cc") is None:
        pytest.skip("no make, no cc")
    (place.bot / "Makefile").write_text("engine: bot.o\n\tcc -o engine bot.o\n")
    assert place.made_by(["make"], ["engine"], sandbox) == {"bot/engine"}
    subprocess.run([place.bot / "engine"], check=True, timeout=RUN_LIMIT_S)
    (place.bot / "bot.c").write_text("int main(void) { return x; }\n")
    os.utime(place.bot / "engine", (1, 1))
    assert "undeclared identifier" in refused(place, ["make"], sandbox)


@pytest.mark.parametrize("mode", [0o755, 0o700])
def test_a_compiler_on_path_is_visible_in_the_sandbox(
    place: BuildFolder, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch, mode: int
) -> None:
    tools = place.base / "tools" / "bin"
    (tools.parent / "lib" / "modules").mkdir(parents=True)
    tools.mkdir()
    (tools.parent / "lib" / "modules" / "text").write_text(MAKES)
    (tools / "zig").write_text('#!/bin/sh\n. "$(dirname "$0")/../lib/modules/text"\n')
    (tools / "zig").chmod(0o755)
    for path in (tools.parent, *tools.parent.rglob("*")):
        path.chmod(path.stat().st_mode & mode)  # 0o700: installed by root, for root alone
    script = place.write("zig\n")
    assert "not found" in refused(place, script, sandbox)
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    for command in (script, ["zig"]):
        (place.bot / "engine").unlink(missing_ok=True)
        assert place.made_by(command, ["engine"], sandbox) == {"bot/engine"}


# Trusted and untrusted bots


@pytest.mark.slow
def test_builds_are_confined_if_bots_must_be(place: BuildFolder) -> None:
    needs_sandbox()
    place.write("echo changed > {outside}/secret 2>/dev/null\n" + MAKES)
    cup = place.base / "cup.toml"
    cup.write_text('untrusted = true\nbots = ["bot", "greedy"]\n')
    assert load_tournament(cup).bots[0].command == (str(place.bot / "engine"),)
    assert (place.outside / "secret").read_text() == SECRET
    (place.bot / "engine").unlink()
    done = invoke("play", place.bot, "greedy", "--sandbox", "required", "--game", "kalah(2,2)")
    assert done.exit_code == 0, done.output
    assert (place.bot / "engine").exists()
    assert (place.outside / "secret").read_text() == SECRET


def test_builds_for_a_tournament_are_confined_if_the_command_requires_the_sandbox(place: BuildFolder) -> None:
    needs_sandbox()
    place.write("echo changed > {outside}/secret 2>/dev/null\n" + MAKES)
    cup = place.base / "cup.toml"
    cup.write_text('game = "kalah(2,2)"\nbots = ["bot", "greedy"]\n')
    done = invoke("tournament", "run", cup, "--out", place.base / "out", "--sandbox", "required")
    assert done.exit_code == 2, done.output
    assert "1 of 2 bots cannot run confined" in done.stderr  # it was built, and is no bot
    assert (place.bot / "engine").exists()
    assert (place.outside / "secret").read_text() == SECRET


def test_builds_of_late_bots_are_confined_if_the_tournament_requires_the_sandbox(place: BuildFolder) -> None:
    needs_sandbox()
    place.write("echo changed > {outside}/secret 2>/dev/null\n" + MAKES)
    cup, out = place.base / "cup.toml", place.base / "out"
    cup.write_text('game = "kalah(2,2)"\nbots = ["first_legal", "greedy"]\n')
    tournament = load_tournament(cup, "required")
    out.mkdir()
    with Store(out / "results.db") as store:
        open_run(tournament, store, place.base)
    done = invoke("tournament", "add", out, place.bot)
    assert done.exit_code == 0, done.output
    (place.bot / "engine").unlink()
    with Store(out / "results.db") as store:
        assert open_run(tournament, store, place.base).tournament.added[0].name == "bot"
    assert (place.bot / "engine").exists()
    assert (place.outside / "secret").read_text() == SECRET


def test_untrusted_bots_are_not_built_without_a_sandbox(place: BuildFolder) -> None:
    place.write(MAKES)
    with pytest.raises(
        BotError, match=r"has to be built first \(\./engine is not there\).*nothing here conf"
    ):
        resolve_bot("bot", place.base, game="manchester", build_in=Sandbox())
    assert not (place.bot / "engine").exists()
    assert resolve_bot("bot", place.base, game="manchester").command == (str(place.bot / "engine"),)


AS_USER = (
    "test_a_build_does_not_see_paths_of_the_host_on_command_lines",
    "test_only_the_product_of_an_attacking_build_is_kept",
    "test_bad_builds_are_refused[ends everything]",
    "test_bad_builds_are_refused[reads another's files]",
    "test_bad_builds_are_refused[writes into the sandbox's own pipe]",
    "test_an_endless_build_is_ended[never ends]",
    "test_an_endless_build_is_ended[ignores signals]",
    "test_the_attacks_succeed_without_a_sandbox",
    "test_links_in_the_directory_are_replaced_and_not_followed",
    "test_a_directory_that_only_its_owner_can_read",
    "test_a_compiler_on_path_is_visible_in_the_sandbox",
    "test_a_starter_is_built[java]",
)
"""Tests whose outcome depends on the user: owners, modes, priorities, signals, pipes, and visible paths.

tests/attacks tries the limits of an ordinary user's bots; the same code watches those of a build."""


@pytest.mark.attack
@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="this is an ordinary user")
def test_builds_of_an_ordinary_user(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    # The variable makes tests without a sandbox fail, which would pass as skipped.
    pytest_command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not slow"]
    tests = [f"tests/bots/test_build.py::{name}" for name in AS_USER]
    done = subprocess.run(
        as_ordinary_user(
            ["env", "KALARENA_REQUIRE_SANDBOX=1", *pytest_command, f"--basetemp={home / 'base'}", *tests],
            [home],
        ),
        cwd=REPOSITORY_ROOT,
        capture_output=True,
        text=True,
        timeout=1200,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-8000:]
