"""Benchmark of the strong player's Kalah search: nodes a second, compiled and in plain Python.

A node is one sowing.  Each position is searched to a limit of nodes with the settings of a game, so that both
ways of running give the same results; the table is emptied before.  The figures are medians over positions
from the middle of games at manchester, of several runs each.  Plain Python runs in a process of its own.

Seconds are CPU time, so that other work on the machine has less influence.

The exit status is 0 whether or not the targets are reached, 1 if the two ways differ.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any

from referee.games.catalog import parse_game
from sample_bots.options import PURE_VARIABLE
from sample_bots.strong.compiled import COMPILED, execution_mode
from sample_bots.strong.engine import SearchLimits
from sample_bots.strong.kalah.engine import KalahEngine

TARGET_NODES_S = 8_000_000
"""Target of the compiled search on one core of a laptop, in nodes a second."""
TARGET_RATIO = 8.0
"""Target of the ratio of compiled to plain Python, which depends less on the machine."""

GAME = "manchester"
POSITIONS = (
    "13,13,4,1,0,3,14,4,2,0,1,14,5,15,4,5;North",
    "13,2,14,5,15,1,0,6,15,1,1,5,5,7,2,6;South",
    "6,1,2,3,2,2,2,30,6,5,17,1,2,3,2,14;South",
    "14,3,0,14,0,0,6,15,7,0,6,2,0,20,5,6;South",
    "15,0,1,13,1,4,3,6,1,4,8,15,1,0,17,9;North",
    "2,2,2,3,17,6,1,14,1,14,2,4,1,18,6,5;North",
)
"""Positions after 8 to 24 random moves."""
NODES = 4_000_000
PLAIN_NODES = 100_000
"""Nodes for the comparison of both; a position takes plain Python about a second."""


def search_positions(nodes: int, repeat: int) -> list[dict[str, Any]]:
    """Search every position in this process; return the results and the median nodes a second."""
    game = parse_game(GAME)
    engine = KalahEngine(game)  # type: ignore[arg-type]
    KalahEngine.warm_up()
    results = []
    for text in POSITIONS:
        state = game.parse_state(text)
        rates = []
        for _ in range(repeat):
            engine.clear()
            began = time.process_time()
            found = engine.search(state, SearchLimits(nodes=nodes))
            rates.append(found.nodes / (time.process_time() - began))
        same = [found.move, found.value, found.depth, found.nodes, list(found.line)]
        results.append({"found": same, "nodes": found.nodes, "nodes_s": median(rates)})
    return results


def in_plain_python(nodes: int) -> list[dict[str, Any]]:
    """Search every position in a child process without numba."""
    done = subprocess.run(
        [sys.executable, __file__, "--child", str(nodes)],
        env={
            **os.environ,
            PURE_VARIABLE: "1",
            "PYTHONPATH": os.fspath(Path(__file__).resolve().parent.parent),
        },
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    results: list[dict[str, Any]] = json.loads(done.stdout)
    return results


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--nodes", type=int, default=NODES, help="for each position, compiled")
    parser.add_argument(
        "--plain-nodes", type=int, default=PLAIN_NODES, help="for each position, in plain Python"
    )
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--child", type=int, metavar="NODES", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child is not None:
        print(json.dumps(search_positions(arguments.child, 1)))
        return 0
    if not COMPILED:
        print(f"kernels run {execution_mode()}: nothing to compare", file=sys.stderr)
        return 1
    fast = search_positions(arguments.nodes, arguments.repeat)
    short = search_positions(arguments.plain_nodes, 1)
    plain = in_plain_python(arguments.plain_nodes)
    same = [one["found"] for one in short] == [one["found"] for one in plain]
    rate = median(one["nodes_s"] for one in fast)
    plain_rate = median(one["nodes_s"] for one in plain)
    ratio = rate / plain_rate
    if arguments.json:
        figures = {"nodes_s": rate, "plain_nodes_s": plain_rate, "ratio": ratio, "same": same}
        print(json.dumps({**figures, "positions": fast}))
    else:
        for text, one in zip(POSITIONS, fast, strict=True):
            million, seconds = one["nodes_s"] / 1e6, one["nodes"] / one["nodes_s"]
            print(
                f"{text}: {one['nodes']:,} nodes in {seconds:.2f} s, {million:.1f} M/s,"
                f" depth {one['found'][2]}"
            )
        verdict = "reached" if rate >= TARGET_NODES_S else "missed"
        print(
            f"kalah search {execution_mode()}: {rate / 1e6:.1f} M nodes/s;"
            f" target {TARGET_NODES_S / 1e6:.0f} M, {verdict}"
        )
        print(f"in plain Python: {plain_rate / 1e6:.2f} M nodes/s")
        verdict = "reached" if ratio >= TARGET_RATIO else "missed"
        print(f"ratio {ratio:.0f}; target {TARGET_RATIO:.0f}, {verdict}")
        print(f"both find the same in {arguments.plain_nodes:,} nodes: {'yes' if same else 'NO'}")
    return 0 if same else 1


if __name__ == "__main__":
    raise SystemExit(main())
