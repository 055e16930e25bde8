"""Settings of the tests of statistics."""

from collections.abc import Iterator

import pytest
from threadpoolctl import threadpool_limits


@pytest.fixture(autouse=True, scope="session")
def one_thread() -> Iterator[None]:
    """Let numpy use one thread, as the commands do: more threads make small problems slower."""
    with threadpool_limits(1):
        yield
