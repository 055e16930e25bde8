"""The metrics and the structured log of a real server, read as Prometheus and a log collector read them."""

import json
import os
import socket
import time
import urllib.error
import urllib.request
from collections import Counter
from datetime import timedelta
from itertools import count
from pathlib import Path
from typing import Any

import httpx2
import pytest
import trio
from prometheus_client.parser import text_string_to_metric_families

from referee.errors import RefereeError
from tests.server.harness import FakeChecks, bot, open_harness, open_service, running, spec, until
from tests.server.served_course import ANSWER_LIMIT_S, DECIDED_WITHIN_S, POLL_S
from tests.server.server_process import Served, served
from tests.support.builders import invoke
from tests.support.courses import FAST_PASSWORDS
from tests.support.databases import database_of, server_file_of
from tests.support.paths import REPOSITORY_ROOT
from tournaments.course.casual_games import CasualPlayer
from tournaments.course.course import Course
from tournaments.course.model import BotChoice, CompetitionState
from tournaments.engines.base import EngineError
from tournaments.server.casual import games as casual_games
from tournaments.server.casual.table import Table
from tournaments.server.challenges.challenge_runner import Challenges
from tournaments.server.checks import qualifying
from tournaments.server.checks.bot_job import Answer
from tournaments.server.checks.bot_worker import WorkerError
from tournaments.server.checks.qualifying import MAX_ATTEMPTS
from tournaments.server.cluster import ClusterStatus
from tournaments.server.config import ServiceConfig
from tournaments.server.metrics import Metrics
from tournaments.server.practice.practice import Practice
from tournaments.server.slots import Kind, Use
from tournaments.server.status import Status, load_average
from tournaments.web.metrics_page import MetricsPage
from tournaments.web.server_config import SERVER_FILE

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]
GAMES = 2
GAMES_TOTAL = "kalarena_games_total"


def text_of(address: str) -> str:
    with urllib.request.urlopen(address, timeout=ANSWER_LIMIT_S) as response:
        assert response.headers["Content-Type"].startswith("text/plain; version=0.0.4")
        text: str = response.read().decode()
        return text


def samples(text: str) -> Samples:
    """Return all samples by name and labels."""
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def total(found: Samples, name: str) -> float:
    """Return the sum of a metric over its labels."""
    return sum(value for (one, _), value in found.items() if one == name)


def log_of(server: Served) -> list[dict[str, Any]]:
    """Return the objects of the lines that the server has logged so far."""
    return [json.loads(line) for line in server.log.read_text().splitlines() if line.startswith("{")]


def address_in(log: list[dict[str, Any]]) -> str:
    """Return the address of the metrics."""
    (message,) = [line["message"] for line in log if line["message"].startswith("metrics are at ")]
    address: str = message.removeprefix("metrics are at ")
    return address


@pytest.mark.slow
def test_a_server_that_plays_is_measured(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with Course(database_of(data).course(), FAST_PASSWORDS) as course:
        course.settings.change(
            references=["first_legal", "greedy"],
            game="kalah(3,2)",
            sandbox_mode="off",
            standings_for="named",
        )
    lines = [server_file_of(data), 'metrics = "127.0.0.1:0"', 'log_format = "json"', "places = 2"]
    data.mkdir(exist_ok=True)  # the databases of PostgreSQL are elsewhere
    (data / SERVER_FILE).write_text("\n".join(lines))
    with served(data) as server:
        address = address_in(log_of(server))
        end = time.monotonic() + DECIDED_WITHIN_S
        found = samples(text_of(address))
        while not found["kalarena_store_seconds_count", frozenset()] or total(found, GAMES_TOTAL) < GAMES:
            assert time.monotonic() < end, "no games were played"
            time.sleep(POLL_S)
            found = samples(text_of(address))
        score = frozenset({("kind", "practice"), ("reason", "score")})
        assert found[GAMES_TOTAL, score] >= GAMES
        assert total(found, "kalarena_moves_total") >= 2 * GAMES
        assert (
            0 < total(found, "kalarena_charged_seconds_total") <= total(found, "kalarena_wall_seconds_total")
        )
        assert total(found, "kalarena_host_faults_total") == 0
        assert found["kalarena_slots", frozenset()] == 2
        assert total(found, "kalarena_slots_taken") <= 2
        assert {labels for name, labels in found if name == "kalarena_slots_waiting"} == {
            frozenset({("kind", kind.value)}) for kind in Kind
        }
        for gauge in ("event_streams", "checks_queued", "failures_total", "practice_resting"):
            assert found[f"kalarena_{gauge}", frozenset()] == 0
        with urllib.request.urlopen(f"{server.url}/events", timeout=ANSWER_LIMIT_S) as stream:
            assert stream.readline()
            assert samples(text_of(address))["kalarena_event_streams", frozenset()] == 1
        assert found["process_open_fds", frozenset()] > 0
        with pytest.raises(urllib.error.HTTPError, match="404"):
            text_of(f"{server.url}/metrics")  # the site does not have them
        with pytest.raises(urllib.error.HTTPError, match="404"):
            text_of(address.removesuffix("metrics"))
        log = log_of(server)
        server.assert_ends()
    assert all({"at", "level", "logger", "message"} <= set(line) for line in log)


# Each counter moves


def now_in(metrics: Metrics) -> Samples:
    return samples(metrics.page().decode())


def of(found: Samples, name: str, **labels: str) -> float:
    """Return one sample; 0 for a counter that has not begun."""
    return found.get((f"kalarena_{name}", frozenset(labels.items())), 0.0)


async def test_games_of_a_tournament_and_faults_of_its_host_are_counted(tmp_path: Path) -> None:
    async with open_harness(tmp_path) as harness, running(harness) as tournaments:
        engine = harness.engine
        engine.error = EngineError("the machine burns")
        engine.allow(lambda job: job.key != "r001-1v2" or engine.begun.count("r001-1v2") > 2)
        made = await tournaments.create_tournament(spec(references=["first_legal", "greedy"]), None)
        await tournaments.start(made.id)
        await harness.until_state(made.id, CompetitionState.FINISHED)
        found = now_in(harness.context.metrics)
        with harness.store(made.slug) as store:
            games = store.games()
    assert len(games) == 2
    assert of(found, "host_faults_total", kind="tournament") == 2
    assert of(found, "moves_total", kind="tournament") == sum(sum(game.moves) for game in games)
    for reason, number in Counter(game.reason.value for game in games).items():
        assert of(found, "games_total", kind="tournament", reason=reason) == number
    assert of(found, "store_seconds_count") >= 1
    assert of(found, "host_faults_total", kind="practice") == of(found, "moves_total", kind="casual") == 0


@pytest.mark.slow
async def test_practice_games_and_faults_of_their_host_are_counted(tmp_path: Path) -> None:
    async with open_harness(tmp_path) as plain:
        harness = plain.with_context(config=ServiceConfig(slots=2, retry_s=0.001))
        harness.version("Team 1")
        harness.version("Team 2")
        engine, metrics = harness.engine, harness.context.metrics
        engine.error = RefereeError("no memory")
        tries = count(1)
        engine.allow(lambda _job: next(tries) > 3)  # each refusal is a fault
        harness.course.settings.change(game="kalah(3,2)", references=[], practice_on=True)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(Practice(harness.context).run)
            await until(lambda: total(now_in(metrics), GAMES_TOTAL) >= GAMES)
            nursery.cancel_scope.cancel()
        found = now_in(metrics)
    assert of(found, "host_faults_total", kind="practice") == 3
    assert of(found, "moves_total", kind="practice") == total(found, "kalarena_moves_total") > 0


async def test_challenges_and_faults_of_their_host_are_counted(tmp_path: Path) -> None:
    async with open_harness(tmp_path) as plain:
        harness = plain.with_context(config=ServiceConfig(slots=2, retry_s=0.001))
        own = harness.version("Team 1")
        (account,) = harness.course.accounts.of_team(own.team_id)
        harness.course.settings.change(game="kalah(3,2)", references=["random:1"])
        engine, metrics = harness.engine, harness.context.metrics
        engine.error = RefereeError("no memory")
        engine.allow(lambda _job: len(engine.begun) > 1)
        challenges = Challenges(harness.context, engine, tmp_path)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(challenges.run)
            sides = BotChoice(version_id=own.id), BotChoice(reference="random:1")
            asked = await challenges.ask(own.team_id, account, *sides, 1, "page")
            await until(lambda: (one := harness.course.challenges.get(asked.id)) and one.state.is_over)
            nursery.cancel_scope.cancel()
        challenges.close()
        found = now_in(metrics)
    assert {dict(labels)["kind"] for name, labels in found if name == GAMES_TOTAL} == {"casual"}
    assert total(found, GAMES_TOTAL) == of(found, "store_seconds_count") == 2
    assert of(found, "moves_total", kind="casual") > 0
    assert of(found, "host_faults_total", kind="casual") == 1


async def test_checks_their_workers_and_failures_of_the_server_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, checks: FakeChecks
) -> None:
    checks.released = trio.Event()
    async with open_service(tmp_path) as harness:
        metrics = harness.service.metrics
        good = await harness.submit("Team 1", bot())
        await until(lambda: checks.begun)
        found = now_in(metrics)
        assert of(found, "check_workers") == of(found, "checks_queued") == 1
        assert of(found, "slots_taken", kind="qualification") == 1
        assert total(found, "kalarena_checks_total") == 0
        checks.released.set()
        await harness.decided(good.id)
        await until(lambda: of(now_in(metrics), "check_workers") == 0)

        async def lose(*_: object, **__: object) -> Answer:
            raise WorkerError("the worker was lost")

        async def fail(*_: object, **__: object) -> Answer:
            return Answer(wrong="it does not start")

        monkeypatch.setattr(qualifying, "run_job", lose)
        lost = await harness.submit("Team 2", bot(2))
        await harness.decided(lost.id)
        monkeypatch.setattr(qualifying, "run_job", fail)
        faulty = await harness.submit("Team 3", bot(3))
        await harness.decided(faulty.id)
        await until(lambda: of(now_in(metrics), "checks_queued") == 0)
        found = now_in(metrics)
    ends = {"qualified": 1, "failed": 1, "stuck": 1, "host": MAX_ATTEMPTS}
    assert {end: of(found, "checks_total", end=end) for end in ends} == ends
    assert of(found, "failures_total") == MAX_ATTEMPTS


async def test_games_of_people_are_counted_by_their_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(casual_games, "SWEEP_S", 0.01)
    people = CasualPlayer("Ada", "account 1"), CasualPlayer("Bob", "account 2")
    async with open_service(tmp_path) as harness:
        casual, metrics = harness.service.casual, harness.service.metrics

        async def begin() -> Table:
            started = await casual.start("kalah(1,1)", people)
            table = await casual.table(started.address)
            assert table is not None
            return table

        played = await begin()
        while (side := played.to_move) is not None:
            await casual.move(played, people[side].owner, len(played.game.moves), "1")
        await casual.resign(await begin(), people[0].owner)
        await casual.resign(await begin(), people[1].owner)
        assert of(now_in(metrics), "play_games_total", end="abandoned") == 0
        left = await begin()
        monkeypatch.setattr(casual_games, "ABANDONED_AFTER", timedelta(hours=-1))
        await until(lambda: left.game.ended_at)
        found = now_in(metrics)
    ends = {"rules": 1, "resigned": 2, "abandoned": 1, "fault": 0}
    assert {end: of(found, "play_games_total", end=end) for end in ends} == ends


def test_the_documentation_and_the_dashboard_have_every_metric() -> None:
    operations = (REPOSITORY_ROOT / "docs/operations.md").read_text()
    dashboard = (REPOSITORY_ROOT / "docs/deploy/grafana.json").read_text()
    assert json.loads(dashboard)["title"] == "Kalarena"
    metrics = Metrics()
    cluster = ClusterStatus(slots=4, hosts=["one"], command="", news=())
    uses = dict.fromkeys(Kind, Use(0, 0))
    status = Status(0, 0, (), 2, uses, "", (0.0, 0.0, 0.0), 2, (), cluster)
    metrics.watch(lambda: status)
    metrics.watch_streams(lambda: 0)
    names = {family.name for family in text_string_to_metric_families(metrics.page().decode())}
    ours = {name for name in names if name.startswith("kalarena_") and not name.endswith("_created")}
    assert len(ours) > 15
    assert [name for name in sorted(ours) if name not in operations or name not in dashboard] == []


def test_an_address_that_is_in_use_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        config = tmp_path / "server.toml"
        config.write_text(f'metrics = "127.0.0.1:{port}"')
        result = invoke("serve", "--data", tmp_path / "data", "--port", "0", "--config", config)
    assert result.exit_code == 2
    assert (
        f"Error: no metrics: port {port} of 127.0.0.1 is in use: end what uses it, or choose another with "
        "the key metrics of server.toml\n" in result.output
    )


async def test_metrics_can_only_be_read() -> None:
    page = MetricsPage(Metrics())
    transport = httpx2.ASGITransport(app=page)
    async with httpx2.AsyncClient(transport=transport, base_url="http://testserver") as client:
        assert (await client.head("/metrics")).status_code == 200
        answer = await client.post("/metrics")
        assert (answer.status_code, answer.headers["allow"]) == (405, "GET, HEAD")
        assert (await client.get("/")).status_code == 404
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        return {"type": "websocket.connect"}

    await page({"type": "websocket", "path": "/metrics", "headers": []}, receive, send)
    assert sent == [{"type": "websocket.close", "code": 1008}]


def test_a_system_without_load_averages(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise OSError("Load averages are unobtainable")

    monkeypatch.setattr(os, "getloadavg", fail)
    assert load_average() is None
