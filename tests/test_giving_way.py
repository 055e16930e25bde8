"""Processes give way from zero on, however they were started."""

import os
import subprocess
import sys

import pytest

HERE = "import os; print(os.getpriority(os.PRIO_PROCESS, 0))"


def niceness(start: int, give: int) -> int:
    code = (
        f"import os; os.setpriority(os.PRIO_PROCESS, 0, {start})\n"
        f"from tournaments.giving_way import give_way; give_way({give})\n{HERE}"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return int(done.stdout)


@pytest.mark.parametrize(("start", "give", "end"), [(0, 5, 5), (3, 5, 8), (18, 5, 19), (4, 0, 4)])
def test_it_gives_way_so_much_more(start: int, give: int, end: int) -> None:
    if os.getpriority(os.PRIO_PROCESS, 0) > 0:
        pytest.skip("these tests give way themselves")
    assert niceness(start, give) == end


@pytest.mark.skipif(os.geteuid() != 0, reason="only root goes before others")
def test_what_goes_first_does_not_hand_that_down() -> None:
    assert niceness(-10, 5) == 5
