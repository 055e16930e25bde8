"""The report of a check: items, each with a verdict, and their JSON, text and JUnit XML.  Pure.

In the text each item has one line, with the advice below it.  The XML is for continuous integration, in the
form of https://llg.cubic.org/docs/junit/: a test suite for each game, a test case for each item.
"""

import shlex
import textwrap
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any
from xml.etree import ElementTree as Xml

from referee.adapters.command import DEFAULT_PROTOCOL
from referee.games.catalog import DEFAULT_GAME, parse_game
from referee.judge.verdict_text import visible
from sample_bots.catalog import REFERENCE_GAMES

REPORT_SCHEMA = 1
"""Version of the report's JSON; a reader refuses another one."""


class Status(StrEnum):
    """The verdict on one item."""

    PASSED = "passed"
    FAILED = "failed"
    WARNING = "warning"
    """Nothing that loses a game, but something to look at."""
    SKIPPED = "skipped"
    """Not tried, or not part of this game; the sentence says why."""


class ReportError(ValueError):
    """A text or object that is no report of a check."""


@dataclass(frozen=True)
class Item:
    """One thing that was checked."""

    id: str
    """A stable word for machines."""
    game: str
    """Spec text of the item's game; empty for the item that is about no game."""
    title: str
    status: Status
    sentence: str
    """The finding in a sentence for the bot's author."""
    advice: str = ""
    """Advice on the finding; empty if there is nothing to do."""
    details: tuple[str, ...] = ()
    """Lines that show the finding, such as the end of the conversation."""
    games: tuple[str, ...] = ()
    """Keys of the games that the finding names, then of the others that were played for the item."""


@dataclass(frozen=True)
class Game:
    """One game that was played for the check, between processes or with a test opponent."""

    key: str
    title: str
    item: str
    """Id of the item that the game was played for."""
    detail: str
    """The verdict's sentence."""
    fault: str | None
    """The checked bot's fault word (docs/protocol.md); None if it did not lose by a fault."""
    duration_ms: float
    opponent: str = ""
    """The sample bot; empty for a conformance game."""


@dataclass(frozen=True)
class Report:
    """The complete report of one check."""

    bot: str
    command: tuple[str, ...]
    digest: str
    games: tuple[str, ...]
    """Spec texts of the games that the bot was checked on."""
    control: str
    sandbox: str
    """The tier that ran, one of docs/sandbox.md."""
    items: tuple[Item, ...]
    played: tuple[Game, ...] = ()
    started_at: str = ""
    """UTC, ISO 8601."""
    duration_s: float = 0.0
    numbers: dict[str, float] = field(default_factory=dict)
    """Measured numbers, each with its unit in its name."""
    host_fault: str = ""
    """The failure of our host, if the check could not be completed: never the bot's failure."""
    versions: dict[str, str] = field(default_factory=dict)
    memory_mb: int | None = None
    """The memory limit in MiB; None in reports of older versions."""
    runtime_settings: dict[str, str] = field(default_factory=dict)
    """Environment variables that named the limits to its runtime (referee/sandbox/runtime_settings.py)."""

    @property
    def passed(self) -> bool:
        """True if no item failed, also in a check that our host did not complete."""
        return not self.failures

    @property
    def failures(self) -> tuple[Item, ...]:
        """The items that failed."""
        return tuple(item for item in self.items if item.status is Status.FAILED)

    def count(self, status: Status) -> int:
        """Return the number of items with this status."""
        return sum(item.status is status for item in self.items)

    def to_json(self) -> dict[str, Any]:
        """Return the view for scripts; keys are only ever added."""
        counts = {status.value: self.count(status) for status in Status}
        ok = self.passed and not self.host_fault
        return {"schema": REPORT_SCHEMA, "ok": ok, **counts, **asdict(self)}

    @classmethod
    def from_json(cls, view: Any) -> "Report":
        """Return the report of a view that ``to_json`` made.  Raises ReportError."""
        if not isinstance(view, dict) or view.get("schema") != REPORT_SCHEMA:
            raise ReportError(f"this is no report of a check in schema {REPORT_SCHEMA}")
        derived = {"schema", "ok", *Status}
        try:
            values = {name: value for name, value in view.items() if name not in derived}
            for name in ("command", "games"):
                values[name] = tuple(values[name])
            values["items"] = tuple(
                Item(
                    **item
                    | {
                        "status": Status(item["status"]),
                        "details": tuple(item["details"]),
                        "games": tuple(item.get("games", ())),
                    }
                )
                for item in values["items"]
            )
            values["played"] = tuple(Game(**game) for game in values["played"])
            return cls(**values)
        except (LookupError, TypeError, ValueError) as error:
            raise ReportError(f"this report of a check is damaged: {error!r}") from error


WIDTH = 79
TITLE_WIDTH = 22
"""Room for the longest title, "Writes its moves well"."""
MARKS = {Status.PASSED: "\u2713", Status.FAILED: "\u2717", Status.WARNING: "!", Status.SKIPPED: "\u2013"}
WORDS = {Status.PASSED: "pass", Status.FAILED: "FAIL", Status.WARNING: "warn", Status.SKIPPED: "skip"}

SETTINGS_OF: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = (
    (("java",), ("JAVA_", "JDK_", "MALLOC_")),
    (("node", "nodejs"), ("NODE_", "UV_", "MALLOC_")),
    (("mono",), ("MONO_", "MALLOC_")),
    (("dotnet",), ("DOTNET_", "MALLOC_")),
    (("python",), ("OMP_", "OPENBLAS_", "MKL_", "NUM", "MALLOC_")),
)
"""Programs of a runtime, and prefixes of the names of its settings."""

Paint = Callable[[str, Status], str]
"""Function that gives a mark its colour."""


def plain(text: str, _status: Status) -> str:
    """Return the text without colour."""
    return text


def head_lines(bot: str, games: tuple[str, ...], control: str, sandbox: str) -> Iterator[str]:
    """Yield the head of a report: the bot, the games, the time control and the sandbox."""
    yield f"Check of {visible(bot)}"
    yield from _wrapped(f"{', '.join(games)}; {control}; sandbox: {sandbox}", "  ", "  ")
    yield ""


def item_lines(
    item: Item, *, marks: bool = True, verbose: bool = False, paint: Paint = plain
) -> Iterator[str]:
    """Yield the lines of one item."""
    mark = MARKS[item.status] if marks else WORDS[item.status]
    indent = " " * (len(mark) + TITLE_WIDTH + 3)
    begin = f"{'x' * len(mark)} {item.title:{TITLE_WIDTH}}  "
    lines = list(_wrapped(_capital(item.sentence), begin, indent))
    yield paint(mark, item.status) + lines[0][len(mark) :]
    yield from lines[1:]
    if item.advice:
        yield from _wrapped(f"To do: {item.advice}.", indent, indent + "       ")
    if verbose or item.status in (Status.FAILED, Status.WARNING):
        for line in item.details:
            # Lines of a conversation are kept whole: they are there to be compared.
            yield f"{' ' * (len(mark) + 3)}  {visible(line)}"


def summary_lines(
    report: Report, bot: str, protocol: str = DEFAULT_PROTOCOL, options: str = ""
) -> Iterator[str]:
    """Yield the end of a report: the counts, and the next command to try.

    ``bot`` is as the user wrote it, and ``protocol`` the value of ``--protocol``.  ``options`` are
    the game options that the user gave, each after a space.
    """
    counts = [(report.count(status), status.value) for status in Status if report.count(status)]
    summary = ", ".join(f"{number} {word}" for number, word in counts)
    verdict = "FAILED" if report.failures else "NOT CHECKED" if report.host_fault else "PASSED"
    yield ""
    games = f"{len(report.played)} game{'' if len(report.played) == 1 else 's'}"
    if report.runtime_settings:
        settings = ", ".join(f"{name}={value}" for name, value in shown_settings(report).items())
        yield from _wrapped(f"Set for its runtime, from its limits: {settings}", "", "  ")
    yield f"{verdict}: {summary}; {games} in {report.duration_s:.1f} s"
    if report.host_fault:
        yield from _wrapped(
            f"The check was not completed, which is not the bot's fault: {report.host_fault}", "", "  "
        )
    elif report.passed:
        if isinstance(parse_game(report.games[0]), REFERENCE_GAMES):  # else no reference player plays it
            yield f"Next: kalarena gauntlet {shlex.quote(bot)}{_options(report.games[0], protocol)}"
    elif report.command:
        yield f"Next: {next_command(report, bot, protocol, options)}"


def shown_settings(report: Report) -> dict[str, str]:
    """Return the settings of the runtime that the command names; all settings if it names none of these."""
    words = {word.rpartition("/")[2] for word in report.command}
    for programs, prefixes in SETTINGS_OF:
        if any(word.rstrip("0123456789.") in programs for word in words):
            return {
                name: value for name, value in report.runtime_settings.items() if name.startswith(prefixes)
            }
    return report.runtime_settings


def next_command(report: Report, bot: str, protocol: str = DEFAULT_PROTOCOL, options: str = "") -> str:
    """Return the command that shows the first failed game again, line by line; see ``summary_lines``."""
    faults = [game for game in report.played if game.fault]
    lost = next((game for game in faults if game.opponent), faults[0] if faults else None)
    opponent = lost.opponent if lost is not None and lost.opponent else "first_legal"
    players = [shlex.quote(bot), opponent]
    if lost is not None and lost.item == "plays-second":
        players.reverse()
    # The items of reports of older versions name no games: the first game of the report is taken then.
    items = [item for item in report.items if lost.key in item.games] if lost is not None else report.failures
    game = next((item.game for item in items if item.game), report.games[0])
    return f"kalarena play {' '.join(players)}{_options(game, protocol)}{options} -v"


def _options(game: str, protocol: str) -> str:
    """Return the options of a command for a game and a protocol, each after a space, without the defaults."""
    of_game = "" if game == DEFAULT_GAME else f" --game {shlex.quote(game)}"
    return of_game if protocol == DEFAULT_PROTOCOL else f"{of_game} --protocol {protocol}"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _wrapped(text: str, first: str, rest: str) -> list[str]:
    return textwrap.wrap(
        visible(text),
        WIDTH,
        initial_indent=first,
        subsequent_indent=rest,
        break_long_words=False,
        break_on_hyphens=False,
    )


def junit_xml(report: Report) -> bytes:
    """Return the report as an XML document.  A fault of our host is an error, not a failure."""
    root = Xml.Element("testsuites", name=f"kalarena check {visible(report.bot)}")
    for game in dict.fromkeys(item.game or report.games[0] for item in report.items):
        items = [item for item in report.items if (item.game or report.games[0]) == game]
        suite = Xml.SubElement(root, "testsuite", name=game, timestamp=report.started_at)
        for item in items:
            _add_case(suite, item)
        if report.host_fault and game == report.games[0]:
            case = Xml.SubElement(suite, "testcase", classname="kalarena.check", name="host")
            Xml.SubElement(case, "error", message=visible(report.host_fault), type="host")
        _set_counts(suite)
    _set_counts(root)
    root.set("time", f"{report.duration_s:.3f}")
    Xml.indent(root)
    written: bytes = Xml.tostring(root, encoding="utf-8", xml_declaration=True)
    return written + b"\n"


def _add_case(suite: Xml.Element, item: Item) -> None:
    case = Xml.SubElement(suite, "testcase", classname=f"kalarena.check.{item.id}", name=item.title)
    message = visible(item.sentence)
    body = "\n".join(_visible_texts([f"To do: {item.advice}" if item.advice else "", *item.details]))
    if item.status is Status.FAILED:
        Xml.SubElement(case, "failure", message=message, type=item.id).text = body
    elif item.status is Status.SKIPPED:
        Xml.SubElement(case, "skipped", message=message)
    else:
        warning = "warning: " if item.status is Status.WARNING else ""
        Xml.SubElement(case, "system-out").text = "\n".join(_visible_texts([f"{warning}{message}", body]))


def _visible_texts(texts: Iterable[str]) -> list[str]:
    """Return the texts that are not empty, with control characters, which XML cannot hold, escaped."""
    return ["\n".join(map(visible, text.split("\n"))) for text in texts if text]


def _set_counts(element: Xml.Element) -> None:
    tags = {"tests": "testcase", "failures": "failure", "errors": "error", "skipped": "skipped"}
    for name, tag in tags.items():
        element.set(name, str(len(list(element.iter(tag)))))
