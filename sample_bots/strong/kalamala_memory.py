"""Where everything lies in the three arrays that a Kalamala search works on.

One array of numbers instead of many: a kernel that calls itself hands over each array anew, which costs time.
"""

from sample_bots.strong.kalamala_geometry import FILLINGS, LINE_COUNT, SQUARE_COUNT

MAX_PLY = 64
"""Plies that a line can be long, extensions included; a deeper one is cut off there."""
WIDTH = 512
"""Room for the turns of one position.  103 is the most seen in games (the rules' text, section 4)."""
MAX_PAST = 5_000
"""Rule 8: boards of the game that a search can keep: no game is longer (the rule book's MAX_CAP)."""

# tables: the same for all positions; filled by kalamala_lines.py and kalamala_value.py.
EFFECTS_OF = 0
"""By filling, White being the mover: start of its effects << 16 | removals of Black's stones << 8 | all
effects."""
SWAPPED = EFFECTS_OF + FILLINGS
"""By filling: the one with the colours exchanged."""
TERMS = SWAPPED + FILLINGS
"""By filling: what the line adds to a position's sum, see kalamala_value.py."""
EFFECTS = TERMS + FILLINGS
"""The effects, as codes of places on the line, see kalamala_lines.py."""
MAX_EFFECTS = 1 << 17
TABLES_SIZE = EFFECTS + MAX_EFFECTS

# memory: the position, and the search.
NODES = 0
NODE_LIMIT = 1
STOPPED = 2
"""Anything but 0 ends the search at once; another thread may write it."""
ROOT_TURNS = 3
"""Turns that the game has had before the search."""
CAP = 4
"""The house rule: turns after which the stones left decide."""
KO = 5
"""Rule 8: one of the KO_ numbers."""
TABLE_MASK = 6
"""Buckets of the transposition table, less one."""
AGE = 7
"""Which search this is, modulo 32."""
FEATURES = 8
"""Parts of the search, as bits; tests leave some out."""
ROOT_COUNT = 9
"""Legal turns at the root."""
ROOT_VALUE = 10
"""Of the best turn so far in this iteration."""
PAST_COUNT = 11
"""Boards of the game that may not come again."""
STAMP = 12
"""Counts calls of the turn generator."""

KO_NONE, KO_BASIC, KO_SUPERKO = 0, 1, 2
USE_TABLE, USE_QUIESCENCE, USE_PRUNING = 1, 2, 4
ALL_FEATURES = USE_TABLE | USE_QUIESCENCE | USE_PRUNING

LINES = 16
"""The filling of each line."""
CELLS = LINES + LINE_COUNT + 1
"""By square: 0 empty, 1 White, 2 Black."""
SEEN = CELLS + SQUARE_COUNT
"""By square: the last call of the turn generator that found a stone removed there."""
SUMS = SEEN + SQUARE_COUNT
"""By ply: the lines' terms together."""
KEYS = SUMS + MAX_PLY + 2
"""By ply: the hash of the board."""
RESERVES = KEYS + MAX_PLY + 2
"""By ply and colour: unplaced stones."""
PAST_FROM = RESERVES + 2 * (MAX_PLY + 2)
"""By ply: the first board of PAST that may not come again."""
PASSED = PAST_FROM + MAX_PLY + 2
"""By ply: 1 if the search passed before, which it does not do twice in a row."""
KILLERS = PASSED + MAX_PLY + 2
"""Two by ply."""
LINE_LENGTHS = KILLERS + 2 * (MAX_PLY + 2)
"""By ply: how many turns of the best line are known."""
BEST_LINES = LINE_LENGTHS + MAX_PLY + 2
"""By ply: these turns."""
FILTER_SIZE = 1024
FILTER = BEST_LINES + (MAX_PLY + 2) * MAX_PLY
"""By the lowest bits of a board's hash: how many such boards are in PAST."""
HISTORY_WIDTH = SQUARE_COUNT + 1
HISTORY_SIZE = 2 * 2 * HISTORY_WIDTH * HISTORY_WIDTH
HISTORY = FILTER + FILTER_SIZE
"""By side, own or other stones, square left and square entered: how often such a turn was best."""
TURNS = HISTORY + HISTORY_SIZE
"""By ply: the turns of the position there, as codes."""
SCORES = TURNS + (MAX_PLY + 2) * WIDTH
"""By ply: what the turns are sorted by."""
PAST = SCORES + (MAX_PLY + 2) * WIDTH
"""Hashes of the boards that may not come again: the game's, then the line's."""
MEMORY_SIZE = PAST + MAX_PAST + MAX_PLY + 2

# table: two entries a bucket, each a key and what is known.
BUCKET = 4
