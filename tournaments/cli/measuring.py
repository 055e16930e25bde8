"""Common parts of `kalarena gauntlet` and `kalarena duel`: options, players, openings, messages."""

import os
import shlex
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import click

from referee.games.catalog import DEFAULT_GAME, parse_game
from referee.games.opening import OpeningError
from referee.games.spec import SpecError
from referee.judge.clock import TimeControl
from referee.judge.results import Player
from referee.judge.verdict_text import visible
from referee.sandbox.bubblewrap import Sandbox
from referee.sandbox.detection import REQUIRED, SandboxError, find_sandbox
from tournaments.bots.errors import BotError
from tournaments.bots.manifest import NAME
from tournaments.bots.resolve import resolve_bot
from tournaments.cli.game_options import (
    TIME_OPTIONS,
    announce_compilation,
    protocol_option,
    sandbox_option,
    time_control,
    with_options,
)
from tournaments.cli.main import INTERRUPTED, Fault, Usage, print_message
from tournaments.cli.tournament.outcome import Outcome, Results, program, same_command
from tournaments.cli.tournament.run import run_in
from tournaments.config.openings import SHORT_PLIES, OpeningBook
from tournaments.config.tournament import (
    CANNOT_TAKE_OPENINGS,
    BotSource,
    Tournament,
    build_tournament,
    name_clash,
)
from tournaments.database.base import StoreError
from tournaments.reporting.tournament_directory import STORE_FILE
from tournaments.results.game_files import GAMES, LOCK_FILE, slug
from tournaments.results.game_summary import GameSummary
from tournaments.results.store import Store

FAULTS_TOLD = 5
"""Most faults of a kind that are listed one by one."""
LONGEST_LABEL = 40
"""Characters to which a bot's name is cut before a label is appended; names have at most 60 characters."""

measuring_options = with_options(
    click.option(
        "--game", default=DEFAULT_GAME, show_default=True, metavar="SPEC", help="See `kalarena games`."
    ),
    *TIME_OPTIONS,
    click.option(
        "--openings",
        "openings_file",
        type=click.Path(dir_okay=False, path_type=Path),
        metavar="FILE",
        help=f"Openings, one a line.  [default: random ones of {SHORT_PLIES} plies]",
    ),
    click.option(
        "--seed",
        type=click.IntRange(0, 10**15),
        default=1,
        show_default=True,
        metavar="N",
        help="Seed of the random openings, in a gauntlet also of the reference players. In a duel, a "
        "reference player's own seed is part of its name, for example ladder:2:7.",
    ),
    click.option(
        "--out",
        type=click.Path(file_okay=False, path_type=Path),
        metavar="DIR",
        help="Directory of the games; with the same DIR, the same command continues.  [default: a new "
        "directory in results/]",
    ),
    click.option(
        "--concurrency",
        type=click.IntRange(1, 256),
        metavar="N",
        help="Games at a time.  [default: one per core]",
    ),
    sandbox_option,
    protocol_option,
    click.option("--json", "as_json", is_flag=True, help="Print one JSON object, nothing else."),
    click.option("--quiet", is_flag=True, help="Print the result, and nothing before it but errors."),
)
"""Decorator that adds the options whose values ``Settings`` takes."""


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
    protocol: str
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
            announce_compilation(self.spec, text)
        try:
            build_in = self.confined if self.sandbox == REQUIRED else None
            player = resolve_bot(text, Path.cwd(), name, self.spec, build_in=build_in, protocol=self.protocol)
        except BotError as error:
            raise Usage(str(error)) from error
        return player if NAME.fullmatch(player.name) else replace(player, name=_as_name(player.name))

    def source(self, text: str) -> BotSource:
        """Return the source of the bot that a text names."""
        return BotSource(text, Path.cwd(), self.protocol)

    def openings(self, players: Sequence[Player], wanted: int) -> OpeningBook:
        """Return the openings; none if one of the players cannot take any.  Raises Usage."""
        unable = [player.name for player in players if "openings" not in player.capabilities]
        if self.openings_file is None:
            return OpeningBook() if unable else OpeningBook.short(self.spec, self.seed, wanted)
        if unable:
            raise Usage(f"--openings: {unable[0]} {CANNOT_TAKE_OPENINGS}")
        try:
            return OpeningBook.from_file(self.spec, self.openings_file)
        except OpeningError as error:
            raise Usage(f"--openings: {error}") from error

    def about_openings(self, tournament: Tournament) -> str:
        """Return words that follow a tournament's description; empty if it has no openings."""
        if not tournament.openings:
            return ""
        if self.openings_file is None:
            return f", openings: {tournament.openings_source}"
        return f", openings: {len(tournament.openings)} of {visible(self.openings_file.name)}"

    def tournament(
        self,
        name: str,
        bots: Sequence[Player],
        book: OpeningBook,
        *,
        rounds: int,
        ranking: str,
        anchor: str,
        form: Mapping[str, Any],
        sources: dict[str, BotSource],
    ) -> Tournament:
        """Return the tournament of these bots."""
        return build_tournament(
            name=name,
            game=self.spec,
            bots=bots,
            control=self.control,
            format_table=form,
            rounds=rounds,
            openings=lambda _: book,
            ranking=ranking,
            seed=self.seed,
            anchor=anchor,
            sandbox_mode=self.sandbox,
            has_default_memory=True,
            concurrency=self.concurrency,
            sources=sources,
        )

    def directory(self, kind: str, *players: Player) -> Path:
        """Return the directory for the games of these players: --out, else a new one.  Raises Usage.

        It is outside of the bots' own directories, where its files would belong to the bots.
        """
        if self.out is not None:
            _refuse_other_files(self.out)
            for player in players:
                if (own := _own_directory(player)) and self.out.resolve().is_relative_to(own):
                    raise Usage(
                        f"--out: {self.out} is inside {own}, the directory of {player.name}, and the games "
                        "would be files of this bot: name a directory outside of it"
                    )
            return self.out
        names = [slug(player.name)[:LONGEST_LABEL] for player in players]
        parts = [kind, *names, f"{datetime.now():%Y-%m-%d-%H%M%S}"]
        path = _results_folder([own for player in players if (own := _own_directory(player))]) / "-".join(
            parts
        )
        number = 1
        while path.exists():
            number += 1
            path = path.with_name("-".join([*parts, str(number)]))
        return path


def _own_directory(player: Player) -> Path | None:
    """Return the directory whose files are the bot; None if the bot is a file, a command or a sample bot."""
    return Path(player.cwd) if player.reads == (player.cwd,) else None


def _results_folder(bots: Sequence[Path]) -> Path:
    """Return the folder ``results`` for new directories of games, relative to the current directory.

    It is in the current directory, or beside the bot's directory that contains the current one.
    """
    here = Path.cwd()
    folder = here
    for bot in sorted(bots, key=lambda bot: len(bot.parts), reverse=True):  # from the inside to the outside
        if folder.is_relative_to(bot):
            folder = bot.parent
    return Path(os.path.relpath(folder, here), "results")


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


def measure(settings: Settings, tournament: Tournament, path: Path, kind: type[Results]) -> Outcome[Results]:
    """Play the games.  Raises Usage, Fault."""
    if settings.shown and settings.out is None:
        print_message(f"{tournament.name}: the games go to {path}")
    return run_in(
        path,
        tournament,
        settings.confined,
        base=Path.cwd(),
        shown=settings.shown,
        kind=kind,
    )


def finish(context: click.Context, outcome: Outcome[Results]) -> None:
    """Print which games are missing, if any, and exit with the matching status.  Raises Fault, SystemExit."""
    for line in outcome.problem_lines():
        print_message(line)
    again = same_command(context, [context.info_name or ""], out=str(outcome.directory.path))
    if outcome.interrupted:
        print_message(f"{outcome.stopped('this')}\n  {again}")
        raise SystemExit(INTERRUPTED)
    if outcome.report.unplayed:
        raise Fault(f"{outcome.missing()}:\n  {again}")


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


def fault_lines(bots: Sequence[str], games: Sequence[GameSummary], directory: Path) -> Iterator[str]:
    """Yield the games in which neither bot could be started, then those that each bot lost by a fault."""
    unstarted = [game for game in games if game.neither_started]
    head = f"Neither bot could be started in {len(unstarted)} of {len(games)} games:"
    yield from _faults_listed(head, unstarted, directory, "games.csv")  # report.html lists lost games alone
    for bot in bots:
        lost = [game for game in games if game.fault is not None and game.loser == bot]
        played = sum(bot in (game.first, game.second) for game in games)
        head = f"{bot} lost {len(lost)} of {played} games by a fault:"
        yield from _faults_listed(head, lost, directory, "report.html")


def _faults_listed(
    head: str, faults: Sequence[GameSummary], directory: Path, whole_list: str
) -> Iterator[str]:
    """Yield the faults, the note on the first, and its record's location; nothing without faults."""
    if not faults:
        return
    yield head
    for game in faults[:FAULTS_TOLD]:
        yield f"  {game.key}: {visible(game.detail)}"
    if len(faults) > FAULTS_TOLD:
        yield f"  and {len(faults) - FAULTS_TOLD} more, all in {directory / whole_list}"
    if note := _note(faults[0], directory):
        yield f"  {faults[0].key}: {visible(note)}"
    yield f"  conversation and standard error: {directory / GAMES / faults[0].key}/"


def _note(game: GameSummary, directory: Path) -> str:
    """Return the note for a game's loser; empty if there is none, or its record is damaged."""
    try:
        with Store(directory / STORE_FILE, read_only=True) as store:
            return store.record(game.key).note
    except StoreError:  # `kalarena verify` reports damaged records
        return ""


def faults_json(games: Sequence[GameSummary], directory: Path) -> list[dict[str, Any]]:
    """Return all games that ended by a fault, for scripts; ``bot`` is None if neither could be started."""
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
