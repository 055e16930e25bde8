"""Tournament files: the parser of tournament.toml, with clear error messages."""

import math
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from referee.games.catalog import parse_game
from referee.games.opening import OpeningError
from referee.games.spec import did_you_mean
from referee.judge.clock import TimeControl
from referee.judge.limits import Limits
from referee.judge.results import Player
from referee.sandbox.bubblewrap import Sandbox
from referee.sandbox.detection import AUTO, OFF, REQUIRED, probe
from referee.sandbox.host_resources import default_memory_here
from referee.sandbox.runtime_paths import needed_paths
from tournaments.analysis.rankings import MATCH_POINTS, criteria_of
from tournaments.bots.manifest import MANIFEST_FILE, NAME
from tournaments.bots.resolve import BotError, resolve_bot
from tournaments.config.cluster_table import ClusterTable
from tournaments.config.format_tables import FORMAT_TABLES
from tournaments.config.host_speed import ScaledControl
from tournaments.config.openings import random_openings, read_openings
from tournaments.config.tournament_file import Openings, TournamentFile, known_keys
from tournaments.files.validation_errors import render
from tournaments.results.game_files import slug
from tournaments.schedule.formats.swiss import MATCH
from tournaments.schedule.pairing import Entrant
from tournaments.schedule.plan import ROUND_ROBIN, Plan

MAX_RANDOM_OPENINGS = 500
"""Maximum number of random openings for a format that may need any number; after these they repeat."""

DEFAULT_RANKING = "points"
DEFAULT_RANKINGS = {"gauntlet": "score", "swiss": "swiss"}
"""Format -> default ranking, where that is not ``points``."""


class ConfigError(ValueError):
    """A tournament file cannot be used; the message has one line for each problem."""


class Tournament(BaseModel):
    """A tournament ready to run."""

    model_config = ConfigDict(frozen=True)

    name: str
    game: str
    """Canonical spec text."""
    rounds: int
    ranking: str | tuple[str, ...]
    """A preset of tournaments/analysis/rankings.py, or a list of criteria."""
    has_default_ranking: bool = False
    """True if the ranking is the default of the format."""
    control: TimeControl
    bots: tuple[Player, ...]
    concurrency: int | None = None
    """Number of games at a time; None is one per core."""
    own_core: bool = False
    """True if each game has a core of its own."""
    untrusted: bool = False
    """True if the bots must be confined."""
    sandbox_mode: str = OFF
    """One of referee.sandbox.detection's MODES."""
    limits: Limits = Limits()
    has_default_memory: bool = False
    """True if the memory limit is the default of a host, which another host need not have."""
    openings: tuple[str, ...] = ()
    """Openings, one for each round, repeated as needed; none for the game's own start."""
    openings_source: str = ""
    """Source of the openings; only results with the same source can be compared."""
    cluster: ClusterTable = ClusterTable()
    """Cluster options, for games on a cluster."""
    format: dict[str, Any] = {"kind": ROUND_ROBIN}
    """The format's name as ``kind``, and its parameters."""
    seed: int = 0
    """Seed of all random choices, and of the order of games."""
    anchor: str | None = None
    """Bot with a fixed rating, which the others refer to; None: the average of all is 0."""
    anchor_rating: float = 0.0

    def with_memory_of(self, identity: Mapping[str, Any] | None) -> "Tournament":
        """Return the tournament with the memory limit of the stored results, if its file has none.

        Args:
            identity: The result of ``identity`` when the results were begun; None if there are none.
        """
        stored = ((identity or {}).get("limits") or {}).get("memory_mb")
        if stored is None or not self.has_default_memory:
            return self
        return self.model_copy(update={"limits": replace(self.limits, memory_mb=stored)})

    def with_ranking_of(self, config: Mapping[str, Any] | None) -> "Tournament":
        """Return the tournament with the stored ranking, if that was the default when it was begun.

        Earlier versions ranked a gauntlet by points unless its file specified a ranking.

        Args:
            config: ``Summary.config`` as it is stored; None if there is none.
        """
        stored = (config or {}).get("ranking")
        if stored != DEFAULT_RANKING or not self.has_default_ranking:
            return self
        return self.model_copy(update={"ranking": stored})

    def opening(self, number: int) -> str:
        """Return the n-th opening, from 0 and repeated; every pair plays it twice, from both sides."""
        return self.openings[number % len(self.openings)] if self.openings else ""

    @property
    def plan(self) -> Plan:
        """The plan of pairings."""
        return Plan(self.format, self.rounds, self.seed, len(str(len(self.bots))), len(self.openings))

    keep_files: bool = False
    """True if the files that bots write in their working directories are kept with each game."""
    added: tuple[Player, ...] = ()
    """Bots that joined later, see tournaments/config/late_entries.py; they do not belong to the identity."""

    @property
    def names(self) -> list[str]:
        """Names of the file's bots, in its order."""
        return [bot.name for bot in self.bots]

    @property
    def players(self) -> tuple[Player, ...]:
        """All bots, by their numbers."""
        return (*self.bots, *self.added)

    @property
    def scaled_control(self) -> ScaledControl | None:
        """Time control on each host; None if it is the same on all."""
        reference = self.cluster.scaled_from
        return None if reference is None else ScaledControl(self.control, reference)

    def identity(self) -> dict[str, Any]:
        """Return the settings that make results comparable; tournaments with equal identities are the same.

        Rounds, ranking and concurrency are left out: they may change between a run and its resumption.  So is
        the seed of a format in which it only determines the order of games.
        """
        kind = self.format["kind"]
        fixed = {}
        if kind != ROUND_ROBIN:
            loose = FORMAT_TABLES[kind].EXTENDABLE
            told = [
                f"{name} {' and '.join(value) if isinstance(value, list) else value}"
                for name, value in self.format.items()
                if name not in (*loose, "kind")
            ]
            fixed["format"] = ", ".join([kind, *told])
        if kind == "groups":  # the final's rounds are numbered after the groups'
            fixed["rounds"] = str(self.rounds)
        if kind not in SEED_IS_ORDER:
            fixed["seed"] = str(self.seed)
        if self.cluster.scaled_from is not None:
            fixed["time limits"] = f"scaled from {self.cluster.scaled_from:g} positions/s"
        return {
            **fixed,
            "game": self.game,
            "time control": str(self.control),
            "setup_s": self.control.setup_s,
            "openings": self.openings_source,
            "limits": _limits_identity(self.limits),
            "pondering": self.control.ponder,
            "bots": {bot.name: bot.digest for bot in self.bots},
        }


LATER_LIMITS = ("directory_mb", "directory_files")
"""Limits that older tournaments do not record: part of the identity where they are not the default."""


def _limits_identity(limits: Limits) -> dict[str, Any]:
    usual = asdict(Limits())
    values = asdict(limits).items()
    return {name: value for name, value in values if name not in LATER_LIMITS or value != usual[name]}


SEED_IS_ORDER = (ROUND_ROBIN, "gauntlet", "sprt", "placement")
"""Formats whose games are the same for every seed."""


_KIND_IN_PLACE = re.compile(rf"^format\.({'|'.join(FORMAT_TABLES)})(?=[.:])")
"""Location in ``format`` as pydantic writes it; there is no such ``.swiss`` in the user's file."""


def load_tournament(path: Path) -> Tournament:
    """Read a tournament file.  Raises ConfigError with all problems, a line each."""
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
        raise ConfigError(_lines(path, problems_of(error, known_keys))) from error
    return _build(path, file)


def problems_of(error: ValidationError, keys: Callable[[tuple[Any, ...]], list[str]]) -> list[str]:
    """Return the problems, a line each; ``keys`` returns the valid keys at the location of an unknown one."""
    # A problem of the whole table has no location.
    return [_KIND_IN_PLACE.sub("format", render(item, keys).removeprefix(": ")) for item in error.errors()]


def _build(path: Path, file: TournamentFile) -> Tournament:
    problems = []
    bots: list[Player] = []
    build_in = build_sandbox(strict=file.untrusted or file.sandbox.mode == REQUIRED)
    for number, entry in enumerate(file.bots, 1):
        try:
            bot = resolve_bot(entry.bot, path.parent, entry.name, file.game, build_in=build_in)
        except BotError as error:
            problems.append(f"bots[{number}]: {error}")
            continue
        problems += [f"bots[{number}]: {problem}" for problem in _bad_name(bot.name, bots)]
        bots.append(bot)
    if file.untrusted:
        problems += [f"bots[{number}]: {problem}" for number, problem in too_wide(path.parent, bots)]
    format_table = file.format.model_dump()
    names = [bot.name for bot in bots]
    problems += _unknown_bots(file, names)
    rounds = file.rounds or default_rounds(format_table["kind"], len(file.bots))
    openings: tuple[str, ...] = ()
    source = ""
    if file.openings is not None:
        if format_table["kind"] == ROUND_ROBIN and file.rounds is None:
            wanted = 1
        else:
            wanted = openings_wanted(format_table, rounds, len(file.bots))
        try:
            openings, source = _load_openings(path.parent, file.openings, file.game, wanted)
        except OpeningError as error:
            problems.append(f"openings: {error}")
        if format_table["kind"] == ROUND_ROBIN:
            rounds = file.rounds or max(1, len(openings))
        problems += [
            f"bots[{number}]: {bot.name} {CANNOT_TAKE_OPENINGS}"
            for number, bot in enumerate(bots, 1)
            if "openings" not in bot.capabilities
        ]
    ranking = file.ranking or default_ranking(format_table)
    problems += ranking_problems(ranking, format_table)
    if not problems:
        try:
            plan = Plan(format_table, rounds, file.seed)
            plan.schedule(names, [Entrant() for _ in bots])
        except ValueError as error:
            problems.append(f"format: {error}")
    if problems:
        raise ConfigError(_lines(path, problems))
    limits = file.limits.limits()
    has_default_memory = "memory_mb" not in file.limits.model_fields_set
    if has_default_memory:
        limits = replace(limits, memory_mb=default_memory_here(file.concurrency))
    return Tournament(
        name=file.name or path.stem,
        game=file.game,
        rounds=rounds,
        openings=openings,
        openings_source=source,
        ranking=ranking,
        has_default_ranking=not file.ranking,
        format=format_table,
        seed=file.seed,
        anchor=file.rating.anchor,
        anchor_rating=file.rating.value,
        control=file.control(),
        untrusted=file.untrusted,
        keep_files=file.keep_files,
        sandbox_mode=file.sandbox.mode or (REQUIRED if file.untrusted else AUTO),
        limits=limits,
        has_default_memory=has_default_memory,
        bots=tuple(bots),
        concurrency=file.concurrency,
        own_core=file.own_core,
        cluster=file.cluster,
    )


def build_sandbox(*, strict: bool) -> Sandbox | None:
    """Return the sandbox for builds: this host's sandbox where bots must be confined, else None.

    A sandbox that does not confine is no error here; then no bot is built.
    """
    return probe().sandbox if strict else None


CANNOT_TAKE_OPENINGS = (
    f'cannot take openings: it does not declare capabilities = ["openings"] in its {MANIFEST_FILE}'
)


def _bad_name(name: str, others: Sequence[Player]) -> Iterator[str]:
    """Yield the reasons why a bot cannot have this name beside the other bots."""
    instead = 'as in {bot = "...", name = "..."}'
    if not NAME.fullmatch(name):
        yield f"{name!r} cannot be the name of a bot: give it one, {instead}"
    clash = name_clash(name, [other.name for other in others])
    if clash is not None:
        how = "taken already" if clash == name else f"too like {clash!r} above"
        yield f"the name {name!r} is {how}: give one of them another, {instead}"


def name_clash(name: str, others: Sequence[str]) -> str | None:
    """Return the name among others that equals a name, or has the same file names."""
    return next((other for other in others if slug(other) == slug(name)), None)


def _unknown_bots(file: TournamentFile, names: Sequence[str]) -> Iterator[str]:
    """Yield a sentence for each name in the file that no bot has."""
    used = [("rating.anchor", file.rating.anchor)] if file.rating.anchor is not None else []
    used += [("format.challengers", name) for name in getattr(file.format, "challengers", [])]
    for where, name in used:
        if name not in names:
            hint = did_you_mean(name, list(names)) or f"; there are {', '.join(names)}"
            yield f"{where}: there is no bot {name!r}{hint}"
    if used and len(names) == len(file.bots) and set(names) <= set(getattr(file.format, "challengers", [])):
        yield "format.challengers: these are all bots, and challengers do not meet one another: leave one out"


def default_rounds(kind: str, bots: int) -> int:
    """Return the default number of rounds.

    A Swiss needs as many as a knockout to find one winner; a ladder, as many as move a bot all the way up.
    """
    if kind == "swiss":
        return max(1, math.ceil(math.log2(bots)))
    return bots if kind == "ladder" else 1


def default_ranking(parameters: Mapping[str, Any]) -> str:
    """Return the default ranking of a format with these parameters."""
    if parameters.get("scoring") == MATCH:
        return "swiss-match"
    return DEFAULT_RANKINGS.get(parameters["kind"], DEFAULT_RANKING)


def ranking_problems(ranking: str | Sequence[str], parameters: Mapping[str, Any]) -> Iterator[str]:
    """Yield the problems of a ranking in this format."""
    if MATCH_POINTS in criteria_of(ranking) and parameters.get("scoring") != MATCH:
        yield (
            f"ranking: {MATCH_POINTS!r} needs a Swiss that gives points for matches: "
            'format = { kind = "swiss", scoring = "match" }'
        )


def openings_wanted(parameters: Mapping[str, Any], rounds: int, bots: int) -> int:
    """Return the number of random openings that a tournament can use."""
    kind: str = parameters["kind"]
    pairs: int = parameters.get("pairs", 1)
    bracket: int = pairs + parameters.get("extra_pairs", 0)
    if kind == "knockout":
        wanted = math.ceil(math.log2(bots)) * bracket
    elif kind == "groups":
        wanted = rounds + math.ceil(math.log2(max(2, parameters["groups"] * parameters["advance"]))) * bracket
    elif kind == "sprt":
        wanted = parameters["max_games"] // 2
    else:
        return rounds * pairs
    return min(wanted, MAX_RANDOM_OPENINGS)


def too_wide(folder: Path, bots: Sequence[Player]) -> Iterator[tuple[int, str]]:
    """Yield the problems of bots that could read others' files, or the whole folder of the tournament file.

    Each problem has its bot's number, from 1.
    """
    folder = folder.resolve()
    for number, bot in enumerate(bots, 1):
        others = [(other.name, Path(read)) for other in bots if other is not bot for read in other.reads]
        own = [Path(read) for read in bot.reads]
        for read in [*own, *needed_paths(Path(bot.command[0]), own)]:
            seen = [name for name, file in others if file.is_relative_to(read) and str(file) not in bot.reads]
            if seen or folder.is_relative_to(read):
                yield (
                    number,
                    f"{bot.name} could read all of {read}"
                    + (f", and with it {seen[0]}" if seen else "")
                    + ": put its files into a directory of their own, "
                    + "with a bot.toml that says how to start it",
                )
                break


def _load_openings(folder: Path, openings: Openings, game: str, wanted: int) -> tuple[tuple[str, ...], str]:
    """Return the openings and their source.  Raises OpeningError."""
    rules = parse_game(game)
    if openings.random is not None:
        plies, seed = openings.random.plies, openings.random.seed
        return random_openings(rules, plies, seed, wanted), f"random, {plies} plies, seed {seed}"
    assert openings.file is not None  # the table has one of the two
    texts = read_openings(rules, folder / openings.file)
    return texts, "; ".join(texts)


def _lines(path: Path, problems: list[str]) -> str:
    return "\n".join(f"{path}: {problem}" for problem in problems)
