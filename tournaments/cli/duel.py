"""`kalarena duel`."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import click
from threadpoolctl import threadpool_limits

from tournaments.analysis.duel import Duel, duel_of
from tournaments.cli.main import Usage, print_message
from tournaments.cli.measuring import (
    Settings,
    distinct,
    fault_lines,
    faults_json,
    finish,
    measure,
    measuring_options,
    next_lines,
    without_openings,
    wrapped,
)
from tournaments.cli.tournament.outcome import Outcome
from tournaments.cli.tournament.results import terminal_width
from tournaments.config.format_tables import MIN_ERROR, SprtTable
from tournaments.config.tournament import Tournament, name_clash
from tournaments.reporting.tables import json_text
from tournaments.reporting.tournament_results import TournamentResults
from tournaments.schedule.formats.sprt import Sprt
from tournaments.schedule.plan import ROUND_ROBIN

ELO0, ELO1 = 0.0, 20.0
"""Default hypotheses of the test, in Elo: no change, or 20, a step that is worth keeping."""
ERROR = 0.05
"""Default probability of errors of both kinds, as in most engines' tests."""
MAX_GAMES = 5000
"""A test of 0 against 20 Elo takes 1,300 games by the median if the truth is one of these, 2,500 if it is 10
Elo (docs/measuring.md)."""
MOST_GAMES = 1_000_000
NEW, OLD = "new", "old"
"""Labels that are appended to names that are the same."""
OF_A_TEST = ("sprt", "alpha", "beta", "max_games")


@dataclass
class DuelResults(TournamentResults):
    """The results of a duel: the new version first, then the old one."""

    @cached_property
    def duel(self) -> Duel:
        """Result of the duel so far."""
        test = self.schedule if isinstance(self.schedule, Sprt) else None
        finished = not self.schedule.due(self.history)
        with threadpool_limits(1):
            return duel_of(self.file_bots, self.games, test, self.history, finished=finished)

    @cached_property
    def conclusion(self) -> str:
        """State of the duel in one line."""
        return self.duel.live()


@click.command("duel")
@click.argument("old", metavar="OLD")
@click.argument("new", metavar="NEW")
@click.option(
    "--sprt",
    metavar="ELO0,ELO1",
    help="Sequential test: play until it is decided whether NEW is ELO1 stronger than OLD, or ELO0.  "
    f"[default: {ELO0:g},{ELO1:g}]",
)
@click.option(
    "--alpha",
    type=float,
    metavar="P",
    help=f"Probability of accepting ELO1 if ELO0 is true.  [default: {ERROR:g}]",
)
@click.option(
    "--beta",
    type=float,
    metavar="P",
    help=f"Probability of accepting ELO0 if ELO1 is true.  [default: {ERROR:g}]",
)
@click.option(
    "--max-games",
    type=int,
    metavar="N",
    help=f"End undecided after this number of games.  [default: {MAX_GAMES}]",
)
@click.option("--games", type=int, metavar="N", help="Play this number of games instead of a test; even.")
@measuring_options
@click.pass_context
def command(
    context: click.Context,
    /,
    old: str,
    new: str,
    sprt: str | None,
    alpha: float | None,
    beta: float | None,
    max_games: int | None,
    games: int | None,
    **options: Any,
) -> None:
    """Test whether NEW is stronger than OLD, for example two versions of a bot.

    Each is a sample bot's name, a path to a bot's directory or executable file, or a quoted command line.
    They play pairs of games, each from an opening of its own and from both sides.

    The games are kept, see --out.  Ctrl-C stops; the command that is printed then continues.
    """
    settings = Settings(**options)
    if games is not None:
        given = [name for name in OF_A_TEST if context.params[name] is not None]
        if given:
            raise Usage(f"--games plays a fixed number of games: leave --{given[0].replace('_', '-')} out")
        if not 2 <= games <= MOST_GAMES or games % 2:
            raise Usage(
                f"--games {games}: must be even and from 2 to {MOST_GAMES}, since games come in pairs"
            )
        form: dict[str, Any] = {"kind": ROUND_ROBIN}
    else:
        form = _test(sprt, alpha, beta, max_games)
    _ = settings.control  # errors in the options are reported before anything that takes long
    one, other = settings.player(new), settings.player(old)
    if name_clash(one.name, [other.name]) is not None:
        one, other = distinct(one, [other.name], NEW), distinct(other, [one.name], OLD)
    pairs = (games or form["max_games"]) // 2
    tournament = settings.tournament(
        f"{one.name} against {other.name}",
        [one, other],
        settings.openings([one, other], pairs),
        form=form,
        rounds=pairs if games is not None else 1,
        ranking="points",
        anchor=other.name,
        sources={one.name: settings.source(new), other.name: settings.source(old)},
    )
    notes = _notes(tournament)
    if settings.shown:
        for note in notes:
            print_message(f"{tournament.name}: {note}")
    path = settings.directory("duel", one, other)
    outcome = measure(settings, tournament, path, DuelResults)
    click.echo(
        json_text(_json(outcome, tournament, notes))
        if settings.as_json
        else _text(outcome, settings.about_openings(tournament), notes)
    )
    finish(context, outcome)


def _test(sprt: str | None, alpha: float | None, beta: float | None, max_games: int | None) -> dict[str, Any]:
    """Return the format with its parameters.  Raises Usage."""
    elo0, elo1 = ELO0, ELO1
    if sprt is not None:
        parts = sprt.split(",")
        try:
            elo0, elo1 = map(float, parts)
        except ValueError:
            raise Usage(f"--sprt {sprt}: takes two numbers with a comma between them, such as 0,20") from None
        if not -2000 <= elo0 < elo1 <= 2000:
            raise Usage(f"--sprt {sprt}: the first number must be below the second, both from -2000 to 2000")
    for name, value in (("alpha", alpha), ("beta", beta)):
        if value is not None and not MIN_ERROR <= value < 0.5:
            raise Usage(f"--{name} {value}: must be at least {MIN_ERROR:g} and below 0.5")
    if max_games is not None and not 2 <= max_games <= MOST_GAMES:
        raise Usage(f"--max-games {max_games}: must be from 2 to {MOST_GAMES}")
    return SprtTable(
        elo0=elo0,
        elo1=elo1,
        alpha=ERROR if alpha is None else alpha,
        beta=ERROR if beta is None else beta,
        max_games=MAX_GAMES if max_games is None else max_games,
    ).model_dump()


def _notes(tournament: Tournament) -> list[str]:
    """Return the notes to show before the first game."""
    one, other = tournament.bots
    notes = []
    if one.digest == other.digest:
        notes.append("OLD and NEW are the same files: what the games show is chance")
    if not tournament.openings:
        notes.append(without_openings(tournament.bots))
    return notes


def _text(outcome: Outcome[DuelResults], openings: str, notes: list[str]) -> str:
    """Return the result for people: faults, headline, figures, next steps."""
    directory, results = outcome.directory.path, outcome.results
    width = terminal_width()
    duel = results.duel
    one, other = results.file_bots[:2]
    head = f"{_labelled(one, NEW)} against {_labelled(other, OLD)}: {results.about}{openings}"
    parts = [wrapped([head], width)]
    faults = [*fault_lines((one, other), results.games, directory)]
    if faults:
        parts.append(wrapped(faults, width))
    parts.append(wrapped([duel.headline(), *(f"  {line}" for line in duel.figures())], width))
    closing = [*duel.meaning(), *(f"Note: {note}." for note in notes)]
    if closing:
        parts.append(wrapped(closing, width))
    parts.append("\n".join(next_lines(directory)))
    return "\n\n".join(parts)


def _labelled(name: str, label: str) -> str:
    """Return a name with its label, which it may have already."""
    return name if name.endswith(f"({label})") else f"{name} ({label})"


def _json(outcome: Outcome[DuelResults], tournament: Tournament, notes: list[str]) -> dict[str, Any]:
    """Return the result for scripts; docs/measuring.md has the fields."""
    results = outcome.results
    one, other = tournament.bots
    return {
        "kind": "duel",
        "new": one.name,
        "new_digest": one.digest,
        "old": other.name,
        "old_digest": other.digest,
        "game": results.game,
        "time_control": results.control,
        "openings": len(tournament.openings),
        "openings_source": tournament.openings_source,
        "seed": tournament.seed,
        "sandbox": results.sandbox,
        "games": len(results.games),
        **results.duel.to_json(),
        "notes": notes,
        "faults": faults_json(results.games, outcome.directory.path),
        "directory": str(outcome.directory.path),
    }
