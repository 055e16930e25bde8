"""Commands and results of a tournament's directory, for tests of rulings."""

import csv
import json
from pathlib import Path

from tests.support.builders import invoke, one_object
from tournaments.results.store import Store


def do(*arguments: str | Path, fails: bool = False) -> str:
    """Run a subcommand and return its output; with ``fails``, its error message of one line."""
    result = invoke("tournament", *arguments)
    if fails:
        assert result.exit_code == 2, result.output
        assert result.stdout == ""
        (line,) = result.stderr.splitlines()
        assert line.startswith("Error: ")
        return line.removeprefix("Error: ")
    assert (result.exit_code, result.stderr) == (0, ""), result.output
    return result.stdout


def run(out: Path) -> None:
    result = invoke("tournament", "run", out.parent / "cup.toml", "--out", out)
    assert result.exit_code == 0, result.output


def is_clean(out: Path) -> None:
    result = invoke("verify", out)
    assert result.exit_code == 0, result.output


def results(out: Path) -> dict[str, object]:
    """Return the table of the command, which is that of the directory, too."""
    value = one_object(do("table", out, "--format", "json"))
    assert json.loads((out / "results.json").read_text()) == value
    return value


def keys_of(out: Path) -> list[str]:
    """Return the keys of the games that count."""
    with (out / "games.csv").open(newline="") as file:
        return [row["key"] for row in csv.DictReader(file)]


def kept(out: Path) -> list[str]:
    with Store(out / "results.db", read_only=True) as store:
        return [game.key for game in store.games()]


def line_of(out: Path, name: str) -> dict[str, object]:
    standings = results(out)["standings"]
    assert isinstance(standings, list)
    (line,) = [one for one in standings if one["name"] == name]
    assert isinstance(line, dict)
    return line
