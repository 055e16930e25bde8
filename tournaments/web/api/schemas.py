"""Models of the HTTP API's JSON.  Fields are only ever added.

The responses and the schemas of the OpenAPI document are made from these models, whose docstrings and
descriptions are texts of that document.
"""

from datetime import datetime
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field

from tournaments.config.tournament_file import MAX_BOTS, MAX_ROUNDS
from tournaments.course.challenges import MOST_PAIRS
from tournaments.course.model import ChallengeState, CompetitionKind, CompetitionState, Role, VersionState

LONGEST_TEXT = 255
"""Most characters of a name or of a value in a query: the most bytes of a file name on Linux."""
NO_NUL = r"^[^\u0000]*$"
"""Pattern of a text without the character 0, which PostgreSQL does not store."""


class ApiView(BaseModel):
    """Base of the models."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @classmethod
    def of(cls, source: object, **values: Any) -> Self:
        """Return a model with these values; the other fields are the attributes of ``source``."""
        return cls(
            **{name: getattr(source, name) for name in cls.model_fields if name not in values}, **values
        )


class ErrorAnswer(ApiView):
    """An answer that is no success."""

    error: str = Field(description="One sentence for people: what is wrong, and what to do.")


class AccountView(ApiView):
    """Somebody who may sign in."""

    login: str
    name: str
    role: Role
    team: str | None = Field(description="The team whose bot it submits.")


class AccountAnswer(ApiView):
    """Whose token this is."""

    account: AccountView


class VersionView(ApiView):
    """A submitted version."""

    id: int
    number: int = Field(description="Counted from 1 in each team.")
    state: VersionState
    is_over: bool = Field(description="Whether the state is final: qualified, failed or stuck.")
    current: bool = Field(description="Whether this is the version that plays.")
    withdrawn: bool
    submitted_at: datetime
    decided_at: datetime | None
    origin: str = Field(description="`page` or `api`.")
    content: str = Field(description="SHA-256 of the files' manifest.")
    files: int
    size: int = Field(description="Bytes of all files.")
    failures: int = Field(description="Items of the check that failed.")
    page: str = Field(description="Path of the page that shows it.")


class SubmissionAnswer(ApiView):
    """What a submission has become."""

    version: VersionView
    new: bool = Field(description="False if the newest version holds the very same files already.")
    passed_over: list[str] = Field(description="Files that are no part of a bot and were left out.")


class VersionsAnswer(ApiView):
    """All versions of the token's team, newest first."""

    versions: list[VersionView]


class VersionAnswer(ApiView):
    """One version with what its check found."""

    version: VersionView
    report: dict[str, Any] | None = Field(
        description="As `kalarena check --json` prints it; null until there is one."
    )


class LogAnswer(ApiView):
    """Lines of a check's log."""

    lines: list[str]
    next: int = Field(description="What to ask for as `after` next time.")
    is_over: bool = Field(description="Whether no more lines will come.")


class CompetitionView(ApiView):
    """A practice ladder or a tournament."""

    slug: str = Field(description="Its name in addresses.")
    title: str
    kind: CompetitionKind
    state: CompetitionState
    created_at: datetime


class CompetitionsAnswer(ApiView):
    """All competitions."""

    competitions: list[CompetitionView]


class TableAnswer(ApiView):
    """A competition's table."""

    competition: CompetitionView
    table: dict[str, Any] = Field(
        description="As `kalarena tournament table --format json` prints it: standings, ratings, progress."
    )
    head: str | None = Field(description="The head digest of the competition's records, for `verify --head`.")
    head_number: int | None = Field(description="The number of its entry in the chain of records.")


class GameView(ApiView):
    """A game without its moves."""

    key: str
    round: int
    first: str
    second: str
    winner: str | None = Field(description="Name of the winner; null for a draw.")
    reason: str = Field(description="A word of docs/protocol.md.")
    fault: str | None = Field(description="The loser's fault, a word of docs/protocol.md.")
    detail: str = Field(description="The verdict's sentence.")
    score: tuple[int, int] | None
    moves: tuple[int, int]


class GamesAnswer(ApiView):
    """Games of a competition, by key."""

    games: list[GameView]
    next: str | None = Field(description="What to ask for as `after` to get more; null if these were all.")


class GameAnswer(ApiView):
    """One game, whole, without what is private to a bot."""

    game: dict[str, Any] = Field(description="The file `game.json` of docs/exports.md.")


Text = Annotated[str, Field(max_length=LONGEST_TEXT, pattern=NO_NUL)]


class PairingsBody(ApiView):
    """Pairings of a coming round of a Swiss, to fix, to forbid or to take back."""

    why: str = Field(
        min_length=1, max_length=1000, pattern=NO_NUL, description="The reason, which reports show."
    )
    round: int | None = Field(None, ge=1, le=MAX_ROUNDS, description="The round; null is the next one.")
    pairs: list[tuple[Text, Text]] = Field([], max_length=MAX_BOTS, description="Bots that meet.")
    byes: list[Text] = Field([], max_length=MAX_BOTS, description="Bots that have a bye.")
    forbidden: list[tuple[Text, Text]] = Field(
        [], max_length=MAX_BOTS, description="Bots that do not meet, in the round and after it."
    )
    undo: bool = Field(False, description="Whether these rulings are taken back.")


class RulingsAnswer(ApiView):
    """Rulings that were noted in the journal of a tournament."""

    noted: list[str] = Field(description="Sentences for people: each ruling, and what follows from it.")


class OpponentView(ApiView):
    """A bot that the team may challenge."""

    name: str = Field(description="Value of `opponent` in a request.")
    kind: str = Field(description="`reference`, `team`, or `remote`: a remote bot of the team.")


class OpponentsAnswer(ApiView):
    """The bots that the team may challenge."""

    opponents: list[OpponentView]


class ChallengeBody(ApiView):
    """A challenge of the team's bot to another one."""

    opponent: Text = Field(description="Name of a bot of `/api/v1/opponents`.")
    pairs: int = Field(1, ge=1, le=MOST_PAIRS, description="Pairs of games, in which seats are exchanged.")
    bot: Text = Field("", description="Name of a connected remote bot; empty: the version that plays.")


class ChallengeGameView(GameView):
    """A game of a challenge, without its moves; the round is the number of its pair."""

    outcome: str = Field(description="For the team: `won`, `drawn` or `lost`.")
    page: str = Field(description="Path of the page with the replay.")


class ChallengeView(ApiView):
    """A challenge of the token's team."""

    id: int
    competition: str = Field(description="The slug under which the games' records are found.")
    state: ChallengeState
    is_over: bool = Field(description="Whether the state is final: finished, cancelled or failed.")
    message: str = Field(description="Reason why the challenge failed; else empty.")
    asked_at: datetime
    ended_at: datetime | None
    bot: str = Field(description="The team's bot.")
    opponent: str
    pairs: int
    wins: int
    draws: int
    losses: int
    results: list[ChallengeGameView] = Field(description="The games that are over.")
    page: str = Field(description="Path of the page that shows it.")


class ChallengeAnswer(ApiView):
    """One challenge."""

    challenge: ChallengeView


class ChallengesAnswer(ApiView):
    """Challenges of the token's team, newest first."""

    challenges: list[ChallengeView]
