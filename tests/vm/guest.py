"""Programs that run as root in the virtual machine: ``python -m tests.vm.guest NAME ARGUMENT...``.

Each prints lines ``RESULT {"check": ..., ...}``, which tests/vm judge on the host.
"""

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from referee.errors import RefereeError
from referee.judge.clock import TimeControl
from referee.judge.limits import Limits
from referee.judge.results import GameRecord, Player
from referee.playing import Job, play_in_worker
from referee.process import bot, launch
from referee.sandbox import cgroup, detection
from referee.sandbox.cgroup import BOTS_GROUP
from referee.sandbox.detection import probe
from tests.support.ordinary_user import USER, as_ordinary_user
from tests.support.paths import REPOSITORY_ROOT, SUPPORT
from tournaments.cli import doctor

CGROUPS = Path("/sys/fs/cgroup")
CONTROLLERS = ("cpu", "cpuset", "memory", "pids")
DELEGATED_FILES = ("", "cgroup.procs", "cgroup.subtree_control", "cgroup.threads")
"""Files that systemd gives to the user of a unit with Delegate=yes; the empty name is the group itself."""
AUTOGROUP = Path("/proc/sys/kernel/sched_autogroup_enabled")
USER_NAMESPACES = Path("/proc/sys/user/max_user_namespaces")
LONGER_GAME = "kalah(3,2)"
PATIENCE_S = 300.0
"""Limit of waits for the machine, which may be slow."""
MOVE_CPU_S = 0.3
"""CPU time of the thinking bot for each move."""
CONTROL = TimeControl(move_s=0.6, margin_s=0.2, setup_s=5.0, start_s=PATIENCE_S)
"""With 64 other threads on its core, a bot of equal weight needs 20 s for MOVE_CPU_S.  The turn's limit of
wall time is 17 s, beyond which the game would be void (host_fault_us of clock.py)."""
LIMITS = Limits(memory_mb=256)
KILL_LIMIT_S = 300.0
PATIENTLY = "from tests.vm.guest import be_patient; be_patient(); "
"""Beginning of the text of a Python command that waits as long as this process."""


def be_patient() -> None:
    """Wait longer for sandboxes: on a busy host, a start takes half a minute here."""
    detection.PROBE_LIMIT_S = launch.SETUP_LIMIT_S = PATIENCE_S
    bot.GONE_LIMIT_S = cgroup.EMPTY_S = PATIENCE_S


def result(check: str, **values: Any) -> None:
    """Print the result of a check."""
    print("RESULT", json.dumps({"check": check, "at_s": round(time.monotonic()), **values}), flush=True)


def delegate(name: str, user: int | None = None, controllers: Sequence[str] = CONTROLLERS) -> Path:
    """Make a group with controllers, delegated as by systemd to a user; return it."""
    (CGROUPS / "cgroup.subtree_control").write_text(" ".join(f"+{each}" for each in CONTROLLERS))
    above = CGROUPS / f"{name}.slice"
    above.mkdir()
    (above / "cgroup.subtree_control").write_text(" ".join(f"+{each}" for each in controllers))
    group = above / f"{name}.scope"
    group.mkdir()
    for file in DELEGATED_FILES if user is not None else ():
        os.chown(group / file, user or 0, user or 0)
    return group


def enter(group: Path) -> None:
    """Move this process into a group."""
    (group / "cgroup.procs").write_text("0")


def apart(function: Callable[..., None], *arguments: Any) -> None:
    """Call a function in a process of its own: a group is delegated to a process."""
    process = multiprocessing.get_context("fork").Process(target=guarded, args=(function, *arguments))
    process.start()
    process.join()


def guarded(function: Callable[..., None], *arguments: Any) -> None:
    """Call a function; report an exception."""
    try:
        function(*arguments)
    except Exception:
        result("failed", function=function.__name__, errors=traceback.format_exc()[-3000:])


def as_user(command: list[str], readable: Path, group: Path) -> subprocess.CompletedProcess[str]:
    """Run a command as an ordinary user who can read a folder, in a group of that user's processes only.

    A user cannot enable the controller cpuset for a process of root.
    """
    home = Path("/var/tmp/ordinary")
    home.mkdir(exist_ok=True)
    words = in_group(group, as_ordinary_user(command, [home], [readable]))
    return subprocess.run(words, capture_output=True, text=True, check=False)


def in_group(group: Path, command: Sequence[str]) -> list[str]:
    """Return the command line that runs a command in a delegated group."""
    # Once bots have played, the group has controllers for groups below it, and takes no process itself.
    leaf = group / cgroup.OWN_LEAF if (group / cgroup.OWN_LEAF).exists() else group
    return ["sh", "-c", 'echo $$ >"$0/cgroup.procs"; exec "$@"', str(leaf), *command]


def thinking(*arguments: str, name: str = "thinker") -> Player:
    """Return the player of tests/support/thinking_bot.py."""
    script = SUPPORT / "thinking_bot.py"
    command = (sys.executable, "-S", "-E", str(script), *arguments)
    return Player(name, command, str(script.parent), reads=(str(script),))


def bot_in(folder: Path) -> Player:
    """Return the player of a folder with a bot.py."""
    return Player(folder.name, (sys.executable, "-S", "-E", "bot.py"), str(folder), reads=(str(folder),))


def played(job: Job, core: int | None = None, *, pinned_to: int | None = None) -> GameRecord:
    """Play a game in a process of its own, as a tournament does.  Raises RefereeError.

    Args:
        job: The game.
        core: The core of the game with ``own_core``, whose bots may not change their affinity masks.
        pinned_to: The core of the referee without ``own_core``: its bots may change their masks.
    """
    here, there = multiprocessing.Pipe(duplex=False)

    def play() -> None:
        if pinned_to is not None and sys.platform == "linux":
            os.sched_setaffinity(0, [pinned_to])
        try:
            there.send(play_in_worker(job, core=core).to_msgpack())
        except RefereeError as error:
            there.send(str(error))

    process = multiprocessing.get_context("fork").Process(target=play)
    process.start()
    there.close()
    outcome = here.recv()
    process.join()
    if isinstance(outcome, str):
        raise RefereeError(outcome)
    return GameRecord.from_msgpack(outcome)


def job(first: Player, second: Player, **changes: Any) -> Job:
    """Return a game of the best sandbox."""
    return replace(
        Job("vm", "kalah(2,2)", (first, second), CONTROL, LIMITS, sandbox=probe().sandbox), **changes
    )


def outcome(record: GameRecord) -> dict[str, Any]:
    """Return what the host judges of a game."""
    times = [move for move in record.moves if move.cpu_us is not None]
    return {
        "sandbox": record.sandbox,
        "winner": record.result.winner,
        "reason": record.result.reason.value,
        "detail": record.result.detail,
        "moves": len(record.moves),
        "cpu_s": [None if time_us is None else time_us / 1e6 for time_us in record.cpu_us],
        "off_turn_cpu_s": [None if time_us is None else time_us / 1e6 for time_us in record.off_turn_cpu_us],
        "longest_wall_s": max((move.wall_us / 1e6 for move in times), default=0.0),
        "peak_memory_mb": [peak and peak >> 20 for peak in record.peak_memory_bytes],
        "stderr": [text[-600:] for text in record.stderr],
    }


def examined() -> doctor.Health:
    """Return doctor's findings, with fewer starts: each takes two seconds here."""
    doctor.STARTS = doctor.SHIM_STARTS = 1
    return doctor.examine()


def groups_of_bots() -> list[str]:
    return sorted(str(path.relative_to(CGROUPS)) for path in CGROUPS.rglob(f"{BOTS_GROUP}*"))


def play_spinner(check: str, spinner: Path, games: int, core: int | None) -> None:
    """Play games of a bot with 64 spinning threads against one that thinks; the seats change in turn."""
    for number in range(games):
        players = [thinking("--cpu", str(MOVE_CPU_S)), bot_in(spinner)]
        thinker = number % 2
        if thinker:
            players.reverse()
        began = time.monotonic()
        try:
            record = played(job(*players, game=LONGER_GAME), core)
            shown = {**outcome(record), "void": ""}
        except RefereeError as error:
            shown = {"void": str(error)}
        result(check, thinker=thinker, took_s=round(time.monotonic() - began, 1), **shown)


# The programs


def tiers(folder: str, spinner_games: str) -> None:
    """Check the tier bubblewrap+cgroup as root, as a user, and with fewer controllers."""
    bots = Path(folder)
    AUTOGROUP.write_text("0")
    result("autogroup", enabled=AUTOGROUP.read_text().strip())
    apart(as_root, bots, int(spinner_games))
    apart(without_processors, bots)
    apart(as_a_user, bots, int(spinner_games))


def as_root(bots: Path, spinner_games: int) -> None:
    """Check doctor, the counters, a suspended bot, affinity masks, a spinner, and the ends of games."""
    enter(delegate("root"))
    result("doctor as root", **asdict(examined()))
    record = played(job(thinking("--cpu", str(MOVE_CPU_S)), thinking("--ponder", name="ponderer")))
    result("cpu.stat", **outcome(record), groups=groups_of_bots())
    suspended = replace(CONTROL, ponder="suspend")
    record = played(job(thinking("--cpu", str(MOVE_CPU_S)), thinking("--ponder"), control=suspended))
    result("suspend", **outcome(record), groups=groups_of_bots())
    widener = job(bot_in(bots / "widener"), thinking("--cpu", "0"))
    result("own core", **outcome(played(widener, core=1)), groups=groups_of_bots())
    result("own cpuset", **outcome(played(widener, pinned_to=1)), groups=groups_of_bots())
    play_spinner("spinner", bots / "spinner", spinner_games, core=0)
    killed_referee(bots / "spinner")


def without_processors(bots: Path) -> None:
    """Check a group without the controllers of the processors, as of a user of systemd before version 252.

    The spinner then starves its opponent, and the widener leaves its core: the proof that the other checks
    prove something.
    """
    enter(delegate("small", controllers=("memory", "pids")))
    result("doctor without processors", **asdict(examined()))
    record = played(job(bot_in(bots / "widener"), thinking("--cpu", "0")), pinned_to=1)
    result("no cpuset", **outcome(record))
    play_spinner("spinner without weights", bots / "spinner", 1, core=0)


def as_a_user(bots: Path, spinner_games: int) -> None:
    """Check the tier as an ordinary user in a delegated group, and a host without user namespaces."""
    group = delegate("user", USER)
    program = [sys.executable, "-m", "tests.vm.guest", "as-user", str(bots), str(spinner_games)]
    done = as_user(program, bots, group)
    print(done.stdout, done.stderr, flush=True)
    result("groups of the user", groups=groups_of_bots(), owner=group.stat().st_uid)
    USER_NAMESPACES.write_text("0")
    command = [sys.executable, "-c", f"{PATIENTLY}from tournaments.cli.main import main; main()", "doctor"]
    done = as_user(command, bots, group)
    result("user namespaces off", status=done.returncode, output=done.stdout, errors=done.stderr)


def killed_referee(spinner: Path) -> None:
    """Kill a referee in the middle of a game, and start the next one."""
    slow = thinking("--cpu", "30")
    process = multiprocessing.get_context("fork").Process(
        target=play_in_worker, args=(job(slow, bot_in(spinner), control=TimeControl(move_s=60.0)),)
    )
    process.start()
    until = time.monotonic() + KILL_LIMIT_S
    while time.monotonic() < until and not any(_spinning(path) for path in CGROUPS.rglob(f"{BOTS_GROUP}*")):
        time.sleep(0.1)
    during = groups_of_bots()
    assert process.pid is not None
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    killed_at = time.monotonic()
    while time.monotonic() < until and any(_populated(path) for path in CGROUPS.rglob(f"{BOTS_GROUP}*")):
        time.sleep(0.01)
    ended_s = time.monotonic() - killed_at
    left = [str(path) for path in CGROUPS.rglob(f"{BOTS_GROUP}*") if _populated(path)]
    probe.cache_clear()
    probe()
    result(
        "killed referee", during=during, populated=left, ended_s=round(ended_s, 2), groups=groups_of_bots()
    )


def _spinning(group: Path) -> bool:
    return int((group / "pids.current").read_text()) > 50


def _populated(group: Path) -> bool:
    try:
        return "populated 1" in (group / "cgroup.events").read_text()
    except OSError:
        return False


def of_the_user(folder: str, spinner_games: str) -> None:
    """Print doctor's findings, and play against the spinner, as an ordinary user."""
    result("doctor as user", user=os.geteuid(), **asdict(examined()))
    play_spinner("spinner as user", Path(folder) / "spinner", int(spinner_games), core=0)


PROGRAMS: dict[str, Callable[..., None]] = {
    "tiers": tiers,
    "as-user": of_the_user,
}


def main() -> None:
    """Run the program of that name."""
    name, *arguments = sys.argv[1:]
    os.chdir(REPOSITORY_ROOT)
    be_patient()
    guarded(PROGRAMS[name], *arguments)


if __name__ == "__main__":
    main()
