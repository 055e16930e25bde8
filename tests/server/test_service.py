"""The service as a whole: uploads are stored before they are acknowledged; it ends and begins at any time."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest
import trio
from trio.testing import MockClock

from tests.server.harness import ENDS_WITHIN_S, GAME, FakeChecks, bot, open_service, starter, until
from tests.support.courses import FAST_PASSWORDS, NOW, add_student, use_link
from tests.support.databases import database_of
from tournaments.bots.manifest import manifest_of
from tournaments.bots.storage import MissingContentError, content_digest
from tournaments.bots.upload.limits import SubmittedFile, Upload
from tournaments.course.course import Course
from tournaments.course.model import CompetitionKind, Competitor, CourseError, Role, VersionState
from tournaments.database.location import Database
from tournaments.results.store import Store
from tournaments.server.bot_provider import CannotPlayError
from tournaments.server.checks import qualifying
from tournaments.server.config import ServiceConfig
from tournaments.server.demo import TEAMS, set_up_demo
from tournaments.server.failures import LONGEST_WAIT_S, MAX_KEPT, Failures, kept_running, wait_s
from tournaments.server.slots import Kind

if TYPE_CHECKING:
    from tournaments.server.service import Service


# Uploads


async def test_simultaneous_uploads_are_stored_and_numbered(
    tmp_path: Path, database: Database, checks: FakeChecks
) -> None:
    checks.released = trio.Event()
    async with open_service(tmp_path / "data", database=database) as harness:
        team = harness.course.teams.add("Team 1", NOW)
        student = add_student(harness.course, team)
        contents: dict[int, str] = {}

        async def submit(number: int) -> None:
            version, is_new = await harness.service.submit(bot(number), team.id, student.id, "api", NOW)
            assert is_new
            contents[version.number] = version.content

        async with trio.open_nursery() as nursery:
            for number in range(12):
                nursery.start_soon(submit, number)
        assert sorted(contents) == list(range(1, 13))
        assert set(contents.values()) == {content_digest(bot(number).files) for number in range(12)}
        for version in harness.course.versions.of_team(team.id):
            assert contents[version.number] == version.content
            files = harness.service.contents.read(version.content)
            size = sum(len(file.content) for file in files)
            assert (version.origin, version.files, version.size) == ("api", len(starter()) + 1, size)


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"uploads_open": False}, "Uploads are closed"),
        ({"deadline": "2026-03-02T11:59+00:00"}, "The deadline was"),
        ({"uploads_per_day": 1}, "1 upload a day"),
        ({"uploads_total": 1}, "1 upload in all"),
        ({"team_storage_mb": 1}, "ask the lecturer for more storage"),
        ({"course_storage_mb": 1}, "All teams' uploads"),
    ],
)
async def test_an_upload_that_is_not_permitted_leaves_nothing(
    tmp_path: Path, checks: FakeChecks, settings: dict[str, Any], why: str
) -> None:
    async with open_service(tmp_path) as harness:
        first = await harness.submit("Team 1", bot(1))
        harness.course.settings.change(**settings)
        again, is_new = await harness.service.submit(bot(1), first.team_id, first.submitted_by, "page", NOW)
        assert (again.id, is_new) == (first.id, False)  # the same files are the same version
        large = SubmittedFile("table.bin", bytes(1 << 20))  # of which an archive has a kilobyte
        second = replace(bot(2), files=(*bot(2).files, large))
        with pytest.raises(CourseError, match=why):
            await harness.service.submit(second, first.team_id, first.submitted_by, "page", NOW)
        with pytest.raises(MissingContentError):
            harness.service.contents.path(content_digest(second.files))
        assert [one.id for one in harness.course.versions.of_team(first.team_id)] == [first.id]


async def test_simultaneous_uploads_that_are_not_permitted_leave_nothing(
    tmp_path: Path, checks: FakeChecks
) -> None:
    async with open_service(tmp_path, uploads_per_day=1) as harness:
        team = harness.course.teams.add("Team 1", NOW)
        student = add_student(harness.course, team)
        refused = []

        async def submit(number: int) -> None:
            try:
                await harness.service.submit(bot(number), team.id, student.id, "api", NOW)
            except CourseError as error:
                refused.append(str(error))

        async with trio.open_nursery() as nursery:
            for number in range(8):
                nursery.start_soon(submit, number)
        assert len(refused) == 7
        (version,) = harness.course.versions.of_team(team.id)
        assert list(harness.service.contents.digests()) == [version.content]


@pytest.mark.parametrize("limit", ["team_storage_mb", "course_storage_mb"])
async def test_built_bots_count_as_storage(tmp_path: Path, checks: FakeChecks, limit: str) -> None:
    async with open_service(tmp_path) as harness:
        harness.course.settings.change(**{limit: 3})
        first = await harness.submit("Team 1", bot(1))
        built = tmp_path / "bots" / first.content / "bot"
        built.mkdir(parents=True)
        (built / "table.bin").write_bytes(bytes(3 << 20))  # made by its build
        with pytest.raises(CourseError, match=r"uploads and the bots built from them take 3\.\d of 3 MiB"):
            await harness.service.submit(bot(2), first.team_id, first.submitted_by, "page", NOW)
        assert harness.service.built_size(first.team_id) >= 3 << 20
        if limit == "team_storage_mb":
            other = await harness.submit("Team 2", bot(2))
            assert harness.service.built_size(other.team_id) == 0


# From the upload to the ladder, and after a restart


@pytest.mark.slow
async def test_a_version_qualifies_and_plays(tmp_path: Path) -> None:
    async with open_service(tmp_path, practice_on=True, references=["random:1"]) as harness:
        service = harness.service
        version = await harness.submit("Team 1", bot())
        assert (await harness.decided(version.id)).state is VersionState.QUALIFIED
        await until(lambda: service.status().playing)
        status = service.status()
        assert {status.playing[0].first, status.playing[0].second} == {"Team 1 v1", "random:1"}
        assert (status.slots, status.resting, status.unchecked) == (2, "", 0)
        assert status.uses[Kind.PRACTICE].taken in (1, 2)
        ladder = harness.course.competitions.by_slug("practice")
        assert ladder is not None
        with Store(harness.database.competition("practice")) as store:
            await until(store.played)
        summary = await service.tournaments.summary(ladder.id, wait=True)
        assert {row.name for row in summary.table} == {"Team 1 v1", "random:1"}
        record = await service.tournaments.record(ladder.id, summary.games[0].key)
        assert record.game == GAME
        harness.course.settings.change(practice_on=False)
        service.settings_changed()
        await until(lambda: not service.status().playing)
        harness.course.settings.change(practice_on=True)
        service.settings_changed()
        await until(lambda: service.status().playing)
        assert service.status().failures == ()
        began = trio.current_time()
    assert trio.current_time() - began < ENDS_WITHIN_S


@pytest.mark.slow
async def test_bots_are_built_again_when_their_copies_are_lost(tmp_path: Path) -> None:
    """As after the restoration of a backup, which has no copies."""
    async with open_service(tmp_path) as harness:
        version = await harness.submit("Team 1", bot())
        digest = (await harness.decided(version.id)).digest
    for path in sorted((tmp_path / "bots").rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    async with open_service(tmp_path) as harness:
        bots = harness.service.tournaments._context.bots
        player = await bots.player(Competitor(1, "Team 1 v1", version.id, None), GAME)
        assert (player.name, player.digest) == ("Team 1 v1", digest)
        with pytest.raises(CannotPlayError, match="is not there any more"):
            await bots.player(Competitor(1, "Team 9 v1", 99, None), GAME)
        reference = await bots.player(Competitor(1, "greedy", None, "greedy"), GAME)
        assert reference.name == "greedy"


async def test_a_start_removes_bots_that_cannot_play_any_more(tmp_path: Path, checks: FakeChecks) -> None:
    """Old versions are removed, too, unless a tournament has them."""
    async with open_service(tmp_path) as harness:
        old, entered, current = [
            (await harness.decided((await harness.submit("Team 1", bot(number))).id)).content
            for number in (1, 2, 3)
        ]
        kind = CompetitionKind.TOURNAMENT
        cup = harness.course.competitions.add("cup", "Cup", kind, {}, None, NOW)
        harness.course.competitions.enter(cup.id, "Team 1 v2", 2, None)
    unknown = "0" * 64
    for content in (old, entered, current, unknown):
        (tmp_path / "bots" / content).mkdir(exist_ok=True)
    async with open_service(tmp_path):
        kept = {path.name for path in (tmp_path / "bots").iterdir()}
        assert kept == {entered, current, "incoming"}


async def test_a_part_that_fails_is_started_again_and_the_others_go_on(
    tmp_path: Path, checks: FakeChecks, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries = 0
    real_run = qualifying.CheckQueue.run

    async def run(self: qualifying.CheckQueue) -> None:
        nonlocal tries
        tries += 1
        if tries == 1:
            raise OSError("no disk")
        await real_run(self)

    monkeypatch.setattr(qualifying.CheckQueue, "run", run)
    async with open_service(tmp_path) as harness:
        version = await harness.submit("Team 1", bot())
        assert (await harness.decided(version.id)).state is VersionState.QUALIFIED
        (failure,) = harness.service.status().failures
        assert (failure.where, failure.why) == ("the queue of checks", "OSError: no disk")


# Configuration


@pytest.mark.parametrize(
    "values",
    [{"slots": 0}, {"checks": 0}, {"nice": 20}, {"nice": -1}, {"retry_s": 0.0}, {"leisure_s": float("inf")}],
)
def test_an_invalid_configuration_is_refused(values: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(values))):
        ServiceConfig(**values)


def test_half_of_the_slots_are_for_checks_by_default() -> None:
    assert [ServiceConfig().checks_on(cores) for cores in (1, 2, 3, 8)] == [1, 1, 1, 4]
    assert ServiceConfig(slots=6).checks_on(2) == 3
    assert ServiceConfig(slots=6, checks=5).checks_on(2) == 5
    assert ServiceConfig().slots_on(4) == 4


# Failures


def test_the_newest_failures_are_kept_and_repetitions_counted() -> None:
    moments = iter(NOW + timedelta(seconds=number) for number in range(1000))
    failures = Failures(lambda: next(moments))
    for where, why in (("practice", "no disk"), ("practice", "no disk"), ("checks", "no memory")):
        failures.note(where, why)
    newest = failures.newest()
    assert [(one.why, one.times) for one in newest] == [("no memory", 1), ("no disk", 2)]
    assert newest[1].at == NOW + timedelta(seconds=1)
    for number in range(MAX_KEPT + 5):
        failures.note("checks", str(number))
    assert len(failures.newest()) == MAX_KEPT
    assert failures.newest()[0].why == str(MAX_KEPT + 4)


def test_an_exception_is_stored_with_its_traceback() -> None:
    failures = Failures(lambda: NOW)
    with pytest.RaisesGroup(ZeroDivisionError) as raised:
        raise ExceptionGroup("of a nursery", [ZeroDivisionError("once more")])
    failures.note("practice", raised.value)
    (failure,) = failures.newest()
    assert failure.why == "ZeroDivisionError: once more"
    assert "test_an_exception_is_stored" in failure.trace


@pytest.mark.parametrize(("lasts_s", "waits"), [(0.0, [1.0, 2.0, 4.0, 8.0]), (LONGEST_WAIT_S + 1, [1.0] * 4)])
async def test_a_task_that_fails_is_started_again_later(
    autojump_clock: MockClock, lasts_s: float, waits: list[float]
) -> None:
    """The waits double, but not after a long time without a failure."""
    failures = Failures(lambda: NOW)
    began: list[float] = []

    async def task() -> None:
        began.append(trio.current_time())
        await trio.sleep(lasts_s)
        if len(began) <= len(waits):
            raise OSError("no disk")

    await kept_running("practice", task, failures)
    assert [later - earlier - lasts_s for earlier, later in pairwise(began)] == pytest.approx(waits)
    assert [(one.where, one.times) for one in failures.newest()] == [("practice", len(waits))]
    assert wait_s(3, 10.0) == 40.0
    assert wait_s(10_000) == LONGEST_WAIT_S


# The demo course


@dataclass
class UploadRecorder:
    """A service that only stores versions."""

    course: Course
    uploads: list[Upload] = field(default_factory=list)
    is_closed: bool = False

    async def submit(self, upload: Upload, team_id: int, account_id: int, origin: str, at: datetime) -> Any:
        if self.is_closed:
            raise CourseError("the deadline has passed")
        self.uploads.append(upload)
        digest = content_digest(upload.files)
        return self.course.versions.add(team_id, digest, len(upload.files), 1, account_id, origin, at)

    async def set_up(self) -> Mapping[str, str]:
        return await set_up_demo(self.course, cast("Service", self), NOW)


async def test_the_demo_course_is_made_once(tmp_path: Path) -> None:
    with Course(database_of(tmp_path).course(), FAST_PASSWORDS) as course:
        recorder = UploadRecorder(course, is_closed=True)
        assert len(await recorder.set_up()) == 4  # without bots, after a deadline
        recorder.is_closed = False
        links = await recorder.set_up()
        assert [team.name for team in course.teams.all()] == list(TEAMS)
        roles = {account.login: account.role for account in course.accounts.all()}
        students = ["student-1", "student-2", "student-3"]
        assert roles == {**dict.fromkeys(students, Role.STUDENT), "lecturer": Role.LECTURER}
        for login, secret in links.items():
            found = course.links.find(secret, NOW)
            assert found is not None
            assert found[0].login == login
        assert course.settings.load().standings_for == "named"
        assert len(recorder.uploads) == 2
        for upload in recorder.uploads:
            files = {file.path: file.content for file in upload.files}
            assert manifest_of(tomllib.loads(files["bot.toml"].decode())).command[-1] in files

        use_link(course, links["lecturer"], "a long password", NOW)
        course.settings.change(title="My course", standings_for="nobody")
        assert sorted(await recorder.set_up()) == students
        assert (len(recorder.uploads), len(course.accounts.all())) == (2, 4)
        settings = course.settings.load()
        assert (settings.title, settings.standings_for) == ("My course", "nobody")
