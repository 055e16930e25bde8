"""Measurement of the distances between the levels of the reference ladder: ``make ladder``.

Each level meets the one below in games from random openings, each opening from both sides.  The games are
played in worker processes without a referee, by the same functions and with the same limits as the bots'.

The program prints a table for each game, with NO at levels that score too little.  With ``--write`` the
tables replace those in sample_bots/README.md.  The exit status is 1 if a level scores too little.
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
from sample_bots.ladder.levels import ladder_player, level_of
from sample_bots.options import HIGHEST_LEVEL, LOWEST_LEVEL
from sample_bots.strong import kernels
from tournaments.analysis.ratings.normal import NORMAL_QUANTILE
from tournaments.analysis.ratings.pentanomial import MatchScore, of_pairs

README = Path(__file__).parent.parent / "sample_bots" / "README.md"
GAMES = ("manchester", "kalamala")
LEAST_SHARE = 0.65
"""Least share of the points of a level against the one below, which the ladder promises."""
MOVE_MS = 100
"""Limit per move in milliseconds.  Only the highest level uses all of it, and is stronger with more."""


@dataclass(frozen=True)
class Meeting:
    """Two games from one opening, one for each side."""

    game: str
    level: int
    """The upper level; the other player has the level below."""
    opening: int
    """Seed of the opening, and of the players' random choices."""


@dataclass(frozen=True)
class Row:
    """Result of a level against the one below."""

    level: int
    about: str
    score: MatchScore | None
    """None for the lowest level."""
    games: int
    seconds_a_move: float | None
    """Mean time of the level's moves in seconds."""

    @property
    def holds(self) -> bool:
        """True if the level scores the promised share."""
        return self.score is None or self.score.score >= LEAST_SHARE


class Timed:
    """Player that measures the time of its moves."""

    def __init__(self, choose: Choose) -> None:
        self.choose = choose
        self.moves, self.seconds = 0, 0.0

    def __call__(self, game: Any, state: Any) -> Any:
        began = time.perf_counter()
        move = self.choose(game, state)
        self.moves, self.seconds = self.moves + 1, self.seconds + time.perf_counter() - began
        return move


def meet(meeting: Meeting) -> tuple[float, float]:
    """Return the points of the upper level in two games, and its seconds a move."""
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
    """Yield the results of these levels of a game, each as soon as it is known."""
    game = parse_game(name)
    for level in levels:
        about = level_of(game, level).about
        if level == LOWEST_LEVEL:
            yield Row(level, about, None, 0, None)
            continue
        met = list(pool.map(meet, [Meeting(name, level, opening) for opening in range(games // 2)]))
        counts = [float(sum(points == half / 2 for points, _ in met)) for half in range(5)]
        yield Row(level, about, of_pairs(counts), games, sum(seconds for _, seconds in met) / len(met))


def mode_of_worker() -> str:
    """Return the execution mode of the kernels; for workers, since numba reads its directory at import."""
    from sample_bots.strong.compiled import execution_mode

    return execution_mode()


def in_words(seconds: float | None) -> str:
    """Return a time with a suitable precision."""
    if seconds is None:
        return ""
    return f"{seconds * 1000:.0f} ms" if seconds >= 0.002 else f"{seconds * 1000:.2g} ms"


def line(row: Row) -> str:
    """Return a row of the table."""
    if row.score is None:
        return f"| {row.level} | {row.about} | | |"
    error = NORMAL_QUANTILE * row.score.standard_error
    share = f"{row.score.score:.1%} ± {error:.1%}" + ("" if row.holds else " NO")
    return f"| {row.level} | {row.about} | {share} | {in_words(row.seconds_a_move)} |"


HEADER = ["| level | what it does | score against the level below | time a move |", "|---|---|---|---|"]


def table(name: str, games: int, levels: range, pool: ProcessPoolExecutor) -> tuple[list[str], bool]:
    """Print a game's table row by row; return its lines, and whether all levels score the promised share."""
    lines, holds = list(HEADER), True
    print(*HEADER, sep="\n", flush=True)
    for row in rows(name, games, levels, pool):
        lines.append(line(row))
        holds = holds and row.holds
        print(lines[-1], flush=True)
    return lines, holds


def write(name: str, lines: list[str]) -> None:
    """Write a game's table into the README, between its two marks."""
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
        kernels.use(str(kernels.prepare()))  # the workers inherit the variable
    all_hold = True
    with ProcessPoolExecutor() as pool:
        how = pool.submit(mode_of_worker).result()
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
