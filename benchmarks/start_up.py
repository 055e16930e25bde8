"""Measures the time until a command begins its work, beside a bare interpreter in the same run.

Every program is started 20 times, all of them in turns, and the least time of each counts: other programs can
only add to it.  The floor of `kalarena play` is the import of the two packages that each game needs.

The exit status is 0 whether or not the targets are reached, 1 if a program fails.
"""

import json
import os
import subprocess
import sys
import time

REPEATS = 20
HELP_TARGET_S = 0.150
"""Less than what a person at a prompt notices as a delay."""
PLAY_TARGET = 2.0
"""`kalarena play` in floors."""
COMMAND = "from tournaments.cli.main import entry; entry()"
PROGRAMS = {
    "bare": ["-c", "pass"],
    "floor": ["-c", "import click, trio"],
    "help": ["-c", COMMAND, "--help"],
    "play": ["-c", COMMAND, "play", "--help"],
    "game": ["-c", COMMAND, "play", "first_legal", "first_legal", "--sandbox", "off"],
}
"""Name -> arguments of the interpreter.  `play --help` loads everything that a game needs and plays none."""


def run(arguments: list[str]) -> tuple[float, float]:
    """Return the wall and the CPU seconds of a program, its own processes included."""
    before, began = os.times(), time.perf_counter()
    subprocess.run([sys.executable, *arguments], stdout=subprocess.DEVNULL, check=True)
    wall, after = time.perf_counter() - began, os.times()
    used = after.children_user + after.children_system - before.children_user - before.children_system
    return wall, used


def main() -> int:
    """Print the measured times and ratios."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # an installation has compiled modules
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in PROGRAMS}
    try:
        for _ in range(REPEATS):
            for name, arguments in PROGRAMS.items():
                found[name].append(run(arguments))
    except subprocess.CalledProcessError as error:
        print(error, file=sys.stderr)
        return 1
    wall, cpu = ({name: min(times[kind] for times in found[name]) for name in found} for kind in (0, 1))
    print(f"kalarena --help: {wall['help']:.3f} s (target: at most {HELP_TARGET_S:g} s)")
    print(f"kalarena play: {wall['play'] / wall['floor']:.2f} floors (target: at most {PLAY_TARGET:g})")
    ratios = {name: round(wall[name] / wall["bare"], 1) for name in found}
    print(json.dumps({"wall_s": rounded(wall), "cpu_s": rounded(cpu), "bare_interpreters": ratios}))
    return 0


def rounded(times: dict[str, float]) -> dict[str, float]:
    """Return times with three decimals."""
    return {name: round(value, 3) for name, value in times.items()}


if __name__ == "__main__":
    sys.exit(main())
