"""Options of the commands that play games: time control and sandbox; and the notice of a compilation."""

import contextlib
from collections.abc import Callable
from typing import Any, TypeVar

import click

from referee.adapters.command import DEFAULT_PROTOCOL, PROTOCOLS
from referee.games.catalog import parse_game
from referee.judge.clock import (
    CLOCKS,
    DEFAULT_MARGIN_S,
    DEFAULT_MOVE_S,
    DEFAULT_START_S,
    FAIR,
    MEASURE,
    PONDERING,
    TimeControl,
    announceable,
)
from referee.judge.limits import LEAST
from referee.sandbox.detection import AUTO, MODES
from referee.sandbox.host_resources import default_memory_here
from sample_bots.catalog import BadOptionError, check_game, needs_kernels
from sample_bots.strong import kernels
from tournaments.cli.main import Usage

Command = TypeVar("Command", bound=Callable[..., Any])

TIME_OPTIONS = (
    click.option(
        "--move-time",
        type=float,
        metavar="S",
        help=f"Seconds for each move.  [default: {DEFAULT_MOVE_S:g} if there is no --game-time]",
    ),
    click.option("--game-time", type=float, metavar="S", help="Seconds for all moves of a bot together."),
    click.option(
        "--increment", type=float, default=0.0, metavar="S", help="Seconds added to --game-time a move."
    ),
    click.option(
        "--margin",
        type=float,
        default=DEFAULT_MARGIN_S,
        show_default=True,
        metavar="S",
        help="Forgiven overshoot.",
    ),
    click.option(
        "--start-time",
        type=float,
        default=DEFAULT_START_S,
        show_default=True,
        metavar="S",
        help="Seconds for a bot to start; not part of its playing time.",
    ),
    click.option(
        "--clock",
        type=click.Choice(CLOCKS),
        default=FAIR,
        show_default=True,
        help="fair: time in which the host ran nothing of the bot is not charged; wall: all time is.",
    ),
    click.option(
        "--ponder",
        type=click.Choice(PONDERING),
        default=MEASURE,
        show_default=True,
        help="What a bot may do while its opponent thinks.",
    ),
)


OPTION_OF = {
    "move_s": "--move-time",
    "game_s": "--game-time",
    "increment_s": "--increment",
    "margin_s": "--margin",
    "start_s": "--start-time",
}
"""Field of a time control -> the option that sets it."""


def time_control(
    move_time: float | None,
    game_time: float | None,
    increment: float,
    margin: float,
    start_time: float,
    clock: str,
    ponder: str,
) -> TimeControl:
    """Return the time control of the options' values, with times in seconds.  Raises Usage."""
    move_s = DEFAULT_MOVE_S if move_time is None and game_time is None else move_time
    try:
        control = TimeControl(move_s, game_time, increment, margin, start_time, clock=clock, ponder=ponder)
        return announceable(control)
    except ValueError as error:
        field, space, problem = str(error).partition(" ")
        raise Usage(f"{OPTION_OF.get(field, field)}{space}{problem}") from error


sandbox_option = click.option(
    "--sandbox",
    type=click.Choice(MODES),
    default=AUTO,
    show_default=True,
    help="How bots are confined. auto: as well as this host can (see `kalarena doctor`); required: only "
    "in a sandbox that holds hostile bots, or no game is played; off: not at all.",
)
memory_option = click.option(
    "--memory-mb",
    type=click.IntRange(min=LEAST["memory_mb"]),
    default=lambda: default_memory_here(),
    show_default="by this host, see `kalarena doctor`",
    metavar="MB",
    help="Memory of all processes of a bot together.",
)


def with_options(*options: Callable[[Any], Any]) -> Callable[[Command], Command]:
    """Return a decorator that adds options to a command, in this order."""

    def add(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return add


time_options = with_options(*TIME_OPTIONS)
"""Decorator that adds the options whose values are the arguments of ``time_control``."""
sandbox_options = with_options(sandbox_option, memory_option)


def announce_compilation(game: str, *texts: str) -> None:
    """Print a notice on standard error if one of these bots is a reference player that must be compiled.

    Its search is compiled once, which takes a minute or so.  Raises SpecError.
    """
    rules = parse_game(game)
    for text in texts:
        with contextlib.suppress(BadOptionError):  # ``resolve_bot`` has a better message
            check_game(text, rules)
            if needs_kernels(text, rules) and not kernels.is_prepared():
                click.echo(f"compiling what {text} searches with, once; this takes a minute or so", err=True)
                return


protocol_option = click.option(
    "--protocol",
    type=click.Choice(PROTOCOLS),
    default=DEFAULT_PROTOCOL,
    show_default=True,
    help="Protocol of the bots whose bot.toml names none; not of sample bots.  See docs/adapters.md.",
)
