"""`kalarena new`."""

import re
import shlex
import stat
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from sample_bots import starters_catalog
from sample_bots.starters_catalog import STARTERS, starter_directory
from tests.builders import kalarena
from tournaments.cli import new


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def invoke(*arguments: str) -> Result:
    result = CliRunner().invoke(new.command, list(arguments), prog_name="kalarena new")
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def refusal(*arguments: str) -> str:
    before = sorted(Path.cwd().rglob("*"))
    result = invoke(*arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert sorted(Path.cwd().rglob("*")) == before
    return result.stderr


def manifest_of(folder: str) -> dict[str, object]:
    return tomllib.loads(Path(folder, "bot.toml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("language", STARTERS)
def test_a_kit_is_copied_as_it_is_but_for_its_name(language: str) -> None:
    result = invoke(language, "deep/my-bot")
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


def test_what_is_made_in_a_kits_directory_is_not_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Modes and line ends of the source stay, but a read-only installation makes no read-only bot."""
    kit = tmp_path / "installed" / "python"
    kit.mkdir(parents=True)
    for file in (*STARTERS["python"].files, "bot.pyc"):
        (kit / file).write_bytes(b'a\r\nname = "x"\n')
        (kit / file).chmod(0o444)
    (kit / "bot.py").chmod(0o555)
    monkeypatch.setattr(starters_catalog, "STARTERS_DIRECTORY", kit.parent)
    assert invoke("python", "bot").exit_code == 0
    assert not Path("bot/bot.pyc").exists()
    assert Path("bot/bot.py").read_bytes() == b'a\r\nname = "x"\n'
    assert Path("bot/bot.py").stat().st_mode & 0o700 == 0o700
    assert Path("bot/README.md").stat().st_mode & 0o700 == 0o600
    assert Path("bot/bot.toml").read_bytes() == b'a\r\nname = "bot"\n'


def test_what_to_do_next_can_be_typed() -> None:
    result = invoke("Python", "it's mine", "--name", "Mine")
    commands = re.findall(r"^  (kalarena .*?)(?:  |$)", result.stdout, re.MULTILINE)
    assert [shlex.split(command) for command in commands] == [
        ["kalarena", "play", "it's mine", "random"],
        ["kalarena", "check", "it's mine"],
        ["kalarena", "gauntlet", "it's mine"],
    ]
    assert manifest_of("it's mine")["name"] == "Mine"
    done = kalarena(Path.cwd(), *shlex.split(commands[0])[1:])
    assert "Mine: as its bot.toml says" in done.stdout
    assert "[score]" in done.stdout


def test_a_directory_that_is_called_like_a_sample_bot() -> None:
    """`kalarena play greedy random` would be another game."""
    assert "kalarena play ./greedy random" in invoke("python", "greedy").stdout
    assert "kalarena play ./random:7 random" in invoke("python", "random:7").stdout


def test_an_empty_directory_will_do() -> None:
    Path("empty").mkdir()
    assert invoke("c++", "empty").exit_code == 0
    assert manifest_of("empty")["command"] == ["./bot"]


def test_the_directory_one_is_in(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("here").mkdir()
    monkeypatch.chdir("here")
    assert invoke("js", ".").exit_code == 0
    assert manifest_of(".")["name"] == "here"


def test_a_name_that_is_not_ascii() -> None:
    assert invoke("python", "k\u00e4lah").exit_code == 0
    assert manifest_of("k\u00e4lah")["name"] == "k\u00e4lah"


def test_languages_that_are_none() -> None:
    assert "no starter kit for 'pyton'; did you mean 'python'?; there are python, java, cpp" in refusal(
        "pyton", "x"
    )
    assert "no starter kit for 'cobol'; there are" in refusal("cobol", "x")


def test_directories_that_cannot_be_used() -> None:
    Path("full").mkdir()
    Path("full", ".hidden").write_text("")
    Path("file").write_text("")
    assert "full holds files already, and was left as it is: name one that is new or empty" in refusal(
        "java", "full"
    )
    assert "file is no directory: name one that is new or empty" in refusal("java", "file")
    assert "file/x cannot be made or read: Not a directory" in refusal("java", "file/x")
    assert "File name too long" in refusal("java", "y" * 300, "--name", "y")


def test_names_that_cannot_be() -> None:
    told = refusal("java", "what?")
    assert "'what?' cannot be the bot's name: a name is 1 to 60 letters" in told
    assert "(give another one with --name)" in told
    told = refusal("java", "x", "--name", 'a"b')
    assert "--name)" not in told
    assert "'' cannot be" in refusal("java", "x", "--name", "")
    assert "'' cannot be" in refusal("java", "/")


def test_an_installation_without_the_kits_is_a_fault_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(starters_catalog, "STARTERS_DIRECTORY", tmp_path / "nowhere")
    result = invoke("java", "x")
    assert result.exit_code == 1
    assert "nowhere/java/.gitignore: the kit could not be written completely: No such file" in result.stderr


def test_tools_that_are_missing_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    result = invoke("java", "x")
    assert result.exit_code == 0
    assert "needs java and javac, not on PATH (Debian and Ubuntu: apt install default-jdk-headless)" in (
        result.stderr
    )
    assert invoke("python", "y").stderr == ""


def test_list() -> None:
    result = invoke("--list")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert [line.split()[0] for line in lines] == list(STARTERS)
    assert lines[0].endswith("Python (also py, python3): needs nothing more")
