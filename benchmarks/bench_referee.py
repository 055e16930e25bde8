"""Compares our referee with a C referee of a few lines (referee.c), in one run and with the same bots.

Both play the same game of two bots that answer at once (instant_bot.c), again and again with fresh
processes, so that all time that passes is the referee's, the kernel's and the process starts'.  Each
referee is a program of its own that prints numbers (referee.c, our_referee.py); here they are run in turn,
several times over, and the medians are compared.  NOTES below explains the figures.

The exit status is 0 whether or not the targets are reached, 1 if the two referees did not play the same
games, 2 if something needed is not there.
"""

import argparse
import contextlib
import json
import os
import platform
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from pathlib import Path
from statistics import median
from typing import Any

HERE = Path(__file__).resolve().parent

CAN_PIN = hasattr(os, "sched_setaffinity")
"""True if processes can be kept on some of the CPUs, as on Linux, but not on macOS."""

KALARENA = [sys.executable, "-c", "from tournaments.cli.main import main; main()"]
"""The command `kalarena` of this source tree."""

TIMED_PAIR = ("first", "last")
PAIRS = (TIMED_PAIR, ("first", "first swap"), ("last", "last swap"), ("last", "first"))
"""Arguments of the bot that moves first and of the other.  One pair is timed, all must be played alike."""

MAX_WALL_RATIO = 6.0
MAX_CPU_PER_GAME_MS = 2.5
MIN_GAMES_PER_S = 100.0
MAX_CONFINED_START_MS = 25.0
"""The targets of docs/decisions.md."""

STARTS = 40
"""Starts of a bot of each kind in each repetition."""

JUDGED_CPUS = "one"
"""CPUs for which the ratio of wall times has a target.  Over all CPUs, ratios from 1.5 to 12 were measured:
the kernel moves the bots of the one or the other referee to another CPU."""

NOTES = """\
wall per move   From the second bot's first reply until the last END is written, so without process starts.
                On one CPU it is the time of the referees, the bots and the pipes alone, as it also is
                when every CPU has a game of its own.  Over all CPUs the kernel may wake another CPU for
                each line or may not, at its pleasure, so that the ratio says little there.
                Of each run the median game counts.  A tournament with own_core = true has each
                game on one CPU; `kalarena play` and other tournaments run over all of them.
referee CPU     User and system time of the referee's process, over the whole game, without that for
                starting and reaping the bots' processes, which is the last line.  That is measured in C
                as all that is not between START and END, and for ours by running the code that starts
                and reaps a bot with two bots that end at once, in the same process.
games per s     Everything counted, process starts included.  C: one process for each game at a time.
                Ours: the tournaments' local engine, its worker processes started and warmed up before.
                The last line is the whole program, with its store and its files of each game, from the
                difference of a long and a short tournament (so without the start of the program).
                Bots are not confined there; the line below them is the same with confined bots.
start of a bot  From before its start until it has ended, for a bot that ends at once: bare, and in the best
                sandbox that this host gives (`kalarena doctor` says which).
"""


@dataclass(frozen=True)
class Cost:
    """Costs of one referee, in one run of many games or as medians of many runs."""

    wall_per_move_us: float
    cpu_per_move_us: float
    """CPU time of the referee without process starts."""
    cpu_per_game_ms: float
    """The same, per game."""
    start_cpu_per_game_ms: float
    """CPU time of the referee for starting and reaping both bots' processes."""

    @classmethod
    def of(cls, numbers: dict[str, Any]) -> "Cost":
        """Create the costs from the output of one of the two programs."""
        moves = numbers["moves"]
        total_s = numbers["total_cpu_s"]
        start_s = numbers["start_cpu_s"] if "start_cpu_s" in numbers else total_s - numbers["play_cpu_s"]
        cpu_s = total_s - start_s
        return cls(
            # The window opens with the second reply, so two moves are not in it.
            wall_per_move_us=numbers["moving_wall_s"] / (moves - 2) * 1e6,
            cpu_per_move_us=cpu_s / moves * 1e6,
            cpu_per_game_ms=cpu_s * 1e3,
            start_cpu_per_game_ms=start_s * 1e3,
        )


class DifferentGamesError(Exception):
    """The two referees did not play the same game."""


class MissingError(Exception):
    """Something that the benchmark needs is not there."""


class Arena:
    """The compiled programs, and the two referees as commands that can be run in turn."""

    def __init__(self, folder: Path) -> None:
        compiler = shlex.split(os.environ.get("CC", "cc")) or ["cc"]
        if shutil.which(compiler[0]) is None:
            raise MissingError(f"there is no C compiler {compiler[0]!r}: install one, or say which in CC")
        self.folder = folder
        for name in ("referee", "instant_bot"):
            command = [
                *compiler,
                "-O2",
                "-Wall",
                "-Wextra",
                str(HERE / f"{name}.c"),
                "-o",
                str(folder / name),
            ]
            if subprocess.run(command, check=False).returncode:
                raise MissingError(f"{name}.c does not compile")
        self.referees = {
            "c": [str(folder / "referee")],
            "ours": [sys.executable, "-m", "benchmarks.our_referee"],
        }

    def start(self, who: str, games: int, pair: tuple[str, str], *options: str) -> "subprocess.Popen[str]":
        """Start a referee on that many games, one after the other."""
        bot = str(self.folder / "instant_bot")
        first, second = ([bot, *arguments.split()] for arguments in pair)
        command = [*self.referees[who], *options, str(games), *first, "--", *second]
        return subprocess.Popen(command, cwd=HERE.parent, stdout=subprocess.PIPE, text=True)

    def finish(self, process: "subprocess.Popen[str]") -> dict[str, Any]:
        """Wait for a started referee and return its numbers."""
        output, _ = process.communicate()
        if process.returncode:
            raise MissingError(f"a referee failed: {process.args!r} returned {process.returncode}")
        numbers: dict[str, Any] = json.loads(output)
        return numbers

    def play(self, who: str, games: int, pair: tuple[str, str] = TIMED_PAIR) -> dict[str, Any]:
        return self.finish(self.start(who, games, pair))

    def starts(self, times: int) -> dict[str, Any]:
        """Medians of the time of a bot's start, bare and confined."""
        command = [*self.referees["ours"], "--starts", str(times), str(self.folder / "instant_bot")]
        return self.finish(subprocess.Popen(command, cwd=HERE.parent, stdout=subprocess.PIPE, text=True))

    def games_per_s(self, who: str, games: int, at_once: int, *options: str) -> float:
        """Return the games per second, with ``at_once`` games at a time."""
        if who == "ours":
            numbers = self.finish(self.start(who, games, TIMED_PAIR, *options, "--at-once", str(at_once)))
            return float(numbers["games"] / numbers["total_wall_s"])
        share = max(1, games // at_once)
        began = time.perf_counter()
        for process in [self.start(who, share, TIMED_PAIR) for _ in range(at_once)]:
            self.finish(process)
        return share * at_once / (time.perf_counter() - began)

    def run_tournament(self, rounds: int, at_once: int) -> float:
        """Return the seconds of `kalarena tournament run` for two games a round, in a new directory."""
        bot = shlex.quote(str(self.folder / "instant_bot"))
        # A JSON string is a TOML string, too.
        entries = ", ".join(
            f'{{bot = {json.dumps(f"{bot} {word}")}, name = "{word}"}}' for word in TIMED_PAIR
        )
        file = self.folder / "speed.toml"
        # Removed at the end alone: ext4 takes up to twice the time to make files while it passes over the
        # inodes of files that were removed within the last minutes.
        out = Path(tempfile.mkdtemp(prefix="results-", dir=self.folder))
        text = f'rounds = {rounds}\nbots = [{entries}]\n[sandbox]\nmode = "off"\n'
        file.write_text(text, encoding="utf-8")
        options = ["--out", str(out), "--concurrency", str(at_once), "--json"]
        began = time.perf_counter()
        done = subprocess.run(
            [*KALARENA, "tournament", "run", str(file), *options],
            cwd=HERE.parent, stdout=subprocess.PIPE, check=False,
        )  # fmt: skip
        took = time.perf_counter() - began
        if done.returncode:
            raise MissingError(f"kalarena tournament run returned {done.returncode}")
        found = json.loads(done.stdout)
        forfeits = sum(line["forfeits"] for line in found["standings"])
        if found["games"] != 2 * rounds or forfeits:
            raise MissingError(
                f"{found['games']} of {2 * rounds} games were played, {forfeits} were forfeits"
            )
        return took

    def tournament_games_per_s(self, games: int, at_once: int) -> float:
        """Return the games per second, without the start of the program and its workers.

        They follow from the difference of a long and a short tournament.
        """
        short, long = at_once, at_once + max(1, games // 2)
        took = self.run_tournament(long, at_once) - self.run_tournament(short, at_once)
        return 2 * (long - short) / max(took, 1e-3)  # a few games alone may drown in noise

    def check_same_games(self) -> int:
        """Let both referees play every pair once; return the moves of the timed game."""
        lengths = {}
        for pair in PAIRS:
            played = {who: self.play(who, 1, pair) for who in self.referees}
            texts = {who: f"{numbers['game']} -> {numbers['board']}" for who, numbers in played.items()}
            if texts["c"] != texts["ours"]:
                raise DifferentGamesError(
                    f"{pair[0]} against {pair[1]}:\n  C    {texts['c']}\n  ours {texts['ours']}"
                )
            lengths[pair] = int(played["c"]["moves"])
        return lengths[TIMED_PAIR]


@contextlib.contextmanager
def on_cpus(cpus: set[int]) -> Iterator[None]:
    """Processes started in here run on these CPUs only (where the system can do that)."""
    if not CAN_PIN:
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cpus)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def available_cpus() -> set[int]:
    return os.sched_getaffinity(0) if CAN_PIN else set(range(os.cpu_count() or 1))


def placements() -> dict[str, set[int]]:
    """Return the sets of CPUs on which the referee and its two bots run, by name."""
    cpus = available_cpus()
    if not CAN_PIN or len(cpus) == 1:
        return {"all": cpus}
    return {"one": {max(cpus)}, "all": cpus}


def medians(costs: list[Cost]) -> Cost:
    return Cost(**{field.name: median(getattr(cost, field.name) for cost in costs) for field in fields(Cost)})


def show_progress(text: str) -> None:
    """Show a text on a terminal, in place of the previous one."""
    if sys.stderr.isatty():
        print(f"\r{text:<40}\r", end="", file=sys.stderr, flush=True)


def measure(arena: Arena, games: int, repeat: int) -> dict[str, Any]:
    """Run everything ``repeat`` times in turn; return medians, as JSON can carry them."""
    moves = arena.check_same_games()
    places, cores = placements(), len(available_cpus())
    costs: dict[tuple[str, str], list[Cost]] = {}
    speeds: dict[tuple[int, str], list[float]] = {}
    tournaments: list[float] = []
    confined: list[float] = []
    starts: list[dict[str, Any]] = []
    for number in range(repeat):
        show_progress(f"repetition {number + 1} of {repeat} ...")
        for place, cpus in places.items():
            for who in arena.referees:
                with on_cpus(cpus):
                    costs.setdefault((place, who), []).append(Cost.of(arena.play(who, games)))
        for at_once in sorted({1, cores}):
            for who in arena.referees:
                speed = arena.games_per_s(who, games, at_once)
                speeds.setdefault((at_once, who), []).append(speed)
        tournaments.append(arena.tournament_games_per_s(games, cores))
        confined.append(arena.games_per_s("ours", games, cores, "--confined"))
        starts.append(arena.starts(STARTS))
    show_progress("")
    return {
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "cores": cores,
        "moves_per_game": moves,
        "games": games,
        "repeat": repeat,
        "cost": {
            place: {who: vars(medians(costs[place, who])) for who in arena.referees} for place in places
        },
        "games_per_s": {
            str(at_once): {who: median(speeds[at_once, who]) for who in arena.referees}
            for at_once in sorted({1, cores})
        },
        "tournament_games_per_s": median(tournaments),
        "confined_games_per_s": median(confined),
        "start": {
            "tier": starts[0]["tier"],
            **{name: median(start[name] for start in starts) for name in ("bare_ms", "confined_ms")},
        },
    }


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    what: str
    c: float
    ours: float
    target: str = ""
    reached: bool | None = None

    def __str__(self) -> str:
        ratio = self.ours / self.c if self.c else float("nan")
        verdict = "" if self.reached is None else "  yes" if self.reached else "  NO"
        text = f"  {self.what:<34}{self.c:>9.2f}{self.ours:>9.2f}{ratio:>8.2f}   {self.target}{verdict}"
        return text.rstrip()


def rows(report: dict[str, Any]) -> Iterator[str | Row]:
    """The table: headings and lines."""
    for place, costs in report["cost"].items():
        yield "Referee and both bots on one CPU" if place == "one" else "Over all CPUs"
        c, ours = Cost(**costs["c"]), Cost(**costs["ours"])
        wall = Row("wall per move, us", c.wall_per_move_us, ours.wall_per_move_us)
        if place == JUDGED_CPUS or JUDGED_CPUS not in report["cost"]:
            reached = wall.ours <= MAX_WALL_RATIO * wall.c
            wall = replace(wall, target=f"ratio <= {MAX_WALL_RATIO:g}", reached=reached)
        yield wall
        yield Row("referee CPU per move, us", c.cpu_per_move_us, ours.cpu_per_move_us)
        yield Row(
            "referee CPU per game, ms", c.cpu_per_game_ms, ours.cpu_per_game_ms,
            f"ours <= {MAX_CPU_PER_GAME_MS:g}", ours.cpu_per_game_ms <= MAX_CPU_PER_GAME_MS,
        )  # fmt: skip
        yield Row("... and for two process starts, ms", c.start_cpu_per_game_ms, ours.start_cpu_per_game_ms)
    cores = report["cores"]
    yield "Throughput over all CPUs"
    for at_once, speed in report["games_per_s"].items():
        if int(at_once) != cores:
            yield Row(f"games per s, {at_once} at a time", speed["c"], speed["ours"])
    c_speed = report["games_per_s"][str(cores)]["c"]
    for what, ours_speed in (
        (f"games per s, {cores} at a time", report["games_per_s"][str(cores)]["ours"]),
        ("... in `kalarena tournament run`", report["tournament_games_per_s"]),
    ):
        yield Row(what, c_speed, ours_speed, f"ours >= {MIN_GAMES_PER_S:g}", ours_speed >= MIN_GAMES_PER_S)
    start = report["start"]
    yield Row(f"{cores} at a time, sandbox {start['tier']}", c_speed, report["confined_games_per_s"])
    yield f"Start of a bot, sandbox {start['tier']}"
    over = start["confined_ms"] - start["bare_ms"]
    yield f"  {'bare, ms':<34}{'':>9}{start['bare_ms']:>9.2f}"
    yield (
        f"  {'confined, ms':<34}{'':>9}{start['confined_ms']:>9.2f}{'':>8}   "
        f"bare + {MAX_CONFINED_START_MS:g}  {'yes' if over <= MAX_CONFINED_START_MS else 'NO'}"
    )


def table(report: dict[str, Any]) -> str:
    lines = [
        f"{report['system']}, {report['cores']} CPUs, Python {report['python']}; "
        f"{report['moves_per_game']} moves a game; "
        f"medians of {report['repeat']} x {report['games']} games",
        "",
        f"{'':36}{'C':>9}{'ours':>9}{'ratio':>8}   target",
        *map(str, rows(report)),
        "",
        NOTES.rstrip(),
    ]
    return "\n".join(lines)


def positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number


def main() -> int:
    parser = argparse.ArgumentParser(description="Compare our referee with a C referee of a few lines.")
    parser.add_argument("--games", type=positive, default=200, help="games of each run (default %(default)s)")
    parser.add_argument("--repeat", type=positive, default=5, help="runs of each kind (default %(default)s)")
    parser.add_argument("--json", action="store_true", help="print the numbers as JSON")
    arguments = parser.parse_args()
    try:
        with tempfile.TemporaryDirectory(prefix="kalarena-bench-") as folder:
            report = measure(Arena(Path(folder)), arguments.games, arguments.repeat)
    except MissingError as error:
        print(f"bench_referee: {error}", file=sys.stderr)
        return 2
    except DifferentGamesError as error:
        print(f"bench_referee: the two referees played different games: {error}", file=sys.stderr)
        return 1
    print(json.dumps(report, indent=2) if arguments.json else table(report))
    return 0


if __name__ == "__main__":
    sys.exit(main())
