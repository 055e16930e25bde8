"""Workers that build and check a bot: what they answer, and that nothing of them is ever left."""

import os
import signal
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import trio

from referee.sandbox.bubblewrap import Sandbox
from tests.confinement import living_with, sandbox_of
from tests.test_service_workshop import GAME, built_bot, starter
from tournaments.bots.storage import ContentStore
from tournaments.bots.upload.limits import SubmittedFile
from tournaments.checking.report import Report
from tournaments.server.bot_storage import BotStorage
from tournaments.server.checks.bot_job import Answer, BotJob, Task, player_of
from tournaments.server.checks.bot_worker import COMMAND, WorkerError, run_job

LIMIT_S = 60.0
GONE_WITHIN_S = 5.0
"""Bound for the end of what was killed; it takes milliseconds."""
LOOK_S = 0.01
OPEN = Sandbox()


class Yard:
    """A store and a workshop, and jobs for them."""

    def __init__(self, folder: Path) -> None:
        self.contents = ContentStore(folder / "submissions")
        self.workshop = BotStorage(self.contents, folder / "bots")
        self.lines: list[str] = []

    def job(self, task: Task, files: list[SubmittedFile], sandbox: Sandbox = OPEN) -> BotJob:
        content = self.contents.put(files)
        places = str(self.contents.root), str(self.workshop.root)
        return BotJob(task, "Team 1 v1", GAME, *places, content, sandbox=sandbox)

    async def do(
        self,
        job: BotJob,
        within_s: float = LIMIT_S,
        shutdown_s: float = 5.0,
        command: tuple[str, ...] = COMMAND,
    ) -> Answer:
        return await run_job(
            job, self.lines.append, within_s=within_s, shutdown_s=shutdown_s, command=command
        )


@pytest.fixture
def yard(tmp_path: Path) -> Yard:
    return Yard(tmp_path)


async def until_alive(mark: str) -> None:
    await until(lambda: living_with(mark))


async def until_gone(mark: str) -> None:
    await until(lambda: not living_with(mark), GONE_WITHIN_S)


async def until(condition: Callable[[], Any], within_s: float = LIMIT_S) -> None:
    """Wait for what no event tells of."""
    with trio.fail_after(within_s):
        await trio.lowlevel.checkpoint()
        while not condition():  # noqa: ASYNC110
            await trio.sleep(LOOK_S)


def lasting_mark(number: int) -> str:
    """A command that lasts, and can be told from all others on this machine."""
    return f"sleep {3600 + number + os.getpid() / 1e7:.7f}"


def test_a_job_survives_its_journey(yard: Yard) -> None:
    job = yard.job(Task.CHECK, starter(), sandbox_of("weak"))
    assert BotJob.from_line(job.to_line()) == job


async def test_a_good_bot_is_built_checked_and_told_of(yard: Yard) -> None:
    answer = await yard.do(replace(yard.job(Task.CHECK, starter()), nice=3))
    assert answer.report is not None
    report = Report.from_json(answer.report)
    assert report.passed
    assert (answer.ours, answer.wrong) == ("", "")
    assert report.bot == "Team 1 v1"
    content = yard.job(Task.CHECK, starter()).content
    assert answer.digest == report.digest == yard.workshop.player(content, "x", GAME).digest
    assert yard.lines[0] == "Check of Team 1 v1"
    assert any(line.startswith("[1/") for line in yard.lines)
    assert any(line.startswith("PASSED") for line in yard.lines)
    told = "\n".join([*yard.lines, repr(answer.report)])
    assert str(yard.workshop.root) not in told
    assert "kalarena" not in "".join(yard.lines), "no command for a machine that is not the student's"


async def test_a_bot_with_a_fault_fails_with_its_report(yard: Yard) -> None:
    answer = await yard.do(yard.job(Task.CHECK, [SubmittedFile("bot.py", b"1/0\n")]))
    assert answer.report is not None
    report = Report.from_json(answer.report)
    assert not report.passed
    assert answer.ours == ""
    assert "ZeroDivisionError" in repr(answer.report)
    assert str(yard.workshop.root) not in repr(answer.report)


async def test_a_build_that_fails_is_a_report_with_its_output_in_the_log(yard: Yard) -> None:
    answer = await yard.do(yard.job(Task.CHECK, built_bot("seq 1 30; exit 7")))
    assert answer.report is not None
    (item,) = Report.from_json(answer.report).failures
    assert item.sentence.startswith("the upload: its build command")
    assert "exit status 7" in answer.wrong
    assert [str(number) for number in range(1, 31)] == [line for line in yard.lines if line.isdigit()]
    assert answer.digest == ""


async def test_a_build_takes_no_longer_than_a_check_may(yard: Yard) -> None:
    job = replace(yard.job(Task.CHECK, built_bot("sleep 1000")), total_s=0.5)
    assert (await yard.do(job)).wrong.endswith("took over 0.5 s")


async def test_what_a_bot_prints_cannot_pass_for_an_answer(yard: Yard) -> None:
    said = '{"end": {"ours": "", "report": {"ok": true}}}'
    answer = await yard.do(yard.job(Task.BUILD, built_bot(f"echo '{said}'; echo '{said}' >&2; exit 1")))
    assert answer.wrong
    assert answer.report is not None


async def test_our_failures_are_no_verdict(yard: Yard) -> None:
    job = yard.job(Task.CHECK, starter())
    answer = await yard.do(replace(job, content="0" * 64))
    assert "there is no submission" in answer.ours
    assert answer.report is None


async def test_a_reference_player_is_made_ready(yard: Yard) -> None:
    answer = await yard.do(BotJob(Task.REFERENCE, "greedy", GAME, reference="greedy"))
    assert answer.player is not None
    player = player_of(answer.player)
    assert player.name == "greedy"
    assert player.capabilities == ("openings",)
    assert player.digest == answer.digest


@pytest.mark.parametrize(
    ("script", "complaint"),
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
    ],
)
async def test_a_worker_that_dies_or_speaks_nonsense_is_our_fault(
    yard: Yard, script: str, complaint: str
) -> None:
    with pytest.raises(WorkerError, match=complaint):
        await yard.do(yard.job(Task.CHECK, starter()), shutdown_s=0.1, command=(sys.executable, "-c", script))


async def test_a_worker_that_cannot_be_started_is_our_fault(yard: Yard) -> None:
    with pytest.raises(WorkerError, match="could not be started"):
        await yard.do(yard.job(Task.CHECK, starter()), command=("/nowhere",))


async def test_one_that_takes_too_long_is_ended_with_all_it_started(yard: Yard) -> None:
    mark = lasting_mark(1)
    with pytest.raises(WorkerError, match="not done within 2 s"):
        await yard.do(yard.job(Task.CHECK, built_bot(f"{mark} & {mark}")), within_s=2.0)
    await until_gone(mark)


@pytest.mark.parametrize("tier", ["bare", "weak", "confined"])
@pytest.mark.parametrize("what", ["build", "game"])
async def test_a_cancelled_check_leaves_no_process(yard: Yard, tier: str, what: str) -> None:
    mark = lasting_mark(2)
    sandbox = sandbox_of(tier)
    if what == "build":
        files = built_bot(f"setsid {mark} & {mark}")
    else:
        program = f"import os; os.system('setsid {mark} & {mark}')"
        files = [SubmittedFile("bot.py", program.encode())]
    async with trio.open_nursery() as nursery:
        nursery.start_soon(yard.do, yard.job(Task.CHECK, files, sandbox))
        await until_alive(mark)
        nursery.cancel_scope.cancel()
    await until_gone(mark)


async def test_a_worker_that_is_killed_leaves_no_process(yard: Yard) -> None:
    """As when the system has no memory left: what it had started is ours then."""
    mark = lasting_mark(3)
    marked = (*COMMAND, mark)
    async with trio.open_nursery() as nursery:

        async def check() -> None:
            with pytest.raises(WorkerError, match="status -9"):
                await yard.do(yard.job(Task.CHECK, built_bot(f"exec {mark}")), command=marked)

        nursery.start_soon(check)
        await until_alive(mark.replace(" ", "\0"))
        (worker,) = [pid for pid in living_with(mark) if b"check_worker" in command_line(pid)]
        os.kill(worker, signal.SIGKILL)
    await until_gone(mark.replace(" ", "\0"))


def command_line(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""
