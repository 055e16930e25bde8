"""Texts of README and docs are true: commands work, tables are complete, examples load and play."""

import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from referee.games.catalog import GAMES, parse_game
from referee.judge.results import CAPABILITIES
from referee.judge.runtime_messages import FILE_FAULTS, MEMORY
from tests.support.builders import invoke, kalarena
from tests.support.paths import REPOSITORY_ROOT
from tournaments.analysis.tie_breaks import CRITERIA, PRESETS
from tournaments.bots.manifest import Manifest, load_manifest
from tournaments.cli.main import COMMANDS
from tournaments.cli.tournament import TOURNAMENT_COMMANDS
from tournaments.config.cluster_table import ClusterTable, ServerClusterTable
from tournaments.config.format_tables import FORMAT_TABLES
from tournaments.config.load import load_tournament
from tournaments.config.tournament_file import (
    BotEntry,
    LimitsTable,
    RatingTable,
    SandboxTable,
    TimeTable,
    TournamentFile,
)
from tournaments.results.journal import Action
from tournaments.schedule.plan import FORMATS

ROOT = REPOSITORY_ROOT
DOCS = sorted((ROOT / "docs").glob("*.md"))
TEXTS = {path.name: path.read_text(encoding="utf-8") for path in [ROOT / "README.md", *DOCS]}
ENVIRONMENT = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
SAVED = re.compile(r"[Ss]ave (?:this|it) as `([^`]+)`:\n\n```[a-z]+\n(.*?)^```", re.MULTILINE | re.DOTALL)
"""A file that a text asks the reader to save."""
DEAR = ("check", "gauntlet", "perft", "stronger")
"""Words of README's commands that take many seconds."""
MAKES_BOT = "$ kalarena new python starter"
"""Command of README that makes the bot for the long commands."""
SHORTER = {
    "kalarena gauntlet mybot": " --levels 1-2 --games 2",
    "kalarena duel v1 mybot --sprt 0,20": " --max-games 2",
}
"""Options for commands of the students' guide that take minutes."""
FEWER_GAMES = {"rounds = 2 ": "rounds = 1 ", ', "first_legal", "greedy"]': ', "greedy"]'}
"""Changes of the tournament's file in the students' guide: 4 games instead of 24."""
LIMIT_S = 1200
"""Bound for one command; the longest one takes half a minute where cores are free."""
README_LIMIT = "move_s = 1.0"
"""Time limit of README's tournament, which a machine that stands still for a second would pass."""
README_TEST = "elo1 = 100.0"
"""Hypothesis of README's test of strength; one that is further away is decided after fewer games."""
ADDED_TO_README = {
    "kalarena gauntlet starter --levels 1-4 --games 10": " --levels 1-2 --games 2",
    "kalarena play mybot.py minimax:4 --move-time 1 --record game.json": " --move-time 60",
}
"""Options for commands of README: shorter ones, and a limit that no machine passes by standing still."""


def blocks(text: str, language: str) -> list[str]:
    """Return the fenced blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def table_in(text: str, section: str) -> dict[str, object]:
    """Return ``[cluster]`` of the file that a section shows."""
    (block,) = blocks(text.partition(f"## {section}\n")[2].partition("\n## ")[0], "toml")
    table: dict[str, object] = tomllib.loads(block)["cluster"]
    return table


def run(command: list[str], folder: Path) -> str:
    """Run a command, which must succeed; return its output."""
    done = subprocess.run(
        command, cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, timeout=LIMIT_S, check=False
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    assert "Traceback" not in done.stderr
    return done.stdout


def run_here(command: list[str], folder: Path) -> str:
    """Run a command of Kalarena in this process, which must succeed; return its output."""
    assert Path.cwd() == folder
    result = invoke(*command[1:])
    assert result.exit_code == 0, (command, result.output)
    return result.stdout


# Commands of README and of the students' guide.


def run_readme(folder: Path, is_wanted: Callable[[str], bool]) -> None:
    """Run the wanted commands of README in a folder with its files, in this process.

    test_package.py plays as README shows it with the command.
    """
    files = SAVED.findall(TEXTS["README.md"])
    assert [name for name, _ in files] == ["mybot.py", "cup.toml", "marks.toml", "stronger.toml"]
    assert README_LIMIT in dict(files)["cup.toml"]
    assert README_TEST in dict(files)["stronger.toml"]
    for name, text in files:
        changed = text.replace(README_LIMIT, "move_s = 60.0").replace(README_TEST, "elo1 = 400.0")
        (folder / name).write_text(changed)
    lines = [line for block in blocks(TEXTS["README.md"], "console") for line in block.splitlines()]
    assert len(lines) >= 8
    assert {f"$ {command}" for command in ADDED_TO_README} <= set(lines)
    for line in lines:
        if is_wanted(line):
            text = line.removeprefix("$ ")
            command = shlex.split(text + ADDED_TO_README.get(text, ""))
            output = run_here(command, folder)
            assert ("[score]" in output) if command[1] == "play" else output, line


def is_dear(line: str) -> bool:
    return any(word in line for word in DEAR)


@pytest.mark.slow
def test_the_commands_of_the_readme_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_readme(tmp_path, lambda line: not is_dear(line))
    assert (tmp_path / "game.json").is_file()
    assert "No game was lost by a fault." in (tmp_path / "cup-results" / "report.html").read_text()
    assert (tmp_path / "cup-results" / "report" / "index.html").is_file()
    assert (tmp_path / "public" / "index.html").is_file()
    assert (tmp_path / "cup-results" / "games" / "r001-1v2~2").is_dir()


@pytest.mark.slow
@pytest.mark.usefixtures("unhurried_check")
def test_the_long_commands_of_the_readme_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the command that makes the bot for them."""
    monkeypatch.chdir(tmp_path)
    run_readme(tmp_path, lambda line: is_dear(line) or line == MAKES_BOT)


def test_the_shortened_commands_are_in_the_guide() -> None:
    assert set(SHORTER) <= {
        line for block in blocks(TEXTS["students.md"], "sh") for line in block.splitlines()
    }


@pytest.mark.toolchain
@pytest.mark.skipif(shutil.which("javac") is None, reason="javac is not installed")
@pytest.mark.long
@pytest.mark.usefixtures("unhurried_check")
def test_the_commands_of_the_students_guide_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each command works, in order, in an empty folder: those of Kalarena in this process."""
    monkeypatch.chdir(tmp_path)
    ((name, text),) = SAVED.findall(TEXTS["students.md"])
    for old, new in FEWER_GAMES.items():
        assert old in text
        text = text.replace(old, new)
    (tmp_path / name).write_text(text, encoding="utf-8")
    output = ""
    for block in blocks(TEXTS["students.md"], "sh"):
        for command in block.splitlines():
            if command.startswith("kalarena "):
                output += run_here(shlex.split(command + SHORTER.get(command, "")), tmp_path)
            else:
                output += run(["bash", "-c", command], tmp_path)
    assert (tmp_path / "cup-results" / "report" / "index.html").is_file()
    # The bot that was broken on purpose loses with the sentence that the guide shows.
    assert re.search(r"broken \(South\) lost: it sent 'MOVE;\d': ", output)


def test_the_first_bot_is_short_and_plays_both_sides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (bot,) = blocks(TEXTS["README.md"], "python")
    assert len(bot.splitlines()) <= 20
    # The same bot, but it swaps when the swap is offered.
    turn = "    if my_turn:\n"
    swap = (
        '    if my_turn and word == "CHANGE" and seat == "North" and not globals().get("done"):\n'
        '        done, seat = True, "South"\n        print("SWAP", flush=True)\n        continue\n'
    )
    Path("mybot.py").write_text(bot)
    Path("swapper.py").write_text(bot.replace(turn, swap + turn))
    assert "[score]" in run_here(["kalarena", "play", "mybot.py", "swapper.py"], tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("spec", ["kalah(2,1)", "kalamala+cap=4"])
def test_the_short_games_of_the_protocol_are_played_as_shown(tmp_path: Path, spec: str) -> None:
    section = TEXTS["protocol.md"].partition(f"`{spec}`, two bots")[2].partition("## ")[0]
    shown = re.findall(r"^    (first|second) +(<-|->)  (.+)$", section, re.MULTILINE)
    assert len(shown) >= 13
    stderr = kalarena(tmp_path, "play", "first_legal", "first_legal", "--game", spec, "-v").stderr
    seen = re.findall(r"ms  ([12]) first_legal  (<-|->)  (.+)$", stderr, re.MULTILINE)
    assert [(("first", "second")[int(player) - 1], arrow, line) for player, arrow, line in seen] == shown


def test_every_make_target_exists() -> None:
    promised = set(re.findall(r"(?:`|    )make ([a-z]+)\b", "".join(TEXTS.values())))
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert {"demo", "test", "bench", "lint", "format"} <= promised <= targets
    assert "tournaments/examples/demo.toml" in run(["make", "-n", "demo"], ROOT)


def test_links_lead_to_files() -> None:
    for path in [ROOT / "README.md", *DOCS]:
        for target in re.findall(r"\]\(([^)#]+)\)", path.read_text()):
            assert (path.parent / target).exists(), f"{path.name}: {target}"


# Tables and lists.


def test_every_command_format_criterion_and_ruling_is_documented() -> None:
    for name in COMMANDS:
        assert f"kalarena {name}" in TEXTS["README.md"]
    for name in TOURNAMENT_COMMANDS:
        assert f"kalarena tournament {name}" in TEXTS["tournaments.md"], name
    for name, table in FORMAT_TABLES.items():
        (row,) = re.findall(rf"^\| `{name}` \|.*$", TEXTS["formats.md"], re.MULTILINE)
        assert all(f"`{key}" in row or "as above" in row for key in table.model_fields if key != "kind"), row
    for name in (*CRITERIA, *PRESETS):
        assert f"| `{name}` |" in TEXTS["tournaments.md"]
    for action in Action:
        assert f"- `{action}`:" in TEXTS["tournaments.md"]
    for capability in CAPABILITIES:
        assert f"`{capability}`" in TEXTS["bots.md"]
        assert f"`{capability}`" in TEXTS["protocol.md"]


def fault_words() -> set[str]:
    """Return the words of all faults in the code."""
    found: set[str] = set()
    for name in (
        "protocol/codec.py",
        "protocol/session.py",
        "referee/games/kalah.py",
        "referee/games/kalamala.py",
        "referee/judge/faults.py",
        "referee/judge/game_clock.py",
        "referee/judge/match.py",
        "referee/process/bot.py",
    ):
        text = (ROOT / name).read_text()
        for pattern in (
            r'(?:ProtocolError|MoveError)\(\s*"([a-z-]+)"',
            r'Reason\.[A-Z]+,\s*"([a-z-]+)"',
            r'fault = "([a-z-]+)" if',
            r'else "([a-z-]+)"\n',
        ):
            found |= set(re.findall(pattern, text))
        found |= {f"{limit}-limit" for limit in re.findall(r'"(memory|process)", ', text)}
    return found | {MEMORY, *FILE_FAULTS}


def test_every_fault_is_in_the_table_of_the_protocol() -> None:
    rows = re.findall(r"^\| (?:`[a-z-]+`)? ?\| `([a-z-]+)` \|", TEXTS["protocol.md"], re.MULTILINE)
    assert sorted(rows) == sorted(fault_words())


def test_rules_have_every_preset_and_option() -> None:
    for name, entry in GAMES.items():
        assert f"`{name}" in TEXTS["rules.md"]
        for option in entry.options:
            assert f"`{option}" in TEXTS["rules.md"] or option in TEXTS["rules.md"]
    for spec in re.findall(r"`((?:manchester|bga|kalah)\([^`]*?)`", TEXTS["rules.md"]):
        if "p,s" not in spec:
            parse_game(spec)


# Examples of files.


@pytest.mark.parametrize(
    "path", sorted((ROOT / "tournaments/examples").glob("*.toml")), ids=lambda path: path.name
)
def test_the_examples_load(path: Path) -> None:
    if path.name != "marks.toml":  # which tests/reporting/test_marks_file.py loads
        assert load_tournament(path).plan.kind in FORMATS


def test_the_documented_tournament_file_has_every_key_and_loads(tmp_path: Path) -> None:
    (example,) = blocks(TEXTS["tournaments.md"], "toml")
    data = tomllib.loads(example)
    assert set(data) == set(TournamentFile.model_fields) - {"clock", "ponder"}  # which are in [time], too
    tables: dict[str, Any] = {
        "rating": RatingTable,
        "sandbox": SandboxTable,
        "limits": LimitsTable,
        "time": TimeTable,
    }
    for name, model in tables.items():
        assert set(data[name]) == set(model.model_fields)
    assert {*data["cluster"], "same_speed"} == set(ClusterTable.model_fields)  # which is there as a comment
    assert {key for bot in data["bots"] if isinstance(bot, dict) for key in bot} == set(BotEntry.model_fields)
    path = tmp_path / "example.toml"
    path.write_text(example)
    assert load_tournament(path).names == ["greedy", "minimax:4", "baseline"]


def test_the_documented_manifest_loads(tmp_path: Path) -> None:
    (example,) = blocks(TEXTS["bots.md"], "toml")
    (tmp_path / "bot.toml").write_text(example)
    assert set(tomllib.loads(example)) == {key.name for key in fields(Manifest)}
    assert load_manifest(tmp_path) is not None


def test_the_documented_cluster_tables_load() -> None:
    settings = ClusterTable.model_validate(table_in(TEXTS["cluster.md"], "Slurm in ten minutes"))
    assert (settings.queue, settings.cores, settings.walltime_s) == ("students", 4, 3600)
    assert "\n    kalarena tournament run cup.toml --out results --engine slurm\n" in TEXTS["cluster.md"]
    server = ServerClusterTable.model_validate(table_in(TEXTS["cluster.md"], "The server's tournaments"))
    assert (server.engine, server.port, server.minimum) == ("dask", 8786, 8)
