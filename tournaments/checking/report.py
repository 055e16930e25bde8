"""The results of a check: items, each with a verdict, and the report of all items.  Pure."""

from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

REPORT_SCHEMA = 1
"""Version of the report's JSON; a reader refuses another one."""


class Status(StrEnum):
    """The verdict on one item."""

    PASSED = "passed"
    FAILED = "failed"
    WARNING = "warning"
    """Nothing that loses a game, but something to look at."""
    SKIPPED = "skipped"
    """Not tried, or not part of this game; the sentence says why."""


class ReportError(ValueError):
    """A text or object that is no report of a check."""


@dataclass(frozen=True)
class Item:
    """One thing that was checked."""

    id: str
    """A stable word for machines."""
    game: str
    """Spec text of the game that it is about."""
    title: str
    status: Status
    sentence: str
    """The finding in a sentence for the bot's author."""
    advice: str = ""
    """Advice on the finding; empty if there is nothing to do."""
    details: tuple[str, ...] = ()
    """Lines that show it, such as the end of the conversation."""


@dataclass(frozen=True)
class Game:
    """One game or conversation that was played for the check."""

    key: str
    title: str
    item: str
    """Id of the item that it was played for."""
    detail: str
    """The verdict's sentence."""
    fault: str | None
    """The checked bot's fault word (docs/protocol.md), if it lost by one."""
    duration_ms: float
    opponent: str = ""
    """The sample bot; empty for an examiner of the check's own."""


@dataclass(frozen=True)
class Report:
    """One check, whole."""

    bot: str
    command: tuple[str, ...]
    digest: str
    games: tuple[str, ...]
    """Spec texts of the games that the bot was checked on."""
    control: str
    sandbox: str
    """The tier that ran, one of docs/sandbox.md."""
    items: tuple[Item, ...]
    played: tuple[Game, ...] = ()
    started_at: str = ""
    """UTC, ISO 8601."""
    duration_s: float = 0.0
    numbers: dict[str, float] = field(default_factory=dict)
    """Measured numbers, each with its unit in its name."""
    host_fault: str = ""
    """The failure of our host, if the check could not be completed: never the bot's failure."""
    versions: dict[str, str] = field(default_factory=dict)
    memory_mb: int | None = None
    """The memory limit that it was checked with, in MiB; None in reports of older versions."""
    runtime_settings: dict[str, str] = field(default_factory=dict)
    """Environment variables that named the limits to its runtime (referee/sandbox/runtime_settings.py)."""

    @property
    def passed(self) -> bool:
        """True if no item failed."""
        return not self.failures

    @property
    def failures(self) -> tuple[Item, ...]:
        """The items that failed."""
        return tuple(item for item in self.items if item.status is Status.FAILED)

    def count(self, status: Status) -> int:
        """Return the number of items with this status."""
        return sum(item.status is status for item in self.items)

    def to_json(self) -> dict[str, Any]:
        """Return the view for scripts; keys are only ever added."""
        counts = {status.value: self.count(status) for status in Status}
        return {"schema": REPORT_SCHEMA, "ok": self.passed, **counts, **asdict(self)}

    @classmethod
    def from_json(cls, view: Any) -> "Report":
        """Return the report of a view that ``to_json`` made.  Raises ReportError."""
        if not isinstance(view, dict) or view.get("schema") != REPORT_SCHEMA:
            raise ReportError(f"this is no report of a check in schema {REPORT_SCHEMA}")
        derived = {"schema", "ok", *Status}
        try:
            values = {name: value for name, value in view.items() if name not in derived}
            for name in ("command", "games"):
                values[name] = tuple(values[name])
            values["items"] = tuple(
                Item(**{**item, "status": Status(item["status"]), "details": tuple(item["details"])})
                for item in values["items"]
            )
            values["played"] = tuple(Game(**game) for game in values["played"])
            return cls(**values)
        except (LookupError, TypeError, ValueError) as error:
            raise ReportError(f"this report of a check is damaged: {error!r}") from error
