"""Tournaments of the server on a cluster: a real service, its scheduler, and worker hosts."""

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
from pathlib import Path

import httpx2
import pytest
import trio

from tests.engines.cluster_node import SPEED
from tests.engines.clusters import Cluster, end
from tests.engines.games import becomes, command_line
from tests.engines.lab_machines import machine
from tests.engines.slurm import free_ports
from tests.server.harness import QUICK, ServiceHarness, bot, open_service, spec
from tests.server.served_course import sign_in
from tests.server.server_process import served
from tests.support.courses import NOW, add_account
from tests.support.databases import database_of
from tests.support.processes import descendants
from tournaments.config.cluster_table import ServerClusterTable
from tournaments.course.model import Competition, CompetitionState, Role
from tournaments.engines.remote import remote_engine
from tournaments.engines.remote.extra import MODULES, ClusterError
from tournaments.results.store import Store
from tournaments.server.cluster import ClusterStatus
from tournaments.server.config import ServiceConfig
from tournaments.server.service import CLUSTER
from tournaments.server.slots import Kind
from tournaments.web.server_config import SERVER_FILE

pytestmark = [pytest.mark.cluster, pytest.mark.any_database]

POLL_S = 0.1
LIMIT_S = 400.0
"""Bound for events that take seconds where cores are free."""
GAMES = 6
"""Games of a round."""
ROUNDS = 5
"""Enough rounds that a tournament does not end before it is disturbed."""
REFERENCES = ["first_legal", "greedy", "random:1"]


def config(port: int = 0) -> ServiceConfig:
    table = ServerClusterTable(engine="dask", host="127.0.0.1", port=port)
    return ServiceConfig(slots=2, checks=1, retry_s=0.01, nice=1, cluster=table)


def status(harness: ServiceHarness) -> ClusterStatus:
    found = harness.service.status().cluster
    assert found is not None
    return found


class Hosts:
    """Machines that join the scheduler of a service."""

    def __init__(self, harness: ServiceHarness, folder: Path) -> None:
        folder.mkdir()
        (folder / "credentials").symlink_to(harness.data / CLUSTER / "credentials")
        self._harness = harness
        self._cluster = Cluster(folder, slots=1)

    async def join(self, number: int) -> None:
        await becomes(lambda: bool(status(self._harness).command), LIMIT_S)
        words = shlex.split(status(self._harness).command)
        (self._cluster.folder / "address").write_text(words[words.index("--scheduler") + 1])
        self._cluster.add_worker(number)
        await becomes(lambda: f"host-{number}" in status(self._harness).hosts, LIMIT_S)

    def end(self) -> None:
        end(self._cluster.workers.values())


@asynccontextmanager
async def open_hosts(
    data: Path, asked: ServiceConfig | None = None
) -> AsyncIterator[tuple[ServiceHarness, Hosts]]:
    async with open_service(data, asked or config(), limit_s=LIMIT_S) as harness:
        await becomes(lambda: (data / CLUSTER / "credentials").exists(), LIMIT_S)
        hosts = Hosts(harness, data.with_name("hosts"))
        try:
            yield harness, hosts
        finally:
            with trio.CancelScope(shield=True):
                await trio.to_thread.run_sync(hosts.end)


async def made(harness: ServiceHarness, **values: object) -> Competition:
    asked = spec(**{"references": REFERENCES, **values})
    return await harness.service.tournaments.create_tournament(asked, None)


def state(harness: ServiceHarness, competition: Competition) -> CompetitionState:
    found = harness.course.competitions.get(competition.id)
    assert found is not None
    assert found.state is not CompetitionState.FAILED, found.message
    return found.state


async def finished(harness: ServiceHarness, competition: Competition) -> None:
    await becomes(lambda: state(harness, competition) is CompetitionState.FINISHED, LIMIT_S)


def hosts_that_played(harness: ServiceHarness, competition: Competition) -> list[float | None]:
    """Return the speed of each game's host, which identifies the host."""
    with Store(harness.database.competition(competition.slug), read_only=True) as store:
        return [store.record(key).host_speed for key in store.played()]


async def test_a_tournament_is_played_on_the_cluster_and_checks_are_not(tmp_path: Path) -> None:
    async with open_hosts(tmp_path / "data") as (harness, hosts):
        version = await harness.submit("Team 1", bot())
        await harness.decided(version.id)  # on this machine: no host has joined
        await hosts.join(0)
        await hosts.join(1)
        assert status(harness).slots == 2
        assert harness.service.tournament_slots == 2
        competition = await made(harness)
        await harness.service.tournaments.start(competition.id)

        def is_over() -> bool:
            assert not harness.service.status().uses[Kind.TOURNAMENT].taken
            return state(harness, competition) is CompetitionState.FINISHED

        await becomes(is_over, LIMIT_S)
        played = hosts_that_played(harness, competition)
        assert len(played) == GAMES * 2  # with the team's bot there are four
        assert set(played) == {SPEED, SPEED + 1}
        sentences = [news.sentence for news in status(harness).news]
        assert sentences[-1] == "1 game at a time, on host-0"
        assert harness.service.status().failures == ()


@pytest.mark.long
async def test_two_of_one_title_and_the_hosts_of_their_games(tmp_path: Path) -> None:
    async with open_hosts(tmp_path / "data") as (harness, hosts):
        await hosts.join(0)
        await hosts.join(1)
        cups = [await made(harness) for _ in range(2)]
        for cup in cups:
            await harness.service.tournaments.start(cup.id)
        for cup in cups:
            await finished(harness, cup)
            assert len(hosts_that_played(harness, cup)) == GAMES
        long = await made(harness, game="manchester", references=["minimax:5", "minimax:4"])
        await harness.service.tournaments.start(long.id)
        await becomes(lambda: bool(harness.service.status().playing), LIMIT_S)
        (game, *_) = harness.service.status().playing
        assert game.host in ("host-0", "host-1")
        harness.service.tournaments.pause_limit_s = 0.0
        await harness.service.tournaments.pause(long.id)


async def test_a_tournament_without_a_scheduler_can_be_paused(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        async with open_service(tmp_path / "data", config(taken.getsockname()[1])) as harness:
            harness.service.tournaments.pause_limit_s = math.inf
            await becomes(lambda: bool(harness.service.status().failures), LIMIT_S)
            competition = await made(harness)
            await harness.service.tournaments.start(competition.id)
            await harness.service.tournaments.pause(competition.id)
            assert state(harness, competition) is CompetitionState.PAUSED
            assert {failure.where for failure in harness.service.status().failures} == {"the cluster"}
            assert "could not be started" in harness.service.status().failures[0].why
            assert status(harness).command == ""


async def test_bots_that_cannot_be_sent_stop_the_tournament(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cannot(_players: object) -> tuple[str, ...]:
        raise ClusterError("greedy cannot be sent to other hosts")

    monkeypatch.setattr(remote_engine, "needed_programs", cannot)
    async with open_service(tmp_path / "data", config()) as harness:
        competition = await made(harness)
        await harness.service.tournaments.start(competition.id)

        def message() -> str:
            found = harness.course.competitions.get(competition.id)
            assert found is not None
            return found.message if found.state is CompetitionState.FAILED else ""

        await becomes(lambda: message() == "greedy cannot be sent to other hosts", LIMIT_S)


async def test_a_tournament_without_workers_waits_and_can_be_paused(tmp_path: Path) -> None:
    async with open_hosts(tmp_path / "data") as (harness, hosts):
        competition = await made(harness)
        await harness.service.tournaments.start(competition.id)
        waits = "Cup: waiting for workers: 0 of 1 slots"
        await becomes(lambda: waits in [news.sentence for news in status(harness).news], LIMIT_S)
        await harness.service.tournaments.pause(competition.id)
        assert state(harness, competition) is CompetitionState.PAUSED
        await harness.service.tournaments.start(competition.id)
        await hosts.join(0)
        await finished(harness, competition)
        assert hosts_that_played(harness, competition) == [SPEED] * GAMES


def schedulers() -> list[int]:
    """Return the schedulers among the children of this process."""
    return [pid for pid in descendants(os.getpid()) if "scheduler_process" in command_line(pid)]


async def test_a_lost_scheduler_is_started_again_and_the_tournament_goes_on(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    async with open_hosts(tmp_path / "data", config(port)) as (harness, hosts):
        await hosts.join(0)
        competition = await made(harness, rounds=ROUNDS)
        await harness.service.tournaments.start(competition.id)
        await becomes(lambda: len(hosts_that_played(harness, competition)) > 2, LIMIT_S)
        (scheduler,) = schedulers()
        os.kill(scheduler, signal.SIGKILL)
        await becomes(lambda: len(harness.service.status().failures) >= 2, LIMIT_S)
        assert state(harness, competition) is CompetitionState.RUNNING
        await hosts.join(1)
        await finished(harness, competition)
        played = hosts_that_played(harness, competition)
        assert len(played) == ROUNDS * GAMES
        assert set(played) == {SPEED, SPEED + 1}
        where = {failure.where for failure in harness.service.status().failures}
        assert where == {"the cluster", "tournament Cup"}
    assert not schedulers()


async def test_the_server_and_a_lab_machine_as_people_start_them(tmp_path: Path) -> None:
    data = tmp_path / "data"
    async with open_service(data) as harness:
        lecturer = add_account(harness.course, Role.LECTURER, "lecturer")
        competition = await made(harness)
        competitions = harness.course.competitions
        await trio.to_thread.run_sync(
            competitions.set_state, competition.id, CompetitionState.RUNNING, "", NOW
        )
        _, cookies = sign_in(harness.course, data, lecturer)
    (data / SERVER_FILE).write_text('[cluster]\nengine = "dask"\nhost = "127.0.0.1"\n')
    with served(data) as server:

        async def dashboard(wanted: str) -> str:
            """Return the page as soon as it has this text."""
            async with httpx2.AsyncClient(base_url=server.url, cookies=cookies, timeout=LIMIT_S) as browser:
                with trio.fail_after(LIMIT_S):
                    while True:
                        text = html.unescape((await browser.get("/teach")).text)
                        if wanted in text:
                            return text
                        await trio.sleep(POLL_S)

        text = await dashboard("Cup: waiting for workers: 0 of 1 slots")
        assert "Tournaments are played on other machines: none is there now." in text
        (command,) = [line for line in re.split("[<>\n]", text) if line.startswith("kalarena worker ")]
        async with machine(tmp_path, "lab", [*shlex.split(command)[1:], "--slots", "2"]) as lab:
            await lab.says("plays 2 games at a time")
            await dashboard('<bdi>Cup</bdi></a> <span class="state finished">')
            # The dashboard shows a worker up to a second later than the tournament uses it.
            await dashboard("Tournaments are played on other machines: 2 games at a time, on 1 host.")
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


@pytest.mark.parametrize("module", MODULES)
async def test_a_missing_extra_is_named(module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ClusterError, match=rf"not installed here \({module}\): pip install"):
        async with open_service(tmp_path / "data", config()):
            pass
    async with open_service(tmp_path / "here", QUICK) as harness:
        assert harness.service.status().cluster is None
        assert harness.service.tournament_slots == 2
