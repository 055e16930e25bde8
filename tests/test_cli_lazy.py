"""Subcommands that are loaded when they are used."""

import sys
from importlib import metadata
from pathlib import Path

import click
import pytest

from referee.version import VERSION
from tests.builders import KALARENA, invoke, run_command
from tournaments.cli.main import LazyGroup, main
from tournaments.cli.tournament import TOURNAMENT_COMMANDS
from tournaments.cli.tournament import command as tournament

HEAVY = ("alembic", "numpy", "pydantic", "rich", "sqlalchemy", "trio")


def test_every_name_of_the_table_is_a_command() -> None:
    context = click.Context(tournament)
    assert tournament.list_commands(context) == sorted(TOURNAMENT_COMMANDS)
    for name in TOURNAMENT_COMMANDS:
        command = tournament.get_command(context, name)
        assert command is not None
        assert command.name == name
        assert command.help


@pytest.mark.parametrize("name", TOURNAMENT_COMMANDS)
def test_help_of_each_subcommand(name: str) -> None:
    result = invoke("tournament", name, "--help")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.startswith(f"Usage: main tournament {name} ")


def test_the_list_has_each_with_its_line() -> None:
    result = invoke("tournament", "--help")
    for name, (_, about) in TOURNAMENT_COMMANDS.items():
        assert any(line.split() == [name, *about.split()] for line in result.stdout.splitlines())


def test_a_name_that_is_none() -> None:
    assert tournament.get_command(click.Context(tournament), "viod") is None
    result = invoke("tournament", "viod")
    assert result.exit_code == 2
    assert "No such command 'viod'" in result.stderr


def test_lists_load_nothing_heavy() -> None:
    code = (
        "import sys; from click.testing import CliRunner; from tournaments.cli.main import main; "
        "CliRunner().invoke(main, ['tournament', '--help'], catch_exceptions=False); "
        f"sys.exit(' '.join({set(HEAVY)!r} & set(sys.modules)) or 0)"
    )
    done = run_command([sys.executable, "-c", code], KALARENA.parent)
    assert (done.returncode, done.stderr) == (0, "")


def test_who_looks_at_results_loads_nothing_that_plays_or_reads_tournament_files() -> None:
    code = (
        "import sys; import tournaments.cli.tournament.table; "
        "others = {'alembic', 'jinja2', 'networkx', 'tournaments.bots.resolve', 'tournaments.config.load', "
        "'trio'}; sys.exit(' '.join(others & set(sys.modules)) or 0)"
    )
    done = run_command([sys.executable, "-c", code], KALARENA.parent)
    assert (done.returncode, done.stderr) == (0, "")


NOT_FOR_ONE_GAME = (
    "alembic",
    "asyncio",
    "importlib.metadata",
    "jinja2",
    "networkx",
    "numpy",
    "pydantic",
    "rich",
    "scipy",
    "sqlalchemy",
    "starlette",
    "tournaments.bots.build",
    "tournaments.reporting.tables",
)
"""None of these is needed for one game between bots that are built; each takes milliseconds."""


@pytest.mark.parametrize("sandbox", ["off", "auto"])
def test_a_game_loads_nothing_heavy(tmp_path: Path, sandbox: str) -> None:
    bot = tmp_path / "bot"
    bot.mkdir()
    (bot / "bot.toml").write_text('command = ["python3", "bot.py"]\n')
    (bot / "bot.py").write_bytes((Path(__file__).parents[1] / "sample_bots" / "first_legal.py").read_bytes())
    code = (
        "import sys; from click.testing import CliRunner; from tournaments.cli.main import main; "
        f"done = CliRunner().invoke(main, ['play', 'bot', 'first_legal', '--sandbox', {sandbox!r}, "
        "'--game', 'kalah(2,2)', '--record', 'game.msgpack'], catch_exceptions=False); "
        "assert done.exit_code == 0, done.output; "
        f"sys.exit(' '.join({set(NOT_FOR_ONE_GAME)!r} & set(sys.modules)) or 0)"
    )
    done = run_command([sys.executable, "-c", code], tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_version_is_that_of_the_package() -> None:
    assert metadata.version("kalarena") == VERSION


def test_groups_are_lazy() -> None:
    assert isinstance(main, LazyGroup)
    assert isinstance(tournament, LazyGroup)
