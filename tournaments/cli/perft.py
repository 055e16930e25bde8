"""`kalarena perft`."""

import click

from referee.games.base import PositionError
from referee.games.catalog import parse_game
from referee.games.perft import perft
from referee.games.spec import SpecError
from tournaments.cli.main import Usage


@click.command("perft")
@click.argument("spec")
@click.option("--depth", type=click.IntRange(min=0), required=True, help="Length of the sequences in plies.")
@click.option("--position", metavar="STATE", help="Start here instead of at the start position.")
def command(spec: str, depth: int, position: str | None) -> None:
    """Count the move sequences of exactly DEPTH plies in game SPEC.

    One sowing is one ply, and SWAP is a ply.  A STATE is a board as the protocol sends it, taken to be
    South's move in the middle of a game; put ;North behind it for North's.
    """
    try:
        game = parse_game(spec)
        state = game.initial_state() if position is None else game.parse_state(position)
    except (SpecError, PositionError) as error:
        raise Usage(str(error)) from error
    click.echo(perft(game, state, depth))
