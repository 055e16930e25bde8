"""Every fault of docs/protocol.md, with a real process: the reason, the finer word, and the sentence."""

import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from referee import session
from referee.judge.clock import TimeControl
from referee.judge.events import InputClosed, OutputBlocked, Sent
from referee.judge.limits import Limits
from referee.judge.results import GameRecord, Player, Reason
from referee.playing import Job, play_game
from referee.process.bot import Bot
from referee.sandbox.bubblewrap import Sandbox
from tests.support.confinement import TIERS, UNHURRIED, outcome, reading_bot, sandbox_of
from tests.support.paths import REPOSITORY_ROOT, SUPPORT
from tests.support.processes import command_lines_with
from tests.support.tiers import slow

CONTROL = TimeControl(move_s=20, start_s=60)
HURRIED = TimeControl(move_s=0.6, margin_s=0.05, start_s=60, setup_s=0.05)
"""For bots that are to be out of time."""
LATE = ("hang", "no-line-feed")
STAY = (*LATE, "close-output", "close-input", "endless-line", "many-lines", "stay-after-end")
"""What leaves a bot that does not end by itself, so that the end of its game is waited for."""
BRIEF = Limits(end_grace_s=0.3)
"""For a game with such a bot; how its opponent ends is not looked at."""

# What the scripted bot does -> reason, finer word, what the sentence must say.
FAULTS = {
    "empty-pit": (Reason.ILLEGAL, "empty-pit", "is empty"),
    "pit-8": (Reason.ILLEGAL, "no-such-pit", "pits are numbered 1 to 7"),
    "pit-0": (Reason.PROTOCOL, "not-positive", "numbered from 1"),
    "negative": (Reason.PROTOCOL, "not-positive", "numbered from 1"),
    "no-argument": (Reason.PROTOCOL, "no-move", "the move is missing"),
    "empty-argument": (Reason.PROTOCOL, "no-move", "the move is missing"),
    "extra-field": (Reason.PROTOCOL, "extra-field", "a field too many"),
    "inner-space": (Reason.PROTOCOL, "spaces", "spaces"),
    "leading-space": (Reason.PROTOCOL, "spaces", "spaces"),
    "trailing-space": (Reason.PROTOCOL, "spaces", "spaces"),
    "crlf": (Reason.PROTOCOL, "crlf", "CR LF"),
    "swap-crlf": (Reason.PROTOCOL, "crlf", "CR LF"),
    "blank": (Reason.PROTOCOL, "blank-line", "the line is empty"),
    "lower-case": (Reason.PROTOCOL, "lower-case", "capital letters"),
    "debug": (Reason.PROTOCOL, "unknown-message", "standard error"),
    "swap": (Reason.PROTOCOL, "swap-not-offered", "second player's very first reply"),
    "swap-as-move": (Reason.PROTOCOL, "bad-number", "a swap is written SWAP"),
    "nul": (Reason.PROTOCOL, "nul-byte", "NUL"),
    "overflow": (Reason.PROTOCOL, "number-too-large", "far beyond"),
    "fullwidth-digit": (Reason.PROTOCOL, "not-ascii", "not ASCII"),
    "latin-1": (Reason.PROTOCOL, "not-ascii", "'MOVE;é'"),
    "long-line": (Reason.FLOOD, "long-line", "more than 1024 characters"),
    "endless-line": (Reason.FLOOD, "long-line", "more than 1024 characters"),
    "hang": (Reason.TIMEOUT, "late", "out of time: the limit is 0.6 s a move"),
    "no-line-feed": (Reason.TIMEOUT, "late", "without a line feed"),
    "exit": (Reason.EXIT, "exited", "exit status 3 on its turn"),
    "exit-off-turn": (Reason.EXIT, "exited", "while it was not its turn"),
    "kill-self": (Reason.EXIT, "killed", "SIGSEGV"),
    "close-output": (Reason.EXIT, "closed-output", "closed its standard output"),
    "close-input": (Reason.EXIT, "closed-input", "closed its standard input"),
    "child-keeps-output": (Reason.EXIT, "exited", "exit status 3"),
}
ACCEPTED = [
    "plus",
    "zero-padded",
    "pieces",
    "stderr-flood",
    "stderr-first",
    "talk-after-end",
    "stay-after-end",
    "move-at-start",
]


def scripted(*arguments: str) -> Player:
    command = (sys.executable, "-S", "-E", str(SUPPORT / "scripted_bot.py"), *arguments)
    return Player("culprit", command, str(SUPPORT))


def honest() -> Player:
    first_legal = REPOSITORY_ROOT / "sample_bots" / "first_legal.py"
    return Player("victim", (sys.executable, "-S", "-E", str(first_legal)), str(SUPPORT))


async def play(
    culprit: Player, seat: int, victim: Player | None = None, sandbox: Sandbox | None = None
) -> GameRecord:
    victim = victim or honest()
    players = (culprit, victim) if seat == 0 else (victim, culprit)
    what = culprit.command[culprit.command.index("--do") + 1]
    control, limits = HURRIED if what in LATE else CONTROL, BRIEF if what in STAY else UNHURRIED
    job = Job("fault", "manchester", players, control, limits, sandbox=sandbox or Sandbox())
    return await play_game(job)


CONFINED_FIRST = ("exit-off-turn", "crlf", "close-input")
"""Faults that the quick tier commits in each tier of the sandbox."""


@pytest.mark.parametrize(
    ("what", "tier"),
    [
        pytest.param(what, tier, marks=() if tier == "bare" or what in CONFINED_FIRST else pytest.mark.slow)
        for what in FAULTS
        for tier in TIERS
    ],
)
async def test_a_fault_loses_with_its_reason_and_a_sentence(
    request: pytest.FixtureRequest, what: str, tier: str
) -> None:
    if what not in STAY:
        request.getfixturevalue("patient_referee")
    reason, fault, words = FAULTS[what]
    seat = (len(what) + TIERS.index(tier)) % 2
    # An exit off turn must be seen before the opponent has moved.
    pace = ("--do", "slow-at-first") if what == "exit-off-turn" else ()
    reply = ("--reply", "1") if what == "exit-off-turn" else ()
    victim = reading_bot(*pace, name="victim")
    record = await play(reading_bot("--do", what, *reply), seat, victim, sandbox_of(tier))
    assert outcome(record) == (1 - seat, reason.value, fault), record.result.detail
    assert record.result.score is None
    assert record.result.detail.startswith(f"culprit ({('South', 'North')[seat]}) lost: ")
    assert words in record.result.detail
    received = [
        [line.line for line in record.wire if (line.player, line.direction) == (player, "to")]
        for player in (0, 1)
    ]
    assert received[1 - seat][-1] == "END"
    assert not any(line.endswith(";END") for line in received[1 - seat])
    assert ("END" in received[seat]) == (reason is not Reason.EXIT)
    if what not in STAY:
        assert record.exit_status[1 - seat] == 0


def lingering(folder: Path) -> Sandbox:
    """A sandbox in which what is called late ends 1.5 s after its bot, as on a busy host."""
    sandbox = sandbox_of("confined")
    bwrap = folder / "bwrap"
    bwrap.write_text(
        f'#!/bin/sh\n{sandbox.tools.bwrap} "$@"\nstatus=$?\n'
        'case "$*" in *late*) sleep 1.5;; esac\nexit $status\n'
    )
    bwrap.chmod(0o755)
    return replace(sandbox, tools=replace(sandbox.tools, bwrap=str(bwrap)))


@pytest.mark.parametrize(
    "scripts",
    [("exit 3 # late", "exit 3"), *slow((("exit 3", "exit 3 # late"),))],
)
async def test_no_crash_at_the_start_wins_by_a_sandbox_that_ends_late(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scripts: tuple[str, str]
) -> None:
    monkeypatch.setattr(session, "ENDING_LIMIT_S", 60.0)
    one, other = (Player(script, ("/bin/sh", "-c", script), str(tmp_path)) for script in scripts)
    job = Job("late", "manchester", (one, other), CONTROL, UNHURRIED, sandbox=lingering(tmp_path))
    assert outcome(await play_game(job)) == (None, "start", "not-runnable")


COMPUTES_AT_ITS_END = """
import os, time
input()
os.close(1)
end = time.monotonic() + 1.5
while time.monotonic() < end:
    pass
os._exit(3)
"""


@pytest.mark.slow
async def test_a_bot_that_still_computes_after_its_output_has_an_exit_status(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """On a busy host a process may take seconds to end."""
    monkeypatch.setattr(session, "ENDING_LIMIT_S", 60.0)
    culprit = Player("culprit", (sys.executable, "-S", "-E", "-c", COMPUTES_AT_ITS_END), "/")
    record = await play_game(Job("late", "manchester", (culprit, honest()), CONTROL, UNHURRIED))
    assert outcome(record) == (1, "exit", "exited"), record.result.detail


@pytest.mark.parametrize("what", ACCEPTED)
async def test_accepted_oddities_play_on_to_the_end(what: str) -> None:
    # South's first move at START is no oddity.
    record = await play(scripted("--do", what), 1 if what == "move-at-start" else len(what) % 2)
    if what == "move-at-start":
        # Taken as North's first reply; from then on it is one reply ahead, with moves for older boards.
        assert [(move.player, move.move) for move in record.moves[:2]] == [(0, "1"), (1, "1")]
    else:
        assert record.result.reason is Reason.SCORE, record.result.detail


async def test_a_duplicated_move_becomes_the_next_one() -> None:
    # The second line is there before the reply of this one.
    slow = replace(scripted("--do", "slow-at-first"), name="victim")
    record = await play(scripted("--do", "duplicate", "--reply", "1"), 0, slow)
    own = [line for line in record.wire if line.player == 0]
    first_two = [line.line for line in own if line.direction == "from"][:2]
    moves = [move for move in record.moves if move.player == 0]
    assert first_two[1] == "MOVE;2"
    assert moves[1].move == "2"
    assert moves[1].wall_us == 0  # it was there before its turn began


async def test_a_flood_of_lines_that_nobody_asked_for() -> None:
    # As North it floods before its turn; the early lines are legal moves as far as the queue goes.
    record = await play(scripted("--do", "many-lines", "--reply", "1"), 1)
    assert record.result.winner == 0
    assert record.result.reason in (Reason.FLOOD, Reason.ILLEGAL)


async def test_after_an_exit_before_start_the_opponent_receives_only_the_end() -> None:
    record = await play(scripted("--do", "exit-at-once", "--status", "1"), 1)
    assert (record.result.winner, record.result.reason) == (0, Reason.EXIT)
    assert "exit status 1 before it had taken its START line" in record.result.detail
    assert [line.line for line in record.wire if line.player == 0] == ["END"]


@pytest.mark.parametrize("seat", [0, 1])
async def test_a_bot_that_never_takes_start_loses_by_the_start_limit(seat: int) -> None:
    players = (honest(), scripted("--do", "never-read"))
    control = TimeControl(move_s=5, start_s=0.5)
    job = Job("start", "manchester", players if seat else players[::-1], control, BRIEF)
    record = await play_game(job)
    assert (record.result.winner, record.result.reason) == (1 - seat, Reason.START)
    assert record.result.fault == "start-limit"
    assert "did not start" in record.result.detail
    assert record.moves == []


async def test_last_words_and_standard_error_are_kept() -> None:
    record = await play(scripted("--do", "exit"), 0)
    assert "ValueError: something went wrong" in record.result.note
    assert "ValueError" not in record.result.detail  # which the opponent reads, too
    assert record.stderr == ("ValueError: something went wrong\n", "")


async def test_a_megabyte_of_standard_error_is_drained_and_cut() -> None:
    record = await play(scripted("--do", "stderr-flood"), 0)
    assert record.result.reason is Reason.SCORE
    assert 64 * 1024 <= len(record.stderr[0]) < 65 * 1024
    assert "bytes not kept" in record.stderr[0]


@pytest.mark.parametrize("what", ["stay-after-end", "child-keeps-output", "hang"])
async def test_no_process_of_the_group_outlives_the_game(what: str) -> None:
    status = os.getpid() % 200 + 1  # distinguishes these processes from those of other tests
    record = await play(scripted("--do", what, f"--status={status}"), 0)
    assert record.result.winner is not None
    assert command_lines_with(f"--do {what} --status={status}") == []
    assert command_lines_with(f"sleep {120 + status / 1000:.3f}") == []
    # The end of the game waited for the grace, not for the bot, which stays for 120 s.
    assert record.duration_us < 60_000_000


def test_a_bot_that_does_not_read_blocks_us_only_once() -> None:
    bot = Bot(0, scripted("--do", "never-read"), os.environb)
    try:
        assert bot.has_read_all()
        events = [bot.write("x" * 1000) for _ in range(200)]
        assert not bot.has_read_all()
    finally:
        bot.kill()
        bot.close()
    assert isinstance(events[0], Sent)
    assert isinstance(events[-1], OutputBlocked)
    assert bot.status == -9


def test_writing_to_a_bot_that_is_gone_is_a_fact_and_no_error() -> None:
    bot = Bot(0, Player("true", ("/bin/true",), "/"), os.environb)
    try:
        bot._process.wait()
        assert isinstance(bot.write("END"), InputClosed)
    finally:
        bot.kill()
        bot.close()
