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
from referee.process.subreaper import become_subreaper, kill_orphans
from tournaments.bots.errors import BotError, BuildError
from tournaments.bots.resolve import resolve_bot
from tournaments.bots.storage import ContentError, ContentStore
from tournaments.checking.check import check_bot, not_found
from tournaments.checking.evidence import PlayedScenario
from tournaments.checking.report import Item, Report, head_lines, item_lines, summary_lines
from tournaments.checking.scenario_runner import StoppedError
from tournaments.checking.scenarios import Scenario, Settings
from tournaments.course.model import CheckedGame
from tournaments.processes.process_settings import lower_priority
from tournaments.results.game_summary import PackedGame
from tournaments.server.bot_storage import BotStorage, BotStorageError, NotBuiltError, without_paths
from tournaments.server.checks.bot_job import STOPPED, Answer, BotJob, Task, game_fields

STDIN = 0
"""Standard input, whose end cancels the job."""
MAX_GAMES, MAX_GAMES_BYTES = 100, 4 << 20
"""Games that are kept of a check, and bytes of their packed records together: a check has some 30 games of
3 kB, and 64 KiB of standard error in each game can be 2 MiB.  A game that does not fit is left out."""


class _BuildCanceller:
    """Watcher of standard input during a build; games watch it themselves."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._is_building = False
        threading.Thread(target=self._watch, name="canceller", daemon=True).start()

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
        select.select([STDIN], [], [])
        with self._lock:
            if self._is_building:
                kill_orphans()
                os._exit(STOPPED)


class MessageWriter:
    """Writer of messages to a descriptor of its own, so that other output cannot come between them."""

    def __init__(self, descriptor: int) -> None:
        self._file = os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace")

    def log(self, text: str) -> None:
        """Send a line for the log."""
        self._write({"say": text})

    def game(self, game: CheckedGame) -> None:
        """Send a game."""
        self._write({"game": game_fields(game)})

    def end(self, answer: Answer) -> None:
        """Send the answer, whose games were sent before."""
        fields = asdict(answer)
        del fields["games"]
        self._write({"end": fields})

    def _write(self, message: dict[str, object]) -> None:
        self._file.write(json.dumps(message) + "\n")
        self._file.flush()


def main() -> None:
    """Do the one job.  Raises SystemExit if it is cancelled."""
    job = BotJob.from_line(sys.stdin.buffer.readline())
    writer = MessageWriter(os.dup(1))
    os.dup2(2, 1)
    # Standard input ends when the server does.  Handlers, unlike ignored signals, are not inherited.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda _number, _frame: None)
    lower_priority(job.nice)
    become_subreaper()
    try:
        answer = _do(job, writer, _BuildCanceller())
    except StoppedError:
        raise SystemExit(STOPPED) from None
    except (RefereeError, ContentError, BotStorageError, OSError) as error:
        answer = Answer(ours=str(error))
    finally:
        kill_orphans()
    writer.end(answer)


def _do(job: BotJob, writer: MessageWriter, canceller: _BuildCanceller) -> Answer:
    if job.task is Task.REFERENCE:
        try:
            with canceller.building():
                player = resolve_bot(job.reference, Path("/"), job.name, job.game)
        except BotError as error:  # a reference player that does not play the game, for example
            return Answer(ours=str(error))
        return Answer(digest=player.digest, player=asdict(player))
    settings = Settings(
        games=(job.game,), control=job.control, limits=job.limits, sandbox=job.sandbox, total_s=job.total_s
    )
    bots = BotStorage(ContentStore(Path(job.contents)), Path(job.bots))
    if job.task is Task.CHECK:
        for line in head_lines(job.name, settings.games, str(job.control), job.sandbox.tier.value):
            writer.log(line)
    try:
        with canceller.building():
            bots.build(job.content, job.game, job.sandbox, job.total_s)
            player = bots.player(job.content, job.name, job.game)
    except BotError as error:
        if error.is_ours:
            return Answer(ours=str(error))
        return _unbuilt(job, error, settings, writer)
    except NotBuiltError as error:
        return Answer(ours=f"{error}, by another program")
    if job.task is Task.BUILD:
        return Answer(digest=player.digest)
    reporter = ProgressReporter(writer, bots.bot(job.content))
    report = reporter.without_paths(
        check_bot(
            player,
            settings,
            on_item=reporter.item,
            on_scenario=reporter.scenario,
            on_played=reporter.played,
            cancel_fd=STDIN,
        )
    )
    for line in summary_lines(report, job.name):
        if not line.startswith("Next: "):  # a command for the own machine
            writer.log(line)
    return Answer(ours=report.host_fault, digest=player.digest, report=report.to_json())


def _unbuilt(job: BotJob, error: BotError, settings: Settings, writer: MessageWriter) -> Answer:
    """Return the answer for an upload that could not be built or started."""
    for line in error.printed.splitlines():
        writer.log(visible(line))
    report = not_found(job.name, str(error), settings, is_build=isinstance(error, BuildError))
    for line in item_lines(report.items[0], marks=False):
        writer.log(line)
    return Answer(wrong=str(error), report=report.to_json())


class ProgressReporter:
    """Reporter of a check's progress; it removes the local path of the bot from all texts."""

    def __init__(self, writer: MessageWriter, bot: Path) -> None:
        self._writer, self._bot = writer, bot
        self._games = self._bytes = 0

    def scenario(self, scenario: Scenario, number: int, total: int) -> None:
        """Report the next scenario."""
        self._writer.log(f"[{number}/{total}] {scenario.title}")

    def item(self, item: Item) -> None:
        """Report a verdict."""
        for line in item_lines(self._item_without_paths(item), marks=False):
            self._writer.log(line)

    def played(self, each: PlayedScenario) -> None:
        """Send a game, if it fits within the bounds."""
        record = each.record
        result = record.result
        first, second = map(self._text, record.stderr)
        record = replace(
            record,
            stderr=(first, second),
            result=replace(result, detail=self._text(result.detail), note=self._text(result.note)),
        )
        packed = PackedGame.of(record).packed
        if self._games < MAX_GAMES and self._bytes + len(packed) <= MAX_GAMES_BYTES:
            self._games += 1
            self._bytes += len(packed)
            self._writer.game(CheckedGame(each.scenario.key, each.bot, packed))

    def without_paths(self, report: Report) -> Report:
        """Return the report without the bot's path."""
        return replace(
            report,
            command=tuple(map(self._text, report.command)),
            items=tuple(map(self._item_without_paths, report.items)),
            played=tuple(replace(game, detail=self._text(game.detail)) for game in report.played),
            host_fault=self._text(report.host_fault),
        )

    def _item_without_paths(self, item: Item) -> Item:
        return replace(
            item,
            sentence=self._text(item.sentence),
            advice=self._text(item.advice),
            details=tuple(map(self._text, item.details)),
        )

    def _text(self, text: str) -> str:
        return without_paths(text, self._bot)


if __name__ == "__main__":
    main()
