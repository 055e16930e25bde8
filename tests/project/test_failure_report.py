"""The report of a failed test has the conversations of the games among its local variables."""

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from referee.judge.record_rows import WireLine
from tests.support.builders import make_record
from tests.support.failure_report import add_conversations, conversation

if TYPE_CHECKING:
    from referee.judge.results import GameRecord


def failure_in(test: Callable[[], Any]) -> pytest.ExceptionInfo[BaseException]:
    with pytest.raises(AssertionError) as failure:
        test()
    return failure


def test_each_record_has_one_section() -> None:
    def failing() -> None:
        record = make_record("r001-1v2")
        records = [record, make_record("r002-2v1")]
        assert record not in records

    report: Any = SimpleNamespace(sections=[])
    add_conversations(report, failure_in(failing))
    assert [title for title, _ in report.sections] == ["Game r001-1v2", "Game r002-2v1"]


def test_a_conversation_has_the_verdict_the_lines_and_standard_error() -> None:
    text = conversation(make_record())
    assert "score: one (South) won: 2 to 0" in text
    assert "0.001520 s  from one: MOVE;1" in text
    assert "standard error of two:\nprivate words of two" in text


def test_a_long_conversation_ends_with_its_last_lines() -> None:
    record: GameRecord = make_record()
    long = replace(record, wire=[WireLine(0, "from", f"MOVE;{number}", number) for number in range(1, 101)])
    text = conversation(long)
    assert "... 60 lines before these" in text
    assert "MOVE;61" in text
    assert "MOVE;60" not in text
