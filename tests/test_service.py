"""The service as a whole: uploads are kept before they are acknowledged; it ends and begins at any time."""

from pathlib import Path
from typing import Any

import pytest
import trio

from tests.courses import NOW, a_student
from tests.service_world import bot, open_service_world, upload
from tests.test_service_bot_worker import until
from tests.test_service_qualifying import FakeChecks
from tests.test_service_workshop import GAME, starter
from tournaments.bots.storage import MissingContentError, content_digest
from tournaments.bots.upload.limits import SubmittedFile
from tournaments.course.model import CompetitionState, Competitor, CourseError, VersionState
from tournaments.database.location import Database
from tournaments.results.store import Store
from tournaments.server.bot_provider import CannotPlayError
from tournaments.server.checks import qualifying
from tournaments.server.config import ServiceConfig
from tournaments.server.failures import Failures
from tournaments.server.slots import Kind, Use


@pytest.fixture
def checks(monkeypatch: pytest.MonkeyPatch) -> FakeChecks:
    """No real checks."""
    fake = FakeChecks()
    monkeypatch.setattr(qualifying, "run_job", fake.do)
    return fake


async def test_uploads_are_kept_and_numbered_however_many_come_at_once(
    tmp_path: Path, database: Database, checks: FakeChecks
) -> None:
    checks.held = trio.Event()
    async with open_service_world(tmp_path / "data", database=database) as world:
        team = world.course.teams.add("Team 1", NOW)
        student = a_student(world.course, team)
        kept: dict[int, str] = {}

        async def submit(number: int) -> None:
            version, is_new = await world.service.submit(bot(number), team.id, student.id, "api")
            assert is_new
            kept[version.number] = version.content

        async with trio.open_nursery() as nursery:
            for number in range(12):
                nursery.start_soon(submit, number)
        assert sorted(kept) == list(range(1, 13))
        assert set(kept.values()) == {content_digest(bot(number).files) for number in range(12)}
        for version in world.course.versions.of_team(team.id):
            assert kept[version.number] == version.content
            assert (version.origin, version.files) == ("api", len(starter()) + 1)
            assert version.size == sum(
                len(file.content) for file in world.service.contents.read(version.content)
            )


async def test_the_same_files_again_are_the_same_version(tmp_path: Path, checks: FakeChecks) -> None:
    async with open_service_world(tmp_path, uploads_total=1) as world:
        version = await world.submit("Team 1", bot())
        again = await world.service.submit(bot(), version.team_id, version.submitted_by, "page")
        assert again[0].id == version.id
        assert again[1] is False


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"uploads_open": False}, "Uploads are closed"),
        ({"deadline": "2026-03-02T11:59+00:00"}, "The deadline was"),
        ({"uploads_per_day": 1}, "1 upload a day"),
        ({"uploads_total": 1}, "1 upload in all"),
    ],
)
async def test_an_upload_that_is_not_allowed_leaves_nothing(
    tmp_path: Path, checks: FakeChecks, settings: dict[str, Any], why: str
) -> None:
    async with open_service_world(tmp_path) as world:
        first = await world.submit("Team 1", bot(1))
        world.course.settings.change(**settings)
        with pytest.raises(CourseError, match=why):
            await world.service.submit(bot(2), first.team_id, first.submitted_by, "page")
        with pytest.raises(MissingContentError):
            world.service.contents.path(content_digest(bot(2).files))
        assert [one.id for one in world.course.versions.of_team(first.team_id)] == [first.id]


async def test_a_version_qualifies_and_plays_and_can_be_seen(tmp_path: Path) -> None:
    async with open_service_world(tmp_path, practice_on=True, references=["random:1"]) as world:
        service = world.service
        version = await world.submit("Team 1", bot())
        assert (await world.decided(version.id)).state is VersionState.QUALIFIED
        await until(lambda: service.status().playing)
        status = service.status()
        assert {status.playing[0].first, status.playing[0].second} == {"Team 1 v1", "random:1"}
        assert (status.slots, status.resting, status.unchecked) == (2, "", 0)
        assert status.uses[Kind.PRACTICE].taken in (1, 2)
        ladder = world.course.competitions.by_slug("practice")
        assert ladder is not None
        with Store(world.database.competition("practice")) as store:
            await until(store.played)
        summary = await service.contests.summary(ladder.id, wait=True)
        assert {row.name for row in summary.table} == {"Team 1 v1", "random:1"}
        record = await service.contests.record(ladder.id, summary.games[0].key)
        assert record.game == GAME
        await service.pause(ladder.id)
        await until(lambda: not service.status().playing)
        assert world.course.competitions.by_slug("practice").state is CompetitionState.PAUSED  # type: ignore[union-attr]
        await service.start(ladder.id)
        await until(lambda: service.status().playing)
        assert service.status().failures == ()
        began = trio.current_time()
    assert trio.current_time() - began < 5


async def test_starting_what_there_is_not(tmp_path: Path) -> None:
    async with open_service_world(tmp_path) as world:
        with pytest.raises(CourseError, match="no competition 99"):
            await world.service.start(99)
        with pytest.raises(CourseError, match="no competition 99"):
            await world.service.pause(99)


async def test_bots_are_built_again_when_their_copies_are_lost(tmp_path: Path) -> None:
    """As after a backup was restored, which has none."""
    async with open_service_world(tmp_path) as world:
        version = await world.submit("Team 1", bot())
        digest = (await world.decided(version.id)).digest
        await world.submit("Team 1", upload(SubmittedFile("bot.py", b"1/0")))
    for path in sorted((tmp_path / "bots").rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    async with open_service_world(tmp_path) as world:
        bots = world.service.contests._parts.bots
        player = await bots.player(Competitor(1, "Team 1 v1", version.id, None), GAME)
        assert (player.name, player.digest) == ("Team 1 v1", digest)
        with pytest.raises(CannotPlayError, match="is not there any more"):
            await bots.player(Competitor(1, "Team 9 v1", 99, None), GAME)
        reference = await bots.player(Competitor(1, "greedy", None, "greedy"), GAME)
        assert reference.name == "greedy"


async def test_a_start_removes_what_nobody_can_play_any_more(tmp_path: Path, checks: FakeChecks) -> None:
    async with open_service_world(tmp_path) as world:
        version = await world.submit("Team 1", bot())
        await world.decided(version.id)
    for content in (version.content, "0" * 64):
        (tmp_path / "bots" / content).mkdir()
    async with open_service_world(tmp_path):
        assert (tmp_path / "bots" / version.content).is_dir()
        assert not (tmp_path / "bots" / ("0" * 64)).exists()


async def test_a_part_that_fails_is_started_again_and_the_others_go_on(
    tmp_path: Path, checks: FakeChecks, monkeypatch: pytest.MonkeyPatch
) -> None:
    times = 0
    real = qualifying.CheckQueue.run

    async def failing(self: qualifying.CheckQueue) -> None:
        nonlocal times
        times += 1
        if times == 1:
            raise OSError("no disk")
        await real(self)

    monkeypatch.setattr(qualifying.CheckQueue, "run", failing)
    async with open_service_world(tmp_path) as world:
        version = await world.submit("Team 1", bot())
        assert (await world.decided(version.id)).state is VersionState.QUALIFIED
        (failure,) = world.service.status().failures
        assert (failure.where, failure.why) == ("the queue of checks", "OSError: no disk")


@pytest.mark.parametrize(
    "values",
    [{"slots": 0}, {"checks": 0}, {"nice": 20}, {"nice": -1}, {"retry_s": 0.0}, {"leisure_s": float("inf")}],
)
def test_a_config_that_makes_no_sense_is_refused(values: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(values))):
        ServiceConfig(**values)


def test_half_of_the_places_are_for_checks_unless_it_is_said() -> None:
    assert [ServiceConfig().checks_on(cores) for cores in (1, 2, 3, 8)] == [1, 1, 1, 4]
    assert ServiceConfig(slots=6).checks_on(2) == 3
    assert ServiceConfig(slots=6, checks=5).checks_on(2) == 5
    assert ServiceConfig().slots_on(4) == 4
    assert Use(0, 0) != Use(1, 0)
    assert Failures(lambda: NOW).newest() == ()
