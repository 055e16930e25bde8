"""A process that builds and checks one bot: ``python -m tournaments.server.checks.check_worker``.

``bot_job`` describes its job and its answer.  When standard input ends, because the job was cancelled or the
server was killed, the process ends all processes that it has started, and itself.
"""

import json
import os
import select
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path

from referee.errors import RefereeError
from referee.judge.verdict_text import visible
from referee.process.subreaper import adopt_orphans, sweep_orphans
from tournaments.bots.resolve import BotError, resolve_bot
from tournaments.bots.storage import ContentError, ContentStore
from tournaments.checking.check import StoppedError, check_bot, not_found
from tournaments.checking.report import Item, Report
from tournaments.checking.scenarios import Scenario
from tournaments.checking.settings import Settings
from tournaments.checking.text import head_lines, item_lines, summary_lines
from tournaments.processes.process_settings import lower_priority
from tournaments.server.bot_storage import BotStorage, BotStorageError, NotBuiltError, without_place
from tournaments.server.checks.bot_job import STOPPED, Answer, BotJob, Task

LEASH = 0
"""Standard input, whose end cancels the job."""


class _Leash:
    """Watcher of standard input during a build; games watch it themselves."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._is_building = False
        threading.Thread(target=self._watch, name="leash", daemon=True).start()

    @contextmanager
    def building(self) -> Iterator[None]:
        """Kill all processes started in this block when standard input ends."""
        self._is_building = True
        try:
            yield
        finally:
            with self._lock:
                self._is_building = False

    def _watch(self) -> None:
        select.select([LEASH], [], [])
        with self._lock:
            if self._is_building:
                sweep_orphans()
                os._exit(STOPPED)


class _Teller:
    """Writer of messages to a descriptor of its own, so that other output cannot come between them."""

    def __init__(self, descriptor: int) -> None:
        self._file = os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace")

    def say(self, text: str) -> None:
        """Send a line for the log."""
        self._write({"say": text})

    def end(self, answer: Answer) -> None:
        """Send the answer."""
        self._write({"end": answer.to_json()})

    def _write(self, message: dict[str, object]) -> None:
        self._file.write(json.dumps(message) + "\n")
        self._file.flush()


def main() -> None:
    """Do the one job.  Raises SystemExit if it is cancelled."""
    job = BotJob.from_line(sys.stdin.buffer.readline())
    teller = _Teller(os.dup(1))
    os.dup2(2, 1)
    # Standard input ends when the server does.  Handlers, unlike ignored signals, are not inherited.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda _number, _frame: None)
    lower_priority(job.nice)
    adopt_orphans()
    try:
        answer = _do(job, teller, _Leash())
    except StoppedError:
        raise SystemExit(STOPPED) from None
    except (RefereeError, ContentError, BotStorageError, OSError) as error:
        answer = Answer(ours=str(error))
    finally:
        sweep_orphans()
    teller.end(answer)


def _do(job: BotJob, teller: _Teller, leash: _Leash) -> Answer:
    if job.task is Task.REFERENCE:
        with leash.building():
            player = resolve_bot(job.reference, Path("/"), job.name, job.game)
        return Answer(digest=player.digest, player=asdict(player))
    settings = Settings(
        games=(job.game,), control=job.control, limits=job.limits, sandbox=job.sandbox, total_s=job.total_s
    )
    workshop = BotStorage(ContentStore(Path(job.contents)), Path(job.workshop))
    if job.task is Task.CHECK:
        for line in head_lines(job.name, settings.games, str(job.control), job.sandbox.tier.value):
            teller.say(line)
    try:
        with leash.building():
            workshop.build(job.content, job.game, job.sandbox, job.total_s)
            player = workshop.player(job.content, job.name, job.game)
    except BotError as error:
        if error.is_ours:
            return Answer(ours=str(error))
        return _unbuilt(job, error, settings, teller)
    except NotBuiltError as error:
        return Answer(ours=f"{error}, by another program")
    if job.task is Task.BUILD:
        return Answer(digest=player.digest)
    told = _Told(teller, workshop.bot(job.content))
    report = told.tidied(
        check_bot(player, settings, on_item=told.item, on_scenario=told.scenario, leash=LEASH)
    )
    for line in summary_lines(report, job.name):
        if not line.startswith("Next: "):  # a command for the own machine
            teller.say(line)
    return Answer(ours=report.host_fault, digest=player.digest, report=report.to_json())


def _unbuilt(job: BotJob, error: BotError, settings: Settings, teller: _Teller) -> Answer:
    """Return the answer for an upload that could not be built or started."""
    for line in error.printed.splitlines():
        teller.say(visible(line))
    report = not_found(job.name, str(error), settings)
    for line in item_lines(report.items[0], marks=False):
        teller.say(line)
    return Answer(wrong=str(error), report=report.to_json())


class _Told:
    """Reporter of a check's progress; it removes the local path of the bot from all texts."""

    def __init__(self, teller: _Teller, bot: Path) -> None:
        self._teller, self._bot = teller, bot

    def scenario(self, scenario: Scenario, number: int, total: int) -> None:
        """Report the next scenario."""
        self._teller.say(f"[{number}/{total}] {scenario.title}")

    def item(self, item: Item) -> None:
        """Report a verdict."""
        for line in item_lines(self._tidy(item), marks=False):
            self._teller.say(line)

    def tidied(self, report: Report) -> Report:
        """Return the report without the bot's path."""
        return replace(
            report,
            command=tuple(map(self._text, report.command)),
            items=tuple(map(self._tidy, report.items)),
            played=tuple(replace(game, detail=self._text(game.detail)) for game in report.played),
            host_fault=self._text(report.host_fault),
        )

    def _tidy(self, item: Item) -> Item:
        return replace(
            item,
            sentence=self._text(item.sentence),
            advice=self._text(item.advice),
            details=tuple(map(self._text, item.details)),
        )

    def _text(self, text: str) -> str:
        return without_place(text, self._bot)


if __name__ == "__main__":
    main()
