"""Why a game was lost, for whoever wants to win the next one.  Pure."""

from collections.abc import Collection
from dataclasses import dataclass

from referee.results import GameRecord, Reason
from referee.sentences import visible
from tournaments.checking.advice import ADVICE
from tournaments.game_summary import GameSummary
from tournaments.report import words
from tournaments.report.replay import time_text
from tournaments.web.faults import MEANINGS

LINES = 6
"""Of the conversation with the loser, its last ones: the last turn and the one before."""
LONGEST_LINE = 160
LAST_WORDS = 12
"""Lines of its standard error: a traceback's end."""
OF_TIME = "late", "start-limit"
OF_MEMORY = "memory-limit"
OF_PROCESSES = "process-limit"


@dataclass(frozen=True)
class Line:
    """One line of a conversation."""

    at: str
    is_sent: bool
    """To the bot; else it is the bot's own."""
    text: str


@dataclass(frozen=True)
class Lost:
    """What is known of a lost game."""

    loser: str
    seat: str
    fault: str | None
    """None: it was lost by score."""
    what: str
    """One sentence, or more, without the loser's name."""
    meaning: str
    """What the rule says."""
    advice: str
    rules: tuple[tuple[str, str], ...]
    """What limits it had, and how near it came: label and text."""
    lines: tuple[Line, ...]
    """The end of its conversation; empty for a game that was played to its end."""
    ply: int
    """The replay's position to look at."""
    note: str
    """For its author: the last words and what they mean."""
    last_words: tuple[str, ...]
    """The same, from its standard error."""


def lost_of(record: GameRecord, own: Collection[int]) -> Lost | None:
    """Why somebody lost; None for a draw.  ``own`` are the players whose private parts may be shown."""
    result = record.result
    if result.winner is None:
        return None
    loser = 1 - result.winner
    fault = result.fault
    may_see = loser in own
    return Lost(
        loser=record.players[loser].name,
        seat="moved first" if loser == 0 else "moved second",
        fault=fault,
        what=visible(_what(record)),
        meaning=MEANINGS.get(fault, "") if fault is not None else "",
        advice=ADVICE.get(fault, "") if fault is not None else "",
        rules=tuple(_rules(record, loser)),
        lines=_lines(record, loser) if fault is not None else (),
        ply=len(record.moves) + (fault is not None),
        note=visible(result.note) if may_see else "",
        last_words=_last_words(record.stderr[loser]) if may_see and fault is not None else (),
    )


def _what(record: GameRecord) -> str:
    text = words.blame(GameSummary.of(record, 1))
    return text[:1].upper() + text[1:]


def _rules(record: GameRecord, loser: int) -> list[tuple[str, str]]:
    fault = record.result.fault
    own = [move.charged_us for move in record.moves if move.player == loser]
    found = []
    if record.result.reason is Reason.TIMEOUT or fault in OF_TIME:
        found.append(("Time control", str(record.control)))
        if own:
            found.append(("Its longest move before", time_text(max(own))))
            found.append(("All of its moves before", time_text(sum(own))))
    elif fault == OF_MEMORY:
        found.append(
            ("Memory that it may hold", f"{record.limits.memory_mb} MiB, all of its processes together")
        )
    elif fault == OF_PROCESSES:
        found.append(("Processes and threads", f"{record.limits.processes} at the same time"))
    if fault is not None:
        status = record.exit_status[loser]
        found.append(("Moves before it", str(len(own))))
        if status is not None:
            found.append(("Exit status", str(status)))
    elif record.result.score is not None:
        first, second = record.result.score
        found.append(("Score", f"{first}{words.TO}{second}"))
        if own:
            found.append(("Its longest move", time_text(max(own))))
    return found


def _lines(record: GameRecord, loser: int) -> tuple[Line, ...]:
    wire = [line for line in record.wire if line.player == loser][-LINES:]
    return tuple(
        Line(f"{line.at_us / 1000:.1f} ms", line.direction == "to", _cut(line.line)) for line in wire
    )


def _cut(text: str) -> str:
    shown = visible(text)
    return shown if len(shown) <= LONGEST_LINE else shown[:LONGEST_LINE] + "…"


def _last_words(stderr: str) -> tuple[str, ...]:
    lines = [line.replace("\t", "    ") for line in stderr.rstrip().split("\n")] if stderr.strip() else []
    return tuple(map(_cut, lines[-LAST_WORDS:]))
