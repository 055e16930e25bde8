"""Explanation of a lost game, for the authors of its loser.  Pure."""

from collections.abc import Collection
from dataclasses import dataclass

from referee.judge.limits import Limits
from referee.judge.results import GameRecord, Reason
from referee.judge.verdict_text import visible
from tournaments.checking.advice import ADVICE
from tournaments.reporting.site import words
from tournaments.reporting.site.replay import time_text
from tournaments.results.game_summary import GameSummary
from tournaments.web.pages.faults import MEANINGS

LINES = 6
"""Last lines shown of the conversation with the loser: the last turn and the one before."""
LONGEST_LINE = 160
LAST_WORDS = 12
"""Last lines shown of its standard error: the end of a traceback."""
OF_TIME = "late", "start-limit"
OF_DISK = "disk-full"
OF_FILE_SIZE = "file-too-large"
OF_PROCESSES = "process-limit"


@dataclass(frozen=True)
class Line:
    """One line of a conversation."""

    at: str
    is_sent: bool
    """True if the line was sent to the bot; False if the bot sent it."""
    text: str


@dataclass(frozen=True)
class LossExplanation:
    """Explanation of a lost game."""

    loser: str
    seat: str
    fault: str | None
    """Fault word; None if the game was lost by score."""
    what: str
    """Description of the loss in one or more sentences, without the loser's name."""
    meaning: str
    """Meaning of the fault; empty without one."""
    advice: str
    rules: tuple[tuple[str, str], ...]
    """Limits of the loser and its use of them, each as label and text."""
    lines: tuple[Line, ...]
    """End of the loser's conversation; empty for a game that was played to its end."""
    ply: int
    """Number of the replay's position to look at."""
    note: str
    """Note for the bot's author on the last words and their meaning."""
    last_words: tuple[str, ...]
    """Last lines of the bot's standard error, for its author."""


def loss_explanation_of(record: GameRecord, own: Collection[int]) -> LossExplanation | None:
    """Return why a game was lost; None for a draw.  ``own``: players whose private data may be shown."""
    result = record.result
    if result.winner is None:
        return None
    loser = 1 - result.winner
    fault = result.fault
    may_see = loser in own
    return LossExplanation(
        loser=record.players[loser].name,
        seat="moved first" if loser == 0 else "moved second",
        fault=fault,
        what=visible(_what(record)),
        meaning=MEANINGS.get(fault, "") if fault is not None else "",
        advice=ADVICE.get(fault, "") if fault is not None else "",
        rules=tuple(_rules(record, loser)),
        lines=_lines(record, loser) if fault is not None else (),
        ply=len(record.moves) + (fault is not None),
        note=visible(record.note) if may_see else "",
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
    elif record.result.reason is Reason.MEMORY or fault == "memory-limit":  # of older records, too
        found.append(
            ("Memory that it may hold", f"{record.limits.memory_mb} MiB, all of its processes together")
        )
    elif record.result.reason is Reason.CPU:
        used_us = record.off_turn_cpu_us[loser]
        if used_us is not None:
            found.append(("CPU time off its turn", time_text(used_us)))
    elif fault == OF_DISK:
        found.append(("Space for its files", _space(record.limits)))
    elif fault == OF_FILE_SIZE:
        found.append(("Size of a file", f"at most {record.limits.file_mb} MiB"))
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


def _space(limits: Limits) -> str:
    """Return the space of the directories that a confined bot can write; any of them may be the full one."""
    own = f"{limits.directory_mb} MiB in its working directory, " if limits.directory_mb else ""
    return f"{own}{limits.scratch_mb} MiB in $HOME, and a little in /tmp and /dev/shm"


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
