"""Results of the programs in the machine, for tests on the host."""

import json
from collections import defaultdict
from typing import Any

from tests.vm import machine

PREFIX = "RESULT "


def result_of(line: str) -> dict[str, Any] | None:
    """Return the result on a line of the console; None for another line."""
    # It is not always at the beginning: the firmware and pytest print incomplete lines.
    _, found, text = line.partition(PREFIX)
    return json.loads(text) if found else None


class Results:
    """The results of one boot, by the name of the check."""

    def __init__(self, lines: list[str]) -> None:
        self._found: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for line in lines:
            if (values := result_of(line)) is not None:
                self._found[values["check"]].append(values)

    def all(self, check: str) -> list[dict[str, Any]]:
        """Return the results of a check; there is at least one."""
        assert self._found[check], f"no result of {check!r}"
        return self._found[check]

    def one(self, check: str) -> dict[str, Any]:
        """Return the only result of a check."""
        [found] = self.all(check)
        return found


def booted(module: str, *arguments: str, limit_s: float) -> Results:
    """Boot a machine for one program, and return its results.  Skips or fails without a machine."""
    machine.needs_machine()
    return Results(machine.run(module, *arguments, limit_s=limit_s))
