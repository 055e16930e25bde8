"""Specification of a tournament on the server: a lecturer's choices, and their fixed form."""

from collections.abc import Mapping
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
from tournaments.config.format_tables import FORMAT_TABLES, FormatTable, RoundRobinTable
from tournaments.config.load import problems_of
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
from tournaments.course.settings import check_reference

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

    title: str = Field(min_length=1, max_length=200)
    game: str = DEFAULT_GAME
    """Spec text, which is replaced by the canonical one."""
    time: TimeTable = TimeTable()
    format: FormatTable = RoundRobinTable()
    """Format of the tournament; it names bots as ``rating`` does."""
    rounds: int | None = Field(None, ge=1, le=MAX_ROUNDS)
    """Number of rounds; None is as many as the format needs."""
    openings: RandomOpenings | None = None
    """Random openings; None if all games begin at the game's own start."""
    seed: int = 0
    ranking: Ranking = None
    """Criteria of the table; None is the format's own."""
    rating: RatingTable = RatingTable()
    """Rating options.

    The anchor is the name of a bot, of a team (if it has one bot here), or a reference player's text.
    """
    bots: Annotated[str | list[int], BeforeValidator(_bots)] = CURRENT
    """CURRENT, FROZEN, or the ids of versions, in seeding order."""
    references: list[str] = Field(default_factory=list, max_length=MAX_BOTS)
    """Texts of reference players, which are seeded after all others."""
    concurrency: int | None = Field(None, ge=1, le=MAX_CONCURRENCY)
    """Number of games at a time; None is all slots of the server."""

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> "TournamentSpec":
        """Validate a lecturer's choices.  Raises TournamentSpecError with all problems."""
        try:
            return cls.model_validate(data)
        except ValidationError as error:
            raise TournamentSpecError(problems_of(error, _known_keys)) from error

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


def _known_keys(location: tuple[Any, ...]) -> list[str]:
    """Return the valid keys at the location of an unknown key."""
    inner: dict[str, type[BaseModel]] = {"time": TimeTable, "openings": RandomOpenings, "rating": RatingTable}
    if location[0] == "format" and len(location) > 2:
        return list(FORMAT_TABLES[location[1]].model_fields)
    if location[0] in inner and len(location) > 1:
        return list(inner[location[0]].model_fields)
    return list(TournamentSpec.model_fields)


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
            return cls.model_validate(data)
        except ValidationError as error:
            found = "; ".join(problems_of(error, lambda _: list(cls.model_fields)))
            raise TournamentSpecError([f"what was noted of this tournament is damaged: {found}"]) from error

    def to_json(self) -> dict[str, Any]:
        """Return the JSON for a competition's ``spec``."""
        return self.model_dump(mode="json")
