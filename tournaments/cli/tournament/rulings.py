"""`kalarena tournament void`, `replay`, `withdraw`, `restore`, `pair`, `add` and `journal`: rulings."""

import contextlib
import json
import shlex
from collections.abc import Callable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

import click

from referee.judge.results import Player
from tournaments.bots.errors import BotError
from tournaments.bots.resolve import resolve_bot
from tournaments.cli.main import Fault, Usage
from tournaments.cli.tournament.outcome import program
from tournaments.cli.tournament.results import open_results
from tournaments.config.format_tables import FORMAT_TABLES
from tournaments.config.late_entries import late_bot, note_of, unfit
from tournaments.config.load import too_wide
from tournaments.config.tournament_file import MAX_ROUNDS
from tournaments.reporting.ruling_requests import (
    PairingRequest,
    Ruling,
    entries_of,
    pairing_rulings,
    restoration,
    unexpected,
    withdrawal,
)
from tournaments.reporting.tournament_directory import DirectoryError, TournamentDirectory
from tournaments.reporting.tournament_results import TournamentResults
from tournaments.results.journal import Action, Entry
from tournaments.results.store import Store

_DIR = click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
_WHY = click.option("--why", required=True, metavar="TEXT", help="The reason, which the report shows.")
_MAYBE_WHY = click.option(
    "--why",
    default="no reason given",
    show_default=True,
    metavar="TEXT",
    help="The reason, which the report shows.",
)
"""For rulings with an optional reason: only a void game is taken from its players for good."""


def _rule(
    directory: Path, rulings: list[Ruling] | Callable[[TournamentResults], list[Ruling]], why: str
) -> None:
    """Make entries, all or none, and write the tables anew.

    ``rulings`` that depend on the results are made from them when no run can add to these any more.
    """
    with open_results(directory, for_rulings=True) as (store, results):
        asked = rulings(results) if callable(rulings) else rulings
        entries = entries_of(results, asked, why, datetime.now(UTC))
        store.note(*entries)
        for entry in entries:
            click.echo(f"noted: {entry}")
        results = TournamentResults.load(store)
        try:
            TournamentDirectory(directory).write_reports(results)
        except DirectoryError as error:
            raise Fault(str(error)) from error
        _print_consequences(results, entries, directory)


def _print_consequences(results: TournamentResults, entries: Sequence[Entry], directory: Path) -> None:
    """Print what a lecturer might not expect, and the command for the games that are due."""
    for sentence in unexpected(results, entries):
        click.echo(sentence)
    missing = len(results.schedule.due(results.history))
    if missing:
        due = "1 game is" if missing == 1 else f"{missing} games are"
        command = shlex.join([program(), "tournament", "run", "FILE", "--out", str(directory)])
        click.echo(f"{due} due now: {command}")


@click.command("void")
@_DIR
@click.argument("game", metavar="GAME")
@_WHY
def void_command(directory: Path, game: str, why: str) -> None:
    """Let GAME count for nobody.  It is kept, and not played again."""
    _rule(directory, [Ruling(Action.VOID, game)], why)


@click.command("replay")
@_DIR
@click.argument("game", metavar="GAME")
@_MAYBE_WHY
def replay_command(directory: Path, game: str, why: str) -> None:
    """Have GAME played again by the next run.  The old game is kept, and counts for nobody."""
    _rule(directory, [Ruling(Action.REPLAY, game)], why)


@click.command("withdraw")
@_DIR
@click.argument("bot", metavar="BOT")
@_MAYBE_WHY
@click.option(
    "--annul/--keep",
    default=None,
    help="Whether its games count for nobody.  [default: yes in a round robin and a gauntlet, else no]",
)
def withdraw_command(directory: Path, bot: str, why: str, annul: bool | None) -> None:
    """Let BOT play no more."""
    _rule(directory, lambda results: [withdrawal(results, bot, annul)], why)


@click.command("restore")
@_DIR
@click.argument("subject", metavar="GAME|BOT")
@_MAYBE_WHY
def restore_command(directory: Path, subject: str, why: str) -> None:
    """Take a ruling back: let a void GAME count again, or a BOT that withdrew play on."""
    _rule(directory, lambda results: [restoration(results, subject)], why)


@click.command("pair")
@_DIR
@click.argument("bots", metavar="[BOT BOT]...", nargs=-1)
@click.option(
    "--round",
    "round_number",
    type=click.IntRange(1, MAX_ROUNDS),
    metavar="N",
    help="The round, which must not have begun.  [default: the next one]",
)
@click.option("--bye", "byes", multiple=True, metavar="BOT", help="BOT has a bye.")
@click.option(
    "--forbid",
    "forbidden",
    multiple=True,
    nargs=2,
    metavar="BOT BOT",
    help="These two do not meet, in the round and after it.",
)
@click.option("--undo", is_flag=True, help="Take these rulings back.")
@_WHY
def pair_command(
    directory: Path,
    bots: tuple[str, ...],
    round_number: int | None,
    byes: tuple[str, ...],
    forbidden: tuple[tuple[str, str], ...],
    undo: bool,
    why: str,
) -> None:
    """Fix pairings of a coming round of a Swiss: the first BOT meets the second, the third the fourth.

    The other bots are paired as usual.
    """
    if len(bots) % 2:
        raise Usage(f"BOTs are paired two by two, and {len(bots)} were named")
    pairs = list(zip(bots[::2], bots[1::2], strict=True))
    request = PairingRequest(pairs, byes, forbidden, round_number, undo)
    with open_results(directory) as (_, results):
        rulings = pairing_rulings(results, request)
    _rule(directory, rulings, why)


@click.command("add")
@_DIR
@click.argument("bot", metavar="BOT")
@click.option("--name", metavar="NAME", help="Its name here.  [default: as in a tournament file]")
@click.option("--replaces", metavar="OLD", help="It is a new version of OLD, which withdraws.")
@click.option(
    "--annul/--keep", default=None, help="Whether OLD's games count for nobody.  [default: as in withdraw]"
)
@click.option("--why", default="joined late", show_default=True, metavar="TEXT", help="The reason.")
def add_command(
    directory: Path, bot: str, name: str | None, replaces: str | None, annul: bool | None, why: str
) -> None:
    """Let BOT join: a sample bot's name, a path, or a command line, as in a tournament file."""
    with open_results(directory) as (store, results):
        kind = FORMAT_TABLES[results.plan.kind]
        if not kind.TAKES_LATE_BOTS:
            raise Usage(
                f"a tournament of format {results.plan.kind!r} takes no bot once it has begun: put it into "
                "the tournament file, and run that into another directory"
            )
        try:
            player = late_bot(bot, Path(), name, results.game, strict=results.must_confine)
        except BotError as error:
            raise Usage(str(error)) from error
        problems = list(unfit(player, results.bots, openings=bool(results.plan.openings)))
        if results.must_confine:
            others = _players_beside(store, results, replaces)
            problems += [problem for _, problem in too_wide(directory, [*others, player])]
        if problems:
            raise Usage("\n".join(problems))
        leaves = replaces is not None and replaces not in results.rulings.withdrawn
    rulings = [withdrawal(results, replaces, annul)] if replaces is not None and leaves else []
    rulings.append(Ruling(Action.ADD, player.name, note_of(player, bot, str(Path.cwd().resolve()), replaces)))
    _rule(directory, rulings, why)


def _players_beside(store: Store, results: TournamentResults, replaced: str | None) -> list[Player]:
    """Return the players that play beside a new one, as far as they are known.

    The store has no paths of bots but those in records of games, and those of late bots in the journal.
    """
    names = set(results.bots) - set(results.rulings.withdrawn) - {replaced}
    found: dict[str, Player] = {}
    for game in reversed(results.kept):
        if not names.isdisjoint({game.first, game.second} - found.keys()):
            found |= {player.name: player for player in store.record(game.key).players}
    for entry in results.journal:
        if entry.action is Action.ADD and entry.subject not in found:
            with contextlib.suppress(BotError):  # the next run reports the error
                base = Path(entry.data["base"])
                found[entry.subject] = resolve_bot(entry.data["bot"], base, entry.subject)
    return [player for name, player in found.items() if name in names]


@click.command("journal")
@_DIR
@click.option("--json", "as_json", is_flag=True, help="Print one JSON array.")
def journal_command(directory: Path, as_json: bool) -> None:
    """Print all rulings, the oldest first."""
    with open_results(directory) as (_, results):
        entries = results.journal
    if as_json:
        click.echo(json.dumps([asdict(entry) for entry in entries], indent=1))
    elif not entries:
        click.echo("There are no rulings.")
    for entry in [] if as_json else entries:
        click.echo(f"{entry.number}  {entry.at}  during round {entry.round}  {entry}")
