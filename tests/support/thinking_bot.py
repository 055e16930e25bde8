"""A bot that plays its first legal move after it has used time in a given way.

    thinking_bot.py [--cpu S | --wall S | --sleep S] [--threads N] [--ponder | --child-ponder | --fork-ponder]
                    [--starve N [--sessions]] [--setup S]

A move takes S seconds: of its own CPU time, of wall time that it spins, or of wall time that it sleeps.  With
--threads so many threads spin meanwhile.  What ponders computes all the time, on its turn or not.  With
--starve so many child processes compute while it is not on its turn, with --sessions each of them in a
session of its own.  With --setup it computes after START until it has its first turn, and for S seconds
more.  After END it writes to standard error "ended", its CPU time of each move, "took", and
what each move took by its own clocks without waiting for a CPU, in microseconds.  Standard library only.
"""

import argparse
import hashlib
import io
import os
import select
import signal
import sys
import threading
import time
from pathlib import Path


def spin() -> None:
    """Compute for about 0.1 ms without holding the interpreter's lock, so that several threads really do."""
    hashlib.pbkdf2_hmac("sha256", b"", b"", 150)


def spin_for_ever() -> None:
    while True:
        spin()


def spin_until_readable() -> None:
    while not select.select([0], [], [], 0)[0]:
        spin()


def spin_while_we_live() -> None:
    """Compute in a process that the referee may not end, until its parent has ended."""
    parent = os.getppid()
    while os.getppid() == parent:
        spin()
    os._exit(0)


def ponder_in_child() -> None:
    if os.fork() == 0:
        spin_while_we_live()


def ponder_in_grandchild() -> None:
    """In a session of its own, below a child that only waits."""
    if os.fork() == 0:
        if os.fork() == 0:
            os.setsid()
            spin_while_we_live()
        os.read(0, 0)
        while os.getppid() > 1:
            time.sleep(0.05)
        os._exit(0)


class Crowd:
    """Child processes that compute off turn, and are stopped on turn, which would cost the bot its time."""

    def __init__(self, count: int, *, own_sessions: bool) -> None:
        self._pids = []
        for _ in range(count):
            pid = os.fork()
            if pid == 0:
                if own_sessions:
                    os.setsid()
                spin_while_we_live()
            self._pids.append(pid)
            os.kill(pid, signal.SIGSTOP)

    def set_computing(self, *, computing: bool) -> None:
        for pid in self._pids:
            os.kill(pid, signal.SIGCONT if computing else signal.SIGSTOP)


def waited_ns() -> int:
    """Return the time for which this thread has waited for a CPU."""
    try:
        return int(Path("/proc/thread-self/schedstat").read_text(encoding="ascii").split()[1])
    except (OSError, IndexError):
        return 0


def think(clock: str, seconds: float, threads: int) -> None:
    if clock == "sleep":
        time.sleep(seconds)
        return
    read = time.process_time if clock == "cpu" else time.monotonic
    until = read() + seconds

    def work() -> None:
        while read() < until:
            spin()

    helpers = [threading.Thread(target=work) for _ in range(threads - 1)]
    for helper in helpers:
        helper.start()
    work()
    for helper in helpers:
        helper.join()


def first_legal(board: list[int], seat: str) -> int:
    count = len(board) // 2 - 1
    pits = board[:count] if seat == "North" else board[count + 1 : -1]
    return next(number for number, seeds in enumerate(pits, 1) if seeds)


def main() -> None:
    parser = argparse.ArgumentParser()
    for clock in ("cpu", "wall", "sleep"):
        parser.add_argument(f"--{clock}", type=float)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--setup", type=float, help="setup: until the first turn, and this CPU time more")
    parser.add_argument("--ponder", action="store_true")
    parser.add_argument("--child-ponder", action="store_true")
    parser.add_argument("--fork-ponder", action="store_true")
    parser.add_argument("--starve", type=int, default=0)
    parser.add_argument("--sessions", action="store_true")
    arguments = parser.parse_args()
    clock, seconds = "sleep", 0.0
    for name in ("cpu", "wall", "sleep"):
        if getattr(arguments, name) is not None:
            clock, seconds = name, getattr(arguments, name)
    if arguments.child_ponder:
        ponder_in_child()
    if arguments.fork_ponder:
        ponder_in_grandchild()
    if arguments.ponder:
        threading.Thread(target=spin_for_ever, daemon=True).start()
    crowd = Crowd(arguments.starve, own_sessions=arguments.sessions)
    used_us: list[int] = []
    took_us: list[int] = []
    seat, board = "South", [1] * 4
    # Unbuffered: a line that has come after START stays in the pipe, where it shows.
    for line in io.FileIO(0):
        word, *fields = line.decode().rstrip("\n").split(";")
        if word == "START":
            seat = fields[0]
            if arguments.setup:
                spin_until_readable()
                think("cpu", arguments.setup, 1)
            gives_turn = seat == "South"
        elif word == "CHANGE":
            board = [int(number) for number in fields[1].split(",")]
            gives_turn = fields[2] == "YOU"
        else:
            break
        crowd.set_computing(computing=not gives_turn)
        if gives_turn:
            cpu, wall, waited = time.process_time_ns(), time.monotonic_ns(), waited_ns()
            think(clock, seconds, arguments.threads)
            cpu = time.process_time_ns() - cpu
            used_us.append(cpu // 1000)
            took_us.append(max(cpu, time.monotonic_ns() - wall - (waited_ns() - waited)) // 1000)
            os.write(1, f"MOVE;{first_legal(board, seat)}\n".encode())
            crowd.set_computing(computing=True)
    print("ended", *used_us, "took", *took_us, file=sys.stderr)


if __name__ == "__main__":
    main()
