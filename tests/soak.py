"""Play many games with bots that misbehave, several at a time, and count what is left behind.

    python -m tests.soak [--games 2000] [--at-once 8]

In each game one bot commits a fault of docs/protocol.md, or carries out an attack of tests/attacks that
needs nothing outside; each verdict must be the right one.  Processes, descriptors, files and memory are
counted before and after.  The exit status is 0 if nothing is left and nothing was judged wrong.
"""

import argparse
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import trio

from referee.judge.clock import TimeControl
from referee.judge.limits import Limits
from referee.judge.results import GameRecord, Player
from referee.playing import Job
from referee.sandbox.detection import probe
from tests.attacks.probes import make_bot
from tests.attacks.table import ATTACKS, Context
from tests.process.test_faults import ACCEPTED, FAULTS
from tests.support.confinement import reading_bot
from tests.support.paths import REPOSITORY_ROOT
from tests.support.processes import descendants
from tournaments.engines.local import open_local_engine
from tournaments.results.store import Store

CONTROL = TimeControl(move_s=0.6, margin_s=0.05, start_s=20, setup_s=0.05)
LIMITS = Limits(memory_mb=128, end_grace_s=0.3)
STANDALONE = (
    *("forks", "threads", "daemon-holds-output", "hopping", "ignore-signals", "memory", "memory-processes"),
    *("memory-shared", "page-tables", "socket-buffers", "many-files", "flood-lines", "flood-moves"),
    *("flood-line", "flood-errors", "close-output", "close-everything", "half-line", "sleep", "stop"),
    "core-dump",
)
"""Attacks that need no preparation (tests/attacks/test_attacks.py has all attacks)."""
OTHERS = ("sem.mp-", "PostgreSQL.", "kalarena-postgresql-")
"""Files of other tests in /dev/shm: semaphores of Python's multiprocessing, memory and files of databases."""
MEMORY_GROWTH_MB = 32
"""Allowed to this process and all workers together: Python's allocator keeps some of its memory."""


@dataclass(frozen=True)
class Part:
    """A bot that misbehaves, and the right verdicts on it."""

    name: str
    player: Player
    faults: tuple[str, ...]
    """The fault words; "" is a game played to its end; an empty tuple permits any verdict."""


@dataclass
class Outcome:
    """Results of a run."""

    games: int = 0
    seconds: float = 0.0
    verdicts: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    """Sentences on games with a wrong verdict or without one."""
    before: dict[str, float] = field(default_factory=dict)
    after: dict[str, float] = field(default_factory=dict)
    new_files: list[str] = field(default_factory=list)

    def complaints(self) -> list[str]:
        """Everything that is wrong; empty if all is well."""
        permitted = {"processes": 0, "descriptors": 0, "memory, MB": MEMORY_GROWTH_MB}
        return [
            *self.wrong,
            *(
                f"{name}: {self.before[name]:.0f} before, {self.after[name]:.0f} after"
                for name, growth in permitted.items()
                if self.after[name] > self.before[name] + growth
            ),
            *(f"a file was left: {name}" for name in self.new_files),
        ]

    def text(self) -> str:
        """The result for people."""
        lines = [f"{self.games} games in {self.seconds:.0f} s, sandbox {probe().sandbox.tier.value}", ""]
        lines += [f"{'':14}{'before':>10}{'after':>10}"]
        lines += [f"{name:14}{self.before[name]:>10.0f}{self.after[name]:>10.0f}" for name in self.before]
        lines += [
            "",
            "verdicts: " + ", ".join(f"{name} {many}" for name, many in self.verdicts.most_common()),
        ]
        return "\n".join([*lines, "", *(self.complaints() or ["nothing left behind, nothing judged wrong"])])


def misbehaving(folder: Path) -> list[Part]:
    """All bots that misbehave."""
    parts = [Part(f"fault {do}", reading_bot("--do", do), (fault,)) for do, (_, fault, _) in FAULTS.items()]
    # With some opponents an accepted oddity can become a move from an empty pit.
    parts += [Part(f"oddity {do}", reading_bot("--do", do), ("", "empty-pit")) for do in ACCEPTED]
    context = Context(memory_mb=LIMITS.memory_mb, places={"scratch": "$HOME"})
    for name in STANDALONE:
        attack = ATTACKS[name]
        bot = make_bot(folder / name, f"soak-{name}", attack.program, context.arguments(attack))
        command = ("/usr/bin/python3", str(bot / "attacker.py"), "--token", f"soak-{name}")
        # A short clock may end an attack before its own verdict.
        faults = (*attack.verdict, "late") if attack.verdict else ()
        parts.append(Part(f"attack {name}", Player("attacker", command, str(bot), reads=(str(bot),)), faults))
    return parts


def victim() -> Player:
    file = REPOSITORY_ROOT / "sample_bots" / "first_legal.py"
    return Player("victim", (sys.executable, "-S", "-E", str(file)), str(file.parent), reads=(str(file),))


def files_in(*folders: Path) -> set[str]:
    everything = {path for folder in folders if folder.is_dir() for path in folder.iterdir()}
    return {str(path) for path in everything if not path.name.startswith(OTHERS)}


def counted() -> dict[str, float]:
    """Processes, descriptors and memory of this process and its descendants."""
    pids = [os.getpid(), *descendants(os.getpid())]
    descriptors, memory = 0, 0.0
    for pid in pids:
        descriptors += len(os.listdir(f"/proc/{pid}/fd"))  # noqa: PTH208 - numbers only
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                memory += int(line.split()[1]) / 1024
    return {"processes": len(pids), "descriptors": descriptors, "memory, MB": memory}


def jobs(parts: list[Part], games: int, prefix: str) -> Iterator[tuple[Part, int, Job]]:
    """The games: each part in turn, in both seats."""
    sandbox, other = probe().sandbox, victim()
    for number in range(games):
        part, seat = parts[number % len(parts)], number // len(parts) % 2
        players = (part.player, other) if seat == 0 else (other, part.player)
        job = Job(f"{prefix}{number:05}", "manchester", players, CONTROL, LIMITS)
        yield part, seat, replace(job, sandbox=sandbox)


async def soak(games: int, at_once: int, folder: Path) -> Outcome:
    """Play, and count before and after; records go to a store in ``folder``."""
    scratch = folder / "scratch"
    scratch.mkdir()
    parts = misbehaving(folder)
    outcome = Outcome()
    with Store(folder / "results.db") as store:
        async with open_local_engine(scratch, at_once) as engine:

            async def play(part: Part, seat: int, job: Job) -> None:
                try:
                    record = (await engine.play(job)).record
                except Exception as error:
                    outcome.wrong.append(f"{job.key} {part.name}: not played: {error!r}")
                    return
                judge(outcome, part, seat, record)
                store.add(record, 1)

            async def play_all(games: int, prefix: str) -> None:
                async with trio.open_nursery() as nursery:
                    for part, seat, job in jobs(parts, games, prefix):
                        nursery.start_soon(play, part, seat, job)

            await play_all(4 * at_once, "w")  # all workers are warm then; these games do not count
            outcome.games, outcome.verdicts = 0, Counter()
            folders = (scratch, Path(tempfile.gettempdir()), Path("/dev/shm"), Path.home())
            files, outcome.before = files_in(*folders), counted()
            began = time.monotonic()
            await play_all(games, "s")
            outcome.seconds = time.monotonic() - began
            outcome.after = counted()
            outcome.new_files = sorted(files_in(*folders) - files)
    return outcome


def judge(outcome: Outcome, part: Part, seat: int, record: GameRecord) -> None:
    """Count a game, and compare its verdict."""
    fault = record.result.fault or ""
    outcome.games += 1
    outcome.verdicts[record.result.fault or record.result.reason.value] += 1
    lost = fault == "" or record.result.winner == 1 - seat
    if not lost or (part.faults and fault not in part.faults):
        outcome.wrong.append(
            f"{record.key} {part.name}: judged {fault or 'played to its end'!r}, not one of {part.faults}: "
            f"{record.result.detail}"
        )


def main() -> int:
    """Run it from the command line."""
    parser = argparse.ArgumentParser(description="Play games with bots that misbehave; count what is left.")
    parser.add_argument("--games", type=int, default=2000)
    parser.add_argument("--at-once", type=int, default=8)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kalarena-soak-") as folder:
        Path(folder).chmod(0o755)
        outcome = trio.run(soak, arguments.games, arguments.at_once, Path(folder))
    print(outcome.text())
    return 1 if outcome.complaints() else 0


if __name__ == "__main__":
    sys.exit(main())
