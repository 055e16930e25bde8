"""What README and docs show is true: commands run, texts are complete, examples play."""

import os
import re
import shlex
import subprocess
import sys
import tomllib
from dataclasses import fields
from pathlib import Path

import pytest

from referee.games.catalog import GAMES, parse_game
from referee.judge.results import CAPABILITIES
from referee.judge.runtime_messages import FILE_FAULTS, MEMORY
from tournaments.analysis.tie_breaks import CRITERIA, PRESETS
from tournaments.bots.manifest import Manifest, load_manifest
from tournaments.cli.main import COMMANDS
from tournaments.cli.tournament import TOURNAMENT_COMMANDS
from tournaments.config.cluster_table import ClusterTable
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

ROOT = Path(__file__).parent.parent
DOCS = sorted((ROOT / "docs").glob("*.md"))
TEXTS = {path.name: path.read_text(encoding="utf-8") for path in [ROOT / "README.md", *DOCS]}
ENVIRONMENT = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}


def blocks(text: str, language: str) -> list[str]:
    """The fenced blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def run(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, timeout=300)


@pytest.fixture(scope="module")
def workplace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new user's folder, with the files that README tells to save."""
    folder = tmp_path_factory.mktemp("user")
    told = re.findall(
        r"[Ss]ave (?:this|it) as `([^`]+)`:\n\n```[a-z]+\n(.*?)^```",
        TEXTS["README.md"],
        re.MULTILINE | re.DOTALL,
    )
    assert [name for name, _ in told] == ["mybot.py", "cup.toml", "marks.toml", "stronger.toml"]
    for name, text in told:
        (folder / name).write_text(text)
    return folder


@pytest.mark.slow
def test_every_command_of_the_readme_works(workplace: Path) -> None:
    lines = [line for block in blocks(TEXTS["README.md"], "console") for line in block.splitlines()]
    commands = [shlex.split(line.removeprefix("$ ")) for line in lines]
    assert len(commands) >= 8
    for command in commands:
        done = run(command, workplace)
        assert done.returncode == 0, (command, done.stderr)
        assert done.stdout
        if command[1] == "play":
            assert "[score]" in done.stdout, done.stdout
    assert (workplace / "game.json").is_file()
    report = (workplace / "cup-results" / "report.html").read_text()
    assert "No game was lost by a fault." in report
    assert (workplace / "cup-results" / "report" / "index.html").is_file()
    assert (workplace / "public" / "index.html").is_file()
    assert (workplace / "cup-results" / "games" / "r001-1v2~2").is_dir()


def test_the_first_bot_is_short() -> None:
    (bot,) = blocks(TEXTS["README.md"], "python")
    assert len(bot.splitlines()) <= 20


def test_the_first_bot_swaps_seats_and_plays_both_sides(workplace: Path) -> None:
    swapper = workplace / "swapper.py"
    (bot,) = blocks(TEXTS["README.md"], "python")
    # The same bot, but it takes the swap when it is offered.
    told = "    if my_turn:\n"
    swap = (
        '    if my_turn and word == "CHANGE" and seat == "North" and not globals().get("done"):\n'
        '        done, seat = True, "South"\n        print("SWAP", flush=True)\n        continue\n'
    )
    swapper.write_text(bot.replace(told, swap + told))
    done = run(["kalarena", "play", "mybot.py", "swapper.py"], workplace)
    assert done.returncode == 0
    assert "[score]" in done.stdout, done.stdout


def test_every_subcommand_is_in_the_readme_and_help() -> None:
    for name in COMMANDS:
        assert f"kalarena {name}" in TEXTS["README.md"]
    for name in TOURNAMENT_COMMANDS:
        assert f"kalarena tournament {name}" in TEXTS["tournaments.md"], name


@pytest.mark.parametrize(
    "path", sorted((ROOT / "tournaments" / "examples").glob("*.toml")), ids=lambda path: path.name
)
def test_the_examples_load(path: Path) -> None:
    if path.name != "marks.toml":  # which tests/test_marks_file.py loads
        assert load_tournament(path).plan.kind in FORMATS


def test_every_format_criterion_and_ruling_is_documented() -> None:
    for name, table in FORMAT_TABLES.items():
        (row,) = re.findall(rf"^\| `{name}` \|.*$", TEXTS["formats.md"], re.MULTILINE)
        assert all(f"`{key}" in row or "as above" in row for key in table.model_fields if key != "kind"), row
    for name in (*CRITERIA, *PRESETS):
        assert f"| `{name}` |" in TEXTS["tournaments.md"]
    for action in Action:
        assert f"- `{action}`:" in TEXTS["tournaments.md"]


def test_every_make_target_that_is_promised_exists() -> None:
    promised = set(re.findall(r"(?:`|    )make ([a-z]+)\b", "".join(TEXTS.values())))
    makefile = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"^([a-z]+):", makefile, re.MULTILINE))
    assert {"demo", "test", "bench", "lint", "format"} <= promised <= targets
    done = run(["make", "-n", "demo"], ROOT)
    assert "tournaments/examples/demo.toml" in done.stdout


def test_links_lead_somewhere() -> None:
    for path in [ROOT / "README.md", *DOCS]:
        for target in re.findall(r"\]\(([^)#]+)\)", path.read_text()):
            assert (path.parent / target).exists(), f"{path.name}: {target}"


def fault_words() -> set[str]:
    """Every word of a fault that the code can say."""
    found: set[str] = set()
    for name in (
        "protocol/codec.py",
        "protocol/session.py",
        "referee/games/kalah.py",
        "referee/games/kalamala.py",
        "referee/judge/match.py",
        "referee/process/bot.py",
    ):
        text = (ROOT / name).read_text()
        found |= set(re.findall(r'(?:ProtocolError|MoveError)\(\s*"([a-z-]+)"', text))
        found |= set(re.findall(r'Reason\.[A-Z]+,\s*"([a-z-]+)"', text))
        found |= {f"{limit}-limit" for limit in re.findall(r'"(memory|process)", ', text)}
        found |= set(re.findall(r'fault = "([a-z-]+)" if', text)) | set(
            re.findall(r'else "([a-z-]+)"\n', text)
        )
    return found | {MEMORY, *FILE_FAULTS}


def test_every_fault_is_in_the_protocols_table() -> None:
    rows = re.findall(r"^\| (?:`[a-z-]+`)? ?\| `([a-z-]+)` \|", TEXTS["protocol.md"], re.MULTILINE)
    assert len(rows) == len(set(rows))
    assert set(rows) == fault_words()


def test_every_key_of_the_tournament_file_is_documented() -> None:
    (example,) = blocks(TEXTS["tournaments.md"], "toml")
    data = tomllib.loads(example)
    assert set(data) == set(TournamentFile.model_fields) - {"clock", "ponder"}  # which are in [time], too
    assert set(data["rating"]) == set(RatingTable.model_fields)
    assert set(data["sandbox"]) == set(SandboxTable.model_fields)
    assert {*data["cluster"], "same_speed"} == set(ClusterTable.model_fields)  # which is there as a comment
    assert set(data["limits"]) == set(LimitsTable.model_fields)
    assert set(data["time"]) == set(TimeTable.model_fields)
    assert {key for bot in data["bots"] if isinstance(bot, dict) for key in bot} == set(BotEntry.model_fields)


def test_the_documented_tournament_file_loads(tmp_path: Path) -> None:
    (example,) = blocks(TEXTS["tournaments.md"], "toml")
    path = tmp_path / "example.toml"
    path.write_text(example)
    assert load_tournament(path).names == ["greedy", "minimax:4", "baseline"]


def test_rules_name_every_preset_and_option() -> None:
    for name, entry in GAMES.items():
        assert f"`{name}" in TEXTS["rules.md"]
        for option in entry.options:
            assert f"`{option}" in TEXTS["rules.md"] or option in TEXTS["rules.md"]
    for spec in re.findall(r"`((?:manchester|bga|kalah)\([^`]*?)`", TEXTS["rules.md"]):
        if "p,s" not in spec:
            parse_game(spec)


@pytest.mark.parametrize("spec", ["kalah(2,1)", "kalamala+cap=4"])
def test_the_short_games_of_the_protocol_are_played_so(tmp_path: Path, spec: str) -> None:
    section = TEXTS["protocol.md"].partition(f"`{spec}`, two bots")[2].partition("## ")[0]
    shown = re.findall(r"^    (first|second) +(<-|->)  (.+)$", section, re.MULTILINE)
    assert len(shown) >= 13
    done = run(["kalarena", "play", "first_legal", "first_legal", "--game", spec, "-v"], tmp_path)
    seen = re.findall(r"ms  ([12]) first_legal  (<-|->)  (.+)$", done.stderr, re.MULTILINE)
    assert [(("first", "second")[int(player) - 1], arrow, line) for player, arrow, line in seen] == shown


def test_the_documented_manifest_loads(tmp_path: Path) -> None:
    (example,) = blocks(TEXTS["bots.md"], "toml")
    (tmp_path / "bot.toml").write_text(example)
    assert set(tomllib.loads(example)) == {key.name for key in fields(Manifest)}
    assert load_manifest(tmp_path) is not None


def test_every_capability_is_documented() -> None:
    for capability in CAPABILITIES:
        assert f"`{capability}`" in TEXTS["bots.md"]
        assert f"`{capability}`" in TEXTS["protocol.md"]
