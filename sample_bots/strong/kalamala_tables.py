"""The tables that all Kalamala searches of a process share."""

from functools import cache

from sample_bots.strong.compiled import Array, zeros
from sample_bots.strong.kalamala_geometry import CLASS_LENGTHS, CLASS_STARTS, EDGE_DISTANCES, FILLINGS
from sample_bots.strong.kalamala_lines import copy_effects, fill_effects
from sample_bots.strong.kalamala_memory import MAX_EFFECTS, SWAPPED, TABLES_SIZE
from sample_bots.strong.kalamala_value import fill_terms

MOST_EFFECTS = 256
"""Room for those of one line."""


@cache
def search_tables() -> Array:
    """The tables as kalamala_memory.py lays them out.  Not to be changed."""
    tables = zeros(TABLES_SIZE, "int64")
    found = zeros(MOST_EFFECTS, "int64")
    end = 0
    first_of_length: dict[int, int] = {}
    for line_class, (length, first) in enumerate(zip(CLASS_LENGTHS, CLASS_STARTS, strict=True)):
        same = first_of_length.setdefault(length, first)
        if same == first:
            end = int(fill_effects(tables, found, length, first, end))
        else:
            copy_effects(tables, first, same, length)
        fill_terms(tables, first, length, line_class if line_class < EDGE_DISTANCES else -1)
    tables[SWAPPED + FILLINGS - 1] = FILLINGS - 1
    assert end <= MAX_EFFECTS
    return tables
