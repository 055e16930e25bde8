"""Measures how just the fair clock is on a machine with many more busy processes than cores.

    python -m benchmarks.fair_clock.overload --games 200

Bots that use 80 % of their limit must not lose on time, bots that use 120 % must always lose, and the charged
time must be the CPU time that the bots measured themselves: 99 of 100 moves within 5 %.  The margin is 0.
"""

import argparse
import sys
import tempfile
from pathlib import Path

from benchmarks.fair_clock.busy import Busy, build, play, ratios
from referee.errors import RefereeError
from referee.judge.results import GameRecord, Reason
from referee.sandbox.host_resources import usable_cores

KEPT, BROKEN = 0.8, 1.2
"""CPU time of a move, relative to its limit."""
MOST_ERROR = 0.05
GAME = "kalah(3,2)"
"""Five moves, if all are the first legal one."""


def main() -> int:
    """Measure; return 1 if a figure is out of its bounds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--games", type=int, default=200, help="games at 80 %% (default: 200)")
    parser.add_argument("--broken", type=int, default=20, help="games at 120 %% (default: 20)")
    parser.add_argument("--seconds", type=float, default=0.4, help="CPU time of a move (default: 0.4)")
    parser.add_argument("--busy", type=int, default=10, help="busy processes (default: 10)")
    parser.add_argument("--kinds", default="one", help="kinds of bots in turn (default: one)")
    options = parser.parse_args()
    kinds = options.kinds.split(",")
    with tempfile.TemporaryDirectory() as folder, Busy(options.busy):
        bots = build(Path(folder), options.seconds)

        def played(games: int, share: float) -> tuple[list[GameRecord], int]:
            """Return the games that have a verdict, and the number of those that have none."""
            records, unplayed = [], 0
            for number in range(games):
                try:
                    records.append(play(bots[kinds[number % len(kinds)]], options.seconds / share, GAME))
                except RefereeError as error:
                    print(error)
                    unplayed += 1
            return records, unplayed

        kept, kept_unplayed = played(options.games, KEPT)
        broken, broken_unplayed = played(options.broken, BROKEN)
    late = [record for record in kept if record.result.reason is Reason.TIMEOUT]
    lost = sum(record.result.reason is Reason.TIMEOUT for record in broken)
    errors = sorted(abs(ratio - 1) for record in kept for ratio in ratios(record))
    p99 = errors[int(len(errors) * 0.99)] if errors else 1.0
    moves = [move for record in kept for move in record.moves]
    slowdown = sum(move.wall_us for move in moves) / max(1, sum(move.charged_us for move in moves))
    print(f"{options.busy} busy processes, {len(usable_cores())} cores, wall / charged {slowdown:.2f}")
    print(f"at  80 % of the limit: {len(late)} of {len(kept)} games lost on time, {kept_unplayed} unplayed")
    print(f"at 120 % of the limit: {lost} of {len(broken)} games lost on time, {broken_unplayed} unplayed")
    print(f"charged against used CPU time: p99 {p99:.1%} off, in {len(errors)} moves")
    for record in late:
        print(record.result.detail)
    return int(bool(late) or kept_unplayed > 0 or lost < options.broken or p99 > MOST_ERROR)


if __name__ == "__main__":
    sys.exit(main())
