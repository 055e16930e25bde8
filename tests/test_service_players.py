"""Which bots are made at the same time, and which wait for others."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from tests.courses import CHEAP
from tests.databases import database_of
from tests.service_world import QUICK
from tournaments.bots.storage import ContentStore
from tournaments.course.course import Course
from tournaments.course.model import Competitor
from tournaments.server import bot_provider
from tournaments.server.bot_provider import BotProvider, CannotPlayError
from tournaments.server.bot_storage import BotStorage
from tournaments.server.checks.bot_job import Answer, BotJob

GAME = "manchester"


async def test_nobody_waits_for_what_is_compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    compiled = trio.Event()

    async def do(job: BotJob, _told: Callable[[str], None], **_limits: Any) -> Answer:
        asked.append(job.reference)
        if job.reference.startswith("strong"):
            await compiled.wait()
        return Answer(ours="that was all")

    monkeypatch.setattr(bot_provider, "run_job", do)
    with Course(database_of(tmp_path).course(), CHEAP) as course:
        course.settings.change(sandbox_mode="off")
        contents = ContentStore(tmp_path / "submissions")
        bots = BotProvider(course, BotStorage(contents, tmp_path / "bots"), QUICK)

        async def make(reference: str) -> None:
            with pytest.raises(CannotPlayError, match="that was all"):
                await bots.player(Competitor(1, reference, None, reference), GAME)

        with trio.fail_after(60):
            async with trio.open_nursery() as nursery:
                for seconds in (1, 2, 3):
                    nursery.start_soon(make, f"strong:{seconds}")
                while not asked:
                    await trio.testing.wait_all_tasks_blocked(0.01)
                for level in (1, 2, 3):
                    await make(f"ladder:{level}")
                assert sum(text.startswith("strong") for text in asked) == bot_provider.COMPILERS
                compiled.set()
    assert len(asked) == 6
