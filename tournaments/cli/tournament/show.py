"""`kalarena tournament show`: the games of a tournament, or one of them, for people."""

import sys
from collections.abc import Iterator
from pathlib import Path

import click

from referee.judge.record_rows import to_ms
from referee.judge.results import GameRecord
from referee.judge.verdict_text import visible
from tournaments.cli.main import Usage
from tournaments.cli.play import stderr_end
from tournaments.cli.tournament.results import find_game, open_results
from tournaments.files.validation_errors import suggestion
from tournaments.reporting.exports import why_not
from tournaments.reporting.tables import json_text
from tournaments.reporting.tournament_results import TournamentResults
from tournaments.results.game_archives import GameFilesReader
from tournaments.results.game_files import wire_text
from tournaments.results.game_summary import GameSummary


@click.command("show")
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
@click.argument("key", metavar="[KEY]", required=False)
@click.option("--bot", metavar="BOT", help="List the games of this bot only.")
@click.option("--wire", is_flag=True, help="Print the conversation, with times.")
@click.option("--stderr", "stderr_of", metavar="BOT", help="Print what was kept of a bot's standard error.")
@click.option("--json", "as_json", is_flag=True, help="Print the whole record, as `kalarena play --json`.")
def command(
    directory: Path, key: str | None, bot: str | None, wire: bool, stderr_of: str | None, as_json: bool
) -> None:
    """List the games in DIR, or print one: its verdict, times, moves, standard error, and files.

    KEY is a game's key, the beginning of one, or the game's number in the list.
    """
    if wire + (stderr_of is not None) + as_json > 1:
        raise Usage("--wire, --stderr and --json exclude one another")
    if key is None and (wire or stderr_of is not None or as_json):
        raise Usage("--wire, --stderr and --json are of one game: give its KEY")
    if key is not None and bot is not None:
        raise Usage("--bot lists games: leave KEY out")
    with open_results(directory) as (store, results):
        if bot is not None and bot not in results.bots:
            raise Usage(f"there is no bot {bot!r} here{suggestion(bot, results.bots)}")
        if key is None:
            click.echo("".join(f"{line}\n" for line in _listed(results, bot)), nl=False)
            return
        game = find_game(results, key)
        record = store.record(game.key)
        if as_json:
            click.echo(json_text(record.to_json()))
        elif wire:
            click.echo(wire_text(record), nl=False)
        elif stderr_of is not None:
            _print_stderr(record, stderr_of)
        else:
            for line in _described(directory, results, game, record):
                click.echo(line)


def _listed(results: TournamentResults, bot: str | None) -> Iterator[str]:
    """Yield a line for each game that was ever played, or for each game of ``bot``."""
    games = results.kept
    counted = {game.key for game in results.games}
    number_width, key_width = len(str(len(games))), max((len(game.key) for game in games), default=0)
    for number, game in enumerate(games, 1):
        if bot is not None and bot not in (game.first, game.second):
            continue
        aside = "" if game.key in counted else "  (does not count)"
        yield f"{number:>{number_width}}  {game.key:{key_width}}  {visible(game.detail)}{aside}"


def _described(
    directory: Path, results: TournamentResults, game: GameSummary, record: GameRecord
) -> Iterator[str]:
    """Yield the lines that describe a game."""
    first, second = (player.name for player in record.players)
    yield f"{game.key}: {record.game}, round {game.round}, {first} (first) against {second}"
    yield f"{visible(record.result.detail)}   [{record.result.reason}]"
    if not any(one.key == game.key for one in results.games):
        yield f"does not count: {why_not(results.rulings, game.key)}"
    yield f"started at {record.started_at}, {record.duration_us / 1e6:.3f} s with the starts of the bots"
    yield f"time control: {record.control}; clock: {record.clock}; sandbox: {record.sandbox or 'unknown'}"
    if record.opening:
        yield f"opening: {record.opening}"
    if record.moves:
        yield ""
        yield from _moves(record)
    for index, player in enumerate(record.players):
        yield ""
        yield _used(record, index)
        if record.note and record.result.winner == 1 - index:
            yield f"  {visible(record.note)}"
        if record.stderr[index].strip():
            yield f"  the end of its standard error (all of it: --stderr {player.name}):"
            yield stderr_end(record.stderr[index])
        else:
            yield "  nothing on standard error"
    yield ""
    yield f"files: {_files(directory, game.key)}"


def _moves(record: GameRecord) -> Iterator[str]:
    """Yield a table of the moves, with their times in milliseconds."""
    names = [visible(player.name) for player in record.players]
    name_width = max(map(len, (*names, "bot")))
    move_width = max([len(move.move) for move in record.moves] + [len("move")])
    times = "".join(f" {name:>11}" for name in ("wall ms", "charged ms", "CPU ms"))
    yield f" ply  {'bot':{name_width}}  {'move':{move_width}}{times}"
    for ply, move in enumerate(record.moves, 1):
        cpu_ms = to_ms(move.cpu_us)
        cpu = "" if cpu_ms is None else f"{cpu_ms:.3f}"
        yield (
            f"{ply:>4}  {names[move.player]:{name_width}}  {move.move:{move_width}} "
            f"{move.wall_us / 1000:>11.3f} {move.charged_us / 1000:>11.3f} {cpu:>11}"
        ).rstrip()


def _used(record: GameRecord, index: int) -> str:
    """Return the sentence about what a bot used."""
    player, status = record.players[index], record.exit_status[index]
    moves = [move for move in record.moves if move.player == index]
    parts = ["1 move" if len(moves) == 1 else f"{len(moves)} moves"]
    if moves:
        longest = max(move.charged_us for move in moves)
        total = sum(move.charged_us for move in moves)
        parts.append(f"{total / 1000:.3f} ms charged, the longest {longest / 1000:.3f} ms")
    cpu_us = record.cpu_us[index]
    if cpu_us is not None:
        parts.append(f"{cpu_us / 1000:.3f} ms of CPU time")
    parts.append("never started" if status is None else f"exit status {status}")
    return f"{visible(player.name)}: {', '.join(parts)}"


def _files(directory: Path, key: str) -> str:
    """Return the place of a game's files, for people."""
    return GameFilesReader(directory).place(key) or "none yet; the next run writes them"


def _print_stderr(record: GameRecord, bot: str) -> None:
    """Print a bot's standard error.  Raises Usage if the game has no such bot."""
    names = [player.name for player in record.players]
    if bot not in names:
        raise Usage(f"{bot!r} did not play {record.key}{suggestion(bot, names)}")
    text = record.stderr[names.index(bot)]
    if sys.stdout is not None and sys.stdout.isatty():  # no control sequence of a bot reaches a terminal
        text = "".join(f"{visible(line.expandtabs())}\n" for line in text.splitlines())
    click.echo(text.encode("utf-8", "backslashreplace"), nl=False)
