"""Tournaments of the server on other machines: a real service, scheduler, and worker hosts."""

import html
import math
import os
import re
import shlex
import signal
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from http.cookies import SimpleCookie
from pathlib import Path

import httpx2
import pytest
import trio
from starlette.responses import Response

from tests.cluster_node import SPEED
from tests.cluster_places import Cluster, end
from tests.contest_parts import spec
from tests.courses import NOW, a_person
from tests.databases import database_of
from tests.lab_machines import machine
from tests.server_process import served
from tests.service_world import QUICK, ServiceWorld, bot, open_service_world
from tests.slurm import free_ports
from tests.test_engines import becomes, command_line
from tests.test_resume import descendants
from tournaments.config.cluster_table import ServerClusterTable
from tournaments.course.course import Course
from tournaments.course.model import Account, Competition, CompetitionState, Role
from tournaments.engines.remote import remote_engine
from tournaments.engines.remote.extra import MODULES, ClusterError
from tournaments.results.store import Store
from tournaments.server.cluster import ClusterStatus
from tournaments.server.config import ServiceConfig
from tournaments.server.service import CLUSTER
from tournaments.server.slots import Kind
from tournaments.web.data_directory import DataDirectory
from tournaments.web.http.sessions import Cookie, Cookies
from tournaments.web.server_config import SERVER_FILE

pytestmark = [pytest.mark.slow, pytest.mark.any_database]

LOOK_S = 0.1
LIMIT_S = 400.0
"""Bound for what takes seconds where cores are free."""
GAMES = 6
"""Of a round."""
ROUNDS = 7
"""So many that a tournament is not over before it can be disturbed."""
REFERENCES = ["first_legal", "greedy", "random:1"]


def config(port: int = 0) -> ServiceConfig:
    table = ServerClusterTable(engine="dask", host="127.0.0.1", port=port)
    return ServiceConfig(slots=2, checks=1, retry_s=0.01, nice=1, cluster=table)


def status(world: ServiceWorld) -> ClusterStatus:
    found = world.service.status().cluster
    assert found is not None
    return found


class Hosts:
    """Machines that join the scheduler of a service."""

    def __init__(self, world: ServiceWorld, folder: Path) -> None:
        folder.mkdir()
        (folder / "credentials").symlink_to(world.data / CLUSTER / "credentials")
        self._world = world
        self._cluster = Cluster(folder, slots=1)

    async def join(self, number: int) -> None:
        await becomes(lambda: bool(status(self._world).command), LIMIT_S)
        words = shlex.split(status(self._world).command)
        (self._cluster.folder / "address").write_text(words[words.index("--scheduler") + 1])
        self._cluster.add_worker(number)
        await becomes(lambda: f"host-{number}" in status(self._world).hosts, LIMIT_S)

    def end(self) -> None:
        end(self._cluster.workers.values())


@asynccontextmanager
async def open_hosts(
    data: Path, asked: ServiceConfig | None = None
) -> AsyncIterator[tuple[ServiceWorld, Hosts]]:
    async with open_service_world(data, asked or config(), limit_s=LIMIT_S) as world:
        await becomes(lambda: (data / CLUSTER / "credentials").exists(), LIMIT_S)
        hosts = Hosts(world, data.with_name("hosts"))
        try:
            yield world, hosts
        finally:
            with trio.CancelScope(shield=True):
                await trio.to_thread.run_sync(hosts.end)


async def made(world: ServiceWorld, **values: object) -> Competition:
    asked = spec(**{"references": REFERENCES, **values})
    return await world.service.contests.create_tournament(asked, None)


def state(world: ServiceWorld, competition: Competition) -> CompetitionState:
    found = world.course.competitions.get(competition.id)
    assert found is not None
    assert found.state is not CompetitionState.FAILED, found.message
    return found.state


async def finished(world: ServiceWorld, competition: Competition) -> None:
    await becomes(lambda: state(world, competition) is CompetitionState.FINISHED, LIMIT_S)


def hosts_that_played(world: ServiceWorld, competition: Competition) -> list[float | None]:
    """Of each game the speed of its host, by which hosts are known here."""
    with Store(world.database.competition(competition.slug), read_only=True) as store:
        return [store.record(key).host_speed for key in store.played()]


async def test_a_tournament_is_played_there_and_nothing_else(tmp_path: Path) -> None:
    async with open_hosts(tmp_path / "data") as (world, hosts):
        version = await world.submit("Team 1", bot())
        await world.decided(version.id)  # here: nobody has joined
        await hosts.join(0)
        await hosts.join(1)
        assert status(world).slots == 2
        assert world.service.tournament_slots == 2
        competition = await made(world)
        await world.service.start(competition.id)

        def is_over() -> bool:
            assert not world.service.status().uses[Kind.TOURNAMENT].taken
            return state(world, competition) is CompetitionState.FINISHED

        await becomes(is_over, LIMIT_S)
        played = hosts_that_played(world, competition)
        assert len(played) == GAMES * 2  # with the team's bot there are four
        assert set(played) == {SPEED, SPEED + 1}
        sentences = [news.sentence for news in status(world).news]
        assert sentences[-1] == "1 game at a time, on host-0"
        assert world.service.status().failures == ()


async def test_two_of_one_title_and_field_are_played_at_once(tmp_path: Path) -> None:
    async with open_hosts(tmp_path / "data") as (world, hosts):
        await hosts.join(0)
        await hosts.join(1)
        cups = [await made(world, rounds=3) for _ in range(2)]
        for cup in cups:
            await world.service.start(cup.id)
        for cup in cups:
            await finished(world, cup)
            assert len(hosts_that_played(world, cup)) == 3 * GAMES


async def test_the_host_of_a_game_is_told_while_it_is_played(tmp_path: Path) -> None:
    async with open_hosts(tmp_path / "data") as (world, hosts):
        await hosts.join(1)
        competition = await made(world, game="manchester", references=["minimax:5", "minimax:4"])
        await world.service.start(competition.id)
        await becomes(lambda: bool(world.service.status().playing), LIMIT_S)
        (game,) = world.service.status().playing
        assert game.host == "host-1"
        world.service.contests._patience_s = 0.0
        await world.service.pause(competition.id)


async def test_it_can_be_paused_where_there_is_no_scheduler(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        async with open_service_world(tmp_path / "data", config(taken.getsockname()[1])) as world:
            world.service.contests._patience_s = math.inf
            await becomes(lambda: bool(world.service.status().failures), LIMIT_S)
            competition = await made(world)
            await world.service.start(competition.id)
            await world.service.pause(competition.id)
            assert state(world, competition) is CompetitionState.PAUSED
            assert {failure.where for failure in world.service.status().failures} == {"the cluster"}
            assert "could not be started" in world.service.status().failures[0].why
            assert status(world).command == ""


async def test_bots_that_cannot_be_sent_fail_it_with_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cannot(_players: object) -> tuple[str, ...]:
        raise ClusterError("greedy cannot be sent to other hosts")

    monkeypatch.setattr(remote_engine, "needed_programs", cannot)
    async with open_service_world(tmp_path / "data", config()) as world:
        competition = await made(world)
        await world.service.start(competition.id)

        def message() -> str:
            found = world.course.competitions.get(competition.id)
            assert found is not None
            return found.message if found.state is CompetitionState.FAILED else ""

        await becomes(lambda: message() == "greedy cannot be sent to other hosts", LIMIT_S)


async def test_without_workers_it_waits_and_can_be_paused(tmp_path: Path) -> None:
    async with open_hosts(tmp_path / "data") as (world, hosts):
        competition = await made(world)
        await world.service.start(competition.id)
        waits = "Cup: waiting for workers: 0 of 1 slots"
        await becomes(lambda: waits in [news.sentence for news in status(world).news], LIMIT_S)
        await world.service.pause(competition.id)
        assert state(world, competition) is CompetitionState.PAUSED
        await world.service.start(competition.id)
        await hosts.join(0)
        await finished(world, competition)
        assert hosts_that_played(world, competition) == [SPEED] * GAMES


def schedulers() -> list[int]:
    """Those that are children of this process."""
    return [pid for pid in descendants(os.getpid()) if "scheduler_process" in command_line(pid)]


async def test_a_lost_scheduler_is_started_again_and_the_tournament_goes_on(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    async with open_hosts(tmp_path / "data", config(port)) as (world, hosts):
        await hosts.join(0)
        competition = await made(world, rounds=ROUNDS)
        await world.service.start(competition.id)
        await becomes(lambda: len(hosts_that_played(world, competition)) > 2, LIMIT_S)
        (scheduler,) = schedulers()
        os.kill(scheduler, signal.SIGKILL)
        await becomes(lambda: len(world.service.status().failures) >= 2, LIMIT_S)
        assert state(world, competition) is CompetitionState.RUNNING
        await hosts.join(1)
        await finished(world, competition)
        played = hosts_that_played(world, competition)
        assert len(played) == ROUNDS * GAMES
        assert set(played) == {SPEED, SPEED + 1}
        where = {failure.where for failure in world.service.status().failures}
        assert where == {"the cluster", "tournament Cup"}
    assert not schedulers()


async def test_the_server_and_a_lab_machine_as_people_start_them(tmp_path: Path) -> None:
    data = tmp_path / "data"
    async with open_service_world(data) as world:
        lecturer = a_person(world.course, Role.LECTURER, "lecturer")
        competition = await made(world)
        competitions = world.course.competitions
        await trio.to_thread.run_sync(
            competitions.set_state, competition.id, CompetitionState.RUNNING, "", NOW
        )
        cookies = signed_in(world.course, data, lecturer)
    (data / SERVER_FILE).write_text('[cluster]\nengine = "dask"\nhost = "127.0.0.1"\n')
    with served(data) as server:

        async def dashboard(wanted: str) -> str:
            """The page, once it says this."""
            async with httpx2.AsyncClient(base_url=server.url, cookies=cookies, timeout=LIMIT_S) as browser:
                with trio.fail_after(LIMIT_S):
                    while True:
                        text = html.unescape((await browser.get("/teach")).text)
                        if wanted in text:
                            return text
                        await trio.sleep(LOOK_S)

        text = await dashboard("Cup: waiting for workers: 0 of 1 slots")
        assert "Tournaments are played on other machines: none is there now." in text
        (command,) = [line for line in re.split("[<>\n]", text) if line.startswith("kalarena worker ")]
        async with machine(tmp_path, "lab", [*shlex.split(command)[1:], "--slots", "2"]) as lab:
            await lab.says("plays 2 games at a time")
            text = await dashboard('<bdi>Cup</bdi></a> <span class="state finished">')
            assert "Tournaments are played on other machines: 2 games at a time, on 1 host." in text
            # Who looks after all tournaments hears of a worker later than the tournament does, by a second.
            text = await dashboard(f"2 games at a time, on {os.uname().nodename}")
            status, _, errors = server.end()
            await lab.ends()
    assert status == 0
    assert "Traceback" not in errors
    assert "Server failures" not in text
    with Store(database_of(data).competition(competition.slug), read_only=True) as store:
        speeds = [store.record(key).host_speed for key in store.played()]
    assert len(speeds) == GAMES
    assert all(speeds)


def signed_in(course: Course, data: Path, account: Account) -> dict[str, str]:
    """The cookies of somebody's browser."""
    secret, _ = course.sessions.start(account.id, datetime.now(UTC))
    answer = Response()
    Cookies(DataDirectory(data).key(), secure=False).write(answer, Cookie.SESSION, secret)
    sent = SimpleCookie(answer.headers["set-cookie"])
    return {name: morsel.value for name, morsel in sent.items()}


@pytest.mark.parametrize("module", MODULES)
async def test_without_the_extra_it_says_what_to_install(
    module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ClusterError, match=rf"not installed here \({module}\): pip install"):
        async with open_service_world(tmp_path / "data", config()):
            pass
    async with open_service_world(tmp_path / "here", QUICK) as world:
        assert world.service.status().cluster is None
        assert world.service.tournament_slots == 2
