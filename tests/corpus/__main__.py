"""Plays many confined games between bots of the corpus and counts faults.

    python -m tests.corpus [--games 400] [--at-once 2] [--user] [--seed 1]

A quarter of the games is against reference bots. All limits are the defaults of ``kalarena play``, and the
bots are confined. With ``--user``, games are played as an ordinary user (root starts them). The exit status
is 0 if no game ended by a fault.
"""

import argparse
import random
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

from tests.corpus.build import built_corpus, missing_tools
from tests.corpus.games import Outcome, Table, playing
from tests.corpus.programs import PROGRAMS

REFERENCE_BOTS = ("first_legal", "random:1", "random:2", "greedy", "minimax:3")


def pairings(names: list[str], games: int, seed: int) -> Iterator[tuple[str, str]]:
    """Yield pairs in which each bot occurs about as often as any other, and on both sides."""
    rng = random.Random(seed)
    order: list[str] = []
    for number in range(games):
        while len(order) < 2:
            order += rng.sample(names, len(names))
        first, second = order.pop(), order.pop()
        if number % 4 == 3 or first == second:
            order.append(second)
            second = rng.choice(REFERENCE_BOTS)
        yield (first, second) if rng.random() < 0.5 else (second, first)


def play_all(pairs: list[tuple[str, str]], at_once: int, *, ordinary_user: bool) -> list[Outcome]:
    """Play games and print those that end by a fault."""
    corpus, free, outcomes = built_corpus(), threading.local(), []
    with ExitStack() as stack:
        tables = [stack.enter_context(playing(corpus, ordinary_user=ordinary_user)) for _ in range(at_once)]

        def sit_down() -> None:
            free.table = tables.pop()

        def play(pair: tuple[str, str]) -> Outcome:
            table: Table = free.table
            return table.play(*pair, "--sandbox", "required")

        with ThreadPoolExecutor(at_once, initializer=sit_down) as pool:
            for number, outcome in enumerate(pool.map(play, pairs), 1):
                outcomes.append(outcome)
                if outcome.reason != "score":
                    print(f"[{number}] {outcome}\n", flush=True)
                elif number % 50 == 0:
                    print(f"[{number}] played", flush=True)
    return outcomes


def print_table(outcomes: list[Outcome]) -> None:
    """Print how the games ended: in total, and by the bot that committed a fault."""
    ends = Counter((each.reason, each.fault) for each in outcomes)
    print(f"{'reason':<14}{'fault':<18}{'games':>6}")
    for (reason, fault), count in ends.most_common():
        print(f"{reason:<14}{fault:<18}{count:>6}")
    played = Counter(bot for each in outcomes for bot in each.bots)
    lost = Counter(
        (each.loser or " - ".join(each.bots), each.fault) for each in outcomes if each.reason != "score"
    )
    if lost:
        print(f"\n{'bot':<34}{'fault':<18}{'faults':>6}{'games':>6}")
        for (bot, fault), count in sorted(lost.items()):
            print(f"{bot:<34}{fault:<18}{count:>6}{played[bot]:>6}")


def main() -> None:
    """Read the command line, play, print the table, and exit with 1 if there was a fault."""
    parser = argparse.ArgumentParser(prog="python -m tests.corpus", description=__doc__)
    parser.add_argument("--games", type=int, default=400)
    parser.add_argument("--at-once", type=int, default=2)
    parser.add_argument("--user", action="store_true", help="play as an ordinary user")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    missing = {name: tools for name in PROGRAMS if (tools := missing_tools(name))}
    for name, tools in missing.items():
        print(f"{name} is left out: {', '.join(tools)} not found on PATH")
    names = [name for name in PROGRAMS if name not in missing]
    began = time.monotonic()
    outcomes = play_all(
        list(pairings(names, options.games, options.seed)), options.at_once, ordinary_user=options.user
    )
    print(f"{len(outcomes)} games in {time.monotonic() - began:.0f} s\n")
    print_table(outcomes)
    sys.exit(any(each.reason != "score" for each in outcomes))


if __name__ == "__main__":
    main()
