"""Causes of a bot's end, as far as its runtime reports them: out of memory, or a failed file (pure).

A runtime that finds no memory prints an error message and ends.  Java prints its message on standard output,
where the first line is no move.  The bot has lost then, but the verdict waits for the cause: the next lines
of the message, or the end of the process (``RuntimeFailure``).
"""

from collections.abc import Sequence

from referee.judge import runtime_messages, verdict_text
from referee.judge.events import BotExited, LineReceived, LineTooLong, OutputClosed, PlayerEvent
from referee.judge.limits import Limits
from referee.judge.runtime_messages import Hint

CAUSE_WAIT_US = 2_000_000
"""Time for a bot that begins an error message on standard output to print the cause, or to end; never longer
than its turn.  A Java machine that gives up takes up to a second."""
MAX_MESSAGE_LINES = 200
"""Lines of an error message that are examined; the report of a Java machine that crashes has about 20."""


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

    def add(self, event: PlayerEvent, limits: Limits | None) -> bool:
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
            self._exit_note = exit_note(event)
            self._exit_hint = exit_hint(event, limits)
        return is_last

    def conclude(self) -> tuple[Hint | None, str]:
        """Return the cause, or None if none is known yet, and the note for the bot's author."""
        hint = runtime_messages.find_fault(self.lines)
        if hint is None:
            return self._exit_hint, self._exit_note
        return hint, message_note(self.lines, self._exit_note)


def early_message(lines: Sequence[str]) -> Sequence[str]:
    """Return the part of early lines that is an error message, from its first line on; else no lines."""
    begins = (number for number, line in enumerate(lines) if runtime_messages.begins_error_message(line))
    return lines[next(begins, len(lines)) :]


def message_note(lines: Sequence[str], exit_note: str) -> str:
    """Return the note on an error message on standard output, followed by the note on the bot's end."""
    return "; ".join(filter(None, (verdict_text.error_on_stdout(lines), exit_note)))


def exit_note(event: BotExited) -> str:
    """Return the note on the end of a process: its last words, and the directories that were full."""
    notes = (verdict_text.last_words(event.last_words), verdict_text.full_directories(event.full))
    return "; ".join(filter(None, notes))


def exit_hint(event: BotExited, limits: Limits | None) -> Hint | None:
    """Return the cause of a process's end if that is memory or a file; None for other causes."""
    # Without a limit there is no share of it.
    share_held = 0.0 if limits is None else event.held_mb / limits.memory_mb
    return runtime_messages.classify_exit(event.status, event.last_words, share_held, full=bool(event.full))
