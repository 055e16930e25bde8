"""Processes give way from zero on, however they were started."""

import os
import subprocess
import sys

import pytest

HERE = "import os; print(os.getpriority(os.PRIO_PROCESS, 0))"


def niceness(start: int, give: int) -> int:
    code = (
        f"import os; os.setpriority(os.PRIO_PROCESS, 0, {start})\n"
        f"from tournaments.processes.process_settings import lower_priority; lower_priority({give})\n{HERE}"
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


GOES_FIRST = """
import os
from tournaments.processes.process_settings import AUTOGROUP, raised_priority
def tell():
    session = AUTOGROUP.read_text().split()[-1] if AUTOGROUP.exists() else "-"
    print(os.getpriority(os.PRIO_PROCESS, 0), session)
os.setpriority(os.PRIO_PROCESS, 0, START)
DROP
tell()
with raised_priority(-10):
    tell()
tell()
"""


def program(start: int, drop: str) -> str:
    return GOES_FIRST.replace("START", str(start)).replace("DROP", drop)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root goes before others")
@pytest.mark.parametrize(("start", "first"), [(0, -10), (-12, -12)])
def test_who_goes_first_does_so_with_its_session_and_no_longer_than_it_says(start: int, first: int) -> None:
    done = subprocess.run(
        [sys.executable, "-c", program(start, drop="")],
        capture_output=True,
        text=True,
        check=True,
        start_new_session=True,  # a session's value would be that of these tests, too
    )
    before, meanwhile, after = (line.split() for line in done.stdout.splitlines())
    assert before == after == [str(start), before[1]]
    assert meanwhile == [str(first), "-10" if before[1] != "-" else "-"]


@pytest.mark.skipif(os.geteuid() != 0, reason="drops privileges")
def test_whoever_may_not_go_first_goes_on_as_before() -> None:
    done = subprocess.run(
        [sys.executable, "-c", program(3, drop="os.setgid(65534); os.setuid(65534)")],
        capture_output=True,
        text=True,
        check=True,
        start_new_session=True,
    )
    before, meanwhile, after = done.stdout.splitlines()
    assert before == meanwhile == after
