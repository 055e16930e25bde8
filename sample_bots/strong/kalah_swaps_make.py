"""Makes kalah_swaps.json: a long search of every first turn of the usual boards with the pie rule.

Usage: ``python -m sample_bots.strong.kalah_swaps_make [--nodes N] [--table-bits N] [SPEC ...]``.  The
variants that are named are searched again, all others in the file stay; without a SPEC it is those of USUAL.
Each turn gets so many nodes, or fewer if its value is proven before.  The value is the mean of the last two
depths, because what a search expects goes up and down with the parity of its depth.
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
from sample_bots.strong.compiled import how
from sample_bots.strong.engine import Budget
from sample_bots.strong.kalah_evaluation import UNIT
from sample_bots.strong.kalah_first_turns import first_turns
from sample_bots.strong.kalah_meter import Meter
from sample_bots.strong.kalah_searcher import DEFAULT_TABLE_BITS, KalahSearcher
from sample_bots.strong.kalah_swaps import FILE, key_of

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
"""The course's rules on boards of 4 to 7 pits, and Board Game Arena's boards with its pie rule."""
NODES = 10_000_000
"""For each first turn, unless told otherwise."""
DEEPEST = 100
COMMAND = "python -m sample_bots.strong.kalah_swaps_make"


def judged(searcher: KalahSearcher, game: Kalah, state: KalahState, nodes: int) -> dict[str, Any]:
    """What a long search says of a state after the first turn: the opener's value, and how it was found."""
    if (outcome := game.outcome(state)) is not None:
        return {"value": outcome.score[0] - outcome.score[1], "depth": 0, "nodes": 0, "proven": True}
    searcher.forget()
    meter = Meter(Budget(nodes=nodes), time.monotonic)
    values: list[int] = []
    pit = 0
    proven = False
    for depth in range(1, DEEPEST):
        looked = searcher.look(state, depth, meter, pit)
        if not looked.finished:
            break
        pit, proven = looked.pit, looked.proven
        values.append(looked.value)
        if proven:
            break
    last_two = values[-1:] * 2 if proven else values[-2:]
    # The search's values are the second player's, who is to move.
    value = -sum(last_two) / len(last_two) / UNIT if last_two else 0.0
    return {"value": value or 0.0, "depth": len(values), "nodes": meter.nodes, "proven": proven}


def judged_turns(game: Kalah, nodes: int, table_bits: int) -> list[dict[str, Any]]:
    """Every first turn of a variant, in the order of the pits."""
    searcher = KalahSearcher(game, table_bits)
    return [
        {
            "turn": list(turn.moves),
            "board": list(turn.state.board),
            **judged(searcher, game, turn.state, nodes),
        }
        for turn in first_turns(game, game.initial_state())
        if turn.state.phase is Phase.REPLY
    ]


def text_of(contents: dict[str, Any]) -> str:
    """The file's text: a line for each turn, so that changes can be read."""
    variants = []
    for key, turns in contents["variants"].items():
        lines = ",\n".join(f"      {json.dumps(turn)}" for turn in turns)
        variants.append(f"    {json.dumps(key)}: [\n{lines}\n    ]")
    hows = ",\n".join(f"    {json.dumps(key)}: {json.dumps(text)}" for key, text in contents["how"].items())
    return f'{{\n  "how": {{\n{hows}\n  }},\n  "variants": {{\n' + ",\n".join(variants) + "\n  }\n}\n"


def main(arguments: list[str]) -> int:
    """Search and write; return the exit status."""
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
        turns = judged_turns(game, given.nodes, given.table_bits)
        contents = json.loads(path.read_text(encoding="utf-8"))
        key = key_of(game)
        contents["variants"][key] = turns
        contents["how"][key] = (
            f"{COMMAND} --nodes {given.nodes} --table-bits {given.table_bits} '{game.name}'"
        )
        path.write_text(text_of(contents), encoding="utf-8")
        values = " ".join(f"{'-'.join(map(str, one['turn']))}:{one['value']:g}" for one in turns)
        print(f"{game.name} in {time.perf_counter() - began:.1f} s {how()}: {values}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
