"""Resolution of a user's text for a bot to the command that starts it, its digest, and the files it reads."""

import os
import shlex
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from referee.games.plugins import GAMES_VARIABLE
from referee.sandbox.runtime_paths import behind_shim
from sample_bots.catalog import sample_bot_command
from tests.support.builders import KALARENA, run_command
from tests.support.ordinary_user import as_ordinary_user
from tests.support.paths import REPOSITORY_ROOT
from tournaments.bots.errors import BotError
from tournaments.bots.resolve import resolve_bot

OR_A_COMMAND = ', or write the command that runs it, such as "node bot.js" or "java -cp . Bot"'
PYTHON = shlex.quote(sys.executable)


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


@pytest.mark.parametrize("text", ["first_legal", "random:7", "greedy", "minimax:3"])
def test_a_sample_bot(tmp_path: Path, text: str) -> None:
    player = resolve_bot(text, tmp_path)
    assert (player.name, player.cwd) == (text, str(tmp_path))
    assert player.command == tuple(sample_bot_command(text) or ())
    assert len(player.digest) == 64
    assert {Path(read).name for read in player.reads} <= {"sample_bots", "protocol", "referee", "games"}


@pytest.mark.parametrize("text", ["ladder:3", "ladder:1:7", "strong", "strong:2"])
def test_a_reference_player_is_refused_for_games_that_it_does_not_know(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, game_catalog: None, text: str
) -> None:
    games = REPOSITORY_ROOT / "tournaments" / "examples" / "games"
    monkeypatch.setenv(GAMES_VARIABLE, str(games / "oware.py"))
    with pytest.raises(
        BotError, match=f"{text} cannot play oware: .* for every game are first_legal, random"
    ):
        resolve_bot(text, tmp_path, game="oware")
    assert resolve_bot("greedy", tmp_path, game="oware").name == "greedy"


def test_a_given_name_replaces_the_bots_own(tmp_path: Path) -> None:
    make_file(tmp_path / "x" / "bot.py")
    for text in ("greedy", "x", "x/bot.py", f"{PYTHON} x/bot.py"):
        assert resolve_bot(text, tmp_path, "Name").name == "Name"


# Directories


@pytest.mark.parametrize("executable", [False, True])
def test_bot_py_of_a_directory_runs_with_the_current_interpreter(tmp_path: Path, executable: bool) -> None:
    """It does so whatever else is there, and beside a link to nowhere, as Emacs locks a file with."""
    script = make_file(tmp_path / "alpha" / "bot.py", executable=executable)
    make_file(script.parent / "tool", executable=True)
    (script.parent / ".#bot.py").symlink_to("user@host.1234")
    for text, base in (("alpha", tmp_path), (".", script.parent)):
        player = resolve_bot(text, base)
        assert (player.name, player.cwd) == ("alpha", str(script.parent))
        assert player.command == (sys.executable, str(script))


def test_the_only_jar_of_a_directory(tmp_path: Path, java: str) -> None:
    jar = make_file(tmp_path / "beta" / "Agent.jar")
    make_file(tmp_path / "beta" / "build.sh", executable=True)
    for text in ("beta/", "beta/Agent.jar"):
        assert resolve_bot(text, tmp_path).command == (java, "-jar", str(jar))


def test_the_only_executable_file_of_a_directory(tmp_path: Path) -> None:
    program = make_file(tmp_path / "gamma" / "engine", executable=True)
    make_file(tmp_path / "gamma" / "notes.txt")
    make_file(tmp_path / "gamma" / ".hidden", executable=True)
    player = resolve_bot("gamma", tmp_path)
    assert (player.command, player.name) == ((str(program),), "gamma")


def test_the_only_script_of_node_in_a_directory(tmp_path: Path) -> None:
    """A single file that is checked at home is submitted as a directory."""
    script = make_file(tmp_path / "gamma" / "bot.js", "#!/usr/bin/env node\n", executable=True)
    make_file(tmp_path / "gamma" / "library.js", executable=True)
    assert resolve_bot("gamma", tmp_path).command == (str(script),)
    run = make_file(tmp_path / "gamma" / "run.sh", "#!/bin/sh\n", executable=True)
    assert resolve_bot("gamma", tmp_path).command == (str(run),)


@pytest.mark.slow
@pytest.mark.parametrize("mode", [0o000, 0o111])
def test_a_directory_that_may_not_be_read(tmp_path: Path, mode: int) -> None:
    closed = tmp_path / "closed"
    closed.mkdir()
    closed.chmod(mode)
    command = [str(KALARENA), "play", str(closed), "greedy", "--sandbox", "off"]
    done = run_command(as_ordinary_user(command, [tmp_path]), Path("/"))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"Error: {closed} cannot be read: Permission denied\n"


def test_the_only_python_file_of_a_directory(tmp_path: Path) -> None:
    """The first bot of the README, uploaded as a single file or in a folder, is found as it is at home."""
    script = make_file(tmp_path / "gamma" / "mybot.py")
    make_file(tmp_path / "gamma" / "weights.txt")
    player = resolve_bot("gamma", tmp_path)
    assert (player.command, player.name) == ((sys.executable, str(script)), "gamma")


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["b.jar", "a.jar"], "holds several jar files, a.jar, b.jar: name the one to run"),
        (["run", "build"], "holds several executable files, build, run: name the one to run"),
        (
            ["-notes.txt"],
            "holds no bot: expected bot.toml, bot.py, one .jar file, one executable file or one",
        ),
        (["-b.py", "-a.py"], "holds several Python files, a.py, b.py: name the one to run"),
        ([], "holds no bot: expected bot.toml, bot.py"),
        (
            ["-bot.zip"],
            "holds no bot: expected bot.toml, bot.py, one .jar file, one executable file or one "
            "Python file. bot.zip is an archive: unpack it first",
        ),
        (
            ["-bot.js"],
            "holds no bot: expected bot.toml, bot.py, one .jar file, one executable file or one "
            "Python file. bot.js needs a bot.toml beside it with its command, such as command = ",
        ),
        (
            ["-bot.js", "-other.js"],
            "holds no bot: expected bot.toml, bot.py, one .jar file, one executable file or one "
            "Python file. bot.js needs a bot.toml beside it with its command (docs/bots.md)",
        ),
        (
            ["-Bot.java"],
            "holds no bot: expected bot.toml, bot.py, one .jar file, one executable file or one "
            "Python file. Bot.java needs a bot.toml beside it with its command, such as command = "
            '["java", "Bot"] and, on lines of their own, build = ["javac", "-Xprefer:source", "Bot.java"] '
            'and made = ["Bot.class"]',
        ),
        (
            ["src/-bot.py"],
            "holds no bot: expected bot.toml, bot.py, one .jar file, one executable file or one "
            "Python file. Is the bot in the folder src? Then name that folder",
        ),
    ],
)
def test_a_directory_without_one_bot(tmp_path: Path, names: list[str], message: str) -> None:
    (tmp_path / "delta").mkdir()
    for name in names:
        make_file(tmp_path / "delta" / name.replace("-", ""), executable="-" not in name)
    assert f"{tmp_path / 'delta'} {message}" in refusal("delta", tmp_path)


def test_a_bot_that_is_a_broken_link_is_named(tmp_path: Path) -> None:
    (tmp_path / "delta").mkdir()
    (tmp_path / "delta" / "bot.py").symlink_to("/no/such/bot.py")
    assert "bot.py is a link to /no/such/bot.py, which is not there" in refusal("delta", tmp_path)


def test_an_archive_is_not_made_executable_but_unpacked(tmp_path: Path) -> None:
    make_file(tmp_path / "bot.zip")
    words = refusal("bot.zip", tmp_path)
    assert "is an archive: unpack it" in words
    assert "chmod" not in words


# Files


def test_a_python_file_runs_by_its_own_shebang_if_it_is_executable(tmp_path: Path) -> None:
    plain = make_file(tmp_path / "plain.py")
    assert resolve_bot("plain.py", tmp_path).command == (sys.executable, str(plain))
    own = make_file(tmp_path / "own.py", "#!/usr/bin/env -S python3 -O\n", executable=True)
    player = resolve_bot(str(own), Path("/"))
    assert (player.command, player.name, player.cwd) == ((str(own),), "own", str(tmp_path))


@pytest.mark.parametrize("executable", [False, True])
def test_a_zipped_python_program_needs_no_first_line(tmp_path: Path, executable: bool) -> None:
    """`python3 -m zipapp` writes such a file."""
    program = make_file(tmp_path / "bot" / "mine.pyz", "PK\3\4", executable=executable)
    for text in ("bot", "bot/mine.pyz"):
        assert resolve_bot(text, tmp_path).command == (sys.executable, str(program))
    script = make_file(tmp_path / "bot" / "other.py")
    if not executable:
        assert resolve_bot("bot", tmp_path).command == (sys.executable, str(script))  # as it always was


def test_a_python_file_with_line_ends_of_windows_runs(tmp_path: Path) -> None:
    """No program has the name in its first line, which ends in CR."""
    script = make_file(tmp_path / "mine.py", "#!/usr/bin/env python3\r\ninput()\r\n", executable=True)
    assert resolve_bot("mine.py", tmp_path).command == (sys.executable, str(script))


@pytest.mark.parametrize("executable", [False, True])
def test_a_python_program_that_linux_cannot_start_runs_also_with_a_manifest(
    tmp_path: Path, executable: bool
) -> None:
    windows = make_file(tmp_path / "bot" / "run.py", "#!/usr/bin/env python3\r\n", executable=executable)
    make_file(tmp_path / "bot" / "bot.toml", 'command = ["./run.py", "-x"]\r\n')
    assert resolve_bot("bot", tmp_path).command == (sys.executable, str(windows), "-x")


def test_executable_files_and_paths_with_spaces(tmp_path: Path) -> None:
    script = make_file(tmp_path / "my best bot" / "bot.py")
    program = make_file(tmp_path / "my best bot" / "the engine-2.1", executable=True)
    assert resolve_bot("my best bot", tmp_path).command == (sys.executable, str(script))
    player = resolve_bot("my best bot/the engine-2.1", tmp_path)
    assert (player.command, player.cwd) == ((str(program),), str(program.parent))
    assert resolve_bot("'my best bot/the engine-2.1' -x", tmp_path).command == (str(program), "-x")


@pytest.mark.parametrize("text", ["engine", "./engine --fast"])
def test_a_file_that_is_not_executable(tmp_path: Path, text: str) -> None:
    program = make_file(tmp_path / "engine")
    assert refusal(text, tmp_path) == f"{program} is not executable: chmod +x {program}{OR_A_COMMAND}"


def test_the_command_that_makes_a_file_executable_can_be_copied(tmp_path: Path) -> None:
    program = make_file(tmp_path / "my best bot" / "engine")
    text = refusal("my best bot/engine", tmp_path)
    assert text == f"{program} is not executable: chmod +x '{program}'{OR_A_COMMAND}"


def test_a_jar_file_needs_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_file(tmp_path / "Agent.jar")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "needs java, which is not on PATH" in refusal("Agent.jar", tmp_path)


# Command lines


def test_a_command_line_with_quotes_of_any_length(tmp_path: Path) -> None:
    make_file(tmp_path / "agent.py")
    player = resolve_bot(f"""{PYTHON} agent.py 'two words' "it's" \\$x""", tmp_path)
    assert player.command == (sys.executable, "agent.py", "two words", "it's", "$x")
    assert (player.name, player.cwd) == ("agent", str(tmp_path))
    code = "print('MOVE;1');" * 40  # longer than any file's name may be
    assert resolve_bot(f"{PYTHON} -c {shlex.quote(code)}", tmp_path).command == (sys.executable, "-c", code)


def test_a_program_on_path_becomes_an_absolute_path(
    tmp_path: Path, java: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert resolve_bot("java -cp . Agent", tmp_path).command == (java, "-cp", ".", "Agent")
    assert resolve_bot("java", tmp_path).command == (java,)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", "programs")
    assert Path(resolve_bot("java -x", tmp_path).command[0]).is_absolute()


def test_a_program_named_by_a_link_keeps_that_name(tmp_path: Path) -> None:
    """A virtual environment's python is a link: resolved, it would lose its packages."""
    program = make_file(tmp_path / "real", executable=True)
    (tmp_path / "env").mkdir()
    (tmp_path / "env" / "python").symlink_to(program)
    assert resolve_bot("env/python -u x", tmp_path).command == (str(tmp_path / "env" / "python"), "-u", "x")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "an empty text names no bot"),
        ("  \t", "an empty text names no bot"),
        (
            "gredy",
            "no such bot: 'gredy'; did you mean 'greedy'? (looked for a sample bot [first_legal",
        ),
        ("minmax:4", "no such bot: 'minmax:4'; did you mean 'minimax'?"),
        ("minimax:deep", "minimax takes a depth"),
        ("mybit.py", "did you mean 'mybot.py'?"),
        ("no/such/agent", "no such bot: 'no/such/agent' (looked for"),
        ("no-such-program --fast", "no such program: 'no-such-program' (looked for"),
        ("greedy --fast", "no such program: 'greedy'"),
        ("it's", '"it\'s" is no command line: No closing quotation'),
        ("''", "no such bot"),
        ("a\0b", "names no bot: it holds a NUL character"),
        ("~no-such-user-here/bot", "no such bot"),
        ("y" * 300, "no such bot: 'yyy"),
        ("/" + "y" * 5000, "no such bot: '/yyy"),
    ],
)
def test_texts_that_name_no_bot(tmp_path: Path, text: str, message: str) -> None:
    make_file(tmp_path / "mybot.py")
    assert message in refusal(text, tmp_path)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
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


def test_a_directorys_digest_depends_on_its_files_and_not_on_its_place(tmp_path: Path) -> None:
    script = make_file(tmp_path / "bot" / "bot.py", "one")
    seen = [digest("bot", tmp_path)]
    script.write_text("two")
    seen.append(digest("bot", tmp_path))
    book = make_file(tmp_path / "bot" / "data" / "book.bin", "x")
    seen.append(digest("bot", tmp_path))
    book.rename(book.with_name("book2.bin"))
    seen.append(digest("bot", tmp_path))
    make_file(tmp_path / "bot" / "ab", "c")
    seen.append(digest("bot", tmp_path))
    (tmp_path / "bot" / "ab").unlink()
    make_file(tmp_path / "bot" / "a", "bc")  # names and contents are kept apart
    seen.append(digest("bot", tmp_path))
    make_file(Path(os.fsdecode(os.fsencode(tmp_path / "bot") + b"/data-\xff.txt")), "")
    seen.append(digest("bot", tmp_path))
    assert len(set(seen)) == len(seen)
    (tmp_path / "bot").rename(tmp_path / "elsewhere")
    assert digest("elsewhere", tmp_path) == seen[-1]


@pytest.mark.parametrize("folder", ["__pycache__", ".git", ".venv", "node_modules", "sub/__pycache__"])
def test_some_folders_do_not_change_the_digest(tmp_path: Path, folder: str) -> None:
    make_file(tmp_path / "bot" / "bot.py")
    make_file(tmp_path / "bot" / "sub" / "part.py")
    before = digest("bot", tmp_path)
    make_file(tmp_path / "bot" / folder / "bot.cpython-311.pyc", "x")
    assert digest("bot", tmp_path) == before


@pytest.mark.parametrize("command", [f"{PYTHON} agent.py", "./agent.py -x", "agent.py"])
def test_the_digest_of_a_command_line_or_file_depends_on_its_files(tmp_path: Path, command: str) -> None:
    script = make_file(tmp_path / "agent.py", "one", executable=True)
    before = digest(command, tmp_path)
    assert digest(command, tmp_path) == before
    script.write_text("two")
    assert digest(command, tmp_path) != before


CLASS_PATHS = ["-cp classes:lib/gson.jar", "--class-path=.:lib/*", "-cp 'classes:lib/*'"]


@pytest.mark.parametrize("option", CLASS_PATHS)
def test_all_entries_of_a_class_path_belong_to_a_bot(tmp_path: Path, option: str) -> None:
    command = f"sh {option} Bot"
    parts = [make_file(tmp_path / "classes" / "Bot.class"), make_file(tmp_path / "lib" / "gson.jar")]
    reads = resolve_bot(command, tmp_path).reads
    for part in parts:
        assert any(part.is_relative_to(read) for read in reads)
        before = digest(command, tmp_path)
        part.write_text("changed")
        assert digest(command, tmp_path) != before


# Files that a confined bot can read


def test_a_bot_reads_its_own_files(tmp_path: Path) -> None:
    make_file(tmp_path / "one" / "bot.py")
    file = make_file(tmp_path / "two.py")
    assert resolve_bot("one", tmp_path).reads == (str(tmp_path / "one"),)
    assert resolve_bot("two.py", tmp_path).reads == (str(file),)
    assert resolve_bot("sh two.py one -v", tmp_path).reads == (str(tmp_path / "one"), str(file))


def test_a_program_on_a_command_line_is_read_with_its_installation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The user who wrote the command line trusts it; a bot's own file or directory earns no such trust."""
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


def test_a_user_without_a_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has the bots of one with a home; in a container, a user may have no account and no HOME."""

    def no_account(_user: int) -> None:
        raise KeyError

    monkeypatch.delenv("HOME")
    monkeypatch.setattr("pwd.getpwuid", no_account)
    program = make_file(tmp_path / "bin" / "tool", executable=True)
    file = make_file(tmp_path / "bot.py")
    assert resolve_bot("bin/tool bot.py /tmp", tmp_path).reads == (str(program), str(file))
    assert resolve_bot("bin/tool .", tmp_path).reads == (str(tmp_path), str(program))


# Version managers


@pytest.mark.parametrize("answer", ["real", "nothing", "failure"])
def test_a_shim_is_replaced_by_the_program_behind_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: str
) -> None:
    real = make_file(tmp_path / "versions" / "bin" / "tool", "#!/bin/sh\n", executable=True)
    shim = make_file(tmp_path / ".pyenv" / "shims" / "tool", "#!/bin/sh\n", executable=True)
    scripts = {
        "real": f'[ "$1 $2" = "which tool" ] && echo {real}',
        "nothing": "true",
        "failure": f"echo {real}; false",
    }
    make_file(tmp_path / ".pyenv" / "libexec" / "pyenv", f"#!/bin/sh\n{scripts[answer]}\n", executable=True)
    monkeypatch.setenv("PATH", str(shim.parent))
    expected = real if answer == "real" else shim
    assert resolve_bot("tool --fast", tmp_path).command == (str(expected), "--fast")


@pytest.mark.parametrize("program", ["tool", "java"])
def test_a_shim_that_a_bot_names_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str
) -> None:
    """Bots with a manifest, and jar files."""
    real = make_file(tmp_path / ".asdf" / "installs" / "bin" / program, executable=True)
    shim = make_file(tmp_path / ".asdf" / "shims" / program, "#!/bin/sh\n", executable=True)
    asdf = f'#!/bin/sh\n[ "$1 $2" = "which {program}" ] && echo {real}\n'
    monkeypatch.setenv("PATH", f"{shim.parent}:{make_file(tmp_path / 'asdf', asdf, executable=True).parent}")
    jar = make_file(tmp_path / "bot" / "player.jar")
    if program == "java":
        assert resolve_bot("bot", tmp_path).command == (str(real), "-jar", str(jar))
    make_file(tmp_path / "bot" / "bot.toml", f'command = ["{program}", "player.jar"]\n')
    assert resolve_bot("bot", tmp_path).command == (str(real), "player.jar")


def test_a_link_to_rustup_is_replaced_by_the_program_that_rustup_names(tmp_path: Path) -> None:
    real = make_file(tmp_path / "toolchain" / "rustc", "#!/bin/sh\n", executable=True)
    script = f"#!/bin/sh\n[ $1 = which ] && echo {real.parent}/$2\n"
    make_file(tmp_path / "rustup", script, executable=True)
    make_file(tmp_path / "other", script, executable=True)
    for name in ("rustc", "cargo"):
        (tmp_path / name).symlink_to("rustup")
    assert behind_shim(str(tmp_path / "rustc")) == str(real)
    for name in ("rustup", "other", "cargo"):  # the program that is named for cargo does not exist
        assert behind_shim(str(tmp_path / name)) == str(tmp_path / name)
