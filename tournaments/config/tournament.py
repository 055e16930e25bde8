"""Tournaments ready to run, and their construction from validated choices and resolved bots.

The tournament file, the server's tournaments, `kalarena duel` and `kalarena gauntlet` all call
``build_tournament``.
"""

import hashlib
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict

from referee.games.catalog import find_game
from referee.games.opening import OpeningError
from referee.games.spec import parse_spec
from referee.judge.clock import TimeControl
from referee.judge.limits import Limits
from referee.judge.results import Player
from referee.sandbox.detection import OFF, REQUIRED
from referee.sandbox.host_resources import default_memory_here
from tournaments.analysis.tie_breaks import MATCH_POINTS, criteria_of
from tournaments.bots.manifest import MANIFEST_FILE
from tournaments.bots.resolve import resolve_bot
from tournaments.config.cluster_table import ClusterTable
from tournaments.config.format_tables import FORMAT_TABLES
from tournaments.config.host_speed import ScaledControl
from tournaments.config.openings import OpeningBook
from tournaments.results.game_files import FOLDERS, slug
from tournaments.results.journal import Entry, withdrawn_bots
from tournaments.results.store import GAME_MODULE
from tournaments.schedule.formats.swiss import MATCH
from tournaments.schedule.pairing import Entrant
from tournaments.schedule.plan import ROUND_ROBIN, Plan

MAX_RANDOM_OPENINGS = 500
"""Maximum number of random openings for a format that may need any number; after these they repeat."""
MAX_SPRT_OPENINGS = 5000
"""Maximum number of random openings for an SPRT, each pair of which needs another one (docs/formats.md)."""
EARLIER_SPRT_OPENINGS = 500
"""Maximum number of random openings for an SPRT in earlier versions."""

DEFAULT_RANKING = "points"
DEFAULT_RANKINGS = {"gauntlet": "score", "placement": "rating", "swiss": "swiss"}
"""Format -> default ranking, where that is not ``points``.

In a gauntlet and a placement, bots play unequal numbers of games.
"""
FORMERLY_RANKED_BY_POINTS = ("gauntlet", "placement")
"""Formats whose default ranking was ``points`` in earlier versions."""


CANNOT_TAKE_OPENINGS = (
    f'cannot take openings: it does not declare capabilities = ["openings"] in its {MANIFEST_FILE}'
)


class TournamentError(ValueError):
    """A tournament cannot be played; ``problems`` are sentences with all problems at once."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


class BotSource(NamedTuple):
    """Text that names a bot, with the folder and the protocol by which it is resolved."""

    text: str
    base: Path
    """Absolute folder that relative paths in ``text`` start from."""
    protocol: str = ""
    """Protocol of a bot that declares none."""

    def digest(self) -> str:
        """Return the digest of the bot's files as they are now.  Raises BotError."""
        return resolve_bot(self.text, self.base, protocol=self.protocol).digest


class Tournament(BaseModel):
    """A tournament ready to run."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    game: str
    """Canonical spec text."""
    rounds: int
    ranking: str | tuple[str, ...]
    """A preset of tournaments/analysis/tie_breaks.py, or a list of criteria."""
    has_default_ranking: bool = False
    """True if the ranking is the default of the format."""
    control: TimeControl
    bots: tuple[Player, ...]
    """The bots of the file.  Those that have withdrawn may have no command."""
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
    """Openings, one for each round, repeated as needed; none for the game's own start.  Those of an SPRT are
    all different: the same games from one opening are no evidence."""
    listed_openings: tuple[str, ...] = ()
    """All lines of a file of openings, or all random openings."""
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
    keep_files: bool = False
    """True if the files that bots write in their working directories are kept with each game."""
    game_files: str = FOLDERS
    """One of FORMS of results/game_files.py.  It does not belong to the identity."""
    added: tuple[Player, ...] = ()
    """Bots that joined later, see tournaments/config/late_entries.py; they do not belong to the identity.
    Those that have withdrawn may have no command."""
    sources: dict[str, BotSource] = {}
    """Name of a bot -> its source, for bots whose files may change during a run; not part of the identity."""

    @classmethod
    def from_file(cls, path: str | Path) -> "Tournament":
        """Read a tournament file (docs/tournaments.md).

        Raises:
            ConfigError: The file cannot be used; the message has all problems, a line each.
        """
        from tournaments.config.load import load_tournament  # which imports this module

        return load_tournament(Path(path))

    @classmethod
    def from_settings(
        cls, bots: Sequence[str | Mapping[str, str]], *, folder: str | Path = ".", **settings: Any
    ) -> "Tournament":
        """Return the tournament of these bots.

        Args:
            bots: Texts as on the command line, such as ``"greedy"`` or ``"bots/mine"``, or mappings with the
                keys ``bot`` and ``name``.
            folder: Folder for relative paths.
            settings: Further keys of a tournament file (docs/tournaments.md), such as ``rounds=2`` or
                ``time={"move_s": 0.5}``.

        Raises:
            ConfigError: The settings cannot be used; the message has all problems, a line each.
        """
        from tournaments.config.load import tournament_of  # which imports this module

        return tournament_of({"bots": list(bots), **settings}, Path(folder))

    def without_withdrawn(self, withdrawn: Mapping[int, Player]) -> "Tournament":
        """Return the tournament without the files of bots that have withdrawn, which may have changed.

        Args:
            withdrawn: See ``withdrawn_players``.
        """
        bots = tuple(
            gone if (gone := withdrawn.get(number)) is not None and gone.name == bot.name else bot
            for number, bot in enumerate(self.bots, 1)
        )
        playing = {bot.name for bot in bots if bot.command}
        sources = {name: source for name, source in self.sources.items() if name in playing}
        return self.model_copy(update={"bots": bots, "sources": sources})

    def with_memory_for(self, games: int | None) -> "Tournament":
        """Return the tournament with the default memory limit of this host, if its file has none.

        Args:
            games: Number of games at a time; None is one per core.
        """
        if not self.has_default_memory:
            return self
        limits = replace(self.limits, memory_mb=default_memory_here(games))
        return self.model_copy(update={"limits": limits})

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

        Earlier versions ranked a gauntlet and a placement by points unless the file specified a ranking.

        Args:
            config: ``TournamentConfig.config`` as it is stored; None if there is none.
        """
        stored = config or {}
        was_default = stored.get("has_default_ranking")
        if was_default is None:
            was_default = self.format["kind"] in FORMERLY_RANKED_BY_POINTS
        if stored.get("ranking") != DEFAULT_RANKING or not (was_default and self.has_default_ranking):
            return self
        return self.model_copy(update={"ranking": DEFAULT_RANKING})

    def with_openings_of(self, config: Mapping[str, Any] | None) -> "Tournament":
        """Return the tournament with the openings of its stored games.

        Earlier versions played an SPRT from all lines of a file, also if some were the same, and from fewer
        random openings.

        Args:
            config: ``TournamentConfig.config`` as it is stored; None if there is none.
        """
        if config is None:
            return self
        stored = Plan.from_json(config)
        openings = self.openings
        if stored.openings == len(self.listed_openings):
            openings = self.listed_openings
        elif stored.kind == "sprt" and stored.openings == EARLIER_SPRT_OPENINGS:
            is_capped = stored.format["max_games"] // 2 > EARLIER_SPRT_OPENINGS
            openings = openings[:EARLIER_SPRT_OPENINGS] if is_capped else openings
        return self.model_copy(update={"openings": openings})

    def opening(self, number: int) -> str:
        """Return the n-th opening, from 0 and repeated; every pair plays it twice, from both sides."""
        return self.openings[number % len(self.openings)] if self.openings else ""

    @property
    def must_confine(self) -> bool:
        """True if the bots and their builds must be confined."""
        return must_confine(untrusted=self.untrusted, sandbox_mode=self.sandbox_mode)

    @property
    def plan(self) -> Plan:
        """The plan of pairings."""
        return Plan(self.format, self.rounds, self.seed, len(str(len(self.bots))), len(self.openings))

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
        if module := module_digest(self.game):
            fixed[GAME_MODULE] = module
        if kind != ROUND_ROBIN:
            loose = FORMAT_TABLES[kind].EXTENDABLE
            options = [
                f"{name} {' and '.join(value) if isinstance(value, list) else value}"
                for name, value in self.format.items()
                if name not in (*loose, "kind")
            ]
            fixed["format"] = ", ".join([kind, *options])
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


def withdrawn_players(identity: Mapping[str, Any] | None, journal: Sequence[Entry]) -> dict[int, Player]:
    """Return the bots of a file that have withdrawn, without commands, by their numbers from 1.

    They play no game: neither their files nor their digests of today are needed.

    Args:
        identity: The result of ``Tournament.identity`` when the results were begun; None if there are none.
        journal: The journal of these results.
    """
    gone = withdrawn_bots(journal)
    stored = enumerate(((identity or {}).get("bots") or {}).items(), 1)
    return {number: Player(name, (), "", digest) for number, (name, digest) in stored if name in gone}


def must_confine(*, untrusted: bool, sandbox_mode: str) -> bool:
    """Return whether bots and their builds must be confined, so that no bot can read the files of another."""
    return untrusted or sandbox_mode == REQUIRED


def module_digest(game: str) -> str:
    """Return the SHA-256 digest of the file in which a game is built, in hexadecimal.

    It is empty for a game of Kalarena, and for a file that cannot be read by itself, as in a zip archive.

    Args:
        game: A spec text.

    Raises:
        SpecError: The module of the game cannot be loaded.
    """
    entry = find_game(parse_spec(game).name)
    if entry is None or not entry.source:
        return ""
    try:
        return hashlib.sha256(Path(entry.source).read_bytes()).hexdigest()
    except OSError:
        return ""


LATER_LIMITS = ("directory_mb", "directory_files")
"""Limits that older tournaments do not record: part of the identity where they are not the default."""


def _limits_identity(limits: Limits) -> dict[str, Any]:
    usual = asdict(Limits())
    values = asdict(limits).items()
    return {name: value for name, value in values if name not in LATER_LIMITS or value != usual[name]}


SEED_IS_ORDER = (ROUND_ROBIN, "gauntlet", "sprt", "placement")
"""Formats whose games are the same for every seed."""


def build_tournament(
    *,
    bots: Sequence[Player],
    format_table: Mapping[str, Any],
    rounds: int | None = None,
    openings: Callable[[int], OpeningBook] | None = None,
    unable: Callable[[Sequence[Player]], Iterable[str]] = lambda _: (),
    ranking: str | tuple[str, ...] | None = None,
    problems: Sequence[str] = (),
    **settings: Any,
) -> Tournament:
    """Return the tournament of these bots, with the defaults of its format.

    Args:
        openings: Function that returns the openings, given the number that the tournament can use, and
            raises OpeningError; None if all games begin at the game's own start.
        unable: Function that returns a sentence on the bots that cannot take openings.
        problems: Problems that the caller has found with the bots; then the format is not checked.
        settings: Further fields of ``Tournament``.  With ``has_default_memory`` the memory limit is replaced
            by the default of this host.

    Raises:
        TournamentError: With all problems.
    """
    found = list(problems)
    kind = format_table["kind"]
    count = max(2, len(bots))  # bots that could not be resolved are among the problems
    wanted_rounds = rounds or _default_rounds(kind, count)
    book = OpeningBook()
    if openings is not None:
        try:
            book = openings(_openings_wanted(format_table, wanted_rounds, count))
        except OpeningError as error:
            found.append(f"openings: {error}")
        found += unable(bots)
        if kind == ROUND_ROBIN:
            wanted_rounds = rounds or max(1, len(book.texts))
    chosen_ranking = ranking or _default_ranking(format_table)
    found += _ranking_problems(chosen_ranking, format_table)
    tournament = Tournament(
        rounds=wanted_rounds,
        ranking=chosen_ranking,
        has_default_ranking=not ranking,
        bots=tuple(bots),
        openings=tuple(dict.fromkeys(book.texts)) if kind == "sprt" else book.texts,
        listed_openings=book.texts,
        openings_source=book.source,
        format=dict(format_table),
        **settings,
    )
    tournament = tournament.with_memory_for(tournament.concurrency)
    if not problems:
        try:
            tournament.plan.schedule(tournament.names, [Entrant() for _ in bots])
        except ValueError as error:
            found.append(f"format: {error}")
    if found:
        raise TournamentError(found)
    return tournament


def _default_rounds(kind: str, bots: int) -> int:
    """Return the default number of rounds.

    A Swiss needs as many as a knockout to find one winner; a ladder, as many as move a bot all the way up.
    """
    if kind == "swiss":
        return max(1, math.ceil(math.log2(bots)))
    return bots if kind == "ladder" else 1


def _default_ranking(parameters: Mapping[str, Any]) -> str:
    """Return the default ranking of a format with these parameters."""
    if parameters.get("scoring") == MATCH:
        return "swiss-match"
    return DEFAULT_RANKINGS.get(parameters["kind"], DEFAULT_RANKING)


def _ranking_problems(ranking: str | Sequence[str], parameters: Mapping[str, Any]) -> Iterator[str]:
    """Yield the problems of a ranking in this format."""
    if MATCH_POINTS in criteria_of(ranking) and parameters.get("scoring") != MATCH:
        yield (
            f"ranking: {MATCH_POINTS!r} needs a Swiss that gives points for matches: "
            'format = { kind = "swiss", scoring = "match" }'
        )


def _openings_wanted(parameters: Mapping[str, Any], rounds: int, bots: int) -> int:
    """Return the number of random openings that a tournament can use."""
    kind: str = parameters["kind"]
    pairs: int = parameters.get("pairs", 1)
    bracket: int = pairs + parameters.get("extra_pairs", 0)
    if kind == "knockout":
        wanted = math.ceil(math.log2(bots)) * bracket
    elif kind == "groups":
        wanted = rounds + math.ceil(math.log2(max(2, parameters["groups"] * parameters["advance"]))) * bracket
    elif kind == "sprt":
        max_games: int = parameters["max_games"]
        return min(max_games // 2, MAX_SPRT_OPENINGS)
    else:
        return rounds * pairs
    return min(wanted, MAX_RANDOM_OPENINGS)


def name_clash(name: str, others: Sequence[str]) -> str | None:
    """Return the name among others that equals a name, or has the same file names."""
    return next((other for other in others if slug(other) == slug(name)), None)
