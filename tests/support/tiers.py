"""Cases of a parametrized test in the tier ``slow``."""

from collections.abc import Collection

import pytest


def slow(*values: object) -> list[object]:
    """Return values for ``parametrize`` as cases of the slow tier; a tuple is for several arguments."""
    return [
        pytest.param(*(value if isinstance(value, tuple) else (value,)), marks=pytest.mark.slow)
        for value in values
    ]


def slow_but(quick: Collection[str], values: Collection[str]) -> list[object]:
    """Return values for ``parametrize``, of which all but the quick ones are cases of the slow tier."""
    assert set(quick) <= set(values)
    return [value if value in quick else pytest.param(value, marks=pytest.mark.slow) for value in values]
