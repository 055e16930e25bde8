"""Runs a sample bot by the path of this file: ``python -I -S .../sample_bots/launch.py MODULE [OPTION]``.

Why not ``python -m``: Python would look for the packages in the current directory, or needs the slow
start-up that finds the installed ones.  From its own path a bot starts in any directory, installed or
not, and sees nothing else that is installed.

``first_legal`` is a file for students that knows Kalah alone, from its start position, and starts before
any rule book could be loaded; in other games a bot that asks the rule book takes its place.
"""

import os
import sys

GAME_VARIABLE = "KALARENA_GAME"
OPENING_VARIABLE = "KALARENA_OPENING"
"""The catalog's, written again: reading them there would load all rule books."""
KALAH = ("", "manchester", "bga", "kalah")
"""Names of games that first_legal.py plays; none is the catalog's default.  A test compares them."""


def is_kalah(spec: str) -> bool:
    """Whether a game's spec text names a game for first_legal.py, without reading the rest of it."""
    return spec.partition("(")[0].partition("+")[0].strip() in KALAH


def main(module: str, arguments: list[str]) -> int:
    """Run a bot to its end; return the exit status.  Imports no more than that bot needs."""
    if module == "first_legal":
        if is_kalah(os.environ.get(GAME_VARIABLE, "")) and not os.environ.get(OPENING_VARIABLE):
            from sample_bots.first_legal import main as play_kalah

            play_kalah()
            return 0
        module = "first_move"
    from importlib import import_module

    status: int = import_module(f"sample_bots.{module}").main(arguments)
    return status


if __name__ == "__main__":
    # The folder that this package lies in also holds the two that it imports.  At the end of the path:
    # nothing that is installed there may hide a module of the standard library.
    path = os.path  # pathlib is slow to import
    sys.path.append(path.dirname(path.dirname(path.abspath(__file__))))
    sys.exit(main(sys.argv[1], sys.argv[2:]))
