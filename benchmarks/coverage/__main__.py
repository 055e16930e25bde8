"""Measurement of the coverage of 95 % intervals over a grid of simulated tournaments.

    python -m benchmarks.coverage [--runs 300] [--kind match]

Each line is a design: a kind of tournament in a world with draws, an advantage of the first move and luck
that the games of a pair share.  Coverage is the share of intervals that hold the true difference; the target
is 93.5 to 97 %.  The coverage of matches of up to 20 games is computed from all their results.  The exit
status is 1 if a design misses the target by more than two standard errors.  Ratings whose pairings depended
on results (Swiss, ladder, knockout, groups) have no intervals.  Those of versions on a practice ladder
are widened by one factor for all ladders, and have no target.  A simulated ladder takes seconds.
"""

import argparse
import sys
from collections import defaultdict
from math import sqrt

from threadpoolctl import threadpool_limits

from benchmarks.coverage.designs import Design, ShortMatch, designs

LEAST, MOST = 0.935, 0.97
WITHOUT_TARGET = "practice ladder"
MATCH_RUNS = 20
"""Runs of a match for each one of another design: a match has one interval, and takes no time."""
EXACT_SLACK = 0.001
"""Matches of few games have few results: their coverage, which is computed, cannot be had in finer steps."""


def main() -> int:
    """Print the coverage of every design; return 1 if one is out of its bounds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--runs", type=int, default=300, help="tournaments of each design (default: 300)")
    parser.add_argument("--kind", help="only designs of this kind")
    options = parser.parse_args()
    bad = 0
    kinds: dict[tuple[str, str], list[float]] = defaultdict(list)
    with threadpool_limits(1):
        for design in designs():
            if options.kind not in (None, design.kind):
                continue
            runs = options.runs * (MATCH_RUNS if design.kind == "match" else 1)
            share = design.coverage(runs)
            kinds[design.kind, design.size].append(share)
            note = _note(design, share, runs)
            bad += bool(note)
            print(
                f"{design.kind:24} {design.size:22} {design.world!s:52} {100 * share:5.1f} %{note}",
                flush=True,
            )
    print()
    for (kind, size), shares in kinds.items():
        mean = sum(shares) / len(shares)
        ends = f"{100 * min(shares):.1f} to {100 * max(shares):.1f}"
        print(f"{kind:24} {size:22} mean {100 * mean:5.1f} %, {ends}")
    return 1 if bad else 0


def _note(design: Design | ShortMatch, share: float, runs: int) -> str:
    if design.kind == WITHOUT_TARGET:
        return ""
    slack = EXACT_SLACK if isinstance(design, ShortMatch) else 2 * sqrt(0.05 * 0.95 / runs)
    if share < LEAST - slack:
        return "   too narrow"
    if share > MOST + slack:
        return "   wider than need be"
    return ""


if __name__ == "__main__":
    sys.exit(main())
