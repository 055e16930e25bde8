"""Conversations of games in the report of a failed test."""

from collections.abc import Iterator

import pytest

from referee.judge.results import GameRecord

LAST_LINES = 40
"""Lines of a conversation that the report has; a fault is nearly always in the last few."""
STDERR_TAIL = 2000
"""Characters of each bot's standard error that the report has; a traceback of Python fits."""


def add_conversations(report: pytest.TestReport, failure: pytest.ExceptionInfo[BaseException]) -> None:
    """Add a section for each game record among the local variables of the test's frames."""
    records = {id(record): record for record in _records(failure)}
    for record in records.values():
        report.sections.append((f"Game {record.key}", conversation(record)))


def conversation(record: GameRecord) -> str:
    """The verdict, the last lines that were sent and received, and the end of each standard error."""
    names = [player.name for player in record.players]
    lines = [f"{record.result.reason.value}: {record.result.detail}"]
    if len(record.wire) > LAST_LINES:
        lines.append(f"... {len(record.wire) - LAST_LINES} lines before these")
    lines += [
        f"{line.at_us / 1e6:10.6f} s  {line.direction:4} {names[line.player]}: {line.line}"
        for line in record.wire[-LAST_LINES:]
    ]
    for name, text in zip(names, record.stderr, strict=True):
        if text:
            lines += [f"standard error of {name}:", text[-STDERR_TAIL:]]
    return "\n".join(lines)


def _records(failure: pytest.ExceptionInfo[BaseException]) -> Iterator[GameRecord]:
    for entry in failure.traceback:
        for value in entry.locals.values():
            for item in value if isinstance(value, (list, tuple)) else (value,):
                if isinstance(item, GameRecord):
                    yield item
