"""The text form of a report: one line for each item, with the advice below it.  Pure."""

import shlex
import textwrap
from collections.abc import Callable, Iterator

from referee.games.catalog import DEFAULT_GAME
from referee.judge.verdict_text import visible
from tournaments.checking.report import Item, Report, Status

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
    item: Item, *, marks: bool = True, verbose: bool = False, width: int = WIDTH, paint: Paint = plain
) -> Iterator[str]:
    """Yield the lines of one item."""
    mark = MARKS[item.status] if marks else WORDS[item.status]
    indent = " " * (len(mark) + TITLE_WIDTH + 3)
    begin = f"{'x' * len(mark)} {item.title:{TITLE_WIDTH}}  "
    lines = list(_wrapped(_capital(item.sentence), begin, indent, width))
    yield paint(mark, item.status) + lines[0][len(mark) :]
    yield from lines[1:]
    if item.advice:
        yield from _wrapped(f"To do: {item.advice}.", indent, indent + "       ", width)
    if verbose or item.status in (Status.FAILED, Status.WARNING):
        for line in item.details:
            # Lines of a conversation are kept whole: they are there to be compared.
            yield f"{' ' * (len(mark) + 3)}  {visible(line)}"


def summary_lines(report: Report, bot: str, width: int = WIDTH) -> Iterator[str]:
    """Yield the end of a report: the counts, and the next command to try; ``bot`` as the user wrote it."""
    counts = [(report.count(status), status.value) for status in Status if report.count(status)]
    told = ", ".join(f"{number} {word}" for number, word in counts)
    verdict = "PASSED" if report.passed else "FAILED"
    yield ""
    games = f"{len(report.played)} game{'' if len(report.played) == 1 else 's'}"
    if report.runtime_settings:
        settings = ", ".join(f"{name}={value}" for name, value in shown_settings(report).items())
        yield from _wrapped(f"Set for its runtime, from its limits: {settings}", "", "  ", width)
    yield f"{verdict}: {told}; {games} in {report.duration_s:.1f} s"
    if report.host_fault:
        yield from _wrapped(
            f"NOT CHECKED TO THE END, which is not the bot's fault: {report.host_fault}", "", "  ", width
        )
    elif report.passed:
        yield f"Next: kalarena gauntlet {shlex.quote(bot)}"
    elif report.command:
        yield f"Next: {next_command(report, bot)}"


def shown_settings(report: Report) -> dict[str, str]:
    """Return the settings of the runtime that the command names; all settings if it names none of these."""
    words = {word.rpartition("/")[2] for word in report.command}
    for programs, prefixes in SETTINGS_OF:
        if any(word.rstrip("0123456789.") in programs for word in words):
            return {
                name: value for name, value in report.runtime_settings.items() if name.startswith(prefixes)
            }
    return report.runtime_settings


def next_command(report: Report, bot: str) -> str:
    """Return the command that shows the first failed game again, line by line."""
    faults = [game for game in report.played if game.fault]
    lost = next((game for game in faults if game.opponent), faults[0] if faults else None)
    opponent = lost.opponent if lost is not None and lost.opponent else "first_legal"
    players = [shlex.quote(bot), opponent]
    if lost is not None and lost.item == "plays-second":
        players.reverse()
    game = "" if report.games[0] == DEFAULT_GAME else f" --game {shlex.quote(report.games[0])}"
    return f"kalarena play {' '.join(players)}{game} -v"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _wrapped(text: str, first: str, rest: str, width: int = WIDTH) -> list[str]:
    return textwrap.wrap(
        visible(text),
        width,
        initial_indent=first,
        subsequent_indent=rest,
        break_long_words=False,
        break_on_hyphens=False,
    )
