"""The queue of checks: its order, its logs, and that a failure of the host is never a bot's verdict."""

import json
import os
import sqlite3
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st

from referee.sandbox.detection import SandboxError
from tests.server.harness import (
    ANY_VERSION,
    ENDS_WITHIN_S,
    QUICK,
    FakeChecks,
    bot,
    built_bot,
    lasting_command,
    open_service,
    until,
    until_gone,
    upload,
)
from tests.support.databases import database_of
from tests.support.processes import living_with
from tournaments.bots.upload.limits import SubmittedFile
from tournaments.checking.report import Report
from tournaments.course.course import Course
from tournaments.course.model import CourseError, VersionState
from tournaments.database.base import StoreError
from tournaments.database.location import Database
from tournaments.server.checks import bot_worker, qualifying
from tournaments.server.checks.bot_job import Answer, BotJob
from tournaments.server.checks.check_log import CUT, LONGEST_LINE, MAX_BYTES, MAX_LINES, CheckLog
from tournaments.server.checks.qualifying import MAX_ATTEMPTS, MAX_UNFINISHED, next_to_check

FAULTY = upload(SubmittedFile("bot.py", b"1/0\n"))
QUEUED, CHECKING, QUALIFIED, FAILED, STUCK = VersionState


# Order


def order_of(teams: list[int]) -> list[tuple[int, int]]:
    """Return teams and ids of versions that were submitted in this order, in the order of their checks."""
    waiting = [replace(ANY_VERSION, id=number, team_id=team) for number, team in enumerate(teams, 1)]
    turns: dict[int, int] = {}
    found: list[tuple[int, int]] = []
    while waiting:
        version = next_to_check(waiting, turns)
        waiting.remove(version)
        turns[version.team_id] = len(found) + 1
        found.append((version.team_id, version.id))
    return found


def test_a_team_that_submits_often_waits_for_the_others() -> None:
    assert order_of([7, 7, 7, 5, 6, 5]) == [(7, 3), (5, 6), (6, 5), (7, 2), (5, 4), (7, 1)]


@given(st.lists(st.integers(1, 4), max_size=12))
def test_every_version_has_its_turn_and_teams_alternate(teams: list[int]) -> None:
    order = order_of(teams)
    assert sorted(number for _, number in order) == list(range(1, len(teams) + 1))
    for team in set(teams):
        own = [number for one, number in order if one == team]
        assert own == sorted(own, reverse=True)
        turns = [index for index, (one, _) in enumerate(order) if one == team]
        for before, after in pairwise(turns):
            between = {one for one, _ in order[before + 1 : after]}
            assert {one for one, _ in order[after + 1 :]} - {team} <= between, "a team was passed over"


# Logs


async def test_each_reader_of_a_log_gets_each_line_once(nursery: trio.Nursery) -> None:
    log = CheckLog()
    seen: dict[int, list[str]] = {0: [], 1: [], 2: []}
    ended = 0

    async def read(after: int) -> None:
        nonlocal ended
        async for line in log.follow(after):
            seen[after].append(line)
        ended += 1

    log.add("one")
    for after in seen:
        nursery.start_soon(read, after)
    await trio.testing.wait_all_tasks_blocked()
    assert seen == {0: ["one"], 1: [], 2: []}
    log.add("two\nthree")
    await trio.testing.wait_all_tasks_blocked()
    assert seen == {0: ["one", "two", "three"], 1: ["two", "three"], 2: ["three"]}
    assert (log.over, ended) == (False, 0)
    log.add("four")
    log.close()
    await trio.testing.wait_all_tasks_blocked()
    assert ended == 3
    assert seen[2] == ["three", "four"]
    assert [line async for line in log.follow(3)] == ["four"]
    assert [line async for line in log.follow(7)] == []


def test_a_log_keeps_within_its_bounds() -> None:
    log = CheckLog()
    for number in range(MAX_LINES + 10):
        log.add(str(number))
    assert len(log.lines) == MAX_LINES + 1
    assert log.lines.index(CUT) == MAX_LINES
    wide = CheckLog()
    wide.add("\u20ac" * (2 * LONGEST_LINE))
    assert wide.lines == ["\u20ac" * LONGEST_LINE + "..."]
    for _ in range(1000):
        wide.add("\u20ac" * LONGEST_LINE)
    assert wide.lines[-1] == CUT
    assert len(wide.text.encode()) <= MAX_BYTES + len(CUT) + 1


@given(st.lists(st.text()))
def test_a_log_is_restored_from_its_text(texts: list[str]) -> None:
    log = CheckLog()
    for text in texts:
        log.add(text)
    restored = CheckLog.of(log.text)
    assert (restored.text, restored.over) == (log.text, True)


# Verdicts


@pytest.mark.slow
async def test_a_good_bot_qualifies_and_a_faulty_one_fails(tmp_path: Path, database: Database) -> None:
    async with open_service(tmp_path / "data", database=database) as harness:
        good = await harness.submit("Team 1", bot())
        assert good.state is QUEUED
        log = await harness.service.check_log(good.id)
        seen = [line async for line in log.follow()]
        assert "Check of Team 1 v1" in seen
        decided = await harness.decided(good.id)
        assert (decided.state, decided.attempts, decided.failures) == (QUALIFIED, 1, 0)
        checked = harness.course.versions.checked(good.id)
        assert checked is not None
        assert checked.report is not None
        assert Report.from_json(dict(checked.report)).passed
        assert decided.digest == checked.report["digest"]
        keys = [game["key"] for game in checked.report["played"]]
        assert harness.course.versions.checked_games(good.id) == keys != []
        for path in (sys.executable, str(tmp_path)):  # students do not see the paths of this host
            assert path not in json.dumps(checked.report) + checked.log
        later = await harness.service.check_log(good.id)
        assert (later.over, later.lines) == (True, seen)

        bad = await harness.decided((await harness.submit("Team 1", FAULTY)).id)
        assert (bad.state, bad.failures > 0, bad.digest) == (FAILED, True, None)
        assert [one.id for one in harness.course.versions.current().values()] == [good.id]
        await until(lambda: harness.service.status().unchecked == 0)


async def test_a_failed_build_is_a_failure_with_its_output(tmp_path: Path) -> None:
    async with open_service(tmp_path) as harness:
        files = upload(*built_bot("echo no such luck; echo in $PWD/x.c; exit 9"))
        version = await harness.decided((await harness.submit("Team 1", files)).id)
        assert version.state is FAILED
        checked = harness.course.versions.checked(version.id)
        assert checked is not None
        assert checked.report is not None
        assert "exit status 9" in checked.report["items"][0]["sentence"]
        assert "\nno such luck\nin x.c\n" in checked.log
        assert str(tmp_path) not in checked.log + repr(checked.report)


async def test_checks_run_in_order_and_a_few_at_a_time(tmp_path: Path, checks: FakeChecks) -> None:
    async with open_service(tmp_path) as harness:
        versions = [await harness.submit(f"Team {number}", bot()) for number in range(6)]
        for version in versions:
            await harness.decided(version.id)
    assert checks.begun == [f"Team {number} v1" for number in range(6)]
    assert checks.most == QUICK.checks == 1


async def test_a_check_that_is_requested_during_a_check(tmp_path: Path, checks: FakeChecks) -> None:
    checks.released = trio.Event()
    async with open_service(tmp_path) as harness:
        version = await harness.submit("Team 1", bot())
        await until(lambda: checks.begun)
        await harness.service.recheck(version.id)
        checks.released.set()
        assert (await harness.decided(version.id)).state is QUALIFIED
        log = await harness.service.check_log(version.id)
        assert "Another check was asked for meanwhile." in log.lines
        assert checks.begun == ["Team 1 v1"] * 2
        for query in (harness.service.check_log, harness.service.recheck):
            with pytest.raises(CourseError, match="no version"):
                await query(99)


# Failures of the host


async def test_a_failure_of_the_host_is_retried_until_the_version_is_stuck(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, checks: FakeChecks
) -> None:
    killed = (sys.executable, "-S", "-c", "import os; os.kill(os.getpid(), 9)")
    is_broken = True

    async def run_job(job: BotJob, on_line: object, **limits: float) -> Answer:
        if not is_broken:
            return await checks.run_job(job)
        return await bot_worker.run_job(job, print, command=killed, **limits)

    monkeypatch.setattr(qualifying, "run_job", run_job)
    async with open_service(tmp_path) as harness:
        version = await harness.submit("Team 1", bot())
        decided = await harness.decided(version.id)
        assert (decided.state, decided.attempts) == (STUCK, MAX_ATTEMPTS + 1)
        log = await harness.service.check_log(version.id)
        assert sum("not the bot's fault" in line for line in log.lines) == MAX_ATTEMPTS
        assert "status -9" not in "\n".join(log.lines)
        (failure,) = harness.service.status().failures
        assert ("status -9" in failure.why, failure.times) == (True, MAX_ATTEMPTS)
        is_broken = False
        assert (await harness.service.recheck(version.id)).state is QUEUED
        assert (await harness.decided(version.id)).state is QUALIFIED


@pytest.mark.parametrize(
    ("failure", "why"),
    [
        (Answer(ours="no space left in /srv/bots"), "no space left in /srv/bots"),
        (ZeroDivisionError("no such case"), "ZeroDivisionError: no such case"),
        (StoreError("the database is away", is_ours=True), "the database is away"),
    ],
    ids=["worker", "mistake", "database"],
)
async def test_a_check_that_the_host_could_not_make_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, checks: FakeChecks, failure: Answer | Exception, why: str
) -> None:
    begun: list[str] = []

    async def run_job(job: BotJob, *_: object, **__: object) -> Answer:
        begun.append(job.name)
        if len(begun) > 1:
            return await checks.run_job(job)
        if isinstance(failure, Exception):
            raise failure
        return failure

    monkeypatch.setattr(qualifying, "run_job", run_job)
    async with open_service(tmp_path) as harness:
        version = await harness.submit("Team 1", bot())
        assert (await harness.decided(version.id)).state is QUALIFIED
        log = await harness.service.check_log(version.id)
        assert sum("not the bot's fault" in line for line in log.lines) == 1
        assert why not in "\n".join(log.lines)
        (noted,) = harness.service.status().failures
        assert noted.why == why
    assert len(begun) == 2


async def test_a_verdict_is_stored_also_if_its_games_cannot_be(tmp_path: Path) -> None:
    async with open_service(tmp_path, database=Database(tmp_path)) as harness:
        with sqlite3.connect(tmp_path / "course.db") as connection:
            when, action = "BEFORE INSERT ON checked_game", "SELECT RAISE(ABORT, 'disk full')"
            connection.execute(f"CREATE TRIGGER full {when} BEGIN {action}; END")
        connection.close()
        version = await harness.decided((await harness.submit("Team 1", FAULTY)).id)
        assert (version.state, version.attempts) == (FAILED, 1)
        checked = harness.course.versions.checked(version.id)
        assert checked is not None
        assert checked.report is not None
        assert harness.course.versions.checked_games(version.id) == []
        await until(lambda: harness.service.status().failures)
        (failure,) = harness.service.status().failures
        assert failure.where == f"the games of the check of version {version.id}"
        assert "disk full" in failure.why


async def test_without_a_sandbox_no_bot_is_judged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def find_sandbox(mode: str) -> object:
        raise SandboxError(f"{mode} is not to be had")

    monkeypatch.setattr(qualifying, "find_sandbox", find_sandbox)
    async with open_service(tmp_path, sandbox_mode="required") as harness:
        version = await harness.submit("Team 1", FAULTY)
        assert (await harness.decided(version.id)).state is STUCK
        assert "required is not to be had" in harness.service.status().failures[0].why


async def test_a_bot_that_kills_the_server_each_time_is_stuck(tmp_path: Path, checks: FakeChecks) -> None:
    async with open_service(tmp_path) as harness:
        version = await harness.submit("Team 1", bot())
        await harness.decided(version.id)
    with Course(database_of(tmp_path).course()) as course:  # as if each of these servers had been killed
        course.versions.requeue(version.id)
        for _ in range(MAX_UNFINISHED):
            course.versions.begin_check(version.id)
    async with open_service(tmp_path) as harness:
        assert (await harness.decided(version.id)).state is STUCK
        log = await harness.service.check_log(version.id)
        assert f"begun {MAX_UNFINISHED + 1} times" in log.text
        await harness.service.recheck(version.id)
        assert (await harness.decided(version.id)).state is QUALIFIED


@pytest.mark.slow
async def test_unfinished_checks_end_with_the_service_and_are_resumed(tmp_path: Path) -> None:
    command = lasting_command(4)
    mark = command.replace(" ", "\0")
    slow = upload(*built_bot(f"[ -e {tmp_path}/go ] || {command}; cp source.c bot.py", source_c="1/0"))
    async with open_service(tmp_path / "data") as harness:
        first = await harness.submit("Team 1", slow)
        second = await harness.submit("Team 2", bot())
        await until(lambda: living_with(mark))
        assert harness.version(first.id).state is CHECKING
        began = trio.current_time()
    assert trio.current_time() - began < ENDS_WITHIN_S
    await until_gone(mark)
    (tmp_path / "go").write_text("")
    async with open_service(tmp_path / "data") as harness:
        resumed = await harness.decided(first.id)
        assert (resumed.state, resumed.attempts) == (FAILED, 2)
        assert (await harness.decided(second.id)).state is QUALIFIED
        assert os.listdir(tmp_path / "data" / "bots" / "incoming") == []  # noqa: PTH208
