"""Workers that build and check a bot: their answers, and that they leave no process."""

import os
import random
import signal
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import trio

from referee.games.plugins import GAMES_VARIABLE
from tests.server.harness import (
    GAME,
    LIMIT_S,
    QUICK,
    built_bot,
    lasting_command,
    starter,
    until,
    until_gone,
)
from tests.support.confinement import sandbox_of
from tests.support.courses import FAST_PASSWORDS, NOW, add_student, add_version
from tests.support.databases import database_of
from tests.support.paths import REPOSITORY_ROOT
from tests.support.processes import living_with
from tests.support.random_games import random_game
from tests.support.tiers import slow
from tournaments.bots.errors import BotError
from tournaments.bots.storage import ContentStore
from tournaments.bots.upload.limits import SubmittedFile
from tournaments.checking.evidence import PlayedScenario
from tournaments.checking.report import Report
from tournaments.checking.scenarios import Settings as CheckSettings
from tournaments.checking.scenarios import scenarios
from tournaments.course.course import Course
from tournaments.course.model import CheckedGame, Competitor
from tournaments.results.packing import unpacked
from tournaments.server import bot_provider
from tournaments.server.bot_provider import BotProvider, CannotPlayError
from tournaments.server.bot_storage import BotStorage, NotBuiltError
from tournaments.server.checks import check_worker
from tournaments.server.checks.bot_job import Answer, BotJob, Task, player_of
from tournaments.server.checks.bot_worker import COMMAND, WorkerError, run_job

pytestmark = pytest.mark.any_database


class Jobs:
    """Stores of submissions and bots, and jobs for them."""

    def __init__(self, folder: Path) -> None:
        self.contents = ContentStore(folder / "submissions")
        self.storage = BotStorage(self.contents, folder / "bots")
        self.lines: list[str] = []

    def job(self, task: Task, files: list[SubmittedFile], **changes: Any) -> BotJob:
        content = self.contents.put(files)
        return replace(self.storage.job(task, content, "Team 1 v1", GAME), **changes)

    async def run(
        self,
        job: BotJob,
        within_s: float = LIMIT_S,
        shutdown_s: float = 5.0,
        command: tuple[str, ...] = COMMAND,
    ) -> Answer:
        add = self.lines.append
        return await run_job(job, add, within_s=within_s, shutdown_s=shutdown_s, command=command)

    async def report(self, job: BotJob) -> tuple[Answer, Report]:
        answer = await self.run(job)
        assert (answer.ours, answer.report is not None) == ("", True)
        assert str(self.storage.root) not in repr([answer.report, self.lines])
        return answer, Report.from_json(answer.report or {})


@pytest.fixture
def jobs(tmp_path: Path) -> Jobs:
    return Jobs(tmp_path)


def test_a_job_is_restored_from_its_line(jobs: Jobs) -> None:
    job = jobs.job(Task.CHECK, starter(), sandbox=sandbox_of("weak"))
    assert BotJob.from_line(job.to_line()) == job


# Answers


async def test_a_good_bot_is_built_and_checked(jobs: Jobs) -> None:
    job = jobs.job(Task.CHECK, starter(), nice=3)
    answer, report = await jobs.report(job)
    assert (report.passed, report.bot, answer.wrong) == (True, "Team 1 v1", "")
    assert answer.digest == report.digest == jobs.storage.player(job.content, "x", GAME).digest
    assert jobs.lines[0] == "Check of Team 1 v1"
    assert any(line.startswith("[1/") for line in jobs.lines)
    assert any(line.startswith("PASSED") for line in jobs.lines)
    assert "kalarena" not in "".join(jobs.lines), "no command for a machine that is not the student's"


async def test_a_faulty_bot_fails_with_its_report(jobs: Jobs) -> None:
    answer, report = await jobs.report(jobs.job(Task.CHECK, [SubmittedFile("bot.py", b"1/0\n")]))
    assert not report.passed
    assert "ZeroDivisionError" in repr(answer.report)


HOSTILE = """
import sys

print("\\x1b[2J<script>alert(1)</script>", __file__, "\\x00\\udc80", file=sys.stderr, flush=True)
for line in sys.stdin:
    if line.startswith("START;South") or line.endswith("YOU\\n"):
        print("<b>debug</b>", flush=True)
"""


@pytest.mark.slow
async def test_the_games_of_a_check_are_sent_without_the_paths_of_this_host(jobs: Jobs) -> None:
    answer, report = await jobs.report(jobs.job(Task.CHECK, [SubmittedFile("bot.py", HOSTILE.encode())]))
    assert [game.key for game in answer.games] == [game.key for game in report.played] != []
    for game in answer.games:
        record = unpacked(game.packed)
        assert record.players[game.player].name == "Team 1 v1"
        text = record.stderr[game.player]
        assert "\x1b[2J<script>alert(1)</script>" in text
        assert str(jobs.storage.root) not in repr([record.stderr, record.result])


def test_games_beyond_the_bounds_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    games: list[CheckedGame] = []
    reporter = check_worker.ProgressReporter(cast("Any", SimpleNamespace(game=games.append)), Path("bot"))
    make = scenarios(CheckSettings((GAME,)), ())
    small, large, *others = [
        PlayedScenario(next(make), replace(random_game(GAME), stderr=(text, "")))
        for text in ("", random.Random(1).randbytes(50_000).hex(), "a", "b", "c")
    ]
    monkeypatch.setattr(check_worker, "MAX_GAMES", 3)
    monkeypatch.setattr(check_worker, "MAX_GAMES_BYTES", 40_000)
    for each in (small, large, *others):
        reporter.played(each)
    assert [game.key for game in games] == [each.scenario.key for each in (small, *others[:2])]
    assert unpacked(games[0].packed) == small.record


async def test_a_failed_build_is_a_report_with_its_output_in_the_log(jobs: Jobs) -> None:
    answer, report = await jobs.report(jobs.job(Task.CHECK, built_bot("seq 1 30; exit 7")))
    (item,) = report.failures
    assert item.sentence.startswith("the upload: its build command")
    assert item.advice.startswith("run the build command in the bot's directory")
    assert "exit status 7" in answer.wrong
    assert [str(number) for number in range(1, 31)] == [line for line in jobs.lines if line.isdigit()]
    assert answer.digest == ""


async def test_a_build_may_take_as_long_as_a_check(jobs: Jobs) -> None:
    answer = await jobs.run(jobs.job(Task.CHECK, built_bot("sleep 1000"), total_s=0.5))
    assert answer.wrong.endswith("took over 0.5 s")


async def test_the_output_of_a_bot_is_not_taken_for_an_answer(jobs: Jobs) -> None:
    message = '{"end": {"ours": "", "report": {"ok": true}}}'
    answer = await jobs.run(
        jobs.job(Task.BUILD, built_bot(f"echo '{message}'; echo '{message}' >&2; exit 1"))
    )
    assert answer.wrong
    assert answer.report is not None


async def test_a_failure_of_the_host_is_no_verdict(jobs: Jobs) -> None:
    answer = await jobs.run(jobs.job(Task.CHECK, starter(), content="0" * 64))
    assert "there is no submission" in answer.ours
    assert answer.report is None


async def test_a_reference_player_is_prepared(jobs: Jobs) -> None:
    answer = await jobs.run(BotJob(Task.REFERENCE, "greedy", GAME, reference="greedy"))
    assert answer.player is not None
    player = player_of(answer.player)
    assert (player.name, player.capabilities, player.digest) == ("greedy", ("openings",), answer.digest)


async def test_a_reference_player_of_another_game_is_refused(
    jobs: Jobs, monkeypatch: pytest.MonkeyPatch, game_catalog: None
) -> None:
    oware = REPOSITORY_ROOT / "tournaments" / "examples" / "games" / "oware.py"
    monkeypatch.setenv(GAMES_VARIABLE, str(oware))
    answer = await jobs.run(BotJob(Task.REFERENCE, "ladder:3", "oware", reference="ladder:3"))
    assert answer.player is None
    assert "ladder:3 cannot play oware" in answer.ours


# Workers that fail


@pytest.mark.parametrize(
    ("script", "sentence"),
    [
        ("raise SystemExit(4)", "status 4"),
        ("1/0", "ZeroDivisionError"),
        ("import os; os.kill(os.getpid(), 9)", "status -9"),
        ("print('hello')", "said b'hello'"),
        ("print('{}')", "said b'{}'"),
        (
            "import sys; sys.stdout.write('x' * (9 << 20)); sys.stdout.flush(); input(); input()",
            "in one line",
        ),
        ("import os; os.close(0); os.close(1); import time; time.sleep(3600)", "ended with status"),
        (None, "could not be started"),
    ],
)
async def test_a_worker_that_dies_or_sends_nonsense(jobs: Jobs, script: str | None, sentence: str) -> None:
    command = ("/nowhere",) if script is None else (sys.executable, "-S", "-c", script)
    with pytest.raises(WorkerError, match=sentence):
        await jobs.run(jobs.job(Task.CHECK, starter()), shutdown_s=0.1, command=command)


@pytest.mark.slow
async def test_a_worker_that_takes_too_long_ends_with_all_its_processes(jobs: Jobs) -> None:
    mark = lasting_command(1)
    with pytest.raises(WorkerError, match="not done within 2 s"):
        await jobs.run(jobs.job(Task.CHECK, built_bot(f"{mark} & {mark}")), within_s=2.0)
    await until_gone(mark)


@pytest.mark.parametrize("what", ["build", "game"])
@pytest.mark.parametrize("tier", [*slow("bare", "weak"), "confined"])
async def test_a_cancelled_check_leaves_no_process(jobs: Jobs, tier: str, what: str) -> None:
    mark = lasting_command(2)
    program = f"import os; os.system('setsid {mark} & {mark}')"
    files = [SubmittedFile("bot.py", program.encode())]
    if what == "build":
        files = built_bot(f"setsid {mark} & {mark}")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(jobs.run, jobs.job(Task.CHECK, files, sandbox=sandbox_of(tier)))
        await until(lambda: living_with(mark))
        nursery.cancel_scope.cancel()
    await until_gone(mark)


async def test_a_killed_worker_leaves_no_process(jobs: Jobs) -> None:
    """As when the system has no memory left; this process adopts the processes of the worker."""
    command = lasting_command(3)
    mark = command.replace(" ", "\0")
    async with trio.open_nursery() as nursery:

        async def check() -> None:
            with pytest.raises(WorkerError, match="status -9"):
                await jobs.run(
                    jobs.job(Task.CHECK, built_bot(f"exec {command}")), command=(*COMMAND, command)
                )

        nursery.start_soon(check)
        await until(lambda: living_with(mark))
        (worker,) = [pid for pid in living_with(command) if b"check_worker" in command_line(pid)]
        os.kill(worker, signal.SIGKILL)
    await until_gone(mark)


def command_line(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


# Players that are made at the same time


async def test_no_bot_waits_for_a_compilation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    requested: list[str] = []
    compiled = trio.Event()

    async def run_fake(job: BotJob, _on_line: Callable[[str], None], **_limits: Any) -> Answer:
        requested.append(job.reference)
        if job.reference.startswith("strong"):
            await compiled.wait()
        return Answer(ours="that was all")

    monkeypatch.setattr(bot_provider, "run_job", run_fake)
    with Course(database_of(tmp_path).course(), FAST_PASSWORDS) as course:
        course.settings.change(sandbox_mode="off")
        contents = ContentStore(tmp_path / "submissions")
        bots = BotProvider(course, BotStorage(contents, tmp_path / "bots"), QUICK)

        async def prepare(reference: str) -> None:
            with pytest.raises(CannotPlayError, match="that was all"):
                await bots.player(Competitor(1, reference, None, reference), "manchester")

        with trio.fail_after(LIMIT_S):
            async with trio.open_nursery() as nursery:
                for seconds in (1, 2, 3):
                    nursery.start_soon(prepare, f"strong:{seconds}")
                await until(lambda: requested)
                for level in (1, 2, 3):
                    await prepare(f"ladder:{level}")
                assert sum(text.startswith("strong") for text in requested) == bot_provider.COMPILERS
                compiled.set()
    assert len(requested) == 6


@pytest.mark.parametrize(
    ("failures", "answer", "words", "is_ours"),
    [
        ([BotError("bot.toml names no command")], Answer(), "bot.toml names no command", False),
        ([NotBuiltError("not built")] * 2, Answer(), "not built", True),
        ([NotBuiltError("not built")], Answer(wrong="make failed"), "make failed", False),
        ([NotBuiltError("not built")], Answer(ours="the disk is full"), "the disk is full", True),
        ([NotBuiltError("not built")], WorkerError("it was killed"), "it was killed", True),
    ],
)
async def test_a_bot_that_cannot_play_has_a_reason(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    failures: list[Exception],
    answer: Answer | Exception,
    words: str,
    is_ours: bool,
) -> None:
    left = list(failures)

    def fail(*_: object) -> None:
        raise left.pop(0)

    async def run_fake(*_: object, **__: object) -> Answer:
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(bot_provider, "run_job", run_fake)
    monkeypatch.setattr(BotStorage, "player", fail)
    with Course(database_of(tmp_path).course(), FAST_PASSWORDS) as course:
        course.settings.change(sandbox_mode="off")
        contents = ContentStore(tmp_path / "submissions")
        team = course.teams.add("Team 1", NOW)
        version = add_version(course, team, add_student(course, team), contents.put(starter()))
        bots = BotProvider(course, BotStorage(contents, tmp_path / "bots"), QUICK)
        with pytest.raises(CannotPlayError, match=words) as caught:
            await bots.player(Competitor(1, "Team 1 v1", version.id, None), GAME)
    assert (caught.value.is_ours, left) == (is_ours, [])
