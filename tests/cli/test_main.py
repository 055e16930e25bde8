"""The command `kalarena` as a whole: help, lazy loading, bad usage, interrupts."""

import re
import sys
from importlib import metadata
from pathlib import Path

import pytest

from referee.version import VERSION
from tests.support.builders import KALARENA, invoke, run_command
from tests.support.paths import REPOSITORY_ROOT
from tournaments.cli.main import COMMANDS
from tournaments.cli.tournament import TOURNAMENT_COMMANDS

SUBCOMMANDS = [(name,) for name in COMMANDS] + [("tournament", name) for name in TOURNAMENT_COMMANDS]
HEAVY = {"alembic", "numpy", "pydantic", "rich", "sqlalchemy", "trio"}
NOT_FOR_ONE_GAME = HEAVY - {"trio"} | {
    *("asyncio", "importlib.metadata", "jinja2", "networkx", "scipy", "starlette"),
    *("tournaments.bots.build", "tournaments.reporting.tables"),
}
"""Modules that one game between built bots does not need; each takes milliseconds to import."""


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("words", SUBCOMMANDS, ids=" ".join)
def test_every_command_has_help_and_documentation(words: tuple[str, ...]) -> None:
    result = invoke(*words, "--help")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.startswith(f"Usage: main {' '.join(words)} ")
    assert result.stdout.partition("\n\n")[2].strip()
    if len(words) == 1:
        docs = "".join(path.read_text(encoding="utf-8") for path in (REPOSITORY_ROOT / "docs").rglob("*.md"))
        for text in (docs, (REPOSITORY_ROOT / "README.md").read_text(encoding="utf-8")):
            assert f"kalarena {words[0]}" in text


@pytest.mark.parametrize(("group", "commands"), [((), COMMANDS), (("tournament",), TOURNAMENT_COMMANDS)])
def test_help_of_a_group_lists_each_command(
    group: tuple[str, ...], commands: dict[str, tuple[str, str]]
) -> None:
    shown = invoke(*group, "--help").stdout
    for name, (_, about) in commands.items():
        assert re.search(rf"^  {name} +{about[:20]}", shown, re.MULTILINE)


def modules_loaded_by(*arguments: str) -> set[str]:
    """The modules that a fresh interpreter has loaded after a command."""
    code = (
        "import sys; from click.testing import CliRunner; from tournaments.cli.main import main; "
        f"done = CliRunner().invoke(main, {arguments!r}, catch_exceptions=False); "
        "assert done.exit_code == 0, done.output; print(*sys.modules)"
    )
    done = run_command([sys.executable, "-c", code], Path.cwd())
    assert (done.returncode, done.stderr) == (0, "")
    return set(done.stdout.split())


def test_help_loads_no_database_layer() -> None:
    assert not HEAVY & modules_loaded_by("tournament", "--help")


def test_one_confined_game_loads_nothing_heavy() -> None:
    Path("bot").mkdir()
    Path("bot/bot.toml").write_text('command = ["python3", "bot.py"]\n')
    Path("bot/bot.py").write_bytes((REPOSITORY_ROOT / "sample_bots" / "first_legal.py").read_bytes())
    game = ("play", "bot", "first_legal", "--game", "kalah(2,2)", "--record", "game.msgpack")
    assert not NOT_FOR_ONE_GAME & modules_loaded_by(*game)


def test_the_version_is_that_of_the_package() -> None:
    assert invoke("--version").stdout == f"kalarena {metadata.version('kalarena')}\n"
    assert metadata.version("kalarena") == VERSION


INTERRUPTED_CALLBACK = """
import os, signal, sys
from tournaments.cli import main

class Passing:
    def __del__(self):
        if {error!r} == "interrupt":
            os.kill(os.getpid(), signal.SIGINT)
        else:
            raise ValueError("a mistake")

def run():
    thing = Passing()
    del thing
    print("went on")

main.main = run
main.entry()
"""
"""What the interpreter runs on its own account: what that raises, it tells of, and goes on."""


@pytest.mark.parametrize(("error", "said"), [("interrupt", ""), ("mistake", "ValueError: a mistake\n")])
def test_an_interrupt_of_the_interpreters_own_doings_shows_no_traceback(error: str, said: str) -> None:
    code = INTERRUPTED_CALLBACK.format(error=error)
    done = run_command([sys.executable, "-c", code], Path.cwd())
    assert (done.returncode, done.stdout) == (0, "went on\n")
    assert done.stderr.endswith(said)
    assert ("Traceback" in done.stderr) is bool(said)


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_working_directory_that_was_deleted(unbuffered: str) -> None:
    script = 'mkdir gone && cd gone && rmdir ../gone && exec "$@"'
    command = ("sh", "-c", script, "sh", KALARENA, "play", "greedy", "greedy")
    done = run_command(command, Path.cwd(), PYTHONUNBUFFERED=unbuffered)
    message = "Error: the working directory was deleted: change to another one with cd\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", message)


BAD_USAGE = {
    "no such command": ("fly",),
    "no such option": ("play", "greedy", "greedy", "--fast"),
    "play: one bot": ("play", "greedy"),
    "play: three bots": ("play", "greedy", "greedy", "greedy"),
    "play: no such bot": ("play", "greedy", "gredy"),
    "play: no such path": ("play", "greedy", "bots/none.py"),
    "play: an empty bot": ("play", "greedy", ""),
    "play: a bot that is no text of a command": ("play", "greedy", "it's"),
    "play: a home that is not": ("play", "greedy", "~no-such-user-here/bot"),
    "play: longer than a file's name": ("play", "greedy", "y" * 300),
    "play: bad option of a bot": ("play", "greedy", "minimax:deep"),
    "play: no such game": ("play", "greedy", "greedy", "--game", "chess"),
    "play: no such option of a game": ("play", "greedy", "greedy", "--game", "manchester+fast"),
    "play: board that cannot be": ("play", "greedy", "greedy", "--game", "kalah(0,4)"),
    "play: time of words": ("play", "greedy", "greedy", "--move-time", "long"),
    "play: no time": ("play", "greedy", "greedy", "--move-time", "0"),
    "play: time that never ends": ("play", "greedy", "greedy", "--game-time", "inf"),
    "play: time that is no number": ("play", "greedy", "greedy", "--move-time", "nan"),
    "play: negative margin": ("play", "greedy", "greedy", "--margin", "-1"),
    "play: negative start": ("play", "greedy", "greedy", "--start-time", "-1"),
    "play: increment to nothing": ("play", "greedy", "greedy", "--increment", "1"),
    "play: record in no folder": ("play", "greedy", "greedy", "--record", "none/x.rec"),
    "play: record is a folder": ("play", "greedy", "greedy", "--record", "."),
    "perft: no depth": ("perft", "manchester"),
    "perft: negative depth": ("perft", "manchester", "--depth", "-1"),
    "perft: no such game": ("perft", "chess", "--depth", "1"),
    "perft: no position": ("perft", "manchester", "--depth", "1", "--position", "1,2,3"),
    "perft: empty position": ("perft", "manchester", "--depth", "1", "--position", ""),
    "solve: time that is no number": ("solve", "kalah(2,2)", "--seconds", "nan"),
    "games: something": ("games", "manchester"),
    "tournament: nothing": ("tournament", "run"),
    "tournament: no such file": ("tournament", "run", "none.toml"),
    "tournament: a folder": ("tournament", "run", "."),
    "tournament: no such verb": ("tournament", "walk"),
    "tournament: no workers": ("tournament", "run", "none.toml", "--concurrency", "0"),
    "table: no such folder": ("tournament", "table", "none"),
    "table: a folder without results": ("tournament", "table", "."),
    "table: no such format": ("tournament", "table", ".", "--format", "pdf"),
}


@pytest.mark.parametrize("arguments", BAD_USAGE.values(), ids=BAD_USAGE)
def test_bad_usage(arguments: tuple[str, ...]) -> None:
    """Exit status 2 and one message on standard error; nothing on standard output, nothing left behind."""
    result = invoke(*arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.count("Error: ") == 1
    assert "Traceback" not in result.stderr
    assert list(Path.cwd().iterdir()) == []
