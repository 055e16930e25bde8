"""Tournaments of games that are not Kalarena's: workers and sandboxes find them, reports draw them."""

import os
import shutil
from pathlib import Path

import pytest

from referee.games.plugins import GAMES_VARIABLE
from tests.support.builders import invoke, kalarena, write_tournament
from tests.support.paths import REPOSITORY_ROOT
from tests.support.tiers import slow

pytestmark = pytest.mark.usefixtures("game_catalog")

EXAMPLES = REPOSITORY_ROOT / "tournaments" / "examples" / "games"


@pytest.mark.parametrize("game", ["oware", *slow("connect-four")])
def test_a_tournament_is_played_reported_and_verified(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, game: str
) -> None:
    monkeypatch.setenv(GAMES_VARIABLE, str(EXAMPLES / f"{game.replace('-', '_')}.py"))
    bots = '["first_legal", "greedy", "random:1"]'
    file = write_tournament(tmp_path, f'name = "Cup"\ngame = "{game}"\nrounds = 1\nbots = {bots}\n')
    out = tmp_path / "out"
    for arguments in (
        ("tournament", "run", file, "--out", out, "--quiet"),
        ("tournament", "report", out),
        ("verify", out),
    ):
        result = invoke(*arguments)
        assert result.exit_code == 0, result.output
    assert "6 games verified, nothing wrong" in result.output
    assert all(" lost:" not in page.read_text() for page in (out / "report" / "games").glob("*.html"))
    page = (out / "report" / "games" / "r001-1v2.html").read_text(encoding="utf-8")
    assert "<svg" in page
    assert game in page


def test_a_run_with_another_version_of_the_games_module_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = tmp_path / "oware.py"
    shutil.copy(EXAMPLES / "oware.py", module)
    monkeypatch.setenv(GAMES_VARIABLE, str(module))
    file = write_tournament(tmp_path, 'name = "Cup"\ngame = "oware"\nbots = ["first_legal", "greedy"]\n')
    command = ("tournament", "run", file, "--out", tmp_path / "out", "--quiet")
    assert invoke(*command).exit_code == 0
    assert invoke(*command).exit_code == 0
    module.write_text(module.read_text() + "\n# Another version.\n")
    refused = invoke(*command)
    assert refused.exit_code == 2
    assert "the module of its game has changed since. Undo the change" in refused.output
    verified = invoke("verify", tmp_path / "out")
    assert verified.exit_code == 0
    assert "the module of its game has changed since; games that do not follow may" in verified.output


@pytest.mark.slow
def test_without_its_rules_a_game_is_not_called_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write_tournament(tmp_path, 'game = "oware"\nbots = ["first_legal", "greedy"]\n')
    out, record = tmp_path / "out", tmp_path / "game.json"
    monkeypatch.setenv(GAMES_VARIABLE, str(EXAMPLES / "oware.py"))
    assert invoke("tournament", "run", file, "--out", out, "--quiet").exit_code == 0
    assert invoke("play", "random:1", "random:2", "--game", "oware", "--record", record).exit_code == 0
    for path in (out, record):
        done = kalarena(tmp_path, "verify", str(path), **{GAMES_VARIABLE: ""})
        assert (done.returncode, done.stdout) == (2, "")
        assert f"{path}: the rules of the game oware are not here" in done.stderr
        assert GAMES_VARIABLE in done.stderr


def install(folder: Path, module: str, entry_point: str) -> str:
    """Install a distribution that declares a game; return the PYTHONPATH with which it is found."""
    metadata = folder / f"{module}-1.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(f"[kalarena.games]\n{entry_point}\n")
    return os.pathsep.join(filter(None, (str(folder), os.environ.get("PYTHONPATH"))))


@pytest.mark.slow
def test_a_game_of_an_installed_distribution_is_played_in_worker_processes(tmp_path: Path) -> None:
    path = install(tmp_path / "site", "abapa", "oware = abapa")
    shutil.copy(EXAMPLES / "oware.py", tmp_path / "site" / "abapa.py")
    bots = '["first_legal", "greedy"]'
    write_tournament(tmp_path, f'name = "Cup"\ngame = "oware"\nrounds = 1\nbots = {bots}\n')
    for arguments, shown in (
        (("tournament", "run", "cup.toml", "--out", "out", "--quiet"), "greedy"),
        (("verify", "out"), "2 games verified, nothing wrong"),
    ):
        done = kalarena(tmp_path, *arguments, PYTHONPATH=path)
        assert done.returncode == 0, done.stderr
        assert shown in done.stdout


def test_an_installed_game_that_cannot_be_loaded_is_named(tmp_path: Path) -> None:
    path = install(tmp_path / "site", "abapa", "oware = abapa")
    done = kalarena(tmp_path, "games", PYTHONPATH=path)
    assert done.returncode == 2
    assert "the game oware (abapa) cannot be loaded: ModuleNotFoundError" in done.stderr
    assert "Traceback" not in done.stderr
