"""Tournament files: the parser of tournament.toml, with clear error messages."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from referee.judge.results import Player
from referee.sandbox.bubblewrap import Sandbox
from referee.sandbox.detection import AUTO, REQUIRED, probe
from referee.sandbox.runtime_paths import needed_paths
from tournaments.bots.errors import BotError
from tournaments.bots.manifest import NAME, NAME_RULE
from tournaments.bots.resolve import resolve_bot
from tournaments.config.openings import OpeningBook
from tournaments.config.tournament import (
    CANNOT_TAKE_OPENINGS,
    BotSource,
    Tournament,
    TournamentError,
    build_tournament,
    must_confine,
    name_clash,
)
from tournaments.config.tournament_file import BotContext, BotEntry, Openings, TournamentFile
from tournaments.files.toml_file import TomlError, read_toml
from tournaments.files.validation_errors import problem_lines, suggestion


class ConfigError(ValueError):
    """A tournament file cannot be used; the message has one line for each problem."""


def load_tournament(
    path: Path, sandbox_mode: str | None = None, withdrawn: Mapping[int, Player] | None = None
) -> Tournament:
    """Read a tournament file.  Raises ConfigError with all problems, a line each.

    ``sandbox_mode`` replaces the sandbox mode of the file, if it is not None.  The bots ``withdrawn``, see
    ``withdrawn_players``, need no files.
    """
    try:
        data = read_toml(path)
    except TomlError as error:
        raise ConfigError(f"{path}: {error}") from error
    return _build(data, path.parent, path.stem, f"{path}: ", sandbox_mode, withdrawn)


def tournament_of(settings: Mapping[str, Any], folder: Path) -> Tournament:
    """Return the tournament with the keys of a tournament file.

    Relative paths are taken from ``folder``.  Raises ConfigError with all problems, a line each.
    """
    return _build(settings, folder, "tournament", "")


def _build(
    data: Mapping[str, Any],
    folder: Path,
    name: str,
    prefix: str,
    sandbox_mode: str | None = None,
    withdrawn: Mapping[int, Player] | None = None,
) -> Tournament:
    """Return the tournament of a file's data, with its bots resolved.

    ``name`` is the default of its name; ``prefix`` begins each line of an error; ``sandbox_mode`` replaces
    the mode in the data; the bots ``withdrawn`` need no files.  Raises ConfigError.
    """
    gone = withdrawn or {}
    try:
        file = TournamentFile.model_validate(data, context=BotContext(folder, _texts_of(data, gone)))
    except ValidationError as error:
        raise ConfigError(_lines(prefix, problem_lines(error, TournamentFile))) from error
    problems = []
    bots: list[Player] = []
    sources: dict[str, BotSource] = {}
    mode = sandbox_mode or file.sandbox.mode or (REQUIRED if file.untrusted else AUTO)
    strict = must_confine(untrusted=file.untrusted, sandbox_mode=mode)
    build_in = build_sandbox(strict=strict)
    for number, entry in enumerate(file.bots, 1):
        try:
            bot = _file_bot(entry, folder, file.game, build_in, gone.get(number))
        except BotError as error:
            problems.append(f"bots[{number}]: {error}")
            continue
        problems += [f"bots[{number}]: {problem}" for problem in _bad_name(bot.name, bots)]
        bots.append(bot)
        if bot.command:
            sources[bot.name] = BotSource(entry.bot, folder.absolute())
    if strict:
        problems += [f"bots[{number}]: {problem}" for number, problem in too_wide(folder, bots)]
    problems += _unknown_bots(file, [bot.name for bot in bots])
    try:
        return build_tournament(
            name=file.name or name,
            game=file.game,
            bots=bots,
            control=file.control(),
            format_table=file.format.model_dump(),
            rounds=file.rounds,
            openings=None if file.openings is None else partial(_openings, folder, file.game, file.openings),
            unable=_unable,
            ranking=file.ranking,
            seed=file.seed,
            anchor=file.rating.anchor,
            anchor_rating=file.rating.value,
            sandbox_mode=mode,
            untrusted=file.untrusted,
            limits=file.limits.limits(),
            has_default_memory="memory_mb" not in file.limits.model_fields_set,
            concurrency=file.concurrency,
            own_core=file.own_core,
            keep_files=file.keep_files,
            game_files=file.game_files,
            cluster=file.cluster,
            sources=sources,
            problems=problems,
        )
    except TournamentError as error:
        raise ConfigError(_lines(prefix, error.problems)) from error


def _texts_of(data: Mapping[str, Any], numbers: Collection[int]) -> list[str]:
    """Return the texts of the bots of these numbers, counted from 1, in data that is not validated yet."""
    entries = data.get("bots")
    if not isinstance(entries, list):
        return []
    chosen = [entry for number, entry in enumerate(entries, 1) if number in numbers]
    texts = [entry.get("bot") if isinstance(entry, dict) else entry for entry in chosen]
    return [text for text in texts if isinstance(text, str)]


def _file_bot(
    entry: BotEntry, folder: Path, game: str, build_in: Sandbox | None, gone: Player | None
) -> Player:
    """Return the bot of an entry, or ``gone``, the withdrawn bot of the same number.  Raises BotError."""
    if gone is not None and entry.name in (None, gone.name):  # the name in a manifest may have changed, too
        return gone
    return resolve_bot(entry.bot, folder, entry.name, game, build_in=build_in)


def build_sandbox(*, strict: bool) -> Sandbox | None:
    """Return the sandbox for builds: this host's sandbox where bots must be confined, else None.

    A sandbox that does not confine is no error here; then no bot is built.
    """
    return probe().sandbox if strict else None


def _bad_name(name: str, others: Sequence[Player]) -> Iterator[str]:
    """Yield the reasons why a bot cannot have this name beside the other bots."""
    instead = 'as in {bot = "...", name = "..."}'
    if not NAME.fullmatch(name):
        yield f"{name!r} cannot be the name of a bot: give it one, {instead} ({NAME_RULE})"
    clash = name_clash(name, [other.name for other in others])
    if clash is not None:
        how = "taken already" if clash == name else f"too like {clash!r} above"
        yield f"the name {name!r} is {how}: give one of them another, {instead}"


def _unknown_bots(file: TournamentFile, names: Sequence[str]) -> Iterator[str]:
    """Yield a sentence for each name in the file that no bot has."""
    used = [("rating.anchor", file.rating.anchor)] if file.rating.anchor is not None else []
    used += [("format.challengers", name) for name in getattr(file.format, "challengers", [])]
    for where, name in used:
        if name not in names:
            yield f"{where}: there is no bot {name!r}{suggestion(name, names)}"
    if used and len(names) == len(file.bots) and set(names) <= set(getattr(file.format, "challengers", [])):
        yield "format.challengers: these are all bots, and challengers do not meet one another: leave one out"


def too_wide(folder: Path, bots: Sequence[Player]) -> Iterator[tuple[int, str]]:
    """Yield the problems of bots that could read others' files, or the whole folder of the tournament file.

    Each problem has its bot's number, from 1.
    """
    folder = folder.resolve()
    for number, bot in enumerate(bots, 1):
        if not bot.command:  # it has withdrawn
            continue
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


def _openings(folder: Path, game: str, table: Openings, wanted: int) -> OpeningBook:
    """Return the openings.  Raises OpeningError."""
    if table.random is not None:
        return OpeningBook.random(game, table.random.plies, table.random.seed, wanted)
    assert table.file is not None  # the table has one of the two
    return OpeningBook.from_file(game, folder / table.file)


def _unable(bots: Sequence[Player]) -> Iterator[str]:
    """Yield a sentence for each bot that cannot take openings."""
    for number, bot in enumerate(bots, 1):
        if bot.command and "openings" not in bot.capabilities:
            yield f"bots[{number}]: {bot.name} {CANNOT_TAKE_OPENINGS}"


def _lines(prefix: str, problems: list[str]) -> str:
    return "\n".join(prefix + problem for problem in problems)
