"""What a worker is asked to do with one bot, and what it answers: lines of JSON.  Pure.

The job is the first line on the worker's standard input, which then stays open for as long as somebody wants
the answer.  The worker's lines on standard output are ``{"say": TEXT}`` for the log and, last,
``{"end": {...}}``.
"""

import json
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

from referee.clock import DEFAULT_MOVE_S, TimeControl
from referee.limits import Limits
from referee.results import Player
from referee.sandbox import Sandbox, Tier, Tools

STOPPED = 3
"""Exit status of a worker whose answer nobody wanted any more; it has ended all that it had started."""


class Task(StrEnum):
    """What is to be done."""

    CHECK = "check"
    """Build the bot of a submission if it is not built, and check it."""
    BUILD = "build"
    """Build it only."""
    REFERENCE = "reference"
    """Make a reference player ready, which may have to be compiled."""


@dataclass(frozen=True)
class BotJob:
    """One bot."""

    task: Task
    name: str
    """What it is called in games."""
    game: str
    """Spec text."""
    contents: str = ""
    """The directory of the content store; this and the next two are empty for a reference player."""
    workshop: str = ""
    """The directory of the workshop."""
    content: str = ""
    """The submission's digest."""
    reference: str = ""
    """The text of a reference player."""
    control: TimeControl = field(default_factory=lambda: TimeControl(move_s=DEFAULT_MOVE_S))
    """Of a check's games."""
    limits: Limits = field(default_factory=Limits)
    sandbox: Sandbox = field(default_factory=Sandbox)
    total_s: float = 120.0
    """For the check's games; a build may take as long."""
    nice: int = 0
    """By how much the worker and the bots give way to other processes."""

    def to_line(self) -> bytes:
        """The job as one line."""
        return json.dumps(asdict(self)).encode() + b"\n"

    @classmethod
    def from_line(cls, line: bytes) -> "BotJob":
        """The job that ``to_line`` made a line of."""
        view = json.loads(line)
        sandbox = view["sandbox"]
        return cls(
            **view
            | {
                "task": Task(view["task"]),
                "control": TimeControl(**view["control"]),
                "limits": Limits(**view["limits"]),
                "sandbox": Sandbox(Tier(sandbox["tier"]), Tools(**sandbox["tools"]), sandbox["cgroup"]),
            }
        )


@dataclass(frozen=True)
class Answer:
    """What became of a job."""

    ours: str = ""
    """Why our host could not do it; empty if it did, whatever it found."""
    wrong: str = ""
    """What is wrong with the bot, in one sentence, if it could not be built or started; empty otherwise."""
    digest: str = ""
    """Of the bot, once it is built."""
    report: dict[str, Any] | None = None
    """Of a check, as ``Report.to_json``; one with a single item if the bot could not be built."""
    player: dict[str, Any] | None = None
    """A reference player's fields."""

    def to_json(self) -> dict[str, Any]:
        """The answer as it is sent."""
        return asdict(self)


def player_of(view: dict[str, Any]) -> Player:
    """The player of an answer's fields."""
    fields: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in view.items()
    }
    return Player(**fields)
