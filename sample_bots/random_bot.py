"""The random bot: any legal move with the same probability, a swap included.

Usage: ``python -m sample_bots.random_bot [SEED]``.  With the same seed the moves are the same in every run,
if the opponent's moves are.  Without a seed the system provides one.
"""

import random
import sys
from typing import Any

from referee.games.catalog import AnyGame
from sample_bots.conversation import Choose, run
from sample_bots.options import BadOptionError, parse_seed


def random_mover(seed: int | None) -> Choose:
    """Return a player of random moves; None is a seed from the system."""
    generator = random.Random(seed)

    def choose(game: AnyGame, state: Any) -> Any:
        return generator.choice(game.legal_moves(state))

    return choose


def main(arguments: list[str]) -> int:
    """Play one game; return the exit status."""
    try:
        seed = parse_seed(" ".join(arguments)) if arguments else None
    except BadOptionError as error:
        print(error, file=sys.stderr)
        return 2
    return run(random_mover(seed))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
