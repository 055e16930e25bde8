"""Runs a sample bot by the path of this file: ``python -I -S .../sample_bots/launch.py MODULE [OPTION]``.

Why not ``python -m``: Python would look for the packages in the current directory, or needs the slow
start-up that finds the installed ones.  From its own path a bot starts in any directory, installed or
not, and sees nothing else that is installed.
"""

import sys
from importlib import import_module
from os.path import abspath, dirname

if __name__ == "__main__":
    # The folder that this package lies in also holds the two that it imports.  At the end of the path:
    # nothing that is installed there may hide a module of the standard library.
    sys.path.append(dirname(dirname(abspath(__file__))))  # noqa: PTH100, PTH120 - pathlib is slow to import
    sys.exit(import_module(f"sample_bots.{sys.argv[1]}").main(sys.argv[2:]))
