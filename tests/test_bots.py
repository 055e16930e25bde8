"""From what a user writes for a bot to the command that starts it."""

import os
import shlex
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sample_bots.catalog import sample_bot_command
from tournaments.bots.errors import BotError
from tournaments.bots.resolve import resolve_bot

OR_A_COMMAND = ', or write the command that runs it, such as "node bot.js" or "java -cp . Bot"'


def make_file(path: Path, text: str = "input()\n", *, executable: bool = False) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755 if executable else 0o644)
    return path


@pytest.fixture
def java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A java that is never run, alone on PATH."""
    program = make_file(tmp_path / "programs" / "java", "#!/bin/sh\n", executable=True)
    monkeypatch.setenv("PATH", str(program.parent))
    return str(program)


def refusal(text: str, base: Path) -> str:
    with pytest.raises(BotError) as raised:
        resolve_bot(text, base)
    assert "\n" not in str(raised.value)
    return str(raised.value)


# Sample bots


@pytest.mark.parametrize("text", ["first_legal", "random:7", "greedy", "minimax:3"])
def test_sample_bot(tmp_path: Path, text: str) -> None:
    player = resolve_bot(text, tmp_path)
    assert player.name == text
    assert player.command == tuple(sample_bot_command(text) or ())
    assert player.cwd == str(tmp_path)
    assert len(player.digest) == 64


def test_option_that_a_sample_bot_does_not_take(tmp_path: Path) -> None:
    assert "minimax takes a depth" in refusal("minimax:deep", tmp_path)


def test_a_name_of_ones_own(tmp_path: Path) -> None:
    make_file(tmp_path / "x" / "bot.py")
    for text in ("greedy", "x", "x/bot.py", f"{shlex.quote(sys.executable)} x/bot.py"):
        assert resolve_bot(text, tmp_path, "Name").name == "Name"


# Directories


def test_directory_with_bot_py(tmp_path: Path) -> None:
    """bot.py runs with our interpreter, whatever else is there, executable or not."""
    for executable in (False, True):
        script = make_file(tmp_path / f"alpha{executable}" / "bot.py", executable=executable)
        make_file(script.parent / "tool", executable=True)
        player = resolve_bot(script.parent.name, tmp_path)
        assert player.name == script.parent.name
        assert player.command == (sys.executable, str(script))
        assert player.cwd == str(script.parent)


def test_directory_with_one_jar(tmp_path: Path, java: str) -> None:
    jar = make_file(tmp_path / "beta" / "Agent.jar")
    make_file(tmp_path / "beta" / "build.sh", executable=True)
    assert resolve_bot("beta/", tmp_path).command == (java, "-jar", str(jar))


def test_directory_with_one_executable(tmp_path: Path) -> None:
    program = make_file(tmp_path / "gamma" / "engine", executable=True)
    make_file(tmp_path / "gamma" / "notes.txt")
    make_file(tmp_path / "gamma" / ".hidden", executable=True)
    player = resolve_bot("gamma", tmp_path)
    assert player.command == (str(program),)
    assert player.name == "gamma"


@pytest.mark.parametrize(
    ("names", "complaint"),
    [
        (["b.jar", "a.jar"], "holds several jar files, a.jar, b.jar: name the one to run"),
        (["run", "build"], "holds several executable files, build, run: name the one to run"),
        (["-notes.txt"], "holds no bot: expected bot.toml, bot.py, one .jar file or one executable file"),
        ([], "holds no bot: expected bot.toml, bot.py"),
    ],
)
def test_directory_without_one_bot(tmp_path: Path, names: list[str], complaint: str) -> None:
    (tmp_path / "delta").mkdir()
    for name in names:
        make_file(tmp_path / "delta" / name.lstrip("-"), executable=not name.startswith("-"))
    assert f"{tmp_path / 'delta'} {complaint}" in refusal("delta", tmp_path)


def test_directory_named_from_within(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = make_file(tmp_path / "epsilon" / "bot.py")
    monkeypatch.chdir(script.parent)
    player = resolve_bot(".", Path.cwd())
    assert (player.name, player.cwd) == ("epsilon", str(script.parent))


def test_directory_with_things_that_are_no_plain_files(tmp_path: Path) -> None:
    """Emacs locks a file with a link to nowhere; a named pipe would keep a reader waiting for ever."""
    script = make_file(tmp_path / "zeta" / "bot.py")
    before = resolve_bot("zeta", tmp_path)
    (script.parent / ".#bot.py").symlink_to("user@host.1234")
    assert resolve_bot("zeta", tmp_path).command == before.command


# Files


def test_python_file(tmp_path: Path) -> None:
    plain = make_file(tmp_path / "plain.py")
    assert resolve_bot("plain.py", tmp_path).command == (sys.executable, str(plain))
    own = make_file(tmp_path / "own.py", "#!/usr/bin/env -S python3 -O\n", executable=True)
    player = resolve_bot(str(own), Path("/"))
    assert player.command == (str(own),)
    assert (player.name, player.cwd) == ("own", str(tmp_path))


def test_executable_file(tmp_path: Path) -> None:
    program = make_file(tmp_path / "bots" / "engine-2.1", executable=True)
    player = resolve_bot("bots/engine-2.1", tmp_path)
    assert player.command == (str(program),)
    assert player.cwd == str(program.parent)


def test_file_that_is_not_executable(tmp_path: Path) -> None:
    program = make_file(tmp_path / "engine")
    assert refusal("engine", tmp_path) == f"{program} is not executable: chmod +x {program}{OR_A_COMMAND}"
    assert (
        refusal("./engine --fast", tmp_path)
        == f"{program} is not executable: chmod +x {program}{OR_A_COMMAND}"
    )


def test_jar_file(tmp_path: Path, java: str) -> None:
    jar = make_file(tmp_path / "Agent.jar")
    assert resolve_bot("Agent.jar", tmp_path).command == (java, "-jar", str(jar))


def test_jar_file_without_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_file(tmp_path / "Agent.jar")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "needs java, which is not on PATH" in refusal("Agent.jar", tmp_path)


def test_spaces_in_a_path(tmp_path: Path) -> None:
    script = make_file(tmp_path / "my best bot" / "bot.py")
    program = make_file(tmp_path / "my best bot" / "the engine", executable=True)
    assert resolve_bot("my best bot", tmp_path).command == (sys.executable, str(script))
    assert resolve_bot("my best bot/the engine", tmp_path).command == (str(program),)
    assert resolve_bot("'my best bot/the engine' -x", tmp_path).command == (str(program), "-x")


# Command lines


def test_command_line_with_quotes(tmp_path: Path) -> None:
    make_file(tmp_path / "agent.py")
    text = f"""{shlex.quote(sys.executable)} agent.py 'two words' "it's" \\$x"""
    player = resolve_bot(text, tmp_path)
    assert player.command == (sys.executable, "agent.py", "two words", "it's", "$x")
    assert (player.name, player.cwd) == ("agent", str(tmp_path))


def test_program_on_path(tmp_path: Path, java: str) -> None:
    assert resolve_bot("java -cp . Agent", tmp_path).command == (java, "-cp", ".", "Agent")
    assert resolve_bot("java", tmp_path).command == (java,)


def test_program_by_a_relative_path_keeps_its_link(tmp_path: Path) -> None:
    """A virtual environment's python is a link: resolved, it would lose its packages."""
    program = make_file(tmp_path / "real", executable=True)
    (tmp_path / "env").mkdir()
    (tmp_path / "env" / "python").symlink_to(program)
    assert resolve_bot("env/python -u x", tmp_path).command == (str(tmp_path / "env" / "python"), "-u", "x")


def test_program_is_absolute_even_if_path_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_file(tmp_path / "programs" / "engine", executable=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", "programs")
    assert Path(resolve_bot("engine -x", tmp_path).command[0]).is_absolute()


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "an empty text names no bot"),
        ("  \t", "an empty text names no bot"),
        (
            "gredy",
            "no such bot: 'gredy'; did you mean 'greedy'? (looked for a sample bot [first_legal, random,",
        ),
        ("minmax:4", "no such bot: 'minmax:4'; did you mean 'minimax'?"),
        ("no/such/bot.py", "no such bot: 'no/such/bot.py' (looked for"),
        ("no-such-program --fast", "no such program: 'no-such-program' (looked for"),
        ("greedy --fast", "no such program: 'greedy'"),
        ("it's", '"it\'s" is no command line: No closing quotation'),
        ("''", "no such bot"),
    ],
)
def test_texts_that_name_nothing(tmp_path: Path, text: str, complaint: str) -> None:
    assert complaint in refusal(text, tmp_path)


@pytest.mark.parametrize("text", ["a\0b", "x y\0z", "~no-such-user-here/bot", "y" * 300, "/" + "y" * 5000])
def test_texts_that_the_system_refuses(tmp_path: Path, text: str) -> None:
    refusal(text, tmp_path)


def test_long_command_line(tmp_path: Path) -> None:
    """Longer than any file's name may be."""
    code = "print('MOVE;1');" * 40
    player = resolve_bot(f"{shlex.quote(sys.executable)} -c {shlex.quote(code)}", tmp_path)
    assert player.command == (sys.executable, "-c", code)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(max_size=20) | st.text("/~.' \"\\a:-\0", max_size=8))
def test_any_text_is_a_bot_or_a_clear_error(tmp_path: Path, text: str) -> None:
    try:
        player = resolve_bot(text, tmp_path)
    except BotError:
        return
    assert Path(player.command[0]).is_absolute()


# Digests


def digest(text: str, base: Path) -> str:
    return resolve_bot(text, base).digest


def test_digest_of_a_directory_follows_its_files(tmp_path: Path) -> None:
    script = make_file(tmp_path / "bot" / "bot.py", "one")
    seen = [digest("bot", tmp_path)]
    script.write_text("two")
    seen.append(digest("bot", tmp_path))
    book = make_file(tmp_path / "bot" / "data" / "book.bin", "x")
    seen.append(digest("bot", tmp_path))
    book.rename(book.with_name("book2.bin"))
    seen.append(digest("bot", tmp_path))
    make_file(tmp_path / "bot" / "empty", "")
    seen.append(digest("bot", tmp_path))
    assert len(set(seen)) == len(seen)
    script.write_text("two")
    assert digest("bot", tmp_path) == seen[-1]


@pytest.mark.parametrize("folder", ["__pycache__", ".git", ".venv", "node_modules", "sub/__pycache__"])
def test_digest_does_not_follow_what_is_no_part_of_a_bot(tmp_path: Path, folder: str) -> None:
    make_file(tmp_path / "bot" / "bot.py")
    make_file(tmp_path / "bot" / "sub" / "part.py")
    before = digest("bot", tmp_path)
    make_file(tmp_path / "bot" / folder / "bot.cpython-311.pyc", "x")
    assert digest("bot", tmp_path) == before


def test_digest_does_not_depend_on_where_a_bot_lies(tmp_path: Path) -> None:
    for place in ("here", "there"):
        make_file(tmp_path / place / "bot" / "bot.py", "same")
        make_file(tmp_path / place / "bot" / "a" / "b.txt", "same")
    assert digest("here/bot", tmp_path) == digest("there/bot", tmp_path)
    assert digest("here/bot/bot.py", tmp_path) == digest("there/bot/bot.py", tmp_path)


def test_digest_of_a_command_line_follows_the_files_it_names(tmp_path: Path) -> None:
    script = make_file(tmp_path / "agent.py", "one")
    command = f"{shlex.quote(sys.executable)} agent.py"
    before = digest(command, tmp_path)
    assert digest(command, tmp_path) == before
    script.write_text("two")
    assert digest(command, tmp_path) != before
    program = make_file(tmp_path / "engine", "one", executable=True)
    before = digest("./engine -x", tmp_path)
    program.write_text("two")
    assert digest("./engine -x", tmp_path) != before


def test_two_halves_of_a_name_are_not_one(tmp_path: Path) -> None:
    """The digest keeps names and contents apart."""
    make_file(tmp_path / "x" / "bot.py", "")
    make_file(tmp_path / "x" / "ab", "c")
    make_file(tmp_path / "y" / "bot.py", "")
    make_file(tmp_path / "y" / "a", "bc")
    assert digest("x", tmp_path) != digest("y", tmp_path)


def test_a_file_name_that_is_nearly_right(tmp_path: Path) -> None:
    make_file(tmp_path / "mybot.py")
    assert "did you mean 'mybot.py'?" in refusal("mybit.py", tmp_path)


def test_a_file_whose_name_is_not_utf8(tmp_path: Path) -> None:
    folder = tmp_path / "bot"
    make_file(folder / "bot.py")
    make_file(Path(os.fsdecode(os.fsencode(folder) + b"/data-\xff.txt")))
    assert resolve_bot("bot", tmp_path).digest


# What a confined bot can read


def test_reads(tmp_path: Path) -> None:
    make_file(tmp_path / "one" / "bot.py")
    file = make_file(tmp_path / "two.py")
    assert resolve_bot("one", tmp_path).reads == (str(tmp_path / "one"),)
    assert resolve_bot("two.py", tmp_path).reads == (str(file),)
    assert resolve_bot("sh two.py one -v", tmp_path).reads == (str(tmp_path / "one"), str(file))


def test_a_typed_program_is_read_with_its_installation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever typed it means it to run; a bot's own file or directory says nothing of that kind."""
    file = make_file(tmp_path / "bots" / "two.py")
    program = make_file(tmp_path / "prefix" / "bin" / "python9", executable=True)
    make_file(tmp_path / "prefix" / "lib" / "python3.9" / "os.py")
    expected = tuple(map(str, (file, tmp_path / "prefix", program)))
    assert resolve_bot(f"{program} two.py", file.parent).reads == expected
    assert resolve_bot("../prefix/bin/python9 two.py", file.parent).reads == expected
    monkeypatch.setenv("PATH", str(program.parent))
    assert resolve_bot("python9 two.py", file.parent).reads == expected
    own = make_file(tmp_path / "bots" / "own", f"#!{program}\n", executable=True)
    link = tmp_path / "bots" / "link"
    link.symlink_to(program)
    assert resolve_bot("own", file.parent).reads == (str(own),)
    assert resolve_bot("link", file.parent).reads == (str(program),)  # the file, and nothing beside it
    plain = make_file(tmp_path / "bots" / "plain", executable=True)
    assert resolve_bot("./plain -x", file.parent).reads == (str(plain),)


def test_a_sample_bot_reads_no_more_than_the_sample_bots_and_the_rules(tmp_path: Path) -> None:
    reads = resolve_bot("greedy", tmp_path).reads
    assert {Path(read).name for read in reads} <= {"sample_bots", "protocol", "referee", "games"}


def test_neither_a_home_nor_the_root_is_part_of_a_bot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home" / "me"
    make_file(home / "bot.py")
    monkeypatch.setenv("HOME", str(home))
    for folder in ("/", "..", str(home.parent), str(home)):
        assert resolve_bot(f"sh bot.py {shlex.quote(folder)}", home).reads == (str(home / "bot.py"),)
    program = make_file(home / "bin" / "tool", executable=True)
    make_file(home / "lib" / "python3.11" / "os.py")
    assert resolve_bot("bin/tool bot.py", home).reads == (str(program), str(home / "bot.py"))


@pytest.mark.parametrize("answer", ["real", "nothing", "failure"])
def test_a_shim_stands_for_the_program_behind_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: str
) -> None:
    real = make_file(tmp_path / "versions" / "bin" / "tool", "#!/bin/sh\n", executable=True)
    shim = make_file(tmp_path / ".pyenv" / "shims" / "tool", "#!/bin/sh\n", executable=True)
    says = {
        "real": f'[ "$1 $2" = "which tool" ] && echo {real}',
        "nothing": "true",
        "failure": f"echo {real}; false",
    }
    make_file(tmp_path / ".pyenv" / "libexec" / "pyenv", f"#!/bin/sh\n{says[answer]}\n", executable=True)
    monkeypatch.setenv("PATH", str(shim.parent))
    expected = real if answer == "real" else shim
    assert resolve_bot("tool --fast", tmp_path).command == (str(expected), "--fast")
