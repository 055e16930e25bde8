"""Command that makes first_turns.json by long searches of the first turns of boards with the pie rule.

Usage: ``python -m sample_bots.strong.kalah.make_first_turns [--nodes N] [--table-bits N] [SPEC ...]``.  The
named variants, by default those of USUAL, are searched again; all others in the file stay.  Each turn is
searched with N nodes, or fewer if its value is proven before.  The value is the mean of the last two depths,
because values go up and down with the parity of the depth.
"""

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

from referee.games.catalog import parse_game
from referee.games.kalah import Kalah, KalahState, Phase
from referee.games.spec import SpecError
from sample_bots.strong.compiled import execution_mode
from sample_bots.strong.engine import SearchLimits
from sample_bots.strong.kalah.cell_board import UNIT
from sample_bots.strong.kalah.first_turns import FILE, first_turns, variant_key
from sample_bots.strong.kalah.searcher import DEFAULT_TABLE_BITS, KalahSearcher, LimitMonitor

USUAL = (
    "manchester",
    *(
        f"manchester({pits},{seeds})"
        for pits in (7, 6, 5, 4)
        for seeds in (3, 4, 5, 6, 7)
        if (pits, seeds) != (7, 7)
    ),
    *(f"bga(6,{seeds})+pie" for seeds in (3, 4, 5, 6)),
)
"""The course's rules on boards of 4 to 7 pits, and the boards of Board Game Arena with the pie rule."""
NODES = 10_000_000
"""Default number of nodes for each first turn."""
DEEPEST = 100
COMMAND = "python -m sample_bots.strong.kalah.make_first_turns"


def search_value(searcher: KalahSearcher, game: Kalah, state: KalahState, nodes: int) -> dict[str, Any]:
    """Return the opener's value of a state after the first turn by a long search, and data of the search."""
    if (outcome := game.outcome(state)) is not None:
        return {"value": outcome.score[0] - outcome.score[1], "depth": 0, "nodes": 0, "proven": True}
    searcher.clear()
    monitor = LimitMonitor(SearchLimits(nodes=nodes), time.monotonic)
    values: list[int] = []
    pit = 0
    proven = False
    for depth in range(1, DEEPEST):
        result = searcher.search(state, depth, monitor, pit)
        if not result.finished:
            break
        pit, proven = result.pit, result.proven
        values.append(result.value)
        if proven:
            break
    last_two = values[-1:] * 2 if proven else values[-2:]
    # The search's values are the second player's, who is to move.
    value = -sum(last_two) / len(last_two) / UNIT if last_two else 0.0
    return {"value": value or 0.0, "depth": len(values), "nodes": monitor.nodes, "proven": proven}


def search_first_turns(game: Kalah, nodes: int, table_bits: int) -> list[dict[str, Any]]:
    """Return every first turn of a variant with its value, in the order of the pits."""
    searcher = KalahSearcher(game, table_bits)
    return [
        {
            "turn": list(turn.moves),
            "board": list(turn.state.board),
            **search_value(searcher, game, turn.state, nodes),
        }
        for turn in first_turns(game, game.initial_state())
        if turn.state.phase is Phase.REPLY
    ]


def text_of(contents: dict[str, Any]) -> str:
    """Return the file's text, with a line for each turn, so that differences are readable."""
    variants = []
    for key, turns in contents["variants"].items():
        lines = ",\n".join(f"      {json.dumps(turn)}" for turn in turns)
        variants.append(f"    {json.dumps(key)}: [\n{lines}\n    ]")
    hows = ",\n".join(f"    {json.dumps(key)}: {json.dumps(text)}" for key, text in contents["how"].items())
    return f'{{\n  "how": {{\n{hows}\n  }},\n  "variants": {{\n' + ",\n".join(variants) + "\n  }\n}\n"


def main(arguments: list[str]) -> int:
    """Search the variants and write the file; return the exit status."""
    parser = argparse.ArgumentParser(
        prog=COMMAND, description="Search every first turn of variants with the pie rule."
    )
    parser.add_argument("--nodes", type=int, default=NODES, help=f"for each turn; default {NODES}")
    parser.add_argument("--table-bits", type=int, default=DEFAULT_TABLE_BITS)
    parser.add_argument("specs", nargs="*", metavar="SPEC", default=USUAL)
    given = parser.parse_args(arguments)
    try:
        games = [parse_game(spec) for spec in given.specs]
    except SpecError as error:
        print(error, file=sys.stderr)
        return 2
    path = Path(__file__).with_name(FILE)
    for game in games:
        if not isinstance(game, Kalah) or not game.pie:
            print(f"{game.name}: only Kalah with +pie has swaps", file=sys.stderr)
            return 2
    for game in games:
        assert isinstance(game, Kalah)
        began = time.perf_counter()
        turns = search_first_turns(game, given.nodes, given.table_bits)
        contents = json.loads(path.read_text(encoding="utf-8"))
        key = variant_key(game)
        contents["variants"][key] = turns
        contents["how"][key] = (
            f"{COMMAND} --nodes {given.nodes} --table-bits {given.table_bits} '{game.name}'"
        )
        path.write_text(text_of(contents), encoding="utf-8")
        values = " ".join(f"{'-'.join(map(str, one['turn']))}:{one['value']:g}" for one in turns)
        print(f"{game.name} in {time.perf_counter() - began:.1f} s {execution_mode()}: {values}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
