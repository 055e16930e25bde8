"""Specification of a tournament on the server: a lecturer's choices, and their fixed form."""

import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Any

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)

from referee.games.catalog import DEFAULT_GAME, parse_game
from referee.games.spec import did_you_mean
from referee.sandbox.detection import MODES
from tournaments.config.format_tables import FormatTable, RoundRobinTable
from tournaments.config.tournament_file import (
    MAX_BOTS,
    MAX_CONCURRENCY,
    MAX_ROUNDS,
    WITHOUT_ROUNDS,
    LimitsTable,
    RandomOpenings,
    Ranking,
    RatingTable,
    TimeTable,
)
from tournaments.course.model import HIDDEN
from tournaments.course.settings import check_reference
from tournaments.files.validation_errors import problem_lines
from tournaments.reporting.site.anonymizer import Anonymizer

LONGEST_SLUG = 40
RESERVED = "practice"
"""Prefix of slugs that is reserved for the practice ladder."""
NEW_FORM = "new"
"""Last part of the address of the form for a new tournament: no tournament may have this slug."""
CURRENT, FROZEN = "current", "frozen"
"""Choice of versions: the last qualified ones now, or at the moment when submissions were frozen."""


class TournamentSpecError(ValueError):
    """A tournament cannot be played; ``problems`` are sentences with all problems at once."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


def _bots(value: Any) -> Any:
    if value in (CURRENT, FROZEN):
        return value
    if isinstance(value, str):
        hint = did_you_mean(value, [CURRENT, FROZEN])
        raise ValueError(f"must be {CURRENT}, {FROZEN} or numbers of versions, not {value!r}{hint}")
    if not isinstance(value, list) or not all(type(one) is int for one in value):
        raise ValueError(f"must be {CURRENT}, {FROZEN} or numbers of versions")
    if len(set(value)) < len(value):
        raise ValueError("names a version twice")
    return value


class TournamentSpec(_Model):
    """A lecturer's choices for a tournament."""

    title: str = Field(
        min_length=1,
        max_length=200,
        title="Title",
        description="Its name. The address has the same words, without the names of teams.",
    )
    game: str = Field(
        DEFAULT_GAME, title="Game", description="A preset, or a spec text; kalarena games lists them."
    )
    """Spec text, which is replaced by the canonical one."""
    time: TimeTable = TimeTable()
    format: FormatTable = RoundRobinTable()
    """Format of the tournament; it names bots as ``rating`` does."""
    rounds: int | None = Field(
        None, ge=1, le=MAX_ROUNDS, title="Rounds", description="Empty: as many as the format needs."
    )
    openings: RandomOpenings | None = None
    """Random openings; None if all games begin at the game's own start."""
    seed: int = Field(
        0,
        title="Seed",
        description="For random choices: the same seed gives the same tournament.",
    )
    ranking: Ranking = Field(None, title="The table is ordered by")
    """Criteria of the table; None is the format's own."""
    rating: RatingTable = RatingTable()
    """Rating options.

    The anchor is the name of a bot, of a team (if it has one bot here), or a reference player's text.
    """
    bots: Annotated[str | list[int], BeforeValidator(_bots)] = CURRENT
    """CURRENT, FROZEN, or the ids of versions, in seeding order."""
    references: list[str] = Field(default_factory=list, max_length=MAX_BOTS)
    """Texts of reference players, which are seeded after all others."""
    concurrency: int | None = Field(
        None,
        ge=1,
        le=MAX_CONCURRENCY,
        title="Games at a time",
        description="Empty: as many as the server has places.",
    )

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> "TournamentSpec":
        """Validate a lecturer's choices.  Raises TournamentSpecError with all problems."""
        try:
            return cls.model_validate(data)
        except ValidationError as error:
            raise TournamentSpecError(problem_lines(error, cls)) from error

    def to_json(self) -> dict[str, Any]:
        """Return the choices as JSON for ``read``."""
        return self.model_dump(mode="json")

    @field_validator("game")
    @classmethod
    def _known(cls, game: str) -> str:
        return parse_game(game).name  # raises SpecError, a ValueError

    @field_validator("references")
    @classmethod
    def _reference_players(cls, references: list[str]) -> list[str]:
        for text in references:
            check_reference(text)  # raises ValueError
        if len(set(references)) < len(references):
            raise ValueError("names a reference player twice")
        return references

    @model_validator(mode="after")
    def _consistent(self) -> "TournamentSpec":
        if self.rounds is not None and self.format.kind in WITHOUT_ROUNDS:
            raise ValueError(f"format {self.format.kind!r} goes on until it is decided: leave rounds out")
        return self


class Entered(_Model):
    """An entrant of the tournament."""

    name: str
    """Name of the bot in the games."""
    digest: str
    """Digest of the bot that plays: another bot of the same name is refused."""
    version: int | None = None
    """Id of the version; None for a reference player."""
    reference: str | None = None
    """Text of a reference player; None for a version."""


class FixedSpec(_Model):
    """Fixed specification of a tournament: later changes of the course do not affect it."""

    chosen: TournamentSpec
    field: list[Entered]
    """The entrants in order; ``chosen.format`` and ``chosen.rating`` use their names."""
    limits: LimitsTable
    sandbox: str
    """One of referee.sandbox.detection's MODES."""

    @field_validator("sandbox")
    @classmethod
    def _mode(cls, sandbox: str) -> str:
        if sandbox not in MODES:
            raise ValueError(f"must be one of {', '.join(MODES)}, not {sandbox!r}")
        return sandbox

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> "FixedSpec":
        """Parse the result of ``to_json``.  Raises TournamentSpecError if it is damaged."""
        try:
            return cls.model_validate({name: value for name, value in data.items() if name != HIDDEN})
        except ValidationError as error:
            found = "; ".join(problem_lines(error, cls))
            raise TournamentSpecError([f"what was noted of this tournament is damaged: {found}"]) from error

    def to_json(self) -> dict[str, Any]:
        """Return the JSON for a competition's ``spec``."""
        return self.model_dump(mode="json")


def free_slug(title: str, taken: set[str], names: Iterable[str] = ()) -> str:
    """Return an unused slug for addresses, made from the words of a title.

    ``names`` of teams and their bots are left out: they may be hidden from readers of an address.
    """
    without_names = Anonymizer(dict.fromkeys(names, " ")).text(title)
    words = re.sub(r"[^a-z0-9]+", "-", without_names.lower()).strip("-")
    if not words or words == NEW_FORM or words.startswith(RESERVED):
        words = f"tournament-{words}"
    slug = words = words[:LONGEST_SLUG].strip("-")
    number = 2
    while slug in taken:
        behind = f"-{number}"
        slug = words[: LONGEST_SLUG - len(behind)].strip("-") + behind
        number += 1
    return slug
