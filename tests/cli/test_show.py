"""`kalarena tournament show`: the games of a tournament, and one of them."""

import json
import re
from pathlib import Path

import pytest

from referee.judge.results import GameRecord
from tests.support.builders import invoke, write_tournament

CUP = 'name = "Cup"\ngame = "kalah(3,2)"\nbots = ["first_legal", "greedy", { bot = "loud", name = "loud" }]\n'
GAMES = 6
LOUD = r"""#!/usr/bin/env python3
import sys
print("\x1b[31mhere\tI am", file=sys.stderr)
sys.exit("no idea")
"""


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the directory of a tournament whose third bot writes to standard error, and ends."""
    folder = tmp_path_factory.mktemp("played")
    (folder / "loud").write_text(LOUD)
    (folder / "loud").chmod(0o755)
    assert invoke("tournament", "run", write_tournament(folder, CUP), "--out", folder / "out").exit_code == 0
    assert invoke("tournament", "void", folder / "out", "r001-1v2", "--why", "power").exit_code == 0
    return folder / "out"


def show(*arguments: object) -> str:
    result = invoke("tournament", "show", *map(str, arguments))
    assert result.exit_code == 0, result.output
    return result.output


def test_all_games_are_listed_by_number(out: Path) -> None:
    lines = show(out).splitlines()
    assert len(lines) == GAMES
    assert lines[0].startswith("1  r001-1v2  ")
    assert lines[0].endswith("  (does not count)")
    assert lines[5].startswith("6  r001-3v2  loud (South) lost: ")


def test_the_games_of_a_bot_keep_their_numbers(out: Path) -> None:
    lines = show(out).splitlines()
    assert show(out, "--bot", "loud").splitlines() == [lines[number] for number in (1, 3, 4, 5)]


def test_a_game_has_its_verdict_moves_standard_error_and_files(out: Path) -> None:
    text = show(out, "r001-1v2")
    head, verdict, aside, *_ = text.splitlines()
    assert head == "r001-1v2: kalah(3,2), round 1, first_legal (first) against greedy"
    assert verdict.endswith("   [score]")
    assert aside.startswith("does not count: ")
    assert "power" in aside
    assert " ply  bot          move     wall ms  charged ms      CPU ms" in text
    assert "   1  first_legal  1 " in text
    assert "  nothing on standard error" in text
    assert f"files: {out / 'games' / 'r001-1v2'}" in text
    text = show(out, "r001-3v2")
    assert "  the end of its standard error (all of it: --stderr loud):" in text
    assert "    | \\x1b[31mhere       I am\n    | no idea" in text
    assert "loud: 0 moves" in text
    assert "exit status 1\n" in text
    assert " ply " not in text


@pytest.mark.parametrize("key", ["r001-3v2", "6"])
def test_a_game_is_found_by_its_number(out: Path, key: str) -> None:
    assert show(out, key).startswith("r001-3v2: ")


def test_the_conversation_the_record_and_standard_error(out: Path, tmp_path: Path) -> None:
    assert show(out, "1", "--wire") == (out / "games" / "r001-1v2" / "wire.txt").read_text()
    record = json.loads(show(out, "1", "--json"))
    assert GameRecord.from_json(record).key == "r001-1v2"
    file = tmp_path / "game.json"
    file.write_text(json.dumps(record))
    assert invoke("verify", file).exit_code == 0
    assert show(out, "6", "--stderr", "loud") == "\x1b[31mhere\tI am\nno idea\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("r001-1v9", "there is no game 'r001-1v9' here; did you mean 'r001-1v3'?"),
        ("7", "there is no game '7' here; kalarena tournament show DIR lists the games"),
        ("0", "there is no game '0' here"),
        ("1" * 5000, "there is no game '1111"),
        (
            "r001-1",
            "2 games have keys that begin with 'r001-1': r001-1v2, r001-1v3; give more of the key",
        ),
        ("r0", "6 games have keys that begin with 'r0': r001-1v2, r001-1v3, r001-2v1, ...; give more"),
        ("1 --stderr loud", "'loud' did not play r001-1v2; there are first_legal, greedy"),
        ("1 --wire --json", "--wire, --stderr and --json exclude one another"),
        ("--bot laud", "there is no bot 'laud' here; did you mean 'loud'?"),
        ("1 --bot loud", "--bot lists games: leave KEY out"),
        ("--json", "--wire, --stderr and --json are of one game: give its KEY"),
    ],
)
def test_bad_usage(out: Path, arguments: str, message: str) -> None:
    result = invoke("tournament", "show", out, *arguments.split())
    assert result.exit_code == 2
    assert message in result.output


def test_the_beginning_of_a_key_is_enough_for_exports_too(out: Path) -> None:
    game = invoke("tournament", "export", out, "--game", "r001-3v2", "--format", "json").output
    assert invoke("tournament", "export", out, "--game", "6", "--format", "json").output == game


def test_a_game_with_an_opening_by_the_beginning_of_its_key(tmp_path: Path) -> None:
    text = 'name = "Duo"\ngame = "kalah(3,2)"\nbots = ["first_legal", "greedy"]\nsandbox = { mode = "off" }\n'
    file = write_tournament(
        tmp_path, text + "concurrency = 1\nopenings = { random = { plies = 2, seed = 7 } }\n"
    )
    assert invoke("tournament", "run", file, "--out", tmp_path / "out").exit_code == 0
    lines = show(tmp_path / "out", "r001-1").splitlines()
    assert lines[0].startswith("r001-1v2: ")
    assert re.fullmatch(r"opening: \S+.*", lines[4])
