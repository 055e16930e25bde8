"""tournament.toml: what it may say, and clear errors for what it may not."""

import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
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

from referee.clock import (
    DEFAULT_MARGIN_S,
    DEFAULT_MOVE_S,
    DEFAULT_SETUP_S,
    DEFAULT_START_S,
    FAIR,
    MEASURE,
    TimeControl,
)
from referee.games.catalog import DEFAULT_GAME, parse_game
from referee.games.opening import OpeningError
from referee.limits import LEAST, Limits
from referee.needs import needed_paths
from referee.probe import AUTO, MODES, OFF, REQUIRED
from referee.results import Player
from tournaments.bots import BotError, resolve_bot
from tournaments.complaints import render
from tournaments.manifest import MANIFEST_FILE, NAME, check_name
from tournaments.openings import MAX_OPENING_PLIES, random_openings, read_openings

MAX_BOTS = 1000
"""Documented bound: a round robin of more is half a million games a round."""
MAX_ROUNDS = 10_000
MAX_CONCURRENCY = 256


_LIMITS = Limits()


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
    clock: str = FAIR
    ponder: str = MEASURE

    def control(self) -> TimeControl:
        """The time control; without any limit, the default per move."""
        move_s = DEFAULT_MOVE_S if self.move_s is None and self.game_s is None else self.move_s
        return TimeControl(**{**self.model_dump(), "move_s": move_s})

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
    """``[limits]``: what each bot may use; see referee/limits.py."""

    memory_mb: int = Field(_LIMITS.memory_mb, ge=LEAST["memory_mb"])
    processes: int = Field(_LIMITS.processes, ge=LEAST["processes"])
    file_mb: int = Field(_LIMITS.file_mb, ge=LEAST["file_mb"])
    scratch_mb: int = Field(_LIMITS.scratch_mb, ge=LEAST["scratch_mb"])
    stderr_bytes: int = Field(_LIMITS.stderr_bytes, ge=LEAST["stderr_bytes"])
    line_bytes: int = Field(_LIMITS.line_bytes, ge=LEAST["line_bytes"])
    wire_bytes: int = Field(_LIMITS.wire_bytes, ge=LEAST["wire_bytes"])
    end_grace_s: float = Field(_LIMITS.end_grace_s, ge=0, le=60, allow_inf_nan=False)

    def limits(self) -> Limits:
        """The limits."""
        return Limits(**self.model_dump())


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
        return check_name(name)


def _bot_entry(value: Any) -> Any:
    return {"bot": value} if isinstance(value, str) else value


def _ranking(value: Any) -> Any:
    # strict mode takes no TOML string for an enumeration
    if value not in list(Ranking):
        raise ValueError(f"must be one of {', '.join(Ranking)}, not {value!r}")
    return Ranking(value)


class RandomOpenings(_Model):
    """``openings.random``: another opening for each round, found by playing random moves."""

    plies: int = Field(ge=1, le=MAX_OPENING_PLIES)
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


class TournamentFile(_Model):
    """The whole file."""

    name: str | None = Field(None, min_length=1, max_length=200)
    game: str = DEFAULT_GAME
    rounds: int | None = Field(None, ge=1, le=MAX_ROUNDS)
    openings: Annotated[Openings | None, BeforeValidator(_openings)] = None
    ranking: Annotated[Ranking, BeforeValidator(_ranking)] = Ranking.POINTS
    concurrency: int | None = Field(None, ge=1, le=MAX_CONCURRENCY)
    own_core: bool = False
    untrusted: bool = False
    clock: str | None = None
    ponder: str | None = None
    time: TimeTable = TimeTable()
    sandbox: SandboxTable = SandboxTable()
    limits: LimitsTable = LimitsTable()
    bots: list[Annotated[BotEntry, BeforeValidator(_bot_entry)]] = Field(min_length=2, max_length=MAX_BOTS)

    @field_validator("game")
    @classmethod
    def _known(cls, game: str) -> str:
        return parse_game(game).name  # raises SpecError, a ValueError

    def control(self) -> TimeControl:
        """The time control; ``clock`` and ``ponder`` may stand at the top of the file, too."""
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
        if self.untrusted and self.sandbox.mode not in (None, REQUIRED):
            raise ValueError(
                f"untrusted = true needs a sandbox that holds, and [sandbox] says mode = "
                f"{self.sandbox.mode!r}: leave that out"
            )
        return self


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
    own_core: bool = False
    """Whether each game has a core of its own."""
    untrusted: bool = False
    """Whether the bots must be confined."""
    sandbox_mode: str = OFF
    """One of referee.probe's MODES."""
    limits: Limits = Limits()
    openings: tuple[str, ...] = ()
    """Openings, one for each round, and over again; none for the game's own start."""
    openings_source: str = ""
    """Where they are from, as far as results can be compared only with the same."""

    def opening(self, round_number: int) -> str:
        """The opening of a round: every pair plays it twice, from both sides."""
        return self.openings[(round_number - 1) % len(self.openings)] if self.openings else ""

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
            "setup_s": self.control.setup_s,
            "openings": self.openings_source,
            "limits": asdict(self.limits),
            "pondering": self.control.ponder,
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
        # What is wrong with the file as a whole has no place in it.
        problems = [render(item, _known_keys).removeprefix(": ") for item in error.errors()]
        raise ConfigError(_lines(path, problems)) from error
    return _build(path, file)


def _build(path: Path, file: TournamentFile) -> Tournament:
    problems = []
    bots: list[Player] = []
    strict = file.untrusted or file.sandbox.mode == REQUIRED
    for number, entry in enumerate(file.bots, 1):
        try:
            bot = resolve_bot(entry.bot, path.parent, entry.name, file.game, may_build=not strict)
        except BotError as error:
            problems.append(f"bots[{number}]: {error}")
            continue
        if not NAME.fullmatch(bot.name):
            problems.append(
                f"bots[{number}]: {bot.name!r} cannot be the name of a bot: give it one, as in "
                '{bot = "...", name = "..."}'
            )
        clash = next((other.name for other in bots if slug(other.name) == slug(bot.name)), None)
        if clash is not None:
            problems.append(
                f"bots[{number}]: the name {bot.name!r} is "
                + ("taken already" if clash == bot.name else f"too like {clash!r} above")
                + ': give one of them another, as in {bot = "...", name = "..."}'
            )
        bots.append(bot)
    if file.untrusted:
        problems += _too_wide(path, bots)
    rounds = file.rounds or 1
    openings: tuple[str, ...] = ()
    source = ""
    if file.openings is not None:
        try:
            openings, source = _load_openings(path.parent, file.openings, file.game, file.rounds)
        except OpeningError as error:
            problems.append(f"openings: {error}")
        rounds = file.rounds or max(1, len(openings))
        problems += [
            f"bots[{number}]: {bot.name} cannot take openings: it does not declare "
            f'capabilities = ["openings"] in its {MANIFEST_FILE}'
            for number, bot in enumerate(bots, 1)
            if "openings" not in bot.capabilities
        ]
    if problems:
        raise ConfigError(_lines(path, problems))
    return Tournament(
        name=file.name or path.stem,
        game=file.game,
        rounds=rounds,
        openings=openings,
        openings_source=source,
        ranking=file.ranking,
        control=file.control(),
        untrusted=file.untrusted,
        sandbox_mode=file.sandbox.mode or (REQUIRED if file.untrusted else AUTO),
        limits=file.limits.limits(),
        bots=tuple(bots),
        concurrency=file.concurrency,
        own_core=file.own_core,
    )


def _too_wide(path: Path, bots: Sequence[Player]) -> Iterator[str]:
    """What is wrong with bots that could read another's files, or all that is beside the tournament file."""
    folder = path.parent.resolve()
    for number, bot in enumerate(bots, 1):
        others = [(other.name, Path(read)) for other in bots if other is not bot for read in other.reads]
        own = [Path(read) for read in bot.reads]
        for read in [*own, *needed_paths(Path(bot.command[0]), own)]:
            seen = [name for name, file in others if file.is_relative_to(read) and str(file) not in bot.reads]
            if seen or folder.is_relative_to(read):
                yield (
                    f"bots[{number}]: {bot.name} could read all of {read}"
                    + (f", and with it {seen[0]}" if seen else "")
                    + ": put its files into a directory of their own, "
                    + "with a bot.toml that says how to start it"
                )
                break


def _load_openings(
    folder: Path, openings: Openings, game: str, rounds: int | None
) -> tuple[tuple[str, ...], str]:
    """The openings and their source.  Raises OpeningError."""
    rules = parse_game(game)
    if openings.random is not None:
        plies, seed = openings.random.plies, openings.random.seed
        return random_openings(rules, plies, seed, rounds or 1), f"random, {plies} plies, seed {seed}"
    assert openings.file is not None  # the table has one of the two
    texts = read_openings(rules, folder / openings.file)
    return texts, "; ".join(texts)


def _lines(path: Path, problems: list[str]) -> str:
    return "\n".join(f"{path}: {problem}" for problem in problems)


def _known_keys(location: tuple[Any, ...]) -> list[str]:
    """The keys that exist where a key was unknown."""
    if location[0] == "time" and len(location) > 1:
        return list(TimeTable.model_fields)
    if location[0] == "sandbox" and len(location) > 1:
        return list(SandboxTable.model_fields)
    if location[0] == "limits" and len(location) > 1:
        return list(LimitsTable.model_fields)
    if location[:2] == ("openings", "random") and len(location) > 2:
        return list(RandomOpenings.model_fields)
    if location[0] == "openings" and len(location) > 1:
        return list(Openings.model_fields)
    if location[0] == "bots" and len(location) > 1:
        return list(BotEntry.model_fields)
    return list(TournamentFile.model_fields)
