"""The fair clock on real bots of several threads and processes, beside busy processes: a short measurement.

`python -m benchmarks.fair_clock` makes the long one.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.fair_clock.busy import KINDS
from referee.process.process_tree import has_counters

pytestmark = [
    pytest.mark.slow,
    pytest.mark.any_database,
    pytest.mark.skipif(
        sys.platform != "linux" or not has_counters(), reason="no waits for a CPU are counted"
    ),
]

ROOT = Path(__file__).resolve().parent.parent
ROW = re.compile(r"^(?P<kind>\w+) +\d+ +[\d.]+ +(?P<median>[\d.]+) +.* (?P<late>\d+) late +(?P<lost>\d) of 3")


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "threads"])
def test_bots_are_charged_what_they_used(kind: str) -> None:
    needed = ("java", "javac") if kind == "jvm" else ("g++",)
    if not all(map(shutil.which, needed)) and os.environ.get("KALARENA_REQUIRE_TOOLCHAINS") != "1":
        pytest.skip(f"{' and '.join(needed)} must be there")
    command = (sys.executable, "-m", "benchmarks.fair_clock", "--kinds", kind)
    done = subprocess.run(
        [*command, "--turns", "6", "--seconds", "0.2", "--game", "kalah(3,2)"],
        capture_output=True, text=True, timeout=600, cwd=ROOT, check=False,
    )  # fmt: skip
    row = ROW.match(done.stdout.splitlines()[1])
    assert row is not None, done.stdout + done.stderr
    # The referee's own last wait is taken off in the bot's favour; beside so short a sleep it is much.
    least = 0.75 if kind == "sleep" else 0.95
    assert least <= float(row["median"]) <= 1.15, done.stdout
    assert (row["late"], row["lost"]) == ("0", "3"), done.stdout
