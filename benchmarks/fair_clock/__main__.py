"""Compares what the fair clock charges with the CPU time that bots used, on a busy machine.

    python -m benchmarks.fair_clock --turns 200

Each kind of bot uses 0.4 s of CPU time for a move: in one thread, in a new thread for each move, in twenty
new threads one after another, in a pool of four, in a child process for each move, and in a Java virtual
machine whose collector is busy; one only sleeps.  It reports the CPU time of each move itself.  For each
kind it prints the ratio of charged to used time, then plays with a limit that the bots keep and one that
they cannot keep.
"""

import argparse
import statistics
import sys
import tempfile
from pathlib import Path

from benchmarks.fair_clock.busy import KINDS, Busy, build, play, ratios
from referee.judge.results import GameRecord, Reason

KEPT_S, BROKEN_S = 0.55, 0.3
"""Limits for bots that need 0.4 s a move, with a margin of 0."""


def main() -> int:
    """Measure; return 1 if a figure is out of its bounds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--turns", type=int, default=200, help="turns of each kind (default: 200)")
    parser.add_argument("--seconds", type=float, default=0.4, help="CPU time of a move (default: 0.4)")
    parser.add_argument("--busy", type=int, default=10, help="busy processes (default: 10)")
    parser.add_argument("--kinds", default=",".join(KINDS), help=f"default: {','.join(KINDS)}")
    parser.add_argument("--game", default="manchester", help="default: manchester")
    options = parser.parse_args()
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        bots = build(Path(folder), options.seconds)  # quicker than beside busy processes
        with Busy(options.busy):
            print("kind     turns   5 %  median   95 %  wall/CPU   kept 0.55 s  lost 0.3 s", flush=True)
            for kind in options.kinds.split(","):
                found: list[float] = []
                walls: list[float] = []
                late: list[GameRecord] = []
                while len(found) < options.turns:
                    record = play(bots[kind], KEPT_S * options.seconds / 0.4, options.game)
                    if record.result.reason is Reason.TIMEOUT:
                        late.append(record)
                    found += ratios(record)
                    walls += [move.wall_us / max(1, move.charged_us) for move in record.moves]
                broken = [play(bots[kind], BROKEN_S * options.seconds / 0.4, options.game) for _ in range(3)]
                lost = sum(record.result.reason is Reason.TIMEOUT for record in broken)
                found.sort()
                low, high = found[len(found) // 20], found[int(len(found) * 0.95)]
                is_good = low >= 0.95 and high <= 1.1 and not late and lost == len(broken)
                bad += not is_good
                print(
                    f"{kind:8} {len(found):5} {low:6.3f} {statistics.median(found):6.3f} {high:6.3f} "
                    f"{statistics.median(walls):7.2f}    {len(late)} late       {lost} of {len(broken)}"
                    f"{'' if is_good else '   out of bounds'}",
                    flush=True,
                )
                for record in late:
                    print(f"         {record.result.detail}", flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
