"""The explanation of a lost game: the fault, its rule and advice, the end of the conversation."""

from dataclasses import replace

import pytest

from referee.judge.clock import TimeControl
from referee.judge.limits import Limits
from referee.judge.results import GameRecord, MatchResult, Reason
from tests.support.builders import make_record
from tests.support.paths import REPOSITORY_ROOT
from tests.web.played_course import SECRET, played_game
from tournaments.web.pages.faults import MEANINGS
from tournaments.web.views.loss_explanation import LAST_WORDS, LINES, LossExplanation, loss_explanation_of

RECORD = played_game("k", "one", "two", 1, illegal_after=6)
WINNER = RECORD.result.winner
assert WINNER is not None
LOSER = 1 - WINNER


def explain(record: GameRecord, own: tuple[int, ...] = ()) -> LossExplanation:
    lost = loss_explanation_of(record, own)
    assert lost is not None
    return lost


def test_a_fault_has_its_rule_its_advice_and_the_end_of_the_conversation() -> None:
    lost = explain(RECORD)
    assert (lost.loser, lost.fault) == (RECORD.players[LOSER].name, "no-such-pit")
    assert lost.what.startswith("It sent 'MOVE;99'")
    assert "numbered" in lost.what
    assert lost.meaning
    assert lost.advice
    assert len(lost.lines) == LINES
    assert any(line.text == "MOVE;99" and not line.is_sent for line in lost.lines)
    assert lost.ply == len(RECORD.moves) + 1


@pytest.mark.parametrize(("own", "is_shown"), [((), False), ((1 - LOSER,), False), ((LOSER,), True)])
def test_standard_error_is_for_its_author_alone(own: tuple[int, ...], is_shown: bool) -> None:
    lost = explain(RECORD, own)
    assert (SECRET in lost.note) is is_shown
    assert lost.last_words == ((f"{SECRET} {lost.loser}",) if is_shown else ())


def test_the_end_of_a_long_standard_error_is_shown() -> None:
    text = "".join(f"line {number}\n" for number in range(100))
    lost = explain(replace(RECORD, stderr=(text, text)), (0, 1))
    assert (lost.last_words[-1], len(lost.last_words)) == ("line 99", LAST_WORDS)


@pytest.mark.parametrize(
    ("reason", "fault", "rules"),
    [
        (Reason.TIMEOUT, "late", {"Time control": "3 s per move", "Its longest move before": "1.50 ms"}),
        (Reason.EXIT, "memory-limit", {"Memory that it may hold": "512 MiB"}),
        (Reason.CPU, "off-turn-cpu", {"CPU time off its turn": "2.50 s"}),
        (
            Reason.FILES,
            "disk-full",
            {"Space for its files": "32 MiB in its working directory, 64 MiB in $HOME"},
        ),
        (Reason.EXIT, "file-too-large", {"Size of a file": "at most 64 MiB"}),
        (Reason.EXIT, "process-limit", {"Processes and threads": "64 at the same time"}),
    ],
)
def test_an_exceeded_limit_is_shown(reason: Reason, fault: str, rules: dict[str, str]) -> None:
    result = MatchResult(1, reason, "one (South) lost: it was ended", None, fault)
    record = make_record(
        result=result,
        control=TimeControl(move_s=3.0),
        off_turn_cpu_us=(2_500_000, 0),
        limits=Limits(directory_mb=32),
    )
    shown = dict(explain(record).rules)
    for name, text in rules.items():
        assert text in shown[name]


def test_a_loss_by_score_has_no_fault_and_a_draw_has_no_loser() -> None:
    lost = explain(make_record(), (0, 1))
    assert (lost.fault, lost.lines, lost.ply) == (None, (), 2)
    draw = MatchResult(None, Reason.SCORE, "draw: 2 to 2", (2, 2))
    assert loss_explanation_of(make_record(result=draw), ()) is None


def test_all_faults_are_explained_in_the_words_of_the_protocol() -> None:
    text = (REPOSITORY_ROOT / "docs/protocol.md").read_text(encoding="utf-8")
    table = text[text.index("| reason | fault |") : text.index("`MOVE;+3` and")]
    rows = ([cell.strip() for cell in row.strip("|").split("|")] for row in table.splitlines()[2:])
    documented = {
        row[1].strip("`"): row[2].replace("`", "").replace("*", "") for row in rows if len(row) == 3
    }
    assert documented == MEANINGS
