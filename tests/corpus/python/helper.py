"""The helper of helper_bot.py: answers each line of seeds with a hole."""

import sys

import kalah

for line in sys.stdin:
    print(kalah.best_hole([int(seeds) for seeds in line.split()], []), flush=True)
