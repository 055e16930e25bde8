"""Qualification: verdicts are about the bot, our own failures are tried again, and nothing is forgotten."""

import json
import os
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import trio

from referee.sandbox.detection import SandboxError
from tests.databases import database_of
from tests.service_world import QUICK, bot, open_service_world, upload
from tests.test_service_bot_worker import lasting_mark, until, until_alive, until_gone
from tests.test_service_workshop import built_bot
from tournaments.bots.upload.limits import SubmittedFile
from tournaments.checking.report import Report
from tournaments.course.course import Course
from tournaments.course.model import CourseError, VersionState
from tournaments.database.location import Database
from tournaments.server.checks import bot_worker, qualifying
from tournaments.server.checks.bot_job import Answer, BotJob
from tournaments.server.checks.qualifying import MAX_ATTEMPTS, MAX_UNFINISHED

FAULTY = upload(SubmittedFile("bot.py", b"1/0\n"))


@dataclass
class FakeChecks:
    """Stands for workers: every bot passes."""

    begun: list[str] = field(default_factory=list)
    most: int = 0
    """At a time."""
    held: trio.Event = field(default_factory=lambda: set_event())
    """No check ends before it is set."""
    _now: int = 0

    async def do(self, job: BotJob, *_: object, **__: object) -> Answer:
        self.begun.append(job.name)
        self._now += 1
        self.most = max(self.most, self._now)
        await trio.sleep(0.01)
        await self.held.wait()
        self._now -= 1
        return Answer(report=Report(job.name, (), "d", (), "", "", ()).to_json(), digest="d")


def set_event() -> trio.Event:
    event = trio.Event()
    event.set()
    return event


async def test_a_good_bot_qualifies_and_what_was_told_is_kept(tmp_path: Path, database: Database) -> None:
    async with open_service_world(tmp_path / "data", database=database) as world:
        version = await world.submit("Team 1", bot())
        assert version.state is VersionState.QUEUED
        log = await world.service.check_log(version.id)
        seen = [line async for line in log.follow()]
        assert "Check of Team 1 v1" in seen
        decided = await world.decided(version.id)
        assert (decided.state, decided.attempts, decided.failures) == (VersionState.QUALIFIED, 1, 0)
        checked = world.course.versions.checked(version.id)
        assert checked is not None
        assert checked.report is not None
        assert Report.from_json(dict(checked.report)).passed
        assert decided.digest == checked.report["digest"]
        for own in (sys.executable, str(tmp_path)):  # what this host keeps where is nothing to students
            assert own not in json.dumps(checked.report) + checked.log
        later = await world.service.check_log(version.id)
        assert later.over
        assert later.lines == seen
        assert world.service.status().unchecked == 0


async def test_a_failed_version_never_replaces_one_that_qualified(tmp_path: Path) -> None:
    async with open_service_world(tmp_path) as world:
        good = await world.submit("Team 1", bot())
        bad = await world.submit("Team 1", FAULTY)
        assert (await world.decided(bad.id)).state is VersionState.FAILED
        assert (await world.decided(good.id)).state is VersionState.QUALIFIED
        assert [one.id for one in world.course.versions.current().values()] == [good.id]
        assert world.version(bad.id).failures > 0
        assert world.version(bad.id).digest is None


async def test_a_build_that_fails_is_a_failure_with_its_output(tmp_path: Path) -> None:
    async with open_service_world(tmp_path) as world:
        version = await world.submit(
            "Team 1", upload(*built_bot("echo no such luck; echo in $PWD/x.c; exit 9"))
        )
        assert (await world.decided(version.id)).state is VersionState.FAILED
        checked = world.course.versions.checked(version.id)
        assert checked is not None
        assert checked.report is not None
        assert "exit status 9" in checked.report["items"][0]["sentence"]
        assert "\nno such luck\nin x.c\n" in checked.log
        assert str(tmp_path) not in checked.log + repr(checked.report)


async def test_checks_are_made_in_order_a_few_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checks = FakeChecks()
    monkeypatch.setattr(qualifying, "run_job", checks.do)
    async with open_service_world(tmp_path) as world:
        versions = [await world.submit(f"Team {number}", bot()) for number in range(6)]
        for version in versions:
            await world.decided(version.id)
    assert checks.begun == [f"Team {number} v1" for number in range(6)]
    assert checks.most == QUICK.checks == 1


async def test_our_failures_are_tried_again_and_then_it_is_stuck_until_a_lecturer_asks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed = (sys.executable, "-c", "import os; os.kill(os.getpid(), 9)")
    real = bot_worker.run_job
    broken = True

    async def fake(job: BotJob, on_line: object, **limits: float) -> Answer:
        return await real(job, print, command=killed if broken else bot_worker.COMMAND, **limits)

    monkeypatch.setattr(qualifying, "run_job", fake)
    async with open_service_world(tmp_path) as world:
        version = await world.submit("Team 1", bot())
        decided = await world.decided(version.id)
        assert (decided.state, decided.attempts) == (VersionState.STUCK, MAX_ATTEMPTS + 1)
        log = await world.service.check_log(version.id)
        assert sum("not the bot's fault" in line for line in log.lines) == MAX_ATTEMPTS
        assert "status -9" not in "\n".join(log.lines)
        (failure,) = world.service.status().failures
        assert "status -9" in failure.why
        assert failure.times == MAX_ATTEMPTS
        broken = False
        assert (await world.service.recheck(version.id)).state is VersionState.QUEUED
        assert (await world.decided(version.id)).state is VersionState.QUALIFIED


async def test_a_host_without_a_sandbox_judges_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none(mode: str) -> object:
        raise SandboxError(f"{mode} is not to be had")

    monkeypatch.setattr(qualifying, "find_sandbox", none)
    async with open_service_world(tmp_path, sandbox_mode="required") as world:
        version = await world.submit("Team 1", FAULTY)
        assert (await world.decided(version.id)).state is VersionState.STUCK
        assert "required is not to be had" in world.service.status().failures[0].why


@pytest.mark.slow
async def test_unfinished_checks_are_taken_up_again_and_end_with_the_service(tmp_path: Path) -> None:
    mark = lasting_mark(4)
    slow = upload(*built_bot(f"[ -e {tmp_path}/go ] || {mark}; cp source.c bot.py", source_c="1/0"))
    async with open_service_world(tmp_path / "data") as world:
        first = await world.submit("Team 1", slow)
        second = await world.submit("Team 2", bot())
        await until_alive(mark.replace(" ", "\0"))
        assert world.version(first.id).state is VersionState.CHECKING
        began = trio.current_time()
    assert trio.current_time() - began < 5
    await until_gone(mark.replace(" ", "\0"))
    (tmp_path / "go").write_text("")
    async with open_service_world(tmp_path / "data") as world:
        assert (await world.decided(first.id)).state is VersionState.FAILED
        assert world.version(first.id).attempts == 2
        assert (await world.decided(second.id)).state is VersionState.QUALIFIED
        assert os.listdir(tmp_path / "data" / "bots" / "incoming") == []  # noqa: PTH208


async def test_a_bot_that_always_kills_the_server_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(qualifying, "run_job", FakeChecks().do)
    async with open_service_world(tmp_path) as world:
        version = await world.submit("Team 1", bot())
        await world.decided(version.id)
    with Course(database_of(tmp_path).course()) as course:  # as if each of these servers had been killed
        course.versions.requeue(version.id)
        for _ in range(MAX_UNFINISHED):
            course.versions.begin_check(version.id)
    async with open_service_world(tmp_path) as world:
        assert (await world.decided(version.id)).state is VersionState.STUCK
        log = await world.service.check_log(version.id)
        assert f"begun {MAX_UNFINISHED + 1} times" in log.text
        await world.service.recheck(version.id)
        assert (await world.decided(version.id)).state is VersionState.QUALIFIED


async def test_a_check_that_is_asked_for_during_a_check_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checks = FakeChecks(held=trio.Event())
    monkeypatch.setattr(qualifying, "run_job", checks.do)
    async with open_service_world(tmp_path) as world:
        version = await world.submit("Team 1", bot())
        await until(lambda: checks.begun)
        await world.service.recheck(version.id)
        checks.held.set()
        assert (await world.decided(version.id)).state is VersionState.QUALIFIED
        log = await world.service.check_log(version.id)
        assert "Another check was asked for meanwhile." in log.lines
        assert checks.begun == ["Team 1 v1"] * 2


async def test_there_is_no_log_of_nothing(tmp_path: Path) -> None:
    async with open_service_world(tmp_path) as world:
        with pytest.raises(CourseError, match="no version"):
            await world.service.check_log(99)
        with pytest.raises(CourseError, match="no version"):
            await world.service.recheck(99)
