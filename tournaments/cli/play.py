"""`kalarena play`, and the conversation of a game, shown on standard error as it happens."""

import contextlib
import os
import queue
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click

from protocol.messages import SWAP_WORD
from referee.errors import GameStoppedError, RefereeError
from referee.games.base import MoveError
from referee.games.catalog import DEFAULT_GAME, AnyGame, parse_game
from referee.games.opening import parse_opening
from referee.games.spec import SpecError
from referee.judge.limits import Limits
from referee.judge.record_rows import WireLine
from referee.judge.results import GameRecord, Player
from referee.judge.verdict_text import visible
from referee.playing import Job, play_alone
from referee.sandbox.detection import REQUIRED, SandboxError, find_sandbox
from tournaments.bots.errors import BotError
from tournaments.bots.resolve import resolve_bot
from tournaments.cli.game_options import (
    announce_compilation,
    protocol_option,
    sandbox_options,
    time_control,
    time_options,
)
from tournaments.cli.main import INTERRUPTED, Fault, Usage
from tournaments.files.durable import os_errors_as, write_file
from tournaments.processes.process_settings import stopping_signals

MAX_WAITING = 10_000
"""Lines that may wait to be shown; more are dropped: the record has them all."""
LAST_LINES = 12
"""Lines of a bot's standard error that are shown: a traceback."""
LAST_LINES_S = 2.0
"""Seconds for which the end of the game waits for lines that are still to be shown."""


@click.command("play")
@click.argument("bots", metavar="BOT BOT", nargs=2)
@click.option("--game", default=DEFAULT_GAME, show_default=True, metavar="SPEC", help="See `kalarena games`.")
@time_options
@sandbox_options
@click.option(
    "--opening",
    default="",
    metavar="TEXT",
    help="Begin with these moves, or this position; see docs/protocol.md.",
)
@protocol_option
@click.option(
    "--json", "as_json", is_flag=True, help="Print the whole game as one JSON object, nothing else."
)
@click.option(
    "--record",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    metavar="FILE",
    help="Write the game record (msgpack; JSON if FILE ends in .json), also of a game that is stopped.",
)
@click.option(
    "--keep-files",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Write what the bots wrote in their working directories to a new directory (confined bots only).",
)
@click.option("-v", "--verbose", is_flag=True, help="Show the conversation as it happens, on standard error.")
def command(
    bots: tuple[str, str],
    game: str,
    sandbox: str,
    memory_mb: int,
    opening: str,
    protocol: str,
    as_json: bool,
    record: Path | None,
    keep_files: Path | None,
    verbose: bool,
    **times: Any,
) -> None:
    """Play one game; the first BOT moves first (South).

    BOT is a sample bot's name (first_legal, random:SEED, greedy, minimax:DEPTH), a path to a bot directory or
    executable file, or a quoted command line.
    """
    try:
        spec = parse_game(game).name
        announce_compilation(spec, *bots)
        control = time_control(**times)
        limits = Limits(memory_mb=memory_mb)
        confined = find_sandbox(sandbox)
        build_in = confined if sandbox == REQUIRED else None
        one, other = (
            resolve_bot(bot, Path.cwd(), game=spec, build_in=build_in, protocol=protocol) for bot in bots
        )
        players = (one, other)
        if parse_opening(parse_game(spec), opening):
            refuse_openings(players)
    except (SpecError, BotError, SandboxError, ValueError) as error:
        raise Usage(str(error)) from error
    if record is not None:
        require_folder("--record", record)
    if keep_files is not None:
        with os_errors_as(Usage, f"--keep-files: {keep_files} cannot be read"):
            is_new = not keep_files.exists() and keep_files.absolute().parent.is_dir()
        if not is_new:
            raise Usage(f"--keep-files: {keep_files} must be a new directory in one that is there")
    keep = keep_files is not None
    job = Job("play", spec, players, control, limits, opening, confined, keep_files=keep)
    try:
        with (
            _shown(job) if verbose else contextlib.nullcontext() as observe,
            cancel_on_signals() as cancel_fd,
        ):
            try:
                played = play_alone(job, observe=observe, cancel_fd=cancel_fd)
            except GameStoppedError as error:
                if record is not None and isinstance(error.unfinished, GameRecord):
                    _keep_unfinished(record, error.unfinished)
                raise
    except RefereeError as error:
        raise Fault(f"the game could not be refereed, and has no result: {error}") from error
    # The record first, since it is the one that matters; but a record that cannot be written hides no result.
    unwritten = _write_record(record, played) if record is not None else None
    if keep_files is not None:
        unwritten = _write_kept_files(keep_files, played) or unwritten
    try:
        if as_json:
            click.echo(_json_text(played.to_json()))
        else:
            _show_result(played)
    except BrokenPipeError:  # the reader has seen enough; print nothing more, at exit either
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise Fault(f"the result could not be printed: {error.strerror}") from error
    for warning in played.warnings:
        click.echo(f"the game has its result, but {visible(warning)}", err=True)
    if unwritten is not None:
        raise Fault(unwritten)


@contextlib.contextmanager
def _shown(job: Job) -> Iterator[Callable[[WireLine], None]]:
    """Show the conversation of a game until the end of the block."""
    from tournaments.reporting.board.board_renderer import text_picture  # takes time to import

    view = ConversationView(parse_game(job.game), job.players, job.opening, text_picture)
    with view.shown():
        yield view.add


def _json_text(value: object) -> str:
    from tournaments.reporting.tables import json_text  # it imports the code for tables

    return json_text(value)


def refuse_openings(players: tuple[Player, Player]) -> None:
    """Raise BotError if one of the bots does not declare that it can take an opening."""
    for player in players:
        if "openings" not in player.capabilities:
            raise BotError(
                f"{player.name} cannot take an opening: it does not declare "
                'capabilities = ["openings"] in a bot.toml'
            )


def require_folder(option: str, file: Path) -> None:
    """Raise Usage if the folder of a new file, the value of an option, is not there."""
    folder = file.absolute().parent
    with os_errors_as(Usage, f"{option}: {folder} cannot be read"):
        is_there = folder.is_dir()
    if not is_there:
        raise Usage(f"{option}: there is no directory {folder}")


@contextlib.contextmanager
def cancel_on_signals(message: str = "the game has no result") -> Iterator[int]:
    """Provide a descriptor that becomes readable on a signal to stop, so that no bot is left behind.

    At the end of the block, if such a signal ended a game, the message is written to standard error, and
    SystemExit is raised.
    """
    reader, writer = os.pipe()
    stopped: list[int] = []

    def stop(number: int, _frame: object) -> None:
        stopped.append(number)
        os.write(writer, b"!")

    before = {number: signal.signal(number, stop) for number in stopping_signals()}
    was_cancelled = False
    try:
        yield reader
    except RefereeError:
        was_cancelled = bool(stopped)
        if not was_cancelled:
            raise
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        os.close(reader)
        os.close(writer)
    if was_cancelled:
        click.echo(f"stopped: {message}", err=True)
        raise SystemExit(INTERRUPTED)


def _show_result(played: GameRecord) -> None:
    click.echo(f"{played.game}: {played.players[0].name} (first) against {played.players[1].name}")
    for player in played.players:
        if player.how:
            click.echo(f"{player.name}: {player.how}")
    click.echo(f"{visible(played.result.detail)}   [{played.result.reason}]")
    for index, player in enumerate(played.players):
        mean = played.mean_move_ms(index)
        count = sum(move.player == index for move in played.moves)
        moves = "1 move" if count == 1 else f"{count} moves"
        click.echo(f"  {player.name}: {moves}" + (f", {mean:.3g} ms a move" if mean is not None else ""))
        lost_by_fault = played.result.fault is not None and played.result.winner != index
        if lost_by_fault and played.note:
            click.echo(f"  {visible(played.note)}")
        if lost_by_fault and played.stderr[index].strip():
            click.echo("  the end of its standard error:")
            click.echo(stderr_end(played.stderr[index]))


def stderr_end(text: str) -> str:
    """Return the last lines of a bot's standard error, for people."""
    lines = text.rstrip().splitlines()[-LAST_LINES:]
    return "\n".join(f"    | {visible(line.expandtabs())}" for line in lines)


def _write_kept_files(folder: Path, played: GameRecord) -> str | None:
    """Write the bots' files, in a folder for each bot; return an error message, or None."""
    from tournaments.results.game_files import (  # slow to import, hardly used
        kept_files_folder,
        write_kept_files,
    )

    try:
        folder.mkdir(mode=0o700)
        for number, (player, files) in enumerate(zip(played.players, played.kept_files, strict=True), 1):
            write_kept_files(folder / kept_files_folder(number, player.name), files)
    except OSError as error:
        return f"{folder}: the bots' files could not be written: {error.strerror}"
    return None


def _write_record(path: Path, played: GameRecord) -> str | None:
    """Write the record; return an error message, or None."""
    content = (
        (_json_text(played.to_json()) + "\n").encode() if path.suffix == ".json" else played.to_msgpack()
    )
    return _write(path, content)


def _keep_unfinished(path: Path, played: GameRecord) -> None:
    """Write the record of a game that was stopped, and print a message on that."""
    content = played.unfinished_msgpack()
    if path.suffix == ".json":
        content = (_json_text(played.unfinished_json()) + "\n").encode()
    unwritten = _write(path, content)
    click.echo(
        unwritten or f"{path}: the {len(played.moves)} moves played so far, without a verdict", err=True
    )


def _write(path: Path, content: bytes) -> str | None:
    """Write a record's bytes; return an error message, or None."""
    try:
        target = path.resolve()  # a link stays a link
        if target.exists() and not target.is_file():
            target.write_bytes(content)  # a device or a pipe, which is not to be replaced
            return None
        write_file(target, content)
    except OSError as error:
        return f"{path}: the record could not be written: {error.strerror}"
    return None


class ConversationView:
    """Shows lines from a thread of its own: a terminal or pipe that takes nothing must not hold up a game."""

    def __init__(
        self,
        game: AnyGame,
        players: tuple[Player, Player],
        opening: str,
        picture: Callable[[AnyGame, Any], str],
    ) -> None:
        """``picture`` returns a board in characters."""
        self._game = game
        self._draw = picture
        self._players = players
        steps = parse_opening(game, opening)
        self._state = steps[-1].state if steps else game.initial_state()
        self._waiting: queue.Queue[WireLine | None] = queue.Queue(MAX_WAITING)
        self._thread = threading.Thread(target=self._show_all, daemon=True)

    @contextlib.contextmanager
    def shown(self) -> Iterator[None]:
        """Show the lines that are added, until the end of the block."""
        self._thread.start()
        try:
            yield
        finally:
            with contextlib.suppress(queue.Full):
                self._waiting.put_nowait(None)
            self._thread.join(LAST_LINES_S)

    def add(self, line: WireLine) -> None:
        """Add a line to be shown; never waits."""
        with contextlib.suppress(queue.Full):
            self._waiting.put_nowait(line)

    def _show_all(self) -> None:
        while (line := self._waiting.get()) is not None:
            try:
                self._show(line)
            except OSError:  # the reader has gone
                return

    def _show(self, line: WireLine) -> None:
        arrow = "<-" if line.direction == "to" else "->"
        name = self._players[line.player].name
        text = f"{line.at_us / 1000:10.1f} ms  {line.player + 1} {name}  {arrow}  {visible(line.line)}\n"
        os.write(sys.stderr.fileno(), (text + self._picture(line)).encode("utf-8", "backslashreplace"))

    def _picture(self, line: WireLine) -> str:
        """Return the board after a move, once: with the line to the bot that is next, or the first END."""
        match line.line.split(";") if line.direction == "to" else []:
            case ["CHANGE", move, board, "YOU" | "END"] if self._follow(move, board):
                rows = self._draw(self._game, self._state).split("\n")
                return "".join(f"      {row}".rstrip() + "\n" for row in rows)
        return ""

    def _follow(self, move: str, board: str) -> bool:
        """Apply a move that was sent; return False if it is not the next one of our game."""
        game, state = self._game, self._state
        try:
            swapped = move == SWAP_WORD and game.swap is not None
            following = game.apply(state, game.swap if swapped else game.parse_move(state, move))
        except MoveError:
            return False
        if game.board_text(following) != board:
            return False
        self._state = following
        return True
