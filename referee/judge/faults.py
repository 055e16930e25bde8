"""Faults that an event of a bot shows, and the causes of a bot's end (pure).

The end of a process is classified as an exit, as a limit that the bot passed, or as a command that could not
be run.  A runtime that runs out of memory prints an error message and ends.  Java prints this message on
standard output, where its first line is taken for an invalid move.  The bot has lost then, but the verdict
waits for the cause: the next lines of the message, or the end of the process (``RuntimeFailure``).
"""

import signal
from collections.abc import Sequence
from typing import NamedTuple

from referee.errors import RefereeError
from referee.judge import runtime_messages, verdict_text
from referee.judge.events import (
    BotExited,
    FaultEvent,
    InputClosed,
    LimitPassed,
    LineReceived,
    LineTooLong,
    NotStarted,
    OutputBlocked,
    OutputClosed,
    PlayerEvent,
    ProcessEnded,
)
from referee.judge.limits import Limits
from referee.judge.results import Reason
from referee.judge.runtime_messages import NEARLY_ALL, Hint

LIMIT_REASONS = {"memory": (Reason.MEMORY, "memory-limit"), "files": (Reason.FILES, "too-many-files")}
"""Name of a limit in LimitPassed -> reason and fault; any other limit has reason ``exit``."""
KILLED = (-signal.SIGKILL, 128 + signal.SIGKILL)
"""Exit statuses of a killed process, and of a shell whose program was killed."""
CAUSE_WAIT_US = 2_000_000
"""Time limit for the cause of an error message on standard output, or for the end of the bot that prints it.

The deadline of the turn still applies.  A Java virtual machine takes up to a second to end."""
MAX_MESSAGE_LINES = 200
"""Lines of an error message that are examined; the crash report of a Java virtual machine has about 20."""


class Loss(NamedTuple):
    """A fault, as the verdict names it."""

    reason: Reason
    fault: str
    detail: str
    note: str = ""
    """Information for the loser only."""


def loss_by(event: FaultEvent, judge: int) -> Loss:
    """Return the fault of an event that is always one.

    Args:
        event: What the bot did.
        judge: The version of the judge's rules.
    """
    if isinstance(event, LineTooLong):
        return Loss(Reason.FLOOD, "long-line", verdict_text.long_line(event.head))
    if isinstance(event, OutputBlocked):
        return Loss(Reason.BLOCKED, "not-reading", verdict_text.NOT_READING)
    if isinstance(event, InputClosed):
        return Loss(Reason.EXIT, "closed-input", verdict_text.CLOSED_INPUT)
    if isinstance(event, OutputClosed):
        return Loss(Reason.EXIT, "closed-output", verdict_text.closed_output(event.unfinished))
    reason, fault = Reason.EXIT, f"{event.limit}-limit"
    if judge > 1:
        reason, fault = LIMIT_REASONS.get(event.limit, (reason, fault))
    return Loss(reason, fault, verdict_text.limit_passed(event.limit, event.used, event.allowed))


def loss_by_exit(
    event: BotExited, early: Sequence[str], when: str, limits: Limits | None, judge: int
) -> Loss:
    """Return the fault of a process that has ended.

    Args:
        event: The end of the process.
        early: Lines that the bot sent before its turn.
        when: The stage of the game, see verdict_text.
        limits: The bot's limits; None if it has none.
        judge: The version of the judge's rules.
    """
    note = exit_note(event, limits)
    if judge > 1:
        lines = early_message(early, judge)
        hint = runtime_messages.find_fault(lines) if lines else None
        if hint is not None:
            note = message_note(lines, note)
        else:
            hint = exit_hint(event, limits, judge)
        if hint is not None:
            return loss_by_hint(hint, when, limits, note, judge)
    fault = "exited" if event.status >= 0 else "killed"
    return Loss(Reason.EXIT, fault, verdict_text.exited(event.status, when, event.unfinished), note)


def loss_by_hint(hint: Hint, when: str, limits: Limits | None, note: str, judge: int) -> Loss:
    """Return the fault of a bot that ended for lack of memory or because of a file."""
    reason = Reason.MEMORY if hint.fault == runtime_messages.MEMORY else Reason.FILES
    return Loss(reason, hint.fault, verdict_text.gave_up(hint, when, limits, judge), note)


def neither_started(
    end: ProcessEnded, other: ProcessEnded, names: Sequence[str], limits: Limits | None
) -> NotStarted | None:
    """Return the event for two players whose processes ended before either had read its START line.

    Returns None if a player passed a limit; then the player whose process ended first has lost.

    Raises:
        RefereeError: The sandbox or the host failed, and not the bots.
    """
    events = [classified(one, names[one.player], limits) for one in (end, other)]
    whys = []
    for event in events:
        if isinstance(event, NotStarted):
            whys.append(event.why)
        elif isinstance(event, BotExited):
            ended = verdict_text.exited(event.status, verdict_text.BEFORE_START, event.unfinished)
            # Everybody may read the verdict, so it has no last words but our own.
            is_ours = verdict_text.ADAPTER_FAILED in event.last_words
            said = verdict_text.last_words(event.last_words, limits) if is_ours else ""
            whys.append("; ".join(filter(None, (ended, said))))
        else:
            return None
    return NotStarted(end.player, end.at, *whys)


def classified(end: ProcessEnded, name: str, limits: Limits | None) -> BotExited | LimitPassed | NotStarted:
    """Classify the end of a player's process as an event.

    A limit that was reported before is not reported again.

    Args:
        end: The observed end of the process.
        name: The player's name.
        limits: The player's limits; None if it has none.

    Raises:
        RefereeError: The sandbox or the host failed, and not the bot.
    """
    if not end.is_reported and limits is not None:
        if end.group_kills is not None:
            own, all_kills = end.group_kills
            if own and all_kills:
                used_mb = max(end.held_mb, limits.memory_mb)
                return LimitPassed(end.player, end.at, "memory", used_mb, limits.memory_mb)
            if all_kills:
                raise RefereeError(f"{name} was killed within its limit: the host has no memory left")
        elif end.status in KILLED and end.host_kills:
            raise RefereeError(
                f"{name} was killed while this host, or what we may use of it, had no memory left"
            )
        if end.sandbox_fault is not None:
            raise RefereeError(f"the sandbox of {name} failed: {end.sandbox_fault}")
        if end.not_executed is not None:
            return NotStarted(end.player, end.at, end.not_executed)
        if end.new_files > limits.directory_files:
            return LimitPassed(end.player, end.at, "files", end.new_files, limits.directory_files)
    is_near = limits is not None and end.held_mb >= NEARLY_ALL * limits.memory_mb
    held_mb = end.held_mb if is_near else 0
    return BotExited(*end[:5], held_mb, end.full)


class RuntimeFailure:
    """Error message that a bot prints on standard output instead of a move, while its cause is awaited."""

    def __init__(self, player: int, fault: str, detail: str, line: str) -> None:
        """Begin with the first line; ``fault`` and ``detail`` are the verdict if no cause is found."""
        self.player = player
        self.fault = fault
        self.detail = detail
        self.lines = [line]
        self._exit_hint: Hint | None = None
        self._exit_note = ""

    def add(self, event: PlayerEvent, limits: Limits | None, judge: int) -> bool:
        """Add an event of the bot; return True if no further event can name the cause."""
        is_last = True
        if isinstance(event, LineReceived):
            self.lines.append(event.line)
            is_last = len(self.lines) >= MAX_MESSAGE_LINES
        elif isinstance(event, OutputClosed | BotExited):
            self.lines.append(event.unfinished)
        elif isinstance(event, LineTooLong):
            self.lines.append(event.head)
        if isinstance(event, BotExited):
            self._exit_note = exit_note(event, limits)
            self._exit_hint = exit_hint(event, limits, judge)
        return is_last

    def loss(self, when: str, limits: Limits | None, judge: int, *, is_last: bool) -> Loss | None:
        """Return the fault if the cause is known, or if no further event can name it; None otherwise.

        Args:
            when: The stage of the game, see verdict_text.
            limits: The bot's limits; None if it has none.
            judge: The version of the judge's rules.
            is_last: True if no further event can name the cause.
        """
        hint, note = runtime_messages.find_fault(self.lines), self._exit_note
        if hint is not None:
            note = message_note(self.lines, note)
        else:
            hint = self._exit_hint
        if hint is not None:
            return loss_by_hint(hint, when, limits, note, judge)
        return Loss(Reason.PROTOCOL, self.fault, self.detail, note) if is_last else None


def early_message(lines: Sequence[str], judge: int) -> Sequence[str]:
    """Return the part of early lines that is an error message, from its first line on; else no lines."""
    for number, line in enumerate(lines):
        if runtime_messages.begins_error_message(line, or_debug_text=judge < 6):
            return lines[number:]
    return ()


def message_note(lines: Sequence[str], exit_note: str) -> str:
    """Return the note on an error message on standard output, followed by the note on the bot's end."""
    return "; ".join(filter(None, (verdict_text.error_on_stdout(lines), exit_note)))


def exit_note(event: BotExited, limits: Limits | None) -> str:
    """Return the note on the end of a process: its last words, and the directories that were full."""
    notes = (verdict_text.last_words(event.last_words, limits), verdict_text.full_directories(event.full))
    return "; ".join(filter(None, notes))


def exit_hint(event: BotExited, limits: Limits | None, judge: int) -> Hint | None:
    """Return the cause of a process's end if that is memory or a file; None for other causes."""
    # Without a memory limit, no share of the limit can be computed.
    share_held = 0.0 if limits is None else event.held_mb / limits.memory_mb
    return runtime_messages.classify_exit(
        event.status, event.last_words, share_held, full=bool(event.full), knows_go=judge > 4
    )
