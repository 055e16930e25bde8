"""Slow tests begin early, and none is lost on the way."""

from types import SimpleNamespace
from typing import Any

import pytest

from tests.spreading import COUNTS_FILES, spread


def item(module: str, number: int, *, slow: bool = False) -> Any:
    return SimpleNamespace(
        path=module,
        nodeid=f"{module}::test_{number}",
        get_closest_marker=lambda name: name if slow and name == "slow" else None,
    )


def slow_module(module: str, tests: int) -> list[Any]:
    return [item(module, number, slow=True) for number in range(tests)]


QUICK = [item("quick.py", number) for number in range(20)]


@pytest.mark.parametrize("stretches", [1, 2, 3, 7])
@pytest.mark.parametrize("slow", [0, 1, 5, 30])
def test_each_is_there_once(slow: int, stretches: int) -> None:
    given = [*QUICK, *slow_module("slow.py", slow)]
    found = spread(given, stretches)
    assert sorted(map(id, found)) == sorted(map(id, given))


def test_slow_modules_take_turns_at_the_beginnings() -> None:
    one, two, three = slow_module("one.py", 2), slow_module("two.py", 1), slow_module("three.py", 3)
    found = spread([*one, *QUICK, *two, *three], 2)
    assert found == [*one, *three, *QUICK[:8], *two, *QUICK[8:]]
    assert found[13:14] == two


@pytest.mark.parametrize("stretches", [1, 2, 3])
def test_what_counts_files_comes_last(stretches: int) -> None:
    soak = item(COUNTS_FILES, 0, slow=True)
    assert spread([*QUICK[:7], soak, *QUICK[7:]], stretches) == [*QUICK, soak]
