"""Main program that runs a sample bot: ``python -I -S .../sample_bots/launch.py MODULE [OPTION]``.

``python -m`` would search the packages in the current directory, or need the slow start that finds installed
packages.  Started by its path, this file works in any directory, whether Kalarena is installed or not, and
imports nothing else that is installed.

``first_legal.py`` is a file for students, which plays only Kalah from its start position and imports no rule
book.  In other games ``first_move.py``, which uses the rule book, plays instead.
"""

import os
import sys

GAME_VARIABLE = "KALARENA_GAME"
OPENING_VARIABLE = "KALARENA_OPENING"
"""Environment variables of referee.games.catalog, repeated here because that module loads all rule books."""
KALAH = ("", "manchester", "bga", "kalah")
"""Names of games that first_legal.py plays; the empty one is the default.  A test compares them."""


def is_kalah(spec: str) -> bool:
    """Return whether a spec text names a game for first_legal.py; its options are not parsed."""
    return spec.partition("(")[0].partition("+")[0].strip() in KALAH


def main(module: str, arguments: list[str]) -> int:
    """Run a bot to its end; return the exit status.  Imports only the modules of that bot."""
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
    # The folder of this package also contains the packages that it imports.  It is the last entry of the
    # path, so that no installed module there hides one of the standard library.
    path = os.path  # pathlib is slow to import
    sys.path.append(path.dirname(path.dirname(path.abspath(__file__))))
    sys.exit(main(sys.argv[1], sys.argv[2:]))
