"""`kalarena games`, `perft` and `play`: messages, JSON, records and exit statuses for scripts."""

import json
import re
import sys
from dataclasses import asdict
from pathlib import Path

import pytest

from referee.judge.limits import Limits
from referee.judge.results import GameRecord, Reason
from referee.sandbox.bubblewrap import Tier
from referee.sandbox.host_resources import default_memory_here
from sample_bots.catalog import SAMPLE_BOTS
from tests.games.test_game_modules import RULES
from tests.support.builders import invoke, kalarena, lost_by, make_record, one_object, quick_sample_bot
from tests.support.paths import REPOSITORY_ROOT, SUPPORT
from tournaments.reporting.board import board_renderer

ROOT = REPOSITORY_ROOT
SMALL = "kalah(3,2)"

BOTS = {
    "illegal": "input(); print('MOVE;9', flush=True); input(); input()",
    "silent": "input(); input(); input(); input()",
    "words": "input(); print('h\\u00e4ll\\u00f6', flush=True); input(); input()",
    "crash": "import sys; input(); sys.exit('my last words')",
    "escapes": "import sys; input(); sys.stderr.write('\\x1b]0;a\\x07'); print('\\x1b]0;b\\x07')",
}
"""Programs that misbehave as player 0."""


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def misbehaving(name: str) -> str:
    path = Path(f"{name}.py")
    path.write_text(BOTS[name], encoding="utf-8")
    return str(path)


def test_games_lists_everything() -> None:
    result = invoke("games")
    assert (result.exit_code, result.stderr) == (0, "")
    names = ("manchester", "bga", "kalah", "the default")
    for word in (*names, "+pie", "+end", "+empty-capture", "+majority-end"):
        assert word in result.stdout


# The worked example of the rules: North plays 6, then South may play 1, 2, 3, 5 or 6.  After 5 it moves
# again with 4 pits to choose from; after 2 it has captured pit 3 and North has 3; after the others, 4.
WORKED_EXAMPLE = "5,1,4,0,3,2,25,1,2,3,0,2,4,20;North"
AFTER_NORTHS_6 = "5,1,4,0,3,0,26,2,2,3,0,2,4,20"


@pytest.mark.parametrize(
    ("game", "position", "depth", "count"),
    [
        ("manchester", "", 3, 364),
        ("kalah(6,4)+pie", "", 2, 40),
        ("kalah(6,4)", "", 0, 1),
        ("kalah(6,6)", WORKED_EXAMPLE, 0, 1),
        ("kalah(6,6)", WORKED_EXAMPLE, 1, 5),
        ("kalah(6,6)", AFTER_NORTHS_6, 1, 5),
        ("kalah(6,6)", AFTER_NORTHS_6 + ";South", 1, 5),
        ("kalah(6,6)", AFTER_NORTHS_6, 2, 4 + 3 + 4 + 4 + 4),
    ],
)
def test_perft(game: str, position: str, depth: int, count: int) -> None:
    start = ("--position", position) if position else ()
    result = invoke("perft", game, "--depth", str(depth), *start)
    assert (result.exit_code, result.stdout) == (0, f"{count}\n"), result.stderr


def test_play_json_contract() -> None:
    done = kalarena(Path.cwd(), "play", "first_legal", "greedy", "--game", SMALL, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    game = one_object(done.stdout)
    assert game["game"] == SMALL
    assert [player["name"] for player in game["players"]] == ["first_legal", "greedy"]
    assert all(Path(player["command"][0]).is_absolute() for player in game["players"])
    assert game["reason"] == "score"
    first, second = game["score"]
    assert first + second == 2 * 3 * 2
    assert game["winner"] == (None if first == second else int(second > first))
    times = {"wall_ms", "charged_ms", "cpu_ms", "wait_ms", "referee_wait_ms"}
    assert {frozenset(move) for move in game["moves"]} == {frozenset({"player", "move", *times})}
    assert all(0 <= move["charged_ms"] <= move["wall_ms"] for move in game["moves"])
    facts = {"player", "fact", "t_ms", "text", "after", "data"}
    assert {frozenset(fact) for fact in game["facts"]} <= {frozenset(facts)}
    assert game["sandbox"] in list(Tier)
    assert game["clock"] in ("wall", "fair")
    assert game["limits"] == asdict(Limits(memory_mb=default_memory_here()))
    assert len(game["cpu_ms"]) == len(game["off_turn_cpu_ms"]) == 2
    assert {frozenset(line) for line in game["wire"]} == {frozenset({"player", "dir", "line", "t_ms"})}
    assert game["moves"][0]["player"] == 0
    said = [(line["player"], line["line"]) for line in game["wire"] if line["dir"] == "from"]
    assert said == [(move["player"], f"MOVE;{move['move']}") for move in game["moves"]]
    assert len(game["final_state"].split(",")) == 2 * 3 + 2


def test_play_players_keep_their_numbers_after_a_swap() -> None:
    opener = "input(); print('MOVE;6')\nfor _ in '12': input()\nprint('MOVE;9')\ninput()\n"
    Path("opener.py").write_text(opener)
    Path("swapper.py").write_text("for _ in '12': input()\nprint('SWAP')\nfor _ in range(9): input()\n")
    result = invoke("play", "opener.py", "swapper.py", "--json")
    game = one_object(result.stdout)
    assert [(move["player"], move["move"]) for move in game["moves"]] == [(0, "6"), (1, "SWAP")]
    # The opener loses by an illegal move, and is still player 0.
    assert (game["winner"], game["reason"], game["score"]) == (1, "illegal-move", None)


@pytest.mark.parametrize(
    ("bot", "reason", "word"),
    [
        ("illegal", "illegal-move", "MOVE;9"),
        ("silent", "timeout", "0.2 s"),
        ("words", "protocol", "h\u00e4ll\u00f6"),
        ("crash", "exit", "my last words"),
    ],
)
def test_play_a_fault_is_a_result(bot: str, reason: str, word: str) -> None:
    move_time = "0.2" if reason == "timeout" else "60"
    result = invoke("play", misbehaving(bot), "greedy", "--move-time", move_time, "--json")
    assert result.exit_code == 0
    assert result.stderr == ""
    game = one_object(result.stdout)
    assert (game["winner"], game["reason"], game["score"]) == (1, reason, None)
    assert game["detail"].startswith(f"{bot} (South) lost: ")
    assert word in game["detail"] + game["note"]


@pytest.mark.parametrize("pause", ["0.01", "0.03", "0.05"])
def test_play_a_bot_that_ends_at_once_after_its_start_line_has_taken_it(pause: str) -> None:
    """Its end may be noticed before its reading of START: the end counts."""
    bot = f"/bin/sh -c 'sleep {pause}; read line; exit 3'"
    game = one_object(invoke("play", bot, "greedy", "--json").stdout)
    assert "ended with exit status 3" in game["detail"]
    assert "before it had taken its START line" not in game["detail"]


def test_play_for_people() -> None:
    result = invoke("play", misbehaving("crash"), "greedy", "--game", SMALL)
    assert result.exit_code == 0
    assert f"{SMALL}: crash (first) against greedy" in result.stdout
    assert "crash (South) lost: " in result.stdout
    assert "[exit]" in result.stdout
    assert "    | my last words" in result.stdout


def test_play_explains_the_last_words_of_a_bot_that_ended() -> None:
    Path("alone.py").write_text("input(); print('MOVE;1', flush=True); input(); import my_other_file\n")
    lines = invoke("play", "alone.py", "greedy", "--game", SMALL).stdout.splitlines()
    assert lines[2].startswith("  alone: 1 move, ")
    assert lines[3].startswith('  its last words on standard error: "ModuleNotFoundError: No module named ')
    assert "a bot that is a single file brings that file only" in lines[3]


@pytest.mark.parametrize(("words", "is_explained"), [("can't start new thread", True), ("depth 3", False)])
@pytest.mark.slow
def test_play_explains_the_last_words_of_a_late_bot_if_their_cause_is_known(
    words: str, is_explained: bool
) -> None:
    program = f"import sys, time; print({words!r}, file=sys.stderr, flush=True); input(); time.sleep(60)"
    Path("waits.py").write_text(program)
    result = invoke("play", "waits.py", "first_legal", "--move-time", "0.1", "--sandbox", "off")
    assert "lost: out of time" in result.stdout
    assert ("use fewer, and wait for them" in result.stdout) == is_explained
    assert f"| {words}" in result.stdout


SLOW_TO_LOAD = ("strong",)
"""Their searches are compiled, or take long to import."""


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(quick_sample_bot(name), marks=pytest.mark.slow if name in SLOW_TO_LOAD else ())
        for name in SAMPLE_BOTS
    ],
)
def test_play_every_sample_bot_by_name(name: str) -> None:
    assert one_object(invoke("play", name, "greedy", "--game", SMALL, "--json").stdout)["reason"] == "score"


def test_play_verbose_goes_to_standard_error() -> None:
    arguments = ("play", "greedy", "first_legal", "--game", SMALL, "--json")
    done = kalarena(Path.cwd(), *arguments, "-v")
    assert done.returncode == 0
    game = one_object(done.stdout)
    shown = [line for line in done.stderr.splitlines() if " ms  " in line]
    pictures = [line for line in done.stderr.splitlines() if " ms  " not in line]
    assert sum("South (first player)" in line for line in pictures) == len(game["moves"])
    assert [line.rpartition("  ")[2] for line in shown] == [line["line"] for line in game["wire"]]
    arrows = {"to": "<-", "from": "->"}
    for text, line in zip(shown, game["wire"], strict=True):
        name = ("greedy", "first_legal")[line["player"]]
        assert re.search(rf" {line['player'] + 1} {name}  {arrows[line['dir']]}  ", text)


def test_play_shows_no_control_characters_of_a_bot() -> None:
    """A bot's line, or its standard error, may hold escapes that a terminal would obey."""
    done = kalarena(Path.cwd(), "play", misbehaving("escapes"), "greedy", "-v")
    assert done.returncode == 0
    assert "0;b" in done.stderr
    assert "0;a" in done.stdout
    assert not {"\x1b", "\x07"} & set(done.stdout + done.stderr)


def test_play_record() -> None:
    """As JSON, or msgpack; a file that is there is replaced."""
    for name in ("x.json", "x.rec"):
        Path(name).write_text("an older one")
        result = invoke("play", "greedy", "first_legal", "--game", SMALL, "--record", name, "--json")
        content = Path(name).read_bytes()
        record = json.loads(content) if name == "x.json" else GameRecord.from_msgpack(content).to_json()
        assert record == one_object(result.stdout)
    assert sorted(path.name for path in Path.cwd().iterdir()) == ["x.json", "x.rec"]


def test_play_record_that_cannot_be_written_loses_no_result() -> None:
    """Exit status 1, a failure of ours; the game that was played is shown all the same."""
    name = "x" * 256  # longer than any file system has them
    result = invoke("play", "greedy", "first_legal", "--game", SMALL, "--record", name, "--json")
    assert result.exit_code == 1
    assert result.stderr.count("Error: ") == 1
    assert one_object(result.stdout)["reason"] == "score"


def test_play_record_to_a_device_does_not_replace_it() -> None:
    """``--record /dev/stdout``, or a named pipe: written to, not replaced by a file."""
    Path("target").write_text("")
    Path("link.json").symlink_to("target")
    assert invoke("play", "greedy", "first_legal", "--game", SMALL, "--record", "link.json").exit_code == 0
    assert Path("link.json").is_symlink()
    assert json.loads(Path("target").read_text(encoding="utf-8"))["game"] == SMALL


def test_play_with_bots_by_path_and_by_command_line() -> None:
    folder = Path("my bot")
    folder.mkdir()
    (folder / "bot.py").write_text((ROOT / "sample_bots" / "first_legal.py").read_text(encoding="utf-8"))
    command = f"{sys.executable} -S 'my bot/bot.py'"
    game = one_object(invoke("play", "my bot", command, "--game", SMALL, "--json").stdout)
    assert [player["name"] for player in game["players"]] == ["my bot", "bot"]
    assert game["reason"] == "score"


@pytest.mark.skipif(sys.platform != "linux", reason="ptrace as on Linux")
def test_what_a_bot_leaves_behind_is_named_beside_the_result(tmp_path: Path) -> None:
    """The bot's own descendant traces it, so that the referee cannot reap it."""
    bot = f"{sys.executable} {SUPPORT / 'traced_bot.py'} {tmp_path.name} nonsense"
    words = ("play", bot, "first_legal", "--game", SMALL, "--sandbox", "off", "--json")
    done = kalarena(tmp_path, *words)
    view = one_object(done.stdout)
    assert (done.returncode, view["winner"], view["reason"]) == (0, 1, "protocol")
    (warning,) = view["warnings"]
    assert "cannot be reaped" in warning
    assert done.stderr.endswith(f"the game has its result, but {warning}\n")


def test_a_verdict_cannot_write_to_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    record = make_record(result=lost_by(Reason.EXIT, 0, "one (South) lost: \x1b[2J\0 it won"))
    monkeypatch.setattr("tournaments.cli.play.play_alone", lambda *_args, **_options: record)
    result = invoke("play", "first_legal", "first_legal", "--sandbox", "off")
    assert "one (South) lost: \\x1b[2J\\x00 it won   [exit]" in result.stdout


COUNT = f"""
from referee.games.catalog import register_game
{RULES}
register_game("count", lambda spec: Count(), about="counts to three")
"""


@pytest.mark.usefixtures("game_catalog")
def test_game_check_of_a_module_that_breaks_the_contract() -> None:
    Path("count.py").write_text(COUNT)
    passed = invoke("game", "check", "count.py")
    assert passed.exit_code == 0, passed.output
    assert passed.stdout.startswith("count:\n  ok      ")
    Path("broken.py").write_text(COUNT.replace('"Bob"', '"Ada"').replace('"count"', '"broken"'))
    failed = invoke("game", "check", "broken.py")
    assert (failed.exit_code, failed.stderr) == (1, "Error: 1 of the checks failed\n")
    assert "\n          " in failed.stdout.partition("  FAILED  ")[2]
    assert "both seats are called Ada" in failed.stdout


def ragged(_game: object, _state: object) -> str:
    return "one\ntwo lines"


@pytest.mark.parametrize(
    ("part", "value", "problem"),
    [
        ("text_picture", ragged, "its lines have different widths: [3, 9]"),
        ("contents", lambda *_: ["X"], "the scene has 3 cells, a position 1"),
        ("transfers", lambda *_: [], "the animation of 1 leads to "),
        ("svg_picture", lambda *_: "<svg>", "it raises ParseError("),
    ],
)
@pytest.mark.usefixtures("game_catalog")
def test_game_check_of_wrong_pictures(
    monkeypatch: pytest.MonkeyPatch, part: str, value: object, problem: str
) -> None:
    Path("count.py").write_text(COUNT)
    monkeypatch.setattr(board_renderer, part, value)
    failed = invoke("game", "check", "count.py", "--game", "count")
    assert (failed.exit_code, failed.stderr) == (1, "Error: 1 of the checks failed\n")
    assert f"  FAILED  it can be drawn\n          {problem}" in failed.stdout
