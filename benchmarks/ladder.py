"""How far apart the levels of the reference ladder are: ``make ladder``.

Each level meets the one below in games from random openings, each opening from both sides.  The games are
played inside worker processes without a referee: the players are the very functions that the bots run, with
the same budgets.

Prints a table for each game, and NO where a level scores less than it should.  With ``--write`` the tables
take the place of those in sample_bots/README.md.  The exit status is 1 if a level scores too little.
"""

import argparse
import random
import re
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from protocol.announced import AnnouncedTime
from referee.games.base import Side
from referee.games.catalog import parse_game
from sample_bots.compare import OPENING_PLIES, play, random_opening
from sample_bots.conversation import Choose
from sample_bots.ladder.levels import describe, ladder_player
from sample_bots.options import HIGHEST_LEVEL, LOWEST_LEVEL
from sample_bots.strong import kernels
from tournaments.analysis.ratings.normal import NORMAL_QUANTILE
from tournaments.analysis.ratings.pentanomial import MatchScore, of_pairs

README = Path(__file__).parent.parent / "sample_bots" / "README.md"
GAMES = ("manchester", "kalamala")
LEAST_SHARE = 0.65
"""Of the points that a level has to score against the one below; what the ladder promises."""
MOVE_MS = 100
"""Limit per move.  Only the highest level uses it up; with more time it is stronger still."""


@dataclass(frozen=True)
class Meeting:
    """One opening, from both sides."""

    game: str
    level: int
    """It meets the level below."""
    opening: int
    """The seed of the opening, and of what both players draw by lot."""


@dataclass(frozen=True)
class Row:
    """A level against the one below."""

    level: int
    about: str
    score: MatchScore | None
    """None for the lowest level."""
    games: int
    seconds_a_move: float | None
    """The level's own, in the mean."""

    @property
    def holds(self) -> bool:
        """Whether the level is as far above the one below as is promised."""
        return self.score is None or self.score.score >= LEAST_SHARE


class Timed:
    """A player with the time that it takes."""

    def __init__(self, choose: Choose) -> None:
        self.choose = choose
        self.moves, self.seconds = 0, 0.0

    def __call__(self, game: Any, state: Any) -> Any:
        began = time.perf_counter()
        move = self.choose(game, state)
        self.moves, self.seconds = self.moves + 1, self.seconds + time.perf_counter() - began
        return move


def meet(meeting: Meeting) -> tuple[float, float]:
    """The points of the upper level in two games, and its seconds a move."""
    game = parse_game(meeting.game)
    state = random_opening(game, random.Random(meeting.opening))
    points, upper_moves, upper_seconds = 0.0, 0, 0.0
    for side in Side:
        seed = 2 * meeting.opening + side
        time_control = AnnouncedTime(move_ms=MOVE_MS)
        upper = Timed(ladder_player(game, meeting.level, seed, time_control)[0])
        lower = ladder_player(game, meeting.level - 1, seed, time_control)[0]
        winner = play(game, (upper, lower) if side is Side.FIRST else (lower, upper), state).winner
        points += 0.5 if winner is None else float(winner is side)
        upper_moves, upper_seconds = upper_moves + upper.moves, upper_seconds + upper.seconds
    return points, upper_seconds / max(1, upper_moves)


def rows(name: str, games: int, levels: range, pool: ProcessPoolExecutor) -> Iterator[Row]:
    """Each of these levels of a game against the one below, as soon as it is known."""
    abouts = describe(parse_game(name))
    for level in levels:
        about = abouts[level - LOWEST_LEVEL]
        if level == LOWEST_LEVEL:
            yield Row(level, about, None, 0, None)
            continue
        met = list(pool.map(meet, [Meeting(name, level, opening) for opening in range(games // 2)]))
        counts = [float(sum(points == half / 2 for points, _ in met)) for half in range(5)]
        yield Row(level, about, of_pairs(counts), games, sum(seconds for _, seconds in met) / len(met))


def how_searches_run() -> str:
    """Asked in a worker: numba reads where the kernels are kept when it is imported."""
    from sample_bots.strong.compiled import how

    return how()


def in_words(seconds: float | None) -> str:
    """A time of thinking, in a unit that suits it."""
    if seconds is None:
        return ""
    return f"{seconds * 1000:.0f} ms" if seconds >= 0.002 else f"{seconds * 1000:.2g} ms"


def line(row: Row) -> str:
    """A row of the table."""
    if row.score is None:
        return f"| {row.level} | {row.about} | | |"
    error = NORMAL_QUANTILE * row.score.standard_error
    share = f"{row.score.score:.1%} ± {error:.1%}" + ("" if row.holds else " NO")
    return f"| {row.level} | {row.about} | {share} | {in_words(row.seconds_a_move)} |"


HEADER = ["| level | what it does | score against the level below | time a move |", "|---|---|---|---|"]


def table(name: str, games: int, levels: range, pool: ProcessPoolExecutor) -> tuple[list[str], bool]:
    """The lines of a game's table, which are printed as they are known; whether all of it holds."""
    lines, holds = list(HEADER), True
    print(*HEADER, sep="\n", flush=True)
    for row in rows(name, games, levels, pool):
        lines.append(line(row))
        holds = holds and row.holds
        print(lines[-1], flush=True)
    return lines, holds


def write(name: str, lines: list[str]) -> None:
    """Put a game's table into the README, between its two marks."""
    begin, end = f"<!-- ladder {name} -->\n", "<!-- end -->"
    text = README.read_text(encoding="utf-8")
    pattern = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.DOTALL)
    written = begin + "\n".join(lines) + "\n" + end
    README.write_text(pattern.sub(lambda _: written, text, count=1), encoding="utf-8")


def main() -> int:
    """Print the tables; return the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--games", type=int, default=200, help="of each level, an even number (default 200)")
    parser.add_argument("--game", action="append", help="this game, as a spec text, and no other")
    parser.add_argument("--from-level", type=int, default=LOWEST_LEVEL)
    parser.add_argument("--write", action="store_true", help="put the tables into sample_bots/README.md")
    arguments = parser.parse_args()
    levels = range(arguments.from_level, HIGHEST_LEVEL + 1)
    if kernels.can_compile():
        kernels.use(str(kernels.prepare()))  # for the workers, which inherit it
    all_hold = True
    with ProcessPoolExecutor() as pool:
        how = pool.submit(how_searches_run).result()
        print(f"Searches run {how}; {MOVE_MS} ms a move; openings of {OPENING_PLIES} random plies.")
        for name in arguments.game or GAMES:
            print(f"\n{name}, {arguments.games} games for each level:\n")
            began = time.monotonic()
            lines, holds = table(name, arguments.games, levels, pool)
            all_hold = all_hold and holds
            print(f"({time.monotonic() - began:.0f} s)")
            if arguments.write:
                write(name, lines)
    if not all_hold:
        print(f"\nNO: a level scores less than {LEAST_SHARE:.0%} against the one below.")
    return 0 if all_hold else 1


if __name__ == "__main__":
    sys.exit(main())
