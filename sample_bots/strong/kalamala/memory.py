"""Layout of the three arrays that the kernels of Kalamala work on: ``tables``, ``memory`` and ``table``.

Each constant without another comment is an index.  There are few arrays, since a kernel that calls itself
passes each array anew, which takes time.
"""

from sample_bots.strong.kalamala.geometry import FILLINGS, LINE_COUNT, SQUARE_COUNT

MAX_PLY = 64
"""Maximum length of a line in plies, extensions included."""
WIDTH = 512
"""Space for the turns of one position.  The largest number in games was 103 (the rules' text, section 4)."""
MAX_PAST = 5_000
"""Space for the earlier boards of a game, for rule 8; no game is longer (the rule book's MAX_CAP)."""

# tables: the same for all positions; filled by lines.py and evaluation.py.
EFFECTS_OF = 0
"""Filling, with White as the mover -> start of its effects << 16 | number of captures << 8 | number of
effects."""
SWAPPED = EFFECTS_OF + FILLINGS
"""Filling -> filling with the colours exchanged."""
TERMS = SWAPPED + FILLINGS
"""Filling -> the line's term of a position's sum, see evaluation.py."""
EFFECTS = TERMS + FILLINGS
"""Effects, see lines.py."""
MAX_EFFECTS = 1 << 17
TABLES_SIZE = EFFECTS + MAX_EFFECTS

# memory: the position and the state of the search.
NODES = 0
NODE_LIMIT = 1
STOPPED = 2
"""Not 0 if the search has to stop; another thread may write it."""
ROOT_TURNS = 3
"""Turns of the game before the search."""
CAP = 4
"""House rule: number of turns after which the stones left decide."""
KO = 5
"""Variant of rule 8, one of the KO_ numbers."""
TABLE_MASK = 6
"""Number of buckets of the transposition table less one."""
AGE = 7
"""Number of the search, modulo 32."""
FEATURES = 8
"""Enabled parts of the search, as bits; tests disable some."""
ROOT_COUNT = 9
"""Number of legal turns at the root."""
ROOT_VALUE = 10
"""Value of the best turn so far in this iteration."""
PAST_COUNT = 11
"""Number of boards of the game that must not be repeated."""
STAMP = 12
"""Number of calls of the turn generator."""

KO_NONE, KO_BASIC, KO_SUPERKO = 0, 1, 2
USE_TABLE, USE_QUIESCENCE, USE_PRUNING = 1, 2, 4
ALL_FEATURES = USE_TABLE | USE_QUIESCENCE | USE_PRUNING

LINES = 16
"""By line: its filling."""
CELLS = LINES + LINE_COUNT + 1
"""By square: 0 empty, 1 White, 2 Black."""
SEEN = CELLS + SQUARE_COUNT
"""By square: the last call of the turn generator with a removal there."""
SUMS = SEEN + SQUARE_COUNT
"""By ply: sum of the lines' terms."""
KEYS = SUMS + MAX_PLY + 2
"""By ply: hash of the board."""
RESERVES = KEYS + MAX_PLY + 2
"""By ply and colour: number of unplaced stones."""
PAST_FROM = RESERVES + 2 * (MAX_PLY + 2)
"""By ply: first board of PAST that must not be repeated."""
PASSED = PAST_FROM + MAX_PLY + 2
"""By ply: 1 after a null move, since there are never two in a row."""
KILLERS = PASSED + MAX_PLY + 2
"""By ply: two killer turns."""
LINE_LENGTHS = KILLERS + 2 * (MAX_PLY + 2)
"""By ply: length of the best line."""
BEST_LINES = LINE_LENGTHS + MAX_PLY + 2
"""By ply: turns of the best line."""
FILTER_SIZE = 1024
FILTER = BEST_LINES + (MAX_PLY + 2) * MAX_PLY
"""By the lowest bits of a hash: number of such boards in PAST."""
HISTORY_WIDTH = SQUARE_COUNT + 1
HISTORY_SIZE = 2 * 2 * HISTORY_WIDTH * HISTORY_WIDTH
HISTORY = FILTER + FILTER_SIZE
"""By side, own or other stones, square left and square entered: history score of such a turn."""
TURNS = HISTORY + HISTORY_SIZE
"""By ply: codes of the position's turns."""
SCORES = TURNS + (MAX_PLY + 2) * WIDTH
"""By ply: scores of the turns."""
PAST = SCORES + (MAX_PLY + 2) * WIDTH
"""Hashes of the boards that must not be repeated: the game's, then the line's."""
MEMORY_SIZE = PAST + MAX_PAST + MAX_PLY + 2

# table: two entries a bucket, each a key and a packed number.
BUCKET = 4
"""Numbers in a bucket."""
