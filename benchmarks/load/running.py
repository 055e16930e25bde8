"""The load: the actions of all students and the lecturer from the server's start to its end."""

import json
import os
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count, cycle

import trio

from benchmarks.load.charges import Period
from benchmarks.load.client import Browser
from benchmarks.load.lecturer import failures_of_ours, make_tournament, supervise
from benchmarks.load.measured import Measured
from benchmarks.load.players import Played, Players
from benchmarks.load.scene import Scene, Student
from benchmarks.load.server import Server
from benchmarks.load.students import Acknowledged, Class

BOTS = 8
"""Number of teams that have a bot at the beginning, and play in the tournament."""
REFERENCES = ("ladder:1", "ladder:3", "ladder:5", "ladder:7")
"""Reference players, those of the practice ladder by default."""
QUALIFIED_S = 600.0
"""Maximum time for the checks of the first bots, one by one, in seconds."""
SIGN_INS = 4
"""Maximum number of sign-ins at a time."""
SEED = 20


@dataclass(frozen=True)
class Plan:
    """Duration and amounts of a load."""

    seconds: float
    uploads_a_minute: float
    players: int = 0
    """Number of students who play casual games beside reading pages."""


@dataclass
class Run:
    """Results of a load."""

    measured: Measured = field(default_factory=Measured)
    acknowledged: Sequence[Acknowledged] = ()
    finished: set[tuple[str, str]] = field(default_factory=set)
    casual: Sequence[Played] = ()
    """Casual games with the moves that were acknowledged."""
    periods: Sequence[Period] = ()
    """Periods with and without people who play; empty if nobody plays."""
    tournament: str = ""
    failures: list[str] = field(default_factory=list)
    end_s: float = 0.0
    """Duration of the server's shutdown, with all clients connected."""
    connected: int = 0
    """Number of browsers and streams that were connected at the shutdown."""
    server_cores: float = 0.0
    """Mean number of cores used by the server's process, without bots and workers."""
    server_memory_mb: float = 0.0
    client_cores: float = 0.0
    load_before: float = 0.0
    """Load average of the last minute."""
    load_after: float = 0.0


async def load(scene: Scene, server: Server, plan: Plan) -> Run:
    """Run the whole load.  Raises RuntimeError for a failure before the load begins."""
    run = Run(load_before=os.getloadavg()[0])
    everybody = Class(scene.students, server.port, run.measured, random.Random(SEED))
    browsers = [(student, Browser(server.port, student.address)) for student in scene.students]
    lecturer = Browser(server.port, scene.lecturer.address)
    async with trio.open_nursery() as nursery:
        await _arrive(everybody, browsers, lecturer, scene.lecturer)
        run.tournament = await make_tournament(everybody, lecturer, BOTS, REFERENCES, plan.seconds)
        for student, browser in browsers:
            nursery.start_soon(everybody.browse, student, browser)
        players = Players(run.measured, random.Random(SEED), everybody.over)
        for student, browser in browsers[-plan.players :] if plan.players else ():
            nursery.start_soon(players.play, student, browser.another())
        nursery.start_soon(run.measured.watch_own_delay)
        used, own, began = server.used(), time.process_time(), trio.current_time()
        run.measured.counts = True
        async with trio.open_nursery() as busy:
            busy.start_soon(supervise, run.measured, lecturer, run.tournament, everybody.over)
            busy.start_soon(_upload, everybody, plan)
            run.periods = await players.alternate(plan.seconds) if plan.players else []
            await trio.sleep_until(began + plan.seconds)
            everybody.over.set()
        run.measured.counts = False
        seconds, after = trio.current_time() - began, server.used()
        run.server_cores = (after.cpu_s - used.cpu_s) / seconds
        run.client_cores = (time.process_time() - own) / seconds
        run.server_memory_mb = after.memory_mb
        run.failures = await failures_of_ours(lecturer)
        run.connected = len(browsers) + everybody.streams
        run.end_s = await trio.to_thread.run_sync(server.end)
        run.load_after = os.getloadavg()[0]
        nursery.cancel_scope.cancel()
    run.acknowledged, run.finished = everybody.acknowledged, everybody.finished
    run.casual = players.games
    return run


async def _arrive(
    everybody: Class, browsers: Sequence[tuple[Student, Browser]], lecturer: Browser, teacher: Student
) -> None:
    """Sign everybody in, and submit the bots of the first teams until they qualify."""
    turn = trio.CapacityLimiter(SIGN_INS)

    async def sign_in(student: Student, browser: Browser) -> None:
        async with turn:
            await everybody.sign_in(student, browser)

    async with trio.open_nursery() as nursery:
        for student in everybody.students[:BOTS]:
            nursery.start_soon(_qualify, everybody, student)
        for student, browser in [(teacher, lecturer), *browsers]:
            nursery.start_soon(sign_in, student, browser)


async def _qualify(everybody: Class, student: Student) -> None:
    made = await everybody.upload(student, everybody.students.index(student))
    if made is None:
        raise RuntimeError(f"the upload of {student.login} was not taken: {dict(everybody.measured.errors)}")
    browser = Browser(everybody.port, student.address, student.token)
    with trio.fail_after(QUALIFIED_S):
        while True:
            answer = await browser.get(f"/api/v1/submissions/{made.version}")
            state = json.loads(answer.body)["version"]["state"]
            if state not in ("queued", "checking"):  # one that failed is found in the end
                browser.close()
                return
            await trio.sleep(1)


async def _upload(everybody: Class, plan: Plan) -> None:
    """Submit a bot for each team in turn, at regular times; teams that have a bot come last."""
    teams = [*everybody.students[BOTS:], *everybody.students[:BOTS]]
    due = trio.current_time()
    async with trio.open_nursery() as nursery:
        for number, student in zip(count(len(everybody.students)), cycle(teams)):
            due += 60 / plan.uploads_a_minute
            with trio.move_on_at(due):
                await everybody.over.wait()
            if everybody.over.is_set():
                break
            nursery.start_soon(everybody.upload, student, number)
