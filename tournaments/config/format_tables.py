"""``format`` of a tournament file: the tables of all formats, with their options."""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, get_args

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    field_validator,
    model_serializer,
    model_validator,
)

from tournaments.files.validation_errors import suggestion
from tournaments.schedule.plan import FORMATS


@dataclass(frozen=True)
class FormInput:
    """Metadata for ``Annotated``: a form input, where title, description and type do not determine it."""

    kind: str | None = None
    """Type of the HTML input; None: by the type of the field."""
    step: str | None = None
    """Step of a number input; None: by the type of the field."""
    choices: tuple[tuple[str, str], ...] = ()
    """Values with their labels."""


MAX_PAIRS = 100
"""Documented bound on pairs of games between two bots in one round."""

MIN_ERROR = 1e-12
"""Documented minimum of an SPRT's alpha and beta: for far smaller values its thresholds are infinite."""

Pairs = Annotated[
    int,
    Field(
        ge=1, le=MAX_PAIRS, title="Pairs of games in a match", description="A pair: each moves first once."
    ),
]
ExtraPairs = Annotated[
    int, Field(ge=0, le=MAX_PAIRS, title="More pairs if a match is level", description="At most.")
]
ThirdPlace = Annotated[bool, Field(title="A match for the third place")]


class _Format(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    EXTENDABLE: ClassVar[tuple[str, ...]] = ()
    """Options that may change between a run and its resumption."""
    TAKES_LATE_BOTS: ClassVar[bool] = True
    """True if a bot can join after the first game."""
    TAKES_MANUAL_PAIRINGS: ClassVar[bool] = False
    """True if the organiser can fix and forbid pairings."""
    ANNULS: ClassVar[bool] = False
    """True if, by default, the games of a bot that withdraws do not count.

    That is so where all bots are compared by the same number of games against the same opponents.
    """
    ABOUT: ClassVar[str]
    """Description of the format for organisers."""


class RoundRobinTable(_Format):
    """All bots meet each other, from both sides, in each round."""

    ANNULS: ClassVar[bool] = True
    ABOUT: ClassVar[str] = "Everybody meets everybody. The fairest: n bots play n (n - 1) games a round."
    kind: Literal["round-robin"] = "round-robin"


class GauntletTable(_Format):
    """The challengers meet all other bots."""

    ANNULS: ClassVar[bool] = True
    ABOUT: ClassVar[str] = "Some bots, the challengers, meet all others, and not one another."
    kind: Literal["gauntlet"] = "gauntlet"
    challengers: list[str] = Field(
        title="Challengers", description="Names of teams or reference players, with commas between them."
    )

    @field_validator("challengers")
    @classmethod
    def _some(cls, challengers: list[str]) -> list[str]:
        if not challengers:
            raise ValueError("needs at least one bot")
        if len(set(challengers)) < len(challengers):
            raise ValueError("names a bot twice")
        return challengers


class PlacementTable(_Format):
    """A challenger finds its rank among the other bots, which are in ascending order of strength."""

    TAKES_LATE_BOTS: ClassVar[bool] = False
    ABOUT: ClassVar[str] = (
        "One bot finds its rank among the others, which are in order of strength, the weakest first."
    )
    kind: Literal["placement"] = "placement"
    challengers: list[str] = Field(
        min_length=1,
        max_length=1,
        title="Challenger",
        description="The name of a team or a reference player.",
    )
    pairs: Pairs = 1


class SwissTable(_Format):
    """In each round bots with equal points meet."""

    TAKES_MANUAL_PAIRINGS: ClassVar[bool] = True
    ABOUT: ClassVar[str] = "In each round everybody meets somebody with as many points. For many bots."
    kind: Literal["swiss"] = "swiss"
    pairs: Pairs = 1
    scoring: Annotated[
        Literal["games", "match"],
        FormInput(
            choices=(("games", "games"), ("match", "matches: 2 for one that is won, 1 for one that is drawn"))
        ),
    ] = Field("games", title="Points are given for", description="These points decide the pairings.")

    @model_serializer(mode="wrap")
    def _as_before(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave the default scoring out: tournaments of earlier versions do not record it."""
        return {name: value for name, value in dump(self).items() if (name, value) != ("scoring", "games")}


class LadderTable(_Format):
    """Neighbours meet, and the better one moves up."""

    ABOUT: ClassVar[str] = "Neighbours on a ladder meet, and the better one goes up."
    kind: Literal["ladder"] = "ladder"
    pairs: Pairs = 1


class KnockoutTable(_Format):
    """The loser of a match is eliminated."""

    TAKES_LATE_BOTS: ClassVar[bool] = False
    ABOUT: ClassVar[str] = "The loser of a match is out. Good for a show."
    kind: Literal["knockout"] = "knockout"
    pairs: Pairs = 1
    extra_pairs: ExtraPairs = 2
    third_place: ThirdPlace = True
    seeding: Annotated[
        Literal["order", "random"],
        FormInput(choices=(("order", "in the order of the bots"), ("random", "by lot"))),
    ] = Field("order", title="Seeding")


class GroupsTable(_Format):
    """Round robins in groups, then a final of the best."""

    TAKES_LATE_BOTS: ClassVar[bool] = False
    ABOUT: ClassVar[str] = "Round robins in groups, then a final of the best."
    kind: Literal["groups"] = "groups"
    groups: int = Field(2, ge=1, title="Groups")
    advance: int = Field(2, ge=1, title="Bots of each group in the final")
    final: Annotated[
        Literal["knockout", "round-robin"],
        FormInput(choices=(("knockout", "knockout"), ("round-robin", "round robin"))),
    ] = Field("knockout", title="Final")
    pairs: Pairs = 1
    extra_pairs: ExtraPairs = 2
    third_place: ThirdPlace = True


class SprtTable(_Format):
    """Two bots play until a sequential test decides whether the first is stronger."""

    EXTENDABLE: ClassVar[tuple[str, ...]] = ("max_games",)
    TAKES_LATE_BOTS: ClassVar[bool] = False
    ABOUT: ClassVar[str] = "Two bots play until it is decided whether the first is stronger."
    kind: Literal["sprt"] = "sprt"
    elo0: float = Field(
        0.0, allow_inf_nan=False, ge=-2000, le=2000, title="Not stronger: at most this Elo difference"
    )
    elo1: float = Field(
        50.0, allow_inf_nan=False, ge=-2000, le=2000, title="Stronger: at least this Elo difference"
    )
    alpha: float = Field(
        0.05, ge=MIN_ERROR, lt=0.5, title="Probability of accepting a bot that is not stronger"
    )
    beta: float = Field(0.05, ge=MIN_ERROR, lt=0.5, title="Probability of rejecting a bot that is stronger")
    max_games: Annotated[int, FormInput(step="2")] = Field(2000, ge=2, le=1_000_000, title="Most games")
    batch: int = Field(16, ge=2, le=10_000, multiple_of=2, title="Games in a batch")

    @model_validator(mode="after")
    def _sensible(self) -> "SprtTable":
        if self.elo1 <= self.elo0:
            raise ValueError(f"elo1 must be more than elo0, not {self.elo1:g} and {self.elo0:g}")
        return self


AnyFormatTable = (
    RoundRobinTable
    | GauntletTable
    | SwissTable
    | KnockoutTable
    | GroupsTable
    | LadderTable
    | SprtTable
    | PlacementTable
)

FORMAT_TABLES: dict[str, type[_Format]] = {
    table.model_fields["kind"].default: table for table in get_args(AnyFormatTable)
}
"""Name of a format -> its table."""


def _with_kind(value: Any) -> Any:
    """Return the table of a format; a name alone stands for a format with all its defaults."""
    kind = value if isinstance(value, str) else value.get("kind") if isinstance(value, dict) else None
    if not isinstance(kind, str):
        raise ValueError(
            f"takes the name of a format, or a table with its name as kind; there are {', '.join(FORMATS)}"
        )
    if kind not in FORMATS:
        raise ValueError(f"there is no format {kind!r}{suggestion(kind, FORMATS)}")
    return {"kind": kind} if isinstance(value, str) else value


FormatTable = Annotated[AnyFormatTable, Field(discriminator="kind"), BeforeValidator(_with_kind)]
