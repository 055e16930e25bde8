"""`kalarena new`."""

import re
import shlex
import stat
import tomllib
from pathlib import Path

import pytest
from click.testing import Result

from sample_bots import starters_catalog
from sample_bots.starters_catalog import STARTERS, starter_directory
from tests.support.builders import invoke


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def new(*arguments: str) -> Result:
    return invoke("new", *arguments)


def manifest_of(folder: str) -> dict[str, object]:
    return tomllib.loads(Path(folder, "bot.toml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("language", STARTERS)
def test_a_kit_is_copied_as_it_is_but_for_its_name(language: str) -> None:
    result = new(language, "deep/my-bot")
    assert result.exit_code == 0
    starter, kit = STARTERS[language], starter_directory(language)
    assert {path.name for path in Path("deep/my-bot").iterdir()} == set(starter.files)
    for file in starter.files:
        assert Path("deep/my-bot", file).stat().st_mode & stat.S_IWUSR
        if file != "bot.toml":
            assert Path("deep/my-bot", file).read_bytes() == (kit / file).read_bytes()
    old = (kit / "bot.toml").read_text(encoding="utf-8").splitlines()
    fresh = Path("deep/my-bot/bot.toml").read_text(encoding="utf-8").splitlines()
    assert [line for line in zip(old, fresh, strict=True) if line[0] != line[1]] == [
        (f'name = "{starter.title} starter"', 'name = "my-bot"')
    ]
    assert f"A {starter.title} bot is in deep/my-bot." in result.stdout
    assert starter.source in result.stdout


def test_files_beside_a_kit_are_not_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Modes and line ends of the source stay, but a read-only installation makes no read-only bot."""
    kit = tmp_path / "installed" / "python"
    kit.mkdir(parents=True)
    for file in (*STARTERS["python"].files, "bot.pyc"):
        (kit / file).write_bytes(b'a\r\nname = "x"\n')
        (kit / file).chmod(0o444)
    (kit / "bot.py").chmod(0o555)
    monkeypatch.setattr(starters_catalog, "STARTERS_DIRECTORY", kit.parent)
    assert new("python", "bot").exit_code == 0
    assert not Path("bot/bot.pyc").exists()
    assert Path("bot/bot.py").read_bytes() == b'a\r\nname = "x"\n'
    assert Path("bot/bot.py").stat().st_mode & 0o700 == 0o700
    assert Path("bot/README.md").stat().st_mode & 0o700 == 0o600
    assert Path("bot/bot.toml").read_bytes() == b'a\r\nname = "bot"\n'


def test_the_printed_commands_can_be_typed() -> None:
    result = new("Python", "it's mine", "--name", "Mine")
    commands = re.findall(r"^  (kalarena .*?)(?:  |$)", result.stdout, re.MULTILINE)
    assert [shlex.split(command) for command in commands] == [
        ["kalarena", "play", "it's mine", "random"],
        ["kalarena", "check", "it's mine"],
        ["kalarena", "gauntlet", "it's mine"],
    ]
    assert manifest_of("it's mine")["name"] == "Mine"
    done = invoke(*shlex.split(commands[0])[1:])
    assert "Mine: as its bot.toml says" in done.stdout
    assert "[score]" in done.stdout


def test_a_directory_with_the_name_of_a_sample_bot() -> None:
    """`kalarena play greedy random` would be another game."""
    assert "kalarena play ./greedy random" in new("python", "greedy").stdout
    assert "kalarena play ./random:7 random" in new("python", "random:7").stdout


@pytest.mark.parametrize(
    ("language", "directory", "name"),
    [("c++", "empty", "empty"), ("js", ".", "here"), ("python", "k\u00e4lah", "k\u00e4lah")],
)
def test_the_directory_names_the_bot(
    language: str, directory: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("here", "" if directory == "." else "empty").mkdir(parents=True)
    monkeypatch.chdir("here")
    assert new(language, directory).exit_code == 0
    assert manifest_of(directory)["name"] == name


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("pyton", "x"), "no starter kit for 'pyton'; did you mean 'python'?; there are python, java, cpp"),
        (("cobol", "x"), "no starter kit for 'cobol'; there are"),
        (("java", "full"), "full holds files already, and was left as it is: name one that is new or empty"),
        (("java", "file"), "file is no directory: name one that is new or empty"),
        (("java", "file/x"), "file/x cannot be made or read: Not a directory"),
        (("java", "y" * 300, "--name", "y"), "File name too long"),
        (("java", "what?"), "'what?' cannot be the bot's name: a name is 1 to 60 letters"),
        (("java", "what?"), "(give another one with --name)"),
        (("java", "x", "--name", 'a"b'), "cannot be the bot's name"),
        (("java", "x", "--name", ""), "'' cannot be"),
        (("java", "/"), "'' cannot be"),
    ],
)
def test_bad_input(arguments: tuple[str, ...], complaint: str) -> None:
    Path("full").mkdir()
    Path("full", ".hidden").write_text("")
    Path("file").write_text("")
    before = sorted(Path.cwd().rglob("*"))
    result = new(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert complaint in result.stderr
    assert ("(give another one with --name)" in result.stderr) is (arguments[1] in ("what?", "/"))
    assert sorted(Path.cwd().rglob("*")) == before


def test_an_installation_without_the_kits_is_a_fault_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(starters_catalog, "STARTERS_DIRECTORY", tmp_path / "nowhere")
    result = new("java", "x")
    assert result.exit_code == 1
    assert "nowhere/java/.gitignore: the kit could not be written completely: No such file" in result.stderr


def test_tools_that_are_missing_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    result = new("java", "x")
    assert result.exit_code == 0
    assert "needs java and javac, not on PATH (Debian and Ubuntu: apt install default-jdk-headless)" in (
        result.stderr
    )
    assert new("python", "y").stderr == ""


def test_list() -> None:
    result = new("--list")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert [line.split()[0] for line in lines] == list(STARTERS)
    assert lines[0].endswith("Python (also py, python3): needs nothing more")
