"""`kalarena game`: commands for the authors of games."""

from pathlib import Path
from xml.etree import ElementTree

import click

from referee.games.catalog import GAMES, AnyGame, parse_game
from referee.games.contract import check_game, playouts
from referee.games.plugins import GameModuleError, load_file
from referee.games.spec import SpecError
from tournaments.cli.main import Fault, Usage
from tournaments.reporting.board import board_renderer
from tournaments.reporting.board.drawing import NOWHERE, Content, Transfer


@click.group("game")
def command() -> None:
    """Commands for the authors of games; see docs/games.md."""


@command.command("check", short_help="Check the contract of a module's games by random play.")
@click.argument("module", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--game", metavar="SPEC", help="Check this variant only.  [default: all games of the module]")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the random games.")
def check_command(module: Path, game: str | None, seed: int) -> None:
    """Check the games of a MODULE: the contract of rule books, by random play, and their pictures.

    The exit status is 0 if every check passes, 1 if one fails, and 2 if there is nothing to check.
    """
    try:
        load_file(str(module))
        source = str(module.absolute())
        specs = [game] if game else [entry.example for entry in GAMES.values() if entry.source == source]
        games = [parse_game(spec) for spec in specs]
    except (GameModuleError, SpecError) as error:
        raise Usage(str(error)) from error
    if not games:
        raise Usage(f"{module} registers no game: call register_game, see docs/games.md")
    failures = 0
    for rules in games:
        click.echo(f"{rules.name}:")
        for description, problem in (
            *check_game(rules, seed),
            ("it can be drawn", picture_problem(rules, seed)),
        ):
            failures += bool(problem)
            click.echo(f"  {'FAILED' if problem else 'ok':6}  {description}")
            if problem:
                click.echo(f"          {problem}")
    if failures:
        raise Fault(f"{failures} of the checks failed")


def picture_problem(game: AnyGame, seed: int) -> str:
    """Return what is wrong with a game's text, picture and animation; an empty text if nothing is."""
    try:
        scene = board_renderer.scene(game)
        for state, move in playouts(game, seed)[0]:
            widths = {len(line) for line in board_renderer.text_picture(game, state).split("\n")}
            if len(widths) != 1:
                return f"its lines have different widths: {sorted(widths)}"
            ElementTree.fromstring(board_renderer.svg_picture(game, state))
            contents = board_renderer.contents(game, state)
            if len(contents) != len(scene.cells):
                return f"the scene has {len(scene.cells)} cells, a position {len(contents)}"
            if move is not None and (move != game.swap or game.swap is None):
                after = board_renderer.contents(game, game.apply(state, move))
                phases = board_renderer.transfers(game, state, move)
                found = _moved(contents, [transfer for phase in phases for transfer in phase])
                if found != after:
                    return (
                        f"the animation of {game.format_move(state, move)} leads to {found}, not to {after}"
                    )
    except Exception as error:
        return f"it raises {error!r}"
    return ""


def _moved(contents: list[Content], transfers: list[Transfer]) -> list[Content]:
    """Return the contents after some transfers."""
    cells = list(contents)
    for origin, target, what in transfers:
        number = what if isinstance(what, int) else 1
        for cell, sign in ((origin, -1), (target, 1)):
            if cell != NOWHERE:
                held = cells[cell]
                is_count = isinstance(held, int)
                cells[cell] = held + sign * number if is_count else (None if sign < 0 else what)  # type: ignore[operator]
    return cells
