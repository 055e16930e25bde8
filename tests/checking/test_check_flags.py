"""`kalarena check` fails each misbehaviour of scripted_bot.py, each with a sentence of its own."""

import re
from pathlib import Path

import pytest

from referee.games.catalog import DEFAULT_GAME
from referee.judge.clock import TimeControl
from referee.judge.limits import Limits
from referee.sandbox.detection import AUTO, find_sandbox
from tests.support import scripted_bot
from tests.support.confinement import UNHURRIED, reading_bot
from tests.support.tiers import slow_but
from tournaments.checking.check import check_bot
from tournaments.checking.report import Report, Status
from tournaments.checking.scenarios import Settings

CONTROL = TimeControl(move_s=20, start_s=60)
HURRIED = TimeControl(move_s=0.6, start_s=5)
"""For bots that are to be out of time."""

FLAGS = {
    # lines that are refused
    "empty-pit": ("plays-first", "pit 7 of South is empty"),
    "pit-8": ("plays-first", "there is no pit 8: pits are numbered 1 to 7"),
    "pit-0": ("plays-first", "0 is not the number of a pit"),
    "negative": ("plays-first", "-1 is not the number of a pit"),
    "no-argument": ("plays-first", "it sent 'MOVE': the move is missing"),
    "empty-argument": ("plays-first", "it sent 'MOVE;': the move is missing"),
    "extra-field": ("plays-first", "it sent 'MOVE;3;x': there is a field too many"),
    "inner-space": ("plays-first", "it sent 'MOVE; 3': the line holds spaces"),
    "leading-space": ("plays-first", "it sent ' MOVE;3': the line holds spaces"),
    "trailing-space": ("plays-first", "it sent 'MOVE;3 ': the line holds spaces"),
    "crlf": ("plays-first", r"it sent 'MOVE;3\r': the line ends in CR LF"),
    "swap-crlf": ("plays-first", r"it sent 'SWAP\r': the line ends in CR LF"),
    "blank": ("plays-first", "it sent '': the line is empty"),
    "lower-case": ("plays-first", "it sent 'move;3': the protocol is in capital letters"),
    "debug": ("plays-first", "it sent 'thinking about it...': the line is no message of the protocol"),
    "swap": ("plays-first", "SWAP exists only as the second player's very first reply"),
    "swap-as-move": ("plays-first", "it sent 'MOVE;SWAP': 'SWAP' is not a move"),
    "nul": ("plays-first", r"it sent 'MOVE;3\x00': the line holds a NUL byte"),
    "overflow": ("plays-first", "99999999999 is far beyond any pit's number"),
    "fullwidth-digit": ("plays-first", "it sent 'MOVE;\uff13': the line holds characters that are not ASCII"),
    "latin-1": ("plays-first", "it sent 'MOVE;\xe9': the line holds characters that are not ASCII"),
    "long-line": ("plays-first", "(the line had 5000 bytes)"),
    "endless-line": ("plays-first", "(the line had not ended after "),
    # too much, too early
    "many-lines": ("one-reply", "lines in a row, such as 'MOVE;1', where one was asked for"),
    "duplicate": ("one-reply", ";OPP', when it was not its turn; such a line is taken as its next move"),
    "move-at-start": ("one-reply", "it sent 'MOVE;1' right after 'START;North'"),
    # no answer
    "never-read": ("starts", "it neither read its START line from standard input nor sent anything"),
    "hang": ("plays-first", "it is neither computing nor in a read of its standard input"),
    "no-line-feed": ("plays-first", "It had written 'MOVE;1' without a line feed"),
    "slow": ("idle", " ms (median)"),  # in all moves together, or in each
    # its process
    "exit-at-once": ("starts", "exit status 3 before it had taken its START line"),
    "exit": ("plays-first", "its last words on standard error: 'ValueError: something went wrong'"),
    "exit-off-turn": ("plays-first", "exit status 3 while it was not its turn; it said nothing"),
    "child-keeps-output": ("plays-first", "exit status 3 on its turn; it said nothing on its standard error"),
    "kill-self": ("plays-first", "killed by SIGSEGV on its turn"),
    "close-output": ("plays-first", "closed its standard output, which must stay open until END"),
    "close-input": ("plays-first", "after its reply 3: it closed its standard input"),
    # what this referee forgives
    "plus": (
        "spelling",
        "it sent 'MOVE;+2': a plus sign, which this referee accepts and another one may not",
    ),
    "zero-padded": ("spelling", "it sent 'MOVE;02': a zero before the number"),
    "pieces": ("spelling", " pieces over "),
    "stderr-first": ("stderr", "it wrote 180000 bytes to standard error before it read START"),
    "stderr-flood": ("stderr", "it wrote 1024000 bytes to standard error while it played"),
    "talk-after-end": ("end", "it sent 100 lines after END, beginning with 'MOVE;1'"),
    "stay-after-end": ("end", "its process lived on after END for more than 0.5 s (waiting, not for input)"),
}
"""Flag of the bot -> the first item that fails, and words that only its sentence has."""


QUICK = {"pit-8", "duplicate", "exit"}
"""Flags of three groups; the others are slow together."""
TOLERATED = {flag for flag, (item, _) in FLAGS.items() if item in ("spelling", "stderr", "end", "idle")}
"""Flags with which all games are played: the board is small then."""
LATE = {"hang", "no-line-feed", "never-read"}
OFF_TURN = {"exit-off-turn", "duplicate", "move-at-start"}
"""Flags of bots that misbehave after a line that gives them no turn."""
NO_FAULTS = {"slow-at-first"}
"""Flags that only delay a reply, for tests of the order of events."""


def flags_of_the_bot() -> set[str]:
    source = Path(scripted_bot.__file__).read_text(encoding="utf-8")
    return set(scripted_bot.LINES) | set(re.findall(r'\bdo == "([a-z0-9-]+)"', source))


def check(flag: str = "", game: str = DEFAULT_GAME) -> Report:
    ends = not flag or flag in TOLERATED - {"stay-after-end"}
    settings = Settings(
        (game,),
        control=HURRIED if flag in LATE else CONTROL,
        limits=UNHURRIED if ends else Limits(),
        sandbox=find_sandbox(AUTO),
        total_s=600,
    )
    return check_bot(reading_bot(*(("--do", flag) if flag else ())), settings)


def assert_items_refer_to_their_games(report: Report) -> None:
    """Check that each item has the game that its sentence names, and those that were played for it."""
    named = 0
    for item in report.items:
        _, found, rest = item.sentence.partition("in the game ")
        titles = [game for game in report.played if rest.startswith(game.title)]
        if found:
            game = max(titles, key=lambda game: len(game.title))  # "move 12" begins with "move 1"
            assert game.key in item.games, item
            named += 1
        assert {game.key for game in report.played if game.item == item.id} <= set(item.games), item
        assert set(item.games) <= {game.key for game in report.played}
    assert named, "no sentence names a game"


def test_each_flag_of_the_bot_has_a_row() -> None:
    assert flags_of_the_bot() - NO_FAULTS == set(FLAGS)


@pytest.mark.slow
def test_the_bot_passes_without_a_flag() -> None:
    report = check(game="kalah(3,2)+pie")
    assert report.failures == ()
    assert report.count(Status.WARNING) == 0


@pytest.mark.parametrize("flag", slow_but(QUICK, FLAGS))
def test_each_flag_fails_with_a_sentence_of_its_own(flag: str, monkeypatch: pytest.MonkeyPatch) -> None:
    item, words = FLAGS[flag]
    if flag in OFF_TURN:  # else the opponent moves on before a bot that the host keeps waiting misbehaves
        monkeypatch.setattr("referee.conformance.game.QUIET_S", 60.0)
    report = check(flag, game="kalah(3,2)" if flag in TOLERATED else DEFAULT_GAME)
    assert not report.host_fault
    failures = list(report.failures)
    if flag == "stderr-flood" and failures[0].id == "idle":
        del failures[0]  # its pipe was full, and the host kept the referee from reading
    first = failures[0]
    assert first.id == item, first.sentence
    assert words in first.sentence
    assert first.advice
    assert_items_refer_to_their_games(report)
    assert [other for other, (_, theirs) in FLAGS.items() if theirs in first.sentence] == [flag]
