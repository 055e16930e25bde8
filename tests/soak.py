"""Plays many games with bots that misbehave, several at a time, and counts what is left behind.

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
from dataclasses import dataclass, field
from pathlib import Path

import trio

from referee.judge.clock import TimeControl
from referee.judge.limits import Limits
from referee.judge.results import GameRecord, Player
from referee.play import Job
from referee.sandbox.detection import probe
from tests.attacks.probes import make_bot
from tests.attacks.table import ATTACKS, Context
from tests.confinement import reading_bot
from tests.test_faults import ACCEPTED, FAULTS
from tests.test_resume import descendants
from tournaments.engines.local import open_local_engine
from tournaments.results.store import Store

CONTROL = TimeControl(move_s=0.6, margin_s=0.05, start_s=20, setup_s=0.05)
LIMITS = Limits(memory_mb=128, end_grace_s=0.3)
STANDALONE = (
    *("forks", "threads", "daemon-holds-output", "hopping", "ignore-signals", "memory", "memory-processes"),
    *(
        "memory-shared",
        "page-tables",
        "socket-buffers",
        "many-files",
        "flood-lines",
        "flood-moves",
        "flood-line",
    ),
    *("flood-errors", "close-output", "close-everything", "half-line", "sleep", "stop", "core-dump"),
)
"""Attacks that need no scene of their own (tests/attacks/test_attacks.py has all of them, with one)."""
OTHERS = ("sem.mp-", "PostgreSQL.")
"""What other tests have in /dev/shm: semaphores of Python's multiprocessing, of which engines have none, and
the memory of databases."""
MEMORY_GROWTH_MB = 32
"""Allowed to this process and all workers together: Python's allocator keeps some of what it once had."""


@dataclass(frozen=True)
class Part:
    """A bot that misbehaves, and which verdicts on it are right."""

    name: str
    player: Player
    faults: tuple[str, ...]
    """The fault words; "" is a game played to its end; none at all: any verdict."""


@dataclass
class Count:
    """What there is at one moment."""

    processes: int
    descriptors: int
    memory_mb: float
    files: set[str]


@dataclass
class Outcome:
    """What came of it."""

    games: int = 0
    seconds: float = 0.0
    verdicts: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    unplayed: list[str] = field(default_factory=list)
    before: Count | None = None
    after: Count | None = None

    def complaints(self) -> list[str]:
        """What should not be; empty if all is well."""
        assert self.before is not None
        assert self.after is not None
        found = [*self.wrong, *self.unplayed]
        if self.after.processes > self.before.processes:
            found.append(f"processes: {self.before.processes} before, {self.after.processes} after")
        if self.after.descriptors > self.before.descriptors:
            found.append(f"descriptors: {self.before.descriptors} before, {self.after.descriptors} after")
        if self.after.memory_mb > self.before.memory_mb + MEMORY_GROWTH_MB:
            found.append(
                f"memory: {self.before.memory_mb:.0f} MB before, {self.after.memory_mb:.0f} MB after"
            )
        found += [f"a file was left: {name}" for name in sorted(self.after.files - self.before.files)]
        return found


def cast(folder: Path) -> list[Part]:
    """All bots that misbehave."""
    parts = [Part(f"fault {do}", reading_bot("--do", do), (fault,)) for do, (_, fault, _) in FAULTS.items()]
    # What is an oddity with the one opponent can be a move from an empty pit with another.
    parts += [Part(f"oddity {do}", reading_bot("--do", do), ("", "empty-pit")) for do in ACCEPTED]
    context = Context(memory_mb=LIMITS.memory_mb, places={"scratch": "$HOME"})
    for name in STANDALONE:
        attack = ATTACKS[name]
        bot = make_bot(folder / name, f"soak-{name}", attack.program, context.arguments(attack))
        command = ("/usr/bin/python3", str(bot / "attacker.py"), "--token", f"soak-{name}")
        # A short clock may end what an attack would have had time for.
        faults = (*attack.verdict, "late") if attack.verdict else ()
        parts.append(Part(f"attack {name}", Player("attacker", command, str(bot), reads=(str(bot),)), faults))
    return parts


def honest() -> Player:
    file = Path(__file__).parent.parent / "sample_bots" / "first_legal.py"
    return Player("victim", (sys.executable, "-S", "-E", str(file)), str(file.parent), reads=(str(file),))


def count(scratch: Path) -> Count:
    """Of this process and all that descend from it; files where bots or games could leave any."""
    everybody = [os.getpid(), *descendants(os.getpid())]
    descriptors, memory = 0, 0.0
    for pid in everybody:
        descriptors += len(os.listdir(f"/proc/{pid}/fd"))  # noqa: PTH208 - numbers only
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                memory += int(line.split()[1]) / 1024
    places = {scratch, Path(tempfile.gettempdir()), Path("/dev/shm"), Path.home()}
    everything = {path for place in places if place.is_dir() for path in place.iterdir()}
    files = {str(path) for path in everything if not path.name.startswith(OTHERS)}
    return Count(len(everybody), descriptors, memory, files)


def jobs(parts: list[Part], games: int) -> Iterator[tuple[Part, int, Job]]:
    """The games: each part in turn, in both seats."""
    tier, victim = probe().sandbox, honest()
    for number in range(games):
        part, seat = parts[number % len(parts)], number // len(parts) % 2
        players = (part.player, victim) if seat == 0 else (victim, part.player)
        yield part, seat, Job(f"g{number:05}", "manchester", players, CONTROL, LIMITS, "", tier)


async def soak(games: int, at_once: int, folder: Path) -> Outcome:
    """Play, and count before and after; records go to a store in ``folder``."""
    scratch = folder / "scratch"
    scratch.mkdir()
    parts = cast(folder)
    outcome = Outcome()
    with Store(folder / "results.db") as store:
        async with open_local_engine(scratch, at_once) as engine:

            async def play(part: Part, seat: int, job: Job) -> None:
                try:
                    record = (await engine.play(job)).record
                except Exception as error:
                    outcome.unplayed.append(f"{job.key} {part.name}: not played: {error!r}")
                    return
                _judge(outcome, part, seat, record)
                store.add(record, 1)
                outcome.games += 1
                outcome.verdicts[record.result.fault or record.result.reason.value] += 1
                if sys.stderr.isatty():
                    print(f"\r{outcome.games} of {games} games", end="", file=sys.stderr, flush=True)

            async def play_all(wanted: Iterator[tuple[Part, int, Job]]) -> None:
                async with trio.open_nursery() as nursery:
                    for part, seat, job in wanted:
                        nursery.start_soon(play, part, seat, job)

            # All workers, warmed up; their games do not count.
            await play_all(jobs(parts, 4 * at_once))
            outcome, warm = Outcome(), outcome
            outcome.wrong += warm.wrong
            outcome.before = count(scratch)
            began = time.monotonic()
            await play_all((part, seat, _renamed(job)) for part, seat, job in jobs(parts, games))
            outcome.seconds = time.monotonic() - began
            outcome.after = count(scratch)
    return outcome


def _renamed(job: Job) -> Job:
    return Job("s" + job.key, job.game, job.players, job.control, job.limits, job.opening, job.sandbox)


def _judge(outcome: Outcome, part: Part, seat: int, record: GameRecord) -> None:
    fault = record.result.fault or ""
    lost = fault == "" or record.result.winner == 1 - seat
    if not lost or (part.faults and fault not in part.faults):
        outcome.wrong.append(
            f"{record.key} {part.name}: judged {fault or 'played to its end'!r}, not one of {part.faults}: "
            f"{record.result.detail}"
        )


def show(outcome: Outcome) -> str:
    """The result for people."""
    assert outcome.before is not None
    assert outcome.after is not None
    before, after = outcome.before, outcome.after
    lines = [
        f"{outcome.games} games in {outcome.seconds:.0f} s, sandbox {probe().sandbox.tier.value}",
        "",
        f"{'':14}{'before':>10}{'after':>10}",
        f"{'processes':14}{before.processes:>10}{after.processes:>10}",
        f"{'descriptors':14}{before.descriptors:>10}{after.descriptors:>10}",
        f"{'memory, MB':14}{before.memory_mb:>10.0f}{after.memory_mb:>10.0f}",
        f"{'files':14}{len(before.files):>10}{len(after.files):>10}",
        "",
        "verdicts: " + ", ".join(f"{name} {number}" for name, number in outcome.verdicts.most_common()),
    ]
    complaints = outcome.complaints()
    return "\n".join([*lines, "", *(complaints or ["nothing left behind, nothing judged wrong"])])


def main() -> int:
    """Run it from the command line."""
    parser = argparse.ArgumentParser(description="Play games with bots that misbehave; count what is left.")
    parser.add_argument("--games", type=int, default=2000)
    parser.add_argument("--at-once", type=int, default=8)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kalarena-soak-") as folder:
        Path(folder).chmod(0o755)
        outcome = trio.run(soak, arguments.games, arguments.at_once, Path(folder))
    print(show(outcome))
    return 1 if outcome.complaints() else 0


if __name__ == "__main__":
    sys.exit(main())
