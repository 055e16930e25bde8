"""Settings of a course: their validation, their storage, and the times that follow from them."""

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime, time, timedelta
from typing import Annotated, Any, Literal
from zoneinfo import ZoneInfo

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
from sqlalchemy import insert, select, update

from referee.games.catalog import DEFAULT_GAME, parse_game
from referee.judge.clock import DEFAULT_MOVE_S, TimeControl
from referee.judge.limits import LEAST, Limits
from referee.sandbox.detection import MODES, REQUIRED
from sample_bots.catalog import SAMPLE_BOTS, sample_bot_command
from sample_bots.options import BadOptionError
from tournaments.checking.scenarios import DEFAULT_TOTAL_S
from tournaments.config.format_tables import FormInput
from tournaments.course.model import CourseError
from tournaments.course.schema import setting
from tournaments.course.texts import person_name, shown
from tournaments.course.transactions import Transactions
from tournaments.database.base import StoreError
from tournaments.files.validation_errors import problem_line, suggestion

CLOCK_TIME = re.compile("([01][0-9]|2[0-3]):[0-5][0-9]")
MOST_REFERENCES = 20
"""Maximum number of reference players; each plays with every version on the practice ladder."""
MOST_EMBED_ORIGINS = 20
"""Maximum number of origins that may frame live boards; a header of each framed page lists them all."""
ORIGIN = re.compile(r"https?://[a-z0-9-]+(\.[a-z0-9-]+)*(:[1-9][0-9]{0,4})?")
"""Origin as in a Content-Security-Policy, which takes no IPv6 addresses (CSP Level 3, 2.3.1)."""
MOST_PLAY_GAMES = 10
"""Maximum number of further games on the page Play, which lists them."""
LONGEST_S = 86_400.0
"""Maximum of time limits of a game or a check, in seconds: a day."""
LARGEST_UPLOAD_MB = 1024.0
"""Maximum size of uploads in MiB; they are read into memory."""
MOST_UPLOADS = 100_000
MOST_STORAGE_MB = 1 << 30
"""Maximum of limits of storage in MiB: more than any disk has."""
MOST_CHALLENGE_PAIRS = 1_000
"""Maximum of a team's pairs of challenges per day: half a minute of a core for each of 2,000 quick games."""

YEARS = range(2000, 2201)
"""Valid years of moments: other years are typing errors."""

_LIMITS = Limits()


class SettingsError(CourseError):
    """Invalid settings; the message has one line for each problem."""

    def __init__(self, problems: Mapping[str, str]) -> None:
        super().__init__("\n".join(problems.values()))
        self.problems = problems
        """Problems by the setting's name; "" is the key for several settings together."""


def _empty_as_none(value: Any) -> Any:
    """Return None for an empty text, which forms send for omitted values."""
    return None if isinstance(value, str) and not value.strip() else value


def _split(value: Any) -> Any:
    return [word for word in re.split(r"[\s,]+", value) if word] if isinstance(value, str) else value


def _split_games(value: Any) -> Any:
    """Split a text at spaces; spec texts contain commas."""
    return value.split() if isinstance(value, str) else value


def _moment(value: Any) -> Any:
    """Parse texts as in ISO 8601 and no others: pydantic would accept numbers, too."""
    value = _empty_as_none(value)
    if not isinstance(value, str):
        return value
    try:
        return datetime.fromisoformat(value.strip())
    except ValueError:
        raise ValueError(f"must be a day and a time, as 2026-01-31T18:00, not {shown(value)}") from None


EmptyAsNone = BeforeValidator(_empty_as_none)
"""Validator of optional values."""


class Settings(BaseModel):
    """All settings.  Numbers and moments may be texts, as forms send them: see ``settings_of``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    title: str = Field("Kalarena", title="Title", description="Above every page.")
    game: str = Field(
        DEFAULT_GAME,
        title="Game",
        description=f"Game of the practice ladder and of checks: a preset such as {DEFAULT_GAME}, "
        "or a spec text; kalarena games lists them.",
    )

    move_s: Annotated[float | None, EmptyAsNone] = Field(
        DEFAULT_MOVE_S,
        gt=0,
        le=LONGEST_S,
        allow_inf_nan=False,
        title="Seconds per move",
        description="Empty: no limit per move.",
    )
    total_s: Annotated[float | None, EmptyAsNone] = Field(
        None,
        gt=0,
        le=LONGEST_S,
        allow_inf_nan=False,
        title="Seconds for all moves of a game",
        description="Empty: no such limit.",
    )
    increment_s: float = Field(
        0.0,
        ge=0,
        le=LONGEST_S,
        allow_inf_nan=False,
        title="Seconds added after each move",
        description="To the limit for all moves.",
    )

    time_zone: str = Field(
        "UTC",
        title="Time zone",
        description="Of the deadline, of days and of quiet hours, as in Europe/Berlin.",
    )
    """Name in the IANA database; it also applies to moments without a zone."""

    uploads_open: bool = Field(True, title="Uploads are open")
    deadline: Annotated[datetime | None, BeforeValidator(_moment)] = Field(
        None,
        title="Deadline",
        description="An upload that has arrived completely at this moment still counts, a later one is "
        "refused. Empty: none.",
    )
    frozen_at: Annotated[datetime | None, BeforeValidator(_moment)] = Field(
        None,
        title="Frozen since",
        description="Tournaments of frozen versions use the versions that were submitted by then; uploads "
        "are still accepted. Empty: the deadline, once it is over.",
    )
    uploads_per_day: Annotated[int | None, EmptyAsNone] = Field(
        None,
        ge=1,
        le=MOST_UPLOADS,
        title="Uploads of a team per day",
        description="Empty: no limit.",
    )
    uploads_total: Annotated[int | None, EmptyAsNone] = Field(
        None,
        ge=1,
        le=MOST_UPLOADS,
        title="Uploads of a team in all",
        description="Empty: no limit.",
    )
    upload_mb: float = Field(
        20.0, gt=0, le=LARGEST_UPLOAD_MB, allow_inf_nan=False, title="Largest upload in MiB"
    )
    team_storage_mb: Annotated[int | None, EmptyAsNone] = Field(
        500,
        ge=1,
        le=MOST_STORAGE_MB,
        title="Storage for the uploads of a team in MiB",
        description="Unpacked, and with the bots that are built from them; the same files count once. "
        "Empty: no limit.",
    )
    """By default 25 of the largest uploads, or thousands of usual bots, which have 10 kB.  An archive that
    unpacks to 130 MB, much more than its own size, fits three times."""
    course_storage_mb: Annotated[int | None, EmptyAsNone] = Field(
        10_000,
        ge=1,
        le=MOST_STORAGE_MB,
        title="Storage for the uploads of all teams in MiB",
        description="Unpacked, and with the bots that are built from them. Empty: no limit.",
    )
    """By default 20 teams that use their storage up: a quarter of a small server's disk."""

    standings_for: Annotated[
        Literal["nobody", "anonymous", "named"],
        FormInput(
            choices=(
                ("nobody", "nothing but the sign-in page"),
                ("anonymous", "standings and games with pseudonyms"),
                ("named", "standings and games with the teams' names"),
            )
        ),
    ] = Field("nobody", title="Visitors, who are not signed in, see")
    students_see_names: bool = Field(
        True, title="Students see the names of other teams", description="Otherwise they see pseudonyms."
    )
    embed_origins: Annotated[list[str], BeforeValidator(_split)] = Field(
        default=[],
        max_length=MOST_EMBED_ORIGINS,
        title="Sites that may show live boards in a frame",
        description="Their origins, such as https://www.example.org, with spaces between them. The frame "
        "shows what visitors see. Empty: none.",
    )

    practice_on: bool = Field(True, title="Practice games are played")
    practice_places: Annotated[int | None, EmptyAsNone] = Field(
        None,
        ge=1,
        le=256,
        title="Practice games at a time",
        description="At most; checks and tournaments always go first. Empty: as many as the server has "
        "slots.",
    )
    quiet_from: Annotated[str | None, EmptyAsNone, FormInput("time")] = Field(
        None, title="No practice from", description="Both times, or neither."
    )
    """``HH:MM`` in ``time_zone``; practice rests from then until ``quiet_to``."""
    quiet_to: Annotated[str | None, EmptyAsNone, FormInput("time")] = Field(None, title="No practice until")
    references: Annotated[list[str], BeforeValidator(_split)] = Field(
        default=["ladder:1", "ladder:3", "ladder:5", "ladder:7"],
        max_length=MOST_REFERENCES,
        title="Reference players",
        description="Bots of Kalarena that play, too, such as ladder:3 ladder:7, with spaces between them.",
    )

    challenges_with: Annotated[
        Literal["nobody", "references", "teams"],
        FormInput(
            choices=(
                ("nobody", "nobody: there are no challenges"),
                ("references", "reference players alone"),
                ("teams", "reference players, and the bots of all teams that accept challenges"),
            )
        ),
    ] = Field(
        "teams",
        title="Teams may challenge",
        description="A challenge is played as soon as there is time, and is in no standings. Each team can "
        "refuse challenges on its page Challenges.",
    )
    """By default teams may challenge each other: all current bots meet on the practice ladder anyway, so that
    a challenge reveals nothing new."""
    challenge_pairs_per_day: Annotated[int | None, EmptyAsNone] = Field(
        20,
        ge=1,
        le=MOST_CHALLENGE_PAIRS,
        title="Pairs of games in challenges of a team per day",
        description="Each pair is two games, with seats exchanged. Empty: no limit.",
    )
    """With the default, a bot that takes 10 s a move holds a slot for 9 hours at worst; quick bots play all
    of them in a minute."""
    play_for: Annotated[
        Literal["nobody", "accounts", "everybody"],
        FormInput(
            choices=(
                ("nobody", "nobody"),
                ("accounts", "everybody who is signed in"),
                ("everybody", "visitors, too"),
            )
        ),
    ] = Field("accounts", title="Casual games are played by", description="On the page Play, in the browser.")
    play_games: Annotated[list[str], BeforeValidator(_split_games)] = Field(
        default=["kalah(4,3)", "kalamala"],
        max_length=MOST_PLAY_GAMES,
        title="Further games on the page Play",
        description="Beside the course's game, such as kalah(4,3) kalamala, with spaces between them.",
    )

    sandbox_mode: Annotated[str, FormInput(choices=tuple((mode, mode) for mode in sorted(MODES)))] = Field(
        REQUIRED,
        title="Sandbox",
        description="required: no bot runs unless it is held by the sandbox. The others are for trying out "
        "on your own machine alone.",
    )
    memory_mb: int = Field(
        _LIMITS.memory_mb, ge=LEAST["memory_mb"], le=1 << 20, title="Memory of a bot in MiB"
    )
    processes: int = Field(
        _LIMITS.processes, ge=LEAST["processes"], le=1 << 16, title="Processes and threads of a bot"
    )
    check_total_s: float = Field(
        DEFAULT_TOTAL_S,
        gt=0,
        le=LONGEST_S,
        allow_inf_nan=False,
        title="Seconds for a whole check",
        description="The build before it may take as long, and two minutes at most.",
    )

    def control(self) -> TimeControl:
        """Return the time control of the practice ladder and of checks."""
        return TimeControl(move_s=self.move_s, game_s=self.total_s, increment_s=self.increment_s)

    @property
    def zone(self) -> ZoneInfo:
        """Time zone of days and quiet hours."""
        return ZoneInfo(self.time_zone)

    @field_validator("title")
    @classmethod
    def _can_be_shown(cls, title: str) -> str:
        try:
            return person_name(title, "course's title")
        except CourseError as error:
            raise ValueError(str(error)) from None

    @field_validator("game")
    @classmethod
    def _is_a_game(cls, game: str) -> str:
        return parse_game(game).name  # raises SpecError, a ValueError

    @field_validator("play_games")
    @classmethod
    def _are_games(cls, games: list[str]) -> list[str]:
        return list(dict.fromkeys(parse_game(game).name for game in games))

    @field_validator("embed_origins")
    @classmethod
    def _are_origins(cls, texts: list[str]) -> list[str]:
        origins = [text.lower().removesuffix("/") for text in texts]
        for text, origin in zip(texts, origins, strict=True):
            if not ORIGIN.fullmatch(origin):
                raise ValueError(
                    f"{shown(text)} is no origin: write it as https://www.example.org, with a port if it has "
                    "one, without a path"
                )
        return list(dict.fromkeys(origins))

    @field_validator("sandbox_mode")
    @classmethod
    def _is_a_mode(cls, mode: str) -> str:
        if mode not in MODES:
            raise ValueError(f"must be one of {', '.join(MODES)}, not {shown(mode)}")
        return mode

    @field_validator("time_zone")
    @classmethod
    def _is_a_zone(cls, name: str) -> str:
        try:
            ZoneInfo(name)
        except (KeyError, ValueError, OSError):  # unknown; a path; a directory
            raise ValueError(f"there is no time zone {shown(name)}; write it as in Europe/Berlin") from None
        return name

    @field_validator("deadline", "frozen_at")
    @classmethod
    def _in_utc(cls, moment: datetime | None, info: ValidationInfo) -> datetime | None:
        if moment is None:
            return None
        if moment.year not in YEARS:
            raise ValueError(f"must be in the years from {YEARS[0]} to {YEARS[-1]}, not in {moment.year}")
        if moment.tzinfo is not None:
            return moment.astimezone(UTC)
        zone = ZoneInfo(info.data.get("time_zone", "UTC"))
        found = moment.replace(tzinfo=zone).astimezone(UTC)
        if found.astimezone(zone).replace(tzinfo=None) != moment:
            raise ValueError(
                f"{moment:%Y-%m-%d %H:%M} is left out in {zone}, where clocks are put forward: choose "
                "another time"
            )
        return found

    @field_validator("quiet_from", "quiet_to")
    @classmethod
    def _is_a_time(cls, text: str | None) -> str | None:
        if text is not None and not CLOCK_TIME.fullmatch(text):
            raise ValueError(f"must be a time from 00:00 to 23:59, not {shown(text)}")
        return text

    @field_validator("references")
    @classmethod
    def _are_players(cls, texts: list[str]) -> list[str]:
        for text in texts:
            check_reference(text)
        twice = [text for text in dict.fromkeys(texts) if texts.count(text) > 1]
        if twice:
            raise ValueError(f"{shown(twice[0])} is there twice")
        return texts

    @model_validator(mode="after")
    def _fits_together(self) -> "Settings":
        if (self.quiet_from is None) != (self.quiet_to is None) or (
            self.quiet_from is not None and self.quiet_from == self.quiet_to
        ):
            raise ValueError("quiet_from and quiet_to: give two different times, or neither")
        self.control()  # raises ValueError
        return self


def settings_of(values: Mapping[str, Any]) -> Settings:
    """Create settings from JSON or a form; missing ones have their defaults.

    Raises SettingsError with all problems.
    """
    try:
        return Settings.model_validate(values)
    except ValidationError as error:
        problems = {
            str(item["loc"][0]) if item["loc"] else "": problem_line(item, Settings)
            for item in error.errors()
        }
        raise SettingsError(problems) from error


def settings_of_form(fields: Mapping[str, str]) -> Settings:
    """Create settings from a form with all of them; missing boolean ones are boxes that are not ticked.

    Raises SettingsError with all problems.
    """
    unticked = {name: False for name, field in Settings.model_fields.items() if field.annotation is bool}
    return settings_of({**unticked, **fields})


def check_reference(text: str) -> None:
    """Raise ValueError if a text names none of the players that come with kalarena."""
    try:
        if sample_bot_command(text, compiled=False) is None:
            name = text.partition(":")[0]
            raise ValueError(f"there is no reference player {shown(text)}{suggestion(name, SAMPLE_BOTS)}")
    except BadOptionError as error:
        raise ValueError(str(error)) from None


_ONLY_ID = 1


class SettingsTable:
    """Table with the course's settings."""

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions

    def load(self) -> Settings:
        """Return the stored settings, or the defaults if there are none.

        Raises StoreError if the stored settings are invalid.
        """
        with self._transactions.reading() as connection:
            kept = connection.execute(select(setting.c.content)).scalar_one_or_none()
            values = {} if kept is None else json.loads(kept)
        try:
            return settings_of(values)
        except SettingsError as error:
            message = f"the course's settings cannot be used: {error}"
            raise StoreError(message, is_ours=True, is_damaged=True) from error

    def begin(self, memory_mb: int) -> None:
        """Store the memory limit of a new course; change nothing if settings are stored already."""
        with self._transactions.writing() as connection:
            if connection.execute(select(setting.c.id)).first() is None:
                content = json.dumps({"memory_mb": memory_mb})
                connection.execute(insert(setting).values(id=_ONLY_ID, content=content))

    def save(self, settings: Settings) -> None:
        """Store all settings."""
        values = {"content": settings.model_dump_json()}
        with self._transactions.writing() as connection:
            if connection.execute(select(setting.c.id)).first() is None:
                connection.execute(insert(setting).values(id=_ONLY_ID, **values))
            else:
                connection.execute(update(setting).values(**values))

    def change(self, **values: Any) -> Settings:
        """Change some of the settings, without overwriting simultaneous changes of others.

        Raises SettingsError with all problems.
        """
        with self._transactions.writing():
            changed = settings_of({**self.load().model_dump(), **values})
            self.save(changed)
        return changed


def day_of(settings: Settings, now: datetime) -> tuple[datetime, datetime]:
    """Return the beginning and the end of a moment's day in the course's time zone."""
    today = now.astimezone(settings.zone).date()
    begins = datetime.combine(today, time(), settings.zone)
    ends = datetime.combine(today + timedelta(days=1), time(), settings.zone)
    return begins.astimezone(UTC), ends.astimezone(UTC)


def frozen_moment(settings: Settings, now: datetime) -> datetime | None:
    """Return the moment at which versions were frozen; None as long as nothing is frozen.

    That is the lecturer's freeze, if one is set, else the deadline, once it has passed.
    """
    moment = settings.deadline if settings.frozen_at is None else settings.frozen_at
    return moment if moment is not None and moment <= now else None


def is_quiet(settings: Settings, now: datetime) -> bool:
    """Return whether practice rests at this time; the first minute is included, the last is not."""
    if settings.quiet_from is None or settings.quiet_to is None:
        return False
    begins, ends = time.fromisoformat(settings.quiet_from), time.fromisoformat(settings.quiet_to)
    clock = now.astimezone(settings.zone).time()
    if begins < ends:
        return begins <= clock < ends
    return clock >= begins or clock < ends  # over midnight


def moment_text(settings: Settings, moment: datetime) -> str:
    """Return a moment as text for people, in the course's time zone."""
    return f"{moment.astimezone(settings.zone):%Y-%m-%d %H:%M} ({settings.time_zone})"
