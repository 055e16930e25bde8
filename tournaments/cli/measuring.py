"""Common parts of `kalarena gauntlet` and `kalarena duel`: options, players, openings, messages."""

import shlex
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import click

from referee.games.catalog import DEFAULT_GAME, parse_game
from referee.games.opening import OpeningError
from referee.games.spec import SpecError
from referee.judge.clock import TimeControl
from referee.judge.results import Player
from referee.judge.verdict_text import visible
from referee.sandbox.bubblewrap import Sandbox
from referee.sandbox.detection import REQUIRED, SandboxError, find_sandbox
from tournaments.bots.manifest import NAME
from tournaments.bots.resolve import BotError, resolve_bot
from tournaments.cli.compiling import announce_compilation
from tournaments.cli.main import INTERRUPTED, Fault, Usage
from tournaments.cli.sandbox_options import sandbox_option
from tournaments.cli.time_options import TIME_OPTIONS, time_control
from tournaments.cli.tournament.ending import Ending, program, same_command
from tournaments.cli.tournament.run import Outcome, run_in
from tournaments.config.load import CANNOT_TAKE_OPENINGS, Tournament, name_clash
from tournaments.config.openings import random_openings, read_openings
from tournaments.reporting.summary import Summary
from tournaments.reporting.tournament_directory import LOCK_FILE, STORE_FILE
from tournaments.results.game_files import GAMES, slug
from tournaments.results.game_summary import GameSummary

OPENING_PLIES = 5
"""Length of random openings in plies: in Kalah with six pits and four seeds there are 13,580 of them, more
than any duel needs by default, and the game is still open."""
FAULTS_TOLD = 5
"""Most faults of a bot that are listed one by one."""
LONGEST_LABEL = 40
"""Characters to which a bot's name is cut before a label is appended; names have at most 60 characters."""

Command = TypeVar("Command", bound=Callable[..., Any])

_OPTIONS = (
    click.option(
        "--game", default=DEFAULT_GAME, show_default=True, metavar="SPEC", help="See `kalarena games`."
    ),
    *TIME_OPTIONS,
    click.option(
        "--openings",
        "openings_file",
        type=click.Path(dir_okay=False, path_type=Path),
        metavar="FILE",
        help=f"Openings, one a line.  [default: random ones of {OPENING_PLIES} plies]",
    ),
    click.option(
        "--seed",
        type=click.IntRange(0, 10**15),
        default=1,
        show_default=True,
        metavar="N",
        help="Decides the random openings, and what reference players draw by lot.",
    ),
    click.option(
        "--out",
        type=click.Path(file_okay=False, path_type=Path),
        metavar="DIR",
        help="Where the games go, or are: with the same DIR, the same command goes on.  [default: a new "
        "directory in results/]",
    ),
    click.option(
        "--concurrency",
        type=click.IntRange(1, 256),
        metavar="N",
        help="Games at a time.  [default: one per core]",
    ),
    sandbox_option,
    click.option("--json", "as_json", is_flag=True, help="Print one JSON object, nothing else."),
    click.option("--quiet", is_flag=True, help="Print the result, and nothing before it but errors."),
)


def measuring_options(command: Command) -> Command:
    """Add to a command the options whose values ``Settings`` takes."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


@dataclass(frozen=True)
class Settings:
    """The options' values."""

    game: str
    move_time: float | None
    game_time: float | None
    increment: float
    margin: float
    start_time: float
    clock: str
    ponder: str
    openings_file: Path | None
    seed: int
    out: Path | None
    concurrency: int | None
    sandbox: str
    as_json: bool
    quiet: bool

    @property
    def shown(self) -> bool:
        """True if progress is shown."""
        return not (self.as_json or self.quiet)

    @cached_property
    def spec(self) -> str:
        """The game's canonical spec text.  Raises Usage."""
        try:
            return parse_game(self.game).name
        except SpecError as error:
            raise Usage(str(error)) from error

    @cached_property
    def control(self) -> TimeControl:
        """The time control.  Raises Usage."""
        return time_control(
            self.move_time,
            self.game_time,
            self.increment,
            self.margin,
            self.start_time,
            self.clock,
            self.ponder,
        )

    @cached_property
    def confined(self) -> Sandbox:
        """The sandbox.  Raises Usage."""
        try:
            return find_sandbox(self.sandbox)
        except SandboxError as error:
            raise Usage(str(error)) from error

    def player(self, text: str, name: str | None = None) -> Player:
        """Return the player that a text names, with a valid bot name.  Raises Usage."""
        if self.shown:
            announce_compilation(text)
        try:
            build_in = self.confined if self.sandbox == REQUIRED else None
            player = resolve_bot(text, Path.cwd(), name, self.spec, build_in=build_in)
        except BotError as error:
            raise Usage(str(error)) from error
        return player if NAME.fullmatch(player.name) else replace(player, name=_as_name(player.name))

    def openings(self, players: Sequence[Player], wanted: int) -> tuple[tuple[str, ...], str]:
        """Return openings and their source; none if one of the players cannot take any.  Raises Usage."""
        unable = [player.name for player in players if "openings" not in player.capabilities]
        if self.openings_file is None and unable:
            return (), ""
        try:
            if self.openings_file is None:
                return _random_openings(self.spec, self.seed, wanted)
            if unable:
                raise Usage(f"--openings: {unable[0]} {CANNOT_TAKE_OPENINGS}")
            texts = read_openings(parse_game(self.spec), self.openings_file)
        except OpeningError as error:
            raise Usage(f"--openings: {error}") from error
        return texts, "; ".join(texts)

    def directory(self, kind: str, *names: str) -> Path:
        """Return the directory for the games: --out, else a new one.  Raises Usage."""
        if self.out is not None:
            _refuse_other_files(self.out)
            return self.out
        parts = [kind, *(slug(name)[:LONGEST_LABEL] for name in names), f"{datetime.now():%Y-%m-%d-%H%M%S}"]
        path = Path("results") / "-".join(parts)
        number = 1
        while path.exists():
            number += 1
            path = path.with_name("-".join([*parts, str(number)]))
        return path


def _refuse_other_files(path: Path) -> None:
    """Raise Usage if a directory holds something else than games, a bot for example."""
    try:
        names = {entry.name for entry in path.iterdir()} if path.is_dir() else set()
    except OSError as error:
        raise Usage(f"--out: {path}: {error.strerror}") from error
    if STORE_FILE not in names and names - {LOCK_FILE}:
        raise Usage(f"--out: {path} holds other files: name a directory that is new, empty, or of such games")


def _as_name(name: str) -> str:
    """Return a valid bot name, as similar to this one as possible."""
    kept = "".join(letter if NAME.fullmatch(f"a{letter}") else "_" for letter in name)
    return f"bot {kept}"[: 2 * LONGEST_LABEL - 20].rstrip()


def distinct(player: Player, others: Sequence[str], label: str) -> Player:
    """Return the player, with a label appended if its name is the same as another's, or too similar."""
    if name_clash(player.name, others) is None:
        return player
    return replace(player, name=f"{player.name[:LONGEST_LABEL].rstrip()} ({label})")


def _random_openings(spec: str, seed: int, wanted: int) -> tuple[tuple[str, ...], str]:
    """Return random openings; shorter ones for games that would be over by then, none if all would be."""
    rules = parse_game(spec)
    for plies in range(OPENING_PLIES, 0, -1):
        try:
            texts = random_openings(rules, plies, seed, wanted)
        except OpeningError:
            continue
        return texts, f"random, {plies} plies, seed {seed}"
    return (), ""  # a board so small that the game is over after any move


def without_openings(players: Sequence[Player]) -> str:
    """Return why these players play without openings, and what follows from that."""
    names = " and ".join(player.name for player in players if "openings" not in player.capabilities)
    if not names:
        return "the board is too small for openings, so all games begin at the start position"
    return (
        f"{names} cannot take openings, so all games begin at the start position; identical games count "
        'once, so bots without chance give little evidence (capabilities = ["openings"] in bot.toml would '
        "help; see docs/protocol.md)"
    )


def measure(settings: Settings, tournament: Tournament, path: Path, kind: type[Summary]) -> Outcome:
    """Play the games.  Raises Usage, Fault."""
    if settings.shown and settings.out is None:
        click.echo(f"{tournament.name}: the games go to {path}", err=True)
    return run_in(
        path,
        tournament,
        settings.confined,
        base=Path.cwd(),
        concurrency=settings.concurrency,
        shown=settings.shown,
        kind=kind,
    )


def finish(context: click.Context, outcome: Outcome) -> None:
    """Print which games are missing, if any, and exit with the matching status.  Raises Fault, SystemExit."""
    ending = Ending(outcome.summary, outcome.report, outcome.directory)
    for line in ending.unplayed():
        click.echo(line, err=True)
    again = same_command(context, [context.info_name or ""], out=str(outcome.directory.path))
    if outcome.interrupted:
        missing, total = outcome.report.missing, outcome.report.total
        click.echo(f"stopped with {missing} of {total} games to play; this goes on:\n  {again}", err=True)
        raise SystemExit(INTERRUPTED)
    if outcome.report.unplayed:
        raise Fault(f"{ending.missing()}:\n  {again}")


def wrapped(lines: Sequence[str], width: int | None) -> str:
    """Return lines, folded between words where a terminal is too narrow for them."""
    if width is None:
        return "\n".join(lines)
    return "\n".join(
        textwrap.fill(
            line,
            width,
            subsequent_indent=" " * (len(line) - len(line.lstrip())),
            break_long_words=False,
            break_on_hyphens=False,
        )
        for line in lines
    )


def faults_of(bot: str, games: Sequence[GameSummary]) -> list[GameSummary]:
    """Return the games that a bot lost by a fault."""
    return [game for game in games if game.fault is not None and game.loser == bot]


def fault_lines(bot: str, games: Sequence[GameSummary], directory: Path) -> Iterator[str]:
    """Yield the faults of a bot and the location of their records; nothing if it made none."""
    faults = faults_of(bot, games)
    if not faults:
        return
    played = sum(bot in (game.first, game.second) for game in games)
    yield f"{bot} lost {len(faults)} of {played} games by a fault:"
    for game in faults[:FAULTS_TOLD]:
        yield f"  {game.key}: {visible(game.detail)}"
    if len(faults) > FAULTS_TOLD:
        yield f"  and {len(faults) - FAULTS_TOLD} more, all in {directory / 'report.html'}"
    yield f"  what was said, and its standard error: {directory / GAMES / faults[0].key}/"


def faults_json(games: Sequence[GameSummary], directory: Path) -> list[dict[str, Any]]:
    """Return all games that were lost by a fault, for scripts."""
    return [
        {
            "key": game.key,
            "bot": game.loser,
            "reason": game.reason.value,
            "detail": game.detail,
            "files": str(directory / GAMES / game.key),
        }
        for game in games
        if game.fault is not None
    ]


def next_lines(directory: Path) -> list[str]:
    """Return the location of the games, and the command that shows their replays."""
    report = shlex.join([program(), "tournament", "report", str(directory)])
    return [f"games    {directory}", f"replays  {report}"]
