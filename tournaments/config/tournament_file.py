"""Model of a tournament file: its tables and keys."""

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationInfo,
    field_validator,
    model_validator,
)

from referee.games.catalog import DEFAULT_GAME, parse_game
from referee.games.spec import did_you_mean
from referee.judge.clock import (
    DEFAULT_MARGIN_S,
    DEFAULT_MOVE_S,
    DEFAULT_SETUP_S,
    DEFAULT_START_S,
    FAIR,
    MEASURE,
    TimeControl,
    announceable,
)
from referee.judge.limits import LEAST, Limits
from referee.sandbox.detection import MODES, REQUIRED
from tournaments.analysis.tie_breaks import CRITERIA, PRESETS, criteria_of
from tournaments.bots.manifest import check_name
from tournaments.bots.resolve import resolve_bot
from tournaments.config.cluster_table import ClusterTable
from tournaments.config.format_tables import FormatTable, FormInput, RoundRobinTable
from tournaments.config.openings import MAX_OPENING_PLIES

MAX_BOTS = 1000
"""Documented bound: a round robin of more is half a million games a round."""
MAX_ROUNDS = 10_000
MAX_CONCURRENCY = 256


_LIMITS = Limits()


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class TimeTable(_Model):
    """``[time]``, in seconds; see referee/judge/clock.py."""

    move_s: float | None = Field(
        None,
        gt=0,
        allow_inf_nan=False,
        title="Seconds per move",
        description=f"Empty: no limit per move; {DEFAULT_MOVE_S:g} s if there is none per game either.",
    )
    game_s: float | None = Field(
        None,
        gt=0,
        allow_inf_nan=False,
        title="Seconds for all moves of a game",
        description="Empty: no such limit.",
    )
    increment_s: float = Field(0.0, ge=0, allow_inf_nan=False, title="Seconds added after each move")
    margin_s: float = Field(DEFAULT_MARGIN_S, ge=0, allow_inf_nan=False)
    start_s: float = Field(DEFAULT_START_S, gt=0, allow_inf_nan=False)
    setup_s: float = Field(DEFAULT_SETUP_S, ge=0, allow_inf_nan=False)
    clock: str = FAIR
    ponder: str = MEASURE

    def control(self) -> TimeControl:
        """Return the time control; without any limit, the default per move."""
        move_s = DEFAULT_MOVE_S if self.move_s is None and self.game_s is None else self.move_s
        return announceable(TimeControl(**{**self.model_dump(), "move_s": move_s}))

    @model_validator(mode="after")
    def _sensible(self) -> "TimeTable":
        self.control()  # raises ValueError
        return self


class SandboxTable(_Model):
    """``[sandbox]``: how bots are confined."""

    mode: str | None = None

    @field_validator("mode")
    @classmethod
    def _known(cls, mode: str | None) -> str | None:
        if mode is not None and mode not in MODES:
            raise ValueError(f"must be one of {', '.join(MODES)}, not {mode!r}")
        return mode


class LimitsTable(_Model):
    """``[limits]``: resource limits of each bot; see referee/judge/limits.py."""

    memory_mb: int = Field(_LIMITS.memory_mb, ge=LEAST["memory_mb"])
    processes: int = Field(_LIMITS.processes, ge=LEAST["processes"])
    file_mb: int = Field(_LIMITS.file_mb, ge=LEAST["file_mb"])
    scratch_mb: int = Field(_LIMITS.scratch_mb, ge=LEAST["scratch_mb"])
    stderr_bytes: int = Field(_LIMITS.stderr_bytes, ge=LEAST["stderr_bytes"])
    line_bytes: int = Field(_LIMITS.line_bytes, ge=LEAST["line_bytes"])
    wire_bytes: int = Field(_LIMITS.wire_bytes, ge=LEAST["wire_bytes"])
    directory_mb: int = Field(_LIMITS.directory_mb, ge=LEAST["directory_mb"])
    directory_files: int = Field(_LIMITS.directory_files, ge=LEAST["directory_files"])
    end_grace_s: float = Field(_LIMITS.end_grace_s, ge=0, le=60, allow_inf_nan=False)

    def limits(self) -> Limits:
        """Return the limits."""
        return Limits(**self.model_dump())


class BotContext(NamedTuple):
    """Context for the validation of bots."""

    folder: Path
    """Folder for relative paths."""
    not_needed: Collection[str] = ()
    """Texts of bots that have withdrawn: the files that they name may be gone."""


class BotEntry(_Model):
    """One of ``bots``: a text as on the command line of `kalarena play`, or a table with these keys."""

    bot: str
    name: str | None = None

    @field_validator("bot")
    @classmethod
    def _startable(cls, bot: str, info: ValidationInfo) -> str:
        context: BotContext = info.context or BotContext(Path())
        if bot not in context.not_needed:
            resolve_bot(bot, context.folder)  # raises BotError, a ValueError
        return bot

    @field_validator("name")
    @classmethod
    def _printable(cls, name: str | None) -> str | None:
        return check_name(name)


def _bot_entry(value: Any) -> Any:
    return {"bot": value} if isinstance(value, str) else value


def _ranking(value: Any) -> Any:
    """Return the criteria; a preset's name stands for its own, None for that of the format."""
    if value is None:
        return None
    if isinstance(value, str):
        if value in PRESETS:
            return value
        hint = f"; a list may be [{value!r}]" if value in CRITERIA else did_you_mean(value, list(PRESETS))
        raise ValueError(f"must be one of {', '.join(PRESETS)}, or a list of criteria, not {value!r}{hint}")
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise ValueError(f"must be one of {', '.join(PRESETS)}, or a list of {', '.join(CRITERIA)}")
    for name in value:
        if name not in CRITERIA and (hint := did_you_mean(name, list(CRITERIA))):
            raise ValueError(f"no criterion {name!r}{hint}")
    return criteria_of(value)


Ranking = Annotated[
    str | tuple[str, ...] | None,
    BeforeValidator(_ranking),
    FormInput(
        choices=(
            ("", "the default of the format"),
            *((name, ", then ".join(criteria)) for name, criteria in PRESETS.items()),
        )
    ),
]
"""``ranking``: a preset's name, or criteria."""


class RatingTable(_Model):
    """``[rating]``: reference bot of the ratings, and its value."""

    anchor: str | None = Field(
        None,
        title="Ratings are relative to",
        description="The name of a team or a reference player: its rating is 0. Empty: the average is 0.",
    )
    value: float = Field(0.0, allow_inf_nan=False, ge=-10_000, le=10_000)


class RandomOpenings(_Model):
    """``openings.random``: another opening for each round, generated by random moves."""

    plies: int = Field(
        ge=1,
        le=MAX_OPENING_PLIES,
        title="Random opening moves",
        description="Each round begins from another position, which a pair plays from both sides. Without "
        "openings, bots without random moves repeat the same game. Every bot must accept openings. Empty: "
        "none.",
    )
    seed: int


class Openings(_Model):
    """``openings``: the path of a file (from the tournament file's folder), or a table with one of these."""

    file: str | None = None
    random: RandomOpenings | None = None

    @model_validator(mode="after")
    def _one_of_them(self) -> "Openings":
        if (self.file is None) == (self.random is None):
            raise ValueError("takes either file or random")
        return self


def _openings(value: Any) -> Any:
    return {"file": value} if isinstance(value, str) else value


WITHOUT_ROUNDS = ("knockout", "sprt")
"""Formats that continue until they are decided."""


class TournamentFile(_Model):
    """The whole tournament file."""

    name: str | None = Field(None, min_length=1, max_length=200)
    game: str = DEFAULT_GAME
    rounds: int | None = Field(None, ge=1, le=MAX_ROUNDS)
    openings: Annotated[Openings | None, BeforeValidator(_openings)] = None
    format: FormatTable = RoundRobinTable()
    seed: int = 0
    ranking: Ranking = None
    rating: RatingTable = RatingTable()
    concurrency: int | None = Field(None, ge=1, le=MAX_CONCURRENCY)
    own_core: bool = False
    untrusted: bool = False
    keep_files: bool = False
    game_files: Literal["folders", "archives"] = "folders"
    clock: str | None = None
    ponder: str | None = None
    time: TimeTable = TimeTable()
    sandbox: SandboxTable = SandboxTable()
    limits: LimitsTable = LimitsTable()
    cluster: ClusterTable = ClusterTable()
    bots: list[Annotated[BotEntry, BeforeValidator(_bot_entry)]] = Field(min_length=2, max_length=MAX_BOTS)

    @field_validator("game")
    @classmethod
    def _known(cls, game: str) -> str:
        return parse_game(game).name  # raises SpecError, a ValueError

    def control(self) -> TimeControl:
        """Return the time control; ``clock`` and ``ponder`` may be at the top of the file, too."""
        control = self.time.control()
        given = {name: value for name in ("clock", "ponder") if (value := getattr(self, name)) is not None}
        return replace(control, **given)

    @model_validator(mode="after")
    def _consistent(self) -> "TournamentFile":
        for name in ("clock", "ponder"):
            value = getattr(self, name)
            if value is not None and name in self.time.model_fields_set and getattr(self.time, name) != value:
                raise ValueError(f"{name} is given twice, here and in [time], and differently")
        self.control()  # raises ValueError
        if self.rounds is not None and self.format.kind in WITHOUT_ROUNDS:
            raise ValueError(f"format {self.format.kind!r} goes on until it is decided: leave rounds out")
        if self.untrusted and self.sandbox.mode not in (None, REQUIRED):
            raise ValueError(
                f"untrusted = true needs a sandbox that holds, and [sandbox] says mode = "
                f"{self.sandbox.mode!r}: leave that out"
            )
        return self
