"""Main program of the bots ``strong`` and ``ladder``, which may use compiled kernels.

Usage: ``launch.py searching [--kernels DIR] strong [SECONDS]``, or ``... ladder LEVEL[:SEED]``.  DIR is the
directory of the kernels' machine code (strong/kernels.py).
"""

import os
import sys
from collections.abc import Callable

from protocol.announced import AnnouncedTime
from referee.adapters.beside import announced_time
from referee.games.catalog import AnyGame
from sample_bots.conversation import Choose, OnTime, run_player
from sample_bots.options import BadOptionError, parse_level, parse_seconds

KERNELS_OPTION = "--kernels"

MakePlayer = Callable[[AnyGame], tuple[Choose, OnTime | None]]
"""Function game -> how the player chooses, and its function for TIME lines."""


def main(arguments: list[str]) -> int:
    """Play one game; return the exit status."""
    if arguments[:1] == [KERNELS_OPTION]:
        from sample_bots.strong.kernels import use

        use(arguments[1])
        arguments = arguments[2:]
    kind, *options = arguments
    try:
        make = _player_maker(kind, ":".join(options), announced_time())
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    status = run_player(make)
    if "numba" in sys.modules:
        # An orderly exit with numba takes longer on a busy machine than the referee waits after END.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
    return status


def _player_maker(kind: str, option: str, announced: AnnouncedTime) -> MakePlayer:
    """Return the function that makes the player of a game.  Raises BadOptionError."""
    if kind == "ladder":
        level, seed = parse_level(option)
        from sample_bots.ladder.levels import ladder_player

        return lambda game: ladder_player(game, level, seed, announced)
    if kind != "strong":
        raise BadOptionError(f"{kind!r} is no searching bot")
    longest_s = parse_seconds(option) if option else None

    def make(game: AnyGame) -> tuple[Choose, OnTime | None]:
        from sample_bots.strong.compiled import execution_mode
        from sample_bots.strong.engines import strong_player

        player = strong_player(game, announced, longest_s=longest_s)
        print(f"strong: search {execution_mode()}", file=sys.stderr)
        return player, player.on_time

    return make


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
