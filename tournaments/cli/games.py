"""`kalarena games` and `kalarena perft`: the rules of the games."""

import click

from referee.games.base import PositionError
from referee.games.catalog import DEFAULT_GAME, all_games, parse_game
from referee.games.perft import perft
from referee.games.spec import SpecError
from tournaments.cli.main import Usage


@click.command("games")
def games_command() -> None:
    """List the games, their presets and options.

    A game is written NAME[(PITS,SEEDS)][+OPTION[=VALUE]...], for example bga(6,6)+pie+empty-capture.
    """
    try:
        games = all_games()
    except SpecError as error:
        raise Usage(str(error)) from error
    for name, entry in games.items():
        default = "   (the default)" if name == DEFAULT_GAME else ""
        click.echo(f"{name}{default}\n    {entry.about}")
        if entry.board:
            click.echo(f"    board: {entry.board}")
        width = max(map(len, entry.options), default=0)
        for option, (values, about) in entry.options.items():
            click.echo(f"    +{option:{width}}  {values}\n     {'':{width}}  {about}")
        click.echo()


@click.command("perft")
@click.argument("spec")
@click.option("--depth", type=click.IntRange(min=0), required=True, help="Length of the sequences in plies.")
@click.option("--position", metavar="STATE", help="Start here instead of at the start position.")
def perft_command(spec: str, depth: int, position: str | None) -> None:
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
