"""Benchmark of the strong player's Kalamala search: nodes a second, compiled and in plain Python.

The same search, to the same number of nodes, runs in this process (compiled, median of several runs, each
with an empty table) and in a child process with KALARENA_PURE set (plain Python, once).  A node is a turn
played on the search's board.  Both must have the same turn, value, depth and line in every position.

The exit status is 0 if they do, whether or not the targets are reached, else 1; 2 without numba.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from dataclasses import astuple
from pathlib import Path
from statistics import median
from typing import Any

from referee.games.kalamala import Kalamala
from sample_bots.options import PURE_VARIABLE
from sample_bots.strong.compiled import COMPILED, execution_mode
from sample_bots.strong.engine import SearchLimits
from sample_bots.strong.kalamala.engine import KalamalaEngine

TARGET_RATIO = 20.0
"""Target of the ratio of compiled to plain Python, in nodes a second."""

POSITIONS = {
    "opening": "......../......../...bw.../..b..w../..w..b../...wb.../......../........:44:w",
    "middle": "......../..w..w../.....b../..bwbw../...w..../....b.../.w....../........:13:b",
    "reserves empty": "......../.b.....b/...b...w/..b.bwb./...w..b./..w..w../..w...../.w......:00:b",
}
"""Positions by name; the last two are from games of the search against itself."""
TABLE_BITS = 18
"""Binary logarithm of the table's entries, small enough for plain Python."""
COMPARED_NODES = 60_000
"""Nodes for the comparison of both: a few seconds of plain Python a position."""
NODES = 3_000_000
"""Default number of nodes: about a second compiled, the usual time for a turn."""
ROOT = Path(__file__).resolve().parent.parent


def one_search(position: str, nodes: int) -> tuple[float, list[Any]]:
    """Search a position; return the seconds and the result."""
    game = Kalamala("kalamala")
    engine = KalamalaEngine(game, TABLE_BITS)
    state = game.parse_state(position)
    began = time.perf_counter()
    found = engine.search(state, SearchLimits(nodes=nodes))
    took = time.perf_counter() - began
    return took, json.loads(json.dumps(astuple(found)))


def in_plain_python(nodes: int) -> dict[str, tuple[float, list[Any]]]:
    """Search all positions in a child process without numba; return name -> seconds and result."""
    done = subprocess.run(
        [sys.executable, __file__, "--plain", str(nodes)],
        env={**os.environ, PURE_VARIABLE: "1", "PYTHONPATH": os.fspath(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    return {name: (took, found) for name, (took, found) in json.loads(done.stdout).items()}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--nodes", type=int, default=NODES)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--plain", type=int, metavar="NODES", help="(for the child process)")
    options = parser.parse_args(arguments)
    KalamalaEngine.warm_up()
    if options.plain is not None:
        print(json.dumps({name: one_search(text, options.plain) for name, text in POSITIONS.items()}))
        return 0
    if not COMPILED:
        print("numba is needed to compare with: install the extra [strong]", file=sys.stderr)
        return 2
    plain = in_plain_python(COMPARED_NODES)
    rows = []
    for name, text in POSITIONS.items():
        compared = [one_search(text, COMPARED_NODES) for _ in range(options.repeat)]
        runs = [one_search(text, options.nodes) for _ in range(options.repeat)]
        took, found = median(took for took, _ in runs), runs[0][1]
        plain_took, plain_found = plain[name]
        rows.append(
            {
                "position": name,
                "nodes": found[3],
                "depth": found[2],
                "seconds": took,
                "nodes_per_s": found[3] / took,
                "plain_nodes": plain_found[3],
                "plain_seconds": plain_took,
                "plain_nodes_per_s": plain_found[3] / plain_took,
                "ratio": plain_took / median(took for took, _ in compared),
                "same": all(one == plain_found for _, one in compared),
            }
        )
    if options.json:
        print(json.dumps(rows))
    else:
        print(
            f"Kalamala search {execution_mode()}, table of {2**TABLE_BITS} entries, "
            f"median of {options.repeat}"
        )
        for row in rows:
            print(
                f"{row['position']:<15} {row['nodes']:>9} nodes, depth {row['depth']:>2}: "
                f"{row['seconds']:.2f} s, {row['nodes_per_s'] / 1e6:.2f} million/s; "
                f"plain {row['plain_nodes']} nodes: {row['plain_seconds']:.2f} s, "
                f"{row['plain_nodes_per_s'] / 1e3:.1f} thousand/s"
            )
        least = min(float(row["ratio"]) for row in rows)
        print(
            "same nodes, compiled against plain: "
            + ", ".join(f"{row['ratio']:.0f}" for row in rows)
            + " times"
        )
        print(
            f"target {TARGET_RATIO:.0f} times, {'reached' if least >= TARGET_RATIO else 'missed'}; ", end=""
        )
        print("results are the same" if all(row["same"] for row in rows) else "RESULTS DIFFER")
    return 0 if all(row["same"] for row in rows) else 1


if __name__ == "__main__":
    raise SystemExit(main())
