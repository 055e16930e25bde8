"""Messages between the server and a bot worker: the job and its answer, as lines of JSON (pure).

The job is the first line on the worker's standard input, which then stays open until the answer is no longer
needed. The worker's lines on standard output are ``{"say": TEXT}`` for the log, ``{"game": {...}}`` for a
game of a check and, last, ``{"end": {...}}``.
"""

import json
from base64 import b64decode, b64encode
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

from referee.judge.clock import DEFAULT_MOVE_S, TimeControl
from referee.judge.limits import Limits
from referee.judge.results import Player
from referee.sandbox.bubblewrap import Sandbox, Tier, Tools
from tournaments.course.model import CheckedGame

STOPPED = 3
"""Exit status of a worker whose job was cancelled; it has ended all processes that it had started."""


class Task(StrEnum):
    """Kinds of jobs for a worker."""

    CHECK = "check"
    """Build the bot of a submission if it is not built, and check it."""
    BUILD = "build"
    """Build it only."""
    REFERENCE = "reference"
    """Prepare a reference player, which may have to be compiled."""


@dataclass(frozen=True)
class BotJob:
    """A job for a worker: one bot to build, check or prepare."""

    task: Task
    name: str
    """Name of the bot in games."""
    game: str
    """Spec text."""
    contents: str = ""
    """The directory of the content store; this and the next two are empty for a reference player."""
    bots: str = ""
    """The directory of the store of built bots."""
    content: str = ""
    """The submission's digest."""
    reference: str = ""
    """Text of a reference player; empty for a submission."""
    control: TimeControl = field(default_factory=lambda: TimeControl(move_s=DEFAULT_MOVE_S))
    """Time control of a check's games."""
    limits: Limits = field(default_factory=Limits)
    sandbox: Sandbox = field(default_factory=Sandbox)
    total_s: float = 120.0
    """Time limit in seconds for the check's games; a build may take as long."""
    nice: int = 0
    """Nice value that is added to the priority of the worker and its bots."""

    def to_line(self) -> bytes:
        """Return the job as one line."""
        return json.dumps(asdict(self)).encode() + b"\n"

    @classmethod
    def from_line(cls, line: bytes) -> "BotJob":
        """Create the job from a line that ``to_line`` returned."""
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
    """Result of a job."""

    ours: str = ""
    """Reason why this host could not do the job; empty if the job was done, whatever its result."""
    wrong: str = ""
    """Error of the bot, in one sentence, if it could not be built or started; empty otherwise."""
    digest: str = ""
    """Digest of the bot, once it is built."""
    report: dict[str, Any] | None = None
    """Report of a check, as ``Report.to_json``; it has a single item if the bot could not be built."""
    player: dict[str, Any] | None = None
    """Fields of a reference player."""
    games: tuple[CheckedGame, ...] = ()
    """Games of a check in their order; each is a message of its own."""


def game_fields(game: CheckedGame) -> dict[str, Any]:
    """Return the fields of a message for a game, see ``game_of``."""
    return {**asdict(game), "packed": b64encode(game.packed).decode("ascii")}


def game_of(fields: dict[str, Any]) -> CheckedGame:
    """Return the game with a message's fields."""
    return CheckedGame(**fields | {"packed": b64decode(fields["packed"])})


def player_of(view: dict[str, Any]) -> Player:
    """Return the player with an answer's fields."""
    fields: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in view.items()
    }
    return Player(**fields)
