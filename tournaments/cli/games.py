"""`kalarena games`."""

import click

from referee.games.catalog import DEFAULT_GAME, GAMES


@click.command("games")
def command() -> None:
    """List the games, their presets and options.

    A game is written NAME[(PITS,SEEDS)][+OPTION[=VALUE]...], for example bga(6,6)+pie+empty-capture.
    """
    for name, entry in GAMES.items():
        default = "   (the default)" if name == DEFAULT_GAME else ""
        click.echo(f"{name}{default}\n    {entry.about}")
        if entry.board:
            click.echo(f"    board: {entry.board}")
        width = max(map(len, entry.options), default=0)
        for option, (values, about) in entry.options.items():
            click.echo(f"    +{option:{width}}  {values}\n     {'':{width}}  {about}")
        click.echo()
