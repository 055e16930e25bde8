"""Builds in the sandbox: real compilers, and build commands that attack."""

import contextlib
import os
import shutil
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from referee.process import confined_build
from referee.process.bot import Bot
from referee.sandbox.bubblewrap import Sandbox
from sample_bots.starters_catalog import STARTERS, starter_directory
from tests.build_place import MAKES, SECRET, Place, refused
from tests.confinement import kill_all_with, living_with, needs_sandbox
from tests.ordinary_user import as_ordinary_user
from tournaments.bots import build as build_module
from tournaments.bots.build import build
from tournaments.bots.errors import BotError, BuildError
from tournaments.bots.resolve import resolve_bot
from tournaments.cli.main import main
from tournaments.config.load import load_tournament


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    made = Place(tmp_path, f"mark-{os.getpid()}-{tmp_path.name}")
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


# What a build command does that ends well, though it tried what it must not.
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


@pytest.mark.parametrize("name", HARMLESS)
def test_what_is_left_outside_is_the_product_alone(place: Place, sandbox: Sandbox, name: str) -> None:
    command = place.write(HARMLESS[name] + MAKES)
    assert place.made_by(command, ["engine"], sandbox) == {"bot/engine"}
    assert (place.bot / "engine").lstat().st_mode == stat.S_IFREG | 0o755
    assert (place.bot / "engine").lstat().st_uid == os.geteuid()


# What a build command does -> what is said of it.
REFUSED = {
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
    "a source in a product": ("mkdir engine; echo > engine/new.java", "'engine/new.java' is a source"),
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
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(place: Place, sandbox: Sandbox, name: str) -> None:
    script, words = REFUSED[name]
    said = refused(place, place.write(script + "\n"), sandbox)
    assert words.replace("{outside}", str(place.outside)) in said
    assert SECRET not in said
    assert len(said) < 3000


def test_too_many_files(place: Place, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(confined_build, "MAX_PRODUCTS", 20)
    command = place.write("mkdir engine; cd engine; seq 21 | xargs touch\n")
    assert "made more than 20 files" in refused(place, command, sandbox)


def test_a_build_that_talks_in_the_sandboxs_place(place: Place, sandbox: Sandbox) -> None:
    """As root it cannot even open the pipe, which is another user's."""
    script = "for file in /proc/$PPID/fd/*; do printf 'end\\0' > $file; done 2>/dev/null\nexit 3\n"
    said = refused(place, place.write(script), sandbox)
    assert "ended with exit status 3" in said or "wrote into what is the sandbox's own" in said


SLOW_DOWN = confined_build._slow_down
ENDLESS = {
    "never ends": ("make.sh", "echo begun\nsleep 1000\n"),
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


@pytest.mark.parametrize("name", ENDLESS)
def test_what_never_ends(place: Place, sandbox: Sandbox, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build_module, "BUILD_LIMIT_S", 1.5)
    file, script = ENDLESS[name]
    niceness: set[int] = set()

    def slow_down(bot: Bot, slowed: set[int]) -> None:
        SLOW_DOWN(bot, slowed)
        for pid in slowed:
            with contextlib.suppress(ProcessLookupError):
                niceness.add(os.getpriority(os.PRIO_PROCESS, pid))

    monkeypatch.setattr(confined_build, "_slow_down", slow_down)
    assert "took over 1.5 s: begun" in refused(place, place.write(script, file), sandbox)
    assert niceness <= {confined_build.NICENESS, os.getpriority(os.PRIO_PROCESS, 0)}
    assert confined_build.NICENESS in niceness


def test_too_much_memory(place: Place, sandbox: Sandbox) -> None:
    script = """
import os, time
os.fork()
kept = b"x" * (600 << 20)
time.sleep(1000)
"""
    assert "used over 1024 MB of memory" in refused(place, place.write(script, "make.py"), sandbox)


def test_there_is_no_network(place: Place, sandbox: Sandbox) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        port = server.getsockname()[1]
        script = f"import socket\nsocket.create_connection(('127.0.0.1', {port}), 5).send(b'x')\n"
        command = place.write(script, "make.py")
        assert "Error: [Errno " in refused(place, command, sandbox)
        with pytest.raises(BlockingIOError):
            server.accept()
        subprocess.run([sys.executable, place.bot / "make.py"], check=True, timeout=20)
        server.accept()[0].close()  # it does reach it where nothing confines it


def test_the_attacks_work_where_nothing_confines_them(place: Place) -> None:
    build(place.bot, place.write(HARMLESS["writes outside"].replace("/usr/new /etc/new", "") + MAKES))
    assert (place.outside / "secret").read_text() == "changed\n"
    build(place.bot, place.write(HARMLESS["replaces its sources"] + "chmod 4755 bot.c\n"))
    assert (place.bot / "bot.c").read_text() == "changed\n"
    assert (place.bot / "bot.c").stat().st_mode & stat.S_ISUID
    build(place.bot, place.write(f"mkfifo pipe; ln -s /etc/passwd link\n{HARMLESS['leaves a process']}"))
    assert stat.S_ISFIFO((place.bot / "pipe").stat().st_mode)
    assert (place.bot / "link").is_symlink()
    assert living_with(place.mark) != []


def test_links_in_the_directory_lead_nowhere(place: Place, sandbox: Sandbox) -> None:
    """They were there before the build; what it makes is written in their place, or not at all."""
    (place.bot / "engine").symlink_to(place.outside / "secret")
    assert place.made_by(place.write("rm engine\n" + MAKES), ["engine"], sandbox) == {"bot/engine"}
    assert not (place.bot / "engine").is_symlink()
    (place.bot / "out").symlink_to(place.outside)
    command = place.write("rm out; mkdir out; echo > out/engine\n")
    said = refused(place, command, sandbox, "out/engine")
    assert "'out/engine' lies below 'out', which is no directory" in said


def test_a_directory_that_stands_for_all_that_is_in_it(place: Place, sandbox: Sandbox) -> None:
    command = place.write("mkdir -p out/deep; echo 1 > out/one; echo 2 > out/deep/two; echo 3 > three\n")
    made = {"bot/out", "bot/out/one", "bot/out/deep", "bot/out/deep/two"}
    assert place.made_by(command, ["out"], sandbox) == made
    assert (place.bot / "out" / "deep" / "two").read_text() == "2\n"
    assert not (place.bot / "three").exists()
    os.utime(place.bot / "out", (1, 1))
    build(place.bot, command, ["out/deep"], sandbox)
    assert (place.bot / "out").stat().st_mtime > 1  # else it would be built again and again


def test_a_directory_that_is_no_file(place: Place, sandbox: Sandbox) -> None:
    (place.bot / "engine").mkdir()
    (place.bot / "engine" / "kept").write_text("")
    said = refused(place, place.write("rm -r engine\n" + MAKES), sandbox)
    assert "'engine' is a directory here" in said


@pytest.mark.parametrize("closed", [False, True])
def test_a_directory_for_its_owner_alone(place: Place, sandbox: Sandbox, closed: bool) -> None:
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


def test_a_directory_that_is_too_large(place: Place, sandbox: Sandbox) -> None:
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
def test_products_that_no_build_may_make(place: Place, sandbox: Sandbox, made: str, words: str) -> None:
    said = refused(place, place.write(MAKES), sandbox, made)
    assert words in said


def test_commands_that_cannot_be_run(place: Place, sandbox: Sandbox) -> None:
    said = refused(place, ["no-such-compiler-anywhere", "x"], sandbox)
    assert "cannot be run: no-such-compiler-anywhere is not on PATH" in said
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


# Compilers.


@pytest.mark.parametrize("language", ["cpp", "java"])
def test_a_starter_is_built(place: Place, sandbox: Sandbox, language: str) -> None:
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


def test_all_classes_come_with_one(place: Place, sandbox: Sandbox) -> None:
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


def test_a_makefile_and_its_compiler(place: Place, sandbox: Sandbox) -> None:
    if shutil.which("make") is None or shutil.which("cc") is None:
        pytest.skip("no make, no cc")
    (place.bot / "Makefile").write_text("engine: bot.o\n\tcc -o engine bot.o\n")
    assert place.made_by(["make"], ["engine"], sandbox) == {"bot/engine"}
    subprocess.run([place.bot / "engine"], check=True, timeout=20)
    (place.bot / "bot.c").write_text("int main(void) { return x; }\n")
    os.utime(place.bot / "engine", (1, 1))
    assert "undeclared identifier" in refused(place, ["make"], sandbox)


def test_a_compiler_that_lies_where_our_path_leads(
    place: Place, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools = place.base / "tools" / "bin"
    (tools.parent / "lib" / "modules").mkdir(parents=True)
    tools.mkdir()
    (tools.parent / "lib" / "modules" / "text").write_text(MAKES)
    (tools / "zig").write_text('#!/bin/sh\n. "$(dirname "$0")/../lib/modules/text"\n')
    (tools / "zig").chmod(0o755)
    script = place.write("zig\n")
    assert "not found" in refused(place, script, sandbox)
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    for command in (script, ["zig"]):
        (place.bot / "engine").unlink(missing_ok=True)
        assert place.made_by(command, ["engine"], sandbox) == {"bot/engine"}


# Who asks for a build.


def test_where_bots_must_be_confined_builds_are(place: Place) -> None:
    needs_sandbox()
    place.write("echo changed > {outside}/secret 2>/dev/null\n" + MAKES)
    cup = place.base / "cup.toml"
    cup.write_text('untrusted = true\nbots = ["bot", "greedy"]\n')
    assert load_tournament(cup).bots[0].command == (str(place.bot / "engine"),)
    assert (place.outside / "secret").read_text() == SECRET
    (place.bot / "engine").unlink()
    done = CliRunner().invoke(main, ["play", str(place.bot), "greedy", "--sandbox", "required"])
    assert done.exit_code == 0, done.output
    assert (place.bot / "engine").exists()
    assert (place.outside / "secret").read_text() == SECRET


def test_where_nothing_confines_them_strangers_are_not_built(place: Place) -> None:
    place.write(MAKES)
    with pytest.raises(
        BotError, match=r"has to be built first \(\./engine is not there\).*nothing here conf"
    ):
        resolve_bot("bot", place.base, game="manchester", build_in=Sandbox())
    assert not (place.bot / "engine").exists()
    assert resolve_bot("bot", place.base, game="manchester").command == (str(place.bot / "engine"),)


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="this is an ordinary user")
def test_all_of_this_as_an_ordinary_user(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    # Skipped, all of it would pass.
    required = ("env", "KALARENA_REQUIRE_SANDBOX=1")
    command = [
        *required,
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "tests/test_building.py",
    ]
    done = subprocess.run(
        as_ordinary_user([*command, f"--basetemp={home / 'base'}", "-m", "not slow"], [home]),
        cwd=Path(__file__).parent.parent,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-8000:]
