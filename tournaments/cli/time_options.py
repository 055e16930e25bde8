"""Options for the time control, the same for every command that plays games."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

from referee.judge.clock import (
    CLOCKS,
    DEFAULT_MARGIN_S,
    DEFAULT_MOVE_S,
    DEFAULT_START_S,
    FAIR,
    MEASURE,
    PONDERING,
    TimeControl,
)
from tournaments.cli.main import Usage

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

Command = TypeVar("Command", bound=Callable[..., Any])


def time_options(command: Command) -> Command:
    """Add these options to a command; their values are the arguments of ``time_control``."""
    for option in reversed(TIME_OPTIONS):
        command = option(command)
    return command


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
        return TimeControl(move_s, game_time, increment, margin, start_time, clock=clock, ponder=ponder)
    except ValueError as error:
        raise Usage(str(error)) from error
