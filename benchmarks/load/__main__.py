"""Loads a real `kalarena serve` on this machine as a course before its deadline does, and judges it.

    python -m benchmarks.load [--minutes 5] [--students 200] [--uploads-a-minute 20] [--players 20]
        [--database URL] [--json]

Students, each at an address of their own, read pages with pauses like people's, keep the first page up to
date and watch games. Some of them play casual games against bots for part of the time, so that the charged
times of the tournament's bots with and without these games can be compared. Versions are submitted with
tokens and checked. A round robin is played on all cores beside practice. Then the server is ended with all
clients connected, and the stored data are compared with the acknowledged data.

The exit status is 1 if anything was lost, or a game was lost by time; targets that are missed are printed.
"""

import argparse
import json
import os
import sys

import trio

from benchmarks.load.audit import audit_casual, audit_charges, audit_games, audit_uploads
from benchmarks.load.running import BOTS, Plan, load
from benchmarks.load.scene import made_scene
from benchmarks.load.server import running_server
from benchmarks.load.verdict import Verdict
from tournaments.database.base import StoreError
from tournaments.running.runner import first_error


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.load", description=__doc__.partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--students", type=int, default=200)
    parser.add_argument("--uploads-a-minute", type=float, default=20.0)
    parser.add_argument("--players", type=int, default=20, help="students who play casual games, too")
    parser.add_argument("--database", metavar="URL", help="postgresql://..., an empty one; SQLite without")
    parser.add_argument(
        "--nice",
        type=int,
        default=0,
        help="nice value of this client; its own delay is printed",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    given = parser.parse_args()
    if (
        given.students < BOTS
        or given.minutes <= 0
        or not 0 <= given.players <= given.students
        or given.uploads_a_minute <= 0
    ):
        parser.error(f"at least {BOTS} students, and more than 0 minutes and uploads a minute")
    return given


def main() -> int:
    given = arguments()
    plan = Plan(60 * given.minutes, given.uploads_a_minute, given.players)
    try:
        with made_scene(given.students, given.database) as scene:
            with running_server(scene.data) as server:
                os.nice(given.nice)
                run = trio.run(load, scene, server, plan)
                log = server.log.read_text()
            verdict = Verdict(
                run,
                audit_uploads(scene, run.acknowledged),
                audit_games(scene, run.finished),
                audit_casual(scene, run.casual),
                audit_charges(scene, run.tournament, run.periods),
            )
    except (RuntimeError, StoreError, ExceptionGroup) as error:
        trouble = first_error(error)
        if not isinstance(trouble, RuntimeError | StoreError):
            raise
        print(trouble, file=sys.stderr)
        return 2
    print(json.dumps(verdict.to_json(), indent=2) if given.json else "\n".join(verdict.lines()))
    if log.strip():
        print(f"the server's log:\n{log}", file=sys.stderr)
    return 1 if verdict.lost else 0


if __name__ == "__main__":
    sys.exit(main())
