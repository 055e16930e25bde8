"""Cases of a parametrized test in the tier ``slow``."""

import pytest


def slow(*values: object) -> list[object]:
    """Return values for ``parametrize`` as cases of the slow tier; a tuple is for several arguments."""
    return [
        pytest.param(*(value if isinstance(value, tuple) else (value,)), marks=pytest.mark.slow)
        for value in values
    ]
