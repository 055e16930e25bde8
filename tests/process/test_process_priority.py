"""Scheduling priority of Kalarena's own processes."""

import os
import subprocess
import sys

import pytest

PRINT = "import os; print(os.getpriority(os.PRIO_PROCESS, 0))"
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root raises priorities, or drops privileges")


def output(program: str) -> list[list[str]]:
    """The words of each line that a program prints, in a session of its own, whose value may change."""
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=True, start_new_session=True)
    return [line.split() for line in done.stdout.splitlines()]


@pytest.mark.parametrize(
    ("start", "lower_by", "end"),
    [(0, 5, 5), (3, 5, 8), (18, 5, 19), pytest.param(-10, 5, 5, marks=as_root)],
)
def test_priority_is_lowered_from_zero_or_below(start: int, lower_by: int, end: int) -> None:
    if os.getpriority(os.PRIO_PROCESS, 0) > 0:
        pytest.skip("these tests have a lower priority themselves")
    program = (
        f"import os; os.setpriority(os.PRIO_PROCESS, 0, {start})\n"
        f"from tournaments.processes.process_settings import lower_priority; lower_priority({lower_by})\n"
    )
    assert output(program + PRINT) == [[str(end)]]


RAISES = """
import os
from tournaments.processes.process_settings import AUTOGROUP, raised_priority
def show():
    session = AUTOGROUP.read_text().split()[-1] if AUTOGROUP.exists() else "-"
    print(os.getpriority(os.PRIO_PROCESS, 0), session)
os.setpriority(os.PRIO_PROCESS, 0, {start})
{drop}
show()
with raised_priority(-10):
    show()
show()
"""


@as_root
@pytest.mark.parametrize(("start", "first"), [(0, -10), (-12, -12)])
def test_a_raised_priority_is_that_of_the_session_too_and_ends(start: int, first: int) -> None:
    before, meanwhile, after = output(RAISES.format(start=start, drop=""))
    assert before == after == [str(start), before[1]]
    assert meanwhile == [str(first), "-10" if before[1] != "-" else "-"]


OVERLAP = """
import contextlib
from tournaments.processes.process_settings import AUTOGROUP, raised_priority
def show():
    print(AUTOGROUP.read_text().split()[-1] if AUTOGROUP.exists() else "-")
show()
with contextlib.ExitStack() as second:
    with raised_priority(-10):
        second.enter_context(raised_priority(-10))
    show()
show()
"""


@as_root
def test_the_priority_of_a_session_is_put_back_after_two_servers_in_it() -> None:
    before, meanwhile, after = output(OVERLAP)
    assert before == meanwhile == after


@as_root
def test_without_the_right_to_raise_it_the_priority_stays() -> None:
    before, meanwhile, after = output(RAISES.format(start=3, drop="os.setgid(65534); os.setuid(65534)"))
    assert before == meanwhile == after
