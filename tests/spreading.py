"""In which order tests begin: what takes long must not begin last.

xdist gives each worker a stretch of the list, and whoever is done takes from the end of another's stretch.
So what is slow stands at the beginning of the stretches, whose modules take turns.
"""

from collections.abc import Sequence
from itertools import groupby, islice

import pytest

COUNTS_FILES = "tests/test_soak.py"
"""It counts the files in directories that all share: when others begin, some appear there."""


def spread(items: Sequence[pytest.Item], stretches: int) -> list[pytest.Item]:
    """All of them, in as many stretches of one length; some slow modules are at the beginning of each."""
    early = [item for item in items if _begins_early(item)]
    last = [item for item in items if _counts_files(item)]
    others = iter([item for item in items if not _begins_early(item) and not _counts_files(item)])
    heads: list[list[pytest.Item]] = [[] for _ in range(stretches)]
    for number, (_, module) in enumerate(groupby(early, key=lambda item: item.path)):
        heads[number % stretches] += module
    ordered: list[pytest.Item] = []
    for number, head in enumerate(heads):
        length = (len(items) - len(ordered)) // (stretches - number)
        ordered += [*head, *islice(others, max(0, length - len(head)))]
    return [*ordered, *others, *last]


def _begins_early(item: pytest.Item) -> bool:
    return item.get_closest_marker("slow") is not None and not _counts_files(item)


def _counts_files(item: pytest.Item) -> bool:
    return item.nodeid.startswith(COUNTS_FILES)
