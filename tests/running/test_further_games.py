"""Tournaments of games in files of their own: worker processes and sandboxes find them, reports draw them."""

from pathlib import Path

import pytest

from referee.games.plugins import GAMES_VARIABLE
from tests.support.builders import invoke, write_tournament
from tests.support.paths import REPOSITORY_ROOT

pytestmark = pytest.mark.usefixtures("game_catalog")

EXAMPLES = REPOSITORY_ROOT / "tournaments" / "examples" / "games"


@pytest.mark.parametrize("game", ["oware", "connect-four"])
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
