"""Mistakes of beginners in real programs: `kalarena check` names the mistake, and not only the fault."""

from pathlib import Path

import pytest

from referee.judge.clock import TimeControl
from referee.judge.limits import Limits
from referee.sandbox.detection import AUTO, find_sandbox
from tests.support.confinement import UNHURRIED
from tests.support.tiers import slow_but
from tournaments.bots.resolve import resolve_bot
from tournaments.checking.check import check_bot
from tournaments.checking.report import Report, Status
from tournaments.checking.scenarios import Settings

CONTROL = TimeControl(move_s=20, start_s=60)
HURRIED = TimeControl(move_s=0.5, start_s=60)
"""For bots that are to be out of time."""

HEAD = """
import sys
seat, board, own, replies = "", [7] * 7 + [0] + [7] * 7 + [0], "", 0
def pick():
    global replies
    replies += 1
    first = 0 if seat == "North" else 8
    print("MOVE;%d" % next(n for n in range(1, 8) if board[first + n - 1]), flush=True)
"""
LOOP = """
for line in sys.stdin:
    word, *fields = line.strip().split(";")
    if word == "START":
        seat = fields[0]
        if seat == "South": pick()
    elif word == "CHANGE":
        if fields[0] == "SWAP": seat = "North" if seat == "South" else "South"
        board = [int(number) for number in fields[1].split(",")]
        if fields[2] == "YOU": pick()
    else:
        break
"""

MISTAKES = {
    "keeps its old seat": (
        HEAD + LOOP.replace('if fields[0] == "SWAP": seat = "North" if seat == "South" else "South"', "pass"),
        "plays-first",
        "of North is empty",
        "the seats were swapped in this game: the bot is North now",
    ),
    "waits for the opponent after its own extra turn": (
        HEAD
        + LOOP.replace(
            'if fields[2] == "YOU": pick()',
            'if fields[2] == "YOU" and fields[0] != own: pick()\n'
            '        own = "x" if replies < 3 else fields[0]',
        ),
        "plays-first",
        "It is waiting for input while the referee waits",
        "",
    ),
    "moves again after the first move": (
        HEAD.replace(
            '"MOVE;%d" %', 'f"MOVE;1\\nMOVE;2" if board == [7] * 7 + [0] + [7] * 7 + [0] else "MOVE;%d" %'
        )
        + LOOP,
        "one-reply",
        "it sent 'MOVE;2' right after",
        "the very first move of the game gives no extra turn",
    ),
    "does not flush": (
        HEAD.replace(", flush=True", "") + LOOP,
        "plays-first",
        "did you flush stdout",
        "START;South is the turn itself",
    ),
    "counts pits from 0": (
        HEAD.replace('"MOVE;%d" % next(n for', '"MOVE;%d" % next(n - 1 for') + LOOP,
        "plays-first",
        "it sent 'MOVE;0'",
        "number pits from 1",
    ),
    "never takes over the board": (
        HEAD + LOOP.replace("board = [", "ignored = ["),
        "plays-first",
        "it sent 'MOVE;1': pit 1 of South is empty",
        "that was its own last move, too",
    ),
    "sends each move twice": (
        HEAD.replace("flush=True)\n", 'end="\\nMOVE;7\\n", flush=True)\n').replace("1, 8", "7, 0, -1") + LOOP,
        "one-reply",
        "it sent 'MOVE;7' right after",
        "answer only lines that end in YOU",
    ),
    "throws an exception": (
        HEAD + "def pick(): return [][0]\n" + LOOP,
        "plays-first",
        "IndexError: list index out of range",
        "correct this error; the end of its standard error",
    ),
    "reads on after END": (
        HEAD + LOOP.replace("        break", "        sys.stdin.readline()"),
        "end",
        "its process lived on after END for more than 0.5 s (waiting for more input)",
        "end the program when END is read",
    ),
    "cannot take the openings that it declares": (
        HEAD + LOOP,
        "openings",
        "it sent 'MOVE;1' right after 'START;South', before it received the opening",
        "with an opening START gives no turn",
    ),
    "takes TIME for END": (
        HEAD + LOOP,
        "plays-first",
        "by itself: a bot must go on reading until it gets END",
        "TIME",
    ),
}
"""Mistake -> the program, the first item that fails, words of its sentence, words of its advice."""
DECLARED = {"cannot take the openings that it declares": "openings", "takes TIME for END": "time"}
QUICK = {"keeps its old seat", "counts pits from 0", "throws an exception"}
LATE = {"waits for the opponent after its own extra turn", "does not flush"}
STAYS = {"reads on after END", *LATE}
"""Mistakes by which a bot does not end, so that each of its games takes the time to end."""


def check(
    folder: Path,
    program: str,
    capability: str = "",
    control: TimeControl = CONTROL,
    limits: Limits = UNHURRIED,
) -> Report:
    (folder / "bot.py").write_text(program)
    if capability:
        manifest = f'command = ["python3", "bot.py"]\ncapabilities = ["{capability}"]\n'
        (folder / "bot.toml").write_text(manifest)
    settings = Settings(control=control, limits=limits, sandbox=find_sandbox(AUTO), total_s=600)
    return check_bot(resolve_bot(str(folder), folder, game="manchester"), settings)


@pytest.mark.slow
def test_the_program_without_a_mistake_passes(tmp_path: Path) -> None:
    report = check(tmp_path, HEAD + LOOP)
    assert report.failures == ()
    assert report.count(Status.WARNING) == 0


@pytest.mark.parametrize("mistake", slow_but(QUICK, MISTAKES))
def test_a_mistake_is_named(tmp_path: Path, mistake: str) -> None:
    program, item, words, advice = MISTAKES[mistake]
    control, limits = HURRIED if mistake in LATE else CONTROL, Limits() if mistake in STAYS else UNHURRIED
    report = check(tmp_path, program, DECLARED.get(mistake, ""), control, limits)
    first = report.failures[0]
    assert first.id == item, first
    assert words in first.sentence
    assert advice in first.advice


@pytest.mark.slow
def test_a_traceback_at_the_end_is_a_warning(tmp_path: Path) -> None:
    report = check(tmp_path, HEAD + LOOP.replace("        break", "        raise ValueError(line)"))
    assert report.passed
    warnings = [item for item in report.items if item.status is Status.WARNING]
    assert [item.id for item in warnings] == ["end"]
    assert "exit status 1 after END: 'ValueError: END (at bot.py, line 20" in warnings[0].sentence


@pytest.mark.slow
def test_a_game_after_one_that_did_not_end_has_the_full_time_to_end(tmp_path: Path) -> None:
    over = "        over = fields[2] == 'END'\n        if fields[2]"
    program = HEAD + "over = False\n" + LOOP.replace("        if fields[2]", over)
    program += "import time\ntime.sleep(120 if over else 0.1)\n"
    report = check(tmp_path, program, limits=Limits(end_grace_s=0.8))
    verdicts = {item.id: item.status for item in report.items}
    assert (verdicts["end"], verdicts["end-mid-game"]) == (Status.FAILED, Status.PASSED)


NOTHING_TO_LOOK_AT = {"one-reply", "spelling", "end", "time", "idle", "memory", "stderr", "processes"}


def test_a_bot_that_never_starts_passes_no_item(tmp_path: Path) -> None:
    report = check(tmp_path, "raise SystemExit(1)\n")
    assert {item.id for item in report.items if item.status is Status.PASSED} == {"found"}
    sentences = {item.id: item.sentence for item in report.items if item.id in NOTHING_TO_LOOK_AT}
    assert sentences.keys() == NOTHING_TO_LOOK_AT
    assert all(sentence.startswith("not tried: ") for sentence in sentences.values()), sentences


def test_lines_that_are_no_moves_are_not_well_written(tmp_path: Path) -> None:
    program = "import sys\nfor line in sys.stdin: print('<html><b>x</b>', flush=True)\n"
    report = check(tmp_path, program, limits=Limits())  # it stays after END
    items = {item.id: item for item in report.items}
    assert (items["plays-first"].status, items["spelling"].status) == (Status.FAILED, Status.FAILED)
    assert "'<html><b>x</b>'" in items["plays-first"].sentence
    assert items["spelling"].sentence.startswith("the same as under 'Plays as South'")
