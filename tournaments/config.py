"""tournament.toml: what it may say, and clear errors for what it may not."""

import re
import tomllib
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from referee.clock import DEFAULT_MARGIN_S, DEFAULT_MOVE_S, DEFAULT_SETUP_S, DEFAULT_START_S, TimeControl
from referee.games.catalog import DEFAULT_GAME, parse_game
from referee.games.spec import did_you_mean
from referee.results import Player
from tournaments.bots import resolve_bot

MAX_BOTS = 1000
"""Documented bound: a round robin of more is half a million games a round."""
MAX_ROUNDS = 10_000
MAX_CONCURRENCY = 256

_NAME = re.compile(r"\w[\w .:+=(),'-]{0,59}")


class ConfigError(ValueError):
    """A tournament file that cannot be used; the message has one line for each thing that is wrong."""


class Ranking(StrEnum):
    """How the table is ordered."""

    POINTS = "points"
    """1 for a win, 0.5 for a draw; then wins."""
    WINS_THEN_SPEED = "wins-then-speed"
    """The Manchester course's: games won, then the lower average time per move."""


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class TimeTable(_Model):
    """``[time]``, in seconds; see referee/clock.py."""

    move_s: float | None = Field(None, gt=0, allow_inf_nan=False)
    game_s: float | None = Field(None, gt=0, allow_inf_nan=False)
    increment_s: float = Field(0.0, ge=0, allow_inf_nan=False)
    margin_s: float = Field(DEFAULT_MARGIN_S, ge=0, allow_inf_nan=False)
    start_s: float = Field(DEFAULT_START_S, gt=0, allow_inf_nan=False)
    setup_s: float = Field(DEFAULT_SETUP_S, ge=0, allow_inf_nan=False)

    def control(self) -> TimeControl:
        """The time control; without any limit, the default per move."""
        move_s = DEFAULT_MOVE_S if self.move_s is None and self.game_s is None else self.move_s
        return TimeControl(move_s, self.game_s, self.increment_s, self.margin_s, self.start_s, self.setup_s)

    @model_validator(mode="after")
    def _sensible(self) -> "TimeTable":
        self.control()  # raises ValueError
        return self


class BotEntry(_Model):
    """One of ``bots``: a text as on the command line of `kalarena play`, or a table with these keys."""

    bot: str
    name: str | None = None

    @field_validator("bot")
    @classmethod
    def _startable(cls, bot: str, info: ValidationInfo) -> str:
        base: Path = info.context or Path()
        resolve_bot(bot, base)  # raises BotError, a ValueError
        return bot

    @field_validator("name")
    @classmethod
    def _printable(cls, name: str | None) -> str | None:
        if name is not None and not _NAME.fullmatch(name):
            raise ValueError(
                "a name is 1 to 60 letters, digits, spaces and . : + = ( ) , ' - "
                "and begins with a letter or digit"
            )
        return name


def _bot_entry(value: Any) -> Any:
    return {"bot": value} if isinstance(value, str) else value


def _ranking(value: Any) -> Any:
    # strict mode takes no TOML string for an enumeration
    return Ranking(value) if isinstance(value, str) and value in list(Ranking) else value


class TournamentFile(_Model):
    """The whole file."""

    name: str | None = Field(None, min_length=1, max_length=200)
    game: str = DEFAULT_GAME
    rounds: int = Field(1, ge=1, le=MAX_ROUNDS)
    ranking: Annotated[Ranking, BeforeValidator(_ranking)] = Ranking.POINTS
    concurrency: int | None = Field(None, ge=1, le=MAX_CONCURRENCY)
    time: TimeTable = TimeTable()
    bots: list[Annotated[BotEntry, BeforeValidator(_bot_entry)]] = Field(min_length=2, max_length=MAX_BOTS)

    @field_validator("game")
    @classmethod
    def _known(cls, game: str) -> str:
        return parse_game(game).name  # raises SpecError, a ValueError


class Tournament(BaseModel):
    """A tournament ready to run."""

    model_config = ConfigDict(frozen=True)

    name: str
    game: str
    """Canonical spec text."""
    rounds: int
    ranking: Ranking
    control: TimeControl
    bots: tuple[Player, ...]
    concurrency: int | None = None
    """Games at a time; None is one per core."""

    @property
    def names(self) -> list[str]:
        """The bots' names, in the order of the file."""
        return [bot.name for bot in self.bots]

    def identity(self) -> dict[str, Any]:
        """What makes results comparable; two tournaments with the same identity are the same one.

        Rounds, ranking and concurrency are not in it: they may change between a run and its resumption.
        """
        return {
            "game": self.game,
            "time control": str(self.control),
            "bots": {bot.name: bot.digest for bot in self.bots},
        }


def slug(name: str) -> str:
    """A name as part of a file name: letters, digits, dots and underscores only."""
    return re.sub(r"[^\w.]", "_", name)


def load_tournament(path: Path) -> Tournament:
    """Read a tournament file.  Raises ConfigError with everything that is wrong with it, a line each."""
    try:
        text = path.read_text(encoding="utf-8-sig")  # editors on Windows put a byte order mark first
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise ConfigError(f"{path}: cannot be read: {reason}") from error
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path}: this is not TOML: {error}") from error
    try:
        file = TournamentFile.model_validate(data, context=path.parent)
    except ValidationError as error:
        raise ConfigError(_lines(path, [_render(item) for item in error.errors()])) from error
    return _build(path, file)


def _build(path: Path, file: TournamentFile) -> Tournament:
    problems = []
    bots: list[Player] = []
    for number, entry in enumerate(file.bots, 1):
        bot = resolve_bot(entry.bot, path.parent, entry.name)
        if not _NAME.fullmatch(bot.name):
            problems.append(
                f"bots[{number}]: {bot.name!r} cannot be the name of a bot: give it one, as in "
                '{bot = "...", name = "..."}'
            )
        clash = next((other.name for other in bots if slug(other.name) == slug(bot.name)), None)
        if clash is not None:
            problems.append(
                f"bots[{number}]: the name {bot.name!r} is too like {clash!r} above: give one of them "
                'another, as in {bot = "...", name = "..."}'
            )
        bots.append(bot)
    if problems:
        raise ConfigError(_lines(path, problems))
    return Tournament(
        name=file.name or path.stem,
        game=file.game,
        rounds=file.rounds,
        ranking=file.ranking,
        control=file.time.control(),
        bots=tuple(bots),
        concurrency=file.concurrency,
    )


def _lines(path: Path, problems: list[str]) -> str:
    return "\n".join(f"{path}: {problem}" for problem in problems)


def _known_keys(location: tuple[Any, ...]) -> list[str]:
    """The keys that exist where a key was unknown."""
    if location[0] == "time" and len(location) > 1:
        return list(TimeTable.model_fields)
    if location[0] == "bots" and len(location) > 1:
        return list(BotEntry.model_fields)
    return list(TournamentFile.model_fields)


def _render(item: Any) -> str:
    """One of pydantic's errors as a line for people."""
    location: tuple[Any, ...] = item["loc"]
    where = ""
    for part in location:
        where += f"[{part + 1}]" if isinstance(part, int) else ("." if where else "") + str(part)
    context = item.get("ctx", {})
    given = _shown(item["input"])
    match item["type"]:
        case "extra_forbidden":
            known = _known_keys(location)
            hint = did_you_mean(str(location[-1]), known) or f"; there are {', '.join(known)}"
            return f"{where}: unknown key{hint}"
        case "missing":
            return f"{where}: is missing"
        case "enum" | "is_instance_of":
            return f"{where}: must be one of {', '.join(Ranking)}, not {given}"
        case "value_error":
            return f"{where.removesuffix('.bot')}: {context['error']}"
        case "too_short":
            return f"{where}: needs at least {context['min_length']} bots"
        case "too_long":
            return f"{where}: at most {context['max_length']} bots, not {context['actual_length']}"
        case "string_too_short" | "string_too_long":
            return f"{where}: must be a text of 1 to 200 characters"
        case "model_type" | "dict_type":
            return f"{where}: must be a table of keys, not {given}"
    message = item["msg"].removeprefix("Input should be ").removeprefix("a valid ")
    return f"{where}: must be {message}, not {given}"


def _shown(value: Any, limit: int = 60) -> str:
    """A value of the file, cut if it is long."""
    text = repr(value)
    return text if len(text) <= limit else text[:limit] + "..."
