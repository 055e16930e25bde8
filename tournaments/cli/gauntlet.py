"""`kalarena gauntlet`."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil
from typing import Any

import click

from referee.judge.results import Player
from sample_bots.options import HIGHEST_LEVEL, LOWEST_LEVEL
from tournaments.analysis.ladder_position import LadderPosition, LevelResult, ladder_position
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
from tournaments.config.tournament import Tournament
from tournaments.reporting.tables import json_text
from tournaments.reporting.tournament_results import TournamentResults

LADDER = "ladder:"
ALL_LEVELS = range(LOWEST_LEVEL, HIGHEST_LEVEL + 1)
GAMES_EACH = 20
"""Games against each level, if levels are chosen: enough to see a score, few enough to wait for."""
GAMES_IN_ALL = 96
"""Games in all, if the levels follow the results: the 95 % interval is then about two levels wide
(docs/measuring.md)."""
PAIRS = 2
"""Pairs of games against each of the two levels of a round: rounds of 8 games keep several cores busy."""
ROUND_GAMES = 2 * 2 * PAIRS
MOST_GAMES = 10_000
BAR = 20
"""Columns of a bar that is full."""
BAR_NEEDS = 100
"""Columns of a terminal from which on there is room for bars."""


@dataclass
class GauntletResults(TournamentResults):
    """The results of a gauntlet: the first bot against levels of the ladder."""

    @property
    def levels(self) -> Mapping[int, str]:
        """Level -> its player's name, for the levels that take part."""
        return {int(name.removeprefix(LADDER)): name for name in self.file_bots[1:]}

    @cached_property
    def place(self) -> LadderPosition:
        """Position of the bot on the ladder."""
        return ladder_position(self.file_bots[0], self.levels, self.games, ALL_LEVELS)

    @cached_property
    def conclusion(self) -> str:
        """Position of the bot so far, in one sentence."""
        return self.place.sentences()[0] if self.games else ""


@click.command("gauntlet")
@click.argument("bot", metavar="BOT")
@click.option(
    "--levels",
    metavar="LEVELS",
    help="Levels to meet, such as 1-6, 3 or 1,4,7, all equally often.  [default: of all "
    f"{HIGHEST_LEVEL} those around where the bot stands]",
)
@click.option(
    "--games",
    type=click.IntRange(2, MOST_GAMES),
    metavar="N",
    help="Games against each of --levels; without --levels, in all.  "
    f"[default: {GAMES_EACH}, or {GAMES_IN_ALL}]",
)
@measuring_options
@click.pass_context
def command(
    context: click.Context, /, bot: str, levels: str | None, games: int | None, **options: Any
) -> None:
    """Estimate the level of BOT on the ladder of reference players, ladder:1 to ladder:10.

    BOT is a sample bot's name, a path to a bot's directory or executable file, or a quoted command line.

    The games are kept, see --out.  Ctrl-C stops; the command that is printed then continues.
    """
    settings = Settings(**options)
    chosen = _levels(levels) if levels is not None else list(ALL_LEVELS)
    rounds = _rounds(games, fixed=levels is not None)
    _ = settings.control  # errors in the options are reported before anything that takes long
    player = settings.player(bot)
    player = distinct(player, [f"{LADDER}{level}" for level in chosen], "tested")
    book = settings.openings([player], rounds if levels is not None else rounds * PAIRS)
    ladder = [_reference(settings, level, seeded=bool(book.texts)) for level in chosen]
    form: dict[str, Any] = {"kind": "gauntlet", "challengers": [player.name]}
    if levels is None:
        form = {"kind": "placement", "challengers": [player.name], "pairs": PAIRS}
    tournament = settings.tournament(
        f"{player.name} on the ladder",
        [player, *ladder],
        book,
        form=form,
        rounds=rounds,
        ranking="rating",
        anchor=player.name,
        sources={player.name: settings.source(bot)},
    )
    path = settings.directory("gauntlet", player)
    note = "" if book.texts else without_openings([player])
    if note and settings.shown:
        print_message(f"{tournament.name}: {note}")
    outcome = measure(settings, tournament, path, GauntletResults)
    if settings.as_json:
        click.echo(json_text(_json(outcome, tournament, note)))
    else:
        click.echo(_text(outcome, settings.about_openings(tournament), note, terminal_width()))
    finish(context, outcome)


def _levels(text: str) -> list[int]:
    """Return the levels in a text such as ``1-3,7``, in order.  Raises Usage."""
    found: set[int] = set()
    for part in text.split(","):
        match = re.fullmatch(r"\s*([0-9]{1,3})\s*(?:-\s*([0-9]{1,3})\s*)?", part)
        ends = (int(match[1]), int(match[2] or match[1])) if match else (0, 0)
        if not (match and LOWEST_LEVEL <= ends[0] <= ends[1] <= HIGHEST_LEVEL):
            raise Usage(
                f"--levels {text}: {part.strip()!r} names no levels; they go from "
                f"{LOWEST_LEVEL} to {HIGHEST_LEVEL}, as in 1-6, 3 or 1,4,7"
            )
        found |= set(range(ends[0], ends[1] + 1))
    return sorted(found)


def _rounds(games: int | None, *, fixed: bool) -> int:
    """Return the number of rounds: of a pair per level if ``fixed``, else of a placement.  Raises Usage."""
    if not fixed:
        return ceil((games or GAMES_IN_ALL) / ROUND_GAMES)
    games = games or GAMES_EACH
    if games % 2:
        raise Usage(f"--games {games}: must be even, since each opening is played from both sides")
    return games // 2


def _reference(settings: Settings, level: int, *, seeded: bool) -> Player:
    """Return the player of a level.  If all games begin alike it has no seed, lest it repeat itself."""
    name = f"{LADDER}{level}"
    return settings.player(f"{name}:{settings.seed}" if seeded else name, name)


def _text(outcome: Outcome[GauntletResults], openings: str, note: str, width: int | None) -> str:
    """Return the result for people: faults, levels, position, next steps."""
    directory, results = outcome.directory.path, outcome.results
    bot = results.file_bots[0]
    place = results.place
    parts = [wrapped([f"{bot} on the ladder: {results.about}{openings}"], width)]
    faults = [*fault_lines((bot, *results.levels.values()), results.games, directory)]
    if faults:
        parts.append(wrapped(faults, width))
    if place.met:
        parts.append(table(place.met, with_bars=width is None or width >= BAR_NEEDS))
    closing = place.sentences()
    if note and place.met:
        closing.append(f"Note: {note}.")
    parts += [wrapped(closing, width), "\n".join(next_lines(directory))]
    return "\n\n".join(parts)


def table(results: Sequence[LevelResult], *, with_bars: bool) -> str:
    """Return the results level by level, as a table."""
    head = ["level", "games", "unique", "won", "drawn", "lost", "score", "Elo", "95 % interval"]
    rows = []
    for result in results:
        counts = (result.level, result.games, result.unique, result.wins, result.draws, result.losses)
        difference = result.difference
        elo = (
            ["", ""]
            if difference is None
            else [f"{difference.value:+z.0f}", f"{difference.low:+z.0f} to {difference.high:+z.0f}"]
        )
        rows.append([*map(str, counts), f"{100 * (result.score or 0):.0f} %", *elo])
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    lines = []
    scores = [None, *(result.score for result in results)]
    for row, score in zip([head, *rows], scores, strict=True):
        line = "  ".join(cell.rjust(size) for cell, size in zip(row, widths, strict=True))
        if with_bars and score is not None:
            full = round(BAR * score)
            line += "  " + "#" * full + "." * (BAR - full)
        lines.append(line)
    return "\n".join(lines)


def _json(outcome: Outcome[GauntletResults], tournament: Tournament, note: str) -> dict[str, Any]:
    """Return the result for scripts; docs/measuring.md has the fields."""
    results = outcome.results
    place = results.place
    bot = tournament.bots[0]
    return {
        "kind": "gauntlet",
        "bot": bot.name,
        "digest": bot.digest,
        "game": results.game,
        "time_control": results.control,
        "openings": len(tournament.openings),
        "openings_source": tournament.openings_source,
        "seed": tournament.seed,
        "format": results.plan.kind,
        "sandbox": results.sandbox,
        "games": len(results.games),
        "games_total": results.total,
        "finished": results.done >= results.total and not outcome.interrupted,
        "levels": [result.to_json() for result in place.results],
        "place": place.to_json(),
        "sentences": place.sentences(),
        "note": note,
        "faults": faults_json(results.games, outcome.directory.path),
        "directory": str(outcome.directory.path),
    }
