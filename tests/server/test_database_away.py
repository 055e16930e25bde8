"""Databases that fail for a while under a server.

Pages answer 503 with a sentence, then work again; tournaments go on.
"""

import errno
import json
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from datetime import datetime
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import Any

import httpx2
import pytest
import trio
from sqlalchemy import URL, Connection, text

from tests.server.harness import Harness, first_games, open_harness, running, spec
from tests.server.harness import until as becomes
from tests.server.served_course import sign_in
from tests.server.server_process import served
from tests.support.builders import invoke, one_object
from tests.support.courses import FAST_PASSWORDS, NOW, add_account
from tests.support.databases import address
from tests.support.postgresql import PostgreSQLServer
from tests.support.tampering import tampering
from tournaments.course.course import Course
from tournaments.course.model import Competition, CompetitionState, Role
from tournaments.database import postgresql as postgresql_locations
from tournaments.database import sqlite
from tournaments.database.base import Connections, StoreError
from tournaments.database.location import Database
from tournaments.results import game_files
from tournaments.results.journal import Action, Entry
from tournaments.results.store import Store
from tournaments.server import failures as server_failures
from tournaments.server.competitions import tournament_manager
from tournaments.server.competitions.tournament_manager import TournamentManager
from tournaments.server.config import ServiceConfig
from tournaments.web.server_config import SERVER_FILE
from tournaments.web.server_main import delete_expired

LIMIT_S = 240.0
SENTENCE = "The database of this server cannot be used just now"
CREATED, RUNNING, PAUSED = CompetitionState.CREATED, CompetitionState.RUNNING, CompetitionState.PAUSED
FINISHED, FAILED, CANCELLED = CompetitionState.FINISHED, CompetitionState.FAILED, CompetitionState.CANCELLED
GAMES = 12
"""Games of the tournaments here."""


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.1)


@pytest.mark.slow
def test_pages_say_so_and_work_again_without_a_restart(tmp_path: Path, postgresql: PostgreSQLServer) -> None:
    data = tmp_path / "data"
    data.mkdir()
    with postgresql.database() as database:
        assert isinstance(database.address, URL)
        (data / SERVER_FILE).write_text(f"database = {json.dumps(address(database.address))}\n")
        with Course(database.course(), FAST_PASSWORDS) as course:
            course.settings.change(title="Games", standings_for="named", references=["greedy", "random:1"])
            lecturer = add_account(course, Role.LECTURER, "lecturer")
            _, cookies = sign_in(course, data, lecturer)
        with (
            served(data) as server,
            httpx2.Client(base_url=server.url, cookies=cookies, timeout=LIMIT_S) as browser,
        ):
            found = browser.get("/health")
            assert (found.status_code, found.json()["status"], found.json()["database"]) == (200, "ok", "ok")
            assert found.json()["disk_free_bytes"] > 0
            dashboard = browser.get("/teach").text
            assert "GB free" in dashboard
            assert "Database: PostgreSQL" in dashboard
            postgresql.stop()
            try:
                until(lambda: browser.get("/health").status_code == 503)
                health = browser.get("/health")
                assert health.json()["status"] == "unavailable"
                assert str(database.address.password) not in health.text
                for path in ("/", "/teach", "/sign-in", "/competitions"):
                    page = browser.get(path)
                    assert page.status_code == 503, path
                    assert SENTENCE in page.text
                    assert "<h1>" in page.text
                    assert page.headers["retry-after"] == "10"
                answer = browser.get("/api/v1/competitions")
                assert (answer.status_code, answer.headers["content-type"]) == (503, "application/json")
                assert SENTENCE in answer.json()["error"]
                done = invoke("doctor", "--json", "--data", str(data))
                assert done.exit_code == 1
                assert "does NOT work" in one_object(done.output)["database"]
            finally:
                postgresql.start()
            until(lambda: browser.get("/health").status_code == 200)
            for path in ("/", "/teach", "/competitions"):
                assert browser.get(path).status_code == 200, path
            # The lock of the database, too.
            until(lambda: "the lock was taken again" in server.log.read_text())
            status, _, errors = server.end()
            assert status == 0
            assert "Traceback" not in errors, errors


@pytest.mark.slow
def test_doctor_looks_at_a_data_directory(tmp_path: Path) -> None:
    with Course(Database(tmp_path).course(), FAST_PASSWORDS):
        pass
    found = one_object(invoke("doctor", "--json", "--data", str(tmp_path)).output)
    assert found["database_works"] is True
    assert found["database"].startswith("SQLite ")
    assert "GB free" in found["disk"]
    missing = tmp_path / "nowhere"
    assert (
        "is no directory" in one_object(invoke("doctor", "--json", "--data", str(missing)).output)["database"]
    )
    assert not missing.exists()


@pytest.mark.parametrize(
    ("error", "cause", "is_ours"),
    [
        (StoreError("kalarena: the database system is shutting down"), OSError(), False),
        (StoreError("kalarena: a value that cannot be stored"), ValueError(), True),
        (KeyError("a fault of this program"), None, True),
    ],
)
async def test_old_data_that_cannot_be_removed_just_now_is_a_sentence_in_the_log(
    caplog: pytest.LogCaptureFixture, error: Exception, cause: Exception | None, is_ours: bool
) -> None:
    calls = []

    def fail(now: datetime) -> None:
        calls.append(now)
        if len(calls) == 3:
            trio.from_thread.run_sync(scope.cancel)
        raise error from cause

    table = SimpleNamespace(purge=fail)
    course: Any = SimpleNamespace(sessions=table, links=table, outbox=table)
    with trio.CancelScope() as scope:
        await delete_expired(course)
    assert len(calls) == 3
    for record in caplog.records:
        assert record.getMessage().endswith(f"deleted: {error}")
        assert bool(record.exc_info) == is_ours  # a traceback for a fault of this program
    assert len(caplog.records) == 3


# Tournaments


async def start_cup(harness: Harness, tournaments: TournamentManager, games: int) -> Competition:
    """Start a tournament, and wait until some games are stored and all others wait."""
    harness.engine.allow(first_games(games))
    references = ["first_legal", "greedy", "random:1"]
    cup = await tournaments.create_tournament(spec(references=references, rounds=2), None)
    await tournaments.start(cup.id)
    await harness.until_played("cup", games)
    await becomes(lambda: harness.engine.waiting)
    return cup


async def assert_finished(harness: Harness, tournaments: TournamentManager, cup: Competition) -> None:
    """Wait until all games are stored, and check that the failure is noted."""
    found = await harness.until_state(cup.id, FINISHED, FAILED)
    assert (found.state, found.message) == (FINISHED, "")
    assert (await tournaments.summary(cup.id, wait=True)).done == GAMES
    assert tournaments.retry_reason(cup.id) == ""
    assert {failure.where for failure in harness.context.failures.newest()} == {"tournament Cup"}


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let writers soon give up if there is another one."""
    monkeypatch.setattr(sqlite, "BUSY_TIMEOUT_MS", 20)
    monkeypatch.setattr(postgresql_locations, "BUSY_TIMEOUT_MS", 20)


def quick(harness: Harness) -> Harness:
    """Return the harness with short waits after failures."""
    return harness.with_context(config=ServiceConfig(slots=2, retry_s=0.01))


@pytest.mark.usefixtures("impatient")
async def test_a_tournament_goes_on_when_its_database_works_again(tmp_path: Path, database: Database) -> None:
    async with open_harness(tmp_path / "data", database=database) as harness:
        harness = quick(harness)
        async with running(harness) as tournaments:
            cup = await start_cup(harness, tournaments, 3)
            with Connections(database.competition("cup")) as another, another.writing():
                harness.engine.allow()
                await becomes(lambda: "another process has been writing" in tournaments.retry_reason(cup.id))
                assert harness.competition(cup.id).state is RUNNING
            await assert_finished(harness, tournaments, cup)


@pytest.mark.slow
async def test_a_tournament_goes_on_after_a_restart_of_postgresql(
    tmp_path: Path, postgresql: PostgreSQLServer
) -> None:
    with postgresql.database() as database:
        async with open_harness(tmp_path / "data", database=database) as harness:
            harness = quick(harness)
            async with running(harness) as tournaments:
                cup = await start_cup(harness, tournaments, 3)
                postgresql.stop()
                try:
                    harness.engine.allow()
                    await becomes(lambda: tournaments.retry_reason(cup.id))
                finally:
                    postgresql.start()
                await assert_finished(harness, tournaments, cup)


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize(("action", "state"), [("pause", PAUSED), ("cancel", CANCELLED)])
async def test_a_tournament_that_waits_for_its_database_is_stopped(
    tmp_path: Path, action: str, state: CompetitionState
) -> None:
    async with open_harness(tmp_path) as harness, running(harness) as tournaments:
        cup = await start_cup(harness, tournaments, 3)
        with Connections(harness.context.database.competition("cup")) as another, another.writing():
            harness.engine.allow()
            await becomes(lambda: tournaments.retry_reason(cup.id))
            await getattr(tournaments, action)(cup.id)
        assert (harness.competition(cup.id).state, tournaments.retry_reason(cup.id)) == (state, "")
        await tournaments.resume(cup.id)
        await assert_finished(harness, tournaments, cup)


@contextmanager
def lost_answer(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Lose the connection to the course's database when its next change is stored, until the block ends."""
    course, is_lost = harness.context.database.course(), Event()

    def losing(transaction: Callable[..., AbstractContextManager[Connection]], *, is_change: bool) -> Any:
        @contextmanager
        def begin(connections: Connections, *arguments: Any) -> Iterator[Connection]:
            is_course = connections.location == course
            if is_course and is_lost.is_set():
                raise StoreError("the database is away", is_ours=True)
            with transaction(connections, *arguments) as connection:
                yield connection
            if is_course and is_change:
                is_lost.set()
                raise StoreError("the connection was lost", is_ours=True)

        return begin

    with monkeypatch.context() as patch:
        patch.setattr(Connections, "reading", losing(Connections.reading, is_change=False))
        patch.setattr(Connections, "writing", losing(Connections.writing, is_change=True))
        yield


@pytest.fixture
def quick_rulings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let rulings and cancellations not wait for games that are being played."""
    monkeypatch.setattr(tournament_manager, "RULING_LIMIT_S", 0.0)


@pytest.mark.usefixtures("quick_rulings")
@pytest.mark.parametrize(("action", "state"), [("pause", PAUSED), ("cancel", CANCELLED)])
async def test_a_stop_whose_answer_was_lost_with_the_connection_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, action: str, state: CompetitionState
) -> None:
    """It was stored, which the server cannot know."""
    async with open_harness(tmp_path) as harness:
        harness = quick(harness)
        async with running(harness, 0.0) as tournaments:
            cup = await start_cup(harness, tournaments, 3)
            with lost_answer(harness, monkeypatch), pytest.raises(StoreError, match="was lost"):
                await getattr(tournaments, action)(cup.id)
            harness.engine.allow()
            await becomes(lambda: cup.id not in tournaments._runs)
            assert harness.competition(cup.id).state is state
            await tournaments.resume(cup.id)
            await harness.until_state(cup.id, FINISHED)


@pytest.mark.slow
@pytest.mark.usefixtures("quick_rulings")
@pytest.mark.parametrize("is_ruled_on", [False, True])
@pytest.mark.parametrize(("action", "state"), [("pause", PAUSED), ("cancel", CANCELLED)])
async def test_a_stop_whose_answer_was_lost_needs_no_wait_for_the_next_try(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    action: str,
    state: CompetitionState,
    is_ruled_on: bool,
) -> None:
    """The server waits to read whether the tournament is stopped, and the lecturer goes on before it has."""
    async with open_harness(tmp_path) as harness:
        harness = harness.with_context(config=ServiceConfig(slots=2, retry_s=3600.0))
        async with running(harness, 0.0) as tournaments:
            cup = await start_cup(harness, tournaments, 3)
            with lost_answer(harness, monkeypatch):
                with pytest.raises(StoreError, match="was lost"):
                    await getattr(tournaments, action)(cup.id)
                await becomes(lambda: tournaments.retry_reason(cup.id))
            harness.engine.allow()
            if is_ruled_on:
                await tournaments.rule(cup.id, Action.WITHDRAW, "greedy", "ill", annul=False)
                assert harness.competition(cup.id).state is state
            await tournaments.resume(cup.id)
            found = await harness.until_state(cup.id, FINISHED, FAILED)
            assert (found.state, found.message) == (FINISHED, "")


async def cup_in(state: CompetitionState, harness: Harness, tournaments: TournamentManager) -> Competition:
    """Return a tournament that is not being played."""
    references = ["first_legal", "greedy", "random:1"]
    cup = await tournaments.create_tournament(spec(references=references, rounds=2), None)
    if state is not CREATED:
        harness.engine.allow(first_games(GAMES if state is FINISHED else 3))
        await tournaments.start(cup.id)
        await harness.until_played("cup", 3)
        await (harness.until_state(cup.id, FINISHED) if state is FINISHED else tournaments.pause(cup.id))
    harness.engine.allow()
    return cup


GAME = "r001-1v2"
STARTS = [
    pytest.param(CREATED, lambda tournaments, number: tournaments.start(number), GAMES, id="start"),
    pytest.param(PAUSED, lambda tournaments, number: tournaments.resume(number), GAMES, id="resume"),
    pytest.param(
        FINISHED,
        lambda tournaments, number: tournaments.rule(number, Action.REPLAY, GAME, "x"),
        GAMES + 1,
        id="ruling",
    ),
]
"""State of a tournament, an action that lets it be played, and the number of its games."""
Start = Callable[[TournamentManager, int], Awaitable[object]]


@pytest.mark.slow
@pytest.mark.parametrize(("state", "start", "games"), STARTS)
async def test_a_start_whose_answer_was_lost_with_the_connection_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: CompetitionState, start: Start, games: int
) -> None:
    async with open_harness(tmp_path) as harness:
        harness = quick(harness)
        async with running(harness, 0.0) as tournaments:
            cup = await cup_in(state, harness, tournaments)
            with lost_answer(harness, monkeypatch), pytest.raises(StoreError, match="was lost"):
                await start(tournaments, cup.id)
            await harness.until_played("cup", games)
            found = await harness.until_state(cup.id, FINISHED, FAILED)
            assert (found.state, found.message) == (FINISHED, "")


@pytest.mark.slow
@pytest.mark.parametrize(("state", "start", "games"), STARTS)
async def test_a_start_that_was_not_stored_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: CompetitionState, start: Start, games: int
) -> None:
    def fail(*_: object) -> None:
        raise StoreError("the database is away", is_ours=True)

    async with open_harness(tmp_path) as harness, running(harness, 0.0) as tournaments:
        cup = await cup_in(state, harness, tournaments)
        before = harness.competition(cup.id), harness.course.journal.entries(9)
        with monkeypatch.context() as patch:
            patch.setattr(harness.course.competitions, "set_state", fail)
            with pytest.raises(StoreError, match="is away"):
                await start(tournaments, cup.id)
        await becomes(lambda: cup.id not in tournaments._runs)
        assert (harness.competition(cup.id), harness.course.journal.entries(9)) == before
        await tournaments.resume(cup.id)  # the ruling itself is noted
        await harness.until_played("cup", games)
        await harness.until_state(cup.id, FINISHED)


async def test_games_that_are_due_at_the_start_of_the_server_are_played_after_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_harness(tmp_path) as harness:
        harness = quick(harness)
        async with running(harness) as tournaments:
            cup = await cup_in(FINISHED, harness, tournaments)
        with Store(harness.context.database.competition("cup")) as store:
            store.note(Entry(Action.REPLAY, GAME, "x", 1, NOW.isoformat()))
        with ExitStack() as stack:
            stack.enter_context(lost_answer(harness, monkeypatch))
            async with running(harness) as tournaments:
                await becomes(lambda: tournaments.retry_reason(cup.id))
                stack.close()
                await harness.until_played("cup", GAMES + 1)
                await harness.until_state(cup.id, FINISHED)


@pytest.mark.usefixtures("impatient")
async def test_a_server_that_ends_while_a_tournament_waits_resumes_it(tmp_path: Path) -> None:
    async with open_harness(tmp_path) as harness:
        async with running(harness) as tournaments:
            cup = await start_cup(harness, tournaments, 3)
            with Connections(harness.context.database.competition("cup")) as another, another.writing():
                harness.engine.allow()
                await becomes(lambda: tournaments.retry_reason(cup.id))
        assert harness.competition(cup.id).state is RUNNING
        async with running(harness) as tournaments:
            await assert_finished(harness, tournaments, cup)


async def test_a_server_that_cannot_read_the_state_of_a_tournament_tries_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The database fails at the start of the server, after the list of tournaments was read."""

    def fail(_competition_id: int) -> None:
        raise StoreError("the database is away", is_ours=True)

    monkeypatch.setattr(server_failures, "wait_s", lambda *_: 0.01)
    async with open_harness(tmp_path) as harness:
        async with running(harness) as tournaments:
            cup = await start_cup(harness, tournaments, 3)
        with monkeypatch.context() as patch:
            patch.setattr(harness.course.competitions, "get", fail)
            failures = harness.context.failures
            async with running(harness, keeps_running=True):
                await becomes(failures.newest)
                patch.undo()
                harness.engine.allow()
                await harness.until_played("cup", GAMES)
                assert (await harness.until_state(cup.id, FINISHED, FAILED)).state is FINISHED
        assert "is away" in failures.newest()[0].why


async def test_a_tournament_goes_on_when_there_is_room_for_files_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    async with open_harness(tmp_path) as harness:
        harness = quick(harness)
        async with running(harness) as tournaments:
            cup = await start_cup(harness, tournaments, 3)
            with monkeypatch.context() as patch:
                patch.setattr(game_files, "_put_in_place", full)
                harness.engine.allow()
                await becomes(lambda: "No space left on device" in tournaments.retry_reason(cup.id))
            await assert_finished(harness, tournaments, cup)
        games = tmp_path / "competitions" / "cup" / game_files.GAMES
        assert len(list(games.iterdir())) == GAMES


async def test_a_damaged_database_stops_its_tournament(tmp_path: Path) -> None:
    async with open_harness(tmp_path) as harness, running(harness, 0.0) as tournaments:
        cup = await start_cup(harness, tournaments, 3)
        await tournaments.pause(cup.id)
        with harness.store("cup") as store:
            (key, *_) = store.played()
        folder = tmp_path / "competitions" / "cup"
        with tampering(harness.context.database.competition("cup")) as connection:
            damage = text("UPDATE game SET record = :record WHERE key = :key")
            connection.execute(damage, {"record": b"\0", "key": key})
        (folder / game_files.GAMES / key).rename(tmp_path / "removed")
        await tournaments.resume(cup.id)
        found = await harness.until_state(cup.id, FAILED)
        assert f": game {key}: " in found.message
